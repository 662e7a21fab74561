r"""What is E (K - Lambda)_+ of random allocations? A contour in ball arithmetic.

Lambda is the product over epochs of L, the mean of Y_j = exp(t X_j - t^2 / 2) over the batches, and
K = exp(epsilon). With F(q) = E Lambda^q, b > 0 and q = -b + i u,

    E (K - Lambda)_+ = 1 / pi * integral over u > 0 of Re(K^(1 - q) F(q) / (q (q - 1))) du,
    E L^q = 1 / Gamma(b - i u) * integral over v of exp((b - i u)(v - i theta)) G(exp(v - i theta)),
    G(s) = E exp(-s L) = (E exp(-s Y / M))^M.

Where batches differ, L is the mean of Y_j weighted by probabilities p_j, and G(s) the product of
E exp(-s p_j Y_j).

E (Lambda - K)_+ is this less K - 1: of narrow losses at a small delta that takes more digits than
doubles have, whereas contours of E (Lambda - K)_+ itself are long, or do not exist: powers of L are
as large as those of one batch that is drawn again and again. All rounding is that of balls
(python-flint). What the sums leave out:

* aliases of the step h of u, P = 2 pi / h: exactly sums over j of exp(-(1 + b) j P) E (K exp(j P) -
  Lambda)_+, where E (K - Lambda)_+ <= K^(1 + p) E Lambda^-p for each p >= 0;
* nodes beyond the last one: abs(F(-b + i u)) <= F(-b) exp(-rate u^2)
  (:attr:`~dpcal.accountants.losses.allocation.Allocation.rate_of_decay`);
* a step of v: at v + i y the integrand is at most that of the real line at s cos(y - theta)
  (Trefethen and Weideman 2014, Theorem 5.1, for each side of the strip), whose bound is convex in u
  on a logarithmic scale;
* ends of v: G(x) <= (k / (e x))^k E L^-k, and L is at least the geometric mean, so that E L^-k <=
  exp(k sum p_j t_j^2 / 2 + k^2 sum p_j^2 t_j^2 / 2);
* step and ends of x: on a strip of half-width d < (pi / 2 - theta) / t the integrand is at most the
  density times exp(d^2 / 2).

>>> from dpcal.accountants.losses.allocation import Allocation, Group
>>> put = Put(((Allocation(1.0, 100, "add"), 10),), most=2.0, nats=40.0, seconds=1.0)
>>> low, high = put.removed(1.9642696130)
>>> print(f"{low:.9e}", high - low < 1e-15)
1.000000000e-06 True
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from dpcal._precision import workprec
from dpcal.accountants.inversion.put_rays import Ball, Ray
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import next_up

__all__ = ["Epochs", "Put"]

# Losses of adding a record, and how often each is composed.
Epochs = tuple[tuple[Allocation, int], ...]

Reals = NDArray[np.float64]

# Negative real parts of lines over that of the first, which is so many reciprocals of the loss'
# standard deviation, or more for many nats: nodes are fewest where the peak of the integrand is
# about as wide as its distance from the pole. Far from the pole, many standard deviations of
# epsilon take more digits, and the last node is far.
_LINES, _LEAST_FIRST, _NATS = (1.0, 0.5, 0.25, 0.125), 2.0, 25.0
# Seconds below which no further line is tried.
_CHEAP = 0.1
# Nats that cancel at the ends of a block of nodes, which one ray serves; seconds from which these
# others are tried.
_CANCELLED, _LONG = 30.0, 0.3
_OTHERS = 18.0, 24.0, 36.0, 45.0, 60.0, 120.0, 240.0, 480.0
# Tilts, over b, of bounds on aliases.
_TILTS = np.array([1.2, 1.5, 2.0, 3.0, 5.0, 8.0])
# Least b: the sums over v are long below it.
_LEAST_LINE = 1.0
# Relative error of a group's probability: those of alike batches are added, and divided by all.
_ROUNDING = 2.0**-51
# Most nodes.
_MOST_NODES = 5000


class Put:
    """The contour of E (K - Lambda)_+ for random allocations, good at many K = exp(epsilon).

    Parameters
    ----------
    parts
        Losses of adding a record, and how often each is composed.
    most
        Largest epsilon for which errors are negligible.
    nats
        Negative logarithm of the absolute error.
    seconds
        About the most time that it may take.

    Attributes
    ----------
    most, nats
        As given.

    Raises
    ------
    OutOfReach
        If the contour is too long.
    """

    def __init__(self, parts: Epochs, most: float, nats: float, seconds: float) -> None:
        self._parts, self.most, self.nats = parts, most, nats
        deviation = math.sqrt(sum(count * loss.variance for loss, count in parts))
        costs: dict[float, float] = {}
        first = max(_LEAST_FIRST, nats / _NATS) / deviation
        for line in _LINES:
            b = max(line * first, _LEAST_LINE)
            with contextlib.suppress(OutOfReach):
                costs[b] = self._choose_line(b, most, nats)
            cheapest = min(costs.values(), default=math.inf)
            if cheapest < max(_CHEAP, 0.9 * costs.get(b, cheapest)):
                break
        if cheapest > seconds:
            raise OutOfReach
        best = min(costs, key=lambda b: costs[b])
        if best != b:
            self._choose_line(best, most, nats)
        with workprec(self._bits):
            self._terms = self._integrand()

    # -- along the line

    def _choose_line(self, b: float, most: float, nats: float) -> float:
        """Choose the line at -b, its nodes and rays; return about the seconds that they take."""
        self._b = b
        self._log_f = _log_moment(self._parts, b)
        # The size of the integrand, and nats of all errors relative to it.
        size = most * (1 + b) + self._log_f - math.log1p(b)
        digits = nats + max(0.0, size) + math.log(sum(count for _, count in self._parts))
        self._choose_nodes(most, nats, size)
        self._rays = [
            [self._rays_of(one, digits) for one, _ in loss.mixed] for loss, _ in self._parts
        ]
        rays = [ray for each in self._rays for law in each for ray in law]
        self._bits = max([int(digits / math.log(2)) + 96, *(ray.bits for ray in rays)])
        return _seconds(rays)

    def _choose_nodes(self, most: float, nats: float, size: float) -> None:
        b = self._b
        self._tilts = [(p, _log_moment(self._parts, p)) for p in b * _TILTS]
        period = min(((1 + p) * most + log_f + nats) / (p - b) for p, log_f in self._tilts)
        self._h = 2 * math.pi / max((most + nats) / b, period)
        self._rate = sum(count * loss.rate_of_decay for loss, count in self._parts)
        last = math.sqrt(max(size + nats, 1.0) / self._rate)
        self._nodes = math.ceil(last / self._h) + 1
        if self._nodes > _MOST_NODES:
            raise OutOfReach

    def _rays_of(self, loss: Allocation, digits: float) -> list[Ray]:
        """Return rays for all nodes, each for a block of them; none where F has a closed form."""
        if _is_one_batch(loss):
            return []
        u = self._h * np.arange(self._nodes)
        log_f = _log_moment(((loss, 1),), self._b)

        def found(cancelled: float) -> list[Ray]:
            rays, start = [], 0
            while start < self._nodes:
                last = u[start] + 2 * math.sqrt(2 * cancelled * (self._b + u[start] ** 2 / self._b))
                end = min(int(np.searchsorted(u, last, side="right")), self._nodes)
                rays.append(Ray(loss, self._b, self._h, range(start, end), log_f, digits))
                start = end
            return rays

        rays = found(_CANCELLED)
        if _seconds(rays) < _LONG:
            return rays
        return min([rays, *map(found, _OTHERS)], key=_seconds)

    def _integrand(self) -> list[Ball]:
        """Return F(q) / (q (q - 1)) at the nodes, of which the first counts half."""
        q = [acb(-self._b, arb(self._h) * k) for k in range(self._nodes)]
        terms = [1 / (each * (each - 1)) for each in q]
        for each, (loss, count) in zip(self._rays, self._parts, strict=True):
            means = [acb(0)] * self._nodes
            for rays, (law, chance) in zip(each, loss.mixed, strict=True):
                values = [value for ray in rays for value in ray.values()]
                if _is_one_batch(law):
                    values = [(x * (x - 1) / (2 * arb(law.noise_multiplier) ** 2)).exp() for x in q]
                means = [x + y * chance for x, y in zip(means, values, strict=True)]
            terms = [x * mean**count for x, mean in zip(terms, means, strict=True)]
        terms[0] /= 2
        return terms

    def _mass(self) -> Ball:
        """Return the sum of all probabilities, which those of mixtures give up to rounding."""
        total = arb(1)
        for loss, count in self._parts:
            total *= sum(arb(chance) for _, chance in loss.mixed) ** count
        return total

    def _mean(self) -> Ball:
        """Return the mean of Lambda, which probabilities of batches give up to rounding."""
        total = self._mass()
        for loss, count in self._parts:
            total *= sum((arb(group.probability) for group in loss.groups), arb(0)) ** count
        return total

    # -- answers

    def removed(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta of removing a record, E (Lambda - K)_+."""
        return self._outward(epsilon, lambda at: self._bounds(at, lambda put, k: put - (k - 1)))

    def added(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta of adding a record, E (1 - Lambda exp(epsilon))_+."""
        return self._outward(epsilon, lambda at: self._bounds(-at, lambda put, k: put / k))

    def _outward(
        self, epsilon: float, bounds_at: Callable[[float], tuple[float, float]]
    ) -> tuple[float, float]:
        """Return bounds that hold for probabilities of batches with a rounding.

        Lambda is then within a factor of exp(+-off) of itself.
        """
        off = _ROUNDING * sum(count for loss, count in self._parts if len(loss.groups) > 1)
        if not off:
            return bounds_at(epsilon)
        low, _ = bounds_at(math.nextafter(epsilon + off, math.inf))
        _, high = bounds_at(math.nextafter(epsilon - off, -math.inf))
        return low * (1 - 2 * off), min(1.0, high * (1 + 2 * off))

    def _bounds(
        self, epsilon: float, delta_of: Callable[[Ball, Ball], Ball]
    ) -> tuple[float, float]:
        """Return bounds on delta, which rises with E (K - Lambda)_+ and depends on K.

        Lambda is divided by its mean, and so has the mean 1 that put-call parity takes.
        """
        with workprec(self._bits):
            mean, mass = self._mean(), self._mass()
            b, e, h = arb(self._b), arb(epsilon) + (mean / mass).log(), arb(self._h)
            scale = ((1 + b) * e).exp() * h / arb.pi()
            # Powers are taken apart: balls of products of many complex numbers grow.
            turns = (acb(0, -h * e * k).exp() for k in range(self._nodes))
            value = sum((x * y).real for x, y in zip(self._terms, turns, strict=True)) * scale
            lost = arb(0)
            period = 2 * arb.pi() / h
            # Aliases of larger K, and of smaller K at the best tilt.
            share = (-b * period).exp()
            lost += mass * e.exp() * share / (1 - share)
            others = []
            for p, log_f in self._tilts:
                share = (-(arb(p) - b) * period).exp()
                others.append(((1 + arb(p)) * e + log_f).exp() * share / (1 - share))
            lost += min(others, key=lambda ball: float(ball.upper()))
            # Nodes beyond the last one.
            last = arb(self._nodes - 1) * h
            beyond = (1 + b) * e + self._log_f - arb(self._rate) * (1 - 1e-12) * last * last
            lost += beyond.exp() / (arb.pi() * last)
            k, (least, most) = arb(epsilon).exp(), ((value + x) / mean for x in (-lost, lost))
            low, high = delta_of(least, k).lower(), delta_of(most, k).upper()
            if not (low.is_finite() and high.is_finite()):
                return 0.0, 1.0
            low, high = math.nextafter(float(low), -math.inf), next_up(float(high))
            return max(0.0, low), min(1.0, max(0.0, high))


def _is_one_batch(loss: Allocation) -> bool:
    """Return whether a loss is that of one batch, which every record draws: F is known."""
    return len(loss.groups) == loss.groups[0].batches == 1


def _seconds(rays: list[Ray]) -> float:
    """Return about the seconds that rays take."""
    return sum(ray.seconds for ray in rays)


def _log_moment(parts: Epochs, p: float) -> float:
    """Return log E Lambda^-p, rounded up, or its bound in closed form where it is out of reach."""
    total = 0.0
    for loss, count in parts:
        try:
            found = float(loss.cumulants(p)[0, 0])
        except OutOfReach:
            found = loss.log_mgf_bound(p)
        total += count * found
    return total * (1 + 1e-12)
