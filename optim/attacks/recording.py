"""A recorder inside every oracle of a run, which keeps its sums and answers.

>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, noisy_gd
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=3)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=9.0, delta=1e-6)
>>> records = Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1])
>>> tape = record(lambda objective: noisy_gd(objective, plan, learning_rate=1.0), records)
>>> [(answer.query.name, len(answer.rows)) for answer in tape.answers]
[('gradient', 2), ('gradient', 2), ('gradient', 2)]
>>> without(records, 0).clipped_sum(np.zeros(2), np.arange(2), 9.0).tolist()
[-0.5, -0.5]
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock, local
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal.accountants.samplers import everyone
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import Chooser, Mechanism, Observer, observing
from dpcal.optim.boundary.seeds import Seed, Streams, replaying
from dpcal.optim.budget import _aside
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Contributions, gradients, hessians, losses


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of clipped contributions, before its noise, or the scores of a choice.

    Parameters
    ----------
    kind, objective
        Kind of the query, and objective that holds the records; None for a choice.
    at
        Parameters: one vector, or two for differences. For a choice its cuts, or none.
    rows, bound
        Rows of the sum, and bound on the norm of one contribution.
    total
        The sum, in the units of the answer. For a choice its scores: sums by label or cell, or for
        each interval between cuts its values, sorted, with the share that lies below a quantile.
    entries
        Number of answers in the ledger when the sum was taken.
    """

    kind: str
    at: tuple[Vector, ...]
    rows: Rows
    bound: float
    total: Any
    entries: int
    objective: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer(Sum):
    """A sum that was released, with its noise.

    Parameters
    ----------
    oracle, query
        Number of its oracle, in the order of opening; and the query, with the chosen noise if it is
        adaptive.
    mean, size
        The released value, (total + noise) / size or the choice, and the public divisor.
    row
        The row of C^-1 z that was due, for correlated noise.
    scale
        The bound that the noise is proportional to.
    """

    oracle: int
    query: Query
    mean: Vector
    size: float
    row: Vector | None
    scale: float

    @property
    def summed(self) -> bool:
        """Whether it is a sum of an objective's contributions, not a choice."""
        return self.objective is not None

    @property
    def noise(self) -> Vector:
        """The noise that was added, in units of the standard deviation that was due."""
        unit: float = self.query.noise_multiplier * self.bound
        return np.asarray((self.mean * self.size - self.total) / unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """An oracle that the run opened: its plan and ledger.

    Its ``secret`` identifies its randomness, if a seed was given.
    """

    plan: Plan
    ledger: Ledger
    secret: str


@dataclass(kw_only=True, eq=False)
class Tape:
    """A recorded run.

    Parameters
    ----------
    salt
        Randomness that a replay shares.
    answers, bare, opened
        Answers and sums without noise, in their order; and the oracles.
    warned
        The warnings of the run.
    outcome, failure
        The value that the run returned, or the error that it raised; None for the other.
    """

    salt: bytes
    answers: list[Answer] = field(default_factory=list)
    bare: list[Sum] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    warned: list[Warning] = field(default_factory=list)
    outcome: Any = None
    failure: Exception | None = None


class Recorder(Observer):
    """An observer that writes a tape, which is empty at first."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self._opening, self._lock, self._numbers = local(), Lock(), count()

    def streams(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
        """Return streams that depend only on the tape, on a given seed and on the plan."""
        salt = self.tape.salt
        own = int.from_bytes(salt, "big") + next(self._numbers) if seed is None else seed
        with replaying():
            made = Streams(own, plan, lambda: salt)
            self._opening.secret = made.root["secret"]
        made.given = seed is not None
        return made

    def opened(self, plan: Plan, ledger: Ledger) -> int:
        """Note an oracle that is opened, and return its number."""
        secret = getattr(self._opening, "secret", "")
        with self._lock:
            self.tape.opened.append(Opened(plan=plan, ledger=ledger, secret=secret))
            return len(self.tape.opened) - 1

    def watched(self, mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Any:
        """Return a mechanism that records its sums and its noise."""
        if any(query.descent is not None for query in plan.queries):
            raise UnsupportedEvent(
                "a plan that releases the last iterate alone cannot be recorded: no answer of its "
                "steps is released."
            )
        return Watched(mechanism, self, self.opened(plan, ledger), ledger)

    def choosing(self, plan: Plan, ledger: Ledger) -> Chooser:
        """Return a function that records the choices of an oracle."""
        number, rows = self.opened(plan, ledger), everyone(plan.n)

        def choose(query: Query, at: Vector, scores: Any, make: Callable[[], Any]) -> Any:
            bound, entries = query.max_norm, ledger.answers
            due = Sum(query.kind, (at.copy(),), rows, bound, scores, entries, None)
            about = {"oracle": number, "size": 1.0, "row": None, "scale": bound}
            return self.take(due, query, make, **about).mean

        return choose

    def take(self, due: Sum, query: Query, release: Callable[[], Vector], **about: Any) -> Answer:
        """Release an answer, and record it."""
        answer = Answer(**vars(due), query=query, mean=release().copy(), **about)
        self.tape.answers.append(answer)
        return answer


class Watched:
    """A mechanism that hands the sums and the noise of an ``inner`` mechanism to a recorder.

    ``number`` and ``ledger`` belong to the oracle.
    """

    # A recorder does not see compiled loops.
    fused = False

    def __init__(self, inner: Mechanism, recorder: Recorder, number: int, ledger: Ledger) -> None:
        self.values = inner.values
        self._inner, self._recorder = inner, recorder
        self._number, self._ledger = number, ledger
        self._due: Sum | None = None

    def whole(self, found: Contributions, bound: float, *about: Any) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        (kind, objective, at, rows), total = about, self._inner.whole(found, bound)
        due, value, entries = self._due, self.values(total, bound), self._ledger.answers
        if due is not None:
            pieces = due.objective is objective and getattr(objective, "in_pieces", False)
            if pieces and due.entries == entries:
                joined = np.concatenate([due.rows, rows])
                self._due = replace(due, rows=joined, total=due.total + value)
                return total
            self._recorder.tape.bare.append(due)
        at = tuple(w.copy() for w in at)
        self._due = Sum(kind, at, rows.copy(), bound, value, entries, objective)
        return total

    def norm(self, total: Any, offset: Vector, bound: float) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        norm = self._inner.norm(total, offset, bound)
        if self._due is not None:
            self._due = replace(self._due, kind="gradient norm", total=self.values(norm, bound))
        return norm

    def noisy_mean(
        self, total: Any, query: Query, bound: float, *, size: float, row: Any = None, **how: Any
    ) -> Vector:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        due, self._due = self._due, None
        assert due is not None
        kept = None if row is None else row.copy()
        about = {"oracle": self._number, "size": size, "row": kept, "scale": bound}
        release = partial(self._inner.noisy_mean, total, query, bound, size=size, row=row, **how)
        return self._recorder.take(due, query, release, **about).mean.copy()


_SHARED: tuple[str, ...] = ("n", "dimension", "l2", "penalized", "dual_l2", "ascending")
_SHARED += ("read_from_data", "group_size", "linear_loss")


class Without(Objective):
    """An objective in which one record contributes nothing."""

    def __init__(self, objective: Objective, row: int) -> None:
        self.inner, self._row = objective, row
        vars(self).update((name, getattr(objective, name)) for name in _SHARED)
        self.constants = getattr(objective, "constants", None)

    def others(self, rows: Rows) -> Rows:
        """Return the rows that contribute."""
        return np.asarray(rows[rows != self._row])

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`."""
        return gradients(self.inner, self.others(rows), *at)

    def loss_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.loss_contributions`."""
        return losses(self.inner, self.others(rows), w)

    def hessian_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.hessian_contributions`."""
        return hessians(self.inner, self.others(rows), w)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(np.frombuffer(self.inner.digest(), np.uint8), np.array([self._row]))


def without(objective: Objective, row: int) -> Objective:
    """Return an objective in which record ``row`` in [0, n) contributes nothing; n stays."""
    check_row(row, validate.instance(Objective, objective=objective).n)
    return Without(objective, row)


def check_row(row: int, n: int) -> None:
    """Refuse a row that is not there."""
    if not 0 <= row < n:
        raise ValueError(f"row must be in [0, {n}), got {row!r}.")


def record(run: Callable[[Any], Any], data: Any, *, seed: int | None = None) -> Tape:
    """Run a training function on its data, and return a tape of all actions of its oracles.

    The function's value is the outcome. The seed is an integer >= 0 to make the recording
    repeatable; fresh entropy when omitted.
    """
    validate.seed(seed=seed)
    salt = secrets.token_bytes(32) if seed is None else np.random.default_rng(seed).bytes(32)
    recorder = Recorder(Tape(salt=salt))
    return play(run, data, recorder)


def play(run: Callable[[Any], Any], data: Any, recorder: Recorder) -> Tape:
    """Run a function with a recorder, and return its tape, with the outcome or the failure."""
    tape = recorder.tape
    with observing(recorder), _aside(), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            tape.outcome = run(data)
        except Exception as error:
            tape.failure = error
    tape.warned = [each.message for each in heard if isinstance(each.message, Warning)]
    return tape
