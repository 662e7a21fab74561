"""What does a contour invert? Positive measures on privacy losses, known by their transforms.

:class:`Total` is the law of a sum of losses. Where single steps have rare large losses, that law
is a narrow peak beside a broad remainder, and no single contour serves both; :func:`split` then
writes it as :class:`Bulk`, the part in which no step jumps, plus :class:`Jumps`, the rest.

>>> from dpcal.accountants.loss import Gaussian
>>> log_mass, mean, variance = Total(((Gaussian(2.0), 8),)).cumulants([1.0])[0]
>>> print(log_mass, mean, variance)
2.0 3.0 2.0
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpcal.accountants.loss import UNIT, OutOfReach, PrivacyLoss, Tilt
from dpcal.accountants.quadrature import QuadratureTilt, complex_log1p
from dpcal.accountants.saddle import log_chernoff
from dpcal.accountants.sampled import SampledGaussian, SplitLoss, TrimmedLoss

__all__ = ["Bulk", "Jumps", "Line", "Measure", "Total", "split", "trim"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]
# Stands for log 0.
_LOG_OF_ZERO = -1e6

Parts = tuple[tuple[PrivacyLoss, int], ...]


class Line(ABC):
    """The transform of a measure along Re z = c, relative to its value at c."""

    log_mass: float
    mean: float
    variance: float
    points: int
    decays: bool

    @abstractmethod
    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log of transform(c + i k step) exp(-i k step mean) / transform(c)."""

    @abstractmethod
    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return a proved upper bound on the real part of that over [t, ratio t]."""

    @abstractmethod
    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Return rounding errors in units: relative to each value, and in absolute terms."""


class Measure(ABC):
    """A positive measure on the line of privacy losses, of total mass at most 1."""

    @abstractmethod
    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts exp(c l); shape (len(c), 3)."""

    @abstractmethod
    def line(self, c: float) -> Line:
        """Return the transform along Re z = c."""

    def log_chernoff(self, c: Reals) -> Reals:
        """Return, rounded up, what less c times epsilon bounds log delta(epsilon), at each c.

        For -1 <= c <= 0 and a law it bounds log(1 - delta(epsilon)).
        """
        log_mass = self.cumulants(c)[:, 0]
        return np.asarray(log_mass + log_chernoff(c) + 32 * UNIT * (np.abs(log_mass) + 4))

    @cached_property
    def at_zero(self) -> tuple[float, float]:
        """Mean and variance of the measure, as a law."""
        _, mean, variance = self.cumulants([0.0])[0]
        return float(mean), float(variance)


def _growth(tilts: Sequence[tuple[Tilt, int]], step: float, nodes: int) -> Reals:
    """The tilts' growth along a contour; found at few nodes, as it rises from one to the next."""
    known = np.unique(np.geomspace(1, max(nodes - 1, 1), 12).astype(int))
    total = sum(times * tilt.growth(step * known) for tilt, times in tilts)
    return np.asarray(np.broadcast_to(total, known.shape)[np.searchsorted(known, np.arange(nodes))])


class ProductLine(Line):
    """A product of tilted transforms, each to its power."""

    def __init__(
        self, tilts: list[tuple[Tilt, int]], cumulants: Reals, log_masses: list[float]
    ) -> None:
        self.tilts, self.log_masses = tilts, log_masses
        self.log_mass, self.mean, self.variance = (float(value) for value in cumulants)
        self.points = sum(tilt.points for tilt, _ in tilts)
        # Rounded sums of the parts' means are the phase; the parts are centered on their own.
        self._offset = sum(times * tilt.mean for tilt, times in tilts) - self.mean
        self.decays = any(tilt.decays for tilt, _ in tilts)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Sum of the parts' logarithms."""
        total = 1j * self._offset * step * np.arange(nodes)
        for tilt, times in self.tilts:
            total = total + times * tilt.log_ratio(step, nodes)
        return np.asarray(total)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Sum of the parts' bounds."""
        total = np.zeros_like(t)
        for tilt, times in self.tilts:
            total += times * np.minimum(tilt.log_decay(t, ratio), 0.0)
        return total

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Each part's logarithm is a rounded sum, taken to its power."""
        worst = max(tilt.amplification for tilt, _ in self.tilts)
        relative = 8.0 + 4 * worst * np.minimum(np.abs(log_ratio), self._largest)
        return relative + 4 * _growth(self.tilts, step, len(log_ratio)), 0.0

    @property
    def _largest(self) -> float:
        return float(sum(times for _, times in self.tilts))


