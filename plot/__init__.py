"""Pictures of privacy, and of the results of private runs.

matplotlib (the extra ``plot``) is imported when a picture is drawn. Nothing here touches
its global state, so pictures can be drawn in servers and threads.

>>> from dpcal.accountants import events
>>> from dpcal.plot import profile
>>> figure = profile(events.GaussianDpEvent(1.0), "sigma = 1", accountants=("characteristic",))
>>> [axes.get_ylabel() for axes in figure.axes]
['delta']
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.plot.privacy import (
        STYLES as STYLES,
        Line as Line,
        attacker as attacker,
        bounds as bounds,
        profile as profile,
        trade_off_curve as trade_off_curve,
    )
    from dpcal.plot.scores import (
        added as added,
        samplers as samplers,
    )
    from dpcal.plot.style import (
        BLUE as BLUE,
        INK as INK,
        MUTED as MUTED,
        RED as RED,
        check_picture as check_picture,
        figure_and_axes as figure_and_axes,
        legend as legend,
        note as note,
        plain_ticks as plain_ticks,
        save as save,
        svg as svg,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
