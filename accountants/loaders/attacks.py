"""How much does a shuffled epoch surely give away? Laws of two statistics, from below.

The data set is one whose other records all contribute -1, so that of the T answers of an epoch,
but for the noise, one is higher: by 2 where the record contributes 1, by 1 where it contributes 0.
Whoever sees the largest answer, or a sum of scores of all of them, loses nothing by an attack, and
the price of each is a lower end of the price of the run. Outcomes are gathered in groups, which is
an attack too. E epochs are E independent answers, and their losses are inverted as all losses are.

>>> best = max(attack.epsilon(1e-5) for attack in attacks(10.0, 1000, 20))
>>> print(f"{best:.4f}")
0.0410
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from dpcal.accountants.characteristic import epsilon_bounds, log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.discrete import LatticeLoss

__all__ = ["Attack", "attacks", "composed", "log_score"]

Floats = NDArray[np.float64]

# Cells of a statistic, and places of the cyclic sum.
_CELLS = 200_001
_SUM_CELLS = 40_001
_PLACES = 1 << 15
# Groups in one standard deviation of a loss, and most groups; masses of a group over their error.
_FINE, _MOST, _SURE = 40, 2000, 1e3


@dataclass(frozen=True)
class Attack:
    """A statistic of each of E epochs, which proves lower bounds.

    Attributes
    ----------
    direction
        The losses, of a pair of laws that both have mass 1.
    log_kept
        Log of the mass that is left when masses are rounded down, and the sum of what losses were
        raised by to give the second law mass 1.
    """

    direction: Direction
    log_kept: float
    raised: float

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on delta at an epsilon >= 0."""
        bounds = log_delta_bounds(self.direction, epsilon + max(0.0, self.raised))
        return math.exp(bounds.lower + self.log_kept)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on epsilon at a delta in (0, 1)."""
        bounds = epsilon_bounds(self.direction, math.log(delta) - self.log_kept)
        return max(0.0, bounds.lower - max(0.0, self.raised))


def attacks(sigma: float, T: int, E: int) -> list[Attack]:
    """Return both statistics of E epochs of T batches, in both directions."""
    pairs = (_largest(sigma, T), _summed(sigma, T))
    return [
        composed(first, second, E, error)
        for p, q, error in pairs
        for first, second in ((p, q), (q, p))
    ]


def log_score(answers: Floats, sigma: float, T: int) -> Floats:
    """Return the score of answers n, over sigma, whose sum over an epoch is the second statistic.

    It is the log of the ratio in which an answer moves, to first order, the likelihoods with and
    without the record: of T laws of answers, of which one is higher by 2, and by 1.
    """
    a, log_rest = 1 / sigma, math.log(T - 1)
    with_record = np.logaddexp(log_rest, 2 * a * answers - 2 * a * a)
    return np.asarray(with_record - np.logaddexp(log_rest, a * answers - 0.5 * a * a))


def _largest(sigma: float, T: int) -> tuple[Floats, Floats, float]:
    """Return masses of the largest answer with and without the record, and their error."""
    c = np.linspace(-3 * sigma, 2 + 9 * sigma, _CELLS)

    def masses(mean: float) -> Floats:
        # Differences of upper tails keep the digits of small masses.
        tail = -np.expm1(log_ndtr((c - mean) / sigma) + (T - 1) * log_ndtr(c / sigma))
        return np.concatenate([[1 - tail[0]], -np.diff(tail), [tail[-1]]])

    return masses(2.0), masses(1.0), 4e-16


def _summed(sigma: float, T: int) -> tuple[Floats, Floats, float]:
    """Return masses of the sum of whole scores, modulo a number of places, and their error."""
    a = 1 / sigma
    n = np.linspace(-9, 9 + 2 * a, _SUM_CELLS)
    g = log_score(np.concatenate([[n[0]], 0.5 * (n[1:] + n[:-1]), [n[-1]]]), sigma, T)

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
    return p, q, 2e-16 * (2 + T / 100)


def composed(p: Floats, q: Floats, E: int, error: float) -> Attack:
    """Return the attack that tells apart groups of outcomes of about equal loss, in E epochs.

    Each mass of p is rounded down and each of q up; then both are divided by their sums.
    """
    p, q = np.maximum(p, 0.0), np.maximum(q, 0.0)
    seen = np.minimum(p, q) > 0
    if np.minimum(p, q).max() <= 2 * _SURE * error:
        # The laws hardly overlap: two outcomes are told apart.
        more = p > q
        unit, kept = 1.0, np.array([p[more].sum() - error])
        multiples = np.floor(np.log(kept / (q[more].sum() + error))).astype(np.int64)
    else:
        unit, multiples, kept = _gathered(p[seen], q[seen], error)
    reference = np.log(kept / kept.sum()) - unit * multiples
    lacking = 1.0 - float(np.exp(reference).sum())
    if lacking > 0:
        # Outcomes of the second law alone, but for a mass of the first one far below a rounding.
        least = min(int(multiples[0]), 0) - math.ceil(80.0 / unit)
        multiples, reference = np.append(least, multiples), np.append(math.log(lacking), reference)
    raised = float(np.logaddexp.reduce(reference))
    # The mass that the second law has too much is taken by the losses, all alike.
    gathered = LatticeLoss(
        unit, tuple(multiples.tolist()), tuple((reference - raised).tolist()), "attack", raised
    )
    return Attack(Direction("remove", ((gathered, E),)), E * math.log(kept.sum()), E * raised)


def _gathered(p: Floats, q: Floats, error: float) -> tuple[float, NDArray[np.int64], Floats]:
    """Return a unit, its multiples and first masses, rounded down, of groups of these losses.

    Outcomes, ascending by loss, are gathered, and one at the end of a group is split by a coin, so
    that the loss of a group is a multiple, and not only close to one.
    """
    order = np.argsort(p / q)
    p, q = p[order], q[order]
    loss = np.log(p / q)
    center = np.average(loss, weights=p + q)
    spread = math.sqrt(np.average((loss - center) ** 2, weights=p + q))
    likely = loss[np.minimum(p, q) > error]
    unit = max(spread / _FINE, float(np.ptp(likely)) / _MOST)
    above, below = np.append(0.0, np.cumsum(p)), np.append(0.0, np.cumsum(q))

    def sure(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
        """Return lower bounds of the first mass between two points, and of the loss."""
        one, two = end[0] - start[0], end[1] - start[1]
        if min(one, two) <= _SURE * error:
            return 0.0, -math.inf
        return one - error, math.log((one - error) / (two + error))

    def point(at: int) -> tuple[float, float]:
        return float(above[at]), float(below[at])

    def part(at: int, share: float) -> tuple[float, float]:
        before, end = point(at - 1), point(at)
        return before[0] + share * (end[0] - before[0]), before[1] + share * (end[1] - before[1])

    multiples: list[int] = []
    masses: list[float] = []
    start, place = (0.0, 0.0), 0
    while place < len(p):
        # The group starts in its own lower half, where the last one ended in its upper half.
        k = math.ceil(loss[place] / unit + 0.25)
        if multiples:
            k = max(k, multiples[-1] + 1)
        first, last = place + 1, len(p)
        goal = k * unit
        if sure(start, point(last))[1] < goal:
            break
        while first < last:
            middle = (first + last) // 2
            first, last = (
                (first, middle) if sure(start, point(middle))[1] >= goal else (middle + 1, last)
            )
        low, high = 0.0, 1.0
        for _ in range(50):
            share = (low + high) / 2
            enough = sure(start, part(last, share))[1] >= goal
            low, high = (low, share) if enough else (share, high)
        end = part(last, high)
        masses.append(sure(start, end)[0])
        multiples.append(k)
        start, place = end, last - (high < 1)
    if not masses:
        return unit, np.array([0]), np.array([1.0 - error])
    # What is left has larger losses than the last group.
    masses[-1] += max(0.0, sure(start, point(len(p)))[0])
    return unit, np.array(multiples), np.array(masses)
