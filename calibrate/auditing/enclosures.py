"""Rigorous values: a sympy expression at exact points or over boxes, as an interval.

Two arithmetics, so that one can check the other: balls of python-flint (``Balls``; extra
``certify``) and the intervals of mpmath (``Intervals``), which comes with sympy but knows fewer
functions.

>>> from fractions import Fraction
>>> from sympy import Symbol, sqrt
>>> x = Symbol("x", positive=True)
>>> value = Intervals(53).value(sqrt(x) - x, {x: Fraction(1, 4)})
>>> Intervals.sign(value)
1
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import mpmath
import sympy

__all__ = ["Arithmetic", "Balls", "Intervals", "Undecided", "balls_available", "best"]


class Undecided(ArithmeticError):  # noqa: N818
    """The value is undefined, or the enclosure is too wide to tell."""


class Arithmetic(Protocol):
    """What the prover needs of an interval arithmetic."""

    bits: int

    def value(self, expression: Any, point: Mapping[Any, Any]) -> Any:
        """Return an enclosure of ``expression`` where symbols range over ``point``."""

    def box(self, low: Fraction, high: Fraction) -> Any:
        """Return an enclosure of the interval from ``low`` to ``high``."""

    @staticmethod
    def sign(value: Any) -> int | None:
        """Return -1, 0 or 1, or None when the enclosure holds both signs."""

    @staticmethod
    def text(value: Any) -> str:
        """Return the enclosure in a form people can read."""


class _Walker:
    """Evaluates an expression tree with the operations of a subclass."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def value(self, expression: Any, point: Mapping[Any, Any]) -> Any:
        with self._precision():
            ranges = {symbol: self._leaf(entry) for symbol, entry in point.items()}
            return self._walk(sympy.sympify(expression), ranges)

    def _leaf(self, entry: Any) -> Any:
        return self._rational(Fraction(entry)) if isinstance(entry, (int, Fraction)) else entry

    def _walk(self, node: Any, ranges: Mapping[Any, Any]) -> Any:
        if node.is_Symbol:
            if node not in ranges:
                raise Undecided(f"no value for {node}")
            return ranges[node]
        if node.is_Rational:
            return self._rational(Fraction(int(node.p), int(node.q)))
        if node.is_Float:
            return self._rational(Fraction(float(node)))
        if node.is_Add or node.is_Mul:
            parts = [self._walk(part, ranges) for part in node.args]
            total = parts[0]
            for part in parts[1:]:
                total = total + part if node.is_Add else total * part
            return total
        if node.is_Pow:
            return self._pow(node, ranges)
        if node is sympy.pi or node is sympy.E:
            return self._constant(node)
        return self._call(node, [self._walk(part, ranges) for part in node.args])

    def _pow(self, node: Any, ranges: Mapping[Any, Any]) -> Any:
        base, exponent = node.base, node.exp
        inner = self._walk(base, ranges)
        if exponent.is_Integer:
            power = inner ** abs(int(exponent))
            return power if exponent >= 0 else self._divide(self._rational(Fraction(1)), power)
        if exponent.is_Rational and exponent.q == 2:
            root = self._root(inner) ** abs(int(exponent.p))
            return root if exponent > 0 else self._divide(self._rational(Fraction(1)), root)
        return self._call_named("exp", [self._walk(exponent, ranges) * self._log(inner)])

    def _log(self, value: Any) -> Any:
        if self.sign(value) != 1:
            raise Undecided("logarithm of an enclosure that is not positive")
        return self._call_named("log", [value])

    def _root(self, value: Any) -> Any:
        if self.sign(value) not in (0, 1):
            raise Undecided("root of an enclosure that may be negative")
        return self._call_named("sqrt", [value])

    def _divide(self, top: Any, bottom: Any) -> Any:
        if self.sign(bottom) in (None, 0):
            raise Undecided("division by an enclosure that may be zero")
        return top / bottom

    def _call(self, node: Any, values: list[Any]) -> Any:
        if isinstance(node, sympy.log):
            return self._log(values[0])
        if isinstance(node, (sympy.floor, sympy.ceiling)):
            return self._rational(Fraction(self._step(values[0], isinstance(node, sympy.ceiling))))
        name = type(node).__name__
        if name in ("Max", "Min"):
            return functools.reduce(lambda a, b: self._extremum(name, a, b), values)
        return self._call_named(name, values)

    def _step(self, value: Any, up: bool) -> int:
        low, high = self._ends(value)
        steps = {int(mpmath.ceil(end) if up else mpmath.floor(end)) for end in (low, high)}
        if len(steps) != 1:
            raise Undecided("rounding of an enclosure that holds an integer")
        return steps.pop()

    # -- operations of the arithmetic
    def _precision(self) -> Any: ...
    def _rational(self, number: Fraction) -> Any: ...
    def _constant(self, node: Any) -> Any: ...
    def _call_named(self, name: str, values: list[Any]) -> Any: ...
    def _extremum(self, name: str, left: Any, right: Any) -> Any: ...
    def _ends(self, value: Any) -> Any: ...
    @staticmethod
    def sign(value: Any) -> int | None:
        raise NotImplementedError


