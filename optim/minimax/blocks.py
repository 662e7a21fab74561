"""Which parameters are x and which are y? The two blocks of a run, and their start.

>>> from dpcal.optim.minimax import Box
>>> blocks = Blocks(dimensions=(2, 1), dual_set=Box(0.0, 1.0))
>>> x, y = blocks.start([1.0, 2.0], [5.0])
>>> x.tolist(), y.tolist()
([1.0, 2.0], [1.0])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.minimax.sets import ConvexSet, Everywhere
from dpcal.optim.objectives.arrays import Vector, numbers, parameters
from dpcal.optim.objectives.base import Objective

__all__ = ["Blocks"]


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Sizes d1 >= 1 and d2 >= 0 of both blocks, the set of y, and its first ascent.

    Before the first outer step, y takes ``warm_steps`` ascent steps of size ``warm_rate`` at x_0.
    """

    dimensions: tuple[int, int]
    dual_set: ConvexSet
    warm_steps: int = 0
    warm_rate: float = 0.0

    @classmethod
    def of(cls, problem: Objective | Oracle, plan: Plan, dual_set: ConvexSet | None) -> Self:
        """Return the blocks of a problem or of a plan, which must agree if both have them."""
        if dual_set is not None and not isinstance(dual_set, ConvexSet):
            raise TypeError(f"dual_set must be a ConvexSet or None, got {dual_set!r}.")
        objective = getattr(problem, "objective", problem)
        d = problem.dimension
        planned = _planned(plan)
        known = getattr(objective, "dimensions", None) or planned
        if planned == (d, 0):
            known = planned
        if known is None:
            raise ValueError(
                "problem must have dimensions, or the plan must name primal_dimension and "
                "dual_dimension, got neither."
            )
        if sum(known) != d or (planned is not None and planned != tuple(known)):
            raise ValueError(
                f"plan must be for the problem's dimensions {tuple(known)}, {d} together, got one "
                f"for {planned}."
            )
        own = getattr(objective, "dual_set", None) if known[1] else None
        return cls(
            dimensions=(known[0], known[1]),
            dual_set=own or Everywhere() if dual_set is None else dual_set,
            warm_steps=int(plan.parameters.get("warm_start") or 0),
            warm_rate=float(plan.parameters.get("ascent_rate") or 0.0),
        )

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Return x and y, copies."""
        return w[: self.dimensions[0]].copy(), w[self.dimensions[0] :].copy()

    def start(
        self, initial: ArrayLike | None, initial_dual: ArrayLike | None
    ) -> tuple[Vector, Vector]:
        """Return where x and y start; y is projected onto its set."""
        starts = []
        for name, given, size in (
            ("initial", initial, self.dimensions[0]),
            ("initial_dual", initial_dual, self.dimensions[1]),
        ):
            start = np.zeros(size) if given is None else numbers(name, given)
            if start.shape != (size,):
                raise ValueError(f"{name} must have shape ({size},), got {start.shape}.")
            starts.append(parameters(start, size))
        return starts[0], self.dual_set.project(starts[1])

    def warm_start(self, oracle: Oracle, x: Vector, y: Vector) -> Vector:
        """Let y climb at x by noisy gradients, which the ledger holds as ``"warm start"``."""
        for _ in range(self.warm_steps):
            slope = oracle.gradient(np.concatenate([x, y]), "warm start")[len(x) :]
            y = self.dual_set.project(y + self.warm_rate * slope)
        return y


def _planned(plan: Plan) -> tuple[int, int] | None:
    """Return the dimensions that a plan names, if it does."""
    d1, d2 = (plan.parameters.get(f"{name}_dimension") for name in ("primal", "dual"))
    if d1 is None or d2 is None:
        return None
    return _validate.count(primal_dimension=d1), int(d2)
