"""Which neighbours would show a mistake? Data sets that differ in one record, as far as can be.

>>> import numpy as np
>>> X, y = np.eye(3), np.array([0, 1, 1])
>>> [pair.label for pair in neighbours(X, y)]
['opposite', 'relabelled', 'long', 'short', 'empty', 'empty group']
>>> from dpcal.optim import Logistic
>>> objective = Logistic(X, y, fit_intercept=False, classes=[0, 1])
>>> everyone = np.arange(3)
>>> gone = objective.clipped_sum(np.zeros(3), everyone, 9.0) - without(objective, 0).clipped_sum(
...     np.zeros(3), everyone, 9.0)
>>> gone.tolist()
[0.5, 0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of, records
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Contributions, gradients, hessians, losses

__all__ = ["Neighbours", "neighbours", "random_table", "without"]

# Length of rows that are clipped by every plan, and of rows that are not. Squares of both stay
# normal numbers, because some losses refuse rows whose squares overflow.
_LONG, _SHORT = 1e9, 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two tables (X, y) or (X, None) that differ in one row, and the kind of the difference."""

    label: str
    first: tuple[Vector, NDArray[Any] | None]
    second: tuple[Vector, NDArray[Any] | None]
    row: int


# The labels of these pairs differ too. The opposite row with another label is the same record to a
# linear model, so that labels stay in the other pairs.
_RELABELLED = ("relabelled", "short")

_PAIRS: dict[str, Callable[[Vector], tuple[Vector, Vector]]] = {
    "opposite": lambda x: (x, -x),
    "relabelled": lambda x: (x, x),
    "long": lambda x: (_LONG * x, -_LONG * x),
    "short": lambda x: (_SHORT * x, _LONG * x),
    "empty": lambda x: (x, np.zeros_like(x)),
}


def neighbours(X: ArrayLike, y: ArrayLike | None = None, *, row: int = 0) -> Iterator[Neighbours]:
    """Yield pairs of tables that differ in one row.

    The pairs are: the row and its opposite; the row with two labels; the row and its opposite, very
    long; a very short one and a very long one with another label; the row and zeros; and for labels
    that are no floats, the row alone in its class, and in the class of all others. X has the shape
    (n, d), finite; y has the shape (n,), or is None; the row number is in [0, n).
    """
    table = records(X).copy()
    _check_row(row, len(table))
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.shape != table.shape[:1]:
        raise ValueError(f"y must have shape {table.shape[:1]} to match X, got {labels.shape}.")
    x = table[row].copy()
    if not x.any():
        x[0] = 1.0
    others = np.empty(0) if labels is None else labels[labels != labels[row]]
    for label, pair in _PAIRS.items():
        first, second = table.copy(), table.copy()
        first[row], second[row] = pair(x)
        other = labels
        # The remaining records must hold the same classes, because classes are public.
        if label in _RELABELLED and labels is not None and 0 < len(others) < len(labels) - 1:
            other = labels.copy()
            other[row] = others[0]
        yield Neighbours(label=label, first=(first, labels), second=(second, other), row=row)
    if labels is not None and labels.dtype.kind != "f" and len(others):
        alone, among = np.full_like(labels, others[0]), np.full_like(labels, others[0])
        alone[row] = labels[row]
        yield Neighbours(label="empty group", first=(table, alone), second=(table, among), row=row)


def random_table(n: int, features: int, *, seed: int | None = None) -> tuple[Vector, Rows]:
    """Return rows of norm one, shape (n, features), and labels 0 and 1 by their first entries."""
    shape = (_validate.count(n=n), _validate.count(features=features))
    X = np.random.default_rng(_validate.seed(seed=seed)).standard_normal(shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] > 0).astype(np.intp)


# What an objective and one without a record share.
_SHARED: tuple[str, ...] = ("n", "dimension", "l2", "penalized", "dual_l2", "ascending")
_SHARED += ("read_from_data", "group_size", "linear_loss")


class Without(Objective):
    """An objective in which one record contributes nothing."""

    def __init__(self, objective: Objective, row: int) -> None:
        self.inner, self._row = objective, row
        vars(self).update((name, getattr(objective, name)) for name in _SHARED)
        self.constants = getattr(objective, "constants", None)

    def others(self, rows: Rows) -> Rows:
        """Return the rows that contribute."""
        return np.asarray(rows[rows != self._row])

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`."""
        return gradients(self.inner, self.others(rows), *at)

    def loss_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.loss_contributions`."""
        return losses(self.inner, self.others(rows), w)

    def hessian_contributions(
        self, rows: Rows, w: Vector, *, spectral: bool = False
    ) -> Contributions:
        """See :meth:`Objective.hessian_contributions`."""
        return hessians(self.inner, self.others(rows), w, spectral=spectral)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(np.frombuffer(self.inner.digest(), np.uint8), np.array([self._row]))


def without(objective: Objective, row: int) -> Objective:
    """Return an objective in which record ``row`` in [0, n) contributes nothing; n stays."""
    _check_row(row, _validate.instance(Objective, objective=objective).n)
    return Without(objective, row)


def _check_row(row: int, n: int) -> None:
    if not 0 <= row < n:
        raise ValueError(f"row must be in [0, {n}), got {row!r}.")
