"""``dpcal train``: fit a private linear model to a table of one's own, with a report.

:func:`train`, which is ``dpcal.train``, does the same for a table in memory:

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> age = rng.uniform(20, 80, 3000)
>>> table = {"age": age, "sick": np.where(age + rng.normal(0, 20, 3000) > 60, "yes", "no")}
>>> schema = {"columns": {"age": {"type": "number", "range": [0, 100]},
...                       "sick": {"type": "class", "categories": ["no", "yes"]}}}
>>> found = train(table, schema, target="sick", epsilon=1.0, delta=1e-6)
>>> found.document["privacy"]["unit"], found.model.labels
('one training record (one row of the table)', ('no', 'yes'))
"""

from __future__ import annotations

import re
import textwrap
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal.calibrate.batching import CORRELATED, PLANNED
from dpcal.commands import training
from dpcal.commands._options import (
    REPORT,
    TABLE,
    accountant,
    add_help_all,
    add_options,
    relation,
)
from dpcal.commands.checking.progress import Progress
from dpcal.commands.training.tuning import CORRELATED_NOISE, MINIMAX, NOISES, OPTIONS

if TYPE_CHECKING:
    from dpcal.calibrate import Plan
    from dpcal.commands.training.fitting import Fitted
    from dpcal.tables import Schema

EXAMPLES = (
    "patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6",
    "patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6 --budget "
    "clinic.budget -o second-report",
)
# What --help shows, 23 lines of at most 80 characters; --help-all shows every option.
SCREEN = """\
usage: dpcal train FILE --target COLUMN --epsilon E --delta D [options]

Fit a private linear model to a table of your own, and report what it claims.
  FILE                   text with a row of names, also compressed, or parquet
  --schema TOML          types, ranges, classes: 'dpcal schema FILE' drafts one
  --target COLUMN        what to predict
  --epsilon E --delta D  the target, or --use-plan FILE: run that plan
  --n N                  public number of records (default: read from the table)
  --bounds LOW:HIGH      public range of every feature, where there is no schema
  --group-size K         rows that a person has at most (default: the schema's)
  --class-weights V,W    public weights of the two classes (default: 1,1)
  --loss, --optimizer    logistic or squared; what 'dpcal optimizers' lists
  --features NAME        linear (default), or curves: splines, bins, random
  --epochs E, --plan     passes (default: by noise); print plan and cost alone
  --held-out HOW         scores: noisy (the default), unprotected or none
  --budget FILE          charge the run to this budget book
  -o FOLDER, --force     the report (default: dpcal-report); replace an old one
  --json, --help-all     print one JSON document; show every option

examples:
"""
RECORDS = f"""
[table]{TABLE}
--csv FILE:path                    another way to name the table
--cluster ADDRESS                  of a Dask scheduler, such as tcp://host:8786: FILE is a folder of
    parquet files, which its workers read under the same path
--target COLUMN                    what to predict
--schema TOML:path                 types, ranges, categories, ...: 'dpcal schema FILE' drafts one
    (default: numbers)
--classes A,B                      the two classes (default: the schema's, or read)
--class-weights V,W                public weights > 0 of the classes, in their order: what the
    loss of a record is multiplied by, before clipping (default: the schema's, or 1)
--silos COLUMN                     for distributed_psgd: a category of the schema that says whose
    record it is; each silo adds its own noise and has its own ledger (default: one silo)
--n N:whole                        public number of records, or of persons with --clipped user, for
    a claim under add-or-remove-one (default: the schema's, which counts rows, or read, for one
    under replace-special)
--bounds LOW:HIGH|FILE             public range of every feature, or a JSON file of column: [low,
    high] (default: features are used as they are)
--target-bounds LOW:HIGH           public range of the target of a squared loss, scaled likewise
--test-fraction F:number=0.2       chance in [0, 1) that a record is held out (default:
    %(default)s)
--held-out noisy|unprotected|none  scores of held-out records: paid by these, not protected, or
    none (default: noisy; none with --budget, which charges scores like a run)
"""
MODEL = """
[model and training]
--optimizer NAME        one of those that 'dpcal optimizers' lists (default: dpsgd or noisy_gd,
    with the steps of the least predicted error, as 'dpcal recommend' has it; dpsgd, if tuning is
    given)
--plan                  print the plan, its noise and its cost, and spend nothing
--model linear|kan|mlp  a linear model, or a network of splines (kan; --gamma is its margin)
    or of tanh units (mlp), by the plan of its paper (default: linear)
--width M:whole         hidden units >= 1 of a network (default: the plan's, or 16)
--loss NAME=logistic    logistic or squared (default: %(default)s)
--features NAME=linear  what a number becomes: itself (linear), bins or splines, so that the model
    adds up a curve a column, or random waves of all numbers; bins, splines and random need ranges
    (default: %(default)s)
--l2 L2:number=0.0      regulariser >= 0
--no-intercept          fit no intercept: with --l2 the loss is then strongly convex
[constants | public bounds; those that --bounds does not imply, or better ones]
--smoothness L:number   of one record's loss, > 0, without --l2
--gap F:number          on how much the loss can fall below its start, > 0
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the table, the target, the model and its training."""
    add_options(
        parser,
        RECORDS,
        """
[target: --epsilon and --delta, or a plan]
--epsilon E:number    > 0
--delta D:number      in (0, 1)
--use-plan FILE:path  run the plan that 'dpcal calibrate -o' or Plan.to_json wrote: its target,
    optimizer, noise and number of records, which is public
""",
        accountant("whose epsilon must meet the target, and is reported"),
        relation("replace-special, or add-or-remove-one with --n"),
        MODEL,
        OPTIONS,
        CORRELATED_NOISE,
        MINIMAX,
        """
--mechanism NAME    discrete noise, or gaussian noise in floating point that is rounded, whose
    traces the claim leaves out (default: discrete, but for correlated noise)
--seed SEED:whole   >= 0; to be kept secret (default: fresh from the system)
--budget FILE:path  charge the run to this budget book, and refuse it if it does not fit; a new
    book takes the run's epsilon and delta for its total
""",
        REPORT,
        loss=("logistic", "squared"),
        features=("linear", "bins", "splines", "random"),
        noise=NOISES,
        mechanism=("discrete", "gaussian"),
        sampler=tuple(dict.fromkeys((*PLANNED, *CORRELATED))),
    )
    add_help_all(parser, screen=SCREEN + _wrapped(EXAMPLES))


