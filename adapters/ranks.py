"""One run on several ranks: one batch, one ledger, and noise that the ranks draw in shards.

Rank 0 writes the ledger and draws the batch. Each rank clips and sums its pieces of the batch in
whole numbers, and adds the noise of the blocks of parameters that it owns. Then all ranks add up
their sums: a rank holds no sum without noise except the sum of its own pieces. Whole numbers add up
without rounding, and the words of a block's noise have a key of their own, made from (root, query,
step, block). So any number of ranks releases the same bits.

With a store, the file of rank 0 holds each question and a digest of its answer. If a job was
killed, start it again from its last checkpoint: it sends the same questions, and gets the same
answers. Other questions, or other records, are refused before an answer leaves.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=1000, batch_size=100, steps=3, epsilon=2.0, delta=1e-6)
>>> oracle = RankedOracle(plan, Alone(), {"weights": (4,)}, lambda: b"parameters", seed=0)
>>> for number, rows in oracle.pieces(64):
...     oracle.add(np.zeros((len(rows), 4)))
>>> oracle.answer().shape, oracle.ledger.count("gradient"), oracle.remaining("gradient")
((4,), 1, 2)
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

import dpcal
from dpcal._ext.sums import grid_step
from dpcal._internal import annexes
from dpcal.adapters.stepwise import FRACTION, Elsewhere, OutOfTurn, Piece, StepwiseOracle
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import DpcalError, LedgerMismatch
from dpcal.optim import Ledger
from dpcal.optim.boundary.batches import Batches
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.lattice import Grid, LatticeStream
from dpcal.optim.boundary.noise import present
from dpcal.optim.boundary.seeds import Seed, Streams, key_of, keyed_generator
from dpcal.optim.boundary.store import Store, read_ledger
from dpcal.optim.objectives.arrays import Rows, Vector

__all__ = ["Alone", "RankedOracle", "Ranks", "RanksDisagree", "RanksLost"]

Integers = NDArray[np.int64]

# Parameters of a stream, which opens in 50 microseconds, a twentieth of drawing a block.
_BLOCK = 1 << 16
# Pieces of an expected batch: with more ranks, some have no work.
_PIECES = 16
_LONGEST = 256
_COMPARED = 64


class RanksDisagree(DpcalError):  # noqa: N818 -- reads as what happened
    """Ranks have different plans, parameters, records or versions; nothing was released."""


class RanksLost(DpcalError):  # noqa: N818
    """A rank of the run does not respond; the ledger holds the answer that was requested."""


class Ranks(Protocol):
    """The processes of one run, which trust each other: ``rank`` of ``size``, from 0.

    The methods of this base are those of a single rank.
    """

    rank: int
    size: int

    def told(self, make: Callable[[], Any]) -> Any:
        """Return or raise on every rank the result of ``make``, which runs on rank 0 only."""
        return make()

    def same(self, **values: Any) -> None:
        """Refuse, by RanksDisagree on all ranks, values that are not the same on all."""
        return

    def total(self, whole: Integers) -> Integers:
        """Return the sum of the ranks' arrays of whole numbers, on all ranks."""
        return whole


class Alone(Ranks):
    """The only rank of a run."""

    rank, size = 0, 1


def check_same(gathered: Sequence[Mapping[str, Any]]) -> None:
    """Refuse values of ranks, a mapping each, that are not the same: RanksDisagree names them."""
    for name, first in gathered[0].items():
        for rank, values in enumerate(gathered):
            if values.get(name) == first:
                continue
            shown = (repr(first), repr(values.get(name)))
            told = f", got {shown[0]} on rank 0 and {shown[1]} on rank {rank}"
            if max(map(len, shown)) > 60:
                told = f", and that of rank {rank} is not that of rank 0"
            raise RanksDisagree(f"ranks must have the same {name.replace('_', ' ')}{told}.")


