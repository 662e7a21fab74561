"""What does a run over shuffled epochs cost? A bracket: from an attack below, a theorem above.

n = T b records; each of E epochs cuts a fresh uniform permutation of them into T batches of b.
Every record is in one batch of an epoch, but others move when it does, and no dominating pair is
known. The upper end is the theorem of docs/explanation/batches.md, "Shuffled epochs"; lower ends
are attacks on one data set, in which all other records contribute -1.

If b does not divide n, one more batch is smaller. Above, whoever is told a random set of T batches
that holds the record's faces T equal ones. Below, the record is in batch j with a probability p_j:
delta of the pair (sum p_j N(2 e_j), sum p_j N(e_j)) is convex and symmetric in p, epoch by epoch,
so that it is at least that of T + 1 equal batches.

Beside other mechanisms a run counts as a claim (epsilon, delta), which composes with them, or as
known batches; whoever sees more sees each, so that the larger lower end is one of all.

>>> from dpcal.accountants import events
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=1000, epochs=20)
>>> answer = epsilon(run, delta=1e-5, neighboring_relation="replace-special")
>>> print(f"[{answer.lower:.3f}, {answer.upper:.3f}] {answer.method}")
[0.041, 0.057] bracket: clones that release blanks
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.special import bdtrik, betaincc

from dpcal._internal import validate
from dpcal._internal.lazy import Module
from dpcal._internal.roots import NoBracket, Sides, Stop, bisect, brent, newton, secant
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds, Delta, Epsilon
from dpcal.accountants.curves.conversions import largest_mu
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.accountants.loaders.attacks import Attack, attacks
from dpcal.accountants.loaders.beside import beside as beside_of
from dpcal.accountants.losses.allocation import MixedAllocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.mechanisms.row import distance, dominating_pairs

_Answer = TypeVar("_Answer", Epsilon, Delta)

_BALLS = Module("dpcal.accountants.inversion.puts")

# Least and largest log(1 / alpha) that is tried, alpha the probability that a record is a clone.
_LOG_ALPHAS = 0.01, 12.0
# Share of delta that each of two failures may take: more leaves less for the allocation.
_SHARE = 0.02
# Relative margin of failure probabilities, for the rounding of their formulas.
_MARGIN = 1 + 1e-9
# Groups of numbers of clones, and the probability that there are more than in the last one's start.
_GROUPS, _RARE = 32, 1e-3
# Nats by which a contour's errors lie below a slack, a share of delta; its seconds, at most.
_NATS, _SECONDS = 6.0, 8.0
# Norm above which no shuffle gains: alpha would be too small for a clone.
_LARGEST_NORM = 2.0
_WIDTH = 2e-4
# The search for an upper end stops above the least one by less than this: factor on a target.
_INSIDE = 1 / (1 + 2 * _WIDTH)
_REACH = 12.0
# Least delta at which there is a share for failures: those of smaller numbers are not doubles.
_LEAST_DELTA = 1e-280
_GUESSES, _REFINEMENTS = 8, 2
# Most batches and epochs, up to which neighboring whole numbers are doubles.
_MOST = 2.0**53
# Relative margin of a noise in closed form, for the width of the answers that it is checked with.
_MORE_NOISE = 1 + 1e-9
_NAME, _BATCHES_KNOWN = "shuffling", "bracket: batches known"


def _checked(run: events.ShuffledEpochsDpEvent, relation: str) -> tuple[float, int, int]:
    """Return noise, batches and epochs."""
    sigma = validate.noise(noise_multiplier=run.noise_multiplier)
    T, E = (
        int(validate.within(1, _MOST, **{name: validate.count(**{name: getattr(run, name)})}))
        for name in ("batches", "epochs")
    )
    validate.flag(remainder=run.remainder)
    if relation == "add-or-remove-one":
        dominating_pairs(run, relation)  # refuses it
    validate.choice(("replace-one", "replace-special"), neighboring_relation=relation)
    return sigma, T, E


def _may_gain(sigma: float, T: int, relation: str) -> bool:
    """Return whether the theorem may have an upper end below that of known batches."""
    return T > 1 and relation == "replace-special" and 1 / sigma <= _LARGEST_NORM


@dataclass(frozen=True)
class Reduction:
    """Allocation to random numbers of batches, of which a shuffle costs no more, but for a slack.

    ``chance`` is that of a clone, ``law`` has numbers and probabilities, and ``slack`` is in delta.
    """

    sigma: float
    epochs: int
    chance: float
    law: tuple[tuple[int, float], ...]
    slack: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta of a shuffle."""
        added = MixedAllocation(self.sigma, self.law[0][0], "add", self.law)
        nats = _NATS - math.log(self.slack) + epsilon
        try:
            put = _BALLS.Put(((added, self.epochs),), epsilon, nats, _SECONDS)
        except OutOfReach:
            return 1.0
        largest: float = max(put.delta(epsilon, added=adds)[1] for adds in (False, True))
        return largest * _MARGIN + self.slack


