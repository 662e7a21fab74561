r"""The transform of an epoch of random allocation, enclosed along a line: rotated Gamma integrals.

L = (Y_1 + ... + Y_M) / M, Y_i = exp(t X_i - t^2 / 2), X_i standard normal, is the likelihood ratio
of an epoch of M batches, t = 1 / sigma. For q = a + i u, u >= 0, a whole m > a, b = m - a and
0 < theta < pi / 2

    F(q) = E L^q = 1 / Gamma(b - i u) * integral over v of exp((b - i u)(v - i theta)) G(v),
    G(v) = E L^m exp(-s L) = m! M^-m [x^m] (c_0 + c_1 x + ... + c_m x^m)^M,  s = exp(v - i theta),
    c_j = E Y^j exp(-s Y / M) / j! = exp(j (j - 1) t^2 / 2) / j! * E exp(-s Y e^(j t^2) / M),

M(z) is F(1 + z) when a record is removed and the conjugate of F(-conj z) when it is added. Both
integrals are sums over lattices, v of step h and x of step h sigma. What the sums leave out:

* a step of v: at v + i y the integrand is at most that of the real line at s cos(y - theta), whose
  integral is Gamma(b) F(a) cos(y - theta)^-b exp(u (y - theta)) (Trefethen and Weideman 2014,
  Theorem 5.1, for each side of the strip by itself);
* points v below the first, by abs(G) <= E L^m; points above the last, by L^k exp(-r L) <= (k / (e
  r))^k and E L^-n <= exp(n t^2 / 2 + n^2 t^2 / (2 M)) (arithmetic over geometric mean);
* a step of x: on a strip of half-width d < (pi / 2 - theta) / t, Re(s Y) >= 0, so that the error
  is at most 2 exp(d^2 / 2) / (exp(2 pi d / step) - 1); and points x farther than the reach from the
  mean j t, of a normal law.

Numbers M' of batches that are random have the mean of their transforms. The table of the c_j for M
serves M' too: its points s / M are s' / M', v' = v + log(M' / M).

The mean of all X_j is independent of what is left of L without it: abs(F(a + i u)) is at most F(a)
exp(-u^2 t^2 / (2 M)).

>>> from dpcal.accountants.certificates import balls
>>> from dpcal.accountants.certificates.proofs import Rays
>>> from dpcal.accountants.losses.allocation import Allocation
>>> with balls.workprec(128):
...     rays = Rays(order=0, angle=1.2, step=0.04, first=-1500, last=250, reach=250)
...     transform = AllocationTransform(Allocation(1.0, 2, "add"), rays)
...     value = transform.along_line(balls.arb(0.5), balls.arb(3), 2)[1]
>>> print(value.real.str(12), value.imag.str(12))
[-0.025060410518 +/- 2.70e-13] [0.105297223256 +/- 2.65e-13]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.proofs import Rays
from dpcal.accountants.certificates.transforms import Transform, sums_of_powers
from dpcal.accountants.losses.allocation import Allocation

__all__ = ["AllocationTransform"]

# Shares of the widest strips that are tried.
_SHARES = tuple(k / 32 for k in range(1, 32))
# Powers of L whose means bound what lies beyond the last point.
_POWERS = tuple(2.0 ** (k / 2) for k in range(-4, 24))
# Nats by which entries of a table that are left out lie below the weights at its ends.
_SPARE = 20


def _coefficient(terms: list[Ball], power: int) -> Ball:
    """Return the last coefficient of (terms[0] + terms[1] x + ...)^power (Miller's recurrence)."""
    if len(terms) == 1:
        return terms[0] ** power
    ratios = [term / terms[0] for term in terms]
    found = [terms[0] ** power]
    for k in range(1, len(terms)):
        total = sum((j * power - k + j) * ratios[j] * found[k - j] for j in range(1, k + 1))
        found.append(total / k)
    return found[-1]


@dataclass(frozen=True)
class _Epoch:
    """G of one number of batches, at points v, and E L^m."""

    batches: int
    points: list[Ball]
    heights: list[Ball]
    whole: Ball


class AllocationTransform(Transform):
    """M of an epoch of random allocation.

    Parameters
    ----------
    loss
        The loss.
    rays
        The ray and the lattices of the sums.
    numbers
        Numbers of batches and their masses, if they are random; None is the loss's number.
    """

    def __init__(
        self, loss: Allocation, rays: Rays, numbers: Sequence[tuple[int, Ball]] | None = None
    ) -> None:
        arb = balls.arb
        self.rays = rays
        self.removing = loss.direction == "remove"
        self.t = 1 / arb(loss.noise_multiplier)
        self.step, self.angle = arb(rays.step), arb(rays.angle)
        self.step_of_x = self.step * arb(loss.noise_multiplier)
        j, square = [arb(k) for k in range(rays.order + 1)], self.t**2
        self.scales = [(k * (k - 1) * square / 2).exp() * (k + 1).rgamma() for k in j]
        self.points = [arb(k) * self.step for k in range(rays.first, rays.last + 1)]
        numbers = [(loss.batches, arb(1))] if numbers is None else numbers
        first = numbers[0][0]
        table = self._table(first)
        self.epochs = [(mass, self._epoch(table, count, first)) for count, mass in numbers]

    # -- G at the points

    def _epoch(self, table: list[list[Ball]], batches: int, first: int) -> _Epoch:
        """Return an epoch of this number of batches, by the table for the first number."""
        # Of the coefficient of a power, so that at s = 0 it is E L^m.
        order, arb = self.rays.order, balls.arb
        share = arb(order + 1).gamma() / arb(batches) ** order
        moved = (arb(batches) / first).log()
        return _Epoch(
            batches,
            [point + moved for point in self.points],
            [_coefficient(terms, batches) * share for terms in table],
            _coefficient(self.scales, batches) * share,
        )

    def _table(self, batches: int) -> list[list[Ball]]:
        """Enclose c_0, ..., c_m at each v."""
        acb, rays = balls.acb, self.rays
        error = self._error_of_mean()
        centers = self._centers()
        left, right = centers[0] - rays.reach, centers[-1] + rays.reach
        # A table of exp(-s Y / M), whose entries depend on v + t x alone.
        turned = (acb(0, -1) * self.angle).exp() / batches
        at = -(self.t**2) / 2
        # Entries far below the errors would slow down products of polynomials.
        most = (rays.reach * self.step_of_x) ** 2 / 2 + _SPARE
        small = balls.arb(0, (-most).exp().upper())
        negligible, table = acb(small, small), []
        for k in range(rays.first + left, rays.last + right + 1):
            place = turned * (at + k * self.step).exp()
            table.append(negligible if place.real > most else (-place).exp())
        scale = self.step_of_x / (2 * balls.arb.pi()).sqrt()
        terms = []
        for j, center in enumerate(centers):
            # The density times Y^j / E Y^j is a normal density around j t.
            near = range(center - rays.reach, center + rays.reach + 1)
            weights = [scale * (-((k * self.step_of_x - j * self.t) ** 2) / 2).exp() for k in near]
            part = table[near[0] - left : len(table) - (right - near[-1])]
            product = balls.acb_poly(part) * balls.acb_poly(weights[::-1])
            first = len(weights) - 1
            means = [product[first + k] for k in range(len(self.points))]
            scaled = balls.arb(0, error.upper())
            around = acb(scaled, scaled)
            terms.append([self.scales[j] * (mean + around) for mean in means])
        return [list(each) for each in zip(*terms, strict=True)]

    def _centers(self) -> list[int]:
        """Return the lattice point nearest to j t, for each order."""
        ratio = float((self.t / self.step_of_x).mid())
        return [round(j * ratio) for j in range(self.rays.order + 1)]

    def _error_of_mean(self) -> Ball:
        """Bound the error of every sum over x, whose terms have absolute values below densities."""
        pi, best = balls.arb.pi(), balls.arb("inf")
        widest = balls.arb.min((pi / 2 - self.angle) / self.t, 2 * pi / self.step_of_x)
        for share in _SHARES:
            d = widest * share
            error = 2 * (d * d / 2).exp() / (2 * pi * d / self.step_of_x).expm1()
            best = balls.arb.min(best, error)
        # The nearest point to j t is half a step away at most, and sums lie below integrals.
        reach = (self.rays.reach - 1) * self.step_of_x
        return best + (reach / balls.arb(2).sqrt()).erfc()

    # -- F along a line

    def _power(self, c: Ball) -> Ball:
        return 1 + c if self.removing else -c

    def along_line(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Return the mean over the numbers of batches."""
        total = [balls.acb(0)] * nodes
        for mass, epoch in self.epochs:
            values = self._along_line(epoch, c, h, nodes)
            total = [a + mass * b for a, b in zip(total, values, strict=True)]
        return total

    def _along_line(self, epoch: _Epoch, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Sum the terms of the rule for one number of batches, and add its errors."""
        arb, acb = balls.arb, balls.acb
        b = self.rays.order - self._power(c)
        if not b > 0:
            return [acb(arb("nan"))] * nodes
        places = [acb(v, -self.angle) for v in epoch.points]
        terms = [
            self.step * height * (b * place).exp()
            for height, place in zip(epoch.heights, places, strict=True)
        ]
        sums = sums_of_powers(terms, places, acb(0, -h), nodes)
        ends, most = self._ends(epoch, b), b.gamma()
        values: list[Ball] = []
        # F(a) is bounded by what is found at u = 0, whose error is a share of it.
        largest = arb("nan")
        for k, value in enumerate(sums):
            u = k * h
            inverse = acb(b, -u).rgamma()
            size = abs(inverse)
            rule, rest = most * size * self._rule(b, u), size * ends * (-u * self.angle).exp()
            if k == 0:
                largest = ((value * inverse).real + rest) / (1 - rule)
                largest = arb(largest.upper()) if rule < 1 else arb("nan")
            error = arb(0, (rule * largest + rest).upper())
            value = value * inverse + acb(error, error)
            values.append(value if self.removing else value.conjugate())
        return values

    def _rule(self, b: Ball, u: Ball) -> Ball:
        """Bound the error of the step of v at b - i u, over Gamma(b) F(a) / abs(Gamma(b - i u))."""
        pi, total = balls.arb.pi(), balls.arb(0)
        for sign, widest in ((1, pi / 2 + self.angle), (-1, pi / 2 - self.angle)):
            best = balls.arb("inf")
            for share in _SHARES:
                y = widest * share
                away = self.angle - sign * y
                size = (-u * away).exp() / away.cos() ** b
                best = balls.arb.min(best, size / (2 * pi * y / self.step).expm1())
            total += best
        return total

    def _ends(self, epoch: _Epoch, b: Ball) -> Ball:
        """Bound the sums of absolute values at u = 0 over all points left out on either side."""
        arb, step = balls.arb, self.step
        low, high = epoch.points[0] - step, epoch.points[-1] + step
        below = epoch.whole * step * (b * low).exp() / (1 - (-b * step).exp())
        best, square = arb("inf"), self.t**2
        for power in _POWERS:
            # With k = m + n, L^m exp(-r L) <= (k / (e r))^k L^-n.
            k, n = self.rays.order + arb(power), arb(power)
            falls = k - b
            if not falls > 0:
                continue
            size = n * square / 2 + n * n * square / (2 * epoch.batches) + k * (k.log() - 1)
            size = (size - falls * high).exp() / self.angle.cos() ** k
            best = arb.min(best, size * step / (1 - (-falls * step).exp()))
        return below + best

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Return M(c) times the transform of the mean of all X_j, which falls."""
        total, one = balls.arb(0), balls.arb(1)
        for mass, epoch in self.epochs:
            at_c = self._along_line(epoch, c, one, 1)[0].real
            total += mass * at_c * (-t * t * self.t**2 / (2 * epoch.batches)).exp()
        return total
