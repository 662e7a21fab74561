r"""What is proved of a run? The least of all its bounds, and events that it costs no more than.

**Compositions.** Rounds of a group that are as far apart as C has bands are independent.

**One random round an epoch.** With independent noise that is the event of random allocation. A
uniform subset of k of t rounds is drawn by dividing the rounds at random into k blocks of at least
floor(t / k), and drawing one round of each. Whoever knows the blocks, which do not depend on the
record, sees one round of each of k epochs; divergences are jointly convex, so that not knowing them
costs no more (compare Feldman and Shenfeld 2025). Epochs that repeat their rounds are one
observation of a longer contribution.

**Residues.** A larger covariance of the likelihood terms never costs less
(docs/internals/correlated_proofs.md, "Mixed signs"). Let the adversary know the round modulo w,
which does not depend on the record. Two rounds are then the same, or w or more apart, where columns
of C overlap little or not at all. So the covariance of two patterns is at most c + (d - c) 1{the
same}, with d the largest squared norm of a pattern and c the largest overlap of two that are w or
more apart. Equality is the pair of a Gaussian mechanism of squared mean c and of random allocation
to a w-th of the rounds, an exact price. Epochs repeat the first one's round, or there is one.

>>> bound = allocated(norm=1.0, rounds=100, epochs=1)
>>> 2.1544e-3 < bound.proof(0.25).lower < bound.delta(0.25) < 2.1635e-3
True
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import BallsInBins
>>> mechanism = Mechanism.of(LambdaCGD(200, 0.5), noise_multiplier=4.0)
>>> (bound,) = spaced(mechanism, BallsInBins(50))
>>> print(f"{bound.epsilon(1e-4).value:.3f}")  # it is 3.050 if the rounds are known
0.943
>>> from dpcal.accountants.samplers import Poisson
>>> bound = proved(Mechanism.of(LambdaCGD(40, 0.5), noise_multiplier=6.36), Poisson(0.1))
>>> found = bound.epsilon(1e-5)
>>> abs(bound.delta(found.value) / 1e-5 - 1) < 1e-3
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.correlated.bounds.adding import Adding
from dpcal.accountants.correlated.bounds.base import Bound, Directions, Least, Proof, Worst
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.replicas import ReplicaMoments
from dpcal.accountants.correlated.bounds.revealed import revealed
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.loaders.subsets import SubsetBelow
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.participations import Epochs, Groups
from dpcal.accountants.samplers import MinSeparation, Sampler

__all__ = ["Reduction", "allocated", "joined", "proved", "spaced"]

Floats = NDArray[np.float64]

# Relative rounding of sums of products, far above that of a Fourier transform of a million.
_ROUNDING = 1e-9
# Most products of patterns, 32 MB.
_MOST_PATTERNS = 2000
_COMPOSITION = "composition of sampled Gaussians, {}"
# Norm from which noise reveals participations: the bound for known participations is as good.
LARGEST_NORM = 20.0


@dataclass(frozen=True, eq=False)
class Reduction(Bound):
    """Bounds on both directions by the price of an event.

    Parameters
    ----------
    event
        The event.
    name
        Name of the bound; ``{}`` stands for the method of the event.
    relation
        The neighboring relation that the event is priced under.
    exact
        Whether the run has the price of the event, and is not only bounded by it.
    below
        Lower bounds, of a run that the event bounds.
    """

    event: events.DpEvent
    name: str = "{}"
    relation: str = "add-or-remove-one"
    exact: bool = False
    below: SubsetBelow | None = None

    def proof(self, epsilon: float) -> Proof:
        """Return a bound on delta at an epsilon >= 0."""
        found = _delta(self.event, epsilon, self.relation)
        known = found.lower if self.exact else 0.0
        lower = known if self.below is None else self.below.delta(epsilon)
        return Proof(found.upper, self.name.format(found.method), lower)

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        found = _epsilon(self.event, delta, self.relation)
        known = found.lower if self.exact else 0.0
        lower = known if self.below is None else self.below.epsilon(delta)
        return Proof(found.upper, self.name.format(found.method), lower)

    def log_mgf(self, c: float, direction: str) -> float:
        """Return a bound on log M(c) of the event."""
        totals = _totals(self.event, self.relation)
        total = totals.get(direction) or totals["both"]
        try:
            return float(total.moments([c])[0][0])
        except OutOfReach:
            return float(total.log_mgf_bounds(np.array([c]))[0])


# Both directions rest on one event, and so do epsilon and its lower end.
@lru_cache(maxsize=16)
def _epsilon(event: events.DpEvent, delta: float, relation: str) -> Epsilon:
    return event_epsilon(event, delta=delta, neighboring_relation=relation)


@lru_cache(maxsize=16)
def _delta(event: events.DpEvent, epsilon: float, relation: str) -> Delta:
    return event_delta(event, epsilon=epsilon, neighboring_relation=relation)


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

    If C is Toeplitz, the columns of later groups are those of the first one, cut off.
    """
    norms = np.sqrt(mechanism.shape.energies)
    for rows in groups.rounds if mechanism.column is None else groups.rounds[:1]:
        parts: list[tuple[events.DpEvent, int]] = []
        for norm, count in zip(*np.unique(norms[rows], return_counts=True), strict=True):
            step: events.DpEvent = events.GaussianDpEvent(float(mechanism.sigma / norm))
            if groups.rate != 1:
                step = events.PoissonSampledDpEvent(float(groups.rate), step)
            parts.append((step, int(count)))
        yield _composed(parts)


