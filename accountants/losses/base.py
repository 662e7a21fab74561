r"""What is the law of the privacy loss? One dominating pair seen as its log-MGF.

For a dominating pair (P, Q) of a mechanism let L = log dP/dQ under P and

    M(z) = E_P[exp(z L)].

A :class:`PrivacyLoss` knows log M on the strip where it converges, the cumulants of the tilted
laws ``exp(c L) P / M(c)``, and, for a fixed tilt, the characteristic function along a vertical
line together with a proved bound on its decay (a :class:`Tilt`). Everything an accountant computes
is read off these.

>>> Gaussian(noise_multiplier=2.0).log_mgf(1.0)          # (z^2 + z) / (2 sigma^2)
np.complex128(0.25+0j)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr

from dpcal import _validate
from dpcal.errors import UnsupportedEvent

__all__ = [
    "NOTHING",
    "Defective",
    "Gaussian",
    "Lattice",
    "MomentBound",
    "OutOfReach",
    "PrivacyLoss",
    "Tilt",
    "log_gaussian_delta",
    "log_mgf_by_tilts",
]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

UNIT = float(np.finfo(np.float64).eps)


class OutOfReach(Exception):  # noqa: N818 -- internal signal, never leaves the package
    """A tilt so extreme that no quadrature of affordable size covers it."""


class Tilt(ABC):
    """The law ``exp(c L) P / M(c)`` of a loss, along the vertical line Re z = c."""

    mean: float
    """Mean of the loss under the tilted law."""
    points: int
    """Cost of one contour node, in complex multiplications."""
    amplification: float
    """By how much sums exceed the unit mass they represent: the growth of rounding error.

    A weight that is the exponential of large terms that cancel counts as often as its error is
    larger than a unit.
    """
    mean_rounding: float = 0.0
    """Absolute error of the mean in units, beyond that of rounding it."""

    @property
    def decays(self) -> bool:
        """Whether the characteristic function falls to 0 along the line."""
        return True

    @abstractmethod
    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log psi(k step) for k = 0, ..., nodes - 1.

        Here psi(t) = E[exp(i t (L - mean))] under the tilted law.
        """

    @abstractmethod
    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return a proved upper bound on log abs(psi) over [t, ratio t], for each t > 0."""

    def sum_rounding(self, t: Reals) -> tuple[Reals, Reals]:
        """Return two errors of psi(t) in units: an absolute one, and one times abs(psi - 1).

        Both rise with t, and fall when divided by t^2.
        """
        return np.zeros_like(t), np.full_like(t, 8 * self.amplification)

    def growth(self, t: Reals) -> Reals:
        """Return a bound, rising with t, on terms of log psi(t) that exceed its own size."""
        return np.zeros_like(t)

    @abstractmethod
    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        """Return the derivative of log M(c + i k step) in a parameter of the mechanism."""


@dataclass(frozen=True)
class Lattice:
    """Where a discrete loss has its values: at ``offset`` plus whole multiples of a spacing.

    The spacing is ``stride`` times ``unit``, both > 0, ``stride`` a whole number.
    """

    offset: float
    unit: float
    stride: int

    @property
    def spacing(self) -> float:
        """Distance of neighboring points."""
        return self.unit * self.stride


class PrivacyLoss(ABC):
    """One direction of a dominating pair."""

    @property
    @abstractmethod
    def upper(self) -> float:
        """Supremum of the loss; may be infinite."""

    @property
    def log_unaffected(self) -> float:
        """Log of a probability with which the output does not depend on the record.

        The total variation distance of the pair is at most one minus that probability.
        """
        return -math.inf

    @abstractmethod
    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted law, for each real c > -1.

        The columns of the result, of shape (len(c), 4), are log M, mean, variance and fourth
        central moment.
        """

    @abstractmethod
    def log_mgf_bound(self, c: float) -> float:
        """Return a closed-form upper bound on log M(c), c > 0, valid however extreme c is."""

    @abstractmethod
    def log_mgf(self, z: ArrayLike) -> Any:
        """Return log M(z) for complex z with Re z > -1, elementwise (principal branch)."""

    @abstractmethod
    def tilt(self, c: float) -> Tilt:
        """Return the tilted law along Re z = c, for real c > -1."""

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return log delta(epsilon) of a single use and its relative error, if in closed form."""
        return None

    @property
    def lattice(self) -> Lattice | None:
        """The lattice on which the values lie, if they do."""
        return None

    @property
    def below(self) -> PrivacyLoss | None:
        """A loss that the mechanism's own dominates, where this one is rounded up."""
        return None

    def moments(self, c: ArrayLike) -> Reals:
        """Return an upper bound on log M at each real c > 0, and two derivatives of it.

        For most losses these are the cumulants; where a theorem about Renyi divergences says more
        than the dominating pair, they are smaller.
        """
        return self.cumulants(c)[:, :3]

    @property
    def renyi_is_tighter(self) -> bool:
        """Whether :meth:`moments` bound the mechanism more closely than its dominating pair."""
        return False

    @property
    def mean(self) -> float:
        """Mean of the privacy loss: the Kullback-Leibler divergence of P from Q."""
        return float(self.cumulants([0.0])[0, 1])

    @property
    def std(self) -> float:
        """Standard deviation of the privacy loss."""
        return math.sqrt(float(self.cumulants([0.0])[0, 2]))


