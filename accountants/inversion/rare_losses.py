"""A law in layers of the losses of its steps: what each contributes to delta, bounded by itself.

With F_k the part of the law of a step below a cut k, the composed law is F_0^T, plus the layers
F_k^T - F_(k-1)^T, which are positive, plus the part in which a step lies beyond all cuts, which is
as improbable as one likes. Each layer has losses within a factor of each other, so that one tilt
and one contour serve it, also where the loss of a step has the tail of a log-normal.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> ladder = Ladder(((SampledGaussian(1e-6, 1.0, "remove"), 100),), log_rest=-40.0)
>>> layer = ladder.layer(1)
>>> print(f"{ladder.level(0):.3f} {ladder.level(1):.3f} {layer.cumulants([0.0])[0, 1]:.3f}")
0.017 0.004 0.005
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.inversion.transform import (
    Jumps,
    Parts,
    ProductLine,
    SplitParts,
    Trimmed,
    bulk_rounding,
)
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian, TrimmedLoss
from dpcal.accountants.losses.truncation import Band, Below, blur_at, loss_at, loss_cut
from dpcal.accountants.rounding import UNIT

__all__ = ["Kept", "Ladder"]

Reals = NDArray[np.float64]

# Ratio of the losses at neighboring cuts.
_RATIO = 4.0
# Cuts of one loss that are closer than this, in widths of their blurs, are one: below the lower of
# them and between them there would be more than below the upper one.
_CLOSEST = 7.0


class Kept(Trimmed):
    """The part of the law in which every step stays below a cut."""

    def __init__(self, pieces: SplitParts) -> None:
        self._pieces = pieces
        self._parts = [
            (piece, times) for piece, times in pieces if isinstance(piece, PrivacyLoss | Below)
        ]
        self.log_rest = -math.inf

    def mass_rounding(self, c: Reals) -> Reals:
        """Rounding of the parts' log masses."""
        return np.array([bulk_rounding(self._pieces, float(at)) for at in c])

    def line(self, c: float) -> ProductLine:
        """Return the product of the tilted characteristic functions."""
        line = super().line(c)
        line.log_mass_rounding += bulk_rounding(self._pieces, c)
        return line


class Ladder:
    """Cuts at losses of geometrically falling size, the first where next to nothing is beyond.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    log_rest
        Log of the probability that may lie beyond the first cuts.

    Attributes
    ----------
    parts
        As given.
    log_rest
        Log of a bound on the probability that does.
    """

    def __init__(self, parts: Parts, log_rest: float) -> None:
        self.parts = parts
        share = log_rest - math.log(sum(times for _, times in parts))
        self._tops: list[Below | None] = []
        rests, levels = [-math.inf], [0.0]
        for loss, times in parts:
            top = None
            if isinstance(loss, SampledGaussian) and loss.direction == "remove":
                trimmed = TrimmedLoss(loss, share)
                top = Below(loss, trimmed.cut)
                rests.append(math.log(times) + top.log_rest)
                levels.append(loss_at(loss, top.cut))
            self._tops.append(top)
        self._known: dict[tuple[int, int], Below] = {}
        self._layers: dict[int, Jumps | None] = {}
        self._highest = max(levels)
        if self._highest <= 0:
            raise OutOfReach
        self.log_rest = float(np.logaddexp.reduce(rests)) + 8 * UNIT * abs(log_rest)

    def level(self, index: int) -> float:
        """The loss at which the cuts of this index lie, the largest of them for index 0."""
        return self._highest / _RATIO**index

    def _below(self, part: int, top: Below, index: int) -> Below:
        """A loss below its cut, which is the one before where the two would be too close."""
        if index == 0:
            return top
        if (part, index) not in self._known:
            before = self._below(part, top, index - 1)
            cut = loss_cut(top.loss, self.level(index))
            apart = _CLOSEST * (blur_at(top.loss, cut) + before.blur)
            self._known[part, index] = Below(top.loss, cut) if cut < before.cut - apart else before
        return self._known[part, index]

    def kept(self, index: int) -> Kept:
        """The part of the law in which every step stays below the cuts of this index."""
        pieces: SplitParts = []
        for part, ((loss, times), top) in enumerate(zip(self.parts, self._tops, strict=True)):
            pieces.append((loss if top is None else self._below(part, top, index), times))
        return Kept(pieces)

    def layer(self, index: int) -> Jumps | None:
        """What lies below the cuts before this index, but not below these; None where nothing."""
        if index not in self._layers:
            pieces: SplitParts = []
            for part, ((loss, times), top) in enumerate(zip(self.parts, self._tops, strict=True)):
                if top is None:
                    pieces.append((loss, times))
                    continue
                below, above = self._below(part, top, index), self._below(part, top, index - 1)
                pieces.append((below if below is above else Band(below, above), times))
            bands = any(isinstance(piece, Band) for piece, _ in pieces)
            self._layers[index] = Jumps(pieces) if bands else None
        return self._layers[index]
