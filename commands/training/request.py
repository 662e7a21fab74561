"""What ``dpcal train`` is asked: frozen, and checked before a record is read.

Of the table, no more than the names of its columns is looked at here.
"""

from __future__ import annotations

import math
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal._files import document
from dpcal.calibrate import Constants, Plan
from dpcal.calibrate.batching import PLANNED
from dpcal.commands._options import fields_of, source_of
from dpcal.commands.training.booking import check_book
from dpcal.commands.training.constants import check_needs, public_constants
from dpcal.commands.training.given_plan import checked_tuning, of_plan
from dpcal.commands.training.minimax import Problem
from dpcal.commands.training.networks import Network, NetworkTask
from dpcal.commands.training.silos import SiloTask, check_silos
from dpcal.commands.training.task import Task
from dpcal.commands.training.tuning import NOISES, flag, given_tuning
from dpcal.errors import MissingExtra, extra, reason_of
from dpcal.optim.boundary.budget.file import bytes_of
from dpcal.optim.registry import Optimizer, find
from dpcal.tables import ROW_NUMBERS, Coding, Column, Schema, Source

__all__ = ["Learning", "Request", "drafts_one"]

EXTRAS = ("polars", "matplotlib")
# Fields that are options, as they were given.
AS_GIVEN = (
    *("loss", "l2", "test_fraction", "seed", "epsilon", "delta"),
    *("silos", "held_out", "budget", "output", "force", "mechanism", "cluster", "accountant"),
)
NOISE = ("noise", "decay", "bands", "separation", "proved")


@dataclass(frozen=True, kw_only=True, eq=False)
class Learning:
    """A linear model of a table, as options describe it.

    Parameters
    ----------
    source, schema, target
        The table, what is known of its columns in public, and the column that is predicted.
    described
        Whether a schema was given; otherwise its columns were taken from the table.
    loss, l2, intercept
        ``"logistic"`` or ``"squared"``, its regulariser >= 0, and whether an intercept is fitted.
    test_fraction
        Chance in [0, 1) that a record is held out.
    n
        Public number of records, or of persons where these are the records; None to read it from
        the table.
    seed
        An integer >= 0, or None for fresh entropy.
    cluster, files
        Address of the Dask scheduler whose workers read the table, if any, and the parquet files
        of the folder that it is.
    bounds
        Public constants of the loss that were given, by the field of
        :class:`dpcal.calibrate.Constants` that they take the place of.
    """

    source: Source
    schema: Schema
    target: str
    described: bool = True
    loss: str = "logistic"
    l2: float = 0.0
    intercept: bool = True
    test_fraction: float = 0.0
    n: int | None = None
    seed: int | None = None
    cluster: str | None = None
    files: tuple[Path, ...] = ()
    bounds: Mapping[str, Any] = field(default_factory=dict)
    coding: Coding = field(init=False)

    def __post_init__(self) -> None:
        _validate.non_negative(l2=self.l2)
        if not 0 <= self.test_fraction < 1:
            got = self.test_fraction
            raise ValueError(f"test_fraction must be a number in [0, 1), got {got}.")
        object.__setattr__(self, "coding", Coding(self.schema.features(self.target)))

    @property
    def records(self) -> Any:
        """What a budget book knows the table by."""
        return _known_by(self.source, self.files)

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.files[0].parent.name if self.files else self.source.path.name

    def task(self, **records: Any) -> Task:
        """Return the task of coded and split records."""
        return Task(loss=self.loss, l2=self.l2, intercept=self.intercept, **records)

    def constants(self, row: Optimizer) -> Constants:
        """Return the constants of a theorem that the public ranges imply, or that were given."""
        return public_constants(self, row)

    @property
    def by_person(self) -> bool:
        """Whether persons are drawn, and the sum of the rows of a person is clipped."""
        return False


