"""Laws of rare large losses: without the rarest of them, and in layers, each on its own contour.

With F_k the part of the law of a step below a cut k, the composed law is F_0^T, plus the layers
F_k^T - F_(k-1)^T, which are positive, plus the part in which a step lies beyond all cuts, which is
as improbable as needed. Each layer has losses within a factor of each other, so that one tilt
and one contour serve it, also where the loss of a step has the tail of a log-normal law.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> layers = Layers(((SampledGaussian(1e-6, 1.0, "remove"), 100),), log_rest=-40.0)
>>> layer = layers.between(1)
>>> print(f"{layers.level(0):.3f} {layers.level(1):.3f} {layer.cumulants([0.0])[0, 1]:.3f}")
0.017 0.004 0.005
"""

from __future__ import annotations

import contextlib
import math
from typing import TypeGuard

import numpy as np

from dpcal.accountants.inversion.contour import Contour, log_complement
from dpcal.accountants.inversion.inversion import NEGLIGIBLE, TIGHT, Inversion
from dpcal.accountants.inversion.jumps import Jumps
from dpcal.accountants.inversion.limits import GUESS, LAYERS
from dpcal.accountants.inversion.tilts import ChernoffBounds
from dpcal.accountants.inversion.transform import Measure, Parts, Piece, Product, Total
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.cuts import Cut, loss_at, loss_cut
from dpcal.accountants.losses.quadrature import TwoParts
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.losses.truncation import SURPLUS, Truncation, below, between, trim
from dpcal.accountants.rounding import UNIT

__all__ = [
    "NEGLIGIBLE_REST",
    "Layers",
    "invert_in_layers",
    "invert_layered",
    "single_step_log_delta",
    "trimmed",
]

# Ratio of the losses at neighboring cuts: wider layers do not fit one contour each.
_RATIO = 4.0
# Two cuts of one loss are merged if their distance, in units of the sum of their widths, is below
# this: closer cuts overlap, so the parts would count mass twice.
_CLOSEST = 7.0
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


def _has_rare_losses(loss: PrivacyLoss) -> TypeGuard[SampledGaussian]:
    """Return whether a loss has rare large values that can be cut off."""
    return isinstance(loss, SampledGaussian) and loss.direction == "remove"


def trimmed(parts: Parts, log_rest: float, sharpness: float = 1.0) -> Product | None:
    """Return the part of a law in which no step has one of its rarest large losses.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    log_rest
        Log of the probability that may be cut off in all.
    sharpness
        Factor by which the cuts are sharper than usual. The number of points grows by this factor.

    Returns
    -------
    Product or None
        The part, with a bound on the mass cut off; None if no loss has rare large values.
    """
    share = log_rest - math.log(sum(times for _, times in parts))
    pieces: list[tuple[Piece, int]] = [
        (trim(loss, share, sharpness) if _has_rare_losses(loss) else loss, times)
        for loss, times in parts
    ]
    return Product(pieces) if any(isinstance(piece, Truncation) for piece, _ in pieces) else None


