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
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from dpcal.calibrate.plan import Query
from dpcal.errors import LedgerMismatch
from dpcal.optim.attacks.findings import Finding
from dpcal.optim.attacks.recording import Answer, Choice, Opened, Tape
from dpcal.optim.objectives.arrays import Rows
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
        yield Finding("noise", place, "it was taken and got no noise")
    secrets = [opened.secret for opened in tape.opened]
    for number, opened in enumerate(tape.opened):
        if opened.secret in secrets[:number]:
            detail = "it has the seed, plan and records, and so the noise, of one before"
            yield Finding("reuse", f"oracle {number}", detail)
        answers = tape.of(number)
        choices = [choice for choice in tape.choices if choice.oracle == number]
        yield from _entries(opened, [*answers, *choices], f"oracle {number}")
        for query in opened.plan.queries:
            yield from _query(opened, query, [a for a in answers if a.query.name == query.name])
    yield from _noise_twice(tape.answers)
    yield from _claims(tape, price=price)


def _entries(opened: Opened, answers: Sequence[Answer | Choice], place: str) -> Iterator[Finding]:
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


def _is(entry: Query, answer: Answer | Choice) -> bool:
    """Return whether an entry of the ledger belongs to an answer."""
    asked = answer.query
    return (entry.name, entry.noise_multiplier) == (asked.name, asked.noise_multiplier)


def _query(opened: Opened, query: Query, answers: list[Answer]) -> Iterator[Finding]:
    """Check all answers to one query."""
    place, asked = f"answers to {query.name!r}", opened.ledger.count(query.name)
    if asked > query.count:
        yield Finding("ledger", place, f"{asked} of them, planned {query.count}")
    for number, answer in enumerate(answers):
        wrong = _mismatch(query, answer)
        if wrong is not None:
            yield Finding(wrong[0], f"answer {number} to {query.name!r}", wrong[1])
            return
    if answers:
        wrong_batches = _Batches(query, opened.plan.n, [answer.rows for answer in answers]).wrong()
        if wrong_batches:
            yield Finding("sampler", place, wrong_batches)
        else:
            yield from _noises(query, answers, place)


# Hessians are summed as the gradients of an objective that stands for them.
_SUMMED_AS = dict.fromkeys(("hessian", "hessian vector", "saddle score"), "gradient")


def _mismatch(query: Query, answer: Answer) -> tuple[str, str] | None:
    """Return the violation by which an answer differs from its query, and how; or None."""
    asked = answer.query
    chosen = query.budget is not None and asked.noise_multiplier >= query.noise_multiplier
    multiplier = asked.noise_multiplier if chosen else query.noise_multiplier
    expected = dataclasses.replace(query, noise_multiplier=multiplier, count=1)
    if dataclasses.replace(asked, count=1) != expected:
        return "plan", f"{asked} was answered, planned was {query}"
    if answer.kind != _SUMMED_AS.get(query.kind, query.kind):
        return "bound", f"a sum of kind {answer.kind!r} was taken for {query.kind!r}"
    distance = float(np.linalg.norm(np.subtract(*answer.at))) if len(answer.at) == 2 else None
    bound = query.bound(distance)
    if not math.isclose(answer.bound, bound, rel_tol=_ROUNDING):
        return "bound", f"contributions were clipped to {answer.bound!r}, planned {bound!r}"
    if not math.isclose(answer.scale, bound, rel_tol=_ROUNDING):
        return "noise", f"the noise was in units of {answer.scale!r}, planned {bound!r}"
    return None


def _two_sided(below: Any, above: Any) -> float:
    """Return the two-sided chance, given the chances of both sides."""
    return float(min(1.0, 2 * min(below, above)))


def _chi_squared(least: float, degrees: int, most: float) -> float:
    """Return the chance of a value as extreme as a sum of squares, known up to an interval."""
    return _two_sided(
        special.gammainc(degrees / 2, most / 2), special.gammaincc(degrees / 2, least / 2)
    )