@dataclass(frozen=True, kw_only=True, eq=False)
class Request(Learning):
    """A private training on a table, as the options of ``dpcal train`` describe it.

    Parameters
    ----------
    row
        The optimizer.
    epsilon, delta, relation
        The target of privacy, and its neighboring relation.
    tuning
        Keywords of the plan builder that were given.
    noise
        What correlates the noise of the steps: the options of ``--noise``; empty for none.
    problem
        The minimax problem, if any.
    chosen
        Whether predicted errors choose between ``"dpsgd"`` and ``"noisy_gd"``, and their steps:
        where no optimizer was named, and no tuning was given.
    silos
        The column whose categories are silos, if any.
    mechanism
        How noise is drawn: ``"discrete"`` or ``"gaussian"``; None for what the plan has.
    held_out
        How held-out records are scored; None for the default.
    accountant
        Whose epsilon meets the target.
    plan
        The plan that is run in place of one that is made for the target, if any.
    network
        The network that is trained in place of a linear model, if any.
    budget, output, force
        The budget book, if any; the report's folder; whether an earlier report is replaced.
    """

    row: Optimizer
    epsilon: float
    delta: float
    relation: str
    tuning: Mapping[str, Any]
    noise: Mapping[str, Any]
    problem: Problem | None
    chosen: bool
    silos: str | None
    mechanism: str | None
    held_out: str | None
    accountant: str
    plan: Plan | None
    network: Network | None
    budget: Path | None
    output: Path
    force: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        # At 0 nothing about the records could be learned, and no noise is enough to learn it with.
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(delta=self.delta)
        if self.problem is not None:
            self.problem.check(self.loss, self.schema.column(self.target), self.coding.names)
        if self.row.constants and self.plan is None:
            check_needs(self.row, self.constants(self.row), self.tuning)
        if self.cluster is not None:
            self._check_cluster()

    def _check_cluster(self) -> None:
        """Refuse what workers that each hold some of the files cannot answer."""
        target = self.schema.column(self.target)
        refused = {
            "--problem": self.problem is not None,
            "--silos": self.silos is not None,
            "--held-out unprotected": self.held_out == "unprotected",
            "a schema with a column of type 'person'": self.schema.person is not None,
            "classes that are read from the table (--classes A,B declares them)": (
                self.loss == "logistic" and not target.categories
            ),
        }
        for name, given in refused.items():
            if given:
                raise ValueError(f"--cluster does not go with {name}.")

    @classmethod
    def of(cls, options: Namespace) -> Request:
        """Return the request that the options of the command make.

        Raises
        ------
        MissingExtra
            If a package that training needs is not installed.
        ValueError
            If an option is not what it must be, or does not go with the others.
        """
        plan = None
        if options.use_plan is not None:
            options, plan = of_plan(options)
        elif None in (options.epsilon, options.delta):
            raise ValueError("train needs --epsilon and --delta, or --use-plan.")
        table = _one_table(options.table, options.csv)
        files = () if options.cluster is None else parquet_files(table)
        schema, tuning = _given_schema(options)
        n = _public_n(options, schema) if plan is None else options.n
        network = Network.asked(options, tuning)
        if plan is None:
            row = _optimizer(options, {} if network else tuning)
        else:
            row, tuning = find(plan.optimizer), checked_tuning(plan, tuning)
        relation = _relation(options.neighboring_relation, row, n)
        _check_sampler(row, tuning, relation)
        problem = Problem.asked(options, row)
        if options.silos is not None:
            check_silos(options.silos, row, schema, book=options.budget)
        missing = [name for name in EXTRAS if find_spec(name) is None]
        if missing:
            raise MissingExtra(
                f"train needs {' and '.join(missing)}: {extra('train')}. No record was read."
            )
        missing_values = () if schema is None else schema.missing_values
        first = files[0] if files else table
        source = source_of(options, table=first, missing_values=missing_values)
        if options.budget is not None:
            check_book(options.budget, _known_by(source, files))
        target = _target(options, schema)
        described = _from_flags(options, source, target) if schema is None else schema
        return cls(
            source=source,
            files=files,
            schema=_with_features(
                options.features, _with_classes(options, described, target), target
            ),
            target=target,
            described=schema is not None,
            intercept=options.intercept and (problem is None or problem.has_intercept),
            n=n,
            bounds=_bounds(options, row),
            row=row,
            relation=relation,
            tuning=tuning,
            noise={} if plan is not None else correlated_noise(options, row.name),
            plan=plan,
            network=network,
            problem=problem,
            chosen=options.optimizer is None
            and options.accountant == "auto"
            and network is None
            and not (tuning or options.noise or options.silos)
            and relation in ("add-or-remove-one", "replace-special"),
            **fields_of(options, *AS_GIVEN),
        )

    def task(self, **records: Any) -> Task:
        """Return the task of coded and split records: of a minimax problem, or over silos, too."""
        shared = {"loss": self.loss, "l2": self.l2, "intercept": self.intercept, **records}
        if self.network is not None:
            return NetworkTask(network=self.network, **shared)
        if self.problem is not None:
            return self.problem.task(self.coding.names, shared)
        if self.silos is not None:
            categories = self.schema.column(self.silos).categories
            return SiloTask.of_column(self.silos, categories, self.coding.names, shared)
        return Task(**shared)

    def constants(self, row: Optimizer) -> Constants:
        """Return the constants of a theorem that the public ranges imply, or that were given."""
        if self.problem is None:
            return super().constants(row)
        row_norm = math.sqrt(self.coding.square_bound + self.intercept)
        implied = self.problem.constants(row_norm, self.coding.names)
        return replace(implied, **self.bounds)

    @property
    def by_person(self) -> bool:
        """Whether persons are drawn, and the sum of the rows of a person is clipped."""
        return self.tuning.get("clipped") == "user"

    @property
    def trained_on(self) -> int | None:
        """Average number of training records out of the public number of records."""
        if self.plan is not None:
            return self.plan.n
        return None if self.n is None else max(1, round((1 - self.test_fraction) * self.n))