def log_mgf_by_tilts(loss: PrivacyLoss, z: ArrayLike) -> Any:
    """Log M(z), elementwise, from the tilted law through each z."""
    z = np.asarray(z, dtype=complex)
    flat = np.atleast_1d(z).ravel()
    result = np.empty(flat.shape, dtype=complex)
    for i, point in enumerate(flat):
        tilt = loss.tilt(float(point.real))
        base = float(loss.cumulants([point.real])[0, 0])
        t = abs(float(point.imag))
        value = base + 1j * t * tilt.mean + (tilt.log_ratio(t, 2)[1] if t else 0.0)
        result[i] = value if point.imag >= 0 else value.conjugate()
    return result.reshape(z.shape)[()]


class MomentBound(PrivacyLoss):
    """A mechanism of which only Renyi divergences are known: bounds on log M, but no law."""

    @property
    def upper(self) -> float:
        """Infinity: no bound on the loss is known."""
        return math.inf

    def _refuse(self) -> UnsupportedEvent:
        return UnsupportedEvent(
            f"Only Renyi divergences are known of {self!r}: ask the accountant 'renyi'."
        )

    def cumulants(self, c: ArrayLike) -> Reals:
        """Refuse: there is no law to take moments of."""
        raise self._refuse()

    def log_mgf(self, z: ArrayLike) -> Any:
        """Refuse: there is no law."""
        raise self._refuse()

    def tilt(self, c: float) -> Tilt:
        """Refuse: there is no law to tilt."""
        raise self._refuse()


class _Nothing(PrivacyLoss):
    """A loss that is always 0: the output does not depend on the data. No composition holds it."""

    upper = 0.0

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return zeros."""
        return np.zeros((np.size(c), 4))

    def log_mgf_bound(self, c: float) -> float:
        """Return 0."""
        return 0.0

    def log_mgf(self, z: ArrayLike) -> Any:
        """Return zeros."""
        return np.zeros(np.shape(z), dtype=complex)[()]

    def tilt(self, c: float) -> Tilt:
        """Refuse: nothing spreads here."""
        raise OutOfReach


NOTHING = _Nothing()


@dataclass(frozen=True)
class Defective(PrivacyLoss):
    """A loss that is infinite with some probability, and otherwise follows a law of its own.

    No moment M(c), c > 0, is finite. An accountant that knows better takes the two apart, see
    :meth:`dpcal.accountants.composition.Direction.finite`.

    Parameters
    ----------
    given
        The loss given that it is finite; :data:`NOTHING` if it is then 0.
    infinite
        Probability in (0, 1] that it is infinite.
    """

    given: PrivacyLoss
    infinite: float

    @property
    def log_finite(self) -> float:
        """Log probability that it is finite."""
        return math.log1p(-self.infinite) if self.infinite < 1 else -math.inf

    @property
    def upper(self) -> float:
        """Infinity."""
        return math.inf

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return infinities."""
        return np.full((np.size(c), 4), math.inf)

    def log_mgf_bound(self, c: float) -> float:
        """Return infinity."""
        return math.inf

    def log_mgf(self, z: ArrayLike) -> Any:
        """Return infinities."""
        return np.full(np.shape(z), math.inf + 0j)[()]

    def tilt(self, c: float) -> Tilt:
        """Refuse: an infinite loss has no tilted law."""
        raise OutOfReach


