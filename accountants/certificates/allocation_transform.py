r"""The transform of an epoch of random allocation, enclosed along a line: rotated Gamma integrals.

L = sum of p_j Y_j, Y_j = exp(t_j X_j - t_j^2 / 2), X_j standard normal, is the likelihood ratio of
an epoch: batch j, with t_j = 1 / sigma_j, holds the record with probability p_j. A record that is
added has M(z) = E L^-z. For z = c + i u, c > 0, u >= 0 and 0 < theta < pi / 2

    E L^-z = 1 / Gamma(z) * integral over v of exp(z (v + i theta)) G(v),
    G(v) = E exp(-s L) = product of E exp(-s p_j Y_j),  s = exp(v + i theta).

Both integrals are sums over lattices, v of step h and x of step h sigma. The sums leave out:

* a step of v: at v + i y the integrand is at most that of the real line at s cos(y + theta), whose
  integral is Gamma(c) M(c) cos(y + theta)^-c exp(-u (y + theta)) (Trefethen and Weideman 2014,
  Theorem 5.1, for each side of the strip by itself);
* points v below the first, by abs(G) <= 1; points above the last, by exp(-r L) <= (n / (e r L))^n
  and E L^-n <= exp(n sum p_j t_j^2 / 2 + n^2 sum p_j^2 t_j^2 / 2) (arithmetic over geometric mean);
* a step of x: on a strip of half-width d < (pi / 2 - theta) / t, Re(s Y) >= 0, so that the error
  is at most 2 exp(d^2 / 2) / (exp(2 pi d / step) - 1); and points x farther than the reach from 0.

The projection of X on (1 / t_j)_j moves all t_j X_j alike, and is independent of the rest of L
without this projection: abs(M(c + i u)) is at most M(c) exp(-u^2 / (2 sum t_j^-2)).

The ray, with the points exp(v - i theta) of s, is a part of the proof. A bad ray makes the errors
large, but no enclosure false.

>>> from dpcal.accountants.losses.allocation import Allocation
>>> from dpcal.accountants.certificates.balls import workprec
>>> with workprec(128):
...     ray = Line(angle=1.1, step=0.08, first=-900, last=90, reach=150)
...     value = AllocationTransform(Allocation(1.0, 2, "add")).along(ray, 0.5, 3.0, 2)[1]
>>> print(value.real.str(8, radius=False), value.imag.str(8, radius=False))
-0.02506041 0.10529722
"""

from __future__ import annotations

from dpcal.accountants.certificates.balls import Ball, acb, acb_poly, arb, within
from dpcal.accountants.certificates.transforms import Line, Transform, sums_of_powers
from dpcal.accountants.losses.allocation import Allocation

_NEARLY = 31 / 32
_SPARE = 20


