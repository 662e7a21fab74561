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
from math import comb
from typing import Any

import numpy as np
from flint import fmpq

from benchmarks.corpus.draws import (
    Event,
    between,
    composed,
    discrete_laplace,
    fixed,
    gaussian,
    one,
    poisson,
    rounded,
    times,
    whole,
)

Draw = Callable[[np.random.Generator, bool], tuple[Event, str]]

ADD, REPLACE, SPECIAL = "add-or-remove-one", "replace-one", "replace-special"
RELATIONS = (ADD, REPLACE, SPECIAL)
DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
NASTY_DELTAS = (1e-15, 1e-30, 1e-100, 1e-300)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
NASTY_EPSILONS = (1e-4, 1e-2, 30.0, 100.0, 1e3)


# -- families


def _dpsgd(rng: np.random.Generator, nasty: bool) -> Event:
    q, sigma = between(rng, 1e-4, 0.3), between(rng, 0.5, 8.0)
    steps = whole(rng, 10, 30_000)
    if nasty:
        which = rng.integers(5)
        q = one(rng, 1e-9, 1e-7, 1 - 1e-9, 0.999) if which in (0, 4) else q
        sigma = one(rng, 0.05, 0.2, 0.3, 100.0, 1e4) if which in (1, 4) else sigma
        steps = one(rng, 10**6, 10**6, 10**8) if which in (2, 4) else steps
        steps = one(rng, 1, 2, 3) if which == 3 else steps
    return times(poisson(q, gaussian(sigma)), steps)


