"""Delta of one noisy answer in balls: two mixtures of one noise, moved along the line.

>>> from flint import ctx
>>> with ctx.workprec(64):
...     pair = Pair(normal, arb(2), [(arb(1), arb(1))], [(arb(0), arb(1))])
...     exact = (arb(1) / 4 / arb(2).sqrt()).erf()
...     pair.delta(arb(0)).overlaps(exact)
True

Nothing here is shared with an accountant: python-flint is all that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import arb, ctx

Ball = Any
Mixture = list[tuple[Ball, Ball]]
"""Means and weights of the components of a law."""


def normal(x: Ball, scale: Ball) -> tuple[Ball, Ball]:
    """Return a normal density, up to a factor, and the chance of more than x."""
    return (-(x * x) / (2 * scale * scale)).exp(), (x / (scale * arb(2).sqrt())).erfc() / 2


def laplace(x: Ball, scale: Ball) -> tuple[Ball, Ball]:
    """Return a Laplace density, up to a factor, and the chance of more than x."""
    density = (-abs(x) / scale).exp()
    if x >= 0:
        return density, density / 2
    if x <= 0:
        return density, 1 - density / 2
    return density, arb(0.5, 0.5)


@dataclass(frozen=True)
class Pair:
    """Mixtures P and Q of one noise, symmetric and log-concave; no mean of P is below one of Q.

    The ratio of the densities grows along the line, so that half-lines are the best tests (Neyman
    and Pearson): delta at k = exp(epsilon) is the largest P(x, inf) - k Q(x, inf).
    """

    noise: Callable[[Ball, Ball], tuple[Ball, Ball]]
    scale: Ball
    p: Mixture
    q: Mixture

    def _sums(self, x: Ball) -> tuple[Ball, Ball, Ball, Ball]:
        """Return both densities, up to one factor, and both chances of more than x."""
        found = []
        for mixture in (self.p, self.q):
            density, tail = arb(0), arb(0)
            for mean, weight in mixture:
                one, other = self.noise(x - mean, self.scale)
                density, tail = density + weight * one, tail + weight * other
            found.append((density, tail))
        (p, above_p), (q, above_q) = found
        return p, q, above_p, above_q

    def delta(self, epsilon: Ball) -> Ball:
        """Enclose delta at an epsilon."""
        k = epsilon.exp()
        threshold = self._threshold(k)
        if threshold is None:
            # Either no output has a ratio above k, or every output has.
            p, q, _, _ = self._sums(self._middle())
            return arb(0) if p < k * q else arb.max(1 - k, arb(0))
        _, _, p, q = self._sums(threshold)
        return arb.max(p - k * q, arb(0))

    def _middle(self) -> Ball:
        means = [mean for mean, _ in self.p + self.q]
        return sum(means, arb(0)) / len(means)

    def _threshold(self, k: Ball) -> Ball | None:
        """Enclose the point at which the ratio of the densities is k; None if there is none."""
        start, width = self._middle(), self.scale
        for _ in range(64):
            low, high = (start - width).mid(), (start + width).mid()
            below, above = self._sign(low, k), self._sign(high, k)
            if below < 0 < above:
                break
            if self.noise is laplace and width > 4 * self._spread():
                return None
            width = 2 * width
        else:
            return None
        for _ in range(2 * ctx.prec):
            middle = ((low + high) / 2).mid()
            side = self._sign(middle, k)
            if side == 0:
                break
            low, high = (middle, high) if side < 0 else (low, middle)
        return low.union(high)

    def _spread(self) -> Ball:
        return sum((abs(mean) for mean, _ in self.p + self.q), self.scale)

    def _sign(self, x: Ball, k: Ball) -> int:
        """Return the sign of P - k Q at x, 0 if it is not certain."""
        p, q, _, _ = self._sums(x)
        gain = p - k * q
        return 1 if gain > 0 else -1 if gain < 0 else 0
