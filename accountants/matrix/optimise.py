"""The member of a family with the least error at a given epsilon.

The objective is log(squared error) + log(squared sensitivity): the sensitivity is a part of it, not
a penalty, so the scale of C does not matter. For Toeplitz C with column c, beta = a / c as power
series and s the sum of the earliest pattern's columns,

    squared error = sum_k w_k beta_k^2,    squared sensitivity = sum_k s_k^2,

with w = 1 for the largest and w_k = (T - k) / T for the mean error. Since d beta = -(beta / c) dc,
the gradient is two correlations. With learning rates, a quadratic form stands for the first sum.

>>> import numpy as np
>>> from scipy.optimize import check_grad
>>> objective = Objective(50, None, Workload(), "mean")
>>> def value(head): return objective.banded(np.append(1.0, head))[0]
>>> def slope(head): return objective.banded(np.append(1.0, head))[1][1:]
>>> bool(check_grad(value, slope, np.array([0.5, 0.3])) < 1e-6)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from dpcal._internal import validate
from dpcal.accountants.limits import hold
from dpcal.accountants.matrix.buffers import best_buffers
from dpcal.accountants.matrix.gram import best_gram
from dpcal.accountants.matrix.participation import Participation, Single
from dpcal.accountants.matrix.recurrences import WIDE, inverse_series
from dpcal.accountants.matrix.workloads import PREFIX_SUMS, Workload

Array = NDArray[np.float64]

ERRORS = ("mean", "max")

# Steps from which buffers come from closed forms: the same minimum, in a second at any length.
_LONG = 2**14


class Objective:
    """Log of squared error times squared sensitivity, and its gradient.

    Parameters
    ----------
    steps
        Number T of steps.
    participation
        The schema, at most once when None. The sensitivity is the norm of its earliest pattern, the
        worst one for columns >= 0 that never increase, and for bands that do not overlap.
    workload
        The workload.
    error
        ``"mean"`` or ``"max"``.
    """

    def __init__(
        self, steps: int, participation: Participation | None, workload: Workload, error: str
    ) -> None:
        self.steps = validate.count(steps=steps)
        hold(8.0 * self.steps, f"steps={self.steps}")
        self.places = (Single() if participation is None else participation).earliest(self.steps)
        validate.instance(Workload, workload=workload)
        self.workload, self.error = workload, validate.choice(ERRORS, error=error)
        self._pattern = np.zeros(self.steps)
        self._pattern[self.places] = 1.0
        if workload.learning_rates is None:
            self._workload = workload.coefficients(self.steps)
            falling = np.arange(self.steps, 0, -1) / self.steps
            self._weights = falling if error == "mean" else np.ones(self.steps)
        elif error == "mean":
            self._workload = np.power(workload.momentum, np.arange(self.steps), dtype=np.float64)
            self._weights = _scheduled(workload, self.steps)
        else:
            raise ValueError("error must be 'mean' for a workload with learning_rates, got 'max'.")

    def _weighted(self, beta: Array) -> Array:
        """Return half of the gradient of the squared error in beta."""
        return self._weights * beta if self._weights.ndim == 1 else self._weights @ beta

    def banded(self, head: Array) -> tuple[float, Array]:
        """Return the value and the gradient in the first coefficients; O(T bands) if they are few.

        Many of them take O(T log T).
        """
        from scipy.signal import fftconvolve, lfilter

        if len(head) > WIDE:
            inverse = inverse_series(head, self.steps, fast=True)
            beta = fftconvolve(inverse, self._workload)[: self.steps]
            weighted = self._weighted(beta)
            slope = fftconvolve(inverse, beta)[: self.steps]
            pull = fftconvolve(weighted, slope[::-1])[self.steps - 1 :][: len(head)]
            return self._product(float(weighted @ beta), pull, head, len(head))
        beta = lfilter([1.0], head, self._workload)
        weighted = self._weighted(beta)
        slope = lfilter([1.0], head, beta)
        size, steps = len(head), self.steps
        pull = np.array([weighted[lag:] @ slope[: steps - lag] for lag in range(size)])
        return self._product(float(weighted @ beta), pull, head, size)

    def rational(self, numerator: Array, denominator: Array, column: Array) -> tuple[float, Array]:
        """Return the value and the gradient in the whole column numerator / denominator.

        Takes O(T degree + T log T); both polynomials are given by their coefficients.
        """
        from scipy.signal import fftconvolve, lfilter

        beta = lfilter(denominator, numerator, self._workload)
        weighted = self._weighted(beta)
        slope = lfilter(denominator, numerator, beta)
        pull = fftconvolve(weighted, slope[::-1])[self.steps - 1 :]
        return self._product(float(weighted @ beta), pull, column, self.steps)

    def _product(self, error: float, pull: Array, head: Array, size: int) -> tuple[float, Array]:
        """Return the log of squared error times squared sensitivity, and its gradient."""
        from scipy.signal import fftconvolve

        total = fftconvolve(self._pattern, head)[: self.steps]
        push = fftconvolve(total, self._pattern[::-1])[self.steps - 1 :][:size]
        square = float(total @ total)
        return np.log(error) + np.log(square), -2 * pull / error + 2 * push / square


def _scheduled(workload: Workload, steps: int) -> Array:
    """Return the matrix Q of squared errors beta^T Q beta under a learning-rate schedule.

    A is D R M, with decays, rates and momenta. For beta the column of M C^-1 and S = (D R)^T D R,

        Q[j, k] = sum_u S[u + j, u + k],    S[s, t] = R_s R_t decay^|s - t| sum_i decay^(2 i),

    over the i < T - max(s, t): diagonals of Q are sums along the diagonals of S.
    """
    hold(2.0 * steps**2, f"steps={steps} with learning rates")
    rates, powers = workload.rates(steps), workload.decay ** np.arange(steps)
    left, Q = np.cumsum(powers**2)[::-1], np.empty((steps, steps))
    for lag in range(steps):
        entries = rates[: steps - lag] * rates[lag:] * powers[lag] * left[lag:]
        sums = np.cumsum(entries[::-1])[::-1]
        Q[np.arange(steps - lag), np.arange(lag, steps)] = sums
        Q[np.arange(lag, steps), np.arange(steps - lag)] = sums
    return Q


def checked_bands(name: str, bands: int, steps: int) -> int:
    """Return a number of bands in [1, steps].

    Raises
    ------
    ValueError
        If the number is outside this range.
    """
    count = validate.count(**{name: bands})
    if count > steps:
        raise ValueError(f"{name} must be at most steps={steps}, got {bands!r}.")
    return count


def banded(objective: Objective, bands: int) -> tuple[int, Array]:
    """Return bands, and the best coefficients c_0 = 1, c_1, ... in [0, 1], by L-BFGS-B."""
    checked_bands("bands", bands, objective.steps)
    start: Array = np.cumprod(1 - 0.5 / np.arange(1, bands), dtype=np.float64)

    def of(tail: Array) -> tuple[float, Array]:
        value, gradient = objective.banded(np.append(1.0, tail))
        return value, gradient[1:]

    if bands == 1:
        return 1, np.ones(1)
    return bands, np.append(1.0, _least(of, start, [(0.0, 1.0)] * len(start)))


def _least(of: Callable[..., Any], start: Array, bounds: list[tuple[float, float]]) -> Array:
    """Return the (local) minimiser of a function that is given with its gradient."""
    from scipy.optimize import minimize

    found = minimize(
        of,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 2000, "maxfun": 20_000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30},
    )
    return np.asarray(found.x)


def blt(objective: Objective, buffers: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the decays and scales of the best buffers found, from a fit to the square root.

    Decays are sigmoids and scales exponentials of free numbers, so that all stay positive.
    """
    from scipy.optimize import nnls

    count, steps = validate.count(buffers=buffers), objective.steps
    if steps == 1:
        return (0.0,) * count, (0.0,) * count
    if steps > _LONG and objective.workload == PREFIX_SUMS:
        places = objective.places
        separation = int(places[1] - places[0]) if len(places) > 1 else steps
        return best_buffers(steps, separation, len(places), count, objective.error)
    lags = np.arange(steps - 1)

    def of(free: Array) -> tuple[float, Array]:
        decays, scales = expit(free[:count]), np.exp(free[count:])
        powers = decays[:, None] ** lags
        column = np.append(1.0, scales @ powers)
        value, gradient = objective.rational(*_polynomials(decays, scales), column)
        tail = gradient[1:]
        by_scale = powers @ tail
        by_decay = scales * ((powers * lags) @ tail) / decays
        return value, np.concatenate([by_decay * decays * (1 - decays), by_scale * scales])

    decays = _spread_decays(steps, count)
    root = np.cumprod(1 - 0.5 / np.arange(1, steps))
    weights = 1 / np.sqrt(1.0 + lags)
    powers = decays[:, None] ** lags
    scales, _ = nnls((powers * weights).T, root * weights)
    start = np.concatenate([logit(decays), np.log(np.maximum(scales, 1e-4))])
    longest = float(np.log(1e4 * steps))
    found = _least(of, start, [(-8.0, longest)] * count + [(-16.0, 0.0)] * count)
    order = np.argsort(-found[:count])
    best, sizes = expit(found[:count])[order], np.exp(found[count:])[order]
    return tuple(best.tolist()), tuple(sizes.tolist())


