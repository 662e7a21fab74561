"""Which questions are asked? Families of events with seeded settings: typical, and nasty.

>>> row = next(questions("gaussian", seed=0))
>>> row["id"], row["neighboring_relation"] in RELATIONS
('gaussian-0000', True)

Each question has its own generator, seeded by its family and number, so that a family may grow
without a change of other rows. A setting is easy or typical, or nasty in one or two of its numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Event = dict[str, Any]
Draw = Callable[[np.random.Generator, bool], tuple[Event, str]]

ADD, REPLACE, SPECIAL = "add-or-remove-one", "replace-one", "replace-special"
RELATIONS = (ADD, REPLACE, SPECIAL)
DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
NASTY_DELTAS = (1e-15, 1e-30, 1e-100, 1e-300)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
NASTY_EPSILONS = (1e-4, 1e-2, 30.0, 100.0, 1e3)


def _rounded(value: float) -> float:
    """Return a number of three digits, as a user would write it."""
    return float(f"{value:.3g}")


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return _rounded(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def _whole(rng: np.random.Generator, low: int, high: int) -> int:
    return int(_between(rng, low, high))


def _one(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


# -- events


def _gaussian(sigma: float) -> Event:
    return {"type": "GaussianDpEvent", "noise_multiplier": sigma}


def _poisson(q: float, inner: Event) -> Event:
    return {"type": "PoissonSampledDpEvent", "sampling_probability": q, "event": inner}


def _times(event: Event, count: int) -> Event:
    return {"type": "SelfComposedDpEvent", "event": event, "count": count} if count > 1 else event


def _composed(*events: Event) -> Event:
    return {"type": "ComposedDpEvent", "events": list(events)}


def _fixed(kind: str, size: int, batch: int, inner: Event) -> Event:
    return {
        "type": kind,
        "source_dataset_size": size,
        "sample_size": batch,
        "event": inner,
    }


def _discrete_laplace(rng: np.random.Generator) -> Event:
    shift = _one(rng, 1, 1, 2, 3)
    return {
        "type": "DiscreteLaplaceDpEvent",
        "noise_parameter": _between(rng, 0.02, 2.0),
        "sensitivity": shift,
    }


def _dpsgd(rng: np.random.Generator, nasty: bool) -> Event:
    q, sigma = _between(rng, 1e-4, 0.3), _between(rng, 0.5, 8.0)
    steps = _whole(rng, 10, 30_000)
    if nasty:
        which = rng.integers(5)
        q = _one(rng, 1e-9, 1e-7, 1 - 1e-9, 0.999) if which in (0, 4) else q
        sigma = _one(rng, 0.05, 0.2, 0.3, 100.0, 1e4) if which in (1, 4) else sigma
        steps = _one(rng, 10**6, 10**6, 10**8) if which in (2, 4) else steps
        steps = _one(rng, 1, 2, 3) if which == 3 else steps
    return _times(_poisson(q, _gaussian(sigma)), steps)


# -- families


def _of_poisson(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    return _dpsgd(rng, nasty), _one(rng, ADD, ADD, ADD, ADD, SPECIAL)


def _of_poisson_once(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    q, sigma = _between(rng, 1e-4, 0.9), _between(rng, 0.3, 10.0)
    if nasty:
        q = _one(rng, 1e-9, 1e-6, 1 - 1e-9, 0.999)
        sigma = _one(rng, 0.05, 0.1, sigma, 100.0, 1e4)
    return _poisson(q, _gaussian(sigma)), _one(rng, *RELATIONS)


def _of_poisson_replaced(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    return _times(
        _poisson(_between(rng, 1e-3, 0.2), _gaussian(_between(rng, 0.7, 4.0))), _whole(rng, 2, 3000)
    ), REPLACE


def _of_poisson_unequal(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = int(_one(rng, 2, 3, 5, 12) if not nasty else _one(rng, 25, 60))
    q, sigma = _between(rng, 1e-3, 0.1), _between(rng, 0.7, 4.0)
    events = [
        _times(
            _poisson(
                min(0.9, _rounded(q * float(rng.uniform(0.5, 2)))),
                _gaussian(_rounded(sigma * float(rng.uniform(0.7, 1.5)))),
            ),
            _whole(rng, 1, 2000),
        )
        for _ in range(parts)
    ]
    if rng.uniform() < 0.3:
        events.append(_times(_gaussian(_between(rng, 2.0, 50.0)), _whole(rng, 1, 10)))
    return _composed(*events), ADD


def _of_gaussian(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = _between(rng, 0.5, 50.0) if not nasty else _one(rng, 0.05, 0.2, 1e3, 1e4)
    steps = _one(rng, 1, 1, 10, 100) if not nasty else _one(rng, 1, 10**6)
    event = _times(_gaussian(sigma), steps)
    if rng.uniform() < 0.3:
        others = [_times(_gaussian(_between(rng, 1.0, 50.0)), _whole(rng, 1, 50)) for _ in "ab"]
        event = _composed(event, *others)
    return event, _one(rng, *RELATIONS)


def _of_laplace(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    scale = _between(rng, 0.5, 20.0) if not nasty else _one(rng, 0.05, 0.1, 100.0, 1e4)
    event = {"type": "LaplaceDpEvent", "noise_multiplier": scale}
    return _times(event, _one(rng, 1, 2, 3, 5, 8, 12, 16)), _one(rng, *RELATIONS)


def _of_laplace_often(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {"type": "LaplaceDpEvent", "noise_multiplier": _between(rng, 2.0, 50.0)}
    return _times(event, _one(rng, 30, 100, 400)), ADD


def _of_laplace_sampled(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    q = _between(rng, 1e-3, 0.9) if not nasty else _one(rng, 1e-9, 1 - 1e-9)
    inner = {"type": "LaplaceDpEvent", "noise_multiplier": _between(rng, 0.1, 5.0)}
    return _poisson(q, inner), _one(rng, *RELATIONS)


def _of_discrete_laplace(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    steps = _one(rng, 1, 2, 5, 20) if not nasty else _one(rng, 300, 2000)
    return _times(_discrete_laplace(rng), steps), _one(rng, *RELATIONS)


def _of_discrete_laplace_sampled(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    steps = _one(rng, 1, 2, 5, 15)
    q = _between(rng, 1e-3, 0.9) if not nasty else _one(rng, 1e-9, 1 - 1e-9)
    return _times(_poisson(q, _discrete_laplace(rng)), steps), _one(rng, ADD, SPECIAL)


def _of_discrete_laplace_fixed(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = _one(rng, 10, 100, 10_000, 1_000_000)
    batch = max(1, int(size * float(rng.uniform(0.001, 0.5))))
    inner = {
        "type": "DiscreteLaplaceDpEvent",
        "noise_parameter": _between(rng, 0.05, 2.0),
        "sensitivity": 1,
    }
    event = _fixed("SampledWithoutReplacementDpEvent", size, batch, inner)
    return _times(event, _one(rng, 1, 2, 5, 10)), _one(rng, ADD, REPLACE, SPECIAL)


def _of_discrete_gaussian(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = _between(rng, 0.5, 20.0) if not nasty else _one(rng, 0.3, 60.0)
    event = {"type": "DiscreteGaussianDpEvent", "sigma": sigma, "sensitivity": _one(rng, 1, 1, 2)}
    return _times(event, _one(rng, 1, 1, 3, 10, 30)), _one(rng, *RELATIONS)


def _of_response(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {
        "type": "RandomizedResponseDpEvent",
        "noise_parameter": _between(rng, 0.05, 0.95) if not nasty else _one(rng, 1e-6, 1 - 1e-6),
        "num_buckets": _one(rng, 2, 3, 4, 10, 100),
    }
    return _times(event, _one(rng, 1, 2, 5, 20, 100, 1000)), _one(rng, REPLACE, SPECIAL)


def _of_unequal_laws(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = [
        _times(
            {
                "type": "RandomizedResponseDpEvent",
                "noise_parameter": _between(rng, 0.2, 0.95),
                "num_buckets": _one(rng, 2, 4),
            },
            _one(rng, 1, 3, 6),
        )
        for _ in range(2)
    ]
    if rng.uniform() < 0.5:
        parts.append(_times({**_discrete_laplace(rng), "sensitivity": 1}, _one(rng, 1, 3)))
    if rng.uniform() < 0.3:
        parts.append({"type": "EpsilonDeltaDpEvent", "epsilon": 0.2, "delta": 1e-9})
    return _composed(*parts), REPLACE


def _of_claims(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    delta = _one(rng, 0.0, 1e-9, 1e-12) if not nasty else _one(rng, 1e-30, 1e-6)
    event = {"type": "EpsilonDeltaDpEvent", "epsilon": _between(rng, 0.01, 3.0), "delta": delta}
    if rng.uniform() < 0.2:
        event = {"type": "PermuteAndFlipDpEvent", "epsilon": event["epsilon"]}
    return _times(event, _one(rng, 1, 3, 10, 30)), _one(rng, *RELATIONS)


def _of_fixed_batches(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = _one(rng, 100, 10_000, 1_000_000)
    batch = max(1, _whole(rng, 1, size // 2))
    sigma = _between(rng, 1.0, 10.0) if not nasty else _one(rng, 0.2, 0.5, 200.0)
    steps = _whole(rng, 2, 10_000) if not nasty else _one(rng, 2, 10**6)
    inner = _fixed("SampledWithoutReplacementDpEvent", size, batch, _gaussian(sigma))
    return _times(inner, steps), ADD


def _of_fixed_batch_once(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = _one(rng, 10, 1000, 1_000_000)
    batch = max(1, _whole(rng, 1, size // 2))
    sigma = _between(rng, 0.5, 10.0) if not nasty else _one(rng, 0.1, 500.0)
    inner = _fixed("SampledWithoutReplacementDpEvent", size, batch, _gaussian(sigma))
    return inner, _one(rng, *RELATIONS)


def _of_fixed_batches_replaced(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    inner = _fixed(
        "SampledWithoutReplacementDpEvent",
        1000,
        _whole(rng, 1, 200),
        _gaussian(_between(rng, 1, 6)),
    )
    return _times(inner, _whole(rng, 2, 2000)), REPLACE


def _of_draws(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = _one(rng, 10, 1000, 1_000_000)
    batch = max(1, _whole(rng, 1, size))
    sigma = _between(rng, 0.5, 10.0) if not nasty else _one(rng, 0.2, 500.0)
    return _fixed("SampledWithReplacementDpEvent", size, batch, _gaussian(sigma)), ADD


def _of_truncated(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size, q = _one(rng, 100, 1000), _between(rng, 0.01, 0.3)
    most = int(size * q + float(rng.uniform(2, 9)) * (size * q) ** 0.5) + 1
    event = {
        "type": "TruncatedSubsampledGaussianDpEvent",
        "dataset_size": size,
        "sampling_probability": q,
        "truncated_batch_size": min(most, size - 1),
        "noise_multiplier": _between(rng, 0.5, 4.0),
    }
    return event, _one(rng, *RELATIONS)


def _of_allocation(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = _between(rng, 0.6, 6.0) if not nasty else _one(rng, 0.3, 0.4, 30.0)
    batches = _whole(rng, 2, 3000) if not nasty else _one(rng, 2, 100_000)
    event = {"type": "RandomAllocationDpEvent", "noise_multiplier": sigma, "batches": batches}
    return _times(event, _one(rng, 1, 1, 2, 5, 20, 100)), _one(rng, ADD, ADD, SPECIAL)


def _of_mixture(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    """Draw any mixture, or one of a group: binomial weights of k records (docs/accountants.md)."""
    if rng.uniform() < 0.5:
        k, q = _one(rng, 2, 3, 5, 10), _between(rng, 1e-3, 0.3)
        weights = [1.0]
        for _ in range(k):
            weights = [
                (1 - q) * a + q * b for a, b in zip([*weights, 0.0], [0.0, *weights], strict=True)
            ]
        places = [float(j) for j in range(k + 1)]
    else:
        places = [0.0, *sorted(_between(rng, 0.1, 3.0) for _ in range(_one(rng, 1, 2, 4)))]
        drawn = rng.dirichlet(np.ones(len(places)))
        weights = [int(each * 2**30) / 2**30 for each in drawn[1:]]
        weights = [1.0 - sum(weights), *weights]
    event = {
        "type": "MixtureOfGaussiansDpEvent",
        "standard_deviation": _between(rng, 0.3, 10.0) if not nasty else _one(rng, 0.1, 300.0),
        "sensitivities": places,
        "sampling_probs": weights,
    }
    return event, _one(rng, ADD, ADD, SPECIAL)


def _of_mixtures(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event, relation = _of_mixture(rng, False)
    return _times(event, _one(rng, 5, 30, 200)), relation


def _of_unequal(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = [_dpsgd(rng, False), _times(_gaussian(_between(rng, 2.0, 40.0)), _whole(rng, 1, 20))]
    if rng.uniform() < 0.4:
        fixed = _fixed(
            "SampledWithoutReplacementDpEvent",
            10_000,
            _whole(rng, 10, 500),
            _gaussian(_between(rng, 2.0, 8.0)),
        )
        parts.append(_times(fixed, _whole(rng, 2, 500)))
    return _composed(*parts), ADD


def _of_best_run(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {
        "type": "RepeatAndSelectDpEvent",
        "event": _gaussian(_between(rng, 2.0, 20.0)),
        "mean": float(_whole(rng, 2, 200)),
        "shape": _one(rng, 0.0, 1.0, "inf"),
    }
    return event, _one(rng, ADD, REPLACE)


def _of_exponential(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    epsilon = _between(rng, 0.05, 5.0) if not nasty else _one(rng, 1e-4, 30.0)
    return {"type": "ExponentialMechanismDpEvent", "epsilon": epsilon}, _one(rng, *RELATIONS)


def _of_tree(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    counts = _whole(rng, 1, 10**6)
    event = {
        "type": "SingleEpochTreeAggregationDpEvent",
        "noise_multiplier": _between(rng, 0.5, 30.0),
        "step_counts": _one(rng, counts, [counts, _whole(rng, 1, 1000)]),
    }
    return event, SPECIAL


def _of_shuffle(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {
        "type": "ShuffledEpochsDpEvent",
        "noise_multiplier": _between(rng, 1.5, 8.0),
        "batches": _whole(rng, 10, 300),
        "epochs": _whole(rng, 1, 30),
        "remainder": False,
    }
    return event, _one(rng, REPLACE, SPECIAL)


def _of_correlated(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {
        "type": "CorrelatedGaussianDpEvent",
        "strategy": [[1.0, 0.0], [_rounded(float(rng.uniform(0.05, 1.0))), 1.0]],
        "sampler": {"type": "Poisson", "sampling_probability": _between(rng, 0.01, 0.5)},
        "noise_multiplier": _between(rng, 0.6, 3.0),
    }
    return event, SPECIAL


FAMILIES: dict[str, tuple[Draw, int, float]] = {
    "poisson": (_of_poisson, 56, 0.4),
    "poisson-once": (_of_poisson_once, 340, 0.4),
    "poisson-replaced": (_of_poisson_replaced, 2, 0.0),
    "poisson-unequal": (_of_poisson_unequal, 5, 0.2),
    "gaussian": (_of_gaussian, 440, 0.4),
    "laplace": (_of_laplace, 19, 0.3),
    "laplace-often": (_of_laplace_often, 3, 0.0),
    "laplace-sampled": (_of_laplace_sampled, 160, 0.3),
    "discrete-laplace": (_of_discrete_laplace, 133, 0.2),
    "discrete-laplace-sampled": (_of_discrete_laplace_sampled, 180, 0.2),
    "discrete-laplace-fixed": (_of_discrete_laplace_fixed, 200, 0.0),
    "discrete-gaussian": (_of_discrete_gaussian, 160, 0.2),
    "response": (_of_response, 240, 0.2),
    "unequal-laws": (_of_unequal_laws, 180, 0.0),
    "claims": (_of_claims, 120, 0.3),
    "fixed-batches": (_of_fixed_batches, 8, 0.3),
    "fixed-batch-once": (_of_fixed_batch_once, 240, 0.3),
    "fixed-batches-replaced": (_of_fixed_batches_replaced, 1, 0.0),
    "draws-with-replacement": (_of_draws, 60, 0.3),
    "truncated": (_of_truncated, 15, 0.0),
    "allocation": (_of_allocation, 8, 0.3),
    "mixture": (_of_mixture, 280, 0.3),
    "mixtures": (_of_mixtures, 2, 0.0),
    "unequal": (_of_unequal, 115, 0.0),
    "best-run": (_of_best_run, 19, 0.0),
    "exponential": (_of_exponential, 80, 0.3),
    "tree": (_of_tree, 80, 0.0),
    "shuffle": (_of_shuffle, 1, 0.0),
    "correlated": (_of_correlated, 3, 0.0),
}
"""For each family: how an event is drawn, the number of rows, and the share of nasty settings."""


def questions(family: str, *, seed: int, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the questions of a family without end: the event, the relation, and what is given.

    ``asked`` is a delta or an epsilon, or None where an epsilon is to be chosen at which delta has
    about the size ``near``.
    """
    draw, _, share = FAMILIES[family]
    number = start
    while True:
        rng = np.random.default_rng([seed, zlib.crc32(family.encode()), number])
        nasty = bool(rng.uniform() < share)
        event, relation = draw(rng, nasty)
        far = nasty and rng.uniform() < 0.6
        delta = _one(rng, *(NASTY_DELTAS if far else DELTAS))
        kind = rng.uniform()
        row: dict[str, Any] = {
            "id": f"{family}-{number:04d}",
            "family": family,
            "setting": "nasty" if nasty else "typical",
            "event": event,
            "neighboring_relation": relation,
            "near": delta,
            "asked": {"delta": delta} if kind < 0.5 else None,
        }
        if kind > 0.85:
            row["asked"] = {"epsilon": _one(rng, *(NASTY_EPSILONS if nasty else EPSILONS))}
        row["direction"] = "worst"
        if relation == ADD and rng.uniform() < 0.12:
            row["direction"] = _one(rng, "remove", "add")
        yield row
        number += 1
