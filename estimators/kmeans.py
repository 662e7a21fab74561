"""Where are the clusters? Lloyd's algorithm on noisy sums, from centres that a grid gives.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(0.0, 0.1, (9_000, 2)) + np.repeat([[-1, -1], [1, 1], [1, -1]], 3_000, axis=0)
>>> model = KMeans(n_clusters=3, bounds=(-2, 2), epsilon=1.0).fit(X)
>>> sorted(np.abs(model.cluster_centers_).round().tolist())
[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
>>> len(set(model.predict([[-1, -1], [1, 1], [1, -1]]).tolist()))
3
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.calibrate.plans.common import repeated
from dpcal.estimators.base import Answers, Table
from dpcal.estimators.bounds import BoundedEstimator, Transformer, scaled
from dpcal.optim.linear_fit import sum_query
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.optim.objectives.placed import by_row

__all__ = ["KMeans"]

# Rounds of Lloyd's algorithm. Centres settle in few, and every round needs more noise in all.
_ROUNDS = 5

# Share of the squared GDP parameter for the counts of the grid that the centres start from.
_GRID_SHARE = 0.2

# Largest number of cells of the grid. More cells hold fewer records each than there is noise.
_CELLS = 4096

# A centre whose noisy count is below this many standard deviations of its noise stays where it is.
_FEW = 4.0


@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, Transformer, BoundedEstimator):  # type: ignore[misc]
    """K-means by noisy counts and sums of each cluster's records.

    Centres start at the heaviest cells, by noisy counts, of a grid over the first coordinates that
    have room for it, far from each other. Each of five rounds releases the clusters' counts and
    sums in one noisy answer.

    Parameters
    ----------
    n_clusters
        Number of clusters >= 1.

    Attributes
    ----------
    cluster_centers_
        Shape (n_clusters, n_features).
    counts_
        Shape (n_clusters,), the noisy counts of the last round.

    References
    ----------
    Su, Cao, Li, Bertino and Jin 2016, Differentially private k-means clustering (noisy Lloyd and a
    grid); here with Gaussian noise and one answer a round.
    """

    n_clusters: int = field(default=8, kw_only=False)

    def _learn(self, X: Table, *, first: bool) -> Self:
        n, d = X.shape
        k = _validate.count(n_clusters=self.n_clusters)
        if k > n:
            raise ValueError(f"n_clusters must be at most n_samples={n}, got {k}.")
        middle, half = self._box(d)
        known = by_row(finite_rows, X)
        rows = by_row(blanked, by_row(partial(scaled, middle=middle, half=half), X), known)
        grid, rounds = self._multipliers([_GRID_SHARE, 1 - _GRID_SHARE])
        # A record adds 1 to a count and its coordinates, of norm sqrt d at most, to a sum, which
        # has as much weight as the count when it is divided by sqrt d.
        sums = sum_query("clusters", math.sqrt(2), repeated(rounds, _ROUNDS), _ROUNDS)
        plan = self._plan(n, sum_query("grid", 1.0, grid), sums, rounds=_ROUNDS)
        places, side, columns = _grid(d)
        cells = by_row(partial(_cells, side=side, columns=columns), rows)
        size = len(places)
        indicators = partial(_indicators, count=size)
        with self._asking(plan) as told:
            counts = told.mean("grid", indicators, size, cells, known)
            centers, self.counts_ = _lloyd(told, rows, known, _heaviest(counts, places, k))
        self.cluster_centers_ = middle + half * centers
        self._n_features_out = k
        return self

    @np.errstate(all="ignore")
    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the nearest centre of each record of shape (m, n_features).

        It is -1 for a record with a cell that is not a finite number.
        """
        check_is_fitted(self)
        self._refuse_unpaid()
        table = self._read(X, reset=False)
        _, half = self._box(self.n_features_in_)
        found = _nearest(table / half, self.cluster_centers_ / half)
        return np.where(finite_rows(table), found, -1).astype(np.int32)

    def fit_predict(self, X: ArrayLike, y: Any = None) -> NDArray[np.int32]:
        """Learn centres, and return the cluster of each record; that is not private."""
        return self.fit(X).predict(X)

    @property
    def labels_(self) -> NDArray[np.int32]:
        """Not kept: the model would hold an exact function of each record."""
        raise AttributeError(
            "labels_ are exact functions of the records, and are not kept in the model: use "
            "fit_predict(X), or predict(X)."
        )

    def _transformed(self, X: Table) -> Table:
        """Return distances of records from the centres, shape (m, n_clusters)."""
        away = X[:, np.newaxis, :] - self.cluster_centers_
        distances: Table = np.linalg.norm(away, axis=2)
        return distances


