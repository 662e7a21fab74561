"""How are records read? Tables here, and Dask collections where they are, after the same checks.

>>> numbers_in([[1, "x"], [2, 3.5]], least=2, estimator="model").tolist()
[[1.0, nan], [2.0, 3.5]]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from dpcal._internal import annexes
from dpcal.optim.objectives.domains import blanked, cells, finite_rows, labels_of
from dpcal.optim.objectives.placed import by_row, is_placed, sample_of

Table = NDArray[np.float64]

# Methods with a row of results for each record, which depends on that record only.
BY_ROW = {"decision_function", "predict", "predict_log_proba", "predict_proba", "transform"}


def by_partitions(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a model that gives a Dask array of a Dask collection."""

    @wraps(method)
    def answered(self: Any, X: Any, *given: Any, **options: Any) -> Any:
        if hasattr(X, "__dask_graph__"):
            return annexes.by_partitions(getattr(self, method.__name__), X)
        return method(self, X, *given, **options)

    return answered


def checked(
    estimator: Any, X: Any, *, numbers_of: Callable[..., Any], reset: bool, least: int
) -> Any:
    """Return records as a function gives them, after scikit-learn's checks of their columns.

    Parameters
    ----------
    estimator
        Its ``fit`` sets the columns, if ``reset``, and its other methods need the same ones.
    X
        Records here, or in partitions of a cluster.
    numbers_of
        Returns the table of some of them, such as :func:`numbers_in`.
    reset
        Whether this is a fit.
    least
        Least number of records.
    """
    name = type(estimator).__name__
    if is_placed(X):
        if len(X) < least:
            raise ValueError(
                f"{name} needs {least} records at least, got {len(X)} in all partitions."
            )
        least = 0
    table = by_row(partial(numbers_of, least=least, estimator=name), X)
    given = sample_of(X)
    validate_data(
        estimator,
        given if hasattr(given, "columns") else sample_of(table),
        skip_check_array=True,
        reset=reset,
    )
    return table


def numbers_in(X: Any, *, least: int, estimator: str) -> Table:
    """Return records as float64, with NaN for each cell that is not a finite number.

    All shapes but (n, d) with n >= ``least``, and types of arrays and columns that are not of real
    numbers, are refused in the name of the estimator. No message shows a cell: scikit-learn only
    sees shapes, because some of its messages print the array.
    """
    table = shaped(X if issparse(X) else real_cells(X), least=least, estimator=estimator)
    finite = np.isfinite(table)
    return table if finite.all() else np.where(finite, table, np.nan)


def real_cells(X: Any) -> Table:
    """Return cells as float64, with NaN for one that is no number; refuse complex ones."""
    _refuse_complex(X)
    return cells("X", X)


def _refuse_complex(values: Any, name: str = "X") -> None:
    if getattr(getattr(values, "dtype", None), "kind", "O") == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")


def shaped(table: Any, *, least: int, estimator: str) -> Any:
    """Return a table of shape (n, d) with n >= ``least``; refuse any other, and sparse ones."""
    _refuse_complex(table)
    if getattr(table, "ndim", 2) != 2:
        raise ValueError(
            f"Expected 2D array, got {table.ndim}D array instead: X must have shape (n, d), a row "
            "for each record. Reshape your data either using X.reshape(-1, 1) if it has a single "
            "feature or X.reshape(1, -1) if it contains a single sample."
        )
    return check_array(
        table,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=least,
        estimator=estimator,
        input_name="X",
    )


def table_of(X: Any, *, least: int, estimator: str) -> Table:
    """Return records as :func:`numbers_in` does, all NaN where a cell is not a finite number."""
    table = numbers_in(X, least=least, estimator=estimator)
    return blanked(table, finite_rows(table), np.nan)


def one_for_each(rows: Table, y: Any, *, estimator: str) -> NDArray[Any]:
    """Return the labels or targets of records, shape (n,), whatever each of them is."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None.")
    labels = labels_of(y)
    _refuse_complex(labels, "y")
    given: NDArray[Any] = column_or_1d(labels, warn=True)
    check_consistent_length(rows, given)
    return given
