"""The search for proofs: clever, and not trusted.

:class:`Search` tries strategies in turn and returns a tree of steps that
:mod:`dpcal.calibrate.papers.search.context` checks, or None.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> from dpcal.calibrate.papers.search.context import Context
>>> Search(10.0).inequality(Context({"x": "+"}), parse("x - log(1 + x)"), False)["rule"]
'derivative'
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import sympy

from dpcal.calibrate.papers.kernel.rules import obligations
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    Undecided,
    encode,
    minus,
    negative,
    number,
    plus,
    replace,
    subterms,
    symbols,
)
from dpcal.calibrate.papers.search.boxes import by_balls, by_cut, by_few_boxes, by_simpler_balls
from dpcal.calibrate.papers.search.context import (
    Context,
    chosen_case,
    enclosed_sign,
    is_plainly,
)
from dpcal.calibrate.papers.search.moves import by_derivative, by_moving
from dpcal.calibrate.papers.search.multipliers import by_multipliers
from dpcal.calibrate.papers.search.products import (
    by_addends,
    by_factors,
    by_means,
    by_parts,
    by_square,
    by_terms,
)

__all__ = ["Search"]

Proof = dict[str, Any]
_FAILURES = (Undecided, ArithmeticError, ValueError, TypeError, sympy.PolynomialError)


class Search:
    """A search for proofs that ends at a deadline.

    Parameters
    ----------
    seconds
        Time for the whole search.
    """

    def __init__(self, seconds: float) -> None:
        self.deadline = time.thread_time() + seconds
        self.fresh = 0
        self._known: dict[Any, tuple[int, Proof | None]] = {}
        self._contexts: list[Context] = []
        self._consistent: set[int] = set()

    def inequality(
        self, context: Context, term: Term, strict: bool, depth: int = 0
    ) -> Proof | None:
        """Return a proof that a term is nonnegative, or positive; None when none is found."""
        if depth > 7 or time.thread_time() > self.deadline:
            return None
        key = (id(context), term, strict)
        if key not in self._known or (self._known[key][1] is None and self._known[key][0] > depth):
            self._contexts.append(context)  # so that no other context takes its identity
            self._known[key] = (depth, self._inequality(context, term, strict, depth))
        return self._known[key][1]

    def _inequality(self, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
        if id(context) not in self._consistent:
            absurd = self._absurd(context)
            if absurd is not None:
                return absurd
            self._consistent.add(id(context))
        splits: Any = self._by_extremum(context, term, strict, depth)
        if splits is not NotImplemented:
            return None if splits is None else dict(splits)
        defined = self.definedness(context, term, depth)
        if defined is None:
            return None
        for strategy in self._strategies(depth):
            try:
                proof = strategy(context, term, strict, depth)
            except _FAILURES:
                proof = None
            if proof is not None:
                return {**proof, "defined": defined} if defined else proof
            if time.thread_time() > self.deadline:
                return None
        return None

    def _strategies(self, depth: int) -> list[Callable[..., Proof | None]]:
        return [
            partial(by_terms, self),
            self._by_number,
            self._by_logarithm,
            self._by_step,
            partial(by_parts, self),
            partial(by_few_boxes, self),
            self._by_multipliers,
            partial(by_square, self),
            partial(by_addends, self),
            partial(by_balls, self),
            partial(by_simpler_balls, self),
            partial(by_factors, self),
            partial(by_moving, self),
            partial(by_means, self),
            partial(by_derivative, self),
            partial(by_cut, self),
        ]

    def definedness(self, context: Context, term: Term, depth: int = 0) -> list[Any] | None:
        """Return proofs of what must be positive or nonzero, without what is plain."""
        rows: list[Any] = []
        for part, relation in obligations(term):
            try:
                if is_plainly(context, part, relation):
                    continue
            except Undecided:
                pass
            if depth > 5:
                return None
            proof = self.inequality(context, part, relation != ">=", depth + 1)
            if proof is None and relation == "!=":
                part = negative(part)
                proof = self.inequality(context, part, True, depth + 1)
            if proof is None:
                return None
            rows.append([encode(part), proof])
        return rows

    # ---------------------------------------------------------------------------------- strategies

    def _absurd(self, context: Context) -> Proof | None:
        """Find a fact that the others contradict, among those that a split brought last."""
        for index in range(len(context.facts) - 1, max(-1, len(context.facts) - 4), -1):
            fact, strict = context.facts[index]
            if not _may_hold(context, negative(fact), not strict):
                continue
            others = tuple(known for k, known in enumerate(context.facts) if k != index)
            rest = Context(context.signs, others)
            try:
                if rest.holds(negative(fact), not strict):
                    return {"rule": "absurd", "index": index, "against": {"rule": "terms"}}
            except _FAILURES:
                continue
        return None

    def _by_number(self, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
        if symbols(term):
            return None
        return {"rule": "balls", "tree": "."} if enclosed_sign(term, {}) == 1 else None

    def _by_logarithm(self, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
        """Prove log(a) >= 0 from a >= 1, and -log(a) >= 0 from a <= 1."""
        low, high = ONE, ONE
        if term[0] == "log":
            high = term[1]
        elif term[:2] == ("mul", number(-1)) and len(term) == 3 and term[2][0] == "log":
            low = term[2][1]
        else:
            return None
        order = self.inequality(context, minus(high, low), strict, depth + 1)
        if order is None:
            return None
        ends = {"low": encode(low), "high": encode(high)}
        return {"rule": "monotone", "function": "log", **ends, "order": order}

    def _by_step(self, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
        """Use the bounds of floor, ceiling and abs."""
        for part in subterms(term):
            if part[0] not in ("floor", "ceiling", "abs"):
                continue
            argument = part[1]
            images = [
                minus(argument, ("floor", argument)),
                minus(plus(("floor", argument), ONE), argument),
                minus(("ceiling", argument), argument),
                minus(plus(argument, ONE), ("ceiling", argument)),
                minus(("abs", argument), argument),
                plus(("abs", argument), argument),
            ]
            for k, image in enumerate(images):
                if part not in set(subterms(image)):
                    continue
                rest = minus(term, image)
                if context.holds(rest, False):
                    step = {"rule": "step function", "argument": encode(argument), "bound": k}
                    rows = [[encode(image), step], [encode(rest), {"rule": "terms"}]]
                    rows = rows if not strict or k in (1, 3) else rows[::-1]
                    return {"rule": "sum", "parts": rows}
        return None

    def _by_extremum(self, context: Context, term: Term, strict: bool, depth: int) -> Any:
        """Split a maximum or minimum that contains no other; NotImplemented where there is none."""
        found = [
            part
            for part in dict.fromkeys(subterms(term))
            if part[0] in ("max", "min")
            and not any(inner[0] in ("max", "min") for a in part[1:] for inner in subterms(a))
        ]
        if not found and depth == 0:
            found = _extrema_of_facts(context, term)
        if not found:
            return NotImplemented
        extremum = found[0]
        known = {part for fact, _ in context.facts for part in subterms(fact)}
        defined = [] if extremum in known else self.definedness(context, extremum, depth)
        if defined is None:
            return None
        cases = []
        for chosen in extremum[1:]:
            inner = chosen_case(context, extremum, chosen)
            proof = self.inequality(inner, replace(term, {extremum: chosen}), strict, depth)
            if proof is None:
                return None
            cases.append(proof)
        step: Proof = {"rule": "extremum", "of": encode(extremum), "cases": cases}
        return {**step, "defined": defined} if defined else step

    def _by_multipliers(
        self, context: Context, term: Term, strict: bool, depth: int
    ) -> Proof | None:
        return by_multipliers(self, context, term, strict, depth)

    # ----------------------------------------------------------------------------------- equations

    def equation(self, context: Context, left: Term, right: Term) -> Proof | None:
        """Return a proof that two terms are equal."""
        gap = minus(right, left)
        absurd = self._absurd(context)
        if absurd is not None:
            return absurd
        defined: list[Any] = []
        for side in (left, right):
            rows = self.definedness(context, side)
            if rows is None:
                return None
            defined += rows
        try:
            if context.is_zero(gap):
                return {"rule": "equal", **({"sides_defined": defined} if defined else {})}
        except _FAILURES:
            pass
        return self._equal_cases(context, left, right)

    def _equal_cases(self, context: Context, left: Term, right: Term) -> Proof | None:
        found = [
            part
            for side in (left, right)
            for part in subterms(side)
            if part[0] in ("max", "min")
            and not any(inner[0] in ("max", "min") for a in part[1:] for inner in subterms(a))
        ]
        if not found or time.thread_time() > self.deadline:
            return None
        extremum = found[0]
        cases = []
        for chosen in extremum[1:]:
            table = {extremum: chosen}
            inner = chosen_case(context, extremum, chosen, replaced=False)
            proof = self.equation(inner, replace(left, table), replace(right, table))
            if proof is None:
                return None
            cases.append(proof)
        defined = self.definedness(context, extremum)
        if defined is None:
            return None
        step: Proof = {"rule": "equal cases", "of": encode(extremum), "cases": cases}
        return {**step, "defined": defined} if defined else step


def _may_hold(context: Context, term: Term, strict: bool) -> bool:
    try:
        return context.holds(term, strict)
    except _FAILURES:
        return True


def _extrema_of_facts(context: Context, term: Term) -> list[Term]:
    """Return the extrema in facts that share a symbol with a term."""
    return [
        part
        for fact, _ in context.facts
        if symbols(fact) & symbols(term)
        for part in subterms(fact)
        if part[0] in ("max", "min")
        and not any(inner[0] in ("max", "min") for a in part[1:] for inner in subterms(a))
    ]
