"""Losses that are robust to outliers: linear models with bounded slopes, convex or not.

With residual r = <w, x> - y and u = r / width:

========= ================================= ===================== =============== ======
class     loss                              largest slope         curvature       convex
========= ================================= ===================== =============== ======
Huber     r^2 / 2 up to width, then linear  width                 in [0, 1]       yes
Cauchy    width^2 / 2 log(1 + u^2)          width / 2             in [-1/8, 1]    no
Welsch    width^2 / 2 (1 - exp(-u^2))       width / sqrt(2 e)     in [-0.45, 1]   no
Sigmoid   sigmoid(-y <w, x>)^2              8 / 27                in [-.121,.155] no
========= ================================= ===================== =============== ======

The last is for two classes, y in {-1, +1}: the squared error of a predicted probability.

>>> import numpy as np
>>> X, y = np.arange(6.0)[:, np.newaxis], [0.0, 1.0, 2.0, 3.0, 4.0, 500.0]
>>> Welsch(X, y, width=1.0).minimize().round(4).tolist()  # the line through all but the outlier
[1.0, 0.0]
>>> constants = Cauchy([[3.0, 4.0]], [0.0], width=2.0, fit_intercept=False).constants
>>> print(f"{constants.lipschitz:.6f}, {constants.smoothness:.6f}")
5.000000, 25.000000
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dpcal._ext.losses import CauchyLoss, HuberLoss, SigmoidLoss, WelschLoss
from dpcal._internal import validate
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.linear import Linear, TwoClass

_AT = (15 - math.sqrt(33)) / 24


class _Robust(Linear):
    """A regression loss of r = <w, x> - y that behaves like ``r^2 / 2`` within ``width``.

    Beyond ``width`` > 0 the loss grows more slowly than a square. See
    :class:`dpcal.optim.objectives.linear.Linear` for the other parameters.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        width: float = 1.0,
        l2: float = 0.0,
        fit_intercept: bool = True,
    ) -> None:
        self.width = validate.positive(width=width)
        super().__init__(X, y, l2=l2, fit_intercept=fit_intercept)

    @classmethod
    def _known(cls, norm: float, *, target_bound: float, width: float = 1.0) -> dict[str, float]:
        bound = validate.positive(target_bound=target_bound)
        farthest = cls(np.ones((1, 1)), [bound], width=width, fit_intercept=False)
        return {"width": width, "gap": farthest.loss(np.zeros(1)) * (1 + 2.0**-50)}


class Huber(_Robust):
    """Huber's loss (1964): ``r^2 / 2`` for ``|r| <= width``, ``width (|r| - width / 2)`` beyond.

    ``width`` > 0 is the residual at which the loss turns linear. See
    :class:`dpcal.optim.objectives.linear.Linear` for the other parameters.
    """

    point_loss = HuberLoss
    steepest, convex = 1.0, True

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """See :meth:`Linear.curvatures`: 1 within the width, 0 beyond."""
        return np.where(np.abs(scores - targets) <= self.width, 1.0, 0.0)


class Cauchy(_Robust):
    """Cauchy's (Lorentzian) loss ``width^2 / 2 log(1 + (r / width)^2)``: smooth, not convex.

    ``width`` > 0 is the residual at which the slope is largest. See
    :class:`dpcal.optim.objectives.linear.Linear` for the other parameters.
    """

    point_loss = CauchyLoss
    steepest = 0.5

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """See :meth:`Linear.curvatures`: (1 - q) / (1 + q)^2 with q = (r / width)^2."""
        q = ((scores - targets) / self.width) ** 2
        return np.asarray((1 - q) / (1 + q) ** 2)


class Welsch(_Robust):
    """Welsch's loss ``width^2 / 2 (1 - exp(-(r / width)^2))``: smooth, bounded, not convex.

    ``width`` > 0 is the scale of residuals; beyond a few widths, slopes are nearly zero. See
    :class:`dpcal.optim.objectives.linear.Linear` for the other parameters.
    """

    point_loss = WelschLoss
    steepest = math.sqrt(0.5 / math.e) * (1 + 2.0**-50)

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """See :meth:`Linear.curvatures`: (1 - 2 q) exp(-q) with q = (r / width)^2."""
        q = ((scores - targets) / self.width) ** 2
        return np.asarray((1 - 2 * q) * np.exp(-q))


class Sigmoid(TwoClass):
    """Squared error of a predicted probability, ``sigmoid(-y <w, x>)^2``: in [0, 1], not convex.

    See :class:`dpcal.optim.objectives.linear.Classified` for parameters and attributes.
    """

    # With s = sigmoid(-margin) the slope's size is 2 s^2 (1 - s), largest at s = 2/3, and the
    # curvature 2 s^2 (1 - s) (2 - 3 s), largest in size at _AT. The third derivative's size is 2
    # s^2 (1 - s) |4 - 15 s + 12 s^2| < 0.20203, largest where 60 s^3 - 108 s^2 + 57 s = 8.
    point_loss = SigmoidLoss
    steepest = 8 / 27 * (1 + 2.0**-50)
    sharpest = 2 * _AT**2 * (1 - _AT) * (2 - 3 * _AT) * (1 + 2.0**-50)
    at_origin, straightness = 0.25, 1 / 0.20203

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """See :meth:`Linear.curvatures`: 2 s^2 (1 - s) (2 - 3 s), s^2 the loss."""
        s = expit(-targets * scores)
        return np.asarray(2 * s * s * (1 - s) * (2 - 3 * s))
