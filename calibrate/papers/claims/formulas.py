"""Conversion of formulas: text and sympy expressions to terms, and terms back.

Text is parsed once and never evaluated, so both sides of a claim stay as they are printed.

>>> show(parse("(x**2 - 1)/(x - 1)"))
'(x**2 - 1)/(x - 1)'
>>> relation("2*sqrt(x*y) <= x + y")[1]
'<='
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

from dpcal.calibrate.papers.kernel.normal import exact
from dpcal.calibrate.papers.kernel.terms import (
    ARITY,
    Term,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    symbol,
    times,
)

__all__ = [
    "from_sympy",
    "gaussian_delta",
    "parse",
    "relation",
    "show",
    "term_of",
    "to_latex",
    "to_sympy",
]

_HALF = Fraction(1, 2)
_NAMES = {"Max": "max", "Min": "min", "Abs": "abs"}
_TEXT_NAMES = {"max": "Max", "min": "Min", "abs": "Abs"}
_SYMPY: dict[str, Any] = {
    "max": sympy.Max,
    "min": sympy.Min,
    "abs": sympy.Abs,
    **{
        name: getattr(sympy, name)
        for name in (
            "exp",
            "log",
            "floor",
            "ceiling",
            "erf",
            "erfc",
            "sin",
            "cos",
            "gamma",
            "uppergamma",
        )
    },
}
_OPERATIONS: dict[type, Callable[[Term, Term], Term]] = {
    ast.Add: plus,
    ast.Sub: minus,
    ast.Mult: times,
    ast.Div: over,
    ast.Pow: power,
}
_COMPARISONS: dict[type, str] = {
    ast.LtE: "<=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.Eq: "=",
}


# -------------------------------------------------------------------------------------------- text


@functools.lru_cache(maxsize=8192)
def parse(text: str) -> Term:
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


def relation(text: str) -> tuple[Term, str, Term]:
    """Return left side, relation (``<=``, ``<``, ``=`` or ``=O``) and right side of a text."""
    sign = next((mark for mark in ("=O~", "=O") if mark in text), "")
    if sign:
        left, right = text.split(sign)
        return parse(left), sign, parse(right)
    plain = text if "==" in text else _single_equals(text)
    try:
        node = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"relation must be in Python's notation, got {text!r}.") from error
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise ValueError(f"relation must have one of <=, <, >=, >, =, =O, got {text!r}.")
    mark = _COMPARISONS.get(type(node.ops[0]), "")
    sides = _node(node.left, plain), _node(node.comparators[0], plain)
    if not mark:
        raise ValueError(f"relation must have one of <=, <, >=, >, =, =O, got {text!r}.")
    if mark in (">=", ">"):
        return sides[1], "<" + mark[1:], sides[0]
    return sides[0], mark, sides[1]


def _single_equals(text: str) -> str:
    for mark in ("<=", ">="):
        if mark in text:
            return text
    return text.replace("=", "==")


def _node(node: ast.expr, text: str) -> Term:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _node(node.left, text), _node(node.right, text)
        if isinstance(node.op, ast.Pow):
            right = _number(right)
        return folded(_OPERATIONS[type(node.op)](left, right), left, right, type(node.op))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = _node(node.operand, text)
        return negative(inner) if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return number(Fraction(ast.get_source_segment(text.strip(), node) or ""))
    if isinstance(node, ast.Name):
        return ("pi",) if node.id == "pi" else symbol(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, [_node(part, text) for part in node.args], text)
    raise ValueError(f"formula must use names, numbers and known functions, got {text!r}.")


def folded(term: Term, left: Term, right: Term, operation: type) -> Term:
    """Return a quotient or a power of two numbers as one number, as in 2/3."""
    if left[0] != "num" or right[0] != "num":
        return term
    a, b = left[1], right[1]
    if operation is ast.Div and b != 0:
        return number(a / b)
    if operation is ast.Pow and b.denominator == 1 and abs(b) < 200 and (a != 0 or b > 0):
        return number(a ** int(b))
    return term


def _number(term: Term) -> Term:
    """Return an exponent without symbols as one number."""
    value = exact(term, {})
    return term if value is None else number(value)


def _call(name: str, arguments: list[Term], text: str) -> Term:
    if name == "sqrt" and len(arguments) == 1:
        return power(arguments[0], number(_HALF))
    if name == "Rational" and len(arguments) == 2:
        return number(arguments[0][1] / arguments[1][1])
    head = _NAMES.get(name, name)
    low, high = ARITY.get(head, (1, 0))
    if head in ("add", "mul", "pow") or not low <= len(arguments) <= high:
        raise ValueError(f"formula must use known functions, got {name} in {text!r}.")
    return (head, *arguments)


_SUM, _PRODUCT, _POWER, _ATOM = range(4)


def show(term: Term) -> str:
    """Return a term as text that :func:`parse` reads."""
    return _show(term)[0]


def _show(term: Term) -> tuple[str, int]:
    head = term[0]
    if head == "num":
        value = term[1]
        level = _ATOM if value.denominator == 1 and value >= 0 else _PRODUCT
        return str(value), level if value >= 0 else _SUM
    if head == "sym":
        return str(term[1]), _ATOM
    if head == "pi":
        return "pi", _ATOM
    if head == "add":
        return _show_sum(term), _SUM
    if head == "mul":
        return _show_product(term)
    if head == "pow":
        return _show_power(term)
    inside = ", ".join(show(part) for part in term[1:])
    return f"{_TEXT_NAMES.get(head, head)}({inside})", _ATOM


def _show_sum(term: Term) -> str:
    text = ""
    for part in term[1:]:
        piece, level = _show(part)
        if text and level == _SUM and part[0] == "add":
            piece = f"({piece})"
        text += f" - {piece[1:]}" if text and piece[0] == "-" else f" + {piece}" if text else piece
    return text


def _show_product(term: Term) -> tuple[str, int]:
    sign = ""
    tops: list[str] = []
    bottoms: list[str] = []
    for part in term[1:]:
        if part == number(-1):
            sign = "" if sign else "-"
        elif part[0] == "pow" and part[2][0] == "num" and part[2][1] < 0:
            bottoms.append(_wrapped(power(part[1], number(-part[2][1])), _POWER))
        else:
            tops.append(_wrapped(part, _PRODUCT if not tops else _POWER))
    text = sign + ("*".join(tops) or "1") + "".join(f"/{bottom}" for bottom in bottoms)
    return text, _SUM if sign else _PRODUCT


def _show_power(term: Term) -> tuple[str, int]:
    base, exponent = term[1:]
    if exponent == number(_HALF):
        return f"sqrt({show(base)})", _ATOM
    if exponent[0] == "num" and exponent[1] < 0:
        return f"1/{_wrapped(power(base, number(-exponent[1])), _POWER)}", _PRODUCT
    return f"{_wrapped(base, _ATOM)}**{_wrapped(exponent, _ATOM)}", _POWER


def _wrapped(term: Term, least: int) -> str:
    text, level = _show(term)
    return text if level >= least else f"({text})"


# ------------------------------------------------------------------------------------------- sympy


def from_sympy(expression: Any) -> Term:
    """Return a sympy expression as a term.

    Raises
    ------
    ValueError
        For a floating-point number, a piecewise expression, or an unknown function.
    """
    expression = sympy.sympify(expression)
    if expression.is_Symbol:
        return symbol(str(expression))
    if expression.is_Rational:
        return number(Fraction(int(expression.p), int(expression.q)))
    if expression is sympy.pi:
        return ("pi",)
    if expression is sympy.E:
        return ("exp", number(1))
    if expression.is_Pow:
        base, exponent = (from_sympy(part) for part in expression.args)
        return power(base, exponent)
    name = type(expression).__name__
    head = {"Add": "add", "Mul": "mul", **_NAMES}.get(name, name)
    if expression.is_Float:
        raise ValueError(
            f"number must be exact, as in Rational(1, 10), got the float {float(expression)!r}."
        )
    if head not in ARITY or head == "pi":
        raise ValueError(f"formula must be built from known functions, got {name}.")
    return (head, *(from_sympy(part) for part in expression.args))


def term_of(value: Any) -> Term:
    """Return a text, a number, a sympy expression or a term as a term."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return number(value)
    return from_sympy(value)


