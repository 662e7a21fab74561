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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon, LogDelta
from dpcal.accountants.correlated.bounds.allocation import (
    LARGEST_NORM,
    allocated,
    overlaps,
    spaced,
)
from dpcal.accountants.correlated.bounds.allocation_sums import SubsetBelow
from dpcal.accountants.correlated.bounds.base import (
    Bound,
    Directions,
    Least,
    Moments,
    Proof,
    Worst,
)
from dpcal.accountants.correlated.bounds.conditional import Conditional, covers
from dpcal.accountants.correlated.bounds.half_space import (
    BinsHalfSpace,
    HalfSpaces,
    JoiningHalfSpaces,
)
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.lower_tail import LowerTail
from dpcal.accountants.correlated.bounds.reductions import composed, moments_of
from dpcal.accountants.correlated.bounds.replicas import ReplicaMoments
from dpcal.accountants.correlated.bounds.revealed import Revealed, RevealedGroup
from dpcal.accountants.correlated.mechanism import Mechanism, Shape
from dpcal.accountants.interface import epsilon as event_epsilon, log_delta as event_log_delta
from dpcal.accountants.matrix.participation import (
    FixedEpochs,
    LeastSeparation,
    Participation,
)
from dpcal.accountants.participations import Automaton, independent
from dpcal.accountants.samplers import (
    BallsInBins,
    CyclicPoisson,
    MinSeparation,
    Poisson,
    RandomAllocation,
    Sampler,
)
from dpcal.errors import UnsupportedEvent

__all__ = ["Compositions", "Nothing", "compositions", "largest_norm", "proved", "proved_adding"]
__all__ += ["proved_replaced"]

_Answer = Epsilon | Delta | LogDelta

# Least noise over the largest column for conditional composition: with less noise, outputs reveal
# participations, and the bound for known participations is as good.
_LEAST_NOISE_TO_CONDITION = 3.0


def compositions(mechanism: Mechanism, sampler: Sampler) -> list[events.DpEvent]:
    """Return compositions of sampled Gaussians, one for each group that may be the worst.

    Raises
    ------
    UnsupportedEvent
        If the sampler has no groups of independent participations.
    """
    norms = np.sqrt(mechanism.energies)
    groups = sampler.groups(norms.size)
    if groups is None:
        raise UnsupportedEvent(f"{sampler.name!r} sampling is no composition of sampled Gaussians.")
    found: list[events.DpEvent] = []
    kept: list[NDArray[np.float64]] = []
    for rows in groups.rounds:
        ordered = np.sort(norms[rows])[::-1]
        if any(
            len(other) >= len(ordered) and (other[: len(ordered)] >= ordered).all()
            for other in kept
        ):
            continue
        kept.append(ordered)
        found.append(_composed(ordered, float(groups.rate)))
    return found


def _composed(norms: NDArray[np.float64], rate: float) -> events.DpEvent:
    parts: list[tuple[events.DpEvent, int]] = []
    for norm, count in zip(*np.unique(norms, return_counts=True), strict=True):
        gaussian = events.GaussianDpEvent(float(1 / norm))
        step = gaussian if rate == 1 else events.PoissonSampledDpEvent(rate, gaussian)
        parts.append((step, int(count)))
    return composed(parts)


@dataclass(frozen=True, eq=False)
class Compositions(Bound):
    """The worst of several compositions of sampled Gaussians; a record is in one of them.

    Parameters
    ----------
    parts
        One event for each group that may be the worst.
    relation
        The neighboring relation that they are priced under.
    """

    parts: tuple[events.DpEvent, ...]
    relation: str = "add-or-remove-one"

    def worst(self, price: Callable[..., _Answer], **given: float) -> tuple[Proof, float]:
        """Return the price of the worst group at a given number, and the largest lower end."""
        found = [price(each, neighboring_relation=self.relation, **given) for each in self.parts]
        worst = max(found, key=lambda each: each.upper)
        method = f"composition of sampled Gaussians, {worst.method}"
        return Proof(worst.upper, method), max(each.lower for each in found)

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        return self.worst(event_log_delta, epsilon=epsilon)[0]

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        return self.worst(event_epsilon, delta=delta)[0]

    def moments(self, c: float, direction: str) -> Moments:
        """Return the largest bound on log M(c)."""
        return max(moments_of(each, self.relation, c, direction) for each in self.parts)