class Balls(_Walker):
    """Ball arithmetic of python-flint at a given precision in bits."""

    def __init__(self, bits: int = 128) -> None:
        super().__init__(bits)
        import flint

        self._flint = flint

    def _precision(self) -> Any:
        return self._flint.ctx.workprec(self.bits)

    def _rational(self, number: Fraction) -> Any:
        return self._flint.arb(self._flint.fmpq(number.numerator, number.denominator))

    def _constant(self, node: Any) -> Any:
        return self._flint.arb.pi() if node is sympy.pi else self._flint.arb(1).exp()

    def _call_named(self, name: str, values: list[Any]) -> Any:
        if not values:
            raise Undecided(f"no enclosure of {name}")
        method = {"Abs": "__abs__", "uppergamma": "gamma_upper"}.get(name, name)
        if not hasattr(values[0], method):
            raise Undecided(f"no enclosure of the function {name}")
        if name == "uppergamma":
            return values[1].gamma_upper(values[0])
        result = getattr(values[0], method)(*values[1:])
        if not result.is_finite():
            raise Undecided(f"{name} of the enclosure is not finite")
        return result

    def _extremum(self, name: str, left: Any, right: Any) -> Any:
        return left.max(right) if name == "Max" else left.min(right)

    def _ends(self, value: Any) -> tuple[Any, Any]:
        return tuple(
            mpmath.mpf(end.mid().str(60, radius=False)) for end in (value.lower(), value.upper())
        )

    def box(self, low: Fraction, high: Fraction) -> Any:
        with self._precision():
            return self._rational(low).union(self._rational(high))

    @staticmethod
    def sign(value: Any) -> int | None:
        if not value.is_finite():
            return None
        if value > 0:
            return 1
        if value < 0:
            return -1
        return 0 if value.is_exact() and value.is_zero() else None

    @staticmethod
    def text(value: Any) -> str:
        return str(value.str(12))


class Intervals(_Walker):
    """Interval arithmetic of mpmath at a given precision in bits."""

    def __init__(self, bits: int = 128) -> None:
        super().__init__(bits)
        self._context = mpmath.ctx_iv.MPIntervalContext()
        self._context.prec = bits

    def _precision(self) -> Any:
        return mpmath.workprec(self.bits)

    def _rational(self, number: Fraction) -> Any:
        return self._context.mpf(number.numerator) / self._context.mpf(number.denominator)

    def _constant(self, node: Any) -> Any:
        return +self._context.pi if node is sympy.pi else self._context.exp(self._context.mpf(1))

    def _call_named(self, name: str, values: list[Any]) -> Any:
        if name == "Abs":
            return abs(values[0])
        if name not in ("exp", "log", "sqrt", "sin", "cos"):
            raise Undecided(f"no interval enclosure of the function {name}; python-flint has it")
        return getattr(self._context, name)(values[0])

    def _extremum(self, name: str, left: Any, right: Any) -> Any:
        choose = max if name == "Max" else min
        return self._context.mpf([choose(left.a, right.a), choose(left.b, right.b)])

    def _ends(self, value: Any) -> tuple[Any, Any]:
        return mpmath.mpf(value.a), mpmath.mpf(value.b)

    def box(self, low: Fraction, high: Fraction) -> Any:
        bottom, top = self._rational(low), self._rational(high)
        return self._context.mpf([bottom.a, top.b])

    @staticmethod
    def sign(value: Any) -> int | None:
        if value.a > 0:
            return 1
        if value.b < 0:
            return -1
        return 0 if value.a == 0 and value.b == 0 else None

    @staticmethod
    def text(value: Any) -> str:
        low, high = mpmath.mpf(value.a), mpmath.mpf(value.b)
        return f"[{mpmath.nstr(low, 12)}, {mpmath.nstr(high, 12)}]"


@functools.cache
def balls_available() -> bool:
    """Return whether python-flint can be imported."""
    try:
        import flint  # noqa: F401
    except ImportError:
        return False
    return True


def best(bits: int = 128) -> Any:
    """Return ball arithmetic where installed, else interval arithmetic."""
    return Balls(bits) if balls_available() else Intervals(bits)
