r"""What is delta(epsilon) of a composition? Laplace inversion, with every error bounded.

With M the product of the moment-generating functions of the composed losses,

    delta(epsilon) = 1 / (2 pi i) * integral over Re z = c of exp(-epsilon z) M(z) / (z (z + 1))
    dz,   c > 0,

and for -1 < c < 0 the integral is delta(epsilon) - 1 (the residue at 0), which keeps the digits of
delta near 1. The trapezoid rule of step h along the line is *exactly* ``sum_j exp(2 pi c j / h)
delta(epsilon + 2 pi j / h)`` (Poisson summation), so its error is a sum of aliases that Chernoff
bounds at other tilts control. Nodes are cut off where a proved bound on abs(M) makes the rest
negligible. Where the cut-off lies beyond the node budget, the composition is extended by a small
Gaussian loss, which can only raise delta and makes the integrand decay; and where no quadrature of
affordable size exists, the answer is a Chernoff bound from moments in closed form.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.composition import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> direction = decompose(event, "add-or-remove-one").directions[0]
>>> bounds = log_delta_bounds(direction, 8.0)
>>> print(f"{math.exp(bounds.upper):.10e} {bounds.method}")
2.0283809415e-08 contour
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dpcal.accountants.bounds import Bounds
from dpcal.accountants.composition import Direction
from dpcal.accountants.loss import UNIT, OutOfReach, Tilt
from dpcal.accountants.sums import MAX_TILT, LossSum, increasing_root, log_chernoff

__all__ = ["Contour", "epsilon_bounds", "log_delta_bounds"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Largest relative error that aliasing and truncation may each contribute.
_TOLERANCE = 2e-15
# Nodes of one contour, and complex multiplications spent on it, at most (about half a second).
_MAX_NODES = 1 << 19
_MAX_WORK = 2e8
_GRID_RATIO = 1.12
# A contour whose bounds on log delta are this close at the root is good enough for epsilon.
_ACCEPTED_WIDTH = 2e-12
# A closed form that loses more digits than this is replaced by a contour.
_ACCEPTED_ERROR = 1e-11


class Contour:
    """Nodes c + i k h of one composition, for every epsilon near the one whose saddle is c.

    Parameters
    ----------
    direction
        The losses that add up.
    c
        Real part of the line, in (0, inf) for delta or in (-1, 0) for 1 - delta.
    epsilon
        Where the saddle is: step and cut-off are chosen for this epsilon.
    """

    def __init__(self, direction: Direction, c: float, epsilon: float) -> None:
        self.c = c
        self.parts = direction.parts
        self._sum = LossSum(direction.parts)
        self._tilts: list[tuple[Tilt, int]] = [(loss.tilt(c), times) for loss, times in self.parts]
        log_mgf, mean, variance = self._sum([c])[0]
        self.log_mgf, self.mean, self.variance = float(log_mgf), float(mean), float(variance)
        curvature = self.variance + 1 / c**2 + 1 / (1 + c) ** 2
        self.width = 1 / math.sqrt(curvature)
        self.smoothing = 0.0
        self._choose_step(epsilon)
        self._choose_nodes(epsilon)
        self._evaluate()

    # -- choices made from bounds

    def _peak(self, epsilon: float) -> float:
        """Log of the integrand at the real node."""
        return self.log_mgf - self.c * epsilon - math.log(abs(self.c)) - math.log1p(self.c)

    def _choose_step(self, epsilon: float) -> None:
        """Largest h whose aliases, by Chernoff bounds at other tilts, are below the tolerance."""
        c, w = self.c, self.width
        spread = w * np.array([0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, 20.0])
        left_end = 0.0 if c > 0 else -1.0
        trials = np.concatenate([[left_end], c - spread, c + spread])
        right_end = math.inf if c > 0 else 0.0
        trials = trials[(trials >= left_end) & (trials <= right_end)]
        if c < 0:
            trials = np.append(trials, 0.0)
        cumulants = self._sum(trials)
        self._trials = trials
        self._trial_bounds = cumulants[:, 0] + log_chernoff(trials)
        expected = self._peak(epsilon) - math.log(curvature_factor(w))
        needed = self._trial_bounds - trials * epsilon - expected - math.log(_TOLERANCE)
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
        """Bound on log abs(M(c + i s) / M(c)) for every s in [t, ratio t], at each t."""
        total = -0.5 * (self.smoothing * t) ** 2
        for tilt, times in self._tilts:
            total = total + times * np.minimum(tilt.log_decay(t, ratio), 0.0)
        return total

    def _choose_nodes(self, epsilon: float) -> None:
        """Fewest nodes whose remainder is proved negligible; smooths if they are too many."""
        h = self.step
        points = sum(tilt.points for tilt, _ in self._tilts)
        budget = int(min(_MAX_NODES, max(256, _MAX_WORK / points)))
        log_sum = -math.log(curvature_factor(self.width)) - math.log(h / math.pi)
        target = log_sum + math.log(_TOLERANCE)
        end = math.ceil(math.log(budget) / math.log(_GRID_RATIO))
        grid = h * _GRID_RATIO ** np.arange(end + 1.0)
        # Where even the slowest part has fallen below any use, the grid may end.
        node = self._first_negligible(grid, target)
        if node is None:
            # exp(-(smoothing t)^2 / 2) reaches the target at the last affordable node.
            self.smoothing = math.sqrt(2 * max(1.0, math.log(budget) - target)) / (h * budget)
            node = self._first_negligible(grid, target)
            if node is None:
                node = len(grid) - 1
        self.nodes = int(grid[node] / h) + 2
        self.remainder = self._remainders[node]

    def _first_negligible(self, grid: Reals, target: float) -> int | None:
        """Index of the first grid time beyond which all nodes together stay below exp(target)."""
        h, c = self.step, self.c
        poles = 0.5 * (np.log1p((grid / c) ** 2) + np.log1p((grid / (1 + c)) ** 2))
        pieces = (
            self._log_decay(grid, _GRID_RATIO) - poles + np.log(grid * (_GRID_RATIO - 1) / h + 1)
        )
        # Beyond the grid the poles alone make the integrand fall at least like 1 / t^2.
        beyond = self._log_decay(grid[-1:], math.inf)[0] - poles[-1]
        pieces[-1] = beyond + math.log(grid[-1] / h + 1)
        self._remainders = np.logaddexp.accumulate(pieces[::-1])[::-1]
        small = np.flatnonzero(self._remainders <= target)
        return int(small[0]) if len(small) else None

    # -- values

    def _evaluate(self) -> None:
        """Log of the integrand over its value at the real node, less what depends on epsilon."""
        t = self.step * np.arange(self.nodes)
        z = self.c + 1j * t
        values = np.zeros(self.nodes, dtype=complex)
        rounding = np.full(self.nodes, 8.0)
        for tilt, times in self._tilts:
            ratio = tilt.log_ratio(self.step, self.nodes)
            values += times * ratio
            rounding += 4 * times * tilt.amplification * np.minimum(np.abs(ratio), 1.0)
        if self.smoothing:
            values -= 0.5 * (self.smoothing * t) ** 2
        self._log_smoothing = float(self._smoothing_at(np.array(self.c)))
        self._mean = self.mean + self.smoothing**2 * (self.c + 0.5)
        values -= np.log(z / self.c) + np.log((1 + z) / (1 + self.c))
        self._t, self._z, self._values, self._rounding = t, z, values, rounding

    def _integrand(self, epsilon: float) -> Complexes:
        values = np.exp(self._values + 1j * self._t * (self._mean - epsilon))
        values[0] = 0.5
        return np.asarray(values)

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
        alias = math.exp(min(700.0, self._log_alias(epsilon) - self._scale(epsilon)))
        tail = math.exp(min(700.0, self.remainder))
        phase = 4 * self._t * (abs(self._mean) + abs(epsilon))
        rounding = float(((self._rounding + phase) * np.abs(integrand)).sum())
        prefactor = 16 + 8 * (abs(self.log_mgf) + abs(self.c * epsilon))
        return alias + tail + UNIT * (rounding + prefactor * abs(total))

    def log_bounds(self, epsilon: float) -> Bounds:
        """Bounds on log delta(epsilon)."""
        lower, upper = self._log_interval(epsilon)
        method = "contour"
        if self.c < 0:
            lower, upper = _log_complement(upper), _log_complement(lower)
        else:
            upper = min(upper, float((self._trial_bounds - self._trials * epsilon).min()))
        if self.smoothing:
            method, lower = "smoothed", self._unsmoothed_lower(epsilon)
        return Bounds(lower, min(upper, 0.0), method)

    def _unsmoothed_lower(self, epsilon: float) -> float:
        """Best of delta_smoothed(epsilon + s) - P(xi > s) over s, with xi the added loss."""
        best = -math.inf
        size = -self._log_interval(epsilon)[1] if self.c > 0 else 0.0
        for margin in (3.0, 6.0, 12.0, 24.0, 48.0):
            deviations = math.sqrt(2 * (margin + max(0.0, size)))
            shifted = epsilon + deviations * self.smoothing + self.smoothing**2 / 2
            log_miss = -0.5 * deviations**2
            low, high = self._log_interval(shifted)
            if self.c < 0:
                low = _log_complement(high)
            if low > log_miss:
                best = max(best, low + math.log(-math.expm1(log_miss - low)))
        return best

    def slopes(self, epsilon: float) -> tuple[float, float]:
        """Log delta(epsilon) (no error bound) and its derivative in epsilon."""
        integrand = self._integrand(epsilon)
        total = float(integrand.real.sum())
        if total <= 0:
            return math.nan, math.nan
        value = self._scale(epsilon) + math.log(total)
        ratio = -float((self._z * integrand).real.sum()) / total
        if self.c > 0:
            return value, ratio
        complement = _log_complement(value)
        return complement, -ratio * math.exp(value - complement)

    def parameter_slope(
        self, epsilon: float, rates: list[dict[str, float]], times: list[float]
    ) -> float:
        """Derivative of log delta(epsilon) along a change of the parts' parameters.

        Parameters
        ----------
        epsilon
            Where.
        rates
            For each part, the derivative of each of its parameters along the change.
        times
            For each part, the derivative of its count.
        """
        integrand = self._integrand(epsilon)
        change = np.zeros(self.nodes, dtype=complex)
        for (loss, count), (tilt, _), rate, growth in zip(
            self.parts, self._tilts, rates, times, strict=True
        ):
            for parameter, value in rate.items():
                if value:
                    change += count * value * tilt.log_slope(self.step, self.nodes, parameter)
            if growth:
                log_mgf = float(loss.cumulants([self.c])[0, 0])
                ratio = tilt.log_ratio(self.step, self.nodes)
                change += growth * (log_mgf + ratio + 1j * self._t * tilt.mean)
        total = float(integrand.real.sum())
        if total <= 0:
            return math.nan
        relative = float((change * integrand).real.sum()) / total
        if self.c > 0:
            return relative
        value = self._scale(epsilon) + math.log(total)
        return -relative * math.exp(value - _log_complement(value))


def _log_complement(log_value: float) -> float:
    """log(1 - exp(log_value)); -infinity where that is not positive."""
    return math.log(-math.expm1(log_value)) if log_value < 0 else -math.inf


def curvature_factor(width: float) -> float:
    """sqrt(2 pi) / width: the saddle estimate of the integral is the integrand's peak over this."""
    return math.sqrt(2 * math.pi) / width


