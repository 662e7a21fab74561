"""From a request to a plan: the builder's keywords, and sizes that follow from n alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dpcal
from dpcal import _validate
from dpcal.calibrate import Plan
from dpcal.commands._options import fields_of
from dpcal.commands.checking.output import warnings_printed
from dpcal.commands.training.request import Request
from dpcal.commands.training.task import Task

__all__ = ["calibrated", "default_sizes"]

# From numbers of steps and of bands to a strategy.
STRATEGIES: Mapping[str, Callable[[int, int], dpcal.accountants.matrix.Strategy]] = {
    "banded": lambda steps, bands: dpcal.accountants.matrix.Banded.optimised(steps, bands),
    "bisr": lambda steps, bands: dpcal.accountants.matrix.BISR(steps, bands),
    "blt": lambda steps, bands: dpcal.accountants.matrix.BLT.optimised(steps, bands),
    "square-root": lambda steps, bands: dpcal.accountants.matrix.SquareRoot(steps),
    "tree": lambda steps, bands: dpcal.accountants.matrix.Tree(steps),
}


def calibrated(request: Request, task: Task) -> Plan:
    """Return the plan of the request's optimizer, for a task's records."""
    n, row = request.trained_on or task.n, request.row
    given = dict(request.tuning)
    target = {
        "n": n,
        **fields_of(request, "epsilon", "delta"),
        "neighboring_relation": request.relation,
    }
    build: Callable[..., Plan] = row.build()
    if request.noise:
        plan = _correlated(build, request.noise, target, given)
    elif not row.constants:
        plan = build(**target, **default_sizes(n, given), **given)
    else:
        if "max_norm" not in row.options:
            given.pop("max_norm", None)  # it is among the constants
        if "l2" in row.options:
            given["l2"] = request.l2
        with warnings_printed():
            plan = build(request.constants(row), **task.sizes, **target, **given)
    return plan if request.n is None else replace(plan, public_n=True)


def _correlated(
    build: Callable[..., Plan],
    noise: Mapping[str, Any],
    target: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Plan:
    """Return the plan of a matrix mechanism."""
    n, sampler = target["n"], noise["sampler"] or "poisson"
    chosen = {**default_sizes(n, given), **given}
    if sampler == "full":
        chosen["batch_size"] = given.get("batch_size", n)
    epochs, steps = chosen.pop("epochs", None), chosen.pop("steps", None)
    if steps is None:
        steps = math.ceil(_validate.positive(epochs=epochs) * n / chosen["batch_size"])
    if noise["noise"] == "lambda-cgd":
        strategy: dpcal.accountants.matrix.Strategy = dpcal.accountants.matrix.LambdaCGD(
            steps, noise["decay"]
        )
    else:
        strategy = STRATEGIES[noise["noise"]](steps, min(noise["bands"] or 4, steps))
    return build(
        strategy,
        sampler=sampler,
        separation=noise["separation"],
        statistics=not noise["proved"],
        **target,
        **chosen,
    )


def default_sizes(n: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of DP-SGD that were not given: functions of n alone."""
    defaults = {"batch_size": min(n, max(64, math.ceil(3 * math.sqrt(n)))), "max_norm": 1.0}
    if "steps" not in given:
        defaults["epochs"] = 20.0
    return {name: value for name, value in defaults.items() if name not in given}
