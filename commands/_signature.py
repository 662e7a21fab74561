"""Options of a command: the parameters of its function, explained by its docstring.

A command is a typed function that returns an :class:`Answer`. A parameter with a default is an
option, one without is needed, and one before the star is an argument. A parameter whose type has a
method ``of`` stands for the parameters of that method, one with ``declare`` declares its options,
and ``**given`` is for the keywords of the function that :func:`extends` names.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

__all__ = [
    "Answer",
    "add_options",
    "called",
    "examples_of",
    "extends",
    "flag",
    "summary_of",
    "usage_of",
]

# A product of two such numbers is within the range of doubles, as are their quotients.
LARGEST = 1e150
# Options with other names than their parameters, and former or short names.
NAMES = {
    "settings": ("--set",),
    "output": ("-o", "--output"),
    "max_grad_norm": ("--max-grad-norm", "--max-norm"),
    "accountants": ("--accountants", "--accountant"),
}


@dataclass(frozen=True)
class Answer:
    """What a command returns: a JSON document, the text for a screen, and the exit status."""

    document: Mapping[str, Any]
    text: str
    status: int = 0


def flag(name: str) -> str:
    """Return how a parameter is spelled on the command line."""
    return NAMES.get(name, (f"--{name.replace('_', '-')}",))[-1 if name == "output" else 0]


def extends(
    function: Callable[..., Any], *, without: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of a command whose ``**given`` are keywords of ``function``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        vars(command).update(extended=function, without=without)
        return command

    return decorate


def add_options(parser: ArgumentParser, command: Callable[..., Any]) -> None:
    """Declare the parameters of a command."""
    for parameter, meaning in _parameters(command):
        if hasattr(parameter.annotation, "declare"):
            parameter.annotation.declare(parser)
        else:
            _add_option(parser, parameter, meaning)


def usage_of(parser: ArgumentParser) -> str:
    """Return what a command needs, on a line."""
    words = []
    for each in parser._actions:
        if each.option_strings and each.required:
            words.append(f"{each.option_strings[-1]} {each.metavar}")
        elif not each.option_strings:
            words.append(f"[{each.metavar}]" if each.nargs == "?" else str(each.metavar))
    return " ".join([parser.prog, *words, "[options]"])


def called(command: Callable[..., Any], options: Namespace) -> Any:
    """Return what a command answers to options."""
    given: dict[str, Any] = {}
    for parameter in _own(command):
        if parameter.kind is parameter.VAR_KEYWORD:
            others = [each.name for each, _ in _extended(command)]
            given |= {name: _value(getattr(options, name)) for name in others}
        elif hasattr(parameter.annotation, "of"):
            made = parameter.annotation.of
            given[parameter.name] = called(made, options)
        else:
            given[parameter.name] = _value(getattr(options, parameter.name))
    return command(**given)


def _value(value: Any) -> Any:
    """Return an option's value; of several words the values of all."""
    if isinstance(value, list):
        parts = [part for word in value for part in word]
        return dict(parts) if parts and isinstance(value[0], _Pairs) else tuple(parts)
    return value


class _Names(dict[str, Any]):
    """Names in annotations: those of a module; a type that only checkers load is an object."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _own(function: Callable[..., Any]) -> list[inspect.Parameter]:
    names = _Names(inspect.unwrap(function).__globals__)
    signature = inspect.signature(function, locals=names, eval_str=True)
    return [*signature.parameters.values()]


def _extended(command: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, str]]:
    """Yield the keywords of the extended function that the command does not have itself."""
    own = {*vars(command)["without"], *(parameter.name for parameter in _own(command))}
    for parameter, meaning in _parameters(vars(command)["extended"]):
        if parameter.name not in own and parameter.kind is parameter.KEYWORD_ONLY:
            yield parameter, meaning


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, str]]:
    """Yield the parameters of a function, with what the docstring says of each."""
    meanings = _meanings(inspect.getdoc(function) or "")
    # Keywords of another function stand before the command's own.
    for parameter in sorted(_own(function), key=lambda each: each.kind is each.KEYWORD_ONLY):
        if parameter.kind is parameter.VAR_KEYWORD:
            yield from _extended(function)
        elif hasattr(parameter.annotation, "of"):
            yield from _parameters(parameter.annotation.of)
        else:
            yield parameter, meanings.get(parameter.name, "")


def summary_of(command: Callable[..., Any]) -> str:
    """Return the docstring of a command down to its parameters."""
    return re.split(r"\n\n\w+\n-+\n", inspect.getdoc(command) or "")[0].replace("``", "")


def examples_of(command: Callable[..., Any]) -> tuple[str, ...]:
    """Return the examples of a command's docstring, as a shell takes them."""
    part = (inspect.getdoc(command) or "").partition("\nExamples\n--------\n")[2]
    return tuple(" ".join(each.split()) for each in re.split(r"\n(?=\S)", part) if each.strip())


