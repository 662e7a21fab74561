"""From options to a plan: is the optimizer right for what was asked, and what does it need?

An optimizer's row in ``dpcal.optim.registry`` says which keywords its plan builder takes, which
constants its theorem needs and which neighboring relations it covers. Refusals are in the words of
the command line.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dpcal import _validate
from dpcal.accountants import matrix
from dpcal.accountants.matrix import Strategy
from dpcal.calibrate import Constants, Plan
from dpcal.commands._output import warnings_printed
from dpcal.commands.training.data import Data
from dpcal.commands.training.minimax import minimax_constants
from dpcal.commands.training.tuning import NOISES, flag, given_tuning
from dpcal.optim.minimax import MinimaxObjective
from dpcal.optim.registry import Optimizer, find
from dpcal.tables import REACH

__all__ = ["calibrated", "default_sizes", "find_optimizer", "public_constants"]

# These options imply a constant that a theorem needs, for readers who gave too little.
SOURCES = {
    "lipschitz": "--max-norm, or --bounds with --loss logistic",
    "smoothness": "--smoothness or --bounds",
    "gap": "--gap, or --target-bounds",
    "hessian_lipschitz": "--bounds with --loss logistic",
    "gamma": "--gamma, or --l2 > 0 with --no-intercept and kappa = 2",
}


def find_optimizer(options: Namespace) -> Optimizer:
    """Return the optimizer that was asked for, if it can do what was asked of it."""
    optimizer = options.optimizer
    if options.noise is not None and optimizer == "dpsgd":
        optimizer = "correlated_dpsgd"
    row = find(optimizer)
    _check_noise(options, optimizer)
    for name in given_tuning(options):
        if name not in row.options and not (name == "max_norm" and row.constants):
            raise ValueError(f"{flag(name)} is not for --optimizer {row.name}.")
    for name in ("smoothness", "gap"):
        if getattr(options, name) is not None and not row.constants:
            raise ValueError(f"{flag(name)} is not for --optimizer {row.name}.")
    _choose_relation(options, row)
    if options.neighboring_relation not in row.relations:
        raise ValueError(
            f"--neighboring-relation must be {' or '.join(row.relations)} for --optimizer "
            f"{row.name}, got {options.neighboring_relation!r}."
        )
    return row


def _choose_relation(options: Namespace, row: Optimizer) -> None:
    """Take the relation that fits where n comes from: read from the table, or given in public."""
    if options.n is not None:
        _validate.count(n=options.n)
    given = options.neighboring_relation
    if given is None:
        wanted = "replace-special" if options.n is None else "add-or-remove-one"
        options.neighboring_relation = wanted if wanted in row.relations else row.relations[0]
    elif given == "add-or-remove-one" and options.n is None and given in row.relations:
        raise ValueError(
            "--neighboring-relation add-or-remove-one needs --n, a public number of records that "
            "the table's own may differ from: that one is read from the data, and a record more "
            "would change it. Without --n the relation is replace-special."
        )
    elif given != "add-or-remove-one" and options.n is not None:
        raise ValueError(f"--n is for --neighboring-relation add-or-remove-one, got {given}.")


def calibrated(options: Namespace, row: Optimizer, data: Data) -> Plan:
    """Calibrate the optimizer that was asked for, with what was asked of it."""
    plan = _planned(options, row, data)
    return plan if options.n is None else replace(plan, public_n=True)


def _planned(options: Namespace, row: Optimizer, data: Data) -> Plan:
    objective, given = data.task.objective, given_tuning(options)
    n = data.task.n if options.n is None else _public_training_records(options)
    target = {
        "n": n,
        "epsilon": options.epsilon,
        "delta": options.delta,
        "neighboring_relation": options.neighboring_relation,
    }
    if row.name == "correlated_dpsgd":
        return _correlated_plan(options, row, target, given)
    build: Callable[..., Plan] = row.build()
    if not row.constants:
        return build(**target, **{**default_sizes(n, given), **given})
    sizes: dict[str, Any] = {"dimension": objective.dimension, **data.task.sizes}
    constants = public_constants(options, data, row)
    if isinstance(objective, MinimaxObjective):
        sizes = {"dimensions": objective.dimensions}
        constants = minimax_constants(options, data)
    _check_needs(row, constants, given)
    if "max_norm" not in row.options:
        given.pop("max_norm", None)  # it is among the constants
    if "l2" in row.options:
        given["l2"] = options.l2
    with warnings_printed():
        return build(constants, **sizes, **target, **given)


def _public_training_records(options: Namespace) -> int:
    """Return how many of the public number of records are trained on, on average."""
    n: int = options.n
    return max(1, round((1 - float(options.test_fraction)) * n))


def _check_noise(options: Namespace, optimizer: str) -> None:
    """Refuse options of correlated noise where there is none."""
    if options.noise is None and optimizer == "correlated_dpsgd":
        raise ValueError(f"--optimizer {optimizer} needs --noise: one of {', '.join(NOISES)}.")
    if options.noise is not None and optimizer != "correlated_dpsgd":
        raise ValueError(f"--noise is not for --optimizer {optimizer}.")
    if options.decay is not None and options.noise != "lambda-cgd":
        raise ValueError("--decay is for --noise lambda-cgd.")
    if options.bands is not None and options.noise not in ("banded", "bisr", "blt"):
        raise ValueError("--bands is for --noise banded, bisr or blt.")
    for name in ("sampler", "separation", "proved"):
        if getattr(options, name) not in (None, False) and options.noise is None:
            raise ValueError(f"--{name} goes with --noise.")


def _correlated_plan(
    options: Namespace, row: Optimizer, target: Mapping[str, Any], given: dict[str, Any]
) -> Plan:
    """Calibrate a matrix mechanism for the number of steps that was asked for."""
    n, sampler = target["n"], options.sampler or "poisson"
    chosen = {**default_sizes(n, given), **given}
    if sampler == "full":
        chosen["batch_size"] = given.get("batch_size", n)
    epochs, steps = chosen.pop("epochs", None), chosen.pop("steps", None)
    if epochs is not None and steps is not None:
        raise ValueError("--epochs and --steps exclude each other.")
    if steps is None:
        steps = math.ceil(_validate.positive(epochs=epochs) * n / chosen["batch_size"])
    plan: Plan = row.build()(
        _strategy(options, steps),
        sampler=sampler,
        separation=options.separation,
        statistics=not options.proved,
        **target,
        **chosen,
    )
    return plan


def _strategy(options: Namespace, steps: int) -> Strategy:
    """Return the strategy of a name, optimised for prefix sums where it has free parameters."""
    bands = min(options.bands or 4, steps)
    if options.noise == "lambda-cgd":
        if options.decay is None:
            raise ValueError("--noise lambda-cgd needs --decay.")
        return matrix.LambdaCGD(steps, options.decay)
    strategies: dict[str, Callable[[], Strategy]] = {
        "banded": lambda: matrix.Banded.optimised(steps, bands),
        "bisr": lambda: matrix.BISR(steps, bands),
        "blt": lambda: matrix.BLT.optimised(steps, bands),
        "square-root": lambda: matrix.SquareRoot(steps),
        "tree": lambda: matrix.Tree(steps),
    }
    return strategies[options.noise]()


def default_sizes(n: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """What DP-SGD is run with where nothing else is asked for: functions of n alone."""
    defaults = {"batch_size": min(n, max(64, math.ceil(3 * math.sqrt(n)))), "max_norm": 1.0}
    return defaults if "steps" in given else {**defaults, "epochs": 20.0}


def public_constants(options: Namespace, data: Data, row: Optimizer) -> Constants:
    """Return what the public ranges imply, or was said; nothing is read off the records.

    Scaled numbers are in [-REACH, REACH], of the indicators of a category at most one is 1, and the
    intercept is a feature 1.
    """
    square = data.coding.square_bound + options.intercept
    weight = max(data.target.weights, default=1.0)
    if options.loss == "logistic":
        lipschitz, smoothness = weight * math.sqrt(square), weight * square / 4
        gap = weight * math.log(2)
    else:
        lipschitz, smoothness = math.inf, square
        gap = math.inf if data.target.range is None else REACH**2 / 2
    if options.smoothness is not None:
        smoothness = _validate.positive(smoothness=options.smoothness)
    if options.gap is not None:
        gap = _validate.positive(gap=options.gap)
    if options.max_norm is not None and "max_norm" not in row.options:
        lipschitz = _validate.positive(max_norm=options.max_norm)
    return Constants(
        lipschitz=lipschitz,
        smoothness=smoothness + (0.0 if "l2" in row.options else options.l2),
        strong_convexity=0.0 if options.intercept else options.l2,
        gap=None if gap == math.inf else gap,
        hessian_lipschitz=_hessian_lipschitz(options, square, weight),
    )


def _hessian_lipschitz(options: Namespace, square: float, weight: float) -> float | None:
    """Return rho of the logistic loss, whose third derivative is at most 1 / (6 sqrt(3))."""
    if options.loss != "logistic" or square == math.inf:
        return None
    return float(weight * square**1.5 / (6 * math.sqrt(3)) * (1 + 2.0**-50))


def _check_needs(row: Optimizer, constants: Constants, given: Mapping[str, Any]) -> None:
    """Say what else an optimizer needs, in words of the command line."""
    implied = constants.strong_convexity > 0 and given.get("kappa", 2.0) == 2
    known = {
        "lipschitz": constants.lipschitz < math.inf,
        "smoothness": constants.smoothness < math.inf,
        "gap": constants.gap is not None,
        "hessian_lipschitz": constants.hessian_lipschitz is not None,
        "gamma": implied,
    }
    for need in row.needs:
        ways = need.split(" or ")
        if ways[0] in known and not any(known.get(way) or way in given for way in ways):
            others = "".join(f", or {flag(way)}" for way in ways[1:] if way != "max_norm")
            raise ValueError(
                f"--optimizer {row.name} needs {ways[0]}: give {SOURCES[ways[0]]}{others}."
            )
