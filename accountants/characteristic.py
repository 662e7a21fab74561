r"""What is delta(epsilon) of a composition? Laplace inversion, with every error bounded.

The law of the composed loss is inverted on contours. Where one contour serves, and the losses have
a compiled form, that is one call of ``_ext/contour.h``. Otherwise the cheapest of several ways is
taken (:mod:`dpcal.accountants.inversion.strategy`). A single mechanism has a closed form, and few
steps of a discrete one or of one scale of Laplace noise have an exact sum. Where no quadrature of
affordable size exists, the answer is a Chernoff bound from moments in closed form. Every answer is
an interval and names its method.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> direction = decompose(event, "add-or-remove-one").directions[0]
>>> bounds = log_delta_bounds(direction, 8.0)
>>> print(f"{math.exp(bounds.upper):.10e} {bounds.method}")
2.0283809415e-08 contour
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

import numpy as np

from dpcal._ext import question
from dpcal._roots import Sides, Stop, bisect
from dpcal.accountants import renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.bounded_range import (
    epsilon_by_recursion,
    log_delta_by_recursion,
)
from dpcal.accountants.inversion.failure import epsilon_with_failures, log_delta_with_failures
from dpcal.accountants.inversion.parity import (
    epsilon_by_parity,
    is_told_apart,
    log_delta_by_parity,
)
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.inversion.solve import bracketed, epsilon_on_contours
from dpcal.accountants.inversion.strategy import invert
from dpcal.accountants.inversion.transform import MANY_LOSSES, Total
from dpcal.accountants.losses.base import NO_LOSS, OutOfReach
from dpcal.accountants.losses.discrete import (
    LatticeLoss,
    ScatteredLoss,
    has_few_sums,
    log_delta_of_sum,
)
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import (
    BoundedRange,
    Laplace,
    are_few_uses,
    log_delta_of_few_uses,
)
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT

__all__ = [
    "epsilon_bounds",
    "is_smaller",
    "log_delta_bounds",
    "without_contour",
    "worst_epsilon_bounds",
]

# Relative error above which a closed form is replaced by a contour, which is as close.
_ACCEPTED_ERROR = 1e-11
# For these losses a larger error is accepted: contours improve little on the closed forms of laws
# with corners or atoms, and of laws whose closed form is as uncertain as its rounded arguments.
_ACCEPTED_ERRORS: dict[type, float] = {
    Laplace: 1e-3,
    BoundedRange: 1e-3,
    LatticeLoss: 1e-3,
    ScatteredLoss: 1e-3,
    Gaussian: 1e-6,
    FixedBatchGaussian: 1e-6,
    GaussianMixtures: 1e-2,
    SampledGaussian: 1e-6,
}
# Relative error above which an exact sum, or a closed form, is not used.
_MOST_LOST = 0.5
# Shares of epsilon that are tried where delta is out of reach: next to the largest loss a contour
# may fail although one succeeds at a smaller epsilon.
_FURTHER_INSIDE = (0.99, 0.9, 0.5)
# Width of log delta above which put-call parity is asked, too.
_TIGHT = 1e-6
# Width at which it answers alone where contours of the direction itself are dear.
_NARROW_ENOUGH = 1e-6
# Factor of the epsilons at which the closed form of one use is tried, and how many are.
_CLOSER, _MOST_CLOSER = 0.25, 100
# Share of the largest loss to which a lower end of epsilon is found that no contour gave.
_RELATIVE = 1e-3
# Relative width of an epsilon below which Renyi's bound, which takes a search of its own, is not
# computed.
_CLOSE = 1e-6


def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta of one direction at an epsilon, any finite number >= 0."""
    parts = direction.compiled
    if parts is not None and (found := question.log_delta(parts, epsilon)) is not None:
        return Bounds(*found)

    if is_told_apart(direction):
        exact = log_delta_by_parity(direction, epsilon)
        if exact is not None:
            return exact

    def given_finite(given: Direction) -> Bounds:
        bounds = _log_delta(given, epsilon)
        return _attained(given, bounds, -math.inf, lambda at: log_delta_bounds(at, epsilon))

    def on_side(item: Direction, _: int) -> Bounds:
        return log_delta_with_failures(item, given_finite)

    return _rounded(direction, on_side)