class AllocationTransform(Transform):
    """M of an epoch of random allocation when a record is added."""

    def __init__(self, loss: Allocation) -> None:
        rows = [(arb(g.noise_multiplier), g.batches, arb(g.probability)) for g in loss.groups]
        # Doubles add up to 1 except for rounding.
        whole = sum((chance for *_, chance in rows), arb(0))
        self.groups = [(sigma, m, chance / whole) for sigma, m, chance in rows]
        self.laws = len(self.groups)
        # E L^-n is at most exp((n drift + n^2 spread) / 2).
        self.drift = sum((chance / sigma**2 for sigma, _, chance in self.groups), arb(0))
        self.spread = sum((p**2 / (m * sigma**2) for sigma, m, p in self.groups), arb(0))
        # M falls like the transform of a normal law with this variance.
        self.fall = 1 / sum((m * sigma**2 for sigma, m, _ in self.groups), arb(0))

    def _heights(self, line: Line) -> list[Ball]:
        """Return G at each point."""
        found = [acb(1)] * line.points
        for sigma, m, chance in self.groups:
            means = self._means(line, sigma, chance / m)
            found = [a * mean**m for a, mean in zip(found, means, strict=True)]
        return found

    def _means(self, line: Line, sigma: Ball, share: Ball) -> list[Ball]:
        """Enclose E exp(-s share Y) at each point, of a batch with this noise."""
        t, spacing = 1 / sigma, arb(line.step)
        step = spacing * sigma
        around = within(self._error_of_mean(line, t, step))
        # Entries of a table of exp(-s share Y) depend only on v + t x.
        turned = (acb(0, 1) * line.angle).exp() * share
        most = (line.reach * step) ** 2 / 2 + _SPARE
        negligible, table = within((-most).exp()), []
        for k in range(line.first - line.reach, line.last + line.reach + 1):
            place = turned * (k * spacing - t**2 / 2).exp()
            table.append(negligible if place.real > most else (-place).exp())
        scale = step / (2 * arb.pi()).sqrt()
        near = range(-line.reach, line.reach + 1)
        weights = [scale * (-((k * step) ** 2) / 2).exp() for k in near]
        product = acb_poly(table) * acb_poly(weights)
        return [product[2 * line.reach + k] + around for k in range(line.points)]

    @staticmethod
    def _error_of_mean(line: Line, t: Ball, step_of_x: Ball) -> Ball:
        """Bound the error of every sum over x if absolute values of terms are below densities."""
        pi = arb.pi()
        d = arb.min(_NEARLY * (pi / 2 - line.angle) / t, 2 * pi / step_of_x)
        error = 2 * (d * d / 2).exp() / (2 * pi * d / step_of_x).expm1()
        # A sum over omitted points is below an integral.
        reach = (line.reach - 1) * step_of_x
        return error + (reach / arb(2).sqrt()).erfc()

    def along(self, line: Line, c: float, h: float, nodes: int) -> list[Ball]:
        """Sum the terms of the rule, and add its errors."""
        at = arb(c)
        step, angle = arb(line.step), arb(line.angle)
        places = [acb(k * step, angle) for k in range(line.first, line.last + 1)]
        terms = [
            step * height * (at * place).exp()
            for height, place in zip(self._heights(line), places, strict=True)
        ]
        sums = sums_of_powers(terms, places, acb(0, h), nodes)
        ends, most = self._ends(line, at), at.gamma()
        values: list[Ball] = []
        # The value at u = 0 bounds M(c), and its error is a share of M(c).
        largest = arb("nan")
        for k, value in enumerate(sums):
            u = k * arb(h)
            inverse = acb(at, u).rgamma()
            size = abs(inverse)
            rule, rest = most * size * self._rule(line, at, u), size * ends * (-u * angle).exp()
            if k == 0:
                largest = ((value * inverse).real + rest) / (1 - rule)
                largest = arb(largest.upper()) if rule < 1 else arb("nan")
            values.append(value * inverse + within(rule * largest + rest))
        return values

    @staticmethod
    def _rule(line: Line, c: Ball, u: Ball) -> Ball:
        """Bound the error of the step of v at c + i u, over Gamma(c) M(c) / abs(Gamma(c + i u))."""
        pi, total = arb.pi(), arb(0)
        for sign in (1, -1):
            widest, rate = pi / 2 + sign * line.angle, 2 * pi / line.step - sign * u
            rest = (c / rate).atan() if rate > 0 else widest
            y = widest - arb.min(rest, _NEARLY * widest)
            away = line.angle - sign * y
            total += (-u * away).exp() / away.cos() ** c / (2 * pi * y / line.step).expm1()
        return total

    def _ends(self, line: Line, c: Ball) -> Ball:
        """Bound the sums of absolute values at u = 0 over all points left out on either side."""
        step = arb(line.step)
        low, high = (line.first - 1) * step, (line.last + 1) * step
        below = step * (c * low).exp() / (1 - (-c * step).exp())
        # The least bound on E L^-n, except for a factor, is at the n where its derivative is 0.
        away = arb(line.angle).cos()
        n = (self.spread * away * (high - self.drift / 2).exp()).lambertw() / self.spread
        n = arb(arb.max(n, c + 1).mid())
        size = (n * self.drift + n * n * self.spread) / 2 + n * (n.log() - 1)
        size = (size - (n - c) * high).exp() / away**n
        return below + size * step / (1 - ((c - n) * step).exp())

    def beyond(self, line: Line, c: float, t: Ball) -> Ball:
        """Return M(c) times the transform of a projection of X, which falls."""
        return self.at(line, c) * (-t * t * self.fall / 2).exp()
