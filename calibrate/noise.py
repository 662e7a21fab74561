"""How much noise does a target need? One free parameter of an event, solved for (epsilon, delta).

Every solver computes the *upper* bound of epsilon, so that its answer meets the target; steps are
those of the secant method or of differences, safeguarded by bisection. Every solver takes the
target as keywords ``epsilon`` >= 0, ``delta`` in [0, 1) and ``neighboring_relation``, which is
``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

>>> from dpcal.accountants import events
>>> def event(noise_multiplier):
...     return events.dpsgd(
...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=10_000
...     )
>>> print(f"{noise_multiplier(event, epsilon=2.0, delta=1e-6):.4f}")
2.3556
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import attr

from dpcal._internal import annexes, validate
from dpcal._internal.roots import NoBracket, Stop, largest_whole, newton
from dpcal._internal.validate import NoiseOutOfRange
from dpcal.accountants import delta as delta_of, events
from dpcal.accountants.events import DpEvent
from dpcal.accountants.interface import has_bracket
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.calibrate.targets import CHANGE, FAR, NO_NOISE, RELATIVE_WIDTH, EventOf, Noises, Target
from dpcal.errors import TargetUnreachable, UnsupportedEvent

EventOfCount = Callable[[int], DpEvent]

# Slope of log epsilon in log sigma where no other is known.
_FALL = -1.0

_LEAST_PROBABILITY = 1e-12


def noise_multiplier(
    event_of_sigma: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    accountant: str = "auto",
) -> float:
    """Return the smallest noise multiplier that meets (epsilon, delta), to a relative 1e-6.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event; its epsilon falls as the multiplier grows. The best
        of many runs (``RepeatAndSelectDpEvent``) may be in it, and takes seconds.
    accountant
        The accountant that must meet the target: see :func:`dpcal.accountants.epsilon`.

    Returns
    -------
    float
        sigma with epsilon(sigma) <= target and epsilon(sigma (1 - 1e-6)) > target, epsilon being
        the accountant's upper bound; ``"pld"`` and ``"prv"`` take up to 2e-4 too much noise.
        Bounds are looser beyond some 10^4, where sigma is up to 1e-4 too large.

    It raises TargetUnreachable if no value separates meeting the target from missing it. The search
    starts at 1, or, if no accountant takes such noise, where an event in proportion to the noise
    multiplier has noise 1. No value is tried beyond 8 times the largest or below an eighth of the
    smallest that was tried before.
    """
    target = Target(epsilon, delta, neighboring_relation, accountant)
    return _noise_multiplier(event_of_sigma, target)


def _noise_multiplier(event_of_sigma: EventOf, target: Target) -> float:
    """Solve for one target."""
    try:
        return _from_first(1.0, event_of_sigma, target)
    except NoiseOutOfRange as refusal:
        # In units of incomes, or of money, a noise of 1 is next to 0 or beyond all bounds.
        first = 1 / refusal.number
    return _from_first(first, event_of_sigma, target)


def _from_first(first: float, event_of_sigma: EventOf, target: Target) -> float:
    """Solve for one target from a first noise multiplier."""
    event = event_of_sigma(first)
    if target.by_others:
        ours = Target(target.epsilon, target.delta, target.relation, "characteristic")
        near = _noise_multiplier(event_of_sigma, ours)
        noises = Noises(target, event_of_sigma, target.excess, near)
        return noises.least(noises.origin, _FALL)
    whole = target.accountant == "auto"
    if whole and isinstance(event, events.ShuffledEpochsDpEvent):
        twice = attr.evolve(event, noise_multiplier=2 * event.noise_multiplier)
        if event_of_sigma(2 * first) == twice:  # noise by itself is in proportion to the multiplier
            found = annexes.shuffling.noise_multiplier(event, **_asked(target))
            return first * float(found) / event.noise_multiplier
    if whole and target.delta and has_bracket(event, target.relation):
        return _by_delta(event_of_sigma, target, first)
    if target.by_contour and target.delta and _holds(event, _ALLOCATED):
        return _near_poisson(event_of_sigma, target)
    sampled = target.by_contour and not _holds(event, events.RepeatAndSelectDpEvent)
    if sampled and target.met_by_sampling(event, lambda: event_of_sigma(first / 8)):
        raise target.unreachable(NO_NOISE)

    noises = Noises(target, event_of_sigma, target.excess, first)
    change = math.log1p(CHANGE)
    beyond = event_of_sigma(first * (1 + CHANGE))
    value, slope = target.with_slope(event, beyond, change)
    known: list[tuple[float, float]] = []
    start = noises.origin
    if slope is not None:
        known = [(noises.origin + x, value + slope * x) for x in (0.0, change)]
        start += min(max(-value / slope, -FAR), FAR) if slope < 0 else 0.0
    sigma = noises.least(start, _FALL, known)
    # For the target 0, bounds on delta and on epsilon may come from different contours.
    return sigma if target.epsilon else _met(sigma, event_of_sigma, target)


# Events with epsilons that have no derivatives: records draw batches in them.
_ALLOCATED = events.RandomAllocationDpEvent | events.UnequalAllocationDpEvent


def _asked(target: Target) -> dict[str, Any]:
    """Return the keywords of a target."""
    asked = {"epsilon": target.epsilon, "delta": target.delta}
    return {**asked, "neighboring_relation": target.relation}


def _holds(event: DpEvent, kinds: Any) -> bool:
    """Return whether an event of some kinds is in an event."""
    return any(isinstance(leaf, kinds) for leaf in leaves(event))


def _met(sigma: float, event_of_sigma: EventOf, target: Target) -> float:
    """Return the noise, or a little more: an epsilon and a delta may have other bounds."""
    while target.missed_by(event_of_sigma(sigma)):
        sigma *= 1 + RELATIVE_WIDTH
    return sigma


def _by_delta(event_of_sigma: EventOf, target: Target, first: float) -> float:
    """Solve for one target by the upper end of delta, with slopes from earlier answers."""

    def excess(event: DpEvent) -> float:
        relation = target.relation
        found = delta_of(event, epsilon=target.epsilon, neighboring_relation=relation).upper
        return (math.log(found) if found > 0 else -math.inf) - target.log_delta

    noises = Noises(target, event_of_sigma, excess, first)
    return _met(noises.least(noises.origin, 2 * target.log_delta), event_of_sigma, target)


def _on_poisson_samples(event: DpEvent) -> DpEvent:
    """Return an event with Poisson samples of the same size where records draw batches."""
    parts: list[DpEvent] = []
    for leaf, count in leaves(event).items():
        if not isinstance(leaf, _ALLOCATED):
            parts.append(events.SelfComposedDpEvent(leaf, count))
            continue
        unequal = isinstance(leaf, events.UnequalAllocationDpEvent)
        groups = leaf.groups if unequal else [(leaf.noise_multiplier, leaf.batches, 1.0)]
        for sigma, m, chance in groups:
            one = events.PoissonSampledDpEvent(chance / m, events.GaussianDpEvent(sigma))
            parts.append(events.SelfComposedDpEvent(one, m * count))
    return events.ComposedDpEvent(parts)


def _near_poisson(event_of_sigma: EventOf, target: Target) -> float:
    """Solve for one target from the noise and the slope of Poisson samples, which cost about it."""
    if target.epsilon == 0:
        raise ValueError("epsilon must be > 0 where each record draws a batch of an epoch, got 0.")

    def of_samples(sigma: float) -> DpEvent:
        return _on_poisson_samples(event_of_sigma(sigma))

    near = _noise_multiplier(of_samples, target)
    at_near, beyond = (target.worst_log_delta(of_samples(near * at)) for at in (1.0, 1 + CHANGE))
    slope = (beyond - at_near) / CHANGE

    def excess(event: DpEvent) -> float:
        return target.worst_log_delta(event) - target.log_delta

    slope = slope if -math.inf < slope < 0 else 2 * target.log_delta
    noises = Noises(target, event_of_sigma, excess, near)
    return _met(noises.least(noises.origin, slope), event_of_sigma, target)


def noise_left(
    runs: Iterable[events.DpEvent],
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the smallest noise multiplier of one more Gaussian answer within a budget.

    Parameters
    ----------
    runs
        Events of the runs that were paid from the budget before.
    epsilon, delta
        The budget.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    float
        This noise multiplier, rounded up; infinite if there is no room.

    >>> from dpcal.accountants import epsilon, events
    >>> one = events.GaussianDpEvent(4.0)
    >>> total = epsilon(events.SelfComposedDpEvent(one, 2), delta=1e-6)
    >>> print(f"{noise_left([one], epsilon=total, delta=1e-6):.4f}")
    4.0000
    """
    before = [*runs]
    try:
        return noise_multiplier(
            lambda sigma: events.ComposedDpEvent([*before, events.GaussianDpEvent(sigma)]),
            epsilon=epsilon,
            delta=delta,
            neighboring_relation=neighboring_relation,
        )
    except (TargetUnreachable, UnsupportedEvent):
        return math.inf


