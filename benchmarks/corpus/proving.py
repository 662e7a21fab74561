"""From a question to a row with a proved bracket.

Where :mod:`benchmarks.corpus.exact` knows delta, its balls are the proof; elsewhere a certificate
is. Our accountant chooses the epsilons to be asked at, and where a search begins. No bound rests on
it: where it is wrong, the search is longer, and the row says otherwise.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from flint import arb, ctx

from benchmarks.corpus import adapters, exact
from benchmarks.corpus.adapters import Refused
from benchmarks.corpus.exact import Question
from benchmarks.corpus.questions import questions
from benchmarks.corpus.rows import event_of, outward
from benchmarks.corpus.strips import independent, one_of_two, two_rounds
from benchmarks.limits import at_most
from dpcal import accountants
from dpcal.accountants.certificates.enclosure import decimal_down, decimal_up
from dpcal.errors import DpcalError

Row = dict[str, Any]

CERTIFICATE, STRIPS = "ball certificate", "strips of the plane in balls"
# Relative width that is asked of a certificate, and the widest that is kept.
WIDTH, WIDEST = 1e-8, 0.5
# Families whose certificates are wide: no time is spent on a narrow one.
_WIDE = ("poisson-replaced", "laplace-often", "fixed-batches-replaced", "mixtures")
_SLOW = (*_WIDE, "correlated", "large-losses", "unequal-batches")
# Seconds of processor time after which a question is recorded as left out, and by how many times
# more a question that is asked again may take: seconds choose no row then.
_SECONDS, _SECONDS_OF_SLOW, _LENIENCE = 6, 40, 10
# Digits of a bound before it is rounded outward, and precisions in bits that are tried.
_DIGITS, _BITS = 30, (256, 1024)


def answered(
    family: str, left_out: set[str], *, seed: int, start: int = 0, recording: bool = False
) -> Iterator[tuple[str, tuple[Row, Row | None] | None]]:
    """Yield the id of each question, and its row and certificate; None where there is no row.

    Questions that are left out are not asked. Recording finds them, by a limit of seconds.
    """
    seconds = _SECONDS_OF_SLOW if family in _SLOW else _SECONDS
    for question in questions(family, seed=seed, start=start):
        if question["id"] in left_out:
            continue
        found = None
        with (
            contextlib.suppress(TimeoutError, DpcalError, ArithmeticError),
            at_most(seconds if recording else _LENIENCE * seconds),
        ):
            found = prove(question)
        yield question["id"], found


def prove(question: Row) -> tuple[Row, Row | None] | None:
    """Return the row of a question and its certificate; None if no narrow bracket was found."""
    row = {name: value for name, value in question.items() if name != "near"}
    known = Question.of(row["event"], row["neighboring_relation"], row["direction"])
    if known is not None and known.kind == exact.BRACKET:
        # Such brackets are wide, and wider still in delta.
        row["asked"] = {"delta": question["near"]}
    if row["asked"] is None:
        row["asked"] = {"epsilon": _near(question)}
    if row["asked"].get("epsilon") == 0:
        return None
    certificate = None
    if row["family"] == "correlated":
        if "epsilon" not in row["asked"]:
            row["asked"] = {"epsilon": _near(question)}
        kind, bounds = STRIPS, of_strips(row)
    elif known is not None:
        kind, bounds = known.kind, _by(known, row)
    else:
        kind = CERTIFICATE
        certificate, bounds = certified(row)
    if bounds is None or not _is_narrow(*bounds):
        return None
    lower, upper = outward(*bounds)
    return {**row, "lower": lower, "upper": upper, "proof": kind}, certificate


def _near(question: Row) -> float:
    """Return an epsilon of three digits at which delta has about the wanted size."""
    epsilon = accountants.epsilon(
        event_of(question["event"]),
        delta=question["near"],
        neighboring_relation=question["neighboring_relation"],
    )
    if not math.isfinite(epsilon):
        return 1.0
    # Three digits, rounded down: a pure mechanism has no delta above its epsilon.
    scale = 10.0 ** (2 - math.floor(math.log10(epsilon))) if epsilon > 0 else 1.0
    return float(f"{math.floor(0.999 * float(epsilon) * scale) / scale:.3g}")


def _is_narrow(lower: Decimal, upper: Decimal) -> bool:
    return upper > 0 and (upper - lower) <= Decimal(WIDEST) * upper


# -- delta in balls


def of_delta(known: Question, epsilon: float | Decimal) -> tuple[Decimal, Decimal]:
    """Return bounds on delta at an epsilon, at the least precision that gives all digits."""
    for bits in _BITS:
        with ctx.workprec(bits):
            lower, upper = known.delta(
                arb(str(epsilon)) if isinstance(epsilon, Decimal) else arb(epsilon)
            )
            low, high = decimal_down(lower, _DIGITS), decimal_up(upper, _DIGITS)
        low, high = max(low, Decimal(0)), min(high, Decimal(1))
        if known.kind == exact.BRACKET or high == 0 or high - low <= Decimal("1e-14") * high:
            break
    return low, high


def _by(known: Question, row: Row) -> tuple[Decimal, Decimal] | None:
    if "epsilon" in row["asked"]:
        return of_delta(known, row["asked"]["epsilon"])
    delta = Decimal(row["asked"]["delta"])
    if of_delta(known, 0.0)[1] <= delta:
        return None
    guess = None if known.kind == exact.BRACKET else _guess(row)
    if guess is not None:
        for share in ("3e-10", "1e-8"):
            low, high = (
                Decimal(text)
                for text in outward(guess * (1 - Decimal(share)), guess * (1 + Decimal(share)))
            )
            if settles(known, low, high, delta):
                return low, high
    return _searched(known, delta)


def settles(known: Question, lower: Decimal, upper: Decimal, delta: Decimal) -> bool:
    """Return whether epsilon is proved to be between two decimals at a delta."""
    return of_delta(known, upper)[1] <= delta and of_delta(known, lower)[0] >= delta


def _guess(row: Row) -> Decimal | None:
    """Return our accountant's epsilon; None if it has none, or an infinite one."""
    with contextlib.suppress(DpcalError, Refused):
        lower, upper = adapters.dpcal(row)
        if math.isfinite(upper):
            return (Decimal(lower) + Decimal(upper)) / 2
    return None