def proved(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the least of all bounds on both directions that cover a run.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        One of this package's, :class:`~dpcal.accountants.correlated.FixedSize` excepted.
    """
    return _BOUNDS.get(type(sampler), _of_participations)(mechanism, sampler)


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


def proved_replaced(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the least of the bounds on the pair of C y against -C y, which a replaced record has.

    Compositions have their own price. Otherwise it is that of two blanked records, or of known
    participations at twice the distance.
    """
    one = proved(mechanism, sampler)
    if isinstance(one, Compositions):
        return replace(one, relation="replace-one")
    twice = Mechanism(mechanism.shape, mechanism.sigma / 2)
    return Least((TwoBlanks(one), _revealed(twice, sampler)))


def _revealed(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the bound with participations known, no worse than with the worst of all patterns."""
    groups, law = sampler.groups(mechanism.steps), sampler.automaton(mechanism.steps)
    separation = _worst_case(sampler, mechanism.steps)[1]
    most = largest_norm(mechanism.shape, sampler)
    fixed = isinstance(sampler, CyclicPoisson) and not sampler.random_shift
    if groups is not None and fixed and mechanism.column is None:
        rate, gram, most = float(groups.rate), mechanism.gram, most / mechanism.sigma
        return Worst(tuple(RevealedGroup(gram[rows, rows], rate, most) for rows in groups.rounds))
    if groups is not None and mechanism.column is not None:
        law = _of_first_group(float(groups.rate), separation, mechanism.steps)
    return Revealed(mechanism, law, separation, most)


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
        E, products = epochs.drawn, overlaps(Mechanism(shape, 1.0))
        square = E * float(products[0])
        square += 2 * sum(
            (E - s) * float(products[(s - 1) * epochs.rounds + 1]) for s in range(1, E)
        )
        found = min(found, math.sqrt(square))
    return found


def _of_participations(mechanism: Mechanism, sampler: Sampler) -> Bound:
    return Least((_revealed(mechanism, sampler),))


def _of_epochs(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return bounds for random rounds of each epoch.

    With independent equal noise, a uniform subset of k of t rounds is drawn by dividing the rounds
    at random into k blocks of at least floor(t / k), and drawing one round of each. Whoever knows
    the blocks, which do not depend on the record, sees one round of each of k epochs; divergences
    are jointly convex, so that not knowing them costs no more (compare Feldman and Shenfeld 2025).
    Epochs that repeat their rounds are one observation of a longer contribution.
    """
    epochs = sampler.epochs(mechanism.steps)
    assert epochs is not None  # The table names samplers that have epochs.
    if mechanism.bands != 1 or mechanism.column is None:
        found, revealed = spaced(mechanism, sampler), _revealed(mechanism, sampler)
        others = _of_replicas(mechanism, sampler, revealed)
        return Least((revealed, *([] if found is None else [found]), *others))
    norm = float(mechanism.column[0]) / mechanism.sigma * math.sqrt(epochs.repeated)
    if norm > LARGEST_NORM:
        return _of_participations(mechanism, sampler)
    rounds, count = epochs.rounds // epochs.times, epochs.times * epochs.drawn
    blocks = allocated(norm, rounds, count, exact=epochs.times == 1)
    if epochs.times == 1:
        return blocks
    below = SubsetBelow(norm, epochs.rounds, epochs.times, epochs.drawn)
    return Least((blocks, _revealed(mechanism, sampler)), below.directions)


def _of_poisson(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return bounds for batches that every record may join in every round."""
    if mechanism.bands == 1:
        return Compositions(tuple(compositions(mechanism, sampler)))
    return _of_secret_rounds(mechanism, sampler, sampler.automaton(mechanism.steps))


def _of_secret_rounds(mechanism: Mechanism, sampler: Sampler, law: Automaton) -> Bound:
    """Return bounds that use that the rounds of a record's participations are secret.

    Conditional composition for one rate holds for rounds of smaller ones, whose participations have
    smaller chances given the outputs.
    """
    revealed, rate = _revealed(mechanism, sampler), float(law.rates.max())
    if rate >= 1:
        return Least((revealed,))
    adding = Least((LowerTail(mechanism, law), HalfSpaces(mechanism, law), revealed))
    joining = Joining.of(sampler, mechanism.steps)
    assert joining is not None  # The sampler has groups.
    moments = ReplicaMoments(mechanism, joining)
    if moments.possible:
        return Least((revealed, Directions((moments, adding))))
    enough = mechanism.sigma >= _LEAST_NOISE_TO_CONDITION * mechanism.largest_column
    if enough and covers(mechanism, rate):
        return Least((revealed, Conditional(mechanism, rate)))
    return Least((revealed,))


def _of_separated(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return bounds for records that sit out after each participation."""
    revealed = _revealed(mechanism, sampler)
    return Least((revealed, *_of_replicas(mechanism, sampler, revealed)))


def _of_replicas(mechanism: Mechanism, sampler: Sampler, revealed: Bound) -> list[Bound]:
    """Return bounds by moments of replicas, and by half-spaces of the same law for adding."""
    joining = Joining.of(sampler, mechanism.steps)
    if joining is None or not (joining.epoch or joining.chances[0] < 1):
        return []
    if mechanism.column is None and not joining.epoch and mechanism.bands > joining.separation:
        return []
    moments = ReplicaMoments(mechanism, joining)
    adding = Least((JoiningHalfSpaces(mechanism, joining), revealed))
    return [Directions((moments, adding))] if moments.possible else []


def _of_groups(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return bounds for groups; by joint convexity, the worst group's hold for a secret one."""
    groups = sampler.groups(mechanism.steps)
    assert groups is not None  # The table names samplers that have groups.
    if sampler.least_separation >= mechanism.bands:
        exact = Compositions(tuple(compositions(mechanism, sampler)))
        return Least((exact, _revealed(mechanism, sampler))) if groups.secret else exact
    if mechanism.column is None:
        return _revealed(mechanism, sampler)
    first = _of_first_group(float(groups.rate), sampler.least_separation, mechanism.steps)
    return _of_secret_rounds(mechanism, sampler, first)


# Bounds by sampler; all other samplers have the bounds for known participations.
_BOUNDS: Mapping[type[Sampler], Callable[[Mechanism, Sampler], Bound]] = MappingProxyType(
    {
        Poisson: _of_poisson,
        CyclicPoisson: _of_groups,
        MinSeparation: _of_separated,
        RandomAllocation: _of_epochs,
        BallsInBins: _of_epochs,
    }
)


@dataclass(frozen=True, eq=False)
class Nothing(Bound):
    """The bound of a direction whose privacy loss never exceeds an epsilon: delta is zero there.

    Parameters
    ----------
    above
        The epsilon.
    """

    above: float

    method: ClassVar[str] = "a record that never takes part"

    def log_delta(self, epsilon: float) -> Proof:
        """Return minus infinity from this epsilon on, and zero, which proves nothing, below it."""
        return Proof(-math.inf if epsilon >= self.above else 0.0, self.method)

    def epsilon(self, delta: float) -> Proof:
        """Return the epsilon beyond which delta is zero."""
        return Proof(self.above, self.method)


def proved_adding(mechanism: Mechanism, sampler: Sampler, both: Bound) -> Bound:
    """Return the least of the bounds on adding a record that take little time.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        One of this package's, :class:`~dpcal.accountants.correlated.FixedSize` excepted.
    both
        The result of :func:`proved`, for laws without a bound of their own.

    Notes
    -----
    L is at least the probability s of taking part in no round, so that delta is zero where
    e^epsilon s >= 1.
    """
    law = sampler.automaton(mechanism.steps)
    never = Nothing(-law.never)
    patterns = sampler.equally_likely(mechanism.steps)
    if patterns is not None:
        return BinsHalfSpace(mechanism.products(patterns))
    if not law.independent:
        groups, joining = sampler.groups(mechanism.steps), Joining.of(sampler, mechanism.steps)
        if groups is not None or joining is None:
            return Least((never, both))
        return Least((never, JoiningHalfSpaces(mechanism, joining), _revealed(mechanism, sampler)))
    return Least((HalfSpaces(mechanism, law), LowerTail(mechanism, law), never))
