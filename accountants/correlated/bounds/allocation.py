r"""What does one random round an epoch cost, without draws? Independent and correlated noise.

With independent noise the transform of the loss is inverted on contours
(:mod:`dpcal.accountants.losses.allocation`). With correlated noise there is an upper bound.

A larger covariance of the likelihood terms never costs less (docs/internals/correlated_proofs.md,
"Mixed signs": E F(u exp(X - Var / 2)) increases in each entry). Let the adversary know the round
modulo w, which does not depend on the record. Two rounds are then the same, or w or more apart,
where columns of C overlap little or not at all. So the covariance of two patterns is at most c + (d
- c) 1{the same}, with d the largest squared norm of a pattern and c the largest overlap of two that
are w or more apart. Equality is the pair of a Gaussian mechanism of squared mean c and of random
allocation to a w-th of the rounds, an exact price. Epochs repeat the first one's round, or there is
one.

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

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import events
from dpcal.accountants.correlated.bounds.reductions import Reduction, composed
from dpcal.accountants.correlated.mechanism import Mechanism
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


def spaced(mechanism: Mechanism, sampler: Sampler) -> Reduction | None:
    """Return the least bound by residues of rounds, by its size, or None if none gains anything.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    sampler
        With one round that all epochs use.
    """
    epochs = sampler.epochs(mechanism.steps)
    if epochs is None or epochs.times != 1 or epochs.drawn != 1 or epochs.rounds > _MOST_PATTERNS:
        return None
    patterns = sampler.equally_likely(mechanism.steps)
    gram = mechanism.gram if patterns is None else mechanism.products(patterns)
    powers = {2**k for k in range(1, len(gram).bit_length())} | {mechanism.bands}
    found = [_known_residues(gram, w) for w in sorted(powers) if 2 * w <= len(gram)]
    sizes = [
        shared + min(math.expm1(min(own, 500.0)) / rounds, own) if own > 0 else math.inf
        for shared, own, rounds in found
    ]
    if min(sizes, default=math.inf) == math.inf:
        return None
    shared, own, rounds = found[int(np.argmin(sizes))]
    allocation = events.RandomAllocationDpEvent(1 / math.sqrt(own), rounds)
    parts: list[tuple[events.DpEvent, int]] = [(allocation, 1)]
    if shared > 0:
        parts.append((events.GaussianDpEvent(1 / math.sqrt(shared * (1 + _ROUNDING))), 1))
    return Reduction(((1.0, composed(parts)),), "residues of rounds revealed, {}")


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
