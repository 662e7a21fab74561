"""Options of a command, read from the parameters and the docstring of its function.

A command is a typed function that returns an :class:`Answer`. A parameter with a default is an
option. A parameter without a default is required. A parameter before the star is an argument.
``**given`` stands for the keywords of the functions that :func:`extends` names.

>>> def half(n: int, *, times: float = 0.5, names: Sequence[str] | None = None) -> Answer:
...     '''Return a part.
...
...     Parameters
...     ----------
...     n
...         A number.
...     times
...         The share.
...     '''
...     return Answer({"part": n * times, "names": names}, f"{n * times:g}")
>>> parser = ArgumentParser()
>>> add_options(parser, half)
>>> called(half, parser.parse_args(["3", "--times", "2", "--names", "a,b", "c"])).document
{'part': 6.0, 'names': ('a', 'b', 'c')}
"""

from __future__ import annotations

import builtins
import inspect
import re
import types
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import dpcal

Command = Callable[..., Any]

# Products and quotients of two such numbers are within the range of doubles.
LARGEST = 1e150
NAMES = {
    "settings": ("--set",),
    "output": ("--output", "-o"),
}


@dataclass(frozen=True)
class Answer:
    """Result of a command: a JSON document, the text for a screen, and the exit status."""

    document: Mapping[str, Any]
    text: str
    status: int = 0


