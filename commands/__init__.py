"""The sub-commands of the command line: a table, and one module for each.

A command's module has ``EXAMPLES`` (arguments that a reader can copy), ``add_arguments(parser)``
and ``run(options)``, which returns the exit status. Only the module of the command that was named
is imported, and it imports what is slow to load when it runs: ``dpcal --help`` loads neither numpy
nor any accountant. To add a command, add a line here and a module of its name, here or in a folder.
"""

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Protocol, cast

__all__ = ["COMMANDS", "MOVED", "Command", "load"]

COMMANDS = {
    "demo": "calibrate, train and report on scikit-learn's breast-cancer records",
    "schema": "draft a schema of a table: types, ranges, categories, missing values",
    "train": "fit a private linear model to your own table, with a report",
    "release": "private counts, means, histograms and quantiles of a table",
    "predict": "answer the records of a table by a private model",
    "budget": "what was spent on a data set, by which runs, and what is left",
    "calibrate": "solve for the noise, the steps or the sampling that meets (epsilon, delta)",
    "epsilon": "bound epsilon at a delta, or delta at an epsilon",
    "certify": "prove bounds on delta or epsilon in ball arithmetic, or check such a proof",
    "compare": "ask several accountants the same question",
    "recommend": "rank optimizers of a linear model by predicted error, before a record is read",
    "strategies": "compare correlated noise (tree, banded, BLT, ...) at one privacy target",
    "plot": "draw a privacy profile, trade-off or Renyi curve, or a report's accuracies",
    "audit": "prove or refute the printed settings of six papers, or plan with them",
    "optimizers": "list the optimizers: problems, what must be known, rates",
    "attack": "attack runs: replays on neighbours, likelihood ratios, canaries",
    "verify": "recompute the claims of a report from its ledgers",
}

# Commands that are gone, and what answers in their place.
MOVED = {
    "schedule": "audit PAPER --at",
    "corpus": "python -m benchmarks.corpus of a clone",
    "select": "dpcal.optim.select_point in Python",
}

# Commands whose module is in a folder.
_HOMES = {"recommend": "checking.recommend"}


class Command(Protocol):
    """The interface of a command's module."""

    EXAMPLES: tuple[str, ...]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""

    def run(self, options: Namespace) -> int:
        """Answer, and return the exit status."""


def load(name: str) -> Command:
    """Import the module of the command called ``name``."""
    return cast(Command, import_module(f"dpcal.commands.{_HOMES.get(name, name)}"))
