"""What does a run over shuffled epochs cost? A bracket: from an attack below, a theorem above.

n = T b records; each of E epochs cuts a fresh uniform permutation of them into T batches of b.
Every record is in one batch of an epoch, but others move when it does, and no dominating pair is
known. The upper end is the theorem of docs/accountants.md, "Shuffled epochs"; the lower ends are
attacks on one data set, in which all other records contribute -1.

>>> from dpcal.accountants import events
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=1000, epochs=20)
>>> answer = epsilon(run, delta=1e-5, neighboring_relation="replace-special")
>>> print(f"[{answer.lower:.3f}, {answer.upper:.3f}] {answer.method}")
[0.041, 0.057] bracket: clones that release blanks
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, norm

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.characteristic import epsilon_bounds, log_delta_bounds
from dpcal.accountants.correlated.bounds.allocation import LARGEST_NORM, Allocated
from dpcal.accountants.correlated.bounds.base import least_epsilon
from dpcal.accountants.directions import Direction
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.accountants.inversion.parity import epsilon_by_parity, log_delta_by_parity
from dpcal.accountants.losses.allocation import MixedAllocation
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.errors import UnsupportedEvent

__all__ = ["delta", "epsilon"]

Floats = NDArray[np.float64]

# Logarithms of 1 / alpha that are tried, alpha the probability that a record is a clone.
_LOG_ALPHAS = np.linspace(0.02, 12.0, 600)
# Share of delta that each of two failures may take: more leaves less for the allocation.
_SHARE = 0.02
# Relative margin of failure probabilities, for the rounding of their formulas.
_MARGIN = 1 + 1e-9
# Ratio of neighboring guesses of the answer, and their number.
_GUESS_RATIO = 0.95
_GUESSES = 200
# Excess of a guess over the answer for the guess before.
_ABOVE = 1.02
# Groups of numbers of clones, and the probability that there are more than in the last one's start.
_GROUPS, _RARE = 32, 1e-3
# Width of what parity tells, relative to epsilon and in log delta, at which it is taken.
_CLOSE = 1e-3
# Norm above which no shuffle gains: alpha would be too small for a clone.
_LARGEST_NORM = 2.0
# Refinements of a guess that holds, and of a delta.
_REFINEMENTS = 4
# Cells of a statistic, and places of the cyclic sum.
_CELLS = 200_001
_SUM_CELLS = 40_001
_PLACES = 1 << 15
# Places of the composed law at most, and least mass of a cell that is kept: both only lower it.
_MOST_PLACES = 1 << 22
_LEAST_MASS = 1e-15


def _checked(run: events.ShuffledEpochsDpEvent, relation: str) -> tuple[float, int, int]:
    """Return noise, batches and epochs."""
    sigma = _validate.noise(noise_multiplier=run.noise_multiplier)
    T, E = _validate.count(batches=run.batches), _validate.count(epochs=run.epochs)
    if relation == "add-or-remove-one":
        raise UnsupportedEvent(
            f"No theorem here prices {run!r} under neighboring relation {relation!r}. A record "
            "that is added or removed moves others to other batches: use 'replace-special' (its "
            "contribution becomes 0, and it keeps its place) or 'replace-one'."
        )
    _validate.choice(("replace-one", "replace-special"), neighboring_relation=relation)
    return sigma, T, E


def _no_gain(sigma: float, E: int, relation: str) -> events.DpEvent:
    """Return the event of known batches."""
    distance = 2.0 if relation == "replace-one" else 1.0
    return events.SelfComposedDpEvent(events.GaussianDpEvent(sigma / distance), E)


@dataclass(frozen=True)
class _Reduced:
    """Allocation to random numbers of batches, of which a shuffle costs no more, but for a slack.

    ``law`` has numbers and probabilities, and ``slack`` is in delta.
    """

    sigma: float
    epochs: int
    law: tuple[tuple[int, float], ...]
    slack: float

    @property
    def _directions(self) -> list[Direction]:
        least = self.law[0][0]
        return [
            Direction(name, ((MixedAllocation(self.sigma, least, name, self.law), self.epochs),))
            for name in ("remove", "add")
        ]

    def epsilon(self, delta: float) -> float:
        """Return an upper bound on epsilon of a shuffle; infinity if the slack is all of delta."""
        left = delta - self.slack
        if not left > 0:
            return math.inf
        found = []
        for each in self._directions:
            # By parity it takes a tenth of the time, and an end above the other one's is no loss.
            bounds = epsilon_by_parity(each, math.log(left))
            if bounds is None or bounds.upper - bounds.lower > _CLOSE * bounds.upper:
                bounds = epsilon_bounds(each, math.log(left))
            found.append(bounds.upper)
        return max(found)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta of a shuffle."""
        found = []
        for each in self._directions:
            bounds = log_delta_by_parity(each, epsilon)
            if bounds is None or bounds.upper - bounds.lower > _CLOSE:
                bounds = log_delta_bounds(each, epsilon)
            found.append(bounds.upper)
        return math.exp(max(found)) * _MARGIN + self.slack


