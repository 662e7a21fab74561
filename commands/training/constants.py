"""Constants of a theorem, from public ranges alone: nothing is read off the records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpcal.calibrate import Constants
from dpcal.commands.training.tuning import flag
from dpcal.optim.registry import Optimizer
from dpcal.tables import REACH

if TYPE_CHECKING:
    from dpcal.commands.training.request import Learning

__all__ = ["check_needs", "public_constants"]

# The options that imply a constant, for readers who gave too little.
SOURCES = {
    "lipschitz": "--max-norm, or --bounds with --loss logistic",
    "smoothness": "--smoothness or --bounds",
    "gap": "--gap, or --target-bounds",
    "hessian_lipschitz": "--bounds with --loss logistic",
    "gamma": "--gamma, or --l2 > 0 with --no-intercept and kappa = 2",
}


def public_constants(asked: Learning, row: Optimizer) -> Constants:
    """Return the constants of a linear model's loss that the public ranges imply.

    Those that were given take the place of those that are implied.

    Parameters
    ----------
    asked
        The model and its table.
    row
        The optimizer that the constants are for.
    """
    square = asked.coding.square_bound + asked.intercept  # of a record's norm
    target = asked.schema.column(asked.target)
    if asked.loss == "logistic":
        weight = max(target.weights, default=1.0)
        # The third derivative of the logistic loss is at most 1 / (6 sqrt(3)).
        hessian = weight * square**1.5 / (6 * math.sqrt(3)) * (1 + 2.0**-50)
        implied = Constants(
            lipschitz=weight * math.sqrt(square),
            smoothness=weight * square / 4,
            gap=weight * math.log(2),
            hessian_lipschitz=None if math.isinf(square) else hessian,
        )
    else:
        gap = None if target.range is None else REACH**2 / 2
        implied = Constants(lipschitz=math.inf, smoothness=square, gap=gap)
    known = replace(implied, **asked.bounds)
    return replace(
        known,
        smoothness=known.smoothness + (0.0 if "l2" in row.options else asked.l2),
        strong_convexity=0.0 if asked.intercept else asked.l2,
    )


def check_needs(row: Optimizer, constants: Constants, given: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` with the options that give what an optimizer lacks."""
    known = {
        "lipschitz": constants.lipschitz < math.inf,
        "smoothness": constants.smoothness < math.inf,
        "gap": constants.gap is not None,
        "hessian_lipschitz": constants.hessian_lipschitz is not None,
        "gamma": constants.strong_convexity > 0 and given.get("kappa", 2.0) == 2,
    }
    for need in row.needs:
        ways = need.split(" or ")
        if ways[0] in known and not any(known.get(way) or way in given for way in ways):
            others = "".join(f", or {flag(way)}" for way in ways[1:] if way != "max_norm")
            raise ValueError(
                f"--optimizer {row.name} needs {ways[0]}: give {SOURCES[ways[0]]}{others}."
            )
