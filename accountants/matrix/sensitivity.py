"""How far can one record move C G? Sensitivities under participation schemas, without sampling.

One record contributes vectors of norm at most 1 at the steps of its pattern. With X = C^T C the
squared norm of its part of C G is at most the sum of abs(X) over pairs of steps in the pattern,
which is attained if X >= 0. For lower-triangular C this also bounds contributions that are chosen
after seeing earlier outputs (Denisov et al. 2022), so the release is a Gaussian mechanism with this
sensitivity.

>>> from dpcal.accountants.matrix import FixedEpochs, LambdaCGD, Single
>>> sensitivity = LambdaCGD(1000, 0.9).sensitivity(FixedEpochs(10, 100))
>>> print(f"{sensitivity.value:.10f} ({sensitivity.label})")
7.2549359298 (exact)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz

from dpcal._internal import validate
from dpcal.accountants.matrix.participation import (
    FixedEpochs,
    LeastSeparation,
    Participation,
    Single,
)
from dpcal.accountants.rounding import UNIT

Array = NDArray[np.float64]

EXACT, UPPER = "exact", "upper bound"

_LARGEST_COLUMN = "largest column norm (Denisov et al. 2022)"
_ORTHOGONAL = "columns of separated steps are orthogonal (Choquette-Choo et al. 2023)"
_NONNEGATIVE = "Gram matrix >= 0 (Choquette-Choo et al. 2022)"

_GRAM_STEPS = 4096
# Product of participations and steps^2: a few seconds.
_TWO_STAGE_COST = 10**9


@dataclass(frozen=True)
class Sensitivity:
    """The largest norm of one record's part of C G, in units of the clipping norm.

    Parameters
    ----------
    value
        The norm, rounded up by a bound on its rounding error.
    label
        ``"exact"`` (up to that rounding) or ``"upper bound"``.
    theorem
        The theorem that proves it.
    participation
        The schema that it holds for.
    steps
        Number of steps that it holds for.
    """

    value: float
    label: str
    theorem: str
    participation: Participation
    steps: int

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return the sensitivity as JSON values."""
        return {**vars(self), "participation": self.participation.to_dict()}


def _made(
    square: float, error: float, exact: bool, theorem: str, schema: Participation, steps: int
) -> Sensitivity:
    """Return the sensitivity of a square, rounded up by ``error`` and by its own rounding."""
    value = math.sqrt((square + error) * (1 + (2 * steps + 16) * UNIT))
    return Sensitivity(value, EXACT if exact else UPPER, theorem, schema, steps)


def _packed(column: Array, places: NDArray[np.intp]) -> Array:
    """Return the sum of the columns of a Toeplitz matrix at evenly spaced places, 0 first.

    Blocks of columns are doubled: every entry is rounded at most 2 log2(steps) times.
    """
    total, block = np.zeros_like(column), column
    start, width, count = 0, int(places[1]), len(places)
    while count:
        if count % 2:
            total[start:] += block[: len(column) - start]
            start += width
        block = block + np.concatenate([np.zeros(width), block])[: len(column)]
        width, count = 2 * width, count // 2
    return total


def of_toeplitz(column: Array, bands: int | None, schema: Participation) -> Sensitivity:
    """Return the sensitivity of a lower-triangular Toeplitz matrix.

    Parameters
    ----------
    column
        First column, shape (steps,).
    bands
        Number of leading coefficients that may be nonzero; None for all.
    schema
        The participation schema.

    Raises
    ------
    ValueError
        If the schema is not one for this number of steps.
    """
    steps = len(column)
    places = validate.instance(Participation, participation=schema).earliest(steps)
    if isinstance(schema, Single) or len(places) == 1:
        return _made(float(column @ column), 0.0, True, _LARGEST_COLUMN, schema, steps)
    separation = int(places[1] - places[0])
    if bands is not None and bands <= separation:
        # Columns at this distance are orthogonal, and the earliest are the longest.
        energies = np.cumsum(column**2)[::-1]
        return _made(float(energies[places].sum()), 0.0, True, _ORTHOGONAL, schema, steps)
    if isinstance(schema, FixedEpochs):
        return _toeplitz_epochs(column, separation, schema)
    if not isinstance(schema, LeastSeparation):
        raise TypeError(f"participation must be a participation schema, got {schema!r}.")
    return _toeplitz_separated(column, places, schema)


def _toeplitz_epochs(column: Array, period: int, schema: Participation) -> Sensitivity:
    """Return the sensitivity of fixed epochs: exact for C >= 0, otherwise by sums of abs(X)."""
    steps = len(column)
    places = schema.earliest(steps)
    if column.min() >= 0:
        total = _packed(column, places)
        return _made(float(total @ total), 0.0, True, _NONNEGATIVE, schema, steps)
    # X[t - l b, t] is the sum of c_i c_{i + l b} over i < steps - t.
    value = np.cumsum(column**2)[::-1].copy()
    nonnegative = True
    for shift in places[1:]:
        products = np.cumsum(column[: steps - shift] * column[shift:])[::-1]
        nonnegative = nonnegative and bool(products.min() >= 0)
        value[shift:] += 2 * np.abs(products)
    padded = np.zeros(len(places) * period)
    padded[:steps] = value
    square = float(padded.reshape(-1, period).sum(axis=0).max())
    error = len(places) ** 2 * steps * UNIT * float(column @ column)
    return _made(square, error, nonnegative, _gram_theorem(nonnegative), schema, steps)


