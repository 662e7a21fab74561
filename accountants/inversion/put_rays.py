r"""E L^q of a random allocation at nodes q = -b + i u: sums along one ray, in balls.

A power is a Gamma integral, L^q = 1 / Gamma(-q) * integral over s > 0 of s^(-q - 1) exp(-s L) ds.
Its mean needs only G(s) = E exp(-s L), a product over batches of E exp(-s p_j Y_j), with
L = sum p_j Y_j and Y_j = exp(t_j X_j - t_j^2 / 2):

    E L^q = 1 / Gamma(b - i u) * integral over v of exp((b - i u)(v - i theta)) G(exp(v - i theta)).

Here s = exp(v - i theta) runs along a ray. On the real one, theta = 0, terms of size Gamma(b) add
up to one of size Gamma(b - i u), and the digits of their ratio cancel. At theta = arg(b + i u) the
integrand has its saddle on the ray, and nothing cancels: one ray serves a block of nodes near u.
Each mean E exp(-s p_j Y_j) is an integral over x along a line that is moved by eta, on which s Y_j
is turned towards the real axis. All integrals are sums over lattices, and the lattices of v and of
all t_j x are one: exp(-s Y) is tabulated once, the means are products of this table with Gaussian
weights as polynomials, and the sums over v for all nodes are one Fourier transform. Steps and ends
are chosen in doubles, with a margin, so that they leave out at most exp(-digits) of E L^-b:

* a step of v: at v + i y the integrand is at most that of the real line at s cos(y - theta)
  (Trefethen and Weideman 2014, Theorem 5.1, for each side of the strip). The bound is convex in u
  on a logarithmic scale, so it is largest at the first or the last node;
* ends of v: G(x) <= (k / (e x))^k E L^-k, and L is at least the geometric mean, so that E L^-k <=
  exp(k sum p_j t_j^2 / 2 + k^2 sum p_j^2 t_j^2 / 2);
* a step of x: at x + i y the integrand is at most exp(y^2 / 2) times that of the real line, of
  which the mean E exp(-z Y), z = p abs(s) cos(theta - t y), is at most exp(-D) with D = w - (w +
  w^2) t^2 / 2 for each w <= z, since Y >= 1 + t X - t^2 / 2;
* ends of x: by the same bound that of a normal law moved by w t.

>>> from dpcal.accountants.losses.allocation import Allocation
>>> ray = Ray(Allocation(1.0, 2, "add"), 0.5, 3.0, range(2), 0.2, 40.0)
>>> print(f"{complex(ray.values()[1]):.9f}")
-0.025060411-0.105297223j
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import acb, acb_poly, arb
from scipy.fft import next_fast_len
from scipy.special import loggamma

from dpcal._internal.precision import workprec
from dpcal.accountants.losses.allocation import Allocation, Group
from dpcal.accountants.losses.base import OutOfReach, Reals

Ball = Any

_SHARES = np.geomspace(0.0005, 0.97, 40)
_POWERS = np.append([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95], 1 + np.geomspace(0.02, 50, 40))
# Longest move of the line of x: terms grow by e to half its square.
_MOST_MOVED = 6.0
# Nats by which errors are chosen below the bound that counts them: rounding, and up to four terms.
_MARGIN = 3.0
_BELOW = 10.0
_SPARE_BITS = 96
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

    Attributes
    ----------
    theta
        Angle of the ray: the angle of the saddle at the middle node.
    step
        Step of the lattice of v and of all t x.
    stride, first, count
        Step of v over it, number of the first v on it, and how many v there are.
    roots
        Length of the Fourier transform: h times the step of v is a turn over this number.
    bits, seconds
        Bits of the balls, and about the seconds that they take.
    """

    def __init__(
        self, loss: Allocation, b: float, h: float, nodes: range, log_f: float, digits: float
    ) -> None:
        self.b, self.h, self.nodes, self.log_f, self.digits = b, h, nodes, log_f, digits
        self.theta = math.atan2(h * (nodes[0] + nodes[-1]) / 2, b)
        self.groups = [_Sums(group, self.theta) for group in loss.groups]
        u = h * np.array([nodes[0], nodes[-1]], dtype=float)
        log_gamma = np.asarray(loggamma(b - 1j * u).real)
        least = float((log_gamma + u * self.theta).min())
        lost = math.lgamma(b) + log_f - b * math.log(math.cos(self.theta)) - least
        nats = digits + _MARGIN
        dv = self._widest_dv(u, log_gamma, nats)
        low, high = self._ends(dv, least - nats)
        varied = [group for group in self.groups if group.t]
        widest = [group.widest_step(nats + lost + _BELOW, b, low - dv) for group in varied]
        self.stride = max(1, *(math.ceil(dv / each) for each in widest))
        # Turns exp(-i h dv) are roots of unity, so that sums over v are a Fourier transform.
        self.roots = next_fast_len(math.ceil(2 * math.pi / (h * dv)))
        self.step = 2 * math.pi / (h * self.roots * self.stride)
        self.first = math.floor(low / self.step)
        self.count = math.ceil((high - low) / (self.step * self.stride)) + 2
        for group, each in zip(varied, widest, strict=True):
            group.choose_reach(each, self.step)
        largest = max(group.nats - group.falls for group in varied)
        self.bits = int((largest + lost) / math.log(2)) + _SPARE_BITS
        table = sum(self.count * self.stride + 2 * each.around for each in varied)
        self.seconds = _SECONDS * (2 * table + 2 * self.count + self.roots) * self.bits / 250

    def _widest_dv(self, u: Reals, log_gamma: Reals, nats: float) -> float:
        """Return the step of v that leaves an error of about exp(-nats) at the first and last u."""
        steps = []
        for sign in (1, -1):
            y = _SHARES * (math.pi / 2 + sign * self.theta)
            away = self.theta - sign * y
            growth = (math.lgamma(self.b) - log_gamma)[:, None] - np.outer(u, away)
            left = growth.max(axis=0) - self.b * np.log(np.cos(away)) + nats
            steps.append(_widest(y, left))
        return min(steps)

    def _ends(self, step: float, goal: float) -> tuple[float, float]:
        """Return the ends of v, beyond which less than exp(goal) is left on either side."""
        k, turned = self.b * _POWERS, math.log(math.cos(self.theta))
        mean = sum(each.chance * each.t**2 for each in self.groups)
        square = sum(each.chance**2 * each.t**2 / each.batches for each in self.groups)
        bounds = k * (np.log(np.maximum(k, 1e-300)) - 1 - turned + mean / 2) + k * k * square / 2
        falls = k - self.b
        at = (goal - bounds - np.log(1 / np.abs(falls) + step)) / -falls
        low, high = float(at[falls < 0].max()), float(at[falls > 0].min())
        if not low < high:
            raise OutOfReach
        return low, high

    def exact_step(self) -> Ball:
        """Return the step of the lattice."""
        return 2 * arb.pi() / (arb(self.h) * (self.roots * self.stride))

    def values(self) -> list[Ball]:
        """Return E L^q at the nodes."""
        with workprec(self.bits):
            dv = self.exact_step() * self.stride
            start = acb(self.exact_step() * self.first, -arb(self.theta))
            term, ratio = (start * self.b).exp() * dv, (dv * self.b).exp()
            wrapped = [acb(0)] * self.roots
            for k, height in enumerate(self._heights()):
                wrapped[k % self.roots] += term * height
                term *= ratio
            sums = acb.dft(wrapped)
            error = _ball((self.log_f - arb(self.digits)).exp())
            found = []
            for k in self.nodes:
                u = acb(0, arb(self.h) * k)
                value = sums[k % self.roots] * (-u * start).exp() * (self.b - u).rgamma()
                found.append(value + error)
            return found

    def _heights(self) -> list[Ball]:
        """Return G at each v."""
        found = [1] * self.count
        total = sum(arb(group.chance) for group in self.groups)
        for group in self.groups:
            heights = group.heights(self, arb(group.chance) / total)
            found = [one * other for one, other in zip(found, heights, strict=True)]
        return found


