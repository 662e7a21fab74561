"""What a private training is asked: frozen, and checked before a record is read.

Of the table, no more than the names of its columns is looked at here.

>>> import inspect
>>> from dpcal import train
>>> given = {name: each.default for name, each in inspect.signature(train).parameters.items()}
>>> columns = {"age": {"type": "number", "range": [0, 9]}, "y": {"type": "number"}}
>>> given |= {"table": {"age": [3.0], "y": [1.0]}, "schema": {"columns": columns}}
>>> given |= {"target": "y", "loss": "squared", "epsilon": 1.0, "delta": 1e-6, "n": 100}
>>> request = Request.of(**given)
>>> request.relation, request.trained_on, request.row.name
('add-or-remove-one', 80, 'dpsgd')
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpcal import _validate
from dpcal._files import text_of
from dpcal.accountants.directions import relation_of
from dpcal.calibrate import Constants, Plan
from dpcal.calibrate.batching import PLANNED
from dpcal.errors import MissingExtra, extra, reason_of
from dpcal.optim.registry import Optimizer, find
from dpcal.tables.booking import checked_book
from dpcal.tables.coding import REACH, Coding
from dpcal.tables.drafting import ROW_NUMBERS
from dpcal.tables.reading import Source
from dpcal.tables.schema import Column, Schema

__all__ = ["Request", "schema_of", "source_of"]

EXTRAS = ("polars", "matplotlib")
# Public constants of a loss that settings may give, in place of those that ranges imply.
PUBLIC = ("smoothness", "gap")
# A price may differ by this between two machines, relatively.
_ROUNDING = 1e-6
# Where each constant comes from, for readers who gave too little.
SOURCES = {
    "lipschitz": "max_grad_norm, or ranges with loss='logistic'",
    "smoothness": "ranges, or smoothness in settings",
    "gap": "gap in settings, or a range of the target",
    "hessian_lipschitz": "ranges with loss='logistic'",
    "gamma": "gamma in settings, or l2 > 0 without an intercept and with kappa = 2",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A private training on a table.

    Parameters
    ----------
    source, schema, target
        The table, what is known of its columns in public, and the column that is predicted.
    described
        Whether a schema was given; otherwise its columns were taken from the table.
    loss, l2, intercept
        ``"logistic"`` or ``"squared"``, its regulariser >= 0, and whether an intercept is fitted.
    test_fraction, held_out
        Chance in [0, 1) that a record is held out, and how those records are scored; None for the
        default.
    n
        Public number of records, or of persons where these are the records; None to read it from
        the table.
    row, settings
        The optimizer, and keywords of its plan builder that were given.
    public
        Public constants of the loss that were given, by the field of
        :class:`dpcal.calibrate.Constants` that they take the place of.
    epsilon, delta, relation
        The target of privacy, and its neighboring relation.
    chosen
        Whether predicted errors choose between ``"dpsgd"`` and ``"noisy_gd"``, and their steps:
        where no optimizer was named, and no setting was given.
    plan
        The plan that is run in place of one that is made for the target, if any.
    budget, seed, mechanism
        The budget book, if any, and those of :func:`dpcal.optim.run`.
    """

    source: Source
    schema: Schema
    target: str
    described: bool
    loss: str
    l2: float
    intercept: bool
    test_fraction: float
    held_out: str | None
    n: int | None
    row: Optimizer
    settings: Mapping[str, Any]
    public: Mapping[str, Any]
    epsilon: float
    delta: float
    relation: str
    chosen: bool
    plan: Plan | None
    budget: Path | None
    seed: int | None
    mechanism: str | None
    coding: Coding = field(init=False)

    def __post_init__(self) -> None:
        _validate.non_negative(l2=self.l2)
        if not 0 <= self.test_fraction < 1:
            got = self.test_fraction
            raise ValueError(f"test_fraction must be a number in [0, 1), got {got}.")
        # At 0 nothing about the records could be learned, and no noise is enough to learn it with.
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(delta=self.delta)
        object.__setattr__(self, "coding", Coding(self.schema.features(self.target)))
        if self.row.constants and self.plan is None:
            self._check_needs()

    @classmethod
    def of(
        cls,
        table: Any,
        schema: Any,
        *,
        target: str | None,
        n: int | None,
        optimizer: str | None,
        group_size: int | None,
        use_plan: Plan | str | Path | None,
        neighboring_relation: str | None,
        budget: str | Path | None,
        **given: Any,
    ) -> Request:
        """Return the request that the arguments of :func:`dpcal.train` make.

        Raises
        ------
        MissingExtra
            If a package that training needs is not installed.
        ValueError
            If an argument is not what it must be, or does not go with the others.
        """
        neighboring_relation = neighboring_relation and relation_of(neighboring_relation)
        for name, choices in _CHOICES.items():
            if given[name] is not None:
                _validate.choice(choices, **{name: given[name]})
        public: Mapping[str, Any] = {}
        settings = _settings(given)
        known = None if schema is None else schema_of(schema, group_size)
        plan = None if use_plan is None else _plan(use_plan)
        if plan is not None:
            own = {"optimizer": optimizer, "neighboring_relation": neighboring_relation}
            told = _told(plan, {**given, **own}, {**settings, "n": n})
            given["epsilon"], given["delta"], neighboring_relation, optimizer = told
            n = plan.n if neighboring_relation == "add-or-remove-one" else None
            settings = {"clipped": plan.clipped}
        elif None in (given["epsilon"], given["delta"]):
            raise ValueError("train needs epsilon and delta, or use_plan.")
        row = find(optimizer or "dpsgd")
        _check_optimizer(row, plan)
        _check_persons(known, group_size, settings, plan)
        if plan is None:
            if n is None and known is not None and settings.get("clipped") != "user":
                n = known.n
            public, settings = _of_optimizer(row, known, settings)
        relation = _relation(neighboring_relation, row, n)
        _check_sampler(row, settings, relation, known)
        check_extras()
        source = source_of(table, known)
        book = checked_book(budget, source.records)
        target = _target(target, known)
        described = _columns(source, known, target, given)
        first = ("add-or-remove-one", "replace-special")
        return cls(
            source=source,
            schema=described,
            target=target,
            described=known is not None,
            n=n,
            row=row,
            settings=settings,
            public=public,
            relation=relation,
            chosen=optimizer is None and not settings and relation in first,
            plan=plan,
            budget=book,
            **given,
        )

    @property
    def by_person(self) -> bool:
        """Whether persons are drawn, and the sum of the rows of a person is clipped."""
        return self.settings.get("clipped") == "user"

    @property
    def trained_on(self) -> int | None:
        """Average number of training records out of the public number of records."""
        if self.plan is not None:
            return self.plan.n
        return None if self.n is None else max(1, round((1 - self.test_fraction) * self.n))

    @property
    def constants(self) -> Constants:
        """Constants of the loss that the public ranges imply, or that were given."""
        square = self.coding.square_bound + self.intercept  # of a record's norm
        target = self.schema.column(self.target)
        if self.loss == "logistic":
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
        known = replace(implied, **self.public)
        return replace(
            known,
            smoothness=known.smoothness + (0.0 if "l2" in self.row.options else self.l2),
            strong_convexity=0.0 if self.intercept else self.l2,
        )

    def _check_needs(self) -> None:
        """Raise ``ValueError`` with what gives the constant that an optimizer lacks."""
        constants, given = self.constants, self.settings
        known = {
            "lipschitz": constants.lipschitz < math.inf,
            "smoothness": constants.smoothness < math.inf,
            "gap": constants.gap is not None,
            "hessian_lipschitz": constants.hessian_lipschitz is not None,
            "gamma": constants.strong_convexity > 0 and given.get("kappa", 2.0) == 2,
        }
        for need in self.row.needs:
            ways = need.split(" or ")
            if ways[0] in known and not any(known.get(way) or way in given for way in ways):
                raise ValueError(
                    f"optimizer {self.row.name} needs {ways[0]}: give {SOURCES[ways[0]]}."
                )


