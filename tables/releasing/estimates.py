"""From noisy totals to statistics, each with a standard error and an interval of confidence.

All here is a function of released numbers. An interval holds the statistic of the table itself (of
its values, clamped to their ranges) with probability 95 percent or more over the noise. It
does not cover the error of the table as a sample.

>>> cuts_around(np.array([[2.0, 5.0]]), (0.0, 10.0)).shape[0]
1
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate import Query
from dpcal.tables.releasing.planning import Asked, told, totals_of
from dpcal.tables.releasing.statistics import Axis, Statistic

__all__ = [
    "CONFIDENCE",
    "Estimate",
    "Noisy",
    "cuts_around",
    "estimates",
    "labels_of",
    "quantile_estimates",
]

Vector = NDArray[np.float64]

CONFIDENCE = 0.95

# Discrete noise is wider than the Gaussian that it covers, by less than this factor.
_WIDER = 1.001


@dataclass(frozen=True)
class Estimate:
    """A released statistic.

    Parameters
    ----------
    value
        Released value; None where the noise hides it.
    standard_error
        Standard deviation of the value's noise; None where it is not known.
    low, high
        Ends of the interval of confidence.
    """

    value: float | None
    standard_error: float | None
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Noisy:
    """Released totals of one query.

    Parameters
    ----------
    values
        Shape (cells,).
    query
        Which noise they have.
    """

    values: Vector
    query: Query

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of one total."""
        scale = self.query.noise_multiplier * self.query.max_norm * _WIDER
        return scale * math.sqrt(2) if self.query.kind == "laplace total" else scale

    def reach(self, failure: float) -> float:
        """Return the bound that one total's noise exceeds, up or down, with probability failure."""
        scale = self.query.noise_multiplier * self.query.max_norm * _WIDER
        if self.query.kind == "laplace total":
            return scale * math.log(1 / failure)
        return scale * NormalDist().inv_cdf(1 - failure / 2)


def estimates(
    statistic: Statistic, asked: Asked, released: Mapping[str, Noisy], cells: int
) -> list[Estimate]:
    """Return a count, sum, mean or variance for each cell."""
    rows = asked.plan.n
    parts = {total.what: released[total.name] for total in totals_of(statistic, asked.known)}
    if told(statistic, asked.known) and statistic.kind in ("count", "histogram"):
        return [Estimate(float(rows), 0.0, float(rows), float(rows))]
    if statistic.kind in ("count", "histogram"):
        return [_plain(parts["count"], cell, low=0.0) for cell in range(cells)]
    if statistic.kind == "sum" and "plain" in parts:
        return [_plain(parts["plain"], cell) for cell in range(cells)]
    return [_moment(statistic, parts, cell, rows) for cell in range(cells)]


def _plain(noisy: Noisy, cell: int, low: float = -math.inf) -> Estimate:
    """Return a total as it is; its interval ends at ``low``."""
    value, reach = float(noisy.values[cell]), noisy.reach(1 - CONFIDENCE)
    return Estimate(value, noisy.deviation, max(low, value - reach), max(low, value + reach))


def _moment(statistic: Statistic, parts: Mapping[str, Noisy], cell: int, rows: int) -> Estimate:
    """Return a mean, a variance, or a sum of all rows, from the totals of one cell.

    With probability 95 percent, the noise of every total is within its reach: the totals share the
    5 percent. The interval is the range of the statistic over this box.
    """
    low, high = statistic.range
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    failure = (1 - CONFIDENCE) / len(parts)
    count = parts.get("count")
    n = float(rows) if count is None else float(count.values[cell])
    spread = (0.0, 0.0) if count is None else (count.deviation, count.reach(failure))
    s = float(parts["sum"].values[cell]) / half
    s_errors = (parts["sum"].deviation / half, parts["sum"].reach(failure) / half)
    if statistic.kind == "sum":
        value, reach = n * middle + half * s, half * s_errors[1]
        return Estimate(value, half * s_errors[0], value - reach, value + reach)
    least, most = (low, high) if statistic.kind == "mean" else (0.0, half * half)
    fewest, largest = n - spread[1], n + spread[1]
    if n < 1 or fewest <= 0:
        return Estimate(None, None, least, most)
    a, ends = s / n, _ratio(s, s_errors[1], fewest, largest)
    if statistic.kind == "mean":
        error = half * math.hypot(s_errors[0], a * spread[0]) / n
        value = middle + half * a
        low_end, high_end = (middle + half * end for end in ends)
    else:
        t = float(parts["squares"].values[cell])
        t_errors = (parts["squares"].deviation, parts["squares"].reach(failure))
        twos = _ratio(t, t_errors[1], fewest, largest)
        value = half * half * ((t / n + 1) / 2 - a * a)
        slope_n = 2 * a * a - t / n / 2
        error = (
            half * half * math.hypot(t_errors[0] / 2, 2 * a * s_errors[0], slope_n * spread[0]) / n
        )
        squares = sorted(end * end for end in ends)
        nearest = 0.0 if ends[0] <= 0 <= ends[1] else squares[0]
        low_end = half * half * ((twos[0] + 1) / 2 - squares[1])
        high_end = half * half * ((twos[1] + 1) / 2 - nearest)
    kept = [min(max(end, least), most) for end in (value, low_end, high_end)]
    return Estimate(kept[0], error, kept[1], kept[2])


