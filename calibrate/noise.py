"""How much noise does a target need? One free parameter of an event, solved for (epsilon, delta).

Every solver asks the characteristic accountant for the *upper* bound of log delta at the target
epsilon, so what it returns meets the target; the derivative along the free parameter comes from the
same contour nodes, and Newton's steps are safeguarded by bisection.

>>> from dpcal.accountants import events
>>> def event(noise_multiplier):
...     return events.dpsgd(
...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=10_000
...     )
>>> print(f"{noise_multiplier(event, epsilon=2.0, delta=1e-6):.6f}")
2.355618
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal.accountants import characteristic, epsilon as epsilon_of
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import RELATIONS, Composition, Direction
from dpcal.accountants.events import DpEvent, RepeatAndSelectDpEvent
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.leaves import leaves
from dpcal.errors import TargetUnreachable

__all__ = ["batch_size", "noise_multiplier", "noise_multipliers", "sampling_probability", "steps"]

EventOf = Callable[[float], DpEvent]
EventOfCount = Callable[[int], DpEvent]

# Relative: an answer is within this distance of a value that misses the target, so that with its
# own rounding it is within the documented 1e-6. Half of it costs one more evaluation in some cases;
# twice as much would break the documented width. With half of it one of 4 answers changes by up to
# 3e-7; with twice one of 4 answers changes by up to 1e-7.
_RELATIVE_WIDTH = 5e-7

# Unit: logarithm of the noise multiplier. A root further than this from its guess is sought anew,
# because Newton's steps from so far may run away. With half of it more points of a grid start
# afresh; with twice as much a bad guess costs more evaluations before it is given up. With half of
# it the one answer that reads it changes by up to 3e-7; with twice nothing changes.
_NEAR = 0.5

# Unit: log delta. A point whose log delta stays below its target by more is taken without asking
# for epsilon. Two ways to answer one question agree to about half of it, so with much less an
# answer could miss its target in epsilon; with much more the second question is asked more often.
# Neither half nor twice of it changes any of 6 answers.
_MARGIN = 1e-9

# Unit: logarithm of the noise multiplier. A guess is moved by this towards less noise. Such a point
# misses the target, and a miss is known as soon as one direction misses it. With half of it one of
# 3 answers changes by up to 9e-11; with twice one of 3 answers changes by up to 2e-10.
_BIAS = 3e-5

# Answers from which the next one of a grid is extrapolated, by a cubic polynomial. With fewer the
# guess is coarser; with more it follows the rounding of the answers. With half of it the one answer
# that reads it changes by up to 8e-11; with twice nothing changes.
_NEIGHBORS = 4

# Smallest noise multiplier that is tried. No accountant here has useful bounds below it. Neither
# half nor twice of it changes any of 3 answers.
_LEAST = 1e-5
# Largest noise multiplier that is tried. No accountant here has useful bounds beyond it. Neither
# half nor twice of it changes any of 3 answers.
_MOST = 1e9

# Relative to a value or in its logarithm: the distance over which slopes are taken. They steer the
# search only, so a coarser one costs steps and no correctness. With half of it both answers change
# by up to 2e-11; with twice both answers change by up to 4e-11.
_CHANGE = 1e-6

# Sampling probabilities are sought down to this. Below it a run is as good as not asking. Neither
# half nor twice of it changes the one answer that reads it.
_LEAST_PROBABILITY = 1e-12

_TOO_MUCH_BESIDES = (
    "No noise multiplier up to 1e9 gives epsilon={epsilon!r} at delta={delta!r}: what the event "
    "holds beside this noise already costs more. Choose a larger epsilon or delta, or make the "
    "rest of it cheaper."
)
_NO_NOISE = (
    "Every noise multiplier gives epsilon={epsilon!r} at delta={delta!r}: sampling alone meets the "
    "target. Choose a smaller delta."
)
_TOO_LITTLE_NOISE = (
    "Noise multiplier 1e-5, the smallest that is tried, already gives epsilon={epsilon!r} at "
    "delta={delta!r}. Choose a smaller epsilon or delta."
)


class _Target:
    """The excess of log delta over its target, and its slope, along the free parameter."""

    def __init__(self, epsilon: float, delta: float, relation: str) -> None:
        self.epsilon = _validate.non_negative(epsilon=epsilon)
        self.delta = _validate.probability(delta=delta)
        self.log_delta = math.log(self.delta)
        self.relation = _validate.choice(RELATIONS, neighboring_relation=relation)
        self.settled = False

    def __call__(self, event: DpEvent, moved: DpEvent, change: float) -> tuple[float, float | None]:
        """Worst excess over directions, and its derivative along event -> moved.

        Once one direction misses the target, the others are not asked.
        """
        here, there = self._decompose(event), self._decompose(moved)
        worst, slope, tight = -math.inf, None, True
        if len(here.directions) != len(there.directions):
            there = here
        for direction, shifted in zip(here.directions, there.directions, strict=True):
            if worst > self.log_delta:
                break
            if self._below(direction, worst):
                continue
            if worst > -math.inf:
                bounds = characteristic.log_delta_bounds(direction, self.epsilon)
                tight = tight and _is_tight(bounds)
                if bounds.upper < worst:
                    continue
            bounds, candidate = characteristic.log_delta_slope(
                direction, self.epsilon, shifted, change
            )
            tight = tight and _is_tight(bounds)
            if bounds.upper >= worst:
                worst, slope = bounds.upper, candidate
        # Any other way to the same question gives the same answer, but for this much.
        self.settled = tight and worst < self.log_delta - _MARGIN
        return worst - self.log_delta, slope

    def _below(self, direction: Direction, log_delta: float) -> bool:
        """Whether a few Chernoff bounds prove that a direction has no larger delta, at low cost."""
        if self.epsilon == 0 or not -math.inf < log_delta < 0:
            return False
        tilts = -log_delta / self.epsilon * np.array([0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
        total = Total(direction.parts)
        if total.upper <= self.epsilon:
            return True
        try:
            bounds = total.log_chernoff(tilts) - tilts * self.epsilon
        except OutOfReach:
            return False
        # Rounding of the product, which is of the order of 100.
        return bool(bounds.min() * (1 - 1e-12) + 1e-12 < log_delta)

    def met_by_sampling(self, event: DpEvent) -> bool:
        """Whether records are sampled so rarely that any noise meets the target."""
        directions = self._decompose(event).directions
        return all(Total(item.parts).log_delta_bound <= self.log_delta for item in directions)

    def missed_by(self, event: DpEvent) -> bool:
        """Whether the accountant's epsilon, as a user would ask for it, exceeds the target."""
        answer = epsilon_of(event, delta=self.delta, neighboring_relation=self.relation)
        return bool(answer > self.epsilon)

    def _decompose(self, event: DpEvent) -> Composition:
        composition = decompose(event, self.relation)
        if not composition.private:
            raise TargetUnreachable(
                "The event contains a non-private release: no target can be met."
            )
        return composition


