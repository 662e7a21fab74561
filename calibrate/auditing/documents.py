"""Sympy expressions as JSON lists and back, without evaluating text: evidence may come from anyone.

>>> from sympy import Symbol, sqrt
>>> x = Symbol("x", positive=True)
>>> encode(2 * sqrt(x))
['Mul', ['Rational', '2'], ['Pow', ['Symbol', 'x'], ['Rational', '1/2']]]
>>> decode(encode(2 * sqrt(x)), {x}) == 2 * sqrt(x)
True
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

__all__ = ["decode", "encode"]

_FUNCTIONS: dict[str, Any] = {
    "Add": sympy.Add,
    "Mul": sympy.Mul,
    "Pow": sympy.Pow,
    "Max": sympy.Max,
    "Min": sympy.Min,
    "Abs": sympy.Abs,
    **{
        name: getattr(sympy, name)
        for name in (
            "exp",
            "log",
            "sin",
            "cos",
            "erf",
            "erfc",
            "floor",
            "ceiling",
            "gamma",
            "uppergamma",
        )
    },
}
_CONSTANTS: dict[str, Any] = {"pi": sympy.pi, "E": sympy.E, "oo": sympy.oo}


def encode(expression: Any) -> list[Any]:
    """Return the expression as nested lists of strings."""
    expression = sympy.sympify(expression)
    if expression.is_Symbol:
        return ["Symbol", str(expression)]
    if expression.is_Rational:
        return ["Rational", str(expression)]
    for name, constant in _CONSTANTS.items():
        if expression == constant:
            return [name]
    name = type(expression).__name__
    if name not in _FUNCTIONS:
        raise ValueError(f"expression must be built from known functions, got {name}.")
    return [name, *(encode(argument) for argument in expression.args)]


def decode(document: Any, symbols: Iterable[Any]) -> Any:
    """Return the expression of :func:`encode`, with symbols looked up by name.

    Raises
    ------
    ValueError
        If the document is not such a list, or names a symbol or function that is not known.
    """
    names = {str(symbol): symbol for symbol in symbols}
    return _decode(document, names)


def _decode(document: Any, names: dict[str, Any]) -> Any:
    if not isinstance(document, list) or not document or not isinstance(document[0], str):
        raise ValueError(f"expression must be a list that starts with a name, got {document!r}.")
    head, *rest = document
    if head == "Symbol" and len(rest) == 1 and rest[0] in names:
        return names[rest[0]]
    if head == "Rational" and len(rest) == 1 and _is_fraction(rest[0]):
        return sympy.Rational(rest[0])
    if head in _CONSTANTS and not rest:
        return _CONSTANTS[head]
    if head in _FUNCTIONS and rest:
        return _FUNCTIONS[head](*(_decode(part, names) for part in rest))
    raise ValueError(f"expression must use known symbols and functions, got {document!r}.")


def _is_fraction(text: Any) -> bool:
    parts = str(text).removeprefix("-").split("/")
    return len(parts) in (1, 2) and all(part.isdecimal() for part in parts)
