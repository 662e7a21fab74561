r"""What is delta(epsilon) of a composition? Laplace inversion, with every error bounded.

The law of the composed loss is inverted on the contour through its saddle (:mod:`contour`). Where
single steps have rare large losses, it is cut into layers of these losses (:mod:`layers`), or split
into a bulk and jumps, each on a contour of its own; and where no quadrature of affordable size
exists, the answer is a Chernoff bound from moments in closed form. Every answer is an interval and
says how it was found.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> direction = decompose(event, "add-or-remove-one").directions[0]
>>> bounds = log_delta_bounds(direction, 8.0)
>>> print(f"{math.exp(bounds.upper):.10e} {bounds.method}")
2.0283809415e-08 contour
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.contour import FURTHEST, Contour, log_complement
from dpcal.accountants.inversion.failure import combine, epsilon_beyond
from dpcal.accountants.inversion.periodic_contour import LatticeContour
from dpcal.accountants.inversion.rare_losses import Ladder
from dpcal.accountants.inversion.saddle import MAX_TILT, MOST_LOOKS, root_of
from dpcal.accountants.inversion.transform import (
    CROWD,
    Bulk,
    Jumps,
    Measure,
    Total,
    Trimmed,
    split,
    trim,
)
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.discrete import LatticeLoss, convolve
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import IntervalLoss
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.losses.truncation import SURPLUS
from dpcal.accountants.rounding import UNIT

__all__ = ["Inversion", "epsilon_bounds", "log_delta_bounds", "log_delta_slope", "without_contour"]

Reals = NDArray[np.float64]

# A contour whose bounds on log delta are this close at the root is good enough for epsilon.
_ACCEPTED_WIDTH = 5e-10
# A closed form that loses more digits than this is replaced by a contour.
_ACCEPTED_ERROR = 1e-11
# Contours improve little on the closed forms of laws with corners, and of laws of which the closed
# form moves as much as its arguments' rounding makes it.
_ACCEPTED_ERRORS: dict[type, float] = {
    IntervalLoss: 1e-3,
    Gaussian: 1e-6,
    GaussianMixtures: 1e-6,
    SampledGaussian: 1e-6,
}
# A contour that takes more complex multiplications a part than this is tried in two parts.
_SPLIT_WORK = 4e6
# How far below the answer of a search lower ends are tried, where the search found none nearby.
_JUST_BELOW = (1e-9, 1e-5)
# Shares of epsilon at which delta is asked where it is out of reach.
_FURTHER_INSIDE = (0.99, 0.9, 0.5)
# Points at which a bracketing search may ask, where they are cheap and where they take contours.
_CHEAP_POINTS, _COSTLY_POINTS = 120, 6
# The same for compositions of more than so many distinct losses. Of crowds of them, every look at
# the law takes as many quadratures, so that these are looked at in fewer ways and not searched.
_MANY_PARTS, _FEW_POINTS = 8, 4
# A part whose logarithm is this far below the other is bounded instead of computed.
_NEGLIGIBLE = 45.0
# A split whose bounds on log delta are this close is taken without looking further; the same for
# crowds, and for a single contour of a crowd, which takes the least.
_TIGHT, _WIDE, _CLOSE = 1e-6, 1.0, 0.1
# What a trimmed law may leave out, less log delta, and how sharp its cuts are: in turn, until a
# contour is found. Sharp cuts are needed where large losses are not much rarer than delta.
_TRIMS = ((-37.0, 1.0), (-30.0, 3.0), (-22.0, 5.0), (-13.0, 8.0), (-7.0, 8.0), (-4.0, 16.0))
# Looks at the whole law of a crowd in search of a saddle: where the law changes from one peak to
# another, a search takes many and finds nothing of use.
_CROWD_LOOKS = 28
# Log delta where nothing is known, and how often a guess is improved.
_FIRST_GUESS, _GUESSES = -30.0, 4
# Complex multiplications that a trimmed contour may take.
_TRIMMED_WORK = 4e6
# Layers of a law, and complex multiplications for each, both at most.
_LAYERS, _LAYER_WORK = 24, 3e7
# Quadrature points in all layers together, at most.
_LAYER_POINTS = 2e6
# The largest loss that a contour for all of what is left may see, in standard deviations of that.
_RARE_JUMPS = 20.0
# A layer without a contour is bounded where it is this much smaller than the rest, in logarithms.
_BOUNDED = 5.0
# Steps of a search for epsilon, each with new layers; how close, in log delta, is close enough for
# Newton's method; the largest step in log epsilon; and the smallest epsilon that is told from 0.
_STEPS, _NEAR, _FARTHEST, _SMALLEST = 16, 4.0, 2.5, 1e-12
# How often what a sketch says is corrected.
_CORRECTIONS = 3
# What is cut off beyond all layers, less log delta, and tilts tried where a saddle is out of reach.
_LAYER_REST, _TRIALS = -37.0, 24
# Where to look for a cut: the valley of the integrand at these multiples of the saddle.
_CUTS = (1.0, 8.0)


def _first_tilt(guess: float) -> float:
    """A first guess that a quadrature can reach; Newton's method moves on from there."""
    return min(max(guess, 1e-9), 8.0)