def _spread_decays(steps: int, count: int) -> Array:
    """Return decays with memories 1 / (1 - decay) that grow geometrically up to the steps."""
    memories = np.geomspace(1.5, 1.5 + steps, count) if count > 1 else np.array([steps**0.5 + 1])
    return 1 - 1 / memories


def _polynomials(decays: Array, scales: Array) -> tuple[Array, Array]:
    """Return numerator and denominator of 1 + sum_j scales[j] x / (1 - decays[j] x)."""
    denominator = np.ones(1)
    for decay in decays:
        denominator = np.convolve(denominator, [1.0, -decay])
    numerator = denominator.copy()
    for j, scale in enumerate(scales):
        rest = np.ones(1)
        for decay in np.delete(decays, j):
            rest = np.convolve(rest, [1.0, -decay])
        numerator[1:] += scale * rest
    return numerator, denominator


def lambda_cgd(objective: Objective) -> tuple[float]:
    """Return the best decay in [0, 1), to about 1e-9, by Brent's method."""

    def of(decay: float) -> float:
        column: Array = np.power(decay, np.arange(objective.steps), dtype=np.float64)
        return objective.rational(np.ones(1), np.array([1.0, -decay]), column)[0]

    best, value = _best_share(of, objective.steps)
    return (best if value < objective.banded(np.ones(1))[0] else 0.0,)


