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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from dpcal.accountants.characteristic import epsilon_bounds, log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.rounding import UNIT, exp_down

Floats = NDArray[np.float64]

_CELLS = 200_001
_SUM_CELLS = 40_001
_PLACES = 1 << 15
# Standard deviations of an answer and of a sum of scores, and most steps of a score.
_REACH, _SPAN, _MOST_STEPS = 9.0, 60.0, 1 << 14
_FINE, _MOST, _SURE = 40, 2000, 1e3


@dataclass(frozen=True)
class Attack:
    """A statistic of each of E epochs, which proves lower bounds.

    Attributes
    ----------
    direction
        The losses, of a first law that has mass 1.
    log_kept
        Log of the mass that the first law of all epochs keeps when its masses are rounded down.
    """

    direction: Direction
    log_kept: float

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on delta at an epsilon >= 0."""
        return exp_down(log_delta_bounds(self.direction, epsilon).lower + self.log_kept)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on epsilon at a delta in (0, 1)."""
        target = math.log(delta) - self.log_kept
        return epsilon_bounds(self.direction, target).lower if target < 0 else 0.0


def attacks(sigma: float, T: int, E: int) -> list[Attack]:
    """Return both statistics of E epochs of T batches, in both directions."""
    return [
        composed(first, second, E, *errors)
        for p, q, *errors in (_largest(sigma, T), _summed(sigma, T))
        for first, second in ((p, q), (q, p))
    ]


def _largest(sigma: float, T: int) -> tuple[Floats, Floats, float, float]:
    """Return masses of the largest answer with and without the record, and their errors."""
    c = np.linspace(-3 * sigma, 2 + 9 * sigma, _CELLS)

    def masses(mean: float) -> Floats:
        log_below = log_ndtr((c - mean) / sigma) + (T - 1) * log_ndtr(c / sigma)
        below, above = np.exp(log_below), -np.expm1(log_below)
        # Differences of the smaller tail keep the digits of small masses.
        inner = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        return np.concatenate([below[:1], inner, above[-1:]])

    return masses(2.0), masses(1.0), 4e-16, 0.0


def _summed(sigma: float, T: int) -> tuple[Floats, Floats, float, float]:
    """Return masses of a sum of scores, modulo a number of places, and their errors.

    The score of an answer is the log of the ratio in which it moves, to first order, the
    likelihoods with and without the record: of T laws of answers, of which one is higher by 2, and
    by 1.
    """
    a, log_rest = 1 / sigma, math.log(T - 1)

    def score(n: Floats) -> Floats:
        moved = np.logaddexp(log_rest, 2 * a * n - 2 * a * a)
        return np.asarray(moved - np.logaddexp(log_rest, a * n - 0.5 * a * a))

    laws = scored(score, (0.0, 2 * a, a), T, _PLACES)
    rest, present, blank = (np.fft.rfft(law) for law in laws)
    rest = rest ** (T - 1)
    p, q = (np.fft.irfft(rest * each, _PLACES) for each in (present, blank))
    error = 2e-16 * (2 + T / 100)
    # A place has a tenth of the error of a group: 4e-17 of the last transform, and 2e-19 T of it.
    return p, q, error, error / 10


def scored(
    score: Callable[[Floats], Floats], shifts: Sequence[float], times: int, places: int
) -> list[Floats]:
    """Return the laws of the whole score of an answer, modulo ``places``, that is moved by shifts.

    The answer has standard normal noise. The places cover what a sum of ``times`` scores takes.
    """
    n = np.linspace(-_REACH, _REACH + max(shifts), _SUM_CELLS)
    edges = np.concatenate([[-np.inf], n, [np.inf]])
    g = score(np.concatenate([[n[0]], 0.5 * (n[1:] + n[:-1]), [n[-1]]]))
    laws = [
        np.where(z[:-1] > 0, -np.diff(ndtr(-z)), np.diff(ndtr(z)))
        for z in (edges - shift for shift in shifts)
    ]
    mean = laws[0] @ g
    spread = math.sqrt(laws[0] @ (g - mean) ** 2)
    step = max(_SPAN * spread * math.sqrt(times) / places, float(np.ptp(g)) / _MOST_STEPS)
    k = np.round((g - mean) / step).astype(int) % places
    return [np.bincount(k, law, places).astype(np.float64) for law in laws]


def composed(p: Floats, q: Floats, E: int, error: float, each: float = 0.0) -> Attack:
    """Return the attack that tells apart groups of outcomes of about equal loss, in E epochs.

    Masses of p and losses are rounded down, and those of q up: by the error of a group's mass, and
    by that of ``each`` mass alone, as of a transform. Then p is divided by its sum.
    """
    seen = p > each
    p, q = p[seen] - each, np.maximum(q[seen], 0.0) + each
    places = _places(p, q, error)
    units = np.bincount(places) * UNIT
    first = np.bincount(places, p) * (1 - units) - error
    second = np.bincount(places, q) * (1 + units) + error
    some = first > 0
    kept, losses = math.fsum(first[some]), np.log(first[some] / second[some])
    losses -= 16 * UNIT * (1 + np.abs(losses))
    logs = np.log(first[some] / kept) - losses
    order, surplus = np.argsort(losses), float(np.logaddexp.reduce(logs))
    values, reference = (tuple(each[order].tolist()) for each in (losses, logs))
    gathered = ScatteredLoss(values, reference, "attack", surplus=surplus)
    return Attack(Direction("remove", ((gathered, E),)), E * math.log(kept))


def _places(p: Floats, q: Floats, error: float) -> NDArray[np.intp]:
    """Return the group of each outcome, by its loss; outer groups have masses far above an error.

    If the laws hardly overlap, there are two groups.
    """
    likely = np.minimum(p, q) > _SURE * error
    if not likely.any():
        return (p > q).astype(np.intp)
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    usual, weights = loss[likely], (p + q)[likely]
    center = np.average(usual, weights=weights)
    spread = math.sqrt(np.average((usual - center) ** 2, weights=weights))
    unit = max(spread / _FINE, float(np.ptp(usual)) / _MOST)
    places = np.clip(np.floor((loss - center) / unit), -_MOST, _MOST).astype(np.intp) + _MOST
    masses = np.array([np.bincount(places, each) for each in (p, q)])
    sums = np.cumsum(masses, axis=1), np.cumsum(masses[:, ::-1], axis=1)
    first, last = (int(np.argmax(each.min(axis=0) > _SURE * error)) for each in sums)
    return np.asarray(np.clip(places, first, masses.shape[1] - 1 - last))
