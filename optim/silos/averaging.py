"""A server that averages the answers of silos, and receives only noisy answers.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Squared
>>> from dpcal.optim.silos import Silo
>>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (4, 20_000, 3))
>>> silos = [Silo(Squared(rows, rows[:, 0], fit_intercept=False)) for rows in X]
>>> constants = calibrate.Constants(
...     lipschitz=1.0, smoothness=1.0, gap=1.0, hessian_lipschitz=1.0)
>>> plan = calibrate.distributed_psgd(
...     constants, silos=4, n=20_000, dimension=3, epsilon=4.0, delta=1e-6)
>>> with SiloOracle(silos, plan) as server:
...     mean = server.gradient(np.zeros(3), "refresh")
>>> [ledger.count("refresh") for ledger in server.ledgers]
[1, 1, 1, 1]

Each silo adds the noise that its own records need, independent of the others: noise is not divided
by the number of silos before the mean is taken, and the mean of m answers has 1 / m of the
variance. With the other silos' records fixed, the server post-processes each silo's answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.plan import Plan
from dpcal.errors import LedgerMismatch
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.seeds import Seed, spawned
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.silos.local import Answerer, Silo, SiloLost
from dpcal.optim.silos.overlap import check_distinct

ON_LOST = ("stop", "continue")

# Numbers in a batch; smaller batches are summed faster than a thread starts (50 microseconds).
_WORK = 1 << 16


def plan_of_silo(plan: Plan, n: int) -> Plan:
    """Return the plan of a silo with ``n`` records: batches in proportion, and the same noise.

    It has at least ``plan.n``: with fewer records an answer would err by more than was planned.
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


def plans_of_silos(plan: Plan | Sequence[Plan], count: int) -> tuple[Plan, ...]:
    """Return a plan for each of so many silos, which differ in noise and target at most."""
    plans = (plan,) * max(count, 1) if isinstance(plan, Plan) else tuple(plan)
    expected = plans[0].parameters.get("silos", 1) if plans else 0
    if not 0 < count == len(plans) == expected:
        raise ValueError(f"silos must be as many as the plan says, {expected}, got {count}.")
    if any(_alike(other) != _alike(plans[0]) for other in plans[1:]):
        raise ValueError(
            "plans of silos must differ in noise and epsilon alone: make them with "
            "calibrate.silo_plans(constants, epsilon=[...], ...)."
        )
    return plans


def _alike(plan: Plan) -> Plan:
    """Return a plan with the noise and the epsilon of any other."""
    queries = [dataclasses.replace(query, noise_multiplier=1.0) for query in plan.queries]
    return dataclasses.replace(plan, queries=tuple(queries), epsilon=1.0)


def _silos_of(silos: Sequence[Answerer | Objective], seed: Seed) -> list[Answerer]:
    """Return silos as they are, and objectives as silos of this process with children of a seed."""
    if seed is not None and not all(isinstance(silo, Objective) for silo in silos):
        raise ValueError(
            "seed is for objectives, and must be None with silos, whose noise is their own: an "
            f"owner gives it as Silo(objective, seed=...), got {seed!r}."
        )
    seeds = spawned(seed, max(len(silos), 1))
    return [
        Silo(silo, seed=own) if isinstance(silo, Objective) else silo
        for silo, own in zip(silos, seeds, strict=False)
    ]