def _is_tight(bounds: Bounds) -> bool:
    """Whether bounds came from a contour that leaves nothing open."""
    return bounds.method == "contour" and bounds.upper - bounds.lower < _MARGIN / 2


def safe_root(
    excess: Callable[[float], tuple[float, float | None]],
    start: float,
    lowest: float,
    highest: float,
    width: float,
) -> tuple[float, float]:
    """Neighboring points (miss, meet) with excess(miss) > 0 >= excess(meet), in any order.

    The sign must change exactly once in [lowest, highest]; a missing side is returned as NaN.
    Steps are Newton's where a slope is given, probes just past a converged root, and bisections.
    """
    miss = meet = math.nan
    x = start
    for _ in range(200):
        value, slope = excess(x)
        miss, meet = (x, meet) if value > 0 else (miss, x)
        if abs(meet - miss) <= width:
            break
        newton = x - value / slope if slope else math.nan
        if abs(newton - x) < width / 4:
            # Converged: step over the root, so that both sides get known.
            newton = x + math.copysign(width / 2, newton - x if newton != x else -value)
        x = _next_point(x, newton, miss, meet, lowest, highest, value > 0)
        if math.isnan(x):
            break
    return miss, meet


def _next_point(
    x: float, newton: float, miss: float, meet: float, lowest: float, highest: float, missed: bool
) -> float:
    """Newton's point if it lies between the known sides, else their middle, else a step outward."""
    if not (math.isnan(miss) or math.isnan(meet)):
        inside = min(miss, meet) < newton < max(miss, meet)
        return newton if inside else 0.5 * (miss + meet)
    if x in (lowest, highest) and not lowest < newton < highest:
        return math.nan
    reach = 2.0
    if math.isnan(newton):
        # Excess falls towards higher x: a miss moves up, a hit moves down.
        newton = x + (reach if missed else -reach)
    return min(max(newton, x - reach, lowest), x + reach, highest)