_CHOICES = {
    "loss": ("logistic", "squared"),
    "features": ("linear", "bins", "splines", "random"),
    "held_out": ("noisy", "unprotected", "none"),
    "mechanism": ("discrete", "gaussian"),
}


def schema_of(schema: Any, group_size: int | None = None) -> Schema:
    """Return a schema from what stands for one, with another group size if one is given."""
    if isinstance(schema, Mapping):
        schema = Schema.from_dict(schema)
    elif isinstance(schema, str | Path):
        schema = Schema.read(Path(schema))
    elif not isinstance(schema, Schema):
        raise TypeError(f"schema must be a Schema, a mapping or a path, got {schema!r}.")
    known: Schema = schema
    return known if group_size is None else replace(known, group_size=group_size)


def source_of(table: Any, schema: Schema | None = None) -> Source:
    """Open a table, unless it is open."""
    if isinstance(table, Source):
        return table
    missing = () if schema is None else schema.missing_values
    return Source(Path(table) if isinstance(table, str) else table, missing_values=missing)


# -- the optimizer and its plan


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the plan, with those that are arguments of their own."""
    settings = dict(given.pop("settings") or {})
    own = {"max_norm": "max_grad_norm", "epochs": "epochs", "batch_size": "batch_size"}
    for name, argument in own.items():
        value = given.pop(argument)
        if name in settings:
            raise ValueError(f"settings must leave {name} to {argument}.")
        if value is not None:
            settings[name] = value
    return settings


def _plan(given: Plan | str | Path) -> Plan:
    """Return a plan, or that of a file, if it costs what it says."""
    if isinstance(given, Plan):
        plan = given
    else:
        path = Path(_validate.instance(str, Path, use_plan=given))
        try:
            plan = Plan.from_json(text_of(path, "use_plan must be a readable file"))
        except ValueError as error:
            reason = reason_of(error)
            raise ValueError(reason if reason.startswith("use_") else f"{path}: {reason}") from None
    price = plan.price()
    if price > plan.epsilon * (1 + _ROUNDING):
        raise ValueError(
            f"use_plan must meet its target: its answers cost epsilon = {price:.6g} at delta = "
            f"{plan.delta:g} by accountant {plan.accountant!r}, got a target of {plan.epsilon:g}."
        )
    return plan


def _told(plan: Plan, given: Mapping[str, Any], settled: Mapping[str, Any]) -> list[Any]:
    """Return the target and the optimizer of a plan; refuse others, and what it has settled."""
    for name, value in settled.items():
        if value is not None:
            told = _ARGUMENTS.get(name, name)
            raise ValueError(f"{told} does not go with use_plan, which says it.")
    found = []
    for name in ("epsilon", "delta", "neighboring_relation", "optimizer"):
        own = getattr(plan, name)
        if given[name] not in (None, own):
            raise ValueError(f"{name} must be the plan's, {own}, or left out, got {given[name]}.")
        found.append(own)
    return found


def check_extras() -> None:
    """Refuse a training without the packages that it needs, before a record is read."""
    missing = [name for name in EXTRAS if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"train needs {' and '.join(missing)}: {extra('train')}. No record was read."
        )


def _check_optimizer(row: Optimizer, plan: Plan | None) -> None:
    """Refuse an optimizer that a table and settings do not suffice for."""
    if row.blocks:
        raise ValueError(
            f"optimizer {row.name} is for minimax problems, which tables do not pose: take "
            f"dpcal.optim.{row.name} with an objective of dpcal.optim.minimax."
        )
    if row.name == "correlated_dpsgd" and plan is None:
        raise ValueError(
            "optimizer correlated_dpsgd needs a plan, as of 'dpcal calibrate --noise': use_plan."
        )


def _check_persons(
    schema: Schema | None, group_size: int | None, settings: Mapping[str, Any], plan: Plan | None
) -> None:
    """Refuse persons without a column that says whose a row is, or another unit than a plan's."""
    if group_size is not None:
        _validate.count(group_size=group_size)
    if schema is None and group_size not in (None, 1):
        raise ValueError("group_size needs a schema with a column of type 'person'.")
    if settings.get("clipped") == "user" and (schema is None or schema.person is None):
        raise ValueError("clipped='user' needs a schema with a column of type 'person'.")
    most = 1 if schema is None else schema.group_size
    if plan is not None and plan.group_size != most:
        raise ValueError(
            f"use_plan must be about the persons of the schema, with group_size {most}, got a "
            f"plan with {plan.group_size}."
        )


