"""How do columns become features? Categories as 0 and 1, and numbers on curves that are fixed.

>>> import numpy as np
>>> wards = np.random.default_rng(0).choice(["east", "north", "west"], (3_000, 1))
>>> wards[0] = "palace"
>>> encoder = OneHotEncoder(epsilon=0.5, delta=1e-6).fit(wards)
>>> [each.tolist() for each in encoder.categories_]
[['east', 'north', 'west']]
>>> encoder.transform([["north"], ["palace"]]).tolist()
[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]

Splines, bins and waves learn nothing, so they cost no privacy, and may stand before any private
estimator.

>>> from sklearn.pipeline import make_pipeline
>>> from dpcal.estimators import LogisticRegression
>>> X = np.random.default_rng(0).uniform(-1, 1, (5_000, 2))
>>> y = np.abs(X[:, 0]) > 0.5
>>> line = LogisticRegression(epsilon=1.0, delta=1e-6, classes=[False, True])
>>> model = make_pipeline(Splines(bounds=(-1, 1)), line).fit(X, y)
>>> bool(line.epsilon_spent_ <= 1.0), bool(np.mean(model.predict(X) == y) > 0.9)
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from dpcal._internal import annexes, validate
from dpcal.accountants import events
from dpcal.errors import warn_caller
from dpcal.estimators.base import Table
from dpcal.estimators.bounds import LEARN, Transformer, bounded
from dpcal.estimators.queries import labels_of_columns
from dpcal.estimators.reading import by_partitions, checked, shaped, table_of
from dpcal.optim.objectives.domains import codes, counted, labels_of, typed, unlabelled
from dpcal.optim.objectives.placed import sample_of
from dpcal.tables.bases import bins, hats, waves


def _cells_in(X: Any, *, least: int, estimator: str) -> NDArray[Any]:
    """Return records in a type of their own, or of objects, after scikit-learn's checks."""
    for column, kind in zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=True):
        if getattr(kind, "is_temporal", lambda kind=kind: getattr(kind, "kind", "O") in "mM")():
            raise TypeError(
                f"X must hold numbers or texts, got column {column!r} of type {kind}: its cells "
                "would be no categories."
            )
    given = X if hasattr(X, "toarray") else labels_of(X)
    table = shaped(given, least=least, estimator=estimator)
    if table.dtype.kind not in "biufUO":
        raise TypeError(f"X must hold numbers or texts, got an array of type {table.dtype}.")
    return np.asarray(table)


