"""Options that several commands share, and what they mean."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal

if TYPE_CHECKING:
    from dpcal.tables import Source

__all__ = [
    "add_accountant",
    "add_backends",
    "add_file",
    "add_help_all",
    "add_options",
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


_READERS: Mapping[str, Callable[[str], Any]] = {"number": number, "whole": whole, "path": Path}
_WORD = re.compile(r"(?P<name>.*?)(?::(?P<kind>[a-z]+))?(?:=(?P<default>\S+?))?(?P<many>[+?]?)")


def add_options(group: Any, text: str, **given: Any) -> None:
    """Declare the options of a text, one an entry: its names, a word for its value, and its help.

    The help stands behind two blanks or more, and goes on in lines that begin with a blank. The
    word is ``NAME``, or ``NAME:kind`` for a number, a whole number or a path, or choices ``a|b``;
    behind it may stand ``=default``, then ``+`` for values one or more and ``?`` for one at most. A
    flag without a word is off unless it is given.

    Parameters
    ----------
    group
        A parser, or a group of one.
    text
        The entries.
    **given
        Choices, by the name of an option, and further readers of texts, by kind.

    >>> parser = ArgumentParser()
    >>> add_options(parser, "--steps T:whole=3  >= 1 (default: %(default)s)")
    >>> parser.parse_args([]).steps, parser.parse_args(["--steps", "1e4"]).steps
    (3, 10000)
    """
    for entry in re.split(r"\n(?=\S)", text.strip("\n")):
        head, meaning = re.split(r" {2,}|\n", entry, maxsplit=1)
        names, how = head.split(), {"help": " ".join(meaning.split())}
        if len(names) == 1 or names[-1].startswith("-"):
            group.add_argument(*names, action="store_true", **how)
            continue
        found = _WORD.fullmatch(names.pop())
        assert found is not None
        listed = re.fullmatch(r"[a-z_-]+(\|[a-z_-]+)+", found["name"])
        choices = given.get(names[-1].strip("-").replace("-", "_"))
        group.add_argument(
            *names,
            type={**_READERS, **given}.get(found["kind"], str),
            choices=found["name"].split("|") if listed else choices,
            metavar=None if listed else found["name"] or None,
            default=found["default"],
            **({"nargs": found["many"]} if found["many"] else {}),
            **how,
        )


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
    add_options(
        group,
        """
table FILE:path?  text with a row of column names, also compressed, or parquet
--separator S     of cells (default: found in the file)
--encoding E      of text (default: UTF-8)
--decimal-comma   numbers look like 3,14
""",
    )


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
    add_options(
        parser,
        f"""
-o --output {metavar}:path  file to write (default: the screen)
--force                     replace an existing file
""",
    )


def add_target(parser: ArgumentParser, *, needed: bool) -> None:
    """Declare epsilon and delta."""
    group = parser.add_argument_group("target")
    group.add_argument("--epsilon", type=number, metavar="E", required=needed, help=">= 0")
    group.add_argument("--delta", type=number, metavar="D", required=needed, help="in (0, 1)")


def add_targets(parser: ArgumentParser) -> None:
    """Declare epsilons and deltas, one or more of either."""
    group = parser.add_argument_group("targets: one or more of either")
    add_options(group, "--epsilon E:number+  >= 0\n--delta D:number+  in (0, 1)")


ACCOUNTANTS = ("auto", "characteristic", "renyi", "pld", "prv")


def add_accountant(parser: ArgumentParser, what: str) -> None:
    """Declare which accountant does what."""
    add_options(
        parser,
        f"--accountant NAME=auto  {what}: {', '.join(ACCOUNTANTS)} (default: %(default)s)",
        accountant=ACCOUNTANTS,
    )


def names_of(text: str) -> tuple[str, ...]:
    """Parse names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def add_output(parser: ArgumentParser) -> None:
    """Declare the folder of a report."""
    add_options(
        parser,
        """
-o --output FOLDER:path=dpcal-report  report to write (default: %(default)s)
--force  replace an earlier report in that folder
""",
    )


BACKENDS = {"pld": ("interval", "tail_mass"), "prv": ("eps_error", "delta_error")}


def add_backends(parser: ArgumentParser) -> None:
    """Declare the accuracy of other packages' accountants."""
    add_options(
        parser.add_argument_group("accuracy of dp-accounting (pld) and prv-accountant (prv)"),
        """
--pld-interval X:number     width of the grid of privacy losses, > 0
--pld-tail-mass X:number    probability left out at each composition, > 0
--prv-eps-error X:number    allowed error of epsilon, > 0
--prv-delta-error X:number  allowed error of delta, > 0
""",
    )


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


class _HelpAll(Action):
    """Print every option, and end."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, SUPPRESS, nargs=0, default=SUPPRESS, **options)

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        vars(parser)["screen"] = None
        parser.print_help()
        parser.exit()


def add_help_all(parser: ArgumentParser, *, screen: str) -> None:
    """Show a text as the help of a command, and every option where ``--help-all`` asks for it.

    Parameters
    ----------
    parser
        Of a command, whose ``format_help`` returns its attribute ``screen`` where it is a text.
    screen
        The help on one screen: at most 24 lines of 80 characters.
    """
    parser.add_argument("--help-all", action=_HelpAll, help="show every option and exit")
    vars(parser)["screen"] = screen
