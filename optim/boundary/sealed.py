"""Steps that stay inside an answer: the mean iterate of one pass, the last iterate of many.

**One pass.** If every step is a contraction, replacing a record moves all later iterates, and their
mean, by at most 2 eta times the clipping bound (Hardt, Recht and Singer 2016, Lemma 3.7; Feldman,
Koren and Talwar 2020). This holds for losses that are convex and L-smooth with eta <= 2 / L. It
also holds after clipping if clipped gradients are the gradients of such a loss. Nothing here is
private by itself: the oracle adds the noise.

Computed steps are contractions up to rounding only. For a loss of a linear model each step is
within e of its value, where u = 2^-53, R bounds the norms of iterates and t is the regulariser's
center:

    e <= (4 d + 100) u (R + ||t|| + eta C).

A score is computed up to (d + 2) u ||x|| R, which moves the step by as much times eta s beta ||x||,
and s beta ||x||^2 <= 2 / eta for the record's scale s and smoothness beta. All else has relative
errors: slopes and clipped rows of a few u of C, the pull of a few u of R + ||t||, the norm in the
projection of (d + 4) u. Contractions keep errors as they are. So a computed mean over m steps is
within m e of the real mean, rounding of its own sums included, and two of them are within 2 eta C +
2 m e. Gradients are clipped shorter (:attr:`Pass.lost`) by this difference, by the rounding of the
mean to the grid, and by a margin of 2^-40 of the bound, so that a mean moves by no more than the
plan accounts for.

**The last iterate.** All steps of an answer are taken here, at once: no iterate, loss, norm or
count is kept, handed on or written. No data decide how many steps there are, and no step can fail.
A bound on the effect of a record on the last iterate is in
:mod:`dpcal.accountants.mechanisms.last_iterate`, for steps that are contractions. The code enforces
the conditions and does not assume them. A record's clipped gradient is the gradient of a convex
loss that is no less smooth (:func:`dpcal.optim.objectives.linear.smoothness_of`). A row that is too
long for the plan's smoothness is shortened, by itself. The regulariser is the plan's.

Computed steps are contractions up to rounding. With u = 2^-53, R a bound on iterates and C the
clipping bound, a step of size eta on n records of d columns is within

    e = u ((4 d + 100) (R + eta C) + n eta C)

of its value: scores are off by (d + 2) u ||x|| R, which moves a step by as much times eta beta
||x||, and eta beta ||x||^2 <= 2; a sum of n gradients, in any order, by n u times n C; slopes,
norms, the regulariser and a projection by a few d u of R and eta C. On the grid of discrete noise
with step h, rounding a step, and the shift that the proof moves it by, change distances by 2 h
sqrt(d) more. So gradients are clipped shorter, by this and by the same margin: a record and the
rounding of both runs move a step by eta C / n together (:attr:`LastIterate.lost`). R is finite,
since every iterate is projected onto a public ball that noise reaches with a probability below
1e-30, or onto the plan's.

>>> from dpcal.calibrate import Plan
>>> from dpcal.optim import Logistic, PrivateOracle
>>> descent = Descent(steps=9, learning_rate=4.0, smoothness=0.25, l2=0.1, strong_convexity=0.1)
>>> query = Query(name="last", kind="last iterate", sampler="full", max_norm=1.0,
...               noise_multiplier=2.0, count=1, descent=descent)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=9.0, delta=1e-6)
>>> objective = Logistic([[0.6], [0.8]], [0, 1], l2=0.1, fit_intercept=False, classes=[0, 1])
>>> PrivateOracle(objective, plan).last_iterate([0.0], "last").shape
(1,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.passes import one_pass
from dpcal._ext.sums import grid_step
from dpcal._internal import validate
from dpcal.calibrate.descent import Descent
from dpcal.calibrate.query import Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary.noise import Mechanism, rounded
from dpcal.optim.objectives.arrays import Rows, Vector, norm_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Kernel, kernel_of
from dpcal.optim.objectives.linear import as_smooth_as, smoothness_of

# Unused share of the largest step size 2 / L and of the bound, for rounding in their computation.
_MARGIN = 2.0**-40
_MOST_LOST = 2.0**-4
# Longest iterate, in units of the bound: whole steps of the grid have less than 62 bits.
_FARTHEST_WHOLE = 2.0**40
# Largest norm of a start or center of a pass: iterates cannot overflow for any records.
_FARTHEST = 1e150
# Standard deviations of one coordinate's noise; the noise is beyond with a probability below 1e-32.
_DEVIATIONS = 12.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """One pass over records in order, with a projected gradient step for each.

    Parameters
    ----------
    learning_rate, max_norm
        eta > 0, and the clipping bound > 0 on each record's gradient, less the part that rounding
        takes.
    pull, target
        Strength >= 0 and center of the regulariser in each coordinate, shape (dimension,).
    radius
        Radius as in :func:`dpcal.optim.run`.
    bound
        The query's bound on how far a record moves the mean.
    room
        Largest smoothness of one record's loss for which its step is a contraction.
    """

    learning_rate: float
    max_norm: float
    pull: Vector
    target: Vector
    radius: float
    bound: float
    room: float

    @classmethod
    def planned(
        cls,
        query: Query,
        objective: Objective,
        w: Vector,
        learning_rate: float,
        strength: float,
        center: Vector | None,
        radius: float,
    ) -> Self:
        """Return the pass from ``w`` on; refuse a case that the theorem does not cover.

        A record moves the mean by the query's ``max_norm`` at most, the learning rate times the
        bound on gradients. Steps include the objective's regulariser and a further one, ``strength
        / 2 ||w - center||^2``; None stands for a center at the origin.

        UnsupportedEvent is raised for other losses, for a step size that is no contraction, and if
        rounding would take more than a sixteenth of the bound.
        """
        eta = validate.positive(learning_rate=learning_rate)
        pull = np.full(objective.dimension, validate.non_negative(strength=strength))
        target = np.zeros_like(pull) if center is None else center * pull
        pull[: objective.penalized] += objective.l2
        np.divide(target, pull, out=target, where=pull > 0)
        radius, bound, steps = validate.radius(radius=radius), query.max_norm, query.batch_size or 0
        start, far = norm_of(w), norm_of(target)
        if not start + far < _FARTHEST:
            raise ValueError(
                f"w and center must be shorter than {_FARTHEST:g}, so that no iterate overflows."
            )
        _smooth_kernel(objective, "one pass")
        room = 2 / eta * (1 - _MARGIN) - float(pull.max())
        if not room > 0:
            raise UnsupportedEvent(
                "one pass needs a learning rate below 2 over the regulariser's smoothness: then "
                f"its steps are contractions. Got learning_rate={learning_rate!r}, with a "
                f"regulariser of smoothness {pull.max():.6g}."
            )
        reach = start + 2 * far + steps * bound * (1 + 2.0**-20)
        if math.isfinite(radius):
            reach = max(start, radius) * (1 + 2.0**-20)
        error = steps * (4 * len(w) + 100) * 2.0**-53 * (reach + far + bound)
        error += math.sqrt(len(w)) / 2 * grid_step(bound)
        left = _left(error, bound, reach, f"{steps} steps of {len(w)} parameters")
        return cls(
            learning_rate=eta,
            max_norm=bound / eta * left,
            pull=pull,
            target=target,
            radius=radius,
            bound=bound,
            room=room,
        )

    @property
    def lost(self) -> float:
        """Share of the bound that rounding may take."""
        return 1 - self.max_norm * self.learning_rate / self.bound

    def mean_iterate(self, objective: Objective, w: Vector, rows: Rows) -> Vector:
        """Return the mean of the iterates at which gradients are taken, from ``w`` on.

        A loss that is not smooth enough for a contraction is scaled down.
        """
        kernel = kernel_of(objective)
        assert kernel is not None
        smoothness = np.asarray(smoothness_of(kernel, rows))
        scales = np.divide(
            self.room, smoothness, out=np.ones_like(smoothness), where=smoothness > self.room
        )
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


@dataclass(frozen=True, kw_only=True, eq=False)
class LastIterate:
    """The steps behind one answer; as a pass of the mechanism, a single step.

    Parameters
    ----------
    descent
        The public conditions.
    kernel
        Sums of gradients of losses that are as smooth as the descent states.
    strengths
        Strength of the regulariser in each parameter, shape (dimension,).
    max_norm
        Bound on one record's gradient, less the part that rounding takes.
    bound
        Bound on how far a record moves a step.
    reach
        Radius of the ball that iterates are projected onto.
    n
        Number of records, which sums are divided by.
    """

    descent: Descent
    kernel: ClippedSum
    strengths: Vector
    max_norm: float
    bound: float
    reach: float
    n: int

    @classmethod
    def planned(cls, query: Query, objective: Objective, w: Vector, n: int) -> Self:
        """Return the steps from ``w`` on; refuse a case that the theorem does not cover.

        UnsupportedEvent is raised for another objective than the plan's descent is about, or if
        rounding would take more than a sixteenth of the clipping bound. No refusal depends on the
        content of a record.
        """
        descent = query.descent
        assert descent is not None
        kernel = as_smooth_as(_kernel(objective, descent), descent.smoothness)
        eta, d, length = descent.learning_rate, len(w), query.max_norm
        bound = eta * length / n
        start = norm_of(w)
        noise = query.noise_multiplier * bound * math.sqrt(d) * _DEVIATIONS
        reach = start + descent.steps * (eta * length + noise)
        if descent.radius is not None:
            reach = descent.radius
        far = max(start, reach)
        error = 2.0**-53 * ((4 * d + 100) * (far + eta * length) + n * eta * length)
        error = 2 * (error + math.sqrt(d) * grid_step(bound))
        about = f"{descent.steps} steps on {n} records, from a start of norm {start:.3g}"
        left = _left(error, bound, far, about)
        return cls(
            descent=descent,
            kernel=kernel,
            strengths=objective.strengths,
            max_norm=length * left,
            bound=bound,
            reach=reach,
            n=n,
        )

    @property
    def lost(self) -> float:
        """Share of the clipping bound that rounding may take."""
        return 1 - self.max_norm * self.descent.learning_rate / (self.n * self.bound)

    def taken(
        self, mechanism: Mechanism, objective: Objective, w: Vector, rows: Rows, query: Query
    ) -> Vector:
        """Return the last iterate from ``w`` on, with the query's noise in every step."""
        for _ in range(self.descent.steps):
            moved = rounded(self.mean_iterate(objective, w, rows))
            total = mechanism.whole(moved, self.bound)
            w = mechanism.noisy_mean(total, query, self.bound, size=1.0)
            norm = norm_of(w)
            if norm > self.reach:
                w = w * (self.reach / norm)
        return w

    def mean_iterate(self, objective: Objective, w: Vector, rows: Rows) -> Vector:
        """Return where a step from ``w`` leads without noise."""
        gradient = Kernel(self.kernel, rows, w).clipped(self.max_norm) / self.n
        moved: Vector = w - self.descent.learning_rate * (gradient + self.strengths * w)
        return moved


