"""What is delta by several contours together? Its bounds and its slope near one epsilon.

The law of a composition is one measure, or the sum of several: a bulk and jumps, or layers of rare
losses. Each large one has a contour, each small one a Chernoff bound, and delta is their sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.contour import FURTHEST, Contour
from dpcal.accountants.inversion.tilts import ChernoffBounds
from dpcal.accountants.rounding import UNIT

__all__ = ["NEGLIGIBLE", "TIGHT", "Inversion"]

Reals = NDArray[np.float64]
# Width of bounds on log delta at which an inversion is taken without a further try: six digits.
TIGHT = 1e-6
# A part whose logarithm is this far below that of the other is bounded instead of computed:
# exp(-45) is less than a thousandth of a unit.
NEGLIGIBLE = 45.0


class Inversion:
    """delta near one epsilon, from one contour or from several whose measures add up.

    Parameters
    ----------
    contours
        Contours that invert the law without the rest, at least one.
    rest
        A bound for each part of the law that is too small to be computed; empty where there is
        none.
    method
        Name of the way that led to several contours, or to one contour for a part of the law; None
        if the only contour inverts the whole law.
    margin
        Rounding of the sum's logarithm.
    """

    def __init__(
        self,
        contours: Sequence[Contour],
        rest: Sequence[ChernoffBounds] = (),
        method: str | None = None,
        margin: float = 4 * UNIT,
    ) -> None:
        self.contours, self._rest, self._method = tuple(contours), tuple(rest), method
        self._margin = margin

    @property
    def smoothed(self) -> bool:
        """Whether a contour had to be smoothed."""
        return any(contour.smoothing > 0 for contour in self.contours)

    @property
    def reach(self) -> float:
        """Rate of the aliases' growth: at most exp(reach times the distance from the saddle)."""
        return FURTHEST * max(contour.width for contour in self.contours)

    def width(self, epsilon: float) -> float:
        """Return the width of the bounds on log delta(epsilon)."""
        bounds = self.log_bounds(epsilon)
        return 0.0 if bounds.upper == bounds.lower else bounds.upper - bounds.lower

    def log_bounds(self, epsilon: float) -> Bounds:
        """Return bounds on log delta(epsilon)."""
        lower, upper = self.log_bounds_at(np.array([epsilon]))
        if self._method is None:
            method = "smoothed" if self.smoothed else self.contours[0].method
        else:
            method = f"{self._method}, smoothed" if self.smoothed else self._method
        return Bounds(float(lower[0]), float(upper[0]), method)

    def log_bounds_at(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on log delta at each of many epsilons."""
        found = [contour.log_bounds_at(epsilons) for contour in self.contours]
        if self._method is None:
            return found[0]
        rest = [bounds.log_bounds_at(epsilons) for bounds in self._rest]
        lower = np.logaddexp.reduce([low for low, _ in found])
        upper = np.logaddexp.reduce([*(high for _, high in found), *rest])
        # Adding a term rounds by a unit of the logarithm at most.
        relative = 4 * UNIT * (len(found) + len(rest))
        lower -= self._margin + relative * np.abs(lower)
        upper += self._margin + relative * np.abs(np.maximum(upper, -1e300))
        return lower, np.minimum(upper, 0.0)

    def slopes(self, epsilon: float) -> tuple[float, float]:
        """Return log delta(epsilon) (no error bound) and its derivative in epsilon."""
        pairs = [contour.slopes(epsilon) for contour in self.contours]
        # A part below its own rounding has no finite logarithm, and a negligible weight.
        known = [pair for pair in pairs if math.isfinite(pair[0])]
        if not known:
            return math.nan, math.nan
        values, slopes = np.array(known).T
        total = float(np.logaddexp.reduce(values))
        return total, float(np.exp(values - total) @ slopes)
