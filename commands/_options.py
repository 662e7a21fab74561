"""Options that several commands share, and what they mean."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal

if TYPE_CHECKING:
    from dpcal.tables import Source

__all__ = [
    "BACKENDS",
    "REPORT",
    "TABLE",
    "TARGET",
    "TARGETS",
    "accountant",
    "add_help_all",
    "add_options",
    "backends",
    "fields_of",
    "file_to_write",
    "names_of",
    "number",
    "relation",
    "required",
    "sampler_name",
    "source_of",
    "whole",
]

ACCOUNTANTS = ("auto", "characteristic", "renyi", "pld", "prv")
RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")

# A product of two such numbers is within the range of doubles, as are their quotients.
LARGEST = 1e150


def number(text: str) -> float:
    """Parse any number; its range is checked where it is used."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number, got {text!r}") from None


def whole(text: str) -> int:
    """Parse a whole number, also one written like ``1e4``."""
    try:
        value: float = int(text)
    except ValueError:
        value = number(text)
    if abs(value) > LARGEST or value != int(value):
        raise ArgumentTypeError(f"must be a whole number of at most 150 digits, got {text!r}")
    return int(value)


def sampler_name(text: str) -> str:
    """Return the name of a sampler, which may be told by a short one."""
    return {"allocation": "random-allocation", "shuffle": "shuffled-epochs"}.get(text, text)


# Readers of texts by kind, and the choices of options that several commands have.
_GIVEN: Mapping[str, Any] = {
    "number": number,
    "whole": whole,
    "path": Path,
    "way": sampler_name,
    "neighboring_relation": RELATIONS,
    "accountant": ACCOUNTANTS,
}
_WORD = re.compile(r"(?P<name>.*?)(?::(?P<kind>[a-z]+))?(?:=(?P<default>\S+?))?(?P<many>[+?!]?)")


def add_options(parser: Any, *texts: str, **given: Any) -> None:
    """Declare the options of texts, one an entry: its names, a word for its value, and its help.

    The help stands behind two blanks or more, and goes on in lines that begin with a blank. The
    word is ``NAME``, or ``NAME:kind`` for a number, a whole number or a path, or choices ``a|b``;
    behind it may stand ``=default``, then ``+`` for values one or more, ``?`` for one at most, or
    ``!`` if the option is needed. A flag without a word is off unless it is given; ``--no-it``
    turns ``it`` off. ``[title]`` or ``[title | description]`` opens a group, to the text's end.

    Parameters
    ----------
    parser
        A parser, or a group of one.
    *texts
        The entries.
    **given
        Choices, by the name of an option, and further readers of texts, by kind.

    >>> parser = ArgumentParser()
    >>> add_options(parser, "--steps T:whole=3  >= 1 (default: %(default)s)")
    >>> parser.parse_args([]).steps, parser.parse_args(["--steps", "1e4"]).steps
    (3, 10000)
    >>> add_options(parser, "--rate Q:number!  > 0", "--no-intercept  fit none")
    >>> parser.parse_args(["--rate", "2", "--no-intercept"])
    Namespace(steps=3, rate=2.0, intercept=False)
    """
    given = {**_GIVEN, **given}
    for text in texts:
        group = parser
        for entry in re.split(r"\n(?=\S)", text.strip("\n")):
            if entry.startswith("["):
                group = parser.add_argument_group(*entry.strip("[]").split(" | "))
            else:
                _add_option(group, entry, given)


def _add_option(group: Any, entry: str, given: Mapping[str, Any]) -> None:
    """Declare the option of one entry."""
    head, meaning = re.split(r" {2,}|\n", entry, maxsplit=1)
    names, how = head.split(), {"help": " ".join(meaning.split())}
    if len(names) == 1 or names[-1].startswith("-"):
        _, no, name = names[-1].partition("--no-")
        off = {"dest": name, "action": "store_false"} if no else {"action": "store_true"}
        group.add_argument(*names, **off, **how)
        return
    found = _WORD.fullmatch(names.pop())
    assert found is not None
    listed = re.fullmatch(r"[a-z_-]+(\|[a-z_-]+)+", found["name"])
    choices = given.get(names[0].strip("-").replace("-", "_"))
    many: dict[str, Any] = {"nargs": found["many"]} if found["many"] else {}
    group.add_argument(
        *names,
        type=given.get(found["kind"], str),
        choices=found["name"].split("|") if listed else choices,
        metavar=None if listed else found["name"] or None,
        default=found["default"],
        **({"required": True} if found["many"] == "!" else many),
        **how,
    )


TABLE = """
table FILE:path?  text with a row of column names, also compressed, or parquet
--separator S     of cells (default: found in the file)
--encoding E      of text (default: UTF-8)
--decimal-comma   numbers look like 3,14
"""
TARGET = """
[target]
--epsilon E:number!  > 0
--delta D:number!    in (0, 1)
"""
TARGETS = """
[targets: one or more of either]
--epsilon E:number+  >= 0
--delta D:number+    in (0, 1); also 0, for pure privacy, where a largest loss is known
"""
REPORT = """
-o --output FOLDER:path=dpcal-report  report to write (default: %(default)s)
--force                               replace an earlier report in that folder
"""
# The accuracy of other packages' accountants: of each backend, its names for it.
ACCURACY = {"pld": ("interval", "tail_mass"), "prv": ("eps_error", "delta_error")}
BACKENDS = """
[accuracy of dp-accounting (pld) and prv-accountant (prv)]
--pld-interval X:number     width of the grid of privacy losses, > 0
--pld-tail-mass X:number    probability left out at each composition, > 0
--prv-eps-error X:number    allowed error of epsilon, > 0
--prv-delta-error X:number  allowed error of delta, > 0
"""


def relation(note: str = "%(default)s", *, default: str = "") -> str:
    """Return the option of the neighboring relation, and what it is when it is not given."""
    word = f"RELATION={default}" if default else "RELATION"
    return f"--neighboring-relation {word}  {', '.join(RELATIONS)} (default: {note})"


def accountant(what: str) -> str:
    """Return the option of which accountant does what."""
    return f"--accountant NAME=auto  {what}: {', '.join(ACCOUNTANTS)} (default: %(default)s)"


def file_to_write(metavar: str) -> str:
    """Return the options of a file to be written in place of the screen."""
    return f"""
-o --output {metavar}:path  file to write (default: the screen)
--force                     replace an existing file
"""


def source_of(
    options: Namespace, *, table: Any = None, missing_values: Collection[str] = ()
) -> Source:
    """Open the table that a command was given.

    Parameters
    ----------
    options
        Those of ``TABLE``.
    table
        The file, or the table in memory, where it is not ``options.table``.
    missing_values
        Texts that stand for a missing cell.
    """
    return dpcal.tables.Source(
        options.table if table is None else table,
        missing_values=missing_values,
        **fields_of(options, "separator", "encoding", "decimal_comma"),
    )


def fields_of(record: Any, *names: str) -> dict[str, Any]:
    """Return attributes of options, or of another record, by name."""
    return {name: getattr(record, name) for name in names}


def names_of(text: str) -> tuple[str, ...]:
    """Parse names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def backends(options: Namespace) -> dict[str, dict[str, float]]:
    """Return what was given of ``BACKENDS``, by backend and name."""
    found: dict[str, dict[str, float]] = {}
    for backend, names in ACCURACY.items():
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
