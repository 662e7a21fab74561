"""``dpcal recommend`` and ``dpcal optimizers``: rank and describe optimizers, without records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal.columns import columns
from dpcal.commands._signature import Answer, extends

if TYPE_CHECKING:
    from dpcal.optim.registry import Optimizer

__all__ = ["optimizers", "recommend"]


@extends(dpcal.calibrate.recommend)
def recommend(*, loss: Literal["logistic", "squared"], **asked: Any) -> Answer:
    """Rank optimizers of a linear model by predicted error, before a record is read.

    Parameters
    ----------
    loss
        Targets of squared losses are in [-1, 1].

    Examples
    --------
    dpcal recommend --loss logistic --n 20000 --dimension 10 --epsilon 1 --delta 1e-6
    dpcal recommend --loss squared --n 5000 --dimension 4 --epsilon 2 --delta 1e-6 --json
    """
    table = dpcal.calibrate.recommend(loss, **asked)
    return Answer(table.to_dict(), str(table))


def optimizers(name: str | None = None) -> Answer:
    """List the optimizers, or describe one: its problem, its public constants, its rate.

    Parameters
    ----------
    name
        Name of one optimizer (default: list all, a line each).

    Examples
    --------
    dpcal optimizers noisy_gd
    dpcal optimizers --json
    """
    registry = dpcal.optim.registry
    if name is not None:
        row = registry.SELECTIONS.get(name) or registry.find(name)
        return Answer({"optimizers": [row.to_dict()]}, _lines(row))
    every = [*registry.known().values(), *registry.SELECTIONS.values()]
    rows = sorted(every, key=lambda row: row.comparator)
    lines = columns([(row.name, "comparator: " * row.comparator + row.summary) for row in rows])
    lines.append("'dpcal optimizers NAME' lists an optimizer's problem, needs, rate and settings.")
    return Answer({"optimizers": [row.to_dict() for row in rows]}, "\n".join(lines))


def _lines(row: Optimizer) -> str:
    """Return the text on one optimizer, a line for each fact."""
    return "\n".join(
        [
            f"{row.name}: {row.summary}{' (a comparator, not recommended)' * row.comparator}",
            f"  problem    {row.problem}",
            *([f"  if convex  {row.beaten} ended lower at the same cost"] if row.beaten else []),
            f"  needs      {', '.join(row.needs)}",
            f"  rate       {row.measure} {row.rate}, without logarithms",
            f"  theorem    {row.theorem}",
            f"  relations  {', '.join(row.relations)}",
            f"  settings   {', '.join(row.options)}",
        ]
    )