def _searched(known: Question, delta: Decimal) -> tuple[Decimal, Decimal] | None:
    """Return epsilons of ten digits on either side, by bisection of either bound."""
    ends = []
    for side in (0, 1):
        low, high = Decimal(0), Decimal(1)
        while of_delta(known, high)[side] > delta:
            low, high = high, 2 * high
            if high > 10**6:
                return None
        while high - low > Decimal("2e-10") * high:
            middle = (low + high) / 2
            low, high = (middle, high) if of_delta(known, middle)[side] > delta else (low, middle)
        ends.append((low, high))
    return Decimal(outward(ends[0][0], high)[0]), Decimal(outward(low, ends[1][1])[1])


def of_strips(row: Row) -> tuple[Decimal, Decimal]:
    """Return bounds on delta of two rounds of correlated noise."""
    event, found = row["event"], []
    with ctx.workprec(128):
        q = event["sampler"].get("sampling_probability")
        law = one_of_two() if q is None else independent(arb(q))
        for direction in ("remove", "add") if row["direction"] == "worst" else (row["direction"],):
            lower, upper = two_rounds(
                event["strategy"],
                law,
                event["noise_multiplier"],
                direction,
                arb(row["asked"]["epsilon"]),
            )
            found.append((decimal_down(lower, _DIGITS), decimal_up(upper, _DIGITS)))
    return max(low for low, _ in found), max(high for _, high in found)


# -- certificates


def certified(row: Row) -> tuple[Row | None, tuple[Decimal, Decimal] | None]:
    """Return a certificate of a row and its bounds; None if no proof covers the event.

    The direction of a row becomes "worst" where that of its own is not proved narrowly.
    """
    event, how = event_of(row["event"]), {**row["asked"]}
    how["neighboring_relation"] = row["neighboring_relation"]
    certificate = None
    for width in (None,) if row["family"] in _WIDE else (WIDTH, None):
        with contextlib.suppress(DpcalError):
            certificate = accountants.certify(event, width=width, **how)
            break
    if certificate is None:
        return None, None
    if row["direction"] != "worst":
        bounds = certificate.proofs[0]
        for item in bounds.directions:
            narrow = Decimal(WIDTH) * item.upper >= item.upper - item.lower
            if item.direction == row["direction"] and certificate.delta is None and narrow:
                return certificate.to_dict(), (item.lower, item.upper)
        row["direction"] = "worst"
    return certificate.to_dict(), (certificate.lower, certificate.upper)
