"""What did a run do? A recorder inside every oracle of the run keeps its sums and answers.

>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, noisy_gd
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=3)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=9.0, delta=1e-6)
>>> records = Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1])
>>> tape = record(lambda objective: noisy_gd(objective, plan, learning_rate=1.0), records)
>>> [(answer.query.name, len(answer.rows)) for answer in tape.answers]
[('gradient', 2), ('gradient', 2), ('gradient', 2)]
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock, local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.attacks.neighbouring import Without
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.observers import Chooser, observing
from dpcal.optim.boundary.seeds import Seed, Streams, replaying
from dpcal.optim.budget import _aside
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.objectives.base import Objective

if TYPE_CHECKING:
    from dpcal.optim.boundary.noise import Steps

__all__ = ["Answer", "Choice", "Opened", "Recorder", "Sum", "Tape", "play", "record", "same"]


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of clipped contributions, before its noise.

    Parameters
    ----------
    kind, objective
        Kind of the query, and objective that holds the records.
    at
        Parameters: one vector, or two for differences.
    rows, bound
        Rows of the sum, and bound on the norm of one contribution.
    total
        The sum, in the units of the answer.
    entries
        Number of answers in the ledger when the sum was taken.
    """

    kind: str
    at: tuple[Vector, ...]
    rows: Rows
    bound: float
    total: Vector
    entries: int
    objective: Objective


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer(Sum):
    """A sum that was released, with its noise.

    Parameters
    ----------
    oracle, query
        Number of its oracle, in the order of opening; and the query, with the chosen noise if it is
        adaptive.
    mean, size
        The released value, (total + noise) / size, and the public divisor.
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
    def noise(self) -> Vector:
        """The noise that was added, in units of the standard deviation that was due."""
        unit: float = self.query.noise_multiplier * self.bound
        return (self.mean * self.size - self.total) / unit


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """An answer that is one of many candidates.

    Parameters
    ----------
    oracle, query, entries
        Those of an :class:`Answer`.
    at
        The public numbers that it was asked at: cuts, or none.
    scores
        What it was chosen by: sums by label or cell, or for each interval between cuts its values,
        sorted, with the share that lies below a quantile.
    chosen
        The released value.
    """

    oracle: int
    query: Query
    entries: int
    at: Vector
    scores: Any
    chosen: NDArray[Any] | None = None


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
    answers, choices, bare, opened
        Answers, choices and sums without noise, in their order; and the oracles.
    warned
        The warnings of the run.
    outcome, failure
        The value that the run returned, or the error that it raised; None for the other.
    """

    salt: bytes
    answers: list[Answer] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    bare: list[Sum] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    warned: list[Warning] = field(default_factory=list)
    outcome: Any = None
    failure: Exception | None = None

    def of(self, oracle: int) -> list[Answer]:
        """Return the answers of one oracle."""
        return [answer for answer in self.answers if answer.oracle == oracle]


class Recorder:
    """An observer that writes a tape, which is empty at first."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        # Oracles may be opened in several threads, each between its streams and its mechanism.
        self._opening, self._lock, self._numbers = local(), Lock(), count()

    def streams(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
        """Return streams that depend on the tape, on a given seed and on the plan alone."""
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
        """Return what records the choices of an oracle."""
        number = self.opened(plan, ledger)

        def choose(
            query: Query, at: Vector, scores: Any, make: Callable[[], NDArray[Any]]
        ) -> NDArray[Any]:
            due = Choice(
                oracle=number, query=query, entries=ledger.answers, at=at.copy(), scores=scores
            )
            chosen = self.choose(due, make)
            self.tape.choices.append(replace(due, chosen=chosen))
            return chosen

        return choose

    def choose(self, due: Choice, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the answer of an oracle that chooses."""
        return make()

    def take(self, due: Sum, query: Query, release: Callable[[], Vector], **about: Any) -> Answer:
        """Release a sum, and record the answer."""
        answer = Answer(**vars(due), query=query, mean=release().copy(), **about)
        self.tape.answers.append(answer)
        return answer


class Watched:
    """A mechanism that hands the sums and the noise of an ``inner`` mechanism to a recorder.

    ``number`` and ``ledger`` are those of the oracle.
    """

    # A recorder does not see compiled loops.
    fused = False

    def __init__(self, inner: Mechanism, recorder: Recorder, number: int, ledger: Ledger) -> None:
        self.name, self.values = inner.name, inner.values
        self._inner, self._recorder = inner, recorder
        self._number, self._ledger = number, ledger
        self._due: Sum | None = None

    def gradient_sum(self, *about: Any) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        return self._summed("gradient", self._inner.gradient_sum, *about)

    def difference_sum(self, *about: Any) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        return self._summed("gradient difference", self._inner.difference_sum, *about)

    def loss_sum(self, *about: Any) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        return self._summed("scalar", self._inner.loss_sum, *about)

    def norm(self, total: Any, offset: Vector, bound: float) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        norm = self._inner.norm(total, offset, bound)
        if self._due is not None:
            self._due = replace(self._due, kind="gradient norm", total=self.values(norm, bound))
        return norm

    def mean_iterate(self, one_pass: Steps, objective: Objective, w: Vector, rows: Rows) -> Any:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        total = self._inner.mean_iterate(one_pass, objective, w, rows)
        return self._noted("one pass", objective, (w,), rows, one_pass.bound, total)

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

    def _summed(self, kind: str, taken: Callable[..., Any], objective: Any, *about: Any) -> Any:
        """Take a sum about a whole objective: both of two compared runs are rounded alike."""
        *at, rows, bound = about
        if isinstance(objective, Without):
            total = taken(objective.inner, *at, objective.others(rows), bound)
        else:
            total = taken(objective, *at, rows, bound)
        return self._noted(kind, objective, tuple(at), rows, bound, total)

    def _noted(
        self, kind: str, objective: Objective, at: Any, rows: Rows, bound: float, total: Any
    ) -> Any:
        due, found, entries = self._due, self.values(total, bound), self._ledger.answers
        if due is not None:
            pieces = due.objective is objective and getattr(objective, "in_pieces", False)
            if pieces and due.entries == entries:
                joined = np.concatenate([due.rows, rows])
                self._due = replace(due, rows=joined, total=due.total + found)
                return total
            self._recorder.tape.bare.append(due)
        at = tuple(w.copy() for w in at)
        self._due = Sum(kind, at, rows.copy(), bound, found, entries, objective)
        return total


def record(run: Callable[[Any], Any], data: Any, *, seed: int | None = None) -> Tape:
    """Run a training function on its data, and return a tape of all actions of its oracles.

    The function's value is the outcome. The seed is an integer >= 0 to make the recording
    repeatable; fresh entropy when omitted.
    """
    _validate.seed(seed=seed)
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


def same(first: tuple[Vector, ...], second: tuple[Vector, ...]) -> bool:
    """Return whether parameters are equal, bit for bit."""
    return len(first) == len(second) and all(map(np.array_equal, first, second))
