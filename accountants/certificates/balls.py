"""Ball arithmetic of python-flint, imported when the first ball is computed.

A ball is a midpoint with a radius, and every operation encloses the exact result. The names
``acb``, ``acb_mat``, ``acb_poly``, ``arb`` and ``arb_poly`` of this module are those of
python-flint; ``workprec`` sets the precision, for one thread at a time.

>>> from dpcal.accountants.certificates import balls
>>> with balls.workprec(64):
...     third = balls.arb(1) / 3
>>> 3 * third == 1, (3 * third).overlaps(balls.arb(1))
(False, True)
"""

from __future__ import annotations

from typing import Any

from dpcal._precision import workprec

__all__ = ["Ball", "probability", "workprec"]

# python-flint has no type annotations.
Ball = Any

_NAMES = ("acb", "acb_mat", "acb_poly", "arb", "arb_poly")
# Relative radius of the balls around rounded doubles. A quotient has a relative error of 2^-53, a
# sum of weights a few of them.
_ROUNDING = 2.0**-50


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import flint

    # Later look-ups find the name without this function.
    globals()[name] = getattr(flint, name)
    return globals()[name]


def probability(value: float, rounded: bool) -> Ball:
    """Return a probability as a ball.

    Parameters
    ----------
    value
        The probability, as a double.
    rounded
        Whether the double is a quotient or a sum that was rounded. The ball then has a radius that
        holds the exact value; otherwise it is the double itself.
    """
    arb = __getattr__("arb")
    return arb(value, abs(value) * _ROUNDING) if rounded else arb(value)
