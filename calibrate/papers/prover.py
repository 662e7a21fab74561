"""Decide claims about schedules: prove, refute, or leave open.

A formula that is neither proved nor refuted is OPEN, however many points it holds at. SAMPLED are
listed cases that a program ran, and prices that an accountant computed.

Results of the search are not trusted: a verdict is PROVED, REFUTED, LOOSE, SAMPLED or DEFINITION
only when :mod:`dpcal.calibrate.papers.kernel.checker` accepts its evidence.

>>> from sympy import symbols, sqrt
>>> from dpcal.calibrate.papers.claims.claims import Bound, Identity
>>> x, y = symbols("x y", positive=True)
>>> prove(Bound("AM-GM", 2 * sqrt(x * y), x + y)).status
'PROVED'
>>> verdict = prove(Identity("freshman", (x + y) ** 2, x**2 + y**2))
>>> verdict.status, verdict.evidence["point"]
('REFUTED', {'x': '1', 'y': '1'})
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpcal.accountants import epsilon
from dpcal.accountants.certificates.certify import certify
from dpcal.calibrate.papers.claims import claims, privacy
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.language import standalone
from dpcal.calibrate.papers.claims.ranges import Goal
from dpcal.calibrate.papers.claims.verdicts import STATUSES, Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.context import context_of
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import (
    Term,
    Undecided,
    encode,
    minus,
    number,
    require,
    symbol,
)
from dpcal.calibrate.papers.recheck import shown, verdict_of
from dpcal.calibrate.papers.search.descent import lowest
from dpcal.calibrate.papers.search.engine import Search
from dpcal.calibrate.papers.search.points import points, witness
from dpcal.calibrate.papers.search.rates import outgrown, within
from dpcal.errors import TargetUnreachable, UnsupportedEvent

__all__ = ["STATUSES", "Verdict", "prove"]

SECONDS = 10.0
FIRST_POINTS, MORE_POINTS = 24, 300
_ORDERS = (2, 4, 8, 16, 32, 64)  # of divergences, where a claim about samples names none
_SHOWN = 1e-5  # relative distance from a whole number that six digits do not show
_PRICED_POINTS = 3  # at which a claim about samples is priced; a certificate takes up to seconds
_FAILURES = (Undecided, ArithmeticError, ValueError, TypeError, KeyError, RecursionError)


def prove(claim: claims.Claim, *, seconds: float = SECONDS) -> Verdict:
    """Decide a claim whose settings have been resolved.

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
        verdict = Verdict("OPEN", "none", f"could not be decided: {error}")
    refusal = verdict_of(claim, verdict)
    if refusal:
        verdict = Verdict("OPEN", "none", f"evidence was found and not accepted: {refusal}")
    object.__setattr__(verdict, "seconds", time.process_time() - started)
    return verdict


def _decide(claim: claims.Claim, deadline: float) -> Verdict:
    if isinstance(claim, privacy.Private) and claim.is_sampled and claim.renyi is None:
        return _decide_sampled(claim, deadline)
    special: dict[type, Callable[[Any, float], Verdict]] = {
        claims.Prose: _decide_prose,
        claims.Enumeration: _decide_enumeration,
        privacy.Priced: _decide_priced,
        claims.Rate: _decide_rate,
        claims.SoftRate: _decide_rate,
    }
    return special.get(type(claim), _decide_goals)(claim, deadline)


# ------------------------------------------------------------------------------------------- goals


def _decide_goals(claim: claims.Claim, deadline: float) -> Verdict:
    found = claim.necessary()
    refuted = _counterexample(claim, found, FIRST_POINTS, 0)
    if refuted is not None:
        return refuted
    where = witness(claim)
    if where is None:
        return Verdict("OPEN", "none", "no point of the domain was found; it may be empty")
    given = _opposite(claim) if isinstance(claim, claims.Balance) else []
    proofs = _proofs(claim, claim.goals(*given), deadline)
    if proofs is not None:
        evidence = {"witness": _plain(where), "proofs": proofs}
        if given:
            evidence["given"] = [encode(term) for term in given]
        return Verdict(claim.proved, _method(proofs), _why(claim, proofs), evidence)
    refuted = _counterexample(claim, found, MORE_POINTS, 1) or _lowest(claim, found)
    if refuted is not None:
        return refuted
    hole = _undefined(claim, found)
    if hole is not None:
        return Verdict("OPEN", "none", f"a side is undefined {_at(hole)}")
    return Verdict("OPEN", "none", "no proof and no counterexample was found")