@dataclass(frozen=True)
class Gaussian(PrivacyLoss):
    """The Gaussian mechanism: P = N(1, sigma^2), Q = N(0, sigma^2), the same in both directions.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise over the L2 sensitivity, > 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)

    @property
    def upper(self) -> float:
        """Infinity: the loss is Gaussian."""
        return math.inf

    @property
    def _variance(self) -> float:
        return 1.0 / self.noise_multiplier**2

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, in closed form."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        v = self._variance
        ones = np.ones_like(c)
        return np.column_stack([v * (c * c + c) / 2, v * (c + 0.5), v * ones, 3 * v * v * ones])

    def log_mgf_bound(self, c: float) -> float:
        """Return log M(c) itself."""
        return self._variance * (c * c + c) / 2

    def log_mgf(self, z: ArrayLike) -> Any:
        """Return (z^2 + z) / (2 sigma^2)."""
        z = np.asarray(z, dtype=complex)
        return (self._variance * (z * z + z) / 2)[()]

    def tilt(self, c: float) -> Tilt:
        """Return the tilted law, a Gaussian with the same variance."""
        return _GaussianTilt(c, self.noise_multiplier)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form of Balle and Wang (2018), Theorem 8."""
        return log_gaussian_delta(epsilon, 1.0 / self.noise_multiplier)


class _GaussianTilt(Tilt):
    """The tilted law of a Gaussian loss."""

    points = 1
    amplification = 1.0

    def __init__(self, c: float, noise_multiplier: float) -> None:
        self._c = c
        self._sigma = noise_multiplier
        self._variance = 1.0 / noise_multiplier**2
        self.mean = self._variance * (c + 0.5)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        t = step * np.arange(nodes)
        return np.asarray(-0.5 * self._variance * t * t, dtype=complex)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        return np.asarray(-0.5 * self._variance * t * t)

    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        if parameter != "noise_multiplier":
            return np.zeros(nodes, dtype=complex)
        z = self._c + 1j * step * np.arange(nodes)
        return np.asarray(-(z * z + z) * self._variance / self._sigma)


def log_gaussian_delta(epsilon: float, mu: float) -> tuple[float, float]:
    """Log delta(epsilon) of N(mu, 1) against N(0, 1) and its relative error; any real epsilon.

    delta = Phi(-a) - exp(epsilon) Phi(-b), a = epsilon / mu - mu / 2, b = a + mu. As phi(a) =
    exp(epsilon) phi(b), this is phi(a) times a difference of Mills ratios, free of overflow.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -5.0:
        # The first term is 1 up to 3e-7: no cancellation.
        first, second = math.exp(log_ndtr(-a)), math.exp(epsilon + log_ndtr(-b))
        return math.log(first - second), 64 * UNIT * (1 + abs(epsilon)) / (first - second)
    ratios = math.sqrt(math.pi / 2) * erfcx(np.array([a, b]) / math.sqrt(2))
    gap = float(ratios[0] - ratios[1])
    if gap <= 0.0:
        # The two ratios agree to rounding: bound the gap by mu times the slope at a, R'(a) = a
        # R(a) - 1.
        return -math.inf, math.inf
    log_density = -0.5 * a * a - 0.5 * math.log(2 * math.pi)
    error = UNIT * (16 * float(ratios[0]) / gap + 8 * a * a + 8)
    return log_density + math.log(gap), error