def _known_by(source: Source, files: Sequence[Path]) -> Any:
    """Return what a budget book knows a table by: its records, or the bytes of all files."""
    return np.frombuffer(b"".join(map(bytes_of, files)), np.uint8) if files else source.records


def parquet_files(folder: Any) -> tuple[Path, ...]:
    """Return the parquet files of a folder, by name; refuse anything else."""
    found = sorted(Path(folder).glob("*.parquet")) if isinstance(folder, str | Path) else []
    if not found:
        raise ValueError(
            f"--cluster needs a folder with files that end in .parquet, got {str(folder)!r}."
        )
    return tuple(path.absolute() for path in found)


def _one_table(path: Any, csv: Path | None) -> Any:
    """Return the one table that was named, as an argument or by ``--csv``."""
    if (path is None) == (csv is None):
        got = "none" if path is None else f"{str(path)!r} and --csv {str(csv)!r}"
        raise ValueError(f"One table must be given, as FILE or as --csv FILE, got {got}.")
    return csv if path is None else path


def _given_schema(options: Namespace) -> tuple[Schema | None, dict[str, Any]]:
    """Return the schema that was given, and the tuning, with one group size for both."""
    tuning, size = given_tuning(options), options.group_size
    given = options.schema
    schema = given if given is None or isinstance(given, Schema) else Schema.read(given)
    if schema is None:
        if size not in (None, 1):
            raise ValueError("--group-size needs a --schema with a column of type 'person'.")
    elif size is not None:
        schema = replace(schema, group_size=size)
    elif schema.group_size > 1:
        tuning["group_size"] = schema.group_size
    if tuning.get("clipped") == "user" and (schema is None or schema.person is None):
        raise ValueError("--clipped user needs a --schema with a column of type 'person'.")
    return schema, tuning


def _public_n(options: Namespace, schema: Schema | None) -> int | None:
    """Return the public number of records, if any: that of a schema counts rows, not persons."""
    given: int | None = options.n
    if given is not None or schema is None or options.clipped == "user":
        return given
    return schema.n


def _optimizer(options: Namespace, tuning: Mapping[str, Any]) -> Optimizer:
    """Return the named optimizer; refuse tuning that it does not take."""
    correlated = options.noise is not None and options.optimizer in (None, "dpsgd")
    row = find("correlated_dpsgd" if correlated else options.optimizer or "dpsgd")
    constants = ("max_norm", "smoothness", "gap") if row.constants else ()
    given = [name for name in ("smoothness", "gap") if getattr(options, name) is not None]
    # Persons who are records have the price of records, however many rows they have.
    priced = ("group_size",) if tuning.get("clipped") == "user" else ()
    known = (*row.options, *constants, *priced)
    refused = [name for name in (*tuning, *given) if name not in known]
    if refused:
        raise ValueError(f"{flag(refused[0])} is not for --optimizer {row.name}.")
    return row


