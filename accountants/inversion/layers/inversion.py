"""What is delta by several contours together? Its bounds and its slope near one epsilon.

The law of a composition in layers of rare losses is a sum of measures. Each large one has a
contour, each small one a Chernoff bound, and delta is their sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.layers.contour import FURTHEST, Contour
from dpcal.accountants.inversion.layers.tilts import ChernoffBounds
from dpcal.accountants.rounding import UNIT

__all__ = ["NEGLIGIBLE", "Inversion"]

# A part whose logarithm is this far below that of the other is bounded instead of computed:
# exp(-45) is less than a thousandth of a unit.
NEGLIGIBLE = 45.0


class Inversion:
    """delta near one epsilon, from contours of measures that add up to the law.

    Parameters
    ----------
    contours
        Contours that invert the law without the rest, at least one.
    rest
        A bound for each part of the law that is too small to be computed.
    margin
        Rounding of the sum's logarithm.
    """

    def __init__(
        self, contours: Sequence[Contour], rest: Sequence[ChernoffBounds], margin: float
    ) -> None:
        self.contours, self._rest, self._margin = tuple(contours), tuple(rest), margin

    @property
    def reach(self) -> float:
        """Rate of the aliases' growth: at most exp(reach times the distance from the saddle)."""
        return FURTHEST * max(contour.width for contour in self.contours)

    def log_bounds(self, epsilon: float) -> Bounds:
        """Return bounds on log delta(epsilon)."""
        found = [contour.log_bounds(epsilon) for contour in self.contours]
        rest = [bounds.log_bound(epsilon) for bounds in self._rest]
        lower = float(np.logaddexp.reduce([item.lower for item in found]))
        upper = float(np.logaddexp.reduce([*(item.upper for item in found), *rest]))
        # Adding a term rounds by a unit of the logarithm at most.
        relative = 4 * UNIT * (len(found) + len(rest))
        lower -= self._margin + relative * abs(lower)
        upper += self._margin + relative * abs(max(upper, -1e300))
        return Bounds(lower, min(upper, 0.0), "layers")

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
