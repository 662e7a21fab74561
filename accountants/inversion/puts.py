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
* nodes beyond the last one: abs(F(-b + i u)) <= F(-b) exp(-u^2 / (2 sum of 1 / t_j^2)), since the
  projection of X on (1 / t_j)_j moves all t_j X_j alike;
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
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import loggamma

from dpcal._precision import workprec
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation, Group
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["Epochs", "Put"]

# Losses of adding a record, and how often each is composed.
Epochs = tuple[tuple[Allocation, int], ...]

Reals = NDArray[np.float64]
# python-flint has no type annotations.
Ball = Any

# Negative real part of the line, in reciprocals of the standard deviation of the loss: nodes are
# fewest where the peak of the integrand is about as wide as its distance from the pole.
_LINE = 2.0
# Nats that cancel at the ends of a block of nodes, which one ray serves.
_CANCELLED = 30.0
# Shares of a strip's width, and powers of 1 / L over b, that are tried.
_SHARES = np.arange(1.0, 32.0) / 32
_BELOW_B = np.array([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95])
_ABOVE_B = 1 + np.geomspace(0.02, 50, 40)
# Tilts, over b, of bounds on aliases.
_TILTS = np.array([1.2, 1.5, 2.0, 3.0, 5.0, 8.0])
# Least b: the sums over v are long below it.
_LEAST_LINE = 1.0
# Most that the line of x is moved: terms grow by e to half its square.
_MOST_MOVED = 6.0
# Most nodes; and seconds of an entry of a table at 250 bits.
_MOST_NODES = 5000
_SECONDS = 1e-5


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

    Raises
    ------
    OutOfReach
        If the contour is too long.
    """

    def __init__(self, parts: Epochs, most: float, nats: float, seconds: float) -> None:
        self._parts = parts
        variance = sum(count * _variance(loss) for loss, count in parts)
        self._b = b = max(_LINE / math.sqrt(variance), _LEAST_LINE)
        self._log_f = _log_moment(parts, b)
        # The size of the integrand, and nats of all errors relative to it.
        size = most * (1 + b) + self._log_f - math.log1p(b)
        digits = nats + max(0.0, size) + math.log(sum(count for _, count in parts))
        self._choose_nodes(most, nats, size)
        rays = [self._rays(loss, digits) for loss, _ in parts]
        self._bits = max(ray.bits for each in rays for ray in each)
        if sum(ray.seconds for each in rays for ray in each) > seconds:
            raise OutOfReach
        values = [[value for ray in each for value in ray.values()] for each in rays]
        with workprec(self._bits):
            self._terms = self._integrand(values)

    # -- along the line

    def _choose_nodes(self, most: float, nats: float, size: float) -> None:
        b = self._b
        self._tilts = [(p, _log_moment(self._parts, p)) for p in b * _TILTS]
        period = min(((1 + p) * most + log_f + nats) / (p - b) for p, log_f in self._tilts)
        self._h = 2 * math.pi / max((most + nats) / b, period)
        # F falls at least like exp(-rate u^2).
        self._rate = sum(
            count / (2 * sum(group.batches * group.noise_multiplier**2 for group in loss.groups))
            for loss, count in self._parts
        )
        last = math.sqrt(max(size + nats, 1.0) / self._rate)
        self._nodes = math.ceil(last / self._h) + 1
        if self._nodes > _MOST_NODES:
            raise OutOfReach

    def _rays(self, loss: Allocation, digits: float) -> list[_Ray]:
        """Return rays for all nodes, each for a block of them."""
        u = self._h * np.arange(self._nodes)
        log_f = _log_moment(((loss, 1),), self._b)
        found: list[_Ray] = []
        start = 0
        while start < self._nodes:
            last = u[start] + 2 * math.sqrt(2 * _CANCELLED * (self._b + u[start] ** 2 / self._b))
            end = min(int(np.searchsorted(u, last, side="right")), self._nodes)
            found.append(_Ray(loss, self._b, self._h, range(start, end), log_f, digits))
            start = end
        return found

    def _integrand(self, values: list[list[Ball]]) -> list[Ball]:
        """Return F(q) / (q (q - 1)) at the nodes, of which the first counts half."""
        flint = _flint()
        terms = []
        for k in range(self._nodes):
            q = flint.acb(-self._b, flint.arb(self._h) * k)
            term = 1 / (q * (q - 1))
            for each, (_, count) in zip(values, self._parts, strict=True):
                term *= each[k] ** count
            terms.append(term / 2 if k == 0 else term)
        return terms

    # -- answers

    def removed(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta of removing a record, E (Lambda - K)_+."""
        return self._bounds(epsilon, lambda put, k: put - (k - 1))

    def added(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta of adding a record, E (1 - Lambda exp(epsilon))_+."""
        return self._bounds(-epsilon, lambda put, k: put / k)

    def _bounds(
        self, epsilon: float, delta_of: Callable[[Ball, Ball], Ball]
    ) -> tuple[float, float]:
        """Return bounds on delta, which rises with E (K - Lambda)_+ and depends on K."""
        flint = _flint()
        with workprec(self._bits):
            arb = flint.arb
            b, e, h = arb(self._b), arb(epsilon), arb(self._h)
            scale = ((1 + b) * e).exp() * h / arb.pi()
            # Powers are taken apart: balls of products of many complex numbers grow.
            turns = (flint.acb(0, -h * e * k).exp() for k in range(self._nodes))
            value = sum((x * y).real for x, y in zip(self._terms, turns, strict=True)) * scale
            lost = arb(0)
            period = 2 * arb.pi() / h
            # Aliases of larger K, and of smaller K at the best tilt.
            share = (-b * period).exp()
            lost += e.exp() * share / (1 - share)
            others = []
            for p, log_f in self._tilts:
                share = (-(arb(p) - b) * period).exp()
                others.append(((1 + arb(p)) * e + log_f).exp() * share / (1 - share))
            lost += min(others, key=lambda ball: float(ball.upper()))
            # Nodes beyond the last one.
            last = arb(self._nodes - 1) * h
            beyond = (1 + b) * e + self._log_f - arb(self._rate) * last * last * (1 - 1e-12)
            lost += beyond.exp() / (arb.pi() * last)
            k = e.exp()
            low, high = delta_of(value - lost, k).lower(), delta_of(value + lost, k).upper()
            return max(0.0, _down(low)), min(1.0, max(0.0, _up(high)))


class _Ray:
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
        # A double with few digits, whose multiples are exact.
        self.step = float(np.float32(dv / self.stride))
        self.first = math.floor(self.low / self.step)
        self.count = math.ceil((self.high - self.low) / (self.step * self.stride)) + 2
        needed = [group.choose(each, self.step) for group, each in zip(groups, widest, strict=True)]
        self.bits = int((max(needed) + lost) / math.log(2)) + 96
        table = sum(self.count * self.stride + 2 * each.around for each in groups)
        sums = len(self.nodes) * (math.sqrt(self.count) + 0.05 * self.count)
        self.seconds = _SECONDS * (2 * table + sums) * self.bits / 250

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
        flint = _flint()
        with workprec(self.bits):
            arb, acb = flint.arb, flint.acb
            step = arb(self.step)
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
            for k, value in zip(self.nodes, self._sums(terms, dv), strict=True):
                u = arb(self.h) * k
                inverse = acb(self.b, -u).rgamma()
                value *= (acb(0, -u) * (low + turn)).exp() * inverse
                error = rule + abs(inverse) * ends * (-u * self.theta).exp()
                error = arb(0, error.upper())
                found.append(value + acb(error, error))
            return found

    def _sums(self, terms: list[Ball], dv: Ball) -> list[Ball]:
        """Return the sums of terms times exp(-i u k dv), k = 0, 1, ..., at each node."""
        flint = _flint()
        inner = math.isqrt(len(terms)) + 1
        outer = -(-len(terms) // inner)
        terms = terms + [flint.acb(0)] * (inner * outer - len(terms))
        blocks = flint.acb_mat([[terms[i + inner * j] for j in range(outer)] for i in range(inner)])
        turns = [flint.acb(0, -flint.arb(self.h) * k * dv) for k in self.nodes]
        within = flint.acb_mat([[(turn * i).exp() for i in range(inner)] for turn in turns])
        found = (within * blocks).tolist()
        return [
            sum(x * (turn * (inner * j)).exp() for j, x in enumerate(row))
            for turn, row in zip(turns, found, strict=True)
        ]

    def _heights(self) -> list[Ball]:
        """Return G at each v."""
        found = [1] * self.count
        for group in self.groups:
            heights = group.heights(self) if group.t else group.constant(self)
            found = [one * other for one, other in zip(found, heights, strict=True)]
        return found

    def _rule(self) -> Ball:
        """Return a bound on what the step of v adds to the error of E L^q at these nodes."""
        arb = _flint().arb
        b, theta = arb(self.b), arb(self.theta)
        total, dv = arb(0), arb(self.step) * self.stride
        ends = [arb(self.h) * k for k in (self.nodes[0], self.nodes[-1])]
        inverses = [abs(_flint().acb(b, -u).rgamma()) for u in ends]
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
        arb = _flint().arb
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
    """Sums over x for batches that are alike, E exp(-s p Y) to the power of their number.

    Parameters
    ----------
    group
        The batches.
    theta
        Angle of the ray.
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

    def heights(self, ray: _Ray) -> list[Ball]:
        """Return the power at each v."""
        flint = _flint()
        arb, acb = flint.arb, flint.acb
        step, reach, eta = arb(ray.step), self.reach, arb(self.eta)
        dx, t = step * self.spread * arb(self.noise), 1 / arb(self.noise)
        size = ray.count * ray.stride + 2 * self.around
        angle = arb(self.theta) - t * eta
        r = (step * (ray.first - self.around) - t * t / 2).exp() * self.chance / self.batches
        r = acb(0, -angle).exp() * r
        ratio, most = step.exp(), float(ray.bits)
        small = arb(0, (-arb(most)).exp().upper())
        table = []
        for _ in range(size):
            table.append(acb(small, small) if r.real > most else (-r).exp())
            r *= ratio
        scale = dx / (2 * arb.pi()).sqrt()
        half = [(-(acb(k * dx, eta) ** 2) / 2).exp() * scale for k in range(reach + 1)]
        weights = flint.acb_poly([*half[:0:-1], half[0], *(each.conjugate() for each in half[1:])])
        # Points v of one remainder of the lattice share the points x.
        products = [flint.acb_poly(table[k :: self.spread]) * weights for k in range(self.spread)]
        error = self._error_of_mean(t, dx)
        error = acb(error, error)
        places = range(0, ray.count * ray.stride, ray.stride)
        return [
            (products[k % self.spread][2 * reach + k // self.spread] + error) ** self.batches
            for k in places
        ]

    def constant(self, ray: _Ray) -> list[Ball]:
        """Return the power at each v where Y is 1."""
        flint = _flint()
        turn = flint.acb(0, -flint.arb(self.theta))
        lattice = (flint.arb(ray.step) * (ray.first + ray.stride * k) for k in range(ray.count))
        return [(-(v + turn).exp() * self.chance).exp() for v in lattice]

    def _error_of_mean(self, t: Ball, dx: Ball) -> Ball:
        """Return a bound on the error of every sum over x."""
        arb = _flint().arb
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


def _variance(loss: Allocation) -> float:
    """Return about the variance of a loss."""
    square = sum(
        chance**2 * math.expm1(min(sigma**-2, 600.0)) / m for sigma, m, chance in loss.groups
    )
    return math.log1p(square) if len(loss.groups) > 1 else Total(((loss, 1),)).at_zero[1]


def _log_moment(parts: Epochs, p: float) -> float:
    """Return log E Lambda^-p, rounded up, or its bound in closed form where it is out of reach.

    L is at least the product of the means over groups, each to the power of its probability.
    """
    total = 0.0
    for loss, count in parts:
        for sigma, m, chance in loss.groups:
            if sigma == math.inf:
                continue
            law = Allocation(sigma, m, "add")
            found = law.log_mgf_bound(p * chance)
            with contextlib.suppress(OutOfReach):
                found = float(law.cumulants([p * chance])[0, 0])
            total += count * found
    return total * (1 + 1e-9) + 1e-12


def _flint() -> Any:
    """Return python-flint, which other runs do not load."""
    return importlib.import_module("flint")


def _down(ball: Ball) -> float:
    """Return a double that is at most a number."""
    return float(np.nextafter(float(ball), -math.inf))


def _up(ball: Ball) -> float:
    """Return a double that is at least a number."""
    return float(np.nextafter(float(ball), math.inf))
