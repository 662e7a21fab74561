"""How well can an added record be detected? A closed bound on delta of adding a record.

For any law of participations in place of the true one, Jensen's inequality gives log L >= <x, m> /
sigma^2 - kappa, so that adding a record is at most as bad as one Gaussian half-space.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(100, 0.5), noise_multiplier=4.0)
>>> law = Poisson(0.01).automaton(100)
>>> 0 < HalfSpaces(mechanism, law).delta(0.3) < 1e-3
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from dpcal.accountants.correlated.bounds.allocation import overlaps
from dpcal.accountants.correlated.bounds.base import Curve, Moments, normal_moments
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton

__all__ = ["BinsHalfSpace", "HalfSpaces", "JoiningHalfSpaces", "half_space", "half_space_delta"]

Floats = NDArray[np.float64]

# Relative margin, outward: far above the rounding of sums over the rounds, which is near 1e-13.
_MARGIN = 1e-9


def half_space(mechanism: Mechanism, law: Automaton, share: float) -> tuple[Floats, float, float]:
    """Return m, kappa and mu = ||m|| / sigma of independent participations at a share of rates.

    Raises
    ------
    UnsupportedEvent
        If participations are not independent.
    """
    law.require_independent("half-space bound")
    rates = np.exp(law.join[:, 0])
    q = np.minimum(share * rates, np.where(rates < 1, 1 - 1e-12, 1.0))
    m = mechanism.means(np.ascontiguousarray(q[:, None]))[:, 0]
    energy = float(m @ m) / mechanism.variance + float(mechanism.energies @ (q * (1 - q)))
    with np.errstate(divide="ignore", invalid="ignore"):
        joins = np.where(q > 0, q * np.log(q / rates), 0.0)
        idles = np.where(q < 1, (1 - q) * (np.log1p(-q) - np.log1p(-rates)), 0.0)
    kappa = 0.5 * energy + float(joins.sum() + idles.sum())
    return m, kappa, float(np.linalg.norm(m)) / mechanism.sigma


# Entries of the means of epochs that are held at once: 32 MB.
_AT_ONCE = 2**22
# Shares of the true rates that are tried. The bound holds for each share; a finer list gains less
# than a percent of delta.
_SHARES = np.geomspace(1e-3, 3.0, 60)


class _HalfSpace(Curve):
    """Bounds on adding a record by pairs kappa and mu, with log L at least normal: mu N - kappa."""

    method: ClassVar[str] = "half-space bound for adding a record"

    @property
    @abstractmethod
    def pairs(self) -> list[tuple[float, float]]:
        """Values of kappa and mu, each of which proves a bound."""

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta of adding a record at an epsilon >= 0."""
        return min(1.0, *(half_space_delta(kappa, mu, epsilon) for kappa, mu in self.pairs))

    def moments(self, c: float, direction: str) -> Moments:
        """Return a bound on log M(c) of adding a record."""
        return normal_moments(self.pairs if direction == "add" else (), c)


