"""Help on one screen: what most runs need is shown by ``--help``, and the rest by ``--help-all``.

>>> from argparse import ArgumentParser
>>> parser = ArgumentParser(prog="fit", add_help=False)
>>> _ = parser.add_argument("--epsilon", help="the target")
>>> _ = parser.add_argument("--kappa", help="an exponent")
>>> add_help_all(parser, common=("--epsilon",))
>>> "--kappa" in parser.format_help(), "--help-all" in parser.format_help()
(False, True)
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Collection
from typing import Any

__all__ = ["add_help_all"]


class _HelpAll(Action):
    """Print every option, and end."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, SUPPRESS, nargs=0, default=SUPPRESS, **options)
        self.hidden: list[tuple[Any, str, Any]] = []

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        for thing, field, text in self.hidden:
            setattr(thing, field, text)
        parser.print_help()
        parser.exit()


def add_help_all(parser: ArgumentParser, *, common: Collection[str]) -> None:
    """Leave every option that was declared so far out of the help, but for the common ones.

    Parameters
    ----------
    parser
        Of a command.
    common
        Option strings, and the names of positional arguments.
    """
    action = parser.add_argument("--help-all", action=_HelpAll, help="show every option and exit")
    assert isinstance(action, _HelpAll)
    shown = {"-h", "--help", "--help-all", *common}

    def hide(thing: Any, field: str, text: str | None) -> None:
        action.hidden.append((thing, field, getattr(thing, field)))
        setattr(thing, field, text)

    for group in parser._action_groups:
        actions = group._group_actions
        rare = [each for each in actions if not shown & {each.dest, *each.option_strings}]
        for each in rare:
            if each.help != SUPPRESS:
                hide(each, "help", SUPPRESS)
        if actions and len(rare) == len(actions):
            # A group of which nothing is shown would still show its heading over its description.
            hide(group, "description", None)
