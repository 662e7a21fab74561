"""Decide claims about schedules: prove, refute, or leave open.

A formula that is neither proved nor refuted is OPEN, however many points it holds at. SAMPLED are
listed cases that a program ran.

Results of the search are not trusted: a verdict is PROVED, REFUTED, LOOSE, SAMPLED or DEFINITION
only when :mod:`dpcal.calibrate.papers.kernel.checker` accepts its evidence.

>>> from dpcal.calibrate.papers.claims.notation import line
>>> prove(line("2*sqrt(x*y) <= x + y where x in [1, 9], y in [1, 9]")).status
'PROVED'
>>> verdict = prove(line("(x + y)**2 = x**2 + y**2 where x in [1, 9], y in [1, 9]"))
>>> verdict.status, verdict.evidence["point"]
('REFUTED', {'x': '1', 'y': '1'})
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpcal.accountants.certificates.certify import certify
from dpcal.calibrate.papers.claims import privacy
from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.growth import sums
from dpcal.calibrate.papers.claims.language import standalone
from dpcal.calibrate.papers.claims.ranges import Relation
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.context import context_of
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import Term, Undecided, encode, number, power, symbol
from dpcal.calibrate.papers.recheck import shown, verdict_of
from dpcal.calibrate.papers.search.descent import lowest
from dpcal.calibrate.papers.search.engine import Search
from dpcal.calibrate.papers.search.goal import Goal
from dpcal.calibrate.papers.search.points import points, witness
from dpcal.calibrate.papers.search.rates import chosen, outgrown
from dpcal.errors import TargetUnreachable, UnsupportedEvent

SECONDS = 10.0
FIRST_POINTS, MORE_POINTS = 24, 300
_ORDERS = (2, 4, 8, 16, 32, 64)
_SHOWN = 1e-5  # relative distance from a whole number that six digits do not show
_PRICED_POINTS = 3  # points for a certificate of a claim about samples; each takes up to seconds
_EQUATIONS = ("identity", "definition", "balance", "units")
_Point = Mapping[str, Fraction]
_FAILURES = (Undecided, ArithmeticError, ValueError, TypeError, KeyError, RecursionError)


def prove(claim: Claim, *, seconds: float = SECONDS) -> Verdict:
    """Decide a claim with resolved settings.

    Parameters
    ----------
    claim
        From :meth:`Schedule.resolve <dpcal.calibrate.papers.claims.language.Schedule.resolve>`, or
        written without settings.
    seconds
        Processor time after which searches stop, so that a busy machine changes no verdict.

    Returns
    -------
    Verdict
        A formula that cannot be decided is OPEN.

    Raises
    ------
    ValueError
        If a symbol of the claim has no range.
    """
    started = time.process_time()
    claim = standalone(claim)
    try:
        verdict = _decide(claim, time.thread_time() + seconds)
    except _FAILURES as error:
        verdict = _open(f"could not be decided: {error}")
    refusal = verdict_of(claim, verdict)
    if refusal:
        verdict = _open(f"evidence was found and not accepted: {refusal}")
    return dataclasses.replace(verdict, seconds=time.process_time() - started)


def _open(reason: str) -> Verdict:
    return Verdict("OPEN", "none", reason)


def _decide(claim: Claim, deadline: float) -> Verdict:
    if claim.kind == "prose":
        return _open(str(claim.parts["reason"]))
    if claim.kind == "enumeration":
        return _decide_enumeration(claim, deadline)
    refuted = None if claim.kind == "rate" else _at_points(claim, FIRST_POINTS, 0)
    if refuted is not None:
        return refuted
    where = witness(claim)
    if where is None:
        return _open("no point of the domain was found; it may be empty")
    if claim.kind == "rate":
        return _decide_rate(claim, where, deadline)
    if claim.kind == "private" and privacy.is_sampled(claim) and "renyi" not in claim.parts:
        return _decide_sampled(claim, where, deadline)
    return _decide_goals(claim, where, deadline)


def _decide_goals(claim: Claim, where: _Point, deadline: float) -> Verdict:
    proofs = _proofs(claim, claim.goals(), deadline)
    if proofs is not None:
        return _proved(claim, where, (), proofs)
    goals = enumerate(claim.necessary())
    near = ((k, goal, point) for k, goal in goals for point in lowest(claim, goal))
    refuted = _at_points(claim, MORE_POINTS, 1) or _refuted(near)
    if refuted is not None:
        return refuted
    hole = _undefined(claim)
    if hole is not None:
        return _open(f"a side is undefined {_at(hole)}")
    return _open("no proof and no counterexample was found")


def _proved(claim: Claim, where: _Point, given: Sequence[Term], proofs: list[Any]) -> Verdict:
    rules = [*_rules(proofs)]
    method = ", ".join(dict.fromkeys(rules))
    if method == "terms" and claim.kind in _EQUATIONS:
        method = "identity"
    reason = f"a proof of {len(rules)} steps was checked, by {method}"
    if claim.kind == "loose":
        reason = f"true, and still true with {show(claim.parts['factor'])} times the left side"
    elif method == "identity":
        reason = "both sides have the same normal form"
    evidence: dict[str, Any] = {"witness": _plain(where), "proofs": proofs}
    if given:
        evidence["given"] = [encode(term) for term in given]
    return Verdict(claim.proved, method, reason, evidence)


def _rules(proof: Any) -> Iterator[str]:
    """Yield the rule of each step of a proof."""
    if isinstance(proof, Mapping):
        if "rule" in proof:
            yield str(proof["rule"])
        proof = [*proof.values()]
    if isinstance(proof, list):
        for part in proof:
            yield from _rules(part)


def _proofs(claim: Claim, goals: Sequence[Relation], deadline: float) -> list[Any] | None:
    proofs, context = [], context_of(claim, deadline)
    for goal in goals:
        search = Search(deadline - time.thread_time())
        if goal.sign == "=":
            proof = search.equation(context, goal.gap)
        else:
            proof = search.inequality(Goal(context, goal.gap, goal.strict))
        if proof is None:
            return None
        proofs.append(proof)
    return proofs


def _at_points(claim: Claim, count: int, seed: int) -> Verdict | None:
    """Look for a point where a goal fails, among usual and random ones."""
    goals, tried = [*enumerate(claim.necessary())], points(claim, count, seed)
    return _refuted((k, goal, point) for point in tried for k, goal in goals)


def _refuted(rows: Iterable[tuple[int, Relation, _Point]]) -> Verdict | None:
    """Return the refutation by the first goal that fails at its point, or None."""
    for index, goal, point in rows:
        if _fails(goal, point):
            left, right = shown(goal.left, point), shown(goal.right, point)
            evidence = {"goal": index, "point": _plain(point), "left": left, "right": right}
            verb = "differ" if goal.sign == "=" else "are in the wrong order"
            reason = f"{_at(point)} the sides {verb}: {left} against {right}"
            return Verdict("REFUTED", "counterexample", reason, evidence)
    return None


def _fails(goal: Relation, point: _Point) -> bool:
    """Return whether a goal fails at a point, by exact arithmetic if a ball cannot decide."""
    try:
        ball = balls.value(goal.gap, {name: (x, x) for name, x in point.items()})
    except Undecided:
        return False
    if ball < 0 or (goal.sign == "=" and ball > 0):
        return True
    return goal.strict and not ball > 0 and sign_at(goal.gap, point) == 0


def _undefined(claim: Claim) -> _Point | None:
    """Return a point of the domain at which a side has no value, or None."""
    for point in points(claim, FIRST_POINTS):
        box = {name: (x, x) for name, x in point.items()}
        try:
            for goal in claim.necessary():
                balls.value(goal.left, box)
                balls.value(goal.right, box)
        except Undecided:
            return point
    return None


def _plain(point: _Point) -> dict[str, str]:
    return {name: str(value) for name, value in point.items()}


def _at(point: _Point) -> str:
    parts = [f"{name} = {_short(value)}" for name, value in point.items()]
    return "at " + ", ".join(parts) if parts else "for these numbers"


def _short(value: Fraction) -> str:
    if len(str(value)) <= 9:
        return str(value)
    near = round(value)
    if near and 0 < abs(value - near) < _SHOWN * abs(near):
        return f"{near} {'+' if value > near else '-'} {float(abs(value - near)):.3g}"
    return shown(number(value), {})


def _decide_rate(claim: Claim, where: _Point, deadline: float) -> Verdict:
    context = context_of(claim, deadline)
    for point in points(claim, FIRST_POINTS):
        for term, given in outgrown(claim, context, point):
            proofs = _proofs(claim, sums(claim, given, context), deadline)
            if proofs is not None:
                found = _proved(claim, point, given, proofs)
                reason = f"the term {term} more than claimed"
                return Verdict("REFUTED", "orders", reason, found.evidence)
    for compared, given in chosen(claim, context, where):
        proofs = _proofs(claim, claim.goals(*given), deadline)
        if proofs is not None:
            found = _proved(claim, where, given, proofs)
            sizes = claim.parts["growth"].items()
            at = ", ".join(f"{name} = {show(power(symbol('t'), size))}" for name, size in sizes)
            reason = f"with {at}, each term on the left is within one on the right: {compared}"
            return Verdict("PROVED", "orders", reason, found.evidence)
    return _open("no orders of growth that decide it were found")


def _decide_enumeration(claim: Claim, deadline: float) -> Verdict:
    program = claim.parts["program"]
    count = len(program.cases)
    for k, case in enumerate(program.cases):
        if time.thread_time() > deadline:
            return _open(f"only {k} of {count} cases fit the time")
        if not program.holds(case):
            reason = f"fails for the case {case}"
            return Verdict("REFUTED", "failing case", reason, {"case": k})
    if program.complete:
        evidence = {"witness": {}, "proofs": [{"rule": "terms"}]}
        return Verdict("PROVED", "all cases", f"all {count} cases checked", evidence)
    return Verdict("SAMPLED", "cases", f"true in {count} exact cases", {"cases": count})


def _decide_sampled(claim: Claim, where: _Point, deadline: float) -> Verdict:
    """Prove a claim about samples by one order, or settle numbers by a certificate."""
    numbers = not claim.ranges()
    order = claim.parts.get("order")
    for given in [number(k) for k in _ORDERS] if order is None else [order]:
        goals = claim.goals(given)
        fails = numbers and any(_fails(goal, {}) for goal in goals)
        proofs = None if fails else _proofs(claim, goals, deadline)
        if proofs is not None:
            found = _proved(claim, where, [given], proofs)
            reason = f"by the divergence of order {show(given)}, {found.reason}"
            return Verdict(found.status, found.method, reason, found.evidence)
    priced = [where] if numbers else itertools.islice(points(claim, MORE_POINTS), _PRICED_POINTS)
    for point in priced:
        for status in ("PROVED", "REFUTED") if numbers else ("REFUTED",):
            if (settled := _certified(claim, point, status)) is not None:
                return settled
    if numbers:
        return _open("the certificate's interval holds the claim")
    return _open("no order proves it; give one with the option order")


def _certified(claim: Claim, point: _Point, status: str) -> Verdict | None:
    """Return the verdict of a certificate of delta at a point, or None where it has no status."""
    event, epsilon, delta, relation = privacy.priced(claim, point, outward=status == "PROVED")
    try:
        found = certify(event, epsilon=epsilon, neighboring_relation=relation)
    except (UnsupportedEvent, TargetUnreachable, ValueError):
        return None
    holds = status == "PROVED"
    if not (found.upper <= delta if holds else found.lower > delta):
        return None
    end = f"at most {found.upper:.4g}" if holds else f"at least {found.lower:.4g}"
    reason = f"{_at(point)} delta is {end} at epsilon {epsilon:.6g}, claimed {delta:.6g}"
    evidence = {"point": _plain(point), "certificate": found.to_dict()}
    return Verdict(status, "certificate", reason, evidence)
