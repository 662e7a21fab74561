r"""Events that bound the cost of a run.

**Public participations.** If the pattern of participations is known, the run is a Gaussian
mechanism, and only the law of ||C y|| counts. The bound holds in both directions for any sampler,
and needs no secret batches.

**Compositions.** Rounds of a group that are as far apart as C has bands are independent.

**One random round an epoch.** With independent noise the run is the event of random allocation. A
uniform subset of k of t rounds is drawn by dividing the rounds at random into k blocks of at least
floor(t / k), and drawing one round of each. An adversary who knows the blocks, which do not depend
on the record, sees one round of each of k epochs. Divergences are jointly convex, so that an
adversary who does not know the blocks learns no more (compare Feldman and Shenfeld 2025). Epochs
that repeat their rounds are a single observation of a longer contribution.

**Residues.** A larger covariance of the likelihood terms never costs less
(docs/explanation/correlated_noise.md). Let the adversary know the round modulo w,
which does not depend on the record. Two rounds are then the same, or w or more apart, where columns
of C overlap little or not at all. So the covariance of two patterns is at most c + (d - c) 1{the
same}, with d the largest squared norm of a pattern and c the largest overlap of two that are w or
more apart. With equality, the pair is the composition of a Gaussian mechanism of squared mean c and
of random allocation to a w-th of the rounds. The cost of this composition is known exactly. All
epochs must repeat the round of the first one, or there is one epoch.

>>> bound = allocated(norm=1.0, rounds=100, epochs=1)
>>> 2.1544e-3 < bound.proof(0.25).lower < bound.delta(0.25) < 2.1635e-3
True
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import BallsInBins
>>> mechanism = Mechanism.of(LambdaCGD(200, 0.5), noise_multiplier=4.0)
>>> (bound,) = spaced(mechanism, BallsInBins(50))
>>> print(f"{bound.epsilon(1e-4).value:.3f}")  # it is 3.050 if the rounds are known
0.943
>>> public = revealed(mechanism, BallsInBins(50))
>>> found = public.epsilon(1e-5)
>>> bool(abs(public.delta(found.value) / 1e-5 - 1) < 1e-6)
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.correlated.bounds.base import MARGIN, Bound, Proof, Worst, half_space_delta
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.loaders.subsets import SubsetBelow
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.matrix.participation import FixedEpochs, LeastSeparation, Participation
from dpcal.accountants.matrix.sensitivity import of_toeplitz
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.participations import Epochs, Floats, Groups
from dpcal.accountants.samplers import BallsInBins, CyclicPoisson, Sampler

# Standard deviations above the mean; numbers beyond, rarer than any delta, count as the largest.
_DEVIATIONS = 40.0
_MOST_PATTERNS = 2000
# Norm from which noise reveals participations: the bound for known ones is as good.
LARGEST_NORM = 20.0


@dataclass(frozen=True, eq=False)
class Reduction(Bound):
    """Bounds on both directions by the epsilon and delta of an event.

    Parameters
    ----------
    event
        The event.
    name
        Name of the bound; ``{}`` stands for the method of the event.
    relation
        Neighboring relation of the event.
    exact
        Whether the run costs exactly as much as the event; otherwise the event is an upper bound
        only.
    below
        Lower bounds for a run that the event bounds from above; None if there are none.
    """

    event: events.DpEvent
    name: str = "{}"
    relation: str = "add-or-remove-one"
    exact: bool = False
    below: SubsetBelow | None = None

    def proof(self, epsilon: float) -> Proof:
        """Return a bound on delta at an epsilon >= 0."""
        lower = 0.0 if self.below is None else self.below.delta(epsilon)
        found = event_delta(self.event, epsilon=epsilon, neighboring_relation=self.relation)
        return self._proof(found, lower)

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        lower = 0.0 if self.below is None else self.below.epsilon(delta)
        found = event_epsilon(self.event, delta=delta, neighboring_relation=self.relation)
        return self._proof(found, lower)

    def _proof(self, found: Delta | Epsilon, lower: float) -> Proof:
        lower = found.lower if self.exact else lower
        return Proof(found.upper, self.name.format(found.method), lower)

    def log_mgf(self, c: float, direction: str) -> float:
        """Return a bound on log M(c) of the event."""
        totals = _totals(self.event, self.relation)
        total = totals.get(direction) or totals["both"]
        try:
            return float(total.moments([c])[0][0])
        except OutOfReach:
            return float(total.log_mgf_bounds(np.array([c]))[0])


@lru_cache(maxsize=64)
def _totals(event: events.DpEvent, relation: str) -> dict[str, Total]:
    directions = decompose(event, relation).directions
    return {direction.name: Total(direction.parts) for direction in directions}


def _composed(parts: Iterable[tuple[events.DpEvent, int]]) -> events.DpEvent:
    """Return a composition that can be a key."""
    found = tuple(events.SelfComposedDpEvent(event, count) for event, count in parts)
    return found[0] if len(found) == 1 else events.ComposedDpEvent(found)


def compositions(mechanism: Mechanism, groups: Groups) -> Iterable[events.DpEvent]:
    """Yield compositions of sampled Gaussians, one for each group that may be the worst.

    If C is Toeplitz, the first group is the worst: the columns of later groups are its columns, cut
    off.
    """
    norms = np.sqrt(mechanism.unit.energies)
    for rows in groups.rounds if mechanism.column is None else groups.rounds[:1]:
        parts: list[tuple[events.DpEvent, int]] = []
        for norm, count in zip(*np.unique(norms[rows], return_counts=True), strict=True):
            step: events.DpEvent = events.GaussianDpEvent(float(mechanism.sigma / norm))
            if groups.rate != 1:
                step = events.PoissonSampledDpEvent(float(groups.rate), step)
            parts.append((step, int(count)))
        yield _composed(parts)


def allocated(norm: float, rounds: int, epochs: int) -> Reduction:
    """Return the exact bound for one uniformly random round an epoch, in both directions.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs; their rounds are drawn independently.
    """
    epoch = events.RandomAllocationDpEvent((1 - 1e-15) / norm, rounds)
    return Reduction(_composed([(epoch, epochs)]), exact=True)


def of_epochs(mechanism: Mechanism, epochs: Epochs) -> Reduction | None:
    """Return the bound for random rounds of epochs with independent noise; None if too loose.

    Several rounds an epoch have a lower bound of their own.
    """
    assert mechanism.column is not None
    norm = float(mechanism.column[0]) / mechanism.sigma * math.sqrt(epochs.repeated)
    if norm > LARGEST_NORM:
        return None
    if epochs.times == 1:
        return allocated(norm, epochs.rounds, epochs.drawn)
    blocks = allocated(norm, epochs.rounds // epochs.times, epochs.times * epochs.drawn)
    return Reduction(
        blocks.event, below=SubsetBelow(norm, epochs.rounds, epochs.times, epochs.drawn)
    )


def spaced(mechanism: Mechanism, sampler: Sampler) -> list[Bound]:
    """Return the bound by residues that is probably the smallest; an empty list if none helps.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        Sampler of one round that all epochs use; other samplers give an empty list.
    """
    epochs = sampler.epochs(mechanism.steps)
    if epochs is None or epochs.times != 1 or epochs.drawn != 1 or epochs.rounds > _MOST_PATTERNS:
        return []
    patterns = sampler.equally_likely(mechanism.steps)
    gram = mechanism.gram if patterns is None else mechanism.products(patterns)
    powers = {2**k for k in range(1, len(gram).bit_length())} | {mechanism.bands}
    found = [_known_residues(gram, w) for w in sorted(powers) if 2 * w <= len(gram)]
    found = [each for each in found if each[1] > 0]
    if not found:
        return []
    shared, own, rounds = min(
        found, key=lambda each: each[0] + min(math.expm1(min(each[1], 500.0)) / each[2], each[1])
    )
    allocation = events.RandomAllocationDpEvent(1 / math.sqrt(own), rounds)
    parts: list[tuple[events.DpEvent, int]] = [(allocation, 1)]
    if shared > 0:
        parts.append((events.GaussianDpEvent(1 / math.sqrt(shared * (1 + MARGIN))), 1))
    return [Reduction(_composed(parts), "residues of rounds revealed, {}")]


def _known_residues(gram: Floats, width: int) -> tuple[float, float, int]:
    """Return the shared squared mean of all patterns, the rest of one pattern, and rounds left.

    The rounds left are the least number from which a round is drawn, once its residue is known.
    """
    place = np.arange(len(gram))
    same = (place[:, None] - place) % width == 0
    np.fill_diagonal(same, False)
    shared = float(gram[same].max()) * (1 + MARGIN)
    own = float(np.diagonal(gram).max()) * (1 + MARGIN) - shared
    return shared, own, len(gram) // width


@dataclass(frozen=True, eq=False)
class TwoBlanks(Bound):
    """The bound for a replaced record by two zero-out steps, one after the other.

    Parameters
    ----------
    one
        Bound for one zero-out step.
    """

    one: Bound

    method: ClassVar[str] = "two blanked records"

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta at an epsilon >= 0."""
        half = 0.5 * epsilon
        return min(1.0, self.one.delta(half) * (1 + math.exp(min(half, 600.0))) * (1 + 1e-12))


