"""The part of a law in which at least one step jumps, and how a law is split into bulk and jumps.

Where single steps have rare large losses, the law of their sum is a narrow peak beside a broad
remainder, and no single contour serves both. :func:`split` writes the law as the product of the
steps' bulks, in which no step jumps, and :class:`Jumps`, the rest. Each has a contour of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._lazy import special
from dpcal.accountants.inversion.transform import (
    Line,
    Measure,
    Parts,
    Piece,
    Pieces,
    Product,
    SomeNodes,
    bulk_of,
    extra_rounding,
    extra_sizes,
    mass_rounding,
    ratio_rounding,
    rows_of,
    subset_of,
)
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Tilt
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian, ZeroAndRest
from dpcal.accountants.losses.laplace import EndsAndDensity, Laplace
from dpcal.accountants.losses.quadrature import QuadratureTilt, TwoParts, complex_log1p
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.losses.truncation import TwoTruncations, split_at_valley

__all__ = ["JumpLine", "Jumps", "split"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Stands for log 0: its multiples stay finite, and their exponentials are 0.
_LOG_OF_ZERO = -1e6
# Log of odds of a jump, of all steps together, below which a second jump is less than rounding: its
# share, exp(-45), is less than a thousandth of a unit.
_RARE = -45.0
# Log of odds below which log1p(odds) is odds to rounding.
_TINY = -36.0
# Log of odds above which the bulk is below the rounding of the jumps.
_CERTAIN = 600.0
# Atoms of more Laplace mechanisms than this are not set apart: their powers would lose four digits.
_MOST_ENDS = 10_000


def _in_two(loss: PrivacyLoss, times: int, c: float) -> TwoParts | None:
    """Return the loss in two parts: cut in the valley of its integrand at c, or atoms and rest."""
    if isinstance(loss, SampledGaussian):
        return split_at_valley(loss, c)
    if isinstance(loss, FixedBatchGaussian):
        return ZeroAndRest(loss)
    if isinstance(loss, Laplace) and times <= _MOST_ENDS:
        return EndsAndDensity(loss)
    return None


def split(parts: Parts, c: float) -> tuple[Product, Jumps] | None:
    """Split the law of a sum into the part in which no step jumps, and the rest.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    c
        Tilt of the integrand whose valley is the cut of sampled Gaussians.

    Returns
    -------
    (Product, Jumps) or None
        None where no loss has two parts.
    """
    pieces: list[tuple[Piece, int]] = [
        (_in_two(loss, times, c) or loss, times) for loss, times in parts
    ]
    if not any(isinstance(piece, TwoParts) for piece, _ in pieces):
        return None
    return Product(pieces), Jumps(pieces)


def _jumps_of(piece: TwoParts) -> Piece | Callable[[Reals], Reals]:
    """Return the jumps of a piece in two parts, as :func:`rows_of` takes them."""
    return piece.jumps if isinstance(piece, TwoTruncations) else lambda c: piece.cumulants(c)[1]


class Jumps(Measure):
    """The part of the law in which at least one step jumps.

    With A and B the transforms of a step's bulk and jumps, this is prod (A + B)^T - prod A^T, kept
    to full relative precision as prod A^T times expm1(sum T log1p(B / A)).
    """

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self._times = np.array([float(times) for _, times in pieces])
        self._bulks = rows_of([bulk_of(piece) for piece, _ in pieces])
        two = [(i, piece) for i, (piece, _) in enumerate(pieces) if isinstance(piece, TwoParts)]
        self._places = [i for i, _ in two]
        self._jumps = rows_of([_jumps_of(piece) for _, piece in two])

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts, from those of bulks and jumps."""
        return self._cumulants(c)[0]

    def _cumulants(self, c: Reals | Sequence[float]) -> tuple[Reals, Reals]:
        """Return the cumulants, and the sizes of the terms that add up to the log masses."""
        bulks, jumps = self._bulks(c), self._jumps(c)
        base = (self._times[:, None, None] * bulks[:, :, :3]).sum(axis=0)
        sizes = (self._times[:, None] * np.abs(bulks[:, :, 0])).sum(axis=0)
        # Of the pieces that have jumps.
        bulks, times = bulks[self._places], self._times[self._places, None]
        of_odds = (np.abs(jumps[:, :, 0]) + np.abs(bulks[:, :, 0])).max(axis=0)
        gap = jumps - bulks
        log_odds = gap[:, :, 0]
        # Odds B / A may lie below the range of a double: they are kept relative to the largest.
        scale = np.minimum(log_odds.max(axis=0), 0.0)
        # Value, first and second derivative of rho(c) = sum T log1p(B / A), over exp(scale).
        rho = np.zeros((len(c), 3))
        share = np.exp(log_odds - scale - np.logaddexp(0.0, log_odds))
        tiny = log_odds < _TINY
        with np.errstate(over="ignore"):
            value = np.exp(-scale) * np.logaddexp(0.0, np.where(tiny, 0.0, log_odds))
        bent = gap[:, :, 2] + special.expit(-log_odds) * gap[:, :, 1] ** 2
        rho[:, 0] = (times * np.where(tiny, share, value)).sum(axis=0)
        rho[:, 1] = (times * share * gap[:, :, 1]).sum(axis=0)
        rho[:, 2] = (times * share * bent).sum(axis=0)
        whole = rho[:, 0] * np.exp(scale)
        first = rho[:, 1] / rho[:, 0]
        # This is (1 - exp(-rho)) / rho, or its limit 1 for small rho.
        kept = np.where(whole > 1e-12, -np.expm1(-whole) / np.maximum(whole, 1e-300), 1.0)
        base[:, 0] += scale + np.log(rho[:, 0]) + whole + np.log(kept)
        base[:, 1] += first / kept
        base[:, 2] += rho[:, 2] / rho[:, 0] / kept - (first / kept) ** 2 * np.exp(-whole)
        # A relative error of the odds, which is one of rho, is multiplied by rho / (1 - exp(-rho)).
        return base, sizes + np.abs(scale) + np.maximum(of_odds, 4.0) / kept

    @property
    def subset(self) -> Jumps | None:
        """The part of a subset of many pieces, if one of them jumps."""
        some = subset_of(self.pieces)
        return Jumps(some) if any(isinstance(piece, TwoParts) for piece, _ in some) else None

    def log_masses(self, c: Reals) -> tuple[Reals, Reals]:
        """Return log masses, and the sizes of the terms of bulks and jumps, of both signs."""
        cumulants, sizes = self._cumulants(c)
        return cumulants[:, 0], sizes + extra_sizes(self.pieces, c)

    def line(self, c: float) -> JumpLine:
        """Return the transform along Re z = c."""
        return JumpLine(self.pieces, c, self.cumulants([c])[0])


