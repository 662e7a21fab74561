r"""E (K - Lambda)_+ of random allocations, on contours in ball arithmetic.

Lambda is the product over epochs of L, the mean of Y_j = exp(t X_j - t^2 / 2) over the batches,
weighted by the probabilities p_j with which a record draws them, and K = exp(epsilon). With F(q) =
E Lambda^q, b > 0 and q = -b + i u,

    E (K - Lambda)_+ = 1 / pi * integral over u > 0 of Re(K^(1 - q) F(q) / (q (q - 1))) du,

where E L^q is a sum along a ray (:mod:`dpcal.accountants.inversion.put_rays`).

E (Lambda - K)_+ is this minus (K - 1). Narrow losses at a small delta need more digits for it than
doubles have, and contours of E (Lambda - K)_+ itself are long, or do not exist: powers of L are as
large as those of one batch that is drawn again and again. Balls carry all rounding (python-flint).
The step and the last node are chosen in doubles, with a margin, so that up to a largest epsilon
each of these is at most exp(-nats):

* aliases of the step h of u, P = 2 pi / h: exactly sums over j of exp(-(1 + b) j P) E (K exp(j P) -
  Lambda)_+, where E (K - Lambda)_+ <= K^(1 + p) E Lambda^-p for each p >= 0;
* nodes beyond the last one: abs(F(-b + i u)) <= F(-b) exp(-rate u^2)
  (:attr:`~dpcal.accountants.losses.allocation.Allocation.rate_of_decay`).

>>> from dpcal.accountants.losses.allocation import Allocation
>>> put = Put(((Allocation(1.0, 100, "add"), 10),), most=2.0, nats=40.0, seconds=1.0)
>>> low, high = put.delta(1.9642696130, added=False)
>>> print(f"{low:.9e}", high - low < 1e-15)
1.000000000e-06 True
"""

from __future__ import annotations

import contextlib
import math

import numpy as np
from flint import acb, arb

from dpcal._internal.precision import workprec
from dpcal.accountants.inversion.put_rays import Ball, Ray
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import next_up

Epochs = tuple[tuple[Allocation, int], ...]

