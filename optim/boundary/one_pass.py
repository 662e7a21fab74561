"""Where does one pass of gradient descent lead on average, if no record moves it far?

If every step is a contraction, replacing a record moves all later iterates, and their mean, by
at most 2 eta times the clipping bound (Hardt, Recht and Singer 2016, Lemma 3.7; Feldman, Koren and
Talwar 2020). That holds for losses that are convex and L-smooth with eta <= 2 / L, also after
clipping if clipped gradients are those of such a loss. Nothing here is private by itself: the
oracle adds the noise.

Computed steps are contractions up to rounding only. For a loss of a linear model each one is within
e of its value, where u = 2^-53, R bounds the norms of iterates and t is the regulariser's center:

    e <= (4 d + 100) u (R + ||t|| + eta C).

A score is computed up to (d + 2) u ||x|| R, which moves the step by as much times eta s beta ||x||,
and s beta ||x||^2 <= 2 / eta for the record's scale s and smoothness beta. All else has relative
errors: slopes and clipped rows of a few u of C, the pull of a few u of R + ||t||, the norm in the
projection of (d + 4) u. Contractions keep errors as they are, so that a computed mean over m steps
is within m e of a real one, its own sums included, and two of them are within 2 eta C + 2 m e. For
noise in whole numbers gradients are clipped by so much shorter (:meth:`Pass.shortened`), and by
what rounding the mean to the grid adds, that a mean moves by no more than the plan prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal._ext.passes import one_pass
from dpcal._ext.sums import grid_step
from dpcal.calibrate.plan import Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.objectives.arrays import Vector, norm_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import gradients, kernel_of
from dpcal.optim.objectives.linear import smoothness_of

__all__ = ["Pass"]

Rows = NDArray[np.intp]

# Share of the largest step size 2 / L that is not used, so that rounding in the sum of the
# smoothness of a loss and of its regulariser cannot make a step longer than a contraction's.
_MARGIN = 2.0**-40


# Share of the bound that rounding may take.
_MOST_LOST = 2.0**-4

# Largest norm of iterates in units of the bound, so that whole steps have less than 62 bits.
_FARTHEST_WHOLE = 2.0**40

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
    bound
        The query's bound on how far a record moves the mean.
    steps
        Number of records.
    """

    learning_rate: float
    max_norm: float
    pull: Vector
    target: Vector
    radius: float
    bound: float
    steps: int

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
            bound=query.max_norm,
            steps=query.batch_size or 0,
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
        kernel = kernel_of(objective, of_all=False)
        known = smoothness_of(kernel, np.empty(0, dtype=np.intp)) is not None
        if not known or not self.room > 0:
            raise UnsupportedEvent(
                "one pass needs a convex loss of a linear model, and a learning rate below 2 over "
                "the regulariser's smoothness: then its steps are contractions. Got "
                f"{type(objective).__name__} and learning_rate={self.learning_rate!r}, with a "
                f"regulariser of smoothness {self.pull.max():.6g}."
            )

    def shortened(self, objective: Objective, w: Vector, *, known: bool) -> Self:
        """Return a pass whose rounded mean, from ``w`` on, a record moves by the bound at most.

        That is proved for losses that are computed in this package. UnsupportedEvent is raised for
        others if rounding has to be ``known``, and if it would take more than a sixteenth of the
        bound.
        """
        if known and kernel_of(objective) is None:
            raise UnsupportedEvent(
                "noise='discrete' is for one pass over losses whose rounding is known, got a loss "
                f"of one's own in {type(objective).__name__}."
            )
        start, center = norm_of(w), norm_of(self.target)
        reach = start + 2 * center + self.steps * self.bound * (1 + 2.0**-20)
        if math.isfinite(self.radius):
            reach = max(start, self.radius) * (1 + 2.0**-20)
        error = self.steps * (4 * len(w) + 100) * 2.0**-53 * (reach + center + self.bound)
        lost = (error + math.sqrt(len(w)) / 2 * grid_step(self.bound)) / self.bound + 2.0**-40
        if not (lost <= _MOST_LOST and reach <= _FARTHEST_WHOLE * self.bound):
            raise UnsupportedEvent(
                f"one pass leaves {_MOST_LOST} of the bound on a mean iterate to rounding, "
                f"which takes up to {lost:.2g} of it: {self.steps} steps of {len(w)} parameters "
                f"that may be {reach:.2g} long. A radius bounds them."
            )
        return replace(self, max_norm=self.max_norm * (1 - lost))

    def mean_iterate(self, objective: Objective, w: Vector, rows: Rows) -> Vector:
        """Return the mean of the iterates at which gradients are taken, from ``w`` on.

        A loss that is not smooth enough for a contraction is scaled down.
        """
        smoothness = np.asarray(smoothness_of(kernel_of(objective, of_all=False), rows))
        scales = np.divide(
            self.room, smoothness, out=np.ones_like(smoothness), where=smoothness > self.room
        )
        kernel = kernel_of(objective)
        if kernel is None:
            return self._interpreted(objective, w, rows, scales)
        mean: Vector = one_pass(
            kernel,
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
            gradient = gradients(objective, np.array([row], dtype=np.intp), w).clipped(
                self.max_norm
            )
            w = w - self.learning_rate * (scales[i] * gradient + self.pull * (w - self.target))
            norm = math.sqrt(w @ w)
            if norm > self.radius:
                w *= self.radius / norm
        return mean
