"""Which few buffers are best for a long run? Sums of geometric series in closed form.

The column of C = BLT is a rational function c(x) = prod_j (1 - e_j x) / prod_j (1 - d_j x), with
zeros e_j between the decays d_j where scales are positive: with gaps u_j = 1 - d_j and v_j = 1 -
e_j, u_1 < v_1 < u_2 < v_2 < ... . By partial fractions,

    c_0 = 1, c_k = sum_j s_j d_j^(k-1),    s_j = prod_k (v_k - u_j) / prod_{k != j} (u_k - u_j),
    beta_k = g_0 + sum_j g_j e_j^k,        g_j = r_j / v_j, g_0 = prod_k u_k / v_k,

where beta is the column of A C^-1 for prefix sums, and r_j is s_j with the gaps exchanged and the
sign turned. Squared norms of both columns are sums over pairs of geometric series, which take
O(buffers^2) for any number of steps.

>>> import numpy as np
>>> from dpcal.accountants.matrix import BLT, Single
>>> gaps = np.array([0.01, 0.05, 0.2, 0.6])
>>> blt = BLT(50, *buffers_of(gaps))
>>> found = np.exp(0.5 * log_product(gaps, 50, 50, 1, "max"))
>>> bool(abs(found / (blt.max_error() * blt.sensitivity(Single()).value) - 1) < 1e-12)
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[Any]

_LARGEST_GAP = 0.3
# In multiples of 1 / steps, at the starts of two searches: one finds the minimum.
_SMALLEST_GAPS = (0.3, 3.0)
# Logarithm of the smallest log-ratio of neighboring gaps: differences lose at most six digits.
_CLOSEST = -12.0
# Sum of the log-ratios of neighboring gaps: no gap is rounded to 0.
_WIDEST = 600.0
# Imaginary: no difference is taken, so that the only error is rounding.
_STEP = 1e-30
# Below this two terms of an expansion are closer than a difference of two sums.
_SLOW = 1e-4


def _series(logs: Numbers, count: int) -> Numbers:
    """Return sum_{k < count} e^(k log) for logarithms of ratios, <= 0."""
    falls = logs.real < 0
    safe = np.where(falls, logs, -1.0)
    return np.where(falls, np.expm1(count * safe) / np.expm1(safe), float(count))


def _falling_series(logs: Numbers, count: int) -> Numbers:
    """Return sum_{k < count} (1 - k / count) e^(k log) for logarithms of ratios, <= 0."""
    slow = -logs.real * count < _SLOW
    safe = np.where(slow, -1.0, logs)
    exact = (1 - np.exp(safe) * _series(safe, count) / count) / -np.expm1(safe)
    return np.where(slow, 0.5 * (count + 1) + logs * (count * count - 1) / 6, exact)


def _residues(gaps: Numbers, others: Numbers) -> Numbers:
    """Return prod_k (others_k - gaps_j) / prod_{k != j} (gaps_k - gaps_j)."""
    between = np.subtract.outer(gaps, gaps).T + np.eye(len(gaps))
    return np.asarray(np.prod(np.subtract.outer(others, gaps).T / between, axis=1))


def buffers_of(gaps: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return decays and scales for gaps u_1 < v_1 < u_2 < ..., shape (2 buffers,), in (0, 1).

    >>> decays, scales = buffers_of(np.array([0.1, 0.4]))
    >>> decays, round(scales[0], 12)
    ((0.9,), 0.3)
    """
    scales = _residues(gaps[0::2], gaps[1::2])
    return tuple((1 - gaps[0::2]).tolist()), tuple(scales.tolist())


def log_product(gaps: Numbers, steps: int, separation: int, times: int, error: str) -> Any:
    """Return log of squared error times squared sensitivity, for prefix sums.

    Parameters
    ----------
    gaps
        u_1 < v_1 < u_2 < ..., shape (2 buffers,), in (0, 1).
    steps
        Number of steps.
    separation, times
        Steps between participations of a record, and their number, from the first step on.
    error
        ``"mean"`` or ``"max"``.
    """
    u, v = gaps[0::2], gaps[1::2]
    g = np.append(-_residues(v, u) / v, np.prod(u / v))
    logs = np.append(np.log1p(-v), 0.0)
    series = _series if error == "max" else _falling_series
    square = g @ series(np.add.outer(logs, logs), steps) @ g
    return np.log(square) + np.log(_sensitivity(u, _residues(u, v), steps, separation, times))


def _sensitivity(u: Numbers, scales: Numbers, steps: int, separation: int, times: int) -> Any:
    """Return the squared norm of the sum of the columns of one record's steps."""
    logs = np.log1p(-u)
    starts = np.arange(times) * separation
    lengths = np.minimum(separation, steps - starts)
    lengths[-1] = steps - starts[-1]
    # Before step m separation, row k holds sum_j past_jm decays_j^k of earlier columns.
    ratio = separation * logs
    ahead = np.expm1(np.multiply.outer(np.arange(times), ratio)) / np.expm1(ratio)
    past = scales * np.exp((separation - 1) * logs) * ahead
    # Row 0 of a part: 1 + sum_j past_j; row k >= 1: sum_j (past_j d_j + s_j) d_j^(k - 1).
    total = ((1 + past.sum(axis=1)) ** 2).sum()
    later = past * (1 - u) + scales
    pairs = np.add.outer(logs, logs)
    kinds, of = np.unique(lengths, return_inverse=True)
    for place, length in enumerate(kinds):
        rows = later[of == place]
        total = total + np.einsum("mi,ij,mj->", rows, _series(pairs, int(length) - 1), rows)
    return total


def _gaps(free: Numbers) -> Numbers:
    """Return increasing gaps, the last 1, from the logarithms of the logarithms of their ratios."""
    return np.asarray(np.exp(-np.cumsum(np.exp(free)))[::-1])


def best_buffers(
    steps: int, separation: int, times: int, buffers: int, error: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return decays and scales that minimize (locally) error times sensitivity.

    Parameters
    ----------
    steps
        Number of steps.
    separation, times
        Steps between participations of a record, and their number, from the first step on.
    error
        ``"mean"`` or ``"max"``.
    buffers
        Number >= 1 of buffers.
    """
    from scipy.optimize import minimize

    def of(free: Any) -> Any:
        shifted = free + 1j * _STEP * np.eye(len(free))
        found = [log_product(_gaps(row), steps, separation, times, error) for row in shifted]
        return float(found[0].real), np.array([each.imag for each in found]) / _STEP

    bounds = [(_CLOSEST, float(np.log(_WIDEST / (2 * buffers))))] * (2 * buffers)
    options: Any = {"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 30}
    best = None
    for smallest in _SMALLEST_GAPS:
        logs = np.linspace(np.log(_LARGEST_GAP), np.log(smallest / (10 + steps)), 2 * buffers)
        start: Any = np.log(-np.diff(np.concatenate([[0.0], logs])))
        found = minimize(of, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        best = found if best is None or found.fun < best.fun else best
    assert best is not None
    return buffers_of(_gaps(best.x))
