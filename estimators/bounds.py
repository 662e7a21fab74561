"""How are bounds learned, where none are known? By noisy counts of orders of magnitude.

Every value has a sign and an order of magnitude: it lies between two neighboring powers of two. The
orders that enough records share in a column are released, and the bounds are their ends. They may
be twice as wide as they could be, and leave out values that few records have.

>>> import numpy as np
>>> from dpcal.estimators import StandardScaler
>>> X = np.random.default_rng(0).normal([40.0, -3.0], [10.0, 1.0], (5_000, 2))
>>> scaler = StandardScaler(bounds="learn", epsilon=1.0).fit(X)
>>> [ends.tolist() for ends in scaler.bounds_]
[[16.0, -8.0], [64.0, -1.0]]
>>> scaler.mean_.round().tolist(), [entry.name for entry in scaler.ledger_.entries]
([40.0, -3.0], ['bounds', 'moments'])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from dpcal.accountants import events
from dpcal.calibrate import Plan
from dpcal.estimators.base import (
    LEARN,
    Answers,
    BoundedEstimator,
    Table,
    blank_targets,
)
from dpcal.estimators.queries import RELATION, labels_of_columns
from dpcal.estimators.reading import checked, numbers_in
from dpcal.optim.budget import _collected, prepaid
from dpcal.optim.objectives.domains import blanked
from dpcal.optim.objectives.placed import by_row, opened

__all__ = ["ByCell", "Unsupervised", "fit_learning_bounds"]

# Share of epsilon and of delta that bounds cost, where they are learned. Counts of orders of
# magnitude need little; with much more the estimator has visibly more noise.
_SHARE = 0.1
# Order of magnitude under which a value counts as 0.
_SMALLEST = -60


class Unsupervised(BoundedEstimator, ABC):
    """An estimator that learns from records without targets."""

    @np.errstate(all="ignore")
    def fit(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Self:
        """Learn from records of shape (n, n_features), of persons of shape (n,)."""
        if self._is_free():
            n, d = self._read(X).shape
            self._declare(d)
            self._close_free(n)
            return self
        (rows,) = self._within_persons(groups, self._read(X))
        if self._learns_bounds():
            fit_learning_bounds(self, rows, None)
            return self
        return self._learn(rows, first=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Blank records are handed on, as what fits the next step of a pipeline.
        tags.input_tags.allow_nan = True
        return tags

    def _declare(self, columns: int) -> None:
        """Keep what is declared of so many columns, where nothing is learned."""
        raise NotImplementedError

    def _cells(self, X: Table) -> Table:
        """Return checked records with NaN for cells that do not count."""
        return X

    @abstractmethod
    def _learn(self, X: Table, *, first: bool) -> Self:
        """Learn from checked records, after those of earlier calls unless it is the first."""


class ByCell(Unsupervised):
    """An estimator for which a cell that is not a finite number is missing alone, not its record.

    Of records of which all cells are missing, the transformed cells must be too.
    """

    def _read(self, X: ArrayLike, *, reset: bool = True) -> Table:
        """Return records as float64, with NaN for each cell that is not a finite number."""
        (X,) = opened(X)
        table: Table = checked(self, X, numbers_of=numbers_in, reset=reset)
        return table


def fit_learning_bounds(estimator: BoundedEstimator, X: Table, y: Any) -> None:
    """Learn bounds by a tenth of the budget, and fit by the rest.

    Parameters
    ----------
    estimator
        With ``bounds``, ``target_bounds`` or both ``"learn"``. It is left as ``fit`` leaves it, and
        has the learned bounds as ``bounds_`` and ``target_bounds_``.
    X, y
        Records, shape (n, d), all NaN where blank, and their targets or None; checked.

    Raises
    ------
    ValueError
        If noisy counts name no order of a column. The bounds were paid for then.
    """
    names = [name for name in ("bounds", "target_bounds") if _asked(estimator, name)]
    parts = {"bounds": estimator._cells(X) if isinstance(estimator, Unsupervised) else X}
    known = by_row(_some_finite, parts["bounds"])
    if "target_bounds" in names:
        parts["target_bounds"] = by_row(_as_column, y)
    columns = by_row(blanked, by_row(_beside, *(parts[name] for name in names)), known)
    epsilon, delta = estimator._target()
    query = labels_of_columns("bounds", _SHARE * epsilon, _SHARE * delta, columns.shape[1])
    estimator._of_persons(query)  # refuses persons with several rows
    rest = clone(estimator)
    rest.set_params(
        epsilon=(1 - _SHARE) * epsilon, delta=(1 - _SHARE) * delta * (1 - 1e-12), budget=None
    )
    rest._seed = estimator._seed
    # The estimator's own plan does not depend on bounds, nor on records.
    with _collected() as found:
        blank = clone(rest).set_params(**dict.fromkeys(names, (-1.0, 1.0)))
        zeros = by_row(np.zeros_like, X)
        blank.fit(*((zeros,) if y is None else (zeros, by_row(partial(blank_targets, blank), y))))
    plan = Plan(
        optimizer="bounds",
        n=len(X),
        queries=(query,),
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=RELATION,
    )
    whole, told = events.ComposedDpEvent([plan.event, *found]), Answers(estimator, plan)
    with prepaid(whole, RELATION, estimator.budget, label=type(estimator).__name__):
        choices = told.choices(by_row(_orders, columns), known=known)
        ends = np.array([_range(choices.labels("bounds", j), j) for j in range(columns.shape[1])])
        widths = [parts[name].shape[1] for name in names]
        for name, low, high in zip(
            names, *(np.split(ends[:, i], np.cumsum(widths)[:-1]) for i in (0, 1)), strict=True
        ):
            found_bounds = (low, high) if name == "bounds" else (float(low[0]), float(high[0]))
            rest.set_params(**{name: found_bounds})
            setattr(estimator, f"{name}_", found_bounds)
        rest.fit(*((X,) if y is None else (X, y)))
    own = estimator.get_params(deep=False)
    kept = {name: value for name, value in vars(rest).items() if name not in own}
    estimator.__dict__.update(kept)
    last = rest._last
    told.plan = estimator._plan(len(X), query, *last.plan.queries, **last.plan.parameters)
    told.ledgers, told.w, told.complete = [*told.ledgers, *last.ledgers], last.w, last.complete
    estimator._close(told, first=True)


def _some_finite(cells: Table) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(cells).any(axis=1))


def _as_column(targets: Table) -> Table:
    return np.reshape(targets, (-1, 1))


def _beside(*tables: Table) -> Table:
    return np.hstack(tables)


def _asked(estimator: BoundedEstimator, name: str) -> bool:
    given = getattr(estimator, name, None)
    return isinstance(given, str) and given == LEARN


def _orders(columns: Table) -> NDArray[Any]:
    """Sign and order of magnitude of each value, as one number: 0 for values near 0."""
    _, exponents = np.frexp(columns)
    orders = np.sign(columns) * np.maximum(exponents - _SMALLEST, 0)
    # Labels that are NaN are not counted.
    return np.asarray(orders if np.isnan(orders).any() else orders.astype(np.int64))


def _range(orders: NDArray[Any], column: int) -> tuple[float, float]:
    """The ends of the orders that were released."""
    if not len(orders):
        raise ValueError(
            f"bounds were not learned: too few records share an order of magnitude in column "
            f"{column} for noisy counts to name it. Declare bounds, or give more records or "
            "epsilon."
        )
    low, high = int(orders[0]), int(orders[-1])
    lowest = -_power(-low) if low < 0 else _power(low - 1) if low > 1 else 0.0
    highest = _power(high) if high > 0 else -_power(-high - 1) if high < -1 else 0.0
    if lowest == highest:
        return -_power(1), _power(1)
    return lowest, highest


def _power(order: int) -> float:
    return math.ldexp(1.0, order + _SMALLEST) if order > 0 else 0.0
