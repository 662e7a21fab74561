"""A search for neighbours that make a run betray a record, and for their smallest form.

A run is recorded once and replayed on many neighbours. They are pairs that move sums as far as they
can; rows with cells that often break programs (not a number, infinite, huge, subnormal, beyond all
others); labels that no other record has; copies of other rows; rows that are ignored; classes that
lose their only record; rows in another order; and random mixtures. If a neighbour shows a
violation, its changes are undone one by one, as long as it still shows the violation.

The number of records is public: in place of a record that is added or removed, a record is ignored.

>>> import numpy as np
>>> [pair.label for pair in neighbours(np.eye(3), np.array([0, 1, 1]))]
['opposite', 'relabelled', 'long', 'short', 'empty', 'empty group']
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, dpsgd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((200, 3))
>>> y = (X[:, 0] > 0).astype(int)
>>> plan = calibrate.dpsgd(n=200, batch_size=50, steps=10, epsilon=1.0, delta=1e-5)
>>> def run(table):
...     return dpsgd(Logistic(*table, classes=[0, 1]), plan)
>>> all(found.holds for found in replay_table(run, X, y))
True

This run refuses a label, and so reveals that a record has it:

>>> def refusing(table):
...     if table[1].max() > 1:
...         raise ValueError("y must be 0 or 1.")
...     return run(table)
>>> found = [each for each in replay_table(refusing, X, y, seed=0) if not each.holds]
>>> found[0].label, sorted(found[0].violations)
('new label: row 0, label 2', ['failure'])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._internal import validate
from dpcal.optim.attacks.findings import Replay
from dpcal.optim.attacks.recording import check_row
from dpcal.optim.attacks.replaying import Recorded
from dpcal.optim.objectives.arrays import Rows, Vector, records

Table = tuple[Vector, NDArray[Any] | None]

# Lengths of rows that all plans clip, and that none clips; their squares are normal numbers.
_LONG, _SHORT = 1e9, 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two tables (X, y) or (X, None) that differ in one row, and the kind of the difference."""

    label: str
    first: Table
    second: Table