def extends(*functions: Command | str, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Return a decorator for a command that takes keywords of other functions by ``**given``.

    A name in dpcal stands for a function that is imported when the options are needed.
    """

    def decorate(command: Command) -> Command:
        vars(command).update(extended=functions, without=without)
        return command

    return decorate


def taken(function: Command, given: dict[str, Any]) -> dict[str, Any]:
    """Remove the keywords of a function from ``given``, and return them."""
    names = [each.name for each in _own(function) if each.name in given]
    return {name: given.pop(name) for name in names}


def add_options(parser: ArgumentParser, command: Command) -> None:
    """Declare the parameters of a command and its usage line."""
    words = [parser.prog]
    for parameter, meaning in _parameters(command):
        action = _add_option(parser, parameter, meaning)
        if not action.option_strings:
            words.append(f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar))
        elif action.required:
            words.append(f"{action.option_strings[0]} {action.metavar}")
    parser.usage = " ".join([*words, "[options]"])


def called(command: Command, options: Namespace) -> Any:
    """Return the answer of a command to parsed options."""
    return command(
        **{each.name: _value(getattr(options, each.name)) for each, _ in _parameters(command)}
    )


def _value(value: Any) -> Any:
    """Return the value of an option; for several words, the values of all words."""
    if not isinstance(value, list):
        return value
    parts = [part for word in value for part in word]
    return dict(parts) if parts and isinstance(parts[0], tuple) else tuple(parts)


class _Names(dict[str, Any]):
    """Names in annotations, looked up in a module; types for checkers only become ``object``."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _own(function: Command) -> list[inspect.Parameter]:
    module = inspect.getmodule(function)
    names = _Names(vars(module) if module else function.__globals__)
    signature = inspect.signature(function, locals=names, eval_str=True)
    return [*signature.parameters.values()]


def _parameters(command: Command) -> list[tuple[inspect.Parameter, str]]:
    """Return arguments, then keywords of extended functions and a command's own, with their texts.

    A command's own keyword takes the place of an extended function's keyword of the same name.
    """
    found = {}
    for each in (*vars(command).get("extended", ()), command):
        function = attrgetter(each)(dpcal) if isinstance(each, str) else each
        meanings = _meanings(function)
        for own in _own(function):
            if own.kind is own.KEYWORD_ONLY or (
                function is command and own.kind is not own.VAR_KEYWORD
            ):
                found[own.name] = own, meanings.get(own.name, "")
    without = vars(command).get("without", ())
    kept = [pair for name, pair in found.items() if name not in without]
    return sorted(kept, key=lambda pair: pair[0].kind is pair[0].KEYWORD_ONLY)


def _sections(function: Command) -> dict[str, str]:
    """Return the parts of a docstring in NumPy's format by their names; the first has none."""
    first, *others = re.split(r"\n\n(\w+)\n-+\n", inspect.getdoc(function) or "")
    return {"": first, **dict(zip(others[::2], others[1::2], strict=True))}


def summary_of(command: Command) -> str:
    """Return the docstring of a command down to its parameters."""
    return _sections(command)[""].replace("``", "")


def examples_of(command: Command) -> tuple[str, ...]:
    """Return the examples of a command's docstring, as a shell takes them."""
    part = _sections(command).get("Examples", "")
    return tuple(" ".join(each.split()) for each in re.split(r"\n(?=\S)", part) if each.strip())


def _meanings(function: Command) -> dict[str, str]:
    """Return the text of each parameter of a docstring in NumPy's format."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", _sections(function).get("Parameters", "")):
        names, _, text = entry.partition("\n")
        words = " ".join(text.split()).replace("``", "").replace("%", "%%")
        words = re.sub(r":\w+:`~?(?:dpcal\.)?([^`]*)`", r"\1", words).rstrip(".")
        found |= dict.fromkeys(names.split(", "), words[:1].lower() + words[1:])
    return found


def _add_option(parser: ArgumentParser, parameter: inspect.Parameter, meaning: str) -> Any:
    """Declare one parameter."""
    name, default = parameter.name, parameter.default
    spelled = NAMES.get(name, (f"--{name.replace('_', '-')}",))
    if isinstance(default, bool):
        words = [f"--no-{name.replace('_', '-')}"] if default else spelled
        how: dict[str, Any] = {"action": f"store_{not default}".lower(), "dest": name}
        return parser.add_argument(*words, **how, help=f"do not {meaning}" if default else meaning)
    needed = default is parameter.empty
    if not (needed or default is None or default == () or "default" in meaning):
        meaning += f" (default: {default})"
    argument = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    how = _kind(parameter.annotation, name, "" if argument else ",")
    how["default"] = None if needed else default
    if choices := how.get("choices"):
        meaning = f"{', '.join(choices)}: {meaning}"
    if not argument:
        return parser.add_argument(*spelled, dest=name, required=needed, **how, help=meaning)
    if not needed:
        how["nargs"] = "?"
    return parser.add_argument(name, **how | {"metavar": name.upper(), "help": meaning})


def _kind(annotation: Any, name: str, mark: str) -> dict[str, Any]:
    """Return the arguments of argparse that turn words into values of a type."""
    several = get_origin(annotation) in (types.UnionType, Union)
    kinds = get_args(annotation) if several else [annotation]
    found: dict[Any, Any] = {get_origin(each) or each: each for each in kinds}
    word = "FILE" if Path in found else name.rpartition("_")[2].upper()
    if Literal in found:
        return {"choices": get_args(found[Literal]), "metavar": word}
    if Mapping in found:
        return {"type": _pairs, "nargs": "+", "action": "extend", "metavar": "NAME=VALUE"}
    if Sequence in found:
        (inner,) = get_args(found[Sequence])
        read = _choice(get_args(inner)) if get_origin(inner) is Literal else READERS[inner]
        return {"type": partial(_several, read, mark), "nargs": "+", "metavar": word}
    for each, read in READERS.items():
        if each in found:
            return {"type": read, "metavar": word}
    raise TypeError(f"{name} must have a type that a word can become, got {annotation!r}.")


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


def fraction(text: str) -> Fraction:
    """Parse an exact number: a decimal such as ``0.3`` or ``1e-3``, or a quotient ``512/60000``."""
    above, slash, below = text.partition("/")
    try:
        return _exact(above.strip()) / (_exact(below.strip()) if slash else 1)
    except (ValueError, ZeroDivisionError):
        raise ArgumentTypeError(
            f"must be a number up to 1e150, or a quotient such as 512/60000, got {text!r}"
        ) from None


def _exact(text: str) -> Fraction:
    """Return a decimal number; one with an exponent such as 1e999999999 would take the memory."""
    size = abs(float(text))
    if not (size == 0 or 1 / LARGEST <= size <= LARGEST):
        raise ValueError(text)
    return Fraction(text) if size else Fraction(0)


def _pairs(text: str) -> list[tuple[str, Any]]:
    """Parse ``NAME=VALUE``; a value that is not a number is a text."""
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        found = float(value)
    except ValueError:
        return [(name, value)]
    exact = found.is_integer() and abs(found) < 1e15
    return [(name, int(found) if exact else found)]


def _several(read: Callable[[str], Any], mark: str, text: str) -> list[Any]:
    """Parse separated values, or one value where there is no separator."""
    texts = text.split(mark) if mark else [text]
    return [read(each.strip()) for each in texts if each.strip()]


def _choice(choices: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ArgumentTypeError(f"must be one of {', '.join(choices)}, got {text!r}")
        return text

    return read


# The first type listed here counts for a union of types.
READERS: Mapping[Any, Callable[[str], Any]] = {
    Path: Path,
    Fraction: fraction,
    float: number,
    int: whole,
    str: str,
}