class Total(Measure):
    """The law of a sum of independent losses.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log M, mean and variance of the tilted sums."""
        total = np.zeros((len(c), 3))
        for loss, times in self.parts:
            total += times * loss.cumulants(c)[:, :3]
        return total

    def line(self, c: float) -> ProductLine:
        """Return the product of the parts' tilted characteristic functions."""
        tilts = [(loss.tilt(c), times) for loss, times in self.parts]
        rows = [(loss.cumulants([c])[0], times) for loss, times in self.parts]
        total = np.sum([times * row[:3] for row, times in rows], axis=0)
        return ProductLine(tilts, total, [float(row[0]) for row, _ in rows])

    @property
    def upper(self) -> float:
        """Supremum of the sum."""
        return sum(times * loss.upper for loss, times in self.parts)

    @property
    def log_delta_bound(self) -> float:
        """Log of the chance that any step depends on the record, which bounds every delta."""
        unaffected = sum(times * loss.log_unaffected for loss, times in self.parts)
        return math.log(-math.expm1(unaffected)) if unaffected < 0 else -math.inf

    def log_mgf_bound(self, c: float) -> float:
        """Closed-form upper bound on log M(c), c > 0."""
        return sum(times * loss.log_mgf_bound(c) for loss, times in self.parts)


class Trimmed(Measure):
    """The part of the law in which no step has one of its rarest large losses.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    log_rest
        Log of the probability that may be cut off in all.
    sharpness
        How much sharper than usual the cuts are: they need as many times more points.

    Attributes
    ----------
    log_rest
        Log of a bound on the probability that was cut off.
    """

    def __init__(self, parts: Parts, log_rest: float, sharpness: float = 1.0) -> None:
        share = log_rest - math.log(sum(times for _, times in parts))
        self._parts: list[tuple[PrivacyLoss | TrimmedLoss, int]] = []
        rests = [-math.inf]
        for loss, times in parts:
            piece: PrivacyLoss | TrimmedLoss = loss
            if isinstance(loss, SampledGaussian) and loss.direction == "remove":
                piece = TrimmedLoss(loss, share, sharpness)
                rests.append(math.log(times) + piece.log_rest)
            self._parts.append((piece, times))
        self.log_rest = float(np.logaddexp.reduce(rests)) + 8 * UNIT * abs(log_rest)

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts."""
        total = np.zeros((len(c), 3))
        for piece, times in self._parts:
            total += times * piece.cumulants(c)[:, :3]
        return total

    def line(self, c: float) -> ProductLine:
        """Return the product of the tilted characteristic functions."""
        tilts = [(piece.tilt(c), times) for piece, times in self._parts]
        return ProductLine(tilts, self.cumulants([c])[0], [])


def trim(parts: Parts, log_rest: float, sharpness: float = 1.0) -> Trimmed | None:
    """Leave out rare large losses of at most this probability; None where no part has any."""
    if not any(
        isinstance(loss, SampledGaussian) and loss.direction == "remove" for loss, _ in parts
    ):
        return None
    return Trimmed(parts, log_rest, sharpness)


SplitParts = list[tuple[SplitLoss | PrivacyLoss, int]]


def split(parts: Parts, c: float) -> tuple[Bulk, Jumps] | None:
    """Split the law of a sum at the valleys of its parts' integrands at tilt c.

    Returns None where no part has two peaks.
    """
    pieces: SplitParts = [(SplitLoss.at(loss, c) or loss, times) for loss, times in parts]
    if not any(isinstance(piece, SplitLoss) for piece, _ in pieces):
        return None
    return Bulk(pieces), Jumps(pieces)


class Bulk(Measure):
    """The part of the law in which no step jumps: the product of the bulks."""

    def __init__(self, pieces: SplitParts) -> None:
        self.pieces = pieces

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts."""
        total = np.zeros((len(c), 3))
        for piece, times in self.pieces:
            rows = piece.cumulants(c)[0] if isinstance(piece, SplitLoss) else piece.cumulants(c)
            total += times * rows[:, :3]
        return total

    def line(self, c: float) -> ProductLine:
        """Return the product of the tilted bulks."""
        tilts: list[tuple[Tilt, int]] = [
            (piece.tilts(c)[0] if isinstance(piece, SplitLoss) else piece.tilt(c), times)
            for piece, times in self.pieces
        ]
        return ProductLine(tilts, self.cumulants([c])[0], [])