# To a linear model an opposite row of another label is the same record: other pairs keep labels.
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
    long; a very short one and a very long one with another label; the row and zeros; and, for
    labels that are not floats, the row as the only one of its class, and in the class of all
    others. X has the shape (n, d), finite; y has the shape (n,), or is None; the row number is in
    [0, n).
    """
    table = records(X).copy()
    check_row(row, len(table))
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
        yield Neighbours(label=label, first=(first, labels), second=(second, other))
    if labels is not None and labels.dtype.kind != "f" and len(others):
        alone, among = np.full_like(labels, others[0]), np.full_like(labels, others[0])
        alone[row] = labels[row]
        yield Neighbours(label="empty group", first=(table, alone), second=(table, among))


def random_table(n: int, features: int, *, seed: int | None = None) -> tuple[Vector, Rows]:
    """Return rows of norm one, shape (n, features), and labels 0 and 1 by their first entries."""
    shape = (validate.count(n=n), validate.count(features=features))
    X = np.random.default_rng(validate.seed(seed=seed)).standard_normal(shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] > 0).astype(np.intp)


_CELLS = {
    "not a number": math.nan,
    "infinite": math.inf,
    "huge": 1e308,
    "subnormal": 5e-324,
}


class _Change(NamedTuple):
    """New cells of a row, by their columns; the label is in the column ``"label"``."""

    kind: str
    row: int
    cells: dict[Any, Any]

    def of(self, table: Table) -> Table:
        """Return the table with the change."""
        X, y = table[0].copy(), None if table[1] is None else table[1].copy()
        for column, value in self.cells.items():
            if column == "label" and y is not None:
                y[self.row] = value
            else:
                X[self.row, column] = value
        return X, y

    def __str__(self) -> str:
        cells = [
            f"label {value!s}" if column == "label" else f"column {column} {value:g}"
            for column, value in self.cells.items()
        ]
        return f"{self.kind}: row {self.row}, {', '.join(cells)}"


def replay_table(
    run: Callable[[Table], Any],
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    row: int = 0,
    price: bool = True,
    trials: int = 8,
    seed: int | None = None,
) -> list[Replay]:
    """Replay a run on the pairs of :func:`dpcal.optim.attacks.neighbours`, and search for others.

    ``run`` is called with ``(X, y)``. See :func:`dpcal.optim.attacks.replay` for it, ``price``,
    ``seed`` and the errors, and :func:`dpcal.optim.attacks.neighbours` for X, y and ``row``.
    ``trials`` is the number of random mixtures, at least 1, in addition to the neighbours of each
    kind. The label of a replay names the kind and, for neighbours from the search, their changes.
    An error of the run on the unchanged table is raised as it is.
    """
    trials = validate.count(trials=trials)
    table = records(X).copy(), _roomy(y)
    recorded = partial(Recorded, run, seed=seed)
    whole = recorded(table, price=price)
    if whole.tape.failure is not None:
        raise whole.tape.failure
    shown = [
        recorded(pair.first, price=price).replayed(pair.second, label=pair.label)
        for pair in neighbours(*table, row=row)
    ]
    rng = np.random.default_rng(validate.seed(seed=seed))
    order = rng.permutation(len(table[0]))
    other = table[0][order], None if table[1] is None else table[1][order]
    # Other records are in each batch, so sums may differ; everything else must be the same.
    shown.append(whole.replayed(other, reach=math.inf, label="reordered"))
    for change in _changes(table, row, trials, rng):
        shown.append(_least(whole, change))
    return shown


def _roomy(y: ArrayLike | None) -> NDArray[Any] | None:
    """Return labels as an array with space for a new one."""
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.dtype.kind == "U":
        return labels.astype(np.promote_types(labels.dtype, "<U8"))
    return labels


def _new_labels(y: NDArray[Any] | None) -> list[Any]:
    """Return labels that no record has, of the type of the others."""
    if y is None or y.dtype.kind == "b":
        return []
    if y.dtype.kind in "iu":
        return [y.max() + 1, y.min() - 1]
    if y.dtype.kind == "f":
        return [np.nanmax(y) + 1, *_CELLS.values(), -math.inf, -1e308]
    return ["(unseen)"] if y.dtype.kind == "U" else ["(unseen)", None]


def _changes(table: Table, row: int, trials: int, rng: np.random.Generator) -> Iterator[_Change]:
    """Yield a change of each kind to one row, and random mixtures in random rows."""
    X, y = table
    n, d = X.shape
    labels = _new_labels(y)
    top = np.nanmax(X, axis=0) + 1
    twin = int(rng.integers(n))
    copied: dict[Any, Any] = dict(enumerate(X[twin]))
    if y is not None:
        copied["label"] = y[twin]
    kinds: list[tuple[str, dict[Any, Any]]] = [
        *(("new label", {"label": label}) for label in labels),
        *((kind, {int(rng.integers(d)): value}) for kind, value in _CELLS.items()),
        ("huge", {j: (-1) ** j * 1e308 for j in range(d)}),
        ("beyond", dict(enumerate(top))),
        ("blank", dict.fromkeys(range(d), math.nan)),
        ("duplicate", copied),
    ]
    yield from (_Change(kind, row, cells) for kind, cells in kinds)
    pool = [*_CELLS.values(), -math.inf, -1e308, 0.0]
    for _ in range(trials):
        columns = rng.permutation(d)[: rng.integers(1, d + 1)]
        mixed: dict[Any, Any] = {
            int(j): float(rng.choice([*pool, top[j], X[rng.integers(n), j]])) for j in columns
        }
        if labels and rng.random() < 0.5:
            mixed["label"] = labels[rng.integers(len(labels))]
        yield _Change("mixture", int(rng.integers(n)), mixed)


def _least(whole: Recorded, change: _Change) -> Replay:
    """Replay a change, and undo parts of it, one by one, as long as a violation remains."""
    found = whole.replayed(change.of(whole.data), label=str(change))
    for column in list(change.cells) if found.violations else ():
        less = change._replace(cells={k: v for k, v in change.cells.items() if k != column})
        if not less.cells:
            break
        again = whole.replayed(less.of(whole.data), label=str(less))
        if again.violations & found.violations:
            change, found = less, again
    return found
