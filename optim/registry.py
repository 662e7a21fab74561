"""The registry of optimizers: a row for each, with its problems and its public knowledge.

>>> from dpcal import calibrate, optim
>>> row = OPTIMIZERS["noisy_gd"]
>>> row.problem, row.rate
('smooth, convex or not', '(sqrt(d) / (n epsilon))^(1/2)')
>>> row.build() is calibrate.noisy_gd, row.optimizer() is optim.noisy_gd
(True, True)

An optimizer is one file: its row and its algorithm. Each row is read where its optimizer is, and no
other module is loaded for it. Other packages enter an optimizer by :func:`register`, or by an entry
point of its name in the group ``dpcal.optimizers`` with the row as its object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dpcal import optim
from dpcal.optim.algorithms import Optimizer

__all__ = ["OPTIMIZERS", "SELECTIONS", "Optimizer", "find", "known", "register", "spender"]

_GROUP = "dpcal.optimizers"


class _Rows(Mapping[str, Optimizer]):
    """Rows by name; a row is an attribute of its optimizer, and its module is loaded for it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Optimizer:
        if name not in self._names:
            raise KeyError(name)
        row: Optimizer = getattr(optim, name).row
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


OPTIMIZERS = _Rows(
    *("dpsgd", "noisy_gd", "kl_spider", "proximal_point", "adaptive_gd", "spiderboost"),
    *("tree_spider", "recursive_regularization", "jl_glm", "gauss_psgd", "distributed_psgd"),
    *("correlated_dpsgd", "dp_rgda", "dp_sgda", "privatediff", "sto_spider", "ada_dp_spider"),
)

SELECTIONS = _Rows("select_point")

_ENTERED: dict[str, Optimizer] = {}


def register(row: Optimizer) -> Optimizer:
    """Enter an optimizer of your own, in place of an earlier one of its name; return its row.

    The row has a ``builder``, which makes plans for an optimizer of its name, and a ``function``. A
    row without one of them, or with the name of an optimizer of this package, raises a ValueError.
    """
    if row.builder is None or row.function is None:
        raise ValueError(f"row must have a builder and a function, got {row.name!r} without.")
    if row.name in OPTIMIZERS or row.name in SELECTIONS:
        raise ValueError(f"name must be new, got {row.name!r}, which is this package's own.")
    _ENTERED[row.name] = row
    return row


def known() -> dict[str, Optimizer]:
    """Return all optimizers by name, with registered ones and ones of installed packages."""
    return {**OPTIMIZERS, **_entered()}


def find(name: str) -> Optimizer:
    """Return the optimizer called ``name``, or refuse the name with a list of all."""
    row = OPTIMIZERS.get(name) or _ENTERED.get(name) or _entered().get(name)
    if row is None:
        names = ", ".join(map(repr, (*OPTIMIZERS, *_ENTERED)))
        raise ValueError(f"optimizer must be one of {names}, got {name!r}.")
    return row


def spender(name: str) -> Callable[..., Any]:
    """Return the function that spends plans for ``name``: an optimizer, or a selection."""
    return (SELECTIONS.get(name) or find(name)).optimizer()


def _entered() -> dict[str, Optimizer]:
    """Return the rows of other packages, with the entry points of installed packages."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP):
        if entry.name not in _ENTERED:
            register(entry.load())
    return _ENTERED