@dataclass(frozen=True, eq=False)
class HalfSpaces(_HalfSpace):
    """Bounds on delta of adding a record, by the best of several shares of the rates.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    law
        Of independent participations.
    """

    mechanism: Mechanism
    law: Automaton

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """Values of kappa and mu for every share."""
        return [half_space(self.mechanism, self.law, float(share))[1:] for share in _SHARES]

    def best(self, epsilon: float) -> tuple[float, float]:
        """Return a bound on delta at an epsilon >= 0, and the share that proves it."""
        if epsilon >= -self.law.never:
            return 0.0, 1.0
        found = [half_space_delta(kappa, mu, epsilon) for kappa, mu in self.pairs]
        return min((1.0, 1.0), *zip(found, map(float, _SHARES), strict=True))

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta of adding a record at an epsilon >= 0."""
        return self.best(epsilon)[0]


@dataclass(frozen=True, eq=False)
class BinsHalfSpace(_HalfSpace):
    """A bound on delta of adding a record to a uniform one of several bins.

    Parameters
    ----------
    gram
        Products of the means of the bins over sigma^2, of shape (bins, bins).

    Notes
    -----
    Jensen's inequality: log L is at least the mean over bins of u_k - gram_kk / 2.
    """

    gram: Floats

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """The values of kappa and mu of the mean."""
        kappa = 0.5 * float(np.diagonal(self.gram).mean())
        return [(kappa, math.sqrt(float(self.gram.mean())))]


@dataclass(frozen=True, eq=False)
class JoiningHalfSpaces(_HalfSpace):
    """Bounds on delta of adding a record that sits out after each participation, or joins epochs.

    Parameters
    ----------
    mechanism
        With a Toeplitz C, or with as many bands as participations are apart.
    joining
        How a record takes part.

    Notes
    -----
    For any law rho of y, log L >= <x, m> / sigma^2 - kappa with m = C E y and kappa = E ||C y||^2 /
    (2 sigma^2) + KL(rho | s), expectations under rho: log of a mean of exponentials is at least the
    mean under rho of their exponents, less KL(rho | s) (Donsker and Varadhan). Here rho has a share
    of the chances of a free record, and KL adds up over the rounds that it is free in (chain rule);
    or rho is the law of random rounds of epochs itself.
    """

    mechanism: Mechanism
    joining: Joining

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """Values of kappa and mu of each law rho."""
        found = self._of_epochs() if self.joining.epoch else self._of_shares()
        means, energies, divergences = found
        norms = np.linalg.norm(means, axis=0) / self.mechanism.sigma
        kappas = (0.5 * energies + divergences) * (1 + _MARGIN)
        return list(zip(kappas.tolist(), norms.tolist(), strict=True))

    def _of_epochs(self) -> tuple[Floats, Floats, Floats]:
        mechanism, M = self.mechanism, self.joining.epoch
        mean = mechanism.means(np.full((mechanism.steps, 1), 1 / M))
        epochs = np.arange(mechanism.steps) // M
        width = max(1, _AT_ONCE // mechanism.steps)
        same = 0.0
        for first in range(0, mechanism.steps // M, width):
            part = mechanism.means((epochs[:, None] == first + np.arange(width)) / M)
            same += float((part**2).sum())
        # Rounds of one epoch are never joined together; those of two are independent.
        pairs = (float((mean**2).sum()) - same) / mechanism.variance
        energy = pairs + float(mechanism.energies.sum()) / M
        return mean, np.array([energy]), np.zeros(1)

    def _of_shares(self) -> tuple[Floats, Floats, Floats]:
        mechanism, joining = self.mechanism, self.joining
        p, apart = float(joining.chances[0]), joining.separation
        q = np.minimum(_SHARES * p, 1 - 1e-12)
        rates, again = (_rates(q, apart, mechanism.steps, w) for w in (joining.waiting, (1.0,)))
        energies = mechanism.energies @ rates
        if mechanism.bands > apart:
            # Later columns overlap in fewer rounds: the first ones bound all others.
            products, before = overlaps(mechanism), np.cumsum(rates, axis=0)[::-1]
            lags = slice(apart, mechanism.bands)
            pairs = before[lags] * again[: mechanism.bands - apart]
            energies = energies + 2 * products[lags] @ pairs
        free = (rates / q).sum(axis=0)
        divergence = q * np.log(q / p) + (1 - q) * (np.log1p(-q) - math.log1p(-p))
        return mechanism.means(rates), energies, free * divergence


def _rates(chances: Floats, separation: int, rounds: int, waiting: tuple[float, ...]) -> Floats:
    """Return probabilities of each round, of shape (rounds, chances), for chances when free."""
    rates, free = np.zeros((rounds, len(chances))), np.zeros(len(chances))
    for t in range(rounds):
        free = free + (waiting[t] if t < len(waiting) else 0.0)
        if t >= separation:
            free = free + rates[t - separation]
        rates[t] = free * chances
        free = free - rates[t]
    return rates


def half_space_delta(kappa: float, mu: float, epsilon: float) -> float:
    """Return E(1 - e^(epsilon - kappa + mu N))_+ for N standard normal, rounded up."""
    cut = (kappa - epsilon) / mu
    high = float(ndtr(cut))
    low = math.exp(min(epsilon - kappa + mu * mu / 2 + float(log_ndtr(cut - mu)), 0.0))
    # The margin covers the rounding of kappa and of sums over the rounds in both terms.
    return max(high - low, 0.0) + _MARGIN * high