def sampling_probability(
    event_of_probability: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the largest sampling probability that meets (epsilon, delta), to a relative 1e-6.

    It raises TargetUnreachable if even a probability of 1e-12 misses the target.

    Parameters
    ----------
    event_of_probability
        Maps a sampling probability in (0, 1] to an event; its epsilon grows with the probability.

    >>> from dpcal.accountants import events
    >>> def event(q):
    ...     return events.dpsgd(sampling_probability=q, noise_multiplier=1.0, steps=1000)
    >>> print(f"{sampling_probability(event, epsilon=2.0, delta=1e-6):.6f}")
    0.009442
    """
    target = Target(epsilon, delta, neighboring_relation)

    def excess(x: float) -> tuple[float, float | None]:
        q = math.exp(-x)
        here, there = (event_of_probability(at) for at in (q, q * math.exp(-CHANGE)))
        return target.with_slope(here, there, CHANGE)

    highest = -math.log(_LEAST_PROBABILITY)
    try:
        start, stop = -math.log(1e-2), Stop(absolute=RELATIVE_WIDTH)
        return math.exp(-newton(excess, start, 0.0, highest, stop).meet)
    except NoBracket as found:
        if found.meets:
            return 1.0
        raise TargetUnreachable(
            f"No sampling probability down to 1e-12 gives epsilon={epsilon!r} at delta={delta!r}."
        ) from None


def _largest_count(name: str, event_of_count: EventOfCount, target: Target, highest: int) -> int:
    """Return the largest whole number in [1, highest] that meets the target."""

    def excess(count: int) -> tuple[float, float | None]:
        neighbor = count + 1 if count < highest else count - 1
        here, there = (event_of_count(at) for at in (count, neighbor))
        if isinstance(here, events.ShuffledEpochsDpEvent):
            return (-1.0 if annexes.shuffling.meets(here, **_asked(target)) else 1.0), None
        if has_bracket(here, target.relation):
            return (1.0 if target.missed_by(here) else -1.0), None
        return target.with_slope(here, there, float(neighbor - count))

    try:
        return largest_whole(excess, most=highest)
    except NoBracket:
        raise TargetUnreachable(
            f"Even {name}=1 misses epsilon={target.epsilon!r} at delta={target.delta!r}."
        ) from None


def steps(
    event_of_steps: EventOfCount,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    at_most: int = 10**12,
) -> int:
    """Return the largest number of steps that meets (epsilon, delta).

    It raises TargetUnreachable if one step already misses the target.

    Parameters
    ----------
    event_of_steps
        Maps a whole number >= 1 to an event; its epsilon grows with the number.
    at_most
        Returned if even that many meet the target.

    >>> from dpcal.accountants import events
    >>> def event(count):
    ...     return events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=count)
    >>> steps(event, epsilon=2.0, delta=1e-6)
    874
    """
    target = Target(epsilon, delta, neighboring_relation)
    return _largest_count("steps", event_of_steps, target, validate.count(at_most=at_most))


def batch_size(
    event_of_batch_size: EventOfCount,
    *,
    n: int,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> int:
    """Return the largest (expected) batch size in [1, n] that meets (epsilon, delta).

    It raises TargetUnreachable if a batch of one record already misses the target.

    Parameters
    ----------
    event_of_batch_size
        Maps a whole number in [1, n] to an event; its epsilon grows with the number.
    n
        Number of records, >= 1.

    >>> from dpcal.accountants import events
    >>> def event(batch_size):
    ...     return events.dpsgd(
    ...         sampling_probability=batch_size / 60_000, noise_multiplier=1.0, steps=1000
    ...     )
    >>> batch_size(event, n=60_000, epsilon=2.0, delta=1e-6)
    566
    """
    target = Target(epsilon, delta, neighboring_relation)
    return _largest_count("batch_size", event_of_batch_size, target, validate.count(n=n))


# Noise multipliers that are tried for a risk, over the first one.
_ENDS = 1e-12, 1e12


def noise_multiplier_for_risk(
    event_of_sigma: EventOf, risk: Callable[[DpEvent], float], *, at_most: float
) -> float:
    """Return the smallest noise multiplier with a risk of at most the target, to a relative 1e-6.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event; its risk falls as the multiplier grows.
    risk
        Maps an event to a number, such as :func:`~dpcal.accountants.advantage`,
        :func:`~dpcal.accountants.gdp_mu`, or a call of
        :func:`~dpcal.accountants.true_positive_rate` or :func:`~dpcal.accountants.bayes_success`
        with the attacker's false-positive rate or prior filled in. Their values are upper bounds,
        so the target is met by the true risk.
    at_most
        Target, > 0.

    Returns
    -------
    float
        sigma with risk(sigma) <= target and risk(sigma (1 - 1e-6)) > target.

    Raises
    ------
    TargetUnreachable
        If no value separates meeting the target from missing it.

    >>> from dpcal.accountants import events, true_positive_rate
    >>> def event(noise_multiplier):
    ...     return events.dpsgd(
    ...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=1000
    ...     )
    >>> def risk(event):
    ...     return true_positive_rate(event, false_positive_rate=1e-3)
    >>> print(f"{noise_multiplier_for_risk(event, risk, at_most=0.002):.4f}")
    1.6839
    """
    target = math.log(validate.positive(at_most=at_most))

    def solved(first: float) -> float:
        def excess(x: float) -> tuple[float, None]:
            try:
                value = float(risk(event_of_sigma(math.exp(x))))
            except NoiseOutOfRange:
                if x == first:
                    raise
                raise NoBracket(x, meets=x < first) from None
            return (math.log(value) if value > 0 else -math.inf) - target, None

        lowest, highest = (first + math.log(end) for end in _ENDS)
        return math.exp(newton(excess, first, lowest, highest, Stop(absolute=RELATIVE_WIDTH)).meet)

    try:
        try:
            return solved(0.0)
        except NoiseOutOfRange as refusal:
            return solved(-math.log(refusal.number))
    except NoBracket as found:
        which = "Every noise multiplier down to" if found.meets else "No noise multiplier up to"
        raise TargetUnreachable(
            f"{which} {math.exp(found.at):.3g} has a risk of at most {at_most!r}."
        ) from None
