r"""Random allocation: each record joins one uniformly random batch of an epoch.

L is the mean of the likelihood ratios Y_j = exp(t_j X_j - t_j^2 / 2) of an epoch's batches,
weighted by the probabilities p_j that a record draws them. Here t_j = 1 / sigma_j, and X_j are
independent standard normal without the record. The loss is log L when a record is removed and
-log L when it is added. These pairs dominate every adaptive choice of contributions
(docs/explanation/batches.md, "Random allocation"). Deltas are computed in ball arithmetic
(:mod:`dpcal.accountants.inversion.puts`).

Doubles have moments of an added record, E L^-c, c > 0, by the Gamma integral

    E L^-c = 1 / Gamma(c) * integral over v of exp(c v) * product of E exp(-exp(v) p_j Y_j).

*Errors.* Both integrals are sums over lattices.

* Step of x: at x + i y the integrand of a mean at s is at most exp(y^2 / 2) times that of the real
  line at s cos(t y), and that mean is at most the power cos(t y) of the mean at s. For means of
  exp(-D) or more, t d <= 6 / sqrt(D) and 2 pi d / step = 100 + d^2 / 2 leave less than exp(-80).
  Smaller means are counted as exp(-D).
* Ends of x: sqrt(2 (D + 45)) leaves exp(-45).
* Step of v: at v + i y the integrand is at most that of the real line at s cos(y), of which the
  integral is cos(y)^-c times as large: y = (1 + c)^(-1/2) leaves exp(-43).
* Ends of v: the product is at most 1, and at most (k / (e s))^k E L^-k.
* Rounding: all terms of a sum have one sign, so that it is below 1e-12.

>>> loss = Allocation(noise_multiplier=1.0, batches=100, direction="add")
>>> log_moment, mean, variance, _ = loss.cumulants(2.0)[0]
>>> print(f"{log_moment:.6f} {mean:.6f} {variance:.6f}")
0.049587 0.040996 0.016007
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from dpcal._internal.lazy import special
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Reals

# Range of c for a quadrature: sums over v are long below it, and rounding grows above it.
_LEAST, _LARGEST = 0.05, 1e4
# Nats of the least mean of one of many batches and of all batches, and most nats of one of few.
_NATS_OF_MEAN, _NATS_OF_ALL, _MOST_NATS = 40.0, 1280.0, 640.0
# Nats that a step of x leaves, the ends of x, and the ends of v.
_NATS_OF_STEP, _NATS_OF_X, _NATS = 100.0, 45.0, 42.0
# Most terms and most points v of a quadrature: about 0.1 s.
_MOST_TERMS, _MOST_POINTS = 5e7, 50_000
_ORDERS = 256
# Relative error of a moment, for each whole order of it.
_ERROR = 1e-9
_POWERS = np.geomspace(0.25, 64.0, 17)


class Group(NamedTuple):
    """Batches of an epoch that are alike.

    Attributes
    ----------
    noise_multiplier, batches
        Their noise > 0 and number >= 1.
    probability
        Probability in (0, 1] that a record draws one of them, each as likely.
    """

    noise_multiplier: float
    batches: int
    probability: float


@dataclass(frozen=True)
class Allocation(PrivacyLoss):
    """One epoch of a Gaussian mechanism; each record draws one of its batches.

    Parameters
    ----------
    noise_multiplier
        sigma > 0.
    batches
        Number M >= 1 of batches.
    direction
        ``"remove"`` or ``"add"``.
    """

    noise_multiplier: float
    batches: int
    direction: str

    @property
    def opposite(self) -> Allocation:
        """The loss of the other direction."""
        return replace(self, direction="add" if self.direction == "remove" else "remove")

    @property
    def groups(self) -> tuple[Group, ...]:
        """Batches that are alike."""
        return (Group(self.noise_multiplier, self.batches, 1.0),)

    @property
    def mixed(self) -> tuple[tuple[Allocation, float], ...]:
        """Epochs of a mixture, and their probabilities."""
        return ((self, 1.0),)

    @property
    def rate_of_decay(self) -> float:
        """A number r such that abs(M(c + i u) / M(c)) <= exp(-r u^2) for each c.

        The projection of X on (1 / t_j)_j moves all t_j X_j alike and is independent of the rest.
        """
        return min(
            1 / (2 * sum(m * sigma**2 for sigma, m, _ in law.groups)) for law, _ in self.mixed
        )

    @property
    def variance(self) -> float:
        """About the variance of the loss."""
        square = sum(
            chance * p * p * math.expm1(min(sigma**-2, 600.0)) / m
            for law, chance in self.mixed
            for sigma, m, p in law.groups
        )
        return math.log1p(square)

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c), rounded up, and three moments of the tilted laws, when adding.

        Raises
        ------
        OutOfReach
            When removing, and for c < 0 or beyond the limits of the quadrature.
        """
        return np.array([_moments(self, float(at)) for at in np.atleast_1d(np.asarray(c))])

    def log_mgf_bound(self, c: float) -> float:
        """Return a bound from the batch with the least noise.

        When removing, log E L^a is convex in a, and known for whole a. When adding, L is at least a
        geometric mean.
        """
        single = (c * c + c) / (2 * self.noise_multiplier**2)
        if self.direction == "remove":
            known, a = _whole_moments(self), 1.0 + c
            return min(single, float(np.interp(a, np.arange(len(known)), known, right=math.inf)))
        return min(single, sum((c * p + c * c * p * p / m) / (2 * s**2) for s, m, p in self.groups))