def _best_share(of: Callable[[float], float], steps: int) -> tuple[float, float]:
    """Return the minimiser of a function in (0, 1), searched by its logit, and the minimum."""
    from scipy.optimize import minimize_scalar

    bounds = -12.0, np.log(1e4 * steps)
    found = minimize_scalar(
        lambda logit: of(float(expit(logit))),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(expit(found.x)), float(found.fun)


def root_series(count: int, exponent: float) -> Array:
    """Return the first coefficients of (1 - x)^exponent, shape (count,)."""
    k = np.arange(1, count)
    return np.cumprod(np.concatenate([[1.0], (k - 1 - exponent) / k]))


def banded_inverse(objective: Objective, inverse_bands: int) -> tuple[tuple[float, ...]]:
    """Return the best first entries 1, -a_1, -a_2, ... of C^-1's column, from two starts.

    All a are > 0, and their sum is below 1: C = 1 / (1 - a(x)) has entries in [0, 1], as
    probabilities of renewals.
    """
    count, steps = checked_bands("inverse_bands", inverse_bands, objective.steps), objective.steps
    if count == 1:
        return ((1.0,),)

    def of(free: Array) -> tuple[float, Array]:
        tail = softmax(np.append(free, 0.0))[:-1]
        inverse = np.append(1.0, -tail)
        value, by_column = objective.rational(np.ones(1), inverse, inverse_series(inverse, steps))
        slope = inverse_series(np.convolve(inverse, inverse), steps)
        by_tail = np.array([by_column[k:] @ slope[: steps - k] for k in range(1, count)])
        return value, tail * (by_tail - tail @ by_tail)

    found = []
    for start in (
        -root_series(count, fractional_root(objective, count)[1])[1:],
        np.append(-root_series(count, 0.5)[1:-1], root_series(count, 0.5)[:-1].sum() * 0.9),
    ):
        free = np.log(start / (1 - start.sum()))
        best = _least(of, free, [(-40.0, 40.0)] * (count - 1))
        found.append((of(best)[0], softmax(np.append(best, 0.0))[:-1]))
    _, tail = min(found, key=lambda each: each[0])
    return (tuple(np.append(1.0, -tail).tolist()),)


def fractional_root(objective: Objective, inverse_bands: int) -> tuple[int, float]:
    """Return bands of an inverse, and their best exponent in (0, 1) to about 1e-9."""
    count = checked_bands("inverse_bands", inverse_bands, objective.steps)

    def of(exponent: float) -> float:
        inverse = root_series(count, exponent)
        return objective.rational(np.ones(1), inverse, inverse_series(inverse, objective.steps))[0]

    return count, _best_share(of, objective.steps)[0]


def dense(
    steps: int, participation: Participation | None, workload: Workload, equal_norms: bool
) -> Array:
    """Return C for the least mean error under a schema, shape (steps, steps)."""
    if participation is not None:
        validate.instance(Participation, participation=participation)
    A = validate.instance(Workload, workload=workload).accumulate(np.eye(steps))
    schema = Single() if participation is None else participation
    if len(schema.earliest(steps)) == 1:
        X = _fixed_point(A.T @ A)
    else:
        X = best_gram(A, schema, equal_norms=equal_norms)
    # The lower-triangular C with C^T C = X is the Cholesky factor of X in reversed order.
    return np.tril(np.linalg.cholesky(X[::-1, ::-1])[::-1, ::-1].T)


def _fixed_point(S: Array) -> Array:
    """Return X of least tr(S X^-1) with unit diagonal, for records that take part once.

    Iterates v <- diag((D S D)^(1/2)), D = diag(v)^(1/2); then X = D^-1 (D S D)^(1/2) D^-1 (Denisov
    et al. 2022).
    """
    v = np.ones(len(S))
    for _ in range(10_000):
        scale = np.sqrt(v)
        values, vectors = np.linalg.eigh(scale[:, None] * S * scale)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        change = np.abs(root.diagonal() / v - 1).max()
        v = root.diagonal().copy()
        if change < 1e-12:
            break
    return np.asarray(root / np.sqrt(np.outer(v, v)))
