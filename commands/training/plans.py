"""From a request to a plan: the builder's keywords, and sizes that follow from n alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dpcal
from dpcal import _validate
from dpcal.calibrate import Plan
from dpcal.calibrate.defaults import Defaults
from dpcal.calibrate.recommending.recommendation import Recommendation, first_choice
from dpcal.commands._options import fields_of
from dpcal.commands.checking.output import warnings_printed
from dpcal.commands.training.request import Request
from dpcal.commands.training.scale import scale_query
from dpcal.commands.training.task import Task
from dpcal.optim.linear_fit import asked_before, tuned
from dpcal.tables import REACH

__all__ = ["calibrated", "compared", "correlated_plan", "default_sizes"]

# Those that predicted errors choose among where no optimizer was named. Correlated noise is left
# out: it has no joint price with the question how long rows are.
CHOICE = ("dpsgd", "noisy_gd")

# From numbers of steps and of bands to a strategy.
STRATEGIES: Mapping[str, Callable[[int, int], dpcal.accountants.matrix.Strategy]] = {
    "banded": lambda steps, bands: dpcal.accountants.matrix.Banded.optimised(steps, bands),
    "bisr": lambda steps, bands: dpcal.accountants.matrix.BISR(steps, bands),
    "blt": lambda steps, bands: dpcal.accountants.matrix.BLT.optimised(steps, bands),
    "square-root": lambda steps, bands: dpcal.accountants.matrix.SquareRoot(steps),
    "tree": lambda steps, bands: dpcal.accountants.matrix.Tree(steps),
}


def calibrated(request: Request, task: Task, table: Recommendation | None = None) -> Plan:
    """Return the plan of the request's optimizer, for a task's records.

    ``table`` is the recommendation, where errors choose and it is known already.
    """
    if request.plan is not None:
        return _given_plan(request, request.plan, task)
    n, row = request.trained_on or task.n, request.row
    given = dict(request.tuning)
    target = {
        "n": n,
        **fields_of(request, "epsilon", "delta", "accountant"),
        "neighboring_relation": request.relation,
    }
    build: Callable[..., Plan] = row.build()
    if request.network is not None:
        with warnings_printed():
            plan = _of_network(request.network.kind, request, target, given)
    elif request.noise:
        with warnings_printed():
            plan = correlated_plan(build, request.noise, target, given)
    elif row.name == "dpsgd" and (row_norm := _row_norm(request)) is not None:
        first = _first(compared(request, task), table)
        plan = _tuned(build, request, task, row_norm, target, given, first)
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


def _of_network(
    kind: str, request: Request, target: Mapping[str, Any], given: Mapping[str, Any]
) -> Plan:
    """Return the plan of a network's paper."""
    if kind == "mlp":
        plan: Plan = request.row.build()(**target, **default_sizes(target["n"], given), **given)
        return plan
    columns, lam = len(request.coding.names), request.noise.get("decay") or 0.0
    found: Plan = dpcal.calibrate.theory("kan", d=columns, lam=lam, **target, **given)
    return found


def _given_plan(request: Request, plan: Plan, task: Task) -> Plan:
    """Return the plan that was given, whose number of records is public or the table's."""
    if request.n is not None:
        return replace(plan, public_n=True)
    if plan.n != task.n:
        raise ValueError(
            f"--use-plan must be for the n={task.n} records to train on, got a plan for n={plan.n} "
            f"under {plan.neighboring_relation!r}: --test-fraction 0 holds none out, and under "
            "add-or-remove-one the plan's n is public and may differ."
        )
    return plan


def compared(request: Request, task: Task) -> dict[str, Any] | None:
    """Return arguments of :func:`dpcal.calibrate.recommend`; None where errors do not choose."""
    norm = _row_norm(request) if request.chosen else None
    if norm is None:
        return None
    bound = _row_bound(request)
    return {
        "loss": request.loss,
        "n": request.trained_on or task.n,
        "dimension": task.objective.dimension,
        "row_norm": bound,
        "typical_norm": min(norm, bound),
        "neighboring_relation": request.relation,
        **fields_of(request, "l2", "epsilon", "delta"),
    }


