"""Log-likelihood ratios: the evidence of a run's answers for each canary.

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
>>> evidence = Evidence(query, n=3)
>>> for x in ([1.0, 0.0, 0.5], [1.0, 0.0, 0.5]):
...     evidence.add(np.array(x), np.arange(3))
>>> evidence.log_ratios().tolist()
[0.25, -0.25, 0.0]
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import logsumexp

from dpcal.accountants import samplers as laws
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton
from dpcal.calibrate.plan import Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.objectives.arrays import Rows, Vector

# Kinds of queries with one coordinate for each canary: other answers mix dependent canaries.
KINDS = ("gradient", "gradient difference")


class Evidence:
    """Adds up the evidence of the answers to one query about each of n canaries.

    ``told`` are the canaries that the answers are about. UnsupportedEvent is raised if an answer
    has no coordinate for each canary, or canaries are not independent.
    """

    def __init__(self, query: Query, n: int) -> None:
        if query.kind not in KINDS:
            raise UnsupportedEvent(
                "likelihood ratios are for gradients and their differences, in which each canary "
                f"has a coordinate of its own, got query {query.name!r} of kind {query.kind!r}. "
                "What such a run tells can be bounded from its parameters alone, by "
                "optim.attacks.plant."
            )
        if query.sampler == "shuffled-epochs":
            raise UnsupportedEvent(
                "likelihood ratios are for canaries that are drawn independently, got query "
                f"{query.name!r} on shuffled epochs, where others move with a canary. The price of "
                "such a run has an attack on one data set as its lower end."
            )
        self._query, self._n = query, n
        self._parted = query.composition == "disjoint"
        self.told = np.full(n, not self._parted)
        # Answers that share one ratio, because a record's batches depend on each other.
        self._block = query.epoch or 1
        if query.correlation is not None:
            self._block = query.correlation.strategy.steps
        self._answers: list[Vector] = []
        self._total = np.zeros(n)

    def add(self, x: Vector, rows: Rows) -> None:
        """Take an answer: each canary's coordinate, in units of the bound, and the batch."""
        if self._parted:
            self.told[rows] = True
            self._total[rows] += self._exponents(x[rows])
            return
        self._answers.append(x.copy())
        if len(self._answers) == self._block:
            self._total, self._answers = self.log_ratios(), []

    def log_ratios(self) -> Vector:
        """Return log P(answers | canary included) / P(answers | excluded), shape (n,)."""
        if not self._answers:
            return self._total
        answers = np.array(self._answers)
        if self._query.correlation is not None:
            return _correlated(self._query, answers)
        exponents = self._exponents(answers)
        if self._query.epoch is not None:
            # A record is in one random batch of an epoch; missing batches are no evidence.
            missing = np.zeros((self._block - len(answers), self._n))
            ratio = logsumexp(np.concatenate([exponents, missing]), axis=0) - math.log(self._block)
            return np.asarray(self._total + ratio)
        q = self._query.expected_batch_size(self._n) / self._n
        if q < 1:
            exponents = np.logaddexp(math.log1p(-q), math.log(q) + exponents)
        return np.asarray(self._total + exponents[0])

    def _exponents(self, x: Vector) -> Vector:
        """Return log of N(1, z^2) over N(0, z^2), at x."""
        return (x - 0.5) / self._query.noise_multiplier**2


def _correlated(query: Query, answers: Vector) -> Vector:
    """Return ratios of runs with noise C^-1 z: C times answers is C times participations plus z."""
    assert query.correlation is not None
    strategy = query.correlation.strategy
    mechanism = Mechanism.of(strategy, noise_multiplier=query.noise_multiplier)
    if len(answers) != mechanism.steps:
        raise UnsupportedEvent(
            f"of correlated noise a whole run is attacked, {mechanism.steps} answers, got one of "
            f"{len(answers)}."
        )
    law = query.sampling.law
    if law == laws.Poisson(1.0):
        C = strategy.matrix()
        mean = C.sum(axis=1)
        return np.asarray(mean @ (C @ answers) - 0.5 * mean @ mean) / mechanism.variance
    separated, joined = law.least_separation >= mechanism.bands, law_of(query, len(answers))
    # Overlaps are left out if the engine's memory is not small; the attack is valid for any score.
    memory = None if separated else mechanism.memory
    engine = Likelihood(mechanism, joined, memory or "none")
    found = engine.log_ratio(np.ascontiguousarray(mechanism.fields(mechanism.means(answers))))
    # Where a double overflows, the record is present beyond doubt.
    return np.where(np.isnan(found), np.inf, found)


def law_of(query: Query, rounds: int) -> Automaton:
    """Return the law of one record's participations in the batches of a query."""
    law = query.sampling
    # The group is random and unknown here; the accountant bounds the worst group.
    if isinstance(law, laws.CyclicPoisson):
        law = dataclasses.replace(law, random_shift=True)
    return law.automaton(rounds)
