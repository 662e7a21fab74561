"""The checker: does the evidence of a verdict show what the verdict says about a claim?

It derives the goals from the claim, knows the rules of :mod:`rules` and nothing of the search that
found the evidence, and is total: for any document it answers with a sentence, within a time limit.

>>> from dpcal.calibrate.auditing.claims import Bound
>>> from dpcal.calibrate.auditing.verdicts import Verdict
>>> claim = Bound("c", "x <= x + 1", on={"x": (0, 1)})
>>> evidence = {"witness": {"x": "1"}, "proofs": [{"rule": "terms"}]}
>>> from dpcal.calibrate.auditing.language import standalone
>>> verdict_of(standalone(claim), Verdict("PROVED", "terms", evidence=evidence))
''
>>> verdict_of(standalone(claim), Verdict("REFUTED", "counterexample", evidence=evidence))
'a counterexample has a goal and a point.'
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from dpcal.calibrate.auditing import claims
from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.prices import check_price
from dpcal.calibrate.auditing.kernel.rates import Order, order
from dpcal.calibrate.auditing.kernel.rules import Context, check, is_defined, require
from dpcal.calibrate.auditing.kernel.terms import (
    ONE,
    ZERO,
    Term,
    Undecided,
    decode,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    replace,
    substitute,
    subterms,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.auditing.ranges import Range
from dpcal.calibrate.auditing.verdicts import Verdict

__all__ = ["Goal", "contains", "context_of", "gaussian_delta", "goals", "recheck", "verdict_of"]

SECONDS = 20.0  # the longest check of the five papers takes below 2 seconds
MOST_CHARACTERS = 2_000_000  # of a verdict's evidence as JSON


class Goal(NamedTuple):
    """``left relation right``, where the relation is ``<=``, ``<`` or ``=``."""

    left: Term
    relation: str
    right: Term


# ------------------------------------------------------------------------------ goals and domains


def goals(claim: claims.Claim) -> list[Goal]:
    """Return the inequalities and equations that a claim amounts to."""
    if isinstance(claim, claims.Loose):
        smaller = Goal(times(claim.factor, claim.left), "<=", claim.right)
        return [Goal(ONE, "<", claim.factor), Goal(ZERO, "<=", claim.left), smaller]
    if isinstance(claim, claims.Bound):
        return [Goal(claim.left, claim.relation, claim.right)]
    if isinstance(claim, (claims.Identity, claims.Balance)):
        return [Goal(claim.left, "=", claim.right)]
    if isinstance(claim, claims.Feasible):
        return [Goal(a, "<" if strict else "<=", b) for a, b, strict in claim.conditions]
    if isinstance(claim, claims.Units):
        moved, expected = rescaled(claim)
        return [Goal(moved, "=", expected)]
    if isinstance(claim, claims.Private):
        return private_goals(claim)
    raise Undecided(f"a {claim.kind} is not decided by goals.")


def private_goals(claim: claims.Private) -> list[Goal]:
    """Return that deviations are positive, counts are not negative, and the cost is in budget."""
    found = []
    for release in claim.releases:
        found.append(Goal(ZERO, "<", release.std))
        found.append(Goal(ZERO, "<=", release.count))
    if claim.rho is not None:
        return [*found, Goal(over(claim.squared_mu, number(2)), "<=", claim.rho)]
    spent = gaussian_delta(claim.epsilon, power(claim.squared_mu, number(Fraction(1, 2))))
    return [*found, Goal(ZERO, "<=", claim.epsilon), Goal(spent, "<=", claim.delta)]


def gaussian_delta(epsilon: Term, mu: Term) -> Term:
    """Return the delta of mu-Gaussian-DP at epsilon (Dong, Roth and Su 2022, Corollary 2.13)."""
    half, ratio = over(mu, number(2)), over(epsilon, mu)
    first = _normal_tail(minus(ratio, half))
    second = times(("exp", epsilon), _normal_tail(plus(ratio, half)))
    return minus(first, second)


def _normal_tail(x: Term) -> Term:
    root = power(number(2), number(Fraction(-1, 2)))
    return times(number(Fraction(1, 2)), ("erfc", times(x, root)))


def rescaled(claim: claims.Units) -> tuple[Term, Term]:
    """Return the expression with rescaled symbols, and what it should equal."""
    missing = symbols(claim.expression) - claim.scales.keys()
    require(not missing, f"units of {', '.join(sorted(missing))}.")
    table = {
        name: times(symbol(name), _scale(claim.scales[name])) for name in symbols(claim.expression)
    }
    moved = substitute(claim.expression, table)
    return moved, times(claim.expression, _scale(claim.unit))


def _scale(unit: Mapping[str, Term]) -> Term:
    factors = (power(symbol(f"scale_{base}"), exponent) for base, exponent in unit.items())
    return times(*factors)


def domain_of(claim: claims.Claim) -> dict[str, Range]:
    """Return the ranges of all symbols of a claim's goals."""
    domain = dict(claim.domain)
    if isinstance(claim, claims.Units):
        bases = {base for unit in (claim.unit, *claim.scales.values()) for base in unit}
        domain.update({f"scale_{base}": Range(Fraction(0), None, True) for base in bases})
    missing = claims.used_symbols(claim) - domain.keys()
    require(not missing, f"ranges of {', '.join(sorted(missing))}.")
    return domain


