"""Pictures: what a mechanism costs, and what a private run achieves.

matplotlib (the extra ``plot``) is imported when a picture is drawn. Nothing here touches
its global state, so pictures can be drawn in servers and threads.

>>> from dpcal.accountants import events
>>> from dpcal.plot import Curve, profile
>>> curve = Curve.of(events.GaussianDpEvent(1.0), "sigma = 1", accountants=("characteristic",))
>>> figure = profile([curve])
>>> [axes.get_ylabel() for axes in figure.axes]
['delta']
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
