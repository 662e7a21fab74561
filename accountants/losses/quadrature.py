"""Complex functions of quadrature points that keep digits, and sizes of their rounding.

>>> complex_log1p(np.array([1e-30 + 0j])).tolist()  # no digit is lost next to 0
[(1e-30+0j)]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcal.accountants.losses.base import Complexes, Reals

__all__ = ["argument_sizes", "complex_log1p"]

# Stands for log 0, in nats: its multiples stay finite, and their exponentials are 0.
_LOG_OF_ZERO = -1e6


def complex_log1p(z: Any) -> Complexes:
    """Return log(1 + z) with full relative precision for small z; huge and finite at z = -1."""
    a, b = z.real, z.imag
    with np.errstate(divide="ignore"):
        near = 0.5 * np.log1p(a * (2 + a) + b * b)
        size = np.where(np.abs(z) < 0.5, near, np.log(np.abs(1 + z)))
    return np.asarray(np.maximum(size, _LOG_OF_ZERO) + 1j * np.arctan2(b, 1 + a))


def argument_sizes(q: float, u: Complexes, ell: Complexes) -> Reals:
    """Return the size of u in ell = log(1 - q + q exp(u)), times the posterior probability."""
    return np.asarray(np.abs(u) * np.exp(np.minimum(math.log(q) + (u - ell).real, 0.0)))
