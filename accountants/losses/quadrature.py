"""Functions of quadrature points that keep digits, and sizes of their rounding.

Points are computed in the widest numbers of the machine, and rounded once.

>>> complex_log1p(np.array([1e-30 + 0j])).tolist()  # no digit is lost next to 0
[(1e-30+0j)]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.losses.base import Complexes, Reals
from dpcal.accountants.rounding import UNIT

# Exponentials of larger numbers overflow, and 1 - q is small next to q exp(u).
_FAR = 700.0
# Stands for log 0, in nats: its multiples stay finite, and their exponentials are 0.
_LOG_OF_ZERO = -1e6


def complex_log1p(z: Any) -> Complexes:
    """Return log(1 + z) with full relative precision for small z; huge and finite at z = -1."""
    a, b = z.real, z.imag
    with np.errstate(divide="ignore"):
        near = 0.5 * np.log1p(a * (2 + a) + b * b)
        size = np.where(np.abs(z) < 0.5, near, np.log(np.abs(1 + z)))
    return np.asarray(np.maximum(size, _LOG_OF_ZERO) + 1j * np.arctan2(b, 1 + a))


def unit_of(values: NDArray[Any]) -> float:
    """Return the rounding of numbers in units of a double's: 1, or 1 / 2048 for wider ones."""
    return float(np.finfo(values.dtype).eps) / UNIT


def log_mixture(q: float | Reals, u: NDArray[Any]) -> NDArray[Any]:
    """Return log(1 - q + q exp(u)), abs(Im u) < pi, without overflow, with digits of small values.

    Parameters
    ----------
    q
        Probability in (0, 1), or one for each number.
    u
        Real or complex numbers, in the precision of the result.
    """
    log1p = complex_log1p if np.iscomplexobj(u) else np.log1p
    share, far = np.asarray(q, u.real.dtype), u.real > _FAR
    moderate = np.where(far, 0.0, u)
    grown = share * np.expm1(moderate)
    with np.errstate(divide="ignore"):
        # No difference from 1 is taken here, which would lose the digits of 1 - q.
        whole = np.log((1 - share) + share * np.exp(moderate))
        near = np.where(np.abs(grown) < 0.5, log1p(grown), whole)
    beyond = u + np.log(share) + log1p((1 - share) / share * np.exp(-np.where(far, u, _FAR)))
    return np.where(far, beyond, near)


def argument_sizes(q: float, u: NDArray[Any], ell: NDArray[Any]) -> Reals:
    """Return the size of u in ell = log(1 - q + q exp(u)), times the posterior probability."""
    return np.asarray(np.abs(u) * np.exp(np.minimum(math.log(q) + (u - ell).real, 0.0)))
