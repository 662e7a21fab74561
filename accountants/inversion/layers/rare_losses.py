"""Laws of rare large losses, in layers of their size.

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

import math

import numpy as np

from dpcal.accountants.inversion.layers.cuts import Cut, loss_at, loss_cut
from dpcal.accountants.inversion.layers.jumps import Jumps
from dpcal.accountants.inversion.layers.measures import Piece, Product
from dpcal.accountants.inversion.layers.quadrature import TwoParts
from dpcal.accountants.inversion.layers.truncation import Truncation, below, between, cut_off
from dpcal.accountants.inversion.transform import Parts, has_rare_losses
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["Layers"]

# Ratio of the losses at neighboring cuts: wider layers do not fit one contour each.
_RATIO = 4.0
# Two cuts of one loss are merged if their distance, in units of the sum of their widths, is below
# this: closer cuts overlap, so the parts would count mass twice.
_CLOSEST = 7.0
# Most losses whose points are kept in all layers, for other epsilons: some 60 MB.
_KEPT = 8


def _log_sum(logs: list[float]) -> float:
    """Return the logarithm of a sum from those of its terms, rounded up: each adds roundings."""
    found = float(np.logaddexp.reduce(logs))
    return found + (8 + 4 * len(logs)) * UNIT * abs(max(found, -1e300))


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
    parts
        As given.
    log_rest
        Log of a bound on the probability beyond the first cuts.
    ratio
        Ratio of the losses at neighboring cuts.

    Raises
    ------
    OutOfReach
        If no loss has rare large values.
    """

    ratio = _RATIO

    def __init__(self, parts: Parts, log_rest: float) -> None:
        self.parts = parts
        share = log_rest - math.log(sum(times for _, times in parts))
        # Each loss with rare large values has parts below its cuts, from the first cut on.
        self._below: list[list[Truncation]] = []
        rests, levels = [-math.inf], [0.0]
        for loss, times in parts:
            self._below.append([])
            if has_rare_losses(loss):
                first = cut_off(loss, share)  # type: ignore[arg-type]
                top = below(loss, first)  # type: ignore[arg-type]
                self._below[-1].append(top)
                rests.append(math.log(times) + top.log_rest)
                levels.append(loss_at(top.loss, first))
        self._between: dict[int, Jumps | None] = {}
        self._highest = max(levels)
        if self._highest <= 0:
            raise OutOfReach
        self.log_rest = _log_sum(rests)

    def level(self, index: int) -> float:
        """Return the loss at which the cuts of this index lie, the largest of them for index 0."""
        return self._highest / _RATIO**index

    def _below_cut(self, known: list[Truncation], index: int) -> Truncation:
        """Return a loss below its cut, or below the cut before if the two would be too close."""
        while len(known) <= index:
            before = known[-1]
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
        found = self._between.get(index)
        if index not in self._between:
            pieces: list[tuple[Piece | TwoParts, int]] = []
            for (loss, times), known in zip(self.parts, self._below, strict=True):
                if not known:
                    pieces.append((loss, times))
                    continue
                low, high = self._below_cut(known, index), self._below_cut(known, index - 1)
                pieces.append((low if low is high else between(low, high), times))
            found = Jumps.of(pieces)
            if len(self.parts) <= _KEPT:
                self._between[index] = found
            else:
                for known in self._below:
                    for before in known[:index]:
                        before.forget()
        return found
