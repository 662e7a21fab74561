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

Numbers M' of batches that are random have the mean of their transforms. The table of the means for
M serves M' too: its points s / M are s' / M', v' = v + log(M' / M).

The projection of X on (1 / t_j)_j moves all t_j X_j alike, and is independent of what is left of L
without it: abs(M(c + i u)) is at most M(c) exp(-u^2 / (2 sum t_j^-2)).

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


@dataclass(frozen=True)
class _Epoch:
    """G of an epoch at points v, and numbers in bounds on L.

    E L^-n is at most exp((n drift + n^2 spread) / 2), and the transform falls like that of a normal
    law of variance ``fall``.
    """

    points: list[Ball]
    heights: list[Ball]
    drift: Ball
    spread: Ball
    fall: Ball


class AllocationTransform(Transform):
    """M of an epoch of random allocation, summed along a ray; nan if a record is removed.

    If the number of batches, which are alike, is random, ``numbers`` has the numbers and their
    masses.
    """

    def __init__(
        self, loss: Allocation, rays: Rays, numbers: Sequence[tuple[int, Ball]] | None = None
    ) -> None:
        arb = balls.arb
        self.rays, self.removing = rays, loss.direction == "remove"
        self.step, self.angle = arb(rays.step), arb(rays.angle)
        self.points = [arb(k) * self.step for k in range(rays.first, rays.last + 1)]
        groups = [(arb(g.noise_multiplier), g.batches, arb(g.probability)) for g in loss.groups]
        # Doubles may add up to 1 but for their rounding.
        whole = sum((chance for *_, chance in groups), arb(0))
        tables = [
            (sigma, m, chance / whole, self._means(sigma, chance / whole / m))
            for sigma, m, chance in groups
        ]
        if numbers is None:
            self.epochs = [(arb(1), self._epoch(tables, self.points))]
            return
        ((sigma, first, chance, table),) = tables
        self.epochs = []
        for count, mass in numbers:
            points = [point + (arb(count) / first).log() for point in self.points]
            self.epochs.append((mass, self._epoch([(sigma, count, chance, table)], points)))

    # -- G at the points

    @staticmethod
    def _epoch(groups: list[tuple[Ball, int, Ball, list[Ball]]], points: list[Ball]) -> _Epoch:
        """Return an epoch of groups: noises, numbers, probabilities and means at the points."""
        zero = balls.arb(0)
        heights = [balls.acb(1)] * len(points)
        for _, m, _, table in groups:
            heights = [a * mean**m for a, mean in zip(heights, table, strict=True)]
        drift = sum((chance / sigma**2 for sigma, _, chance, _ in groups), zero)
        spread = sum((chance**2 / (m * sigma**2) for sigma, m, chance, _ in groups), zero)
        fall = 1 / sum((m * sigma**2 for sigma, m, *_ in groups), zero)
        return _Epoch(points, heights, drift, spread, fall)

    def _means(self, sigma: Ball, share: Ball) -> list[Ball]:
        """Enclose E exp(-s share Y) at each point, of a batch with this noise."""
        rays, t, step = self.rays, 1 / sigma, self.step * sigma
        around = balls.within(self._error_of_mean(t, step))
        # A table of exp(-s share Y), whose entries depend on v + t x alone.
        turned = (balls.acb(0, 1) * self.angle).exp() * share
        # Entries far below the errors would slow down products of polynomials.
        most = (rays.reach * step) ** 2 / 2 + _SPARE
        negligible, table = balls.within((-most).exp()), []
        for k in range(rays.first - rays.reach, rays.last + rays.reach + 1):
            place = turned * (k * self.step - t**2 / 2).exp()
            table.append(negligible if place.real > most else (-place).exp())
        scale = step / (2 * balls.arb.pi()).sqrt()
        near = range(-rays.reach, rays.reach + 1)
        weights = [scale * (-((k * step) ** 2) / 2).exp() for k in near]
        product = balls.acb_poly(table) * balls.acb_poly(weights)
        return [product[2 * rays.reach + k] + around for k in range(len(self.points))]

    def _error_of_mean(self, t: Ball, step_of_x: Ball) -> Ball:
        """Bound the error of every sum over x, whose terms have absolute values below densities."""
        pi, best = balls.arb.pi(), balls.arb("inf")
        widest = balls.arb.min((pi / 2 - self.angle) / t, 2 * pi / step_of_x)
        for share in _SHARES:
            d = widest * share
            error = 2 * (d * d / 2).exp() / (2 * pi * d / step_of_x).expm1()
            best = balls.arb.min(best, error)
        # Sums lie below integrals.
        reach = (self.rays.reach - 1) * step_of_x
        return best + (reach / balls.arb(2).sqrt()).erfc()

    # -- M along a line

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
        if self.removing or not c > 0:
            return [acb(arb("nan"))] * nodes
        places = [acb(v, self.angle) for v in epoch.points]
        terms = [
            self.step * height * (c * place).exp()
            for height, place in zip(epoch.heights, places, strict=True)
        ]
        sums = sums_of_powers(terms, places, acb(0, h), nodes)
        ends, most = self._ends(epoch, c), c.gamma()
        values: list[Ball] = []
        # M(c) is bounded by what is found at u = 0, whose error is a share of it.
        largest = arb("nan")
        for k, value in enumerate(sums):
            u = k * h
            inverse = acb(c, u).rgamma()
            size = abs(inverse)
            rule, rest = most * size * self._rule(c, u), size * ends * (-u * self.angle).exp()
            if k == 0:
                largest = ((value * inverse).real + rest) / (1 - rule)
                largest = arb(largest.upper()) if rule < 1 else arb("nan")
            values.append(value * inverse + balls.within(rule * largest + rest))
        return values

    def _rule(self, c: Ball, u: Ball) -> Ball:
        """Bound the error of the step of v at c + i u, over Gamma(c) M(c) / abs(Gamma(c + i u))."""
        pi, total = balls.arb.pi(), balls.arb(0)
        for sign, widest in ((1, pi / 2 + self.angle), (-1, pi / 2 - self.angle)):
            best = balls.arb("inf")
            for share in _SHARES:
                y = widest * share
                away = self.angle - sign * y
                size = (-u * away).exp() / away.cos() ** c
                best = balls.arb.min(best, size / (2 * pi * y / self.step).expm1())
            total += best
        return total

    def _ends(self, epoch: _Epoch, c: Ball) -> Ball:
        """Bound the sums of absolute values at u = 0 over all points left out on either side."""
        arb, step = balls.arb, self.step
        low, high = epoch.points[0] - step, epoch.points[-1] + step
        below = step * (c * low).exp() / (1 - (-c * step).exp())
        best = arb("inf")
        for power in _POWERS:
            n = arb(power)
            falls = n - c
            if not falls > 0:
                continue
            size = (n * epoch.drift + n * n * epoch.spread) / 2 + n * (n.log() - 1)
            size = (size - falls * high).exp() / self.angle.cos() ** n
            best = arb.min(best, size * step / (1 - (-falls * step).exp()))
        return below + best

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Return M(c) times the transform of a projection of X, which falls."""
        total, one = balls.arb(0), balls.arb(1)
        for mass, epoch in self.epochs:
            at_c = self._along_line(epoch, c, one, 1)[0].real
            total += mass * at_c * (-t * t * epoch.fall / 2).exp()
        return total
