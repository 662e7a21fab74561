"""``dpcal schema``: draft what a table's columns are, to be made public by whoever knows them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import dpcal
from dpcal.commands._options import TABLE, add_options, file_to_write, source_of
from dpcal.commands.checking.output import check_new, present

EXAMPLES = ("patients.csv -o schema.toml", "patients.csv --target sick")

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


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the table and the file of its schema."""
    wanted = "--target COLUMN  what is to be predicted"
    add_options(parser, TABLE, wanted, file_to_write("TOML"))


def run(options: Namespace) -> int:
    """Write the draft, and list what it copied from the records."""
    if options.table is None:
        raise ValueError("schema needs a table: dpcal schema FILE.")
    if options.output is not None:
        check_new(options.output, force=options.force)
    schema, comments = dpcal.tables.draft(source_of(options), target=options.target)
    text = HEAD.format(name=options.table.name) + schema.to_toml(comments)
    assert dpcal.tables.Schema.from_toml(text) == schema
    document = {"schema": schema.to_dict(), "copied": schema.copied(), "comments": comments}
    if options.output is None:
        present(options, document, text.rstrip("\n"))
        return 0
    dpcal.report.replace_file(options.output, text.encode())
    dropped = [column.name for column in schema.columns if column.type == "drop"]
    lines = [f"schema of {len(schema.columns)} columns written to {options.output}"]
    if schema.copied():
        lines.append(
            "copied from the records without noise, to be replaced by what is known without them: "
            + ", ".join(schema.copied())
        )
    for name in dropped:
        lines.append(f"dropped: {name!r}, {comments[name]}")
    likely = dpcal.tables.likely_target(schema) if options.target is None else None
    if likely is not None:
        lines.append(f"which column is predicted? Perhaps {likely!r}: --target {likely}")
    elif options.target is None:
        lines.append("which column is predicted? None looks like it: --target COLUMN")
    present(options, document, "\n".join(lines))
    return 0
