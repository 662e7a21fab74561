"""Random allocation: each record joins one uniformly random batch of an epoch.

>>> loss = Allocation(noise_multiplier=1.0, batches=100, direction="remove")
>>> print(f"{loss.mean:.6e} {loss.std:.6e}")
8.446718e-03 1.305000e-01
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _lazy, _validate
from dpcal.accountants.losses.base import Complexes, PrivacyLoss, Reals, Tilt
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT

__all__ = ["Allocation", "Group", "KnownBatch", "MixedAllocation", "UnequalAllocation"]

# The integrals, which other runs do not load.
_rays = _lazy.Module("dpcal.accountants.losses.allocation_rays")
_powers = _lazy.Module("dpcal.accountants.losses.allocation_powers")
# Cost of a node of a contour, in complex multiplications: a tenth of a millisecond.
_POINTS = 4_000
# Noise below which the record's own batch stands out; ratios of all others to it, and angles.
_LITTLE_NOISE = 0.4
_RATIOS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
_TURNS = np.linspace(0.02, 3.0, 75)
# Noise below which, and batches from which on, large X_j are few enough to be moved alone.
_MODERATE_NOISE, _MANY = 1.0, 100


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
    """One epoch of a Gaussian mechanism whose records each draw one of its batches.

    With L = (1 / M) sum_j exp(t X_j - t^2 / 2), t = 1 / sigma and X_j independent standard normal
    without the record, ``"remove"`` has the loss log L under the law with the record, and ``"add"``
    the loss -log L under the law without it. These pairs dominate every adaptive choice of
    contributions (docs/accountants.md, "Random allocation"). M(z) is E L^(1 + z) when removing and
    E L^-z when adding.

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
    _known: dict[float, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )
    _moved: dict[float, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.count(batches=self.batches)
        _validate.choice(("remove", "add"), direction=self.direction)

    @cached_property
    def opposite(self) -> Allocation | None:
        """That of adding; None for it, because contours of removing are no shorter."""
        return replace(self, direction="add") if self.direction == "remove" else None

    @property
    def groups(self) -> tuple[Group, ...]:
        """Batches that are alike; all of them."""
        return (Group(self.noise_multiplier, self.batches, 1.0),)

    @property
    def mixed(self) -> list[tuple[Allocation, float]]:
        """Epochs of which the transform is a mean, and their probabilities; itself alone."""
        return [(self, 1.0)]

    @property
    def transforms(self) -> int:
        """Number of transforms of an epoch that one of it takes."""
        return 1

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "remove" else -1.0

    def power(self, c: float) -> float:
        """Return the power of L whose mean is M(c)."""
        return 1.0 + c if self.direction == "remove" else -c

    def values(self, c: float) -> tuple[Reals, float]:
        """Return log M(c), three moments of the tilted loss, and the error of M(c), relative."""
        if c not in self._known:
            t = 1.0 / self.noise_multiplier
            moments, error = _rays.log_cumulants(t, self.batches, self.power(c))
            moments[1] *= self._sign
            self._known[c] = moments, error
        return self._known[c]  # type: ignore[no-any-return]

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c), rounded up, and three moments of the tilted laws."""
        found = [self.values(float(each)) for each in np.atleast_1d(np.asarray(c, dtype=float))]
        rows = np.array([row for row, _ in found])
        rows[:, 0] += [1.01 * error for _, error in found]
        return rows

    def nodes(self, c: float, t: Reals) -> tuple[Complexes, Reals]:
        """Return log M(c + i t) and errors of M relative to M(c), at each t >= 0, ascending."""
        t_noise = 1.0 / self.noise_multiplier
        values, errors = _rays.log_moments(t_noise, self.batches, self.power(c), t)
        # E L^q at q = a - i t is the conjugate of that at a + i t.
        return values if self.direction == "remove" else values.conj(), errors

    def log_decay(self, c: float, t: Reals, ratio: float = 1.0) -> Reals:
        """Return bounds on log abs(M(c + i s) / M(c)) over [t, ratio t], for each t > 0.

        One is -t^2 / (2 M sigma^2): the mean of all X_j is independent of L without it. Others are
        those of the record's own batch, when removing (:meth:`_own_decay`, :meth:`_apart`).
        """
        found = self.log_decay_of_mean(c, t)
        if self.noise_multiplier < _MODERATE_NOISE and self.batches >= _MANY:
            found = np.minimum(found, self._moved_lines(c).at(t))
        little = self.noise_multiplier <= _LITTLE_NOISE and self.batches > 1
        if self.direction == "add" or c <= 0 or not little:
            return found
        found = np.minimum(found, self._own_decay(c, t))
        return np.minimum(found, self._apart(c, t, ratio * t)) if c <= 1 else found

    def log_decay_of_mean(self, c: float, t: Reals) -> Reals:
        """Return the first bound of :meth:`log_decay`, which certificates prove."""
        return np.asarray(-0.5 * t * t / (self.batches * self.noise_multiplier**2))

    def _moved_lines(self, c: float) -> Any:
        """Return the bounds of moved lines along Re z = c, which are kept."""
        if c not in self._moved:
            (log_mgf, *_), error = self.values(c)
            t, a, log_f = 1.0 / self.noise_multiplier, self.power(c), float(log_mgf - error - 1e-9)
            twice = float(self.cumulants([2 * c])[0, 0]) + 1e-9 if a < 0 else math.nan
            self._moved[c] = _powers.MovedLines(t, self.batches, a, log_f, twice)
        return self._moved[c]

    def _log_others(self, r: Reals) -> Reals:
        """Return bounds on log E R^r, 0 <= r <= 2, R the sum of Y_j of all batches but one."""
        square, others = self.noise_multiplier**-2, math.log(self.batches - 1)
        # E R^r is subadditive and concave for r <= 1, and log-convex above it.
        second = others + np.logaddexp(square, math.log(max(self.batches - 2, 1)))
        below = np.minimum(others - r * (1 - r) * square / 2, r * others)
        return np.where(r <= 1, below, (2 - r) * others + (r - 1) * second)

    def _log_scale(self, c: float) -> float:
        """Return a bound on -log E (M L)^c with the record."""
        (log_mgf, *_), error = self.values(c)
        return float(-c * math.log(self.batches) - log_mgf + error + 1e-9)

    def _own_decay(self, c: float, u: Reals) -> Reals:
        """Return a bound that falls with u, for a record's batch larger than most others together.

        With the record L is (Y + R) / M, log Y normal with mean and half variance 1 / (2 sigma^2).
        Move the line of its integral by i psi sigma: terms grow by exp(psi^2 sigma^2 / 2), and
        where Y >= R / k by exp(-u arg(exp(i psi) + k)) too. The rest has at most the share (1 +
        1 / k)^c k^-p E R^(c + p) E Y^-p / E (Y + R)^c, since there L <= (1 + 1 / k) R / M and 1 <=
        (R / (k Y))^p.
        """
        square, k, p = self.noise_multiplier**-2, _RATIOS[:, None], np.linspace(0.02, 1.98, 50)
        rest = self._log_others(np.minimum(c + p, 2.0)) - p * np.log(k) - p * (1 - p) * square / 2
        rest = np.where(c + p <= 2, rest, math.inf).min(axis=1)
        rest += c * np.log1p(1 / _RATIOS) + self._log_scale(c)
        angles = np.arctan2(np.sin(_TURNS), np.cos(_TURNS) + k)
        grown = _TURNS**2 / (2 * square)
        terms = np.logaddexp(-np.multiply.outer(u, angles), rest[:, None]) + grown
        return np.asarray(np.minimum(terms.min(axis=(1, 2)), 0.0))

    def _apart(self, c: float, u: Reals, most: Reals) -> Reals:
        """Return a bound for imaginary parts from u to the most, and c <= 1: Y alone, and the rest.

        With z = c + i u, abs((Y + R)^z - Y^z) is at most abs(z) R Y^(c - 1) and 2 (Y^c + R^c),
        hence at most abs(z)^p 2^(1 - p) (R^p Y^(c - p) + R^(p + c - p c) Y^(-p (1 - c))), for each
        p in [0, 1].
        """
        square, p = self.noise_multiplier**-2, np.linspace(0.02, 1.0, 50)

        def own(power: Reals) -> Reals:
            return np.asarray(power * (power + 1) * square / 2)

        rest = np.logaddexp(
            self._log_others(p) + own(c - p), self._log_others(p + c - p * c) + own(-p * (1 - c))
        )
        sizes = np.multiply.outer(np.log(np.hypot(c, most)), p)
        rest = (sizes + (1 - p) * math.log(2) + rest).min(axis=1)
        alone = c * (c + 1) * square / 2 - u * u * square / 2
        return np.asarray(np.logaddexp(alone, rest) + self._log_scale(c))

    def log_mgf_bound(self, c: float) -> float:
        """Return that of a single batch, or, when adding, of a mean over its geometric mean."""
        t2 = 1.0 / self.noise_multiplier**2
        single = (c * c + c) * t2 / 2
        if self.direction == "remove":
            return single
        return min(single, c * t2 / 2 + c * c * t2 / (2 * self.batches))

    def tilt(self, c: float) -> _AllocationTilt:
        """Return the tilted law along Re z = c."""
        return _AllocationTilt(self, c)


@dataclass(frozen=True)
class MixedAllocation(Allocation):
    """An epoch of allocation to a random number of batches, which is told.

    ``batches`` is the least number. The pairs of several numbers, apart from one another, have the
    mean of their transforms.

    Parameters
    ----------
    numbers
        Numbers of batches, ascending, and their probabilities, which add up to 1.
    """

    numbers: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        total = math.fsum(chance for _, chance in self.numbers)
        if not self.numbers or self.numbers[0][0] != self.batches or abs(total - 1) > 1e-9:
            raise ValueError(
                "numbers must begin with batches and have probabilities that add up to 1, got "
                f"{self.numbers!r}."
            )

    @property
    def mixed(self) -> list[tuple[Allocation, float]]:
        """Epochs with each number of batches, and their probabilities."""
        chances = (chance for _, chance in self.numbers)
        return list(zip(self._parts, chances, strict=True))

    @property
    def transforms(self) -> int:
        """Number of numbers of batches."""
        return len(self.numbers)

    @cached_property
    def _parts(self) -> list[Allocation]:
        return [Allocation(self.noise_multiplier, m, self.direction) for m, _ in self.numbers]

    @cached_property
    def _log_chances(self) -> Reals:
        return np.log([chance for _, chance in self.numbers])

    def _shares(self, c: float) -> tuple[Reals, float]:
        """Return the shares of the numbers of batches in M(c), and its logarithm."""
        logs = self._log_chances + [part.values(c)[0][0] for part in self._parts]
        total = float(np.logaddexp.reduce(logs))
        return np.exp(logs - total), total

    def values(self, c: float) -> tuple[Reals, float]:
        """Return log M(c), three moments of the tilted loss, and the error of M(c), relative."""
        if c not in self._known:
            shares, total = self._shares(c)
            rows = np.array([part.values(c)[0] for part in self._parts])
            errors = np.array([part.values(c)[1] for part in self._parts])
            mean = shares @ rows[:, 1]
            apart = rows[:, 1] - mean
            variance = shares @ (rows[:, 2] + apart**2)
            fourth = shares @ (rows[:, 3] + 6 * rows[:, 2] * apart**2 + apart**4)
            rounding = len(errors) * (8 + abs(total)) * UNIT
            self._known[c] = np.array([total, mean, variance, fourth]), shares @ errors + rounding
        return self._known[c]  # type: ignore[no-any-return]

    def nodes(self, c: float, t: Reals) -> tuple[Complexes, Reals]:
        """Return log M(c + i t) and errors of M relative to M(c), at each t >= 0."""
        shares, _ = self._shares(c)
        found = [part.nodes(c, t) for part in self._parts]
        values = self._log_chances[:, None] + np.array([value for value, _ in found])
        top = values.real.max(axis=0)
        total = np.log(np.exp(values - top).sum(axis=0)) + top
        rounding = len(found) * (8 + np.abs(values).max(axis=0)) * UNIT
        return total, shares @ np.array([error for _, error in found]) + rounding

    def log_decay(self, c: float, t: Reals, ratio: float = 1.0) -> Reals:
        """Return the mean of the bounds for each number of batches, weighted as in M(c)."""
        return self._mean(c, [part.log_decay(c, t, ratio) for part in self._parts])

    def log_decay_of_mean(self, c: float, t: Reals) -> Reals:
        """Return the mean of the bounds for each number of batches, weighted as in M(c)."""
        return self._mean(c, [part.log_decay_of_mean(c, t) for part in self._parts])

    def _mean(self, c: float, decays: Sequence[Reals]) -> Reals:
        shares, _ = self._shares(c)
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp.reduce(np.log(shares)[:, None] + np.array(decays)))


@dataclass(frozen=True)
class UnequalAllocation(MixedAllocation):
    """An epoch of allocation to batches of several noises or probabilities, as if it told groups.

    L is the mean of Y_j = exp(t_j X_j - t_j^2 / 2), t_j = 1 / sigma_j, weighted by probabilities:
    the pair of (log L) dominates, as for equal batches (docs/accountants.md, "Random allocation").
    Its transform is inverted in ball arithmetic, from ``groups``
    (:mod:`dpcal.accountants.inversion.puts`). This law serves where that does not: it is of an
    output that tells the group that a record drew, which dominates; one batch alone is dominated.

    >>> parts = Group(1.0, 10, 0.75), Group(2.0, 5, 0.25)
    >>> UnequalAllocation.of(parts, "remove").below
    SampledGaussian(sampling_probability=0.07499999999999998, noise_multiplier=1.0, \
direction='remove')

    Parameters
    ----------
    unequal
        The groups. Noise is the least, and batches are those of the first group.
    """

    unequal: tuple[Group, ...] = ()

    @classmethod
    def of(cls, groups: tuple[Group, ...], direction: str) -> UnequalAllocation:
        """Return the loss of an epoch with these groups."""
        numbers = tuple((group.batches, group.probability) for group in groups)
        least = min(group.noise_multiplier for group in groups)
        return cls(least, groups[0].batches, direction, numbers, groups)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Batches that are alike."""
        return self.unequal

    @property
    def mixed(self) -> list[tuple[Allocation, float]]:
        """Itself alone: its own transform is that of all groups together."""
        return [(self, 1.0)]

    @cached_property
    def _parts(self) -> list[Allocation]:
        return [Allocation(sigma, m, self.direction) for sigma, m, _ in self.unequal]

    def log_mgf_bound(self, c: float) -> float:
        """Return the largest bound of a group."""
        return max(part.log_mgf_bound(c) for part in self._parts)

    @property
    def below(self) -> PrivacyLoss:
        """The loss of one batch alone, that whose signal is largest."""
        sigma, m, chance = max(self.unequal, key=lambda group: group[2] / group[1] / group[0])
        return SampledGaussian(math.nextafter(chance / m, 0.0), sigma, self.direction)