def _proofs(claim: claims.Claim, found: list[Goal], deadline: float) -> list[Any] | None:
    proofs, context = [], context_of(claim, deadline)
    for goal in found:
        search = Search(deadline - time.thread_time())
        gap = minus(goal.right, goal.left)
        if goal.relation == "=":
            proof = search.equation(context, goal.left, goal.right)
        else:
            proof = search.inequality(context, gap, goal.relation == "<")
        if proof is None:
            return None
        proofs.append(proof)
    return proofs


def _opposite(claim: claims.Balance) -> list[Term]:
    """Return the powers of the parameter in both sides."""
    normal, of = context_of(claim).normal, symbol(claim.of)
    rows = []
    for side in claim.raw or ():
        found = {dict(monomial).get(of, Fraction(0)) for monomial in normal.clear(normal.sum(side))}
        exponent = found.pop()
        if found or not isinstance(exponent, Fraction):
            raise Undecided("a side is no power of the parameter")
        rows.append(number(exponent))
    require(rows[0][1] * rows[1][1] < 0, "powers of opposite sign")
    return rows


def _counterexample(
    claim: claims.Claim, found: list[Goal], count: int, seed: int
) -> Verdict | None:
    """Look for a point where a goal fails."""
    for point in points(claim, count, seed):
        for k, goal in enumerate(found):
            if _fails(goal, point):
                return _refuted(goal, k, point)
    return None


def _lowest(claim: claims.Claim, found: list[Goal]) -> Verdict | None:
    """Look for a point where a goal fails near the least values of its gap."""
    for k, goal in enumerate(found):
        for point in lowest(claim, goal):
            if _fails(goal, point):
                return _refuted(goal, k, point)
    return None


def _fails(goal: Goal, point: Mapping[str, Fraction]) -> bool:
    """Return whether a goal fails at a point, by exact arithmetic if a ball cannot decide."""
    gap = minus(goal.right, goal.left)
    try:
        ball = balls.value(gap, {name: (x, x) for name, x in point.items()})
    except Undecided:
        return False
    if ball < 0 or (goal.relation == "=" and ball > 0):
        return True
    return goal.relation == "<" and not ball > 0 and sign_at(gap, point) == 0


def _undefined(claim: claims.Claim, found: list[Goal]) -> Mapping[str, Fraction] | None:
    """Return a point of the domain at which a side has no value, or None."""
    for point in points(claim, FIRST_POINTS):
        box = {name: (x, x) for name, x in point.items()}
        for goal in found:
            try:
                balls.value(goal.left, box)
                balls.value(goal.right, box)
            except Undecided:
                return point
    return None


def _refuted(goal: Goal, index: int, point: Mapping[str, Fraction]) -> Verdict:
    left, right = shown(goal.left, point), shown(goal.right, point)
    evidence = {"goal": index, "point": _plain(point), "left": left, "right": right}
    verb = "differ" if goal.relation == "=" else "are in the wrong order"
    reason = f"{_at(point)} the sides {verb}: {left} against {right}"
    return Verdict("REFUTED", "counterexample", reason, evidence)


def _plain(point: Mapping[str, Fraction]) -> dict[str, str]:
    return {name: str(value) for name, value in point.items()}


def _at(point: Mapping[str, Fraction]) -> str:
    parts = [f"{name} = {_short(value)}" for name, value in point.items()]
    return "at " + ", ".join(parts) if parts else "for these numbers"


def _short(value: Fraction) -> str:
    if len(str(value)) <= 9:
        return str(value)
    near = round(value)
    if near and 0 < abs(value - near) < _SHOWN * abs(near):
        return f"{near} {'+' if value > near else '-'} {float(abs(value - near)):.3g}"
    return shown(number(value), {})


def _method(proofs: list[Any]) -> str:
    return ", ".join(dict.fromkeys(rule for proof in proofs for rule in _rules(proof)))


def _rules(proof: Any) -> list[str]:
    """Return the rules of the last steps of a proof."""
    if "rule" in proof:
        return ["identity" if proof["rule"] == "equal" else str(proof["rule"])]
    return [rule for part in proof.values() for rule in _rules(part)]


def _why(claim: claims.Claim, proofs: list[Any]) -> str:
    steps = sum(_steps(proof) for proof in proofs)
    if isinstance(claim, claims.Loose):
        return f"true, and still true with {show(claim.factor)} times the left side"
    if set(_method(proofs).split(", ")) == {"identity"}:
        return "both sides have the same normal form"
    return f"a proof of {steps} steps was checked, by {_method(proofs)}"


def _steps(proof: Any) -> int:
    if isinstance(proof, Mapping):
        return ("rule" in proof) + sum(_steps(part) for part in proof.values())
    return sum(_steps(part) for part in proof) if isinstance(proof, list) else 0


# ------------------------------------------------------------------------------------- other kinds


