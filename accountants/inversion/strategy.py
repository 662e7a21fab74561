"""Which contours invert a law? One for the whole law, or one for each layer of its rare losses.

>>> from dpcal.accountants.inversion.transform import Total
>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> invert(Total(((Gaussian(2.0), 8),)), 4.0).log_bounds(4.0).method
'contour'
"""

from __future__ import annotations

import contextlib

from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.inversion import TIGHT, Inversion
from dpcal.accountants.inversion.layered import invert_layered
from dpcal.accountants.inversion.periodic_contour import LatticeContour
from dpcal.accountants.inversion.tilts import saddle_tilt
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["invert", "invert_on_one_contour"]


def invert(total: Total, epsilon: float, *, spread: float = 0.0) -> Inversion:
    """Return contours with their saddles at epsilon.

    One contour for the whole law is taken if its bounds are close. Otherwise it is that contour or
    those of the law's layers, whichever bounds are closer.

    Parameters
    ----------
    total
        The law.
    epsilon
        Any finite number >= 0.
    spread
        Distance from epsilon, in standard deviations of the tilted law, up to which contours serve.

    Raises
    ------
    OutOfReach
        If there is no contour of affordable size.
    """
    found: list[tuple[float, float, Inversion]] = []
    for way in (invert_on_one_contour, invert_layered):
        with contextlib.suppress(OutOfReach):
            inversion = way(total, epsilon, spread)
            width = inversion.width(epsilon)
            if width < TIGHT:
                return inversion
            found.append((width, inversion.log_bounds(epsilon).upper, inversion))
    if not found:
        raise OutOfReach
    return min(found, key=lambda item: item[:2])[-1]


def invert_on_one_contour(total: Total, epsilon: float, spread: float = 0.0) -> Inversion:
    """Invert a law on one contour through its saddle at epsilon, however long the contour is.

    On a lattice it is one period of the contour, where that is affordable.
    """
    c = saddle_tilt(total, epsilon)
    if total.lattice is not None:
        with contextlib.suppress(OutOfReach):
            return Inversion([LatticeContour(total, c, epsilon, spread=spread)])
    return Inversion([Contour(total, c, epsilon, spread=spread)])
