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
from typing import ClassVar

from dpcal.accountants.correlated.bounds.adding import Adding
from dpcal.accountants.correlated.bounds.base import Bound, Directions, Least, Worst
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.reductions import (
    Reduction,
    compositions,
    of_epochs,
    spaced,
)
from dpcal.accountants.correlated.bounds.replicas import ReplicaMoments
from dpcal.accountants.correlated.bounds.revealed import revealed
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.samplers import MinSeparation, Sampler

__all__ = ["TwoBlanks", "joined", "proved"]

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
    twice = 2 if relation == "replace-one" else 1
    public = revealed(Mechanism(mechanism.shape, mechanism.sigma / twice), sampler)
    groups, epochs = sampler.groups(mechanism.steps), sampler.epochs(mechanism.steps)
    if groups is not None and sampler.least_separation >= mechanism.bands:
        how = relation if twice == 2 else "add-or-remove-one"
        events = compositions(mechanism, groups)
        parts = [Reduction(each, _COMPOSITION, how, exact=not groups.secret) for each in events]
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
