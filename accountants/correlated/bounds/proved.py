"""Which proofs cover a run? The least of all bounds in hand, chosen in one place.

>>> from dpcal.accountants.correlated.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> bound = proved(Mechanism.of(LambdaCGD(40, 0.5), noise_multiplier=6.36), Poisson(0.1))
>>> found = bound.epsilon(1e-5)
>>> abs(bound.delta(found.value) / 1e-5 - 1) < 1e-3
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.correlated.bounds.allocation import Allocation
from dpcal.accountants.correlated.bounds.band_moments import BandMoments
from dpcal.accountants.correlated.bounds.base import Bound, Least, Proof, Worst
from dpcal.accountants.correlated.bounds.conditional import Conditional, covers
from dpcal.accountants.correlated.bounds.half_space import BinsHalfSpace, HalfSpaces
from dpcal.accountants.correlated.bounds.lower_tail import LowerTail
from dpcal.accountants.correlated.bounds.moments import CappedMoments
from dpcal.accountants.correlated.bounds.revealed import Revealed, RevealedGroup
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.samplers import (
    BallsInBins,
    CyclicPoisson,
    Poisson,
    RandomAllocation,
    Sampler,
)
from dpcal.accountants.interface import delta as event_delta
from dpcal.accountants.interface import epsilon as event_epsilon
from dpcal.accountants.interface import log_delta as event_log_delta
from dpcal.errors import UnsupportedEvent

__all__ = ["Compositions", "allocated", "bin_gram", "compositions", "proved", "proved_adding"]

# Noise over the largest column. With less of it, what was released tells who took part, and
# conditional composition proves nothing that participations revealed do not.
_LEAST_NOISE_TO_CONDITION = 3.0


def compositions(mechanism: Mechanism, sampler: Sampler) -> list[events.DpEvent]:
    """Return compositions of sampled Gaussians, one for each group that may be the worst.

    Raises
    ------
    UnsupportedEvent
        If the sampler has no groups of independent participations.
    """
    norms = np.sqrt(mechanism.energies)
    if isinstance(sampler, Poisson):
        groups, rate = [norms], sampler.sampling_probability
    elif isinstance(sampler, CyclicPoisson):
        groups = [norms[g :: sampler.bands] for g in range(min(sampler.bands, norms.size))]
        rate = sampler.sampling_probability
    else:
        raise UnsupportedEvent(f"{sampler.name} sampling is no composition of sampled Gaussians.")
    found: list[events.DpEvent] = []
    kept: list[NDArray[np.float64]] = []
    for group in groups:
        ordered = np.sort(group)[::-1]
        if any(
            len(other) >= len(ordered) and (other[: len(ordered)] >= ordered).all()
            for other in kept
        ):
            continue
        kept.append(ordered)
        found.append(_composed(ordered, float(rate)))
    return found


def _composed(norms: NDArray[np.float64], rate: float) -> events.DpEvent:
    parts = []
    for norm, count in zip(*np.unique(norms, return_counts=True), strict=True):
        gaussian = events.GaussianDpEvent(float(1 / norm))
        step = gaussian if rate == 1 else events.PoissonSampledDpEvent(rate, gaussian)
        parts.append(events.SelfComposedDpEvent(step, int(count)))
    return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)


@dataclass(frozen=True, eq=False)
class Compositions(Bound):
    """The worst of several compositions of sampled Gaussians, of which a record may be in one.

    Parameters
    ----------
    parts
        One event for each group that may be the worst.
    """

    parts: tuple[events.DpEvent, ...]

    def epsilon_answer(self, delta: float) -> tuple[Epsilon, float]:
        """Return the worst group's epsilon, and the largest lower end."""
        found = [event_epsilon(event, delta=delta) for event in self.parts]
        return max(found, key=lambda each: each.upper), max(each.lower for each in found)

    def delta_answer(self, epsilon: float) -> tuple[Delta, float]:
        """Return the worst group's delta, and the largest lower end."""
        found = [event_delta(event, epsilon=epsilon) for event in self.parts]
        return max(found, key=lambda each: each.upper), max(each.lower for each in found)

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        found = [event_log_delta(event, epsilon=epsilon) for event in self.parts]
        worst = max(found, key=lambda each: each.upper)
        return Proof(worst.upper, f"composition of sampled Gaussians, {worst.method}")

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        worst, _ = self.epsilon_answer(delta)
        return Proof(worst.upper, f"composition of sampled Gaussians, {worst.method}")


