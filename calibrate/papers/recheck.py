"""Check a verdict again: proofs by the kernel, and all other evidence.

The kernel accepts proofs, and the verifier of certificates bounds on delta. Counterexamples and
listed cases are checked here; cases have the status SAMPLED, which no formula has.

>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.claims.notation import line
>>> from dpcal.calibrate.papers.prover import prove
>>> claim = standalone(line("log(1 + x) <= x where x in [0, 1]"))
>>> recheck(claim, prove(claim)), verdict_of(claim, Verdict("SAMPLED", "points"))
(True, 'a formula is not true because it was tried.')
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcal.accountants.certificates.document import Certificate
from dpcal.accountants.certificates.verify import verify_certificate
from dpcal.calibrate.papers.claims import growth, privacy
from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.checker import (
    MOST_CHARACTERS,
    SECONDS,
    contains,
    point_of,
    refusal,
    require_proofs,
    witnessed,
)
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import Term, Undecided, require

_MOST_WORK = 5e8  # units of work to check a certificate; at most half a minute


def recheck(claim: Claim, verdict: Verdict, *, seconds: float = SECONDS) -> bool:
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


def verdict_of(claim: Claim, verdict: Verdict, *, seconds: float = SECONDS) -> str:
    """Return an empty text if the evidence is sound, or else the missing part."""
    evidence, status = verdict.evidence, verdict.status
    with_certificate = isinstance(evidence, Mapping) and "certificate" in evidence
    if status == claim.proved and not with_certificate:
        return refusal(claim, status, evidence, seconds)
    deadline = time.thread_time() + seconds
    try:
        require(len(json.dumps(evidence)) <= MOST_CHARACTERS, "evidence of a sane size.")
        if with_certificate:
            _check_certificate(claim, verdict)
        elif status == "OPEN":
            require(not evidence, "an open verdict has no evidence.")
        elif status == "REFUTED":
            _check_refuted(claim, evidence, deadline)
        else:
            require(status == "SAMPLED", f"a {claim.kind} that is proved is {claim.proved}.")
            _check_sampled(claim, evidence)
    except Undecided as reason:
        return str(reason) or "the evidence does not show it."
    except Exception as error:
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


def _check_refuted(claim: Claim, evidence: Mapping[str, Any], deadline: float) -> None:
    if claim.kind == "enumeration":
        index, program = evidence["case"], claim.parts["program"]
        require(isinstance(index, int) and 0 <= index < len(program.cases), "the case exists.")
        require(program.holds(program.cases[index]) is False, "the case fails.")
    elif claim.kind == "rate":
        context, given = witnessed(claim, evidence, deadline)
        require_proofs(context, growth.sums(claim, given, context), evidence["proofs"])
        point = point_of(evidence["witness"])
        require(growth.outgrows(claim, given, context, point), "a term that outgrows.")
    else:
        _check_counterexample(claim, evidence)


def _check_counterexample(claim: Claim, evidence: Mapping[str, Any]) -> None:
    """Check that a goal fails at a point of the domain, and the values that are shown."""
    require("point" in evidence and "goal" in evidence, "a counterexample has a goal and a point.")
    found, index = claim.necessary(), evidence["goal"]
    require(isinstance(index, int) and 0 <= index < len(found), "the goal exists.")
    goal, point = found[index], point_of(evidence["point"])
    require(contains(claim, point), "the point lies in the domain.")
    wrong = {"<=": (-1,), "<": (-1, 0), "=": (-1, 1)}[goal.sign]
    require(sign_at(goal.gap, point) in wrong, "the sides are in the wrong order.")
    for name, side in (("left", goal.left), ("right", goal.right)):
        require(evidence[name] == shown(side, point), "the values shown are those of the sides.")


def _check_sampled(claim: Claim, evidence: Mapping[str, Any]) -> None:
    require(claim.kind == "enumeration", "a formula is not true because it was tried.")
    program = claim.parts["program"]
    require(not program.complete, "cases that are all there is are a proof.")
    require(evidence["cases"] == len(program.cases), "all cases.")
    require(all(program.holds(case) is True for case in program.cases), "every case holds.")


def _check_certificate(claim: Claim, verdict: Verdict) -> None:
    """Verify a certificate of delta for the claim's event; a point may refute only."""
    proved, point = verdict.status == claim.proved, point_of(verdict.evidence["point"])
    require(proved or verdict.status == "REFUTED", "a certificate proves or refutes.")
    require(claim.kind == "private", "a claim about releases.")
    require(contains(claim, point), "the point lies in the domain.")
    require(not (proved and claim.ranges()), "a point is no proof.")
    event, epsilon, delta, relation = privacy.priced(claim, point, outward=proved)
    found = Certificate.from_json(verdict.evidence["certificate"])
    require(found.covers(event), "a certificate of the claim's event.")
    require(found.neighboring_relation == relation, "the claim's relation.")
    require(found.quantity == "delta", "a certificate of delta.")
    require(found.proofs[0].epsilon == epsilon, "the claim's epsilon.")
    require(
        found.upper <= delta if proved else found.lower > delta, "bounds that settle the claim."
    )
    verify_certificate(found, most=_MOST_WORK)
