"""The part of a law in which at least one step jumps.

Where single steps have rare large losses, the law of their sum is a narrow peak beside a broad
remainder, and no single contour serves both. The law is the product of the steps' bulks, in which
no step jumps, and :class:`Jumps`, the rest. Each has a contour of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._lazy import special
from dpcal.accountants.inversion.layers.measures import (
    Line,
    Measure,
    Piece,
    Product,
    ProductLine,
    extra_sizes,
    rows_of,
)
from dpcal.accountants.inversion.layers.quadrature import QuadratureTilt, TwoParts
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.quadrature import complex_log1p

__all__ = ["JumpLine", "Jumps"]

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


class Jumps(Measure):
    """The part of the law in which at least one step jumps.

    With A and B the transforms of a step's bulk and jumps, this is prod (A + B)^T - prod A^T, kept
    to full relative precision as prod A^T times expm1(sum T log1p(B / A)).

    Parameters
    ----------
    pieces
        Losses in two parts, at least one, and others, with the number of times that each adds up.

    Attributes
    ----------
    bulk
        The part of the law in which no step jumps.
    """

    def __init__(self, pieces: Sequence[tuple[Piece | TwoParts, int]]) -> None:
        self.bulk = Product(
            [(piece.bulk if isinstance(piece, TwoParts) else piece, n) for piece, n in pieces]
        )
        two = [(i, piece) for i, (piece, _) in enumerate(pieces) if isinstance(piece, TwoParts)]
        self._places = [i for i, _ in two]
        self._jumps = [piece.jumps for _, piece in two]
        self._rows = rows_of(self._jumps)

    @classmethod
    def of(cls, pieces: Sequence[tuple[Piece | TwoParts, int]]) -> Jumps | None:
        """Return the jumps of some pieces; None if none of them has two parts."""
        return cls(pieces) if any(isinstance(piece, TwoParts) for piece, _ in pieces) else None

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts, from those of bulks and jumps."""
        return self._cumulants(c)[0]

    def _cumulants(self, c: Reals | Sequence[float]) -> tuple[Reals, Reals]:
        """Return the cumulants, and the sizes of the terms that add up to the log masses."""
        bulks, jumps, times = self.bulk.rows(c), self._rows(c), self.bulk.times
        base = (times[:, :, None] * bulks[:, :, :3]).sum(axis=0)
        sizes = (times * np.abs(bulks[:, :, 0])).sum(axis=0)
        # Of the pieces that have jumps.
        bulks, times = bulks[self._places], times[self._places]
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

    def log_masses(self, c: Reals) -> tuple[Reals, Reals]:
        """Return log masses, and the sizes of the terms of bulks and jumps, of both signs."""
        cumulants, sizes = self._cumulants(c)
        return cumulants[:, 0], sizes + extra_sizes(self.bulk.pieces, c)

    def line(self, c: float) -> JumpLine:
        """Return the transform along Re z = c."""
        bulk, rows = self.bulk.line(c), self._rows([c])[:, 0]
        jumps = {
            place: (part.tilt(c), float(row[0]) - bulk.log_masses[place])
            for place, part, row in zip(self._places, self._jumps, rows, strict=True)
        }
        return JumpLine(bulk, jumps, self.cumulants([c])[0])