def _chance(sigma: float, T: int, E: int, delta: float, epsilon: float) -> float:
    """Return the largest alpha whose slack is at most a share of delta; 0 if there is none."""
    if delta < _LEAST_DELTA:
        return 0.0
    log_factor = min(epsilon, 700.0) + math.log1p(math.exp(-epsilon)) + math.log(E * (T - 1))
    allowed = math.log(_SHARE * delta / _MARGIN) - log_factor

    def excess(x: float) -> float:
        value, error = log_gaussian_delta(x, 1 / sigma)
        return value + abs(error) - x - allowed

    # The slack falls with alpha, and the number of clones rises: the largest alpha is the best.
    least, most = _LOG_ALPHAS
    if not excess(most) <= 0:
        return 0.0
    at = least if excess(least) <= 0 else brent(excess, least, most, Stop(absolute=1e-4)).meet
    return math.exp(-at)


def reduction(sigma: float, T: int, E: int, delta: float, epsilon: float) -> Reduction | None:
    """Return what a shuffle reduces to; None where few of its records are clones.

    Numbers of clones are counted as the least of a group, and those that are too unlikely as
    failures. Distribution functions are rounded up, which makes the numbers smaller.
    """
    chance = _chance(sigma, T, E, delta, epsilon)
    if not chance:
        return None
    few = _SHARE * delta / E
    least = max(0, math.floor(bdtrik(few / _MARGIN, T - 1, chance)) - 1)
    most = min(T - 1, math.ceil(bdtrik(1 - _RARE, T - 1, chance)))
    starts = np.unique(np.linspace(least, max(most, least), _GROUPS).round().astype(int))
    below = np.minimum(betaincc(starts, T - starts, chance) * _MARGIN, 1.0)
    if below[0] > few:
        starts, below = np.append(0, starts), np.append(0.0, below)
    slack = _SHARE * delta + E * float(below[0])
    # What fails is given to the first group, too: more mass is no less delta.
    chances = np.diff(np.concatenate([[0.0], below[1:], [1.0]]))
    kept = chances > 0
    law = zip((starts[kept] + 1).tolist(), chances[kept].tolist(), strict=True)
    return Reduction(sigma, E, chance, tuple(law), slack)


def _limit(sigma: float, T: int, E: int, delta: float, epsilon: float) -> float:
    """Return about what :func:`_excess` does, by the limit of many batches and epochs."""
    chance = _chance(sigma, T, E, delta, epsilon)
    if not chance:
        return math.inf
    share = -math.expm1(T * math.log1p(-chance)) / (T * chance)
    mu = math.sqrt(E * min(math.expm1(min(sigma**-2.0, 600.0)) * share, sigma**-2.0))
    return log_gaussian_delta(epsilon, mu)[0] - math.log(delta)


def _excess(sigma: float, T: int, E: int, delta: float, epsilon: float) -> float:
    """Return log delta of a shuffle at an epsilon, by the theorem, less that of a target."""
    reduced = reduction(sigma, T, E, delta, epsilon)
    return math.inf if reduced is None else math.log(reduced.delta(epsilon) / delta)


def _least(value: Callable[[float], float], limit: Callable[[float], float], most: float) -> float:
    """Return an argument in (0, most] at which a value is at most 0, about the least; or ``most``.

    ``limit`` tells about where that is, at little cost.
    """
    lowest = math.log(most) - _REACH
    sides = Sides(meet=math.log(most), miss=lowest)
    near = bisect(lambda x: limit(math.exp(x)) <= 0, sides, Stop(absolute=_WIDTH)).meet
    # Its slope is known too: a step that is too long ends where bounds are loose.
    slope = (limit(math.exp(near + _WIDTH)) - limit(math.exp(near))) / _WIDTH
    excess = secant(lambda x: value(math.exp(x)), slope if -math.inf < slope < 0 else -2.0)
    try:
        sides = newton(excess, near, lowest, math.log(most), Stop(absolute=_WIDTH))
    except NoBracket as search:
        return min(math.exp(search.at), most) if search.meets else most
    return min(math.exp(sides.meet), most)


def _upper_epsilon(sigma: float, T: int, E: int, delta: float, highest: float) -> float:
    """Return about the least epsilon that the theorem gives, at most ``highest``."""
    excess, limit = (partial(each, sigma, T, E, delta) for each in (_excess, _limit))
    return _least(excess, limit, highest)


def _upper_delta(sigma: float, T: int, E: int, epsilon: float, highest: float) -> float:
    """Return the least delta that the theorem gives, at most ``highest``."""
    # The limit of many batches tells about where it is; every guess gives a bound.
    near = highest
    for _ in range(_GUESSES):
        near *= math.exp(min(0.0, _limit(sigma, T, E, near, epsilon)))
        near = max(near, _LEAST_DELTA)
    best = highest
    for _ in range(_REFINEMENTS):
        reduced = reduction(sigma, T, E, near, epsilon)
        near = best if reduced is None else reduced.delta(epsilon)
        if not near < best:
            break
        best = near * _MARGIN
    return best