def _gram_theorem(nonnegative: bool) -> str:
    if nonnegative:
        return "Gram matrix >= 0 on the patterns (Choquette-Choo et al. 2022)"
    return "absolute values of the Gram matrix, vector contributions (Choquette-Choo et al. 2022)"


def _toeplitz_separated(
    column: Array, places: NDArray[np.intp], schema: LeastSeparation
) -> Sensitivity:
    """Return the sensitivity under a separation: for falling columns the earliest is worst."""
    steps = len(column)
    # Enlarging entries of a non-negative C enlarges every entry of C^T C.
    majorant = np.maximum.accumulate(np.abs(column)[::-1])[::-1]
    attained = _packed(column, places)
    bound = _packed(majorant, places)
    upper = float(bound @ bound)
    if column.min() >= 0 and upper <= float(attained @ attained) * (1 + 1e-12):
        theorem = "non-increasing Toeplitz column, earliest packing (Kalinin and Lampert 2024)"
        return _made(upper, 0.0, True, theorem, schema, steps)
    theorem = "earliest packing of a non-increasing majorant (Kalinin and Lampert 2024)"
    best = _made(upper, 0.0, False, theorem, schema, steps)
    if steps <= _GRAM_STEPS:
        matrix = toeplitz(column, np.zeros(steps))
        two_stage = _two_stage(matrix.T @ matrix, schema)
        best = min(best, two_stage, key=float)
    return best


def of_matrix(C: Array, schema: Participation) -> Sensitivity:
    """Return the sensitivity of any lower-triangular matrix of shape (steps, steps).

    Parameters
    ----------
    C
        Shape (steps, steps), lower-triangular.
    schema
        The steps in which one record may take part.
    """
    steps = len(C)
    places = validate.instance(Participation, participation=schema).earliest(steps)
    if isinstance(schema, Single) or len(places) == 1:
        largest = float((C**2).sum(axis=0).max())
        return _made(largest, 0.0, True, _LARGEST_COLUMN, schema, steps)
    if isinstance(schema, FixedEpochs):
        return _epochs(C, schema)
    if not isinstance(schema, LeastSeparation):
        raise TypeError(f"participation must be a participation schema, got {schema!r}.")
    if not np.tril(C, -schema.separation).any():
        energies = (C**2).sum(axis=0)
        square = most_separated(energies, schema.separation, schema.times(steps))
        return _made(float(square), 0.0, True, _ORTHOGONAL, schema, steps)
    return _two_stage(C.T @ C, schema)


def _epochs(C: Array, schema: FixedEpochs) -> Sensitivity:
    steps, period = len(C), schema.steps_per_epoch
    if C.min() >= 0:
        patterns = np.zeros((steps, period))
        patterns[np.arange(steps), np.arange(steps) % period] = 1.0
        square = float(((C @ patterns) ** 2).sum(axis=0).max())
        return _made(square, 0.0, True, _NONNEGATIVE, schema, steps)
    squares, nonnegative = [], True
    for first in range(period):
        columns = C[:, first::period]
        gram = columns.T @ columns
        nonnegative = nonnegative and bool(gram.min() >= 0)
        squares.append(float(np.abs(gram).sum()))
    error = schema.epochs**2 * steps * UNIT * float((C**2).sum(axis=0).max())
    return _made(max(squares), error, nonnegative, _gram_theorem(nonnegative), schema, steps)


def _two_stage(gram: Array, schema: LeastSeparation) -> Sensitivity:
    """Return a bound by the best pattern of each row of abs(X), and then of the rows' values."""
    steps = len(gram)
    times = schema.times(steps)
    if times * steps**2 > _TWO_STAGE_COST:
        # The bound on the number of participations is not used, which saves most of the time.
        times = steps
    rows = most_separated(np.abs(gram), schema.separation, times)
    square = float(most_separated(rows, schema.separation, times))
    error = schema.times(steps) ** 2 * steps * UNIT * float(gram.diagonal().max())
    theorem = "two-stage programme on absolute values of the Gram matrix"
    theorem += " (Choquette-Choo et al. 2023)"
    return _made(square, error, False, theorem, schema, steps)


def most_separated(values: Array, separation: int, times: int) -> Array:
    """Return the largest sum of at most ``times`` values >= 0 at separated places.

    Parameters
    ----------
    values
        Shape (..., steps).
    separation
        Smallest distance >= 1 of two places.
    times
        Largest number >= 1 of values.

    Returns
    -------
    numpy.ndarray
        Shape (...).

    >>> float(most_separated(np.array([1.0, 5.0, 1.0, 5.0, 5.0]), 2, 2))
    10.0
    """
    steps = values.shape[-1]
    if times * separation >= steps:
        return _most_separated_any_number(values, separation)
    best = np.zeros((*values.shape[:-1], steps + separation))
    for _ in range(times):
        taken = values + best[..., separation:]
        head = np.maximum.accumulate(taken[..., ::-1], axis=-1)[..., ::-1]
        best = np.concatenate([head, np.zeros((*values.shape[:-1], separation))], axis=-1)
    return np.asarray(best[..., 0])


def _most_separated_any_number(values: Array, separation: int) -> Array:
    """Return :func:`most_separated` if only the separation bounds the number of values."""
    steps = values.shape[-1]
    columns = np.moveaxis(values, -1, 0)
    best = np.zeros((steps + separation, *columns.shape[1:]))
    for place in range(steps - 1, -1, -1):
        np.maximum(best[place + 1], columns[place] + best[place + separation], out=best[place, ...])
    return np.asarray(best[0])