def run(options: Namespace) -> int:
    """Read, calibrate, train, and write the report."""
    return training.show_plan(options) if options.plan else training.fit_table(options)


def _wrapped(examples: tuple[str, ...]) -> str:
    """Return examples as a shell takes them, on lines of at most 80 characters."""
    lines = []
    for example in examples:
        line = textwrap.wrap(f"dpcal train {example}", 76, subsequent_indent="    ")
        lines.append(" \\\n  ".join(line))
    return "".join(f"  {line}\n" for line in lines)


# What a call has no use for: where a report goes is told to ``Fitted.save``.
_LEFT_OUT = ("help", "help_all", "table", "csv", "schema", "output", "force", "plan", "use_plan")


def train(
    table: Any,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    *,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    use_plan: Plan | str | Path | None = None,
    **options: Any,
) -> Fitted:
    """Fit a private linear model to a table, with everything that its report says.

    Parameters
    ----------
    table
        A polars or pandas data frame, a mapping from names to columns, a list of rows as mappings,
        or the path of a file.
    schema
        Types, ranges and classes of the columns: a :class:`dpcal.tables.Schema`, its JSON values,
        or the path of a TOML file. None takes every feature for a number.
    target
        The column that is predicted; the schema's when omitted.
    epsilon, delta
        The target of privacy: epsilon > 0, delta in (0, 1); those of the plan when omitted.
    use_plan
        In place of a target: the :class:`dpcal.Plan` that is run, or its file.
    **options
        Those of ``dpcal train --help-all`` with underscores, such as ``budget="clinic.budget"``,
        ``bounds=(0, 1)`` or ``class_weights=(1, 4)``, but for those of the report's folder.

    Returns
    -------
    Fitted
        The model, the run and the report's content; ``save(folder)`` writes what ``dpcal verify``
        checks.

    Raises
    ------
    ValueError
        If an argument is not what it must be, or does not go with the others. No record was read.
    MissingExtra
        If polars or matplotlib is not installed.
    BudgetExceeded
        If the run does not fit into the budget book.
    """
    parser = ArgumentParser(add_help=False)
    add_arguments(parser)
    actions = [each for each in parser._actions if each.dest.isidentifier()]
    known = {each.dest: each for each in actions if each.dest not in _LEFT_OUT}
    for name in options:
        if name not in known:
            raise TypeError(f"train has no option {name!r}: it has {', '.join(sorted(known))}.")
    given = {"target": target, "epsilon": epsilon, "delta": delta, **options}
    values = {name: _value(each, given.get(name)) for name, each in known.items()}
    if isinstance(schema, Mapping):
        schema = dpcal.tables.Schema.from_dict(schema)
    paths = {"csv": None, "output": Path(), "force": True, "plan": False}
    table = Path(table) if isinstance(table, str) else table
    plan = Path(use_plan) if isinstance(use_plan, str) else use_plan
    asked = Namespace(table=table, schema=schema, use_plan=plan, **paths, **values)
    try:
        request = training.Request.of(asked)
    except ValueError as error:
        # The sentence is the command's, whose options have other names.
        names = re.sub(r"--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), str(error))
        raise type(error)(names) from error
    return training.fitted(request, Progress("train"))


def _value(option: Action, given: Any) -> Any:
    """Return an option's value as the command has it: its default, or what a user would type."""
    if given is None:
        given = option.default
    elif isinstance(given, list | tuple):
        mark = ":" if option.dest.endswith("bounds") else ","
        given = mark.join(map(str, given))
    if given is None or isinstance(given, bool):
        return given
    if option.type is not None:
        try:
            given = option.type(given if isinstance(given, str) else str(given))  # type: ignore[operator]
        except Exception as error:
            raise ValueError(f"{option.dest} is not what it must be, got {given!r}.") from error
    if option.choices is not None and given not in option.choices:
        raise ValueError(f"{option.dest} must be one of {option.choices}, got {given!r}.")
    return given
