"""An oracle for loops that load their own batches: it returns rows, and takes gradients.

Frameworks want to load a batch themselves and to see it in pieces. A :class:`StepwiseOracle` draws
the batch after it wrote the ledger, sums the pieces clipped record by record, and adds the noise
when the batch is complete.

>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.5,
...               max_norm=1.0, noise_multiplier=2.0, count=1)
>>> plan = Plan(optimizer="dpsgd", n=8, queries=(query,), epsilon=3.0, delta=1e-6)
>>> oracle = StepwiseOracle(plan, dimension=2, seed=0)
>>> rows = oracle.draw()
>>> oracle.add(np.ones((len(rows), 2)))
>>> oracle.answer().shape, oracle.ledger.count("gradient"), oracle.remaining("gradient")
((2,), 1, 0)
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from threading import Lock, RLock
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.sums import grid_step
from dpcal._internal import validate
from dpcal._internal.spending import Spender
from dpcal.accountants.events import DpEvent
from dpcal.calibrate.plan import Plan, Priced
from dpcal.errors import DpcalError, LedgerMismatch
from dpcal.optim import Ledger, PrivateOracle
from dpcal.optim.boundary.noise import present
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import (
    Asked,
    Contributions,
    Table,
    gradients,
    shaped,
    trusted,
)

__all__ = ["BELOW", "FRACTION", "Elsewhere", "Guarded", "OutOfTurn", "Piece", "StepwiseOracle"]

Piece = tuple[int, Rows]
# Binary digits of a fraction of a step on a bound's grid.
FRACTION = 27
BELOW = (1 << FRACTION) - 1
_NOTHING = (0, 0)
Places = Rows | slice
WholeSums = Callable[[Places, float], tuple[NDArray[np.int64], NDArray[np.int64] | int]]


class OutOfTurn(DpcalError):  # noqa: N818 -- reads as what happened
    """Gradients were handed in without a batch, or a batch was drawn before the last one's end."""


class _Given:
    """Number of answers that this process has given of each run, over all oracles."""

    def __init__(self) -> None:
        self.answers: dict[str, int] = {}
        self._lock = Lock()

    def claim(self, run: str, answer: int) -> None:
        """Refuse an answer of a run, from 1 on, if it or a later one was given before."""
        with self._lock:
            if answer <= self.answers.get(run, 0):
                raise LedgerMismatch(
                    f"this process has given answer {answer} of this run already: go on from a "
                    "state once, and from the last one."
                )
            self.answers[run] = answer


_GIVEN = _Given()


