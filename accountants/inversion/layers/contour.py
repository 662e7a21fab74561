"""One contour of a measure: nodes, cut-off and step are chosen from bounds.

The identity, the aliases and the cut-off are those of ``_ext/contour.h``, for c > 0, without
smoothing; a measure here is the part of a law in which a loss is large, or the rest of the law.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> from dpcal.accountants.inversion.layers.measures import Product
>>> contour = Contour(Product([(Gaussian(2.0), 8)]), 1.5, 4.0)
>>> contour.nodes, f"{math.exp(contour.log_bounds(4.0).upper):.10f}"
(25, '0.0058380131')
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.layers.measures import Measure
from dpcal.accountants.inversion.limits import CONTOUR
from dpcal.accountants.inversion.saddle import chernoff_at
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["FURTHEST", "Contour"]

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
# Logarithm at which the size of an error is capped: its exponential is still a double.
_HUGE = 700.0
# An integrand without a correct digit may be NaN; its sum then has no bounds.
_silent = np.errstate(over="ignore", invalid="ignore")


class Contour:
    """Nodes c + i k h for one measure, for epsilons near the one whose saddle is c.

    Parameters
    ----------
    measure
        The measure that is inverted.
    c
        Real part > 0 of the line.
    epsilon
        Where the saddle is: step and cut-off are chosen for this epsilon.
    excess
        Log of the factor by which the error may grow: the value is added to a larger one.
    work
        Complex multiplications that may be spent on the nodes.

    Attributes
    ----------
    nodes, step
        Number of nodes and their distance.
    points
        Complex multiplications that one node takes.
    width
        Width of the integrand's peak along the line.

    Raises
    ------
    OutOfReach
        If no affordable number of nodes has a negligible remainder.
    """

    def __init__(
        self,
        measure: Measure,
        c: float,
        epsilon: float,
        *,
        excess: float = 0.0,
        work: float = CONTOUR.work,
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
        self._choose_step(measure, epsilon)
        if not 0 < self.step < math.inf:
            raise OutOfReach
        self._choose_nodes(work)

    # -- choices made from bounds

    def _choose_step(self, measure: Measure, epsilon: float) -> None:
        """Choose the largest step whose aliases are below the tolerance, by Chernoff bounds."""
        c, w = self.c, self.width
        left = c - w * _SPREADS
        trials = np.concatenate([[0.0], left[left >= 0], c + w * _SPREADS])
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
        peak = self._log_peak(epsilon) - math.log(math.sqrt(2 * math.pi) / w)
        needed = self._trial_bounds - trials * epsilon - peak - self._log_tolerance
        steps = 2 * math.pi * np.abs(trials - c) / np.maximum(needed, 1.0)
        self.step = min(float(steps[trials < c].max()), float(steps[trials > c].max()))

    def _log_aliases(self, epsilon: float) -> float:
        """Return the log of a bound on the sum of all aliases at an epsilon."""
        a = self._trials
        distance = np.abs(a - self.c) * (2 * math.pi / self.step)
        with np.errstate(divide="ignore"):
            series = np.log(-np.expm1(-distance))
        bounds = self._trial_bounds - distance - series - epsilon * a
        return float(np.logaddexp(bounds[a < self.c].min(), bounds[a > self.c].min()))

    def _choose_nodes(self, work: float) -> None:
        """Choose the fewest nodes with a negligible remainder."""
        h = self.step
        budget = int(min(CONTOUR.nodes, max(1.0, work / self.points)))
        log_sum = -math.log(math.sqrt(2 * math.pi) / self.width) - math.log(h / math.pi)
        target = log_sum + self._log_tolerance
        grid = h * _GRID_RATIO ** np.arange(
            math.ceil(math.log(budget) / math.log(_GRID_RATIO)) + 1.0
        )
        remainders = self._remainders(grid, target)
        small = np.flatnonzero(remainders <= target)
        if not len(small) and not remainders[-1] < log_sum + math.log(CONTOUR.error_of_jumps):
            raise OutOfReach
        node = int(small[0]) if len(small) else len(grid) - 1
        self._remainder = float(remainders[min(node, len(remainders) - 1)])
        self.nodes = int(grid[node] / h) + 2

    def _remainders(self, grid: Reals, target: float) -> Reals:
        """Return the log of a bound on all nodes beyond each grid time, to far below the target."""
        h, c = self.step, self.c
        poles = 0.5 * (np.log1p((grid / c) ** 2) + np.log1p((grid / (1 + c)) ** 2))
        counts = np.log(grid * (_GRID_RATIO - 1) / h + 1)
        pieces = np.empty(len(grid))
        for start in range(0, len(grid), CONTOUR.check):
            rows = slice(start, start + CONTOUR.check)
            pieces[rows] = (
                self._line.log_decay(grid[rows], _GRID_RATIO) - poles[rows] + counts[rows]
            )
            last = min(start + CONTOUR.check, len(grid)) - 1
            # The bound on the rest cannot be smaller than the last piece: it is not computed yet.
            if pieces[last] >= target - 3 and last < len(grid) - 1:
                continue
            # Further out the poles leave at most c (1 + c) / t^2, and, with the larger m of
            # both distances, 1 / (1 + (t / m)^2): the rest is one node and an integral.
            rest = float(self._line.log_decay(grid[last:][:1], math.inf)[0])
            beyond = min(c * (1 + c) / grid[last], 0.5 * math.pi * (1 + c))
            rest += math.log(math.exp(-poles[last]) + beyond / h)
            if rest < target - 3 or last == len(grid) - 1:
                break
        pieces = np.append(pieces[:last], rest)
        return np.asarray(np.logaddexp.accumulate(pieces[::-1])[::-1])

    # -- values

    @cached_property
    def _nodes(self) -> tuple[Reals, Complexes, Complexes, Reals]:
        """Times, log integrand less the factor of epsilon, nodes z, and rounding in units."""
        t = np.asarray(self.step * np.arange(self.nodes), dtype=float)
        values, z = self._line.log_ratio(self.step, self.nodes), self.c + 1j * t
        relative, absolute = self._line.rounding(self.step, values)
        poles = (z / self.c) * ((1 + z) / (1 + self.c))
        values = values - np.log(poles)
        rounding = (8 + relative) * np.exp(values.real) + absolute / np.abs(poles)
        return t, np.asarray(values), np.asarray(z), np.asarray(rounding)

    def drop_points(self) -> None:
        """Keep the nodes alone, and not the points of the transform: most of the memory."""
        self._nodes  # noqa: B018 -- computed here, if they are not known
        del self._line

    def _integrand(self, epsilon: float) -> Complexes:
        """Return the integrand at the nodes over its value at the real node, which counts half."""
        t, values, _, _ = self._nodes
        integrand = np.exp(values + 1j * t * (self.mean - epsilon))
        integrand[0] = 0.5
        return np.asarray(integrand)

    def _log_peak(self, epsilon: float) -> float:
        """Return the log of the integrand at the real node."""
        return self.log_mgf - self.c * epsilon - math.log(self.c) - math.log1p(self.c)

    @_silent
    def log_bounds(self, epsilon: float) -> Bounds:
        """Return bounds on the log of the measure's part of delta(epsilon)."""
        t, _, _, rounding = self._nodes
        integrand = self._integrand(epsilon)
        total = float(integrand.real.sum())
        scale = self._log_peak(epsilon) + math.log(self.step / math.pi)
        phases = 4 * (abs(self.mean) + abs(epsilon)) + self._mean_rounding
        prefactors = 16 + 8 * (abs(self.log_mgf) + abs(self.c * epsilon)) + self._mass_rounding
        error = math.exp(min(_HUGE, self._log_aliases(epsilon) - scale))
        error += math.exp(min(_HUGE, self._remainder))
        units = rounding.sum() + phases * (t * np.abs(integrand)).sum() + prefactors * abs(total)
        error += UNIT * float(units)
        upper = float(chernoff_at(self._trial_bounds, self._trials, np.array([epsilon]))[0])
        if total + error > 0:
            upper = min(upper, scale + math.log(total + error))
        # A sum that is NaN gives no bounds.
        lower = scale + math.log(total - error) if total > error else -math.inf
        return Bounds(lower, min(upper, 0.0), "contour")

    @_silent
    def slopes(self, epsilon: float) -> tuple[float, float]:
        """Return the log of that part, without error bound, and its derivative in epsilon."""
        integrand = self._integrand(epsilon)
        total = float(integrand.real.sum())
        if not 0 < total < math.inf:
            return math.nan, math.nan
        value = self._log_peak(epsilon) + math.log(self.step / math.pi) + math.log(total)
        return value, -float((self._nodes[2] * integrand).real.sum()) / total
