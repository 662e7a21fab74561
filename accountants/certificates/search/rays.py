"""On which ray is the transform of a random allocation summed, and how finely? Chosen in floats.

>>> from dpcal.accountants.losses.allocation import Allocation, MixedAllocation
>>> rays = choose_rays(Allocation(1.0, 100, "remove"), (4.0,), digits=20.0)
>>> rays.order > 5, 0 < rays.angle < 1.57, nats_of(rays, 1.0) > 20
(True, True, True)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, loggamma

from dpcal.accountants.certificates.proofs import MAX_ORDER, MAX_POINTS, Rays
from dpcal.accountants.losses.allocation import Allocation, MixedAllocation
from dpcal.accountants.losses.allocation_rays import log_whole_moment
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["choose_rays", "largest_power", "nats_of"]

Reals = NDArray[np.float64]

# Largest powers of the likelihood ratio for which an order is chosen, of one number of batches and
# of random ones, each of which takes coefficients of its own.
_LARGEST_POWER, _LARGEST_OF_MANY = 90.0, 45.0
# Orders above the least one, and angles, that are tried.
_HIGHER = (0, 1, 2, 4, 8)
_ANGLES = np.pi / 2 - np.geomspace(0.06, 1.2, 14)
# Shares of a strip's width.
_SHARES = np.arange(1.0, 32.0) / 32
# Powers of 1 / L in bounds beyond the last point.
_POWERS = 2.0 ** (np.arange(-4.0, 24.0) / 2)
# Nats by which means are more accurate than sums of their powers need.
_SPARE = 6.0
# Most work: a few seconds.
_MOST_WORK = 1.5e8
# Work of a point, in products of a point and a node: functions, and products of polynomials; that
# of each order beside them.
_FUNCTIONS, _POLYNOMIALS, _ORDERS = 150.0, 40.0, 5.0


def largest_power(loss: Allocation) -> float:
    """Return the largest power of the likelihood ratio for which an order is chosen."""
    return _LARGEST_OF_MANY if isinstance(loss, MixedAllocation) else _LARGEST_POWER


def nats_of(rays: Rays, noise_multiplier: float) -> float:
    """Return the nats to which the sums over x are accurate: their reach is chosen by them."""
    return (rays.reach * rays.step * noise_multiplier) ** 2 / 2


def choose_rays(
    loss: Allocation, tilts: tuple[float, ...], *, digits: float, far: float = 0.0, nodes: int = 1
) -> Rays:
    """Return the ray and lattices with nearly the least work.

    Parameters
    ----------
    loss
        The loss.
    tilts
        Tilts >= 0 at which the transform is needed on the real axis; at 0 it is 1.
    digits
        Logarithm of its accuracy, relative to that on the axis.
    far, nodes
        On the line through the middle one of these tilts, the largest Im z, and the number of
        nodes.

    Raises
    ------
    OutOfReach
        If no lattice of affordable size exists.
    """
    middle = tilts[len(tilts) // 2]
    line = (0.0, far / 2, far)
    at = [(c, u) for c in tilts if c > 0 for u in (line if c == middle else (0.0,))]
    powers = np.array([loss.power(c) for c, _ in at])
    u = np.array([u for _, u in at])
    sizes = np.array([loss.cumulants([c])[0, 0] for c, _ in at])
    least = max(0, math.floor(powers.max()) + 1)
    # Where batches differ, the order is 0.
    alike = len(loss.groups) == 1
    orders = [least + more for more in _HIGHER] if alike else [0] * (least == 0)
    found = [
        _rays(loss, _Needed(order - powers, u, sizes, digits), order, float(angle), nodes)
        for order in orders
        for angle in _ANGLES
    ]
    work, rays = min(found, key=lambda item: item[0], default=(math.inf, None))
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


def _rays(
    loss: Allocation, needed: _Needed, order: int, angle: float, nodes: int
) -> tuple[float, Rays | None]:
    """Return the work of a ray at this order and angle, and the ray; infinity if too much."""
    if order > MAX_ORDER or needed.b.min() < 1e-3:
        return math.inf, None
    largest_t = 1 / loss.noise_multiplier
    try:
        whole = log_whole_moment(largest_t, loss.batches, order) if order else 0.0
    except OutOfReach:
        return math.inf, None
    step, goal = needed.step(angle), needed.scale(angle) - needed.digits
    low = float(((goal - whole - np.log(1 / needed.b + step)) / needed.b).min())
    k = (order + _POWERS)[:, None]
    # The log of a bound on G at Re s = r, for each power, without its -k log r.
    bounds = _log_moment_bounds(loss)[:, None] + k * (np.log(k) - 1)
    falls = k - needed.b
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = bounds - k * math.log(math.cos(angle)) + np.log(1 / falls + step) - goal
        high = float(np.where(falls > 0, ends / falls, math.inf).min(0).max())
    if not low < high < math.inf:
        return math.inf, None
    nats = needed.digits + _SPARE + _lost(needed, angle, (low, high), (loss, order), whole)
    for group in loss.groups:
        t = 1 / group.noise_multiplier
        d = (math.pi / 2 - angle) / t * _SHARES
        dx = float((2 * math.pi * d / (nats + 1 + d * d / 2)).max())
        step = min(step, t * dx)
    reach = math.ceil(math.sqrt(2 * nats) * largest_t / step) + 2
    points = (high - low) / step
    if not max(points, reach) < MAX_POINTS / 4:
        return math.inf, None
    rays = Rays(order, angle, step, math.floor(low / step), math.ceil(high / step), reach)
    table = (points + 2 * reach) * len(loss.groups) + order * largest_t**2 / step
    work = points * (nodes + _FUNCTIONS + _ORDERS * order * order) + table * _FUNCTIONS
    work += (order + 1) * _POLYNOMIALS * (table + 2 * reach)
    return work * max(1.0, nats / 90) ** 1.5, rays


def _log_moment_bounds(loss: Allocation) -> Reals:
    """Return bounds on log E L^-n for each of the powers."""
    drift = sum(chance / sigma**2 for sigma, _, chance in loss.groups)
    spread = sum(chance**2 / (m * sigma**2) for sigma, m, chance in loss.groups)
    return np.asarray(_POWERS * drift / 2 + _POWERS**2 * spread / 2)


def _lost(
    needed: _Needed,
    angle: float,
    ends: tuple[float, float],
    law: tuple[Allocation, int],
    whole: float,
) -> float:
    """Return the nats that errors of the means grow by in F.

    An error of a mean is multiplied by the other factors of the power, of which all but ``order``
    fall with v as G does at order 0.
    """
    loss, order = law
    batches = sum(group.batches for group in loss.groups)
    largest = max(chance / m for _, m, chance in loss.groups)
    v = np.linspace(*ends, 65)
    log_r = v + math.log(math.cos(angle))
    powers = _POWERS[:, None]
    falls = powers * (np.log(powers) - 1 - log_r) + _log_moment_bounds(loss)[:, None]
    share = max(0.0, 1 - (1 + order) * largest)
    grown = whole + math.log(batches) + share * np.minimum(falls.min(0), 0.0)
    sizes = needed.b * v[:, None] + grown[:, None] - needed.scale(angle)
    return max(0.0, float(sizes.max()) + math.log(ends[1] - ends[0] + 1))
