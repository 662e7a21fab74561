r"""Mixtures of Gaussians on a line: the privacy loss of one against another.

A pair (P, Q) of mixtures of N(a_i, sigma^2) and N(b_j, sigma^2), with every a_i at least every b_j,
has a loss that grows along the line, and densities with powers that are analytic in a strip. It
covers the mixture-of-Gaussians mechanism in both directions (Choquette-Choo et al. 2024), and
Poisson sampling when a record is replaced.

>>> loss = replaced_record(sampling_probability=0.01, noise_multiplier=1.0)
>>> print("{1:.6e} {2:.6e}".format(*loss.cumulants([0.0])[0]))
2.284113e-04 4.571853e-04
>>> log_delta, _ = loss.log_delta(0.0)              # 0.01 (1 - 2 Phi(-1))
>>> print(f"{math.exp(log_delta):.8f}")
0.00682689
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal._internal.lazy import special
from dpcal._internal.roots import Sides, Stop, bisect, brent
from dpcal.accountants.losses.base import OutOfReach, Points, Reals
from dpcal.accountants.losses.below_cut import FURTHER, Cut, NormalTail
from dpcal.accountants.losses.lattice import LARGEST_ANGLE, RANGE, spaced, step_within
from dpcal.accountants.losses.quadrature import complex_log1p, unit_of
from dpcal.accountants.rounding import UNIT

Mixture = tuple[tuple[float, float], ...]

# Up to so many points numbers are wider than doubles, which takes ten times as long.
_MOST_EXACT = 10_000
# Standard deviations to which closed forms are computed: log delta is below -500,000 further out.
_FARTHEST = 1e3
# Most growth of an integrand to the strip's edge, in nats: the rule's bound has room for exp(4).
_MAX_GROWTH = 8.0
_MOST_NARROWED = 60


@dataclass(frozen=True)
class GaussianMixtures(NormalTail):
    """One mixture of Gaussians against another, all of one standard deviation.

    Parameters
    ----------
    numerator
        Means and weights of P; the weights sum to 1.
    denominator
        Means and weights of Q, no mean larger than any mean of P.
    noise_multiplier
        Standard deviation > 0 of every component.
    """

    numerator: Mixture
    denominator: Mixture
    noise_multiplier: float

    def __post_init__(self) -> None:
        validate.positive(noise_multiplier=self.noise_multiplier)
        if min(self.numerator)[0] < max(self.denominator)[0]:
            raise ValueError(
                "Every mean of numerator must be at least every mean of denominator, got "
                f"numerator={self.numerator!r} and denominator={self.denominator!r}."
            )

    @cached_property
    def sides(self) -> tuple[_Side, _Side]:
        """The mixtures P and Q in units of the standard deviation."""
        sigma = self.noise_multiplier
        return _Side(self.numerator, sigma), _Side(self.denominator, sigma)

    @property
    def opposite(self) -> GaussianMixtures:
        """The loss of the other direction: Q against P, with the line turned around."""
        p, q = (tuple((-a, w) for a, w in side) for side in (self.numerator, self.denominator))
        return GaussianMixtures(q, p, self.noise_multiplier)

    @property
    def upper(self) -> float:
        """Log of the weights' ratio at a common largest mean, rounded up; else infinite."""
        (a, p), (b, q) = max(self.numerator), max(self.denominator)
        nearest = math.log(p / q)
        return math.inf if a > b else nearest + 4 * UNIT * (1 + abs(nearest))

    @cached_property
    def _coupling(self) -> tuple[Reals, Reals]:
        """Probabilities and gaps of pairs of means; the closest means of P and Q are paired."""
        above, below = sorted(self.numerator), sorted(self.denominator, reverse=True)
        means, weights = zip(np.array(above).T, np.array(below).T, strict=True)
        ends = [np.minimum(np.cumsum(side[:-1]), 1.0) for side in weights]
        levels = np.append(np.union1d(*ends), 1.0)
        first, second = (
            side[np.searchsorted(end, levels)] for side, end in zip(means, ends, strict=True)
        )
        # Weights sum to 1 up to rounding; the remainder gets the largest gap.
        masses = np.append(np.diff(levels, prepend=0.0), (8 + len(levels)) * UNIT)
        return masses, np.append(first - second, means[0][-1] - means[1][-1])

    @property
    def log_unaffected(self) -> float:
        """Log of the probability, under a coupling, that both means are the same."""
        masses, gaps = self._coupling
        affected = float(masses[gaps > 0].sum())
        return math.log1p(-affected) if affected < 1 else -math.inf

    def log_mgf_bound(self, c: float) -> float:
        """Return log E exp((c^2 + c) gap^2 / (2 sigma^2)) under a coupling of the means.

        It is a bound because P^(1 + c) Q^(-c) is jointly convex.
        """
        masses, gaps = self._coupling
        exponents = (c * c + c) / (2 * self.noise_multiplier**2) * gaps**2
        if exponents.max() < 700:
            return math.log1p(float(masses @ np.expm1(exponents)))
        with np.errstate(divide="ignore"):
            return float(np.logaddexp.reduce(np.log(masses) + exponents))

    @lru_cache(maxsize=256)  # noqa: B019 -- a loss of few numbers
    def _lattice(self, highest: float, cut: Cut | None = None) -> _Lattice:
        """Return points that serve all tilts c <= highest, of the whole law or below a cut."""
        return _Lattice(*self.sides, highest, cut)

    def _on(self, lattice: _Lattice, height: float) -> Points:
        """Return points of the trapezoid rule on a line above the real one, or on that one."""
        x = lattice.exact + 1j * height if height else lattice.exact
        above, below, logs = lattice.on(x)
        values, unit = above - below, unit_of(above)
        of_p, of_q = (
            side.sizes(x, found) for side, found in zip(self.sides, (above, below), strict=True)
        )
        sizes = np.abs(values) + unit * (of_p + of_q)
        terms = unit * (np.abs(x) ** 2 + of_p + np.abs(logs))
        return Points(values, logs + values, sizes.astype(float), terms.astype(float))

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return points of the trapezoid rule."""
        lattice = self._lattice(highest)
        return self._on(lattice, lattice.angle if shifted else 0.0)

    @property
    def mixture(self) -> GaussianMixtures:
        """The loss with the same tail."""
        return self

    def below_cut(self, cut: Cut, highest: float, height: float) -> Points:
        """Return points on a line, at most the lattice's own, that lie below a cut."""
        lattice = self._lattice(highest, cut)
        x, height = lattice.exact, min(lattice.angle, height)
        return cut.kept(self._on(lattice, height), x + 1j * height if height else x)

    def losses(self, x: Reals) -> Reals:
        """Return the losses at points of the noise."""
        above, below = (side.log_weight(x) for side in self.sides)
        return np.asarray(above - below)

    def slope(self, x: float) -> float:
        """Return about how fast the exponent of the likelihood ratio rises at x: a mean of P."""
        above, below = self.sides
        shares = above.posterior(x) * (above.means > below.means[-1])
        return float(shares @ above.means / shares.sum() - below.means[0])

    def place_of(self, level: float) -> float:
        """Return about where the loss is a number > 0; the law is rare beyond the last place."""
        last = 40.0 + float(self.sides[0].means[-1])

        def excess(x: float) -> float:
            return float(self.losses(np.array([x]))[0]) - level

        if not excess(0.0) < 0 < excess(last):
            return last
        return brent(excess, 0.0, last, Stop(absolute=1e-9, relative=1e-9)).root

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return P(L > epsilon) - exp(epsilon) Q(L > epsilon) at the point where L is epsilon.

        The difference is stationary in that point, so its rounding does not matter. The result is
        None if the two tails agree up to rounding.
        """
        if epsilon >= self.upper:
            return -math.inf, 0.0
        above, below = self.sides

        def excess(x: float) -> float:
            return float(self.losses(np.array([x]))[0]) - epsilon

        reach = 40.0 + abs(above.means).max() + abs(below.means).max()
        while excess(reach) < 0 and reach < _FARTHEST:
            reach *= 2.0
        if not excess(-reach) < 0 < excess(reach):
            return None
        x = brent(excess, -reach, reach, Stop(absolute=1e-14, relative=1e-15)).root
        found = min(
            _difference_of_tails(above, below, x, epsilon),
            _difference_of_ratios(above, below, x, epsilon, abs(excess(x))),
            key=lambda pair: pair[1],
        )
        return found if math.isfinite(found[1]) else None


def _difference_of_tails(
    above: _Side, below: _Side, x: float, epsilon: float
) -> tuple[float, float]:
    """Return log(P(y > x) - exp(epsilon) Q(y > x)) from both tails, and its relative error."""
    log_p, log_q = above.log_exceeds(x), epsilon + below.log_exceeds(x)
    if not log_q < log_p:
        return -math.inf, math.inf
    share = -math.expm1(log_q - log_p)
    return log_p + math.log(share), UNIT * (64 + 8 * epsilon + 16 * x * x) * (2 - share) / share


def _difference_of_ratios(
    above: _Side, below: _Side, x: float, epsilon: float, missed: float
) -> tuple[float, float]:
    """Return the log of P(y > x) - exp(epsilon) Q(y > x) from Mills ratios, and its relative error.

    At the point with loss epsilon, the density of P is exp(epsilon) times the density of Q, and
    both tails are this density times a mean of Mills ratios over the components. Far out the ratios
    keep digits that the tails lose. ``missed`` is the difference of the loss at x from epsilon.
    """
    log_density = float(above.log_weight(np.array([x]))[0])
    log_density -= 0.5 * x * x + 0.5 * math.log(2 * math.pi)
    first, second = above.mean_mills_ratio(x), below.mean_mills_ratio(x)
    gap = first - second
    if not 0 < gap < math.inf:
        return -math.inf, math.inf
    reach = float(max(np.abs(above.means).max(), np.abs(below.means).max()))
    rounding = UNIT * (32 + 8 * epsilon + 8 * reach * (abs(x) + reach)) + missed
    return log_density + math.log(gap), rounding * first / gap + 8 * UNIT * (1 + x * x)


class _Side:
    """A mixture in units of its standard deviation, relative to the standard normal law."""

    def __init__(self, mixture: Mixture, sigma: float) -> None:
        ordered = sorted(mixture)
        self.exact = np.array([mean for mean, _ in ordered], dtype=np.longdouble) / sigma
        self.means = self.exact.astype(float)
        self.weights = np.array([weight for _, weight in ordered])
        self.spread = float(self.means[-1] - self.means[0])

    def log_exceeds(self, x: float) -> float:
        """Return the log of the probability above x, even if it is below the range of a double."""
        with np.errstate(divide="ignore"):
            terms = np.log(self.weights) + special.log_ndtr(self.means - x)
        return float(np.logaddexp.reduce(terms))

    def posterior(self, x: float) -> Reals:
        """Return the probability of each component, given x."""
        sizes = self.means * x - self.means**2 / 2
        shares = self.weights * np.exp(sizes - sizes.max())
        return np.asarray(shares / shares.sum())

    def mean_mills_ratio(self, x: float) -> float:
        """Return the posterior mean of the Mills ratio at x; infinite far on the left."""
        shares = self.posterior(x)
        kept = shares > 0
        ratios = math.sqrt(math.pi / 2) * special.erfcx((x - self.means[kept]) / math.sqrt(2))
        return float(shares[kept] @ ratios)

    def log_weight(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the log of the density ratio at real or complex x, with digits of small values."""
        means = self.exact if x.real.dtype == np.longdouble else self.means
        exponents = np.multiply.outer(means, x) - (means**2 / 2)[:, None]
        if len(means) == 1:
            return np.asarray(exponents[0] + math.log(self.weights[0]))
        pivot = np.take_along_axis(exponents, exponents.real.argmax(axis=0)[None], axis=0)[0]
        value = pivot + np.log(self.weights @ np.exp(exponents - pivot))
        # The angle of a sum near 1 is small, unless its terms have gone around the origin.
        near = (np.abs(value.real) < 0.4) & (np.abs(exponents.imag).max(axis=0) < math.pi)
        log1p = complex_log1p if np.iscomplexobj(x) else np.log1p
        value[near] = log1p(self.weights @ np.expm1(exponents[:, near]))
        return np.asarray(value)

    def sizes(self, x: NDArray[Any], log_weight: NDArray[Any]) -> Reals:
        """Return the sizes of the terms of :meth:`log_weight`, to which its rounding is relative.

        The terms are exponents and exponentials less 1, by their shares of the density.
        """
        some = self.means != 0.0
        means, weights = self.means[some, None], self.weights[some, None]
        terms = np.exp(means * (x.real - means / 2) + np.log(weights) - log_weight.real)
        terms *= 1 + np.abs(means) * (np.abs(x) + np.abs(means) / 2)
        return np.asarray((2 + len(means)) * (terms + 1.5 * weights).sum(axis=0), dtype=float)


