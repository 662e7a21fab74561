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

Where batches differ, L is the sum of p_j Y_j, Y_j = exp(t_j X_j - t_j^2 / 2), and with order m = 0

    G(v) = product of E exp(-s p_j Y_j),
    E L^-n <= exp(n sum p_j t_j^2 / 2 + n^2 sum p_j^2 t_j^2 / 2) (arithmetic over geometric mean),
    abs(F(a + i u)) <= F(a) exp(-u^2 / (2 sum t_j^-2)):

the projection of X on (1 / t_j)_j moves all t_j X_j alike, and is independent of what is left.

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

__all__ = ["AllocationTransform", "UnequalTransform"]

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
    """G of an epoch at points v, E L^m, and numbers in bounds on L.

    E L^-n is at most exp((n drift + n^2 spread) / 2), and the transform falls like that of a normal
    law of variance ``fall``.
    """

    points: list[Ball]
    heights: list[Ball]
    whole: Ball
    drift: Ball
    spread: Ball
    fall: Ball


class AllocationTransform(Transform):
    """M of an epoch of random allocation, summed along a ray.

    If the number of batches is random, ``numbers`` has the numbers and their masses.
    """

    def __init__(
        self, loss: Allocation, rays: Rays, numbers: Sequence[tuple[int, Ball]] | None = None
    ) -> None:
        arb = balls.arb
        self.rays = rays
        self.removing = loss.direction == "remove"
        self.step, self.angle = arb(rays.step), arb(rays.angle)
        self.points = [arb(k) * self.step for k in range(rays.first, rays.last + 1)]
        self.epochs = self._epochs(loss, numbers)

    # -- G at the points

    def _epochs(
        self, loss: Allocation, numbers: Sequence[tuple[int, Ball]] | None
    ) -> list[tuple[Ball, _Epoch]]:
        """Return the epochs of each number of batches, and their masses."""
        numbers = [(loss.batches, balls.arb(1))] if numbers is None else numbers
        first, sigma = numbers[0][0], balls.arb(loss.noise_multiplier)
        table = self._table(sigma, balls.arb(1) / first)
        return [(mass, self._epoch(table, count, first, sigma)) for count, mass in numbers]

    def _epoch(self, table: list[list[Ball]], batches: int, first: int, sigma: Ball) -> _Epoch:
        """Return an epoch of this number of batches, by the table for the first number."""
        # Of the coefficient of a power, so that at s = 0 it is E L^m.
        order, arb = self.rays.order, balls.arb
        share = arb(order + 1).gamma() / arb(batches) ** order
        moved, square = (arb(batches) / first).log(), 1 / sigma**2
        return _Epoch(
            [point + moved for point in self.points],
            [_coefficient(terms, batches) * share for terms in table],
            _coefficient(self._scales(1 / sigma), batches) * share,
            square,
            square / batches,
            square / batches,
        )

    def _scales(self, t: Ball) -> list[Ball]:
        """Return E Y^j / j! for each order."""
        j = [balls.arb(k) for k in range(self.rays.order + 1)]
        return [(k * (k - 1) * t**2 / 2).exp() * (k + 1).rgamma() for k in j]

    def _table(self, sigma: Ball, share: Ball) -> list[list[Ball]]:
        """Enclose c_0, ..., c_m at each v, of a batch with this noise and share of L."""
        acb, rays = balls.acb, self.rays
        t, step_of_x = 1 / sigma, self.step * sigma
        around = balls.within(self._error_of_mean(t, step_of_x))
        # The lattice point nearest to j t, for each order.
        ratio = float((t / step_of_x).mid())
        centers = [round(j * ratio) for j in range(rays.order + 1)]
        left, right = centers[0] - rays.reach, centers[-1] + rays.reach
        # A table of exp(-s Y / M), whose entries depend on v + t x alone.
        turned = (acb(0, -1) * self.angle).exp() * share
        at = -(t**2) / 2
        # Entries far below the errors would slow down products of polynomials.
        most = (rays.reach * step_of_x) ** 2 / 2 + _SPARE
        negligible, table = balls.within((-most).exp()), []
        for k in range(rays.first + left, rays.last + right + 1):
            place = turned * (at + k * self.step).exp()
            table.append(negligible if place.real > most else (-place).exp())
        scale = step_of_x / (2 * balls.arb.pi()).sqrt()
        terms = []
        for j, (center, size) in enumerate(zip(centers, self._scales(t), strict=True)):
            # The density times Y^j / E Y^j is a normal density around j t.
            near = range(center - rays.reach, center + rays.reach + 1)
            weights = [scale * (-((k * step_of_x - j * t) ** 2) / 2).exp() for k in near]
            part = table[near[0] - left : len(table) - (right - near[-1])]
            product = balls.acb_poly(part) * balls.acb_poly(weights[::-1])
            first = len(weights) - 1
            means = [product[first + k] for k in range(len(self.points))]
            terms.append([size * (mean + around) for mean in means])
        return [list(each) for each in zip(*terms, strict=True)]

    def _error_of_mean(self, t: Ball, step_of_x: Ball) -> Ball:
        """Bound the error of every sum over x, whose terms have absolute values below densities."""
        pi, best = balls.arb.pi(), balls.arb("inf")
        widest = balls.arb.min((pi / 2 - self.angle) / t, 2 * pi / step_of_x)
        for share in _SHARES:
            d = widest * share
            error = 2 * (d * d / 2).exp() / (2 * pi * d / step_of_x).expm1()
            best = balls.arb.min(best, error)
        # The nearest point to j t is half a step away at most, and sums lie below integrals.
        reach = (self.rays.reach - 1) * step_of_x
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
            value = value * inverse + balls.within(rule * largest + rest)
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
        best = arb("inf")
        for power in _POWERS:
            # With k = m + n, L^m exp(-r L) <= (k / (e r))^k L^-n.
            k, n = self.rays.order + arb(power), arb(power)
            falls = k - b
            if not falls > 0:
                continue
            size = (n * epoch.drift + n * n * epoch.spread) / 2 + k * (k.log() - 1)
            size = (size - falls * high).exp() / self.angle.cos() ** k
            best = arb.min(best, size * step / (1 - (-falls * step).exp()))
        return below + best

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Return M(c) times the transform of a projection of X, which falls."""
        total, one = balls.arb(0), balls.arb(1)
        for mass, epoch in self.epochs:
            at_c = self._along_line(epoch, c, one, 1)[0].real
            total += mass * at_c * (-t * t * epoch.fall / 2).exp()
        return total


class UnequalTransform(AllocationTransform):
    """M of an epoch whose batches differ, along rays of order 0; nan where that has no integral."""

    def _epochs(
        self, loss: Allocation, numbers: Sequence[tuple[int, Ball]] | None
    ) -> list[tuple[Ball, _Epoch]]:
        """Return the one epoch: each batch has the share of L that its group's probability says."""
        if self.rays.order != 0:
            raise ValueError(f"order must be 0 where batches differ, got {self.rays.order!r}.")
        arb = balls.arb
        groups = [(arb(g.noise_multiplier), g.batches, arb(g.probability)) for g in loss.groups]
        heights, drift, spread = [balls.acb(1)] * len(self.points), arb(0), arb(0)
        # Doubles may add up to 1 but for their rounding.
        whole = sum((chance for *_, chance in groups), arb(0))
        for sigma, m, given in groups:
            chance = given / whole
            table = self._table(sigma, chance / m)
            heights = [a * terms[0] ** m for a, terms in zip(heights, table, strict=True)]
            drift += chance / sigma**2
            spread += chance**2 / (m * sigma**2)
        fall = 1 / sum((m * sigma**2 for sigma, m, _ in groups), arb(0))
        return [(arb(1), _Epoch(self.points, heights, arb(1), drift, spread, fall))]
