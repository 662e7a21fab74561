"""What does a private minimax run return? Two blocks, the anchors, and a status.

>>> import numpy as np
>>> anchor = Anchor(step=7, x=np.zeros(2), moves=3, squared_movement=2e-4, outcome="left")
>>> anchor.outcome
'left'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.result import Result

__all__ = ["Anchor", "MinimaxResult"]


@dataclass(frozen=True, kw_only=True, eq=False)
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
        ``"unfinished"`` if the run ended before.
    """

    step: int
    x: Vector
    moves: int
    squared_movement: float
    outcome: str


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimaxResult(Result):
    """Outcome of a private minimax run; see :class:`dpcal.optim.Result` for the other fields.

    Parameters
    ----------
    primal_dimension
        d1: ``w`` is (x, y), of which x are the first d1 numbers.
    status
        ``"certified"``: x is the anchor of an escape phase that lasted as long as planned, the
        algorithm's sign of a second-order stationary point, not a proof: estimates are noisy.
        ``"not-certified"``: x is the last iterate, and no phase lasted. ``"cannot-certify"``: the
        same, and by the plan its noise is too large for a phase to last. Methods without escape
        phases have the words of :class:`dpcal.optim.Result`.
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
