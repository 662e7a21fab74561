"""How answers are printed: intervals rounded outward, JSON that any parser reads.

>>> interval(0.99999951, 0.99999952, digits=6)
'[0.999999, 1.000000]'
>>> interval(3.251e-7, 3.252e-7, digits=3)
'[3.25e-7, 3.26e-7]'
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcal.accountants import Delta, Epsilon


def dump(document: Mapping[str, Any]) -> str:
    """Return a document as JSON; numbers that JSON lacks become the strings "inf" and "nan"."""
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def interval(lower: float, upper: float, *, digits: int = 10) -> str:
    """Return "[lower, upper]" to ``digits`` significant digits, rounded outward."""
    return f"[{_rounded(lower, digits, ROUND_FLOOR)}, {at_most(upper, digits=digits)}]"


def at_most(upper: float, *, digits: int = 4) -> str:
    """Return an upper bound to ``digits`` significant digits, rounded up."""
    return _rounded(upper, digits, ROUND_CEILING)


def at_least(lower: float, *, digits: int) -> str:
    """Return a lower bound to ``digits`` significant digits, rounded down."""
    return _rounded(lower, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, mode: str) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exact = Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=mode)
    if 1e-4 <= abs(value) < 1e6:
        return f"{rounded:f}"
    return f"{rounded:.{digits - 1}e}"


def with_interval(
    value: float | None,
    error: float | None,
    digits: str,
    *,
    most: float = math.inf,
    hidden: str = "-",
) -> str:
    """Return an estimate in [0, most] with its interval of 95 percent, two standard errors wide.

    ``hidden`` is returned if the interval carries no information: no error is known, the error
    exceeds the value, or the interval is as wide as [0, most].

    >>> with_interval(0.99, 0.0213, ".3f", most=1.0), with_interval(1.0, 0.45, ".3f", most=1.0)
    ('0.990 [0.947, 1.000]', '-')
    """
    if value is None or error is None or error > abs(value) or 4 * error >= most:
        return hidden
    if not error:
        return f"{value:{digits}}"
    low, high = max(0.0, value - 2 * error), min(most, value + 2 * error)
    return f"{value:{digits}} [{low:{digits}}, {high:{digits}}]"


def answer(name: str, bound: Epsilon | Delta, at: str) -> str:
    """Return the interval and the provenance of an answer, on two lines."""
    return (
        f"{name} in {interval(bound.lower, bound.upper)} at {at}\n"
        f"accountant {bound.accountant} ({bound.method}), "
        f"neighboring relation {bound.neighboring_relation}"
    )