def is_smaller(direction: Direction, epsilon: float, log_delta: float) -> bool:
    """Return whether a crude bound proves delta smaller, where a close one takes seconds."""
    if log_delta == -math.inf or not is_told_apart(direction):
        return False
    crude = renyi.log_delta_bounds(direction, epsilon).upper
    return crude < log_delta


def _distance(bounds: Bounds) -> float:
    """Return the width of bounds on a logarithm, 0 where both are minus infinity."""
    return 0.0 if bounds.upper == bounds.lower else bounds.upper - bounds.lower


def _attained(
    direction: Direction, bounds: Bounds, nothing: float, bounds_of: Callable[[Direction], Bounds]
) -> Bounds:
    """Return bounds, with a lower end from one mechanism of each class if they have none."""
    if bounds.lower > nothing or not Total(direction.parts).renyi_is_tighter:
        return bounds
    # Contours of Laplace noise beside atoms take seconds.
    if any(isinstance(loss, Laplace) for loss, _ in direction.parts):
        return bounds
    attained = ((loss.attained, times) for loss, times in direction.parts)
    parts = tuple((loss, times) for loss, times in attained if loss is not NO_LOSS)
    lower = bounds_of(Direction(direction.name, parts)).lower
    return Bounds(min(lower, bounds.upper), bounds.upper, bounds.method)


def _rounded(direction: Direction, bounds_of: Callable[[Direction, int], Bounds]) -> Bounds:
    """Return bounds if losses may be rounded up; the lower end is of losses rounded down.

    ``bounds_of`` takes the end that counts: 1 for the upper one, -1 for the lower one, 0 for both.
    """
    below = direction.below
    if below is None:
        return bounds_of(direction, 0)
    bounds = bounds_of(direction, 1)
    lower = bounds_of(below, -1).lower
    return Bounds(min(lower, bounds.upper), bounds.upper, f"rounded, {bounds.method}")


def _best(bounds: Bounds, direction: Direction, epsilon: float) -> Bounds:
    """Return the bounds with the smallest of four upper ends: their own and three in closed form.

    These are the bounds that follow from sampling alone, from the support alone and from Renyi
    divergences. The last ones are computed if no lower end is proved.
    """
    total = Total(direction.parts)
    uppers = [
        (bounds.upper, bounds.method),
        (total.log_delta_bound, "sampling"),
        (total.log_support_bound(epsilon), "support"),
    ]
    tighter = total.renyi_is_tighter
    if bounds.lower == -math.inf < bounds.upper or tighter:
        other = renyi.log_delta_bounds(direction, epsilon)
        uppers.append((other.upper, other.method))
    upper, method = min(uppers)
    # If a theorem proves more than the pair, the pair's lower bound does not hold for the
    # mechanism.
    lower = -math.inf if tighter and direction.once is None else bounds.lower
    return Bounds(min(lower, upper), upper, method)


def without_contour(direction: Direction, epsilon: float) -> Bounds | None:
    """Return bounds on log delta(epsilon) if they take no contour, otherwise None."""
    parts = direction.parts
    if not parts or epsilon >= Total(parts).upper:
        return Bounds(-math.inf, -math.inf, "closed form")
    if (loss := direction.once) is not None:
        closed = loss.log_delta(epsilon)
        accepted = _ACCEPTED_ERRORS.get(type(loss), _ACCEPTED_ERROR)
        # Far in the tail a larger error is rounding of the logarithm, on contours too.
        if closed is not None and closed[1] < min(
            accepted * max(1.0, -closed[0] / 1e3), _MOST_LOST
        ):
            bounds = Bounds.around(*closed, "closed form")
            return _best(bounds, direction, epsilon) if Total(parts).renyi_is_tighter else bounds
    if are_few_uses(parts):
        exact = log_delta_of_few_uses(*parts[0], epsilon)
    else:
        exact = log_delta_of_sum(parts, epsilon)
    if exact is not None and exact[1] < _MOST_LOST:
        return Bounds.around(*exact, "convolution")
    return None