def epsilon(
    run: events.ShuffledEpochsDpEvent,
    *,
    delta: float,
    neighboring_relation: str,
    beside: events.DpEvent | None = None,
) -> Epsilon:
    """Return a bracket of the epsilon of a run over shuffled epochs.

    Parameters
    ----------
    run
        The run.
    delta
        In (0, 1).
    neighboring_relation
        ``"replace-special"`` (a record contributes 0 and keeps its place) or ``"replace-one"``.
    beside
        Other mechanisms about the same records, if any.

    Raises
    ------
    UnsupportedEvent
        For ``"add-or-remove-one"``.
    """
    target = validate.probability(delta=delta)
    question = event_epsilon, _upper_epsilon, Attack.epsilon
    return _answered(run, beside, neighboring_relation, *question, delta=target)


def delta(
    run: events.ShuffledEpochsDpEvent,
    *,
    epsilon: float,
    neighboring_relation: str,
    beside: events.DpEvent | None = None,
) -> Delta:
    """Return a bracket of the delta of a run at an epsilon >= 0; see :func:`epsilon`."""
    at = validate.non_negative(epsilon=epsilon)
    question = event_delta, _upper_delta, Attack.delta
    return _answered(run, beside, neighboring_relation, *question, epsilon=at)


def _answered(
    run: events.ShuffledEpochsDpEvent,
    others: events.DpEvent | None,
    relation: str,
    price: Callable[..., _Answer],
    theorem: Callable[[float, int, int, float, float], float],
    attacked: Callable[[Attack, float], float],
    **given: float,
) -> _Answer:
    """Return a bracket from prices of known batches, a theorem's upper end, and attacks.

    With others beside, the run is a claim, or has known batches.
    """
    sigma, T, E = _checked(run, relation)
    ((name, at),) = given.items()

    def priced(event: events.DpEvent) -> _Answer:
        return price(event, neighboring_relation=relation, **given)

    known = events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), E)
    if others is not None:
        both = {_BATCHES_KNOWN: priced(events.ComposedDpEvent([known, others]))}

        def alone(at: float) -> _Answer:
            return price(run, neighboring_relation=relation, **{name: at})

        ends = beside_of(
            [alone], others, both, relation, claimed="bracket: a shuffle as a claim", **given
        )
        return type(both[_BATCHES_KNOWN]).of(ends, accountant=_NAME, neighboring_relation=relation)
    found, most = priced(known), T + run.remainder
    lower, upper, method = found.lower, found.upper, _BATCHES_KNOWN
    if most > 1 and relation == "replace-one":
        # All others, and the substitute, contribute -1: allocation of twice the contribution.
        twice = events.RandomAllocationDpEvent(sigma / 2, most)
        lower = price(events.SelfComposedDpEvent(twice, E), **given).lower
    elif most > 1:
        if upper > 0 and _may_gain(sigma, T, relation):
            better = theorem(sigma, T, E, at, upper), "bracket: clones that release blanks"
            upper, method = min((upper, method), better)
        lower = max(attacked(each, at) for each in attacks(sigma, most, E))
    ends = Bounds(min(lower, upper), upper, method)
    return type(found).of(ends, accountant=_NAME, neighboring_relation=relation)


def meets(
    run: events.ShuffledEpochsDpEvent, *, epsilon: float, delta: float, neighboring_relation: str
) -> bool:
    """Return whether the upper end of a run's price is sure to meet a target.

    The parameters are those of :func:`noise_multiplier`.
    """
    at, target = validate.positive(epsilon=epsilon), validate.probability(delta=delta)
    sigma, T, E = _checked(run, neighboring_relation)
    known = events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), E)
    if event_epsilon(known, delta=target, neighboring_relation=neighboring_relation).upper <= at:
        return True
    gains = _may_gain(sigma, T, neighboring_relation)
    return gains and _excess(sigma, T, E, target, at * _INSIDE) <= 0


def noise_multiplier(
    run: events.ShuffledEpochsDpEvent, *, epsilon: float, delta: float, neighboring_relation: str
) -> float:
    """Return about the least noise at which a run costs at most a target, by the upper end.

    The run's own noise has no say; the other parameters are those of :func:`epsilon`.

    Parameters
    ----------
    epsilon
        A number > 0.

    >>> run = events.ShuffledEpochsDpEvent(noise_multiplier=1.0, batches=100, epochs=100)
    >>> sigma = noise_multiplier(
    ...     run, epsilon=2.0, delta=1e-5, neighboring_relation="replace-special"
    ... )
    >>> print(f"{sigma:.2f}")
    4.26
    """
    at, target = validate.positive(epsilon=epsilon), validate.probability(delta=delta)
    _, T, E = _checked(run, neighboring_relation)

    mu = largest_mu(at, math.log(target))
    highest = distance(neighboring_relation) * math.sqrt(E) / mu * _MORE_NOISE
    if not _may_gain(highest, T, neighboring_relation):
        return highest
    inside = at * _INSIDE

    def of(bound: Callable[..., float]) -> Callable[[float], float]:
        return lambda x: bound(x, T, E, target, inside) if 1 / x <= _LARGEST_NORM else math.inf

    return _least(of(_excess), of(_limit), highest)
