"""Tilted privacy losses as quadrature points on a line shifted into the complex plane.

The points L_j are complex with Im L_j >= 0, so each factor exp(i t L_j), t > 0, has an absolute
value of at most 1, and the sum of absolute weights times exp(-t Im L_j) bounds abs(psi(t)) and
falls with t.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.contour import phase_sums, power_sums, second_order_sums
from dpcal.accountants.losses.base import Complexes, OutOfReach, Points, PrivacyLoss, Reals
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.lattice import relevant, restricted_moments
from dpcal.accountants.losses.quadrature import complex_log1p

__all__ = ["Part", "QuadratureTilt", "Tilt", "TwoParts", "tilted"]

# A time, in 1 / nats, after which a law that has not decayed is taken to have a point mass.
_NEVER = 1e200
# Most steps of Newton's method for a time: many more than it needs, so that the loop ends.
_MOST_STEPS = 100
# Imaginary part, over the largest one, up to which a point is taken not to fall: what rounding
# leaves of a point mass.
_FLAT = 1e-14
# Absolute change of a characteristic function that merged points may make: below its rounding.
_MERGED_TOLERANCE = 1e-17
# Tilt that the first points serve.
_FIRST = 8.0


class Tilt(ABC):
    """The law ``exp(c L) P / M(c)`` of a loss, along the vertical line Re z = c."""

    mean: float
    """Mean of the loss under the tilted law."""
    points: int
    """Cost of one contour node, in complex multiplications."""
    amplification: float
    """Ratio of the sum of absolute values to the mass 1 that it represents: it multiplies rounding.

    A weight that is the exponential of large terms that cancel counts as many times as its error is
    larger than a unit.
    """
    mean_rounding: float = 0.0
    """Absolute error of the mean in units, beyond that of rounding it."""

    @abstractmethod
    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log psi(k step) for k = 0, ..., nodes - 1.

        Here psi(t) = E[exp(i t (L - mean))] under the tilted law.
        """

    @abstractmethod
    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return a proved upper bound on log abs(psi) over [t, ratio t], for each t > 0."""

    def sum_rounding(self, t: Reals) -> tuple[Reals, Reals, Reals]:
        """Return errors of psi(t) in units: absolute, times abs(psi - 1), and of terms that cancel.

        All rise with t, and the first two fall when divided by t^2.
        """
        return np.zeros_like(t), np.full_like(t, 8 * self.amplification), np.zeros_like(t)


class QuadratureTilt(Tilt):
    """A tilted law as weights at complex points.

    Parameters
    ----------
    values
        Points L_j, shape (m,), with Im L_j >= 0.
    weights
        Complex weights that sum to 1.
    moments
        Mean, variance and fourth central moment of L under the law.
    exponents
        Sizes of the terms whose sum is the logarithm of a weight, shape (m,): their rounding is
        relative to the weight.
    restricted
        Probability, variance and fourth central moment of the law restricted to some events,
        shape (k, 3), or a function that computes them later; the whole law when omitted.
    nearer
        Points and weights on a second line, closer to the real one, for bounds only.
    merged
        Total weight of points that were replaced by one at 0, and the largest of their values.
    """

    def __init__(
        self,
        values: Complexes,
        weights: Complexes,
        moments: Iterable[float],
        *,
        exponents: Reals | float,
        restricted: Callable[[], Reals] | Reals | None = None,
        nearer: tuple[Complexes, Complexes] | None = None,
        merged: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.mean, variance, fourth = (float(each) for each in moments)
        if restricted is None:
            restricted = np.array([[1.0, variance, fourth]]) if variance > 0 else np.zeros((0, 3))
        self._restricted, self.merged = restricted, merged
        # Rounding must not turn a point into one that grows with t.
        self._centered = values.real - self.mean + 1j * np.maximum(values.imag, 0.0)
        self._weights = weights
        self.exponents = np.broadcast_to(np.asarray(exponents, dtype=float), weights.shape)
        self.points = len(weights)
        self._sizes = np.abs(weights)
        self._nearer = None if nearer is None else (nearer[0].imag.copy(), np.abs(nearer[1]))
        # A rounded term has an error of a unit of its size; callers multiply by four.
        self.amplification = float((self._sizes * (1 + 0.25 * self.exponents)).sum())
        self.mean_rounding = 2 * float(
            (self._sizes * (1 + 0.5 * self.exponents)) @ np.abs(self._centered)
        )
        self._half_time: float | None = None
        # With a point mass, abs(psi)^2 stays above its square: the half-way point is between that
        # and 1. What rounding leaves of one falls too late to count.
        height = self._centered.imag
        plateau = float(self._sizes[height <= _FLAT * height.max(initial=0.0)].sum())
        self._log_half = 0.5 * math.log((1 + min(plateau, 1.0) ** 2) / 2)

    @property
    def restricted(self) -> Reals:
        """Probability, variance and fourth central moment of the law restricted to some events."""
        if callable(self._restricted):
            self._restricted = self._restricted()
        return self._restricted

    @property
    def nearer(self) -> tuple[Reals, Reals]:
        """Imaginary parts and absolute weights on the line that serves for bounds."""
        return self._nearer or (self._centered.imag, self._sizes)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log psi(k step), keeping the digits of psi - 1.

        Times at which merged points would matter are refused.
        """
        weight, value = self.merged
        if weight * (step * nodes * value) ** 2 > _MERGED_TOLERANCE:
            raise OutOfReach
        theta = step * self._centered
        sums = second_order_sums(theta, self._weights, 0, nodes)
        # The points are shifted by a mean that was summed over other points, on the real line. The
        # rest, i s in all, that these weights leave of it counts as far as it does not fall with
        # psi.
        left = 1j * np.arange(nodes) * (self._weights @ theta)
        return complex_log1p(sums * (1 - left))

    def sum_rounding(self, t: Reals) -> tuple[Reals, Reals, Reals]:
        """Return errors of psi(t) in units, for weights w off by w d each.

        As the points are shifted to a mean of 0, psi is off by the sum of w d (exp(i s) - 1 - i s
        psi), where s = t x. The line's mean accounts for i s psi, which leaves abs(exp(i s) - 1) at
        far points; near ones have s^2 / 2 and s times abs(psi - 1). Every term exp(i s) - 1 - i s
        is at most s^2 / 2, the size of the sum itself, and at most 2 + s: the terms i s of points
        with s > 1 cancel only in the sum.
        """
        errors = self._sizes * (8 + self.exponents)
        plain, relative, growth = phase_sums(np.abs(self._centered), self._sizes, errors, t)
        return plain, relative, 4 * growth

    def ratio(self, step: float, nodes: int, center: float) -> Complexes:
        """Return E[exp(i k step (L - center))]."""
        return power_sums(step * (self._centered + (self.mean - center)), self._weights, 0, nodes)

    def absolute(self, t: Reals) -> Reals:
        """Return the smaller sum abs(weight_j) exp(-t Im L_j), a bound on abs(psi(t))."""
        with np.errstate(under="ignore"):
            total = np.exp(-np.outer(t, self._centered.imag)) @ self._sizes
            if self._nearer is not None:
                decay, sizes = self._nearer
                total = np.minimum(total, np.exp(-np.outer(t, decay)) @ sizes)
        return np.asarray(total)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return the smallest of the bounds: fourth moments, doubling, absolute sum.

        With D the difference of two independent copies of L, 1 - abs(psi(t))^2 = E[1 - cos(t D)]
        is at least E[t^2 D^2 / 2 - t^4 D^4 / 24; both copies in S] for every event S, and at
        least a quarter of 1 - abs(psi(2 t))^2.
        """
        bound = self._moment_bound(t, ratio)
        half = self._time_of_half_power()
        halvings = np.maximum(0.0, np.ceil(np.log2(half / t)))
        drop = -math.expm1(2 * self._log_half)
        bound = np.minimum(bound, 0.5 * np.log1p(-drop * 0.25**halvings))
        late = t >= half
        if late.any():
            with np.errstate(divide="ignore"):
                bound[late] = np.minimum(bound[late], np.log(self.absolute(t[late])))
        return bound

    def _moment_bound(self, t: Reals, ratio: float) -> Reals:
        """Return the bound by moments, where it still falls on all of [t, ratio t]."""
        share, variance, fourth = self.restricted[:, :, None].transpose(1, 0, 2)
        total = fourth + 3 * variance**2
        falling = ratio * t <= np.sqrt(6 * variance / total)
        square = np.where(falling, t * t, 0.0)
        if not len(share):
            return np.zeros_like(t)
        drop = share**2 * square * (variance - square * total / 12)
        return np.asarray(0.5 * np.log1p(-drop.max(axis=0)))

    def _time_of_half_power(self) -> float:
        """Return a time from which abs(psi)^2 is at most half way to its limit, or infinity."""
        if self._half_time is None:
            decay, sizes = self.nearer
            half = math.exp(self._log_half) * (1 - 1e-12)
            low = 0.35 / max(float(sizes @ decay), 1 / _NEVER)
            self._half_time = _NEVER if self._left(_NEVER).sum() <= half else math.inf
            # The logarithm of the sum is convex: Newton's steps end before the root, so each is
            # made a twentieth longer.
            for _ in range(_MOST_STEPS if self._half_time == _NEVER else 0):
                left = self._left(low)
                total, slope = float(left.sum()), float(left @ decay)
                if total <= half:
                    self._half_time = low
                if total <= half or slope == 0:
                    break
                low = 1.05 * (low + total / slope * math.log(total / half))
        return self._half_time

    def _left(self, t: float) -> Reals:
        """Return each term of the absolute sum at time t; the sum bounds abs(psi(t))."""
        decay, sizes = self.nearer
        with np.errstate(under="ignore"):
            return np.asarray(sizes * np.exp(np.maximum(-t * decay, -700.0)))


class Part(ABC):
    """A positive measure that is a part of the law of a loss."""

    @abstractmethod
    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log mass and three moments of the tilted part at each c; shape (len(c), 4)."""

    @abstractmethod
    def tilt(self, c: float) -> QuadratureTilt:
        """Return the tilted part, normalised to mass 1."""

    def mass_rounding(self, c: float) -> float:
        """Return the rounding of the log mass, in units, beyond that of an accurate sum."""
        return 0.0


