"""``dpcal release``: :func:`dpcal.release` for a table in a file, with a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dpcal
from dpcal.commands._signature import Answer, extends, taken
from dpcal.tables.reading import Source


@extends(Source, dpcal.release, without=("missing_values",))
def release(
    table: Path,
    statistics: Sequence[str],
    *,
    schema: Path,
    output: Path = Path("dpcal-report"),
    force: bool = False,
    **given: Any,
) -> Answer:
    """Release private counts, sums, means, variances, histograms and quantiles of a table.

    Parameters
    ----------
    table
        Text file with a row of column names, also in gzip, or a parquet file.
    statistics
        Statistics, one or more, in quotes: count or 'count age > 65', 'sum stay', 'mean stay',
        'variance stay', 'histogram department, sex' or 'histogram age:20', 'quantile bp 0.1 0.5
        0.9'. Each can end in 'where CONDITION' and 'by AXES'.
    schema
        File with types, ranges and categories. 'dpcal schema FILE' drafts one.
    output
        Folder for the report.
    force
        Replace an earlier report in that folder.

    Examples
    --------
    dpcal release patients.csv count 'mean age' 'quantile risk 0.1 0.5 0.9' --where 'age > 65'
        --schema schema.toml --epsilon 1 --delta 1e-6 -o statistics
    dpcal release patients.csv 'histogram age:5' 'mean risk' --by sick --schema schema.toml
        --epsilon 0.5 --delta 1e-6 -o by-class
    """
    dpcal.report.check_replaceable(output, force=force)
    known = dpcal.tables.schema_of(schema)
    source = Source(table, missing_values=known.missing_values, **taken(Source, given))
    found = dpcal.release(source, known, statistics, **given)
    found.save(output, force=force)
    return Answer(dpcal.report.read(output), f"{found}\nreport written to {output}/")