def to_sympy(term: Term, signs: Mapping[str, str], evaluate: bool = True) -> Any:
    """Return a term as a sympy expression whose symbols are positive, nonnegative or real."""
    head = term[0]
    if head == "num":
        return sympy.Rational(term[1].numerator, term[1].denominator)
    if head == "sym":
        return sympy_symbol(term[1], signs.get(term[1], "?"))
    if head == "pi":
        return sympy.pi
    parts = [to_sympy(part, signs, evaluate) for part in term[1:]]
    if head in ("add", "mul"):
        return (sympy.Add if head == "add" else sympy.Mul)(*parts, evaluate=evaluate)
    if head == "pow":
        return sympy.Pow(*parts, evaluate=evaluate)
    return _SYMPY[head](*parts, evaluate=evaluate)


def sympy_symbol(name: str, sign: str) -> Any:
    """Return the sympy symbol of a name and a sign."""
    if sign == "+":
        return sympy.Symbol(name, positive=True)
    return sympy.Symbol(name, nonnegative=True) if sign == "0+" else sympy.Symbol(name, real=True)


def to_latex(term: Term) -> str:
    """Return a term as LaTeX, as it is written."""
    return str(sympy.latex(to_sympy(term, {}, evaluate=False)))


def gaussian_delta(epsilon: Term, mu: Term) -> Term:
    """Return the delta of mu-Gaussian-DP at epsilon (Dong, Roth and Su 2022, Corollary 2.13)."""
    half, ratio = over(mu, number(2)), over(epsilon, mu)
    first = _normal_tail(minus(ratio, half))
    return minus(first, times(("exp", epsilon), _normal_tail(plus(ratio, half))))


def _normal_tail(x: Term) -> Term:
    return times(number("1/2"), ("erfc", times(x, power(number(2), number("-1/2")))))