def _chance(sigma: float, T: int, E: int, delta: float, epsilon: float) -> tuple[float, float]:
    """Return the largest alpha whose slack is at most a share of delta, and the slack; or zeros."""
    factor = (1 + math.exp(min(epsilon, 700.0))) * E * (T - 1) * _MARGIN
    slack = factor * np.exp(-_LOG_ALPHAS) * _overlaps(sigma)
    allowed = slack <= _SHARE * delta
    if not allowed.any():
        return 0.0, 0.0
    # The slack falls with alpha, and the number of clones rises: the largest alpha is the best.
    place = int(np.flatnonzero(allowed)[0])
    return math.exp(-float(_LOG_ALPHAS[place])), float(slack[place])


def _reduced(sigma: float, T: int, E: int, delta: float, epsilon: float) -> _Reduced | None:
    """Return what a shuffle reduces to; None where few of its records are clones.

    Numbers of clones are counted as the least of a group, and those that are too unlikely as
    failures. Distribution functions are rounded up, which makes the numbers smaller.
    """
    chance, slack = _chance(sigma, T, E, delta, epsilon)
    if not chance:
        return None
    few = _SHARE * delta / E
    least = max(0, int(binom.ppf(few / _MARGIN, T - 1, chance)) - 1)
    most = int(binom.isf(_RARE, T - 1, chance))
    starts = np.unique(np.linspace(least, max(most, least), _GROUPS).round().astype(int))
    below = np.minimum(binom.cdf(starts - 1, T - 1, chance) * _MARGIN, 1.0)
    if below[0] > few:
        starts, below = np.append(0, starts), np.append(0.0, below)
    slack += E * float(below[0])
    # What fails is given to the first group, too: more mass is no less delta.
    chances = np.diff(np.concatenate([[0.0], below[1:], [1.0]]))
    kept = chances > 0
    law = zip((starts[kept] + 1).tolist(), chances[kept].tolist(), strict=True)
    return _Reduced(sigma, E, tuple(law), slack)


@lru_cache(maxsize=8)
def _overlaps(sigma: float) -> Floats:
    """Return delta of a Gaussian answer at epsilon = log(1 / alpha), rounded up, at each alpha."""
    found = [log_gaussian_delta(float(x), 1 / sigma) for x in _LOG_ALPHAS]
    return np.array([math.exp(value + abs(error)) for value, error in found])


def _likely(sigma: float, T: int, E: int, delta: float, epsilon: float) -> float:
    """Return about what the theorem gives for a guess, by the limit of many batches and epochs."""
    chance, _ = _chance(sigma, T, E, delta, epsilon)
    if not chance:
        return math.inf
    # The mean of 1 / (C + 1).
    share = -math.expm1(T * math.log1p(-chance)) / (T * chance)
    mu = math.sqrt(E * min(math.expm1(min(sigma**-2.0, 600.0)) * share, sigma**-2.0))
    return least_epsilon(lambda at: math.exp(log_gaussian_delta(at, mu)[0]), delta)