def noise_multiplier(
    event_of_sigma: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the smallest noise multiplier that meets (epsilon, delta), to a relative 1e-6.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event whose epsilon falls as it grows. The best of many
        runs (``RepeatAndSelectDpEvent``) may be in it, and takes seconds.
    epsilon
        Target, >= 0.
    delta
        Target, in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    float
        sigma with epsilon(sigma) <= target and epsilon(sigma (1 - 1e-6)) > target, epsilon being
        the accountant's upper bound. It is looser beyond some 10^4, where sigma is up to 1e-4 too
        large.

    Raises
    ------
    TargetUnreachable
        If no value between 1e-5 and 1e9 separates meeting the target from missing it.
    """
    target = _Target(epsilon, delta, neighboring_relation)
    return _noise_multiplier(event_of_sigma, target, None)


def noise_multipliers(
    event_of_sigma: EventOf | Sequence[EventOf],
    *,
    epsilon: ArrayLike,
    delta: ArrayLike,
    neighboring_relation: str = "add-or-remove-one",
) -> NDArray[np.float64]:
    """Return the smallest noise multipliers that meet a grid of targets, each to a relative 1e-6.

    Every answer is extrapolated from its neighbors', corrected by Newton's method and checked
    against its own target, so a smooth grid takes a few milliseconds a point.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event whose epsilon falls as it grows; or one such
        function for each target, where the event changes along the grid.
    epsilon, delta
        Targets, numbers or arrays of shape (k,): epsilon >= 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    ndarray, shape (k,)
        The noise multipliers, in the order of the targets.

    Raises
    ------
    ValueError
        If the lengths do not agree.
    TargetUnreachable
        If one of the targets is.

    >>> from dpcal.accountants import events
    >>> def event(noise_multiplier):
    ...     return events.dpsgd(
    ...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=1000
    ...     )
    >>> print(noise_multipliers(event, epsilon=[1.0, 2.0, 4.0], delta=1e-6).round(5))
    [1.56267 1.02902 0.77854]
    """
    several = isinstance(event_of_sigma, Sequence)
    functions: Sequence[EventOf] = event_of_sigma if isinstance(event_of_sigma, Sequence) else ()
    epsilons, deltas = np.asarray(epsilon, dtype=float), np.asarray(delta, dtype=float)
    lengths = {array.shape for array in (epsilons, deltas) if array.ndim}
    lengths |= {(len(functions),)} if several else set()
    if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
        raise ValueError(
            f"event_of_sigma, epsilon and delta must be single or of one length, got shapes "
            f"{sorted(lengths)}."
        )
    (count,) = lengths.pop() if lengths else (1,)
    epsilons, deltas = np.broadcast_to(epsilons, count), np.broadcast_to(deltas, count)
    places, answers = _places(epsilons, deltas), np.empty(count)
    for i in range(count):
        target = _Target(float(epsilons[i]), float(deltas[i]), neighboring_relation)
        known = slice(max(0, i - _NEIGHBORS), i)
        start = _extrapolated(places[known], np.log(answers[known]), places[i])
        function = functions[i] if isinstance(event_of_sigma, Sequence) else event_of_sigma
        answers[i] = _noise_multiplier(function, target, start)
    return answers


def _places(epsilons: NDArray[np.float64], deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """A coordinate along a grid of targets in which their answers are smooth."""
    with np.errstate(divide="ignore", invalid="ignore"):
        for values in (np.log(epsilons), np.log(-np.log(deltas))):
            if len(values) > 1 and np.isfinite(values).all() and np.abs(np.diff(values)).min() > 0:
                return np.asarray(values)
    return np.arange(float(len(epsilons)))


def _extrapolated(
    places: NDArray[np.float64], values: NDArray[np.float64], at: float
) -> float | None:
    """The polynomial through the values (Neville's scheme), unless it runs away."""
    if not len(values):
        return None
    table = values.copy()
    for order in range(1, len(values)):
        for i in range(len(values) - order):
            left, right = places[i] - at, places[i + order] - at
            if left == right:
                return float(values[-1])
            table[i] = (table[i + 1] * left - table[i] * right) / (left - right)
    return float(table[0]) if abs(table[0] - values[-1]) < 2 * _NEAR else float(values[-1])


def _noise_multiplier(event_of_sigma: EventOf, target: _Target, start: float | None) -> float:
    """Solve for one target, from a guess of the logarithm if there is one."""

    def excess(x: float) -> tuple[float, float | None]:
        sigma = math.exp(x)
        moved = event_of_sigma(sigma * math.exp(_CHANGE))
        return target(event_of_sigma(sigma), moved, _CHANGE)

    epsilon, delta = target.epsilon, target.delta
    if _is_a_selection(event_of_sigma(1.0)):
        return _by_epsilon(event_of_sigma, target)
    if target.met_by_sampling(event_of_sigma(1.0)):
        raise TargetUnreachable(_NO_NOISE.format(epsilon=epsilon, delta=delta))
    lowest, highest = math.log(_LEAST), math.log(_MOST)
    meet = None if start is None else _near_root(excess, min(max(start - _BIAS, lowest), highest))
    near = meet is not None
    if meet is None:
        first = value, slope = excess(0.0)
        # If more noise hardly helps, no amount may; then this is found out first.
        flat = slope is None or value + slope * highest > 0
        if value > 0 and flat and excess(highest)[0] > 0:
            raise TargetUnreachable(_TOO_MUCH_BESIDES.format(epsilon=epsilon, delta=delta))
        miss, meet = safe_root(
            lambda x: first if x == 0 else excess(x), 0.0, lowest, highest, _RELATIVE_WIDTH
        )
        if math.isnan(miss) or math.isnan(meet):
            reason = _TOO_LITTLE_NOISE if math.isnan(miss) else _TOO_MUCH_BESIDES
            raise TargetUnreachable(reason.format(epsilon=epsilon, delta=delta))
    sigma = math.exp(meet)
    # Bounds on delta at epsilon and on epsilon at delta may come from different contours.
    if near and target.settled:
        return sigma
    while target.missed_by(event_of_sigma(sigma)):
        sigma *= 1 + _RELATIVE_WIDTH
    return sigma


def _is_a_selection(event: DpEvent) -> bool:
    """Whether the best of many runs is in an event: it has a price, and no derivatives of it."""
    return any(isinstance(leaf, RepeatAndSelectDpEvent) for leaf in leaves(event))


def _by_epsilon(event_of_sigma: EventOf, target: _Target) -> float:
    """Solve for one target by asking for epsilon alone, with slopes from earlier answers."""
    wanted, known = target.epsilon, (0.0, math.inf)

    def excess(x: float) -> tuple[float, float]:
        nonlocal known
        event = event_of_sigma(math.exp(x))
        found = epsilon_of(event, delta=target.delta, neighboring_relation=target.relation).upper
        value = math.log(found / wanted) if min(found, wanted) > 0 else found - wanted
        slope = (value - known[1]) / (x - known[0]) if x != known[0] else math.nan
        known = x, value
        # Where nothing is known, epsilon is taken as in proportion to 1 / sigma.
        return value, slope if -math.inf < slope < 0 else -1.0

    miss, meet = safe_root(excess, 0.0, math.log(_LEAST), math.log(_MOST), _RELATIVE_WIDTH)
    if math.isnan(miss) or math.isnan(meet):
        reason = _TOO_LITTLE_NOISE if math.isnan(miss) else _TOO_MUCH_BESIDES
        raise TargetUnreachable(reason.format(epsilon=wanted, delta=target.delta))
    return math.exp(meet)


def _near_root(excess: Callable[[float], tuple[float, float | None]], start: float) -> float | None:
    """A point that meets the target, a Newton step shorter than the width from the root; or None.

    Every step aims a little past the root, at the side that meets the target.
    """
    x = start
    for _ in range(5):
        value, slope = excess(x)
        if slope is None or not slope < 0:
            return None
        step = -value / slope
        if -_RELATIVE_WIDTH < step <= 0:
            return x
        if abs(x + step - start) > _NEAR:
            return None
        x += step + _RELATIVE_WIDTH / 4
    return None


def sampling_probability(
    event_of_probability: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the largest sampling probability that meets (epsilon, delta), to a relative 1e-6.

    Parameters
    ----------
    event_of_probability
        Maps a sampling probability in (0, 1] to an event whose epsilon grows with it.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    TargetUnreachable
        If even a probability of 1e-12 misses the target.

    >>> from dpcal.accountants import events
    >>> def event(q):
    ...     return events.dpsgd(sampling_probability=q, noise_multiplier=1.0, steps=1000)
    >>> print(f"{sampling_probability(event, epsilon=2.0, delta=1e-6):.6f}")
    0.009442
    """
    target = _Target(epsilon, delta, neighboring_relation)

    def excess(x: float) -> tuple[float, float | None]:
        q = math.exp(-x)
        moved = event_of_probability(q * math.exp(-_CHANGE))
        return target(event_of_probability(q), moved, _CHANGE)

    highest = -math.log(_LEAST_PROBABILITY)
    miss, meet = safe_root(excess, -math.log(1e-2), 0.0, highest, _RELATIVE_WIDTH)
    if math.isnan(meet):
        raise TargetUnreachable(
            f"No sampling probability down to 1e-12 gives epsilon={epsilon!r} at delta={delta!r}."
        )
    return 1.0 if math.isnan(miss) else math.exp(-meet)


def _largest_count(name: str, event_of_count: EventOfCount, target: _Target, highest: int) -> int:
    """Largest whole number in [1, highest] that meets the target; Newton on the whole numbers."""

    def excess(count: int) -> tuple[float, float | None]:
        neighbor = count + 1 if count < highest else count - 1
        return target(event_of_count(count), event_of_count(neighbor), float(neighbor - count))

    good, bad = 0, highest + 1
    count = min(100, highest)
    while bad - good > 1:
        value, slope = excess(count)
        good, bad = (good, count) if value > 0 else (count, bad)
        guess = count - value / slope if slope and slope > 0 else math.nan
        if math.isfinite(guess):
            # One past a root below: the two sides of it are then asked in turn.
            count = math.floor(guess) + (1 if good == math.floor(guess) else 0)
        if not good < count < bad or not math.isfinite(guess):
            count = 4 * good if bad > highest and 0 < 4 * good < bad else (good + bad) // 2
        if bad > highest and good:
            count = min(count, 64 * good)
    if good == 0:
        raise TargetUnreachable(
            f"Even {name}=1 misses epsilon={target.epsilon!r} at log delta={target.log_delta:.6g}."
        )
    return good


def steps(
    event_of_steps: EventOfCount,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    at_most: int = 10**12,
) -> int:
    """Return the largest number of steps that meets (epsilon, delta).

    Parameters
    ----------
    event_of_steps
        Maps a whole number >= 1 to an event whose epsilon grows with it.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    at_most
        Returned if even that many meet the target.

    Raises
    ------
    TargetUnreachable
        If one step already misses the target.

    >>> from dpcal.accountants import events
    >>> def event(count):
    ...     return events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=count)
    >>> steps(event, epsilon=2.0, delta=1e-6)
    874
    """
    target = _Target(epsilon, delta, neighboring_relation)
    return _largest_count("steps", event_of_steps, target, _validate.count(at_most=at_most))


def batch_size(
    event_of_batch_size: EventOfCount,
    *,
    n: int,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> int:
    """Return the largest (expected) batch size in [1, n] that meets (epsilon, delta).

    Parameters
    ----------
    event_of_batch_size
        Maps a whole number in [1, n] to an event whose epsilon grows with it.
    n
        Number of records, >= 1.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    TargetUnreachable
        If a batch of one record already misses the target.

    >>> from dpcal.accountants import events
    >>> def event(batch_size):
    ...     return events.dpsgd(
    ...         sampling_probability=batch_size / 60_000, noise_multiplier=1.0, steps=1000
    ...     )
    >>> batch_size(event, n=60_000, epsilon=2.0, delta=1e-6)
    566
    """
    target = _Target(epsilon, delta, neighboring_relation)
    return _largest_count("batch_size", event_of_batch_size, target, _validate.count(n=n))