# -- the saddle


def _first_tilt(guess: float) -> float:
    """A first guess that a quadrature can reach; Newton's method moves on from there."""
    return min(max(guess, 1e-9), 64.0)


def _saddle(sum_: LossSum, epsilon: float) -> float:
    """Minimiser of K(c) - epsilon c - log abs(c) - log(1 + c).

    It lies on c > 0 for epsilon above the mean loss and is sought on (-1, 0) otherwise.
    """
    mean, variance = sum_.at_zero
    if epsilon < mean:
        return increasing_root(
            lambda c: _saddle_equation(sum_, c, epsilon), -1.0, 0.0, -1 / (2 + math.sqrt(variance))
        )
    gap = epsilon - mean
    guess = (gap + math.sqrt(gap * gap + 4 * variance)) / (2 * variance)
    return increasing_root(
        lambda c: _saddle_equation(sum_, c, epsilon), 0.0, math.inf, _first_tilt(guess)
    )


def _saddle_equation(sum_: LossSum, c: float, epsilon: float) -> tuple[float, float]:
    _, mean, variance = sum_([c])[0]
    value = mean - epsilon - 1 / c - 1 / (1 + c)
    return float(value), float(variance + 1 / c**2 + 1 / (1 + c) ** 2)


def _tilt_for_delta(sum_: LossSum, log_delta: float) -> tuple[float, float]:
    """The tilt c > 0 and epsilon whose saddle-point estimate of log delta is the given one."""

    def equation(c: float) -> tuple[float, float]:
        log_mgf, mean, variance = sum_([c])[0]
        epsilon = mean - 1 / c - 1 / (1 + c)
        curvature = variance + 1 / c**2 + 1 / (1 + c) ** 2
        estimate = (
            log_mgf - c * epsilon - math.log(c * (1 + c)) - 0.5 * math.log(2 * math.pi * curvature)
        )
        return float(log_delta - estimate), float(c * curvature)

    _, variance = sum_.at_zero
    guess = math.sqrt(max(-2 * log_delta, 0.1) / variance)
    c = increasing_root(equation, 0.0, math.inf, _first_tilt(guess))
    _, mean, _ = sum_([c])[0]
    return c, float(mean - 1 / c - 1 / (1 + c))