def _sensitivity(log_whole: Complexes, rho: Complexes) -> Reals:
    """Return the relative change of prod A^T (exp(rho) - 1) with one A at a fixed B.

    With rho = sum T log1p(B / A) the derivative of its logarithm in log A is T times (exp(-l) -
    exp(-rho)) / (1 - exp(-rho)), l = log1p(B / A).
    """
    whole, rest = np.exp(-log_whole), np.exp(np.minimum(-rho.real, 600.0) - 1j * rho.imag)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exact = np.abs((whole - rest) / (1 - rest))
        # This bound has no cancellation where both terms are near 1.
        bound = 1 + np.abs(np.expm1(-log_whole)) / np.abs(np.expm1(-rho))
    small = np.abs(1 - rest) < 0.1
    return np.asarray(np.where(small, np.nan_to_num(bound, nan=2.0, posinf=1e300), exact))


class JumpLine(Line):
    """The transform of :class:`Jumps` along a vertical line."""

    decays = True

    def __init__(self, pieces: Pieces, c: float, cumulants: Reals) -> None:
        self.log_mass, self.mean, self.variance = (float(value) for value in cumulants)
        self._rounding: Reals = np.zeros(0)
        rows = [piece.cumulants([c]) for piece, _ in pieces]
        bulks = [row[0] if isinstance(row, tuple) else row for row in rows]
        log_odds = [
            (float(row[1][0, 0] - row[0][0, 0]), times)
            for row, (_, times) in zip(rows, pieces, strict=True)
            if isinstance(row, tuple)
        ]
        # If a second jump is below rounding, the odds are scaled and may lie below the range of a
        # double.
        rare = max(value + math.log(times * len(log_odds)) for value, times in log_odds) < _RARE
        self._scale = max(value for value, _ in log_odds) if rare else 0.0
        if max(value for value, _ in log_odds) - self._scale > _CERTAIN:
            raise OutOfReach
        odds = iter(log_odds)
        self._plain: list[tuple[Tilt, int]] = []
        self._split: list[tuple[QuadratureTilt, QuadratureTilt, float, int]] = []
        # Tilts of the pieces without their jumps, in the order of the pieces.
        bases: list[tuple[Tilt, int]] = []
        for piece, times in pieces:
            if isinstance(piece, TwoParts):
                bulk, jumps = piece.tilts(c)
                share = math.exp(next(odds)[0] - self._scale)
                self._split.append((bulk, jumps, share, times))
                bases.append((bulk, times))
            else:
                self._plain.append((piece.tilt(c), times))
                bases.append(self._plain[-1])
        self._rho = sum(times * float(self._log1p(share)) for _, _, share, times in self._split)
        self.points = sum(tilt.points for tilt, _ in bases)
        self.points += sum(jumps.points for _, jumps, _, _ in self._split)
        self._offset = sum(times * tilt.mean for tilt, times in bases) - self.mean
        self.mean_rounding = sum(times * tilt.mean_rounding for tilt, times in bases)
        for _, jumps, share, times in self._split:
            # The factor turns a relative error of rho into one of the value.
            self.mean_rounding += times * share / self._rho * self._factor * jumps.mean_rounding
        self.log_mass_rounding = extra_rounding(pieces, c)
        self.log_mass_rounding += mass_rounding(bases, [float(row[0, 0]) for row in bulks])
        amplification = max(jumps.amplification for _, jumps, _, _ in self._split)
        self.log_mass_rounding += 4 * amplification * self._factor

    def _log1p(self, odds: Any) -> Any:
        """Return log1p of odds; scaled odds are returned as they are."""
        if self._scale:
            return odds
        return complex_log1p(odds) if np.iscomplexobj(odds) else np.log1p(odds)

    def _log_expm1(self, rho: Any) -> Any:
        """Return log(expm1(rho)), or log(rho) if rho is scaled."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # rho + log(1 - exp(-rho)) has no overflow; where rho is 0 the transform is 0.
            return np.log(rho) if self._scale else rho + np.log(-np.expm1(-rho))

    @property
    def _factor(self) -> float:
        """Relative error of the value at c over that of rho."""
        return 1.0 if self._scale else self._rho / -math.expm1(-self._rho)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return the log of prod A^T expm1(sum T log1p(B / A)), over its value at c."""
        total = 1j * self._offset * step * np.arange(nodes)
        rho = np.zeros(nodes, dtype=complex)
        self._rounding = np.full(nodes, 8.0)
        some = SomeNodes(step, nodes)
        for tilt, times in self._plain:
            part = tilt.log_ratio(step, nodes)
            total += times * part
            self._rounding += times * ratio_rounding(tilt, part, some)
        bulks = []
        for bulk, jumps, odds, times in self._split:
            log_bulk = bulk.log_ratio(step, nodes)
            total += times * log_bulk
            # Where the bulk is tiny its inverse overflows, and the contour gives no bound.
            with np.errstate(over="ignore", invalid="ignore"):
                ratio = odds * jumps.ratio(step, nodes, bulk.mean) * np.exp(-log_bulk)
                log_whole = self._log1p(ratio)
                rho += times * log_whole
            self._rounding += 4 * times * (np.abs(log_bulk) + np.abs(log_whole))
            error = times * ratio_rounding(bulk, log_bulk, some)
            bulks.append((error, log_whole))
        for error, log_whole in bulks:
            self._rounding += error * self._sensitivity(log_whole, rho)
        log_excess = self._log_expm1(rho)
        log_excess.real = np.maximum(log_excess.real, _LOG_OF_ZERO)
        return np.asarray(total + log_excess - self._log_expm1(self._rho))

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return a bound with each A at its value on the real axis and each B summed absolutely."""
        rho = np.zeros_like(t)
        for _, jumps, odds, times in self._split:
            rho += times * self._log1p(odds * jumps.absolute(t))
        return np.asarray(self._log_expm1(rho) - self._log_expm1(self._rho))

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Return the relative rounding of the product, and the absolute rounding of rho."""
        amplification = max(jumps.amplification for _, jumps, _, _ in self._split)
        return self._rounding, 8 * amplification * self._factor

    def _sensitivity(self, log_whole: Complexes, rho: Complexes) -> Reals:
        """Return the sensitivity; for scaled odds its limit."""
        if not self._scale:
            return _sensitivity(log_whole, rho)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = 1 + np.abs(log_whole) / np.abs(rho)
        return np.asarray(np.nan_to_num(bound, nan=2.0, posinf=1e300))