def context_of(claim: claims.Claim, deadline: float = math.inf) -> Context:
    """Return signs and facts of a claim's domain."""
    signs, facts = {}, []
    for name, values in domain_of(claim).items():
        x = symbol(name)
        low, high = values.low, values.high
        sign = "?"
        if low is not None and low >= 0:
            sign = "+" if low > 0 or values.open_low else "0+"
        signs[name] = sign
        if low is not None and low != 0:
            facts.append((minus(x, number(low)), values.open_low))
        if high is not None:
            facts.append((minus(number(high), x), values.open_high))
    facts += [(minus(large, small), strict) for small, large, strict in claim.where]
    return Context(signs, tuple(facts), deadline)


def contains(claim: claims.Claim, point: Mapping[str, Fraction]) -> bool:
    """Return whether an exact point certainly lies in a claim's domain."""
    for name, values in domain_of(claim).items():
        if name not in point:
            return False
        x = point[name]
        if values.whole and x.denominator != 1:
            return False
        if values.low is not None and (x < values.low or (x == values.low and values.open_low)):
            return False
        if values.high is not None and (x > values.high or (x == values.high and values.open_high)):
            return False
    return all(
        balls.sign_at(minus(large, small), point) in ((1,) if strict else (0, 1))
        for small, large, strict in claim.where
    )


# ------------------------------------------------------------------------------------ entry points


def recheck(claim: claims.Claim, verdict: Verdict, *, seconds: float = SECONDS) -> bool:
    """Return whether the evidence of a verdict shows what it says about the claim.

    Parameters
    ----------
    claim
        The resolved claim that was decided.
    verdict
        The verdict; any document is allowed.
    seconds
        Time limit; a check that takes longer fails.
    """
    return not verdict_of(claim, verdict, seconds=seconds)


def verdict_of(claim: claims.Claim, verdict: Verdict, *, seconds: float = SECONDS) -> str:
    """Return an empty text where the evidence is sound, or else what is missing."""
    deadline = time.monotonic() + seconds
    try:
        require(len(json.dumps(verdict.evidence)) <= MOST_CHARACTERS, "evidence of a sane size.")
        _check(claim, verdict, deadline)
    except Undecided as reason:
        return str(reason) or "the evidence does not show it."
    except Exception as error:  # a document may break any step, and then it shows nothing
        return f"the evidence is malformed: {type(error).__name__}."
    return ""


def _check(claim: claims.Claim, verdict: Verdict, deadline: float) -> None:
    status, evidence = verdict.status, verdict.evidence
    if isinstance(claim, claims.Prose) or status == "OPEN":
        require(status == "OPEN" and not evidence, "an open verdict has no evidence.")
        return
    if isinstance(claim, claims.Enumeration):
        _check_cases(claim, status, evidence)
    elif isinstance(claim, claims.Priced):
        check_price(claim, verdict)
    elif isinstance(claim, claims.Rate):
        _check_rate(claim, status, evidence, deadline)
    elif status == "REFUTED":
        _check_counterexample(claim, evidence)
    elif status == "SAMPLED":
        _check_points(claim, evidence)
    else:
        wanted = {claims.Loose: "LOOSE", claims.Definition: "DEFINITION"}.get(type(claim), "PROVED")
        require(status == wanted, f"a {claim.kind} that is proved is {wanted}.")
        _check_proofs(claim, evidence, deadline)


