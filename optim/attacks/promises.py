"""Did one run keep its plan's promises? Checks of a tape alone, without a neighbour.

Each answer has its entry in the ledger before its sum is taken; its kind, bound and noise are the
query's; batches follow the law that is priced; noise has the planned size, once. Checks of laws
are tests at level :data:`ALARM` each: about one in a million of them rejects a correct run.

>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, dpsgd
>>> from dpcal.optim.attacks.recording import record
>>> plan = calibrate.dpsgd(n=50, batch_size=20, steps=30, epsilon=1.0, delta=1e-5)
>>> objective = Logistic(np.eye(50), [0, 1] * 25, classes=[0, 1])
>>> tape = record(lambda objective: dpsgd(objective, plan), objective)
>>> list(broken_promises(tape))
[]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from dpcal.calibrate.plan import Query
from dpcal.errors import LedgerMismatch
from dpcal.optim.attacks.findings import Finding
from dpcal.optim.attacks.recording import Answer, Choice, Opened, Tape
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.result import Result

__all__ = ["ALARM", "broken_promises"]

# Chance of a false alarm of each statistical test, small enough for a suite of thousands of tests.
ALARM = 1e-6

# Standard deviations that a normal number exceeds with a chance of about ALARM.
_FAR = 4.9

# Largest relative difference of two computations of one standard deviation.
_ROUNDING = 1e-9

# Two noises closer than this are equal: as numbers, and as vectors, which are rounded more.
# Among 10^4 independent normal numbers two come so close with a chance of about 1e-6.
_TWICE, _TWICE_VECTOR = 1e-13, 1e-9


def broken_promises(tape: Tape, *, price: bool = True) -> Iterator[Finding]:
    """Yield the violations of a recorded run; plans and ledgers are priced too if ``price``."""
    for bare in tape.bare:
        place = f"a sum of kind {bare.kind!r} over {len(bare.rows)} records"
        yield Finding(violation="noise", place=place, detail="it was taken and got no noise")
    secrets = [opened.secret for opened in tape.opened]
    for number, opened in enumerate(tape.opened):
        if opened.secret in secrets[:number]:
            yield Finding(
                violation="reuse",
                place=f"oracle {number}",
                detail="it has the seed, plan and records, and so the noise, of one before",
            )
        answers = tape.of(number)
        choices = [choice for choice in tape.choices if choice.oracle == number]
        yield from _entries(opened, [*answers, *choices], number)
        for query in opened.plan.queries:
            yield from _query(opened, query, [a for a in answers if a.query.name == query.name])
    yield from _noise_twice(tape.answers)
    yield from _claims(tape, price=price)


def _entries(opened: Opened, answers: Sequence[Answer | Choice], number: int) -> Iterator[Finding]:
    """Compare the ledger with the answers, in order."""
    due = [entry for entry in opened.ledger.entries for _ in range(entry.count)]
    place = f"oracle {number}"
    position = 0
    for answered, answer in enumerate(answers, start=1):
        # A proportional query between equal parameters reads no record: an entry without a sum.
        while position < len(due) and due[position].proportional and not _is(due[position], answer):
            position += 1
        if answer.entries < answered or position == len(due) or not _is(due[position], answer):
            detail = f"answer {answered}, to {answer.query.name!r}, has no entry before its sum"
            yield Finding(violation="ledger", place=place, detail=detail)
            return
        position += 1
    left = [entry.name for entry in due[position:] if not entry.proportional]
    if left:
        detail = f"there are {len(left)} entries without an answer, the first to {left[0]!r}"
        yield Finding(violation="ledger", place=place, detail=detail)


def _is(entry: Query, answer: Answer | Choice) -> bool:
    """Return whether an entry of the ledger belongs to an answer."""
    asked = answer.query
    return (entry.name, entry.noise_multiplier) == (asked.name, asked.noise_multiplier)


def _query(opened: Opened, query: Query, answers: list[Answer]) -> Iterator[Finding]:
    """Check all answers to one query."""
    place = f"answers to {query.name!r}"
    if opened.ledger.count(query.name) > query.count:
        asked = opened.ledger.count(query.name)
        yield Finding(
            violation="ledger", place=place, detail=f"{asked} of them, planned {query.count}"
        )
    for number, answer in enumerate(answers):
        finding = _mismatch(query, answer, f"answer {number} to {query.name!r}")
        if finding is not None:
            yield finding
            return
    if not answers:
        return
    n = opened.plan.n
    for check in (_repeats, *_SAMPLERS.get(_law(query), ())):
        wrong = check(query, n, [answer.rows for answer in answers])
        if wrong:
            yield Finding(violation="sampler", place=place, detail=wrong)
            return
    yield from _noises(query, answers, place)


# Hessians are summed as the gradients of an objective that stands for them.
_SUMMED_AS = dict.fromkeys(("hessian", "hessian vector", "saddle score"), "gradient")


def _mismatch(query: Query, answer: Answer, place: str) -> Finding | None:
    """Return how one answer differs from its query, or None."""
    asked = answer.query
    chosen = query.budget is not None and asked.noise_multiplier >= query.noise_multiplier
    multiplier = asked.noise_multiplier if chosen else query.noise_multiplier
    expected = dataclasses.replace(query, noise_multiplier=multiplier, count=1)
    if dataclasses.replace(asked, count=1) != expected:
        detail = f"{asked} was answered, planned was {query}"
        return Finding(violation="plan", place=place, detail=detail)
    if answer.kind != _SUMMED_AS.get(query.kind, query.kind):
        detail = f"a sum of kind {answer.kind!r} was taken for {query.kind!r}"
        return Finding(violation="bound", place=place, detail=detail)
    distance = float(np.linalg.norm(np.subtract(*answer.at))) if len(answer.at) == 2 else None
    bound = query.bound(distance)
    if not math.isclose(answer.bound, bound, rel_tol=_ROUNDING):
        detail = f"contributions were clipped to {answer.bound!r}, planned {bound!r}"
        return Finding(violation="bound", place=place, detail=detail)
    if not math.isclose(answer.scale, bound, rel_tol=_ROUNDING):
        detail = f"the noise was in units of {answer.scale!r}, planned {bound!r}"
        return Finding(violation="noise", place=place, detail=detail)
    return None


def _two_sided(below: Any, above: Any) -> float:
    """Return the two-sided chance, given the chances of both sides."""
    return float(min(1.0, 2 * min(below, above)))


def _chi_squared(least: float, degrees: int, most: float | None = None) -> float:
    """Return the chance of a value as extreme as a sum of squares, known up to an interval."""
    most = least if most is None else most
    return _two_sided(
        special.gammainc(degrees / 2, most / 2), special.gammaincc(degrees / 2, least / 2)
    )


def _binomial(found: int, trials: int, q: float) -> float:
    return _two_sided(
        special.bdtr(found, trials, q), special.bdtrc(found - 1, trials, q) if found else 1.0
    )


# -- noise


def _noises(query: Query, answers: list[Answer], place: str) -> Iterator[Finding]:
    """Test that noise, without its correlation, has the normal law of the planned size."""
    rows = np.array([answer.noise for answer in answers])
    if query.correlation is not None:
        rows = query.correlation.strategy.matrix()[: len(rows), : len(rows)] @ rows
    square = float((rows**2).sum())
    if _chi_squared(square, rows.size) < ALARM:
        size = math.sqrt(square / rows.size)
        detail = f"it is {size:.4g} times as large as planned, over {rows.size} numbers"
        yield Finding(violation="noise", place=place, detail=detail)
    elif len(rows) > 1:
        product = float((rows[1:] * rows[:-1]).sum()) / math.sqrt(rows[1:].size)
        # Sums of few products have heavier tails than a normal number: a margin for them.
        if abs(product) > _FAR * (1 + 3 / math.sqrt(rows[1:].size)):
            detail = f"noises of neighbouring answers go together, by {product:.3g} deviations"
            yield Finding(violation="reuse", place=place, detail=detail)


def _noise_twice(answers: list[Answer]) -> Iterator[Finding]:
    """Check that no two answers of the run have the same noise, over all queries and oracles."""
    noises = [answer.noise for answer in answers if answer.query.correlation is None]
    order = np.argsort([noise[0] for noise in noises])
    for first, second in pairwise(order):
        size = min(len(noises[first]), len(noises[second]))
        gap = np.abs(noises[first][:size] - noises[second][:size]).max()
        if gap < (_TWICE if size == 1 else _TWICE_VECTOR):
            yield Finding(
                violation="reuse",
                place=f"answers {min(first, second)} and {max(first, second)} of the run",
                detail="they have the same noise, so that their difference may have none",
            )
            return


# -- batches: each check returns a violation, or nothing


def _law(query: Query) -> str:
    return "disjoint" if query.composition == "disjoint" else query.sampler


def _repeats(query: Query, n: int, batches: list[Rows]) -> str:
    for rows in batches:
        if len(rows) and not 0 <= rows.min() <= rows.max() < n:
            return f"row {int(rows.max())} of {n} records is in a batch"
        if len(np.unique(rows)) < len(rows):
            return "a record is sampled twice in one batch"
    return ""


def _sizes(query: Query, n: int, batches: list[Rows]) -> str:
    """Compare sizes with the planned ones, which a shuffle repeats in every epoch."""
    M = query.epoch or 1
    size = -(-n // M) if query.sampler == "shuffled-epochs" else query.batch_size or n
    planned = [size]
    if query.sampler == "shuffled-epochs":
        planned = [min(size, max(0, n - size * j)) for j in range(M)]
    for number, rows in enumerate(batches):
        due = planned[number % len(planned)]
        if len(rows) != due:
            return f"batch {number} holds {len(rows)} records, planned {due}"
    return ""


def _disjoint(query: Query, n: int, batches: list[Rows]) -> str:
    used: set[int] = set()
    for first in range(0, len(batches), query.answers_per_part):
        part = set(batches[first].tolist())
        if any(set(rows.tolist()) != part for rows in batches[first:][: query.answers_per_part]):
            return "answers about one part are about different records"
        if used & part:
            return "a record is in two parts of a partition"
        used |= part
    return ""


def _spread(query: Query, n: int, batches: list[Rows]) -> str:
    """Test sizes: their variance distinguishes Poisson samples from batches of one size."""
    q, sizes = query.sampling_probability or 1.0, np.array([len(rows) for rows in batches])
    chance = _binomial(int(sizes.sum()), n * len(sizes), q)
    if chance < ALARM:
        return f"batches hold {sizes.mean():.4g} records on average, planned {q * n:.4g}"
    # Sizes are whole numbers: their distance from the mean is known up to half a unit.
    return _varied(sizes, n * q, n * q * (1 - q), len(sizes), "Poisson samples", half=0.5)


def _varied(
    sizes: Vector, mean: float, variance: float, degrees: int, law: str, *, half: float = 0.0
) -> str:
    """Test the sum of squared distances of sizes from their mean, known up to ``half``."""
    away = np.abs(sizes - mean)
    least, most = ((np.maximum(away + side, 0.0) ** 2).sum() for side in (-half, half))
    # Sizes of batches are close to normal from about 20 records on.
    tested = variance >= 20 and degrees > 0
    if tested and _chi_squared(least / variance, degrees, most / variance) < ALARM:
        return f"sizes of batches vary by {sizes.std():.4g}, {law} by {variance**0.5:.4g}"
    return ""


def _independent(query: Query, n: int, batches: list[Rows]) -> str:
    """Test that records are equally likely, and that consecutive batches are independent."""
    q = query.expected_batch_size(n) / n
    counts = np.bincount(np.concatenate(batches), minlength=n)
    trials = len(batches)
    extreme = (int(counts.min()), int(counts.max()))
    if any(n * _binomial(count, trials, q) < ALARM for count in extreme):
        return f"records are in {extreme[0]} to {extreme[1]} of {trials} batches, each with {q:.3g}"
    expected = (trials - 1) * n * q * q
    if expected >= 20:
        common = sum(
            len(np.intersect1d(one, other, assume_unique=True)) for one, other in pairwise(batches)
        )
        # The variance of the number of common records is below its mean.
        if abs(common - expected) > 6 * math.sqrt(expected):
            return f"batches in a row share {common} records, independent ones {expected:.4g}"
    return ""


def _separated(query: Query, n: int, batches: list[Rows]) -> str:
    latest, separation = np.full(n, -(10**9)), query.separation or 1
    for number, rows in enumerate(batches):
        gaps = number - latest[rows]
        if (gaps < separation).any():
            return f"a record came back after {int(gaps.min())} answers, planned {separation}"
        in_turn = query.sampler != "min-separation" and number >= separation
        if in_turn and (gaps[latest[rows] >= 0] % separation).any():
            return "a record changed its group"
        latest[rows] = number
    return ""


def _allocated(query: Query, n: int, batches: list[Rows]) -> str:
    due = query.participations or 1
    whole = query.correlation.strategy.steps if query.correlation else len(batches)
    steps = query.epoch or whole
    for first in range(0, len(batches), steps):
        epoch = batches[first : first + steps]
        taken = np.bincount(np.concatenate(epoch), minlength=n)
        if (taken > due).any() or (taken + steps - len(epoch) < due).any():
            return f"records took part {taken.min()} to {taken.max()} times, planned {due}"
    return ""


def _fresh(query: Query, n: int, batches: list[Rows]) -> str:
    """Test that a record's batch is independent of its batch in the epoch before."""
    if query.epoch is None or query.participations not in (None, 1):
        return ""
    epochs, M = len(batches) // query.epoch, query.epoch
    drawn = np.empty((epochs, n), dtype=int)
    for number, rows in enumerate(batches[: epochs * M]):
        drawn[number // M, rows] = number % M
    same = int((drawn[1:] == drawn[:-1]).sum())
    trials = (epochs - 1) * n
    if M > 1 and trials > 0 and _binomial(same, trials, 1 / M) < ALARM:
        return f"{same} of {trials} draws are those of the epoch before, planned {trials / M:.4g}"
    return ""


def _by_itself(query: Query, n: int, batches: list[Rows]) -> str:
    """Test sizes: their variance distinguishes draws of single records from a shuffle."""
    if query.epoch is None or query.participations != 1:
        return ""
    M, epochs = query.epoch, len(batches) // query.epoch
    sizes = np.array([len(rows) for rows in batches[: epochs * M]], dtype=float)
    # Pearson's statistic of a multinomial law.
    return _varied(sizes, n / M, n / M, epochs * (M - 1), "independent draws")


_Check = Callable[[Query, int, list[Rows]], str]
_SAMPLERS: dict[str, tuple[_Check, ...]] = {
    "full": (_sizes,),
    "fixed-size": (_sizes, _independent),
    "poisson": (_spread, _independent),
    "disjoint": (_sizes, _disjoint),
    "cyclic-poisson": (_separated,),
    "min-separation": (_separated,),
    "balls-in-bins": (_separated,),
    "random-allocation": (_allocated, _fresh, _by_itself),
    "shuffled-epochs": (_allocated, _fresh, _sizes),
}


# -- the claims of the run


def _claims(tape: Tape, *, price: bool) -> Iterator[Finding]:
    """Check the outcome's ledger and plan, and their prices."""
    result = tape.outcome
    if isinstance(result, Result):
        try:
            result.verify()
        except LedgerMismatch as error:
            yield Finding(violation="ledger", place="the result", detail=str(error))
            return
        held = sum(opened.ledger.answers for opened in tape.opened)
        if result.ledger.answers != held:
            detail = f"its ledger holds {result.ledger.answers} answers, {held} were given"
            yield Finding(violation="ledger", place="the result", detail=detail)
    for number, opened in enumerate(tape.opened):
        plan, place = opened.plan, f"oracle {number}"
        cost = plan.price(accountant="auto").lower if price else 0.0
        if cost > plan.epsilon * (1 + _ROUNDING):
            detail = f"epsilon is at least {cost:.6g}, claimed {plan.epsilon:.6g}"
            yield Finding(violation="price", place=place, detail=detail)
