"""What does an answer reveal about a person with several rows? The sum of their sampled rows.

>>> event = rows_of_one_person(noise_multiplier=4.0, group_size=2, sampling_probability=0.5)
>>> event.sensitivities, [round(share, 6) for share in event.sampling_probs]
((0.0, 1.0, 2.0), [0.25, 0.5, 0.25])
>>> print(f"{rows_of_one_person(noise_multiplier=4.0, group_size=2).noise_multiplier:.9f}")
2.000000000
"""

from __future__ import annotations

import math

import attr

from dpcal import _validate
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

__all__ = ["for_group", "rows_of_one_person", "unit_of"]

# Scales of noise over what a single record moves: a group moves it so many times as far.
_SCALES = {
    events.GaussianDpEvent: ("noise_multiplier",),
    events.LaplaceDpEvent: ("noise_multiplier",),
    events.ReportNoisyMaxDpEvent: ("noise",),
    events.AboveThresholdDpEvent: ("threshold_noise", "query_noise"),
}


def unit_of(group_size: int) -> str:
    """Return the unit of a claim, in words.

    >>> unit_of(4)
    'one person, who has at most 4 training records (rows of the table)'
    """
    if group_size == 1:
        return "one training record (one row of the table)"
    return f"one person, who has at most {group_size} training records (rows of the table)"


def for_group(event: events.DpEvent, group_size: int) -> events.DpEvent:
    """Return an event that bounds what k records reveal together, from one that bounds each.

    Noise scales are divided by k: neighbors that differ in k records are k steps apart. Of Poisson
    samples the law of :func:`rows_of_one_person` is taken; ranges of bounded-range mechanisms
    add up along the steps; and (epsilon, delta) becomes (k epsilon, delta (1 + e^epsilon + ... +
    e^((k - 1) epsilon))) (Dwork and Roth 2014, Theorem 2.2 and its proof). A delta without an
    epsilon stands beside noise that it is the failure of, as a threshold's does: of several records
    one after another the noise makes more of it, so that it is refused.

    Parameters
    ----------
    event
        Of one record, under any neighboring relation.
    group_size
        Number of records k >= 1.

    Raises
    ------
    UnsupportedEvent
        If no theorem here covers a part of the event.

    >>> for_group(events.SelfComposedDpEvent(events.LaplaceDpEvent(6.0), 3), 2)
    SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=2.9999999999999996), count=3)
    """
    k = _validate.count(group_size=group_size)
    if k == 1 or isinstance(event, events.NoOpDpEvent):
        return event
    if isinstance(event, events.ComposedDpEvent):
        return events.ComposedDpEvent([for_group(each, k) for each in event.events])
    if isinstance(event, events.SelfComposedDpEvent):
        return events.SelfComposedDpEvent(for_group(event.event, k), event.count)
    if type(event) in _SCALES:
        scales = {name: getattr(event, name) / k for name in _SCALES[type(event)]}
        return attr.evolve(event, **{name: math.nextafter(x, 0.0) for name, x in scales.items()})
    if isinstance(event, events.DiscreteGaussianDpEvent):
        return attr.evolve(event, sensitivity=k * event.sensitivity)
    if isinstance(event, events.ExponentialMechanismDpEvent):
        return attr.evolve(event, epsilon=math.nextafter(k * event.epsilon, math.inf))
    if isinstance(event, events.EpsilonDeltaDpEvent) and (event.epsilon or not event.delta):
        return _pure_or_approximate(event, k)
    if isinstance(event, events.PoissonSampledDpEvent):
        inner, q = event.event, event.sampling_probability
        if isinstance(inner, events.GaussianDpEvent):
            return rows_of_one_person(
                noise_multiplier=inner.noise_multiplier, group_size=k, sampling_probability=q
            )
    raise UnsupportedEvent(
        f"No theorem here prices {event!r} for a person with {k} records: the unit of this run is "
        "one record, and other runs are about such a person."
    )


def _pure_or_approximate(event: events.DpEvent, k: int) -> events.DpEvent:
    epsilon = math.nextafter(k * event.epsilon, math.inf)
    if event.delta == 0:
        return attr.evolve(event, epsilon=epsilon)
    factor = math.fsum(math.exp(min(700.0, j * event.epsilon)) for j in range(k))
    return attr.evolve(event, epsilon=epsilon, delta=min(1.0, event.delta * factor * (1 + 1e-14)))


def rows_of_one_person(
    *, noise_multiplier: float, group_size: int, sampling_probability: float = 1.0
) -> events.DpEvent:
    """Return the event of one noisy sum, for a person with up to so many rows.

    Each row is clipped to norm 1 and sampled on its own, so that j of k rows are sampled with
    binomial probability, and then move the sum by up to j. A mixture of Gaussians with these
    sensitivities dominates the answer (Ganesh 2024, arXiv:2401.10294, Tight group-level DP
    guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms, the theorem on Poisson
    sampling). Fewer rows cost no more than k.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, in units of the bound on one row.
    group_size
        Largest number of rows of a person, k >= 1.
    sampling_probability
        Of each row, in (0, 1].
    """
    sigma = _validate.positive(noise_multiplier=noise_multiplier)
    k = _validate.count(group_size=group_size)
    q = _validate.within(0.0, 1.0, sampling_probability=sampling_probability)
    if q == 1:
        return events.GaussianDpEvent(sigma if k == 1 else math.nextafter(sigma / k, 0.0))
    if k == 1:
        return events.PoissonSampledDpEvent(q, events.GaussianDpEvent(sigma))
    sensitivities = tuple(float(j) for j in range(k + 1))
    return events.MixtureOfGaussiansDpEvent(sigma, sensitivities, _shares(k, q))


def _shares(k: int, q: float) -> tuple[float, ...]:
    """Return binomial probabilities that add up to one, rounded towards more sampled rows."""
    above = [math.comb(k, j) * q**j * (1 - q) ** (k - j) * (1 + 1e-14) for j in range(1, k + 1)]
    return (max(0.0, 1 - math.fsum(above)), *above)