def _ratio(total: float, reach: float, fewest: float, largest: float) -> tuple[float, float]:
    """Return the ends of a total over a count, both of them in intervals; within [-1, 1]."""
    corners = [
        (total + side) / count
        for side, count in itertools.product((-reach, reach), (fewest, largest))
    ]
    return max(-1.0, min(corners)), min(1.0, max(corners))


def cuts_around(points: Vector, ends: tuple[float, float]) -> Vector:
    """Return cuts around drawn points, for counts of values between them: (m, k) to (m, 20 k).

    The cuts are on either side of each point, at distances of a quarter of the range, an eighth,
    and so on.
    """
    apart = (ends[1] - ends[0]) * 0.5 ** np.arange(2, 12)
    sides = np.concatenate([-apart, apart])
    cuts = (points[:, :, np.newaxis] + sides).reshape(len(points), points.shape[1] * len(sides))
    return np.sort(np.clip(cuts, *ends), axis=1)


def quantile_estimates(
    statistic: Statistic, points: Vector, cuts: Vector, ranks: Noisy
) -> list[list[Estimate]]:
    """Return for each cell the quantiles at the statistic's shares.

    The number of values between neighboring cuts is a noisy total, so that the values up to a cut,
    less the share of all values, have noise of a known law. The interval reaches from the highest
    cut that is surely below the quantile to the lowest cut that is surely above it, or to an end of
    the range where there is no such cut. All cuts share the 5 percent.

    Parameters
    ----------
    statistic
        Statistic of the quantiles.
    points
        Drawn quantiles, shape (cells, shares).
    cuts
        Released numbers, nondecreasing along the second axis, shape (cells, k).
    ranks
        Counts of values between cuts, shape (cells * (k + 1),).
    """
    low, high = statistic.range
    k = cuts.shape[1]
    sides = np.arange(1, k + 1), np.arange(k, 0, -1)
    failure = (1 - CONFIDENCE) / k
    found = []
    for drawn, own, counts in zip(points, cuts, ranks.values.reshape(-1, k + 1), strict=True):
        below, total = np.cumsum(counts)[:-1], float(counts.sum())
        line = []
        for value, share in zip(drawn.tolist(), statistic.shares, strict=True):
            excess, reach = below - share * total, _reach_of_sum(ranks, sides, share, failure)
            under = float(own[excess < -reach].max(initial=low))
            over = float(own[excess > reach].min(initial=high))
            line.append(Estimate(value, None, min(under, value), max(over, value)))
        found.append(line)
    return found


def _reach_of_sum(noisy: Noisy, sides: tuple[Any, Any], share: float, failure: float) -> Vector:
    """Return the bound that the noise of an excess exceeds on one side with less than this chance.

    Totals below a cut count with weight 1 - share, and totals above it with -share.
    """
    if noisy.query.kind == "total":
        weights: Vector = np.sqrt(sides[0] * (1 - share) ** 2 + sides[1] * share**2)
        return noisy.reach(2 * failure) * weights
    # Chernoff: sums of Laplace noises of scales w b have log E e^(s X) = -sum log(1 - (s w b)^2).
    scale = noisy.query.noise_multiplier * noisy.query.max_norm * _WIDER
    largest = np.maximum(1 - share, share)
    rates = np.linspace(0.02, 0.98, 49) / largest
    logs = -(
        np.outer(np.log1p(-((rates * (1 - share)) ** 2)), sides[0])
        + np.outer(np.log1p(-((rates * share) ** 2)), sides[1])
    )
    reaches: Vector = ((logs - math.log(failure)) / rates[:, np.newaxis]).min(axis=0) * scale
    return reaches


def labels_of(axes: Sequence[Axis], groups: Mapping[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return the groups of each cell, one for each axis, in the order of cells."""
    return list(
        itertools.product(*(groups[axis.name] if axis.open else axis.labels for axis in axes))
    )
