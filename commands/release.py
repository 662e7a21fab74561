"""``dpcal release``: private counts, sums, means, variances, histograms and quantiles of a table.

:func:`release`, which is ``dpcal.release``, does the same for a table in memory:

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> table = {"age": rng.uniform(20, 80, 5000), "clinic": rng.choice(["north", "south"], 5000)}
>>> schema = {"columns": {"age": {"type": "number", "range": [0, 100]},
...                       "clinic": {"type": "category", "categories": ["north", "south"]}}}
>>> asked = ["count age > 65", "mean age by clinic"]
>>> found = release(table, schema, asked, epsilon=1.0, delta=1e-6)
>>> [(row["statistic"], row.get("clinic"), round(row["value"] / 10)) for row in found.rows[1:]]
[('mean of age', 'north', 5), ('mean of age', 'south', 5)]
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal.commands import releasing
from dpcal.commands._options import REPORT, TABLE, TARGET, add_options, fields_of, source_of
from dpcal.commands.checking.output import present
from dpcal.commands.checking.progress import Progress, stage

if TYPE_CHECKING:
    from dpcal.commands.releasing import Release
    from dpcal.tables import Schema, Source

EXAMPLES = (
    "patients.csv --schema schema.toml --epsilon 1 --delta 1e-6 --count --where age>65 --mean age "
    "--quantile risk 0.1 0.5 0.9 -o statistics",
    "patients.csv --schema schema.toml --epsilon 0.5 --delta 1e-6 --histogram age:5 --mean "
    "risk --by sick -o by-class",
)
OPTIONS = """
--schema TOML:path!  types, ranges, categories, ...: 'dpcal schema FILE' drafts one
--by AXES            groups of all statistics: columns with commas between them, NAME or NAME:PARTS
    (a number with a range, in so many equal parts)
--where CONDITION    rows that count: comparisons with and, or, not, in
--find-groups        find the groups of a --by column that the schema does not describe: those that
    enough rows have
--n N:whole           public number of rows, for a claim under add-or-remove-one (default: the
    schema's, or read, for one under replace-special)
--group-size K:whole  rows that a person has at most (default: the schema's)
--budget FILE:path    charge the release to this budget book, and refuse it if it does not fit; a
    new book takes the release's epsilon and delta for its total
"""
STATISTICS = {
    "count": ("?", "CONDITION", "number of rows, that meet a condition"),
    "sum": ("+", "NAME", "sum of a column"),
    "mean": ("+", "NAME", "mean of a column"),
    "variance": ("+", "NAME", "variance of a column"),
    "histogram": ("+", "AXES", "counts by columns, NAME or NAME:PARTS, with commas between them"),
    "quantile": ("+", "NAME SHARE", "quantiles of a column at shares in (0, 1)"),
}


class _Statistic(Action):
    """Keep a statistic in the words that :func:`release` takes, in the order of the command."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None
    ) -> None:
        words = [values] if isinstance(values, str) else values or []
        asked = getattr(namespace, "statistics", None) or []
        namespace.statistics = [*asked, " ".join([str(option).lstrip("-"), *words])]


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the table, the statistics and the target."""
    parser.set_defaults(statistics=[])
    add_options(parser, f"[table]{TABLE}{OPTIONS}")
    group = parser.add_argument_group(
        "statistics", "one or more, in any order; each also takes 'where CONDITION' and 'by AXES'"
    )
    for name, (nargs, metavar, meaning) in STATISTICS.items():
        words = tuple(metavar.split()) if nargs == "+" and " " in metavar else metavar
        group.add_argument(
            f"--{name}",
            action=_Statistic,
            nargs=nargs,
            metavar=words,
            dest="statistics",
            help=meaning,
        )
    add_options(parser, TARGET, REPORT)


def run(options: Namespace) -> int:
    """Read, calibrate, release, and write the report."""
    dpcal.report.check_replaceable(options.output, force=options.force)
    if options.table is None:
        raise ValueError("One table must be given, as FILE, got none.")
    schema = dpcal.tables.Schema.read(options.schema)
    source = source_of(options, missing_values=schema.missing_values)
    given = fields_of(options, *_OPTIONS, "epsilon", "delta")
    found = _released(source, schema, options.statistics, stage(options, ""), **given)
    found.save(options.output, force=options.force)
    text = f"{found}\nreport written to {options.output}/"
    present(options, dpcal.report.read(options.output), text)
    return 0


def release(
    table: Any,
    schema: Schema | Mapping[str, Any] | str | Path,
    statistics: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    **options: Any,
) -> Release:
    """Release statistics of a table, with noise that is solved for all of them together.

    Parameters
    ----------
    table
        A polars or pandas data frame, a mapping from names to columns, a list of rows as mappings,
        or the path of a file.
    schema
        Types, ranges and categories of the columns: a :class:`dpcal.tables.Schema`, its JSON
        values, or the path of a TOML file. Numbers are clamped to their ranges.
    statistics
        ``"count"`` or ``"count age > 65"``, ``"sum stay"``, ``"mean stay"``, ``"variance stay"``,
        ``"histogram department, sex"`` or ``"histogram age:20"``, ``"quantile bp 0.1 0.5 0.9"``;
        each may end in ``where CONDITION`` and ``by AXES``.
    epsilon, delta
        The target of privacy of all of them together: epsilon > 0, delta in (0, 1).
    **options
        ``by`` and ``where``, groups and a condition of all statistics, as texts; ``n``, a public
        number of rows, for a claim under add-or-remove-one (the schema's when omitted; without one
        the number is read, and the claim is under replace-special: about what a row holds);
        ``group_size``, how many rows a person has at most (the schema's when omitted);
        ``find_groups=True``, which finds the groups of one column without declared categories,
        those that enough rows have; ``budget``, the path of a budget book, which is charged before
        anything is released.

    Returns
    -------
    Release
        Values with standard errors and intervals of confidence; ``frame()`` is a data frame, and
        ``save(folder)`` writes what ``dpcal verify`` checks.

    Raises
    ------
    ValueError
        If an argument is not what it must be, or a cell is not what the schema says.
    BudgetExceeded
        If the release does not fit into the budget book.
    """
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"release has no option {name!r}: it has {', '.join(_OPTIONS)}.")
    if isinstance(schema, Mapping):
        schema = dpcal.tables.Schema.from_dict(schema)
    elif isinstance(schema, str | Path):
        schema = dpcal.tables.Schema.read(Path(schema))
    elif not isinstance(schema, dpcal.tables.Schema):
        raise TypeError(f"schema must be a Schema, a mapping or a path, got {schema!r}.")
    table = Path(table) if isinstance(table, str) else table
    source = dpcal.tables.Source(table, missing_values=schema.missing_values)
    given = {**options, "epsilon": epsilon, "delta": delta}
    return _released(source, schema, statistics, Progress("release"), **given)


# Those of the command that are the function's, too.
_OPTIONS = ("by", "where", "n", "group_size", "find_groups", "budget")


def _released(
    source: Source, schema: Schema, statistics: Sequence[str], progress: Progress, **given: Any
) -> Release:
    """Check what is asked, and answer it."""
    request = releasing.Request.of(source, schema, statistics, **given)
    return releasing.answered(request, progress)
