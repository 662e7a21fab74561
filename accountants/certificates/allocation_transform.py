r"""The transform of an epoch of random allocation, enclosed along a line: rotated Gamma integrals.

L = sum of p_j Y_j, Y_j = exp(t_j X_j - t_j^2 / 2), X_j standard normal, is the likelihood ratio of
an epoch whose batch j, with t_j = 1 / sigma_j, holds the record with probability p_j. A record that
is added has M(z) = E L^-z. For z = c + i u, c > 0, u >= 0 and 0 < theta < pi / 2

    E L^-z = 1 / Gamma(z) * integral over v of exp(z (v + i theta)) G(v),
    G(v) = E exp(-s L) = product of E exp(-s p_j Y_j),  s = exp(v + i theta).

Both integrals are sums over lattices, v of step h and x of step h sigma. What the sums leave out:

* a step of v: at v + i y the integrand is at most that of the real line at s cos(y + theta), whose
  integral is Gamma(c) M(c) cos(y + theta)^-c exp(-u (y + theta)) (Trefethen and Weideman 2014,
  Theorem 5.1, for each side of the strip by itself);
* points v below the first, by abs(G) <= 1; points above the last, by exp(-r L) <= (n / (e r L))^n
  and E L^-n <= exp(n sum p_j t_j^2 / 2 + n^2 sum p_j^2 t_j^2 / 2) (arithmetic over geometric mean);
* a step of x: on a strip of half-width d < (pi / 2 - theta) / t, Re(s Y) >= 0, so that the error
  is at most 2 exp(d^2 / 2) / (exp(2 pi d / step) - 1); and points x farther than the reach from 0.

The projection of X on (1 / t_j)_j moves all t_j X_j alike, and is independent of what is left of L
without it: abs(M(c + i u)) is at most M(c) exp(-u^2 / (2 sum t_j^-2)).

The ray is chosen in doubles, for a number of digits. A bad one makes the errors large, and no
enclosure false.

>>> from dpcal.accountants.certificates import balls
>>> from dpcal.accountants.losses.allocation import Allocation
>>> with balls.workprec(128):
...     transform = AllocationTransform(Allocation(1.0, 2, "add"), digits=28.0)
...     value = transform.along_line(0.5, 3.0, 2)[1]
>>> print(value.real.str(9, radius=False), value.imag.str(9, radius=False))
-0.0250604105 0.105297223
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, loggamma

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.transforms import MAX_POINTS, Transform, sums_of_powers
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, Reals

__all__ = ["AllocationTransform"]

# Shares of the widest strips that are tried.
_SHARES = tuple(k / 32 for k in range(1, 32))
# Powers of L whose means bound what lies beyond the last point.
_POWERS = tuple(2.0 ** (k / 2) for k in range(-4, 24))
# Angles that are tried.
_ANGLES = tuple((np.pi / 2 - np.geomspace(0.06, 1.2, 14)).tolist())
# Nats by which entries of a table that are left out lie below the weights at its ends, and by which
# means are more accurate than sums of their powers need.
_SPARE, _SPARE_OF_MEANS = 20, 6.0
# Most work of a ray: a few seconds; and that of a point, in products of a point and a node:
# functions, and products of polynomials.
_MOST_WORK, _FUNCTIONS, _POLYNOMIALS = 1.5e8, 150.0, 40.0


class _Rays(NamedTuple):
    """The points exp(v - i angle) of a ray, v = first step, ..., last step, and the reach of x."""

    angle: float
    step: float
    first: int
    last: int
    reach: int


class AllocationTransform(Transform):
    """M of an epoch of random allocation when a record is added, to some digits."""

    def __init__(self, loss: Allocation, digits: float) -> None:
        arb = balls.arb
        self.loss, self.digits = loss, digits
        rows = [(arb(g.noise_multiplier), g.batches, arb(g.probability)) for g in loss.groups]
        # Doubles may add up to 1 but for their rounding.
        whole = sum((chance for *_, chance in rows), arb(0))
        self.groups = [(sigma, m, chance / whole) for sigma, m, chance in rows]
        # E L^-n is at most exp((n drift + n^2 spread) / 2).
        self.drift = sum((chance / sigma**2 for sigma, _, chance in self.groups), arb(0))
        self.spread = sum((p**2 / (m * sigma**2) for sigma, m, p in self.groups), arb(0))
        # The transform falls like that of a normal law of this variance.
        self.fall = 1 / sum((m * sigma**2 for sigma, m, _ in self.groups), arb(0))

    # -- G at the points

    def _heights(self, rays: _Rays) -> list[Ball]:
        """Return G at each point."""
        found = [balls.acb(1)] * (rays.last - rays.first + 1)
        for sigma, m, chance in self.groups:
            means = self._means(rays, sigma, chance / m)
            found = [a * mean**m for a, mean in zip(found, means, strict=True)]
        return found

    def _means(self, rays: _Rays, sigma: Ball, share: Ball) -> list[Ball]:
        """Enclose E exp(-s share Y) at each point, of a batch with this noise."""
        t, spacing = 1 / sigma, balls.arb(rays.step)
        step = spacing * sigma
        around = balls.within(self._error_of_mean(rays, t, step))
        # A table of exp(-s share Y), whose entries depend on v + t x alone.
        turned = (balls.acb(0, 1) * rays.angle).exp() * share
        # Entries far below the errors would slow down products of polynomials.
        most = (rays.reach * step) ** 2 / 2 + _SPARE
        negligible, table = balls.within((-most).exp()), []
        for k in range(rays.first - rays.reach, rays.last + rays.reach + 1):
            place = turned * (k * spacing - t**2 / 2).exp()
            table.append(negligible if place.real > most else (-place).exp())
        scale = step / (2 * balls.arb.pi()).sqrt()
        near = range(-rays.reach, rays.reach + 1)
        weights = [scale * (-((k * step) ** 2) / 2).exp() for k in near]
        product = balls.acb_poly(table) * balls.acb_poly(weights)
        count = rays.last - rays.first + 1
        return [product[2 * rays.reach + k] + around for k in range(count)]

    @staticmethod
    def _error_of_mean(rays: _Rays, t: Ball, step_of_x: Ball) -> Ball:
        """Bound the error of every sum over x, whose terms have absolute values below densities."""
        pi, best = balls.arb.pi(), balls.arb("inf")
        widest = balls.arb.min((pi / 2 - rays.angle) / t, 2 * pi / step_of_x)
        for share in _SHARES:
            d = widest * share
            error = 2 * (d * d / 2).exp() / (2 * pi * d / step_of_x).expm1()
            best = balls.arb.min(best, error)
        # Sums lie below integrals.
        reach = (rays.reach - 1) * step_of_x
        return best + (reach / balls.arb(2).sqrt()).erfc()

    # -- M along a line

    def along_line(self, c: float, h: float, nodes: int) -> list[Ball]:
        """Sum the terms of the rule, and add its errors."""
        arb, acb = balls.arb, balls.acb
        rays, at = self._rays(c, h, nodes), arb(c)
        step, angle = arb(rays.step), arb(rays.angle)
        places = [acb(k * step, angle) for k in range(rays.first, rays.last + 1)]
        terms = [
            step * height * (at * place).exp()
            for height, place in zip(self._heights(rays), places, strict=True)
        ]
        sums = sums_of_powers(terms, places, acb(0, h), nodes)
        ends, most = self._ends(rays, at), at.gamma()
        values: list[Ball] = []
        # M(c) is bounded by what is found at u = 0, whose error is a share of it.
        largest = arb("nan")
        for k, value in enumerate(sums):
            u = k * arb(h)
            inverse = acb(at, u).rgamma()
            size = abs(inverse)
            rule, rest = most * size * self._rule(rays, at, u), size * ends * (-u * angle).exp()
            if k == 0:
                largest = ((value * inverse).real + rest) / (1 - rule)
                largest = arb(largest.upper()) if rule < 1 else arb("nan")
            values.append(value * inverse + balls.within(rule * largest + rest))
        return values

    @staticmethod
    def _rule(rays: _Rays, c: Ball, u: Ball) -> Ball:
        """Bound the error of the step of v at c + i u, over Gamma(c) M(c) / abs(Gamma(c + i u))."""
        pi, total = balls.arb.pi(), balls.arb(0)
        for sign, widest in ((1, pi / 2 + rays.angle), (-1, pi / 2 - rays.angle)):
            best = balls.arb("inf")
            for share in _SHARES:
                y = widest * share
                away = rays.angle - sign * y
                size = (-u * away).exp() / away.cos() ** c
                best = balls.arb.min(best, size / (2 * pi * y / rays.step).expm1())
            total += best
        return total

    def _ends(self, rays: _Rays, c: Ball) -> Ball:
        """Bound the sums of absolute values at u = 0 over all points left out on either side."""
        arb, step = balls.arb, balls.arb(rays.step)
        low, high = (rays.first - 1) * step, (rays.last + 1) * step
        below = step * (c * low).exp() / (1 - (-c * step).exp())
        best = arb("inf")
        for power in _POWERS:
            n = arb(power)
            falls = n - c
            if not falls > 0:
                continue
            size = (n * self.drift + n * n * self.spread) / 2 + n * (n.log() - 1)
            size = (size - falls * high).exp() / arb(rays.angle).cos() ** n
            best = arb.min(best, size * step / (1 - (-falls * step).exp()))
        return below + best

    def bound_beyond(self, c: float, t: Ball) -> Ball:
        """Return M(c) times the transform of a projection of X, which falls."""
        return self.at(c) * (-t * t * self.fall / 2).exp()

    def log_beyond(self, c: float, t: float) -> float:
        """Return its logarithm."""
        return float(self.loss.cumulants([c])[0, 0]) - self.loss.rate_of_decay * t * t

    # -- the ray, in doubles

    def _rays(self, c: float, h: float, nodes: int) -> _Rays:
        return _chosen(self.loss, c, h * nodes if nodes > 1 else 0.0, nodes, self.digits)

    def size(self, c: float, h: float, nodes: int) -> tuple[float, float]:
        """Return the points of the ray, and the functions of a point with its tables."""
        rays = self._rays(c, h, nodes)
        points = rays.last - rays.first + 1
        table = (points + 2 * rays.reach) * len(self.groups)
        return points, 12.0 + 12 * (table + rays.reach) / points

    def nats_lost(self, c: float, h: float, nodes: int) -> float:
        """Return the nats to which the sums over x are accurate, beyond those of the transform."""
        rays = self._rays(c, h, nodes)
        return (rays.reach * rays.step * self.loss.noise_multiplier) ** 2 / 2 - self.digits


@lru_cache(maxsize=64)
def _chosen(loss: Allocation, c: float, far: float, nodes: int, digits: float) -> _Rays:
    """Return the ray and lattices with nearly the least work.

    The transform is needed at so many ``nodes`` from c to c + i far. ``digits`` is the logarithm of
    its accuracy, relative to that on the axis.
    """
    u = np.array([0.0, far / 2, far]) if far else np.zeros(1)
    needed = _Needed(c, u, float(loss.cumulants([c])[0, 0]), digits)
    found = [_rays(loss, needed, angle, nodes) for angle in _ANGLES]
    work, rays = min(found, key=lambda item: item[0])
    if rays is None or not work < _MOST_WORK:
        raise OutOfReach
    return rays


class _Needed:
    """The points c - i u at which F is needed, its log size there at u = 0, and its digits."""

    def __init__(self, c: float, u: Reals, size: float, digits: float) -> None:
        self.c, self.u, self.size, self.digits = c, u, size, digits
        self.log_gamma = np.real(loggamma(c - 1j * u))

    def scale(self, angle: float) -> Reals:
        """Return the log of what terms are divided by, to be relative to F at u = 0."""
        return np.asarray(self.log_gamma + self.u * angle + self.size)

    def step(self, angle: float) -> float:
        """Return the largest step of v."""
        steps, shares = [], np.array(_SHARES)[:, None]
        for sign, widest in ((1, math.pi / 2 + angle), (-1, math.pi / 2 - angle)):
            y = widest * shares
            away = angle - sign * y
            sizes = gammaln(self.c) - self.log_gamma - self.u * away - self.c * np.log(np.cos(away))
            steps.append((2 * math.pi * y / np.maximum(sizes + self.digits, 1.0)).max(0))
        return float(np.min(steps))


def _rays(
    loss: Allocation, needed: _Needed, angle: float, nodes: int
) -> tuple[float, _Rays | None]:
    """Return the work of a ray at this angle, and the ray; infinity if too much."""
    c = needed.c
    if c < 1e-3:
        return math.inf, None
    step, goal = needed.step(angle), needed.scale(angle) - needed.digits
    low = float(((goal - math.log(1 / c + step)) / c).min())
    k = np.array(_POWERS)[:, None]
    # The log of a bound on G at Re s = r, for each power, without its -k log r.
    bounds = _log_moment_bounds(loss)[:, None] + k * (np.log(k) - 1)
    falls = k - c
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = bounds - k * math.log(math.cos(angle)) + np.log(1 / falls + step) - goal
        high = float(np.where(falls > 0, ends / falls, math.inf).min(0).max())
    if not low < high < math.inf:
        return math.inf, None
    nats = needed.digits + _SPARE_OF_MEANS + _lost(needed, angle, (low, high), loss)
    for group in loss.groups:
        t = 1 / group.noise_multiplier
        d = (math.pi / 2 - angle) / t * np.array(_SHARES)
        step = min(step, t * float((2 * math.pi * d / (nats + 1 + d * d / 2)).max()))
    reach = math.ceil(math.sqrt(2 * nats) / (loss.noise_multiplier * step)) + 2
    points = (high - low) / step
    if not max(points, reach) < MAX_POINTS / 4:
        return math.inf, None
    rays = _Rays(angle, step, math.floor(low / step), math.ceil(high / step), reach)
    table = (points + 2 * reach) * len(loss.groups)
    work = points * (nodes + _FUNCTIONS) + table * _FUNCTIONS + _POLYNOMIALS * (table + 2 * reach)
    return work * max(1.0, nats / 90) ** 1.5, rays


def _log_moment_bounds(loss: Allocation) -> Reals:
    """Return bounds on log E L^-n for each of the powers."""
    drift = sum(chance / sigma**2 for sigma, _, chance in loss.groups)
    spread = sum(chance**2 / (m * sigma**2) for sigma, m, chance in loss.groups)
    powers = np.array(_POWERS)
    return np.asarray(powers * drift / 2 + powers**2 * spread / 2)


def _lost(needed: _Needed, angle: float, ends: tuple[float, float], loss: Allocation) -> float:
    """Return the nats that errors of the means grow by in F.

    An error of a mean is multiplied by the other factors of the power, which fall with v as G does.
    """
    batches = sum(group.batches for group in loss.groups)
    largest = max(chance / m for _, m, chance in loss.groups)
    v = np.linspace(*ends, 65)
    log_r = v + math.log(math.cos(angle))
    powers = np.array(_POWERS)[:, None]
    falls = powers * (np.log(powers) - 1 - log_r) + _log_moment_bounds(loss)[:, None]
    share = max(0.0, 1 - largest)
    grown = math.log(batches) + share * np.minimum(falls.min(0), 0.0)
    sizes = needed.c * v[:, None] + grown[:, None] - needed.scale(angle)
    return max(0.0, float(sizes.max()) + math.log(ends[1] - ends[0] + 1))
