"""From a request and its records to a plan: settings that follow from public numbers alone.

>>> sorted(default_sizes(400, {"steps": 10}).items())
[('batch_size', 64), ('max_norm', 1.0)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dpcal
from dpcal._internal import validate
from dpcal.calibrate import Plan, Query
from dpcal.calibrate.constants import UnknownConstant
from dpcal.calibrate.defaults import SCALE_SHARE, Defaults
from dpcal.calibrate.recommending.recommendation import first_choice
from dpcal.optim.linear_fit import SCALE, asked_before, query_on_all, tuned
from dpcal.tables.coding import REACH, Coding
from dpcal.tables.request import Request

__all__ = ["calibrated", "compared", "default_sizes"]

# Those that predicted errors choose among where no optimizer was named. Correlated noise is left
# out: it has no joint price with the question how long rows are.
CHOICE = ("dpsgd", "noisy_gd")
# Passes of samplers by epochs.
_PASSES = 60.0
# The largest standard deviation of the noise on the norm of rows, in units of the guess that it
# replaces, at which longer rows are still told apart from shorter ones.
_NOISE = 0.15
# Squares are cut at four guesses or more; where noise would be half a guess, the guess stays.
_LEAST_CUT, _LOUDEST = 4.0, 0.5


def calibrated(request: Request, n: int, dimension: int) -> Plan:
    """Return the plan of a request.

    Parameters
    ----------
    request
        What is asked.
    n, dimension
        Number of records to train on, of rows or of persons, and of parameters.
    """
    plan = request.plan
    if plan is None:
        plan = _made(request, request.trained_on or n, dimension)
    elif request.n is None and plan.n != n:
        raise ValueError(
            f"use_plan must be for the n={n} records to train on, got a plan for n={plan.n} "
            f"under {plan.neighboring_relation!r}: test_fraction = 0 holds none out, and under "
            "add-or-remove-one the plan's n is public and may differ."
        )
    return plan if request.n is None else replace(plan, public_n=True)


def _made(request: Request, n: int, dimension: int) -> Plan:
    """Return the plan that is made for the target of a request."""
    row, settings, norm = request.row, dict(request.settings), _row_norm(request)
    target: dict[str, Any] = {"n": n, **request.goal}
    if row.name == "dpsgd" and norm is not None:
        return _tuned(request, dimension, norm, target)
    if not row.constants:
        plan: Plan = row.build()(**target, **default_sizes(n, settings), **settings)
        return plan
    if "l2" in row.options:
        settings["l2"] = request.l2
    try:
        plan = row.build()(request.constants, dimension=dimension, **target, **settings)
    except UnknownConstant as error:
        told = "Constants of the loss follow from ranges in the schema."
        raise ValueError(f"{error} {told}") from error
    return plan


def compared(request: Request, n: int, dimension: int) -> dict[str, Any] | None:
    """Return arguments of :func:`dpcal.calibrate.recommend`; None where errors do not choose."""
    norm, bound = _row_norm(request), _row_bound(request)
    if norm is None or not request.chosen:
        return None
    return {
        "loss": request.loss,
        "n": request.trained_on or n,
        "dimension": dimension,
        "row_norm": bound,
        "typical_norm": min(norm, bound),
        "l2": request.l2,
        **request.goal,
    }


def _row_norm(request: Request) -> float | None:
    """Return the norm that most records have, as far as ranges tell; None where they do not."""
    square = request.coding.typical_square
    known = request.loss == "logistic" or request.schema.column(request.target).range is not None
    return None if square is None or not known else math.sqrt(square + request.intercept)


def _row_bound(request: Request) -> float:
    """Return the bound that ranges give on the norm of rows."""
    return math.sqrt(request.coding.square_bound + request.intercept)


def _tuned(request: Request, dimension: int, norm: float, target: Mapping[str, Any]) -> Plan:
    """Return the plan of DP-SGD whose settings, where none were given, are those of a linear model.

    Where neither the clip nor the rate was given, a hundredth of the budget asks how long rows are.
    The sum of the rows of a person is clipped as if it were one row. Gradients of a class of weight
    w are w times as long, and curve as much more.
    """
    weight = max(request.schema.column(request.target).weights or (1.0,))
    given, asked = dict(request.settings), compared(request, target["n"], dimension)
    scaled = "max_norm" in given or "learning_rate" in given or request.by_person
    clip, passes = given.pop("max_norm", None), given.pop("epochs", None)
    by_epochs = given.get("sampler", "poisson") != "poisson" and "steps" not in given
    if by_epochs and passes is None:
        passes = _PASSES
    if passes is not None:
        validate.positive(epochs=passes)
    first = None if asked is None else first_choice(optimizers=CHOICE, **asked).plan
    if first is not None:
        query = first.queries[-1]
        given = {"steps": query.count, "batch_size": round(query.expected_batch_size(first.n))}
    release = dpcal.noise_multiplier(dpcal.events.GaussianDpEvent, **request.goal)
    release *= 1 if request.by_person else given.get("group_size", 1)
    settled = Defaults.of(
        request.loss,
        n=target["n"],
        dimension=dimension,
        row_norm=norm,
        release=release,
        passes=passes,
        steps=given.get("steps"),
        batch_size=given.get("batch_size"),
        unit=1.0 if request.loss == "logistic" else REACH,
        bound=None if request.by_person else _row_bound(request),
    )
    clip = weight * settled.max_norm if clip is None else clip
    if first is None:
        length = {"epochs": passes} if by_epochs else {"steps": settled.steps}
        sizes = {**length, "batch_size": settled.batch_size, "max_norm": clip}
        plan: Plan = request.row.build()(**target, **given | sizes)
    else:
        parameters = {"steps": settled.steps, "batch_size": settled.batch_size}
        plan = replace(first, queries=(replace(query, max_norm=clip),), parameters=parameters)
    # Beside another query a shuffle has a looser price, and rows of a person have no common length.
    if not scaled and plan.queries[-1].sampler != "shuffled-epochs":
        scale = _scale(request.coding, release=release, n=plan.n, group_size=plan.group_size)
        plan = plan if scale is None else asked_before(plan, scale)
    if "learning_rate" in plan.parameters:
        return plan
    query = plan.query("gradient")
    settled = replace(settled, steps=query.count)
    _, rate = tuned(settled, query, weight=weight, l2=request.l2, max_norm=clip)
    return replace(plan, parameters={**plan.parameters, "learning_rate": rate})


def _scale(coding: Coding, *, release: float, n: int, group_size: int) -> Query | None:
    """Return the query about the mean squared norm of rows; None where noise would hide it.

    A range is taken to span eight standard deviations of its values. Where rows are much shorter or
    longer, the steps that are right for the guess are too long or too short.
    """
    guess, multiplier = coding.typical_square, release / math.sqrt(SCALE_SHARE)
    if not guess:
        return None
    cut = min(coding.square_bound / guess, max(_LEAST_CUT, _NOISE * n / multiplier))
    if cut * multiplier / n > _LOUDEST:
        return None
    return query_on_all(SCALE, cut * guess, multiplier, group_size=group_size)


def default_sizes(n: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of DP-SGD that were not given: functions of n alone."""
    defaults = {"batch_size": min(n, max(64, math.ceil(3 * math.sqrt(n)))), "max_norm": 1.0}
    if "steps" not in given:
        defaults["epochs"] = 20.0
    return {name: value for name, value in defaults.items() if name not in given}
