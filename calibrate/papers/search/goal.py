"""A goal of the search, and the steps that strategies return.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> goal = Goal(Context({"x": "+"}), parse("x - 1"), False)
>>> goal.inside(parse("x"), strict=True, deeper=2).depth
2
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.normal import Sum
from dpcal.calibrate.papers.kernel.rules import bounds
from dpcal.calibrate.papers.kernel.terms import Term, encode

Proof = dict[str, Any]
TERMS: Proof = {"rule": "terms"}


class Goal(NamedTuple):
    """A term that is nonnegative, or positive, where facts hold.

    Parameters
    ----------
    context
        The facts.
    term
        The term.
    strict
        Whether it must be positive.
    depth
        Depth of the strategies that lead to this goal.
    """

    context: Context
    term: Term
    strict: bool
    depth: int = 0

    def inside(self, term: Term, strict: bool, deeper: int, context: Context | None = None) -> Goal:
        """Return a goal of a strategy for this one."""
        return Goal(context or self.context, term, strict, self.depth + deeper)

    def cleared(self) -> Sum:
        """Return the normal form of the term, without denominators that are sums."""
        normal = self.context.normal
        return normal.clear(normal.sum(self.term))


def signed(sides: Sum) -> tuple[Sum, Sum]:
    """Return the positive part of a sum, and the opposite of the negative one."""
    rises = {m: v for m, v in sides.items() if v > 0}
    return rises, {m: -v for m, v in sides.items() if v < 0}


def product(*rows: tuple[Term, Proof]) -> Proof:
    """Return the step from factors to their product."""
    return {"rule": "product", "factors": [[encode(part), proof] for part, proof in rows]}


def gap(of: Term, index: int = 0) -> tuple[Term, Proof]:
    """Return a known bound of a function as a term that is nonnegative, with its step."""
    return bounds(of)[index][0], {"rule": "bound", "of": encode(of), "index": index}


def exponential(low: Term, high: Term, order: Term, proof: Proof) -> Proof:
    """Return the step from an order, which bounds the logarithms' difference, to high - low."""
    ends = {"low": encode(low), "high": encode(high), "order": encode(order)}
    return {"rule": "exponential", **ends, "proof": proof}


def total(*rows: tuple[Term, Proof]) -> Proof:
    """Return the step from parts to their sum."""
    return {"rule": "sum", "parts": [[encode(part), proof] for part, proof in rows]}