# -- the two questions


def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Bounds on log delta(epsilon) of one direction.

    Parameters
    ----------
    direction
        The losses that add up.
    epsilon
        Any finite number >= 0.
    """
    return _log_delta(direction, epsilon)[0]


def _log_delta(direction: Direction, epsilon: float) -> tuple[Bounds, Contour | None]:
    """Bounds on log delta(epsilon), and the contour that they came from, if any."""
    parts = direction.parts
    sum_ = LossSum(parts)
    if not parts or epsilon >= sum_.upper:
        return Bounds(-math.inf, -math.inf, "closed form"), None
    if len(parts) == 1 and parts[0][1] == 1:
        closed = parts[0][0].log_delta(epsilon)
        if closed is not None and closed[1] < _ACCEPTED_ERROR:
            value, error = closed
            return Bounds(
                value + math.log1p(-error), value + math.log1p(error), "closed form"
            ), None
    try:
        contour = Contour(direction, _saddle(sum_, epsilon), epsilon)
        return contour.log_bounds(epsilon), contour
    except OutOfReach:
        return _chernoff_bounds(sum_, epsilon), None


def _chernoff_bounds(sum_: LossSum, epsilon: float) -> Bounds:
    """Best Chernoff bound from closed-form moment bounds; the lower bound is trivial."""
    best = 0.0
    for c in np.geomspace(1e-6, MAX_TILT, 400):
        exponent = sum_.log_mgf_bound(float(c))
        margin = 8 * UNIT * (abs(exponent) + abs(c * epsilon) + 4)
        best = min(best, float(exponent - c * epsilon + log_chernoff(float(c)) + margin))
    return Bounds(-math.inf, best, "Chernoff")


def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Bounds on the smallest epsilon >= 0 with log delta(epsilon) <= ``log_delta``.

    Parameters
    ----------
    direction
        The losses that add up.
    log_delta
        Negative number, of any size.
    """
    sum_ = LossSum(direction.parts)
    if not direction.parts:
        return Bounds(0.0, 0.0, "closed form")
    closed = len(direction.parts) == 1 and direction.parts[0][1] == 1
    if not closed:
        try:
            bounds = _epsilon_on_contour(direction, sum_, log_delta)
            if bounds is not None:
                return bounds
        except OutOfReach:
            pass
    return _epsilon_by_bracketing(direction, sum_, log_delta)


