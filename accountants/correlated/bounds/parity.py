"""What does removing an allocated record cost? Put-call parity from the contour of adding it.

With K = exp(epsilon) and the likelihood ratio of mean 1, delta of removing is E (ratio - K)_+ = 1 -
K + E (K - ratio)_+, and the last mean is K times delta of adding at -epsilon, which short contours
invert. The difference has an absolute error near a rounding of K, so that only deltas far above it
keep digits.

>>> parity = Parity(sigma=1.0, batches=100, epochs=1)
>>> low, high = parity.epsilon(1e-5)
>>> low <= 0.62093967161978 <= high, high - low < 1e-6
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcal.accountants.correlated.bounds.base import least_epsilon
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.tilts import saddle_tilt
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["Parity"]

# Contours at better and better guesses of epsilon.
_GUESSES = 3
# Largest epsilon at which K is small enough for digits to be left.
_LARGEST = 20.0


@dataclass(frozen=True, eq=False)
class Parity:
    """Both ends of delta, and of epsilon, of removing a record from random allocation.

    Parameters
    ----------
    sigma
        Noise multiplier > 0.
    batches, epochs
        Numbers M >= 2 of batches and E >= 1 of epochs.
    """

    sigma: float
    batches: int
    epochs: int

    @cached_property
    def _total(self) -> Total:
        return Total(((Allocation(self.sigma, self.batches, "add"), self.epochs),))

    def _contour(self, epsilon: float) -> Contour:
        c = saddle_tilt(self._total, -epsilon, positive=True)
        return Contour(self._total, c, -epsilon, smooth=False)

    @staticmethod
    def _ends(contour: Contour, epsilon: float) -> tuple[float, float]:
        """Return lower and upper end of delta at an epsilon."""
        low, high = contour.log_bounds_at(np.array([-epsilon]))
        k = math.exp(epsilon)
        margin = 16 * UNIT * (1 + k)
        ends = [1 + k * math.expm1(float(each[0])) for each in (low, high)]
        return max(0.0, ends[0] - margin), min(1.0, max(0.0, ends[1] + margin))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return both ends of delta at an epsilon >= 0; 0 and 1 where contours are out of reach."""
        if epsilon > _LARGEST:
            return 0.0, 1.0
        try:
            return self._ends(self._contour(epsilon), epsilon)
        except OutOfReach:
            return 0.0, 1.0

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Return both ends of epsilon at a delta; 0 and infinity where they are out of reach."""
        low, high = 0.0, math.inf
        variance = math.expm1(min(self.sigma**-2.0, 600.0)) / self.batches
        spread = math.sqrt(self.epochs * math.log1p(variance))
        guess = min(_LARGEST, spread * math.sqrt(-2 * math.log(delta)) + spread**2 / 2)
        for _ in range(_GUESSES):
            try:
                contour = self._contour(guess)
                self._ends(contour, guess)
            except OutOfReach:
                break

            def upper(at: float, contour: Contour = contour) -> float:
                return self._ends(contour, at)[1] if at <= _LARGEST else 0.0

            def lower(at: float, contour: Contour = contour) -> float:
                return self._ends(contour, at)[0] if at <= _LARGEST else 0.0

            found = least_epsilon(upper, delta, guess)
            if not found <= _LARGEST:
                break
            high = min(high, found)
            low = max(low, least_epsilon(lower, delta, guess) * (1 - 1e-8))
            if abs(found - guess) < 1e-3 * guess:
                break
            guess = max(found, 1e-6)
        return low, high