@dataclass(kw_only=True, eq=False, repr=False)
class OneHotEncoder(Transformer):
    """Encode categories as columns of 0 and 1, for categories that are declared or learned.

    A value that is not a known category is 0 in all columns. So is a cell that is missing (None, or
    no finite number); but a record with no cell at all is ignored, and stays so: its features are
    NaN. If missing is to be a category, mark it by a text of its own.

    Parameters
    ----------
    categories
        ``"learn"``: categories with noisy counts in their column above a threshold, so that a
        category of a few records is never named. Or a list of the categories of each column, known
        without a look at the records: nothing is learned then, a fit costs nothing, and it has no
        share in a budget.

    Attributes
    ----------
    categories_
        For each column the array of its categories, in sort order.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas 2009, Releasing search queries and clicks privately,
    with Gaussian noise; Wilkins, Kifer, Zhang and Karrer 2024, Exact privacy analysis of the
    Gaussian sparse histogram mechanism.
    """

    categories: Any = LEARN

    categories_: list[NDArray[Any]] = field(init=False)
    _numbers_of = staticmethod(_cells_in)

    def _declare(self, X: Any) -> None:
        self.categories_ = _declared(self.categories, X.shape[1])
        self._transformed(sample_of(X)[:1])

    def _learn(self, X: Any, *, first: bool) -> Self:
        n, d = X.shape
        query = labels_of_columns("categories", *self._target(), d)
        with self._asking(self._plan(n, query)) as told:
            choices = told.choices(X)
            found = [choices.labels(query.name, column) for column in range(d)]
        # Types come from the categories only: a missing cell would make floats of whole numbers.
        self.categories_ = [typed(counted(each.astype(object))[0]) for each in found]
        empty = [column for column, each in enumerate(self.categories_) if not len(each)]
        if empty:
            warn_caller(
                f"No category was learned for columns {empty}, which give no features: too few "
                "records share one. Declare categories, or give more records or epsilon.",
                UserWarning,
            )
        return self

    def _transformed(self, table: NDArray[Any]) -> Table:
        """Return features of records, shape (m, number of all categories); NaN for an ignored one.

        ValueError is raised for an array of numbers where categories are texts, and conversely.
        """
        parts = [np.zeros((len(table), len(each))) for each in self.categories_]
        for part, column, known in zip(parts, table.T, self.categories_, strict=True):
            if len(known):
                place = codes("X", column, known)
                inside = np.flatnonzero(place >= 0)
                part[inside, place[inside]] = 1.0
        found = np.hstack(parts)
        found[unlabelled(table).all(axis=1)] = np.nan
        return found

    def _cost(self, epsilon: float, delta: float) -> events.DpEvent:
        return labels_of_columns("categories", epsilon, delta, 1).event(1)

    def _is_free(self) -> bool:
        if isinstance(self.categories, str) and self.categories != LEARN:
            raise ValueError(
                f"categories must be {LEARN!r}, or a list of the categories of each column, got "
                f"{self.categories!r}."
            )
        return not isinstance(self.categories, str)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each feature: the name of its column, and its category."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        pairs = zip(names, self.categories_, strict=True)
        return np.array([f"{name}_{each}" for name, own in pairs for each in own], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def _declared(categories: Any, columns: int) -> list[NDArray[Any]]:
    """Return the categories of each column in sort order."""
    try:
        own = [labels_of(each) for each in categories if not isinstance(each, str)]
    except TypeError:
        own = []
    if len(own) != columns or len(categories) != columns:
        raise ValueError(
            f"categories must be {LEARN!r}, or a list of the categories of each of {columns} "
            f"columns, got {categories!r}."
        )
    found = [counted(each.astype(object))[0] for each in own]
    for given, different in zip(own, found, strict=True):
        if given.ndim != 1 or not len(given) or len(different) != len(given):
            raise ValueError(
                "categories must be one or more different numbers or texts in each column, got "
                f"{given.tolist()!r}."
            )
    return [typed(each) for each in found]


@dataclass(kw_only=True, eq=False, repr=False)
class Basis(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A stateless transformer; its rows have a norm of at most ``sqrt(n_features_out)``.

    Linear models of this package use this norm for ``row_norm`` when it is omitted.
    """

    bounds: Any = None

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check the parameters and the shape of records, and learn nothing."""
        sample = annexes.sample_of(X) if hasattr(X, "__dask_graph__") else X
        self._expanded(self._places(sample, reset=True)[:1])
        return self

    @by_partitions
    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike) -> Table:
        """Return features of records of shape (m, n_features); an ignored record's are NaN."""
        return self._expanded(self._places(X, reset=False))

    def _places(self, X: Any, *, reset: bool) -> Table:
        """Return where in its bounds each number is, in [0, 1]; an ignored record has NaN."""
        table = checked(self, X, numbers_of=table_of, reset=reset, least=1)
        low, high = bounded("bounds", self.bounds, table.shape[1])
        # Halves first: the difference of two large ends could overflow.
        return np.asarray(
            np.clip((table / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0), dtype=np.float64
        )

    def _expanded(self, places: Table) -> Table:
        raise NotImplementedError

    def _labels(self, names: Sequence[str]) -> list[str]:
        raise NotImplementedError

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each feature."""
        names = _check_feature_names_in(self, input_features)
        return np.array(self._labels(list(names)), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class Splines(Basis):
    """Expand each column into linear splines, so that a linear model adds up continuous curves.

    Parameters
    ----------
    bounds
        A pair (low, high) of public numbers, or of arrays of one number a column. Values outside
        count as the nearer end.
    n_knots
        Number >= 2 of equally spaced knots, each a feature.
    """

    n_knots: int = 8

    def _expanded(self, places: Table) -> Table:
        count = _at_least_two(n_knots=self.n_knots)
        return _scaled([hats(column, count) for column in places.T])

    def _labels(self, names: Sequence[str]) -> list[str]:
        return [f"{name} knot {place}" for name in names for place in range(self.n_knots)]


@dataclass(kw_only=True, eq=False, repr=False)
class Bins(Basis):
    """Cut each column into equal bins, so that a linear model adds up step functions.

    Parameters
    ----------
    bounds
        See :class:`Splines`.
    n_bins
        Number >= 2 of bins of a column, each a feature.
    """

    n_bins: int = 16

    def _expanded(self, places: Table) -> Table:
        count = _at_least_two(n_bins=self.n_bins)
        return _scaled([bins(column, count) for column in places.T])

    def _labels(self, names: Sequence[str]) -> list[str]:
        return [f"{name} bin {place}" for name in names for place in range(self.n_bins)]


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFeatures(Basis):
    """Map records to random Fourier features, so that a linear model is a Gaussian kernel's.

    Columns are moved and scaled from their bounds to [-1, 1].

    Parameters
    ----------
    bounds
        See :class:`Splines`.
    n_waves
        Number >= 1 of random waves; each gives two features.
    gamma
        Inverse squared width > 0 of the kernel ``exp(-gamma ||x - y||^2)``; when omitted,
        ``4 / n_features``.
    random_state
        An integer >= 0 that decides which features there are. It is public, as they are.

    References
    ----------
    Rahimi and Recht 2007, Random features for large-scale kernel machines.
    """

    n_waves: int = 128
    gamma: float | None = None
    random_state: int = 0

    def _expanded(self, places: Table) -> Table:
        gamma = 4 / places.shape[1] if self.gamma is None else self.gamma
        count, gamma = validate.count(n_waves=self.n_waves), validate.positive(gamma=gamma)
        seed = self.random_state
        if type(seed) is not int or not 0 <= seed < 2**32:
            raise ValueError(f"random_state must be an integer in [0, 2^32), got {seed!r}.")
        made = waves(2 * places - 1, count, gamma=gamma, seed=seed)
        return _scaled([made])

    def _labels(self, names: Sequence[str]) -> list[str]:
        return [f"{part} {i}" for part in ("cosine", "sine") for i in range(self.n_waves)]


def _scaled(parts: Sequence[Table]) -> Table:
    """Return parts with rows of norm at most 1, side by side, of norm sqrt(n_features)."""
    together = np.hstack(parts)
    together *= math.sqrt(together.shape[1] / len(parts))
    return together


def _at_least_two(**given: Any) -> int:
    ((name, value),) = given.items()
    if validate.count(**given) < 2:
        raise ValueError(f"{name} must be a whole number >= 2, got {value!r}.")
    return int(value)