def correlated_noise(options: Namespace, optimizer: str) -> dict[str, Any]:
    """Return the options of correlated noise; refuse them where there is none."""
    given = fields_of(options, *NOISE)
    kind = given["noise"]
    if kind is None and optimizer == "correlated_dpsgd":
        raise ValueError(f"--optimizer {optimizer} needs --noise: one of {', '.join(NOISES)}.")
    if kind is not None and optimizer != "correlated_dpsgd":
        raise ValueError(f"--noise is not for --optimizer {optimizer}.")
    if (given["decay"] is not None) != (kind == "lambda-cgd"):
        lacks = given["decay"] is None
        raise ValueError(
            "--noise lambda-cgd needs --decay." if lacks else "--decay is for --noise lambda-cgd."
        )
    if given["bands"] is not None and kind not in ("banded", "bisr", "blt"):
        raise ValueError("--bands is for --noise banded, bisr or blt.")
    for name in ("separation", "proved"):
        if given[name] not in (None, False) and kind is None:
            raise ValueError(f"--{name} goes with --noise.")
    if kind is not None and options.epochs is not None and options.steps is not None:
        raise ValueError("--epochs and --steps exclude each other.")
    return {} if kind is None else given


def _relation(given: str | None, row: Optimizer, n: int | None) -> str:
    """Return the relation that fits where n comes from: read from the table, or given in public."""
    if n is not None:
        _validate.count(n=n)
    if n is not None and "add-or-remove-one" not in row.relations:
        raise ValueError(
            f"--n {n} is for --neighboring-relation add-or-remove-one, which --optimizer "
            f"{row.name} does not have: omit --n, and n in the schema."
        )
    if given is None:
        wanted = "replace-special" if n is None else "add-or-remove-one"
        return wanted if wanted in row.relations else row.relations[0]
    if given == "add-or-remove-one" and n is None and given in row.relations:
        raise ValueError(
            "--neighboring-relation add-or-remove-one needs --n, a public number of records (of "
            "persons, with --clipped user) that the table's own may differ from: that one is read "
            "from the data, and a record more would change it. Without --n the relation is "
            "replace-special."
        )
    if given != "add-or-remove-one" and n is not None:
        raise ValueError(f"--n is for --neighboring-relation add-or-remove-one, got {given}.")
    if given not in row.relations:
        raise ValueError(
            f"--neighboring-relation must be {' or '.join(row.relations)} for --optimizer "
            f"{row.name}, got {given!r}."
        )
    return given


def _check_sampler(row: Optimizer, tuning: Mapping[str, Any], relation: str) -> None:
    """Refuse a sampler without a price for these steps and this relation."""
    name = tuning.get("sampler", "poisson")
    public = relation == "add-or-remove-one"
    if row.name == "correlated_dpsgd" and public and name not in ("poisson", "full"):
        raise ValueError(f"--n goes with --sampler poisson or full beside --noise, got {name}.")
    if row.name != "dpsgd" or name == "poisson":
        return
    if name not in PLANNED:
        raise ValueError(f"--sampler {name} goes with --noise.")
    if relation not in PLANNED[name]:
        raise ValueError(
            f"--sampler {name} is for --neighboring-relation {' or '.join(PLANNED[name])}, got "
            f"{relation}."
        )
    if "group_size" in tuning and tuning.get("clipped") != "user":
        raise ValueError(
            f"--sampler {name} is for single records, got persons with several: --clipped user "
            "takes persons for records."
        )


def _bounds(options: Namespace, row: Optimizer) -> dict[str, float]:
    """Return the public constants that were given."""
    found = {
        name: _validate.positive(**{name: getattr(options, name)})
        for name in ("smoothness", "gap")
        if getattr(options, name) is not None
    }
    if options.max_norm is not None and "max_norm" not in row.options:
        found["lipschitz"] = _validate.positive(max_norm=options.max_norm)
    return found


def _target(options: Namespace, schema: Schema | None) -> str:
    """Return the column that is predicted."""
    for name in ("bounds", "target_bounds"):
        if schema is not None and getattr(options, name) is not None:
            raise ValueError(f"{flag(name)} is for tables without --schema.")
    target = options.target or (None if schema is None else schema.target)
    if target is None:
        why = "no --schema names it" if schema is None else "the schema names no target"
        raise ValueError(f"--target is needed: {why}.")
    return str(target)