@dataclass(frozen=True, eq=False)
class Revealed(Bound):
    """The bound if participations are known: the mean of Gaussian deltas over a record's patterns.

    Parameters
    ----------
    weights
        Probabilities of numbers of participations, of shape (numbers,).
    norms
        Bounds on ||C y|| / sigma for these numbers, each for the worst pattern of the number.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns.
    """

    weights: Floats
    norms: Floats

    method: ClassVar[str] = "participations revealed"

    def delta(self, epsilon: float) -> float:
        """Return the bound at an epsilon >= 0."""
        deltas = half_space_delta(0.5 * self.norms**2, self.norms, epsilon)
        return min(1.0, float(self.weights @ deltas) * (1 + MARGIN))

    def log_mgf(self, c: float, direction: str) -> float:
        """Return the log of the mean of Gaussian moments, the same in both directions."""
        with np.errstate(divide="ignore"):
            found = float(logsumexp(np.log(self.weights) + 0.5 * (c * c + c) * self.norms**2))
        return max(found, 0.0) * (1 + MARGIN) + MARGIN


def revealed(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the bound for known participations, no larger than the bound for the worst pattern.

    Parameters
    ----------
    mechanism, sampler
        Strategy of any kind, and any sampler, also one that is refused because no dominating pair
        is known. Only the law of a record's number of participations matters, and the least
        distance of two participations.
    """
    validate.instance(Sampler, sampler=sampler)
    laws = _unit_laws(mechanism.unit, sampler)
    parts = tuple(Revealed(weights, norms / mechanism.sigma) for weights, norms in laws)
    return parts[0] if len(parts) == 1 else Worst(parts)


@lru_cache(maxsize=8)
def _unit_laws(unit: Mechanism, sampler: Sampler) -> list[tuple[Floats, Floats]]:
    """Return probabilities of numbers of participations, and norms, of each group of records."""
    from scipy.stats import binom

    T, most, groups = unit.steps, largest_norm(unit, sampler), sampler.groups(unit.steps)
    separation = sampler.least_separation
    if sampler.epochs(T) is not None:
        return [(np.ones(1), np.array([most * (1 + MARGIN)]))]
    law = sampler.participation_law(T)
    rate, rounds = float(np.exp(law.join.max())), int(np.isfinite(law.join).any(axis=1).sum())
    possible = min(rounds, -(-T // separation))
    usual = rate * rounds + _DEVIATIONS * (math.sqrt(rate * rounds) + 1)
    largest = min(possible, math.ceil(usual))
    if law.independent:
        weights = binom.pmf(np.arange(largest + 1), rounds, rate)
    else:
        weights = np.exp(law.counts(largest))
    beyond = binom.sf(largest, rounds, rate) if largest < possible else 0.0
    # If C is Toeplitz, the first group is the worst: later ones see its sequence truncated.
    known = groups is not None and not groups.secret and unit.column is None
    each = groups.rounds if groups is not None and known else (slice(None),)
    norms = (_norms(unit, rows, separation, largest, most) for rows in each)
    return [(np.append(weights, beyond), of_group) for of_group in norms]


def _norms(unit: Mechanism, rows: slice, separation: int, largest: int, most: float) -> Floats:
    """Return bounds on ||C y|| for 0, 1, ..., ``largest`` participations in rows, and for more.

    For C Toeplitz with non-increasing columns the earliest participations attain the bound (Kalinin
    and Lampert 2024). Otherwise the bound comes from the k largest sums of the k largest entries of
    the rows of C^T C. No norm exceeds ``most``, the norm of the worst pattern of all.
    """
    column, counts = unit.column, range(1, largest + 1)
    if column is not None and (np.diff(column) <= 0).all():
        schemas = (LeastSeparation(separation, k) for k in counts)
        norms = [of_toeplitz(column, unit.bands, each).value for each in schemas]
    else:
        gram = unit.gram[rows, rows]
        sums = np.cumsum(-np.sort(-gram, axis=1), axis=1)
        columns = (sums[:, min(k, len(gram)) - 1] for k in counts)
        norms = [math.sqrt(np.sort(each)[::-1][:k].sum()) for k, each in enumerate(columns, 1)]
    return np.concatenate([[0.0], np.minimum(norms, most), [most]]) * (1 + MARGIN)


def _worst_case(sampler: Sampler, steps: int) -> Participation:
    """Return the patterns that a sampler may draw."""
    if isinstance(sampler, CyclicPoisson | BallsInBins):
        period = sampler.bands if isinstance(sampler, CyclicPoisson) else sampler.bins
        return FixedEpochs(-(-steps // period), period)
    epochs = sampler.epochs(steps)
    times = None if epochs is None else epochs.times * epochs.drawn
    return LeastSeparation(sampler.least_separation, times)


@lru_cache(maxsize=8)
def largest_norm(unit: Mechanism, sampler: Sampler) -> float:
    """Return a bound on ||C y|| over all patterns that a sampler may draw."""
    found = unit.strategy.sensitivity(_worst_case(sampler, unit.steps)).value
    epochs = sampler.epochs(unit.steps)
    if epochs is not None and epochs.times == 1 and epochs.drawn > 1 and unit.column is not None:
        # Rounds of epochs that are s apart are more than s - 1 epochs apart.
        E, products = epochs.drawn, unit.overlaps
        square = E * float(products[0])
        square += 2 * sum(
            (E - s) * float(products[(s - 1) * epochs.rounds + 1]) for s in range(1, E)
        )
        found = min(found, math.sqrt(square))
    return found
