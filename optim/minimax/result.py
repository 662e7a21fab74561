"""What does a private minimax run return? Two blocks, the anchors, and how it ended.

>>> import numpy as np
>>> anchor = Anchor(step=7, x=np.zeros(2), moves=3, squared_movement=2e-4, outcome="left")
>>> anchor.outcome
'left'
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.result import Result

__all__ = ["STATUSES", "Anchor", "MinimaxResult"]

STATUSES = ("certified", "not_certified", "cannot_certify", "not_applicable")


@dataclass(frozen=True, kw_only=True, eq=False)
class Anchor:
    """A point from which an escape was tried, for its estimated gradient was small.

    Parameters
    ----------
    step
        Number t of the outer step at which the iterate was the anchor.
    x
        The anchor, shape (d1,).
    moves
        Steps of the phase after the perturbation.
    squared_movement
        Sum of their squared lengths; at most ``moves`` times the plan's ``movement``.
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
        algorithm's sign of a second-order stationary point. It is a proof of nothing: estimates are
        noisy. ``"not_certified"``: x is the last iterate, and no phase lasted. ``"cannot_certify"``
        as well, where the plan knew that its noise is too large for a phase to last.
        ``"not_applicable"``: the method has no escape phases.
    anchors
        Every point from which an escape was tried, in order.
    estimate_norms
        Norm of the estimated gradient in x at each outer step, shape (steps taken,). It was
        released.
    """

    primal_dimension: int
    status: str
    anchors: tuple[Anchor, ...]
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
    def of(
        cls,
        result: Result,
        *,
        primal_dimension: int,
        estimate_norms: list[float],
        status: str = "not_applicable",
        anchors: tuple[Anchor, ...] = (),
    ) -> MinimaxResult:
        """Return a run's outcome with what is known of a minimax run beside it."""
        fields = {each.name: getattr(result, each.name) for each in dataclasses.fields(Result)}
        return cls(
            **fields,
            primal_dimension=primal_dimension,
            status=status,
            anchors=anchors,
            estimate_norms=np.array(estimate_norms),
        )
