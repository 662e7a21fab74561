"""How do a run's answers bear on each canary? Log-likelihood ratios, by how records are sampled.

A canary adds its sign (or nothing) to one coordinate of each answer that it is in, in units of the
bound; the noise of that coordinate has standard deviation z in the same units. The evidence of the
answers depends on the attacker's knowledge of the batches:

====================== ============================================== ==========================
answers about          the attacker knows                             log-likelihood ratio
====================== ============================================== ==========================
all records            that all records are in each answer            exact
Poisson samples        the sampling probability                       exact
batches that records   the number of batches of an epoch              exact
draw
batches of a fixed     the share b / n, and not the other records     of one record by itself:
size                   of the batch                                   a part of the evidence
parts of a partition   the partition                                  exact
correlated noise       the strategy C and the law of participations   exact, or a bound above
                                                                      where the past is long
====================== ============================================== ==========================

>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=2)
>>> evidence = evidence_of(query, n=3)
>>> for x in ([1.0, 0.0, 0.5], [1.0, 0.0, 0.5]):
...     evidence.add(np.array(x), np.arange(3))
>>> evidence.log_ratios().tolist()
[0.25, -0.25, 0.0]
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dpcal.accountants import samplers as laws
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.calibrate.plan import Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.objectives.arrays import Rows, Vector

__all__ = ["KINDS", "Evidence", "evidence_of"]

# Kinds of queries whose answers have a coordinate for each canary. Norms, losses and means of
# iterates mix canaries, which are then not independent of each other.
KINDS = ("gradient", "gradient difference")


def _gaussian(x: Vector, z: float) -> Vector:
    """Return log of N(1, z^2) over N(0, z^2), at x."""
    return (x - 0.5) / z**2


class Evidence:
    """Adds up the evidence of the answers to one query about each of n canaries.

    Here all records, or Poisson samples, are in each answer. ``told`` are the canaries that the
    answers are about.
    """

    told: Any = True

    def __init__(self, query: Query, n: int) -> None:
        self._q, self._z = query.expected_batch_size(n) / n, query.noise_multiplier
        self._total = np.zeros(n)

    def add(self, x: Vector, rows: Rows) -> None:
        """Take an answer: each canary's coordinate, in units of the bound, and the batch."""
        exponent = _gaussian(x, self._z)
        if self._q < 1:
            exponent = np.logaddexp(math.log1p(-self._q), math.log(self._q) + exponent)
        self._total += exponent

    def log_ratios(self) -> Vector:
        """Return log P(answers | canary included) / P(answers | excluded), shape (n,)."""
        return self._total


class _Parted(Evidence):
    """Evidence from parts of a known partition: an answer is about its part alone."""

    def __init__(self, query: Query, n: int) -> None:
        super().__init__(query, n)
        self.told = np.zeros(n, dtype=bool)

    def add(self, x: Vector, rows: Rows) -> None:
        """See :class:`Evidence`."""
        self.told[rows] = True
        self._total[rows] += _gaussian(x[rows], self._z)


class _Drawn(Evidence):
    """Evidence from epochs, of which each record is in one uniformly drawn batch, by itself."""

    def __init__(self, query: Query, n: int) -> None:
        super().__init__(query, n)
        self._epoch = self._left = query.epoch or 1
        self._ratios = np.full(n, -math.inf)

    def add(self, x: Vector, rows: Rows) -> None:
        """See :class:`Evidence`."""
        self._ratios = np.logaddexp(self._ratios, _gaussian(x, self._z))
        self._left -= 1
        if not self._left:
            self._total, self._left = self.log_ratios(), self._epoch
            self._ratios = np.full_like(self._total, -math.inf)

    def log_ratios(self) -> Vector:
        """See :class:`Evidence`; batches of an epoch that was broken off tell nothing."""
        if self._left == self._epoch:
            return self._total
        left = math.log(self._left) if self._left else -math.inf
        ratio = np.logaddexp(self._ratios, left) - math.log(self._epoch)
        return np.asarray(self._total + ratio)


class _Correlated(Evidence):
    """Evidence from runs with noise C^-1 z: C times answers is C times participations plus z."""

    def __init__(self, query: Query, n: int) -> None:
        assert query.correlation is not None
        self._strategy = query.correlation.strategy
        self._mechanism = Mechanism.of(self._strategy, noise_multiplier=query.noise_multiplier)
        self._law = query.sampling.law
        self._answers: list[Vector] = []
        # The group is random and unknown, and it may differ from the worst one.
        if isinstance(self._law, laws.CyclicPoisson):
            self._law = dataclasses.replace(self._law, random_shift=True)

    def add(self, x: Vector, rows: Rows) -> None:
        """See :class:`Evidence`."""
        self._answers.append(x.copy())

    def log_ratios(self) -> Vector:
        """See :class:`Evidence`."""
        mechanism, taken = self._mechanism, len(self._answers)
        if taken != mechanism.steps:
            raise UnsupportedEvent(
                f"of correlated noise a whole run is attacked, {mechanism.steps} answers, got one "
                f"of {taken}."
            )
        answers = np.array(self._answers)
        if self._law == laws.Poisson(1.0):
            # One Gaussian release along C 1: entries of C of both signs are as they are.
            C = self._strategy.matrix()
            mean = C.sum(axis=1)
            return np.asarray(mean @ (C @ answers) - 0.5 * mean @ mean) / mechanism.variance
        a = mechanism.fields(mechanism.means(answers))
        patterns = self._law.equally_likely(len(a))
        return self._by_engine(a) if patterns is None else self._of_patterns(a, patterns)

    def _of_patterns(self, a: Vector, patterns: Vector) -> Vector:
        """Return the mean of the ratios of patterns that are equally likely."""
        energies = np.einsum("tb,tu,ub->b", patterns, self._mechanism.gram, patterns)
        exponents = patterns.T @ a - 0.5 * energies[:, np.newaxis]
        return np.asarray(logsumexp(exponents, axis=0) - math.log(patterns.shape[1]))

    def _by_engine(self, a: Vector) -> Vector:
        """Return the ratio by the engine that prices such runs."""
        mechanism, law = self._mechanism, self._law.automaton(len(a))
        separated = self._law.least_separation >= mechanism.bands
        engine = Likelihood.of(mechanism, law, separated=separated)
        # Without a small memory overlaps are left out; the attack is valid for any score.
        engine = engine or Likelihood(mechanism, law, "none")
        found = engine.log_ratio(np.ascontiguousarray(a))
        # Where a double overflows, the record is there beyond doubt.
        return np.where(np.isnan(found), np.inf, found)


def evidence_of(query: Query, n: int) -> Evidence:
    """Return an accumulator of the evidence of a query's answers about n canaries.

    UnsupportedEvent is raised if an answer has no coordinate for each canary, or canaries are not
    independent.
    """
    if query.kind not in KINDS:
        raise UnsupportedEvent(
            "likelihood ratios are for gradients and their differences, in which each canary has a "
            f"coordinate of its own, got query {query.name!r} of kind {query.kind!r}. What such a "
            "run tells can be bounded from its parameters alone, by optim.attacks.plant."
        )
    if query.sampler == "shuffled-epochs":
        raise UnsupportedEvent(
            "likelihood ratios are for canaries that are drawn independently, got query "
            f"{query.name!r} on shuffled epochs, where others move with a canary. The price of "
            "such a run has an attack on one data set as its lower end."
        )
    if query.correlation is not None:
        return _Correlated(query, n)
    if query.epoch is not None:
        return _Drawn(query, n)
    return _Parted(query, n) if query.composition == "disjoint" else Evidence(query, n)