class SiloOracle(AbstractContextManager["SiloOracle"]):
    """Oracle of gradients and differences: the mean of the answers of silos.

    It refuses silos that differ in their dimension or regulariser, differ in number from the plan,
    have fewer records than the plan, or share a record. Threads call all silos at once; if all are
    in this process and have small batches, one is called after the other.

    Parameters
    ----------
    silos
        Silos, or objectives; each objective becomes a silo in this process.
    plan
        Plan of the smallest silo. A larger one has larger batches in proportion, and its own plan.
        Or a plan for each silo, of :func:`dpcal.calibrate.silo_plans`.
    seed
        Each objective has a child of it. Silos have the seeds of their owners; a seed next to silos
        is refused.
    on_lost, overlap
        See :func:`dpcal.optim.distributed_psgd`.

    Attributes
    ----------
    plans, ledgers
        The plan and the ledger of each silo. An answer is in the ledger before the silo is called,
        so that the ledger holds all that the silo released, also if the silo is lost.
    alive
        Numbers of the silos that answer.
    """

    noise = "discrete"

    def __init__(
        self,
        silos: Sequence[Answerer | Objective],
        plan: Plan | Sequence[Plan],
        *,
        seed: Seed = None,
        on_lost: str = "stop",
        overlap: str = "local",
    ) -> None:
        self._silos = _silos_of(silos, seed)
        count = len(self._silos)
        plans = plans_of_silos(plan, count)
        prices = [0.0 if isinstance(plan, Plan) else float(own.price()) for own in plans]
        self._most = prices.index(max(prices))
        plan = plans[self._most]
        self._on_lost = validate.choice(ON_LOST, on_lost=on_lost)
        check_distinct(self._silos, overlap)
        about = [silo.describe() for silo in self._silos]
        for name in ("dimension", "l2"):
            values = [getattr(each, name) for each in about]
            if len(set(values)) > 1:
                raise ValueError(f"silos must have the same {name}, got {values}.")
        self.read_from_data = tuple(sorted({name for one in about for name in one.read_from_data}))
        self.plan, self.dimension, self.l2 = plan, about[0].dimension, about[0].l2
        self.plans = tuple(map(plan_of_silo, plans, [each.n for each in about]))
        self.ledgers = tuple(Ledger.of(each) for each in self.plans)
        self.alive = tuple(range(count))
        self.seed_given = any(getattr(each, "seed_given", False) for each in about)
        self.public = np.random.default_rng()
        self._threads = ThreadPoolExecutor(count)
        self._near = all(type(each) is Silo and each.in_memory for each in self._silos)
        for silo, own in zip(self._silos, self.plans, strict=True):
            silo.open(own)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the silo with the largest epsilon, the first of several."""
        return self.ledgers[self._most]

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return the mean over the silos of noisy gradients, or raise SiloLost."""
        return self._mean("gradient", query, w)

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return the mean over the silos of noisy gradient differences, or raise SiloLost."""
        return self._mean("difference", query, w, v)

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Refuse: a mean of norms is not the norm of the mean, and silos give no losses."""
        raise TypeError("silos answer with gradients and differences, and not with numbers.")

    scalar = norm

    def remaining(self, query: str) -> int:
        """Return the number of answers that are left to every silo."""
        pairs = [(self.plans[j], self.ledgers[j]) for j in self.alive]
        return min(plan.query(query).count - ledger.count(query) for plan, ledger in pairs)

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return False: silos have no adaptive queries."""
        return False

    def _mean(self, kind: str, query: str, *at: ArrayLike) -> Vector:
        for j in self.alive:
            self.ledgers[j].record(self.plans[j].query(query))
        asked: dict[int, Callable[[], Vector]] = {
            j: partial(self._silos[j].answer, kind, query, *at) for j in self.alive
        }
        size = self.plan.query(query).batch_size or self.plan.n
        if not (self._near and self.dimension * size < _WORK):
            asked = {j: self._threads.submit(each).result for j, each in asked.items()}
        answers = {}
        for j, answer in asked.items():
            with suppress(SiloLost):
                answers[j] = answer()
        self.alive = tuple(answers)
        if len(answers) < len(asked) and (self._on_lost == "stop" or not answers):
            raise SiloLost
        # Added in the order of the silos, so that sums are repeatable.
        return reduce(np.add, answers.values()) / len(answers)

    def verify(self) -> None:
        """Refuse, by LedgerMismatch, a ledger that differs from a living silo's own ledger."""
        own = {}
        for j in self.alive:
            with suppress(SiloLost):
                own[j] = self._silos[j].ledger().totals
        self.alive = tuple(own)
        for j, totals in own.items():
            if totals != self.ledgers[j].totals:
                raise LedgerMismatch(f"the ledger of silo {j} is not what it was asked for.")

    def close(self) -> None:
        """Close every silo, and the threads that called them."""
        for j in self.alive:
            with suppress(SiloLost):
                self._silos[j].close()
        self._threads.shutdown()

    def __exit__(self, *error: Any) -> None:
        self.close()
