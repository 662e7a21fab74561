"""What is E L^q of a random allocation at nodes q = -b + i u? Sums along one ray, in balls.

The integral over v, its angle theta and the sums over x are those of
:mod:`dpcal.accountants.inversion.puts`, which bounds what they leave out.

>>> from dpcal.accountants.losses.allocation import Allocation
>>> ray = Ray(Allocation(1.0, 2, "add"), 0.5, 3.0, range(2), 0.2, 40.0)
>>> print(f"{complex(ray.values()[1]):.9f}")
-0.025060411-0.105297223j
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import acb, arb, ctx, fmpz_poly
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.special import loggamma

from dpcal._precision import workprec
from dpcal.accountants.losses.allocation import Allocation, Group
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["Ball", "Ray"]

Reals = NDArray[np.float64]
# python-flint has no type annotations.
Ball = Any

# Shares of a strip's width, and powers of 1 / L over b, that are tried.
_SHARES = np.geomspace(0.0005, 0.97, 40)
_BELOW_B = np.array([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95])
_ABOVE_B = 1 + np.geomspace(0.02, 50, 40)
# Most that the line of x is moved: terms grow by e to half its square.
_MOST_MOVED = 6.0
# Seconds of an entry of a table at 250 bits.
_SECONDS = 3.8e-6


class Ray:
    """E L^q at some nodes q = -b + i u, along one ray.

    Parameters
    ----------
    loss
        The loss of an epoch.
    b, h
        Minus the real part of q, and the step of u.
    nodes
        Numbers of the nodes.
    log_f
        An upper bound on log E L^-b.
    digits
        Minus the logarithm of the error relative to E L^-b.
    """

    def __init__(
        self, loss: Allocation, b: float, h: float, nodes: range, log_f: float, digits: float
    ) -> None:
        self.b, self.h, self.nodes, self.log_f = b, h, nodes, log_f
        self.theta = math.atan2(h * (nodes[0] + nodes[-1]) / 2, b)
        self.groups = [_Sums(group, self.theta) for group in loss.groups]
        varied = [group for group in self.groups if group.t]
        # The sums of p_j t_j^2 and p_j^2 t_j^2.
        self.mean = sum(each.chance * each.t**2 for each in self.groups)
        self.square = sum(each.chance**2 * each.t**2 / each.batches for each in self.groups)
        self._choose(digits, varied)

    def _growths(self, u: Reals, log_gamma: Reals) -> list[tuple[Reals, Reals]]:
        """Return, on both sides, distances from the line of v, and log growth there for each u."""
        excess = math.lgamma(self.b) - log_gamma
        found = []
        for sign in (1, -1):
            y = _SHARES * (math.pi / 2 + sign * self.theta)
            away = self.theta - sign * y
            found.append((y, excess[:, None] - np.outer(u, away) - self.b * np.log(np.cos(away))))
        return found

    def _choose(self, digits: float, groups: list[_Sums]) -> None:
        """Choose steps and ends of v and x, and the precision."""
        b, theta = self.b, self.theta
        u = self.h * np.array([self.nodes[0], self.nodes[-1]], dtype=float)
        log_gamma = np.asarray(loggamma(b - 1j * u).real)
        dv = min(
            float((2 * math.pi * y / np.maximum(growth + digits, 1.0)).max(axis=1).min())
            for y, growth in self._growths(u, log_gamma)
        )
        scale = log_gamma + u * theta
        goal = float(scale.min()) - digits
        self.low, self.high = self._ends(dv, goal)
        lost = math.lgamma(b) + self.log_f - b * math.log(math.cos(theta)) - float(scale.min())
        nats = digits + lost + 10
        widest = [group.widest_step(nats, b) for group in groups]
        # Of v and all t x, one lattice is that of multiples of the other's step.
        self.stride = max(1, *(math.ceil(dv / each) for each in widest))
        # Turns exp(-i h dv) are roots of unity, so that sums over v are a Fourier transform.
        self.roots = next_fast_len(math.ceil(2 * math.pi / (self.h * dv)))
        self.step = 2 * math.pi / (self.h * self.roots * self.stride)
        self.first = math.floor(self.low / self.step)
        self.count = math.ceil((self.high - self.low) / (self.step * self.stride)) + 2
        needed = [group.choose(each, self.step) for group, each in zip(groups, widest, strict=True)]
        self.bits = int((max(needed) + lost) / math.log(2)) + 96
        table = sum(self.count * self.stride + 2 * each.around for each in groups)
        self.seconds = _SECONDS * (2 * table + 2 * self.count + self.roots) * self.bits / 250

    def exact_step(self) -> Ball:
        """Return the step of the lattice."""
        return 2 * arb.pi() / (arb(self.h) * (self.roots * self.stride))

    def _powers(self) -> tuple[Reals, Reals]:
        """Return powers k and bounds on log of G(x) x^k."""
        k = self.b * np.concatenate([_BELOW_B, _ABOVE_B])
        logs = k * (np.log(np.maximum(k, 1e-300)) - 1 - math.log(math.cos(self.theta)))
        return k, logs + k * self.mean / 2 + k * k * self.square / 2

    def _ends(self, step: float, goal: float) -> tuple[float, float]:
        """Return the ends of v, beyond which less than exp(goal) is left."""
        k, bounds = self._powers()
        falls = k - self.b
        at = (goal - bounds - np.log(1 / np.abs(falls) + step)) / -falls
        low, high = float(at[falls < 0].max()), float(at[falls > 0].min())
        if not low < high:
            raise OutOfReach
        return low, high

    def values(self) -> list[Ball]:
        """Return E L^q at the nodes."""
        with workprec(self.bits):
            step = self.exact_step()
            dv = step * self.stride
            low = step * self.first
            heights = self._heights()
            turn = acb(0, -1) * arb(self.theta)
            term, ratio = ((low + turn) * self.b).exp() * dv, (dv * self.b).exp()
            terms = []
            for height in heights:
                terms.append(term * height)
                term *= ratio
            rule, ends = self._rule(), self._rest(low, dv)
            found = []
            for k, value in zip(self.nodes, self._sums(terms), strict=True):
                u = arb(self.h) * k
                inverse = acb(self.b, -u).rgamma()
                value *= (acb(0, -u) * (low + turn)).exp() * inverse
                error = rule + abs(inverse) * ends * (-u * self.theta).exp()
                error = arb(0, error.upper())
                found.append(value + acb(error, error))
            return found

    def _sums(self, terms: list[Ball]) -> list[Ball]:
        """Return the sums of terms times exp(-i u k dv), k = 0, 1, ..., at each node."""
        wrapped = [acb(0)] * self.roots
        for k, term in enumerate(terms):
            wrapped[k % self.roots] += term
        found = acb.dft(wrapped)
        return [found[k % self.roots] for k in self.nodes]

    def _heights(self) -> list[Ball]:
        """Return G at each v."""
        found = [1] * self.count
        for group in self.groups:
            heights = group.heights(self) if group.t else group.constant(self)
            found = [one * other for one, other in zip(found, heights, strict=True)]
        return found

    def _rule(self) -> Ball:
        """Return a bound on what the step of v adds to the error of E L^q at these nodes."""
        b, theta = arb(self.b), arb(self.theta)
        total, dv = arb(0), self.exact_step() * self.stride
        ends = [arb(self.h) * k for k in (self.nodes[0], self.nodes[-1])]
        inverses = [abs(acb(b, -u).rgamma()) for u in ends]
        for sign in (1, -1):
            errors = []
            for share in _SHARES:
                y = (arb.pi() / 2 + sign * theta) * share
                away = theta - sign * y
                size = arb(0)
                for u, inverse in zip(ends, inverses, strict=True):
                    size = arb.max(size, inverse * (-u * away).exp())
                errors.append(size / away.cos() ** b / (2 * arb.pi() * y / dv).expm1())
            total += min(errors, key=lambda ball: float(ball.upper().log()))
        return total * b.gamma() * arb(self.log_f).exp()

    def _rest(self, low: Ball, dv: Ball) -> Ball:
        """Return a bound on sums of absolute values at u = 0 beyond the ends of v."""
        high = low + dv * (self.count - 1)
        total = arb(0)
        for above, at in ((False, low - dv), (True, high + dv)):
            errors = []
            for share in _ABOVE_B if above else _BELOW_B:
                k = arb(float(share)) * self.b
                size = (k * self.mean / 2 + k * k * self.square / 2) * (1 + 1e-12)
                if share:
                    size += k * (k.log() - 1 - arb(self.theta).cos().log())
                falls = abs(k - self.b)
                size += (self.b - k) * at
                errors.append(size.exp() * dv / (1 - (-falls * dv).exp()))
            total += min(errors, key=lambda ball: float(ball.upper().log()))
        return total


class _Sums:
    """Sums over x for batches that are alike, on the ray of angle theta.

    They are E exp(-s p Y) to the power of the number of batches.
    """

    def __init__(self, group: Group, theta: float) -> None:
        self.noise, self.batches, self.chance = group
        self.theta, self.t = theta, 1 / self.noise
        # The line of x is moved by eta, which turns s Y by t eta towards the real line.
        self.eta = min(theta, _MOST_MOVED * self.t) * self.noise if self.t else 0.0
        self.angle = theta - self.t * self.eta

    def widest_step(self, nats: float, b: float) -> float:
        """Return the largest step of t x that leaves an error of about exp(-nats)."""
        M = max(self.batches, 2)
        self.nats = nats + math.log(M) + self.eta**2 / 2 - b * math.log1p(-1 / M)
        steps = []
        for sign in (1, -1):
            d = _SHARES * (math.pi / 2 + sign * self.angle) / self.t
            grown = ((self.eta + sign * d) ** 2 - self.eta**2) / 2
            steps.append(float((2 * math.pi * d / (self.nats + grown)).max()))
        return self.t * min(steps)

    def choose(self, widest: float, step: float) -> float:
        """Choose the step of x, over that of the lattice, and its ends; return the nats."""
        self.spread = max(1, int(widest / step))
        self.reach = math.ceil(math.sqrt(2 * self.nats) * self.t / (step * self.spread)) + 2
        self.around = self.spread * self.reach
        return self.nats

    def heights(self, ray: Ray) -> list[Ball]:
        """Return the power at each v."""
        step, reach, eta = ray.exact_step(), self.reach, arb(self.eta)
        dx, t = step * self.spread * arb(self.noise), 1 / arb(self.noise)
        size = ray.count * ray.stride + 2 * self.around
        angle = arb(self.theta) - t * eta
        r = (step * (ray.first - self.around) - t * t / 2).exp() * self.chance / self.batches
        r = acb(0, -angle).exp() * r
        ratio, most = step.exp(), float(ray.bits)
        small = arb(0, (-arb(most)).exp().upper())
        # Densities along the moved line are real ones that turn with x: the table turns instead.
        turn, table = acb(0, step * arb(self.noise) * eta), []
        for back in _powers(-turn, size):
            table.append(acb(small, small) if r.real > most else (-r).exp() * back)
            r *= ratio
        scale = (eta**2 / 2).exp() * dx / (2 * arb.pi()).sqrt()
        half = [(-((k * dx) ** 2) / 2).exp() * scale for k in range(reach + 1)]
        weights = [*half[:0:-1], *half]
        # Points v of one remainder of the lattice share the points x.
        places = range(0, ray.count * ray.stride, ray.stride)
        tables = [table[k :: self.spread] for k in range(self.spread)]
        sums = _sliding(tables, weights, places[-1] // self.spread + 1)
        error = self._error_of_mean(t, dx)
        error = acb(error, error)
        turns = _powers(ray.stride * turn, ray.count)
        first = (self.around * turn).exp()
        return [
            (sums[k % self.spread][k // self.spread] * (first * back) + error) ** self.batches
            for k, back in zip(places, turns, strict=True)
        ]

    def constant(self, ray: Ray) -> list[Ball]:
        """Return the power at each v where Y is 1."""
        turn = acb(0, -arb(self.theta))
        step = ray.exact_step()
        lattice = (step * (ray.first + ray.stride * k) for k in range(ray.count))
        return [(-(v + turn).exp() * self.chance).exp() for v in lattice]

    def _error_of_mean(self, t: Ball, dx: Ball) -> Ball:
        """Return a bound on the error of every sum over x."""
        eta = arb(self.eta)
        angle = arb(self.theta) - t * eta
        # Sums beyond the ends lie below integrals that begin a step before.
        total = ((self.reach - 1) * dx / arb(2).sqrt()).erfc() * (eta * eta / 2).exp()
        for sign in (1, -1):
            errors = []
            for share in _SHARES:
                d = (arb.pi() / 2 + sign * angle) / t * share
                errors.append(((eta + sign * d) ** 2 / 2).exp() / (2 * arb.pi() * d / dx).expm1())
            total += min(errors, key=lambda ball: float(ball.upper().log()))
        return arb(0, total.upper())


def _powers(exponent: Ball, count: int) -> list[Ball]:
    """Return exp(k exponent), k = 0, 1, ...: products of two, which cost less and grow little."""
    inner = math.isqrt(count) + 1
    outer = range(0, count, inner)
    within = [(exponent * k).exp() for k in range(inner)]
    return [x * y for y in [(exponent * k).exp() for k in outer] for x in within][:count]


def _sliding(tables: list[list[Ball]], weights: list[Ball], count: int) -> list[list[Ball]]:
    """Return sums of tables times reversed real weights, at each of the first places in a table.

    Products of polynomials of integers are several times as fast as those of balls.
    """
    kernel, width, found = _Fixed(weights), len(weights), []
    places = range(width - 1, width - 1 + count)
    for table in map(_Fixed, tables):
        error = table.error * (kernel.largest + kernel.error) + kernel.error * table.largest
        error = arb(0, (width * error).upper())
        error = acb(error, error)
        real, imaginary = table.real * kernel.real, table.imaginary * kernel.real
        scale = table.unit * kernel.unit
        found.append([acb(real[k], imaginary[k]) * scale + error for k in places])
    return found


class _Fixed:
    """Complex numbers as multiples of a power of two, ``unit``, at the precision at hand.

    The multiples' parts are polynomials, ``real`` and ``imaginary``. The distance of all numbers
    from them is at most ``error``, and their absolute values are at most ``largest``.
    """

    def __init__(self, values: list[Ball]) -> None:
        bits = ctx.prec
        self.unit = arb(2) ** -bits
        with workprec(3 * bits):
            # Exact, as middles have no more digits than the precision that they were computed at.
            scaled = [value.mid() * arb(2) ** bits for value in values]
            parts = [
                [x.floor().unique_fmpz() for x in each]
                for each in ([x.real for x in scaled], [x.imag for x in scaled])
            ]
            self.real, self.imaginary = map(fmpz_poly, parts)
            self.largest = sum(max(map(abs, each)) for each in parts) * self.unit
        self.error = 2 * self.unit
        for value in values:
            self.error = arb.max(self.error, 2 * self.unit + value.rad())