# Lines over the first one, in reciprocals of the loss' standard deviation: few nodes are needed.
_LINES, _LEAST_FIRST, _NATS = (1.0, 0.5, 0.25, 0.125), 2.0, 25.0
_CHEAP = 0.1
# Nats that cancel at the ends of a block of nodes; seconds from which other lines are tried.
_CANCELLED, _LONG = 30.0, 0.3
_OTHERS = 18.0, 24.0, 36.0, 45.0, 60.0, 120.0, 240.0, 480.0
_TILTS = np.array([1.2, 1.5, 2.0, 3.0, 5.0, 8.0])
# Range of b: sums over v are long below it, and nats round by some size above it.
_LEAST_LINE, _LARGEST_LINE = 1.0, 1e12
# Nats by which errors are chosen below the bound that counts them.
_MARGIN = 3.0
# Relative error of a group's probability: alike batches are added, and divided by all.
_ROUNDING = 2.0**-51
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
    seconds
        About the seconds that it took.

    Raises
    ------
    OutOfReach
        If the contour is too long.
    """

    def __init__(self, parts: Epochs, most: float, nats: float, seconds: float) -> None:
        self.most, self.nats = most, nats
        deviation = math.sqrt(sum(count * loss.variance for loss, count in parts))
        first = min(max(_LEAST_FIRST, nats / _NATS) / deviation, _LARGEST_LINE)
        found: list[_Line] = []
        for share in _LINES:
            with contextlib.suppress(OutOfReach):
                line = _Line(parts, max(share * first, _LEAST_LINE), most, nats + _MARGIN)
                found.append(line)
                if line.seconds < _CHEAP:
                    break
        if not found:
            raise OutOfReach
        self._line = min(found, key=lambda line: line.seconds)
        self.seconds = self._line.seconds
        if self.seconds > seconds:
            raise OutOfReach
        with workprec(self._line.bits):
            self._terms = self._line.integrand()
        # Lambda is within a factor of exp(+-off) of itself for probabilities with a rounding.
        self._off = _ROUNDING * sum(count for loss, count in parts if len(loss.groups) > 1)

    def delta(self, epsilon: float, *, added: bool) -> tuple[float, float]:
        """Return bounds on delta of removing a record, E (Lambda - K)_+, or of adding one.

        The latter is E (1 - Lambda exp(epsilon))_+.
        """
        off, ends = self._off, []
        with workprec(self._line.bits):
            for side in (1, -1) if off else (0,):
                log_k = (-1 if added else 1) * (arb(epsilon) + side * off)
                put, k = self._value(log_k), log_k.exp()
                ends.append(put / k if added else put - (k - 1))
            low, high = ends[0].lower(), ends[-1].upper()
            if not (low.is_finite() and high.is_finite()):
                return 0.0, 1.0
            low, high = math.nextafter(float(low), -math.inf), next_up(float(high))
        return max(0.0, low * (1 - 2 * off)), min(1.0, max(0.0, high * (1 + 2 * off)))

    def _value(self, log_k: Ball) -> Ball:
        """Return E (K - Lambda)_+."""
        b, h = arb(self._line.b), arb(self._line.h)
        # Powers are taken apart: balls of products of many complex numbers grow.
        turns = (acb(0, -h * log_k * k).exp() for k in range(len(self._terms)))
        value = sum((x * y).real for x, y in zip(self._terms, turns, strict=True))
        value *= ((1 + b) * log_k).exp() * h / arb.pi()
        return value + arb(0, (-arb(self.nats)).exp().upper())


class _Line:
    """The line at q = -b + i u, its nodes and rays, and about the seconds that they take."""

    def __init__(self, parts: Epochs, b: float, most: float, nats: float) -> None:
        self.b, self._parts = b, parts
        log_f = _log_moment(parts, b)
        size = most * (1 + b) + log_f
        tilts = ((p, _log_moment(parts, p)) for p in b * _TILTS)
        period = min(((1 + p) * most + log_p + nats) / (p - b) for p, log_p in tilts)
        self.h = 2 * math.pi / max((most + nats) / b, period)
        rate = sum(count * loss.rate_of_decay for loss, count in parts)
        last = max(1.0, math.sqrt(max(size + nats, 0.0) / rate))
        self.nodes = math.ceil(last / self.h) + 1
        if self.nodes > _MOST_NODES:
            raise OutOfReach
        digits = nats + max(0.0, size) - math.log1p(b) + math.log(sum(times for _, times in parts))
        self._rays = [[self._rays_of(one, digits) for one, _ in loss.mixed] for loss, _ in parts]
        rays = [ray for each in self._rays for law in each for ray in law]
        self.seconds = _seconds(rays)
        self.bits = max([int(digits / math.log(2)) + 96, *(ray.bits for ray in rays)])

    def _rays_of(self, loss: Allocation, digits: float) -> list[Ray]:
        """Return rays for all nodes, each for a block of them; none where F has a closed form."""
        if _is_one_batch(loss):
            return []
        u = self.h * np.arange(self.nodes)
        log_f = _log_moment(((loss, 1),), self.b)

        def found(cancelled: float) -> list[Ray]:
            rays, start = [], 0
            while start < self.nodes:
                last = u[start] + 2 * math.sqrt(2 * cancelled * (self.b + u[start] ** 2 / self.b))
                end = min(int(np.searchsorted(u, last, side="right")), self.nodes)
                rays.append(Ray(loss, self.b, self.h, range(start, end), log_f, digits))
                start = end
            return rays

        rays = found(_CANCELLED)
        return rays if _seconds(rays) < _LONG else min([rays, *map(found, _OTHERS)], key=_seconds)

    def integrand(self) -> list[Ball]:
        """Return F(q) / (q (q - 1)) at the nodes; the first counts half."""
        q = [acb(-self.b, arb(self.h) * k) for k in range(self.nodes)]
        terms = [1 / (each * (each - 1)) for each in q]
        terms[0] /= 2
        for each, (loss, count) in zip(self._rays, self._parts, strict=True):
            means = [acb(0)] * self.nodes
            for rays, (law, chance) in zip(each, loss.mixed, strict=True):
                values = [value for ray in rays for value in ray.values()]
                if _is_one_batch(law):
                    values = [(x * (x - 1) / (2 * arb(law.noise_multiplier) ** 2)).exp() for x in q]
                means = [x + y * chance for x, y in zip(means, values, strict=True)]
            total = sum(arb(chance) for _, chance in loss.mixed)
            terms = [x * (mean / total) ** count for x, mean in zip(terms, means, strict=True)]
        return terms


def _is_one_batch(loss: Allocation) -> bool:
    """Return whether a loss has one batch, which every record draws: F is known."""
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
