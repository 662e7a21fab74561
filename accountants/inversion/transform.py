"""What does a contour invert? Positive measures on privacy losses, known by their transforms.

:class:`Total` is the law of a sum of losses. Where single steps have rare large losses, that law
is a narrow peak beside a broad remainder, and no single contour serves both; :func:`split` then
writes it as :class:`Bulk`, the part in which no step jumps, plus :class:`Jumps`, the rest.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> log_mass, mean, variance = Total(((Gaussian(2.0), 8),)).cumulants([1.0])[0]
>>> print(log_mass, mean, variance)
2.0 3.0 2.0
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.losses.base import Lattice, OutOfReach, PrivacyLoss, Tilt
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian, ZeroAndRest
from dpcal.accountants.losses.laplace import EndsAndDensity, Laplace
from dpcal.accountants.losses.quadrature import QuadratureTilt, complex_log1p
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian, SplitLoss, TrimmedLoss
from dpcal.accountants.losses.truncation import Band, Below
from dpcal.accountants.rounding import UNIT, rounded_up

__all__ = [
    "CROWD",
    "Bulk",
    "Jumps",
    "Line",
    "Measure",
    "Total",
    "bulk_rounding",
    "common_lattice",
    "split",
    "trim",
]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]
# Largest number of parts into which a unit is cut, to make it that of several lattices.
_FINEST = 1000
# Stands for log 0.
_LOG_OF_ZERO = -1e6
# Log of odds of a jump, of all steps together, below which a second jump is less than rounding.
_RARE = -45.0
# More distinct losses than this are a crowd, of which every look takes as many quadratures.
CROWD = 24
# More than this are sketched, by about so many of them.
_HUNDREDS, _SKETCHED = 100, 16

Parts = tuple[tuple[PrivacyLoss, int], ...]
P = TypeVar("P")


class Line(ABC):
    """The transform of a measure along Re z = c, relative to its value at c."""

    log_mass: float
    log_mass_rounding: float = 0.0
    """Absolute error of ``log_mass`` in units, beyond that of a sum of accurate terms."""
    mean: float
    mean_rounding: float
    """Absolute error of ``mean`` in units, beyond that of rounding it."""
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

    @property
    def lattice(self) -> Lattice | None:
        """The lattice on which the measure lives, if it does."""
        return None

    @property
    def sketch(self) -> Measure | None:
        """A measure of far fewer parts, by which to guess where to look; None where these are few.

        Nothing is said of how close it is.
        """
        return None

    def log_chernoff(self, c: Reals) -> Reals:
        """Return, rounded up, what less c times epsilon bounds log delta(epsilon), at each c.

        For -1 <= c <= 0 and a law it bounds log(1 - delta(epsilon)).
        """
        log_mass = self.cumulants(c)[:, 0]
        rounding = 32 * (np.abs(log_mass) + 4) + self.mass_rounding(c)
        return np.asarray(log_mass + log_chernoff(c) + UNIT * rounding)

    def mass_rounding(self, c: Reals) -> Reals | float:
        """Rounding of the log masses, in units, beyond that of sums of accurate terms."""
        return 0.0

    @cached_property
    def at_zero(self) -> tuple[float, float]:
        """Mean and variance of the measure, as a law."""
        _, mean, variance = self.cumulants([0.0])[0]
        return float(mean), float(variance)


class _Few:
    """Few of the nodes of a contour, for errors that rise with the time but fall over its square.

    Parameters
    ----------
    step, nodes
        Distance of the nodes and their number.
    """

    def __init__(self, step: float, nodes: int) -> None:
        known = np.unique(np.geomspace(1, max(nodes - 1, 1), 12).astype(int))
        self.t = step * known
        self._after = np.searchsorted(known, np.arange(nodes))
        self._before = np.maximum(self._after - 1, 0)
        self._growth = (np.arange(nodes) / known[self._before]) ** 2

    def above(self, values: Reals) -> Reals:
        """Upper bounds at all nodes on what rises, from its values at these."""
        return np.asarray(values[self._after])

    def between(self, values: Reals) -> Reals:
        """Sharper ones on what also falls over the square of the time."""
        return np.asarray(np.minimum(values[self._after], values[self._before] * self._growth))


def _ratio_rounding(tilt: Tilt, log_ratio: Complexes, few: _Few) -> Reals:
    """Rounding of a tilt's psi at the nodes, in units and relative to it.

    It is an absolute error: where psi is small, it is more of it.
    """
    plain, relative = (few.between(part) for part in tilt.sum_rounding(few.t))
    error = plain + relative * np.minimum(np.abs(log_ratio), 2.0)
    error += 4 * few.above(tilt.growth(few.t))
    return np.asarray(error * np.exp(np.minimum(-log_ratio.real, 600.0)))


def _mass_rounding(tilts: Sequence[tuple[Tilt, int]], log_masses: Sequence[float]) -> float:
    """Rounding of log masses, in units: that of a sum of weights, less where it is near 1."""
    pairs = zip(tilts, log_masses, strict=True)
    return sum(
        4 * times * tilt.amplification * min(abs(size), 1.0) for (tilt, times), size in pairs
    )


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
        self.mean_rounding = sum(times * tilt.mean_rounding for tilt, times in tilts)
        self.log_mass_rounding = _mass_rounding(tilts, log_masses)
        self._rounding: Reals | float = 0.0

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Sum of the parts' logarithms."""
        total = 1j * self._offset * step * np.arange(nodes)
        self._rounding = 8.0
        few = _Few(step, nodes)
        for tilt, times in self.tilts:
            part = tilt.log_ratio(step, nodes)
            total = total + times * part
            self._rounding = self._rounding + times * _ratio_rounding(tilt, part, few)
        return np.asarray(total)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Sum of the parts' bounds."""
        total = np.zeros_like(t)
        for tilt, times in self.tilts:
            total += times * np.minimum(tilt.log_decay(t, ratio), 0.0)
        return total

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Each part's logarithm is a rounded sum, taken to its power."""
        return np.asarray(self._rounding + 0 * log_ratio.real), 0.0


