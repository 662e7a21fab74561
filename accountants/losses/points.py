r"""A privacy loss as points: atoms, or a quadrature that integrates the law of the loss.

With points l_j and masses P_j, M(c) is the sum of P_j exp(c l_j) for real c. On a line that is
shifted into the complex plane, where Im l_j >= 0, the same sum is M(c + i t) for every t >= 0. A
family of losses has these two sets of points, and the rest follows from them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.contour import tilted_moments
from dpcal.accountants.losses.base import Complexes, Points, PrivacyLoss, Reals
from dpcal.accountants.losses.lattice import relevant, restricted_moments
from dpcal.accountants.losses.quadrature import QuadratureTilt

__all__ = ["PointLoss"]


class PointLoss(PrivacyLoss):
    """A privacy loss that is integrated over points."""

    @abstractmethod
    def points(self, highest: float) -> Points:
        """Return points on the real line for -1 < c <= highest, in increasing order."""

    @abstractmethod
    def line(self, highest: float) -> Points:
        """Return points on a line on which each factor exp(i t l), t > 0, shrinks."""

    def nearer(self, highest: float) -> Points | None:
        """Return points on a second line, closer to the real one, for bounds; None for no line."""
        return None

    @cached_property
    def _kept(self) -> dict[str, tuple[float, Points]]:
        return {}

    def _served(self, c: float) -> tuple[float, Points]:
        """Return a tilt >= c and the points that serve it; the last ones are kept."""
        kept = self._kept.get("last")
        if kept is None or kept[0] < c:
            highest = 2.0 ** math.ceil(math.log2(max(8.0, c)))
            kept = self._kept["last"] = highest, self.points(highest)
        return kept

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, as sums over points."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        _, points = self._served(float(c.max()))
        return tilted_moments(points.values, points.log_reference, 1.0 + c, c)

    def tilt(self, c: float) -> QuadratureTilt:
        """Return the tilted law along Re z = c."""
        log_mgf, mean, variance, fourth = self.cumulants([c])[0]
        highest, real = self._served(c)

        def weighed(points: Points) -> tuple[Complexes, Complexes, Reals]:
            sizes = points.log_masses + c * points.values - log_mgf
            kept = relevant(points.values, sizes, mean, variance)
            # Rounding of a value, and of its product with c.
            exponents = points.mass_sizes + 2 * abs(log_mgf)
            exponents += abs(c) * (points.value_sizes + np.abs(points.values))
            return points.values[kept], np.exp(sizes[kept]), exponents[kept]

        line, near = self.line(highest), self.nearer(highest)
        values, weights, exponents = weighed(line)
        merged = list(line.merged)
        sizes = line.log_masses[merged] + c * line.values[merged] - log_mgf
        return QuadratureTilt(
            # The mean on the line equals that on the real line: this removes their rounding.
            values - float((weights @ (values - mean)).real),
            weights,
            (mean, variance, fourth),
            exponents=exponents,
            restricted=restricted_moments(
                real.values, real.log_reference, 1.0 + c, np.array([log_mgf, mean])
            ),
            nearer=None if near is None else weighed(near)[:2],
            merged=(float(np.exp(sizes.real).sum()), line.reach),
        )