def _first(asked: Mapping[str, Any] | None, table: Recommendation | None) -> Plan | None:
    """Return the plan of the least predicted error; None where errors do not choose."""
    if asked is None:
        return None
    if table is None:
        return first_choice(optimizers=CHOICE, **asked).plan
    return next(row.plan for row in table.rows if row.optimizer in CHOICE)


def _row_norm(request: Request) -> float | None:
    """Return the norm that most records have, as far as ranges tell; None where they do not."""
    square = request.coding.typical_square
    known = request.loss == "logistic" or request.schema.column(request.target).range is not None
    return None if square is None or not known else math.sqrt(square + request.intercept)


def _row_bound(request: Request) -> float:
    """Return the bound that ranges give on the norm of rows."""
    return math.sqrt(request.coding.square_bound + request.intercept)


def _tuned(
    build: Callable[..., Plan],
    request: Request,
    task: Task,
    row_norm: float,
    target: Mapping[str, Any],
    given: Mapping[str, Any],
    first: Plan | None,
) -> Plan:
    """Return the plan of DP-SGD whose settings, where none were given, are those of a linear model.

    They are those of ``first``, if errors choose.
    Where neither the clip nor the rate was given, a hundredth of the budget asks how long rows are.
    The sum of the rows of a person is clipped as if it were one row.
    Gradients of a class of weight w are w times as long, and curve as much more.
    """
    weight = max(request.schema.column(request.target).weights or (1.0,))
    chosen = "max_norm" in given or "learning_rate" in given
    given = dict(given)
    sizes = {name: given.pop(name) for name in ("steps", "batch_size") if name in given}
    rows = 1 if request.by_person else given.get("group_size", 1)
    release = _one_release(target) * rows
    sampler, passes = given.get("sampler", "poisson"), given.pop("epochs", None)
    if passes is None and sampler != "poisson":
        passes = 60.0
    if passes is not None:
        _validate.positive(epochs=passes)
    if first is not None:
        query = first.queries[-1]
        sizes = {"steps": query.count, "batch_size": round(query.expected_batch_size(first.n))}
    settled = Defaults.of(
        request.loss,
        n=target["n"],
        dimension=task.objective.dimension,
        row_norm=row_norm,
        release=release,
        passes=passes,
        unit=1.0 if request.loss == "logistic" else REACH,
        bound=None if request.by_person else _row_bound(request),
        **sizes,
    )
    max_norm = given.pop("max_norm", None)
    max_norm = weight * settled.max_norm if max_norm is None else max_norm
    whole = sampler != "poisson" and "steps" not in sizes
    length = {"epochs": passes} if whole else {"steps": settled.steps}
    if first is None:
        plan = build(**target, **length, batch_size=settled.batch_size, max_norm=max_norm, **given)
    else:
        query = replace(first.queries[-1], max_norm=max_norm)
        parameters = {"steps": settled.steps, "batch_size": settled.batch_size}
        plan = replace(first, queries=(query,), parameters=parameters)
    # Beside another query a shuffle has a looser price, and rows of a person have no common length.
    if not (chosen or request.by_person or sampler == "shuffled-epochs"):
        coding = request.coding
        scale = scale_query(coding, release=release, n=plan.n, group_size=plan.group_size)
        plan = plan if scale is None else asked_before(plan, scale)
    if "learning_rate" in plan.parameters:
        return plan
    query = plan.query("gradient")
    settled = replace(settled, steps=query.count)
    _, rate = tuned(settled, query, weight=weight, l2=request.l2, max_norm=max_norm)
    return replace(plan, parameters={**plan.parameters, "learning_rate": rate})


def _one_release(target: Mapping[str, Any]) -> float:
    """Return the noise multiplier of one Gaussian release about all records."""
    goal = {name: target[name] for name in ("epsilon", "delta", "neighboring_relation")}
    found: float = dpcal.noise_multiplier(dpcal.events.GaussianDpEvent, **goal)
    return found


def correlated_plan(
    build: Callable[..., Plan],
    noise: Mapping[str, Any],
    target: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Plan:
    """Return the plan of a matrix mechanism."""
    n, sampler = target["n"], given.get("sampler", "poisson")
    chosen = {**default_sizes(n, given), **given, "sampler": sampler}
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
