"""Which draws estimate delta where a record is replaced? Those of the pair C y against -C y.

By Kahane's interpolation no pair of records costs more (docs/correlated.md, "Mixed signs"). Both
directions are mirror images, so that one answers. The terms are (1 - e^eps L(-x) / L(x))_+ for x
with the record, L the likelihood ratio against no record.

>>> bins = MirroredBins(np.eye(50), "remove")
>>> kept = bins.draw(1000, np.random.default_rng(0))
>>> bool(0 < bins.terms(kept, 0.5).mean() < bins.largest(0.5))
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from dpcal.accountants.correlated.draws.bins import Bins
from dpcal.accountants.correlated.draws.estimators import Floats, OfSetting, Setting, rising

__all__ = ["Mirrored", "MirroredBins"]


@dataclass(frozen=True, eq=False)
class Mirrored(OfSetting):
    """Draws with the record, and the likelihood ratio of it and its opposite, which is exact."""

    setting: Setting

    direction: ClassVar[str] = "remove"

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        self.setting.require_exact("Mirrored")
        x, _ = self.setting.with_record(draws, generator)
        a = self.setting.mechanism.fields(x)
        opposite = self.setting.log_ratio_of(-a)
        return np.asarray(self.setting.log_ratio_of(a) - opposite)[None]

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        return rising(kept[0] + 2 * self.setting.slack, epsilon)

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms."""
        return 1.0


@dataclass(frozen=True, eq=False)
class MirroredBins(Bins):
    """Draws for balls in bins with the record or its opposite, in one dimension for each bin."""

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the values that are kept of each draw, shape (rows, draws)."""
        bins = len(self.gram)
        u = generator.standard_normal((draws, bins)) @ self._root.T
        u += self.gram[generator.integers(bins, size=draws)]
        half = 0.5 * np.diagonal(self.gram)
        sides = (logsumexp(side - half, axis=1) - math.log(bins) for side in (u, -u))
        present, opposite = sides
        return np.asarray(present - opposite)[None]