def _looks(measure: Measure) -> int:
    """How often a law may be looked at in search of its saddle."""
    crowd = isinstance(measure, Total) and len(measure.parts) > CROWD
    return _CROWD_LOOKS if crowd else MOST_LOOKS


def _spread(measure: Measure) -> tuple[float, float]:
    """Mean and variance of a measure, if it has a variance: an atom has no saddle.

    Raises
    ------
    OutOfReach
        If it has none.
    """
    mean, variance = measure.at_zero
    if not (variance > 0 and math.isfinite(mean) and math.isfinite(variance)):
        raise OutOfReach
    return mean, variance


def _saddle(measure: Measure, epsilon: float, *, positive: bool = False) -> float:
    """Minimiser of K(c) - epsilon c - log abs(c) - log(1 + c).

    It lies on c > 0 for epsilon above the mean loss and is sought on (-1, 0) otherwise, unless
    ``positive`` asks for c > 0 in either case.
    """
    mean, variance = _spread(measure)

    def equation(measure: Measure, c: float) -> tuple[float, float]:
        _, mean, variance = measure.cumulants([c])[0]
        value = mean - epsilon - 1 / c - 1 / (1 + c)
        return float(value), float(variance + 1 / c**2 + 1 / (1 + c) ** 2)

    gap = epsilon - mean
    if gap < 0 and not positive:
        guess = -1 / (2 + math.sqrt(variance))
        return root_of(equation, measure, measure.sketch, -1.0, 0.0, guess)
    # Root of variance c^2 - gap c - 1, written without cancellation.
    root = math.sqrt(gap * gap + 4 * variance)
    guess = (gap + root) / (2 * variance) if gap >= 0 else 2 / (root - gap)
    start, looks = _first_tilt(guess), _looks(measure)
    return root_of(equation, measure, measure.sketch, 0.0, math.inf, start, looks=looks)


def _epsilon_estimate(measure: Measure, log_delta: float) -> float:
    """The epsilon whose saddle-point estimate of log delta is the given one."""

    def equation(measure: Measure, c: float) -> tuple[float, float]:
        log_mgf, mean, variance = measure.cumulants([c])[0]
        epsilon = mean - 1 / c - 1 / (1 + c)
        curvature = variance + 1 / c**2 + 1 / (1 + c) ** 2
        estimate = (
            log_mgf - c * epsilon - math.log(c * (1 + c)) - 0.5 * math.log(2 * math.pi * curvature)
        )
        return float(log_delta - estimate), float(c * curvature)

    _, variance = _spread(measure)
    guess = math.sqrt(max(-2 * log_delta, 0.1) / variance)
    start, looks = _first_tilt(guess), _looks(measure)
    c = root_of(equation, measure, measure.sketch, 0.0, math.inf, start, looks=looks)
    _, mean, _ = measure.cumulants([c])[0]
    return float(mean - 1 / c - 1 / (1 + c))


def _contour(
    measure: Measure, c: float, epsilon: float, *, excess: float = 0.0, spread: float = 0.0
) -> Contour:
    """One period of a contour for a measure on a lattice, where affordable; else a whole one."""
    if measure.lattice is not None:
        with contextlib.suppress(OutOfReach):
            return LatticeContour(measure, c, epsilon, excess=excess, spread=spread)
    return Contour(measure, c, epsilon, excess=excess, spread=spread)