def _binomial(found: int, trials: int, q: float) -> float:
    return _two_sided(
        special.bdtr(found, trials, q), special.bdtrc(found - 1, trials, q) if found else 1.0
    )


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
    noises = [answer.noise for answer in answers if answer.query.correlation is None]
    order = np.argsort([noise[0] for noise in noises])
    for first, second in pairwise(order):
        size = min(len(noises[first]), len(noises[second]))
        gap = np.abs(noises[first][:size] - noises[second][:size]).max()
        if gap < (_TWICE if size == 1 else _TWICE_VECTOR):
            place = f"answers {min(first, second)} and {max(first, second)} of the run"
            detail = "they have the same noise, so that their difference may have none"
            yield Finding("reuse", place, detail)
            return


class _Batches:
    """The batches of one query's answers, which are held to what the query's sampler says.

    Their ``sizes``, how often each record takes part (``counts``), and the ``gaps`` of answers
    between one participation of a record and its next.
    """

    def __init__(self, query: Query, n: int, batches: list[Rows]) -> None:
        self.query, self.n, self.batches = query, n, batches
        self.sizes = np.array([len(rows) for rows in batches])
        self.records = np.concatenate(batches)
        self.answers = np.repeat(np.arange(len(batches)), self.sizes)
        order = np.lexsort((self.answers, self.records))
        again = np.diff(self.records[order]) == 0
        self.gaps = np.diff(self.answers[order])[again]

    def wrong(self) -> str:
        """Return how the batches break the law of their sampler; nothing if they keep it."""
        if len(self.records) and not 0 <= self.records.min() <= self.records.max() < self.n:
            return f"row {int(self.records.max())} of {self.n} records is in a batch"
        if not self.gaps.all():
            return "a record is sampled twice in one batch"
        disjoint = self.query.composition == "disjoint"
        checks = _LAWS.get("disjoint" if disjoint else self.query.sampler, ())
        return next(filter(None, (getattr(self, name)() for name in checks)), "")

    def planned_sizes(self) -> str:
        """Compare sizes with the planned ones, which a shuffle repeats in every epoch."""
        M = self.query.epoch or 1
        size = self.query.batch_size or -(-self.n // M)
        planned = np.diff(np.minimum(size * np.arange(M + 1), self.n))
        due = np.resize(planned, len(self.sizes))
        for number in np.flatnonzero(self.sizes != due):
            return f"batch {number} holds {self.sizes[number]} records, planned {due[number]}"
        return ""

    def parted(self) -> str:
        """Check that answers are about the parts of a partition, in turn."""
        each = self.query.answers_per_part
        for number, rows in enumerate(self.batches):
            if not np.array_equal(np.sort(rows), np.sort(self.batches[number - number % each])):
                return "answers about one part are about different records"
        if np.bincount(np.concatenate(self.batches[::each]), minlength=1).max() > 1:
            return "a record is in two parts of a partition"
        return ""

    def spread(self) -> str:
        """Test sizes: their variance distinguishes Poisson samples from batches of one size."""
        n, q, rounds = self.n, self.query.sampling_probability or 1.0, len(self.sizes)
        if _binomial(int(self.sizes.sum()), n * rounds, q) < ALARM:
            return f"batches hold {self.sizes.mean():.4g} records on average, planned {q * n:.4g}"
        # Sizes are whole numbers: their distance from the mean is known up to half a unit.
        return _varied(self.sizes, rounds, n * q, n * q * (1 - q), half=0.5)

    def independent(self) -> str:
        """Test that records are equally likely, and that consecutive batches are independent."""
        n, trials = self.n, len(self.sizes)
        q = self.query.expected_batch_size(n) / n
        counts = np.bincount(self.records, minlength=n)
        for count in (int(counts.min()), int(counts.max())):
            if n * _binomial(count, trials, q) < ALARM:
                return f"a record is in {count} of {trials} batches, in each with chance {q:.3g}"
        expected, common = (trials - 1) * n * q * q, int((self.gaps == 1).sum())
        # The variance of the number of common records is below its mean.
        if expected >= 20 and abs(common - expected) > 6 * math.sqrt(expected):
            return f"batches in a row share {common} records, independent ones {expected:.4g}"
        return ""

    def separated(self) -> str:
        """Check that a record comes back after its separation, and keeps its group."""
        separation = self.query.separation or 1
        if (self.gaps < separation).any():
            return f"a record came back after {self.gaps.min()} answers, planned {separation}"
        if self.query.sampler != "min-separation" and (self.gaps % separation).any():
            return "a record changed its group"
        return ""

    def allocated(self) -> str:
        """Check how often each record takes part in each epoch."""
        due, epoch, begun = self.query.participations or 1, self.epoch, len(self.sizes)
        epochs = -(-begun // epoch)
        place = self.records * epochs + self.answers // epoch
        taken = np.bincount(place, minlength=self.n * epochs).reshape(self.n, epochs)
        missing = np.r_[np.zeros(epochs - 1, dtype=int), epochs * epoch - begun]
        if (taken > due).any() or (taken + missing < due).any():
            return f"records took part {taken.min()} to {taken.max()} times, planned {due}"
        return ""

    def fresh(self) -> str:
        """Test that a record's batch is independent of its batch in the epoch before."""
        if self.query.participations not in (None, 1):
            return ""
        same, trials = int((self.gaps == self.epoch).sum()), int((self.answers >= self.epoch).sum())
        if _binomial(same, trials, 1 / self.epoch) < ALARM:
            return f"{same} of {trials} draws are those of the epoch before"
        return ""

    def by_itself(self) -> str:
        """Test sizes: their variance distinguishes draws of single records from a shuffle."""
        epochs, mean = len(self.sizes) // self.epoch, self.n / self.epoch
        if self.query.participations != 1:
            return ""
        # Pearson's statistic of a multinomial law.
        sizes = self.sizes[: epochs * self.epoch]
        return _varied(sizes, epochs * (self.epoch - 1), mean, mean)

    @property
    def epoch(self) -> int:
        """Answers of an epoch; without epochs, of the whole run."""
        correlation = self.query.correlation
        return self.query.epoch or (correlation.strategy.steps if correlation else len(self.sizes))


def _varied(sizes: Rows, degrees: int, mean: float, variance: float, half: float = 0.0) -> str:
    """Test the sum of squared distances of sizes from their mean, known up to ``half``."""
    away = np.abs(sizes - mean)
    least, most = ((np.maximum(away + side, 0.0) ** 2).sum() for side in (-half, half))
    # Sizes of batches are close to normal from about 20 records on.
    tested = variance >= 20 and degrees > 0
    if tested and _chi_squared(least / variance, degrees, most / variance) < ALARM:
        return f"sizes of batches vary by {sizes.std():.4g}, by their law {variance**0.5:.4g}"
    return ""


_LAWS: dict[str, tuple[str, ...]] = {
    "full": ("planned_sizes",),
    "fixed-size": ("planned_sizes", "independent"),
    "poisson": ("spread", "independent"),
    "disjoint": ("planned_sizes", "parted"),
    **dict.fromkeys(("cyclic-poisson", "min-separation", "balls-in-bins"), ("separated",)),
    "random-allocation": ("allocated", "fresh", "by_itself"),
    "shuffled-epochs": ("allocated", "fresh", "planned_sizes"),
}


def _claims(tape: Tape, *, price: bool) -> Iterator[Finding]:
    """Check the outcome's ledger and plan, and their prices."""
    result = tape.outcome
    if isinstance(result, Result):
        try:
            result.verify()
        except LedgerMismatch as error:
            yield Finding("ledger", "the result", str(error))
            return
        held = sum(opened.ledger.answers for opened in tape.opened)
        if result.ledger.answers != held:
            detail = f"its ledger holds {result.ledger.answers} answers, {held} were given"
            yield Finding("ledger", "the result", detail)
    for number, plan in enumerate(opened.plan for opened in tape.opened):
        cost = plan.price(accountant="auto").lower if price else 0.0
        if cost > plan.epsilon * (1 + _ROUNDING):
            detail = f"epsilon is at least {cost:.6g}, claimed {plan.epsilon:.6g}"
            yield Finding("price", f"oracle {number}", detail)
