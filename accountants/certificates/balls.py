"""Ball arithmetic of python-flint.

A ball is a midpoint with a radius, and every operation encloses the exact result. The names
``acb``, ``acb_mat``, ``acb_poly``, ``arb``, ``arb_poly`` and ``ctx`` of this module come from
python-flint; ``workprec`` sets the precision, for one thread at a time.

>>> with workprec(64):
...     third = arb(1) / 3
>>> 3 * third == 1, (3 * third).overlaps(arb(1))
(False, True)
"""

from __future__ import annotations

from typing import Any

from flint import acb, acb_mat, acb_poly, arb, arb_poly, ctx

from dpcal._internal.precision import workprec

__all__ = ["Ball", "acb", "acb_mat", "acb_poly", "arb", "arb_poly", "ctx", "within", "workprec"]

# python-flint has no type annotations.
Ball = Any


def within(error: Ball) -> Ball:
    """Return the complex ball of all numbers with parts of absolute values up to an error."""
    part = arb(0, error.upper())
    return acb(part, part)