@dataclass(frozen=True)
class TwoParts:
    """A loss as a sum of two positive measures: a bulk of small losses, and jumps.

    Where no single contour serves a law, each of the two has one of its own.
    """

    bulk: Part
    jumps: Part


class GaussianTilt(Tilt):
    """The tilted law of a normal loss.

    Parameters
    ----------
    c, variance
        The tilt, and the variance > 0 of the loss.
    """

    points = 1
    amplification = 1.0

    def __init__(self, c: float, variance: float) -> None:
        self._variance = variance
        self.mean = variance * (c + 0.5)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return minus half the variance times t^2."""
        t = step * np.arange(nodes)
        return np.asarray(-0.5 * self._variance * t * t, dtype=complex)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return the same."""
        return np.asarray(-0.5 * self._variance * t * t)


@np.errstate(under="ignore")
def tilted(piece: PrivacyLoss | Part, c: float) -> Tilt:
    """Return a tilted loss, or part of one, along Re z = c.

    Raises
    ------
    OutOfReach
        If it has no density, or no points of affordable number.
    """
    if isinstance(piece, Part):
        return piece.tilt(c)
    if isinstance(piece, Gaussian):
        return GaussianTilt(c, 1.0 / piece.noise_multiplier**2)
    highest = 2.0 ** math.ceil(math.log2(max(_FIRST, c)))
    real, line, near = piece.points(highest), piece.line(highest), piece.nearer(highest)
    if real is None or line is None or not line.values.imag.any():
        raise OutOfReach
    log_mgf, mean, variance, fourth = piece.cumulants([c])[0]

    def weighed(points: Points) -> tuple[Complexes, Complexes, Reals]:
        sizes = (points.log_masses + c * points.values - log_mgf).astype(complex)
        values = points.values.astype(complex)
        kept = relevant(values, sizes, mean, variance, least=0.0)
        # Rounding of a value, and of its product with c.
        exponents = points.mass_sizes + np.abs(points.log_masses) + 2 * abs(log_mgf)
        exponents += abs(c) * (points.value_sizes + np.abs(points.values))
        return values[kept], np.exp(sizes[kept]), exponents[kept].astype(float)

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
            real.values.astype(float),
            real.log_reference.astype(float),
            1.0 + c,
            np.array([log_mgf, mean]),
        ),
        nearer=None if near is None else weighed(near)[:2],
        merged=(float(np.exp(sizes.real).sum()), line.reach),
    )
