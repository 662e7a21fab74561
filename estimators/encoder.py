"""How are categories turned into numbers? One column of 0 and 1 for each category that is known.

>>> import numpy as np
>>> wards = np.random.default_rng(0).choice(["east", "north", "west"], (3_000, 1))
>>> wards[0] = "palace"
>>> encoder = OneHotEncoder(epsilon=0.5, delta=1e-6).fit(wards)
>>> [each.tolist() for each in encoder.categories_]
[['east', 'north', 'west']]
>>> encoder.transform([["north"], ["palace"]]).tolist()
[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from dpcal.accountants import events
from dpcal.estimators.base import Table
from dpcal.estimators.bounds import LEARN, Transformer
from dpcal.estimators.queries import labels_of_columns
from dpcal.estimators.reading import shaped
from dpcal.optim.objectives.domains import codes, counted, labels_of, typed, unlabelled
from dpcal.optim.objectives.placed import sample_of

__all__ = ["OneHotEncoder"]


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
class OneHotEncoder(Transformer):  # type: ignore[misc]
    """Encode categories as columns of 0 and 1, for categories that are declared or learned.

    A value that is not a known category is 0 in all columns. So is a cell that is missing (None, or
    no finite number); but a record of which all cells are missing is blank, and stays so: its
    features are NaN. If missing is to be a category, mark it by a text of its own.

    Parameters
    ----------
    categories
        ``"learn"``: those whose noisy counts in their column pass a threshold, so that a category
        of a few records is never named. Or a list of the categories of each column, known without a
        look at the records: nothing is learned then, a fit costs nothing, and it has no share in a
        budget.

    Attributes
    ----------
    categories_
        Of each column the array of its categories, in sort order.

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
        # Their types are those of the categories alone: an array of whole numbers becomes one of
        # floats where a single cell is missing.
        self.categories_ = [typed(counted(each.astype(object))[0]) for each in found]
        empty = [column for column, each in enumerate(self.categories_) if not len(each)]
        if empty:
            warnings.warn(
                f"No category was learned for columns {empty}, which give no features: too few "
                "records share one. Declare categories, or give more records or epsilon.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _transformed(self, table: NDArray[Any]) -> Table:
        """Return features of records, shape (m, number of all categories); a blank one's are NaN.

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
        """Return a name for each feature: that of its column, and its category."""
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
