"""How is a gradient estimated along a path? By fresh answers, and small differences between them.

An estimator holds released values only, so that it may be put back to an earlier state; the records
that it used stay used.

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> Z = np.random.default_rng(0).uniform(-1, 1, (20_000, 4))
>>> objective = optim.FromGradients(  # sum_j (1 - cos(w_j + z_j)), with saddle points
...     lambda w, rows: np.sin(w + Z[rows]), n=20_000, dimension=4,
...     constants=calibrate.Constants(
...         lipschitz=4**0.5, smoothness=1.0, gap=8.0, hessian_lipschitz=1.0))
>>> plan = calibrate.gauss_psgd(objective.constants, n=20_000, dimension=4, epsilon=4.0, delta=1e-6,
...                             batch_size=1_000, difference_batch_size=100, drift=0.1)
>>> spider = Spider(optim.PrivateOracle(objective, plan, seed=0), drift=0.1)
>>> for step in range(8):
...     estimate = spider.query(np.full(4, 0.1 * step))
>>> spider.calls, spider.fresh_calls, spider.records_left
(8, 3, (16500,))
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcal import _validate
from dpcal._ext.answers import distance
from dpcal.calibrate.plan import Plan, Query
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.driver import RunOver
from dpcal.optim.objectives.arrays import Vector

__all__ = ["PoolEmpty", "Spider", "State"]


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """State of an estimator between two points; released values only.

    It is the point of the last estimate, the estimate there, both of shape (dimension,), and the
    squared movement >= 0 since the last fresh gradient.
    """

    point: Vector
    gradient: Vector
    drift: float


class PoolEmpty(RunOver):
    """Too few records are left for the next answer; none was touched."""

    status = "budget-exhausted"


class Spider:
    """Ada-DP-SPIDER (Tao et al. 2025, Algorithm 2), on an oracle's disjoint batches.

    Parameters
    ----------
    oracle
        With the queries of :func:`dpcal.calibrate.gauss_psgd`.
    drift
        kappa >= 0: a gradient is fresh where the squared movement since the last fresh one, the
        step to the new point included, would reach it. At 0 all are fresh: DP-SGD.
    period
        In place of the drift test: every so many estimates one is fresh, from the first one on.

    Attributes
    ----------
    state
        None before the first estimate, or to make the next gradient fresh. Setting it rewinds the
        path, and never the records that were used.
    calls, fresh_calls, difference_calls
        Estimates so far, and those from fresh gradients and from differences. An estimate at an
        unmoved point is the one before, and takes no records.

    Notes
    -----
    Each pass serves a record at most once; a rest that is smaller than the next batch is dropped,
    and the next pass begins. Which records are in a batch depends on released values and on a
    permutation that was drawn before.
    """

    def __init__(self, oracle: Oracle, *, drift: float, period: int | None = None) -> None:
        self._oracle = oracle
        self._kappa = _validate.non_negative(drift=drift)
        self._period = None if period is None else _validate.count(period=period)
        # Each silo has a plan of its own; an oracle that answers alone has one.
        self._plans: tuple[Plan, ...] = getattr(oracle, "plans", (oracle.plan,))
        self._passes = [_passes_of(plan) for plan in self._plans]
        self._pass = 0
        self._used = [0] * len(self._plans)
        self.state: State | None = None
        self.calls = self.fresh_calls = self.difference_calls = 0

    @property
    def records_left(self) -> tuple[int, ...]:
        """Number of unused records of the current pass, for each silo."""
        return tuple(plan.n - used for plan, used in zip(self._plans, self._used, strict=True))

    def query(self, w: Vector) -> Vector:
        """Return an estimate of the gradient at ``w``; raise PoolEmpty if the last pass is over."""
        before, alive = self.state, self._alive()
        moved = 0.0 if before is None else distance(w, before.point)
        drift = 0.0 if before is None else before.drift + moved * moved
        due = drift >= self._kappa if self._period is None else self.calls % self._period == 0
        gradient = None if before is None or due else before.gradient
        if before is not None and gradient is not None and moved > 0:
            gradient = gradient + self._oracle.difference(w, before.point, self._take(1))
            self.difference_calls += 1
        # After a loss the last estimate was a mean over other silos.
        if gradient is None or self._alive() != alive:
            gradient, drift = self._oracle.gradient(w, self._take(0)), 0.0
            self.fresh_calls += 1
        self.calls += 1
        self.state = State(point=w, gradient=gradient, drift=drift)
        return gradient

    def _alive(self) -> tuple[int, ...]:
        """Return the numbers of the silos that answer; an oracle without silos is number 0."""
        alive: tuple[int, ...] = getattr(self._oracle, "alive", (0,))
        return alive

    def _take(self, which: int) -> str:
        """Return the name of the query for the next batch, whose records are used from now on."""
        while True:
            queries = [passes[self._pass][which] for passes in self._passes]
            used = [
                before + (query.batch_size or 0)
                for before, query in zip(self._used, queries, strict=True)
            ]
            if all(used[j] <= self._plans[j].n for j in self._alive()):
                self._used = used
                return queries[0].name
            if self._pass + 1 == len(self._passes[0]):
                raise PoolEmpty
            self._pass += 1
            self._used = [0] * len(self._plans)


def _passes_of(plan: Plan) -> list[tuple[Query, Query]]:
    """Return the queries of each pass of a plan: for fresh gradients, and for differences.

    Where a plan has no differences, every gradient is fresh, and the first stands for both. Queries
    that are not on disjoint batches, pass by pass, are refused.
    """
    found: dict[str, list[Query]] = {}
    for query in plan.queries:
        found.setdefault(query.partition or query.name, []).append(query)
    kinds = ["gradient", "gradient difference"]
    for queries in found.values():
        disjoint = all(query.composition == "disjoint" and query.batch_size for query in queries)
        if not disjoint or [query.kind for query in queries] != kinds[: len(queries)]:
            raise ValueError(
                "plan must have a gradient on disjoint batches, and possibly its difference, in "
                f"each partition, got {[(query.name, query.kind) for query in queries]}."
            )
    return [(queries[0], queries[-1]) for queries in found.values()]