class Inversion:
    """delta near one epsilon, from one contour or from several whose measures add up.

    Parameters
    ----------
    contours
        Contours that together invert the law, but for the rest.
    rest
        Chernoff bounds for each part that is too small to be computed: tilts, and log bounds at
        epsilon = 0. None where the only contour inverts all of the law.
    method
        How several contours, or one that does not invert all of the law, came about.
    """

    def __init__(
        self,
        contours: list[Contour],
        rest: list[tuple[Reals, Reals]] | None = None,
        method: str = "split",
    ) -> None:
        self.contours, self._rest, self._method = contours, rest, method
        self.margin = 4 * UNIT

    @classmethod
    def at(cls, total: Total, epsilon: float, *, spread: float = 0.0) -> Inversion:
        """Choose contours with their saddles at epsilon, good for a spread around it.

        One for the whole law, where that is cheap. Otherwise the cheapest that also proves a lower
        bound, of: the same; one without the rarest large losses; one for the bulk and one for the
        jumps. Failing that, the one with the smallest upper bound.
        """
        choices: list[Inversion] = []
        c = 1.0
        with contextlib.suppress(OutOfReach):
            c = _saddle(total, epsilon)
            choices.append(cls([_contour(total, c, epsilon, spread=spread)]))
            if choices[0].cheap(total) and choices[0].width(epsilon) < _TIGHT:
                return choices[0]
        # Where every look is costly, the more general way comes first, and last.
        crowd = len(total.parts) > CROWD
        if crowd and choices and choices[0].width(epsilon) < _CLOSE:
            return choices[0]
        for way in (_layered, _trimmed) if crowd else (_trimmed, _layered):
            with contextlib.suppress(OutOfReach):
                found = way(total, epsilon, spread)
                choices += found
                wide = _WIDE if crowd else _TIGHT
                settled = crowd or way is _layered or (found and found[-1].cheap(total))
                if found and settled and found[-1].width(epsilon) < wide:
                    return found[-1]
        work = min((choice.work for choice in choices), default=math.inf)
        loose = all(choice.loose for choice in choices)
        if not choices or (not crowd and (loose or work > _SPLIT_WORK * len(total.parts))):
            choices += _splits(total, max(c, 1.0), epsilon, spread)
        if not choices:
            raise OutOfReach
        known = []
        for choice in sorted(choices, key=lambda choice: (choice.loose, choice.work)):
            if choice.width(epsilon) < _TIGHT:
                return choice
            known.append(choice)
        return min(known, key=lambda choice: choice.log_bounds(epsilon).upper)

    @classmethod
    def trimmed(cls, measure: Trimmed, epsilon: float, spread: float = 0.0) -> Inversion:
        """Invert a trimmed law on a contour with its saddle at epsilon > its mean."""
        c = _saddle(measure, epsilon, positive=True)
        contour = Contour(measure, c, epsilon, spread=spread, work=_TRIMMED_WORK, smooth=False)
        return cls([contour], [_probability(measure.log_rest)], "trimmed")

    @classmethod
    def layered(cls, ladder: Ladder, epsilon: float, size: float, spread: float = 0.0) -> Inversion:
        """Invert the law layer by layer, each on a contour of its own (:mod:`layers`).

        Layers are taken from the largest losses downward until what is left fits one contour, or
        contributes nothing. Those too small against ``size``, a guess of log delta, are bounded.
        """
        search = _LayerSearch(epsilon, size, spread, _LAYER_WORK * len(ladder.parts) ** 0.5)
        search.rest.append(_probability(ladder.log_rest))
        bounded = None
        for index in range(_LAYERS):
            layer = ladder.layer(index) if index else None
            try:
                if layer is not None:
                    search.add(layer, _BOUNDED)
            except OutOfReach:
                break
            bounded = kept = ladder.kept(index)
            # Among losses much smaller than what may come, jumps are rare: no contour is short.
            level = ladder.level(index)
            rare = level > _RARE_JUMPS * math.sqrt(max(kept.at_zero[1], 0.0))
            if rare and level > 2 * epsilon:
                continue
            with contextlib.suppress(OutOfReach):
                if rare:
                    search.bound(kept, _NEGLIGIBLE)
                else:
                    search.add(kept, _NEGLIGIBLE, narrow=True)
                bounded = None
                break
        if bounded is not None:
            # What is left has neither a contour nor a layer of its own that has one.
            search.bound(bounded, -math.inf)
        if not search.contours:
            raise OutOfReach
        inversion = cls(search.contours, search.rest, "layers")
        inversion.margin += 4 * SURPLUS * sum(times for _, times in ladder.parts)
        return inversion

    @property
    def smoothed(self) -> bool:
        """Whether a contour had to be smoothed."""
        return any(contour.smoothing > 0 for contour in self.contours)

    @property
    def loose(self) -> bool:
        """Whether a contour had to be smoothed, or ends where more than rounding is left."""
        return self.smoothed or any(contour.coarse for contour in self.contours)

    @property
    def work(self) -> float:
        """Complex multiplications that the contours take."""
        return sum(contour.work for contour in self.contours)

    def cheap(self, total: Total) -> bool:
        """Whether to look for anything better would cost more, as it looks at every part."""
        return not self.loose and self.work <= _SPLIT_WORK * len(total.parts)

    def width(self, epsilon: float) -> float:
        """Width of the bounds on log delta(epsilon)."""
        bounds = self.log_bounds(epsilon)
        return 0.0 if bounds.upper == bounds.lower else bounds.upper - bounds.lower

    @property
    def reach(self) -> float:
        """Aliases grow at most by exp(reach times the distance) away from the saddles' epsilon."""
        return FURTHEST * max(contour.width for contour in self.contours)

    @property
    def whole(self) -> Contour | None:
        """The only contour, if the law was not split."""
        return self.contours[0] if self._rest is None else None

    def log_bounds(self, epsilon: float) -> Bounds:
        """Bounds on log delta(epsilon)."""
        if self._rest is None:
            return self.contours[0].log_bounds(epsilon)
        bounds = [contour.log_bounds(epsilon) for contour in self.contours]
        uppers = [item.upper for item in bounds]
        uppers += [float((constants - tilts * epsilon).min()) for tilts, constants in self._rest]
        return Bounds(
            float(np.logaddexp.reduce([item.lower for item in bounds])) - self.margin,
            min(0.0, float(np.logaddexp.reduce(uppers)) + self.margin),
            f"{self._method}, smoothed" if self.smoothed else self._method,
        )

    def log_bounds_at(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Lower and upper bounds on log delta at each of many epsilons."""
        found = [contour.log_bounds_at(epsilons) for contour in self.contours]
        if self._rest is None:
            return found[0]
        rest = [(bound - np.outer(epsilons, tilts)).min(axis=1) for tilts, bound in self._rest]
        lower = np.logaddexp.reduce([low for low, _ in found]) - self.margin
        upper = np.logaddexp.reduce([*(high for _, high in found), *rest]) + self.margin
        return lower, np.minimum(upper, 0.0)

    def slopes(self, epsilon: float) -> tuple[float, float]:
        """Log delta(epsilon) (no error bound) and its derivative in epsilon."""
        pairs = [contour.slopes(epsilon) for contour in self.contours]
        # A part too small for its own rounding has no logarithm and no weight.
        known = [pair for pair in pairs if math.isfinite(pair[0])]
        if not known:
            return math.nan, math.nan
        values, slopes = np.array(known).T
        total = float(np.logaddexp.reduce(values))
        return total, float(np.exp(values - total) @ slopes)


def _probability(log_rest: float) -> tuple[Reals, Reals]:
    """A part of so much probability, which bounds what it contributes to every delta."""
    return np.zeros(1), np.full(1, log_rest)


def _splits(total: Total, c: float, epsilon: float, spread: float) -> list[Inversion]:
    """Contours for a bulk and its jumps, cut at the valleys of the integrands near tilt c."""
    found = []
    for factor in _CUTS[:1] if len(total.parts) > CROWD else _CUTS:
        with contextlib.suppress(OutOfReach):
            pieces = split(total.parts, factor * c)
            if pieces is not None:
                found.append(_pair(*pieces, epsilon, spread))
    return found


def _split_at(total: Total, epsilon: float) -> Inversion:
    """Contours for a bulk and its jumps at the saddle of the whole law, and for nothing else."""
    found = _splits(total, max(_saddle(total, epsilon), 1.0), epsilon, 0.0)
    if not found:
        raise OutOfReach
    return found[0]


def _pair(bulk: Bulk, jumps: Jumps, epsilon: float, spread: float) -> Inversion:
    """Contours for a bulk and its jumps; the smaller of them only bounded, where that is enough."""
    nothing = [_probability(-math.inf)]
    if bulk.is_nothing:
        saddle = _saddle(jumps, epsilon, positive=True)
        return Inversion([_contour(jumps, saddle, epsilon, spread=spread)], nothing)
    lines = [_ChernoffLine.at(bulk, epsilon), _ChernoffLine.at(jumps, epsilon)]
    large, small = sorted(lines, key=lambda line: -line.log_bound(epsilon))
    contours = [_contour(large.measure, large.saddle, epsilon, spread=spread)]
    excess = contours[0].log_estimate(epsilon) - small.log_bound(epsilon)
    if excess > _NEGLIGIBLE:
        return Inversion(contours, [(small.tilts, small.bounds)])
    excess = max(0.0, excess)
    second = _contour(small.measure, small.saddle, epsilon, excess=excess, spread=spread)
    return Inversion([*contours, second], nothing)


def _trims(total: Total) -> tuple[tuple[float, float], ...]:
    """How to trim a law, in turn."""
    return _TRIMS[::3] if len(total.parts) > CROWD else _TRIMS


def _trimmed(total: Total, epsilon: float, spread: float) -> list[Inversion]:
    """A contour without rare large losses, which are cut where they are negligible; or none."""
    log_delta = _FIRST_GUESS
    for gap, sharpness in _trims(total):
        with contextlib.suppress(OutOfReach):
            for _ in range(_GUESSES):
                measure = trim(total.parts, log_delta + gap, sharpness)
                if measure is None:
                    return []
                inversion = Inversion.trimmed(measure, epsilon, spread)
                estimate = min(inversion.contours[0].log_estimate(epsilon), 0.0)
                if estimate > log_delta - 3.0:
                    return [inversion]
                log_delta = estimate
    return []


def _layered(total: Total, epsilon: float, spread: float) -> list[Inversion]:
    """Contours for the layers of a law, taken around the right size of delta."""
    size = min(_single_jump(total, epsilon), total.log_delta_bound)
    if total.sketch is not None:
        size = min(_layered(total.sketch, epsilon, spread)[-1].slopes(epsilon)[0], size)
    for _ in range(_GUESSES):
        ladder = Ladder(total.parts, size + _LAYER_REST)
        inversion = Inversion.layered(ladder, epsilon, size, spread)
        estimate = min(inversion.slopes(epsilon)[0], 0.0)
        if math.isnan(estimate):
            raise OutOfReach
        if estimate > size - 3.0:
            return [inversion]
        size = estimate
    raise OutOfReach


def _single_jump(total: Total, epsilon: float) -> float:
    """Log of the sum of the steps' own deltas, a first guess where steps seldom lose anything."""
    found = [-math.inf]
    for loss, times in total.parts:
        closed = loss.log_delta(epsilon)
        if closed is not None and closed[1] < 1.0:
            found.append(math.log(times) + closed[0])
    largest = float(np.logaddexp.reduce(found))
    return largest if largest > -math.inf else _FIRST_GUESS


class _ChernoffLine:
    """Chernoff bounds of a measure at some tilts, good for every epsilon."""

    def __init__(self, measure: Measure, tilts: Reals, bounds: Reals, saddle: float | None) -> None:
        self.measure, self.tilts, self.bounds, self._saddle = measure, tilts, bounds, saddle

    @classmethod
    def at(cls, measure: Measure, epsilon: float) -> _ChernoffLine:
        """At tilts around the saddle."""
        saddle = _saddle(measure, epsilon, positive=True)
        tilts = saddle * np.array([0.8, 0.9, 1.0, 1.1, 1.2])
        return cls(measure, tilts, measure.log_chernoff(tilts), saddle)

    @classmethod
    def within_reach(cls, measure: Measure, epsilon: float) -> _ChernoffLine:
        """The same; where the saddle is out of reach, at the largest tilts that are not."""
        with contextlib.suppress(OutOfReach):
            return cls.at(measure, epsilon)
        c = min(1.0 / max(epsilon, 1 / MAX_TILT), MAX_TILT)
        reached: list[tuple[float, float]] = []
        for _ in range(_TRIALS):
            try:
                reached.append((c, float(measure.log_chernoff(np.array([c]))[0])))
                c *= 2.0
            except OutOfReach:
                if reached:
                    break
                c /= 4.0
        if not reached:
            raise OutOfReach
        tilts, bounds = np.array(reached).T
        return cls(measure, tilts, bounds, None)

    @property
    def saddle(self) -> float:
        """The saddle."""
        if self._saddle is None:
            raise OutOfReach
        return self._saddle

    def log_bound(self, epsilon: float) -> float:
        """Upper bound on log delta(epsilon)."""
        return float((self.bounds - self.tilts * epsilon).min())


class _LayerSearch:
    """Contours found so far for a law's layers, and bounds on those that are too small."""

    def __init__(self, epsilon: float, size: float, spread: float, work: float) -> None:
        self.contours: list[Contour] = []
        self.rest: list[tuple[Reals, Reals]] = []
        self.size = size
        self._epsilon, self._spread, self._work = epsilon, spread, work
        self._points = _LAYER_POINTS

    def bound(self, measure: Measure, least: float) -> None:
        """Bound a measure that is smaller than the rest by this much, in logarithms.

        Raises
        ------
        OutOfReach
            If it is not.
        """
        line = _ChernoffLine.within_reach(measure, self._epsilon)
        if self.size - line.log_bound(self._epsilon) < least:
            raise OutOfReach
        self.rest.append((line.tilts, line.bounds))

    def add(self, measure: Measure, least: float, *, narrow: bool = False) -> None:
        """Find a measure its contour, perhaps one that says more than a size; or else bound it.

        Raises
        ------
        OutOfReach
            If there is no such contour, and the measure is not as much smaller than the rest.
        """
        epsilon = self._epsilon
        line = _ChernoffLine.within_reach(measure, epsilon)
        excess = self.size - line.log_bound(epsilon)
        if excess < _NEGLIGIBLE:
            try:
                self._add_contour(measure, line.saddle, max(0.0, excess), narrow=narrow)
            except OutOfReach:
                if excess < least:
                    raise
            else:
                return
        self.rest.append((line.tilts, line.bounds))

    def _add_contour(self, measure: Measure, saddle: float, excess: float, *, narrow: bool) -> None:
        contour = Contour(
            measure,
            saddle,
            self._epsilon,
            excess=excess,
            spread=self._spread,
            work=self._work,
            smooth=False,
        )
        self._points -= contour.line.points
        if self._points < 0:
            raise OutOfReach
        bounds = contour.log_bounds(self._epsilon)
        # What remains uncertain of the value, which may be far smaller than the integrand.
        gap = log_complement(bounds.lower - bounds.upper) if bounds.upper > bounds.lower else 0.0
        if narrow and bounds.upper + gap > max(self.size, bounds.lower) + math.log(_TIGHT):
            raise OutOfReach
        self.contours.append(contour)
        self.size = max(self.size, bounds.lower)


def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Bounds on log delta(epsilon) of one direction.

    Parameters
    ----------
    direction
        The losses that add up.
    epsilon
        Any finite number >= 0.
    """
    log_finite, given = direction.finite
    if log_finite < 0:
        return combine(log_finite, log_delta_bounds(given, epsilon))
    bounds = _log_delta(direction, epsilon)[0]
    below = direction.below
    if below is None:
        return bounds
    return Bounds(log_delta_bounds(below, epsilon).lower, bounds.upper, f"rounded, {bounds.method}")


def _best(bounds: Bounds, direction: Direction, epsilon: float) -> Bounds:
    """The smallest of the given upper bound, those of sampling and support alone, perhaps Renyi's.

    The last is asked where no lower end is proved.
    """
    total = Total(direction.parts)
    uppers = [
        (bounds.upper, bounds.method),
        (total.log_delta_bound + 8 * UNIT, "sampling"),
        (total.log_support_bound(epsilon), "support"),
    ]
    tighter = total.renyi_is_tighter
    if bounds.lower == -math.inf < bounds.upper or tighter:
        other = renyi.log_delta_bounds(direction, epsilon)
        uppers.append((other.upper, other.method))
    upper, method = min(uppers)
    # What holds for the pair bounds no mechanism from below, where theorems say more than the pair.
    single = len(direction.parts) == 1 and direction.parts[0][1] == 1
    lower = -math.inf if tighter and not single else bounds.lower
    return Bounds(min(lower, upper), upper, method)


def without_contour(direction: Direction, epsilon: float) -> Bounds | None:
    """Bounds on log delta(epsilon) where they take no contour, None elsewhere."""
    parts = direction.parts
    if not parts or epsilon >= Total(parts).upper:
        return Bounds(-math.inf, -math.inf, "closed form")
    if len(parts) == 1 and parts[0][1] == 1:
        closed = parts[0][0].log_delta(epsilon)
        accepted = _ACCEPTED_ERRORS.get(type(parts[0][0]), _ACCEPTED_ERROR)
        if closed is not None and closed[1] < accepted:
            bounds = Bounds.around(*closed, "closed form")
            return _best(bounds, direction, epsilon) if Total(parts).renyi_is_tighter else bounds
    if len(parts) == 1 and isinstance(parts[0][0], LatticeLoss):
        exact = convolve(parts[0][0], parts[0][1], epsilon)
        if exact is not None and exact[1] < 0.5:
            return Bounds.around(*exact, "convolution")
    return None


def _log_delta(direction: Direction, epsilon: float) -> tuple[Bounds, Inversion | None]:
    """Bounds on log delta(epsilon), and the contours that they came from, if any."""
    bounds = without_contour(direction, epsilon)
    if bounds is not None:
        return bounds, None
    total = Total(direction.parts)
    try:
        inversion = Inversion.at(total, epsilon)
        return _best(inversion.log_bounds(epsilon), direction, epsilon), inversion
    except OutOfReach:
        # Renyi's bound, which has moments in closed form where no others are affordable.
        unknown = Bounds(-math.inf, 0.0, "no bound")
        return _best(_before(total, epsilon, unknown), direction, epsilon), None


def _before(total: Total, epsilon: float, bounds: Bounds) -> Bounds:
    """The same, or with the upper bound at a smaller epsilon, as delta falls.

    Close to the largest loss no contour may reach where one does further inside.
    """
    if math.isfinite(total.upper) and len(total.parts) <= CROWD:
        for share in _FURTHER_INSIDE:
            with contextlib.suppress(OutOfReach):
                found = Inversion.at(total, share * epsilon).log_bounds(share * epsilon)
                if found.upper < bounds.upper:
                    return Bounds(bounds.lower, found.upper, found.method)
    return bounds


def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Bounds on the smallest epsilon >= 0 with log delta(epsilon) <= ``log_delta``.

    Parameters
    ----------
    direction
        The losses that add up.
    log_delta
        Negative number, of any size.
    """
    log_finite, given = direction.finite
    if log_finite < 0:
        support = Total(given.parts).upper
        return epsilon_beyond(
            log_finite, log_delta, lambda target: epsilon_bounds(given, target), support
        )
    below = direction.below
    if below is not None:
        # Contours bound the rounded losses only.
        upper = _narrow(direction, log_delta)
        lower = _narrow(below, log_delta).lower
        return Bounds(min(lower, upper.upper), upper.upper, f"rounded, {upper.method}")
    return _narrow(direction, log_delta)


def _narrow(direction: Direction, log_delta: float) -> Bounds:
    """The same, where all losses are finite and taken as they are."""
    total = Total(direction.parts)
    if not direction.parts:
        return Bounds(0.0, 0.0, "closed form")
    found = _epsilon_by_inversion(direction, total, log_delta)
    bounds = found or _epsilon_by_bracketing(direction, total, log_delta)
    if total.renyi_is_tighter:
        single = len(direction.parts) == 1 and direction.parts[0][1] == 1
        bounds = bounds if single else Bounds(0.0, bounds.upper, bounds.method)
    elif bounds.lower > 0 and bounds.upper - bounds.lower < 1e-6 * bounds.upper:
        return bounds
    if found is None:
        # A search starts from Renyi's epsilon, and ends no higher.
        return bounds
    other = renyi.epsilon_bounds(direction, log_delta)
    if other.upper < bounds.upper:
        return Bounds(min(bounds.lower, other.upper), other.upper, other.method)
    return bounds


def _epsilon_by_inversion(direction: Direction, total: Total, log_delta: float) -> Bounds | None:
    """The same from contours; None where there are none, or single answers are better searched."""
    closed = len(direction.parts) == 1 and direction.parts[0][1] == 1
    # Few atoms alone have an exact sum.
    loss, times = direction.parts[0]
    atomic = len(direction.parts) == 1 and isinstance(loss, LatticeLoss)
    atomic = atomic and convolve(loss, times, 0.0) is not None  # type: ignore[arg-type]
    if closed or atomic:
        return None
    with contextlib.suppress(OutOfReach):
        return _epsilon_on_contour(total, log_delta)
    return None


def _epsilon_on_contour(total: Total, log_delta: float) -> Bounds | None:
    """Newton's method in epsilon on the nodes of one inversion; None where that fails."""
    if total.log_delta_bound + 8 * UNIT <= log_delta:
        return Bounds(0.0, 0.0, "sampling")
    epsilon = None
    with contextlib.suppress(OutOfReach):
        epsilon = max(0.0, _epsilon_estimate(total, log_delta))
        plain = Inversion([_contour(total, _saddle(total, epsilon), epsilon)])
        if plain.cheap(total) and plain.width(epsilon) < _TIGHT:
            return _solved(plain, lambda at: Inversion.at(total, at), epsilon, log_delta)
    for way in (_epsilon_on_trims, _epsilon_on_layers):
        found = way(total, log_delta)
        if found is not None:
            return found
    if epsilon is None:
        return None
    if len(total.parts) <= CROWD:
        return _solved(None, lambda at: Inversion.at(total, at), epsilon, log_delta)
    inversion = _split_at(total, epsilon)
    if inversion.width(epsilon) > _TIGHT:
        return None
    return _solved(inversion, lambda at: _split_at(total, at), epsilon, log_delta, accepted=_TIGHT)


def _epsilon_on_trims(total: Total, log_delta: float) -> Bounds | None:
    """The same for a trimmed law."""
    for gap, sharpness in _trims(total):
        measure = trim(total.parts, log_delta + gap, sharpness)
        if measure is None:
            break
        with contextlib.suppress(OutOfReach):
            found = _epsilon_on_trimmed(measure, log_delta)
            if found is not None:
                return found
    return None


def _epsilon_on_trimmed(measure: Trimmed, log_delta: float) -> Bounds | None:
    epsilon = max(0.0, _epsilon_estimate(measure, log_delta))
    return _solved(None, lambda at: Inversion.trimmed(measure, at), epsilon, log_delta)


def _epsilon_on_layers(total: Total, log_delta: float) -> Bounds | None:
    """The same layer by layer, with contours of their own at every epsilon on the way."""
    with contextlib.suppress(OutOfReach):
        ladder = Ladder(total.parts, log_delta + _LAYER_REST)

        def invert(at: float) -> Inversion:
            return Inversion.layered(ladder, at, log_delta)

        if total.sketch is not None:
            return _followed(invert, total.sketch, log_delta)
        return _searched(invert, _epsilon_of_single_jump(total, log_delta), log_delta)
    return None


def _followed(
    invert: Callable[[float], Inversion], sketch: Total, log_delta: float
) -> Bounds | None:
    """Solve where the sketch meets the target, corrected by how far off it was the last time."""
    target = log_delta
    for _ in range(_CORRECTIONS):
        near = _epsilon_on_layers(sketch, target)
        if near is None or near.upper < _SMALLEST:
            break
        inversion = invert(near.upper)
        value, _ = inversion.slopes(near.upper)
        if abs(value - log_delta) < _NEAR:
            return _solved(inversion, invert, near.upper, log_delta, accepted=_TIGHT)
        target += log_delta - value
    return None


def _searched(
    invert: Callable[[float], Inversion], epsilon: float, log_delta: float
) -> Bounds | None:
    """Newton's method on logarithms, with a new inversion at every step until it is close."""
    low, high = 0.0, math.inf
    for _ in range(_STEPS):
        inversion = invert(epsilon)
        value, slope = inversion.slopes(epsilon)
        if not math.isfinite(value) or slope >= 0:
            # What was found is less than its own rounding, and so far below the target.
            value, slope = -math.inf, -1.0
        if abs(value - log_delta) < _NEAR:
            return _solved(inversion, invert, epsilon, log_delta, accepted=_TIGHT)
        low, high = (epsilon, high) if value > log_delta else (low, epsilon)
        change = min(max((log_delta - value) / (slope * epsilon), -_FARTHEST), _FARTHEST)
        step = epsilon * math.exp(change)
        if not low < step < high:
            step = math.sqrt(low * high) if low > 0 else high / math.exp(_FARTHEST)
        epsilon = step
        if epsilon < _SMALLEST:
            break
    return None


def _epsilon_of_single_jump(total: Total, log_delta: float) -> float:
    """The epsilon at which the deltas of single steps add up to the given one, or nearly 0."""
    low, high = math.log(_SMALLEST), math.log(1e6)
    for _ in range(30):
        middle = (low + high) / 2
        above = _single_jump(total, math.exp(middle)) > log_delta
        low, high = (middle, high) if above else (low, middle)
    return math.exp(low)


def _solved(
    inversion: Inversion | None,
    invert: Callable[[float], Inversion],
    epsilon: float,
    log_delta: float,
    accepted: float = _ACCEPTED_WIDTH,
) -> Bounds | None:
    """Solve on the nodes around epsilon, and anew around what was found; None if it runs away."""
    for _ in range(3):
        inversion = inversion or invert(epsilon)
        found = _newton(inversion, epsilon, log_delta)
        if found is None:
            return None
        bounds = inversion.log_bounds(found)
        tight = bounds.upper - bounds.lower < accepted
        if tight or abs(found - epsilon) * inversion.reach <= 1.0:
            return _outward(inversion, found, log_delta)
        epsilon, inversion = found, None
    return None


def _newton(inversion: Inversion, epsilon: float, log_delta: float) -> float | None:
    """Root of the inversion's log delta, clipped at 0; None where it is not found.

    Where the law is a bulk with rare jumps, log delta bends both ways: Newton's steps are kept
    inside the bracket of what was seen.
    """
    low, high = 0.0, math.inf
    for iteration in range(60):
        value, slope = inversion.slopes(epsilon)
        if not (math.isfinite(value) and slope < 0):
            return None
        step = max(epsilon + (log_delta - value) / slope, 0.0)
        # The next correction would be of the order of this one's square.
        if abs((step - epsilon) * slope) < 1e-7 or step == epsilon:
            return step
        low, high = (max(low, epsilon), high) if value > log_delta else (low, min(high, epsilon))
        if math.isfinite(high) and (iteration > 12 or not low <= step <= high):
            step = (low + high) / 2
        epsilon = step
    return None


def _outward(inversion: Inversion, epsilon: float, log_delta: float) -> Bounds:
    """Move away from the root on either side until the bounds on delta prove both ends."""
    bounds = inversion.log_bounds(epsilon)
    _, slope = inversion.slopes(epsilon)
    margin = 2 * UNIT * max(epsilon, 1e-300)
    upper = epsilon
    excess = (bounds.upper - log_delta) / -slope
    if bounds.upper > log_delta:
        gap = margin + excess * (1 + 1e-9)
        for _ in range(60):
            upper = epsilon + gap
            if inversion.log_bounds(upper).upper <= log_delta:
                break
            gap *= 2
        else:
            upper = math.inf
    lower = epsilon
    if bounds.lower < log_delta:
        gap = margin + (log_delta - bounds.lower) / -slope * (1 + 1e-9)
        for _ in range(60):
            lower = max(0.0, epsilon - gap)
            if lower == 0.0 or inversion.log_bounds(lower).lower >= log_delta:
                break
            gap *= 2
    return Bounds(lower, upper, bounds.method)


def _epsilon_by_bracketing(direction: Direction, total: Total, log_delta: float) -> Bounds:
    """A safeguarded secant on the upper bound of log delta, from Renyi's epsilon downward.

    Every point that was asked proves something: the answer is the smallest epsilon found to meet
    the target, and the largest one found to miss it. Points that took contours are few.
    """
    asked: dict[float, Bounds] = {}

    def excess(epsilon: float) -> float:
        asked[epsilon] = log_delta_bounds(direction, epsilon)
        return max(asked[epsilon].upper, -1e300) - log_delta

    first = renyi.epsilon_bounds(direction, log_delta)
    meet, method = first.upper, first.method
    if len(direction.parts) > CROWD:
        # Two more looks at a crowd would seldom say more.
        return Bounds(0.0, meet, method)
    miss, at_miss = 0.0, excess(0.0)
    if at_miss <= 0:
        return Bounds(0.0, 0.0, asked[0.0].method)
    at_meet = min(excess(meet), 0.0)
    costly = _FEW_POINTS if len(direction.parts) > _MANY_PARTS else _COSTLY_POINTS
    while len(asked) < (_CHEAP_POINTS if _cheap(asked) else costly):
        # The secant's point, kept inside the bracket and away from a stuck end.
        step = at_miss / (at_miss - at_meet) if at_meet < 0 else 0.5
        middle = miss + (meet - miss) * min(max(step, 0.02), 0.98)
        if meet - miss <= 1e-12 * meet or not miss < middle < meet:
            break
        value = excess(middle)
        if value > 0:
            miss, at_miss, at_meet = middle, value, at_meet / 2
        else:
            meet, at_meet, at_miss, method = middle, value, at_miss / 2, asked[middle].method
    proved = [point for point, bounds in asked.items() if bounds.lower >= log_delta]
    # Close to the end of a law with an atom there, delta stays large until it falls to 0.
    for share in _JUST_BELOW if math.isfinite(total.upper) else ():
        if max(proved, default=0.0) < (1 - 1e-3) * meet:
            below = (1 - share) * meet
            proved += [below] if log_delta_bounds(direction, below).lower >= log_delta else []
    return Bounds(min(max(proved, default=0.0), meet), meet, method)


def _cheap(asked: dict[float, Bounds]) -> bool:
    """Whether no answer so far took a contour."""
    return all(item.method in ("closed form", "convolution") for item in asked.values())


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
    if direction.finite[0] < 0:
        return log_delta_bounds(direction, epsilon), None
    bounds, inversion = _log_delta(direction, epsilon)
    rates = _rates(direction, moved, change)
    if inversion is None or rates is None:
        return bounds, None
    slope = math.nan
    if inversion.whole is not None:
        slope = inversion.whole.parameter_slope(epsilon, *rates)
    if not math.isfinite(slope):
        slope = (log_delta_bounds(moved, epsilon).upper - bounds.upper) / change
    return bounds, slope if math.isfinite(slope) else None


def _rates(
    direction: Direction, moved: Direction, change: float
) -> tuple[list[dict[str, float]], list[float]] | None:
    """Derivatives of the parts' parameters and counts; None where the parts do not correspond."""
    if len(moved.parts) != len(direction.parts):
        return None
    rates, growths = [], []
    for (loss, times), (other, other_times) in zip(direction.parts, moved.parts, strict=True):
        known = isinstance(loss, Gaussian | SampledGaussian | FixedBatchGaussian)
        if type(loss) is not type(other) or not (known or loss == other):
            return None
        rates.append(
            {
                name: (getattr(other, name) - getattr(loss, name)) / change
                for name in ("noise_multiplier", "sampling_probability")
                if known and hasattr(loss, name)
            }
        )
        growths.append((other_times - times) / change)
    return rates, growths
