"""Which proofs cover a run? The smallest of all available bounds, chosen in one place.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> bound = proved(Mechanism.of(LambdaCGD(40, 0.5), noise_multiplier=6.36), Poisson(0.1))
>>> found = bound.epsilon(1e-5)
>>> abs(bound.delta(found.value) / 1e-5 - 1) < 1e-3
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpcal.accountants.correlated.bounds.adding import Adding
from dpcal.accountants.correlated.bounds.base import Bound, Directions, Least, Proof, Worst
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.reductions import (
    Reduction,
    compositions,
    of_epochs,
    spaced,
)
from dpcal.accountants.correlated.bounds.replicas import ReplicaMoments
from dpcal.accountants.correlated.bounds.revealed import Revealed
from dpcal.accountants.correlated.mechanism import Mechanism, Shape
from dpcal.accountants.matrix.participation import (
    FixedEpochs,
    LeastSeparation,
    Participation,
)
from dpcal.accountants.participations import Automaton, independent
from dpcal.accountants.samplers import BallsInBins, CyclicPoisson, Sampler

__all__ = ["TwoBlanks", "joined", "largest_norm", "proved", "proved_adding"]

# Relative margin, outward, of sums over the rounds.
_MARGIN = 1e-9
_COMPOSITION = "composition of sampled Gaussians, {}"


def proved(mechanism: Mechanism, sampler: Sampler, relation: str = "zero-out") -> Bound:
    """Return the least of all bounds on both directions that cover a run.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        One of this package's, :class:`~dpcal.accountants.correlated.FixedSize` excepted.
    relation
        With ``"replace-one"``, the bound on the pair of C y against -C y. Compositions have their
        own price. Otherwise it is that of two blanked records, or of known participations at twice
        the distance.
    """
    relation = relation if relation == "replace-one" else "add-or-remove-one"
    groups, epochs = sampler.groups(mechanism.steps), sampler.epochs(mechanism.steps)
    if groups is not None and sampler.least_separation >= mechanism.bands:
        parts = [
            Reduction(each, _COMPOSITION, relation, exact=not groups.secret)
            for each in compositions(mechanism, sampler)
        ]
        exact = parts[0] if len(parts) == 1 else Worst(tuple(parts))
        if not groups.secret:
            return exact
        # By joint convexity, the bound of the worst group holds for a secret one.
        twice = 2 if relation == "replace-one" else 1
        return Least(
            (exact, _revealed(Mechanism(mechanism.shape, mechanism.sigma / twice), sampler))
        )
    if relation == "replace-one":
        twice_as_far = Mechanism(mechanism.shape, mechanism.sigma / 2)
        return Least((TwoBlanks(proved(mechanism, sampler)), _revealed(twice_as_far, sampler)))
    revealed = _revealed(mechanism, sampler)
    if epochs is not None and mechanism.bands == 1 and mechanism.column is not None:
        found = of_epochs(mechanism, epochs)
        if found is not None:
            return found if found.exact else Least((found, revealed))
        return revealed
    return Least((revealed, *_of_secret_rounds(mechanism, sampler, revealed)))


def _of_secret_rounds(mechanism: Mechanism, sampler: Sampler, revealed: Bound) -> list[Bound]:
    """Return bounds that use that the rounds of a record's participations are secret."""
    joining, found = joined(mechanism, sampler), spaced(mechanism, sampler)
    bounds: list[Bound] = [] if found is None else [found]
    if joining is not None:
        adding = Least((Adding.of(mechanism, joining), revealed))
        bounds.append(Directions((ReplicaMoments(mechanism, joining), adding)))
    return bounds


def joined(mechanism: Mechanism, sampler: Sampler) -> Joining | None:
    """Return how a record joins, the first of its groups; None if bounds on it do not apply.

    The first group is the worst if C is Toeplitz, and by joint convexity no secret one is worse.
    """
    found = Joining.of(sampler, mechanism.steps)
    if found is None or found.epoch:
        return found
    alike = mechanism.column is not None or mechanism.bands <= found.separation
    known = alike or (found.separation == found.period == 1)
    return found if known and found.chances.max() < 1 else None


