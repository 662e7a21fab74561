"""The search for proofs, which is not trusted.

:class:`Search` tries strategies in turn and returns a tree of steps that
:mod:`dpcal.calibrate.papers.kernel.rules` checks, or None.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> from dpcal.calibrate.papers.kernel.context import Context
>>> Search(10.0).inequality(Goal(Context({"x": "+"}), parse("x - log(1 + x)"), False))["rule"]
'sum'
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import sympy

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context, obligations
from dpcal.calibrate.papers.kernel.rules import chosen
from dpcal.calibrate.papers.search import boxes, limits, moves, multipliers, products, reductions
from dpcal.calibrate.papers.search.goal import TERMS, Goal, Proof
from dpcal.calibrate.papers.search.samples import may_hold

Strategy = Callable[["Search", Goal], Proof | None]
STRATEGIES: tuple[Strategy, ...] = (
    *(products.by_terms, multipliers.by_multipliers, products.by_square, boxes.by_balls),
    *(reductions.by_logarithms, products.by_factors, reductions.by_fact, moves.by_zero),
    *(reductions.by_tangents, moves.by_derivative, boxes.by_cut),
)
# These are tried up to limits.DEPTH_OF_MOVES.
_SHALLOW = frozenset(STRATEGIES[6:10])
_FAILURES = (ArithmeticError, ValueError, TypeError, sympy.PolynomialError)


class Search:
    """A search for proofs that ends at a deadline.

    Parameters
    ----------
    seconds
        Time for the whole search.
    """

    def __init__(self, seconds: float) -> None:
        self.deadline = time.thread_time() + seconds
        self._known: dict[Any, tuple[int, Proof | None]] = {}
        self._contexts: list[Context] = []
        self._consistent: set[int] = set()
        self._wider: dict[Any, Context] = {}

    def inequality(self, goal: Goal) -> Proof | None:
        """Return a proof that a term is nonnegative, or positive; None if no proof is found."""
        if goal.depth > limits.DEPTH or time.thread_time() > self.deadline:
            return None
        key = (id(goal.context), goal.term, goal.strict)
        depth, proof = self._known.get(key, (limits.DEPTH + 1, None))
        if proof is None and depth > goal.depth:
            self._contexts.append(goal.context)  # kept, so that no other context takes its identity
            proof = self._inequality(goal)
            if proof is None and time.thread_time() > self.deadline:
                return None
            self._known[key] = (goal.depth, proof)
        return proof

    def _inequality(self, goal: Goal) -> Proof | None:
        context, term, strict, depth = goal
        if id(context) not in self._consistent:
            absurd = self._absurd(context)
            if absurd is not None:
                return absurd
            self._consistent.add(id(context))
        if not may_hold(context, term, strict):
            return None
        extrema = _innermost_extrema(term)
        if not extrema and depth == 0:
            used = t.symbols(term)
            extrema = _innermost_extrema(*(f for f, _ in context.facts if t.symbols(f) & used))
        if extrema:
            return self._split(
                context,
                extrema[0],
                lambda c, at: self.inequality(goal.inside(at(term), strict, 0, c)),
            )
        defined = self.definedness(context, term, depth)
        if defined is None:
            return None
        if defined:
            goal = goal._replace(context=self._informed(context, term, defined))
        shallow = _SHALLOW if depth > limits.DEPTH_OF_MOVES else frozenset()
        for strategy in STRATEGIES:
            if strategy in shallow:
                continue
            proof = self._tried(strategy, goal)
            if proof is not None:
                known = [*defined, *proof.get("defined", ())]
                return {**proof, "defined": known} if known else proof
            if time.thread_time() > self.deadline:
                return None
        return None

    def _tried(self, strategy: Strategy, goal: Goal) -> Proof | None:
        """Return the proof of a strategy, which gets a share of the time near the goal."""
        deadline, now = self.deadline, time.thread_time()
        if goal.depth == 0:
            self.deadline = now + (deadline - now) * limits.SHARE
        try:
            return strategy(self, goal)
        except _FAILURES:
            return None
        finally:
            self.deadline = deadline

    def definedness(self, context: Context, term: t.Term, depth: int = 0) -> list[Any] | None:
        """Return proofs of the conditions for a term to be defined, except plain ones."""
        rows: list[Any] = []
        for part, relation in obligations(term):
            with suppress(t.Undecided):
                if context.is_plainly(part, relation):
                    continue
            if depth > limits.DEPTH_OF_DOMAINS:
                return None
            proof = self.inequality(Goal(context, part, relation != ">=", depth + 1))
            if proof is None and relation == "!=":
                part = t.negative(part)
                proof = self.inequality(Goal(context, part, True, depth + 1))
            if proof is None:
                return None
            rows.append([t.encode(part), proof])
        return rows

    def _informed(self, context: Context, term: t.Term, defined: list[Any]) -> Context:
        """Return the context with the facts that make a term defined."""
        signs = dict(obligations(term))
        facts = [(t.decode(row[0]), signs.get(t.decode(row[0]), ">") != ">=") for row in defined]
        key = (id(context), *facts)
        if key not in self._wider:
            self._contexts.append(context)
            self._wider[key] = context.with_facts(*facts)
            self._consistent.add(id(self._wider[key]))
        return self._wider[key]

    def _absurd(self, context: Context) -> Proof | None:
        """Find a fact that the others contradict, among the facts of the last split."""
        for index in range(len(context.facts) - 1, max(-1, len(context.facts) - 4), -1):
            fact, strict = context.facts[index]
            rest = Context(context.signs, (*context.facts[:index], *context.facts[index + 1 :]))
            with suppress(*_FAILURES):  # all facts come first: their normal forms are known
                if all(c.holds(t.negative(fact), not strict) for c in (context, rest)):
                    return {"rule": "absurd", "index": index, "against": TERMS}
        return None

    def _split(
        self, context: Context, extremum: t.Term, prove: Callable[..., Proof | None]
    ) -> Proof | None:
        """Prove a goal in the case of each argument of a maximum or minimum."""
        known = {part for fact, _ in context.facts for part in t.subterms(fact)}
        defined = [] if extremum in known else self.definedness(context, extremum)
        if defined is None:
            return None
        cases = []
        for part in extremum[1:]:
            proof = prove(
                chosen(context, extremum, part),
                functools.partial(t.replace, table={extremum: part}),
            )
            if proof is None:
                return None
            cases.append(proof)
        step: Proof = {"rule": "extremum", "of": t.encode(extremum), "cases": cases}
        return {**step, "defined": defined} if defined else step

    def equation(self, context: Context, gap: t.Term) -> Proof | None:
        """Return a proof that a term is zero."""
        absurd = self._absurd(context)
        if absurd is not None:
            return absurd
        defined = self.definedness(context, gap)
        if defined is None:
            return None
        with suppress(*_FAILURES):
            if self._informed(context, gap, defined).normal.is_zero(gap):
                return {**TERMS, "defined": defined} if defined else TERMS
        found = _innermost_extrema(gap)
        if not found or time.thread_time() > self.deadline:
            return None
        return self._split(context, found[0], lambda c, at: self.equation(c, at(gap)))


def _innermost_extrema(*terms: t.Term) -> list[t.Term]:
    """Return the maxima and minima in terms that contain no other maximum or minimum."""
    return [
        part
        for term in terms
        for part in t.subterms(term)
        if part[0] in ("max", "min")
        and not any(inner[0] in ("max", "min") for a in part[1:] for inner in t.subterms(a))
    ]
