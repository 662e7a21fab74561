"""On which lattices is a transform summed, and how finely? Chosen in floats.

A sampled Gaussian is summed on a shifted line, a random allocation on a ray.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> integrand = Integrand(SampledGaussian(0.01, 1.0, "remove"), tilts=(1.0, 3.0), digits=20.0)
>>> lattice = integrand.coarsest()
>>> lattice.points < 100, 0 < lattice.angle < 1.57
(True, True)
>>> rays = choose_rays(Allocation(1.0, 100, "add"), (4.0,), digits=20.0)
>>> 0 < rays.angle < 1.57, nats_of(rays, 1.0) > 20
(True, True)
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, loggamma

from dpcal._ext.question import mixture_log_weights
from dpcal.accountants.certificates.proofs import MAX_POINTS, Rays, ShiftedLattice
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, Reals
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["Decay", "Integrand", "choose_rays", "nats_of"]


# Angles of the shifted lines that are tried, in units of sigma^2: 1.3 times powers of 0.8, down to
# 1.3e-3; the bounds on the strip end at pi / 2.
_SHIFTS = 1.3 * 0.8 ** np.arange(32.0)
# Angles that are tried.
_ANGLES = np.pi / 2 - np.geomspace(0.06, 1.2, 14)
# Shares of a strip's width.
_SHARES = np.arange(1.0, 32.0) / 32
# Powers of 1 / L in bounds beyond the last point.
_POWERS = 2.0 ** (np.arange(-4.0, 24.0) / 2)
# Nats by which means are more accurate than sums of their powers need.
_SPARE = 6.0
# Most work: a few seconds.
_MOST_WORK = 1.5e8
# Work of a point, in products of a point and a node: functions, and products of polynomials.
_FUNCTIONS, _POLYNOMIALS = 150.0, 40.0


# -- shifted lines of a sampled Gaussian


class Integrand:
    """phi_sigma(x) w(x)^p on shifted lines, for one sampled Gaussian.

    Its transform is needed at the tilts, and ``digits`` > 0 is the logarithm of its accuracy.
    """

    def __init__(self, loss: SampledGaussian, tilts: tuple[float, ...], digits: float) -> None:
        self.loss, self.digits = loss, digits
        self.sigma = loss.noise_multiplier
        self.powers = [float(loss._power(c)) for c in tilts]
        values = loss.cumulants(tilts)[:, 0]
        # Two bounds on log M are known, by convexity and by the smallest w. These are their
        # excesses over log M.
        self.convex = self._excess([loss.log_mgf_bound(c) for c in tilts], values)
        self.flat = self._excess([c * loss.upper if c else 0.0 for c in tilts], values)

    @staticmethod
    def _excess(bounds: list[float], values: Reals) -> float:
        return float(max(0.0, (np.asarray(bounds) - values).max()))

    def _range(self, growth: float) -> tuple[float, float]:
        """Return the range in which phi w^p is not negligible, for its growth on the line."""
        reaches = [
            self.sigma * math.sqrt(2 * (self.digits + growth + min(excess, 1e300)))
            for excess in (self.convex, self.flat)
        ]
        low, high = min(0.0, *self.powers) - reaches[0], max(0.0, *self.powers) + reaches[0]
        return max(low, -reaches[1]), min(high, reaches[1])

    def lattice(self, angle: float) -> ShiftedLattice | None:
        """Return the coarsest lattice on a line that is accurate enough, unless it is too long."""
        shift = angle * self.sigma**2
        turned = min(0.0, *self.powers) * math.log(math.cos(angle))
        deviations = (angle * self.sigma) ** 2
        needed = self.digits + min(self.convex, self.flat) + 2 * deviations + turned
        step = 2 * math.pi * shift / needed
        low, high = self._range(deviations / 2 + turned)
        if not (high - low) / step < MAX_POINTS - 2:
            return None
        return ShiftedLattice(angle, step, math.floor(low / step), math.ceil(high / step))

    def coarsest(self) -> ShiftedLattice:
        """Return the lattice with the largest step, of all angles."""
        found = [lattice for angle in _SHIFTS if (lattice := self.lattice(float(angle)))]
        if not found:
            raise OutOfReach
        return max(found, key=lambda lattice: lattice.step)


class Decay:
    """Upper estimates of log abs(M(c + i s)), s >= t, on the shifted lines of all angles."""

    def __init__(self, integrand: Integrand, c: float) -> None:
        loss, sigma = integrand.loss, integrand.sigma
        power = float(loss._power(c))
        self.rows: list[tuple[ShiftedLattice, Reals, Reals]] = []
        for angle in _SHIFTS:
            lattice = integrand.lattice(float(angle))
            if lattice is None:
                break
            x = lattice.step * np.arange(lattice.first, lattice.last + 1.0)
            weights = mixture_log_weights(x, loss.sampling_probability, sigma, float(angle))
            scale = lattice.step / (sigma * math.sqrt(2 * math.pi))
            sizes = 0.5 * ((angle * sigma) ** 2 - (x / sigma) ** 2) + power * weights.real
            self.rows.append((lattice, sizes + math.log(scale), weights.imag))

    def best(self, t: float) -> tuple[float, ShiftedLattice]:
        """Return the smallest estimate and its lattice."""
        if not self.rows:
            raise OutOfReach
        values = [np.logaddexp.reduce(sizes - t * angles) for _, sizes, angles in self.rows]
        chosen = int(np.argmin(values))
        return float(values[chosen]), self.rows[chosen][0]


# -- rays of a random allocation


def nats_of(rays: Rays, noise_multiplier: float) -> float:
    """Return the nats to which the sums over x are accurate: their reach is chosen by them."""
    return (rays.reach * rays.step * noise_multiplier) ** 2 / 2


def choose_rays(
    loss: Allocation, tilts: tuple[float, ...], *, digits: float, far: float = 0.0, nodes: int = 1
) -> Rays:
    """Return the ray and lattices with nearly the least work, of the loss of adding a record.

    The transform is needed at tilts >= 0 on the real axis, where it is 1 at 0, and on the line
    through the middle one of them up to Im z = ``far``, at so many ``nodes``. ``digits`` is the
    logarithm of its accuracy, relative to that on the axis.
    """
    middle = tilts[len(tilts) // 2]
    line = (0.0, far / 2, far)
    at = [(c, u) for c in tilts if c > 0 for u in (line if c == middle else (0.0,))]
    b, u = (np.array(each) for each in zip(*at, strict=True))
    needed = _Needed(b, u, loss.cumulants(b)[:, 0], digits)
    found = [_rays(loss, needed, float(angle), nodes) for angle in _ANGLES]
    work, rays = min(found, key=lambda item: item[0])
    if rays is None or not work < _MOST_WORK:
        raise OutOfReach
    return rays


class _Needed:
    """The points b - i u at which F is needed, its log sizes there at u = 0, and its digits."""

    def __init__(self, b: Reals, u: Reals, sizes: Reals, digits: float) -> None:
        self.b, self.u, self.sizes, self.digits = b, u, sizes, digits
        self.log_gamma = np.real(loggamma(b - 1j * u))

    def scale(self, angle: float) -> Reals:
        """Return the log of what terms are divided by, to be relative to F at u = 0."""
        return np.asarray(self.log_gamma + self.u * angle + self.sizes)

    def step(self, angle: float) -> float:
        """Return the largest step of v."""
        steps = []
        for sign, widest in ((1, math.pi / 2 + angle), (-1, math.pi / 2 - angle)):
            y = widest * _SHARES
            away = (angle - sign * y)[:, None]
            sizes = gammaln(self.b) - self.log_gamma - self.u * away - self.b * np.log(np.cos(away))
            steps.append((2 * math.pi * y[:, None] / np.maximum(sizes + self.digits, 1.0)).max(0))
        return float(np.min(steps))


def _rays(loss: Allocation, needed: _Needed, angle: float, nodes: int) -> tuple[float, Rays | None]:
    """Return the work of a ray at this angle, and the ray; infinity if too much."""
    if needed.b.min() < 1e-3:
        return math.inf, None
    largest_t = 1 / loss.noise_multiplier
    step, goal = needed.step(angle), needed.scale(angle) - needed.digits
    low = float(((goal - np.log(1 / needed.b + step)) / needed.b).min())
    k = _POWERS[:, None]
    # The log of a bound on G at Re s = r, for each power, without its -k log r.
    bounds = _log_moment_bounds(loss)[:, None] + k * (np.log(k) - 1)
    falls = k - needed.b
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = bounds - k * math.log(math.cos(angle)) + np.log(1 / falls + step) - goal
        high = float(np.where(falls > 0, ends / falls, math.inf).min(0).max())
    if not low < high < math.inf:
        return math.inf, None
    nats = needed.digits + _SPARE + _lost(needed, angle, (low, high), loss)
    for group in loss.groups:
        t = 1 / group.noise_multiplier
        d = (math.pi / 2 - angle) / t * _SHARES
        dx = float((2 * math.pi * d / (nats + 1 + d * d / 2)).max())
        step = min(step, t * dx)
    reach = math.ceil(math.sqrt(2 * nats) * largest_t / step) + 2
    points = (high - low) / step
    if not max(points, reach) < MAX_POINTS / 4:
        return math.inf, None
    rays = Rays(0, angle, step, math.floor(low / step), math.ceil(high / step), reach)
    table = (points + 2 * reach) * len(loss.groups)
    work = points * (nodes + _FUNCTIONS) + table * _FUNCTIONS + _POLYNOMIALS * (table + 2 * reach)
    return work * max(1.0, nats / 90) ** 1.5, rays


def _log_moment_bounds(loss: Allocation) -> Reals:
    """Return bounds on log E L^-n for each of the powers."""
    drift = sum(chance / sigma**2 for sigma, _, chance in loss.groups)
    spread = sum(chance**2 / (m * sigma**2) for sigma, m, chance in loss.groups)
    return np.asarray(_POWERS * drift / 2 + _POWERS**2 * spread / 2)


def _lost(needed: _Needed, angle: float, ends: tuple[float, float], loss: Allocation) -> float:
    """Return the nats that errors of the means grow by in F.

    An error of a mean is multiplied by the other factors of the power, which fall with v as G does.
    """
    batches = sum(group.batches for group in loss.groups)
    largest = max(chance / m for _, m, chance in loss.groups)
    v = np.linspace(*ends, 65)
    log_r = v + math.log(math.cos(angle))
    powers = _POWERS[:, None]
    falls = powers * (np.log(powers) - 1 - log_r) + _log_moment_bounds(loss)[:, None]
    share = max(0.0, 1 - largest)
    grown = math.log(batches) + share * np.minimum(falls.min(0), 0.0)
    sizes = needed.b * v[:, None] + grown[:, None] - needed.scale(angle)
    return max(0.0, float(sizes.max()) + math.log(ends[1] - ends[0] + 1))
