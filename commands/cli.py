"""The command line: ``dpcal COMMAND ...``, or ``python -m dpcal COMMAND ...``.

Exit status 0: success. 1: a check failed. 2: wrong input, with one sentence on standard error; with
``--json``, an object with its ``error`` and ``status``, and the earlier ``warnings``. 141: the
reader of standard output closed it before the command ended.

>>> main(["epsilon", "--sampling-probability", "0.01", "--noise-multiplier", "1",
...       "--steps", "10000", "--delta", "1e-6"])
epsilon in [6.907384495, 6.907384496] at delta = 1e-06
accountant characteristic (contour), neighboring relation add-or-remove-one
0
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import dpcal
from dpcal.commands import COMMANDS, FORMER, GROUPS, load
from dpcal.commands._signature import add_options, called, examples_of, summary_of
from dpcal.errors import DpcalError, reason_of
from dpcal.report.output import dump

ANSWERED, WRONG_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 2, 130, 141


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors as sentences, for :func:`main` to print."""

    def __init__(self, **how: Any) -> None:
        how |= {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**how)
        # Numbers such as -1e-5, and ranges such as -3:3, are values, not options.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    @property
    def spelled(self) -> dict[str, str]:
        """Options by the name of the keyword that they give."""
        return {each.dest: each.option_strings[0] for each in self._actions if each.option_strings}

    def error(self, message: str) -> NoReturn:
        """Raise the message as one sentence that names the option."""
        sentence = re.sub(r"^argument (\S+?)(/\S+)?: ", r"\1: ", message)
        raise ValueError(f"{sentence} (see {self.prog} --help).")


def _help() -> str:
    """Return the commands in groups, on one screen."""
    lines = [
        "usage: dpcal COMMAND ..., dpcal COMMAND --help, dpcal --version",
        "",
        "Calibrated differential privacy: from a target (epsilon, delta) to a private",
        "run whose claim anyone can check.",
    ]
    for title, commands in GROUPS.items():
        lines += ["", title]
        lines += [f"  {name:<12}{summary}" for name, (_, summary) in commands.items()]
    return "\n".join(lines)


def _parser(name: str) -> _Parser:
    """Return the parser of a command."""
    command = load(name)
    parser = _Parser(
        prog=f"dpcal {name}",
        description=summary_of(command),
        epilog="\n  ".join(["examples:", *examples_of(command)]),
    )
    add_options(parser, command)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Words after ``dpcal`` on the command line; ``sys.argv`` when omitted.

    Returns
    -------
    int
        Exit status: 0 success, 1 a check failed, 2 wrong input, 130 interrupted, 141 standard
        output was closed.
    """
    words = [FORMER.get(each, each) for each in (sys.argv[1:] if arguments is None else arguments)]
    as_json = "--json" in words
    told, parser = io.StringIO(), _Parser()
    status, sentence = WRONG_INPUT, ""
    try:
        # With --json, an error is one document: its warnings are kept until the end.
        with contextlib.redirect_stderr(told) if as_json else contextlib.nullcontext():
            name = _named(words)
            if name is None:
                status = ANSWERED
            else:
                parser = _parser(name)
                status = _run(parser, name, words[1:])
        _flush()
    except BrokenPipeError:
        _close_output()
        return PIPE_CLOSED
    except (ArithmeticError, DpcalError, OSError, TypeError, ValueError) as error:
        sentence = _with_options(" ".join(_said(error).split()).rstrip("."), parser.spelled)
        sentence += "" if sentence.endswith("?") else "."
    except (MemoryError, RecursionError) as error:
        what = "memory" if isinstance(error, MemoryError) else "stack"
        sentence = f"the input needs more {what} than there is."
    except KeyboardInterrupt:
        status, sentence = INTERRUPTED, "interrupted."
    if not sentence:
        sys.stderr.write(told.getvalue())
        return status
    warned = told.getvalue().splitlines()
    document = {"error": sentence, "status": status} | ({"warnings": warned} if warned else {})
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(document) if as_json else f"dpcal: {sentence}", file=sys.stderr)
    return status


def _named(words: list[str]) -> str | None:
    """Return the command that the words name, or None after printing a general answer."""
    match words:
        case [name, *_] if name in COMMANDS:
            return name
        case ["help", name] if name in COMMANDS:
            words[:] = [name, "--help"]
            return name
        case ["-h" | "--help" | "help", *_]:
            print(_help())
        case ["--version" | "-V"]:
            print(f"dpcal {dpcal.__version__}")
        case [name, *_] if not name.startswith("-"):
            meant = difflib.get_close_matches(name, COMMANDS)
            told = f"; did you mean {meant[0]}?" if meant else " (see dpcal --help)."
            raise ValueError(f"there is no command {name!r}{told}")
        case _:
            raise ValueError(f"a command is needed: {', '.join(COMMANDS)} (see dpcal --help).")
    return None


def _run(parser: _Parser, name: str, words: list[str]) -> int:
    options = parser.parse_args(words)
    if getattr(options, "plot", None) is not None:
        dpcal.plot.check_picture(options.plot)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        answer = called(load(name), options)
    for warning in caught:
        print(f"dpcal: warning: {warning.message}", file=sys.stderr)
    print(dump(answer.document) if options.json else answer.text)
    return int(answer.status)


def _flush() -> None:
    """Flush standard output; the status stays the same if its reader has closed it."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _close_output()
        if not isinstance(error, BrokenPipeError):
            raise


def _close_output() -> None:
    """Keep the interpreter from writing the same output again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said(error: Exception) -> str:
    """Return the message of an error; for an unusable file, its name and the reason."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {str(error.filename)!r}: {reason_of(error)}"
    return str(error)


def _with_options(sentence: str, spelled: Mapping[str, str]) -> str:
    """Return an error of a function with its keywords as options of the command.

    A word is a keyword where the sentence begins with it, in a list of keywords, with its value, or
    if it has an underscore.

    >>> spelled = {"max_norm": "--max-norm", "n": "--n", "loss": "--loss"}
    >>> _with_options("max_norm must be > 0 for loss='logistic'", spelled)
    '--max-norm must be > 0 for --loss logistic'
    >>> _with_options("sizes are in the plan: omit n and max_norm, but a loss is needed", spelled)
    'sizes are in the plan: omit --n and --max-norm, but a loss is needed'
    """
    name = rf"\b(?:{'|'.join(sorted(spelled, key=len, reverse=True))})\b"
    listed = rf"{name}(?:(?:,| and| or| \(or) {name})+"
    single = rf"(?:^|(?<=in )(?=settings)|(?=[a-z]+_)){name}(?![=\w-])"
    valued = rf"(?P<name>{name})=(?P<value>'[\w-]+'|True)"

    def options(found: re.Match[str]) -> str:
        if found["name"]:
            value = found["value"].strip("'")
            return spelled[found["name"]] + ("" if value == "True" else f" {value}")
        return re.sub(name, lambda each: spelled[each[0]], found[0])

    pattern = rf"(?<![\w'.=-])(?:{valued}|{listed}|{single})"
    return re.sub(pattern, options, sentence) if spelled else sentence
