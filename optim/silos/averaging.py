"""Who averages the answers of silos? A server that sees noisy answers alone.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim.problems import Trigonometric
>>> from dpcal.optim.silos import Silo
>>> silos = [Silo(Trigonometric.drawn(20_000, 3, seed=seed)) for seed in range(4)]
>>> plan = calibrate.distributed_psgd(silos[0].objective.constants, silos=4, n=20_000, dimension=3,
...                                   epsilon=4.0, delta=1e-6)
>>> with SiloOracle(silos, plan, seed=0) as server:
...     mean = server.gradient(np.zeros(3), "refresh")
>>> [ledger.count("refresh") for ledger in server.ledgers]
[1, 1, 1, 1]

Each silo adds the noise that its own records need, whatever the others do: nothing is divided by
the number of silos before the mean is taken, and the mean of m answers has 1 / m of the variance.
What the server does with the answers is post-processing of each silo's, the others' records fixed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.errors import LedgerMismatch
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import MECHANISMS
from dpcal.optim.boundary.seeds import Seed, spawned
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.silos.local import Answerer, Silo, SiloLost
from dpcal.optim.silos.overlap import check_distinct

__all__ = ["SiloOracle", "plan_of_silo"]

ON_LOST = ("stop", "continue")

# Numbers of a batch below which silos in this process are asked in turn: their sums then take less
# than the 50 microseconds or so that handing them to threads does.
_WORK = 1 << 16


def plan_of_silo(plan: Plan, n: int) -> Plan:
    """Return the plan of a silo with ``n`` records: batches in proportion, and the same noise.

    Parameters
    ----------
    plan
        Of silos with ``plan.n`` records.
    n
        At least ``plan.n``: with fewer records an answer would err by more than was planned.

    Raises
    ------
    ValueError
        If there are fewer.
    """
    if n == plan.n:
        return plan
    if n < plan.n:
        raise ValueError(f"silos must have at least the plan's n={plan.n} records, got {n}.")
    queries = [
        dataclasses.replace(query, batch_size=size, count=n // size)
        for query in plan.queries
        for size in [(query.batch_size or 1) * n // plan.n]
    ]
    return dataclasses.replace(plan, n=n, queries=tuple(queries))


class SiloOracle:
    """Asks silos and averages; an :class:`dpcal.optim.Oracle` of gradients and differences.

    Parameters
    ----------
    silos
        Silos, or objectives, each of which is taken for a silo in this process.
    plan
        Of the smallest silo. A larger one has larger batches in proportion, and its own plan.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or a ``Generator``, of which each silo has
        a child; None for fresh entropy in every silo.
    on_lost
        Where a silo is lost: ``"stop"`` ends the run, ``"continue"`` goes on with the others.
    executor
        Asks the silos, all at once; when omitted threads, or one silo after the other where all are
        in this process and have small batches.
    noise
        Of every silo: ``"gaussian"``, or ``"discrete"`` with exact sums.
    overlap
        Which silos' records are compared, to refuse a record in two silos; see
        :func:`dpcal.optim.silos.overlap.check_distinct`.

    Attributes
    ----------
    plan
        As given.
    plans, ledgers
        Of each silo. A ledger holds an answer from before it was asked for, so that it is no less
        than what the silo released, also where the silo is gone.
    alive
        Numbers of the silos that answer.

    Raises
    ------
    ValueError
        If silos differ in their dimension or regulariser, are not as many as the plan says, have
        fewer records than it, or share a record.
    """

    def __init__(
        self,
        silos: Sequence[Answerer | Objective],
        plan: Plan,
        *,
        seed: Seed = None,
        on_lost: str = "stop",
        executor: Executor | None = None,
        noise: str = "gaussian",
        overlap: str = "local",
    ) -> None:
        _validate.choice(tuple(MECHANISMS), noise=noise)
        self._silos = [Silo(silo) if isinstance(silo, Objective) else silo for silo in silos]
        count = len(self._silos)
        if count != plan.parameters.get("silos", 1):
            expected = plan.parameters.get("silos", 1)
            raise ValueError(f"silos must be as many as the plan says, {expected}, got {count}.")
        self._on_lost = _validate.choice(ON_LOST, on_lost=on_lost)
        check_distinct(self._silos, overlap)
        about = [silo.describe() for silo in self._silos]
        for name in ("dimension", "l2"):
            values = [getattr(each, name) for each in about]
            if len(set(values)) > 1:
                raise ValueError(f"silos must have the same {name}, got {values}.")
        self.plan, self.dimension, self.l2 = plan, about[0].dimension, about[0].l2
        self.plans = tuple(plan_of_silo(plan, each.n) for each in about)
        self.ledgers = tuple(Ledger.of(each) for each in self.plans)
        self.alive = tuple(range(count))
        self.seed_given = seed is not None
        self.public = np.random.default_rng()
        self._own = executor is None
        self._executor = executor or ThreadPoolExecutor(count)
        near = self._own and all(type(silo) is Silo and silo.in_memory for silo in self._silos)
        self._in_turn = {
            query.name: near and self.dimension * (query.batch_size or plan.n) < _WORK
            for query in plan.queries
        }
        for silo, own, child in zip(self._silos, self.plans, spawned(seed, count), strict=True):
            # Silos of a user's own need not know of any other noise.
            silo.open(own, child, *([] if noise == "gaussian" else [noise]))

    @property
    def ledger(self) -> Ledger:
        """The first silo's."""
        return self.ledgers[0]

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return the mean over the silos of noisy gradients, shape (dimension,).

        Raises
        ------
        SiloLost
            If a silo is lost, or all of them.
        """
        return self._mean("gradient", query, w)

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return the mean over the silos of noisy gradient differences, shape (dimension,)."""
        return self._mean("difference", query, w, v)

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Refuse: a mean of norms is no norm of the mean."""
        raise TypeError("silos answer with gradients and differences, and not with norms.")

    def scalar(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Refuse: silos are not asked for losses."""
        raise TypeError("silos answer with gradients and differences, and not with losses.")

    def remaining(self, query: str) -> int:
        """Return how often every silo may still be asked."""
        pairs = [(self.plans[j], self.ledgers[j]) for j in self.alive]
        return min(plan.query(query).count - ledger.count(query) for plan, ledger in pairs)

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return False: noise is planned."""
        return False

    def _mean(self, kind: str, query: str, *at: ArrayLike) -> Vector:
        for j in self.alive:
            self.ledgers[j].record(self.plans[j].query(query))
        asked: list[Callable[[], Vector]] = [
            partial(self._silos[j].answer, kind, query, *at) for j in self.alive
        ]
        if not self._in_turn[query]:
            asked = [self._executor.submit(each).result for each in asked]
        answers, lost = [], []
        # In the order of the silos, so that sums are repeatable.
        for j, answer in zip(self.alive, asked, strict=True):
            try:
                answers.append(answer())
            except SiloLost:
                lost.append(j)
        if lost:
            self.alive = tuple(j for j in self.alive if j not in lost)
        if lost and (self._on_lost == "stop" or not answers):
            raise SiloLost
        if len(answers) == 1:
            return answers[0]
        return reduce(np.add, answers) / len(answers)

    def verify(self) -> None:
        """Compare each ledger here with that of the silo itself, where it can be asked.

        Raises
        ------
        LedgerMismatch
            If a silo that never was lost released anything else.
        """
        for j in self.alive:
            try:
                own = self._silos[j].ledger()
            except SiloLost:
                self.alive = tuple(each for each in self.alive if each != j)
                continue
            if own.totals != self.ledgers[j].totals:
                raise LedgerMismatch(f"the ledger of silo {j} is not what it was asked for.")

    def close(self) -> None:
        """Close every silo, and the threads that asked them."""
        for j in self.alive:
            with suppress(SiloLost):
                self._silos[j].close()
        if self._own:
            self._executor.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
