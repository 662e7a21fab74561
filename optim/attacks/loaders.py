"""Does a run keep its claim with another loader than was priced? Runs of one data set, simulated.

In one dimension, the attacked record contributes 1. All other records of a shuffle contribute -1:
the batch that holds the record is told by its sum, which is 2 above what the others alone would
give, and 1 above it where the record is blank. Of random allocation the others contribute 0. Of a
uniform permutation only the place of the record matters, so that runs are drawn exactly.

The attacker sees all noisy sums, and takes the likelihood ratio of both worlds, which no test
surpasses. Rates of errors are bounded by Clopper and Pearson, and prove a lower bound on epsilon.

>>> found = loader("shuffled-epochs", n=60_000, batch_size=512, epochs=1, noise_multiplier=0.8,
...                epsilon=1.38, delta=1e-5, samples=20_000, seed=1)
>>> found.holds, found.epsilon > 1.5
(False, True)
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from dpcal import _validate
from dpcal.accountants.directions import relation_of
from dpcal.errors import UnsupportedEvent
from dpcal.optim.attacks.rates import LowerBound, many_runs
from dpcal.optim.objectives.arrays import Vector

__all__ = ["loader"]

SAMPLERS = ("shuffled-epochs", "random-allocation")
# Answers in memory at once.
_BLOCK = 1 << 20


def _log_ratios(
    sizes: Vector,
    epochs: int,
    sigma: float,
    means: tuple[float, float],
    *,
    mean: float,
    samples: int,
    rng: np.random.Generator,
) -> Vector:
    """Return the log-likelihood ratios of runs in the world of a mean, shape (samples,).

    ``sizes`` has the numbers of places in the batches of an epoch, of which the last one may be
    smaller, and ``means`` what the record's batch is above the others, in both worlds.
    """
    total, block = np.zeros(samples), max(1, _BLOCK // len(sizes))
    log_shares = np.log(sizes / sizes.sum())
    for first in range(0, samples, block):
        part = total[first : first + block]
        for _ in range(epochs):
            answers = sigma * rng.standard_normal((len(part), len(sizes)))
            places = rng.integers(sizes.sum(), size=len(part)) // sizes[0]
            answers[np.arange(len(part)), places] += mean
            present, absent = (
                logsumexp(log_shares + each * (answers - each / 2) / sigma**2, axis=1)
                for each in means
            )
            part += present - absent
    return total


def loader(
    sampler: str,
    *,
    n: int,
    batch_size: int,
    epochs: int,
    noise_multiplier: float,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "replace-special",
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int | None = None,
) -> LowerBound:
    """Attack runs of a loader by likelihood ratios, and bound epsilon from below.

    Parameters
    ----------
    sampler
        ``"shuffled-epochs"`` (a fresh permutation of all records in every epoch, cut into batches
        of ``batch_size`` and a smaller last one) or ``"random-allocation"`` (each record draws one
        of as many batches).
    n, batch_size, epochs
        Numbers of records, of records in a batch, and of epochs.
    noise_multiplier
        Standard deviation > 0 of the noise, over the bound on the norm of a record's contribution.
    epsilon, delta
        The claim.
    neighboring_relation
        ``"replace-special"`` or ``"replace-one"``; for random allocation also
        ``"add-or-remove-one"``.
    samples
        Number of runs with the record, and of runs without it, at least 1000.
    confidence
        In (0, 1): a claim that holds is rejected with probability at most 1 - confidence.
    seed
        An integer >= 0 to make the attack repeatable; fresh entropy when omitted.

    Raises
    ------
    UnsupportedEvent
        If a record is added to a shuffle or removed from it, which moves other records.
    """
    shuffled = _validate.choice(SAMPLERS, sampler=sampler) == SAMPLERS[0]
    neighboring_relation = relation_of(neighboring_relation)
    if shuffled and neighboring_relation == "add-or-remove-one":
        raise UnsupportedEvent(
            "A record that is added to a shuffle, or removed from it, moves others to other "
            "batches: attack under 'replace-special' or 'replace-one'."
        )
    # What the record's batch is above other batches, with the record and in the other world.
    means = (1.0, -1.0 if neighboring_relation == "replace-one" else 0.0)
    if shuffled:
        means = (means[0] + 1, means[1] + 1)
    if _validate.count(batch_size=batch_size) > _validate.count(n=n):
        raise ValueError(f"batch_size must be in [1, n={n}], got {batch_size}.")
    if _validate.count(samples=samples) < 1000:
        raise ValueError(f"samples must be at least 1000, got {samples}.")
    sizes = np.diff(np.append(np.arange(0, n, batch_size), n))
    sigma = _validate.noise(noise_multiplier=noise_multiplier)
    epochs = _validate.count(epochs=epochs)
    rng = np.random.default_rng(_validate.seed(seed=seed))
    sampled = partial(_log_ratios, sizes if shuffled else np.ones_like(sizes), epochs, sigma, means)
    present, absent = (sampled(mean=mean, samples=samples, rng=rng) for mean in means)
    found = many_runs(present, absent, delta=delta, confidence=confidence)
    return replace(found, claim=_validate.non_negative(epsilon=epsilon))