class Layers:
    """Cuts at losses of geometrically falling size; almost nothing lies beyond the first cuts.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    log_rest
        Log of the probability that may lie beyond the first cuts.

    Attributes
    ----------
    log_rest
        Log of a bound on the probability beyond the first cuts.

    Raises
    ------
    OutOfReach
        If no loss has rare large values.
    """

    def __init__(self, parts: Parts, log_rest: float) -> None:
        self.parts = parts
        first = trimmed(parts, log_rest)
        # Each loss with rare large values has parts below its cuts, from the first cut on.
        self._below: list[list[Truncation]] = [
            [below(piece.loss, piece.upper.position)]
            if isinstance(piece, Truncation) and piece.upper
            else []
            for piece, _ in (first.pieces if first else ())
        ]
        cuts = ((known[0].loss, known[0].upper) for known in self._below if known)
        self._highest = max((loss_at(loss, cut.position) for loss, cut in cuts if cut), default=0.0)
        if self._highest <= 0:
            raise OutOfReach
        self._between: dict[int, Jumps | None] = {}
        self.log_rest = self.below(0).log_rest

    def level(self, index: int) -> float:
        """Return the loss at which the cuts of this index lie, the largest of them for index 0."""
        return self._highest / _RATIO**index

    def _below_cut(self, known: list[Truncation], index: int) -> Truncation:
        """Return a loss below its cut, or below the cut before if the two would be too close."""
        while len(known) <= index:
            before = known[-1]
            assert before.upper is not None
            loss = before.loss
            cut = Cut.sharp(loss, loss_cut(loss, self.level(len(known))))
            apart = _CLOSEST * (cut.width + before.upper.width)
            lower = cut.position < before.upper.position - apart
            known.append(below(loss, cut.position) if lower else before)
        return known[index]

    def below(self, index: int) -> Product:
        """Return the part of the law in which every step stays below the cuts of this index."""
        return Product(
            [
                (self._below_cut(known, index) if known else loss, times)
                for (loss, times), known in zip(self.parts, self._below, strict=True)
            ]
        )

    def between(self, index: int) -> Jumps | None:
        """Return the part between these cuts and those of the previous index; None if empty."""
        if index not in self._between:
            pieces: list[tuple[Piece | TwoParts, int]] = []
            for (loss, times), known in zip(self.parts, self._below, strict=True):
                if not known:
                    pieces.append((loss, times))
                    continue
                low, high = self._below_cut(known, index), self._below_cut(known, index - 1)
                pieces.append((low if low is high else between(low, high), times))
            self._between[index] = Jumps.of(pieces)
        return self._between[index]


def invert_layered(total: Total, epsilon: float, spread: float = 0.0) -> Inversion:
    """Invert a law layer by layer, with layers that are chosen for the size of delta."""
    size = min(single_step_log_delta(total, epsilon), total.log_delta_bound)
    if total.subset is not None:
        with contextlib.suppress(OutOfReach):
            guess, _ = invert_layered(total.subset, epsilon, spread).slopes(epsilon)
            size = float(np.fmin(guess, size))
    for _ in range(GUESS.count):
        layers = Layers(total.parts, size + NEGLIGIBLE_REST)
        inversion = invert_in_layers(layers, epsilon, size, spread)
        estimate = min(inversion.slopes(epsilon)[0], 0.0)
        inversion.vague = math.isnan(estimate)
        if inversion.vague or estimate > size - GUESS.below:
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


def invert_in_layers(layers: Layers, epsilon: float, size: float, spread: float = 0.0) -> Inversion:
    """Invert a law layer by layer, each on a contour of its own.

    Layers are taken from the largest losses downward until the rest fits one contour, or
    contributes nothing. Layers too small against ``size``, a guess of log delta, are bounded.

    Raises
    ------
    OutOfReach
        If no layer has a contour, or a part without a contour is too large to be bounded.
    """
    search = _LayerSearch(layers, epsilon, size, spread)
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
    return Inversion(search.contours, search.rest, "layers", margin)


class _LayerSearch:
    """Contours found so far for a law's layers, and bounds on those that are too small."""

    def __init__(self, layers: Layers, epsilon: float, size: float, spread: float) -> None:
        self.contours: list[Contour] = []
        self.rest = [ChernoffBounds.of_probability(layers.log_rest)]
        self.size = size
        self._epsilon, self._spread = epsilon, spread
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
        # Losses of neighboring layers have this ratio, and their saddles about the same.
        self._near = _RATIO * bounds.saddle if bounds.saddle else float(bounds.tilts[-1])
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
            spread=self._spread,
            work=self._work,
            smooth=False,
        )
        self._points -= contour.line.points
        if self._points < 0:
            raise OutOfReach
        bounds = contour.log_bounds(self._epsilon)
        # Log of the width of the bounds, relative to the upper one.
        gap = log_complement(bounds.lower - bounds.upper) if bounds.upper > bounds.lower else 0.0
        if narrow and bounds.upper + gap > max(self.size, bounds.lower) + math.log(TIGHT):
            raise OutOfReach
        self.contours.append(contour)
        self.size = max(self.size, bounds.lower)
