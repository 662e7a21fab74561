"""The sub-commands of the command line: a table, and a function for each.

A command is a typed function with its name. The docstring of the function is the help text, and
ends in examples. Only the module of the called command is imported: ``dpcal --help`` loads neither
numpy nor any accountant. To add a command, add a line here and its function.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["COMMANDS", "FORMER", "GROUPS", "load"]

GROUPS = {
    "what does a run cost?": {
        "epsilon": ("price", "bound epsilon at a delta"),
        "delta": ("price", "bound delta at an epsilon"),
        "compare": ("price", "compare several accountants"),
        "samplers": ("price", "compare the cost of each way to draw batches"),
        "certify": ("proofs", "prove bounds in ball arithmetic"),
    },
    "how much noise?": {
        "calibrate": ("noise", "solve for the noise, the steps or the sampling of a target"),
        "recommend": ("noise", "rank optimizers of a linear model by predicted error"),
        "strategies": ("noise", "compare correlated noise (tree, banded, BLT, ...)"),
        "optimizers": ("noise", "list the optimizers: problems, needs, rates"),
    },
    "is a paper right?": {
        "audit": ("proofs", "prove or refute the printed settings of six papers"),
    },
    "your table": {
        "schema": ("tables", "draft a schema of a table: types, ranges, categories"),
        "train": ("tables", "fit a private linear model, with a report"),
        "predict": ("tables", "predict the target of a table's records by a private model"),
        "release": ("tables", "private counts, means, histograms and quantiles"),
    },
    "can it be trusted?": {
        "verify": ("trust", "recompute the claims of a report from its ledgers"),
        "budget": ("trust", "runs of a data set, their cost, and the remaining budget"),
        "attack": ("trust", "attack a run by replays, likelihood ratios or canaries"),
        "check": ("proofs", "prove the bounds of a certificate again"),
    },
}
COMMANDS = {name: each[name] for each in GROUPS.values() for name in each}

# Accepted for one release.
FORMER = {"--max-norm": "--max-grad-norm", "--records": "--n"}


def load(name: str) -> Callable[..., Any]:
    """Import the function of the command called ``name``."""
    module = import_module(f"dpcal.commands.{COMMANDS[name][0]}")
    command: Callable[..., Any] = getattr(module, name)
    return command
