"""``dpcal optimizers``: which there are, for what problems, and what must be known to use them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

import dpcal
from dpcal.commands.checking.output import present
from dpcal.commands.training.tuning import flag

if TYPE_CHECKING:
    from dpcal.optim.registry import Optimizer

EXAMPLES = ("noisy_gd", "--json")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the name of one optimizer."""
    parser.add_argument("name", nargs="?", help="one optimizer (default: all)")


def run(options: Namespace) -> int:
    """Print the table, or one row of it."""
    registry = dpcal.optim.registry
    if options.name is None:
        every = [*registry.known().values(), *registry.SELECTIONS.values()]
        rows = sorted(every, key=lambda row: row.comparator)
    else:
        rows = [registry.SELECTIONS.get(options.name) or registry.find(options.name)]
    document = {"optimizers": [row.to_dict() for row in rows]}
    present(options, document, "\n".join(map(_lines, rows)))
    return 0


def _lines(row: Optimizer) -> str:
    """One optimizer, a line for each thing to know."""
    role = " (a comparator, not recommended)" if row.comparator else ""
    return "\n".join(
        [
            f"{row.name}: {row.summary}{role}",
            f"  problem    {row.problem}",
            *([f"  if convex  {row.beaten} ended lower at the same price"] if row.beaten else []),
            f"  needs      {', '.join(row.needs)}",
            f"  rate       {row.measure} {row.rate}, without logarithms",
            f"  theorem    {row.theorem}",
            f"  relations  {', '.join(row.relations)}",
            f"  options    {', '.join(map(flag, row.options))}",
        ]
    )