def _meanings(doc: str) -> dict[str, str]:
    """Return the text on each parameter of a docstring in NumPy's format."""
    _, _, part = doc.partition("\nParameters\n----------\n")
    part = re.split(r"\n\n\w+\n-+\n", part)[0]
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", part):
        names, _, text = entry.partition("\n")
        words = " ".join(text.split()).replace("``", "").replace("%", "%%")
        words = re.sub(r":\w+:`~?(?:dpcal\.)?([^`]*)`", r"\1", words).rstrip(".")
        found |= dict.fromkeys(names.split(", "), words[:1].lower() + words[1:])
    return found


def _add_option(parser: ArgumentParser, parameter: inspect.Parameter, meaning: str) -> None:
    """Declare one parameter."""
    name, default = parameter.name, parameter.default
    needed = default is parameter.empty
    shown = not (needed or default is None or default == () or isinstance(default, bool))
    if shown and "default" not in meaning:
        meaning += f" (default: {default})"
    how: dict[str, Any] = {"help": meaning}
    if isinstance(default, bool):
        option = f"--no-{name.replace('_', '-')}" if default else flag(name)
        how["help"] = f"do not {meaning}" if default else meaning
        parser.add_argument(option, dest=name, action=f"store_{not default}".lower(), **how)
        return
    how |= _kind(parameter.annotation, name)
    if choices := how.get("choices"):
        how["help"] = f"{', '.join(choices)}: {meaning}"
    if not needed:
        how["default"] = default
    if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        if not needed:
            how["nargs"] = "?"
        parser.add_argument(name, **how | {"metavar": name.upper()})
        return
    names = NAMES.get(name, (flag(name),))
    parser.add_argument(*names, dest=name, required=needed, **how)


def _kind(annotation: Any, name: str) -> dict[str, Any]:
    """Return how a word becomes a value of a type."""
    kinds = [annotation]
    if get_origin(annotation) in (types.UnionType, Union):
        kinds = [each for each in get_args(annotation) if each is not type(None)]
    found: dict[Any, Any] = {get_origin(each) or each: each for each in kinds}
    word = "FILE" if Path in found else name.rpartition("_")[2].upper()
    if Literal in found:
        return {"choices": get_args(found[Literal]), "metavar": word}
    if Mapping in found or dict in found:
        return {"type": _pairs, "nargs": "+", "action": "extend", "metavar": "NAME=VALUE"}
    if Sequence in found:
        (inner,) = get_args(found[Sequence])
        if get_origin(inner) is Literal:
            return {"type": _several(_choice(get_args(inner))), "nargs": "+", "metavar": word}
        return {"type": _several(READERS[inner]), "nargs": "+", "metavar": word}
    for each in (Path, Fraction, float, int, str):
        if each in found:
            return {"type": READERS[each], "metavar": word}
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


class _Pairs(list[tuple[str, Any]]):
    """Names with values."""


def pair(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; a value that is no number is a text."""
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        found = float(value)
    except ValueError:
        return name, value
    return name, int(found) if found.is_integer() and abs(found) < 1e15 else found


def _pairs(text: str) -> _Pairs:
    return _Pairs([pair(text)])


def _several(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return a reader of values with commas between them."""
    return lambda text: [read(each.strip()) for each in text.split(",") if each.strip()]


def _choice(choices: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ArgumentTypeError(f"must be one of {', '.join(choices)}, got {text!r}")
        return text

    return read


READERS: Mapping[Any, Callable[[str], Any]] = {
    Path: Path,
    Fraction: fraction,
    float: number,
    int: whole,
    str: str,
}
