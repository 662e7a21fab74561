"""Which way of inverting a law is taken? The cheapest that proves a lower bound as well.

The law of a composition may be inverted on one contour, without its rarest large losses, in layers
of large losses, or as a bulk and its jumps. docs/architecture.md counts how often each way wins and
what its loss would cost.

>>> from dpcal.accountants.inversion.transform import Total
>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> invert(Total(((Gaussian(2.0), 8),)), 4.0).log_bounds(4.0).method
'contour'
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from dpcal.accountants.inversion.contour import Contour, log_complement
from dpcal.accountants.inversion.inversion import Inversion
from dpcal.accountants.inversion.jumps import Jumps, split
from dpcal.accountants.inversion.periodic_contour import LatticeContour
from dpcal.accountants.inversion.rare_losses import Layers, trimmed
from dpcal.accountants.inversion.tilts import ChernoffBounds, saddle_tilt
from dpcal.accountants.inversion.transform import MANY_LOSSES, Measure, Product, Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.truncation import SURPLUS
from dpcal.accountants.rounding import UNIT

__all__ = [
    "NEGLIGIBLE_REST",
    "TIGHT",
    "TRIMS",
    "has_many_losses",
    "invert",
    "invert_as_split",
    "invert_in_layers",
    "invert_on_one_contour",
    "invert_trimmed",
    "is_cheap",
    "single_step_log_delta",
]

# Complex multiplications a loss up to which a contour is cheap: to look for a better way would cost
# more.
_CHEAP_WORK = 4e6
# Width of bounds on log delta at which an inversion is taken without a further try: six digits of
# delta.
TIGHT = 1e-6
# Width of bounds on log delta at which a way of inverting many losses is taken: one try more costs
# as much as a whole answer.
_TIGHT_OF_MANY = 1.0
# Width of bounds on log delta at which one contour of many losses is taken.
_CLOSE = 0.1
# A part whose logarithm is this far below the other is bounded instead of computed: exp(-45) is a
# tenth of a thousandth of a unit.
_NEGLIGIBLE = 45.0
# Log of the probability that a trimmed law may leave out, less log delta, and how sharp its cuts
# are. They are tried in turn until a contour is found: sharp cuts are needed where large losses are
# not much rarer than delta.
TRIMS = ((-37.0, 1.0), (-30.0, 3.0), (-22.0, 5.0), (-13.0, 8.0), (-7.0, 8.0), (-4.0, 16.0))
# Log of the probability beyond all layers, less log delta: less than a unit of delta.
NEGLIGIBLE_REST = -37.0
# Log delta that is assumed where nothing is known of it.
_FIRST_GUESS = -30.0
# How often a guess at log delta is improved.
_GUESSES = 4
# How far an estimate of log delta may lie below the guess that the cuts were chosen for.
_GUESSED = 3.0
# Complex multiplications that a trimmed contour may take: it is meant to be cheap.
_TRIMMED_WORK = 4e6
# Layers of a law at most. With few of them, small losses are left without a contour.
_MOST_LAYERS = 24
# Complex multiplications for each layer at most, times the root of the number of losses.
_LAYER_WORK = 3e7
# Share of the number of losses that takes the place of its root where it is more: so many losses
# have no cheaper way.
_SHARE_OF_MANY = 0.1
# Quadrature points in all layers together, which bound the memory to a few hundred megabytes: half
# of them leave a thousand losses of which some are large without a lower end.
_LAYER_POINTS = 4e6
# The largest loss that a contour for all that is left may see, in standard deviations of the rest:
# larger ones are rare jumps, and a law with rare jumps has no short contour.
_RARE_JUMPS = 20.0
# A layer without a contour is bounded where it is this much smaller than the rest, in logarithms:
# the bounds are then up to exp(-5) apart.
_BOUNDED = 5.0
# A cut is sought in the valley of the integrand at these multiples of the saddle. Without the
# second, one answer in fifty has an upper end that is a fifth larger in log delta.
_VALLEYS = (1.0, 8.0)
# Log of a relative error of a closed form above which it is no guess.
_GUESS_ERROR = 1.0


def has_many_losses(total: Total) -> bool:
    """Whether a law is that of so many distinct losses that few ways of inverting it are tried."""
    return len(total.parts) > MANY_LOSSES


def is_cheap(inversion: Inversion, total: Total) -> bool:
    """Whether the search for a better inversion would cost more, as it evaluates every loss."""
    return not inversion.loose and inversion.work <= _CHEAP_WORK * len(total.parts)


def _contour(
    measure: Measure, c: float, epsilon: float, *, excess: float = 0.0, spread: float = 0.0
) -> Contour:
    """One period of a contour for a measure on a lattice, where affordable; else a whole one."""
    if measure.lattice is not None:
        with contextlib.suppress(OutOfReach):
            return LatticeContour(measure, c, epsilon, excess=excess, spread=spread)
    return Contour(measure, c, epsilon, excess=excess, spread=spread)


def invert(total: Total, epsilon: float, *, spread: float = 0.0) -> Inversion:
    """Choose contours with their saddles at epsilon.

    One contour for the whole law is taken where it is cheap. Otherwise the cheapest way that also
    proves a lower bound is taken, of: that contour; one without the rarest large losses; one for
    each layer of losses; one for the bulk and one for the jumps. Failing that, the way with the
    smallest upper bound is taken.

    Parameters
    ----------
    total
        The law.
    epsilon
        Any finite number >= 0.
    spread
        How far from epsilon, in standard deviations of the tilted law, the contours are to serve.

    Raises
    ------
    OutOfReach
        If there is no contour of affordable size.
    """
    choices: list[Inversion] = []
    many, c = has_many_losses(total), 1.0
    with contextlib.suppress(OutOfReach):
        c = saddle_tilt(total, epsilon)
        choices.append(Inversion([_contour(total, c, epsilon, spread=spread)]))
        # The width takes all the work of the contour: it is asked for only where it may decide.
        cheap = is_cheap(choices[0], total)
        if (cheap or many) and choices[0].width(epsilon) < (_CLOSE if many else TIGHT):
            return choices[0]
    # If every evaluation is costly, the more general way is tried first; elsewhere it is tried
    # last.
    for way in (_layered, _trimmed) if many else (_trimmed, _layered):
        with contextlib.suppress(OutOfReach):
            found = way(total, epsilon, spread)
            if found is not None:
                choices.append(found)
                settled = many or way is _layered or is_cheap(found, total)
                if settled and found.width(epsilon) < (_TIGHT_OF_MANY if many else TIGHT):
                    return found
    work = min((choice.work for choice in choices), default=math.inf)
    loose = all(choice.loose for choice in choices)
    if not choices or (not many and (loose or work > _CHEAP_WORK * len(total.parts))):
        for factor in _VALLEYS[:1] if many else _VALLEYS:
            with contextlib.suppress(OutOfReach):
                at = factor * max(c, 1.0)
                choices.append(invert_as_split(total, epsilon, at, spread=spread))
    if not choices:
        raise OutOfReach
    for choice in sorted(choices, key=lambda choice: (choice.loose, choice.work)):
        if choice.width(epsilon) < TIGHT:
            return choice
    return min(choices, key=lambda choice: choice.log_bounds(epsilon).upper)


def invert_on_one_contour(total: Total, epsilon: float) -> Inversion:
    """Invert a law on one contour through its saddle at epsilon, however long the contour is."""
    return Inversion([_contour(total, saddle_tilt(total, epsilon), epsilon)])


# -- without the rarest large losses


def trims_of(total: Total, epsilon: float, log_delta: float) -> list[tuple[float, float]]:
    """Return how to trim a law, in turn.

    Of many losses each way takes as long as a whole answer. Of so many that a subset speaks for
    them, no way is tried whose contour would be too long, as the subset's own says.

    Parameters
    ----------
    total
        The law.
    epsilon, log_delta
        About where, and about how much.
    """
    trims = TRIMS[::3] if has_many_losses(total) else TRIMS
    subset = total.subset
    if subset is None:
        return list(trims)
    work = _TRIMMED_WORK * len(subset.parts) / len(total.parts)

    def serves(gap: float, sharpness: float) -> bool:
        with contextlib.suppress(OutOfReach):
            measure = trimmed(subset.parts, log_delta + gap, sharpness)
            return measure is not None and bool(invert_trimmed(measure, epsilon, work=work))
        return False

    return [each for each in trims if serves(*each)]


def invert_trimmed(
    measure: Product, epsilon: float, spread: float = 0.0, work: float = _TRIMMED_WORK
) -> Inversion:
    """Invert a trimmed law on one contour with its saddle at epsilon > its mean."""
    c = saddle_tilt(measure, epsilon, positive=True)
    contour = Contour(measure, c, epsilon, spread=spread, work=work, smooth=False)
    return Inversion([contour], [ChernoffBounds.of_probability(measure.log_rest)], "trimmed")


def _trimmed(total: Total, epsilon: float, spread: float) -> Inversion | None:
    """A contour without rare large losses, which are cut where they are negligible."""
    log_delta = _FIRST_GUESS
    for gap, sharpness in trims_of(total, epsilon, log_delta):
        with contextlib.suppress(OutOfReach):
            for _ in range(_GUESSES):
                measure = trimmed(total.parts, log_delta + gap, sharpness)
                if measure is None:
                    return None
                inversion = invert_trimmed(measure, epsilon, spread)
                estimate = min(inversion.contours[0].log_estimate(epsilon), 0.0)
                if estimate > log_delta - _GUESSED:
                    return inversion
                log_delta = estimate
    return None


# -- a bulk and its jumps


def invert_as_split(total: Total, epsilon: float, c: float, *, spread: float = 0.0) -> Inversion:
    """Invert a law as a bulk and its jumps, cut at the valley of its integrand at tilt c.

    Raises
    ------
    OutOfReach
        If no loss has two parts, or one of the two laws has no contour of affordable size.
    """
    pieces = split(total.parts, c)
    if pieces is None:
        raise OutOfReach
    return _bulk_and_jumps(*pieces, epsilon, spread)


def _bulk_and_jumps(bulk: Product, jumps: Jumps, epsilon: float, spread: float) -> Inversion:
    """Contours for a bulk and its jumps; the smaller of them only bounded, where that is enough."""
    if bulk.is_zero:
        saddle = saddle_tilt(jumps, epsilon, positive=True)
        return Inversion([_contour(jumps, saddle, epsilon, spread=spread)], method="split")
    parts = [(measure, ChernoffBounds.at_saddle(measure, epsilon)) for measure in (bulk, jumps)]
    (large, above), (small, bounds) = sorted(parts, key=lambda part: -part[1].log_bound(epsilon))
    assert above.saddle is not None
    assert bounds.saddle is not None
    contours = [_contour(large, above.saddle, epsilon, spread=spread)]
    excess = contours[0].log_estimate(epsilon) - bounds.log_bound(epsilon)
    if excess > _NEGLIGIBLE:
        return Inversion(contours, [bounds], "split")
    excess = max(0.0, excess)
    contours.append(_contour(small, bounds.saddle, epsilon, excess=excess, spread=spread))
    return Inversion(contours, method="split")


# -- layer by layer


def _layered(total: Total, epsilon: float, spread: float) -> Inversion:
    """Contours for the layers of a law, taken around the right size of delta."""
    size = min(single_step_log_delta(total, epsilon), total.log_delta_bound)
    subset = total.subset
    if subset is not None:
        guess = _layered(subset, epsilon, spread)
        if guess.vague:
            raise OutOfReach
        size = min(guess.slopes(epsilon)[0], size)
    for _ in range(_GUESSES):
        layers = Layers(total.parts, size + NEGLIGIBLE_REST)
        inversion = invert_in_layers(layers, epsilon, size, spread)
        estimate = min(inversion.slopes(epsilon)[0], 0.0)
        inversion.vague = math.isnan(estimate)
        if inversion.vague or estimate > size - _GUESSED:
            return inversion
        size = estimate
    raise OutOfReach


def single_step_log_delta(total: Total, epsilon: float) -> float:
    """Log of the sum of the steps' own deltas, a guess where steps seldom lose anything."""
    found = [-math.inf]
    for loss, times in total.parts:
        closed = loss.log_delta(epsilon)
        if closed is not None and closed[1] < _GUESS_ERROR:
            found.append(math.log(times) + closed[0])
    largest = float(np.logaddexp.reduce(found))
    return largest if largest > -math.inf else _FIRST_GUESS