def allocated(norm: float, rounds: int, epochs: int) -> Reduction:
    """Return the price of one uniformly random round an epoch, in both directions.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs, whose rounds are drawn independently.
    """
    epoch = events.RandomAllocationDpEvent((1 - 1e-15) / norm, rounds)
    return Reduction(_composed([(epoch, epochs)]), exact=True)


def of_epochs(mechanism: Mechanism, epochs: Epochs) -> Reduction | None:
    """Return the price of random rounds of each epoch with independent equal noise; None if large.

    Several rounds an epoch have a lower end of their own.
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
    """Return the least bound by residues of rounds, by its size, if one gains anything.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        With one round that all epochs use.
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
        parts.append((events.GaussianDpEvent(1 / math.sqrt(shared * (1 + _ROUNDING))), 1))
    return [Reduction(_composed(parts), "residues of rounds revealed, {}")]


def _known_residues(gram: Floats, width: int) -> tuple[float, float, int]:
    """Return the squared mean that all patterns share, a pattern's own beside it, and rounds.

    The rounds are the least number that a round is drawn from, once its residue is known.
    """
    place = np.arange(len(gram))
    same = (place[:, None] - place) % width == 0
    np.fill_diagonal(same, False)
    shared = float(gram[same].max()) * (1 + _ROUNDING)
    own = float(np.diagonal(gram).max()) * (1 + _ROUNDING) - shared
    return shared, own, len(gram) // width


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
    twice = 2 if relation == "replace-one" else 1
    public = revealed(Mechanism(mechanism.shape, mechanism.sigma / twice), sampler)
    groups, epochs = sampler.groups(mechanism.steps), sampler.epochs(mechanism.steps)
    if groups is not None and sampler.least_separation >= mechanism.bands:
        how = relation if twice == 2 else "add-or-remove-one"
        whole = compositions(mechanism, groups)
        parts = [Reduction(each, _COMPOSITION, how, exact=not groups.secret) for each in whole]
        exact = parts[0] if len(parts) == 1 else Worst(tuple(parts))
        # By joint convexity, the bound of the worst group holds for a secret one.
        return Least((exact, public)) if groups.secret else exact
    if twice == 2:
        return Least((TwoBlanks(proved(mechanism, sampler)), public))
    if epochs is not None and mechanism.bands == 1 and mechanism.column is not None:
        found = of_epochs(mechanism, epochs)
        if found is not None:
            return found if found.exact else Least((found, public))
        return public
    both, patterns = (*spaced(mechanism, sampler), public), sampler.equally_likely(mechanism.steps)
    joining = joined(mechanism, sampler)
    if joining is not None:
        adding = Adding.of(mechanism, joining)
        return Directions(
            (Least((ReplicaMoments(mechanism, joining), *both)), Least((adding, *both)))
        )
    if patterns is not None:
        of_bins = Adding.of_bins(mechanism.products(patterns))
        return Directions((Least(both), Least((of_bins, *both))))
    return Least(both)


def joined(mechanism: Mechanism, sampler: Sampler) -> Joining | None:
    """Return how a record joins, the first of its groups; None if bounds on it do not apply.

    The first group is the worst if C is Toeplitz, and by joint convexity no secret one is worse.
    """
    found = Joining.of(sampler, mechanism.steps)
    if found is None or found.epoch:
        return found
    waits = isinstance(sampler, MinSeparation) and sampler.warm_start
    alike = mechanism.column is not None or (mechanism.bands <= found.separation and not waits)
    known = alike or (found.separation == found.period == 1)
    return found if known and found.chances.max() < 1 else None


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

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta at an epsilon >= 0."""
        half = 0.5 * epsilon
        return min(1.0, self.one.delta(half) * (1 + math.exp(min(half, 600.0))) * (1 + 1e-12))
