"""From a request and its records to a plan: settings that follow from public numbers alone.

>>> sorted(default_sizes(400, {"steps": 10}).items())
[('batch_size', 64), ('max_norm', 1.0)]
"""

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
from dpcal.optim.linear_fit import asked_before, tuned
from dpcal.tables.coding import REACH
from dpcal.tables.request import Request
from dpcal.tables.scale import scale_query
from dpcal.tables.task import Task

__all__ = ["calibrated", "compared", "default_sizes"]

# Those that predicted errors choose among where no optimizer was named. Correlated noise is left
# out: it has no joint price with the question how long rows are.
CHOICE = ("dpsgd", "noisy_gd")


def calibrated(request: Request, task: Task, table: Recommendation | None = None) -> Plan:
    """Return the plan of the request's optimizer, for a task's records.

    ``table`` is the recommendation, where errors choose and it is known already.
    """
    if request.plan is not None:
        return _given_plan(request, request.plan, task)
    n, row = request.trained_on or task.n, request.row
    given = dict(request.settings)
    target = {
        "n": n,
        "epsilon": request.epsilon,
        "delta": request.delta,
        "neighboring_relation": request.relation,
    }
    build: Callable[..., Plan] = row.build()
    if row.name == "dpsgd" and (row_norm := _row_norm(request)) is not None:
        first = _first(compared(request, task), table)
        plan = _tuned(build, request, task, row_norm, target, given, first)
    elif not row.constants:
        plan = build(**target, **default_sizes(n, given), **given)
    else:
        if "l2" in row.options:
            given["l2"] = request.l2
        plan = build(request.constants, dimension=task.objective.dimension, **target, **given)
    return plan if request.n is None else replace(plan, public_n=True)


def _given_plan(request: Request, plan: Plan, task: Task) -> Plan:
    """Return the plan that was given, whose number of records is public or the table's."""
    if request.n is not None:
        return replace(plan, public_n=True)
    if plan.n != task.n:
        raise ValueError(
            f"use_plan must be for the n={task.n} records to train on, got a plan for n={plan.n} "
            f"under {plan.neighboring_relation!r}: test_fraction = 0 holds none out, and under "
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
        "l2": request.l2,
        "epsilon": request.epsilon,
        "delta": request.delta,
        "neighboring_relation": request.relation,
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


def default_sizes(n: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of DP-SGD that were not given: functions of n alone."""
    defaults = {"batch_size": min(n, max(64, math.ceil(3 * math.sqrt(n)))), "max_norm": 1.0}
    if "steps" not in given:
        defaults["epochs"] = 20.0
    return {name: value for name, value in defaults.items() if name not in given}