def _check_proofs(claim: claims.Claim, evidence: Mapping[str, Any], deadline: float) -> None:
    require(contains(claim, _point(evidence["witness"])), "the witness is a point of the domain.")
    context, found = context_of(claim, deadline), goals(claim)
    proofs = evidence["proofs"]
    require(len(proofs) == len(found), "there is a proof for each goal.")
    for goal, proof in zip(found, proofs, strict=True):
        _check_goal(context, goal, proof)
    if isinstance(claim, claims.Balance):
        _check_opposite(claim, context)


def _check_goal(context: Context, goal: Goal, proof: Mapping[str, Any]) -> None:
    """Check one goal; both sides must be defined on the whole domain."""
    for side in (goal.left, goal.right):
        if proof.get("rule") not in ("absurd", "balls", "equal cases"):
            is_defined(context, side, proof.get("sides_defined"))
    gap = minus(goal.right, goal.left)
    if goal.relation != "=":
        check(context, gap, goal.relation == "<", proof)
    elif proof.get("rule") == "equal":
        require(context.is_zero(gap), "both sides have one normal form.")
    elif proof.get("rule") == "absurd":
        check(context, gap, False, proof)
    elif proof.get("rule") == "equal cases":
        _check_equal_cases(context, goal, proof)
    else:
        check(context, gap, False, proof["below"])
        check(context, negative(gap), False, proof["above"])


def _check_equal_cases(context: Context, goal: Goal, proof: Mapping[str, Any]) -> None:
    """Replace a maximum or minimum of an equation by each of its arguments in turn."""
    extremum = decode(proof["of"])
    sides = (goal.left, goal.right)
    require(extremum[0] in ("max", "min"), "a maximum or a minimum.")
    require(any(extremum in set(subterms(side)) for side in sides), "an extremum that occurs.")
    is_defined(context, extremum, proof.get("defined"))
    require(len(proof["cases"]) == len(extremum) - 1, "a case for each argument.")
    for chosen, inner in zip(extremum[1:], proof["cases"], strict=True):
        facts = []
        for other in extremum[1:]:
            gap = minus(chosen, other) if extremum[0] == "max" else minus(other, chosen)
            facts.append((gap, False))
        table = {extremum: chosen}
        case = Goal(replace(goal.left, table), "=", replace(goal.right, table))
        _check_goal(context.with_facts(*facts), case, inner)


def _check_opposite(claim: claims.Balance, context: Context) -> None:
    """Check that both sides are fixed powers of the parameter, one falling and one rising."""
    require(claim.raw is not None, "both sides before the parameter is set.")
    powers = []
    signs = {name: "+" for side in claim.raw or () for name in symbols(side)}
    for side in claim.raw or ():
        forms = Context({**signs, **context.signs, claim.of: "+"})
        total = forms.normal.clear(forms.normal.sum(side))
        atom = ("sym", claim.of)
        found = {dict(monomial).get(atom, Fraction(0)) for monomial in total}
        rests = [
            forms.normal.term({frozenset(p for p in m if p[0] != atom): v})
            for m, v in total.items()
        ]
        require(len(found) == 1, "one power of the parameter.")
        require(all(claim.of not in symbols(rest) for rest in rests), "no other dependence.")
        powers.append(found.pop())
    numeric = [power for power in powers if isinstance(power, Fraction)]
    require(len(numeric) == len(powers) == 2, "two powers.")
    require(numeric[0] * numeric[1] < 0, "powers of opposite sign.")


def _point(document: Any) -> dict[str, Fraction]:
    require(isinstance(document, Mapping), "a point is an object.")
    return {str(name): decode(["num", value])[1] for name, value in document.items()}


def _check_counterexample(claim: claims.Claim, evidence: Mapping[str, Any]) -> None:
    require("point" in evidence and "goal" in evidence, "a counterexample has a goal and a point.")
    found = goals(claim)
    index = evidence["goal"]
    require(isinstance(index, int) and 0 <= index < len(found), "the goal exists.")
    goal, point = found[index], _point(evidence["point"])
    require(contains(claim, point), "the point lies in the domain.")
    sign = balls.sign_at(minus(goal.right, goal.left), point)
    wrong = {"<=": (-1,), "<": (-1, 0), "=": (-1, 1)}[goal.relation]
    require(sign in wrong, "the sides are in the wrong order.")
    for name, side in (("left", goal.left), ("right", goal.right)):
        shown = balls.text(balls.value(side, {s: (x, x) for s, x in point.items()}))
        require(evidence[name] == shown, "the values shown are those of the sides.")