class StepwiseOracle(PrivateOracle, Spender):
    """An oracle for one query of gradients; the caller loads its batches.

    Parameters
    ----------
    plan
        Plan with one query, of kind ``"gradient"``.
    dimension
        Number of parameters.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh entropy
        from the operating system. The noise of a seed does not depend on the records here: use a
        seed for one data set only.
    ledger
        Answers that were released already, within the plan.

    Raises
    ------
    ValueError
        If the plan has other queries, or the ledger breaks off an epoch with unknown draws.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        dimension: int,
        seed: Seed = None,
        ledger: Ledger | None = None,
        streams: Streams | None = None,
    ) -> None:
        self._check_kind(plan)
        objective = Elsewhere(plan.n, validate.count(dimension=dimension))
        if streams is None:
            streams = present().streams(seed, plan, objective.digest)
        self._open(objective, plan, streams, ledger=ledger)
        self._elsewhere = objective
        self._begin()
        if ledger is not None:
            self._check_epoch(ledger)
            self._batches.skip_to(ledger)

    def _begin(self) -> None:
        """Begin without a batch."""
        self._total: Any = None
        self._batch: Rows = np.empty(0, dtype=np.intp)
        # Threads take turns: two answers about one batch would be accounted for once.
        self._turn = RLock()
        # Name of the run in its states, by which this process detects a state that is used twice.
        self._run = secrets.token_hex(16)

    def _take(self, rows: Rows) -> None:
        """Begin a batch, with nothing summed yet."""
        self._total, self._batch = _NOTHING, rows

    @staticmethod
    def _check_kind(plan: Plan) -> None:
        validate.instance(Plan, plan=plan)
        if [query.kind for query in plan.queries] != ["gradient"]:
            kinds = ", ".join(repr(query.kind) for query in plan.queries)
            raise ValueError(f"plan must have one query of kind 'gradient', got {kinds}.")

    def _check_epoch(self, ledger: Ledger) -> None:
        """Refuse new draws within an epoch: a record would be in two of its batches."""
        (query,) = self.plan.queries
        count, epoch = ledger.count(query.name), query.epoch or 1
        if query.correlation is None and count % epoch and self._streams.allotment is None:
            raise ValueError(
                f"ledger must end with an epoch of {epoch} answers unless a state has the draws of "
                f"the epoch, got one of {count} answers."
            )

    @property
    def drawn(self) -> bool:
        """Whether a batch was drawn and has no answer yet."""
        return self._total is not None

    def draw(self) -> Rows:
        """Write the next answer into the ledger, and return the rows that it is about.

        Raises
        ------
        BudgetExceeded
            If the plan is used up.
        OutOfTurn
            If the last batch has no answer yet.
        """
        with self._turn:
            self.pieces()
            return self._batch

    def _check_turn(self) -> None:
        if self.drawn:
            raise OutOfTurn(
                "The last batch must be answered for before the next one is drawn: hand in its "
                "gradients or, if an exception broke the step off, call give_up(). Its answer "
                "stays in the ledger."
            )

    def gradient(self, w: Any, query: str, *, noise_multiplier: float | None = None) -> NoReturn:
        """Refuse: the records are held elsewhere."""
        raise TypeError("Records that are held elsewhere are asked by draw, add and answer.")

    def pieces(self, at_most: int | None = None) -> list[Piece]:
        """Draw as :meth:`draw` does, and return the batch in pieces of ``at_most`` records."""
        (query,) = self.plan.queries
        with self._turn, self._lock:
            self._check_turn()
            self._admit((self._asked(query.name, "gradient"), 1))
            _GIVEN.claim(self._run, self.ledger.count(query.name))
            rows = self._batches.sample(query)
            self._take(rows)
        length = at_most or max(1, len(rows))
        cut = [rows[i : i + length] for i in range(0, len(rows), length)]
        return list(enumerate(cut or [rows]))

    def add(self, gradients: NDArray[Any]) -> None:
        """Add gradients of records of the batch, shape (m, dimension), each clipped."""
        table = np.asarray(gradients, dtype=np.float64)
        shaped("gradients", table, (len(table), self.dimension))

        def sums(some: Places, bound: float) -> tuple[NDArray[np.int64], int]:
            return Table(self.dimension, [table[some]]).whole(bound), 0

        self.add_whole(len(table), sums)

    def add_whole(self, count: int, sums: WholeSums) -> None:
        """Add ``count`` records of the batch, by a function that sums their clipped gradients.

        Only for this package's guards: their functions keep the promise of ``sums``.

        Parameters
        ----------
        count
            Number of records, at least 0.
        sums
            ``sums(some, bound)`` returns whole steps of the bound's grid, and fractions below 1 in
            units of 2^-27 steps, shape (dimension,): one record moves the steps of the whole
            batch, plus all fractions rounded down together, by at most the bound in L2 norm.
            ``some`` of the records are numbers from 0 to ``count - 1``, or a slice of all.

        Raises
        ------
        OutOfTurn
            If no batch was drawn, or more records are handed in than the batch has.
        """
        with self._turn:
            if not self.drawn:
                raise OutOfTurn("A batch must be drawn before its gradients are handed in.")
            if count > len(self._batch):
                raise OutOfTurn(
                    f"count must be at most {len(self._batch)}, the records of the batch that were "
                    f"not yet handed in, got {count}: a record that is summed twice costs more "
                    "than it is charged for."
                )
            rows, bound = self._batch[:count], self.plan.queries[0].max_norm
            self._elsewhere.hand_in(rows, sums)
            at = np.zeros(self.dimension)
            found = gradients(self._elsewhere, rows, at)
            about = "gradient", self._elsewhere, (at,), rows
            steps = self._mechanism.whole(found, bound, *about)
            fractions = self._elsewhere.fractions
            if self._total is not _NOTHING:
                fractions = fractions + self._total[1]
                steps = steps + self._total[0] + (fractions >> FRACTION)
                fractions &= BELOW
            # In this order an interrupt leaves records out, and never sums a record twice.
            self._batch = self._batch[count:]
            self._total = steps, fractions

    def answer(self) -> Vector:
        """Return the noisy mean gradient of the batch, shape (dimension,); the batch may be empty.

        The divisor is the expected size of a batch, which is public.
        """
        self._check_process()
        with self._turn:
            if not self.drawn:
                raise OutOfTurn("A batch must be drawn before it is answered for.")
            if self._total is _NOTHING:
                self.add(np.empty((0, self.dimension)))
            (query,) = self.plan.queries
            (steps, _), self._total = self._total, None
            return self._noisy_mean(steps, query, query.max_norm)

    def give_up(self) -> None:
        """Forget a batch that was drawn; its answer stays in the ledger, and nothing leaves."""
        with self._turn:
            self._total = None

    def state(self) -> dict[str, Any]:
        """Return the state for :meth:`continued`, as JSON values. With a seed, keep it secret.

        Correlated noise, and the draws of an epoch, go on where they stopped; independent noise is
        drawn afresh.
        """
        correlated = any(query.correlation is not None for query in self.plan.queries)
        return {
            "plan": json.loads(self.plan.to_json()),
            "ledger": json.loads(self.ledger.to_json()),
            "seed": self._streams.root if correlated else None,
            "allotment": self._streams.allotment,
            "noise": self.noise,
            "dimension": self.dimension,
            "run": self._run,
        }

    @classmethod
    def continued(cls, state: Mapping[str, Any]) -> Self:
        """Return an oracle that goes on where another one stopped. Use each state once.

        An answer that this process has given after the state was taken is refused when its batch is
        drawn; other processes are not seen.

        Raises
        ------
        LedgerMismatch
            If the state's ledger is not within its plan.
        """
        if state.get("noise", "gaussian") != cls.noise:
            raise ValueError(
                "state must be of a run with discrete noise, got one with Gaussian noise of an "
                "earlier release, which cannot go on."
            )
        plan = Plan.from_json(json.dumps(state["plan"]))
        streams = None if state["seed"] is None else Streams.restored(state["seed"], plan)
        if state.get("allotment") is not None:
            streams = Streams(None, plan, bytes)
            streams.allotment = state["allotment"]
        oracle = cls(
            plan,
            dimension=state["dimension"],
            ledger=Ledger.from_json(json.dumps(state["ledger"])),
            streams=streams,
        )
        # States of earlier releases have no name of their run, but a root with correlated noise.
        secret = (state["seed"] or {}).get("secret")
        oracle._run = str(state.get("run") or secret or oracle._run)
        return oracle

    def restored(self, state: Mapping[str, Any]) -> StepwiseOracle:
        """Return the oracle of :meth:`continued` in this one's place.

        Raises
        ------
        ValueError
            If the state is of another plan, or of parameters of another number.
        LedgerMismatch
            If its ledger is not within its plan, or holds fewer answers than were given here.
        """
        oracle = self.continued(state)
        if (oracle.plan, oracle.dimension) != (self.plan, self.dimension):
            raise ValueError(
                "state must be of a guard with the same plan and number of parameters."
            )
        if oracle.ledger.answers < self.ledger.answers:
            raise LedgerMismatch(
                f"state must hold the {self.ledger.answers} answers that this guard has given, got "
                f"one of {oracle.ledger.answers}: restore the parameters of an earlier step, and "
                "keep the guard."
            )
        return oracle


class Guarded(Priced, Spender):
    """Plan, ledger and remaining steps of the run that a guard steps through."""

    _oracle: StepwiseOracle

    @property
    def plan(self) -> Plan:
        """The plan that is spent."""
        return self._oracle.plan

    @property
    def ledger(self) -> Ledger:
        """The ledger of all answers so far."""
        return self._oracle.ledger

    @property
    def remaining(self) -> int:
        """Steps that the plan still allows."""
        return self._oracle.remaining(self.plan.queries[0].name)

    def under(self, neighboring_relation: str | None = None) -> tuple[DpEvent, str]:
        """Return the event of the whole plan from the first answer on, as a result does.

        Whoever ends a loop has seen its released answers, so the event is the whole plan's.
        ``ledger.epsilon(delta)`` is the epsilon of the answers so far, for a number of steps that
        was fixed beforehand.
        """
        return (self.plan if self.ledger.answers else self.ledger).under(neighboring_relation)

    def give_up(self) -> None:
        """Close a batch that gets no answer, after an exception in the midst of a step.

        Its answer stays in the ledger, because the batch was drawn: the step is spent, and nothing
        of it is released. The next batch may then be drawn. Without an open batch nothing happens.
        On several ranks, call it on every rank.
        """
        self._oracle.give_up()

    def state_dict(self) -> dict[str, Any]:
        """Return the state for :meth:`load_state_dict`, as JSON; keep it as secret as a seed.

        Correlated noise, and the draws of an epoch, go on where they stopped; independent noise is
        drawn afresh.
        """
        return self._oracle.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken. Use each state once.

        Raises
        ------
        ValueError
            If the state is of another plan, or of parameters of another number.
        LedgerMismatch
            If its ledger is not within its plan, or holds fewer answers than this oracle gave: a
            released answer stays released.
        """
        self._oracle = self._oracle.restored(state)


