"""Scores of a classifier on held-out records. All scores follow from two sums over the records.

The first sum holds a table of counts: records by their true class, and by the probability that the
model gave to the second class. The bins are narrow where probabilities are small, as they are for
rare classes. The first sum also counts the first class on a fine grid of scores. The second sum
holds the ranks of the second class on this grid; the mean rank is the area under the ROC curve. If
the sums carry noise, all scores are as private as the sums.

Each number has a standard error: for the chance of drawing these records, and for the noise. It is
infinite where noise hides the divisor of the number.

>>> scores, labels = np.array([-3.0, -0.8, -2.5, 0.4]), np.array([0, 0, 1, 1])
>>> held = Held(scores, labels, center=0.0, scale=1.0)
>>> first = held.counts().sum(axis=0)
>>> found = metrics(first, held.ranks(first).sum(axis=0), ("no", "yes"))
>>> found["accuracy"], found["majority_baseline"], round(found["auc"], 2)
(0.75, 0.5, 0.75)
>>> found["confusion"]["yes"]
{'no': 1.0, 'yes': 1.0}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
_Shares = Callable[[Reals, Reals], tuple[float, float | None]]

# Probabilities between two bins; each bin adds noise to sums.
EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
BINS = len(EDGES) + 1
_HALF = EDGES.index(0.5) + 1
SHARES = ("auc", "recall", "false_alarms", "precision")

# Places of the grid: equal steps of asinh, up to this many scales from the center.
GRID = 64
_FARTHEST = 50.0

# Norms of a record's parts, in table and grid; and of its rank, in [-1, 1], and its count.
_TABLE, _PLACE = 0.8, 0.6
_RANK, _COUNT = 0.9, math.sqrt(1 - 0.9**2)

# Smallest divisor, in standard deviations of its noise, that is not taken for noise only.
_CLEAR = 2.0


class Held:
    """Contributions of held-out records to both sums, of norm at most 1.

    Parameters
    ----------
    scores
        Log-odds of class 1 as the model gave them, shape (m,).
    labels
        0 or 1, shape (m,); negative for an ignored record.
    center, scale
        Center and scale of the grid: public numbers, such as the model's intercept and the norm of
        its weights. With scores that are 0 to many scales away, the area under the curve loses
        little.
    """

    def __init__(self, scores: Reals, labels: NDArray[Any], *, center: float, scale: float) -> None:
        self._known, self._second = labels >= 0, labels > 0
        # A diverged model can give NaN: the published sums must not fail for one record.
        scores = np.nan_to_num(scores)
        with np.errstate(all="ignore"):
            # A probability of 1/2 counts for the first class: bins exclude their start.
            self._bins = np.searchsorted(EDGES, 1 / (1 + np.exp(-scores)), side="left")
            at = np.arcsinh((scores - center) / max(scale, 1e-300)) / math.asinh(_FARTHEST)
        places = np.nan_to_num(np.floor((at + 1) / 2 * GRID))
        self._places = np.clip(places, 0, GRID - 1).astype(np.intp)

    def counts(self) -> Reals:
        """Return the contributions to the first sum, shape (m, 2 BINS + GRID)."""
        m = len(self._known)
        rows = np.zeros((m, 2 * BINS + GRID))
        rows[np.arange(m), self._second * BINS + self._bins] = _TABLE
        rows[np.arange(m), 2 * BINS + self._places] = _PLACE * ~self._second
        return rows * self._known[:, np.newaxis]

    def ranks(self, first: Reals) -> Reals:
        """Return the contributions to the second sum, shape (m, 2 BINS + GRID), by the first."""
        ranks = _ranks(first[2 * BINS :])[self._places]
        rows = np.zeros((len(ranks), len(first)))
        rows[:, 0], rows[:, 1] = _RANK * (2 * ranks - 1), _COUNT
        return rows * (self._known & self._second)[:, np.newaxis]


def _ranks(grid: Reals) -> Reals:
    """Return the share of class 0 below each place, and of half of it there, in [0, 1]."""
    middle = np.cumsum(grid) - grid / 2
    return np.asarray(np.clip(middle / max(float(grid.sum()), _PLACE), 0.0, 1.0))


def metrics(
    first: Reals,
    second: Reals,
    labels: Sequence[str],
    *,
    noise: float = 0.0,
    group: int = 1,
) -> dict[str, Any]:
    """Return accuracy, AUC, recall, confusion and calibration, with their standard errors.

    Parameters
    ----------
    first, second
        Sums of the rows of :meth:`Held.counts` and :meth:`Held.ranks`. They may carry noise.
    labels
        The two classes.
    noise
        Standard deviation of the noise on each number of the sums.
    group
        Largest number of records of a person: so many records are taken to be drawn together.
    """
    counts, ranks = first[: 2 * BINS].reshape(2, BINS) / _TABLE, second[:2]
    low, high = counts[:, :_HALF], counts[:, _HALF:]
    said = np.stack([low.sum(axis=1), high.sum(axis=1)], axis=1)
    share = partial(_share, noise=noise / _TABLE, group=group)
    right, wrong = (np.concatenate([low[i], high[1 - i]]) for i in (0, 1))
    accuracy, error = share(right, wrong)
    larger, larger_error = share(counts[1], counts[0])
    area, area_error = _area(ranks, float(first[2 * BINS :].sum()) / _PLACE, noise, group)
    return {
        "records": round(max(float(counts.sum()), 1.0), 1),
        "accuracy": accuracy,
        "standard_error": error,
        "majority_baseline": max(larger, 1 - larger),
        "majority_standard_error": larger_error,
        "auc": area,
        "auc_standard_error": area_error,
        "thresholds": [_at(counts, place, share) for place in range(1, BINS)],
        "confusion": {
            true: {word: max(0.0, float(said[i, j])) for j, word in enumerate(labels)}
            for i, true in enumerate(labels)
        },
        "confusion_standard_error": noise / _TABLE * math.sqrt(_HALF),
        "calibration": [
            _calibrated(counts, column, share)
            for column in range(BINS)
            if counts[:, column].sum() > _CLEAR * noise / _TABLE * math.sqrt(2)
        ],
    }


def _share(
    inside: Reals, outside: Reals, *, noise: float, group: int
) -> tuple[float, float | None]:
    """Return the share of the counts inside, in [0, 1], and its standard error.

    The error is None where noise hides the number of all.
    """
    part, whole = float(inside.sum()), float(inside.sum() + outside.sum())
    value = min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
    if whole <= _CLEAR * noise * math.sqrt(inside.size + outside.size):
        return value, None
    # Few equal records do not show that other records are equal: one record of each kind is added.
    likely = (value * whole + 1) / (whole + 2)
    drawn = group * likely * (1 - likely) / whole
    hidden = (1 - value) ** 2 * inside.size + value**2 * outside.size
    return value, math.sqrt(drawn + (noise / whole) ** 2 * hidden)


def _area(
    ranks: Reals, others: float, noise: float, group: int
) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve, and its standard error.

    It is the mean rank of class 1 among class 0. By drawing, its variance is at most A (1 - A) over
    the size of the smaller class (Birnbaum and Klose 1957).
    """
    size = float(ranks[1]) / _COUNT
    if size <= _CLEAR * noise / _COUNT or others <= _CLEAR * noise / _PLACE * math.sqrt(GRID):
        return None, None
    area = min(1.0, max(0.0, 0.5 + float(ranks[0]) / (2 * _RANK) / size))
    smaller = min(size, others)
    likely = (area * smaller + 1) / (smaller + 2)
    drawn = group * likely * (1 - likely) / smaller
    summed = (noise / size) ** 2 * ((2 * _RANK) ** -2 + ((area - 0.5) / _COUNT) ** 2)
    ranked = (noise / _PLACE / others) ** 2 * GRID * max(area, 1 - area) ** 2
    return area, math.sqrt(drawn + summed + ranked)


