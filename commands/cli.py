"""The command line: ``dpcal COMMAND ...``, or ``python -m dpcal COMMAND ...``.

Exit status 0: answered. 1: a check failed. 2: wrong input, with one sentence on standard error;
with ``--json``, an object with its ``error`` and ``status``, and the ``warnings`` before it. 141:
the reader of standard output left before the command had ended.

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
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import dpcal
from dpcal.commands import COMMANDS, GROUPS, MOVED, load
from dpcal.commands._signature import (
    add_options,
    called,
    examples_of,
    flag,
    summary_of,
    usage_of,
)
from dpcal.errors import DpcalError, MissingExtra, extra, reason_of
from dpcal.report.output import dump

__all__ = ["main"]

ANSWERED, WRONG_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 2, 130, 141


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors as sentences, for :func:`main` to print.

    Attributes
    ----------
    known
        Words that a mistyped one may have meant.
    spelled
        Options by the name of the keyword that they give.
    """

    known: tuple[str, ...] = ()
    spelled: Mapping[str, str] = MappingProxyType({})

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        # Numbers such as -1e-5, and ranges such as -3:3, are values.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """Raise the message as one sentence that names the option, and what was meant."""
        sentence = re.sub(r"^argument (\S+?)(/\S+)?: ", r"\1: ", message)
        if unknown := re.match(r"COMMAND: invalid choice: ('.*?')", sentence):
            sentence = f"there is no command {unknown[1]}"
        raise ValueError(f"{sentence}{self._meant(message)} (see {self.prog} --help).")

    def _meant(self, message: str) -> str:
        """What words that are not known may have been meant to be."""
        wrong = re.search(r"unrecognized arguments: (.*)|invalid choice: '(.*?)'", message)
        if wrong is None:
            return ""
        meant = []
        for word in (wrong[1] or wrong[2]).split():
            name = word.partition("=")[0]
            close = difflib.get_close_matches(name, self.known, n=1, cutoff=0.7)
            found = [MOVED[name]] if name in MOVED else close
            meant += [f"{name} may be meant to be {found[0]}"] if found else []
        return f"; {', '.join(meant)}" if meant else ""


class _Commands(_Parser):
    """The parser of all commands, whose help lists them in groups on one screen."""

    def format_help(self) -> str:
        """Return the help."""
        lines = [
            "usage: dpcal COMMAND ..., dpcal COMMAND --help, dpcal --version",
            "",
            "Calibrated differential privacy: from a target (epsilon, delta) to a private",
            "run whose claim anyone can check.",
        ]
        for title, commands in GROUPS.items():
            lines += ["", title]
            lines += [f"  {name:<12}{summary}" for name, (_, summary) in commands.items()]
        lines += ["", "dpcal --print-completion bash|zsh|tcsh prints what completes these words."]
        return "\n".join(lines) + "\n"


