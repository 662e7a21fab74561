"""Which parameters are x and which are y? The two blocks of a run, and their start.

>>> from dpcal.optim.minimax import Box
>>> blocks = Blocks((2, 1), Box(0.0, 1.0))
>>> blocks.start([1.0, 2.0], [5.0]).tolist()
[1.0, 2.0, 1.0]
>>> blocks.climbed(np.array([1.0, 2.0, 0.0]), np.array([4.0, 4.0, 4.0]), 0.1).tolist()
[1.0, 2.0, 0.4]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.optim.algorithms import Plan, Problem, Vector
from dpcal.optim.minimax.sets import ConvexSet, Everywhere
from dpcal.optim.objectives.arrays import numbers, parameters

__all__ = ["Blocks"]


@dataclass(frozen=True)
class Blocks:
    """Sizes d1 >= 1 and d2 >= 0 of both blocks of w = (x, y), and the set of y."""

    dimensions: tuple[int, int]
    dual_set: ConvexSet

    @classmethod
    def of(cls, problem: Problem, plan: Plan, dual_set: ConvexSet | None) -> Self:
        """Return the blocks of a problem or of a plan, which must agree if both have them."""
        if dual_set is not None and not isinstance(dual_set, ConvexSet):
            raise TypeError(f"dual_set must be a ConvexSet or None, got {dual_set!r}.")
        objective, d = getattr(problem, "objective", problem), problem.dimension
        named = [plan.parameters.get(f"{block}_dimension") for block in ("primal", "dual")]
        planned = None
        if None not in named:
            planned = validate.count(primal_dimension=named[0]), int(named[1])  # type: ignore[arg-type]
        own = getattr(objective, "dimensions", None)
        known = planned if own is None or planned == (d, 0) else tuple(own)
        if known is None or sum(known) != d or planned not in (None, known):
            raise ValueError(
                f"plan must be for the problem's dimensions {known}, {d} together, which the "
                f"problem has or the plan names, got one for {planned}."
            )
        if dual_set is None:
            dual_set = (known[1] and getattr(objective, "dual_set", None)) or Everywhere()
        return cls(known, dual_set)

    def start(self, initial: ArrayLike | None, initial_dual: ArrayLike | None) -> Vector:
        """Return where (x, y) starts; y is projected onto its set."""
        d1, d2 = self.dimensions
        x, y = np.zeros(d1), np.zeros(d2)
        if initial is not None:
            x = parameters(numbers("initial", initial), d1, "initial")
        if initial_dual is not None:
            y = parameters(numbers("initial_dual", initial_dual), d2, "initial_dual")
        return np.concatenate([x, self.dual_set.project(y)])

    def climbed(self, w: Vector, gradient: Vector, rate: float) -> Vector:
        """Return (x, y) after a projected ascent step of y."""
        d1 = self.dimensions[0]
        y = self.dual_set.project(w[d1:] + rate * gradient[d1:])
        return np.concatenate([w[:d1], y])
