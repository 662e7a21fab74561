"""One contour: nodes, cut-off and step chosen from bounds, and an interval for what they give.

For a positive measure mu on privacy losses with transform M(z) = integral exp(z l) dmu,

    delta(epsilon) = integral of (1 - exp(epsilon - l))_+ dmu
                   = 1 / (2 pi i) * integral over Re z = c of exp(-epsilon z) M(z) / (z (z + 1)) dz

for c > 0; for a law and -1 < c < 0 the integral is delta(epsilon) - 1 (the residue at 0), which
keeps the digits of delta near 1. The trapezoid rule of step h on the line is *exactly* ``sum_j
exp(2 pi c j / h) delta(epsilon + 2 pi j / h)`` (Poisson summation), so its error is a sum of
aliases that Chernoff bounds at other tilts control. Nodes are cut off where a proved bound on
abs(M) makes the rest negligible. Where the cut-off lies beyond the node budget, the measure is
convolved with the law of a small Gaussian loss, which can only raise delta and makes the integrand
decay.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> from dpcal.accountants.inversion.transform import Total
>>> contour = Contour(Total(((Gaussian(2.0), 8),)), 1.5, 4.0)
>>> contour.nodes, f"{math.exp(contour.log_bounds(4.0).upper):.10f}"
(25, '0.0058380131')
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.transform import Measure, ProductLine
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["FURTHEST", "Contour", "log_complement"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]
N = TypeVar("N", float, Reals)

# Largest relative error that aliasing and truncation may each contribute.
_TOLERANCE = 2e-15
# Distance of the furthest trial tilt from the saddle, in widths of the peak.
FURTHEST = 20.0
_SPREADS = np.array([0.05, 0.15, 0.35, 0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, FURTHEST])
# On a line of more points than this, these: a trial costs more there than it saves in nodes.
_MANY_POINTS, _FEWER_SPREADS = 5_000, np.array([0.15, 0.7, 2.5, 4.0])
# The same where only the size of the value matters.
_CRUDEST = 1e-2
# Remainder, relative to the value, at the last affordable node that is taken as it is.
_ALGEBRAIC = 1e-7
# Nodes of one contour, and complex multiplications spent on it, at most (about 0.1 s).
_MAX_NODES = 1 << 19
_MAX_WORK = 3e7
# Nodes that any composition may have, as long as they take no more than so much work; and the
# fewest that a contour is smoothed for.
_MIN_BUDGET, _MOST_WORK, _FEWEST = 1 << 14, 1.5e8, 1 << 10
_GRID_RATIO = 1.12
_LOG_RATIO = math.log(_GRID_RATIO)
# Grid times between two looks at whether the rest is negligible.
_CHUNK = 32
# Shifts at which the smoothed delta bounds the plain one from below, in logarithms of what is lost.
_MARGINS = (3.0, 6.0, 12.0, 24.0, 48.0)
# Where no digit of an integrand is left, it may have no value: its sum then says nothing.
_silent = np.errstate(over="ignore", invalid="ignore")


class Contour:
    """Nodes c + i k h for one measure, for every epsilon near the one whose saddle is c.

    Parameters
    ----------
    measure
        What is inverted.
    c
        Real part of the line, in (0, inf) for delta or, for a law, in (-1, 0) for 1 - delta.
    epsilon
        Where the saddle is: step and cut-off are chosen for this epsilon.
    excess
        By how much, in logarithm, the value may be less accurate, since it is added to a larger
        one.
    spread
        How far from the saddle's epsilon, in standard deviations of the tilted law, aliases are to
        stay as small against the peak as they are there.
    work
        Complex multiplications that may be spent on the nodes.
    smooth
        Whether to smooth where that is not enough, rather than to raise :class:`OutOfReach`.
    """

    def __init__(
        self,
        measure: Measure,
        c: float,
        epsilon: float,
        *,
        excess: float = 0.0,
        spread: float = 0.0,
        work: float = _MAX_WORK,
        smooth: bool = True,
    ) -> None:
        self.c = c
        self._log_tolerance = min(math.log(_TOLERANCE) + excess, math.log(_CRUDEST))
        self.line = measure.line(c)
        self.log_mgf, self.mean = self.line.log_mass, self.line.mean
        curvature = self.line.variance + 1 / c**2 + 1 / (1 + c) ** 2
        self.width = 1 / math.sqrt(curvature)
        self.smoothing = 0.0
        # Whether what lies beyond the last node is more than rounding.
        self.coarse = False
        self.step = math.nan
        # The integrand at the epsilon asked for last.
        self._last = (math.nan, np.empty(0, dtype=complex))
        self._choose_step(measure, epsilon)
        if not 0 < self.step < math.inf:
            raise OutOfReach
        # An alias at tilt a grows by exp(abs(a - c) distance): a period longer by the distance
        # makes up for it.
        self.step = 2 * math.pi / (2 * math.pi / self.step + spread / self.width)
        self._choose_nodes(work, smooth)

    @property
    def work(self) -> float:
        """Complex multiplications that its evaluation takes."""
        return float(self.nodes * self.line.points)

    # -- choices made from bounds

    def _peak(self, epsilon: float) -> float:
        """Log of the integrand at the real node."""
        return self.log_mgf - self.c * epsilon - math.log(abs(self.c)) - math.log1p(self.c)

    def _choose_step(self, measure: Measure, epsilon: float) -> None:
        """Largest h whose aliases, by Chernoff bounds at other tilts, are below the tolerance."""
        c, w = self.c, self.width
        left_end = 0.0 if c > 0 else -1.0
        right_end = math.inf if c > 0 else 0.0
        spreads = _SPREADS if self.line.points < _MANY_POINTS else _FEWER_SPREADS
        left, right = c - w * spreads, c + w * spreads
        trials = np.concatenate([[left_end], left[left >= left_end], right[right <= right_end]])
        if c < 0:
            trials = np.append(trials, 0.0)
        # The furthest tilts may be out of reach where the saddle is not.
        for _ in range(len(spreads)):
            try:
                self._trial_bounds = measure.log_chernoff(trials)
                break
            except OutOfReach:
                trials = trials[:-1]
        self._trials = trials
        if not trials[-1] > c:
            raise OutOfReach
        expected = self.log_estimate(epsilon)
        needed = self._trial_bounds - trials * epsilon - expected - self._log_tolerance
        steps = 2 * math.pi * np.abs(trials - c) / np.maximum(needed, 1.0)
        self.step = min(float(steps[trials < c].max()), float(steps[trials > c].max()))

    def _log_alias(self, epsilon: float) -> float:
        """Log of a bound on the sum of all aliases at this epsilon."""
        a = self._trials
        distance = np.abs(a - self.c) * (2 * math.pi / self.step)
        first = self._trial_bounds + self._smoothing_at(a) - a * epsilon - distance
        with np.errstate(divide="ignore"):
            series = first - np.log(-np.expm1(-distance))
        return float(np.logaddexp(series[a < self.c].min(), series[a > self.c].min()))

    def _log_decay(self, t: Reals, ratio: float) -> Reals:
        """Bound on log abs(transform(c + i s) / transform(c)), s in [t, ratio t], at each t."""
        return self.line.log_decay(t, ratio) - 0.5 * (self.smoothing * t) ** 2

    def _choose_nodes(self, work: float, smooth: bool) -> None:
        """Fewest nodes whose remainder is proved negligible; smooths if they are too many."""
        h = self.step
        # Compositions of many distinct losses, each with its points, get fewer nodes.
        least = min(_MIN_BUDGET, max(_FEWEST, _MOST_WORK / self.line.points)) if smooth else 1.0
        budget = int(min(_MAX_NODES, max(least, work / self.line.points)))
        if not self.line.decays:
            # Only smoothing ends such a contour, and little is gained by less of it.
            budget = int(max(least, 1.0))
        log_sum = -math.log(_curvature_factor(self.width)) - math.log(h / math.pi)
        target = log_sum + self._log_tolerance
        grid = h * _GRID_RATIO ** np.arange(math.ceil(math.log(budget) / _LOG_RATIO) + 1.0)
        node = self._first_negligible(grid, target)
        if node is None and self._remainder < log_sum + math.log(_ALGEBRAIC):
            # The transform of a density with jumps falls like a power of t: its rest is an error.
            node, self.coarse = len(grid) - 1, True
        if node is None:
            if not smooth:
                raise OutOfReach
            # exp(-(smoothing t)^2 / 2) reaches the target at the last affordable node.
            self.smoothing = math.sqrt(2 * max(1.0, math.log(budget) - target)) / (h * budget)
            node = self._first_negligible(grid, target)
            node = len(grid) - 1 if node is None else node
        self.nodes = int(grid[node] / h) + 2

    def _first_negligible(self, grid: Reals, target: float) -> int | None:
        """Index of the first grid time beyond which all nodes together stay below exp(target)."""
        h, c = self.step, self.c
        poles = 0.5 * (np.log1p((grid / c) ** 2) + np.log1p((grid / (1 + c)) ** 2))
        counts = np.log(grid * (_GRID_RATIO - 1) / h + 1)
        pieces = np.empty(len(grid))
        for start in range(0, len(grid), _CHUNK):
            rows = slice(start, start + _CHUNK)
            pieces[rows] = self._log_decay(grid[rows], _GRID_RATIO) - poles[rows] + counts[rows]
            last = min(start + _CHUNK, len(grid)) - 1
            # What is further out is bounded by no less than the last piece is.
            if pieces[last] >= target - 3 and last < len(grid) - 1:
                continue
            # Further out the poles alone make the integrand fall at least like 1 / t^2.
            rest = float(self._log_decay(grid[last:][:1], math.inf)[0])
            rest += math.log(grid[last] / h + 1) - poles[last]
            if rest < target - 3 or last == len(grid) - 1:
                break
        pieces = np.append(pieces[:last], rest)
        remainders = np.logaddexp.accumulate(pieces[::-1])[::-1]
        small = np.flatnonzero(remainders <= target)
        node = int(small[0]) if len(small) else None
        self._remainder = float(remainders[len(pieces) - 1 if node is None else node])
        return node

    # -- values

    @cached_property
    def _nodes(self) -> tuple[Reals, Complexes, Complexes, Reals]:
        """Times, log integrand less what depends on epsilon, poles, and rounding in units."""
        t = self.step * np.arange(self.nodes)
        z = self.c + 1j * t
        values = self.line.log_ratio(self.step, self.nodes)
        poles = (z / self.c) * ((1 + z) / (1 + self.c))
        relative, absolute = self.line.rounding(self.step, values)
        values = values - 0.5 * (self.smoothing * t) ** 2 - np.log(poles)
        rounding = (8 + relative) * np.exp(values.real) + absolute / np.abs(poles)
        return np.asarray(t, dtype=float), np.asarray(values), np.asarray(z), np.asarray(rounding)

    @property
    def _log_smoothing(self) -> float:
        return float(self._smoothing_at(np.array(self.c)))

    @property
    def _mean(self) -> float:
        return self.mean + self.smoothing**2 * (self.c + 0.5)

    def _integrand(self, epsilon: float) -> Complexes:
        if self._last[0] != epsilon:
            t, values, _, _ = self._nodes
            integrand = np.exp(values + 1j * t * (self._mean - epsilon))
            integrand[0] = 0.5
            self._last = epsilon, integrand
        return self._last[1]

    def log_estimate(self, epsilon: float) -> float:
        """Saddle-point estimate of the logarithm of the value, without an error bound."""
        return self._peak(epsilon) - math.log(_curvature_factor(self.width))

    def _scale(self, epsilon: float) -> float:
        """Log of the factor between the normalised sum over nodes and the integral."""
        return self._peak(epsilon) + self._log_smoothing + math.log(self.step / math.pi)

    def _log_interval(self, epsilon: float) -> tuple[float, float]:
        """Bounds on log of the smoothed delta (c > 0) or of its complement (c < 0)."""
        integrand = self._integrand(epsilon)
        total = float(integrand.real.sum())
        error = self._error(epsilon, total, integrand)
        scale = self._scale(epsilon)
        lower = scale + math.log(total - error) if total > error else -math.inf
        upper = scale + math.log(total + error) if total + error > 0 else math.inf
        return lower, upper

    def _smoothing_at(self, c: Reals) -> Reals:
        """What the added Gaussian loss contributes to log M(c)."""
        return 0.5 * self.smoothing**2 * (c * c + c)

    def _error(self, epsilon: float, total: float, integrand: Complexes) -> float:
        """Bound on aliasing, truncation and rounding, in units of the normalised sum."""
        t, _, _, rounding = self._nodes
        alias = math.exp(min(700.0, self._log_alias(epsilon) - self._scale(epsilon)))
        tail = math.exp(min(700.0, self._remainder))
        phase = t * (4 * (abs(self._mean) + abs(epsilon)) + self.line.mean_rounding)
        rounded = float(rounding.sum() + (phase * np.abs(integrand)).sum())
        prefactor = 16 + 8 * (abs(self.log_mgf) + abs(self.c * epsilon))
        prefactor += self.line.log_mass_rounding
        return alias + tail + UNIT * (rounded + prefactor * abs(total))

    @_silent
    def log_bounds(self, epsilon: float) -> Bounds:
        """Bounds on log delta(epsilon)."""
        lower, upper = self._log_interval(epsilon)
        method = "contour"
        if self.c < 0:
            lower, upper = _outward(log_complement(upper), log_complement(lower))
        else:
            upper = min(upper, float((self._trial_bounds - self._trials * epsilon).min()))
        if self.smoothing:
            method, lower = "smoothed", self._unsmoothed_lower(epsilon)
        return Bounds(lower, min(upper, 0.0), method)

    def _unsmoothed_lower(self, epsilon: float) -> float:
        """Best of delta_smoothed(epsilon + s) - P(xi > s) over s, with xi the added loss."""
        best = -math.inf
        size = -self._log_interval(epsilon)[1] if self.c > 0 else 0.0
        for margin in _MARGINS:
            deviations = math.sqrt(2 * (margin + max(0.0, size)))
            shifted = epsilon + deviations * self.smoothing + self.smoothing**2 / 2
            log_miss = -0.5 * deviations**2
            low, high = self._log_interval(shifted)
            if self.c < 0:
                low = log_complement(high)
            if low > log_miss:
                best = max(best, low + math.log(-math.expm1(log_miss - low)))
        return best

    # -- values at many epsilons

    @_silent
    def log_bounds_at(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Lower and upper bounds on log delta at each of many epsilons, as :meth:`log_bounds`."""
        lower, upper = self._log_interval_at(epsilons)
        if self.c < 0:
            lower, upper = _outward(_log_complements(upper), _log_complements(lower))
        else:
            chernoff = self._trial_bounds - np.outer(epsilons, self._trials)
            upper = np.minimum(upper, chernoff.min(axis=1))
        if self.smoothing:
            lower = self._unsmoothed_lower_at(epsilons)
        return lower, np.minimum(upper, 0.0)

    def _sums_at(self, epsilons: Reals) -> tuple[Reals, float]:
        """Normalised sums over the nodes, and their rounding in units but for the phases'.

        Nodes are equally spaced, so a phase is a product of two, of a place within a block of nodes
        and of the block: a matrix product and a few exponentials.
        """
        weights = np.exp(self._nodes[1])
        weights[0] = 0.5
        inner = math.ceil(math.sqrt(self.nodes))
        outer = -(-self.nodes // inner)
        blocks = np.zeros(inner * outer, dtype=complex)
        blocks[: self.nodes] = weights
        shifts = 1j * self.step * (self._mean - epsilons)
        within = np.exp(np.outer(np.arange(inner), shifts))
        between = np.exp(np.outer(inner * np.arange(outer), shifts))
        sums = (blocks.reshape(outer, inner) @ within * between).real.sum(axis=0)
        return sums, float((inner + outer + 8) * np.abs(weights).sum())

    def _log_interval_at(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """As :meth:`_log_interval`."""
        totals, summing = self._sums_at(epsilons)
        t, values, _, rounding = self._nodes
        peaks = self.log_mgf - self.c * epsilons - math.log(abs(self.c)) - math.log1p(self.c)
        scales = peaks + self._log_smoothing + math.log(self.step / math.pi)
        phases = 4 * (abs(self._mean) + np.abs(epsilons)) + self.line.mean_rounding
        phases = phases * float(t @ np.exp(values.real))
        prefactors = 16 + 8 * (abs(self.log_mgf) + np.abs(self.c * epsilons))
        prefactors += self.line.log_mass_rounding
        errors = np.exp(np.minimum(700.0, self._log_alias_at(epsilons) - scales))
        errors += math.exp(min(700.0, self._remainder))
        errors += UNIT * (float(rounding.sum()) + summing + phases + prefactors * np.abs(totals))
        with np.errstate(divide="ignore", invalid="ignore"):
            # A sum that is no number says nothing.
            lower = np.where(totals > errors, scales + np.log(totals - errors), -math.inf)
            upper = scales + np.log(np.maximum(totals + errors, 0.0))
        return lower, np.where(totals + errors > 0, upper, math.inf)

    def _log_alias_at(self, epsilons: Reals) -> Reals:
        """As :meth:`_log_alias`."""
        a = self._trials
        distance = np.abs(a - self.c) * (2 * math.pi / self.step)
        with np.errstate(divide="ignore"):
            closed = np.log(-np.expm1(-distance))
        first = self._trial_bounds + self._smoothing_at(a) - distance - closed
        series = first - np.outer(epsilons, a)
        left, right = series[:, a < self.c].min(axis=1), series[:, a > self.c].min(axis=1)
        return np.asarray(np.logaddexp(left, right))

    def _unsmoothed_lower_at(self, epsilons: Reals) -> Reals:
        """As :meth:`_unsmoothed_lower`."""
        best = np.full(len(epsilons), -math.inf)
        sizes = -self._log_interval_at(epsilons)[1] if self.c > 0 else np.zeros(len(epsilons))
        for margin in _MARGINS:
            deviations = np.sqrt(2 * (margin + np.maximum(0.0, sizes)))
            shifted = epsilons + deviations * self.smoothing + self.smoothing**2 / 2
            low, high = self._log_interval_at(shifted)
            if self.c < 0:
                low = _log_complements(high)
            with np.errstate(divide="ignore", invalid="ignore"):
                kept = low + np.log(-np.expm1(np.minimum(-0.5 * deviations**2 - low, 0.0)))
            best = np.maximum(best, np.where(np.isnan(kept), -math.inf, kept))
        return best

    # -- derivatives

    @_silent
    def slopes(self, epsilon: float) -> tuple[float, float]:
        """Log delta(epsilon) (no error bound) and its derivative in epsilon."""
        integrand = self._integrand(epsilon)
        total = float(integrand.real.sum())
        if not 0 < total < math.inf:
            return math.nan, math.nan
        value = self._scale(epsilon) + math.log(total)
        ratio = -float((self._nodes[2] * integrand).real.sum()) / total
        if self.c > 0:
            return value, ratio
        complement = log_complement(value)
        return complement, -ratio * math.exp(value - complement)

    @_silent
    def parameter_slope(
        self, epsilon: float, rates: list[dict[str, float]], growths: list[float]
    ) -> float:
        """Derivative of log delta(epsilon) along a change of the parts of a :class:`Total`.

        Parameters
        ----------
        epsilon
            Where.
        rates
            For each part, the derivative of each of its parameters along the change.
        growths
            For each part, the derivative of its count.
        """
        if not isinstance(self.line, ProductLine):
            return math.nan
        integrand = self._integrand(epsilon)
        total = float(integrand.real.sum())
        if not 0 < total < math.inf:
            return math.nan
        change = np.zeros(self.nodes, dtype=complex)
        parts = zip(self.line.tilts, self.line.log_masses, rates, growths, strict=True)
        for (tilt, count), log_mgf, rate, growth in parts:
            for parameter, value in rate.items():
                if value:
                    change += count * value * tilt.log_slope(self.step, self.nodes, parameter)
            if growth:
                ratio = tilt.log_ratio(self.step, self.nodes)
                change += growth * (log_mgf + ratio + 1j * self._nodes[0] * tilt.mean)
        relative = float((change * integrand).real.sum()) / total
        if self.c > 0:
            return relative
        value = self._scale(epsilon) + math.log(total)
        return -relative * math.exp(value - log_complement(value))


def log_complement(log_value: float) -> float:
    """log(1 - exp(log_value)) to its last digits; -infinity where that is not positive."""
    if log_value < -math.log(2):
        return math.log1p(-math.exp(log_value))
    return math.log(-math.expm1(log_value)) if log_value < 0 else -math.inf


def _log_complements(log_values: Reals) -> Reals:
    """The same for arrays."""
    log_values = np.minimum(log_values, 0.0)
    with np.errstate(divide="ignore"):
        small, large = np.log1p(-np.exp(log_values)), np.log(-np.expm1(log_values))
    return np.where(log_values < -math.log(2), small, large)


def _outward(lower: N, upper: N) -> tuple[N, N]:
    """Bounds <= 0 with the rounding of their logarithms added."""
    return lower * (1 + 4 * UNIT), upper * (1 - 4 * UNIT) + 0.0


def _curvature_factor(width: float) -> float:
    """sqrt(2 pi) / width: the saddle estimate of the integral is the integrand's peak over this."""
    return math.sqrt(2 * math.pi) / width
