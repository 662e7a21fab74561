"""How are both gradients estimated while y climbs? Algorithm 3 of Xu et al. 2026, corrected.

The estimates (v, u) of the gradients in x and in y are refreshed now and then, and updated by noisy
differences in between, with one joint release for both blocks. Inside an outer step y climbs by K -
1 projected steps along u.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import PrivateOracle
>>> from dpcal.optim.minimax import Everywhere, Minimax
>>> xi = np.random.default_rng(0).uniform(-0.5, 0.5, (1_000, 2)) - 1.0
>>> def gradients(x, y, rows):  # of <xi + y, x>, and a public -|y|^2 / 2: Phi has its minimum at 1
...     return xi[rows] + y, np.tile(x, (len(rows), 1))
>>> constants = calibrate.Constants(lipschitz=2.0, smoothness=2.0, strong_concavity=1.0, gap=0.5,
...                                 hessian_lipschitz=1.0)
>>> problem = Minimax(gradients, n=1_000, dimensions=(2, 2), dual_l2=1.0)
>>> plan = calibrate.dp_rgda(constants, n=1_000, dimensions=(2, 2), epsilon=2.0, delta=1e-5,
...     steps=40, period=2, inner_steps=3, batch_size=100, value_smoothness=5.0)
>>> oracle = PrivateOracle(problem, plan, seed=0)
>>> tracker = Tracker(plan, Everywhere())
>>> tracker.start(oracle, np.array([0.3, 0.0]), np.zeros(2))
>>> v = tracker.advance(np.array([0.3, 0.0]))
>>> v.shape, oracle.ledger.count("refresh"), oracle.ledger.count("difference")
((2,), 1, 2)
"""

from __future__ import annotations

import numpy as np

from dpcal._internal import validate
from dpcal.errors import NonFiniteAnswer
from dpcal.optim.algorithms import Plan, Vector, read
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.driver import walk_of
from dpcal.optim.minimax.sets import ConvexSet

__all__ = ["Tracker"]

SELECTIONS = ("last", "argmin")
ALGORITHMS = ("corrected", "literal")

_TOO_FAST = "The dual iterate became NaN or infinite: the ascent rate is too large."


class Tracker:
    """The estimates v and u of both gradients, and the dual iterate y, along a run.

    The oracle's queries are ``"refresh"`` and ``"difference"``; v and u are estimates of grad_x f
    and grad_y f at (the x of the last step, y). Of a plan these parameters are read:

    - ``period`` q >= 1, outer steps from one refresh to the next; ``inner_steps`` K >= 1, estimates
      of an outer step; and ``ascent_rate`` lambda > 0, the step size of y.
    - ``select``: which of the K triples (y, v, u) is kept: ``"last"``, or the one with the smallest
      gradient mapping, ``"argmin"``. Under noise the mapping's norm grows with k, so that argmin
      keeps the first and y stays where it was.
    - ``algorithm``: ``"literal"`` adds the difference in x once more at a refresh, as the paper
      prints, for audits.
    """

    def __init__(self, plan: Plan, dual_set: ConvexSet) -> None:
        self._dual_set = dual_set
        self._period, self._inner = read(plan, validate.count, "period", "inner_steps")
        (self.rate,) = read(plan, validate.positive, "ascent_rate")
        given = plan.parameters.get
        self._select = validate.choice(SELECTIONS, select=given("select", "last"))
        chosen = validate.choice(ALGORITHMS, algorithm=given("algorithm", "corrected"))
        self._literal = chosen == "literal"

    def start(self, oracle: Oracle, x: Vector, y: Vector) -> None:
        """Begin at (x, y)."""
        self._oracle, self._step, self._x = oracle, 0, x
        self.y = self._dual_set.project(y)
        self.v, self.u = np.zeros_like(x), np.zeros_like(y)
        # The first of the K + 1 answers is the refresh: no step leads to another.
        self._walk = walk_of(
            oracle,
            np.concatenate([x, self.y]),
            "refresh",
            "difference",
            rates=np.full(self._inner + 1, -self.rate),
            period=self._inner + 1,
            fixed=len(x),
            project=self._dual_set.project if len(y) else None,
        )

    def advance(self, x: Vector) -> Vector:
        """Take an outer step at ``x``: update v and u, let y climb, and return v, shape (d1,)."""
        walk, d1 = self._walk, len(x)
        at, before = (np.concatenate([point, self.y]) for point in (x, self._x))
        estimate = np.concatenate([self.v, self.u])
        refreshed = self._step % self._period == 0
        if refreshed and self._literal:
            # As printed: the difference in x is counted twice, since a refresh is about x itself.
            estimate, refreshed = self._oracle.gradient(at, "refresh"), False
        walk.start(at, before, estimate, 0 if refreshed else 1)
        shortest = np.inf
        for _ in range(self._inner):
            if not walk.take():
                raise NonFiniteAnswer(_TOO_FAST)
            y = walk.previous[d1:]
            if self._select == "argmin":
                mapping = float(np.linalg.norm(walk.w[d1:] - y)) / self.rate
                if mapping >= shortest:
                    continue
                shortest = mapping
            estimate, self.y = walk.gradient, y
        self.v, self.u = estimate[:d1], estimate[d1:]
        self._step, self._x = self._step + 1, x
        return self.v