def _at(counts: Reals, place: int, share: _Shares) -> dict[str, float | None]:
    """Return recall, false alarms and precision, with class 1 predicted from this bin on."""
    found: dict[str, float | None] = {"threshold": EDGES[place - 1]}
    above, below = counts[:, place:], counts[:, :place]
    for name, (value, error) in {
        "recall": share(above[1], below[1]),
        "false_alarms": share(above[0], below[0]),
        "precision": share(above[1], above[0]),
    }.items():
        found[name], found[f"{name}_standard_error"] = value, error
    return found


def _calibrated(counts: Reals, column: int, share: _Shares) -> dict[str, float | None]:
    """Return the share of class 1 among records with a predicted probability in this bin."""
    ends = (0.0, *EDGES, 1.0)[column : column + 2]
    observed, error = share(counts[1, column : column + 1], counts[0, column : column + 1])
    return {
        "from": ends[0],
        "to": ends[1],
        "observed": observed,
        "standard_error": error,
        "records": float(counts[:, column].sum()),
    }


def root_errors(
    means: Reals, n: float, unit: float, *, noise: float = 0.0, group: int = 1
) -> dict[str, Any]:
    """Return the root mean squared errors of numbers: the model's and the best constant's.

    Parameters
    ----------
    means
        Means of squared errors, of their squares, of targets and of squared targets, shape (4,).
    n
        Number of records.
    unit
        Unit of the target, relative to the unit of the means.
    noise
        Standard deviation of the noise on each mean.
    group
        As in :func:`metrics`.
    """
    square, fourth, first, second = (float(each) for each in means)
    spread = second - first**2
    drawn = group * max(0.0, fourth - square**2) / n
    error = math.sqrt(drawn + noise**2)
    # Targets are in [-4, 4]: the variance of their squares is at most 16 times their mean square.
    drawn = group * max(0.0, second) * 16 / n
    apart = math.sqrt(drawn + noise**2 * (1 + 4 * first**2))
    found: dict[str, Any] = {"records": n}
    for name, value, off in (
        ("root_mean_squared_error", square, error),
        ("baseline", spread, apart),
    ):
        root = math.sqrt(max(0.0, value))
        found[name] = unit * root
        clear = value > _CLEAR * noise
        found[f"{name}_standard_error"] = unit * off / (2 * root) if clear else None
    return found