@lru_cache(maxsize=256)
def _moments(loss: Allocation, given: float) -> Reals:
    """Return the row of :meth:`Allocation.cumulants` at a tilt."""
    c = max(given, _LEAST)
    if loss.direction == "remove" or not 0 <= given <= _LARGEST:
        raise OutOfReach
    low = (math.lgamma(c + 1) - _NATS) / c
    k = c + (1 + c) * _POWERS
    bounds = np.array([loss.log_mgf_bound(float(each)) for each in k]) + k * (np.log(k) - 1)
    high = float(((_NATS + bounds - math.lgamma(c)) / (k - c)).min())
    dv = 0.14 / math.sqrt(1 + c)
    if not high - low < dv * _MOST_POINTS:
        raise OutOfReach
    v = low + dv * np.arange(math.ceil((high - low) / dv) + 1.0)
    heights = [
        math.log(chance)
        + np.sum([group.batches * _log_mean(v, dv, group) for group in law.groups], axis=0)
        for law, chance in loss.mixed
    ]
    log_g = np.logaddexp.reduce(heights)
    logs = c * v + np.minimum(log_g, (bounds[:, None] - np.outer(k, v)).min(axis=0))
    weights = np.exp(logs - logs.max())
    total = float(weights.sum())
    weights /= total
    mean = float(weights @ v)
    second, fourth = (float(weights @ (v - mean) ** power) for power in (2, 4))
    log_moment = float(logs.max()) + math.log(total * dv) - math.lgamma(c) + _ERROR
    # The logarithm is convex, and 0 at c = 0.
    log_moment = min(log_moment * given / c, loss.log_mgf_bound(given))
    # v is the log of a Gamma variable, minus log L, which is independent of it.
    variance = max(second - float(special.polygamma(1, c)), 1e-12)
    rest = fourth - 3 * second**2 - float(special.polygamma(3, c)) + 3 * variance**2
    mean -= float(special.digamma(c))
    return np.array([log_moment, mean, variance, max(rest, variance**2)])


