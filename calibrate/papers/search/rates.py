"""Proofs and refutations of rates by orders of growth, of each side as a sum in several ways.

>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.claims.notation import line
>>> from dpcal.calibrate.papers.kernel.context import context_of
>>> claim = standalone(line("3*sqrt(n)*log(n) =O n where n in [2, oo]; growth n = 1"))
>>> [way[0] for way in chosen(claim, context_of(claim), {"n": Fraction(9)})][0]
'sqrt(t)*log(t) within t'
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.growth import Order, Orders, outgrows
from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.normal import exact
from dpcal.calibrate.papers.search.goal import signed


def _terms_of(context: Context, side: t.Term) -> list[t.Term]:
    """Return the monomials of a side."""
    normal = context.normal
    return [normal.term({m: v}) for m, v in normal.clear(normal.sum(side)).items()]


def _conjugated(context: Context, side: t.Term) -> list[t.Term]:
    """Return the terms of (P^2 - N^2)/(P + N), where the side is P - N with positive terms."""
    normal = context.normal
    rises, falls = map(normal.term, signed(normal.clear(normal.sum(side))))
    if falls == t.ZERO or rises == t.ZERO:
        return []
    squares = t.minus(t.power(rises, t.number(2)), t.power(falls, t.number(2)))
    return [t.over(term, t.plus(rises, falls)) for term in _terms_of(context, squares)]


def _ways(claim: Claim, context: Context) -> Iterator[list[t.Term]]:
    """Yield ways to write both sides as sums."""
    left, _, right = claim.pairs[0]
    rows = (_terms_of(context, left), _conjugated(context, left), [left])
    for sides in itertools.product(rows, (_terms_of(context, right), [right])):
        if all(sides):
            yield [("add", *side) for side in sides]


def chosen(
    claim: Claim, context: Context, point: Mapping[str, Fraction]
) -> Iterator[tuple[str, list[t.Term]]]:
    """Yield sums of both sides with the largest right term at a point, and the comparison."""
    orders = Orders(context, claim.parts["growth"])
    for sums in _ways(claim, context):
        try:
            below = [orders.of(row, exactly=False) for row in sums[0][1:]]
            above = [orders.of(row, exactly=True) for row in sums[1][1:]]
        except t.Undecided:
            continue
        best = max(above, key=lambda order: (exact(order[0], point) or Fraction(0), order[1]))
        places = [t.number(above.index(best))] * len(below)
        pairs = sorted({f"{_name(order)} within {_name(best)}" for order in below})
        yield ", ".join(pairs), [*sums, *places]


def _name(order: Order) -> str:
    size, logs = order
    parts = [t.power(t.symbol("t"), size)] if size != t.ZERO else []
    parts += [t.power(("log", t.symbol("t")), t.number(logs))] if logs else []
    return show(t.times(*parts))


def outgrown(
    claim: Claim, context: Context, point: Mapping[str, Fraction]
) -> Iterator[tuple[str, list[t.Term]]]:
    """Yield sums of both sides with a left term that outgrows the right side, and this term."""
    orders = Orders(context, claim.parts["growth"])
    for sums in _ways(claim, context):
        for k, row in enumerate(sums[0][1:]):
            given: list[Any] = [*sums, t.number(k)]
            with suppress(t.Undecided):
                if outgrows(claim, given, context, point):
                    powers = [orders.of(other, False)[0] for other in sums[1][1:]]
                    gaps = (t.minus(orders.of(row, True)[0], power) for power in powers)
                    by = min(exact(gap, point) or Fraction(0) for gap in gaps)
                    more = f"the power {by}" if by else "a logarithm"
                    yield f"{show(row)} grows by {more}", given
