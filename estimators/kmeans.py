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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from dpcal._internal import validate
from dpcal.calibrate.plans.common import repeated
from dpcal.estimators.base import Answers, Table
from dpcal.estimators.bounds import BoundedEstimator, Transformer, scaled
from dpcal.optim.linear_fit import sum_query
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.optim.objectives.placed import by_row

# Rounds of Lloyd's algorithm: centres settle in few, and more rounds need more noise.
_ROUNDS = 5

_GRID_SHARE = 0.2

# Largest number of cells of the grid: with more, counts would be noise.
_CELLS = 4096

# Standard deviations of noise below which a count leaves its centre where it is.
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
        k = validate.count(n_clusters=self.n_clusters)
        if k > n:
            raise ValueError(f"n_clusters must be at most n_samples={n}, got {k}.")
        middle, half = self._box(d)
        rows = by_row(lambda some: scaled(some, middle, half), X)
        grid, rounds = self._multipliers([_GRID_SHARE, 1 - _GRID_SHARE])
        # A record adds 1 to a count and, divided by sqrt d, a vector of norm at most 1 to a sum.
        sums = sum_query("clusters", math.sqrt(2), repeated(rounds, _ROUNDS), _ROUNDS)
        plan = self._plan(n, sum_query("grid", 1.0, grid), sums, rounds=_ROUNDS)
        places, indicators = _grid(d)
        with self._asking(plan) as told:
            counts = told.mean("grid", indicators, len(places), rows)
            centers, self.counts_ = _lloyd(told, rows, _heaviest(counts, places, k))
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

    def _transformed(self, X: Table) -> Table:
        """Return distances of records from the centres, shape (m, n_clusters)."""
        away = X[:, np.newaxis, :] - self.cluster_centers_
        distances: Table = np.linalg.norm(away, axis=2)
        return distances


def _lloyd(told: Answers, rows: Table, centers: Table) -> tuple[Table, Table]:
    """Return centres after all rounds of Lloyd's algorithm, and the last noisy counts."""
    n, d = rows.shape
    k, query = len(centers), told.plan.query("clusters")
    weight = 1 / math.sqrt(d)

    def vectors(w: Table, some: Table) -> Table:
        """Return the parts of rows in the sum and the count of their nearest centre in w."""
        known, each = finite_rows(some), np.arange(len(some))
        nearest = _nearest(some, w[: k * d].reshape(k, d))
        table = np.zeros((len(some), k, d + 1))
        table[each, nearest, :d] = some * weight
        table[each, nearest, d] = 1.0
        return blanked(table.reshape(len(some), -1), known)

    oracle = told.oracle(told.part(query, "lloyd"), vectors, k * (d + 1), rows)
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


def _nearest(rows: Table, centers: Table) -> NDArray[np.intp]:
    """Return the number of the nearest centre of each row."""
    squares = (centers**2).sum(axis=1) - 2 * rows @ centers.T
    nearest: NDArray[np.intp] = squares.argmin(axis=1)
    return nearest


def _grid(d: int) -> tuple[Table, Callable[..., Table]]:
    """Return the middles of the cells of a grid over leading columns, and which cell rows are in.

    The latter is a function of rows that returns a table with a 1 in the column of a row's cell,
    and zeros for an ignored row.
    """
    side = max(2, min(8, math.floor(_CELLS ** (1 / d))))
    columns = min(d, math.floor(math.log(_CELLS, side)))
    sides = [side] * columns
    places = np.zeros((side**columns, d))
    places[:, :columns] = (2 * np.indices(sides).reshape(columns, -1).T + 1) / side - 1

    def indicators(w: Table, rows: Table) -> Table:
        known, table = finite_rows(rows), np.zeros((len(rows), len(places)))
        steps = side * (blanked(rows, known)[:, :columns] + 1) / 2
        cells = np.ravel_multi_index(np.minimum(steps.astype(np.intp), side - 1).T, sides)
        table[np.arange(len(rows)), cells] = 1.0
        return blanked(table, known)

    return places, indicators


def _heaviest(counts: Table, places: Table, k: int) -> Table:
    """Return k places, each with the largest count times its distance from the places before."""
    weights = np.maximum(counts, 0.0)
    chosen = [int(weights.argmax())]
    away = np.linalg.norm(places - places[chosen[0]], axis=1)
    while len(chosen) < k:
        chosen.append(int(((weights + 1e-12) * away**2).argmax()))
        away = np.minimum(away, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return places[chosen].copy()