def _parser(*named: str | None) -> _Parser:
    """A parser of all commands' names, and of the options of those that are named."""
    parser = _Commands(prog="dpcal", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("--print-completion", choices=("bash", "zsh", "tcsh"))
    parser.known = tuple(COMMANDS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, (_, summary) in COMMANDS.items():
        if name not in named:
            commands.add_parser(name, help=summary, add_help=False)
            continue
        command = load(name)
        examples = "\n  ".join(["examples:", *examples_of(command)])
        options = commands.add_parser(
            name,
            help=summary,
            description=summary_of(command),
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_options(options, command)
        options.add_argument("--json", action="store_true", help="print one JSON document instead")
        options.set_defaults(function=command)
        options.usage = usage_of(options)
        actions = [each for each in options._actions if each.option_strings]
        # Words that the command does not know are refused by the parser of all commands.
        options.known = parser.known = tuple(
            word for each in actions for word in each.option_strings
        )
        parser.spelled = {each.dest: flag(each.dest) for each in actions}
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        What follows ``dpcal`` on the command line; ``sys.argv`` when omitted.

    Returns
    -------
    int
        The exit status: 0 answered, 1 a check failed, 2 wrong input, 130 interrupted, 141 nobody
        reads the output.
    """
    words = _usual([*(sys.argv[1:] if arguments is None else arguments)])
    command = next((word for word in words if not word.startswith("-")), None)
    as_json = "--json" in words
    told, parser = io.StringIO(), _Parser()
    status, sentence = WRONG_INPUT, ""
    try:
        # An error is one document, so that warnings wait until there is none.
        with contextlib.redirect_stderr(told) if as_json else contextlib.nullcontext():
            parser = _parser(command)
            status = _run(parser, words)
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
    _complain(sentence, status, told.getvalue().splitlines() if as_json else None)
    return status


def _complain(sentence: str, status: int, warned: list[str] | None) -> None:
    """Print an error on standard error: a line, or, with warnings, one JSON document."""
    document = {"error": sentence, "status": status}
    if warned is None:
        line = f"dpcal: {sentence}"
    else:
        line = json.dumps(document | ({"warnings": warned} if warned else {}))
    with contextlib.suppress(BrokenPipeError):
        print(line, file=sys.stderr)


def _flush() -> None:
    """Write what a command has printed; a reader that has left changes nothing of its status."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _close_output()
        if not isinstance(error, BrokenPipeError):
            raise


def _close_output() -> None:
    """Keep the interpreter from writing again what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usual(words: list[str]) -> list[str]:
    """Return words that users of other commands try as those of this one."""
    if words[:1] == ["help"]:
        return [*words[1:2], "--help"]
    return ["--version"] if words == ["-V"] else words


def _said(error: Exception) -> str:
    """Return what an error says, and of a file that cannot be used its name and the reason."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {str(error.filename)!r}: {reason_of(error)}"
    return str(error)


def _with_options(sentence: str, spelled: Mapping[str, str]) -> str:
    """Return an error of a function with its keywords as options of the command.

    >>> _with_options("max_norm must be > 0 for loss='logistic'", {"max_norm": "--max-norm"})
    "--max-norm must be > 0 for loss='logistic'"
    """

    def option(found: re.Match[str]) -> str:
        name = found["given"] or found["word"]
        if name not in spelled:
            return found[0]
        value = "" if found["value"] in (None, "True") else f" {found['value'].strip(chr(39))}"
        return f"{spelled[name]}{value}"

    given = r"\b(?P<given>\w+)=(?P<value>'[\w-]+'|True)"
    word = r"(?:^|(?<=[\s(]))(?P<word>(?<=^)\w+|(?<=in )settings|[a-z]+(?:_[a-z]+)+)(?=[\s,.:;)]|$)"
    return re.sub(f"{given}|{word}", option, sentence)


def _completion(shell: str) -> str:
    """Return a script that completes commands, options, choices and files in a shell."""
    try:
        import shtab
    except ImportError as error:
        raise MissingExtra(f"Completion is written by shtab: {extra('completion')}.") from error
    parser = _parser(*COMMANDS)
    commands = [each.choices for each in parser._actions if isinstance(each.choices, dict)]
    for action in [each for options in commands[0].values() for each in options._actions]:
        if action.type is Path:
            action.complete = shtab.FILE
    return str(shtab.complete(parser, shell))


def _run(parser: argparse.ArgumentParser, words: list[str]) -> int:
    options = parser.parse_args(words)
    if options.version:
        print(f"dpcal {dpcal.__version__}")
        return ANSWERED
    if options.print_completion is not None:
        print(_completion(options.print_completion))
        return ANSWERED
    if options.command is None:
        parser.error(f"a command is needed: {', '.join(COMMANDS)}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        answer = called(options.function, options)
    for warning in caught:
        print(f"dpcal: warning: {warning.message}", file=sys.stderr)
    print(dump(answer.document) if options.json else answer.text)
    return int(answer.status)
