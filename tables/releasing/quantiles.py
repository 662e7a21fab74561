"""Quantiles of a column: drawn over a tree of choices, and bracketed by noisy counts.

>>> from dpcal.tables import Column
>>> age = Column(name="age", type="number", range=(0, 10))
>>> asked = Quantile("quantile", age, shares=(0.1, 0.5, 0.9))
>>> asked.tree, asked.levels, round(asked.reach, 6)
('quantiles of age 0.1 0.5 0.9', 2, 0.800001)
>>> replace(asked, points=np.array([[2.0, 5.0, 8.0]])).cuts.shape
(1, 60)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate.query import LAPLACE_TOTAL
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.tables.records import Rows
from dpcal.tables.releasing.statistics import CONFIDENCE, Estimate, Noisy, Statistic, Total

Vector = NDArray[np.float64]

# A cell is this much longer than its points, so that these stay inside when they are spread.
_MARGIN = 2e-6


@dataclass(frozen=True, eq=False)
class Quantile(Statistic):
    """Quantiles of a number at public shares.

    Parameters
    ----------
    kind, column, groups
        As of any statistic.
    shares
        Shares of the quantiles, in (0, 1), increasing.
    points
        Drawn quantiles, shape (cells, shares); None before.
    """

    shares: tuple[float, ...] = ()
    points: Vector | None = None

    tree_part: ClassVar[float] = 0.7

    @property
    def tree(self) -> str:
        """Name of the query of its quantiles."""
        return Total("quantiles", self.column, self.groups, self.shares).name

    @property
    def levels(self) -> int:
        """Number of answers that find the quantiles, one a level of a tree."""
        return len(self.shares).bit_length()

    @property
    def reach(self) -> float:
        """The most that a row moves a score by, over the tree."""
        return _reach(self.shares)

    def totals(self, published: bool) -> dict[Total, float]:
        """Return the counts around the quantiles."""
        cuts = None if self.points is None else self.cuts
        found = super().totals(published).items()
        return {replace(ranks, shares=self.shares, cuts=cuts): part for ranks, part in found}

    @cached_property
    def cuts(self) -> Vector:
        """Cuts around the points, nondecreasing, shape (cells, 20 shares).

        The cuts are on either side of each point, at distances of a quarter of the range, an
        eighth, and so on.
        """
        assert self.points is not None
        low, high = self.ends
        apart = (high - low) * 0.5 ** np.arange(2, 12)
        sides = np.concatenate([-apart, apart])
        cuts = self.points[:, :, np.newaxis] + sides
        flat = cuts.reshape(len(cuts), len(self.shares) * len(sides))
        return np.sort(np.clip(flat, low, high), axis=1)

    def line(self, rows: Rows) -> Vector:
        """Return where each row stands on one line of all cells, shape (n,); NaN for none.

        Cell number c lies within [2 c, 2 c + 1], as the range does.
        """
        assert self.column is not None
        low, high = self.ends
        share = (np.clip(rows.cells[self.column.name], low, high) - low) / (high - low)
        places = self.groups.places(rows, self.column)
        inside = share * (1 - 2 * _MARGIN) + _MARGIN
        return np.where(places >= 0, 2.0 * places + inside, np.nan)

    def drawn(self, choices: PrivateChoices, column: int) -> Vector:
        """Return the quantiles of each cell, shape (cells, shares), drawn over a tree of choices.

        ``column`` is the number of the column of ``choices`` with :meth:`line`.
        """
        count, wanted = self.groups.cells, self.shares
        low, high = self.ends
        found = np.full((count, len(wanted)), np.nan)
        parts = [(0, len(wanted), 0.0, 1.0)]
        ends = np.stack([2.0 * np.arange(count), 2.0 * np.arange(count) + 1], axis=1)
        for _ in range(self.levels):
            parts = [each for each in parts if each[0] < each[1]]
            if not parts or not count:
                break
            middles = [(first + last) // 2 for first, last, _, _ in parts]
            edges, shares = [], []
            for cell in range(count):
                for (first, last, below, above), middle in zip(parts, middles, strict=True):
                    left = found[cell, first - 1] if first else ends[cell, 0]
                    right = found[cell, last] if last < len(wanted) else ends[cell, 1]
                    edges += [left, right]
                    share = (wanted[middle] - below) / (above - below)
                    shares += [min(max(share, 1e-6), 1 - 1e-6), np.nan]
            # An interval with equal ends has one point only.
            points = choices.quantiles(column, edges, self.tree, shares[:-1])[::2]
            found[:, middles] = points.reshape(count, -1)
            parts = [
                part
                for (first, last, below, above), middle in zip(parts, middles, strict=True)
                for part in (
                    (first, middle, below, wanted[middle]),
                    (middle + 1, last, wanted[middle], above),
                )
            ]
        places = np.clip((found - ends[:, :1] - _MARGIN) / (1 - 2 * _MARGIN), 0.0, 1.0)
        return np.asarray(low + places * (high - low))

    @property
    def marks(self) -> list[dict[str, float]]:
        """The shares."""
        return [{"share": share} for share in self.shares]

    def estimates(self, parts: Mapping[str, Noisy], cell: int, n: int) -> list[Estimate]:
        """Return the quantiles of one cell.

        The number of values between neighboring cuts is a noisy total, so that the values up to a
        cut, less the share of all values, have noise of a known law. The interval reaches from the
        highest cut that is surely below the quantile to the lowest cut that is surely above it, or
        to an end of the range where there is no such cut. All cuts share the 5 percent.
        """
        assert self.points is not None
        ranks, cuts, (low, high) = parts["ranks"], self.cuts[cell], self.ends
        counts = ranks.values.reshape(-1, len(cuts) + 1)[cell]
        below, whole, found = np.cumsum(counts)[:-1], float(counts.sum()), []
        for value, share in zip(self.points[cell].tolist(), self.shares, strict=True):
            excess, reach = below - share * whole, _reach_of_sum(ranks, len(cuts), share)
            under = float(cuts[excess < -reach].max(initial=low))
            over = float(cuts[excess > reach].min(initial=high))
            found.append(Estimate(value, None, min(under, value), max(over, value)))
        return found


def _reach(shares: Sequence[float], below: float = 0.0, above: float = 1.0) -> float:
    """Return the most that a row moves a score by, over a tree of quantiles at these shares."""
    if not shares:
        return 0.0
    middle = len(shares) // 2
    share = (shares[middle] - below) / (above - below)
    # Scores use rounded shares: 1e-6 covers the rounding.
    return max(
        max(share, 1 - share) + 1e-6,
        _reach(shares[:middle], below, shares[middle]),
        _reach(shares[middle + 1 :], shares[middle], above),
    )


def _reach_of_sum(noisy: Noisy, k: int, share: float) -> Vector:
    """Return the bound that the noise of an excess exceeds on one side, at each of k cuts.

    All cuts share the 5 percent. Totals below a cut count with weight 1 - share, and totals above
    it with -share.
    """
    failure, below, above = (1 - CONFIDENCE) / k, np.arange(1, k + 1), np.arange(k, 0, -1)
    if noisy.query.kind != LAPLACE_TOTAL:
        weights: Vector = np.sqrt(below * (1 - share) ** 2 + above * share**2)
        return noisy.reach(2 * failure) * weights
    # Chernoff: sums of Laplace noises of scales w b have log E e^(s X) = -sum log(1 - (s w b)^2).
    rates = np.linspace(0.02, 0.98, 49) / max(1 - share, share)
    logs: Any = -(
        np.outer(np.log1p(-((rates * (1 - share)) ** 2)), below)
        + np.outer(np.log1p(-((rates * share) ** 2)), above)
    )
    reaches: Vector = (logs - np.log(failure)) / rates[:, np.newaxis]
    return np.asarray(reaches.min(axis=0) * noisy.scale)
