r"""Parts of a sampled Gaussian's law: below a smooth cut, beyond it, and between two cuts.

If a record is rarely sampled, the loss of a step when the record is removed has the tail of a
log-normal law. No single tilt serves such a law: a tilted law holds either the peak at zero or the
largest losses. Each part of the law between two cuts is as easy as any other law.

A :class:`Cut` at position k of width w leaves the share Phi((k - x) / w) of a point x of the noise
below it, and the rest beyond it. Shares are analytic in x, so that the trapezoid rule serves a part
as it serves the law: :func:`below` and :func:`between` take a law apart at any losses.

>>> from dpcal.accountants.inversion.layers.cuts import loss_cut
>>> loss = SampledGaussian(1e-6, 1.0, "remove")
>>> low, high = (below(loss, loss_cut(loss, level)) for level in (1e-4, 1e-3))
>>> parts = between(low, high)
>>> masses = [part.cumulants([0.0])[0, 0] for part in (parts.bulk, parts.jumps)]
>>> print(f"{masses[0]:.4f} {masses[1]:.4f}")
-0.0000 -15.5825
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext.contour import moments_of, prepared_moments
from dpcal._lazy import special
from dpcal.accountants.inversion.layers.cuts import Cut, log_weights, loss_at, width_of_wide
from dpcal.accountants.inversion.layers.quadrature import Part, QuadratureTilt, TwoParts
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.lattice import LOG_TOLERANCE, RANGE, restricted_moments
from dpcal.accountants.losses.sampled_gaussian import Limits, SampledGaussian, TrapezoidRule

__all__ = [
    "SURPLUS",
    "Truncation",
    "below",
    "between",
    "cumulants_of",
    "cut_off",
]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Widths below its lower cut at which a part begins: there the share is 8e-45.
_DEEPEST = 14.0
# Log of the share that is negligible at the end of a part, relative to the largest value of its
# tilted measure.
_NOTHING = LOG_TOLERANCE - 8.0
# The shares of a point in all parts may add up to 1 plus this, relative to 1; likewise the mass
# taken from a point beyond the end of a part, relative to the mass that stays.
SURPLUS = 1e-18
# Largest correction of a mass for the part that is cut off: a larger one costs more digits than it
# keeps.
_MOST_CORRECTED = 0.2
# Size of log M from which its difference from 0 has no more digits than log M has.
_FAR = 0.3
# Logarithm of a mass above which the digits of the mass less 1 are not needed.
_HUGE = 100.0
# Largest difference between the masses on the real and on the shifted line of a part: with more,
# the rule misses some of the part.
_DISAGREEMENT = 1e-9
# Distance of the shifted line from the real one, in widths of the narrower cut. The part's
# transform far out on a contour falls with it; a share grows up to the line by exp(shift^2 / 2),
# 90-fold, which costs the same factor in rounding.
_SHIFT = 3.0
# Most points of a rule.
_POINTS = 40_000
# Factors beyond the given powers up to which a rule serves, tried in turn, so that a search for a
# saddle builds few rules: a cut ends parts of most powers at about the same place.
_HEADROOM = (64.0, 8.0, 1.25, 1.0)
# Shares of the way from the start of a part to its upper cut, at which its size is asked.
_BELOW_THE_CUT = np.linspace(0.0, 1.0, 64)
# Distances beyond its upper cut at which the part may end, in widths of the cut. Of each point
# beyond 9 widths a share below 1e-19 is left.
_TAIL = np.linspace(9.0, 40.0, 125)


class Truncation(Part):
    """The part of a sampled Gaussian's law (remove) between two smooth cuts, or on one side of one.

    Parameters
    ----------
    loss
        The loss, in the direction of removing.
    lower, upper
        The part lies beyond ``lower``, where there is such a cut, and below ``upper``.

    Attributes
    ----------
    log_rest
        Log of a bound on the probability beyond the upper cut.
    """

    def __init__(self, loss: SampledGaussian, lower: Cut | None, upper: Cut) -> None:
        self.loss, self.lower, self.upper = loss, lower, upper
        self._rule: TrapezoidRule | None = None
        # Moments at the last tilts: a contour uses its own tilt several times, and the rounding of
        # masses asks at the same tilts.
        self._last: dict[float, Reals] = {}
        q = loss.sampling_probability
        # The mass of a normal law beyond a smooth cut is that of a wider normal law beyond a sharp
        # cut.
        wide = math.hypot(loss.noise_multiplier, upper.width)
        out = special.log_ndtr(-upper.position / wide)
        far = special.log_ndtr((1.0 - upper.position) / wide)
        rest = float(np.logaddexp(math.log1p(-q) + out, math.log(q) + far))
        # Masses of Q and of P beyond the upper cut.
        self._rests, self.log_rest = (math.exp(out), math.exp(rest)), rest * (1 - 1e-12)

    @property
    def steep(self) -> float:
        """Tilt, about, up to which the losses next to the upper cut do not count."""
        level = max(loss_at(self.loss, self.upper.position), 1e-300)
        odds = 0.5 * (self.upper.position / self.loss.noise_multiplier) ** 2
        return max(self.loss.steep, odds / level)

    # -- points

    def _points(self, lowest: float, highest: float) -> TrapezoidRule:
        """Return the rule that serves all powers between these; the last one is kept."""
        rule = self._rule
        if rule is None or not rule.serves(lowest, highest):
            rule = self._rule = self._new_rule(lowest, highest)
            self._prepared = prepared_moments(
                rule.ell, rule.log_base + self._log_share(rule.x, 0.0)
            )
        return rule

    def forget(self) -> None:
        """Keep no points; they are computed again where they are asked for."""
        self._rule, self._last, self._prepared = None, {}, np.empty((5, 0))

    def _new_rule(self, lowest: float, highest: float) -> TrapezoidRule:
        q, sigma = self.loss.sampling_probability, self.loss.noise_multiplier
        cuts = [cut for cut in (self.lower, self.upper) if cut is not None]
        # A product of shares is not steeper than the share of this width. The rule's own bound has
        # room for the growth of a share over one width.
        width = 1 / math.hypot(*(1 / cut.width for cut in cuts))
        angle = min(Limits().angle, _SHIFT * min(cut.width for cut in cuts) / sigma**2)
        floor, start = -math.inf, -RANGE * sigma
        if self.lower is not None:
            # The lower cut leaves exp(-s^2 / 2) at s widths below it, where the density is up to
            # exp(s width position / sigma^2) times what it is at the cut.
            start, narrow = self.lower.position, self.lower.width
            floor = start - narrow * (_DEEPEST + 2 * narrow * max(start, 0.0) / sigma**2)

        def rule(factor: float) -> TrapezoidRule:
            served = max(8.0, factor * highest)
            limits = Limits(angle, floor, self._end(served, start), _POINTS, width)
            return TrapezoidRule(q, sigma, lowest, served, limits)

        *more, least = _HEADROOM
        for factor in more:
            with contextlib.suppress(OutOfReach):
                return rule(factor)
        return rule(least)

    def _end(self, power: float, start: float) -> float:
        """Return the first point beyond the upper cut where the tilted part has become negligible.

        Of each point beyond, the cut leaves a share below 1e-19, which is lost in rounding beside
        the rest of that point.
        """
        cut = self.upper
        below = start + (cut.position - start) * _BELOW_THE_CUT
        x = np.concatenate([below, cut.position + cut.width * _TAIL])
        sizes = power * log_weights(self.loss, x) - 0.5 * (x / self.loss.noise_multiplier) ** 2
        sizes += cut.log_below(x)
        ends = 64 + np.flatnonzero((sizes < np.maximum.accumulate(sizes) + _NOTHING)[64:])
        if not len(ends):
            raise OutOfReach
        return float(x[ends[0]])

    def _log_share(self, x: Reals, shift: float) -> Any:
        """Return the log of the part's share of each point x + i shift."""
        share = self.upper.log_below(x, shift)
        return share if self.lower is None else share + self.lower.log_beyond(x, shift)

    # -- moments

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log mass, mean, variance and fourth central moment at each real c > -1."""
        return np.asarray(cumulants_of([self], np.atleast_1d(np.asarray(c, dtype=float)))[0])

    def _lost(self, c: Any) -> Any:
        """Return the size of the terms that correct a mass for the parts cut off."""
        return abs(c) * self._rests[0] + (1.0 + c) * self._rests[1]

    def _plain(self, c: Any) -> Any:
        """Return whether a plain sum has as many digits of the log mass as a corrected sum."""
        if self.lower is not None:
            return True
        far = abs(c) * self.loss.sampling_probability > _FAR
        return far | (self._lost(c) > _MOST_CORRECTED)

    def mass_rounding(self, c: float) -> float:
        """Return the rounding of the log mass, in units, beyond that of a sum near its size."""
        if self.lower is not None:
            return 0.0
        return 64.0 if self._plain(c) else 64.0 * self._lost(c)

    def tilt(self, c: float) -> QuadratureTilt:
        """Return the tilted part, normalised to mass 1.

        Raises
        ------
        OutOfReach
            If the rule misses some of the part on its shifted line.
        """
        moments = self.cumulants([c])[0]
        rule = self._points(1.0 + c, 1.0 + c)
        ell, weights, exponents = rule.tilted(1.0 + c, moments, rule.angle, self._log_share)
        if not abs(weights.sum() - 1) <= _DISAGREEMENT:
            raise OutOfReach
        # The part has mass 1 and its own mean by definition: this removes their rounding.
        weights = weights / weights.sum()
        mean, variance, fourth = (float(value) for value in moments[1:])
        log_kept = self._prepared[1, : len(rule.ell)]
        tilt = QuadratureTilt(
            ell - weights @ (ell - mean),
            weights,
            (mean, variance, fourth),
            exponents=exponents,
            restricted=lambda: restricted_moments(rule.ell, log_kept, 1.0 + c, moments),
        )
        if not self._plain(c):
            tilt.mean_rounding += 16.0 * (self._lost(0.0) + self._rests[0])
        return tilt


def cumulants_of(parts: Sequence[Truncation], c: Reals) -> Reals:
    """Return log mass and three moments of several tilted parts at each real c > -1.

    The result has the shape (len(parts), len(c), 4).
    """
    tilts = [float(at) for at in c]
    # Read at once: another thread may keep other tilts meanwhile.
    known = [part._last for part in parts]
    if all(at in last for last in known for at in tilts):
        return np.array([[last[at] for at in tilts] for last in known])
    rows = _moments_of(parts, c)
    for part, row in zip(parts, rows, strict=True):
        part._last = dict(zip(tilts, row.copy(), strict=True))
    return rows


def _moments_of(parts: Sequence[Truncation], c: Reals) -> Reals:
    """Return the result of :func:`cumulants_of`, which is kept nowhere."""
    powers = 1.0 + c
    lowest, highest = float(powers.min()), float(powers.max())
    for part in parts:
        part._points(lowest, highest)
    at = float(c[0]) if len(c) == 1 else c
    plain = np.empty((len(parts), len(c)), dtype=bool)
    for row, part in zip(plain, parts, strict=True):
        row[:] = part._plain(at)
    rows = moments_of([part._prepared for part in parts], powers, c, plain.view(np.uint8))
    # Sums that are not plain assume that P and Q have mass 1: each is corrected for its lost mass.
    corrected = ~plain & (rows[:, :, 0] < _HUGE)
    if corrected.any():
        rests = np.array([part._rests for part in parts])
        base, mixed = rests[:, :1], rests[:, 1:]
        mass = np.expm1(np.where(corrected, rows[:, :, 0], 0.0))
        kept = mass + c * base - powers * mixed
        if not kept[corrected].min() > -0.5:
            raise OutOfReach
        kept = np.where(corrected, kept, 0.0)
        mean = (rows[:, :, 1] * (1 + mass) + base - mixed) / (1 + kept)
        rows[:, :, 0] = np.where(corrected, np.log1p(kept), rows[:, :, 0])
        rows[:, :, 1] = np.where(corrected, mean, rows[:, :, 1])
    return rows


def cut_off(loss: SampledGaussian, log_rest: float) -> float:
    """Return a position on the axis of the noise beyond which a step is as improbable as given."""
    q, sigma = loss.sampling_probability, loss.noise_multiplier
    wide = math.hypot(sigma, width_of_wide(sigma))
    share = log_rest - math.log(2)
    return max(
        -wide * float(special.ndtri_exp(min(share, -1.0))),
        1.0 - wide * float(special.ndtri_exp(min(share - math.log(q), -1e-3))),
    )


def below(loss: SampledGaussian, position: float) -> Truncation:
    """Return the part of a law below a sharp cut at a position on the axis of the noise."""
    return Truncation(loss, None, Cut.sharp(loss, position))


def between(low: Truncation, high: Truncation) -> TwoParts:
    """Return the part below the lower of two sharp cuts, and the part between the two.

    With widths a and b, the share of a point x is Phi((low - x) / a) below and Phi((x - low) / a)
    Phi((high - x) / b) between. The two add up to Phi((high - x) / b), the share below the upper
    cut, and a surplus of Phi((low - x) / a) Phi((x - high) / b). Relative to that share the surplus
    is less than :data:`SURPLUS` where the cuts are 7 (a + b) apart, as one of the two factors is
    then that of 7 standard deviations or more, and so is the other unless the first is that of 14.

    Parameters
    ----------
    low, high
        The parts of one loss below the lower and below the upper cut, from :func:`below`.
    """
    return TwoParts(low, Truncation(low.loss, low.upper, high.upper))
