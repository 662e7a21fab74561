"""Which steps do optimizers share? Moves along noisy gradients, and along their differences.

A :class:`Walk` is a state of released values. Over answers of a
:class:`dpcal.optim.PrivateOracle` that compiled code gives, many steps are taken at once; over
those of another oracle one by one. Both have the same bits and the same ledger, whose entries are
written before a record is read.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, PrivateOracle, replaying
>>> objective = Logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1], classes=[0, 1])
>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.5,
...               max_norm=1.0, noise_multiplier=2.0, count=4)
>>> plan = Plan(optimizer="dpsgd", n=4, queries=(query,), epsilon=9.0, delta=1e-6)
>>> walk = walk_of(PrivateOracle(objective, plan, seed=0), np.zeros(2), "gradient",
...                rates=np.full(4, 0.1))
>>> walk.take(4), walk.step
(True, 4)
>>> oracle, w = PrivateOracle(objective, plan, seed=0), np.zeros(2)
>>> with replaying():
...     for _ in range(4):
...         w = w - 0.1 * oracle.gradient(w, "gradient")
>>> bool((walk.w == w).all())
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpcal._ext.loops import Steps
from dpcal.calibrate.plan import Query
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.objectives.arrays import Vector, l2_norm

__all__ = ["CompiledWalk", "Walk", "walk_of"]

# Steps that the ledger holds together, before the first of them: of fewer, one at a time leave it
# exact where a run stops; of more, it would name too many where a run is interrupted.
FEWEST, MOST = 4, 256


class Walk:
    """Steps ``w <- P(w - eta_t g_t)``, one at a time, over the answers of any oracle.

    Of step t, g_t answers ``refresh`` at w_t if t is a multiple of ``period``. Otherwise an answer
    to ``difference`` between w_t and w_(t-1) is added to g_(t-1).

    Parameters
    ----------
    oracle, refresh, difference
        The oracle, and names of its queries of kinds ``"gradient"`` and ``"gradient difference"``,
        not adaptive; the latter None with a period of 1.
    w
        Where to start, shape (dimension,).
    rates
        eta_t of all steps of the run.
    period
        Steps from one fresh gradient to the next.
    step
        Number of the first step.
    radius
        Of the ball around the origin that iterates are projected onto; infinite for none.
    reach
        No rate is above ``reach / sqrt(|g_0|^2 + ... + |g_t|^2)``.
    averaged_from, growth
        The step from which on iterates are averaged, in which iterate k of them has weight 1, or k
        if ``growth`` is 1; no step when omitted.
    fixed, project
        How many leading parameters stay where they are; and a projection of the others, shape
        (dimension - fixed,), which gives a new array.

    Attributes
    ----------
    w, previous, gradient, mean
        The iterate, the one before, the estimate there, and the mean; copies, shape (dimension,).
    """

    def __init__(
        self,
        oracle: Oracle,
        w: Vector,
        refresh: str,
        difference: str | None = None,
        *,
        rates: Vector,
        period: int = 1,
        step: int = 0,
        radius: float = math.inf,
        reach: float = math.inf,
        averaged_from: int | None = None,
        growth: float = 0.0,
        fixed: int = 0,
        project: Callable[[Vector], Vector] | None = None,
    ) -> None:
        self._oracle, self._refresh, self._difference = oracle, refresh, difference
        self._rates, self._period, self._radius, self._reach = rates, period, radius, reach
        self._averaged_from = len(rates) if averaged_from is None else averaged_from
        self._growth, self._fixed, self._project = growth, fixed, project
        self._squares, self.mean = np.zeros(1), np.zeros_like(w)
        self.start(w, w, np.zeros_like(w), step)

    def start(self, w: Vector, previous: Vector, gradient: Vector, step: int) -> None:
        """Go on from an iterate, the one before, the estimate there, and a number of steps."""
        self.w, self.previous, self.gradient, self.step = w, previous, gradient, step

    def take(self, steps: int = 1) -> bool:
        """Take up to so many steps; false where the next iterate would not be finite."""
        w, oracle = self.w, self._oracle
        if self.step % self._period == 0 or self._difference is None:
            self.gradient = oracle.gradient(w, self._refresh)
        else:
            self.gradient = self.gradient + oracle.difference(w, self.previous, self._difference)
        rate = self._rates[self.step]
        if self._reach < math.inf and self.gradient.any():
            # One after another, as a compiled loop adds them.
            self._squares[0] = np.cumsum(np.append(self._squares, self.gradient**2))[-1]
            rate = min(rate, self._reach / math.sqrt(self._squares[0]))
        moved = w - rate * self.gradient
        moved[: self._fixed] = w[: self._fixed]
        if self._project is not None:
            moved[self._fixed :] = self._project(moved[self._fixed :])
        norm = l2_norm(moved)
        if not math.isfinite(norm):
            return False
        if norm > self._radius:
            moved *= self._radius / norm
        self.w, self.previous, self.step = moved, w, self.step + 1
        count = self.step - self._averaged_from
        if count > 0:
            change = (moved - self.mean) * (1 + self._growth) / (count + self._growth)
            self.mean = self.mean + change
        return True


class CompiledWalk:
    """A :class:`Walk` that takes many steps at once, as a part of the boundary.

    ``steps`` are along answers of the oracle to the queries.
    """

    def __init__(self, oracle: PrivateOracle, steps: Steps, *queries: Query, period: int) -> None:
        self._oracle, self._steps, self._queries, self._period = oracle, steps, queries, period
        self.start = steps.start

    w = property(lambda self: self._steps.w)
    previous = property(lambda self: self._steps.previous)
    gradient = property(lambda self: self._steps.gradient)
    mean = property(lambda self: self._steps.mean)
    step = property(lambda self: self._steps.step)

    def take(self, steps: int = 1) -> bool:
        """See :meth:`Walk.take`. The ledger holds all of these steps before the first is taken."""
        steps = min(steps, MOST) if steps >= FEWEST else 1
        self._oracle._check_process()
        with self._oracle._lock:
            self._oracle._admit(*self._due(self._steps.step, steps))
            return self._steps.take(steps) == steps

    def _due(self, first: int, steps: int) -> Iterator[tuple[Query, int]]:
        """Yield the answers of these steps in order, those to one query in a row together."""
        while steps:
            since = first % self._period
            count = 1 if not since else self._period - since
            count = steps if self._period == 1 else min(steps, count)
            yield self._queries[since > 0], count
            first, steps = first + count, steps - count


def walk_of(
    oracle: Oracle, w: Vector, refresh: str, difference: str | None = None, **how: Any
) -> Walk | CompiledWalk:
    """Return a walk from ``w``, in compiled code where it can be; ``how`` as for :class:`Walk`."""
    names = [refresh] if difference is None else [refresh, difference]
    steps = oracle._steps(w, *names, **how) if isinstance(oracle, PrivateOracle) else None
    if steps is None or not isinstance(oracle, PrivateOracle):
        return Walk(oracle, w, refresh, difference, **how)
    queries = (oracle.plan.query(name) for name in names)
    return CompiledWalk(oracle, steps, *queries, period=how.get("period", 1))
