r"""What does one random round an epoch cost, without draws? Independent and correlated noise.

With independent noise the transform of the loss is inverted on contours
(:mod:`dpcal.accountants.losses.allocation`). With correlated noise there is an upper bound.

A larger covariance of the likelihood terms never costs less (docs/correlated.md, "Mixed signs": E
F(u exp(X - Var / 2)) increases in each entry). Let the adversary know each epoch's round modulo w,
which does not depend on the record. Two rounds of one epoch are then the same, or w or more apart,
where columns of C overlap little or not at all. So the covariance of two patterns is at most

    c + sum over epochs of (d - x) 1{the epoch's rounds are the same},

with d the largest norm of a column, squared, x the largest overlap of two columns that are w or
more apart, and c the sum of all overlaps that two patterns may have beside the rounds that they
share. Equality is the pair of a Gaussian mechanism of squared mean c and of random allocation to a
w-th of the rounds, an exact price. Epochs meet at their ends: where the round is one of an epoch's
last w - 1, it is made known, as a Gaussian mechanism. How many epochs these are is binomial, and
delta is at most the mean over their number (joint convexity).

Where each epoch uses the first one's round, patterns are few, and their products are computed.

>>> bound = allocated(norm=1.0, rounds=100, epochs=1)
>>> 2.1544e-3 < bound.lower_delta(0.25) < bound.delta(0.25) < 2.1635e-3
True
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import BallsInBins
>>> mechanism = Mechanism.of(LambdaCGD(200, 0.5), noise_multiplier=4.0)
>>> bound = spaced(mechanism, BallsInBins(50))
>>> print(f"{bound.epsilon(1e-4).value:.3f}")  # it is 3.050 if the rounds are known
0.943
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import events
from dpcal.accountants.correlated.bounds.reductions import Reduction, composed
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Epochs
from dpcal.accountants.samplers import Sampler

__all__ = ["LARGEST_NORM", "allocated", "spaced"]

Floats = NDArray[np.float64]

# Relative rounding of sums of products, far above that of a Fourier transform of a million.
_ROUNDING = 1e-9
# Most products of patterns, 32 MB.
_MOST_PATTERNS = 2000
# Norm from which noise reveals participations: the bound for known participations is as good.
LARGEST_NORM = 20.0


def allocated(norm: float, rounds: int, epochs: int, *, exact: bool = True) -> Reduction:
    """Return the price of one uniformly random round an epoch, in both directions.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs, whose rounds are drawn independently.
    exact
        Whether the run is this allocation, and does not only cost no more.
    """
    epoch = events.RandomAllocationDpEvent(1 / norm, rounds)
    return Reduction(((1.0, composed([(epoch, epochs)])),), "{}", exact=exact)


@dataclass(frozen=True, eq=False)
class Spaced:
    """Known residues of the rounds: a Gaussian and an allocation.

    Parameters
    ----------
    shared
        Squared mean of the Gaussian mechanism, over sigma^2.
    own
        Squared norm of a round's contribution beside it, > 0, over sigma^2.
    rounds
        Least number of rounds that a round is drawn from, once its residue is known.
    epochs
        Number of epochs.
    known, known_cost
        Chance that an epoch's round is made known, and the squared mean that this adds.
    """

    shared: float
    own: float
    rounds: int
    epochs: int
    known: float = 0.0
    known_cost: float = 0.0

    @property
    def worth(self) -> float:
        """Squared mean of about the Gaussian mechanism that the bound is, for many epochs."""
        gained = self.epochs * math.expm1(min(self.own, 500.0)) / self.rounds
        revealed = self.known * self.epochs * self.known_cost
        return self.shared + min(gained, self.epochs * self.own) + revealed

    @property
    def bound(self) -> Reduction:
        """The mean over the number of epochs whose rounds are made known, each rounded up."""
        from scipy.stats import binom

        counts = [0, *(2**k for k in range(self.epochs.bit_length())), self.epochs]
        counts = sorted({count for count in counts if count <= self.epochs})
        if not self.known:
            counts, chances = [0], [1.0]
        else:
            reached = binom.sf(np.array([-1, *counts]), self.epochs, self.known)
            chances = (-np.diff(reached) * (1 + _ROUNDING) + 1e-300).tolist()
        parts = zip(chances, map(self._event, counts), strict=True)
        return Reduction(tuple(parts), "residues of rounds revealed, contour")

    def _event(self, known: int) -> events.DpEvent:
        allocation = events.RandomAllocationDpEvent(1 / math.sqrt(self.own), self.rounds)
        parts: list[tuple[events.DpEvent, int]] = [(allocation, self.epochs - known)]
        mean = self.shared + known * self.known_cost
        if mean > 0:
            parts.append((events.GaussianDpEvent(1 / math.sqrt(mean * (1 + _ROUNDING))), 1))
        return composed(parts)


def spaced(mechanism: Mechanism, sampler: Sampler) -> Reduction | None:
    """Return the least of the bounds, by their sizes, or None if none gains anything.

    Parameters
    ----------
    mechanism
        With a Toeplitz C.
    sampler
        With one round an epoch.
    """
    epochs = sampler.epochs(mechanism.steps)
    if epochs is None or epochs.times != 1 or mechanism.column is None:
        return None
    patterns = sampler.equally_likely(mechanism.steps) if epochs.repeated > 1 else None
    if epochs.repeated > 1 and (patterns is None or patterns.shape[1] > _MOST_PATTERNS):
        return None
    if patterns is None:
        products = mechanism.overlaps
        made = (_of_epochs(products, epochs, width) for width in _widths(mechanism, epochs.rounds))
    else:
        gram = mechanism.products(patterns)
        made = (_of_bins(gram, width) for width in _widths(mechanism, epochs.rounds))
    least = min((each for each in made if each.own > 0), key=lambda at: at.worth, default=None)
    return None if least is None else least.bound


def _widths(mechanism: Mechanism, rounds: int) -> list[int]:
    """Return numbers of residues, with which rounds are drawn from at least two."""
    powers = {2**k for k in range(1, rounds.bit_length())}
    return [width for width in sorted(powers | {mechanism.bands}) if 2 * width <= rounds]


def _of_epochs(products: Floats, epochs: Epochs, width: int) -> Spaced:
    """Return the bound for epochs that draw afresh, with so many residues."""
    E, M = epochs.drawn, epochs.rounds
    apart = float(products[width])
    # Patterns of two epochs overlap twice; those of neighbors are width or more apart.
    shared = E * apart + 2 * (E - 1) * apart
    shared += 2 * sum((E - s) * float(products[(s - 1) * M + 1]) for s in range(2, E))
    own = float(products[0]) - apart
    if E == 1:
        return Spaced(shared, own, M // width, 1)
    # A known round overlaps with rounds of the next epoch.
    cost = float(products[0]) + 2 * float(products[1])
    return Spaced(shared, own, max(1, (M - width + 1) // width), E, (width - 1) / M, cost)


def _of_bins(gram: Floats, width: int) -> Spaced:
    """Return the bound for one round that all epochs use, with so many residues."""
    place = np.arange(len(gram))
    same = (place[:, None] - place) % width == 0
    np.fill_diagonal(same, False)
    shared = float(gram[same].max()) * (1 + _ROUNDING)
    own = float(np.diagonal(gram).max()) * (1 + _ROUNDING) - shared
    return Spaced(shared, own, len(gram) // width, 1)