def _log_delta(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta(epsilon)."""
    bounds = without_contour(direction, epsilon)
    if bounds is not None:
        return bounds
    parity = log_delta_by_parity(direction, epsilon, first=True)
    if parity is not None and _distance(parity) < _NARROW_ENOUGH:
        return parity
    total = Total(direction.parts)
    try:
        first = invert(total, epsilon).log_bounds(epsilon)
    except OutOfReach:
        # Renyi's bound has moments in closed form if no others are affordable.
        first = _before(total, epsilon)
    bounds = _best(first, direction, epsilon).both(log_delta_by_recursion(direction, epsilon))
    if _distance(bounds) > _TIGHT:
        bounds = bounds.both(log_delta_by_parity(direction, epsilon))
    return bounds


def _before(total: Total, epsilon: float) -> Bounds:
    """Return an upper bound from a smaller epsilon, as delta falls; 0 if no contour reaches one."""
    for share in _FURTHER_INSIDE if math.isfinite(total.upper) and not total.is_many else ():
        with contextlib.suppress(OutOfReach):
            found = invert(total, share * epsilon).log_bounds(share * epsilon)
            if found.upper < 0.0:
                return Bounds(-math.inf, found.upper, found.method)
    return Bounds(-math.inf, 0.0, "no bound")


def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on the smallest epsilon >= 0 at a log delta, a negative number of any size."""
    parts = direction.compiled
    if parts is not None and (found := question.epsilon(parts, log_delta)) is not None:
        return Bounds(*found)
    if is_told_apart(direction):
        exact = epsilon_by_parity(direction, log_delta)
        if exact is not None:
            return exact

    def given_finite(given: Direction, target: float) -> Bounds:
        bounds = _finite_epsilon(given, target)
        return _attained(given, bounds, 0.0, lambda at: epsilon_bounds(at, target))

    def on_side(item: Direction, side: int) -> Bounds:
        return epsilon_with_failures(item, log_delta, given_finite, side)

    return _rounded(direction, on_side)


def _finite_epsilon(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on epsilon of finite losses, taken as they are, with Renyi's where it helps."""
    total = Total(direction.parts)
    if not direction.parts:
        return Bounds(0.0, 0.0, "closed form")
    parity = epsilon_by_parity(direction, log_delta, first=True)
    if parity is not None and parity.upper - parity.lower <= _NARROW_ENOUGH * parity.upper:
        return parity
    found = None
    if not _has_exact_sum(direction):
        with contextlib.suppress(OutOfReach):
            found = epsilon_on_contours(total, log_delta)
    bounds = found
    if bounds is None:
        parity = epsilon_by_parity(direction, log_delta)
        if parity is not None and parity.upper - parity.lower <= _NARROW_ENOUGH * parity.upper:
            return parity
        first = _before_the_search(direction, log_delta)
        bounds = bracketed(lambda at: _log_delta(direction, at), first, total, log_delta)
    if total.renyi_is_tighter:
        lower = 0.0 if direction.once is None else bounds.lower
        bounds = Bounds(lower, bounds.upper, bounds.method)
    elif bounds.lower > 0 and bounds.upper - bounds.lower < _CLOSE * bounds.upper:
        return bounds
    if found is None:
        # A search starts from Renyi's epsilon, and ends no higher.
        return bounds.both(parity)
    bounds = bounds.both(epsilon_by_parity(direction, log_delta))
    other = renyi.epsilon_bounds(direction, log_delta)
    if other.upper < bounds.upper:
        bounds = Bounds(min(bounds.lower, other.upper), other.upper, other.method)
    return bounds.both(epsilon_by_recursion(direction, log_delta, bounds.upper))


def _before_the_search(direction: Direction, log_delta: float) -> Bounds:
    """Return Renyi's bound on epsilon, or a smaller one that the closed form of one use proves.

    Where records are rarely drawn and noise is large, the first may be a million times too large.
    """
    first, loss = renyi.epsilon_bounds(direction, log_delta), direction.once
    if loss is None:
        return first
    epsilon = first.upper
    for _ in range(_MOST_CLOSER):
        epsilon *= _CLOSER
        closed = loss.log_delta(epsilon)
        if closed is None or not closed[1] < _MOST_LOST:
            continue
        if Bounds.around(*closed, "closed form").upper > log_delta:
            break
        first = Bounds(0.0, epsilon, "closed form")
    return first


def _has_exact_sum(direction: Direction) -> bool:
    """Return whether delta takes no contour: a search on delta itself is then faster."""
    parts, loss = direction.parts, direction.once
    closed = loss is not None and loss.log_delta(0.0) is not None
    return closed or has_few_sums(parts) or are_few_uses(parts)


def worst_epsilon_bounds(
    directions: Sequence[Direction],
    log_delta: float,
    known: Sequence[Bounds | None] = (),
) -> Bounds:
    """Return bounds on the largest epsilon of one or more directions at a log delta < 0.

    A direction that provably needs no larger epsilon than the first one is left out. Where the
    first one has no lower end, one of the others may have, which compiled calls find. Bounds on
    each direction's epsilon that are ``known``, or None for each that has none, save a search.
    """
    found: list[Bounds] = []
    for direction, bounds in zip(directions, known or [None] * len(directions), strict=True):
        if not found or not _needs_less(direction, found[0], log_delta):
            found.append(bounds or epsilon_bounds(direction, log_delta))
        elif found[0].lower == 0.0 < found[0].upper:
            lower = _lower_end(direction, log_delta)
            found.append(Bounds(lower, lower, found[0].method))
    return Bounds.worst(found)


def _lower_end(direction: Direction, log_delta: float) -> float:
    """Return an epsilon at which a compiled call proves that log delta is no less, or 0."""
    parts, upper = direction.compiled, Total(direction.parts).upper
    if parts is None or len(parts) > MANY_LOSSES or math.isinf(upper):
        return 0.0

    def meets(epsilon: float) -> bool:
        found = question.log_delta(parts, epsilon)
        return found is not None and found[0] >= log_delta

    return bisect(meets, Sides(meet=0.0, miss=upper), Stop(absolute=_RELATIVE * upper)).meet


def _needs_less(direction: Direction, found: Bounds, log_delta: float) -> bool:
    """Return whether a direction provably needs no larger epsilon than that of another one."""
    parts = direction.compiled if found.upper < math.inf else None
    known = None if parts is None else question.at_most(parts, found.upper, log_delta)
    if known is not None:
        return known
    if _chernoff_suffices(direction, found.lower, log_delta):
        return True
    return log_delta_bounds(direction, found.upper).upper <= log_delta


def _chernoff_suffices(direction: Direction, epsilon: float, log_delta: float) -> bool:
    """Return whether sampling or a few Chernoff bounds prove log delta(epsilon) <= log_delta."""
    total = Total(direction.parts)
    if total.upper <= epsilon or total.log_delta_bound <= log_delta:
        return True
    if epsilon <= 0 or math.isinf(epsilon) or direction.finite[0] < 0:
        return False
    # These tilts lie around the saddle of a Gaussian loss.
    tilts = -log_delta / epsilon * np.array([0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
    try:
        log_mgf = total.moments(tilts)[:, 0]
    except OutOfReach:
        return False
    margin = 64 * UNIT * (np.abs(log_mgf) + tilts * epsilon + 4)
    bounds = log_mgf - tilts * epsilon + log_chernoff(tilts) + margin
    return bool(bounds.min() <= log_delta)