class Jumps(Measure):
    """The part of the law in which at least one step jumps.

    With A and B the transforms of a step's bulk and jumps, this is prod (A + B)^T - prod A^T, kept
    to full relative precision as prod A^T times expm1(sum T log1p(B / A)).
    """

    def __init__(self, pieces: SplitParts) -> None:
        self.pieces = pieces

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts, from those of bulks and jumps."""
        base = np.zeros((len(c), 3))
        rows = []
        for piece, times in self.pieces:
            if isinstance(piece, SplitLoss):
                bulk, jumps = piece.cumulants(c)
                base += times * bulk[:, :3]
                rows.append((times, jumps[:, 0] - bulk[:, 0], jumps - bulk))
            else:
                base += times * piece.cumulants(c)[:, :3]
        # Odds B / A may lie below the range of a double: they are kept relative to the largest.
        scale = np.minimum(np.max([log_odds for _, log_odds, _ in rows], axis=0), 0.0)
        # Value, first and second derivative of rho(c) = sum T log1p(B / A), over exp(scale).
        rho = np.zeros((len(c), 3))
        for times, log_odds, gap in rows:
            share = np.exp(log_odds - scale - np.logaddexp(0.0, log_odds))
            tiny = log_odds < -36.0
            with np.errstate(over="ignore"):
                value = np.exp(-scale) * np.logaddexp(0.0, np.where(tiny, 0.0, log_odds))
            rho[:, 0] += times * np.where(tiny, share, value)
            rho[:, 1] += times * share * gap[:, 1]
            rho[:, 2] += times * share * (gap[:, 2] + expit(-log_odds) * gap[:, 1] ** 2)
        whole = rho[:, 0] * np.exp(scale)
        first = rho[:, 1] / rho[:, 0]
        # 1 - exp(-rho) over rho, and exp(-rho) times its inverse.
        kept = np.where(whole > 1e-12, -np.expm1(-whole) / np.maximum(whole, 1e-300), 1.0)
        base[:, 0] += scale + np.log(rho[:, 0]) + whole + np.log(kept)
        base[:, 1] += first / kept
        base[:, 2] += rho[:, 2] / rho[:, 0] / kept - (first / kept) ** 2 * np.exp(-whole)
        return base

    def line(self, c: float) -> JumpLine:
        """Return the transform along Re z = c."""
        return JumpLine(self.pieces, c, self.cumulants([c])[0])


class JumpLine(Line):
    """The transform of :class:`Jumps` along a vertical line."""

    decays = True

    def __init__(self, pieces: SplitParts, c: float, cumulants: Reals) -> None:
        self.log_mass, self.mean, self.variance = (float(value) for value in cumulants)
        self._plain: list[tuple[Tilt, int]] = []
        self._split: list[tuple[QuadratureTilt, QuadratureTilt, float, int]] = []
        for piece, times in pieces:
            if isinstance(piece, SplitLoss):
                bulk, jumps = piece.cumulants([c])
                log_odds = float(jumps[0, 0] - bulk[0, 0])
                if abs(log_odds) > 600.0:
                    raise OutOfReach
                self._split.append((*piece.tilts(c), math.exp(log_odds), times))
            else:
                self._plain.append((piece.tilt(c), times))
        self.points = sum(tilt.points for tilt, _ in self._plain)
        self.points += sum(bulk.points + jumps.points for bulk, jumps, _, _ in self._split)
        self._rho = sum(times * math.log1p(odds) for _, _, odds, times in self._split)
        means = sum(times * tilt.mean for tilt, times in self._plain)
        means += sum(times * bulk.mean for bulk, _, _, times in self._split)
        self._offset = means - self.mean

    def _log_expm1(self, rho: float) -> float:
        return rho + math.log(-math.expm1(-rho))

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Log of prod A^T expm1(sum T log1p(B / A)), over its value at c."""
        total = 1j * self._offset * step * np.arange(nodes)
        rho = np.zeros(nodes, dtype=complex)
        for tilt, times in self._plain:
            total += times * tilt.log_ratio(step, nodes)
        for bulk, jumps, odds, times in self._split:
            log_bulk = bulk.log_ratio(step, nodes)
            total += times * log_bulk
            ratio = odds * jumps.ratio(step, nodes, bulk.mean) * np.exp(-log_bulk)
            rho += times * complex_log1p(ratio)
        # rho + log(1 - exp(-rho)) has no overflow; where rho is 0 the transform is 0.
        with np.errstate(divide="ignore"):
            log_excess = rho + np.log(-np.expm1(-rho))
        log_excess.real = np.maximum(log_excess.real, _LOG_OF_ZERO)
        return np.asarray(total + log_excess - self._log_expm1(self._rho))

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Bound with every A at its value on the real axis, and B by its absolute sum."""
        rho = np.zeros_like(t)
        for _, jumps, odds, times in self._split:
            rho += times * np.log1p(odds * jumps.absolute(t))
        with np.errstate(divide="ignore"):
            return np.asarray(rho + np.log(-np.expm1(-rho)) - self._log_expm1(self._rho))

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """As a product, and the rounding of rho, which is absolute in size."""
        times = float(sum(times for _, times in self._plain))
        times += float(sum(times for _, _, _, times in self._split))
        relative = 8.0 + 8 * np.minimum(np.abs(log_ratio), times)
        bulks = [(bulk, times) for bulk, _, _, times in self._split]
        relative = relative + 4 * _growth([*self._plain, *bulks], step, len(log_ratio))
        amplification = max(jumps.amplification for _, jumps, _, _ in self._split)
        return relative, 8 * amplification * self._rho / -math.expm1(-self._rho)
