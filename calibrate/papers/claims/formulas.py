"""Conversion of formulas: text and sympy expressions to terms, and terms back.

Text is parsed once and never evaluated, so both sides of a claim stay as they are printed.

>>> show(parse("(x**2 - 1)/(x - 1)"))
'(x**2 - 1)/(x - 1)'
>>> to_sympy(parse("sqrt(8*x)"), {"x": "+"})
2*sqrt(2)*sqrt(x)
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sympy

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.normal import exact

_HALF = Fraction(1, 2)
_TEXT_NAMES = {"max": "Max", "min": "Min", "abs": "Abs"}
_NAMES = {text: head for head, text in _TEXT_NAMES.items()}
_SYMPY = {"add": "Add", "mul": "Mul", "pow": "Pow", **_TEXT_NAMES}
_OPERATIONS: dict[type, Callable[[t.Term, t.Term], t.Term]] = {
    ast.Add: t.plus,
    ast.Sub: t.minus,
    ast.Mult: t.times,
    ast.Div: t.over,
    ast.Pow: t.power,
}


@functools.lru_cache(maxsize=8192)
def parse(text: str) -> t.Term:
    """Return the term of a text in Python's notation.

    Parameters
    ----------
    text
        Built from names, numbers, ``+ - * / **``, ``sqrt exp log Max Min Abs floor ceiling erf
        erfc sin cos gamma uppergamma`` and ``pi``. Decimals are exact: 0.1 is 1/10.

    Raises
    ------
    ValueError
        If the text is not such a formula.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"formula must be in Python's notation, got {text!r}.") from error
    return _node(tree.body, text)


def _node(node: ast.expr, text: str) -> t.Term:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _node(node.left, text), _node(node.right, text)
        if isinstance(node.op, ast.Pow):
            right = as_number(right)
        return folded(_OPERATIONS[type(node.op)](left, right), left, right, type(node.op))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = _node(node.operand, text)
        return t.negative(inner) if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return t.number(Fraction(ast.get_source_segment(text.strip(), node) or ""))
    if isinstance(node, ast.Name):
        return ("pi",) if node.id == "pi" else t.symbol(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, [_node(part, text) for part in node.args], text)
    raise ValueError(f"formula must use names, numbers and known functions, got {text!r}.")


def folded(term: t.Term, left: t.Term, right: t.Term, operation: type) -> t.Term:
    """Return a quotient or a power of two numbers as one number, as in 2/3."""
    if left[0] != "num" or right[0] != "num":
        return term
    a, b = left[1], right[1]
    if operation is ast.Div and b != 0:
        return t.number(a / b)
    if operation is ast.Pow and b.denominator == 1 and abs(b) < 200 and (a != 0 or b > 0):
        return t.number(a ** int(b))
    return term


def as_number(term: t.Term) -> t.Term:
    """Return a term with a rational value as this number; others stay as they are."""
    value = exact(term, {})
    return term if value is None else t.number(value)


def _call(name: str, arguments: list[t.Term], text: str) -> t.Term:
    if name == "sqrt" and len(arguments) == 1:
        return t.power(arguments[0], t.number(_HALF))
    head = _NAMES.get(name, name)
    low, high = t.ARITY.get(head, (1, 0))
    if head in ("add", "mul", "pow") or not low <= len(arguments) <= high:
        raise ValueError(f"formula must use known functions, got {name} in {text!r}.")
    return (head, *arguments)


_SUM, _PRODUCT, _POWER, _ATOM = range(4)


def show(term: t.Term) -> str:
    """Return a term as text that :func:`parse` reads."""
    return _show(term)[0]


def _show(term: t.Term) -> tuple[str, int]:
    head = term[0]
    if head == "num":
        value = term[1]
        level = _ATOM if value.denominator == 1 and value >= 0 else _PRODUCT
        return str(value), level if value >= 0 else _SUM
    if head in ("sym", "pi"):
        return str(term[-1]), _ATOM
    if head == "add":
        return _show_sum(term), _SUM
    if head == "mul":
        return _show_product(term)
    if head == "pow":
        return _show_power(term)
    inside = ", ".join(show(part) for part in term[1:])
    return f"{_TEXT_NAMES.get(head, head)}({inside})", _ATOM


def _show_sum(term: t.Term) -> str:
    text = ""
    for part in term[1:]:
        piece, level = _show(part)
        if text and level == _SUM and part[0] == "add":
            piece = f"({piece})"
        text += f" - {piece[1:]}" if text and piece[0] == "-" else f" + {piece}" if text else piece
    return text


def _show_product(term: t.Term) -> tuple[str, int]:
    sign = ""
    tops: list[str] = []
    bottoms: list[str] = []
    for part in term[1:]:
        if part == t.number(-1):
            sign = "" if sign else "-"
        elif part[0] == "pow" and part[2][0] == "num" and part[2][1] < 0:
            bottoms.append(_wrapped(t.power(part[1], t.number(-part[2][1])), _POWER))
        else:
            tops.append(_wrapped(part, _PRODUCT if not tops else _POWER))
    text = sign + ("*".join(tops) or "1") + "".join(f"/{bottom}" for bottom in bottoms)
    return text, _SUM if sign else _PRODUCT


def _show_power(term: t.Term) -> tuple[str, int]:
    base, exponent = term[1:]
    if exponent == t.number(_HALF):
        return f"sqrt({show(base)})", _ATOM
    if exponent[0] == "num" and exponent[1] < 0:
        return f"1/{_wrapped(t.power(base, t.number(-exponent[1])), _POWER)}", _PRODUCT
    return f"{_wrapped(base, _ATOM)}**{_wrapped(exponent, _ATOM)}", _POWER


def _wrapped(term: t.Term, least: int) -> str:
    text, level = _show(term)
    return text if level >= least else f"({text})"


def term_of(value: Any) -> t.Term:
    """Return a text, a number or a term as a term."""
    if isinstance(value, tuple):
        return value
    return parse(value) if isinstance(value, str) else t.number(value)


def to_sympy(term: t.Term, signs: Mapping[str, str], evaluate: bool = True) -> Any:
    """Return a term as a sympy expression with positive, nonnegative or real symbols."""
    head = term[0]
    if head == "num":
        return sympy.Rational(term[1].numerator, term[1].denominator)
    if head == "sym":
        known = {"+": "positive", "0+": "nonnegative"}.get(signs.get(term[1], "?"), "real")
        return sympy.Symbol(term[1], **{known: True})
    if head == "pi":
        return sympy.pi
    parts = [to_sympy(part, signs, evaluate) for part in term[1:]]
    return getattr(sympy, _SYMPY.get(str(head), str(head)))(*parts, evaluate=evaluate)


def to_latex(term: t.Term) -> str:
    """Return a term as LaTeX, as it is written."""
    return str(sympy.latex(to_sympy(term, {}, evaluate=False)))