def _check_points(claim: claims.Claim, evidence: Mapping[str, Any]) -> None:
    """Check that every goal certainly holds at the points listed, which are many and distinct."""
    points = [_point(point) for point in evidence["points"]]
    distinct = {tuple(sorted(point.items())) for point in points}
    require(len(distinct) == len(points) >= 30, "thirty distinct points.")
    for point in points:
        require(contains(claim, point), "points in the domain.")
        for left, relation, right in goals(claim):
            good = {"<=": (0, 1), "<": (1,), "=": (0,)}[relation]
            require(balls.sign_at(minus(right, left), point) in good, "the claim at each point.")


# ------------------------------------------------------------------------------------- other kinds


def _check_cases(claim: claims.Enumeration, status: str, evidence: Mapping[str, Any]) -> None:
    if status == "REFUTED":
        index = evidence["case"]
        require(isinstance(index, int) and 0 <= index < len(claim.cases), "the case exists.")
        require(claim.holds(claim.cases[index]) is False, "the case fails.")
        return
    require(status == ("PROVED" if claim.complete else "SAMPLED"), "a status that the cases carry.")
    require(evidence["cases"] == len(claim.cases), "all cases.")
    require(all(claim.holds(case) is True for case in claim.cases), "every case holds.")


Growth = Mapping[str, Term]


def _check_rate(
    claim: claims.Rate, status: str, evidence: Mapping[str, Any], deadline: float
) -> None:
    context = context_of(claim, deadline)
    require(all(context.signs[name] == "+" for name in claim.growth), "positive growing symbols.")
    for name, exponent in claim.growth.items():
        rises = exponent[0] != "num" or exponent[1] > 0
        falls = exponent[0] != "num" or exponent[1] < 0
        low, high = claim.domain[name].low, claim.domain[name].high
        require(high is None or not rises, "growing symbols without an upper bound.")
        require(low in (None, 0) or not falls, "falling symbols that come near zero.")
    held = {name for pair in claim.where for side in pair[:2] for name in symbols(side)}
    require(not held & claim.growth.keys(), "conditions that do not stop the growth.")
    lefts = [decode(row[0] if status == "PROVED" else row) for row in evidence["left"]]
    rights = [decode(row) for row in evidence["right"]]
    require(lefts and rights, "terms on both sides.")
    for side, rows in ((claim.left, lefts), (claim.right, rights)):
        is_defined(context, side, evidence.get("sides_defined"))
        for row in rows:
            is_defined(context, row, evidence.get("sides_defined"))
        require(context.is_zero(minus(side, plus(*rows))), "all terms of a side.")
    soft = isinstance(claim, claims.SoftRate)
    require(status in ("PROVED", "REFUTED"), "a rate is proved or refuted.")
    require(contains(claim, _point(evidence["witness"])), "the witness is a point of the domain.")
    if status == "PROVED":
        below = [order(context, row, claim.growth, exactly=True) for row in rights]
        for term, (_, index, proof) in zip(lefts, evidence["left"], strict=True):
            here = order(context, term, claim.growth, exactly=False)
            _check_below(context, here, below[index], soft, proof)
        return
    above = [order(context, row, claim.growth, exactly=False) for row in rights]
    heres = [order(context, row, claim.growth, exactly=True) for row in lefts]
    here, point = heres[evidence["term"]], _point(evidence["witness"])
    require(all(_exceeds(here, other, soft, point) for other in above), "a term that outgrows.")


def _check_below(context: Context, here: Order, other: Order, soft: bool, proof: Any) -> None:
    """Check that an order is at most another: its power, then its logarithms."""
    gap = minus(other[0], here[0])
    strict = not soft and here[1] > other[1]
    check(context, gap, strict, proof)


def _exceeds(here: Order, other: Order, soft: bool, point: Mapping[str, Fraction]) -> bool:
    sign = balls.sign_at(minus(here[0], other[0]), point)
    return sign == 1 or (sign == 0 and not soft and here[1] > other[1])
