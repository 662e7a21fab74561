"""Pairs of mixtures of Gaussians on the real line, in ball arithmetic.

>>> from dpcal.accountants.certificates import balls
>>> with balls.workprec(64):
...     one, zero = balls.arb(1), balls.arb(0)
...     pair = GaussianPair(((one, one),), ((zero, one),), sigma=one)
...     pair.loss(balls.arb(2)).contains(balls.arb("1.5"))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball, probability

__all__ = ["GaussianPair", "normal_distance", "with_exact_sum"]

# Means and weights of a mixture.
Mixture = tuple[tuple[Ball, Ball], ...]


@dataclass(frozen=True)
class GaussianPair:
    """Mixtures P and Q of Gaussians of one standard deviation, no mean of P below one of Q.

    The privacy loss log dP/dQ then grows along the line.

    Attributes
    ----------
    numerator, denominator
        Means and weights of P and of Q.
    sigma
        Standard deviation of every component.
    """

    numerator: Mixture
    denominator: Mixture
    sigma: Ball

    def loss(self, x: Ball) -> Ball:
        """Enclose the logarithm of the ratio of the densities at x."""
        return self._log_weight(self.numerator, x) - self._log_weight(self.denominator, x)

    def _log_weight(self, mixture: Mixture, x: Ball) -> Ball:
        """Return the log of a mixture's density at x, over that of the component with mean 0."""
        variance = self.sigma * self.sigma
        # The form log(1 + sum of weights times expm1) keeps the digits of terms of small weight.
        gain = sum(w * ((2 * x - a) * a / (2 * variance)).expm1() for a, w in mixture)
        return gain.log1p()

    @property
    def distance(self) -> Ball:
        """Bound on the total variation distance: the weight that P and Q do not share."""
        shared = balls.arb(0)
        for a, p in self.numerator:
            for b, q in self.denominator:
                if a == b:
                    shared += balls.arb.min(p, q)
        return 1 - shared

    @property
    def largest_loss(self) -> Ball | None:
        """Supremum of the loss; None if it is infinite, as P has a larger mean than Q."""
        (a, p), (b, q) = (
            max(side, key=lambda item: item[0].mid()) for side in (self.numerator, self.denominator)
        )
        return (p / q).log() if a == b else None

    def masses(self, low: Ball | None, high: Ball | None) -> tuple[Ball, Ball]:
        """Enclose the probabilities under P and Q of an interval; None is an infinite end."""
        numerator, denominator = (
            sum(weight * self._normal_mass(mean, low, high) for mean, weight in mixture)
            for mixture in (self.numerator, self.denominator)
        )
        return numerator, denominator

    def _normal_mass(self, mean: Ball, low: Ball | None, high: Ball | None) -> Ball:
        """Return the probability of an interval under one component."""
        scale = self.sigma * balls.arb(2).sqrt()
        left = None if low is None else (low - mean) / scale
        right = None if high is None else (high - mean) / scale
        if right is None:
            return balls.arb(1) if left is None else left.erfc() / 2
        if left is None:
            return (-right).erfc() / 2
        # The mass is one of two differences; the difference of smaller terms loses fewer digits.
        if left + right > 0:
            return (left.erfc() - right.erfc()) / 2
        return ((-right).erfc() - (-left).erfc()) / 2


def with_exact_sum(mixture: Sequence[tuple[float, float]], rounded: bool) -> Mixture:
    """Return a mixture, given by means and weights, in balls whose weights sum to 1 exactly.

    The weight of the mean nearest to 0 is 1 less the sum of the others, which ``rounded`` says are
    known only up to rounding.
    """
    center = min(mixture, key=lambda item: abs(item[0]))
    others = [
        (balls.arb(mean), probability(weight, rounded))
        for mean, weight in mixture
        if mean != center[0]
    ]
    rest = 1 - sum((weight for _, weight in others), balls.arb(0))
    return ((balls.arb(center[0]), rest), *others)


def normal_distance(noise_multiplier: float) -> Ball:
    """Enclose the total variation distance of N(1, sigma^2) and N(0, sigma^2)."""
    return (1 / (balls.arb(noise_multiplier) * balls.arb(8).sqrt())).erf()
