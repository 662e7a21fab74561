"""Which way of inverting a law is taken? The cheapest that proves a lower bound as well.

The law of a composition may be inverted on one contour, in layers of large losses, or as a bulk and
its jumps. docs/internals/constants.md counts how often each way
gives the answer.

>>> from dpcal.accountants.inversion.transform import Total
>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> invert(Total(((Gaussian(2.0), 8),)), 4.0).log_bounds(4.0).method
'contour'
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.inversion import NEGLIGIBLE, TIGHT, Inversion
from dpcal.accountants.inversion.jumps import Jumps, split
from dpcal.accountants.inversion.layered import invert_layered
from dpcal.accountants.inversion.limits import CONTOUR
from dpcal.accountants.inversion.periodic_contour import LatticeContour
from dpcal.accountants.inversion.tilts import ChernoffBounds, saddle_tilt
from dpcal.accountants.inversion.transform import Measure, Product, Total
from dpcal.accountants.losses.base import OutOfReach

__all__ = [
    "Way",
    "invert",
    "invert_as_split",
    "invert_on_one_contour",
    "is_cheap",
]

_Inverter = Callable[[Total, float, float], Inversion]
# A way of inverting a law at an epsilon, with a spread, and the width below which it is taken.
Way = tuple[_Inverter, float]

# Width of bounds on log delta at which a way of inverting many losses is taken: a further try costs
# as much as a whole answer.
_TIGHT_OF_MANY = 1.0
# Width of bounds on log delta at which one contour of many losses is taken, and from which a bulk
# and its jumps are tried for few.
_CLOSE = 0.1
# A cut is sought in the valley of the integrand at these multiples of the saddle. Without the
# second, one answer in fifty has an upper end that is a fifth larger in log delta.
_VALLEYS = (1.0, 8.0)


def is_cheap(inversion: Inversion, total: Total) -> bool:
    """Return whether the search for a better inversion would cost more than this one."""
    return not inversion.loose and inversion.work <= CONTOUR.cheap * len(total.parts)


def _contour(
    measure: Measure, c: float, epsilon: float, *, excess: float = 0.0, spread: float = 0.0
) -> Contour:
    """Return a contour: one period of it for a measure on a lattice, where that is affordable."""
    if measure.lattice is not None:
        with contextlib.suppress(OutOfReach):
            return LatticeContour(measure, c, epsilon, excess=excess, spread=spread)
    return Contour(measure, c, epsilon, excess=excess, spread=spread)


def invert(
    total: Total, epsilon: float, *, spread: float = 0.0, nearby: list[Way] | None = None
) -> Inversion:
    """Return contours with their saddles at epsilon.

    One contour for the whole law is taken if it is cheap. Otherwise the choice is between that
    contour; one for each layer of losses; and one for the bulk with one for the jumps. The cheapest
    of them that also proves a lower bound is taken, or, failing that, the one with the smallest
    upper bound.

    Parameters
    ----------
    total
        The law.
    epsilon
        Any finite number >= 0.
    spread
        Distance from epsilon, in standard deviations of the tilted law, up to which contours serve.
    nearby
        The way that was chosen at an epsilon nearby, which is replaced by the one chosen here; an
        empty list for none. It is taken again where it proves as much as before.

    Raises
    ------
    OutOfReach
        If there is no contour of affordable size.
    """
    for way, width in nearby or ():
        with contextlib.suppress(OutOfReach):
            again = way(total, epsilon, spread)
            if math.isinf(width) or again.width(epsilon) < width:
                return again
    found, way, width = _chosen(total, epsilon, spread)
    if nearby is not None:
        nearby[:] = [(way, width)]
    return found


def _chosen(total: Total, epsilon: float, spread: float) -> tuple[Inversion, _Inverter, float]:
    """Return the inversion that is chosen, the way that led to it, and the width it had to have."""
    choices: list[tuple[Inversion, _Inverter]] = []
    many, c, saddle = total.is_many, 1.0, False
    with contextlib.suppress(OutOfReach):
        c, saddle = saddle_tilt(total, epsilon), True
        plain = Inversion([_contour(total, c, epsilon, spread=spread)])
        choices.append((plain, invert_on_one_contour))
        # The width takes all the work of the contour, so it is computed only if it may end the
        # search.
        cheap, width = is_cheap(plain, total), _CLOSE if many else TIGHT
        if (cheap or many) and plain.width(epsilon) < width:
            return plain, invert_on_one_contour, width
    with contextlib.suppress(OutOfReach):
        found = invert_layered(total, epsilon, spread)
        choices.append((found, invert_layered))
        width = _TIGHT_OF_MANY if many else TIGHT
        if found.width(epsilon) < width:
            return found, invert_layered, width
    work = min((choice.work for choice, _ in choices), default=math.inf)
    loose = all(choice.loose or choice.width(epsilon) > _CLOSE for choice, _ in choices)
    if not choices or (not many and (loose or work > CONTOUR.cheap * len(total.parts))):
        for factor in _VALLEYS[:1] if many else _VALLEYS:
            with contextlib.suppress(OutOfReach):
                split_there = _split_at(total, factor * max(c, 1.0), c if saddle else 0.0)
                choices.append((split_there(total, epsilon, spread), split_there))
    if not choices:
        raise OutOfReach
    for choice, way in sorted(choices, key=lambda item: (item[0].loose, item[0].work)):
        if choice.width(epsilon) < TIGHT:
            return choice, way, TIGHT
    choice, way = min(choices, key=lambda item: item[0].log_bounds(epsilon).upper)
    return choice, way, math.inf


def invert_on_one_contour(total: Total, epsilon: float, spread: float = 0.0) -> Inversion:
    """Invert a law on one contour through its saddle at epsilon, however long the contour is."""
    return Inversion([_contour(total, saddle_tilt(total, epsilon), epsilon, spread=spread)])


# -- a bulk and its jumps


def _split_at(total: Total, c: float, near: float) -> Callable[[Total, float, float], Inversion]:
    """Return what :func:`invert_as_split` does at any epsilon, where both parts keep points."""
    jumps = split(total.parts, c)
    if jumps is None:
        raise OutOfReach
    jumps.near = jumps.bulk.near = near if near > 0 else None

    def inverted(_: Total, epsilon: float, spread: float) -> Inversion:
        return _bulk_and_jumps(jumps.bulk, jumps, epsilon, spread)

    return inverted


def invert_as_split(total: Total, epsilon: float, *, c: float, near: float = 0.0) -> Inversion:
    """Invert a law as a bulk and its jumps, cut at the valley of its integrand at tilt c.

    Their saddles are sought near another tilt, if one > 0 is known.

    Raises
    ------
    OutOfReach
        If no loss has two parts, or one of the two laws has no contour of affordable size.
    """
    return _split_at(total, c, near)(total, epsilon, 0.0)


def _bulk_and_jumps(bulk: Product, jumps: Jumps, epsilon: float, spread: float) -> Inversion:
    """Return contours for a bulk and its jumps; the smaller part is bounded where that suffices."""
    if bulk.is_zero:
        saddle = saddle_tilt(jumps, epsilon, positive=True)
        return Inversion([_contour(jumps, saddle, epsilon, spread=spread)], method="split")
    both = (bulk, jumps)
    parts = [(part, ChernoffBounds.at_saddle(part, epsilon)) for part in both]
    (large, above), (small, bounds) = sorted(parts, key=lambda part: -part[1].log_bound(epsilon))
    assert above.saddle is not None
    assert bounds.saddle is not None
    contours = [_contour(large, above.saddle, epsilon, spread=spread)]
    excess = contours[0].log_estimate(epsilon) - bounds.log_bound(epsilon)
    if excess > NEGLIGIBLE:
        return Inversion(contours, [bounds], "split")
    excess = max(0.0, excess)
    contours.append(_contour(small, bounds.saddle, epsilon, excess=excess, spread=spread))
    return Inversion(contours, method="split")
