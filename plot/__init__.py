"""Pictures: what a mechanism costs, and what a private run achieves.

matplotlib (``pip install 'dpcal[plot]'``) is imported when a picture is drawn. Nothing here touches
its global state, so pictures can be drawn in servers and threads.

>>> from dpcal.accountants import events
>>> curve = Curve.of(events.GaussianDpEvent(1.0), "sigma = 1", accountants=("characteristic",))
>>> figure = profile([curve])
>>> [axes.get_ylabel() for axes in figure.axes]
['delta']
"""

from dpcal.plot.privacy import (
    STYLES,
    Curve,
    Line,
    RenyiCurve,
    TradeOffCurve,
    profile,
    renyi_curve,
    trade_off_curve,
)
from dpcal.plot.style import BLUE, INK, MUTED, RED, check_picture, png, save, svg
from dpcal.plot.utility import Point, along_run, strategies, utility

__all__ = [
    "BLUE",
    "INK",
    "MUTED",
    "RED",
    "STYLES",
    "Curve",
    "Line",
    "Point",
    "RenyiCurve",
    "TradeOffCurve",
    "along_run",
    "check_picture",
    "png",
    "profile",
    "renyi_curve",
    "save",
    "strategies",
    "svg",
    "trade_off_curve",
    "utility",
]
