"""Help on one screen: ``--help`` shows what most runs need, and ``--help-all`` every option.

>>> from argparse import ArgumentParser
>>> class Parser(ArgumentParser):
...     def format_help(self):
...         return getattr(self, "screen", None) or super().format_help()
>>> parser = Parser(prog="fit")
>>> _ = parser.add_argument("--kappa", help="an exponent")
>>> add_help_all(parser, screen="usage: fit [options]")
>>> parser.format_help()
'usage: fit [options]'
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from typing import Any

__all__ = ["add_help_all"]


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