def _upper_epsilon(sigma: float, T: int, E: int, delta: float, highest: float) -> float:
    """Return the least epsilon that the theorem gives, at most ``highest``."""
    if 1 / sigma > _LARGEST_NORM:
        return highest
    guess, likely = highest, _likely(sigma, T, E, delta, highest)
    for _ in range(_GUESSES):
        below = guess * _GUESS_RATIO
        next_likely = _likely(sigma, T, E, delta, below)
        if not next_likely <= below:
            break
        guess, likely = below, next_likely
    if not likely <= guess:
        return highest
    best = highest
    # A guess holds if what the theorem gives for it is no larger.
    for _ in range(_REFINEMENTS):
        reduced = _reduced(sigma, T, E, delta, guess)
        found = math.inf if reduced is None else reduced.epsilon(delta)
        if found <= guess:
            best = min(best, found)
            if found > _GUESS_RATIO * guess:
                break
            guess = found * _ABOVE
        else:
            guess = min(found, guess / _GUESS_RATIO) if best == highest else best
            if best < highest or guess >= highest:
                break
    return best


def _upper_delta(sigma: float, T: int, E: int, epsilon: float, highest: float) -> float:
    """Return the least delta that the theorem gives, at most ``highest``."""
    best = highest
    for _ in range(_REFINEMENTS if 1 / sigma <= _LARGEST_NORM else 0):
        reduced = _reduced(sigma, T, E, best, epsilon)
        found = best if reduced is None else reduced.delta(epsilon)
        if not found < best:
            break
        best = found * _MARGIN
    return best


# -- attacks


def _largest(sigma: float, T: int) -> tuple[Floats, Floats, float]:
    """Return masses of the largest batch answer with and without the record, and their error."""
    c = np.linspace(-3 * sigma, 2 + 9 * sigma, _CELLS)

    def masses(mean: float) -> Floats:
        # Differences of upper tails keep the digits of small masses.
        tail = -np.expm1(norm.logcdf((c - mean) / sigma) + (T - 1) * norm.logcdf(c / sigma))
        return np.concatenate([[1 - tail[0]], -np.diff(tail), [tail[-1]]])

    return masses(2.0), masses(1.0), 0.0


def _summed(sigma: float, T: int) -> tuple[Floats, Floats, float]:
    """Return masses of a sum of whole scores of the batch answers, modulo a number of places."""
    a = 1 / sigma
    n = np.linspace(-9, 9 + 2 * a, _SUM_CELLS)
    middle = np.concatenate([[n[0]], 0.5 * (n[1:] + n[:-1]), [n[-1]]])
    log_rest = math.log(T - 1)
    g = np.logaddexp(log_rest, 2 * a * middle - 2 * a * a)
    g -= np.logaddexp(log_rest, a * middle - 0.5 * a * a)

    def masses(shift: float) -> Floats:
        z = n - shift
        inner = np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
        return np.concatenate([[ndtr(z[0])], inner, [ndtr(-z[-1])]])

    laws = [masses(shift) for shift in (0.0, 2 * a, a)]
    mean = laws[0] @ g
    spread = math.sqrt(laws[0] @ g**2 - mean**2)
    h = max(60 * spread * math.sqrt(T) / _PLACES, 2 * float(np.ptp(g)) / _PLACES)
    k = np.round((g - mean) / h).astype(int) % _PLACES
    rest, present, blank = (np.fft.rfft(np.bincount(k, law, _PLACES)) for law in laws)
    rest = rest ** (T - 1)
    p, q = (np.fft.irfft(rest * each, _PLACES) for each in (present, blank))
    return p, q, 2e-16 * (1 + T / 100)


