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

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dpcal import _validate
from dpcal.errors import UnsupportedEvent
from dpcal.optim.attacks.rates import either_way
from dpcal.optim.objectives.arrays import Vector

__all__ = ["LoaderAttack", "loader"]

# What the batch that holds the record is above other batches, with the record and in the other
# world.
_MEANS = {
    ("shuffled-epochs", "replace-special"): (2.0, 1.0),
    ("shuffled-epochs", "replace-one"): (2.0, 0.0),
    ("random-allocation", "add-or-remove-one"): (1.0, 0.0),
    ("random-allocation", "replace-special"): (1.0, 0.0),
    ("random-allocation", "replace-one"): (1.0, -1.0),
}
# Answers in memory at once.
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LoaderAttack:
    """Outcome of an attack on a loader.

    Parameters
    ----------
    epsilon
        A lower bound on epsilon at ``delta``.
    claim, delta
        What was claimed.
    confidence
        Confidence of ``epsilon``.
    samples
        Number of runs in each of both worlds.
    """

    epsilon: float
    claim: float
    delta: float
    confidence: float
    samples: int

    @property
    def holds(self) -> bool:
        """Whether the lower bound is within the claim."""
        return self.epsilon <= self.claim

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {**vars(self), "holds": self.holds}

    def __str__(self) -> str:
        return (
            f"epsilon is at least {self.epsilon:.4g} at delta {self.delta:.3g}, claimed "
            f"{self.claim:.4g} ({self.samples} runs with the record and {self.samples} without it, "
            f"confidence {self.confidence:g})"
        )


@dataclass(frozen=True)
class _Runs:
    """Runs of both worlds, as the attacker sees them.

    ``sizes`` has the numbers of places in the batches of an epoch, of which the last one may be
    smaller, and ``means`` what the record's batch is above the others, in both worlds.
    """

    sizes: Vector
    epochs: int
    sigma: float
    means: tuple[float, float]

    def log_ratios(self, mean: float, samples: int, rng: np.random.Generator) -> Vector:
        """Return the log-likelihood ratios of runs in the world of a mean, shape (samples,)."""
        total, block = np.zeros(samples), max(1, _BLOCK // len(self.sizes))
        for first in range(0, samples, block):
            part = total[first : first + block]
            for _ in range(self.epochs):
                answers = self.sigma * rng.standard_normal((len(part), len(self.sizes)))
                places = rng.integers(self.sizes.sum(), size=len(part)) // self.sizes[0]
                answers[np.arange(len(part)), places] += mean
                part += self._log_ratio(answers)
        return total

    def _log_ratio(self, answers: Vector) -> Vector:
        """Return the log-likelihood ratio of each row, the answers of an epoch."""
        log_shares = np.log(self.sizes / self.sizes.sum())
        present, absent = (
            logsumexp(log_shares + mean * (answers - mean / 2) / self.sigma**2, axis=1)
            for mean in self.means
        )
        return np.asarray(present - absent)


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
) -> LoaderAttack:
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
    neighboring_relation = _validate.relation(neighboring_relation)
    if (sampler, neighboring_relation) == ("shuffled-epochs", "add-or-remove-one"):
        raise UnsupportedEvent(
            "A record that is added to a shuffle, or removed from it, moves others to other "
            "batches: attack under 'replace-special' or 'replace-one'."
        )
    samplers, relations = (tuple(dict.fromkeys(names)) for names in zip(*_MEANS, strict=True))
    means = _MEANS[
        _validate.choice(samplers, sampler=sampler),
        _validate.choice(relations, neighboring_relation=neighboring_relation),
    ]
    if _validate.count(batch_size=batch_size) > _validate.count(n=n):
        raise ValueError(f"batch_size must be in [1, n={n}], got {batch_size}.")
    if _validate.count(samples=samples) < 1000:
        raise ValueError(f"samples must be at least 1000, got {samples}.")
    _validate.probability(delta=delta)
    batches, left = divmod(n, batch_size)
    sizes = np.array([batch_size] * batches + [left] * (left > 0))
    if sampler == "random-allocation":
        sizes = np.ones_like(sizes)
    sigma = _validate.noise(noise_multiplier=noise_multiplier)
    runs = _Runs(sizes, _validate.count(epochs=epochs), sigma, means)
    _validate.seed(seed=seed)
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    present, absent = (runs.log_ratios(mean, samples, rng) for mean in means)
    chance = 1 - _validate.probability(confidence=confidence)
    return LoaderAttack(
        epsilon=either_way(present, absent, delta, chance),
        claim=_validate.non_negative(epsilon=epsilon),
        delta=delta,
        confidence=confidence,
        samples=samples,
    )
