"""Check a verdict again: proofs by the kernel, and all other evidence.

The kernel accepts proofs, and the verifier of certificates bounds on delta. Counterexamples, listed
cases and prices of accountants are checked here; cases and prices have the status SAMPLED (a price
above the claim: REFUTED), which no formula has.

>>> from dpcal.calibrate.papers.claims.claims import Bound
>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.prover import prove
>>> claim = standalone(Bound("c", "log(1 + x) <= x", on={"x": (0, 1)}))
>>> recheck(claim, prove(claim)), verdict_of(claim, Verdict("SAMPLED", "points"))
(True, 'a formula is not true because it was tried.')
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from dpcal.accountants import epsilon
from dpcal.accountants.certificates.document import Certificate
from dpcal.accountants.certificates.verify import verify_certificate
from dpcal.calibrate.papers.claims import claims, privacy
from dpcal.calibrate.papers.claims.growth import check_outgrown, check_within
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.checker import (
    MOST_CHARACTERS,
    SECONDS,
    contains,
    point_of,
    refusal,
)
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import Term, Undecided, minus, require

__all__ = ["recheck", "shown", "verdict_of"]

_FINEST, _COARSEST = 0.01, 0.5  # errors of the second price, which takes seconds at the first
_MOST_WORK = 5e8  # units of the check of a certificate; at most half a minute


def recheck(claim: claims.Claim, verdict: Verdict, *, seconds: float = SECONDS) -> bool:
    """Return whether the evidence of a verdict supports its status.

    Parameters
    ----------
    claim
        The resolved claim that was decided.
    verdict
        The verdict; any document is allowed.
    seconds
        Limit of processor time; a check that takes longer fails.
    """
    return not verdict_of(claim, verdict, seconds=seconds)


def verdict_of(claim: claims.Claim, verdict: Verdict, *, seconds: float = SECONDS) -> str:
    """Return an empty text if the evidence is sound, or else the missing part."""
    evidence = verdict.evidence
    with_certificate = isinstance(evidence, Mapping) and "certificate" in evidence
    if verdict.status == claim.proved and not (
        isinstance(claim, (privacy.Priced, claims.Rate)) or with_certificate
    ):
        return refusal(claim, verdict.status, verdict.evidence, seconds)
    deadline = time.thread_time() + seconds
    try:
        require(len(json.dumps(verdict.evidence)) <= MOST_CHARACTERS, "evidence of a sane size.")
        if verdict.status == "OPEN":
            require(not verdict.evidence, "an open verdict has no evidence.")
        elif with_certificate:
            _check_certificate(claim, verdict)
        elif isinstance(claim, claims.Rate) and verdict.status == claim.proved:
            check_within(claim, verdict.evidence, deadline)
        elif isinstance(claim, privacy.Priced):
            _check_price(claim, verdict)
        else:
            checks = {"REFUTED": _check_refuted, "SAMPLED": _check_sampled}
            require(verdict.status in checks, f"a {claim.kind} that is proved is {claim.proved}.")
            checks[verdict.status](claim, verdict.evidence, deadline)
    except Undecided as reason:
        return str(reason) or "the evidence does not show it."
    except Exception as error:  # a document may break any step, and then it shows nothing
        return f"the evidence is malformed: {type(error).__name__}."
    return ""


def shown(side: Term, point: Mapping[str, Fraction]) -> str:
    """Return a value for display: exact if it is a short decimal, else with six digits."""
    ball = balls.value(side, {name: (x, x) for name, x in point.items()})
    middle: Any = ball.mid()
    if ball.is_exact() and len(middle.str(20, radius=False)) <= 12:
        return str(middle.str(20, radius=False)).removesuffix(".0000000000000000000")
    near = float(middle)
    in_floats = math.isfinite(near) and (near != 0 or middle == 0)
    return f"{near:.6g}" if in_floats else str(middle.str(6, radius=False))


def _check_refuted(claim: claims.Claim, evidence: Mapping[str, Any], deadline: float) -> None:
    if isinstance(claim, claims.Enumeration):
        index = evidence["case"]
        require(isinstance(index, int) and 0 <= index < len(claim.cases), "the case exists.")
        require(claim.holds(claim.cases[index]) is False, "the case fails.")
    elif isinstance(claim, claims.Rate):
        check_outgrown(claim, evidence, deadline)
    else:
        _check_counterexample(claim, evidence)


def _check_counterexample(claim: claims.Claim, evidence: Mapping[str, Any]) -> None:
    """Check that a goal fails at a point of the domain, and the values that are shown."""
    require("point" in evidence and "goal" in evidence, "a counterexample has a goal and a point.")
    found, index = claim.necessary(), evidence["goal"]
    require(isinstance(index, int) and 0 <= index < len(found), "the goal exists.")
    (left, relation, right), point = found[index], point_of(evidence["point"])
    require(contains(claim, point), "the point lies in the domain.")
    sign = sign_at(minus(right, left), point)
    wrong = {"<=": (-1,), "<": (-1, 0), "=": (-1, 1)}[relation]
    require(sign in wrong, "the sides are in the wrong order.")
    good = evidence["left"] == shown(left, point) and evidence["right"] == shown(right, point)
    require(good, "the values shown are those of the sides.")


def _check_sampled(claim: claims.Claim, evidence: Mapping[str, Any], deadline: float) -> None:
    require(isinstance(claim, claims.Enumeration), "a formula is not true because it was tried.")
    cases = cast(claims.Enumeration, claim)
    require(not cases.complete, "cases that are all there is are a proof.")
    require(evidence["cases"] == len(cases.cases), "all cases.")
    require(all(cases.holds(case) is True for case in cases.cases), "every case holds.")


def _check_certificate(claim: claims.Claim, verdict: Verdict) -> None:
    """Verify a certificate of delta for the claim's event; a point may refute only."""
    proved, point = verdict.status == claim.proved, point_of(verdict.evidence.get("point", {}))
    require(proved or verdict.status == "REFUTED", "a certificate proves or refutes.")
    if isinstance(claim, privacy.Private):
        require(contains(claim, point), "the point lies in the domain.")
        require(not (proved and claim.ranges()), "a point is no proof.")
        priced = claim.priced(point, outward=proved)
    else:
        require(isinstance(claim, privacy.Priced), "a claim about a price.")
        priced = cast(privacy.Priced, claim)
    found = Certificate.from_json(verdict.evidence["certificate"])
    require(found.covers(priced.event()), "a certificate of the claim's event.")
    require(found.neighboring_relation == priced.neighboring_relation, "the claim's relation.")
    require(found.quantity == "delta", "a certificate of delta.")
    require(found.proofs[0].epsilon == priced.epsilon, "the claim's epsilon.")
    settled = found.upper <= priced.delta if proved else found.lower > priced.delta
    require(settled, "bounds that settle the claim.")
    verify_certificate(found, most=_MOST_WORK)


def _check_price(claim: privacy.Priced, verdict: Verdict) -> None:
    """Price the event again, and by convolution as finely as the distance from the claim needs."""
    require(verdict.status in ("REFUTED", "SAMPLED"), "a price is no proof.")
    price = functools.partial(
        epsilon, claim.event(), delta=claim.delta, neighboring_relation=claim.neighboring_relation
    )
    found, refuted = price(), verdict.status == "REFUTED"
    for name, number in (("lower", found.lower), ("upper", found.upper)):
        # A processor that rounds otherwise may change the last digits.
        near = math.isclose(verdict.evidence[name], number, rel_tol=1e-9)
        require(near, "the price that is shown.")
    end = found.lower if refuted else found.upper
    require((end > claim.epsilon) == refuted, "the price that the verdict says.")
    error = min(max(abs(end - claim.epsilon) / 4, _FINEST), _COARSEST)
    other = price(accountant="prv", eps_error=error)
    require((other.lower > claim.epsilon) == refuted, "a second accountant that says the same.")
