r"""The Gaussian mechanism on fixed-size batches: one pair that dominates a step both ways.

A batch holds m of n records, drawn without replacement, and one record is replaced. With g = m / n
and a gap mu between the sums that two records can produce (in standard deviations of the noise),
every ordered pair of neighbors satisfies, for alpha >= 1,

    H_alpha <= g H_{1 + (alpha - 1) / g}(N(mu, 1) || N(0, 1)) =: h(alpha)

(Balle, Barthe and Gaboardi 2018, Theorem 9), and so, exchanging the two, ``H_alpha <= 1 - alpha +
alpha h(1 / alpha)`` for alpha < 1. The two bounds together are convex in alpha, hence the profile
of one pair (Zhu, Dong and Wang 2022): the sampled pair above alpha = 1, its mirror image below, and
a point mass at loss 0, where the two meet at an angle. In trade-off functions this is the
subsampling theorem of Dong, Roth and Su (2022). Which of the sampled pair's two directions is worse
depends on alpha, and so on the output: composing each direction by itself and taking the larger
total gives too small a loss.

>>> loss = FixedBatchGaussian(sampling_probability=0.01, noise_multiplier=1.0)
>>> print(f"{loss.cumulants([0.0])[0, 1]:.6e}")
1.400097e-04
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.losses.base import OutOfReach, Points
from dpcal.accountants.losses.below_cut import SHIFT, Cut, NormalTail
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.lattice import MOST_POINTS, RANGE, step_within
from dpcal.accountants.losses.quadrature import argument_sizes, log_mixture, unit_of
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

_GROWTH = 1.5


@dataclass(frozen=True)
class HalfLine:
    """Points for integrals over y > 0: the trapezoid rule in v on a curve y(v).

    The curve y = scale (log(1 + e^v) + i slope s(v)), s(v) = e^v / (1 + e^v), has dense points at
    the end y = 0, leaves it at an angle, and runs parallel to the real axis further out. The image
    of the strip abs(Im v) <= strip, on which the rule's error is bounded, stays within angles
    atan(slope) +- strip at the end, and scale (slope +- strip) from the real axis.

    Parameters
    ----------
    slope
        0 for the real axis; positive for a line into the upper half-plane.
    strip
        Half-width of the strip, below 1.
    first
        Start of v.
    """

    slope: float
    strip: float
    first: float

    def points(
        self, scale: float, high: float, growth: float = _GROWTH
    ) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Return y, the weights dy, and the weight per unit of scale left out before ``first``.

        Parameters
        ----------
        scale
            Unit of y.
        high
            Largest real part of y.
        growth
            Log of a bound on how much an integrand grows between the points and the strip's edge.
        """
        step = step_within(self.strip, growth)
        last = high / scale + 1.0
        count = (last - self.first) / step
        if not count < MOST_POINTS:
            raise OutOfReach
        v = self.first + step * np.arange(math.ceil(count) + 1, dtype=np.longdouble)
        share = 1 / (1 + np.exp(-v))
        y, weights = scale * np.logaddexp(0.0, v), step * scale * share
        if self.slope:
            y = y + 1j * (scale * self.slope * share)
            weights = weights * (1 + 1j * self.slope * (1 - share))
        left_out = step * math.exp(self.first) / math.expm1(step)
        return y, weights, left_out


# Real tilts, and lines on which every exp(i t L) shrinks; on both strips abs(w) >= 1.
_REAL = HalfLine(slope=0.0, strip=0.7, first=-14.5)
_SHIFTED = HalfLine(slope=0.6, strip=0.42, first=-23.0)


