"""Options that several commands share, and what they mean."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal

if TYPE_CHECKING:
    from dpcal.tables import Source

__all__ = [
    "add_accountant",
    "add_backends",
    "add_file",
    "add_output",
    "add_relation",
    "add_table",
    "add_target",
    "add_targets",
    "backends",
    "names_of",
    "number",
    "required",
    "source_of",
    "whole",
]

RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")


def number(text: str) -> float:
    """Parse any number; its range is checked where it is used."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number, got {text!r}") from None


def whole(text: str) -> int:
    """Parse a whole number, also one written like ``1e4``."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if not value.is_integer():
        raise ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(value)


def add_relation(
    parser: ArgumentParser, *, default: str | None = RELATIONS[0], note: str = "%(default)s"
) -> None:
    """Declare the neighboring relation, and what it is when it is not given."""
    parser.add_argument(
        "--neighboring-relation",
        choices=RELATIONS,
        default=default,
        metavar="RELATION",
        help=f"{', '.join(RELATIONS)} (default: {note})",
    )


def add_table(group: Any) -> None:
    """Declare the file of a table, and how its text is written."""
    group.add_argument(
        "table",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="text with a row of column names, also compressed, or parquet",
    )
    group.add_argument("--separator", metavar="S", help="of cells (default: found in the file)")
    group.add_argument("--encoding", metavar="E", help="of text (default: UTF-8)")
    group.add_argument("--decimal-comma", action="store_true", help="numbers look like 3,14")


def source_of(
    options: Namespace, *, table: Path | None = None, missing_values: Collection[str] = ()
) -> Source:
    """Open the table that a command was given.

    Parameters
    ----------
    options
        Those of :func:`add_table`.
    table
        The file, where it is not ``options.table``.
    missing_values
        Texts that stand for a missing cell.
    """
    return dpcal.tables.Source(
        table or options.table,
        separator=options.separator,
        encoding=options.encoding,
        decimal_comma=options.decimal_comma,
        missing_values=missing_values,
    )


def add_file(parser: ArgumentParser, *, metavar: str) -> None:
    """Declare a file to be written in place of the screen."""
    parser.add_argument(
        "-o", "--output", type=Path, metavar=metavar, help="file to write (default: the screen)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def add_target(parser: ArgumentParser, *, needed: bool) -> None:
    """Declare epsilon and delta."""
    group = parser.add_argument_group("target")
    group.add_argument("--epsilon", type=number, metavar="E", required=needed, help=">= 0")
    group.add_argument("--delta", type=number, metavar="D", required=needed, help="in (0, 1)")


def add_targets(parser: ArgumentParser) -> None:
    """Declare epsilons and deltas, one or more of either."""
    group = parser.add_argument_group("targets: one or more of either")
    group.add_argument("--epsilon", type=number, nargs="+", metavar="E", help=">= 0")
    group.add_argument("--delta", type=number, nargs="+", metavar="D", help="in (0, 1)")


ACCOUNTANTS = ("auto", "characteristic", "renyi", "pld", "prv")


def add_accountant(parser: ArgumentParser, what: str) -> None:
    """Declare which accountant does what."""
    parser.add_argument(
        "--accountant",
        choices=ACCOUNTANTS,
        default="auto",
        metavar="NAME",
        help=f"{what}: {', '.join(ACCOUNTANTS)} (default: %(default)s)",
    )


def names_of(text: str) -> tuple[str, ...]:
    """Parse names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def add_output(parser: ArgumentParser) -> None:
    """Declare the folder of a report."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("dpcal-report"),
        metavar="FOLDER",
        help="report to write (default: %(default)s)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace an earlier report in that folder"
    )


BACKENDS = {"pld": ("interval", "tail_mass"), "prv": ("eps_error", "delta_error")}


def add_backends(parser: ArgumentParser) -> None:
    """Declare what other packages' accountants can be told about their accuracy."""
    group = parser.add_argument_group("accuracy of dp-accounting (pld) and prv-accountant (prv)")
    for name, meaning in (
        ("--pld-interval", "width of the grid of privacy losses"),
        ("--pld-tail-mass", "probability left out at each composition"),
        ("--prv-eps-error", "allowed error of epsilon"),
        ("--prv-delta-error", "allowed error of delta"),
    ):
        group.add_argument(name, type=number, metavar="X", help=f"{meaning}, > 0")


def backends(options: Namespace) -> dict[str, dict[str, float]]:
    """Return what was given of :func:`add_backends`, by backend and name."""
    found: dict[str, dict[str, float]] = {}
    for backend, names in BACKENDS.items():
        given = {name: getattr(options, f"{backend}_{name}") for name in names}
        found[backend] = {name: value for name, value in given.items() if value is not None}
        for name, value in found[backend].items():
            if not value > 0:
                raise ValueError(
                    f"--{backend}-{name.replace('_', '-')} must be > 0, got {value!r}."
                )
    return found


def required(options: Namespace, *names: str) -> None:
    """Raise ``ValueError`` if one of the options is missing."""
    missing = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) is None]
    if missing:
        raise ValueError(f"{options.command} needs {' and '.join(missing)}.")
