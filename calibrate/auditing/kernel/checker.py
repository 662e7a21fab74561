"""The checker: does the evidence of a verdict show what the verdict says about a claim?

It derives the goals from the claim, knows the rules of :mod:`rules` and nothing of the search that
found the evidence, and is total: for any document it answers with a sentence, within a time limit.
What is not a proof (points that were tried, prices of accountants) is not accepted here; see
:mod:`dpcal.calibrate.auditing.recheck`.

>>> from dpcal.calibrate.auditing.claims import Bound
>>> from dpcal.calibrate.auditing.language import standalone
>>> claim = standalone(Bound("c", "x <= x + 1", on={"x": (0, 1)}))
>>> evidence = {"witness": {"x": "1"}, "proofs": [{"rule": "plain", "as": ["num", "1"]}]}
>>> refusal(claim, "PROVED", evidence)
''
>>> refusal(claim, "REFUTED", evidence)
'a counterexample has a goal and a point.'
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcal.calibrate.auditing import claims
from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.goals import contains, context_of, goals
from dpcal.calibrate.auditing.kernel.rates import check_rate
from dpcal.calibrate.auditing.kernel.rules import Context, check, is_zero_form, require
from dpcal.calibrate.auditing.kernel.terms import (
    Undecided,
    decode,
    minus,
    negative,
    power,
    symbol,
    symbols,
    times,
)

__all__ = ["SECONDS", "refusal"]

SECONDS = 20.0  # the longest check of the five papers takes below 2 seconds
MOST_CHARACTERS = 2_000_000  # of a verdict's evidence as JSON


def refusal(claim: claims.Claim, status: str, evidence: Any, seconds: float = SECONDS) -> str:
    """Return an empty text where the evidence proves or refutes the claim, or what is missing.

    Parameters
    ----------
    claim
        The resolved claim that was decided.
    status
        What is said about it; only proofs, refutations and open claims are accepted.
    evidence
        Any document.
    seconds
        Time limit; a check that takes longer fails.
    """
    deadline = time.monotonic() + seconds
    try:
        require(len(json.dumps(evidence)) <= MOST_CHARACTERS, "evidence of a sane size.")
        _check(claim, status, evidence, deadline)
    except Undecided as reason:
        return str(reason) or "the evidence does not show it."
    except Exception as error:  # a document may break any step, and then it shows nothing
        return f"the evidence is malformed: {type(error).__name__}."
    return ""


def _check(claim: claims.Claim, status: str, evidence: Mapping[str, Any], deadline: float) -> None:
    if isinstance(claim, claims.Prose) or status == "OPEN":
        require(status == "OPEN" and not evidence, "an open verdict has no evidence.")
    elif isinstance(claim, claims.Enumeration):
        _check_cases(claim, status, evidence)
    elif isinstance(claim, claims.Rate):
        check_rate(claim, status, evidence, deadline)
    elif status == "REFUTED":
        _check_counterexample(claim, evidence)
    else:
        wanted = {claims.Loose: "LOOSE", claims.Definition: "DEFINITION"}.get(type(claim), "PROVED")
        require(status == wanted, f"a {claim.kind} that is proved is {wanted}.")
        _check_proofs(claim, evidence, deadline)


def _check_proofs(claim: claims.Claim, evidence: Mapping[str, Any], deadline: float) -> None:
    require(contains(claim, _point(evidence["witness"])), "the witness is a point of the domain.")
    context, found, proofs = context_of(claim, deadline), goals(claim), evidence["proofs"]
    require(len(proofs) == len(found), "there is a proof for each goal.")
    for goal, proof in zip(found, proofs, strict=True):
        gap = minus(goal.right, goal.left)
        if goal.relation == "=":
            check(context, gap, False, proof["below"])
            if not is_zero_form(proof["below"]):
                check(context, negative(gap), False, proof["above"])
        else:
            check(context, gap, goal.relation == "<", proof)
    if isinstance(claim, claims.Balance):
        _check_opposite(claim, context, evidence["powers"])


def _check_opposite(claim: claims.Balance, context: Context, powers: Any) -> None:
    """Check that both sides are fixed powers of the parameter, one falling and one rising."""
    raw = claim.raw or ()
    names = {claim.of} | {name for side in raw for name in symbols(side)}
    fresh = [(symbol(name), True) for name in names - context.names]
    wider = Context(context.names | names, (*context.facts.items(), *fresh), context.deadline)
    exponents = []
    for side, (exponent, rest, proof) in zip(raw, powers, strict=True):
        count, other = decode(["num", exponent]), decode(rest)
        require(claim.of not in symbols(other), "no other dependence on the parameter.")
        gap = minus(side, times(other, power(symbol(claim.of), count)))
        require(is_zero_form(proof), "an identity.")
        check(wider, gap, False, proof)
        exponents.append(count[1])
    require(len(exponents) == 2, "two sides.")
    require(exponents[0] * exponents[1] < 0, "powers of opposite sign.")


def _point(document: Any) -> dict[str, Fraction]:
    require(isinstance(document, Mapping), "a point is an object.")
    return {str(name): decode(["num", value])[1] for name, value in document.items()}


def _check_counterexample(claim: claims.Claim, evidence: Mapping[str, Any]) -> None:
    require("point" in evidence and "goal" in evidence, "a counterexample has a goal and a point.")
    found, index = goals(claim), evidence["goal"]
    require(isinstance(index, int) and 0 <= index < len(found), "the goal exists.")
    goal, point = found[index], _point(evidence["point"])
    require(contains(claim, point), "the point lies in the domain.")
    sign = balls.sign_at(minus(goal.right, goal.left), point)
    wrong = {"<=": (-1,), "<": (-1, 0), "=": (-1, 1)}[goal.relation]
    require(sign in wrong, "the sides are in the wrong order.")


def _check_cases(claim: claims.Enumeration, status: str, evidence: Mapping[str, Any]) -> None:
    if status == "REFUTED":
        index = evidence["case"]
        require(isinstance(index, int) and 0 <= index < len(claim.cases), "the case exists.")
        require(claim.holds(claim.cases[index]) is False, "the case fails.")
        return
    require(status == "PROVED" and claim.complete, "cases that are all there is.")
    require(evidence["cases"] == len(claim.cases), "all cases.")
    require(all(claim.holds(case) is True for case in claim.cases), "every case holds.")
