"""Descents with a last iterate that has an epsilon of its own. Under public conditions.

>>> descent = Descent(steps=60, learning_rate=4.0, smoothness=0.25, l2=0.1, strong_convexity=0.1)
>>> print(f"{descent.contraction:.3f}")
0.600
>>> descent.event(noise_multiplier=2.0, max_norm=1.0, n=100).diameter
inf
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcal._internal import validate
from dpcal.accountants import events

# Relative: more than the rounding of a contraction, and of projections onto a ball.
_ROUNDING = 2.0**-40


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Gradient descent on all records that releases only its last iterate.

    An oracle holds the objective to these numbers: losses are of a linear model and convex, also
    after clipping, rows are shortened until each loss is as smooth, and the regulariser is this
    one. For the epsilon see :mod:`dpcal.accountants.mechanisms.last_iterate`.

    Parameters
    ----------
    steps
        Number of steps, at least 1.
    learning_rate
        Step size > 0, at most ``2 / (smoothness + l2)``, beyond which steps expand distances.
    smoothness
        Bound > 0 on the smoothness of one record's loss.
    l2
        Strength >= 0 of the regulariser.
    strong_convexity
        0, or ``l2`` where every parameter is regularised.
    radius
        Radius > 0 of the ball that every iterate is projected onto, around the origin; None for no
        ball.
    """

    steps: int
    learning_rate: float
    smoothness: float
    l2: float = 0.0
    strong_convexity: float = 0.0
    radius: float | None = None

    def __post_init__(self) -> None:
        validate.count(steps=self.steps)
        eta = validate.positive(learning_rate=self.learning_rate)
        validate.positive(smoothness=self.smoothness)
        validate.non_negative(l2=self.l2)
        if self.strong_convexity not in (0.0, self.l2):
            raise ValueError(
                f"strong_convexity must be 0 or l2={self.l2!r}, got {self.strong_convexity!r}."
            )
        if self.radius is not None:
            validate.positive(radius=self.radius)
        most = 2 / (self.smoothness + self.l2)
        if eta > most:
            raise ValueError(
                f"learning_rate must be at most 2 / (smoothness + l2) = {most:.6g} where only the "
                f"last iterate is released: longer steps are not contractions. Got {eta!r}."
            )

    def __str__(self) -> str:
        return f"of {self.steps} steps, contraction {self.contraction:.6g}"

    @property
    def contraction(self) -> float:
        """Lipschitz constant of a step without noise, rounded up, at most 1."""
        eta = self.learning_rate
        ends = self.strong_convexity, self.smoothness + self.l2
        return min(1.0, max(abs(1 - eta * end) for end in ends) + _ROUNDING)

    def event(
        self, *, noise_multiplier: float, max_norm: float, n: int
    ) -> events.LastIterateDpEvent:
        """Return the event of a run on ``n`` records, with gradients clipped to ``max_norm``."""
        radius = math.inf if self.radius is None else self.radius
        moved = self.learning_rate * max_norm / n
        return events.LastIterateDpEvent(
            noise_multiplier=noise_multiplier,
            steps=self.steps,
            contraction=self.contraction,
            diameter=2 * radius / moved * (1 + _ROUNDING),
        )
