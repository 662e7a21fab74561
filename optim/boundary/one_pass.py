"""Where does one pass of gradient descent lead on average, if no record moves it far?

If every step is a contraction, replacing a record moves all later iterates, and their mean, by
at most 2 eta times the clipping bound (Hardt, Recht and Singer 2016, Lemma 3.7; Feldman, Koren and
Talwar 2020). That holds for losses that are convex and L-smooth with eta <= 2 / L, also after
clipping if clipped gradients are those of such a loss. Nothing here is private by itself: the
oracle adds the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal._ext.spider import one_pass
from dpcal.calibrate.plan import Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary.sums import gradient_sum, norm_of
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective

__all__ = ["Pass"]

Rows = NDArray[np.intp]

# Share of the largest step size 2 / L that is not used, so that rounding in the sum of the
# smoothness of a loss and of its regulariser cannot make a step longer than a contraction's.
_MARGIN = 2.0**-40


# Largest norm of a start or center, so that iterates cannot overflow for any records: a step is at
# most as long as the distance to the center plus 1e140.
_FARTHEST = 1e150


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """One pass over records in order, a projected gradient step for each.

    Parameters
    ----------
    learning_rate, max_norm
        eta > 0, and the clipping bound > 0 on each record's gradient.
    pull, target
        Strength >= 0 and center of the regulariser in each coordinate, shape (dimension,).
    radius
        That of :func:`dpcal.optim.run`.
    """

    learning_rate: float
    max_norm: float
    pull: Vector
    target: Vector
    radius: float

    @classmethod
    def planned(
        cls,
        query: Query,
        objective: Objective,
        *,
        learning_rate: float,
        strength: float,
        center: Vector | None,
        radius: float,
    ) -> Self:
        """Return the pass that answers a query, which bounds how far a record moves its mean.

        The query's ``max_norm`` is the learning rate times the bound on gradients. Steps include
        the objective's regulariser and a further one, ``strength / 2 ||w - center||^2``, whose
        center is the origin for None.
        """
        eta = _validate.positive(learning_rate=learning_rate)
        pull = np.full(objective.dimension, _validate.non_negative(strength=strength))
        target = np.zeros_like(pull) if center is None else center * pull
        pull[: objective.penalized] += objective.l2
        np.divide(target, pull, out=target, where=pull > 0)
        return cls(
            learning_rate=eta,
            max_norm=query.max_norm / eta,
            pull=pull,
            target=target,
            radius=_validate.radius(radius=radius),
        )

    @property
    def room(self) -> float:
        """Largest smoothness of one record's loss for which its step is a contraction."""
        return 2 / self.learning_rate * (1 - _MARGIN) - float(self.pull.max())

    def check(self, objective: Objective, w: Vector) -> None:
        """Refuse an objective, a step size or a start that the theorem does not cover."""
        if not norm_of(w) + norm_of(self.target) < _FARTHEST:
            raise ValueError(
                f"w and center must be shorter than {_FARTHEST:g}, so that no iterate overflows."
            )
        known = objective.smoothness_when_convex(np.empty(0, dtype=np.intp)) is not None
        if not known or not self.room > 0:
            raise UnsupportedEvent(
                "one pass needs a convex loss of a linear model, and a learning rate below 2 over "
                "the regulariser's smoothness: then its steps are contractions. Got "
                f"{type(objective).__name__} and learning_rate={self.learning_rate!r}, with a "
                f"regulariser of smoothness {self.pull.max():.6g}."
            )

    def mean_iterate(self, objective: Objective, w: Vector, rows: Rows) -> Vector:
        """Return the mean of the iterates at which gradients are taken, from ``w`` on.

        A loss that is not smooth enough for a contraction is scaled down.
        """
        smoothness = np.asarray(objective.smoothness_when_convex(rows))
        scales = np.divide(
            self.room, smoothness, out=np.ones_like(smoothness), where=smoothness > self.room
        )
        if objective.kernel is None:
            return self._interpreted(objective, w, rows, scales)
        mean: Vector = one_pass(
            objective.kernel,
            w,
            rows,
            scales,
            self.pull,
            self.target,
            learning_rate=self.learning_rate,
            max_norm=self.max_norm,
            radius=self.radius,
        )
        return mean

    def _interpreted(self, objective: Objective, w: Vector, rows: Rows, scales: Vector) -> Vector:
        """Return the mean iterate for an objective that has no kernel."""
        mean = np.zeros_like(w)
        for i, row in enumerate(rows):
            mean += (w - mean) / (i + 1)
            gradient = gradient_sum(objective, w, np.array([row], dtype=np.intp), self.max_norm)
            w = w - self.learning_rate * (scales[i] * gradient + self.pull * (w - self.target))
            norm = math.sqrt(w @ w)
            if norm > self.radius:
                w *= self.radius / norm
        return mean