@dataclass(frozen=True)
class FixedBatchGaussian(NormalTail):
    """A Gaussian on a batch of fixed size without replacement, when a record is replaced.

    With w(x) = 1 - q + q exp(mu x - mu^2 / 2) and x standard normal, the law of the loss under P
    consists of log w(x), x > mu / 2, with density phi w; of -log w(x), x > mu / 2, with density
    phi; and of a point mass (1 - q)(1 - 2 Phi(-mu / 2)) at 0. The law is its own mirror image, so
    that one direction serves both.

    Parameters
    ----------
    sampling_probability
        q in (0, 1): the batch size over the number of records.
    noise_multiplier
        1 / mu > 0: standard deviation of the noise over the largest change of the sum when one
        record of the batch is exchanged for another.
    """

    sampling_probability: float
    noise_multiplier: float

    @property
    def _mu(self) -> float:
        return 1.0 / self.noise_multiplier

    @property
    def _distance(self) -> float:
        """Total variation distance of N(mu, 1) and N(0, 1)."""
        return math.erf(self._mu / math.sqrt(8))

    @property
    def log_unaffected(self) -> float:
        """Log of one minus the total variation distance of the pair."""
        return math.log1p(-self.sampling_probability * self._distance)

    def log_mgf_bound(self, c: float) -> float:
        """Return log(1 - q + q (exp((c^2 + c) mu^2 / 2) + Phi(-mu / 2))).

        By convexity w^(1 + c) <= 1 - q + q exp((1 + c) u), and w >= 1 on the half-line.
        """
        q, exponent = self.sampling_probability, (c * c + c) * self._mu**2 / 2
        rest = (1 - self._distance) / 2
        if exponent < 700:
            return math.log1p(q * (math.expm1(exponent) + rest))
        return exponent + math.log(q + (1 - q + q * rest) * math.exp(-exponent))

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form of a single use, for epsilon >= 0, from the sampled pair."""
        return self._sampled.log_delta(epsilon)

    @property
    def opposite(self) -> FixedBatchGaussian:
        """The same loss: its law is its own mirror image."""
        return self

    @property
    def mixture(self) -> GaussianMixtures:
        """The sampled pair, which has the same tail."""
        return self._sampled.mixture

    @property
    def _sampled(self) -> SampledGaussian:
        return SampledGaussian(self.sampling_probability, self.noise_multiplier, "remove")

    @property
    def starts(self) -> float:  # type: ignore[override]
        """Where the gains start, on the axis of the noise."""
        return self._mu / 2

    def place_of(self, level: float) -> float:
        """Return where the loss is a number > 0, on the axis of the noise."""
        return self._sampled.place_of(level)

    def below_cut(self, cut: Cut, highest: float, height: float) -> Points:
        """Return points on the real line, or for a height > 0 on a curve, that lie below a cut."""
        return self._on(_SHIFTED if height else _REAL, highest, cut)

    def _on(self, rule: HalfLine, highest: float, cut: Cut | None = None) -> Points:
        """Return gains on a curve, their mirror image, and the loss 0 twice.

        Loss 0 has its own mass; the next one takes the mass of both curves next to it.
        """
        q, mu = self.sampling_probability, self._mu
        # The largest scale for which mu Im y stays below about 1 and Im y below 1.2.
        reach, end, growth = min((1.0 if rule.slope else 1.2) / mu, 1.2), (1 + highest) * mu, 0.0
        if cut is not None:
            reach, growth = min(reach, SHIFT * cut.width), SHIFT**2 / 2
            end = max(0.0, cut.end(highest) - RANGE)
        scale = reach / (rule.slope + rule.strip)
        y, weights, left_out = rule.points(scale, RANGE + end, _GROWTH + growth)
        gains = log_mixture(q, y / self.noise_multiplier)
        moved = y + np.longdouble(0.5) / self.noise_multiplier
        base = np.log(weights) - 0.5 * moved**2 - 0.5 * np.log(2 * np.longdouble(math.pi))
        rest = 2 * math.exp(-(mu**2) / 8) / math.sqrt(2 * math.pi) * scale * left_out
        # A mass below that range is far below the rounding of all others.
        atoms = np.log(np.maximum([(1 - q) * self._distance, rest], 1e-300))
        unit = unit_of(gains)
        sizes = np.abs(gains) + unit * argument_sizes(q, mu * y, gains)
        terms = unit * (np.abs(base) + np.abs(moved) ** 2)
        above = Points(gains, base + gains, sizes, terms + unit * sizes)
        above = above if cut is None else cut.kept(above, moved)
        return Points(
            np.concatenate([-gains[::-1].conj(), [0.0, 0.0], gains]),
            np.concatenate([base[::-1].conj(), atoms, above.log_masses]),
            np.concatenate([sizes[::-1], [0.0, 0.0], sizes]),
            np.concatenate([terms[::-1], np.abs(atoms), above.mass_sizes]),
            merged=(len(y) + 1,),
            reach=float(np.abs(gains[0])),
        )

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return points on the real line, or on curves that leave the loss 0 at an angle."""
        return self._on(_SHIFTED if shifted else _REAL, highest)
