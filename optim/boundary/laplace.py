r"""Laplace noise in whole numbers, sampled exactly from cryptographic bits.

The law is P(x) proportional to exp(-|x| / t) for whole x and a whole scale t (the discrete Laplace
law), without any error: every decision is made with whole numbers (Canonne, Kamath and Steinke
2020, The discrete Gaussian for differential privacy, algorithms 1 and 2).

**Its price.** The sparse vector technique and report noisy max are proved with one property of
their noise: that a shift by k changes a probability by at most a factor ``e^(k / t)`` (Dwork and
Roth 2014, theorem 3.23 and claim 3.9; Lyu, Su and Li 2017). Whole scores that a record moves by at
most D steps, and this law with t = b D, have it at every shift that can occur. Ties, which real
noise has with probability zero, go to a fixed candidate: whether one is chosen still is whether its
noise is below a number that a record moves by at most 2 D. So both are priced as with real noise of
scale b.

>>> from dpcal.optim.boundary.seeds import keyed_generator
>>> bits = keyed_generator(bytes(32))
>>> [whole_laplace(1000, bits) for _ in range(4)]
[544, 178, 438, -1206]
"""

from __future__ import annotations

import numpy as np

__all__ = ["whole_laplace"]

# The widest scale: products with small numbers of trials stay below 2^63.
MOST = 1 << 52


def whole_laplace(scale: int, bits: np.random.Generator) -> int:
    """Return x with probability proportional to exp(-|x| / scale), for a scale from 1 to 2^52.

    The generator's words are uniform; those of AES in counter mode, where it matters.
    """
    if not 1 <= scale <= MOST:
        raise ValueError(f"scale must be a whole number from 1 to 2^52, got {scale!r}.")
    while True:
        rest = int(bits.integers(scale))
        if not _survives(rest, scale, bits):
            continue
        size = rest
        while _survives(1, 1, bits):
            size += scale
        negative = bool(bits.integers(2))
        if size or not negative:
            return -size if negative else size


def _survives(numerator: int, denominator: int, bits: np.random.Generator) -> bool:
    """Return True with probability exp(-numerator / denominator), in [1 / e, 1]."""
    trials = 1
    while int(bits.integers(denominator * trials)) < numerator:
        trials += 1
    return trials % 2 == 1