@lru_cache(maxsize=64)
def _whole_moments(loss: Allocation) -> Reals:
    """Return log E L^m, rounded up, for m = 0, 1, ...: coefficients of products of power series.

    E L^m is m! times the coefficient of x^m in E exp(x L), a product over batches of series in
    which E (p Y)^j / j! is the coefficient of x^j.
    """
    j = np.arange(_ORDERS + 1.0)
    factorials = special.gammaln(j + 1)
    means = []
    for law, chance in loss.mixed:
        product = np.where(j == 0, 0.0, -math.inf)
        for sigma, m, p in law.groups:
            series = j * (j - 1) / (2 * sigma * sigma) + j * math.log(p / m) - factorials
            power = series
            for bit in bin(m)[3:]:
                power = _log_product(power, power)
                power = _log_product(power, series) if bit == "1" else power
            product = _log_product(product, power)
        means.append(product + factorials + math.log(chance))
    return np.asarray(np.logaddexp.reduce(means) + j * _ERROR)


def _log_product(one: Reals, other: Reals) -> Reals:
    """Return the logarithms of the coefficients of a product of two series, up to one order."""
    padded = np.concatenate([np.full(len(other) - 1, -math.inf), other])
    terms = one + sliding_window_view(padded, len(other))[:, ::-1]
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))


def _log_mean(v: Reals, dv: float, group: Group) -> Reals:
    """Return log E exp(-exp(v) p Y) of one batch of a group, at v with step dv."""
    sigma, m, chance = group
    share = math.log(chance / m)
    if sigma == math.inf:
        return -np.exp(np.minimum(v + share, 700.0))
    nats = min(_NATS_OF_MEAN + _NATS_OF_ALL / m, _MOST_NATS)
    d = min(6 / math.sqrt(nats) * sigma, 10.0)
    widest = 2 * math.pi * d / (_NATS_OF_STEP + d * d / 2)
    ratio = dv * sigma / widest
    stride, spread = max(1, math.ceil(ratio)), max(1, int(1 / ratio))
    dx = dv * sigma * spread / stride
    half = math.ceil(math.sqrt(2 * (nats + _NATS_OF_X)) / dx)
    size = stride * (len(v) - 1) + 2 * spread * half + 1
    if half * len(v) > _MOST_TERMS or size > _MOST_TERMS:
        raise OutOfReach
    x = dx * np.arange(-half, half + 1.0)
    weights = np.exp(-x * x / 2) * (dx / math.sqrt(2 * math.pi))
    first = v[0] + share + x[0] / sigma - 1 / (2 * sigma * sigma)
    sizes = np.exp(np.minimum(first + dv / stride * np.arange(size), 700.0))

    def mean(table: Reals) -> Reals:
        windows = sliding_window_view(table, 2 * spread * half + 1)[::stride, ::spread]
        return np.asarray(windows @ weights)

    less = mean(np.expm1(-sizes))
    with np.errstate(divide="ignore"):
        found = np.where(
            less > -0.5, np.log1p(np.maximum(less, -0.5)), np.log(mean(np.exp(-sizes)))
        )
    return np.maximum(found, -nats)


@dataclass(frozen=True)
class MixedAllocation(Allocation):
    """An epoch of allocation to a random number of batches, which is published.

    Parameters
    ----------
    batches
        The least number.
    numbers
        Numbers of batches, ascending, and their probabilities, which add up to 1 except for
        rounding.
    """

    numbers: tuple[tuple[int, float], ...] = ()

    @property
    def mixed(self) -> tuple[tuple[Allocation, float], ...]:
        """Epochs with each number of batches, and their probabilities."""
        sigma, name = self.noise_multiplier, self.direction
        return tuple((Allocation(sigma, m, name), chance) for m, chance in self.numbers)


@dataclass(frozen=True)
class UnequalAllocation(Allocation):
    """An epoch of allocation to batches of several noises or probabilities.

    Parameters
    ----------
    noise_multiplier, batches
        The least noise, and the number of batches of the first group.
    groups
        Batches that are alike.
    """

    groups: tuple[Group, ...] = ()

    @classmethod
    def of(cls, groups: tuple[Group, ...], direction: str) -> UnequalAllocation:
        """Return the loss of an epoch with these groups."""
        least = min(group.noise_multiplier for group in groups)
        return cls(least, groups[0].batches, direction, groups)
