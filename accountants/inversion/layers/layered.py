"""One contour for each layer of a law's large losses, and one for the rest of the law.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> total = Total(((SampledGaussian(1e-6, 1.0, "remove"), 100),))
>>> invert_layered(total, 1.0).log_bounds(1.0).method
'layers'
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from dpcal.accountants.inversion.layers.contour import Contour
from dpcal.accountants.inversion.layers.inversion import NEGLIGIBLE, Inversion
from dpcal.accountants.inversion.layers.measures import Measure, Product
from dpcal.accountants.inversion.layers.rare_losses import Layers
from dpcal.accountants.inversion.layers.tilts import ChernoffBounds
from dpcal.accountants.inversion.layers.truncation import SURPLUS
from dpcal.accountants.inversion.limits import GUESS, LAYERS, TIGHT
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["NEGLIGIBLE_REST", "invert_in_layers", "invert_layered", "single_step_log_delta"]

# Log of the probability beyond all layers, less log delta: less than a unit of delta.
NEGLIGIBLE_REST = -37.0
# Log of the relative error above which a closed form is not used as a guess.
_GUESS_ERROR = 1.0
# Largest loss of the rest of the law, in its standard deviations, for which a contour is tried:
# larger losses are rare jumps, and a law with rare jumps has no short contour.
_RARE_JUMPS = 20.0
# A layer without a contour is bounded if its logarithm is this much smaller than that of the rest:
# the bounds are then up to exp(-5) apart.
_BOUNDED = 5.0


def invert_layered(total: Total, epsilon: float) -> Inversion:
    """Invert a law layer by layer, with layers that are chosen for the size of delta."""
    size = min(single_step_log_delta(total, epsilon), total.log_delta_bound)
    for _ in range(GUESS.count):
        layers = Layers(total.parts, size + NEGLIGIBLE_REST)
        inversion = invert_in_layers(layers, epsilon, size)
        estimate = min(inversion.slopes(epsilon)[0], 0.0)
        # Where delta is below its own rounding, only its upper bound is of use.
        if math.isnan(estimate) or estimate > size - GUESS.below:
            return inversion
        size = estimate
    raise OutOfReach


def single_step_log_delta(total: Total, epsilon: float) -> float:
    """Return the log of the sum of the steps' own deltas: a guess of log delta for rare losses."""
    found = [-math.inf]
    for loss, times in total.parts:
        closed = loss.log_delta(epsilon)
        if closed is not None and closed[1] < _GUESS_ERROR:
            found.append(math.log(times) + closed[0])
    largest = float(np.logaddexp.reduce(found))
    return largest if largest > -math.inf else GUESS.first


def invert_in_layers(layers: Layers, epsilon: float, size: float) -> Inversion:
    """Invert a law layer by layer, each on a contour of its own.

    Layers are taken from the largest losses downward until the rest fits one contour, or
    contributes nothing. Layers too small against ``size``, a guess of log delta, are bounded.

    Raises
    ------
    OutOfReach
        If no layer has a contour, or a part without a contour is too large to be bounded.
    """
    search = _LayerSearch(layers, epsilon, size)
    bounded: Product | None = None
    for index in range(LAYERS.count):
        layer = layers.between(index) if index else None
        try:
            if layer is not None:
                search.add(layer, _BOUNDED)
        except OutOfReach:
            break
        bounded = rest = layers.below(index)
        # If the largest loss is many standard deviations of the rest, no contour is short.
        level = layers.level(index)
        _, variance = rest.at_zero
        rare = level > _RARE_JUMPS * math.sqrt(max(variance, 0.0))
        if rare and level > 2 * epsilon:
            continue
        with contextlib.suppress(OutOfReach):
            if rare:
                search.bound(rest, NEGLIGIBLE)
            else:
                search.add(rest, NEGLIGIBLE, narrow=True)
            bounded = None
            break
    if bounded is not None:
        # No contour was found for the rest, so it is bounded.
        search.bound(bounded, -math.inf)
    if not search.contours:
        raise OutOfReach
    margin = 4 * UNIT + 4 * SURPLUS * sum(times for _, times in layers.parts)
    return Inversion(search.contours, search.rest, margin)


class _LayerSearch:
    """Contours found so far for a law's layers, and bounds on those that are too small."""

    def __init__(self, layers: Layers, epsilon: float, size: float) -> None:
        self.contours: list[Contour] = []
        self.rest = [ChernoffBounds.of_probability(layers.log_rest)]
        self.size = size
        self._epsilon = epsilon
        # Losses of neighboring layers have this ratio, and their saddles about the same.
        self._ratio = layers.ratio
        self._near: float | None = None
        self._saddle: float | None = None
        number = len(layers.parts)
        self._work = LAYERS.work * max(number**0.5, LAYERS.share * number)
        self._points = LAYERS.points

    def bound(self, measure: Measure, least: float) -> None:
        """Bound a measure whose logarithm is below that of the rest by at least ``least``.

        Raises
        ------
        OutOfReach
            If it is larger.
        """
        bounds = self._bounds_of(measure)
        if self.size - bounds.log_bound(self._epsilon) < least:
            raise OutOfReach
        self.rest.append(bounds)

    def add(self, measure: Measure, least: float, *, narrow: bool = False) -> None:
        """Choose a contour for a measure, or bound it where it is much smaller than the rest.

        Parameters
        ----------
        measure
            A layer, or the part below all layers.
        least
            By how much the measure must be smaller than the rest to be bounded, in logarithms.
        narrow
            Whether only a contour with close bounds is taken.

        Raises
        ------
        OutOfReach
            If there is no such contour, and the measure is not as much smaller than the rest.
        """
        bounds = self._bounds_of(measure)
        excess = self.size - bounds.log_bound(self._epsilon)
        if excess < NEGLIGIBLE:
            try:
                self._add_contour(measure, bounds.saddle, max(0.0, excess), narrow=narrow)
            except OutOfReach:
                if excess < least:
                    raise
            else:
                return
        self.rest.append(bounds)

    def _bounds_of(self, measure: Measure) -> ChernoffBounds:
        """Return Chernoff bounds of a measure, which are sought near the saddle of the last one."""
        measure.near = measure.near or self._near
        bounds = ChernoffBounds.within_reach(measure, self._epsilon)
        if self._saddle and not bounds.saddle:
            # From below, a rule may reach further.
            measure.near = None
            bounds = ChernoffBounds.within_reach(measure, self._epsilon)
        self._saddle = bounds.saddle
        self._near = self._ratio * bounds.saddle if bounds.saddle else float(bounds.tilts[-1])
        return bounds

    def _add_contour(
        self, measure: Measure, saddle: float | None, excess: float, *, narrow: bool
    ) -> None:
        if saddle is None:
            raise OutOfReach
        contour = Contour(
            measure,
            saddle,
            self._epsilon,
            excess=excess,
            work=self._work,
        )
        self._points -= contour.points
        if self._points < 0:
            raise OutOfReach
        contour.drop_points()
        bounds = contour.log_bounds(self._epsilon)
        # Log of the width of the bounds, relative to the upper one.
        gap = math.log(-math.expm1(min(bounds.lower - bounds.upper, -1e-300)))
        if narrow and bounds.upper + gap > max(self.size, bounds.lower) + math.log(TIGHT):
            raise OutOfReach
        self.contours.append(contour)
        self.size = max(self.size, bounds.lower)
