"""Bounds on the error rates of an attack, and on the epsilon that they prove by themselves.

If a test says "present" of a run with the record with probability t, and of a run without it with
probability f, then an (epsilon, delta)-private mechanism has t <= exp(epsilon) f + delta, and
1 - f <= exp(epsilon) (1 - t) + delta (Wasserman and Zhou 2010, Theorem 2.4). Runs are independent,
so that the rates have exact confidence bounds (Clopper and Pearson 1934), and so has epsilon.

>>> found = from_confusion_matrix(
...     true_positives=310, false_negatives=190, false_positives=40, true_negatives=460, delta=1e-5
... )
>>> f"{found.epsilon:.3f}"
'1.680'

>>> import numpy as np
>>> members, others = np.repeat([1.0, -1.0], [900, 100]), np.repeat([1.0, -1.0], [100, 900])
>>> most, least = apart(members, others, 0.0, 0.005)
>>> print(f"false positives at most {most:.3f}, true positives at least {least:.3f}")
false positives at most 0.127, true positives at least 0.873
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpcal import _validate
from dpcal.accountants.correlated.draws.confidence import lower_mean, upper_mean
from dpcal.optim.objectives.arrays import Vector, numbers

__all__ = [
    "ManyRuns",
    "Rates",
    "apart",
    "either_way",
    "from_confusion_matrix",
    "many_runs",
    "share",
    "together",
    "without_curve",
]

Rates = Callable[[Vector, Vector, float, float], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class ManyRuns:
    """A lower bound on epsilon from runs with a record and runs without it.

    Parameters
    ----------
    epsilon, delta
        The mechanism is not (epsilon', delta)-private for any epsilon' below epsilon, which is
        infinite where delta alone is refuted.
    present, absent
        Numbers of runs with the record and without it.
    confidence
        Confidence of the bound.
    """

    epsilon: float
    delta: float
    present: int
    absent: int
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return (
            f"epsilon is at least {self.epsilon:.4g} at delta {self.delta:.3g} ({self.present} "
            f"runs with the record and {self.absent} without it, confidence {self.confidence:g})"
        )


def from_confusion_matrix(
    *,
    true_positives: int,
    false_negatives: int,
    false_positives: int,
    true_negatives: int,
    delta: float,
    confidence: float = 0.95,
) -> ManyRuns:
    """Bound epsilon from below by the counts of a test of many runs.

    Parameters
    ----------
    true_positives, false_negatives
        Of the independent runs with the record, how many the test calls present, and absent.
    false_positives, true_negatives
        Of the independent runs without the record, how many it calls present, and absent. The test
        was fixed before these runs were seen.
    delta, confidence
        In [0, 1); and in (0, 1).

    Returns
    -------
    ManyRuns
        The larger of the bounds by both inequalities, at this confidence (Jagielski, Ullman and
        Oprea 2020, with both directions).
    """
    counts = {
        "true_positives": true_positives,
        "false_negatives": false_negatives,
        "false_positives": false_positives,
        "true_negatives": true_negatives,
    }
    hits, misses, alarms, silent = (_whole(**{name: value}) for name, value in counts.items())
    for first, second in (
        ("true_positives", "false_negatives"),
        ("false_positives", "true_negatives"),
    ):
        if not counts[first] + counts[second]:
            raise ValueError(f"{first} + {second} must be at least 1 run, got 0.")
    share(delta=delta)
    # Both inequalities are about the same two bounds of rates.
    chance = (1 - _validate.probability(confidence=confidence)) / 2
    most, least = _clopper_pearson(hits, hits + misses, alarms, alarms + silent, chance)
    return ManyRuns(
        epsilon=max(0.0, _log_ratio(least, most, delta), _log_ratio(1 - most, 1 - least, delta)),
        delta=delta,
        present=hits + misses,
        absent=alarms + silent,
        confidence=confidence,
    )


def many_runs(
    present: ArrayLike, absent: ArrayLike, *, delta: float, confidence: float = 0.95
) -> ManyRuns:
    """Bound epsilon from below by the scores of many runs.

    A tenth of the runs, drawn by a fixed seed, chooses the level above which a score says
    "present", or below which it says "absent"; the others bound the rates.

    Parameters
    ----------
    present, absent
        Scores of independent runs with the record, and of those without it, larger where the record
        is more likely to be present; shapes (m,) and (k,), at least 10 each, finite.
    delta, confidence
        In [0, 1); and in (0, 1).

    Returns
    -------
    ManyRuns
        The bound.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> with_record, without = rng.standard_normal(1_000) + 2.0, rng.standard_normal(1_000)
    >>> bool(1.5 < many_runs(with_record, without, delta=1e-5).epsilon < 6)
    True
    """
    rng = np.random.default_rng(0)
    first, second = (
        _mixed(name, scores, rng) for name, scores in (("present", present), ("absent", absent))
    )
    share(delta=delta)
    return ManyRuns(
        epsilon=either_way(first, second, delta, 1 - _validate.probability(confidence=confidence)),
        delta=delta,
        present=len(first),
        absent=len(second),
        confidence=confidence,
    )


def _mixed(name: str, scores: ArrayLike, rng: np.random.Generator) -> Vector:
    """Return scores in a random order: of sorted ones, those that choose would be the lowest."""
    values = numbers(name, scores)
    if values.ndim != 1 or len(values) < 10:
        raise ValueError(f"{name} must have shape (m,) with m >= 10, got {values.shape}.")
    return rng.permutation(values)


def _whole(**argument: Any) -> int:
    """Return a whole number >= 0, or raise a sentence that names it."""
    ((name, value),) = argument.items()
    number = _validate.non_negative(**argument)
    if number != int(number):
        raise ValueError(f"{name} must be a whole number >= 0, got {value!r}.")
    return int(number)


def share(**argument: Any) -> float:
    """Return a number in [0, 1), such as delta, or raise a sentence that names it."""
    ((name, value),) = argument.items()
    return 0.0 if value == 0 else _validate.probability(**{name: value})


def apart(members: Vector, others: Vector, level: float, chance: float) -> tuple[float, float]:
    """Return an upper bound on false and a lower bound on true positives (Clopper, Pearson)."""
    alarms, hits = int((others > level).sum()), int((members > level).sum())
    return _clopper_pearson(hits, len(members), alarms, len(others), chance)


def _clopper_pearson(
    hits: int, members: int, alarms: int, others: int, chance: float
) -> tuple[float, float]:
    """Return bounds on both rates, from the counts; each fails with the given chance."""
    most = special.betaincinv(alarms + 1, others - alarms, 1 - chance) if alarms < others else 1.0
    least = special.betaincinv(hits, members - hits + 1, chance) if hits else 0.0
    return float(most), float(least)


def _log_ratio(least: float, most: float, delta: float) -> float:
    """Return the epsilon below which rates of at least and at most this are refuted, or -inf."""
    if least <= delta:
        return -math.inf
    return math.log((least - delta) / most) if most else math.inf


def together(members: Vector, others: Vector, level: float, chance: float) -> tuple[float, float]:
    """Return bounds on both rates that hold for negatively associated canaries (Hoeffding)."""
    alarms, hits = float((others > level).mean()), float((members > level).mean())
    most = upper_mean(alarms, draws=len(others), failure_probability=chance)
    return min(1.0, most), lower_mean(hits, draws=len(members), failure_probability=chance)


def without_curve(
    rates: Rates, members: Vector, others: Vector, delta: float, chance: float
) -> float:
    """Bound epsilon by rates alone: the level is chosen on a tenth of the canaries."""
    some = [len(ratios) // 10 for ratios in (members, others)]

    def bound(level: float, first: Vector, second: Vector) -> float:
        most, least = rates(first, second, level, chance)
        return _log_ratio(least, most, delta)

    choosing = members[: some[0]], others[: some[1]]
    levels = np.quantile(np.concatenate(choosing), np.linspace(0.02, 0.995, 40))
    best = max(levels, key=lambda level: bound(float(level), *choosing))
    return max(0.0, bound(float(best), members[some[0] :], others[some[1] :]))


def either_way(present: Vector, absent: Vector, delta: float, chance: float) -> float:
    """Bound epsilon by the rates of two tests: high scores say present, low ones say absent."""
    each = chance / 4  # two rates in each of two directions
    return max(
        without_curve(apart, present, absent, delta, each),
        without_curve(apart, -absent, -present, delta, each),
    )