def _epsilon_on_contour(direction: Direction, sum_: LossSum, log_delta: float) -> Bounds | None:
    """Newton's method in epsilon on the nodes of one contour; None where that fails."""
    mean, _ = sum_.at_zero
    c, epsilon = _tilt_for_delta(sum_, log_delta)
    if epsilon < mean:
        epsilon = max(epsilon, 0.0)
        c = _saddle(sum_, epsilon)
    found: float | None = epsilon
    for attempt in range(6):
        contour = Contour(direction, c, epsilon)
        found = _newton(contour, epsilon, log_delta)
        if found is None:
            return None
        bounds = contour.log_bounds(found)
        if bounds.upper - bounds.lower < _ACCEPTED_WIDTH or (
            bounds.method == "smoothed" and attempt
        ):
            return _outward(contour, found, log_delta)
        epsilon = found
        c = _saddle(sum_, epsilon)
    return None


def _newton(contour: Contour, epsilon: float, log_delta: float) -> float | None:
    """Root of the contour's log delta, clipped at 0."""
    for _ in range(50):
        value, slope = contour.slopes(epsilon)
        if not (math.isfinite(value) and slope < 0):
            return None
        step = max(epsilon + (log_delta - value) / slope, 0.0)
        if abs(step - epsilon) <= 4 * UNIT * step or step == epsilon:
            return step
        if abs(log_delta - value) < 4 * UNIT * abs(log_delta):
            return step
        epsilon = step
    return epsilon


