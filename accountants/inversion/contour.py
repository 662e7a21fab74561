"""One contour: nodes, cut-off and step are chosen from bounds, and delta is an interval.

For a positive measure mu on privacy losses with transform M(z) = integral exp(z l) dmu,

    delta(epsilon) = integral of (1 - exp(epsilon - l))_+ dmu
                   = 1 / (2 pi i) * integral over Re z = c of exp(-epsilon z) M(z) / (z (z + 1)) dz

for c > 0; for a law and -1 < c < 0 the integral is delta(epsilon) - 1 (the residue at 0), which
keeps the digits of delta near 1. The trapezoid rule of step h on the line is *exactly* ``sum_j
exp(2 pi c j / h) delta(epsilon + 2 pi j / h)`` (Poisson summation), so its error is a sum of
aliases that Chernoff bounds at other tilts control. Nodes are cut off where a proved bound on
abs(M) makes the rest negligible.

Where no cut-off is within reach, as for laws with atoms or jumps, a loss xi of law N(eta^2 / 2,
eta^2) is added, which makes the integrand decay. Theorem: 0 <= delta_eta - delta <= R, where

    R(epsilon) = eta^2 exp(eta^2 / 8) / (2 pi) * integral of
                 exp(-epsilon z) M(z) exp(eta^2 (z^2 + z) / 2) dt,    z = c + i t.

Proof: E exp(-xi) = 1, so that at x = l - epsilon the gain of E (1 - exp(-x - xi))_+ over (1 -
exp(-x))_+ is the time value of an option. Its derivative in eta is exp(-x / 2 - eta^2 / 8) phi(x /
eta) with phi the normal density; as phi(x / s) rises with s, the gain is at least 0 and at most
k(x) = eta exp(-x / 2) phi(x / eta). The transform of k, integral of k(x) exp(-z x) dx, is eta^2
exp(eta^2 (z + 1/2)^2 / 2), and R = integral of k(l - epsilon) dmu. Its trapezoid sum over the same
nodes has aliases >= 0, so it bounds R from above; beyond the last node t it leaves at most a share
of its value at c: the integral of exp(-(eta s)^2 / 2) / h over s > t, times the largest abs(M)
there over M(c). R is about c (1 + c) eta^2 times delta: of second order in eta, whatever the law.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> from dpcal.accountants.inversion.transform import Total
>>> contour = Contour(Total(((Gaussian(2.0), 8),)), 1.5, 4.0)
>>> contour.nodes, f"{math.exp(contour.log_bounds(4.0).upper):.10f}"
(25, '0.0058380131')
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.limits import CONTOUR
from dpcal.accountants.inversion.saddle import chernoff_at
from dpcal.accountants.inversion.transform import Measure
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["FURTHEST", "Contour", "log_complement", "log_complements"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Distance of the furthest trial tilt from the saddle, in widths of the peak.
FURTHEST = 20.0
# Distances of all trial tilts from the saddle, in widths of the peak. Chernoff bounds at these
# tilts say how small the aliases are. For a normal law the best lies at sqrt(2 log(1 / tolerance))
# = 8 widths; laws of rare jumps need nearer tilts, others further tilts.
_SPREADS = np.array([0.05, 0.15, 0.35, 0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, FURTHEST])
# Ratio of neighboring times between which the decay is bounded. Closer times find the last node
# more exactly, at a bound each: the last node lies at most this much too far out.
_GRID_RATIO = 1.12
# Width of bounds on log delta that a smoothed contour gets as many nodes for as it takes.
_WANTED = 2e-7
# Logarithm at which the size of an error is capped: its exponential is still a double.
_HUGE = 700.0
# An integrand without a correct digit may be NaN; its sum then has no bounds.
_silent = np.errstate(over="ignore", invalid="ignore")


class Contour:
    """Nodes c + i k h for one measure, for every epsilon near the one whose saddle is c.

    Parameters
    ----------
    measure
        The measure that is inverted.
    c
        Real part of the line, in (0, inf) for delta or, for a law, in (-1, 0) for 1 - delta.
    epsilon
        Where the saddle is: step and cut-off are chosen for this epsilon.
    excess
        Log of the factor by which the error may grow: the value is added to a larger one.
    spread
        Distance from the saddle's epsilon, in standard deviations of the tilted law, up to
        which aliases stay as small, relative to the peak, as at the saddle.
    work
        Complex multiplications that may be spent on the nodes.
    smooth
        Whether to smooth a measure that needs more nodes, instead of raising an exception.

    Attributes
    ----------
    nodes, step
        Number of nodes and their distance.
    points
        Complex multiplications that one node takes.
    width
        Width of the integrand's peak along the line.
    smoothing
        Standard deviation of the Gaussian loss that was added; 0 for none.
    """

    method = "contour"

    def __init__(
        self,
        measure: Measure,
        c: float,
        epsilon: float,
        *,
        excess: float = 0.0,
        spread: float = 0.0,
        work: float = CONTOUR.work,
        smooth: bool = True,
    ) -> None:
        self.c = c
        line = self._line = measure.line(c)
        self.points = line.points
        self._mean_rounding, self._mass_rounding = line.mean_rounding, line.log_mass_rounding
        tolerance = math.log(CONTOUR.error) + excess
        self._log_tolerance = min(tolerance, math.log(CONTOUR.error_of_parts))
        self.log_mgf, self.mean = line.log_mass, line.mean
        curvature = line.variance + 1 / c**2 + 1 / (1 + c) ** 2
        self.width = 1 / math.sqrt(curvature)
        self.smoothing = 0.0
        self.step = math.nan
        # The last epsilon and the bounds there.
        self._known = (math.nan, (np.empty(0), np.empty(0)))
        # The last epsilon and the integrand there.
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
        return float(self.nodes * self.points)

    # -- choices made from bounds

    def _choose_step(self, measure: Measure, epsilon: float) -> None:
        """Choose the largest step whose aliases are below the tolerance, by Chernoff bounds."""
        c, w = self.c, self.width
        left_end = 0.0 if c > 0 else -1.0
        right_end = math.inf if c > 0 else 0.0
        left, right = c - w * _SPREADS, c + w * _SPREADS
        trials = np.concatenate([[left_end], left[left >= left_end], right[right <= right_end]])
        if c < 0:
            trials = np.append(trials, 0.0)
        # The furthest tilts may be out of reach although the saddle is in reach.
        for _ in range(len(_SPREADS)):
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

    def _log_aliases(self, epsilons: Reals) -> Reals:
        """Return the log of a bound on the sum of all aliases at each epsilon."""
        a = self._trials
        distance = np.abs(a - self.c) * (2 * math.pi / self.step)
        with np.errstate(divide="ignore"):
            series = np.log(-np.expm1(-distance))
        first = self._trial_bounds + self._smoothing_at(a) - distance - series
        bounds = first - np.outer(epsilons, a)
        left, right = bounds[:, a < self.c].min(axis=1), bounds[:, a > self.c].min(axis=1)
        return np.asarray(np.logaddexp(left, right))

    def _log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return bounds on log abs(transform(c + i s) / transform(c)) for s in [t, ratio t]."""
        return self._line.log_decay(t, ratio) - 0.5 * (self.smoothing * t) ** 2

    def _choose_nodes(self, work: float, smooth: bool) -> None:
        """Choose the fewest nodes with a negligible remainder; smooth if they are too many."""
        h = self.step
        # Compositions of many distinct losses, each with its points, get fewer nodes.
        granted = max(CONTOUR.smoothed, CONTOUR.granted_work / self.points)
        least = min(CONTOUR.granted, granted) if smooth else 1.0
        budget = int(min(CONTOUR.nodes, max(least, work / self.points)))
        if not self._line.decays:
            # Only smoothing ends such a contour.
            atoms = min(CONTOUR.nodes, CONTOUR.atoms_work / self.points)
            budget = int(max(least, atoms if smooth else 1.0))
        log_sum = -math.log(_curvature_factor(self.width)) - math.log(h / math.pi)
        target = log_sum + self._log_tolerance
        grid = h * _GRID_RATIO ** np.arange(
            math.ceil(math.log(budget) / math.log(_GRID_RATIO)) + 1.0
        )
        remainders = self._remainders(grid, target)
        node = _first_below(remainders, target)
        if node is None and remainders[-1] < log_sum + math.log(CONTOUR.error_of_jumps):
            node = len(grid) - 1
        if node is None:
            if not smooth:
                raise OutOfReach
            # exp(-(smoothing t)^2 / 2) reaches the target at the last node: that of the width which
            # is wanted, or the last affordable one.
            last = math.sqrt(2 * max(1.0, math.log(CONTOUR.nodes) - target)) / h
            wanted = last * math.sqrt(abs(self.c) * (1 + self.c) / _WANTED)
            most = min(CONTOUR.nodes, CONTOUR.smoothed_work / self.points)
            budget = int(max(CONTOUR.smoothed, min(wanted, most)))
            grid = h * _GRID_RATIO ** np.arange(
                math.ceil(math.log(budget) / math.log(_GRID_RATIO)) + 1.0
            )
            # With so many nodes the law itself may end the contour.
            remainders = self._remainders(grid, target)
            node = _first_below(remainders, target)
            if node is None:
                self.smoothing = last / budget
                remainders = self._remainders(grid, target)
                node = _first_below(remainders, target)
            node = len(grid) - 1 if node is None else node
        self._remainder = float(remainders[min(node, len(remainders) - 1)])
        self.nodes = int(grid[node] / h) + 2
        self._log_rest = float(self._line.log_decay(grid[node : node + 1], math.inf)[0])

    def _remainders(self, grid: Reals, target: float) -> Reals:
        """Return the log of a bound on all nodes beyond each grid time, to far below the target."""
        h, c = self.step, self.c
        poles = 0.5 * (np.log1p((grid / c) ** 2) + np.log1p((grid / (1 + c)) ** 2))
        counts = np.log(grid * (_GRID_RATIO - 1) / h + 1)
        pieces = np.empty(len(grid))
        for start in range(0, len(grid), CONTOUR.check):
            rows = slice(start, start + CONTOUR.check)
            pieces[rows] = self._log_decay(grid[rows], _GRID_RATIO) - poles[rows] + counts[rows]
            last = min(start + CONTOUR.check, len(grid)) - 1
            # The bound on the rest cannot be smaller than the last piece: it is not computed yet.
            if pieces[last] >= target - 3 and last < len(grid) - 1:
                continue
            # Further out the poles leave at most abs(c) (1 + c) / t^2, and, with the larger m of
            # both distances, 1 / (1 + (t / m)^2): the rest is one node and an integral.
            rest = float(self._log_decay(grid[last:][:1], math.inf)[0])
            beyond = min(abs(c) * (1 + c) / grid[last], 0.5 * math.pi * max(abs(c), 1 + c))
            rest += math.log(math.exp(-poles[last]) + beyond / h)
            if rest < target - 3 or last == len(grid) - 1:
                break
        pieces = np.append(pieces[:last], rest)
        return np.asarray(np.logaddexp.accumulate(pieces[::-1])[::-1])

    # -- values

    @cached_property
    def _nodes(self) -> tuple[Reals, Complexes, Complexes, Reals]:
        """Times, log integrand less the factor of epsilon, nodes z, and rounding in units."""
        t, plain, z, relative, absolute = self._transform
        poles = self._poles(z)
        values = plain - np.log(poles)
        rounding = (8 + relative) * np.exp(values.real) + absolute / np.abs(poles)
        return t, np.asarray(values), z, np.asarray(rounding)

    @cached_property
    def _transform(self) -> tuple[Reals, Complexes, Complexes, Reals, float]:
        """Times, log transform over its value at c, nodes z, and two roundings in units.

        The first rounding is relative to each value of the transform, the other one absolute.
        """
        t = np.asarray(self.step * np.arange(self.nodes), dtype=float)
        values = self._line.log_ratio(self.step, self.nodes)
        relative, absolute = self._line.rounding(self.step, values)
        smoothed = values - 0.5 * (self.smoothing * t) ** 2
        return t, np.asarray(smoothed), np.asarray(self.c + 1j * t), relative, absolute

    def _poles(self, z: Any) -> Complexes:
        """Return what divides the transform at the nodes, over its value at the real node."""
        return np.asarray((z / self.c) * ((1 + z) / (1 + self.c)))

    def drop_points(self) -> None:
        """Keep the nodes alone, and not the points of the transform: most of the memory."""
        self._nodes  # noqa: B018 -- computed here, if they are not known
        del self._line

    @property
    def _mean(self) -> float:
        """Return the mean of the tilted law, or of the smoothed law if it is smoothed."""
        return self.mean + self.smoothing**2 * (self.c + 0.5)

    def _integrand(self, epsilon: float) -> Complexes:
        """Return the integrand at the nodes over its value at the real node, which counts half."""
        if self._last[0] != epsilon:
            t, values, _, _ = self._nodes
            integrand = np.exp(values + 1j * t * (self._mean - epsilon))
            integrand[0] = 0.5
            self._last = epsilon, integrand
        return self._last[1]

    def _integrands(self, epsilon: float) -> tuple[Complexes, Complexes]:
        """Return the integrand at the nodes, and minus its derivative in epsilon."""
        integrand = self._integrand(epsilon)
        return integrand, self._nodes[2] * integrand

    def log_estimate(self, epsilon: float) -> float:
        """Return the saddle-point estimate of the logarithm of the value, without error bound."""
        peak = self.log_mgf - self.c * epsilon - math.log(abs(self.c)) - math.log1p(self.c)
        return peak - math.log(_curvature_factor(self.width))

    def _log_peaks(self, epsilons: Reals) -> Reals:
        """Return the log of the integrand at the real node, at each epsilon."""
        return self.log_mgf - self.c * epsilons - math.log(abs(self.c)) - math.log1p(self.c)

    def _log_scales(self, epsilons: Reals) -> Reals:
        """Return the log of the integrals over the normalised sums over nodes."""
        smoothing = self._smoothing_at(np.array(self.c))
        return np.asarray(self._log_peaks(epsilons) + smoothing + math.log(self.step / math.pi))

    def _smoothing_at(self, c: Reals) -> Reals:
        """Return the contribution of the added Gaussian loss to log M(c)."""
        return 0.5 * self.smoothing**2 * (c * c + c)

    def _sums(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return normalised sums over the nodes, and their rounding in units."""
        t, values, _, rounding = self._nodes
        phases = 4 * (abs(self._mean) + np.abs(epsilons)) + self._mean_rounding
        if len(epsilons) == 1:
            integrand = self._integrand(float(epsilons[0]))
            total = np.array([integrand.real.sum()])
            return total, rounding.sum() + phases * (t * np.abs(integrand)).sum()
        weights = np.exp(values)
        weights[0] = 0.5
        shifts = np.asarray(1j * self.step * (self._mean - epsilons), dtype=complex)
        sums, terms = _block_sums(weights, shifts)
        summing = (terms + 8) * np.abs(weights).sum()
        return sums, rounding.sum() + summing + phases * float(t @ np.abs(weights))

    def _log_interval(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return bounds on the log of the smoothed delta (c > 0) or of its complement (c < 0)."""
        totals, rounding = self._sums(epsilons)
        scales = self._log_scales(epsilons)
        prefactors = 16 + 8 * (abs(self.log_mgf) + np.abs(self.c * epsilons))
        prefactors += self._mass_rounding
        errors = np.exp(np.minimum(_HUGE, self._log_aliases(epsilons) - scales))
        errors += math.exp(min(_HUGE, self._remainder))
        errors += UNIT * (rounding + prefactors * np.abs(totals))
        with np.errstate(divide="ignore", invalid="ignore"):
            # A sum that is NaN gives no bounds.
            lower = np.where(totals > errors, scales + np.log(totals - errors), -math.inf)
            upper = scales + np.log(np.maximum(totals + errors, 0.0))
        return lower, np.where(totals + errors > 0, upper, math.inf)

    def log_bounds_at(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on log delta at each of many epsilons."""
        if len(epsilons) > 1:
            return self._bounds_at(epsilons)
        # A choice between contours asks for the same bounds several times.
        epsilon = float(epsilons[0])
        known, bounds = self._known
        if known != epsilon:
            bounds = self._bounds_at(epsilons)
            self._known = epsilon, bounds
        return bounds[0].copy(), bounds[1].copy()

    @_silent
    def _bounds_at(self, epsilons: Reals) -> tuple[Reals, Reals]:
        lower, upper = self._log_interval(epsilons)
        if self.c < 0:
            lower, upper = log_complements(upper), log_complements(lower)
            # Outward by the rounding of these logarithms, which are at most 0.
            lower, upper = lower * (1 + 4 * UNIT), upper * (1 - 4 * UNIT) + 0.0
        else:
            upper = np.minimum(upper, chernoff_at(self._trial_bounds, self._trials, epsilons))
        if self.smoothing:
            kept = log_complements(self._log_gain(epsilons) - lower)
            # Outward by the rounding of the logarithms.
            lower = lower + kept - 4 * UNIT * (abs(lower) + abs(kept))
            lower = np.where(np.isnan(lower), -math.inf, lower)
        return lower, np.minimum(upper, 0.0)

    def log_bounds(self, epsilon: float) -> Bounds:
        """Return bounds on log delta(epsilon)."""
        lower, upper = self.log_bounds_at(np.array([epsilon]))
        method = "smoothed" if self.smoothing else self.method
        return Bounds(float(lower[0]), float(upper[0]), method)

    def _log_gain(self, epsilons: Reals) -> Reals:
        """Return the log of R(epsilon), at least what smoothing adds to delta, rounded up."""
        # The integrand without its poles.
        t, values, _, relative, absolute = self._transform
        weights = np.exp(values)
        weights[0] = 0.5
        shifts = np.asarray(1j * self.step * (self._mean - epsilons), dtype=complex)
        sums, terms = _block_sums(weights, shifts)
        sizes = np.abs(weights)
        phases = 4 * (abs(self._mean) + np.abs(epsilons)) + self._mean_rounding
        rounding = float(((8 + terms + relative + np.abs(values)) * sizes + absolute).sum())
        errors = rounding + phases * float(t @ sizes)
        factor = math.log(abs(self.c) * (1 + self.c)) + 2 * math.log(self.smoothing)
        prefactors = 32 + 8 * (abs(self.log_mgf) + np.abs(self.c * epsilons)) + self._mass_rounding
        end, width = self.smoothing * float(t[-1]), self.step * self.smoothing
        tail = min(math.exp(-0.5 * end * end) / end, math.sqrt(math.pi / 2))
        beyond = math.exp(self._log_rest) * tail / width
        sums = sums + beyond + UNIT * (errors + prefactors * np.abs(sums))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.maximum(sums, 0.0))
        return np.asarray(self._log_scales(epsilons) + factor + self.smoothing**2 / 8 + logs)

    # -- derivatives

    @_silent
    def slopes(self, epsilon: float) -> tuple[float, float]:
        """Return log delta(epsilon), without error bound, and its derivative in epsilon."""
        integrand, derivative = self._integrands(epsilon)
        total = float(integrand.real.sum())
        if not 0 < total < math.inf:
            return math.nan, math.nan
        value = float(self._log_scales(np.array([epsilon]))[0]) + math.log(total)
        ratio = -float(derivative.real.sum()) / total
        if self.c > 0:
            return value, ratio
        complement = log_complement(value)
        return complement, -ratio * math.exp(value - complement)


def _first_below(remainders: Reals, target: float) -> int | None:
    """Return the index of the first grid time beyond which all nodes stay below exp(target)."""
    small = np.flatnonzero(remainders <= target)
    return int(small[0]) if len(small) else None


def _block_sums(weights: Complexes, shifts: Complexes) -> tuple[Reals, int]:
    """Return Re sum_k weights_k exp(k shift) for many shifts, and the terms of a rounded sum.

    Each exponential is the product of a factor for the block of nodes and a factor for the place in
    the block, so that the sums take a matrix product and a few exponentials.
    """
    inner = math.ceil(math.sqrt(len(weights)))
    outer = -(-len(weights) // inner)
    blocks = np.zeros(inner * outer, dtype=complex)
    blocks[: len(weights)] = weights
    within = np.exp(np.outer(np.arange(inner), shifts))
    between = np.exp(np.outer(inner * np.arange(outer), shifts))
    return (blocks.reshape(outer, inner) @ within * between).real.sum(axis=0), inner + outer


def log_complement(log_value: float) -> float:
    """Return log(1 - exp(log_value)) to its last digits; -infinity for log_value >= 0."""
    if log_value < -math.log(2):
        return math.log1p(-math.exp(log_value))
    return math.log(-math.expm1(log_value)) if log_value < 0 else -math.inf


def log_complements(log_values: Reals) -> Reals:
    """Return log(1 - exp(x)) at each x to its last digits; -infinity for x >= 0."""
    log_values = np.minimum(log_values, 0.0)
    with np.errstate(divide="ignore"):
        small, large = np.log1p(-np.exp(log_values)), np.log(-np.expm1(log_values))
    return np.where(log_values < -math.log(2), small, large)


def _curvature_factor(width: float) -> float:
    """Return sqrt(2 pi) / width, the integrand's peak over the saddle estimate of its integral."""
    return math.sqrt(2 * math.pi) / width