def invert_in_layers(layers: Layers, epsilon: float, size: float, spread: float = 0.0) -> Inversion:
    """Invert a law layer by layer, each on a contour of its own.

    Layers are taken from the largest losses downward until all that is left fits one contour, or
    contributes nothing. Layers too small against ``size``, a guess of log delta, are bounded.

    Raises
    ------
    OutOfReach
        If no layer has a contour, or one that has none is too large to be bounded.
    """
    search = _LayerSearch(layers, epsilon, size, spread)
    bounded: Product | None = None
    for index in range(_MOST_LAYERS):
        layer = layers.between(index) if index else None
        try:
            if layer is not None:
                search.add(layer, _BOUNDED)
        except OutOfReach:
            break
        bounded = rest = layers.below(index)
        # Among losses much smaller than what may come, jumps are rare: no contour is short.
        level = layers.level(index)
        _, variance = (rest.subset or rest).at_zero
        rare = level > _RARE_JUMPS * math.sqrt(max(variance, 0.0))
        if rare and level > 2 * epsilon:
            continue
        with contextlib.suppress(OutOfReach):
            if rare:
                search.bound(rest, _NEGLIGIBLE)
            else:
                search.add(rest, _NEGLIGIBLE, narrow=True)
            bounded = None
            break
    if bounded is not None:
        # All that is left has neither a contour nor a layer of its own that has one.
        search.bound(bounded, -math.inf)
    if not search.contours:
        raise OutOfReach
    margin = 4 * UNIT + 4 * SURPLUS * sum(times for _, times in layers.parts)
    return Inversion(search.contours, search.rest, "layers", margin)


