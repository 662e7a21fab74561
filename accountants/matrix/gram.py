"""Which dense C is best where records take part several times? A convex programme for X = C^T C.

Columns of C that one record meets are kept orthogonal, so that the squared sensitivity is the
largest sum of X's diagonal over a pattern; then tr(A^T A X^-1), the squared error, is least over X
with zeros there (Choquette-Choo, McMahan, Rush and Thakurta 2023, multi-epoch; Choquette-Choo et
al. 2023, banded). With X = D R D, where D is diagonal and R has a unit diagonal, the value is

    tr(D^-1 S D^-1 R^-1),    S = A^T A,

in R's entries that may be other than zero and, for each pattern, in the shares of its diagonal.

>>> import numpy as np
>>> from dpcal.accountants.matrix import FixedEpochs
>>> X = best_gram(np.tril(np.ones((6, 6))), FixedEpochs(2, 3), equal_norms=True)
>>> [round(float(X[0, t]), 2) for t in range(6)]
[1.0, 0.57, 0.34, 0.0, 0.08, 0.05]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpcal.accountants.matrix.participation import FixedEpochs, LeastSeparation, Participation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Limits:
    """Limits of the descent.

    Attributes
    ----------
    slope
        Largest slope of the logarithm of the value.
    change
        Change of the logarithm of the value over ten steps.
    steps
        Most steps.
    halvings
        Most halvings of one step: after 60 of them it is below the rounding of any step.
    memory
        Number of pairs of steps and slopes from which curvature is computed.
    """

    slope: float = 1e-9
    change: float = 1e-12
    steps: int = 2000
    halvings: int = 60
    memory: int = 20


_LIMITS = _Limits()
_ARMIJO = 1e-4


def may_overlap(steps: int, schema: Participation) -> NDArray[np.bool_]:
    """Return a mask of the step pairs that no record can meet together, shape (steps, steps).

    >>> may_overlap(4, FixedEpochs(2, 2)).astype(int).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    lag = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    if isinstance(schema, FixedEpochs):
        return np.asarray(lag % schema.steps_per_epoch != 0)
    if isinstance(schema, LeastSeparation):
        return np.asarray((lag > 0) & (lag < schema.separation))
    return lag > 0


def best_gram(A: Array, schema: Participation, *, equal_norms: bool) -> Array:
    """Return X of least squared error, shape (steps, steps), with sums of a diagonal at most k.

    Parameters
    ----------
    A
        The workload, shape (steps, steps).
    schema
        The participation; k is the largest number of times that a record takes part.
    equal_norms
        Whether X's diagonal is 1 throughout. Otherwise it is shared out within each pattern of
        :class:`~dpcal.accountants.matrix.FixedEpochs`; patterns of other schemas overlap, so that
        norms are equal there.
    """
    steps = len(A)
    S = A.T @ A
    rows, columns = np.nonzero(np.triu(may_overlap(steps, schema), 1))
    period = schema.steps_per_epoch if isinstance(schema, FixedEpochs) else steps
    shared = not equal_norms and isinstance(schema, FixedEpochs) and period < steps
    pairs = len(rows)

    def parts(free: Array) -> tuple[Array, Array]:
        R = np.eye(steps)
        R[rows, columns] = R[columns, rows] = free[:pairs]
        return R, _shares(free[pairs:], period) if shared else np.ones(steps)

    def of(free: Array) -> tuple[float, Array] | None:
        R, norms = parts(free)
        try:
            factor = cho_factor(R, lower=True)
        except LinAlgError:
            return None
        scaled = S / np.sqrt(np.outer(norms, norms))
        inverse = cho_solve(factor, np.eye(steps))
        product = inverse @ scaled @ inverse
        value = float((scaled * inverse).sum())
        by_pair = -2 * product[rows, columns] / value
        if not shared:
            return np.log(value), by_pair
        by_norm = -(scaled * inverse).sum(axis=1) / value
        return np.log(value), np.concatenate([by_pair, _by_logits(by_norm, norms, period)])

    R, norms = parts(_descend(of, np.zeros(pairs + (steps if shared else 0))))
    return np.asarray(R * np.sqrt(np.outer(norms, norms)))


def _padded(values: Array, period: int, fill: float) -> Array:
    """Return values by epoch, shape (epochs, period)."""
    epochs = -(-len(values) // period)
    padded = np.full(epochs * period, fill)
    padded[: len(values)] = values
    return padded.reshape(epochs, period)


def _shares(logits: Array, period: int) -> Array:
    """Return a positive diagonal with a sum of at most the number of epochs over every pattern."""
    grid = _padded(logits, period, -np.inf)
    weights = np.exp(grid - grid.max(axis=0))
    shares = len(grid) * weights / weights.sum(axis=0)
    return np.asarray(shares.reshape(-1)[: len(logits)])


def _by_logits(by_log: Array, shares: Array, period: int) -> Array:
    """Return the slope in logits for the slope in logarithms of the shares."""
    total = _padded(by_log, period, 0.0).sum(axis=0)
    epochs = -(-len(shares) // period)
    return np.asarray(by_log - shares / epochs * np.tile(total, epochs)[: len(shares)])


def _descend(of: Callable[[Array], tuple[float, Array] | None], start: Array) -> Array:
    """Return the minimiser of a function, by L-BFGS with halved steps; None is outside its domain.

    Library searches need a value at every point, but matrices that are not positive definite have
    none.
    """
    found = of(start)
    assert found is not None
    point, (value, slope) = start, found
    past: deque[tuple[Array, Array]] = deque(maxlen=_LIMITS.memory)
    values = deque([value], maxlen=10)
    for _ in range(_LIMITS.steps):
        if not slope.size or np.abs(slope).max() < _LIMITS.slope:
            break
        step = -_curved(slope, past)
        size = 1.0 if past else min(1.0, 0.1 / float(np.abs(step).max()))
        found = None
        for _ in range(_LIMITS.halvings):
            found = of(point + size * step)
            if found is not None and found[0] <= value + _ARMIJO * size * float(slope @ step):
                break
            found, size = None, 0.5 * size
        if found is None:
            break
        if size * float(step @ (found[1] - slope)) > 0:
            past.append((size * step, found[1] - slope))
        point, (value, slope) = point + size * step, found
        values.append(value)
        if len(values) == values.maxlen and values[0] - value < _LIMITS.change:
            break
    return point


def _curved(slope: Array, past: deque[tuple[Array, Array]]) -> Array:
    """Return the slope times an inverse Hessian estimated from past steps (Nocedal 1980)."""
    direction, kept = slope.copy(), []
    for step, change in reversed(past):
        weight = float(step @ direction) / float(step @ change)
        direction -= weight * change
        kept.append(weight)
    if past:
        step, change = past[-1]
        direction *= float(step @ change) / float(change @ change)
    for (step, change), weight in zip(past, reversed(kept), strict=True):
        direction += (weight - float(change @ direction) / float(step @ change)) * step
    return direction
