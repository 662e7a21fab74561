"""Replays of a recorded run, which show whether it depends on a record outside its answers.

A run is recorded on one data set and replayed on a neighbour, with the same randomness and with the
recorded answers in place of new ones. Any remaining difference did not come through an answer:
another query, another batch, another result, an error. Each sum, before its noise, is compared with
the recorded one: it may differ by the bound on a record's contribution, and only where the batch
holds the record. The recorded run by itself is also checked against its plan. So two runs find
mistakes with certainty and by name, for any epsilon; the idea is due to Cebere, Erb, Desfontaines,
Bellet and Fitzsimons 2026 (Re:cord-play).

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, dpsgd
>>> X, y = np.eye(50), np.array([0, 1] * 25)
>>> plan = calibrate.dpsgd(n=50, batch_size=50, steps=5, epsilon=1.0, delta=1e-5)

This run has a step size that depends on the records:

>>> def peeking(X):
...     rate = 1 / np.linalg.norm(X)
...     return dpsgd(Logistic(X, y, classes=[0, 1]), plan, learning_rate=rate)
>>> replay(peeking, X, X + np.eye(50)[:, :1] * X).violations
frozenset({'parameters'})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from dpcal.calibrate.plan import Plan, Query
from dpcal.optim.attacks.findings import Finding, Replay
from dpcal.optim.attacks.promises import broken_promises
from dpcal.optim.attacks.recording import Answer, Recorder, Sum, Tape, play, record
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.objectives.arrays import Vector

# Rounding of a sum of m contributions of norm C, in units of m C; order moves it by m 2^-53.
_ROUNDING = 1e-12

# Depth of attributes to which results are compared: deeper attributes belong to other packages.
_DEPTH = 6


def replay(
    run: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    silent: bool = False,
    price: bool = True,
    seed: int | None = None,
) -> Replay:
    """Record a run on one data set, replay it on a neighbour, and return the :class:`Replay`.

    The recorded run is not released, and costs nothing.

    Parameters
    ----------
    run
        Function of a data set that trains, with any number of oracles that it opens itself, and
        returns all that would be released: a :class:`dpcal.optim.Result`, an estimator, an array,
        ... All its randomness must come from its oracles, or from seeds of its own.
    data, neighbour
        Data sets that differ in one record, as ``run`` takes them.
    silent
        Whether the record contributes nothing in one of the data sets, as by
        :func:`dpcal.optim.attacks.without`: then a sum may differ by one bound, otherwise by two.
    price
        Whether epsilons of plans are checked, which may take seconds for correlated noise.
    seed
        An integer >= 0 to make the attack repeatable; fresh entropy when omitted.

    Raises
    ------
    ValueError
        If the run opened no oracle, or is not deterministic given its oracles' randomness: then two
        runs on one data set differ, and a difference has no meaning.
    """
    first = Recorded(run, data, price=price, seed=seed)
    found = first.replayed(neighbour, reach=1.0 if silent else 2.0)
    if first.tape.failure is not None and found.holds:
        raise first.tape.failure
    return found


class Recorded:
    """A run on some data, recorded once, and the violations on its ``tape``."""

    def __init__(
        self, run: Callable[[Any], Any], data: Any, *, price: bool, seed: int | None
    ) -> None:
        self._run, self.data = run, data
        self.tape = record(run, data, seed=seed)
        self._promised = list(broken_promises(self.tape, price=price))

    def replayed(self, neighbour: Any, *, reach: float = 2.0, label: str = "") -> Replay:
        """Compare the run with one on a neighbour.

        Sums may differ by ``reach`` bounds; if it is infinite, other records may be in any batch.
        """
        if self.tape.failure is None and not self.tape.opened:
            raise ValueError("run must open an oracle, got a run that trained without one.")
        second = self._played(neighbour, reach)
        if second.findings and self._played(self.data, 1.0).findings:
            raise ValueError(
                "run must be deterministic beside the randomness of its oracles, got one that "
                "differs between two runs on one data set."
            )
        return Replay(
            findings=(*self._promised, *second.findings, *second.scattered()),
            answers=len(self.tape.answers),
            moved=len(second.moved),
            largest=second.largest,
            label=label,
        )

    def _played(self, data: Any, reach: float) -> _Replayer:
        """Return the replayer that compared the recorded run with one on other data."""
        other = _Replayer(self.tape, reach)
        with suppress(_Parted):
            play(self._run, data, other)
            other.findings += _compared(self.tape, other.tape)
        return other


class _Parted(BaseException):
    """The end of a replay that differs from the recording: beyond it nothing can be compared.

    No run may catch it.
    """


class _Replayer(Recorder):
    """Gives the answers of a tape, and compares the sums."""

    def __init__(self, first: Tape, reach: float) -> None:
        super().__init__(Tape(salt=first.salt))
        self.first, self.reach = first, reach
        self.findings: list[Finding] = []
        self.largest = 0.0
        self.moved: list[Answer] = []

    def note(self, violation: str, place: str, detail: str) -> None:
        """Note a finding."""
        self.findings.append(Finding(violation, place, detail))

    def part(self, violation: str, place: str, detail: str) -> NoReturn:
        """End the replay with a finding."""
        self.note(violation, place, detail)
        raise _Parted

    def opened(self, plan: Plan, ledger: Ledger) -> int:
        """Compare the plan of an oracle that is opened with the recorded one."""
        number = super().opened(plan, ledger)
        if number >= len(self.first.opened):
            self.part("questions", f"oracle {number}", "the neighbour's run alone opens it")
        recorded = self.first.opened[number].plan
        if plan != recorded:
            names = [each.name for each in fields(plan)]
            changed = [name for name in names if getattr(recorded, name) != getattr(plan, name)]
            detail = f"{', '.join(changed)} differs between neighbours"
            self.part("plan", f"oracle {number}", detail)
        return number

    def take(self, due: Sum, query: Query, release: Callable[[], Vector], **about: Any) -> Answer:
        """Compare a sum with the recorded one, and give the recorded answer."""
        position = len(self.tape.answers)
        place = f"answer {position}, to {query.name!r}"
        if position == len(self.first.answers):
            self.part("questions", place, "the neighbour's run alone asks for it")
        recorded = self.first.answers[position]
        asked = recorded.query
        if (asked.name, recorded.oracle, recorded.kind) != (query.name, about["oracle"], due.kind):
            self.part("questions", place, f"the other run asks for {asked.name!r} there")
        if asked.noise_multiplier != query.noise_multiplier:
            detail = f"noise {asked.noise_multiplier!r} and {query.noise_multiplier!r}"
            self.part("questions", place, detail)
        if not (len(recorded.at) == len(due.at) and all(map(np.array_equal, recorded.at, due.at))):
            apart = math.inf
            if [w.shape for w in recorded.at] == [w.shape for w in due.at]:
                apart = max(np.abs(w - v).max() for w, v in zip(recorded.at, due.at, strict=True))
            detail = f"the runs are {apart:.3g} apart, after the same answers"
            self.part("parameters", place, detail)
        if not np.array_equal(recorded.rows, due.rows):
            self.part("sampling", place, "the batches of the two runs differ")
        if due.bound != recorded.bound:
            self.part("bound", place, f"{recorded.bound!r} on one, {due.bound!r} on the other")
        moved, size = _moved(recorded.total, due.total)
        rounding = _ROUNDING * (size + len(due.rows) * due.bound)
        if not moved <= rounding:
            self.moved.append(recorded)
            allowed = self.reach * due.bound
            self.largest = max(self.largest, moved / allowed)
            if not moved <= allowed + rounding:
                detail = f"the record moves the sum by {moved:.6g}, allowed are {allowed:.6g}"
                self.note("sensitivity", place, detail)
        answer = Answer(**vars(due), query=query, mean=recorded.mean, **about)
        self.tape.answers.append(answer)
        return answer

    def scattered(self) -> Iterator[Finding]:
        """Find answers that moved although no record is in all of their batches."""
        rows = [set(answer.rows.tolist()) for answer in self.moved]
        if rows and math.isfinite(self.reach) and not set.intersection(*rows):
            detail = "no record is in all batches whose sums differ"
            yield Finding("isolation", f"answers to {self.moved[0].query.name!r}", detail)


@np.errstate(over="ignore", invalid="ignore")
def _moved(first: Any, second: Any) -> tuple[float, float]:
    """Return the distance of two sums, or of two lists of scores, and the size that is rounded.

    Scores are sums by label or cell, or the scores of all points.
    """
    if isinstance(first, np.ndarray):
        return float(np.linalg.norm(second - first)), float(np.linalg.norm(first))
    if isinstance(first, Mapping):
        both = first.keys() | second.keys()
        return math.dist(*([each.get(label, 0) for label in both] for each in (first, second))), 0.0
    total = 0.0
    for (one, share), (other, _) in zip(first, second, strict=True):
        # Scores change only at values: just below all of them, and just above each.
        points = np.append(-np.inf, np.union1d(one, other))
        scores = [
            np.abs(np.searchsorted(values, points, side="right") - len(values) * share)
            for values in (one, other)
        ]
        total += float(np.abs(np.subtract(*scores)).max())
    return total, 0.0


def _compared(first: Tape, second: Tape) -> Iterator[Finding]:
    """Compare the ends of two runs that had the same answers."""
    failures = [_words(tape) for tape in (first, second)]
    if failures[0] != failures[1]:
        detail = f"{failures[0] or 'no word'} on one, {failures[1] or 'no word'} on the other"
        yield Finding("failure", "the end of the run", detail)
        return
    missing = len(first.answers) - len(second.answers)
    if missing or len(second.opened) < len(first.opened):
        detail = f"the neighbour's run asks for {missing} answers less"
        yield Finding("questions", "the end of the run", detail)
        return
    for number, (one, other) in enumerate(zip(first.opened, second.opened, strict=True)):
        if one.ledger != other.ledger:
            detail = "it differs between neighbours"
            yield Finding("ledger", f"oracle {number}", detail)
    yield from _released(first.outcome, second.outcome, "result", _DEPTH)


def _words(tape: Tape) -> str:
    """Return the error and the warnings of a run."""
    failure = [] if tape.failure is None else [tape.failure]
    said = [f"{type(each).__name__}: {each}" for each in (*failure, *tape.warned)]
    return "; ".join(dict.fromkeys(said))


def _released(first: Any, second: Any, place: str, depth: int) -> Iterator[Finding]:
    """Yield the differences of two results: of arrays, items, attributes without an underscore."""
    detail = "it differs between neighbours, after the same answers"
    if type(first) is not type(second):
        detail = f"{type(first).__name__} on one, {type(second).__name__} on the other"
    elif isinstance(first, np.ndarray):
        if np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"):
            return
    elif first is second or depth == 0 or callable(first):
        return
    elif (parts := _parts(first)) is not None and parts.keys() == (_parts(second) or {}).keys():
        for name, other in (_parts(second) or {}).items():
            yield from _released(parts[name], other, f"{place}.{name}", depth - 1)
        return
    elif first == second or first != first:
        return
    yield Finding("release", place, detail)


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Return the parts of a value by name; None if it has none."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, Ledger | Plan):
        return {"json": value.to_json()}
    kept = fields(value) if is_dataclass(value) else ()
    if not kept and not hasattr(value, "__dict__"):
        return None
    hidden = {each.name for each in kept if not each.metadata.get("released", True)}
    named = {each.name: getattr(value, each.name, None) for each in kept}
    named |= getattr(value, "__dict__", {})
    return {name: part for name, part in named.items() if name[:1] != "_" and name not in hidden}
