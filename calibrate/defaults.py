"""Defaults of a linear model: clip, steps and rate, from public numbers only.

With noise of deviation ``s = z C / b`` on each coordinate of a mean gradient, T steps of size eta
end within ``D^2 / (2 eta T) + eta (d s^2 + v / b) / 2`` of the optimum, where v is the variance of
one record's clipped gradient and D the distance to the optimum. The part of the mean gradient
itself is paid for by steps below the inverse smoothness. So the step is limited by noise and by
smoothness, and not by the clip; and a clip far below the norm of typical rows cuts the gradients of
rare classes: their probabilities then come out too low, however many steps are taken.

Rows are taken to have a typical norm r; scores on them a deviation of 1.5 (of scaled targets, 1/2).

On all records, T steps have noise ``s = z C sqrt(T) / n`` each, so the distance eta T that noise
allows, ``D n / (z C sqrt(d))``, does not depend on T. Fewer steps of it than smoothness allows
would be too long: this quotient is the number of steps, and no other costs privacy or gains any.
Steps on samples waste privacy and add their scatter, so they are for records that are too many to
be read so often: 1,000 steps in 60 passes.

>>> tuned = Defaults.of("logistic", n=20_000, dimension=11, row_norm=3.3, release=4.22)
>>> tuned.steps, tuned.batch_size, tuned.max_norm
(445, 20000, 3.3)
>>> print(f"{tuned.learning_rate(4.22 * 445**0.5):.3f}")
1.467
>>> many = Defaults.of("logistic", n=10**7, dimension=50, row_norm=3.3, release=4.22)
>>> many.steps, many.batch_size
(1000, 600000)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from dpcal._internal import validate

# Share of the squared budget that releases the records' mean square norm.
SCALE_SHARE = 0.01

# By loss: curvature, deviation of scores, most steps; and nu = d z / n, its power in the clip.
_CURVATURE = {"logistic": 0.25, "softmax": 0.5, "squared": 1.0}
_SCORES = {"logistic": 1.5, "softmax": 1.5, "squared": 0.5}
_LONGEST = {"logistic": 4.0, "softmax": 4.0, "squared": 2.0}
_LOUD = {"logistic": 0.006, "softmax": 0.006, "squared": 0.002}
_FALL = {"logistic": 0.2, "softmax": 0.2, "squared": 0.5}

# Least clip, in units of the typical norm of rows.
_LEAST_CLIP = 0.3
# Share by which a longer clip may add to the error, over 7, and most length of it.
_WIDER, _WIDEST = 0.002, 1.2
_STEPS_A_PASS, _FEWEST, _MOST = 25, 300, 1000
_PASSES = 60.0
# Bounds on steps on all records; they read at most 4e9 entries of rows (some ten seconds).
_FEWEST_FULL, _ENTRIES = 120, 4e9


def full_steps(loss: str, *, n: int, dimension: int, release: float) -> int:
    """Return the number of steps on all records, from 120 to 1,000.

    Parameters
    ----------
    loss, n, dimension, release
        See :meth:`Defaults.of`.
    """
    wanted = _wanted(loss, n=n, dimension=dimension, release=release)
    return math.ceil(min(wanted, max(_FEWEST_FULL, _ENTRIES / (n * dimension))))


def _wanted(loss: str, *, n: int, dimension: int, release: float) -> int:
    """Return the steps on all records that noise and smoothness allow, from 120 to 1,000."""
    clip = _clip(loss, n=n, dimension=dimension, release=release, longest=1.0)
    allowed = _SCORES[loss] * _CURVATURE[loss] / _LONGEST[loss] * n / (release * clip)
    return math.ceil(min(_MOST, max(_FEWEST_FULL, allowed)))


def _clip(loss: str, *, n: int, dimension: int, release: float, longest: float) -> float:
    """Return the clip, in units of the typical norm of rows; none is above ``longest``."""
    validate.choice(tuple(_CURVATURE), loss=loss)
    noise = max(1e-300, validate.positive(release=release) * dimension / n)
    wide = 1.0
    if loss != "squared":
        wide = min(_WIDEST, longest, math.sqrt(1 + _WIDER / (noise * release)))
    return min(wide, max(_LEAST_CLIP, math.pow(_LOUD[loss] / noise, _FALL[loss])))


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """Settings of DP-SGD on a linear model, for iterates that are averaged with growing weights.

    Parameters
    ----------
    loss
        ``"logistic"``, ``"softmax"`` or ``"squared"``.
    n, dimension
        Number of records, public, and of parameters.
    row_norm
        Typical norm of rows, public or released, with the constant column.
    unit
        Half of the width that targets of a squared loss are scaled to.
    clip
        In units of ``row_norm`` times ``unit``.
    steps, batch_size
        Number of steps, and records expected in each.
    """

    loss: str
    n: int
    dimension: int
    row_norm: float
    unit: float
    clip: float
    steps: int
    batch_size: int

    @classmethod
    def of(
        cls,
        loss: str,
        *,
        n: int,
        dimension: int,
        row_norm: float,
        release: float,
        passes: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        unit: float = 1.0,
        bound: float | None = None,
    ) -> Self:
        """Return the settings for so many records.

        Parameters
        ----------
        loss, n, dimension, row_norm, unit
            See the class.
        release
            Noise multiplier of one Gaussian release about all records at the target.
        passes
            Passes over the records, > 0, for steps on samples; 60 when omitted.
        steps, batch_size
            Where they were given. If neither is, nor ``passes``, steps are on all records where
            these read at most 4e9 entries of rows.
        bound
            Largest norm of rows, which a clip need not exceed; ``row_norm`` when omitted.
        """
        row_norm = validate.positive(row_norm=row_norm)
        steps = None if steps is None else validate.count(steps=steps)
        batch_size = None if batch_size is None else validate.count(batch_size=batch_size)
        longest = 1.0 if bound is None else max(1.0, validate.positive(bound=bound) / row_norm)
        sizes = {"n": n, "dimension": dimension}
        clip = _clip(loss, release=release, longest=longest, **sizes)
        if passes is None and steps is None and batch_size is None:
            full = _wanted(loss, release=release, **sizes)
            if full * n * dimension <= _ENTRIES:
                steps, batch_size = full, n
        passes = _PASSES if passes is None else validate.positive(passes=passes)
        if batch_size is None:
            most = min(_MOST, max(_FEWEST, math.ceil(_STEPS_A_PASS * passes)))
            batch_size = min(n, max(1, math.ceil(passes * n / (most if steps is None else steps))))
        if steps is None:
            steps = max(1, math.ceil(passes * n / batch_size))
        settled: dict[str, Any] = {"clip": clip, "steps": steps, "batch_size": batch_size}
        return cls(loss=loss, row_norm=row_norm, unit=unit, **sizes, **settled)

    @property
    def max_norm(self) -> float:
        """Clip of one record's gradient."""
        return self.clip * self.row_norm * self.unit

    def learning_rate(
        self,
        noise_multiplier: float,
        max_norm: float | None = None,
        *,
        l2: float = 0.0,
        radius: float = math.inf,
    ) -> float:
        """Return the step size, for the noise multiplier of a step and a clip.

        Parameters
        ----------
        noise_multiplier
            Standard deviation of the noise on a sum, in units of the clip.
        max_norm
            The clip, if it is another one.
        l2
            Weight of the penalty ``l2 / 2 ||w||^2``.
        radius
            Radius of the ball that iterates are projected onto.
        """
        clip = (self.max_norm if max_norm is None else max_norm) / self.row_norm
        full = self.batch_size >= self.n
        spread = 0.0 if full else min(0.5 * self.unit, clip) ** 2 * (1 - self.batch_size / self.n)
        noise = self.dimension * (noise_multiplier * clip / self.batch_size) ** 2
        distance = self.distance(radius) * self.row_norm
        longest = _LONGEST[self.loss] / _CURVATURE[self.loss]
        far = math.sqrt(self.steps * (noise + spread / self.batch_size))
        step = longest if far == 0 else min(longest, distance / far)
        step /= self.row_norm**2
        return step / (1 + step * l2)

    def distance(self, radius: float = math.inf) -> float:
        """Return how far the optimum is taken to be, at most a radius."""
        guess = _SCORES[self.loss] * self.unit * math.sqrt(self.dimension) / self.row_norm
        return min(guess, radius)