def _outward(contour: Contour, epsilon: float, log_delta: float) -> Bounds:
    """Move away from the root on either side until the bounds on delta prove both ends."""
    bounds = contour.log_bounds(epsilon)
    _, slope = contour.slopes(epsilon)
    margin = 2 * UNIT * max(epsilon, 1e-300)
    upper = epsilon
    excess = (bounds.upper - log_delta) / -slope
    if bounds.upper > log_delta:
        gap = margin + excess * (1 + 1e-9)
        for _ in range(60):
            upper = epsilon + gap
            if contour.log_bounds(upper).upper <= log_delta:
                break
            gap *= 2
        else:
            upper = math.inf
    lower = epsilon
    if bounds.lower < log_delta:
        gap = margin + (log_delta - bounds.lower) / -slope * (1 + 1e-9)
        for _ in range(60):
            lower = max(0.0, epsilon - gap)
            if lower == 0.0 or contour.log_bounds(lower).lower >= log_delta:
                break
            gap *= 2
    return Bounds(lower, upper, bounds.method)


def _epsilon_by_bracketing(direction: Direction, sum_: LossSum, log_delta: float) -> Bounds:
    """Brent's method on the upper bound of log delta itself, one evaluation at a time."""
    seen: dict[float, Bounds] = {}

    def excess(epsilon: float) -> float:
        if epsilon not in seen:
            seen[epsilon] = log_delta_bounds(direction, epsilon)
        return max(seen[epsilon].upper, -1e300) - log_delta

    if excess(0.0) <= 0:
        return Bounds(0.0, 0.0, seen[0.0].method)
    high = min(1.0, sum_.upper)
    while excess(high) > 0:
        high = min(2 * high, sum_.upper)
    root = float(brentq(excess, 0.0, high, xtol=1e-300, rtol=4 * UNIT))
    gap = 4 * UNIT * root
    upper = root
    while excess(upper) > 0:
        upper = min(root + gap, high)
        gap *= 2
    # The lower bound on delta at an epsilon proves that no smaller epsilon meets the target.
    lower, gap = root, 4 * UNIT * root
    while lower > 0 and log_delta_bounds(direction, lower).lower < log_delta:
        lower = max(0.0, root - gap)
        gap *= 4
    return Bounds(lower, upper, log_delta_bounds(direction, upper).method)


def log_delta_slope(
    direction: Direction, epsilon: float, moved: Direction, change: float
) -> tuple[Bounds, float | None]:
    """Bounds on log delta(epsilon), and its derivative along a change of the mechanism.

    Parameters
    ----------
    direction
        The losses that add up.
    epsilon
        Any finite number >= 0.
    moved
        The same direction after a small change, part by part; its *parameters* are differenced,
        the derivative with respect to them comes from the nodes.
    change
        Size of that change.

    Returns
    -------
    (Bounds, float or None)
        None where the answer came from no contour, or the parts do not correspond.
    """
    bounds, contour = _log_delta(direction, epsilon)
    if contour is None or len(moved.parts) != len(direction.parts):
        return bounds, None
    rates, growths = [], []
    for (loss, times), (other, other_times) in zip(direction.parts, moved.parts, strict=True):
        if type(loss) is not type(other):
            return bounds, None
        rates.append(
            {
                name: (getattr(other, name) - getattr(loss, name)) / change
                for name in ("noise_multiplier", "sampling_probability")
                if hasattr(loss, name)
            }
        )
        growths.append((other_times - times) / change)
    slope = contour.parameter_slope(epsilon, rates, growths)
    return bounds, slope if math.isfinite(slope) else None
