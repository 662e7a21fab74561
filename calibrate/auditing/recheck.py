"""Check a verdict again: what the kernel proves or refutes, and what is only tried.

The kernel accepts proofs and refutations. Points that were tried and prices of accountants are no
proofs: they are checked here, and carry the status SAMPLED (a price above the claim: REFUTED).

>>> from dpcal.calibrate.auditing.claims import Bound
>>> from dpcal.calibrate.auditing.language import standalone
>>> from dpcal.calibrate.auditing.prover import prove
>>> claim = standalone(Bound("c", "log(1 + x) <= x", on={"x": (0, 1)}))
>>> recheck(claim, prove(claim)), verdict_of(claim, Verdict("SAMPLED", "points"))
(True, 'the evidence is malformed: KeyError.')
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcal.accountants import epsilon
from dpcal.calibrate.auditing import claims
from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.checker import SECONDS, refusal
from dpcal.calibrate.auditing.kernel.goals import contains, goals
from dpcal.calibrate.auditing.kernel.rules import require
from dpcal.calibrate.auditing.kernel.terms import Term, Undecided, decode, minus
from dpcal.calibrate.auditing.verdicts import Verdict

__all__ = ["recheck", "shown", "verdict_of"]


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
    priced = isinstance(claim, claims.Priced) and verdict.status != "OPEN"
    if verdict.status != "SAMPLED" and not priced:
        return refusal(claim, verdict.status, verdict.evidence, seconds) or _misprint(
            claim, verdict
        )
    try:
        if isinstance(claim, claims.Priced):
            _check_price(claim, verdict)
        elif isinstance(claim, claims.Enumeration):
            _check_cases(claim, verdict)
        else:
            _check_points(claim, verdict)
    except Undecided as reason:
        return str(reason)
    except Exception as error:  # a document may break any step, and then it shows nothing
        return f"the evidence is malformed: {type(error).__name__}."
    return ""


def shown(side: Term, point: Mapping[str, Fraction]) -> str:
    """Return a value as people read it: exact where it is a short decimal, else six digits."""
    ball = balls.value(side, {name: (x, x) for name, x in point.items()})
    middle: Any = ball.mid()
    if ball.is_exact() and len(middle.str(20, radius=False)) <= 12:
        return str(middle.str(20, radius=False)).removesuffix(".0000000000000000000")
    return f"{float(middle):.6g}"


def _misprint(claim: claims.Claim, verdict: Verdict) -> str:
    """Return what is wrong with the values that an accepted counterexample shows."""
    if verdict.status != "REFUTED" or "goal" not in verdict.evidence:
        return ""
    goal = goals(claim)[verdict.evidence["goal"]]
    point = {name: Fraction(value) for name, value in verdict.evidence["point"].items()}
    values = {"left": shown(goal.left, point), "right": shown(goal.right, point)}
    good = all(verdict.evidence.get(name) == value for name, value in values.items())
    return "" if good else "the values shown are those of the sides."


def _check_points(claim: claims.Claim, verdict: Verdict) -> None:
    """Check that every goal certainly holds at the points listed, which are many and distinct."""
    points = [
        {str(name): decode(["num", value])[1] for name, value in point.items()}
        for point in verdict.evidence["points"]
    ]
    distinct = {tuple(sorted(point.items())) for point in points}
    require(len(distinct) == len(points) >= 30, "thirty distinct points.")
    for point in points:
        require(contains(claim, point), "points in the domain.")
        for left, relation, right in goals(claim):
            good = {"<=": (0, 1), "<": (1,), "=": (0,)}[relation]
            require(balls.sign_at(minus(right, left), point) in good, "the claim at each point.")


def _check_cases(claim: claims.Enumeration, verdict: Verdict) -> None:
    require(not claim.complete, "cases that are all there is are a proof.")
    require(verdict.evidence["cases"] == len(claim.cases), "all cases.")
    require(all(claim.holds(case) is True for case in claim.cases), "every case holds.")


def _check_price(claim: claims.Priced, verdict: Verdict) -> None:
    """Price the event by convolving privacy loss random variables; raise where it disagrees."""
    require(verdict.status in ("REFUTED", "SAMPLED"), "a price is never a proof.")
    price = epsilon(
        claim.event(),
        delta=claim.delta,
        neighboring_relation=claim.neighboring_relation,
        accountant="prv",
    )
    refuted = price.lower > claim.epsilon
    require(refuted == (verdict.status == "REFUTED"), "the price that the verdict says.")