def _composed(p: Floats, q: Floats, E: int, error: float) -> tuple[Floats, Floats]:
    """Return losses, rounded down, and masses under p of E independent uses of a pair."""
    least = max(_LEAST_MASS, 1e3 * error)
    keep = (p > least) & (q > least)
    p, q = p[keep], q[keep]
    loss = np.log(p / q) - 2 * error * (1 / p + 1 / q) - 1e-14
    mean = (p @ loss) / p.sum()
    spread = math.sqrt((p @ (loss - mean) ** 2) / p.sum())
    h = max(spread / 2000, float(np.ptp(loss)) * E / _MOST_PLACES)
    k = np.floor(loss / h).astype(int)
    low = int(k.min())
    one = np.bincount(k - low, np.maximum(p - error, 0) * (1 - 1e-9))
    size = E * (len(one) - 1) + 1
    length = 1 << math.ceil(math.log2(size))
    total = np.fft.irfft(np.fft.rfft(one, length) ** E, length)[:size]
    places: Floats = np.asarray((np.arange(size) + low * E) * h, dtype=np.float64)
    return places, np.asarray(np.maximum(total - 1e-16 * E, 0), dtype=np.float64)


def _attacks(sigma: float, T: int, E: int) -> list[tuple[Floats, Floats]]:
    """Return the composed laws of both statistics in both directions."""
    found = []
    for p, q, error in (_largest(sigma, T), _summed(sigma, T)):
        for first, second in ((p, q), (q, p)):
            found.append(_composed(first, second, E, error))
    return found


def _lower_delta(laws: list[tuple[Floats, Floats]], epsilon: float) -> float:
    """Return the largest delta that an attack proves at an epsilon."""
    gains = (
        float(mass @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0))))
        for loss, mass in laws
    )
    return max(gains) * (1 - 1e-9)


# -- answers


def epsilon(
    run: events.ShuffledEpochsDpEvent, *, delta: float, neighboring_relation: str
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

    Raises
    ------
    UnsupportedEvent
        For ``"add-or-remove-one"``.
    """
    target = _validate.probability(delta=delta)
    sigma, T, E = _checked(run, neighboring_relation)
    known = event_epsilon(_no_gain(sigma, E, neighboring_relation), delta=target)
    upper, method = known.upper, "bracket: batches known"
    if T == 1:
        lower = known.lower
    elif neighboring_relation == "replace-one":
        # Others contribute -1 and so does the substitute: an allocation of twice the contribution.
        norm_of_pair = 2 / sigma
        reached = norm_of_pair <= LARGEST_NORM
        lower = Allocated(norm_of_pair, T, E).lower_epsilon(target) if reached else 0.0
    else:
        found = _upper_epsilon(sigma, T, E, target, upper)
        if found < upper:
            upper, method = found, "bracket: clones that release blanks"
        laws = _attacks(sigma, T, E)
        lower = least_epsilon(lambda at: _lower_delta(laws, at), target) * (1 - 1e-8)
    return Epsilon(
        upper,
        lower=min(lower, upper),
        accountant="shuffling",
        method=method,
        neighboring_relation=neighboring_relation,
    )


def delta(run: events.ShuffledEpochsDpEvent, *, epsilon: float, neighboring_relation: str) -> Delta:
    """Return a bracket of the delta of a run at an epsilon >= 0; see :func:`epsilon`."""
    at = _validate.non_negative(epsilon=epsilon)
    sigma, T, E = _checked(run, neighboring_relation)
    known = event_delta(_no_gain(sigma, E, neighboring_relation), epsilon=at)
    upper, method = known.upper, "bracket: batches known"
    if T == 1:
        lower = known.lower
    elif neighboring_relation == "replace-one":
        reached = 2 / sigma <= LARGEST_NORM
        lower = Allocated(2 / sigma, T, E).lower_delta(at) if reached else 0.0
    else:
        found = _upper_delta(sigma, T, E, at, upper)
        if found < upper:
            upper, method = found, "bracket: clones that release blanks"
        lower = _lower_delta(_attacks(sigma, T, E), at)
    return Delta(
        upper,
        lower=min(lower, upper),
        accountant="shuffling",
        method=method,
        neighboring_relation=neighboring_relation,
    )
