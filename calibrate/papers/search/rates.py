"""Proofs and refutations of rates by orders of growth, of each side as a sum in several ways.

>>> from dpcal.calibrate.papers.claims.claims import Rate
>>> from dpcal.calibrate.papers.claims.ranges import Range
>>> from dpcal.calibrate.papers.prover import prove
>>> claim = Rate("c", "3*sqrt(n)*log(n) =O n", growth={"n": 1}, domain={"n": Range(Fraction(2))})
>>> prove(claim).reason
'with n = t, each term on the left is within one on the right: sqrt(t) log(t) within t'
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.claims import Rate, SoftRate
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.growth import Order, Orders
from dpcal.calibrate.papers.kernel.context import Context, context_of
from dpcal.calibrate.papers.kernel.normal import exact
from dpcal.calibrate.papers.kernel.terms import (
    ZERO,
    Term,
    Undecided,
    encode,
    minus,
    number,
    over,
    plus,
    power,
)
from dpcal.calibrate.papers.search.engine import Search

__all__ = ["outgrown", "within"]

Evidence = dict[str, Any]
Sums = tuple[list[Term], list[Term]]


def _terms_of(context: Context, side: Term) -> list[Term]:
    """Return the monomials of a side."""
    normal = context.normal
    return [normal.term({m: v}) for m, v in normal.clear(normal.sum(side)).items()]


def _conjugated(context: Context, side: Term) -> list[Term]:
    """Return the terms of (P^2 - N^2)/(P + N), where the side is P - N with positive terms."""
    normal = context.normal
    total = normal.clear(normal.sum(side))
    rises = normal.term({m: v for m, v in total.items() if v > 0})
    falls = normal.term({m: -v for m, v in total.items() if v < 0})
    if falls == ZERO or rises == ZERO:
        return []
    squares = minus(power(rises, number(2)), power(falls, number(2)))
    return [over(term, plus(rises, falls)) for term in _terms_of(context, squares)]


def _ways(claim: Rate, context: Context) -> Iterator[Sums]:
    """Yield ways to write both sides as sums."""
    rows = (_terms_of(context, claim.left), _conjugated(context, claim.left), [claim.left])
    others = (_terms_of(context, claim.right), [claim.right])
    for lefts, rights in itertools.product(rows, others):
        if lefts and rights:
            yield lefts, rights


def _same(claim: Rate, context: Context, search: Search, sums: Sums) -> Evidence:
    """Return the terms of both sides, and that they add up to them."""
    shown: Evidence = {"same": []}
    for name, side, rows in zip(("left", "right"), claim.expressions(), sums, strict=True):
        defined = search.definedness(context, minus(side, plus(*rows))) or ()
        shown["same"].append({"rule": "equal", "defined": list(defined)})
        shown[name] = [encode(row) for row in rows]
    return shown


def within(claim: Rate, seconds: float) -> tuple[str, Evidence] | None:
    """Return how the terms on the left are within those on the right, or None."""
    context, search = context_of(claim.before()), Search(seconds)
    for sums in _ways(claim, context):
        orders = Orders(context, claim.growth)
        try:
            below = [orders.of(row, exactly=False) for row in sums[0]]
            above = [orders.of(row, exactly=True) for row in sums[1]]
        except Undecided:
            continue
        rows = [_covering(claim, context, search, here, above) for here in below]
        if None not in rows:
            pairs = {
                f"{_name(here)} within {_name(above[row[0]])}"
                for here, row in zip(below, rows, strict=True)
                if row is not None
            }
            t = ("sym", "t")
            sizes = ", ".join(f"{s} = {show(power(t, e))}" for s, e in claim.growth.items())
            said = f"each term on the left is within one on the right: {', '.join(sorted(pairs))}"
            reason = f"with {sizes}, {said}"
            return reason, {**_same(claim, context, search, sums), "within": rows}
    return None


def _covering(
    claim: Rate, context: Context, search: Search, here: Order, above: list[Order]
) -> list[Any] | None:
    """Return the place of an order that is not below another, and a proof of it."""
    for k, (size, logs) in enumerate(above):
        enough = here[1] <= logs or isinstance(claim, SoftRate)
        for strict in (False, True) if enough else (True,):
            step = search.inequality(context, minus(size, here[0]), strict)
            if step is not None:
                return [k, strict, step]
    return None


def _name(order: Order) -> str:
    size, logs = order
    parts = [show(power(("sym", "t"), size))] if size != ZERO else []
    parts += [show(power(("log", ("sym", "t")), number(logs)))] if logs else []
    return " ".join(parts) or "1"


def outgrown(claim: Rate, point: dict[str, Fraction]) -> tuple[str, Evidence] | None:
    """Return a positive term on the left that outgrows the right side at a point, or None."""
    context, soft = context_of(claim.before()), isinstance(claim, SoftRate)
    for sums in _ways(claim, context):
        orders = Orders(context, claim.growth)
        try:
            heres = [orders.of(row, exactly=True) for row in sums[0]]
            above = [orders.of(row, exactly=False) for row in sums[1]]
        except Undecided:
            continue
        for k, here in enumerate(heres):
            gaps = [exact(minus(here[0], other[0]), point) for other in above]
            more = [here[1] > other[1] and not soft for other in above]
            rows = list(zip(gaps, more, strict=True))
            if all(gap is not None and (gap > 0 or (gap == 0 and logs)) for gap, logs in rows):
                by = min(gap for gap in gaps if gap is not None)
                word = f"the power {by}" if by else "a logarithm"
                reason = f"the term {show(sums[0][k])} grows by {word} more than claimed"
                return reason, {"term": k, **_same(claim, context, Search(1.0), sums)}
    return None
