"""Ball arithmetic of python-flint, imported when the first ball is computed.

A ball is a midpoint with a radius, and every operation encloses the exact result. The names
``acb``, ``acb_mat``, ``acb_poly``, ``arb``, ``arb_poly`` and ``ctx`` of this module are those of
python-flint; ``workprec`` sets the precision, for one thread at a time.

>>> from dpcal.accountants.certificates import balls
>>> with balls.workprec(64):
...     third = balls.arb(1) / 3
>>> 3 * third == 1, (3 * third).overlaps(balls.arb(1))
(False, True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcal._internal.precision import workprec

__all__ = ["Ball", "power", "within", "workprec"]

# python-flint has no type annotations.
Ball = Any

_NAMES = ("acb", "acb_mat", "acb_poly", "arb", "arb_poly", "ctx")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import flint

    # Later look-ups find the name without this function.
    globals()[name] = getattr(flint, name)
    return globals()[name]


def within(error: Ball) -> Ball:
    """Return the complex ball of all numbers whose parts have absolute values up to an error."""
    part = __getattr__("arb")(0, error.upper())
    return __getattr__("acb")(part, part)


def power(law: list[Ball], times: int, sum_of: Callable[..., list[Ball]]) -> list[Ball]:
    """Return the law of a sum of ``times`` >= 1 independent values with one law, by squaring."""
    found = law
    for bit in bin(times)[3:]:
        found = sum_of(found, found)
        if bit == "1":
            found = sum_of(found, law)
    return found