class _AllocationTilt(Tilt):
    """The tilted law of an allocation; transforms at nodes are kept."""

    accuracy = 1e-11

    def __init__(self, loss: Allocation, c: float) -> None:
        self._loss, self._c = loss, c
        self.points = _POINTS * loss.transforms
        moments, error = loss.values(c)
        self._log_mass, self.mean = float(loss.cumulants([c])[0, 0]), float(moments[1])
        # The error of log M(c), which is rounded up by as much, over what four units of it are.
        size = max(min(abs(self._log_mass), 1.0), 1e-300)
        self.amplification = 1.0 + 3 * error / (4 * UNIT * size)
        self._known: dict[float, tuple[complex, float]] = {}

    def _found(self, t: Reals) -> tuple[Complexes, Reals]:
        """Return log M(c + i t) and errors of M relative to M(c), at each t >= 0."""
        new = [float(each) for each in t if float(each) not in self._known]
        if new:
            values, errors = self._loss.nodes(self._c, np.array(new))
            self._known.update(zip(new, zip(values, errors, strict=True), strict=True))
        found = [self._known[float(each)] for each in t]
        return np.array([value for value, _ in found]), np.array([error for _, error in found])

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log psi at the nodes, each from a ray of its own."""
        t: Reals = np.asarray(step * np.arange(nodes), dtype=np.float64)
        values, _ = self._found(t)
        found = values - self._log_mass - 1j * t * self.mean
        found[0] = 0.0
        return np.asarray(found)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return the loss's bound."""
        return self._loss.log_decay(self._c, t, ratio)

    def sum_rounding(self, t: Reals) -> tuple[Reals, Reals, Reals]:
        """Return errors of psi: twice those of transforms, made to rise, and none that scales."""
        _, errors = self._found(t)
        _, at_zero = self._loss.values(self._c)
        rising = np.maximum.accumulate(errors + 2 * at_zero) / UNIT
        return np.asarray(2 * rising), np.zeros_like(t), np.zeros_like(t)


@dataclass(frozen=True)
class KnownBatch(Gaussian):
    """A Gaussian mechanism in place of an epoch with less noise than :class:`Allocation` takes.

    Whoever is told a record's batch sees one Gaussian answer: that dominates the epoch. Whoever
    sees one batch alone sees a Poisson sample at rate 1 / M: the epoch dominates that.

    >>> KnownBatch(0.03, 100, "add").below
    SampledGaussian(sampling_probability=0.009999999999999998, noise_multiplier=0.03, \
direction='add')
    """

    batches: int
    direction: str

    @property
    def below(self) -> PrivacyLoss:
        """The loss of one batch alone."""
        rate = math.nextafter(1 / self.batches, 0.0)
        return SampledGaussian(rate, self.noise_multiplier, self.direction)