def _lloyd(
    told: Answers, rows: Table, known: NDArray[np.bool_], centers: Table
) -> tuple[Table, Table]:
    """Return centres after all rounds of Lloyd's algorithm, and the last noisy counts."""
    n, d = rows.shape
    k, query = len(centers), told.plan.query("clusters")
    weight = 1 / math.sqrt(d)
    vectors = partial(_sums, weight=weight, k=k)
    oracle = told.oracle(told.part(query, "lloyd"), vectors, k * (d + 1), rows, known)
    few = _FEW * query.noise_multiplier * query.max_norm
    counts = np.zeros(k)
    for _ in range(query.count):
        at = np.concatenate([centers.ravel(), np.zeros(k)])
        sums = n * oracle.gradient(at, "clusters").reshape(k, d + 1)
        counts = sums[:, d]
        enough = counts > few
        means = sums[enough, :d] / weight / counts[enough, np.newaxis]
        centers = centers.copy()
        centers[enough] = np.clip(means, -1.0, 1.0)
    return centers, counts


def _sums(w: Table, rows: Table, known: NDArray[np.bool_], *, weight: float, k: int) -> Table:
    """Return what rows add to the sum and the count of their nearest centre in w."""
    m, d = rows.shape
    nearest = _nearest(rows, w[: k * d].reshape(k, d))
    table = np.zeros((m, k, d + 1))
    table[np.arange(m), nearest, :d] = rows * weight
    table[np.arange(m), nearest, d] = 1.0
    return blanked(table.reshape(m, -1), known)


def _nearest(rows: Table, centers: Table) -> NDArray[np.intp]:
    """Return the number of the nearest centre of each row."""
    squares = (centers**2).sum(axis=1) - 2 * rows @ centers.T
    nearest: NDArray[np.intp] = squares.argmin(axis=1)
    return nearest


def _cells(rows: Table, *, side: int, columns: int) -> NDArray[np.intp]:
    """Return the cell of each row in a grid over leading columns."""
    steps = np.minimum((side * (rows[:, :columns] + 1) / 2).astype(np.intp), side - 1)
    cells = np.zeros(len(rows), dtype=np.intp)
    for column in range(columns):
        cells = cells * side + steps[:, column]
    return cells


def _grid(d: int) -> tuple[Table, int, int]:
    """Return the middles of all cells of a grid over leading columns, its sides, and how many."""
    side = max(2, min(8, math.floor(_CELLS ** (1 / d))))
    columns = min(d, math.floor(math.log(_CELLS, side)))
    middles = (2 * np.arange(side) + 1) / side - 1
    places = np.zeros((side**columns, d))
    for number, axis in enumerate(np.meshgrid(*[middles] * columns, indexing="ij")):
        places[:, number] = axis.ravel()
    return places, side, columns


def _indicators(
    w: Table, cells: NDArray[np.intp], known: NDArray[np.bool_], *, count: int
) -> Table:
    """Return one row a record, with a 1 in the column of its cell; zeros where it is blank."""
    table = np.zeros((len(cells), count))
    table[np.arange(len(cells)), cells] = 1.0
    return blanked(table, known)


def _heaviest(counts: Table, places: Table, k: int) -> Table:
    """Return k places, each the one of the largest count times its distance from those before."""
    weights = np.maximum(counts, 0.0)
    chosen = [int(weights.argmax())]
    away = np.linalg.norm(places - places[chosen[0]], axis=1)
    while len(chosen) < k:
        chosen.append(int(((weights + 1e-12) * away**2).argmax()))
        away = np.minimum(away, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return places[chosen].copy()
