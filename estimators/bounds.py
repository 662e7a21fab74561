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
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from dpcal.accountants import events
from dpcal.estimators.base import Answers, PrivateEstimator, Table
from dpcal.estimators.queries import RELATION, labels_of_columns
from dpcal.optim.account import Charge
from dpcal.optim.budget import _collected, prepaid
from dpcal.optim.objectives.domains import blanked
from dpcal.optim.objectives.placed import by_row

LEARN = "learn"
_LEARNED = ("bounds", "target_bounds")

# Largest bound of a number: squares of records stay far from the ends of doubles.
_FARTHEST = 1e100

# Share of epsilon and of delta for learned bounds: much more makes the estimator visibly noisier.
_SHARE = 0.1
# Exponent of 2 below which a value counts as 0.
_SMALLEST = -60


def bounded(name: str, bounds: Any, columns: int | None = None) -> tuple[Table, Table]:
    """Return lower and upper bounds as arrays; raise ``ValueError`` if they are none.

    Parameters
    ----------
    name
        Name of the parameter.
    bounds
        A pair (low, high) of numbers, or of arrays of one number a column.
    columns
        How many columns there are; None for a single number.

    >>> low, high = bounded("bounds", (-1, [1, 2]), 2)
    >>> low.tolist(), high.tolist()
    ([-1.0, -1.0], [1.0, 2.0])
    """
    told = "public numbers, known without a look at the records"
    if isinstance(bounds, str) and bounds == LEARN:
        raise ValueError(
            f"{name} are learned by fit alone, and partial_fit needs a pair of {told}."
        )
    if bounds is None:
        raise ValueError(f"{name} must be a pair (low, high) of {told}, got None.")
    shape = () if columns is None else (columns,)
    try:
        low, high = (np.broadcast_to(np.asarray(end, float), shape).copy() for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (low, high) of {told}, each a number or an array of shape "
            f"{shape}, got {bounds!r}."
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"{name} must be finite with low < high, got {bounds!r}.")
    if max(np.abs(low).max(), np.abs(high).max()) > _FARTHEST or (high - low).min() < 1 / _FARTHEST:
        raise ValueError(
            f"{name} must be between -{_FARTHEST:g} and {_FARTHEST:g}, and at least "
            f"{1 / _FARTHEST:g} apart, got {bounds!r}."
        )
    return low, high


