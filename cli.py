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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import dpcal
from dpcal.commands import COMMANDS, MOVED, load
from dpcal.commands.checking.progress import Progress
from dpcal.errors import DpcalError, MissingExtra, extra, reason_of

__all__ = ["main"]

ANSWERED, WRONG_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 2, 130, 141


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors as sentences, for :func:`main` to print.

    Attributes
    ----------
    known
        Words that a mistyped one may have meant.
    screen
        A help text on one screen, in place of one that lists every option; None for that one.
    """

    known: tuple[str, ...] = ()
    screen: str | None = None

    def format_help(self) -> str:
        """Return the help on one screen, if there is one, and every option otherwise."""
        return super().format_help() if self.screen is None else self.screen

    def error(self, message: str) -> NoReturn:
        """Raise the message as one sentence that names the option, and what was meant."""
        sentence = re.sub(r"^argument (\S+?)(/\S+)?: ", r"\1: ", message)
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


def _examples(name: str, module: Any) -> str:
    """The examples of a command, a line each."""
    lines = [f"  dpcal {name} {example}" for example in module.EXAMPLES]
    return "\n".join([f"example{'s' if len(lines) > 1 else ''}:", *lines])


def _parser(*named: str | None) -> argparse.ArgumentParser:
    """A parser of all commands' names, and of the options of those that are named."""
    parser = _Parser(
        prog="dpcal",
        description="Calibrated differential privacy: from a target (epsilon, delta) to a private "
        "run whose claim anyone can check.",
        epilog="examples:\n  dpcal calibrate --sampling-probability 0.01 --steps 10000 "
        "--epsilon 2 --delta 1e-6\n  dpcal COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument(
        "--print-completion",
        metavar="SHELL",
        choices=("bash", "zsh", "tcsh"),
        help="print what completes commands and options in bash, zsh or tcsh, and exit",
    )
    parser.known = tuple(COMMANDS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if name not in named:
            commands.add_parser(name, help=summary, add_help=False)
            continue
        module = load(name)
        options = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=_examples(name, module),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(options)
        options.add_argument("--json", action="store_true", help="print one JSON document instead")
        options.set_defaults(run=module.run)
        flags = [flag for action in options._actions for flag in action.option_strings]
        # Words that the command does not know are refused by the parser of all commands.
        options.known = parser.known = tuple(flags)
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
    words = _usual(_joined(sys.argv[1:] if arguments is None else arguments))
    command = next((word for word in words if not word.startswith("-")), None)
    as_json = "--json" in words
    silent = as_json and "--progress" not in words  # which asks for lines on standard error
    told = io.StringIO()
    status, sentence = WRONG_INPUT, ""
    try:
        # An error is one document, so that warnings wait until there is none.
        with contextlib.redirect_stderr(told) if silent else contextlib.nullcontext():
            status = _run(_parser(command), words)
        _flush()
    except BrokenPipeError:
        _close_output()
        return PIPE_CLOSED
    except (ArithmeticError, DpcalError, OSError, TypeError, ValueError) as error:
        sentence = " ".join(_said(error).split()).rstrip(".")
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


def _complain(sentence: str, status: int, warnings: list[str] | None) -> None:
    """Print an error on standard error: a line, or, with warnings, one JSON document."""
    document = {"error": sentence, "status": status}
    if warnings is None:
        line = f"dpcal: {sentence}"
    else:
        line = json.dumps(document | ({"warnings": warnings} if warnings else {}))
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


def _joined(arguments: Sequence[str]) -> list[str]:
    """Return the words with a number such as -3, or a range -3:3, tied to the option before it.

    A parser would take it for an option, as it begins with a dash.
    """
    words: list[str] = []
    for word in arguments:
        if words and words[-1].startswith("--") and re.fullmatch(r"-\.?\d.*", word):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


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
    with Progress(options.command, quiet=options.json) as progress:
        options.progress = progress
        return int(options.run(options))