class _Lattice:
    """Trapezoid points for the integrals of Q exp(p L), 0 < p <= highest.

    The integrand's modes lie between the points where its slope can vanish, and beyond these it
    falls like a normal density. On lines Im x > 0 each factor exp(i t L), t > 0, shrinks.
    """

    def __init__(self, above: _Side, below: _Side, highest: float, cut: Cut | None) -> None:
        self.highest = 1.0 + highest
        self._above, self._below = above, below
        spread = max(above.spread, below.spread)
        self._low, self._width = float(below.means[0]) - RANGE, cut.width if cut else math.inf
        self._high = cut.end(highest) if cut else self._last_mode() + RANGE
        # Terms differ by at most this; twice it, on the strip's edge, is below pi: none vanishes.
        widest = min(LARGEST_ANGLE, LARGEST_ANGLE / spread) if spread > 0 else LARGEST_ANGLE
        self.angle = _narrowed(min(widest, FURTHER * self._width), self._growth)

    def _last_mode(self) -> float:
        """Return a point beyond which every integrand falls like a normal density.

        With a(x) and b(x) the posterior means, its logarithm has slope -x + p a + (1 - p) b, at
        most -x + p max(a) + (1 - p) b(x), which is linear in p and, for p >= 1, falls in x at least
        as fast as -x.
        """
        top, p = float(self._above.means[-1]), self.highest
        low = max(top, float(self._below.means[-1]))
        high = max(low, p * top - (p - 1) * float(self._below.means[0]))

        def falls(x: float) -> bool:
            mean = float(self._below.posterior(x) @ self._below.means)
            return -x + p * top - (p - 1) * mean <= 0

        return bisect(falls, Sides(meet=high, miss=low), Stop(absolute=0.1)).meet

    def _growth(self, angle: float) -> float:
        """Return the growth of the integrals to the strip's edge, without the normal density.

        It sets the step, and the points on the real line, that serve a shift by this angle.
        """
        self.step = step_within(angle, 2 * angle**2 + 2 * (angle / self._width) ** 2)
        self.x = spaced(self._low, self._high, self.step)
        if self._below.spread == 0:
            return 1.0
        above, below, base = self.on(self.x)
        edges = (values.real for values in self.on(self.x + 2j * angle))
        edge_above, edge_below, edge_base = edges
        edge_base = edge_base - 2 * angle**2
        return max(
            _growth_of(base + c * (above - below), edge_base + c * (edge_above - edge_below))
            for c in (1.0, self.highest / 4, self.highest)
        )

    @property
    def exact(self) -> NDArray[Any]:
        """The points, in the widest numbers unless there are many, or a cut limits their digits."""
        many = math.isfinite(self._width) or len(self.x) > _MOST_EXACT
        return self.x if many else self.x.astype(np.longdouble)

    def on(self, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the log density ratios of P and Q, and the log weight under Q, of points x."""
        above, below = self._above.log_weight(x), self._below.log_weight(x)
        real = x.real.dtype.type
        scale = np.log(real(self.step) / np.sqrt(2 * real(math.pi)))
        return above, below, -0.5 * x * x + scale + below


def _growth_of(on_line: Reals, on_edge: Reals) -> float:
    """Return the growth of a sum from the real line to an edge, from the logs of its terms."""
    peak = on_line.max()
    return float(np.exp(np.minimum(on_edge - peak, 700.0)).sum() / np.exp(on_line - peak).sum())


def _narrowed(angle: float, growth: Callable[[float], float]) -> float:
    """Return the first of angle, angle / sqrt(2), angle / 2, ... with small growth.

    Raises
    ------
    OutOfReach
        If none is found, or if ``growth`` raises it.
    """
    for _ in range(_MOST_NARROWED):
        if growth(angle) < _MAX_GROWTH:
            return angle
        angle /= math.sqrt(2.0)
    raise OutOfReach


def replaced_record(*, sampling_probability: float, noise_multiplier: float) -> GaussianMixtures:
    """Return the loss of the Poisson-sampled Gaussian when a record is replaced, either way.

    The sum of the other sampled records, plus x or plus y with probability q, both of norm at most
    1. By joint convexity the others may be fixed. For alpha > 1, H_alpha is q times H_a of N(x)
    against (1 - s) N(0) + s N(y), for some a and s (Balle, Barthe and Gaboardi 2018, Theorem 2). An
    event E of probability p under N(x) has probability at least Phi(Phi^-1(p) - abs(x) / sigma)
    under N(0) and at least Phi(Phi^-1(p) - abs(x - y) / sigma) under N(y), by the lemma of Neyman
    and Pearson; with x = 1 and y = -1 on a line both are the largest possible, and half-lines
    attain them together. For alpha < 1 exchange x and y. So (1 - q) N(0) + q N(1) against (1 - q)
    N(0) + q N(-1) dominates, for every alpha.

    Parameters
    ----------
    sampling_probability
        q in (0, 1).
    noise_multiplier
        Standard deviation > 0 of the noise over the bound on one record's norm.
    """
    rest, q = (0.0, 1 - sampling_probability), sampling_probability
    return GaussianMixtures((rest, (1.0, q)), (rest, (-1.0, q)), noise_multiplier)


def mixture_of_gaussians(
    sensitivities: Sequence[float], sampling_probs: Sequence[float], *, standard_deviation: float
) -> tuple[GaussianMixtures, GaussianMixtures]:
    """Return the losses of the mixture-of-Gaussians mechanism, for removing and for adding.

    Parameters
    ----------
    sensitivities
        Distances by which the record moves the output, finite numbers >= 0.
    sampling_probs
        Probability of each sensitivity; they sum to 1.
    standard_deviation
        Standard deviation > 0 of the noise.

    Raises
    ------
    ValueError
        If the two lists do not describe a distribution, or all sensitivities are 0.
    """
    sigma = validate.positive(standard_deviation=standard_deviation)
    shifts = [validate.non_negative(sensitivities=value) for value in sensitivities]
    weights = [validate.non_negative(sampling_probs=value) for value in sampling_probs]
    if len(shifts) != len(weights):
        raise ValueError(
            "sampling_probs must have one entry for each of the sensitivities, got "
            f"{len(weights)} and {len(shifts)}."
        )
    if abs(math.fsum(weights) - 1) > 1e-9:
        raise ValueError(f"sampling_probs must sum to 1, got {tuple(sampling_probs)!r}.")
    shares: dict[float, list[float]] = {}
    for shift, weight in zip(shifts, weights, strict=True):
        if weight > 0:
            shares.setdefault(shift, []).append(weight)
    total = math.fsum(weights)
    merged = {shift: math.fsum(items) / total for shift, items in shares.items()}
    if not any(shift > 0 for shift in merged):
        raise ValueError(
            "sensitivities must hold a positive number of positive probability, got "
            f"{tuple(sensitivities)!r} with {tuple(sampling_probs)!r}."
        )
    if not 1e-12 <= sigma / max(merged) <= 1e18:
        raise ValueError(
            "standard_deviation must be between 1e-12 and 1e18 times the largest of the "
            f"sensitivities, got {standard_deviation!r} with {tuple(sensitivities)!r}."
        )
    mixture = tuple(sorted(merged.items()))
    mirrored = tuple((-shift, weight) for shift, weight in mixture)
    point = ((0.0, 1.0),)
    return GaussianMixtures(mixture, point, sigma), GaussianMixtures(point, mirrored, sigma)