class RankedOracle(StepwiseOracle):
    """An oracle for one query of gradients; several ranks load its batches.

    Parameters
    ----------
    plan
        Plan with one query, of kind ``"gradient"``. On ranks other than 0, None stands for the plan
        of rank 0.
    ranks
        The processes of the run, or :class:`Alone`.
    shapes
        The shape of each trained parameter, by its name.
    question
        Function that returns bytes by which parameters differ, the same on all ranks.
    store
        Path of the run's file, which rank 0 opens; None for a run that cannot go on after its end.
    seed
        Seed of rank 0; other ranks' seeds are ignored. A run in the file keeps its own randomness.

    Raises
    ------
    RanksDisagree
        If ranks have other versions of this package, plans or shapes.
    ValueError
        If the store holds another run.
    UnsupportedEvent
        If whole numbers have no proof for the plan's noise.
    """

    def __init__(
        self,
        plan: Plan | None,
        ranks: Ranks,
        shapes: Mapping[str, tuple[int, ...]],
        question: Callable[[], bytes],
        *,
        seed: Seed = None,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        self._ranks, self._question, self._pays = ranks, question, not ranks.rank
        first = ranks.told(lambda: plan)
        if first is None:
            raise ValueError("plan must be given on rank 0, got None.")
        plan = first if plan is None else plan
        shown = json.dumps([[name, list(shape)] for name, shape in shapes.items()])
        ranks.same(
            version_of_dpcal=dpcal.__version__,
            plan=plan.to_json(),
            shapes_of_parameters=shown,
            use_of_a_store=store is not None,
        )
        self._check_kind(plan)
        dimension = sum(math.prod(shape) for shape in shapes.values())
        (query,) = plan.queries
        grid = None if query.correlation is None else annexes.grid_of(query, dimension)
        self._elsewhere = Elsewhere(plan.n, dimension)
        self._file: Store | None = None
        root, ledger = ranks.told(partial(self._opened, plan, shown, seed, store))
        self._root: dict[str, Any] = root
        if ranks.rank:
            self._start(plan, Streams.restored(root, plan), Ledger.from_json(ledger))
        self._noise = _Shards(query, dimension, root["secret"], ranks, grid)
        self._begin()
        self._move_to(0)

    def _opened(
        self,
        plan: Plan,
        shown: str,
        seed: Seed,
        store: str | os.PathLike[str] | None,
    ) -> tuple[dict[str, Any], str]:
        """Open rank 0: return the run's secret root and its ledger so far."""
        streams = present().streams(seed, plan, self._elsewhere.digest)
        if store is None:
            self._start(plan, streams, None)
        else:
            file = self._file = Store(store)
            about = {"plan": plan.to_json(), "noise": "discrete", "parameters": shown}
            try:
                known = file.checked(about)
                self._start(plan, streams, read_ledger(store) if known else None)
                file.begin(about, streams)
            except BaseException:
                file.close()
                raise
        return streams.root, self.ledger.to_json()

    def _start(self, plan: Plan, streams: Streams, ledger: Ledger | None) -> None:
        self._open(self._elsewhere, plan, streams, ledger=ledger)

    def _move_to(self, position: int) -> None:
        self._position = position
        self._next: int | None = None

    def _batch_of(self, step: int) -> Rows:
        """Return the batch of a step; after an interrupt they are drawn again from the root."""
        if self._next != step:
            self._drawn = islice(self._all_batches(), step, None)
        self._next = None
        rows = next(self._drawn)
        self._next = step + 1
        return rows

    def _all_batches(self) -> Iterator[Rows]:
        """Yield the batches of all steps, which are functions of the root."""
        streams = Streams.restored(self._root, self.plan)
        (query,) = self.plan.queries
        if query.correlation is not None:
            (generator,) = streams.samplings(1)
            yield from query.sampling.batches(self.plan.n, query.count, generator)
            return
        batches = Batches(self.plan, self.dimension, streams, n=self.plan.n)
        for answer in range(query.count):
            if query.composition == "disjoint":
                batches.parts.allot(query, 1, answer)
            yield batches.sample(query)

    def remaining(self, query: str) -> int:
        """Return the number of steps that are left; steps of the file may be among them."""
        return self.plan.query(query).count - self._position

    def pieces(self, at_most: int | None = None) -> list[Piece]:
        """Write the next answer into the ledger, and return this rank's pieces of its batch.

        Pieces go to the ranks in turn, so that they do not depend on the number of ranks. A rank
        without a piece gets an empty one.

        Parameters
        ----------
        at_most
            Records of a piece, at least 1 and the same on all ranks; a sixteenth of the expected
            batch, and at most 256, when omitted.
        """
        (query,) = self.plan.queries
        if at_most is None:
            expected = query.expected_batch_size(self.plan.n)
            at_most = max(1, min(_LONGEST, math.ceil(expected / _PIECES)))
        with self._turn:
            self._check_turn()
            question, step = self._question(), self._position
            self._ranks.same(step=step, at_most=at_most, parameters=question.hex())
            rows = self._ranks.told(lambda: self._begun(step, query, question))
            if self._ranks.rank:
                self._spend(step, query)
            pieces = list(enumerate(rows[i : i + at_most] for i in range(0, len(rows), at_most)))
            own = pieces[self._ranks.rank :: self._ranks.size] or [(len(pieces), rows[:0])]
            self._told = question
            self._take(np.concatenate([some for _, some in own]))
            return own

    def check_records(self, record: Callable[[int], bytes]) -> None:
        """Refuse, by RanksDisagree on all ranks, records that are not in one order on all ranks.

        A record at different places would be in two pieces of a batch, or in none. Digests of 64
        rows are compared, under a fresh key that no other process has. If two orders differ in a
        tenth of the rows, the check misses it once in 800 times.

        Parameters
        ----------
        record
            Function that returns bytes by which the records of rows differ, the same on all ranks.
        """
        if self._ranks.size == 1:
            return

        def chosen() -> tuple[bytes, list[int]]:
            rows = secrets.SystemRandom().sample(range(self.plan.n), min(self.plan.n, _COMPARED))
            return secrets.token_bytes(32), rows

        key, rows = self._ranks.told(chosen)
        digest = hashlib.blake2b(key=key, digest_size=32)
        for row in rows:
            held = record(row)
            digest.update(len(held).to_bytes(8, "big") + held)
        self._ranks.same(records_in_the_same_order=digest.hexdigest())

    def _begun(self, step: int, query: Query, question: bytes) -> Rows:
        """Return the batch of a step, on rank 0, after its answer is in ledger and file."""
        self._spend(step, query)
        if self._file is not None:
            self._file.put(step, question.hex(), b"", _entry(query))
        return self._batch_of(step)

    def _spend(self, step: int, query: Query) -> None:
        asked = self._asked(query.name, "gradient")
        if step >= self.ledger.count(query.name):
            self._admit((asked, 1))

    def seed_of(self, piece: int) -> int:
        """Return a seed of 64 bits for the model's draws in a piece; it is as public as w."""
        words = hashlib.blake2b(self._told, digest_size=8, salt=b"piece")
        words.update(f"{self._position} {piece}".encode())
        return int.from_bytes(words.digest(), "big")

    def answer(self) -> Vector:
        """Return the noisy mean gradient of the batch, shape (dimension,), the same on all ranks.

        LedgerMismatch is raised if the file has another answer to the question.
        """
        self._check_process()
        with self._turn:
            if not self.drawn:
                raise OutOfTurn("A batch must be drawn before it is answered for.")
            (query,) = self.plan.queries
            steps, fractions = both = np.zeros((2, self.dimension), dtype=np.int64)
            steps += self._total[0]
            fractions += self._total[1]
            steps <<= self._noise.digits
            self._noise.add(self._position, steps)
            steps, fractions = self._ranks.total(both)
            whole = steps + ((fractions >> FRACTION) << self._noise.digits)
            self._ranks.told(partial(self._released, whole))
            self.give_up()
            size = query.expected_batch_size(self.plan.n) * 2.0**self._noise.digits
            return self._mechanism.values(whole, query.max_norm) / size

    def _released(self, whole: Integers) -> None:
        if self._file is not None:
            (query,) = self.plan.queries
            words = whole.astype("<i8", copy=False).tobytes()
            digest = hashlib.blake2b(words, digest_size=32).digest()
            self._file.put(self._position, self._told.hex(), digest, _entry(query))

    def give_up(self) -> None:
        """Go on to the next step; a batch that was not answered for stays in the ledger."""
        with self._turn:
            if self.drawn:
                self._total = None
                self._position += 1

    def state(self) -> dict[str, Any]:
        """Return the state for :meth:`restored`, as JSON values: a number of steps, no secret."""
        return {"plan": json.loads(self.plan.to_json()), "answers": self._position}

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Move to the step at which :meth:`state` was taken, and return the oracle itself.

        Steps from there on that the file holds are answered again, with the same noise.
        """
        if Plan.from_json(json.dumps(state.get("plan"))) != self.plan:
            raise ValueError("state must be of a guard with the same plan.")
        answers = state.get("answers")
        (query,) = self.plan.queries
        given = self.ledger.count(query.name)
        if not isinstance(answers, int) or not 0 <= answers <= given:
            raise LedgerMismatch(
                f"state must be of a step in [0, {given}], which the ledger holds, got {answers!r}."
            )
        self._ranks.same(step=answers)
        if self.drawn or (self._ranks.told(lambda: self._file is None) and answers < given):
            raise LedgerMismatch(
                f"state must be of step {given}, and between two batches: without a store no step "
                f"is answered again, got step {answers}."
            )
        self._move_to(answers)
        return self


def _entry(query: Query) -> str:
    return json.dumps(query.with_count(1).to_dict())


class _Shards:
    """The noise of the blocks of parameters that one rank owns, each with keys of its own."""

    def __init__(
        self, query: Query, dimension: int, secret: str, ranks: Ranks, grid: Grid | None
    ) -> None:
        blocks = -(-dimension // _BLOCK)
        first, last = (rank * blocks // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        self._parts = {
            block: slice(block * _BLOCK, min((block + 1) * _BLOCK, dimension))
            for block in range(first, last)
        }
        self._role, self._secret = f"shard {query.name}", secret
        self._sigma = query.noise_multiplier * (query.max_norm / grid_step(query.max_norm))
        self.digits = 0 if grid is None else grid.digits
        self._streams: dict[int, LatticeStream] = {}
        if grid is not None:
            self._streams = {
                block: LatticeStream(
                    dataclasses.replace(grid, dimension=part.stop - part.start),
                    partial(keyed_generator, self._key(block, "rows")),
                )
                for block, part in self._parts.items()
            }

    def _key(self, block: int, step: int | str) -> bytes:
        return key_of(self._secret, f"{self._role} {step} {block}")

    def add(self, step: int, whole: Integers) -> None:
        """Add the noise of a step to the own blocks of a sum, shape (dimension,), in place."""
        for block, part in self._parts.items():
            stream, size = self._streams.get(block), part.stop - part.start
            if stream is None:
                normals = DiscreteNormals.covering(self._sigma, self._key(block, step))
                whole[part] += normals.draw(size)
                continue
            if stream.step != step:
                stream = self._streams[block] = stream.at(step)
            whole[part] += stream.read()
