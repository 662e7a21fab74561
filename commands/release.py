"""``dpcal release``: :func:`dpcal.release` for a table in a file, with a report."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import dpcal
from dpcal._internal import lazy
from dpcal.commands._shared import TableFile
from dpcal.commands._signature import Answer, extends

_releasing = lazy.Module("dpcal.tables.releasing.answering")

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
        namespace.statistics = (
            *namespace.statistics,
            " ".join([str(option).lstrip("-"), *words]),
        )


class Statistics:
    """Statistics, each told by an option of its own."""

    @staticmethod
    def declare(parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.set_defaults(statistics=())
        group = parser.add_argument_group(
            "statistics", "one or more; each also takes 'where CONDITION' and 'by AXES'"
        )
        for name, (nargs, metavar, meaning) in STATISTICS.items():
            words = tuple(metavar.split()) if nargs == "+" and " " in metavar else metavar
            how: dict[str, Any] = {"nargs": nargs, "metavar": words, "help": meaning}
            group.add_argument(f"--{name}", action=_Statistic, dest="statistics", default=(), **how)


@extends(dpcal.release)
def release(
    table: TableFile,
    *,
    schema: Path,
    statistics: Statistics,
    output: Path = Path("dpcal-report"),
    force: bool = False,
    **given: Any,
) -> Answer:
    """Release private counts, sums, means, variances, histograms and quantiles of a table.

    Parameters
    ----------
    schema
        Types, ranges, categories: 'dpcal schema FILE' drafts one.
    output
        The folder of the report.
    force
        Replace an earlier report in that folder.

    Examples
    --------
    dpcal release patients.csv --schema schema.toml --epsilon 1 --delta 1e-6 --count --where age>65
        --mean age --quantile risk 0.1 0.5 0.9 -o statistics
    dpcal release patients.csv --schema schema.toml --epsilon 0.5 --delta 1e-6 --histogram age:5
        --mean risk --by sick -o by-class
    """
    dpcal.report.check_replaceable(output, force=force)
    known, opened = _releasing.schema_of(schema), table
    source = opened(missing_values=known.missing_values)  # type: ignore[operator]
    found = dpcal.release(source, known, statistics, **given)  # type: ignore[arg-type]
    found.save(output, force=force)
    return Answer(dpcal.report.read(output), f"{found}\nreport written to {output}/")
