"""What does a walk along gradient estimates carry from step to step? Released values only.

>>> import numpy as np
>>> Estimate.start(np.zeros(2)).step
0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcal.optim.objectives.arrays import Vector

__all__ = ["Estimate", "State"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """What a walk along gradient estimates carries from step to step; released values only.

    Parameters
    ----------
    w
        The iterate, shape (dimension,).
    previous
        The iterate before it.
    gradient
        The estimate of the gradient at ``previous``, by which ``w`` was reached.
    step
        Steps taken, at least 0.
    """

    w: Vector
    previous: Vector
    gradient: Vector
    step: int = 0

    @classmethod
    def start(cls, w: Vector) -> Estimate:
        """Return the state before the first step from ``w``."""
        return cls(w=w, previous=w, gradient=np.zeros_like(w))


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """What an estimator carries from one point to the next; released values only.

    Parameters
    ----------
    point
        Where the gradient was asked for last, shape (dimension,).
    gradient
        The estimate there, shape (dimension,).
    drift
        Squared movement >= 0 since the last fresh gradient.
    """

    point: Vector
    gradient: Vector
    drift: float
