"""Checks of the brackets of rows: every proof again, from the row and its certificate only."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from flint import arb, ctx

from benchmarks.corpus import exact
from benchmarks.corpus.exact import Question
from benchmarks.corpus.rows import event_of
from dpcal import accountants
from dpcal.accountants.certificates.enclosure import decimal_bounds
from dpcal.errors import CertificateRejected

Row = dict[str, Any]

CERTIFICATE = "ball certificate"
_DIGITS, _BITS = 30, (256, 1024)


def problem(row: Row, certificate: Row | None) -> str | None:
    """Return the fault of a row; None if its bracket is proved."""
    lower, upper = Decimal(row["lower"]), Decimal(row["upper"])
    if row["proof"] == CERTIFICATE:
        return _of_certificate(row, certificate, lower, upper)
    known = Question.of(row["event"], row["neighboring_relation"], row["direction"])
    if known is None or known.kind != row["proof"]:
        return "no such proof is known for the event"
    if "delta" in row["asked"]:
        holds = settles(known, lower, upper, Decimal(row["asked"]["delta"]))
        return None if holds else "delta at the ends of the bracket is on the wrong side"
    low, high = of_delta(known, row["asked"]["epsilon"])
    return None if lower <= low and high <= upper else f"delta is in [{low}, {high}]"


def _of_certificate(row: Row, document: Row | None, lower: Decimal, upper: Decimal) -> str | None:
    if document is None:
        return "the certificate is missing"
    try:
        found = accountants.verify_certificate(document)
    except CertificateRejected as error:
        return str(error)
    if not found.covers(event_of(row["event"])):
        return "the certificate is about another event"
    if found.neighboring_relation != row["neighboring_relation"]:
        return "the certificate is about another relation"
    given = {"epsilon": found.proofs[0].epsilon} if found.delta is None else {"delta": found.delta}
    if given != row["asked"]:
        return "the certificate answers another question"
    low, high = found.lower, found.upper
    if row["direction"] != "worst":
        (bounds,) = [
            item for item in found.proofs[0].directions if item.direction == row["direction"]
        ]
        low, high = bounds.lower, bounds.upper
    return None if lower <= low and high <= upper else f"the certificate proves [{low}, {high}]"


def of_delta(known: Question, epsilon: float | Decimal) -> tuple[Decimal, Decimal]:
    """Return bounds on delta at an epsilon, at the least precision that gives all digits."""
    for bits in _BITS:
        with ctx.workprec(bits):
            lower, upper = known.delta(
                arb(str(epsilon)) if isinstance(epsilon, Decimal) else arb(epsilon)
            )
            low, high = decimal_bounds(lower, upper, _DIGITS)
        if known.kind == exact.BRACKET or high == 0 or high - low <= Decimal("1e-14") * high:
            break
    return low, high


def settles(known: Question, lower: Decimal, upper: Decimal, delta: Decimal) -> bool:
    """Return whether epsilon is proved to be between two decimals at a delta."""
    return of_delta(known, upper)[1] <= delta and of_delta(known, lower)[0] >= delta