def _from_flags(options: Namespace, source: Source, target: str) -> Schema:
    """Return a schema of numbers with the ranges that were given, for tables without a schema."""
    if options.loss == "logistic" and options.target_bounds is not None:
        raise ValueError("--target-bounds is for --loss squared.")
    features = [name for name in source.columns if name != target]
    numbers = [name for name in features if name in ROW_NUMBERS]
    if numbers:
        raise ValueError(
            "table must hold no numbers of its rows as a feature, got a column named "
            f"{numbers[0]!r}. {drafts_one(source)}"
        )
    ranges: dict[str, tuple[float, float]] = {}
    if options.bounds is not None and features:
        ranges = _ranges(options.bounds, features)
    if options.target_bounds is not None:
        ranges |= _ranges(options.target_bounds, [target], option="target_bounds")
    columns = (Column(name=name, type="number", range=ranges.get(name)) for name in source.columns)
    return Schema(columns=tuple(columns))


def drafts_one(source: Source) -> str:
    """Return the sentence that says which command drafts the schema that a table lacks."""
    file = "FILE" if source.in_memory else shlex.quote(str(source.path))
    return (
        "Without a schema every feature must be a number: "
        f"'dpcal schema {file} -o schema.toml' drafts one, with types and categories, and "
        "--schema schema.toml takes it."
    )


def _with_classes(options: Namespace, schema: Schema, target: str) -> Schema:
    """Return the schema with the classes of ``--classes`` and their weights, if any were given."""
    for name in ("classes", "class_weights"):
        if getattr(options, name) is not None and options.loss != "logistic":
            raise ValueError(f"{flag(name)} is for --loss logistic.")
    column = schema.column(target)
    if options.classes is not None:
        column = _class(column, tuple(text.strip() for text in options.classes.split(",")))
    if options.class_weights is not None:
        if not column.categories:
            raise ValueError(
                "--class-weights needs the order of the classes: --classes A,B, or a schema with "
                "the target's classes."
            )
        weights = tuple(_weight(text) for text in options.class_weights.split(","))
        known = _class(column, column.categories)
        column = replace(known, weights=weights, copied=tuple({*column.copied} & {"categories"}))
    return schema.with_column(column)


def _with_features(features: str, schema: Schema, target: str) -> Schema:
    """Return the schema with its numbers coded as ``--features`` says."""
    if features == "linear":
        return schema
    for column in schema.features(target):
        if column.type == "number" and column.range is None:
            raise ValueError(
                f"--features {features} needs a public range of every number, column "
                f"{column.name!r} has none: give it in the schema, or with --bounds."
            )
        if column.type == "number":
            schema = schema.with_column(replace(column, coding=features))
    return schema


def _class(column: Column, listed: tuple[str, ...]) -> Column:
    """Return the target's column as a class, of these classes."""
    missing = "refuse" if column.missing == "impute" else column.missing
    same = column.type == "class" and column.categories == listed
    weights = column.weights if same else ()
    return Column(
        name=column.name, type="class", categories=listed, missing=missing, weights=weights
    )


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"--class-weights must be numbers with commas between them, got {text!r}."
        ) from None


def _ranges(
    text: str, names: list[str], *, option: str = "bounds"
) -> dict[str, tuple[float, float]]:
    """Read ``LOW:HIGH``, for all columns, or a JSON file of ``{"column": [low, high], ...}``.

    Raises
    ------
    ValueError
        If neither can be read, a column is missing, or a range is not low < high.
    """
    low, colon, high = text.partition(":")
    try:
        pairs = {name: (float(low), float(high)) for name in names} if colon else {}
    except ValueError:
        pairs = {}
    if not pairs:
        try:
            ends = document(Path(text), "it must be a JSON file")
            pairs = {name: (float(ends[name][0]), float(ends[name][1])) for name in names}
        except (OSError, ValueError, TypeError, IndexError) as error:
            raise ValueError(
                f"{option} must be LOW:HIGH or a JSON file of column: [low, high], "
                f"got {text!r}: {reason_of(error)}."
            ) from error
        except KeyError as error:
            raise ValueError(
                f"{option} must name every feature, {text!r} lacks {error}."
            ) from error
    for name, (least, most) in pairs.items():
        if not (math.isfinite(least) and math.isfinite(most) and least < most):
            raise ValueError(
                f"{option} must have finite low < high, got {least:g}:{most:g} for column {name!r}."
            )
    return pairs