def proved(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the least of all bounds on both directions that cover a run.

    Parameters
    ----------
    mechanism
        Of any kind.
    sampler
        One of this package's, :class:`~dpcal.accountants.correlated.FixedSize` excepted.
    """
    if isinstance(sampler, CyclicPoisson):
        return _of_groups(mechanism, sampler)
    allocation = allocated(mechanism, sampler)
    if allocation is not None and _once_an_epoch(sampler):
        return allocation
    parts: list[Bound] = [Revealed(mechanism, sampler.automaton(mechanism.steps))]
    if allocation is not None:
        return Least((allocation, *parts))
    if isinstance(sampler, Poisson):
        if mechanism.bands == 1:
            return Compositions(tuple(compositions(mechanism, sampler)))
        parts += _of_poisson(mechanism, sampler, parts[0])
    return Least(tuple(parts))


def _once_an_epoch(sampler: Sampler) -> bool:
    return not isinstance(sampler, RandomAllocation) or sampler.participations == 1


def allocated(mechanism: Mechanism, sampler: Sampler) -> Allocation | None:
    """Return the bound for random rounds of an epoch and independent equal noise, or None.

    Notes
    -----
    A uniform subset of k of t rounds is drawn by dividing the rounds at random into k blocks of at
    least floor(t / k), and drawing one round of each. Whoever knows the blocks, which do not depend
    on the record, sees one round of each of k epochs; divergences are jointly convex, so that not
    knowing them costs no more (compare Feldman and Shenfeld 2025).
    """
    if mechanism.bands != 1 or mechanism.column is None:
        return None
    norm, steps = float(mechanism.column[0]) / mechanism.sigma, mechanism.steps
    if isinstance(sampler, BallsInBins):
        epochs = len(sampler.patterns(steps)) // sampler.bins
        # The rounds of one bin are one observation of a longer contribution.
        return Allocation(norm * math.sqrt(epochs), sampler.bins, 1)
    if isinstance(sampler, RandomAllocation):
        sampler.automaton(steps)
        rounds, times = sampler.epoch or steps, sampler.participations
        return Allocation(norm, rounds // times, times * (steps // rounds))
    return None


def _of_poisson(mechanism: Mechanism, sampler: Poisson, revealed: Bound) -> list[Bound]:
    """Bounds for batches that every record may join in every round."""
    rate = float(sampler.sampling_probability)
    if rate >= 1:
        return []
    if mechanism.walk is not None:
        law = sampler.automaton(mechanism.steps)
        adding = Least((LowerTail(mechanism, law), HalfSpaces(mechanism, law), revealed))
        return [Worst((CappedMoments(mechanism, rate), adding))]
    if mechanism.kind == "banded":
        law = sampler.automaton(mechanism.steps)
        bands = BandMoments(mechanism, law)
        if bands.orders:
            adding = Least((LowerTail(mechanism, law), HalfSpaces(mechanism, law), revealed))
            return [Worst((bands, adding))]
    enough = mechanism.sigma >= _LEAST_NOISE_TO_CONDITION * mechanism.largest_column
    return [Conditional(mechanism, rate)] if enough and covers(mechanism, rate) else []


def _of_groups(mechanism: Mechanism, sampler: CyclicPoisson) -> Bound:
    """Bounds for groups; by joint convexity, those of the worst one hold for a secret one too."""
    if sampler.bands >= mechanism.bands:
        exact = Compositions(tuple(compositions(mechanism, sampler)))
        if not sampler.random_shift:
            return exact
        return Least((exact, Revealed(mechanism, sampler.automaton(mechanism.steps))))
    if sampler.random_shift or mechanism.column is not None:
        # The first group is the worst of a Toeplitz C: a later one does the same in fewer rounds.
        return Revealed(mechanism, sampler.automaton(mechanism.steps))
    rate, gram = float(sampler.sampling_probability), mechanism.gram
    return Worst(
        tuple(
            RevealedGroup(gram[g :: sampler.bands, g :: sampler.bands], rate)
            for g in range(min(sampler.bands, len(gram)))
        )
    )


def bin_gram(mechanism: Mechanism, sampler: BallsInBins) -> NDArray[np.float64]:
    """Return the products of the means of the bins, over sigma^2, of shape (bins, bins)."""
    M = mechanism.means(sampler.patterns(mechanism.steps)) / mechanism.sigma
    return np.asarray(M.T @ M)


@dataclass(frozen=True, eq=False)
class Nothing(Bound):
    """The bound of a direction in which nothing is lost beyond an epsilon: delta is zero there.

    Parameters
    ----------
    above
        The epsilon.
    """

    above: float
    method: str = field(default="a record that never takes part", repr=False)

    def log_delta(self, epsilon: float) -> Proof:
        """Return minus infinity at large epsilons, and zero, which proves nothing, below."""
        return Proof(-math.inf if epsilon >= self.above else 0.0, self.method)

    def epsilon(self, delta: float) -> Proof:
        """Return the epsilon beyond which delta is zero."""
        return Proof(self.above, self.method)


def proved_adding(mechanism: Mechanism, sampler: Sampler, both: Bound) -> Bound:
    """Return the least of the bounds on adding a record that take little time.

    Parameters
    ----------
    mechanism, sampler
        As for :func:`proved`.
    both
        What :func:`proved` returned, for laws without a bound of their own.

    Notes
    -----
    L is at least the probability s of never taking part, so that delta is zero where
    e^epsilon s >= 1.
    """
    law = sampler.automaton(mechanism.steps)
    never = Nothing(-law.never)
    if isinstance(sampler, BallsInBins):
        return BinsHalfSpace(bin_gram(mechanism, sampler))
    if not law.independent:
        return Least((never, both))
    return Least((HalfSpaces(mechanism, law), LowerTail(mechanism, law), never))