def _revealed(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the bound with participations known, no worse than with the worst of all patterns."""
    groups, most = sampler.groups(mechanism.steps), largest_norm(mechanism.shape, sampler)
    if sampler.epochs(mechanism.steps) is not None:
        # The number of participations is known.
        return Revealed(np.ones(1), np.array([most / mechanism.sigma * (1 + _MARGIN)]))
    law, separation = sampler.automaton(mechanism.steps), _worst_case(sampler, mechanism.steps)[1]
    fixed = isinstance(sampler, CyclicPoisson) and not sampler.random_shift
    if groups is not None and fixed and mechanism.column is None:
        rate, gram, most = float(groups.rate), mechanism.gram, most / mechanism.sigma
        parts = (Revealed.of_group(gram[rows, rows], rate, most) for rows in groups.rounds)
        return Worst(tuple(parts))
    if groups is not None and mechanism.column is not None:
        law = _of_first_group(float(groups.rate), separation, mechanism.steps)
    return Revealed.of(mechanism, law, separation, most)


@lru_cache(maxsize=8)
def _of_first_group(rate: float, period: int, steps: int) -> Automaton:
    """Return the law of the first group, the worst one if C is Toeplitz.

    Later groups see the same sequence, truncated. By joint convexity a secret group is no worse.
    """
    rates = np.zeros(steps)
    rates[::period] = rate
    return independent(rates)


def _worst_case(sampler: Sampler, steps: int) -> tuple[Participation, int]:
    """Return the patterns that a sampler may draw, and the least distance of participations."""
    if isinstance(sampler, CyclicPoisson | BallsInBins):
        period = sampler.bands if isinstance(sampler, CyclicPoisson) else sampler.bins
        return FixedEpochs(-(-steps // period), period), period
    epochs = sampler.epochs(steps)
    times = None if epochs is None else epochs.times * epochs.drawn
    return LeastSeparation(sampler.least_separation, times), sampler.least_separation


@lru_cache(maxsize=8)
def largest_norm(shape: Shape, sampler: Sampler) -> float:
    """Return a bound on ||C y|| over all patterns that a sampler may draw."""
    found = shape.strategy.sensitivity(_worst_case(sampler, shape.steps)[0]).value
    epochs = sampler.epochs(shape.steps)
    if epochs is not None and epochs.times == 1 and epochs.drawn > 1 and shape.column is not None:
        # Rounds of epochs that are s apart are more than s - 1 epochs apart.
        E, products = epochs.drawn, Mechanism(shape, 1.0).overlaps
        square = E * float(products[0])
        square += 2 * sum(
            (E - s) * float(products[(s - 1) * epochs.rounds + 1]) for s in range(1, E)
        )
        found = min(found, math.sqrt(square))
    return found


@dataclass(frozen=True, eq=False)
class TwoBlanks(Bound):
    """The bound for a replaced record by two that are blanked, one after the other.

    Parameters
    ----------
    one
        The bound for one of them.
    """

    one: Bound

    method: ClassVar[str] = "two blanked records"

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        half = 0.5 * epsilon
        found = self.one.log_delta(half).value + float(np.logaddexp(0.0, half)) * (1 + 1e-15)
        return Proof(min(0.0, found), self.method)


def proved_adding(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the least of the bounds on adding a record that take little time.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        One of this package's, :class:`~dpcal.accountants.correlated.FixedSize` excepted.
    """
    patterns = sampler.equally_likely(mechanism.steps)
    if patterns is not None:
        return Adding.of_bins(mechanism.products(patterns))
    law, revealed = sampler.automaton(mechanism.steps), _revealed(mechanism, sampler)
    joining = joined(mechanism, sampler)
    if joining is None:
        return Least((Adding(never=-law.never), revealed))
    return Least((Adding.of(mechanism, joining, -law.never), revealed))
