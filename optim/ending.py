"""A test whether a descent ended below its start, by gradients that were released anyway.

Released gradients ``g_t = grad F(w_t) + e_t`` have errors that are independent of w_t and earlier
iterates. So the mean over late steps t of ``(w_t - w_0) . g_t`` has the expectation of the mean of
``(w_t - w_0) . grad F(w_t)``. Two rises of the loss F follow from it:

- On a quadratic, ``F(w) - F(w_0) = (w - w_0) . (grad F(w_0) + grad F(w)) / 2``. The error of g_0
  moved the iterates against itself, so that this estimate is too low, by at most
  ``eta E|e_0|^2 / 2`` where no step eta is longer than the inverse smoothness.
- A record's logistic or softmax loss is at least 0, and at least ``w . g`` for its gradient g at w:
  the rest is the entropy of its predicted classes. So it is at least ``w . g'`` for a clipped
  gradient g', and ``F(w) - F(0) >= w . grad F(w) - F(0)``. F(0) is known: log 2, or the log of the
  number of classes.

Standard errors follow from the noise, which is public. Where records are sampled, they follow from
the scatter of late terms. They are at most as large as for records with gradients that all lie
along the way and are as long as the clip. All this is a function of released values, and costs
nothing.

>>> import numpy as np
>>> rng, told, w = np.random.default_rng(0), Ending(), np.zeros(5)
>>> for step in range(50):  # F(w) = |w - 1|^2 / 2, by steps that are too long
...     g = w - 1 + rng.normal(size=5)
...     told.hear(step, w, g, deviation=1.0)
...     w = w - 1.99 * g
>>> told.no_better
True
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple, Self

import numpy as np

from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.objectives.arrays import Vector

__all__ = ["Ending", "first_late"]

# Most late steps in an average: with more, the error of the start remains.
_LATE = 64
_FEWEST = 8
# Standard errors of a rise above 0: 1.3 false alarms in 1,000 runs at a standstill.
_SURE = 3.0


class Ending:
    """Released gradients at the start of a descent and late in it.

    Parameters
    ----------
    at_origin
        The loss at the origin, or a bound on it, if each record's loss is at least the product of
        parameters and gradient; else infinite.
    l2
        Weight of the penalty ``l2 / 2 ||w||^2``.
    """

    def __init__(self, *, at_origin: float = math.inf, l2: float = 0.0) -> None:
        self._at_origin, self._l2 = at_origin, l2
        self._first: _Heard | None = None
        self._late: deque[_Heard] = deque(maxlen=_LATE)

    @classmethod
    def of(cls, oracle: Oracle) -> Self:
        """Return an ending for answers about an oracle's objective."""
        loss, weight = getattr(oracle, "linear_loss", None) or ("", 1.0)
        # A softmax loss has no more classes than parameters.
        at_origin = {"logistic": 2, "softmax": oracle.dimension}.get(loss)
        return cls(
            at_origin=math.inf if at_origin is None else weight * math.log(max(2, at_origin)),
            l2=float(getattr(oracle, "l2", 0.0)),
        )

    def hear(
        self, step: int, w: Vector, g: Vector, *, deviation: float, sampling: float = 0.0
    ) -> None:
        """Take note of a gradient.

        Parameters
        ----------
        step
            Number of moves that led to the iterate.
        w, g
            Iterate, and the released gradient there, with an error that is independent of the
            iterate.
        deviation, sampling
            Standard deviation >= 0 of the noise on each coordinate of g; and the largest standard
            deviation, in any direction, that sampling records can add.
        """
        heard = _Heard(step, w.copy(), g.copy(), deviation**2, sampling**2)
        if self._first is None:
            self._first = heard
        else:
            self._late.append(heard)

    @property
    def no_better(self) -> bool:
        """Whether a rise of the loss late in the run is at least 0, by three standard errors."""
        if self._first is None or not self._late:
            return False
        late = [heard for heard in self._late if heard.step >= first_late(self._late[-1].step + 1)]
        if not late:
            return False
        start = self._first.w
        ways = np.array([heard.w - start for heard in late])
        terms = np.array([way @ heard.g for way, heard in zip(ways, late, strict=True)])
        squares = (ways**2).sum(axis=1)
        noise = float(squares @ [heard.noise for heard in late])
        later = noise + float(squares @ [heard.sampling for heard in late])
        mean = ways.mean(axis=0)
        span, first = float(mean @ mean), self._first
        at_start = (first.noise + first.sampling) * span
        if first.sampling > 0 and len(terms) >= _FEWEST:
            scatter = float(terms.var(ddof=1))
            later = min(later, max(noise, scatter * len(terms)))
            at_start = min(at_start, max(first.noise * span, scatter))
        product, variance = float(terms.mean()), later / len(terms) ** 2
        curved = (product + float(mean @ first.g)) / 2
        if curved >= _SURE * math.sqrt(variance + at_start) / 2:
            return True
        penalty = self._l2 / 2 * float(squares.mean())
        low = product - penalty - self._at_origin
        return not start.any() and low >= _SURE * math.sqrt(variance)


def first_late(steps: int) -> int:
    """Return the first late step: late steps are in the last quarter and among the last 64."""
    return max(1, steps - min(_LATE, max(1, steps // 4)))


class _Heard(NamedTuple):
    """Step, iterate, gradient, and the variances of noise and sampling."""

    step: int
    w: Vector
    g: Vector
    noise: float
    sampling: float