def common_lattice(lattices: Sequence[tuple[Lattice | None, int]]) -> Lattice | None:
    """The lattice of a sum of terms on lattices, if their units have ratios of small integers.

    Ratios are taken to rounding, as the values themselves are.
    """
    known = [(item, times) for item, times in lattices if item is not None]
    if len(known) < len(lattices) or not known:
        return None
    offset = math.fsum(times * item.offset for item, times in known)
    first = known[0][0].unit
    ratios = [Fraction(item.unit / first).limit_denominator(_FINEST) for item, _ in known]
    for ratio, (item, _) in zip(ratios, known, strict=True):
        if ratio == 0 or abs(float(ratio) * first / item.unit - 1) > 4 * UNIT:
            return None
    parts = math.lcm(*(ratio.denominator for ratio in ratios))
    if parts > _FINEST:
        return None
    strides = [int(r * parts) * item.stride for r, (item, _) in zip(ratios, known, strict=True)]
    return Lattice(offset, first / parts, math.gcd(*strides))


Split = SplitLoss | EndsAndDensity | ZeroAndRest | Band
Piece = Split | PrivacyLoss | TrimmedLoss
SplitParts = list[tuple[Piece, int]]


def _few(pieces: Sequence[tuple[P, int]]) -> tuple[tuple[P, int], ...]:
    """Some of hundreds of pieces, standing for all of them; none of fewer."""
    if len(pieces) <= _HUNDREDS:
        return ()
    stride = -(-len(pieces) // _SKETCHED)
    return tuple((piece, stride * times) for piece, times in pieces[::stride])


def _bulk(piece: Piece, c: Reals | Sequence[float]) -> Reals:
    """Log mass and moments of the tilts of a piece, of its bulk where it has two sides."""
    return piece.cumulants(c)[0] if isinstance(piece, Split) else piece.cumulants(c)


def _summed(pieces: Sequence[tuple[Piece, int]], c: Reals | Sequence[float]) -> Reals:
    """Log mass, mean and variance of the tilted sum of all bulks."""
    total = np.zeros((len(c), 3))
    for piece, times in pieces:
        total += times * _bulk(piece, c)[:, :3]
    return total


def _product(pieces: Sequence[tuple[Piece, int]], c: float) -> ProductLine:
    """The product of the tilted transforms of all bulks."""
    tilts: list[tuple[Tilt, int]] = [
        (piece.tilts(c)[0] if isinstance(piece, Split) else piece.tilt(c), times)
        for piece, times in pieces
    ]
    rows = [(_bulk(piece, [c])[0], times) for piece, times in pieces]
    total = np.sum([times * row[:3] for row, times in rows], axis=0)
    return ProductLine(tilts, total, [float(row[0]) for row, _ in rows])


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
        return _summed(self.parts, c)

    def line(self, c: float) -> ProductLine:
        """Return the product of the parts' tilted characteristic functions."""
        return _product(self.parts, c)

    @property
    def sketch(self) -> Total | None:
        """The law of few of hundreds of losses, each as often as several."""
        few = _few(self.parts)
        return Total(few) if few else None

    def moments(self, c: Reals | Sequence[float]) -> Reals:
        """Return the sum of the parts' Renyi bounds on log M at c > 0, and two derivatives."""
        total = np.zeros((len(c), 3))
        for loss, times in self.parts:
            total += times * loss.moments(c)
        return total

    @property
    def renyi_is_tighter(self) -> bool:
        """Whether some part's Renyi divergences say more than its dominating pair."""
        return any(loss.renyi_is_tighter for loss, _ in self.parts)

    @property
    def lattice(self) -> Lattice | None:
        """The lattice of the sum's values, if the parts' lattices have one unit."""
        return common_lattice([(loss.lattice, times) for loss, times in self.parts])

    @cached_property
    def upper(self) -> float:
        """Supremum of the sum, rounded up."""
        nearest = float(sum(times * loss.upper for loss, times in self.parts))
        if not math.isfinite(nearest):
            return nearest
        exact = sum((times * Fraction(loss.upper) for loss, times in self.parts), Fraction())
        return rounded_up(nearest, exact)

    def log_support_bound(self, epsilon: float) -> float:
        """Log delta(epsilon) of a law all of whose mass is at the supremum, which has the most."""
        gap = self.upper - epsilon
        return math.log(-math.expm1(-gap)) + 8 * UNIT if gap > 0 else -math.inf

    @property
    def log_delta_bound(self) -> float:
        """Log of the chance that any step depends on the record, which bounds every delta."""
        unaffected = sum(times * loss.log_unaffected for loss, times in self.parts)
        return math.log(-math.expm1(unaffected)) if unaffected < 0 else -math.inf

    def log_mgf_bound(self, c: float) -> float:
        """Closed-form upper bound on log M(c), c > 0."""
        return sum(times * loss.log_mgf_bound(c) for loss, times in self.parts)


# Atoms of more Laplace mechanisms than this are not set apart: their powers would lose digits.
_MOST_ENDS = 10_000


def _split(
    loss: PrivacyLoss, times: int, c: float
) -> SplitLoss | EndsAndDensity | ZeroAndRest | None:
    """The loss in two parts, if it has two."""
    if isinstance(loss, FixedBatchGaussian):
        return ZeroAndRest(loss)
    if isinstance(loss, Laplace):
        return EndsAndDensity(loss) if times <= _MOST_ENDS else None
    return SplitLoss.at(loss, c)


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
        return _summed(self._parts, c)

    @property
    def sketch(self) -> Bulk | None:
        """The same of few of hundreds of losses."""
        few = _few(self._parts)
        return Bulk(list(few)) if few else None

    def line(self, c: float) -> ProductLine:
        """Return the product of the tilted characteristic functions."""
        return _product(self._parts, c)


def trim(parts: Parts, log_rest: float, sharpness: float = 1.0) -> Trimmed | None:
    """Leave out rare large losses of at most this probability; None where no part has any."""
    if not any(
        isinstance(loss, SampledGaussian) and loss.direction == "remove" for loss, _ in parts
    ):
        return None
    return Trimmed(parts, log_rest, sharpness)


def split(parts: Parts, c: float) -> tuple[Bulk, Jumps] | None:
    """Split the law of a sum: valleys of the integrands at tilt c, or atoms from densities.

    Returns None where no part has two sides.
    """
    pieces: SplitParts = [(_split(loss, times, c) or loss, times) for loss, times in parts]
    if not any(isinstance(piece, Split) for piece, _ in pieces):
        return None
    return Bulk(pieces), Jumps(pieces)


class Bulk(Measure):
    """The part of the law in which no step jumps: the product of the bulks."""

    def __init__(self, pieces: SplitParts) -> None:
        self.pieces = pieces

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts."""
        return _summed(self.pieces, c)

    @property
    def sketch(self) -> Bulk | None:
        """The same of few of hundreds of pieces."""
        few = _few(self.pieces)
        return Bulk(list(few)) if few else None

    @property
    def lattice(self) -> Lattice | None:
        """The lattice of the bulk's values, if there is one."""
        items = [
            (piece, times)
            for piece, times in self.pieces
            if not isinstance(piece, SplitLoss | ZeroAndRest | Band | TrimmedLoss)
        ]
        if len(items) < len(self.pieces):
            return None
        return common_lattice([(piece.lattice, times) for piece, times in items])

    @property
    def is_nothing(self) -> bool:
        """Whether it is an atom at 0, which contributes to no delta."""
        return all(isinstance(piece, ZeroAndRest) for piece, _ in self.pieces)

    def line(self, c: float) -> ProductLine:
        """Return the product of the tilted bulks."""
        line = _product(self.pieces, c)
        line.log_mass_rounding += bulk_rounding(self.pieces, c)
        return line


def bulk_rounding(pieces: SplitParts, c: float) -> float:
    """Rounding of the bulks' log masses, in units.

    Where jumps outweigh the bulk, its mass is a plain sum near 1, and every step repeats its error.
    """
    total = 0.0
    for piece, times in pieces:
        if isinstance(piece, SplitLoss):
            bulk, jumps = piece.cumulants([c])
            total += 16.0 * times * float(jumps[0, 0] >= bulk[0, 0])
        elif isinstance(piece, Band | Below):
            below = piece.below if isinstance(piece, Band) else piece
            total += times * below.mass_rounding(c)
    return total


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
            if isinstance(piece, Split):
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

    @property
    def sketch(self) -> Jumps | None:
        """The same of few of hundreds of pieces, if one of them jumps."""
        few = _few(self.pieces)
        return Jumps(list(few)) if any(isinstance(piece, Split) for piece, _ in few) else None

    def mass_rounding(self, c: Reals) -> Reals:
        """Rounding of the log masses of what lies below cuts."""
        cuts = [(piece, times) for piece, times in self.pieces if isinstance(piece, Band | Below)]
        return np.array([bulk_rounding(cuts, float(at)) for at in c])  # type: ignore[arg-type]

    def line(self, c: float) -> JumpLine:
        """Return the transform along Re z = c."""
        return JumpLine(self.pieces, c, self.cumulants([c])[0])


def _sensitivity(log_whole: Complexes, rho: Complexes) -> Reals:
    """By how much prod A^T (exp(rho) - 1) moves with one A at a fixed B, relative to both.

    With rho = sum T log1p(B / A) the derivative of its logarithm in log A is T times (exp(-l) -
    exp(-rho)) / (1 - exp(-rho)), l = log1p(B / A).
    """
    whole, rest = np.exp(-log_whole), np.exp(np.minimum(-rho.real, 600.0) - 1j * rho.imag)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exact = np.abs((whole - rest) / (1 - rest))
        # Free of cancellation where both are near 1.
        bound = 1 + np.abs(np.expm1(-log_whole)) / np.abs(np.expm1(-rho))
    small = np.abs(1 - rest) < 0.1
    return np.asarray(np.where(small, np.nan_to_num(bound, nan=2.0, posinf=1e300), exact))


class JumpLine(Line):
    """The transform of :class:`Jumps` along a vertical line."""

    decays = True

    def __init__(self, pieces: SplitParts, c: float, cumulants: Reals) -> None:
        self.log_mass, self.mean, self.variance = (float(value) for value in cumulants)
        self._rounding: Reals = np.zeros(0)
        # Log masses of what stands for a piece where it does not jump, and log odds that it does.
        log_masses, log_odds = [], []
        for piece, times in pieces:
            if isinstance(piece, Split):
                bulk, jumps = piece.cumulants([c])
                log_odds.append((float(jumps[0, 0] - bulk[0, 0]), times))
                log_masses.append(float(bulk[0, 0]))
            else:
                log_masses.append(float(piece.cumulants([c])[0, 0]))
        # Where more than one jump is out of the question, odds need not be in the range of doubles.
        rare = max(value + math.log(times * len(log_odds)) for value, times in log_odds) < _RARE
        self._scale = max(value for value, _ in log_odds) if rare else 0.0
        self._plain: list[tuple[Tilt, int]] = []
        self._split: list[tuple[QuadratureTilt, QuadratureTilt, float, int]] = []
        known = iter(log_odds)
        for piece, times in pieces:
            if isinstance(piece, Split):
                odds = next(known)[0] - self._scale
                if odds > 600.0:
                    raise OutOfReach
                self._split.append((*piece.tilts(c), math.exp(odds), times))
            else:
                self._plain.append((piece.tilt(c), times))
        self.points = sum(tilt.points for tilt, _ in self._plain)
        self.points += sum(bulk.points + jumps.points for bulk, jumps, _, _ in self._split)
        self._rho = sum(times * float(self._log1p(odds)) for _, _, odds, times in self._split)
        means = sum(times * tilt.mean for tilt, times in self._plain)
        means += sum(times * bulk.mean for bulk, _, _, times in self._split)
        self._offset = means - self.mean
        self.mean_rounding = sum(times * tilt.mean_rounding for tilt, times in self._plain)
        for base, extra, odds, times in self._split:
            # Errors of rho, relative to it, count by this factor.
            share = times * odds / self._rho * self._factor
            self.mean_rounding += times * base.mean_rounding + share * extra.mean_rounding
        # The part that stands for a piece where it does not jump, in the order of the pieces.
        split, plain = iter(self._split), iter(self._plain)
        bases: list[tuple[Tilt, int]] = []
        for piece, times in pieces:
            bases.append((next(split)[0] if isinstance(piece, Split) else next(plain)[0], times))
        self.log_mass_rounding = bulk_rounding(pieces, c)
        self.log_mass_rounding += _mass_rounding(bases, log_masses)
        amplification = max(jumps.amplification for _, jumps, _, _ in self._split)
        self.log_mass_rounding += 4 * amplification * self._factor

    def _log1p(self, odds: Any) -> Any:
        """log1p of odds; of scaled ones, odds themselves."""
        if self._scale:
            return odds
        return complex_log1p(odds) if np.iscomplexobj(odds) else np.log1p(odds)

    def _log_expm1(self, rho: Any) -> Any:
        """log(expm1(rho)); of a scaled one, its logarithm."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # rho + log(1 - exp(-rho)) has no overflow; where rho is 0 the transform is 0.
            return np.log(rho) if self._scale else rho + np.log(-np.expm1(-rho))

    @property
    def _factor(self) -> float:
        """By how much an error of rho, relative to it, counts in the value at c."""
        return 1.0 if self._scale else self._rho / -math.expm1(-self._rho)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Log of prod A^T expm1(sum T log1p(B / A)), over its value at c."""
        total = 1j * self._offset * step * np.arange(nodes)
        rho = np.zeros(nodes, dtype=complex)
        self._rounding = np.full(nodes, 8.0)
        few = _Few(step, nodes)
        for tilt, times in self._plain:
            part = tilt.log_ratio(step, nodes)
            total += times * part
            self._rounding += times * _ratio_rounding(tilt, part, few)
        bulks = []
        for bulk, jumps, odds, times in self._split:
            log_bulk = bulk.log_ratio(step, nodes)
            total += times * log_bulk
            # Where the bulk has died out, overflow leaves no number, and the contour no bound.
            with np.errstate(over="ignore", invalid="ignore"):
                ratio = odds * jumps.ratio(step, nodes, bulk.mean) * np.exp(-log_bulk)
                log_whole = self._log1p(ratio)
                rho += times * log_whole
            self._rounding += 4 * times * (np.abs(log_bulk) + np.abs(log_whole))
            error = times * _ratio_rounding(bulk, log_bulk, few)
            bulks.append((error, log_whole))
        for error, log_whole in bulks:
            self._rounding += error * self._sensitivity(log_whole, rho)
        log_excess = self._log_expm1(rho)
        log_excess.real = np.maximum(log_excess.real, _LOG_OF_ZERO)
        return np.asarray(total + log_excess - self._log_expm1(self._rho))

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Bound with every A at its value on the real axis, and B by its absolute sum."""
        rho = np.zeros_like(t)
        for _, jumps, odds, times in self._split:
            rho += times * self._log1p(odds * jumps.absolute(t))
        return np.asarray(self._log_expm1(rho) - self._log_expm1(self._rho))

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """As a product, and the rounding of rho, which is absolute in size."""
        amplification = max(jumps.amplification for _, jumps, _, _ in self._split)
        return self._rounding, 8 * amplification * self._factor

    def _sensitivity(self, log_whole: Complexes, rho: Complexes) -> Reals:
        """As the function, which of scaled odds is a limit."""
        if not self._scale:
            return _sensitivity(log_whole, rho)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = 1 + np.abs(log_whole) / np.abs(rho)
        return np.asarray(np.nan_to_num(bound, nan=2.0, posinf=1e300))