def scaled(values: Table, middle: Any, half: Any) -> Table:
    """Return values moved and scaled so that their bounds are -1 and 1; others at the nearer end.

    Parameters
    ----------
    values
        Shape (n, d), or (n,).
    middle, half
        Ends of the bounds, and their distance: arrays of shape (d,), or numbers.
    """
    return np.asarray(np.clip((values - middle) / half, -1.0, 1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class BoundedEstimator(PrivateEstimator):
    """An estimator of records of numbers.

    Parameters
    ----------
    bounds
        A pair (low, high) of numbers, or of arrays of shape (n_features,), known without a look at
        the records; or ``"learn"``, for a tenth of the budget. Values outside are moved to the
        nearer bound.
    """

    bounds: Any = None

    def _fitted(self, *tables: Any) -> Self:
        if names := self._learned():
            _fit_learning_bounds(self, names, *tables)
            return self
        for name in _LEARNED:
            self.__dict__.pop(f"{name}_", None)
        return super()._fitted(*tables)

    def _is_gaussian(self) -> bool:
        return not self._learned()

    def _cells(self, X: Table) -> Table:
        """Return checked records with NaN for cells that do not count."""
        return X

    def _ends(self, columns: int | None = None, name: str = "bounds") -> tuple[Table, Table]:
        """Return learned bounds, or else the declared ones, as :func:`bounded` does."""
        return bounded(name, self.__dict__.get(f"{name}_", getattr(self, name)), columns)

    def _box(self, columns: int | None = None, name: str = "bounds") -> tuple[Table, Table]:
        """Return the middle of the bounds, and half of their distance, shape (columns,) each."""
        low, high = self._ends(columns, name)
        return (low + high) / 2, (high - low) / 2

    def _learned(self) -> list[str]:
        """Return the names of bounds that are to be learned; refuse any other text."""
        given = {name: getattr(self, name, None) for name in _LEARNED}
        texts = {name: text for name, text in given.items() if isinstance(text, str)}
        for name, text in texts.items():
            if text != LEARN:
                raise ValueError(
                    f"{name} must be a pair (low, high) of public numbers, or {LEARN!r}, got "
                    f"{text!r}."
                )
        return list(texts)


class Transformer(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """An estimator that learns from records without targets, and transforms records."""

    def _tables(self, X: ArrayLike, y: Any, *, reset: bool = True) -> tuple[Any, ...]:
        return (self._read(X, reset=reset),)

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike) -> Table:
        """Return the features of records of shape (m, n_features), a row for each."""
        check_is_fitted(self)
        return self._transformed(self._read(X, reset=False))

    def _transformed(self, X: Any) -> Table:
        """Return the features of checked records."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Ignored records are handed on, so that the next step of a pipeline has as many rows.
        tags.input_tags.allow_nan = True
        return tags


def _fit_learning_bounds(
    estimator: BoundedEstimator, names: list[str], X: Table, *y: NDArray[Any]
) -> None:
    """Learn bounds by a tenth of the budget, and fit by the rest.

    Parameters
    ----------
    estimator
        It is left as ``fit`` leaves it, and has the learned bounds as ``bounds_`` and
        ``target_bounds_``.
    names
        Which of its ``bounds`` and ``target_bounds`` are to be learned.
    X, *y
        Records, shape (n, d), all NaN where ignored, and their targets, if there are; checked.

    Raises
    ------
    ValueError
        If noisy counts name no order of a column. The bounds were paid for then.
    """
    parts = {"bounds": estimator._cells(X)}
    known = by_row(lambda cells: np.isfinite(cells).any(axis=1), parts["bounds"])
    if "target_bounds" in names:
        parts["target_bounds"] = by_row(lambda targets: np.reshape(targets, (-1, 1)), *y)
    beside = by_row(lambda *tables: np.hstack(tables), *(parts[name] for name in names))
    columns = by_row(blanked, beside, known)
    epsilon, delta = estimator._target()
    query = labels_of_columns("bounds", _SHARE * epsilon, _SHARE * delta, columns.shape[1])
    plan = estimator._plan(len(X), query)
    rest = clone(estimator)
    rest.set_params(epsilon=(1 - _SHARE) * epsilon, delta=(1 - _SHARE) * delta * (1 - 1e-12))
    rest._seed = estimator._seed
    # The estimator's own plan does not depend on bounds, nor on records.
    with _collected() as found:
        blank = clone(rest).set_params(**dict.fromkeys(names, (-1.0, 1.0)))
        zeros = by_row(np.zeros_like, X)
        blank.fit(zeros, *(by_row(blank._blank_targets, each) for each in y))
    whole = events.ComposedDpEvent([plan.event, *found])
    told = Answers(estimator, replace(plan, optimizer="bounds"))
    charge = Charge(
        optimizer=plan.optimizer, event=whole, delta=delta, neighboring_relation=RELATION
    )
    with prepaid(charge):
        choices = told.choices(by_row(_orders, columns), known=known)
        ends = np.array([_range(choices.labels("bounds", j), j) for j in range(columns.shape[1])])
        widths = [parts[name].shape[1] for name in names]
        for name, low, high in zip(
            names, *(np.split(ends[:, i], np.cumsum(widths)[:-1]) for i in (0, 1)), strict=True
        ):
            found_bounds = (low, high) if name == "bounds" else (float(low[0]), float(high[0]))
            rest.set_params(**{name: found_bounds})
            setattr(estimator, f"{name}_", found_bounds)
        rest.fit(X, *y)
    own = estimator.get_params(deep=False)
    kept = {name: value for name, value in vars(rest).items() if name not in own}
    estimator.__dict__.update(kept)
    last = rest._last
    told.plan = estimator._plan(len(X), query, *last.plan.queries, **last.plan.parameters)
    told.ledgers, told.complete = [*told.ledgers, *last.ledgers], last.complete
    estimator._close(told, first=True)


def _orders(columns: Table) -> NDArray[Any]:
    """Sign and order of magnitude of each value, as one number: 0 for values near 0."""
    _, exponents = np.frexp(columns)
    orders = np.sign(columns) * np.maximum(exponents - _SMALLEST, 0)
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
