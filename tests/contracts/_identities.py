"""Which two events have one price, and which costs no less than another? Random pairs, seeded.

Whatever is added to a mechanism, and in whatever words it is asked for, the upper end of its price
is no less than the lower end of the price before. This holds for the ends without any tolerance,
since each is on the safe side of a number that is the same, or larger. Deltas go down to 1e-300,
and are at times exactly those at which the code has a floor.

>>> first = next(pairs(1))
>>> first.name in KINDS, wrong(first) is None
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcal.accountants import epsilon, events, from_pmf
from dpcal.errors import UnsupportedEvent

__all__ = ["FLOORS", "KINDS", "Pair", "pairs", "wrong"]

ADD, REPLACE, SPECIAL = "add-or-remove-one", "replace-one", "replace-special"
# Numbers below which something in the code changes.
FLOORS = (1e-300, 1e-280, 1e-50, 1e-40, 1e-30, 1e-18, 1e-25)

Rng = np.random.Generator
Event = Any
# Two events, of which the second costs no less, whether they cost the same, and their relations.
Found = tuple[Event, Event, bool, str, str]


@dataclass(frozen=True)
class Pair:
    """Two events at one delta: the second costs no less, and if they are the same, no more."""

    name: str
    first: Event
    second: Event
    same: bool
    relations: tuple[str, str]
    delta: float


def wrong(pair: Pair) -> str | None:
    """Return what is wrong with both prices; None if nothing is."""
    try:
        one, two = (
            epsilon(event, delta=pair.delta, neighboring_relation=relation)
            for event, relation in zip((pair.first, pair.second), pair.relations, strict=True)
        )
    except UnsupportedEvent as error:
        return f"{pair}: {error}"
    if two.upper >= one.lower and (not pair.same or one.upper >= two.lower):
        return None
    ends = [(each.lower, each.upper, each.method) for each in (one, two)]
    return f"{pair} has prices {ends}"


def pairs(count: int, seed: int = 2026, names: tuple[str, ...] = ()) -> Iterator[Pair]:
    """Yield pairs of all kinds in turn, or of those that are named."""
    kinds = names or tuple(KINDS)
    for number in range(count):
        name = kinds[number % len(kinds)]
        rng = np.random.default_rng([seed, number])
        first, second, same, *relations = KINDS[name](rng)
        # Contours in balls, and powers of discrete Gaussians, take seconds at smaller deltas.
        least = 1e-12 if name == "one and two uses" else 0.0
        if name == "unequal" and rng.random() < 0.9:
            least = 1e-40
        delta = max(least, _delta(rng))
        yield Pair(name, first, second, same, (relations[0], relations[1]), delta)


# -- numbers and mechanisms


def _between(rng: Rng, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def _whole(rng: Rng, low: int, high: int) -> int:
    return max(low, min(high, round(_between(rng, low, high))))


def _one(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _delta(rng: Rng) -> float:
    return float(
        _one(rng, _between(rng, 1e-12, 0.5), _between(rng, 1e-300, 1e-10), _one(rng, *FLOORS))
    )


def _simple(rng: Rng) -> Event:
    """Return a mechanism that any record may join, of little or much noise."""
    a = _between(rng, 0.01, 50.0)
    return _one(
        rng,
        events.GaussianDpEvent(_between(rng, 0.05, 50.0)),
        events.LaplaceDpEvent(1 / a),
        events.DiscreteLaplaceDpEvent(a, int(rng.integers(1, 4))),
        events.DiscreteGaussianDpEvent(_between(rng, 0.4, 20.0)),
        events.EpsilonDeltaDpEvent(a),
    )


def _loud(rng: Rng) -> Event:
    """Return answers with losses of up to 1e5 nats, of which few are quiet."""
    a, uses = _between(rng, 5.0, 2000.0), int(rng.integers(8, 40))
    loud = events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(a, 1), uses)
    return _one(rng, loud, events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(a, 3), uses))


def _times(event: Event, count: int) -> Event:
    return events.SelfComposedDpEvent(event, count) if count > 1 else event


# -- kinds of pairs


def _unequal(rng: Rng) -> Found:
    """Batches in two groups that are alike, whose probabilities add up to 1 but for rounding."""
    sigma, k, epochs = _between(rng, 1.0, 20.0), int(rng.integers(2, 12)), _whole(rng, 1, 1000)
    j = int(rng.integers(1, k))
    near = math.nextafter(sigma, math.inf)
    groups = (sigma, j, j / k), (near, k - j, _one(rng, 1 - j / k, (k - j) / k))
    unequal = events.UnequalAllocationDpEvent(groups)
    equal = events.RandomAllocationDpEvent(sigma, k)
    return _times(unequal, epochs), _times(equal, epochs), True, ADD, ADD


def _everyone(rng: Rng) -> Found:
    """A sample that holds every record."""
    loud = events.ComposedDpEvent([_loud(rng), _quiet(rng)])
    event = loud if rng.random() < 0.1 else _simple(rng)
    return event, events.PoissonSampledDpEvent(1.0, event), True, ADD, ADD


def _quiet(rng: Rng) -> Event:
    return _one(
        rng,
        events.LaplaceDpEvent(_between(rng, 0.5, 50.0)),
        events.DiscreteLaplaceDpEvent(_between(rng, 0.01, 2.0), 1),
    )


def _beside_nothing(rng: Rng) -> Found:
    event = _times(_one(rng, _simple(rng), _sample(rng)), _whole(rng, 1, 30))
    nothing = events.NoOpDpEvent()
    return event, events.ComposedDpEvent([nothing, event, _times(nothing, 7)]), True, ADD, ADD


def _sample(rng: Rng) -> Event:
    return events.PoissonSampledDpEvent(
        _between(rng, 1e-6, 0.9), events.GaussianDpEvent(_between(rng, 0.3, 20.0))
    )


def _order(rng: Rng) -> Found:
    found = events.GaussianDpEvent(_between(rng, 0.05, 50.0)), _sample(rng), _loud(rng)
    parts = [_times(_one(rng, *found), _whole(rng, 1, 20)), _sample(rng)]
    other = events.ComposedDpEvent([events.ComposedDpEvent(parts[1:]), *parts[:1]])
    return events.ComposedDpEvent(parts), other, True, ADD, ADD


def _words(rng: Rng) -> Found:
    """One mechanism in two words."""
    q, sigma, steps = _between(rng, 1e-6, 0.9), _between(rng, 0.3, 20.0), _whole(rng, 1, 1000)
    n, m = 1024, int(rng.integers(1, 1024))
    gaussian = events.GaussianDpEvent(sigma)
    poisson = events.PoissonSampledDpEvent(q, gaussian)
    twice = events.PoissonSampledDpEvent(q, events.PoissonSampledDpEvent(0.5, gaussian))
    four = events.PoissonSampledDpEvent(q, events.SelfComposedDpEvent(gaussian, 4))
    fixed = events.SampledWithoutReplacementDpEvent(n, m, gaussian)
    half = events.GaussianDpEvent(sigma / 2)
    claim = events.EpsilonDeltaDpEvent(_between(rng, 0.01, 3.0))
    heads = 1 / (1 + math.exp(-claim.epsilon))
    mass = [heads, 1 - heads]
    first, second, *relations = _one(
        rng,
        (twice, events.PoissonSampledDpEvent(q * 0.5, gaussian), ADD, ADD),
        (twice, events.PoissonSampledDpEvent(q * 0.5, gaussian), REPLACE, REPLACE),
        (four, events.PoissonSampledDpEvent(q, half), ADD, ADD),
        (four, events.PoissonSampledDpEvent(q, half), REPLACE, REPLACE),
        (fixed, events.PoissonSampledDpEvent(m / n, half), ADD, ADD),
        (events.AllocatedDpEvent(gaussian, 1), events.RandomAllocationDpEvent(sigma, 1), ADD, ADD),
        (events.RandomAllocationDpEvent(sigma, 1), gaussian, ADD, ADD),
        (poisson, poisson, ADD, SPECIAL),
        (gaussian, half, REPLACE, ADD),
        (from_pmf(mass, mass[::-1]), claim, ADD, ADD),
    )
    return _times(first, steps), _times(second, steps), True, relations[0], relations[1]


def _beside_another(rng: Rng) -> Found:
    event = _one(rng, _times(_simple(rng), _whole(rng, 1, 5)), _loud(rng))
    other = _one(rng, events.GaussianDpEvent(_between(rng, 0.5, 50.0)), _quiet(rng), _sample(rng))
    return event, events.ComposedDpEvent([event, other]), False, ADD, ADD


def _beside_on_a_sample(rng: Rng) -> Found:
    """Answers with large losses on one batch, and one more about the same batch."""
    event, q = _loud(rng), _one(rng, 1e-6, 1e-3, 0.1, 0.5, 0.999)
    both, times = events.ComposedDpEvent([event, _quiet(rng)]), _one(rng, 1, 1, 3)
    first, second = (events.PoissonSampledDpEvent(q, each) for each in (event, both))
    return _times(first, times), _times(second, times), False, ADD, ADD


def _beside_in_a_batch(rng: Rng) -> Found:
    event = _loud(rng)
    both = events.ComposedDpEvent([event, _quiet(rng)])
    n, m, batches = 1000, int(rng.integers(1, 1000)), int(rng.integers(2, 9))
    fixed = [events.SampledWithoutReplacementDpEvent(n, m, each) for each in (event, both)]
    epochs = [events.AllocatedDpEvent(each, batches) for each in (event, both)]
    first, second, relation = _one(rng, (*fixed, REPLACE), (*epochs, ADD))
    return first, second, False, relation, relation


def _twice(rng: Rng) -> Found:
    """One use and two of a mechanism on everyone, on a sample, in a batch or beside another."""
    scale = _between(rng, 0.3, 30.0)
    one = _one(
        rng,
        _simple(rng),
        events.ExponentialMechanismDpEvent(1 / scale),
        events.RandomizedResponseDpEvent(float(rng.uniform(0.1, 0.9)), _one(rng, 2, 10)),
    )
    event = _one(
        rng,
        one,
        events.PoissonSampledDpEvent(_between(rng, 1e-5, 0.5), _simple(rng)),
        events.SampledWithoutReplacementDpEvent(1000, _one(rng, 1, 10, 300), _simple(rng)),
        events.ComposedDpEvent([one, _simple(rng)]),
    )
    return event, _times(event, 2), False, REPLACE, REPLACE


KINDS: dict[str, Callable[[Rng], Found]] = {
    "unequal": _unequal,
    "everyone": _everyone,
    "beside nothing": _beside_nothing,
    "order": _order,
    "words": _words,
    "beside another": _beside_another,
    "beside on a sample": _beside_on_a_sample,
    "beside in a batch": _beside_in_a_batch,
    "one and two uses": _twice,
}