def _of_optimizer(
    row: Optimizer, schema: Schema | None, settings: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return public constants and the builder's keywords; refuse those that it does not take."""
    settings, public = dict(settings), {}
    if row.constants:
        constants = {name: name for name in PUBLIC}
        constants |= {} if "max_norm" in row.options else {"max_norm": "lipschitz"}
        for name in settings.keys() & constants.keys():
            public[constants[name]] = _validate.positive(**{name: settings.pop(name)})
    if schema is not None and schema.group_size > 1:
        settings["group_size"] = schema.group_size
    # Persons who are records have the price of records, however many rows they have.
    priced = ("group_size",) if settings.get("clipped") == "user" else ()
    known = {*row.options, "accountant", *priced} - {"l2"}
    for name in settings:
        if name not in known:
            names = sorted({*known, *(PUBLIC if row.constants else ())} - _ELSEWHERE)
            raise ValueError(
                f"{_ARGUMENTS.get(name, name)} is not for optimizer {row.name}, whose settings are "
                f"{', '.join(names)}."
            )
    return public, settings


_ARGUMENTS = {"max_norm": "max_grad_norm"}
# Keywords of plan builders that are arguments of their own.
_ELSEWHERE = {"group_size", "epochs", "batch_size", "max_norm"}


def _relation(given: str | None, row: Optimizer, n: int | None) -> str:
    """Return the relation that fits where n comes from: read from the table, or given in public."""
    if n is not None:
        _validate.count(n=n)
    if n is not None and "add-or-remove-one" not in row.relations:
        raise ValueError(
            f"n {n} is for neighboring_relation='add-or-remove-one', which optimizer {row.name} "
            "does not have: omit n, here and in the schema."
        )
    if given is None:
        wanted = "replace-special" if n is None else "add-or-remove-one"
        return wanted if wanted in row.relations else row.relations[0]
    if given == "add-or-remove-one" and n is None and given in row.relations:
        raise ValueError(
            "neighboring_relation='add-or-remove-one' needs n, a public number of records (of "
            "persons, with clipped='user') that the table's own may differ from: that one is read "
            "from the data, and a record more would change it. Without n the relation is "
            "replace-special."
        )
    if given != "add-or-remove-one" and n is not None:
        raise ValueError(f"n is for neighboring_relation='add-or-remove-one', got {given}.")
    if given not in row.relations:
        raise ValueError(
            f"neighboring_relation must be {' or '.join(row.relations)} for optimizer {row.name}, "
            f"got {given!r}."
        )
    return given


def _check_sampler(
    row: Optimizer, settings: Mapping[str, Any], relation: str, schema: Schema | None
) -> None:
    """Refuse a sampler without a price for this relation, or for rows of a person."""
    name = settings.get("sampler", "poisson")
    if row.name != "dpsgd" or name == "poisson":
        return
    _validate.choice(tuple(PLANNED), sampler=name)
    if relation not in PLANNED[name]:
        raise ValueError(
            f"sampler {name} is for neighboring_relation {' or '.join(PLANNED[name])}, got "
            f"{relation}."
        )
    if schema is not None and schema.group_size > 1 and settings.get("clipped") != "user":
        raise ValueError(
            f"sampler {name} is for single records, got persons with several: clipped='user' in "
            "settings takes persons for records."
        )


# -- the columns


def _target(given: str | None, schema: Schema | None) -> str:
    """Return the column that is predicted."""
    target = given or (None if schema is None else schema.target)
    if target is None:
        why = "no schema names it" if schema is None else "the schema names no target"
        raise ValueError(f"target is needed: {why}.")
    return str(target)


def _columns(source: Source, schema: Schema | None, target: str, given: dict[str, Any]) -> Schema:
    """Return the schema, or one of numbers, with weights and curves as they are given."""
    bounds, weights = given.pop("bounds"), given.pop("class_weights")
    if schema is not None and bounds is not None:
        raise ValueError("bounds is for tables without a schema.")
    known = _numbers(source, target, bounds) if schema is None else schema
    known = _weighted(known, target, weights, given["loss"])
    return _curved(known, target, given.pop("features"))


def _numbers(source: Source, target: str, bounds: Any) -> Schema:
    """Return a schema of numbers, with one range if it was given, for tables without a schema."""
    features = [name for name in source.columns if name != target]
    numbers = [name for name in features if name in ROW_NUMBERS]
    if numbers:
        raise ValueError(
            "table must hold no numbers of its rows as a feature, got a column named "
            f"{numbers[0]!r}. {drafts_one(source)}"
        )
    if bounds is not None:
        bounds = _pair(bounds)
    return Schema(
        columns=tuple(
            Column(name=name, type="number", range=None if name == target else bounds)
            for name in source.columns
        )
    )


def _pair(bounds: Any) -> tuple[float, float]:
    """Return bounds as two numbers, if they are that."""
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds must be two finite numbers, low < high, got {bounds!r}.")
    return low, high


def drafts_one(source: Source) -> str:
    """Return the sentence that says which command drafts the schema that a table lacks."""
    file = "FILE" if source.in_memory else shlex.quote(str(source.path))
    return (
        "Without a schema every feature must be a number: "
        f"'dpcal schema {file} -o schema.toml' drafts one, with types and categories."
    )


def _weighted(schema: Schema, target: str, weights: Sequence[float] | None, loss: str) -> Schema:
    """Return the schema with weights of the target's classes, if any were given."""
    column = schema.column(target)
    if weights is None:
        return schema
    if loss != "logistic":
        raise ValueError("class_weights is for loss='logistic'.")
    if not column.categories:
        raise ValueError("class_weights must come with a schema that lists the target's classes.")
    known = replace(
        column,
        type="class",
        coding="one-hot",
        missing="refuse" if column.missing == "impute" else column.missing,
        unknown="refuse" if column.unknown == "ignore" else column.unknown,
        weights=tuple(map(float, weights)),
        copied=tuple({*column.copied} & {"categories"}),
    )
    return schema.with_column(known)


def _curved(schema: Schema, target: str, features: str) -> Schema:
    """Return the schema with its numbers coded as ``features`` says."""
    if features == "linear":
        return schema
    for column in schema.features(target):
        if column.type == "number" and column.range is None:
            raise ValueError(
                f"features={features!r} needs a public range of every number, column "
                f"{column.name!r} has none: give it in the schema, or by bounds."
            )
        if column.type == "number":
            schema = schema.with_column(replace(column, coding=features))
    return schema
