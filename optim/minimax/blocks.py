"""The two blocks of a run, x and y: their sizes, their starts and their ends.

>>> from dpcal.optim.minimax import Box
>>> blocks = Blocks((2, 1), Box(0.0, 1.0))
>>> blocks.start([1.0, 2.0], [5.0]).tolist()
[1.0, 2.0, 1.0]
>>> blocks.climbed(np.array([1.0, 2.0, 0.0]), np.array([4.0, 4.0, 4.0]), 0.1).tolist()
[1.0, 2.0, 0.4]
>>> anchor = Anchor(step=7, x=np.zeros(2), moves=3, squared_movement=2e-4, outcome="left")
>>> anchor.outcome
'left'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.optim.minimax.sets import ConvexSet, Everywhere
from dpcal.optim.objectives.arrays import numbers, parameters
from dpcal.optim.registry import Plan, Problem, Vector
from dpcal.optim.result import Result


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
        """Return the start of (x, y); y is projected onto its set."""
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


@dataclass(kw_only=True, eq=False)
class Anchor:
    """A point of small estimated gradient from which an escape was tried.

    Parameters
    ----------
    step, x
        Number t of the outer step at which the iterate was the anchor, and it, shape (d1,).
    moves, squared_movement
        Steps of the phase after the perturbation, and the sum of their squared lengths, at most
        ``moves`` times the plan's ``movement``.
    outcome
        ``"certified"`` if the phase lasted as long as planned, ``"left"`` if it moved too far, and
        ``"unfinished"`` if the run ended first.
    """

    step: int
    x: Vector
    moves: int = 0
    squared_movement: float = 0.0
    outcome: str = "unfinished"


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimaxResult(Result):
    """Outcome of a private minimax run; see :class:`dpcal.optim.Result` for the other fields.

    Parameters
    ----------
    primal_dimension
        Number d1 of leading entries of ``w`` = (x, y) that are x.
    status
        ``"certified"``: x is the anchor of an escape phase that lasted as long as planned, the
        algorithm's sign of a second-order stationary point, not a proof: estimates are noisy.
        ``"not-certified"``: x is the last iterate, and no phase lasted. ``"cannot-certify"``: the
        same, and the plan's noise is too large for a phase to last. Methods without escape phases
        use the statuses of :class:`dpcal.optim.Result`.
    anchors
        Every point from which an escape was tried, in order.
    estimate_norms
        Released norms of the estimated gradient in x at each outer step, shape (steps taken,).
    """

    primal_dimension: int
    anchors: tuple[Anchor, ...] = ()
    estimate_norms: Vector

    @property
    def x(self) -> Vector:
        """The primal parameters, shape (d1,)."""
        return self.w[: self.primal_dimension]

    @property
    def y(self) -> Vector:
        """The dual parameters, shape (d2,)."""
        return self.w[self.primal_dimension :]

    @classmethod
    def of(cls, result: Result, d1: int, estimate_norms: list[float], **own: Any) -> Self:
        """Return a run's outcome with the fields of a minimax run; ``own`` replaces others."""
        norms = np.array(estimate_norms)
        return cls(**{**vars(result), **own}, primal_dimension=d1, estimate_norms=norms)
