"""A private training as it is requested, checked before a record is read, and its plan.

Only the names of the table's columns are read here. Settings follow from public numbers.

>>> sorted(default_sizes(400, {"steps": 10}).items())
[('batch_size', 64), ('max_norm', 1.0)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dpcal
from dpcal._internal import validate
from dpcal._internal.files import text_of
from dpcal.accountants.directions import relation_of
from dpcal.calibrate import Constants, Plan, Query
from dpcal.calibrate.constants import UnknownConstant
from dpcal.calibrate.defaults import SCALE_SHARE, Defaults
from dpcal.calibrate.recommending.recommendation import first_choice
from dpcal.errors import reason_of
from dpcal.optim.linear_fit import SCALE, asked_before, query_on_all, tuned
from dpcal.optim.objectives.linear import Logistic, Squared
from dpcal.optim.registry import Optimizer, find
from dpcal.tables.booking import checked_book
from dpcal.tables.coding import REACH, Coding
from dpcal.tables.drafting import schema_of_numbers
from dpcal.tables.reading import Source, check_extras, source_of
from dpcal.tables.schema import Schema, schema_of

_NONE: Mapping[str, Any] = {}
PUBLIC = ("smoothness", "gap")
_ROUNDING = 1e-6
# Correlated noise is left out: no joint cost with the query for the norm of rows is known.
CHOICE = ("dpsgd", "noisy_gd")
_PASSES = 60.0
# Noise over the guess of a norm, for cuts above the least one: longer rows still differ.
_NOISE = 0.15
# Squared norms are cut at four guesses or more; the guess stays where noise exceeds half a guess.
_LEAST_CUT, _LOUDEST = 4.0, 0.5


class Request:
    """A private training on a table, by the arguments of :func:`dpcal.train`; raises as it does.

    Attributes
    ----------
    source, schema, target
        Table, public description of its columns, and column to predict.
    described
        Whether a schema was given; otherwise its columns were taken from the table.
    loss, l2, intercept, test_fraction, held_out, seed
        Arguments as they were given.
    n
        Public number of records, or of persons where these are the records; None to read it from
        the table.
    row, settings
        The optimizer, and keywords of its plan builder that were given.
    public
        Public constants of the loss that were given, by the field of
        :class:`dpcal.calibrate.Constants` that they take the place of.
    goal
        The target of privacy, as plan builders take it: epsilon, delta, and the relation.
    chosen
        Whether predicted errors choose between ``"dpsgd"`` and ``"noisy_gd"``, and their steps.
    plan
        The plan that is run in place of one that is made for the target, if any.
    budget
        Budget book, if any.
    coding
        From cells to features.
    """

    def __init__(
        self,
        table: Any,
        schema: Any,
        *,
        target: str | None,
        epsilon: float | None,
        delta: float | None,
        n: int | None,
        loss: str,
        l2: float,
        intercept: bool,
        optimizer: str | None,
        settings: Mapping[str, Any] | None,
        class_weights: Mapping[str, float] | None,
        use_plan: Plan | str | Path | None,
        group_size: int | None,
        test_fraction: float,
        held_out: str | None,
        budget: str | Path | None,
        seed: int | None,
        neighboring_relation: str | None,
    ) -> None:
        self.described, self.settings = schema is not None, dict(settings or {})
        self.source, known, self.target = _opened(table, schema, group_size, target)
        if class_weights is not None:
            known = known.weighted(self.target, class_weights)
        self.schema = known
        relation = neighboring_relation and relation_of(neighboring_relation)
        self.plan = None
        if use_plan is not None:
            asked = {"epsilon": epsilon, "delta": delta, "neighboring_relation": relation}
            asked |= {"optimizer": optimizer, "group_size": known.group_size}
            self.plan = _plan(use_plan, asked, settled={**self.settings, "n": n})
            epsilon, delta, optimizer = self.plan.epsilon, self.plan.delta, self.plan.optimizer
            relation = self.plan.neighboring_relation
            n = self.plan.n if relation == "add-or-remove-one" else None
            self.settings = {"clipped": self.plan.clipped}
        self.goal = _goal(epsilon, delta)
        self.by_person = self.settings.get("clipped") == "user"
        if self.by_person and known.person is None:
            raise ValueError("clipped='user' needs a schema with a column of type 'person'.")
        self.row, self.public = _row(optimizer or "dpsgd", self.plan), _NONE
        self.n = n if n is None else validate.count(n=n)
        if self.plan is None:
            self.n = known.n if n is None and not self.by_person else self.n
            if known.group_size > 1:
                self.settings["group_size"] = known.group_size
            self.public = _public(self.row, self.settings)
        self.goal["neighboring_relation"] = relation = _relation(relation, self.row, self.n)
        self.loss = validate.choice(("logistic", "squared"), loss=loss)
        if held_out is not None:
            validate.choice(("noisy", "unprotected", "none"), held_out=held_out)
        self.held_out, self.intercept, self.seed = held_out, intercept, seed
        self.l2 = validate.non_negative(l2=l2)
        self.test_fraction = validate.below_one(test_fraction=test_fraction)
        self.chosen = optimizer is None and not self.settings and relation != "replace-one"
        self.budget = checked_book(budget, self.source.records)
        self.coding = Coding(known.features(self.target))

    @property
    def trained_on(self) -> int | None:
        """Average number of training records out of the public number of records."""
        if self.plan is not None:
            return self.plan.n
        return None if self.n is None else max(1, round((1 - self.test_fraction) * self.n))

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self.coding.names) + self.intercept

    @property
    def row_norm(self) -> float | None:
        """Norm of most records that the ranges imply; None without ranges."""
        square, ends = self.coding.typical_square, self.schema.column(self.target).range
        if square is None or (self.loss == "squared" and ends is None):
            return None
        return math.sqrt(square + self.intercept)

    @property
    def row_bound(self) -> float:
        """Bound that ranges give on the norm of rows."""
        return math.sqrt(self.coding.square_bound + self.intercept)

    @property
    def constants(self) -> Constants:
        """Constants of the loss that the public ranges imply, or that were given."""
        target = self.schema.column(self.target)
        norm = math.nextafter(math.sqrt(self.coding.square_bound), math.inf)
        about: dict[str, Any] = {"row_norm": norm, "fit_intercept": self.intercept}
        if self.loss == "logistic":
            weight = max(target.weights, default=1.0)
            implied = Logistic.constants_for(**about, largest_weight=weight)
        else:
            implied = Squared.constants_for(**about, target_bound=REACH)
            implied = implied if target.range else replace(implied, gap=None)
        known = replace(implied, **self.public)
        return replace(
            known,
            smoothness=known.smoothness + (0.0 if "l2" in self.row.options else self.l2),
            strong_convexity=0.0 if self.intercept else self.l2,
        )


def _plan(given: Plan | str | Path, asked: Mapping[str, Any], settled: Mapping[str, Any]) -> Plan:
    """Return a plan, or the plan of a file; refuse one that costs more, or is not as requested.

    It can be no other than it is in values that are ``asked``; its values are ``settled``.
    """
    plan = given
    if not isinstance(plan, Plan):
        path = Path(validate.instance(str, Path, use_plan=plan))
        text = text_of(path, "use_plan must be a readable file")
        try:
            plan = Plan.from_json(text)
        except ValueError as error:
            raise ValueError(f"{path}: {reason_of(error)}") from None
    price = plan.price()
    if price > plan.epsilon * (1 + _ROUNDING):
        raise ValueError(
            f"use_plan must meet its target: its answers cost epsilon = {price:.6g} at delta = "
            f"{plan.delta:g} by accountant {plan.accountant!r}, got a target of {plan.epsilon:g}."
        )
    for name, value in settled.items():
        if value is not None:
            raise ValueError(f"{name} does not go with use_plan, which sets it.")
    for name, value in asked.items():
        own = getattr(plan, name)
        if value not in (None, own):
            raise ValueError(f"{name} must be the plan's, {own}, or left out, got {value}.")
    return plan


def _opened(
    table: Any, schema: Any, group_size: int | None, target: str | None
) -> tuple[Source, Schema, str]:
    """Return a table, its schema, and the name of its target; columns are numbers by default."""
    check_extras()
    known = None if schema is None else schema_of(schema, group_size)
    source = source_of(table, () if known is None else known.missing_values)
    known = known or schema_of(schema_of_numbers(source), group_size)
    if not (target := target or known.target):
        raise ValueError("target is needed: no schema names it.")
    return source, known, target


def _goal(epsilon: float | None, delta: float | None) -> dict[str, Any]:
    """Return the target of privacy, without its relation."""
    if epsilon is None or delta is None:
        raise ValueError("train needs epsilon and delta, or use_plan.")
    validate.positive(epsilon=epsilon)
    validate.probability(delta=delta)
    return {"epsilon": epsilon, "delta": delta}


def _row(name: str, plan: Plan | None) -> Optimizer:
    """Return an optimizer; refuse one that a table and settings do not suffice for."""
    row = find(name)
    if row.blocks:
        raise ValueError(
            f"optimizer {row.name} is for minimax problems, which tables do not pose: take "
            f"dpcal.optim.{row.name} with an objective of dpcal.optim.minimax."
        )
    if row.name == "correlated_dpsgd" and plan is None:
        raise ValueError(
            "optimizer correlated_dpsgd needs a plan, as of dpcal.calibrate.correlated_dpsgd: "
            "use_plan."
        )
    return row


def _public(row: Optimizer, settings: dict[str, Any]) -> Mapping[str, Any]:
    """Take public constants of the loss out of settings; refuse unknown settings.

    Clipping per person costs the same for any number of rows of a person.
    """
    takes = dict(zip(PUBLIC, PUBLIC, strict=True)) if row.constants else {}
    if row.constants and "max_norm" not in row.options:
        takes["max_norm"] = "lipschitz"
    known = {*row.options, *takes, "accountant"} - {"l2"}
    known |= {"group_size"} if settings.get("clipped") == "user" else set()
    for name in settings:
        if name not in known:
            told = ", ".join(sorted(known - {"group_size"}))
            raise ValueError(f"{name} is not for optimizer {row.name}, whose settings are {told}.")
    found = settings.keys() & takes
    return {takes[name]: validate.positive(**{name: settings.pop(name)}) for name in found}


def _relation(given: str | None, row: Optimizer, n: int | None) -> str:
    """Return the relation that fits where n comes from: read from the table, or given in public."""
    public, told = "add-or-remove-one", "replace-special"
    if n is not None and given not in (None, public):
        raise ValueError(f"n is for neighboring_relation={public!r}, got {given}.")
    usual = told if told in row.relations else row.relations[0]
    relation = given or (usual if n is None else public)
    if relation not in row.relations:
        why = "" if n is None else ", which n is for: omit n, here and in the schema"
        raise ValueError(
            f"neighboring_relation must be {' or '.join(row.relations)} for optimizer {row.name}, "
            f"got {relation!r}{why}."
        )
    if relation == public and n is None:
        raise ValueError(
            f"neighboring_relation={public!r} needs n, a public number of records (of persons, "
            "with clipped='user') that the table's own may differ from: that one is read from the "
            "data, and a record more would change it. Without n the relation is replace-special."
        )
    return relation


def calibrated(request: Request, n: int) -> Plan:
    """Return the plan of a request, for ``n`` records to train on: rows, or persons."""
    plan, row, settings = request.plan, request.row, dict(request.settings)
    target: dict[str, Any] = {"n": request.trained_on or n, **request.goal}
    if plan is not None:
        if request.n is None and plan.n != n:
            raise ValueError(
                f"use_plan must be for the n={n} records to train on, got a plan for n={plan.n} "
                f"under {plan.neighboring_relation!r}: test_fraction = 0 holds none out, and under "
                "add-or-remove-one the plan's n is public and may differ."
            )
    elif row.name == "dpsgd" and request.row_norm is not None:
        plan = _tuned(request, request.row_norm, target)
    elif not row.constants:
        plan = row.build()(**target, **default_sizes(target["n"], settings), **settings)
    else:
        settings |= {"l2": request.l2} if "l2" in row.options else {}
        try:
            build = row.build()
            plan = build(request.constants, dimension=request.dimension, **target, **settings)
        except UnknownConstant as error:
            told = "Constants of the loss follow from ranges in the schema."
            raise ValueError(f"{error} {told}") from error
    return plan if request.n is None else replace(plan, public_n=True)


def compared(request: Request, n: int) -> dict[str, Any] | None:
    """Return arguments of :func:`dpcal.calibrate.recommend`; None where errors do not choose."""
    if request.row_norm is None or not request.chosen:
        return None
    return {
        "loss": request.loss,
        "n": request.trained_on or n,
        "dimension": request.dimension,
        "row_norm": request.row_bound,
        "typical_norm": min(request.row_norm, request.row_bound),
        "l2": request.l2,
        **request.goal,
    }


def _tuned(request: Request, norm: float, target: Mapping[str, Any]) -> Plan:
    """Return the plan of DP-SGD, with settings of a linear model in place of missing ones.

    Where neither the clip nor the rate was given, a hundredth of the budget is spent on the norm of
    rows. There is none with a shuffle, which costs more next to another query, nor with persons:
    the rows of a person have no common norm. Their sum is clipped as if it were one row. Gradients
    of a class of weight w are w times as long, and curve as much more.
    """
    weight = max(request.schema.column(request.target).weights or (1.0,))
    given, asked = dict(request.settings), compared(request, target["n"])
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
        dimension=request.dimension,
        row_norm=norm,
        release=release,
        passes=passes,
        steps=given.get("steps"),
        batch_size=given.get("batch_size"),
        unit=1.0 if request.loss == "logistic" else REACH,
        bound=None if request.by_person else request.row_bound,
    )
    clip = weight * settled.max_norm if clip is None else clip
    if first is None:
        length = {"epochs": passes} if by_epochs else {"steps": settled.steps}
        sizes = {**length, "batch_size": settled.batch_size, "max_norm": clip}
        plan: Plan = request.row.build()(**target, **given | sizes)
    else:
        parameters = {"steps": settled.steps, "batch_size": settled.batch_size}
        plan = replace(first, queries=(replace(query, max_norm=clip),), parameters=parameters)
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
    """Return the missing sizes of DP-SGD, as functions of n only."""
    defaults = {"batch_size": min(n, max(64, math.ceil(3 * math.sqrt(n)))), "max_norm": 1.0}
    if "steps" not in given:
        defaults["epochs"] = 20.0
    return {name: value for name, value in defaults.items() if name not in given}