def _kernel(objective: Objective, descent: Descent) -> ClippedSum:
    """Return the sums of an objective that the theorem, and this descent, is about."""
    kernel = _smooth_kernel(objective, "the last iterate alone")
    least = float(objective.strengths.min())
    if objective.l2 != descent.l2 or descent.strong_convexity > least:
        raise UnsupportedEvent(
            f"the plan's descent is for l2={descent.l2!r} with strong_convexity="
            f"{descent.strong_convexity!r}, got an objective with l2={objective.l2!r} that "
            f"regularises every parameter by {least!r} at least."
        )
    return kernel


def _smooth_kernel(objective: Objective, answer: str) -> ClippedSum:
    """Return an objective's sums; refuse a loss with clipped gradients that may not contract."""
    kernel = kernel_of(objective)
    if smoothness_of(kernel, np.empty(0, dtype=np.intp)) is None:
        raise UnsupportedEvent(
            f"{answer} has a cost for convex losses of this package's linear models of one score, "
            "such as Logistic and Squared: clipped gradients of others are not those of a convex "
            f"loss, got {type(objective).__name__}."
        )
    assert isinstance(kernel, ClippedSum)
    return kernel


def _left(error: float, bound: float, reach: float, about: str) -> float:
    """Return the share of a bound that rounding errors leave; refuse a share that is too small.

    Iterates are at most ``reach`` long, and ``about`` describes the steps.
    """
    lost = error / bound + _MARGIN
    if not (lost <= _MOST_LOST and reach <= _FARTHEST_WHOLE * bound):
        raise UnsupportedEvent(
            f"rounding may take at most {_MOST_LOST} of the bound on a record, and it may take "
            f"{lost:.2g} of it: {about}, with iterates of norm up to {reach:.2g}. A radius bounds "
            "iterates."
        )
    return 1 - lost