@trusted
class Elsewhere(Objective):
    """Records that the caller holds; the caller hands in their clipped sums.

    ``fractions`` belong to the last sum that was taken.
    """

    in_pieces = True

    def __init__(self, n: int, dimension: int) -> None:
        self.n = n
        self.dimension = self.penalized = dimension
        self.fractions: NDArray[np.int64] | int = 0
        nothing = np.zeros(dimension, dtype=np.int64)
        self.hand_in(np.empty(0, dtype=np.intp), lambda some, bound: (nothing, 0))

    def hand_in(self, rows: Rows, sums: WholeSums) -> None:
        """Take the function of some rows' clipped sums, which numbers them from 0 on."""
        self._order, self._sums = np.argsort(rows), sums
        self._sorted = rows[self._order]

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """Return the sums that were handed in; see :meth:`Objective.contributions`."""
        places = self._order[np.searchsorted(self._sorted, rows)]
        everyone = np.array_equal(places, np.arange(len(self._sorted)))
        some: Places = slice(None) if everyone else places

        def whole(bound: float) -> NDArray[np.int64]:
            steps, self.fractions = self._sums(some, bound)
            return steps

        def clipped(bound: float) -> Vector:
            return np.multiply(whole(bound), grid_step(bound), dtype=np.float64)

        return Asked(self.dimension, clipped, whole)

    def digest(self) -> bytes:
        """Return the same bytes for all records, so that a seed is good for one data set."""
        return b"records held elsewhere"
