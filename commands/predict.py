"""``dpcal predict``: what a private model says of the records in a table."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from dpcal.commands import training
from dpcal.commands._options import add_table

EXAMPLE = "dpcal-report/model.json new.csv -o scores.csv"
EXAMPLES = (
    EXAMPLE,
    "dpcal-report new.csv --force",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the model, the table and the file of the answers."""
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="model.json of a report, or the report's folder"
    )
    add_table(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="CSV", help="file to write (default: the screen)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(options: Namespace) -> int:
    """Write a row for each record."""
    return training.predict_table(options)
