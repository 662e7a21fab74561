"""What a private training is asked: frozen, and checked before a record is read.

Of the table, no more than the names of its columns is looked at here.

>>> schema = schema_of({"columns": {"who": {"type": "person"}}}, group_size=3)
>>> schema.person, schema.group_size
('who', 3)
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpcal._internal import validate
from dpcal._internal.files import text_of
from dpcal.accountants.directions import relation_of
from dpcal.calibrate import Constants, Plan
from dpcal.errors import MissingExtra, extra, reason_of
from dpcal.optim.registry import Optimizer, find
from dpcal.tables.booking import checked_book
from dpcal.tables.coding import REACH, Coding
from dpcal.tables.drafting import ROW_NUMBERS
from dpcal.tables.reading import Source
from dpcal.tables.schema import Column, Schema

__all__ = ["Request", "check_extras", "drafts_one", "schema_of", "source_of"]

EXTRAS = ("polars", "matplotlib")
# Public constants of a loss that settings may give, in place of those that ranges imply.
PUBLIC = ("smoothness", "gap")
# A price may differ by this between two machines, relatively.
_ROUNDING = 1e-6
_CHOICES = {
    "loss": ("logistic", "squared"),
    "held_out": ("noisy", "unprotected", "none"),
    "mechanism": ("discrete", "gaussian"),
}
# Settings of plan builders that are arguments of their own.
_ARGUMENTS = {"max_norm": "max_grad_norm", "epochs": "epochs", "batch_size": "batch_size"}


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
    goal
        The target of privacy, as plan builders take it: epsilon, delta, and the relation.
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
    goal: Mapping[str, Any]
    chosen: bool
    plan: Plan | None
    budget: Path | None
    seed: int | None
    mechanism: str | None
    coding: Coding = field(init=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) is not None:
                validate.choice(choices, **{name: getattr(self, name)})
        validate.non_negative(l2=self.l2)
        validate.below_one(test_fraction=self.test_fraction)
        # At 0 nothing about the records could be learned, and no noise is enough to learn it with.
        validate.positive(epsilon=self.goal["epsilon"])
        validate.probability(delta=self.goal["delta"])
        object.__setattr__(self, "coding", Coding(self.schema.features(self.target)))

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
        class_weights: Mapping[str, float] | None,
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
        settings = _settings(given)
        relation = neighboring_relation and relation_of(neighboring_relation)
        known, target = _described(schema, group_size, target, class_weights)
        plan = None if use_plan is None else _plan(use_plan)
        if plan is not None:
            asked = {**given, "optimizer": optimizer, "neighboring_relation": relation}
            given |= _of_plan(plan, asked, {**settings, "n": n})
            optimizer, relation = plan.optimizer, plan.neighboring_relation
            n = plan.n if relation == "add-or-remove-one" else None
            settings = {"clipped": plan.clipped}
        goal = {name: given.pop(name) for name in ("epsilon", "delta")}
        if None in goal.values():
            raise ValueError("train needs epsilon and delta, or use_plan.")
        row, public = find(optimizer or "dpsgd"), {}
        _check_optimizer(row, plan)
        _check_persons(known, group_size, settings, plan)
        if plan is None:
            if n is None and known is not None and settings.get("clipped") != "user":
                n = known.n
            if known is not None and known.group_size > 1:
                settings["group_size"] = known.group_size
            public = _public(row, settings)
        relation = _relation(relation, row, n)
        check_extras()
        source = source_of(table, known)
        book = checked_book(budget, source.records)
        if target is None:
            raise ValueError("target is needed: no schema names it.")
        return cls(
            source=source,
            schema=_numbers(source) if known is None else known,
            target=target,
            described=known is not None,
            n=n,
            row=row,
            settings=settings,
            public=public,
            goal={**goal, "neighboring_relation": relation},
            # Predicted errors choose where no optimizer was named, and no setting was given.
            chosen=optimizer is None and not settings and relation != "replace-one",
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
    for name, argument in _ARGUMENTS.items():
        value = given.pop(argument)
        if name in settings:
            raise ValueError(f"settings must leave {name} to {argument}.")
        if value is not None:
            settings[name] = value
    return settings


def _plan(given: Plan | str | Path) -> Plan:
    """Return a plan, or that of a file, if it costs what it says."""
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
    return plan


def _of_plan(plan: Plan, asked: Mapping[str, Any], settled: Mapping[str, Any]) -> dict[str, float]:
    """Return the target of a plan; refuse others, and what the plan has settled."""
    for name, value in settled.items():
        if value is not None:
            told = _ARGUMENTS.get(name, name)
            raise ValueError(f"{told} does not go with use_plan, which says it.")
    for name in ("epsilon", "delta", "neighboring_relation", "optimizer"):
        own = getattr(plan, name)
        if asked[name] not in (None, own):
            raise ValueError(f"{name} must be the plan's, {own}, or left out, got {asked[name]}.")
    return {"epsilon": plan.epsilon, "delta": plan.delta}


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
            "optimizer correlated_dpsgd needs a plan, as of dpcal.calibrate.correlated_dpsgd: "
            "use_plan."
        )


def _check_persons(
    schema: Schema | None, group_size: int | None, settings: Mapping[str, Any], plan: Plan | None
) -> None:
    """Refuse persons without a column that says whose a row is, or another unit than a plan's."""
    if group_size is not None:
        validate.count(group_size=group_size)
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