def _decide_rate(claim: claims.Rate, deadline: float) -> Verdict:
    if (where := witness(claim.before())) is None or witness(claim) is None:
        return Verdict("OPEN", "none", "no point of the domain was found; it may be empty")
    for point in points(claim.before(), FIRST_POINTS):
        refuted = outgrown(claim, point)
        if refuted is not None:
            evidence = {"witness": _plain(point), **refuted[1]}
            return Verdict("REFUTED", "orders", refuted[0], evidence)
    found = within(claim, deadline - time.thread_time())
    if found is None:
        return Verdict("OPEN", "none", "no orders of growth that decide it were found")
    return Verdict("PROVED", "orders", found[0], {"witness": _plain(where), **found[1]})


def _decide_enumeration(claim: claims.Enumeration, deadline: float) -> Verdict:
    for k, case in enumerate(claim.cases):
        if time.thread_time() > deadline:
            return Verdict("OPEN", "none", f"only {k} of {len(claim.cases)} cases fit the time")
        if not claim.holds(case):
            reason = f"fails for the case {case}"
            return Verdict("REFUTED", "failing case", reason, {"case": k})
    count = len(claim.cases)
    if claim.complete:
        evidence = {"witness": {}, "proofs": [{"rule": "terms"}]}
        return Verdict("PROVED", "all cases", f"all {count} cases checked", evidence)
    return Verdict("SAMPLED", "cases", f"true in {count} exact cases", {"cases": count})


def _decide_sampled(claim: privacy.Private, deadline: float) -> Verdict:
    """Prove a claim about samples by one order, or settle numbers by a certificate."""
    refuted = _counterexample(claim, claim.necessary(), FIRST_POINTS, 0)
    if refuted is not None:
        return refuted
    where = witness(claim)
    if where is None:
        return Verdict("OPEN", "none", "no point of the domain was found; it may be empty")
    numbers = not claim.ranges()
    orders = [number(k) for k in _ORDERS] if claim.order is None else [claim.order]
    for order in orders:
        goals = claim.goals(order)
        proofs = None
        if not numbers or not any(_fails(goal, {}) for goal in goals):
            proofs = _proofs(claim, goals, deadline)
        if proofs is not None:
            evidence = {"witness": _plain(where), "given": [encode(order)], "proofs": proofs}
            reason = f"by the divergence of order {show(order)}, {_why(claim, proofs)}"
            return Verdict(claim.proved, _method(proofs), reason, evidence)
    if numbers:
        for outward in (True, False):
            found = _certified(claim.priced({}, outward))
            if found is not None and found.status == ("PROVED" if outward else "REFUTED"):
                return found
        return Verdict("OPEN", "none", "the certificate's interval holds the claim")
    for point in itertools.islice(points(claim, MORE_POINTS), _PRICED_POINTS):
        found = _certified(claim.priced(point, outward=False))
        if found is not None and found.status == "REFUTED":
            evidence = {"point": _plain(point), **found.evidence}
            return Verdict("REFUTED", "certificate", f"{_at(point)} {found.reason}", evidence)
    return Verdict("OPEN", "none", "no order proves it; give one with the option order")


def _decide_priced(claim: privacy.Priced, deadline: float) -> Verdict:
    certified = _certified(claim)
    if certified is not None:
        return certified
    relation = claim.neighboring_relation
    price = epsilon(claim.event(), delta=claim.delta, neighboring_relation=relation)
    evidence = {"lower": price.lower, "upper": price.upper, "accountant": price.accountant}
    reason = f"epsilon is {price.upper:.6g} under {relation}, claimed {claim.epsilon:.6g}"
    if price.lower > claim.epsilon:
        return Verdict("REFUTED", "price", reason, evidence)
    if price.upper <= claim.epsilon:
        return Verdict("SAMPLED", "price", f"{reason}; in floating point rounded outward", evidence)
    return Verdict("OPEN", "none", f"{reason}; the accountant's interval holds the claim")


def _certified(claim: privacy.Priced) -> Verdict | None:
    """Return the verdict of a certificate of delta, or None where none settles the claim."""
    relation = claim.neighboring_relation
    try:
        found = certify(claim.event(), epsilon=claim.epsilon, neighboring_relation=relation)
    except (UnsupportedEvent, TargetUnreachable, ValueError):
        return None
    holds, fails = found.upper <= claim.delta, found.lower > claim.delta
    if not holds and not fails:
        return None
    end = f"at most {found.upper:.4g}" if holds else f"at least {found.lower:.4g}"
    reason = f"delta is {end} at epsilon {claim.epsilon:.6g}, claimed {claim.delta:.6g}"
    evidence = {"certificate": found.to_dict()}
    return Verdict("PROVED" if holds else "REFUTED", "certificate", reason, evidence)


def _decide_prose(claim: claims.Prose, deadline: float) -> Verdict:
    return Verdict("OPEN", "none", claim.reason)