class JumpLine(Line):
    """The transform of :class:`Jumps` along a vertical line.

    Parameters
    ----------
    bulk
        The transform of the bulk.
    jumps
        Tilted jumps, and the log of their odds at c, by the place of the bulk's factor.
    cumulants
        Log mass, mean and variance of the jumps' measure at c.
    """

    def __init__(
        self,
        bulk: ProductLine,
        jumps: dict[int, tuple[QuadratureTilt, float]],
        cumulants: Reals,
    ) -> None:
        self.log_mass, self.mean, self.variance = (float(value) for value in cumulants)
        self._rounding: Reals = np.zeros(0)
        self._bulk = bulk
        known = [(*found, bulk.tilts[place][1]) for place, found in jumps.items()]
        most = max(log_odds for _, log_odds, _ in known)
        # If a second jump is below rounding, the odds are scaled and may lie below the range of a
        # double.
        rare = max(value + math.log(n * len(known)) for _, value, n in known) < _RARE
        self._scale = most if rare else 0.0
        if most - self._scale > _CERTAIN:
            raise OutOfReach
        # Tilted jumps, odds and power of each factor that has jumps.
        self._known = [(tilt, math.exp(value - self._scale), n) for tilt, value, n in known]
        self._jumps = dict(zip(jumps, self._known, strict=True))
        self._rho = sum(n * float(self._log1p(odds)) for _, odds, n in self._known)
        self.points = bulk.points + sum(tilt.points for tilt, _, _ in self._known)
        # The factor turns a relative error of rho into one of the value.
        self.mean_rounding = bulk.mean_rounding + self._factor / self._rho * sum(
            n * odds * tilt.mean_rounding for tilt, odds, n in self._known
        )
        self._amplification = max(tilt.amplification for tilt, _, _ in self._known) * self._factor
        self.log_mass_rounding = bulk.log_mass_rounding + 4 * self._amplification

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
        # The bulk's logarithms are centered on its own mean.
        total = 1j * (self._bulk.offset + self._bulk.mean - self.mean) * step * np.arange(nodes)
        rho = np.zeros(nodes, dtype=complex)
        self._rounding = np.full(nodes, 8.0)
        split = []
        for place, factor in enumerate(self._bulk.factors(step, nodes)):
            bulk, times, log_bulk, error = factor
            total += times * log_bulk
            if place not in self._jumps:
                self._rounding += error
                continue
            jumps, odds, _ = self._jumps[place]
            # Where the bulk is tiny its inverse overflows, and the contour gives no bound.
            with np.errstate(over="ignore", invalid="ignore"):
                ratio = odds * jumps.ratio(step, nodes, bulk.mean) * np.exp(-log_bulk)
                log_whole = self._log1p(ratio)
                rho += times * log_whole
            self._rounding += 4 * times * (np.abs(log_bulk) + np.abs(log_whole))
            split.append((error, log_whole))
        for error, log_whole in split:
            self._rounding += error * self._sensitivity(log_whole, rho)
        log_excess = self._log_expm1(rho)
        log_excess.real = np.maximum(log_excess.real, _LOG_OF_ZERO)
        return np.asarray(total + log_excess - self._log_expm1(self._rho))

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return a bound with each A at its value on the real axis and each B summed absolutely."""
        rho = np.zeros_like(t)
        for jumps, odds, times in self._known:
            rho += times * self._log1p(odds * jumps.absolute(t))
        return np.asarray(self._log_expm1(rho) - self._log_expm1(self._rho))

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Return the relative rounding of the product, and the absolute rounding of rho."""
        return self._rounding, 8 * self._amplification

    def _sensitivity(self, log_whole: Complexes, rho: Complexes) -> Reals:
        """Return the relative change of prod A^T (exp(rho) - 1) with one A at a fixed B.

        With rho = sum T log1p(B / A) the derivative of its logarithm in log A is T times (exp(-l) -
        exp(-rho)) / (1 - exp(-rho)), l = log1p(B / A). Scaled odds have its limit.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # These bounds have no cancellation where both terms are near 1.
            if self._scale:
                return np.nan_to_num(1 + np.abs(log_whole) / np.abs(rho), nan=2.0, posinf=1e300)
            bound = 1 + np.abs(np.expm1(-log_whole)) / np.abs(np.expm1(-rho))
            whole, rest = np.exp(-log_whole), np.exp(np.minimum(-rho.real, 600.0) - 1j * rho.imag)
            exact = np.abs((whole - rest) / (1 - rest))
        small = np.abs(1 - rest) < 0.1
        return np.where(small, np.nan_to_num(bound, nan=2.0, posinf=1e300), exact)
