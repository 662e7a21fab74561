"""Checks of one run against its plan's promises, from its tape, without a neighbour.

Each answer has its entry in the ledger before its sum is taken. Its kind, bound and noise are the
query's. Batches follow the law that the accountant assumes. Noise has the planned size and is used
once. Checks of laws are tests at level :data:`ALARM` each: about one in a million of them rejects a
correct run.

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
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy import special

from dpcal.accountants.participations import Automaton, independent
from dpcal.calibrate.query import Query
from dpcal.errors import LedgerMismatch, UnsupportedEvent
from dpcal.optim.attacks.evidence import law_of
from dpcal.optim.attacks.findings import Finding
from dpcal.optim.attacks.recording import Answer, Opened, Tape
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.result import Result

# Chance of a false alarm of a test, small enough for a suite of thousands of tests.
ALARM = 1e-6

# Standard deviations that a normal number exceeds with a chance of about ALARM.
_FAR = 4.9

_ROUNDING = 1e-9

# Gap of equal noises, numbers and vectors: two of 6,000 normal numbers are closer once in 10^6.
_TWICE, _TWICE_VECTOR = 1e-13, 1e-9


def broken_promises(tape: Tape, *, price: bool = True) -> Iterator[Finding]:
    """Yield the violations of a recorded run; ``price`` adds checks of the epsilons of plans."""
    for bare in tape.bare:
        place = f"a sum of kind {bare.kind!r} over {len(bare.rows)} records"
        yield Finding("noise", place, "it was taken and got no noise")
    secrets = [opened.secret for opened in tape.opened]
    for number, opened in enumerate(tape.opened):
        if opened.secret in secrets[:number]:
            detail = "it has the seed, plan and records, and so the noise, of one before"
            yield Finding("reuse", f"oracle {number}", detail)
        answers = [answer for answer in tape.answers if answer.oracle == number]
        yield from _entries(opened, answers, f"oracle {number}")
        for query in opened.plan.queries:
            yield from _query(opened, query, [a for a in answers if a.query.name == query.name])
    yield from _noise_twice(tape.answers)
    yield from _claims(tape, price=price)


def _entries(opened: Opened, answers: Sequence[Answer], place: str) -> Iterator[Finding]:
    """Compare the ledger with the answers, in order."""
    due = [entry for entry in opened.ledger.entries for _ in range(entry.count)]
    position = 0
    for answered, answer in enumerate(answers, start=1):
        # A proportional query between equal parameters reads no record: an entry without a sum.
        while position < len(due) and due[position].proportional and not _is(due[position], answer):
            position += 1
        if answer.entries < answered or position == len(due) or not _is(due[position], answer):
            detail = f"answer {answered}, to {answer.query.name!r}, has no entry before its sum"
            yield Finding("ledger", place, detail)
            return
        position += 1
    left = [entry.name for entry in due[position:] if not entry.proportional]
    if left:
        detail = f"there are {len(left)} entries without an answer, the first to {left[0]!r}"
        yield Finding("ledger", place, detail)


def _is(entry: Query, answer: Answer) -> bool:
    """Return whether an entry of the ledger belongs to an answer."""
    asked = answer.query
    return (entry.name, entry.noise_multiplier) == (asked.name, asked.noise_multiplier)


def _query(opened: Opened, query: Query, answers: list[Answer]) -> Iterator[Finding]:
    """Check all answers to one query."""
    place, asked = f"answers to {query.name!r}", opened.ledger.count(query.name)
    if asked > query.count:
        yield Finding("ledger", place, f"{asked} of them, planned {query.count}")
    for number, answer in enumerate(answers):
        if wrong := _mismatch(query, answer):
            yield Finding(wrong[0], f"answer {number} to {query.name!r}", wrong[1])
            return
    if answers and answers[0].summed:
        if unlawful := _unlawful(query, opened.plan.n, [answer.rows for answer in answers]):
            yield Finding("sampler", place, unlawful)
        else:
            yield from _noises(query, answers, place)


def _mismatch(query: Query, answer: Answer) -> tuple[str, str] | None:
    """Return the violation by which an answer differs from its query, and how; or None."""
    asked = answer.query
    chosen = query.budget is not None and asked.noise_multiplier >= query.noise_multiplier
    multiplier = asked.noise_multiplier if chosen else query.noise_multiplier
    expected = dataclasses.replace(query, noise_multiplier=multiplier, count=1)
    if dataclasses.replace(asked, count=1) != expected:
        return "plan", f"{asked} was answered, planned was {query}"
    if answer.kind != query.kind:
        return "bound", f"a sum of kind {answer.kind!r} was taken for {query.kind!r}"
    distance = float(np.linalg.norm(np.subtract(*answer.at))) if len(answer.at) == 2 else None
    bound = query.bound(distance)
    if not math.isclose(answer.bound, bound, rel_tol=_ROUNDING):
        return "bound", f"contributions were clipped to {answer.bound!r}, planned {bound!r}"
    if not math.isclose(answer.scale, bound, rel_tol=_ROUNDING):
        return "noise", f"the noise was in units of {answer.scale!r}, planned {bound!r}"
    return None


def _chi_squared(least: float, degrees: int, most: float) -> float:
    """Return the chance of a value as extreme as a sum of squares, known up to an interval."""
    below = special.gammainc(degrees / 2, most / 2)
    return float(min(1.0, 2 * min(below, special.gammaincc(degrees / 2, least / 2))))


def _noises(query: Query, answers: list[Answer], place: str) -> Iterator[Finding]:
    """Test that noise, without its correlation, has the normal law of the planned size."""
    rows = np.array([answer.noise for answer in answers])
    if query.correlation is not None:
        rows = query.correlation.strategy.matrix()[: len(rows), : len(rows)] @ rows
    square = float((rows**2).sum())
    if _chi_squared(square, rows.size, square) < ALARM:
        size = math.sqrt(square / rows.size)
        detail = f"it is {size:.4g} times as large as planned, over {rows.size} numbers"
        yield Finding("noise", place, detail)
    elif len(rows) > 1:
        product = float((rows[1:] * rows[:-1]).sum()) / math.sqrt(rows[1:].size)
        # Sums of few products have heavier tails than a normal number: a margin for them.
        if abs(product) > _FAR * (1 + 3 / math.sqrt(rows[1:].size)):
            detail = f"noises of neighbouring answers go together, by {product:.3g} deviations"
            yield Finding("reuse", place, detail)


def _noise_twice(answers: list[Answer]) -> Iterator[Finding]:
    """Check that no two answers of the run have the same noise, over all queries and oracles."""
    noises = [
        answer.noise for answer in answers if answer.query.correlation is None and answer.summed
    ]
    order = np.argsort([noise[0] for noise in noises])
    for first, second in pairwise(order):
        size = min(len(noises[first]), len(noises[second]))
        gap = np.abs(noises[first][:size] - noises[second][:size]).max()
        if gap < (_TWICE if size == 1 else _TWICE_VECTOR):
            place = f"answers {min(first, second)} and {max(first, second)} of the run"
            detail = "they have the same noise, so that their difference may have none"
            yield Finding("reuse", place, detail)
            return


def _unlawful(query: Query, n: int, batches: list[Rows]) -> str:
    """Return how batches break the law of their sampler; nothing if they keep it."""
    for number, rows in enumerate(batches):
        if len(rows) and not 0 <= rows.min() <= rows.max() < n:
            return f"row {int(rows.max())} of {n} records is in a batch"
        if len(np.unique(rows)) < len(rows):
            return f"a record is sampled twice in batch {number}"
    rounds, epoch, parted = len(batches), query.epoch or 1, query.composition == "disjoint"
    if not (parted or query.sampling.sized):
        whole = query.correlation.strategy.steps if query.correlation else rounds
        try:
            law = law_of(query, -(-whole // epoch) * epoch)
        except UnsupportedEvent:  # a sampler of another package has no law
            return ""
        return _unlikely(law, n, batches, epoch)
    # A shuffle repeats the sizes of its batches, and parts the records afresh, in every epoch.
    size = query.batch_size or -(-n // epoch)
    due = np.resize(np.diff(np.minimum(size * np.arange(epoch + 1), n)), rounds)
    for number, rows in enumerate(batches):
        if len(rows) != due[number]:
            return f"batch {number} holds {len(rows)} records, planned {due[number]}"
    partitions = [batches[first : first + epoch] for first in range(0, rounds, epoch)]
    if parted:
        each = query.answers_per_part
        for number, rows in enumerate(batches):
            if not np.array_equal(np.sort(rows), np.sort(batches[number - number % each])):
                return "answers about one part are about different records"
        partitions = [batches[::each]]
    if any(np.bincount(np.concatenate(parts), minlength=1).max() > 1 for parts in partitions):
        return "a record is in two parts of a partition"
    return "" if parted else _unlikely(independent(due / n), n, batches, epoch, sized=True)


def _unlikely(law: Automaton, n: int, batches: list[Rows], lag: int, *, sized: bool = False) -> str:
    """Return how batches are impossible, or very unlikely, if each record follows a law.

    Given its past, a record is in a batch with the chance that the law states. Three facts are
    compared with these chances: how often records are in a batch, how often records come back
    ``lag`` answers after a batch with them, and how the sizes vary.
    """
    state, past = np.tile(np.exp(law.start), (n, 1)), deque[Vector](maxlen=lag)
    # For each record: its batches, their expected number; both ``lag`` answers after one; trials.
    sums, away, degrees = np.zeros((5, n)), np.zeros(2), 0
    for number, rows in enumerate(batches):
        taken = np.zeros(n)
        taken[rows] = 1.0
        joins = state * np.exp(law.join[number])
        chance = np.minimum(joins.sum(axis=1), 1.0)
        state = law.moved(number, state * (1 - taken)[:, None], joins * taken[:, None])
        possible = state.sum(axis=1, keepdims=True)
        if not possible.all():
            where = "in" if taken[np.argmin(possible)] else "missing from"
            return f"a record is {where} batch {number}, which its sampler rules out"
        state /= possible
        last = past[0] if len(past) == lag else np.zeros(n)
        sums += [taken, chance, last * taken, last * chance, last]
        past.append(taken)
        variance = float((chance * (1 - chance)).sum())
        # Sizes are known to half a unit; from variance 5 on nearly normal, with Bernstein's tails.
        if variance >= 5 and not sized:
            off, degrees = abs(len(rows) - chance.sum()), degrees + 1
            away[0] += max(off - 0.5, 0.0) ** 2 / (variance + off / 3)
            away[1] += (off + 0.5) ** 2 / variance
    every, total = np.full((1, n), len(batches)), sums.sum(axis=1, keepdims=True)
    for who, (found, due, trials) in {
        "a record is sampled": np.concatenate([sums[:2], every]),
        "records are sampled": np.concatenate([total[:2], [[every.sum()]]]),
        f"records come back {lag} answers later": total[2:],
    }.items():
        rare = _rarity(found, due, trials)
        worst = int(np.argmax(rare))
        if rare[worst] > math.log(2 * len(found) / ALARM):
            return f"{who} {found[worst]:.0f} times, likely are {due[worst]:.4g}"
    if degrees and _chi_squared(away[0], degrees, away[1]) < ALARM:
        return f"sizes of batches vary by {away.mean() / degrees:.3g} times what is likely"
    return ""


def _rarity(found: Vector, due: Vector, trials: Vector) -> Vector:
    """Return -log of a bound on the chance of so many, or so few, successes (Chernoff)."""
    p, q = found / np.maximum(trials, 1), np.minimum(due / np.maximum(trials, 1), 1)
    return np.asarray(trials * (special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)))


def _claims(tape: Tape, *, price: bool) -> Iterator[Finding]:
    """Check the outcome's ledger, and the epsilon of every opened plan."""
    result = tape.outcome
    if isinstance(result, Result):
        try:
            result.verify()
        except LedgerMismatch as error:
            yield Finding("ledger", "the result", str(error))
            return
        held = sum(opened.ledger.answers for opened in tape.opened)
        written = sum(each.answers for each in getattr(result, "ledgers", (result.ledger,)))
        if written != held:
            detail = f"its ledger holds {written} answers, {held} were given"
            yield Finding("ledger", "the result", detail)
    for number, plan in enumerate(opened.plan for opened in tape.opened):
        cost = plan.price(accountant="auto").lower if price else 0.0
        if cost > plan.epsilon * (1 + _ROUNDING):
            detail = f"epsilon is at least {cost:.6g}, claimed {plan.epsilon:.6g}"
            yield Finding("price", f"oracle {number}", detail)
