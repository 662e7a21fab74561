r"""Steps whose rare large losses alone exceed epsilon: a law below a cut, and a closed form beyond.

If a record is rarely sampled, the loss of a step when the record is removed has the tail of a
log-normal law. No tilt serves such a law: losses far beyond epsilon weigh more than those next to
it. So each step's law is a sum of two positive measures, A = B + J: of a point x of the noise the
share Phi((k - x) / w) belongs to B, the rest to J. Steps are independent, so that

    delta(A^T) = delta(B^T) + delta(D),   D = A^T - B^T >= 0,

where some step lies beyond its cut. One contour serves B^T, whose losses end. Beyond a cut at
losses above epsilon the gain 1 - exp(epsilon - l) is almost never negative, and

    delta(D) = P(D) - exp(epsilon) Q(D) + put,   0 <= put <= D(a) exp(C(-1 - a) - a epsilon)

for every tilt a < -1, with D(a) the integral of exp(a l) and C of
:func:`~dpcal.accountants.inversion.saddle.log_chernoff`: the put is the integral of
(exp(epsilon - l) - 1)_+, and exp(C(m - 1)) the supremum of (exp(y) - 1) exp(-m y) over y > 0.
P(J) and Q(J) are normal probabilities, as a smooth cut of a normal law is a sharp one of a wider
law; and D(a) <= prod A(a)^T sum T J(a) / A(a).

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> below, beyond = split(((SampledGaussian(1e-6, 1.0, "remove"), 100),), 1.0, -30.0)
>>> print(f"{beyond.p:.6e} {beyond.q:.6e}")
2.458880e-25 2.383707e-25
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpcal._ext.question import Law, mixture_log_weights
from dpcal._lazy import special
from dpcal.accountants.directions import MOST_TIMES
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.inversion.transform import Parts, Total, has_rare_losses
from dpcal.accountants.losses.base import OutOfReach, Points, Reals, Served
from dpcal.accountants.losses.lattice import (
    LARGEST_ANGLE,
    LOG_TOLERANCE,
    RANGE,
    spaced,
    step_within,
)
from dpcal.accountants.losses.quadrature import argument_sizes
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian, log_expm1_over

__all__ = ["Beyond", "Cut", "split"]

# Upper limits on the width of a cut: in standard deviations of the noise; in sigma^2, over which
# the exponent of w changes by 1, times the loss there if it is above 1; and in the distance over
# which the normal density falls. A tilt for a delta of exp(-s) is about s over the loss, and
# multiplies what is left beyond a cut of relative width b by exp((s b)^2 / 2): b is at most
# _TILTED / (5 + s).
_SIGMAS, _LOSSES, _DENSITIES, _TILTED = 0.4, 0.15, 0.7, 1.3
# Distance from a cut, in its widths, from which all of a point lies below it: what is missing is
# below 1e-26 on the real line, and a factor of exp(9 / 2) larger on lines up to three widths away.
_WHOLE = 10.75
# Distances of the shifted line and of the strip of the rule from the real one, in widths.
# The transform far out on a contour falls with it; a share grows up to the line by exp(shift^2 /
# 2), 90-fold, which costs the same factor in rounding. The error of the rule falls until 4.85.
_SHIFT, _FURTHER = 3.0, 4.85
# Distances beyond its cut at which a law may end, in widths. Of each point beyond 9 widths a share
# below 1e-19 is left.
_ENDS = np.linspace(9.0, 80.0, 143)
# Most points of a law below a cut.
_POINTS = 40_000
# Edges of the cells in which J(a) is bounded, in widths from the cut: below, its share is 1e-350.
_EDGES = np.concatenate([[-math.inf], np.linspace(-40.0, 9.0, 197), [math.inf]])
# Tilts a < -1 of the bounds on the put are -1 less these over epsilon.
_TILTS = 4.0 * 3.0 ** np.arange(6)
# Distances of a cut from epsilon that are tried, over epsilon, times 5 + s for a delta of exp(-s):
# further cuts leave more of the law beyond epsilon, which a tilt multiplies.
_GAPS = 6.0 * 1.3 ** np.arange(14)
# Log of a put that is negligible beside delta.
_NEGLIGIBLE = -18.0
# Largest epsilon, and size of log delta, at which probabilities are doubles with all digits.
_MOST = 600.0


@dataclass(frozen=True)
class Cut:
    """The part of a sampled Gaussian's law (remove) below a smooth cut.

    Parameters
    ----------
    loss
        The loss, in the direction of removing.
    position
        Place k of the cut on the axis of the noise.
    share
        Width of the cut, in relative size of the loss.
    """

    loss: SampledGaussian
    position: float
    share: float

    upper = math.inf
    surplus = 0.0

    @cached_property
    def level(self) -> float:
        """The loss at the cut."""
        return float(self._losses(np.array([self.position]))[0])

    @cached_property
    def width(self) -> float:
        """Width of the cut on the axis of the noise."""
        sigma = self.loss.noise_multiplier
        width = min(_SIGMAS * sigma, self.share * sigma**2 * max(1.0, self.level))
        if self.level < 1.0:
            # For larger losses the loss grows linearly, and the density does not matter.
            width = min(width, _DENSITIES * sigma**2 / max(self.position, sigma))
        return width

    @property
    def log_unaffected(self) -> float:
        """log(1 - q): the record is not sampled."""
        return self.loss.log_unaffected

    @property
    def steep(self) -> float:
        """Tilt, about, up to which the losses next to the cut do not count."""
        odds = 0.5 * (self.position / self.loss.noise_multiplier) ** 2
        return max(self.loss.steep, odds / self.level)

    @cached_property
    def gone(self) -> tuple[float, float, float]:
        """Masses of P and Q beyond the cut, and their relative error in units."""
        q, wide = self.loss.sampling_probability, math.hypot(self.loss.noise_multiplier, self.width)
        base, moved = (math.exp(special.log_ndtr((at - self.position) / wide)) for at in (0.0, 1.0))
        return (1 - q) * base + q * moved, base, 32.0 + 8.0 * (self.position / wide) ** 2

    def _log_share(self, x: Reals, shift: float = 0.0) -> Any:
        """Return the log of the share of each point x + i shift; real for no shift."""
        z = (self.position - x) / self.width
        some = np.flatnonzero(z < _WHOLE)
        share = np.zeros(len(z), dtype=complex if shift else float)
        share[some] = special.log_ndtr(z[some] - 1j * (shift / self.width) if shift else z[some])
        return share

    def _losses(self, x: Reals, angle: float = 0.0) -> Any:
        """Return the losses at points x + i angle sigma^2; real ones on the axis of the noise."""
        q, sigma = self.loss.sampling_probability, self.loss.noise_multiplier
        return mixture_log_weights(x, q, sigma, angle)

    def _rule(self, highest: float) -> tuple[Reals, float, float]:
        """Return points up to where the law, tilted by up to ``highest``, is negligible.

        With them are their step, and the angle of the furthest line of them. The law ends there:
        what the share leaves of the points beyond, less than 1e-19 of each, counts to the rest, of
        whose masses it is less than rounding. A sharp end changes the sums on a line by no more
        than a term at the end, at all times.
        """
        sigma = self.loss.noise_multiplier
        ends = self.position + self.width * np.append(0.0, _ENDS)
        sizes = (1 + highest) * self._losses(ends) - 0.5 * (ends / sigma) ** 2
        sizes += self._log_share(ends)
        small = np.flatnonzero(sizes < sizes[0] + LOG_TOLERANCE - 8.0)
        if not len(small):
            raise OutOfReach
        angle = min(LARGEST_ANGLE, LARGEST_ANGLE / sigma, _FURTHER * self.width / sigma**2)
        shift = angle * sigma**2
        step = step_within(shift, 2 * (shift / sigma) ** 2 + 2 * (shift / self.width) ** 2)
        # All multiples of a step of few bits are doubles.
        digits, power = math.frexp(step)
        step = math.ldexp(math.floor(math.ldexp(digits, 35)), power - 35)
        return spaced(-RANGE * sigma, float(ends[small[0]]), step, most=_POINTS), step, angle

    def served(self, highest: float) -> Served | None:
        """Return the points for tilts up to a highest one as rows; None if there are none."""
        sigma = self.loss.noise_multiplier
        try:
            x, step, furthest = self._rule(highest)
        except OutOfReach:
            return None
        q = self.loss.sampling_probability
        log_q, u = abs(math.log(q)), (x - 0.5) / sigma**2
        log_step = math.log(step / (sigma * math.sqrt(2 * math.pi)))

        def points(angle: float) -> Points:
            shift = angle * sigma**2
            share, ell = self._log_share(x, shift), self._losses(x, angle)
            logs = log_step - 0.5 * (x / sigma) ** 2 + ell + share
            logs = logs + 0.5 * (angle * sigma) ** 2 - 1j * angle * x if angle else logs
            # Those of law.h; SciPy's shares are off by up to 24 units where they are next to 1,
            # elsewhere by 2 of the logarithms' sizes.
            loss, sizes = np.abs(ell), np.abs(share)
            moved = np.where(loss < 0.26, 9.0 * loss, 6.5 + 1.5 * (loss + log_q))
            moved += 2.5 * argument_sizes(q, u, ell)
            terms = 2.0 * ((x / sigma) ** 2 + (angle * sigma) ** 2 + angle * np.abs(x))
            terms += 8.0 + np.abs(logs) + 4.0 * sizes + np.where(sizes > 1e-10, 24.0, 0.0)
            return Points(ell, logs, moved, moved + terms)

        line = points(min(furthest, _SHIFT * self.width / sigma**2)).line_rows()
        nothing = [(0.0, -math.inf)] * 2
        real = points(0.0).real_rows(0.0)
        return Served(real, line, nothing, 0.0, math.inf, (0.0, 0.0), highest, self.gone)

    def log_beyond(self, tilts: Reals) -> Reals:
        """Return upper bounds on the log of J(a), the tilted mass beyond the cut, at a < -1.

        J(a) is the integral of phi w^(1 + a) times the share beyond the cut. In each cell of the
        axis the power is largest at the lower edge, and the share at the upper one.
        """
        sigma, edges = self.loss.noise_multiplier, self.position + self.width * _EDGES
        low = np.array([self.log_unaffected, *self._losses(edges[1:-1])])
        masses = special.log_ndtr(np.minimum(edges[1:], -edges[:-1]) / sigma)
        terms = np.outer(1 + tilts, low) + (masses + special.log_ndtr(_EDGES[1:]))
        return np.asarray(np.logaddexp.reduce(terms, axis=1)) + 1e-9


@dataclass(frozen=True)
class Beyond:
    """What of delta lies beyond the cuts: p - exp(epsilon) q, and a put.

    Attributes
    ----------
    p, q, units
        P(D) and Q(D), and their relative error in units.
    tilts, bounds
        The put is at most exp(bound - tilt epsilon) for each tilt.
    """

    p: float
    q: float
    units: float
    tilts: Reals
    bounds: Reals

    def log_delta(self, epsilon: float) -> float:
        """Return the log of p - exp(epsilon) q, or minus infinity."""
        gap = self.p - math.exp(epsilon) * self.q
        return math.log(gap) if gap > 0 else -math.inf

    def log_width(self, epsilon: float) -> float:
        """Return the log of a bound on what else lies beyond the cuts: the put, or all of it."""
        return min(float((self.bounds - self.tilts * epsilon).min()), math.log(max(self.p, 1e-300)))


def split(parts: Parts, epsilon: float, log_size: float) -> tuple[list[tuple[Law, int]], Beyond]:
    """Return laws below a cut near epsilon, with their counts, and what lies beyond it.

    Parameters
    ----------
    parts
        Losses and how often each adds up; some are sampled Gaussians when removing.
    epsilon
        A number >= 0.
    log_size
        A guess of log delta there.

    Raises
    ------
    OutOfReach
        If a loss has no other direction, a count is no double, delta is too small, or no cut leaves
        a small put.
    """
    reversible = all(loss.opposite is not None and loss.surplus == 0.0 for loss, _ in parts)
    counted = all(times <= MOST_TIMES for _, times in parts)
    if not (reversible and counted) or max(-log_size, epsilon) > _MOST:
        raise OutOfReach
    scale = max(epsilon, math.sqrt(Total(parts).variance))
    tilts, logs = _log_masses(parts, scale)
    log_rest = log_size + _NEGLIGIBLE - math.log(2 * sum(times for _, times in parts))
    share = min(_LOSSES, _TILTED / (5.0 - log_size))
    for level in scale * (1.0 + _GAPS / (5.0 - log_size)):
        pieces = [
            (_cut(loss, level, share, log_rest) if has_rare_losses(loss) else loss, n)
            for loss, n in parts
        ]
        beyond = _beyond(pieces, tilts, logs)
        if beyond.log_width(epsilon) < max(beyond.log_delta(epsilon), log_size) + _NEGLIGIBLE:
            break
    else:
        raise OutOfReach
    first = 2.0 ** math.ceil(math.log2((5.0 - log_size) / (2.0 * scale)))
    laws = []
    for piece, n in pieces:
        law = Law.points(piece, first) if isinstance(piece, Cut) else piece.compiled
        if law is None:
            raise OutOfReach
        laws.append((law, n))
    return laws, beyond


def _log_masses(parts: Parts, scale: float) -> tuple[Reals, list[Reals]]:
    """Return tilts a < -1 in reach, and log A(a) of each loss there."""
    for last in range(len(_TILTS) - 1, -1, -1):
        c = np.minimum(_TILTS, _TILTS[last]) / scale
        with contextlib.suppress(OutOfReach):
            # The integral of exp(a l) dP is that of exp(c l') dQ, l' = -l and c = -1 - a.
            losses = [loss.opposite for loss, _ in parts]
            return -1.0 - c, [loss.cumulants(c)[:, 0] for loss in losses if loss is not None]
    raise OutOfReach


def _cut(loss: SampledGaussian, level: float, share: float, log_rest: float) -> Cut:
    """Return the cut at a loss, or where what lies beyond is as improbable as given."""
    q, sigma = loss.sampling_probability, loss.noise_multiplier
    wide = math.hypot(1.0, _SIGMAS) * sigma
    outside = -wide * float(special.ndtri_exp(min(log_rest, -1.0)))
    sampled = 1.0 - wide * float(special.ndtri_exp(min(log_rest - math.log(q), -1e-3)))
    position = sigma**2 * log_expm1_over(level, q) + 0.5
    return Cut(loss, min(position, max(outside, sampled)), share)


def _beyond(pieces: Sequence[tuple[Any, int]], tilts: Reals, logs: Sequence[Reals]) -> Beyond:
    """Return what lies beyond the cuts, from log A(a) of each loss at the tilts."""
    kept, units, odds = np.zeros(2), 0.0, np.full(len(tilts), -math.inf)
    for (piece, times), log_mass in zip(pieces, logs, strict=True):
        if isinstance(piece, Cut):
            *gone, error = piece.gone
            kept += times * np.log1p(-np.array(gone))
            units = max(units, error)
            odds = np.logaddexp(odds, math.log(times) + piece.log_beyond(tilts) - log_mass)
    p, q = -np.expm1(kept)
    whole = sum(times * log_mass for (_, times), log_mass in zip(pieces, logs, strict=True))
    constants = log_chernoff(-1.0 - tilts)
    # Nothing lies beyond a loss that is not cut: its odds are 0.
    known = np.where(np.isneginf(odds), 0.0, odds)
    sizes = 1.0 + np.abs(whole) + np.abs(known) + np.abs(constants)
    bounds = whole + odds + constants + 1e-9 * sizes
    return Beyond(float(p), float(q), units + 16.0 + 4.0 * len(pieces), tilts, bounds)