def _of_poisson(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    return _dpsgd(rng, nasty), one(rng, ADD, ADD, ADD, ADD, SPECIAL)


def _of_poisson_once(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    q, sigma = between(rng, 1e-4, 0.9), between(rng, 0.3, 10.0)
    if nasty:
        q = one(rng, 1e-9, 1e-6, 1 - 1e-9, 0.999)
        sigma = one(rng, 0.05, 0.1, sigma, 100.0, 1e4)
    return poisson(q, gaussian(sigma)), one(rng, *RELATIONS)


def _of_poisson_replaced(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    q, sigma = between(rng, 1e-3, 0.2), between(rng, 0.7, 4.0)
    steps = whole(rng, 2, 3000)
    if nasty:
        q, sigma = one(rng, (q, 0.3), (q, 100.0), (0.999, sigma), (1e-6, sigma))
    return times(poisson(q, gaussian(sigma)), steps), REPLACE


def _of_poisson_unequal(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = int(one(rng, 2, 3, 5, 12) if not nasty else one(rng, 25, 60))
    q, sigma = between(rng, 1e-3, 0.1), between(rng, 0.7, 4.0)
    events = [
        times(
            poisson(
                min(0.9, rounded(q * float(rng.uniform(0.5, 2)))),
                gaussian(rounded(sigma * float(rng.uniform(0.7, 1.5)))),
            ),
            whole(rng, 1, 2000),
        )
        for _ in range(parts)
    ]
    if rng.uniform() < 0.3:
        events.append(times(gaussian(between(rng, 2.0, 50.0)), whole(rng, 1, 10)))
    return composed(*events), ADD


def _of_gaussian(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = between(rng, 0.5, 50.0) if not nasty else one(rng, 0.05, 0.2, 1e3, 1e4)
    steps = one(rng, 1, 1, 10, 100) if not nasty else one(rng, 1, 10**6)
    event = times(gaussian(sigma), steps)
    if rng.uniform() < 0.3:
        others = [times(gaussian(between(rng, 1.0, 50.0)), whole(rng, 1, 50)) for _ in "ab"]
        event = composed(event, *others)
    return event, one(rng, *RELATIONS)


def _of_laplace(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    scale = between(rng, 0.5, 20.0) if not nasty else one(rng, 0.05, 0.1, 100.0, 1e4)
    event = {"type": "LaplaceDpEvent", "noise_multiplier": scale}
    return times(event, one(rng, 1, 2, 3, 5, 8, 12, 16)), one(rng, *RELATIONS)


def _of_laplace_often(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    scale = between(rng, 2.0, 50.0) if not nasty else one(rng, 1.0, 1e4)
    event = {"type": "LaplaceDpEvent", "noise_multiplier": scale}
    return times(event, one(rng, 30, 100, 400)), one(rng, *RELATIONS)


def _of_laplace_sampled(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    q = between(rng, 1e-3, 0.9) if not nasty else one(rng, 1e-9, 1 - 1e-9)
    inner = {"type": "LaplaceDpEvent", "noise_multiplier": between(rng, 0.1, 5.0)}
    return poisson(q, inner), one(rng, *RELATIONS)


def _of_discrete_laplace(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    steps = one(rng, 1, 2, 5, 20) if not nasty else one(rng, 300, 2000)
    return times(discrete_laplace(rng), steps), one(rng, *RELATIONS)


def _of_discrete_laplace_sampled(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    steps = one(rng, 1, 2, 5, 15)
    q = between(rng, 1e-3, 0.9) if not nasty else one(rng, 1e-9, 1 - 1e-9)
    return times(poisson(q, discrete_laplace(rng)), steps), one(rng, ADD, SPECIAL)


def _of_discrete_laplace_fixed(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = one(rng, 10, 100, 10_000, 1_000_000)
    batch = max(1, int(size * float(rng.uniform(0.001, 0.5))))
    inner = {
        "type": "DiscreteLaplaceDpEvent",
        "noise_parameter": between(rng, 0.05, 2.0),
        "sensitivity": 1,
    }
    event = fixed("SampledWithoutReplacementDpEvent", size, batch, inner)
    return times(event, one(rng, 1, 2, 5, 10)), one(rng, ADD, REPLACE, SPECIAL)


def _of_discrete_laplace_replaced(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    q = between(rng, 1e-3, 0.9) if not nasty else one(rng, 1e-9, 1 - 1e-9)
    inner = discrete_laplace(rng)
    return times(poisson(q, inner), one(rng, 1, 2, 5, 15)), REPLACE


def _of_allocated(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    """Draw an epoch in which a record is in one batch of several, with discrete Laplace noise."""
    noise = {
        "type": "DiscreteLaplaceDpEvent",
        "noise_parameter": between(rng, 0.05, 2.0) if not nasty else one(rng, 1e-3, 8.0),
        "sensitivity": 1,
    }
    batches = whole(rng, 2, 100) if not nasty else one(rng, 2, 300)
    event = {"type": "AllocatedDpEvent", "event": noise, "batches": batches}
    # Two epochs of many batches have more pairs of values than are enumerated in some seconds.
    uses = one(rng, 1, 1, 2)
    return times(event, uses if batches <= 40 else 1), one(rng, ADD, SPECIAL)


def _of_discrete_gaussian(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = between(rng, 0.5, 20.0) if not nasty else one(rng, 0.3, 60.0)
    event = {"type": "DiscreteGaussianDpEvent", "sigma": sigma, "sensitivity": one(rng, 1, 1, 2)}
    return times(event, one(rng, 1, 1, 3, 10, 30)), one(rng, *RELATIONS)


def _of_response(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {
        "type": "RandomizedResponseDpEvent",
        "noise_parameter": between(rng, 0.05, 0.95) if not nasty else one(rng, 1e-6, 1 - 1e-6),
        "num_buckets": one(rng, 2, 3, 4, 10, 100),
    }
    return times(event, one(rng, 1, 2, 5, 20, 100, 1000)), one(rng, REPLACE, SPECIAL)


def _of_unequal_laws(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = [
        times(
            {
                "type": "RandomizedResponseDpEvent",
                "noise_parameter": between(rng, 0.2, 0.95),
                "num_buckets": one(rng, 2, 4),
            },
            one(rng, 1, 3, 6),
        )
        for _ in range(2)
    ]
    if rng.uniform() < 0.5:
        parts.append(times({**discrete_laplace(rng), "sensitivity": 1}, one(rng, 1, 3)))
    if rng.uniform() < 0.3:
        parts.append({"type": "EpsilonDeltaDpEvent", "epsilon": 0.2, "delta": 1e-9})
    return composed(*parts), REPLACE


def _of_claims(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    delta = one(rng, 0.0, 1e-9, 1e-12) if not nasty else one(rng, 1e-30, 1e-6)
    event = {"type": "EpsilonDeltaDpEvent", "epsilon": between(rng, 0.01, 3.0), "delta": delta}
    if rng.uniform() < 0.2:
        event = {"type": "PermuteAndFlipDpEvent", "epsilon": event["epsilon"]}
    return times(event, one(rng, 1, 3, 10, 30)), one(rng, *RELATIONS)


def _of_fixed_batches(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = one(rng, 100, 10_000, 1_000_000)
    batch = max(1, whole(rng, 1, size // 2))
    sigma = between(rng, 1.0, 10.0) if not nasty else one(rng, 0.2, 0.5, 200.0)
    steps = whole(rng, 2, 10_000) if not nasty else one(rng, 2, 10**6)
    inner = fixed("SampledWithoutReplacementDpEvent", size, batch, gaussian(sigma))
    return times(inner, steps), ADD


def _of_fixed_batch_once(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = one(rng, 10, 1000, 1_000_000)
    batch = max(1, whole(rng, 1, size // 2))
    sigma = between(rng, 0.5, 10.0) if not nasty else one(rng, 0.1, 500.0)
    inner = fixed("SampledWithoutReplacementDpEvent", size, batch, gaussian(sigma))
    return inner, one(rng, *RELATIONS)


def _of_laplace_fixed(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = one(rng, 10, 1000, 1_000_000)
    batch = max(1, whole(rng, 1, size // 2))
    scale = between(rng, 0.3, 10.0) if not nasty else one(rng, 0.1, 500.0)
    inner = {"type": "LaplaceDpEvent", "noise_multiplier": scale}
    return fixed("SampledWithoutReplacementDpEvent", size, batch, inner), one(rng, ADD, REPLACE)


def _of_fixed_batches_replaced(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    inner = fixed(
        "SampledWithoutReplacementDpEvent",
        1000,
        whole(rng, 1, 200) if not nasty else one(rng, 1, 999),
        gaussian(between(rng, 1, 6)),
    )
    return times(inner, whole(rng, 2, 2000)), REPLACE


def _of_draws(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size = one(rng, 10, 1000, 1_000_000)
    batch = max(1, whole(rng, 1, size))
    sigma = between(rng, 0.5, 10.0) if not nasty else one(rng, 0.2, 500.0)
    return fixed("SampledWithReplacementDpEvent", size, batch, gaussian(sigma)), ADD


def _of_truncated(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    size, q = one(rng, 100, 1000), between(rng, 0.01, 0.3)
    sigma = between(rng, 0.5, 4.0)
    if nasty:
        q, sigma = one(rng, (0.999, sigma), (q, 0.1), (q, 300.0))
    most = int(size * q + float(rng.uniform(2, 9)) * (size * q) ** 0.5) + 1
    event = {
        "type": "TruncatedSubsampledGaussianDpEvent",
        "dataset_size": size,
        "sampling_probability": q,
        "truncated_batch_size": min(most, size - 1),
        "noise_multiplier": sigma,
    }
    return event, one(rng, *RELATIONS)


def _of_allocation(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = between(rng, 0.6, 6.0) if not nasty else one(rng, 0.3, 0.4, 30.0)
    batches = whole(rng, 2, 3000) if not nasty else one(rng, 2, 100_000)
    event = {"type": "RandomAllocationDpEvent", "noise_multiplier": sigma, "batches": batches}
    return times(event, one(rng, 1, 1, 2, 5, 20, 100)), one(rng, ADD, ADD, SPECIAL)


def _of_mixture(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    """Draw any mixture, or one of a group: binomial weights of k records (docs/accountants.md)."""
    if rng.uniform() < 0.5:
        k, q = one(rng, 2, 3, 5, 10), between(rng, 1e-3, 0.3)
        weights = [1.0]
        for _ in range(k):
            weights = [
                (1 - q) * a + q * b for a, b in zip([*weights, 0.0], [0.0, *weights], strict=True)
            ]
        places = [float(j) for j in range(k + 1)]
    else:
        places = [0.0, *sorted(between(rng, 0.1, 3.0) for _ in range(one(rng, 1, 2, 4)))]
        drawn = rng.dirichlet(np.ones(len(places)))
        weights = [int(each * 2**30) / 2**30 for each in drawn[1:]]
        weights = [1.0 - sum(weights), *weights]
    event = {
        "type": "MixtureOfGaussiansDpEvent",
        "standard_deviation": between(rng, 0.3, 10.0) if not nasty else one(rng, 0.1, 300.0),
        "sensitivities": places,
        "sampling_probs": weights,
    }
    return event, one(rng, ADD, ADD, SPECIAL)


def _of_mixtures(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event, relation = _of_mixture(rng, nasty)
    return times(event, one(rng, 5, 30, 200)), relation


def _of_groups(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    """Draw a batch of distinct rows, of which a user has several (docs/accountants.md)."""
    size, rows = one(rng, 100, 10_000), one(rng, 2, 3, 5, 10)
    batch = whole(rng, rows, size // 2)
    ways = [comb(rows, j) * comb(size - rows, batch - j) for j in range(rows + 1)]
    event = {
        "type": "MixtureOfGaussiansDpEvent",
        "standard_deviation": between(rng, 0.5, 10.0) if not nasty else one(rng, 0.1, 300.0),
        "sensitivities": [2.0 * j for j in range(rows + 1)],
        "sampling_probs": [each / comb(size, batch) for each in ways],
    }
    return event, ADD


def _of_allocation_unequal(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = [
        times(
            {
                "type": "RandomAllocationDpEvent",
                "noise_multiplier": between(rng, 1.0, 6.0),
                "batches": whole(rng, 2, 300),
            },
            one(rng, 1, 2, 5),
        )
        for _ in range(2)
    ]
    return composed(*parts, gaussian(between(rng, 3.0, 30.0))), ADD


def _of_unequal(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    parts = [_dpsgd(rng, False), times(gaussian(between(rng, 2.0, 40.0)), whole(rng, 1, 20))]
    if rng.uniform() < 0.4:
        batches = fixed(
            "SampledWithoutReplacementDpEvent",
            10_000,
            whole(rng, 10, 500),
            gaussian(between(rng, 2.0, 8.0)),
        )
        parts.append(times(batches, whole(rng, 2, 500)))
    return composed(*parts), ADD


def _of_best_run(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma = between(rng, 2.0, 20.0)
    mean = float(whole(rng, 2, 200))
    if nasty:
        sigma, mean = one(rng, (0.5, mean), (500.0, mean), (sigma, 1e4), (sigma, 1.01))
    event = {
        "type": "RepeatAndSelectDpEvent",
        "event": gaussian(sigma),
        "mean": mean,
        "shape": one(rng, 0.0, 1.0, "inf"),
    }
    return event, one(rng, ADD, REPLACE)


def _of_exponential(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    epsilon = between(rng, 0.05, 5.0) if not nasty else one(rng, 1e-4, 30.0)
    return {"type": "ExponentialMechanismDpEvent", "epsilon": epsilon}, one(rng, *RELATIONS)


def _of_tree(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    counts = whole(rng, 1, 10**6)
    event = {
        "type": "SingleEpochTreeAggregationDpEvent",
        "noise_multiplier": between(rng, 0.5, 30.0),
        "step_counts": one(rng, counts, [counts, whole(rng, 1, 1000)]),
    }
    return event, SPECIAL


def _of_correlated(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    below, q = rounded(float(rng.uniform(0.05, 1.0))), between(rng, 0.01, 0.5)
    sigma, second = between(rng, 0.6, 3.0), rounded(float(rng.uniform(0.5, 2.0)))
    if nasty:
        q, sigma = one(rng, (1e-6, sigma), (0.999, sigma), (q, 0.3), (q, 30.0))
    event = {
        "type": "CorrelatedGaussianDpEvent",
        "strategy": [[1.0, 0.0], [below, one(rng, 1.0, second)]],
        "sampler": one(
            rng,
            {"type": "Poisson", "sampling_probability": q},
            {"type": "RandomAllocation", "participations": 1},
        ),
        "noise_multiplier": sigma,
    }
    return event, SPECIAL


def _of_large_losses(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    """Draw a sample, batch or epoch of answers that lose hundreds or thousands of nats."""
    discrete = {"type": "DiscreteLaplaceDpEvent", "sensitivity": 1}
    beside = one(
        rng,
        {"type": "LaplaceDpEvent", "noise_multiplier": between(rng, 0.7, 3.0)},
        {**discrete, "noise_parameter": between(rng, 0.3, 2.0)},
    )
    inner = composed(times(gaussian(between(rng, 0.03, 0.05)), whole(rng, 6, 12)), beside)
    # Many pairs of values: a law that large is made smaller before it is used.
    two = [times({**discrete, "noise_parameter": between(rng, 8, 20)}, 96) for _ in "ab"]
    epoch = {"type": "AllocatedDpEvent", "event": inner, "batches": whole(rng, 2, 9)}
    size = one(rng, 1, 200)
    batch = fixed("SampledWithoutReplacementDpEvent", 1000, size, inner)
    q = one(rng, 1.0, 0.5, 0.5, 1e-3)
    return one(
        rng,
        (poisson(q, inner), ADD),
        (poisson(q, inner), SPECIAL),
        (batch, ADD),
        (batch, REPLACE),
        (poisson(q, composed(*two)), ADD),
        (poisson(q, composed(*two)), SPECIAL),
        (epoch, SPECIAL),
    )


def _of_unequal_batches(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    """Draw epochs of batches that are all but equal: probabilities add up to 1 but for rounding."""
    sigma, total, chances = between(rng, 3.0, 10.0), fmpq(1), [1.0]
    while total == 1:
        batches = whole(rng, 5, 30)
        first = whole(rng, 1, batches)
        chances = [first / batches, (batches - first) / batches]
        total = sum(fmpq(*each.as_integer_ratio()) for each in chances)
    # The noise of either group is another number, so that the groups stay apart.
    groups = [
        [sigma, first, chances[0]],
        [sigma * (1 + 1e-12), batches - first, chances[1]],
    ]
    event = {"type": "UnequalAllocationDpEvent", "groups": groups}
    return times(event, one(rng, 30, 100, 300)), one(rng, ADD, SPECIAL)


def _of_floors(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    sigma, q = between(rng, 0.7, 3.0), between(rng, 0.1, 0.9)
    discrete = {"type": "DiscreteGaussianDpEvent", "sigma": sigma, "sensitivity": one(rng, 1, 2)}
    kinds = (poisson(q, gaussian(sigma)), gaussian(sigma), *4 * [poisson(q, discrete)])
    return one(rng, *kinds), one(rng, *RELATIONS)


def _of_last_iterate(rng: np.random.Generator, nasty: bool) -> tuple[Event, str]:
    event = {
        "type": "LastIterateDpEvent",
        "noise_multiplier": between(rng, 0.5, 20.0) if not nasty else one(rng, 0.02, 0.1),
        "steps": whole(rng, 2, 10_000),
        "contraction": one(rng, 1.0, 1.0, 0.99, 0.5),
    }
    return event, one(rng, *RELATIONS)


FAMILIES: dict[str, tuple[Draw, int, float]] = {
    "poisson": (_of_poisson, 118, 0.4),
    "poisson-once": (_of_poisson_once, 340, 0.4),
    "poisson-replaced": (_of_poisson_replaced, 7, 0.3),
    "poisson-unequal": (_of_poisson_unequal, 25, 0.2),
    "gaussian": (_of_gaussian, 440, 0.4),
    "laplace": (_of_laplace, 105, 0.3),
    "laplace-often": (_of_laplace_often, 8, 0.3),
    "laplace-sampled": (_of_laplace_sampled, 160, 0.3),
    "discrete-laplace": (_of_discrete_laplace, 133, 0.2),
    "discrete-laplace-sampled": (_of_discrete_laplace_sampled, 180, 0.2),
    "discrete-laplace-fixed": (_of_discrete_laplace_fixed, 190, 0.0),
    "discrete-laplace-replaced": (_of_discrete_laplace_replaced, 60, 0.3),
    "allocated": (_of_allocated, 80, 0.3),
    "discrete-gaussian": (_of_discrete_gaussian, 160, 0.2),
    "response": (_of_response, 240, 0.2),
    "unequal-laws": (_of_unequal_laws, 180, 0.0),
    "claims": (_of_claims, 120, 0.3),
    "fixed-batches": (_of_fixed_batches, 20, 0.3),
    "fixed-batch-once": (_of_fixed_batch_once, 100, 0.3),
    "laplace-fixed": (_of_laplace_fixed, 60, 0.3),
    "fixed-batches-replaced": (_of_fixed_batches_replaced, 20, 0.3),
    "draws-with-replacement": (_of_draws, 60, 0.3),
    "truncated": (_of_truncated, 24, 0.3),
    "allocation": (_of_allocation, 15, 0.3),
    "allocation-unequal": (_of_allocation_unequal, 8, 0.0),
    "mixture": (_of_mixture, 280, 0.3),
    "groups": (_of_groups, 60, 0.3),
    "mixtures": (_of_mixtures, 20, 0.3),
    "unequal": (_of_unequal, 115, 0.0),
    "best-run": (_of_best_run, 19, 0.0),
    "exponential": (_of_exponential, 80, 0.3),
    "tree": (_of_tree, 80, 0.0),
    "correlated": (_of_correlated, 10, 0.3),
    "large-losses": (_of_large_losses, 16, 1.0),
    "unequal-batches": (_of_unequal_batches, 5, 1.0),
    "floors": (_of_floors, 12, 1.0),
    "last-iterate": (_of_last_iterate, 6, 0.7),
}
"""For each family: how an event is drawn, the number of rows, and the share of nasty settings."""

ASKED: dict[str, tuple[dict[str, float], ...]] = {
    "large-losses": (
        *({"delta": delta} for delta in (1e-4, 9.9e-4, 1e-6, 1e-12)),
        *({"epsilon": epsilon, "near": 1e-4} for epsilon in (1.0, 1400.0)),
    ),
    "unequal-batches": tuple({"delta": delta} for delta in (1e-12, 1e-13)),
    # Numbers at which some computation in doubles stops.
    "floors": tuple({"delta": d} for d in (1e-50, 1e-250, 1e-280, 1e-300, 1e-300, 1e-308)),
    "last-iterate": tuple({"near": delta} for delta in (1e-10, 1e-50, 1e-300)),
}
"""Families with questions of their own, and ``near`` as below."""


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
        delta = one(rng, *(NASTY_DELTAS if far else DELTAS))
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
            row["asked"] = {"epsilon": one(rng, *(NASTY_EPSILONS if nasty else EPSILONS))}
        row["direction"] = "worst"
        if relation == ADD and rng.uniform() < 0.12:
            row["direction"] = one(rng, "remove", "add")
        if family in ASKED:
            own = dict(one(rng, *ASKED[family]))
            near = own.pop("near", own.get("delta"))
            row |= {"near": near, "asked": own or None}
        yield row
        number += 1
