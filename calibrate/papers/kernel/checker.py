"""The checker: do the proofs of a claim prove it?

It takes the goals from the claim, and uses the rules of ``rules.py`` and no part of the search. It
is total: for any document it returns a sentence, within a time limit. Counterexamples, tried points
and an accountant's epsilon are not proofs; see :mod:`dpcal.calibrate.papers.recheck`.

>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.claims.notation import line
>>> claim = standalone(line("x <= x + 1 where x in [0, 1]"))
>>> evidence = {"witness": {"x": "1"}, "proofs": [{"rule": "terms"}]}
>>> refusal(claim, "PROVED", evidence)
''
>>> refusal(claim, "REFUTED", evidence)
'a bound that is proved is PROVED.'
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context, context_of
from dpcal.calibrate.papers.kernel.normal import exact, sign_at
from dpcal.calibrate.papers.kernel.rules import check

if TYPE_CHECKING:
    from dpcal.calibrate.papers.claims.claim import Claim
    from dpcal.calibrate.papers.claims.ranges import Relation

SECONDS = 20.0  # the longest check of the five papers takes less than 2 seconds
MOST_CHARACTERS = 2_000_000


def refusal(claim: Claim, status: str, evidence: Any, seconds: float = SECONDS) -> str:
    """Return an empty text if the evidence proves the claim, or else the missing part.

    Parameters
    ----------
    claim
        The resolved claim that was decided.
    status
        The claimed status; only the status of a proved claim is accepted.
    evidence
        Any document.
    seconds
        Limit of processor time; a check that takes longer fails.
    """
    deadline = time.thread_time() + seconds
    try:
        t.require(len(json.dumps(evidence)) <= MOST_CHARACTERS, "evidence of a sane size.")
        t.require(status == claim.proved, f"a {claim.kind} that is proved is {claim.proved}.")
        context, given = witnessed(claim, evidence, deadline)
        require_proofs(context, claim.goals(*given, context=context), evidence["proofs"])
    except t.Undecided as reason:
        return str(reason) or "the evidence does not show it."
    except Exception as error:  # a document may break any step, and then it shows nothing
        return f"the evidence is malformed: {type(error).__name__}."
    return ""


def witnessed(
    claim: Claim, evidence: Mapping[str, Any], deadline: float
) -> tuple[Context, list[t.Term]]:
    """Return the facts of a claim's domain with a witness, and the terms that a proof chooses."""
    point = point_of(evidence["witness"])
    t.require(contains(claim, point), "a witness in the domain.")
    return context_of(claim, deadline, point), [*map(t.decode, evidence.get("given", ()))]


def require_proofs(context: Context, goals: Sequence[Relation], proofs: Any) -> None:
    """Raise Undecided unless there is a proof of each goal."""
    t.require(len(proofs) == len(goals) > 0, "there is a proof for each goal.")
    for goal, proof in zip(goals, proofs, strict=True):
        t.require(goal.sign in ("=", "<=", "<"), "an equation or an inequality.")
        if goal.sign == "=":
            check(context, goal.gap, False, proof.get("below", proof))
            check(context, t.negative(goal.gap), False, proof.get("above", proof))
        else:
            check(context, goal.gap, goal.strict, proof)


def contains(claim: Claim, point: Mapping[str, Fraction]) -> bool:
    """Return whether an exact point certainly lies in a claim's domain."""
    if not claim.ranges().keys() <= point.keys():
        return False
    counts = [exact(count, point) for count in claim.counts()]
    whole = all(count is not None and count.denominator == 1 for count in counts)
    signs = ((sign_at(fact, point), strict) for fact, strict in claim.limits())
    return whole and all(sign == 1 or (sign == 0 and not strict) for sign, strict in signs)


def point_of(document: Any) -> dict[str, Fraction]:
    """Read a point from a document."""
    return {str(name): t.decode(["num", value])[1] for name, value in document.items()}