class _LayerSearch:
    """Contours found so far for a law's layers, and bounds on those that are too small."""

    def __init__(self, layers: Layers, epsilon: float, size: float, spread: float) -> None:
        self.contours: list[Contour] = []
        self.rest = [ChernoffBounds.of_probability(layers.log_rest)]
        self.size = size
        self._epsilon, self._spread = epsilon, spread
        number = len(layers.parts)
        self._work = _LAYER_WORK * max(number**0.5, _SHARE_OF_MANY * number)
        self._points = _LAYER_POINTS

    def bound(self, measure: Measure, least: float) -> None:
        """Bound a measure that is smaller than the rest by this much, in logarithms.

        Raises
        ------
        OutOfReach
            If it is not.
        """
        bounds = ChernoffBounds.within_reach(measure, self._epsilon)
        if self.size - bounds.log_bound(self._epsilon) < least:
            raise OutOfReach
        self.rest.append(bounds)

    def add(self, measure: Measure, least: float, *, narrow: bool = False) -> None:
        """Find a measure its contour, or bound it where it is much smaller than the rest.

        Parameters
        ----------
        measure
            A layer, or the part below all layers.
        least
            By how much the measure must be smaller than the rest to be bounded, in logarithms.
        narrow
            Whether only a contour with close bounds is taken.

        Raises
        ------
        OutOfReach
            If there is no such contour, and the measure is not as much smaller than the rest.
        """
        bounds = ChernoffBounds.within_reach(measure, self._epsilon)
        excess = self.size - bounds.log_bound(self._epsilon)
        if excess < _NEGLIGIBLE:
            try:
                self._add_contour(measure, bounds.saddle, max(0.0, excess), narrow=narrow)
            except OutOfReach:
                if excess < least:
                    raise
            else:
                return
        self.rest.append(bounds)

    def _add_contour(
        self, measure: Measure, saddle: float | None, excess: float, *, narrow: bool
    ) -> None:
        if saddle is None:
            raise OutOfReach
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
        # The uncertainty of the value, which may be far smaller than the integrand.
        gap = log_complement(bounds.lower - bounds.upper) if bounds.upper > bounds.lower else 0.0
        if narrow and bounds.upper + gap > max(self.size, bounds.lower) + math.log(TIGHT):
            raise OutOfReach
        self.contours.append(contour)
        self.size = max(self.size, bounds.lower)
