"""``dpcal schema``: draft what a table's columns are, to be made public by whoever knows them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from dpcal.commands import training
from dpcal.commands._options import add_table

EXAMPLE = "patients.csv -o schema.toml"
EXAMPLES = (
    EXAMPLE,
    "patients.csv --target sick",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the table and the file of its schema."""
    add_table(parser)
    parser.add_argument("--target", metavar="COLUMN", help="what is to be predicted")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="TOML", help="file to write (default: the screen)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(options: Namespace) -> int:
    """Write the draft, and say what it copied from the records."""
    return training.draft_schema(options)
