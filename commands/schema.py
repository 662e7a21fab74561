"""``dpcal schema``: draft the public description of a table's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpcal
from dpcal.commands._shared import check_new
from dpcal.commands._signature import Answer, extends
from dpcal.tables.reading import Source

HEAD = """\
# What is public about {name}: a draft, which was made from the records and is not private.
# No noise covers this file: keep it as you keep the records until it is filled in.
#
# What a column lists under 'copied' was read off the records, and a model tells it without noise.
# Replace each such value by what is known without a look at the records (a rule, a code book, the
# range of a device), and take it off the list; what stays on the list is named in every statement.
# Comments are guesses from names and cells: check them.
#
# type = "number": range = [low, high], clamped to; coding = "splines", "bins" or "random" for a
# curve. "category": one of categories; coding = "one-hot" or "ordinal". "class": what is predicted,
# one of classes; weights = [1, 5] makes a record of the second class count five times. "person":
# whose row it is. "drop": not read.
# missing = "refuse", "drop-row", or impute = a value. unknown = "refuse", "drop-row" or "ignore",
# for a text that is no category.
# n = 10000 at the top says that the number of records is public; group_size = 3 how many rows a
# person has at most; target = "NAME" what is predicted. Drop what is not known of a new row.

"""


@extends(Source, without=("missing_values",))
def schema(
    table: Path | None = None,
    *,
    target: str | None = None,
    output: Path | None = None,
    force: bool = False,
    example: bool = False,
    **how: Any,
) -> Answer:
    """Draft a schema of a table: types, ranges, categories, missing values.

    Parameters
    ----------
    table
        Text file with a row of column names, also in gzip, or a parquet file.
    target
        Column to predict.
    output
        File for the schema, in TOML (default: the screen).
    force
        Replace an existing file.
    example
        Write patients.csv, a table of 2,000 made-up patients, and stop.

    Examples
    --------
    dpcal schema patients.csv -o schema.toml
    dpcal schema patients.csv --target sick
    """
    if example:
        path = Path("patients.csv")
        check_new(path, force=force)
        dpcal.report.replace_file(path, dpcal.tables.example().encode())
        return Answer({"output": str(path)}, f"2000 patients, made up, written to {path}")
    if table is None:
        raise ValueError("schema needs a table, as in: dpcal schema patients.csv; or --example.")
    if output is not None:
        check_new(output, force=force)
    source = Source(table, **how)
    found, comments = dpcal.tables.draft(source, target=target)
    text = HEAD.format(name=source.path.name) + found.to_toml(comments)
    assert dpcal.tables.Schema.from_toml(text) == found
    document = {"schema": found.to_dict(), "copied": found.copied(), "comments": comments}
    if output is None:
        return Answer(document, text.rstrip("\n"))
    dpcal.report.replace_file(output, text.encode())
    lines = [f"schema of {len(found.columns)} columns written to {output}"]
    if found.copied():
        lines.append(
            "copied from the records without noise, to be replaced by what is known without them: "
            + ", ".join(found.copied())
        )
    dropped = [column.name for column in found.columns if column.type == "drop"]
    lines += [f"dropped: {name!r}, {comments[name]}" for name in dropped]
    if target is None:
        lines.append("which column is predicted? Name it: --target COLUMN")
    return Answer(document, "\n".join(lines))