class _Sums:
    """Sums over x for batches that are alike, on the ray of angle theta.

    They are E exp(-s p Y) to the power of the number of batches. The points x are on a line that is
    moved by eta. Their number is chosen in two steps, as all groups share one lattice:
    :meth:`widest_step` bounds the step of x, and :meth:`choose_reach` takes it from there.

    Attributes
    ----------
    nats
        Minus the logarithm of the error of a mean.
    falls, end
        The mean at the first v is at most exp(-falls), and points x end there.
    spread, reach
        Step of t x over the lattice's, and number of points x on each side of 0.
    around
        Number of points of the lattice on each side.
    """

    def __init__(self, group: Group, theta: float) -> None:
        self.noise, self.batches, self.chance = group
        self.theta, self.t = theta, 1 / self.noise
        # The line of x is moved by eta, which turns s Y by t eta towards the real line.
        self.eta = min(theta, _MOST_MOVED * self.t) * self.noise if self.t else 0.0

    def widest_step(self, nats: float, b: float, low: float) -> float:
        """Return the largest step of t x that leaves an error of about exp(-nats) from v = low."""
        M, angle = max(self.batches, 2), self.theta - self.t * self.eta
        self.nats = nats + math.log(M) - b * math.log1p(-1 / M)
        size = self.chance / self.batches * math.exp(min(low, 700.0))
        steps = []
        for sign in (1, -1):
            d = _SHARES * (math.pi / 2 + sign * angle) / self.t
            falls, _ = self._falls(size * np.cos(angle - sign * self.t * d))
            steps.append(_widest(d, self.nats + (self.eta + sign * d) ** 2 / 2 - falls))
        self.falls, moved = map(float, self._falls(np.array(size * math.cos(angle))))
        left = max(0.0, self.nats + self.eta**2 / 2 - self.falls)
        self.end = math.sqrt(2 * left) + moved
        return self.t * min(steps)

    def _falls(self, z: Reals) -> tuple[Reals, Reals]:
        """Return D with E exp(-z Y) <= exp(-D), and by how much the normal law is moved."""
        w = np.minimum(z, max(0.0, 1 / self.t**2 - 0.5))
        return np.maximum(0.0, w - (w + w * w) * self.t**2 / 2), w * self.t

    def choose_reach(self, widest: float, step: float) -> None:
        """Choose the step of x, over the lattice's, and its ends."""
        self.spread = max(1, int(widest / step))
        self.reach = math.ceil(self.end * self.t / (step * self.spread)) + 2
        self.around = self.spread * self.reach

    def heights(self, ray: Ray, chance: Ball) -> list[Ball]:
        """Return the power at each v, of batches that a record draws with this probability."""
        step = ray.exact_step()
        if not self.t:
            places = (
                acb(step * (ray.first + ray.stride * k), -arb(self.theta)) for k in range(ray.count)
            )
            return [(-place.exp() * chance).exp() for place in places]
        eta, t = arb(self.eta), 1 / arb(self.noise)
        dx = step * self.spread * arb(self.noise)
        size = ray.count * ray.stride + 2 * self.around
        r = acb(step * (ray.first - self.around) - t * t / 2, t * eta - arb(self.theta)).exp()
        r *= chance / self.batches
        ratio, most = step.exp(), ray.bits + self.falls
        small = _ball((-arb(most)).exp())
        # The table has exp(-s Y) at v + t x; it turns in place of densities along the moved line.
        turn, table = acb(0, step * arb(self.noise) * eta), []
        for back in _powers(-turn, size):
            table.append(small if r.real > most else (-r).exp() * back)
            r *= ratio
        scale = (eta**2 / 2).exp() * dx / (2 * arb.pi()).sqrt()
        half = [(-((k * dx) ** 2) / 2).exp() * scale for k in range(self.reach + 1)]
        tables = [table[k :: self.spread] for k in range(self.spread)]
        kernel = acb_poly([*half[:0:-1], *half])
        sums = [acb_poly(each) * kernel for each in tables]
        error = _ball((_MARGIN - arb(self.nats)).exp())
        turns = _powers(ray.stride * turn, ray.count)
        first = (self.around * turn).exp()
        found = []
        for k, back in enumerate(turns):
            row, place = k * ray.stride % self.spread, k * ray.stride // self.spread
            found.append((sums[row][place + 2 * self.reach] * first * back + error) ** self.batches)
        return found


def _widest(y: Reals, nats: Reals) -> float:
    """Return the largest step h with exp(2 pi y / h) - 1 at least about exp(nats), for some y."""
    return float((2 * math.pi * y / np.maximum(nats, 1.0)).max())


def _ball(radius: Ball) -> Ball:
    """Return the complex numbers with parts up to a radius."""
    radius = arb(0, radius.upper())
    return acb(radius, radius)


def _powers(exponent: Ball, count: int) -> list[Ball]:
    """Return exp(k exponent), k = 0, 1, ...: products of two, which cost less and grow little."""
    inner = math.isqrt(count) + 1
    outer = range(0, count, inner)
    within = [(exponent * k).exp() for k in range(inner)]
    return [x * y for y in [(exponent * k).exp() for k in outer] for x in within][:count]