def _public(row: Optimizer, settings: dict[str, Any]) -> dict[str, float]:
    """Take public constants of the loss out of settings; refuse what the builder does not take."""
    takes = dict(zip(PUBLIC, PUBLIC, strict=True)) if row.constants else {}
    if row.constants and "max_norm" not in row.options:
        takes["max_norm"] = "lipschitz"
    # Persons who are records have the price of records, however many rows they have.
    known = {*row.options, *takes, "accountant"} - {"l2"}
    known |= {"group_size"} if settings.get("clipped") == "user" else set()
    for name in settings:
        if name not in known:
            told = ", ".join(sorted(known - {"group_size", *_ARGUMENTS}))
            raise ValueError(
                f"{_ARGUMENTS.get(name, name)} is not for optimizer {row.name}, whose settings are "
                f"{told}."
            )
    found = settings.keys() & takes
    return {takes[name]: validate.positive(**{name: settings.pop(name)}) for name in found}


def _relation(given: str | None, row: Optimizer, n: int | None) -> str:
    """Return the relation that fits where n comes from: read from the table, or given in public."""
    public, told = "add-or-remove-one", "replace-special"
    if n is not None:
        validate.count(n=n)
        if given not in (None, public):
            raise ValueError(f"n is for neighboring_relation={public!r}, got {given}.")
        if public not in row.relations:
            raise ValueError(
                f"n {n} is for neighboring_relation={public!r}, which optimizer {row.name} does "
                "not have: omit n, here and in the schema."
            )
        return public
    if given is None:
        return told if told in row.relations else row.relations[0]
    if given not in row.relations:
        raise ValueError(
            f"neighboring_relation must be {' or '.join(row.relations)} for optimizer {row.name}, "
            f"got {given!r}."
        )
    if given == public:
        raise ValueError(
            f"neighboring_relation={public!r} needs n, a public number of records (of persons, "
            "with clipped='user') that the table's own may differ from: that one is read from the "
            "data, and a record more would change it. Without n the relation is replace-special."
        )
    return given


# -- the columns


def _described(
    schema: Any, group_size: int | None, target: str | None, weights: Mapping[str, float] | None
) -> tuple[Schema | None, str | None]:
    """Return the schema, with the weights of classes that are given, and the target's name."""
    known = None if schema is None else schema_of(schema, group_size)
    target = target or (None if known is None else known.target)
    return (known if weights is None else _weighted(known, target, weights)), target


def _weighted(schema: Schema | None, target: str | None, weights: Mapping[str, float]) -> Schema:
    """Return the schema with these weights of the target's classes."""
    if schema is None or target is None:
        raise ValueError(
            "class_weights must be None without a schema, which lists the classes of the target, "
            f"got {weights!r}."
        )
    column = schema.column(target)
    if {*weights} != {*column.categories}:
        listed = ", ".join(map(repr, column.categories))
        raise ValueError(f"class_weights must be for the classes {listed}, got {weights!r}.")
    own = replace(column, weights=tuple(weights[each] for each in column.categories))
    columns = tuple(own if each is column else each for each in schema.columns)
    return replace(schema, columns=columns)


def _numbers(source: Source) -> Schema:
    """Return a schema of numbers, for tables without a schema."""
    numbers = [name for name in source.columns if name in ROW_NUMBERS]
    if numbers:
        raise ValueError(
            "table must hold no numbers of its rows as a feature, got a column named "
            f"{numbers[0]!r}. {drafts_one(source)}"
        )
    return Schema(columns=tuple(Column(name=name, type="number") for name in source.columns))


def drafts_one(source: Source) -> str:
    """Return the sentence that says which command drafts the schema that a table lacks."""
    file = "FILE" if source.in_memory else shlex.quote(str(source.path))
    return (
        "Without a schema every feature must be a number: "
        f"'dpcal schema {file} -o schema.toml' drafts one, with types and categories."
    )
