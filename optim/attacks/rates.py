"""Lower bounds on epsilon from the error rates of a test, with the stated confidence.

A test calls a run with the record "present" with probability t, and a run without it with
probability f. An (epsilon, delta)-private mechanism then has t <= exp(epsilon) f + delta, and 1 - f
<= exp(epsilon) (1 - t) + delta (Wasserman and Zhou 2010, Theorem 2.4). Runs are independent, so
that the rates have exact confidence bounds (Clopper and Pearson 1934), and so has epsilon.

>>> found = from_confusion_matrix(
...     true_positives=310, false_negatives=190, false_positives=40, true_negatives=460, delta=1e-5
... )
>>> f"{found.epsilon:.3f}"
'1.680'

>>> most, least = independent(900, 1_000, 100, 1_000, chance=0.005)
>>> print(f"false positives at most {most:.3f}, true positives at least {least:.3f}")
false positives at most 0.127, true positives at least 0.873
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpcal._internal import validate
from dpcal.accountants.correlated.draws.montecarlo import lower_mean, upper_mean
from dpcal.optim.objectives.arrays import Vector, numbers

# Bounds false positives from above and true ones from below; each fails with the given chance.
Rates = Callable[[int, int, int, int, float], tuple[float, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class LowerBound:
    """A lower bound on epsilon from runs, or canaries, with a record and without it.

    Parameters
    ----------
    epsilon, delta
        The mechanism is not (epsilon', delta)-private for any epsilon' below epsilon. Epsilon is
        infinite if delta is refuted for every epsilon.
    confidence
        Confidence of the bound.
    present, absent
        Numbers of runs, or of canaries, with the record and without it.
    claim
        The epsilon that was claimed at ``delta``; infinite where nothing was.
    """

    epsilon: float
    delta: float
    confidence: float
    present: int
    absent: int
    claim: float = math.inf

    @property
    def holds(self) -> bool:
        """Whether the lower bound is within the claim."""
        return self.epsilon <= self.claim

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values, without scores."""
        named = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            name: value if math.isfinite(value) else None
            for name, value in {**named, "holds": self.holds}.items()
            if not isinstance(value, np.ndarray)
        }

    def __str__(self) -> str:
        claimed = "" if math.isinf(self.claim) else f", claimed {self.claim:.4g}"
        return (
            f"epsilon is at least {self.epsilon:.4g} at delta {self.delta:.3g}{claimed} "
            f"({self.present} with the record and {self.absent} without it, confidence "
            f"{self.confidence:g})"
        )


def independent(
    hits: int, members: int, alarms: int, others: int, chance: float
) -> tuple[float, float]:
    """Return bounds on both rates of independent runs (Clopper and Pearson 1934)."""
    most = special.betaincinv(alarms + 1, others - alarms, 1 - chance) if alarms < others else 1.0
    least = special.betaincinv(hits, members - hits + 1, chance) if hits else 0.0
    return float(most), float(least)


def together(
    hits: int, members: int, alarms: int, others: int, chance: float
) -> tuple[float, float]:
    """Return bounds on both rates that hold for negatively associated canaries (Hoeffding)."""
    most = upper_mean(alarms / others, draws=others, failure_probability=chance)
    return min(1.0, most), lower_mean(hits / members, draws=members, failure_probability=chance)


def from_confusion_matrix(
    *,
    true_positives: int,
    false_negatives: int,
    false_positives: int,
    true_negatives: int,
    delta: float,
    confidence: float = 0.95,
) -> LowerBound:
    """Bound epsilon from below by the counts of a test of many runs.

    Parameters
    ----------
    true_positives, false_negatives
        Numbers of independent runs with the record that the test calls present, and absent.
    false_positives, true_negatives
        Numbers of independent runs without the record that the test calls present, and absent. You
        must fix the test before you see these runs.
    delta, confidence
        In [0, 1); and in (0, 1).

    Returns
    -------
    LowerBound
        The larger of the bounds by both inequalities, at this confidence (Jagielski, Ullman and
        Oprea 2020, with both directions).
    """
    pairs = (
        {"true_positives": true_positives, "false_negatives": false_negatives},
        {"false_positives": false_positives, "true_negatives": true_negatives},
    )
    counts = []
    for pair in pairs:
        for name, value in pair.items():
            if validate.non_negative(**{name: value}) != int(value):
                raise ValueError(f"{name} must be a whole number >= 0, got {value!r}.")
        first, second = map(int, pair.values())
        if not first + second:
            raise ValueError(f"{' + '.join(pair)} must be at least 1 run, got 0.")
        counts += [first, first + second]
    return _counted(counts, delta, confidence)


def many_runs(
    present: ArrayLike, absent: ArrayLike, *, delta: float, confidence: float = 0.95
) -> LowerBound:
    """Bound epsilon from below by the scores of many runs.

    A tenth of the runs, drawn by a fixed seed, chooses a level: a test calls a run "present" if its
    score is above the level, or "absent" if it is below. The other runs bound the rates.

    Parameters
    ----------
    present, absent
        Scores of independent runs with the record, and of runs without it, larger where the record
        is more likely to be present; shapes (m,) and (k,), at least 10 each, finite.
    delta, confidence
        In [0, 1); and in (0, 1).

    Returns
    -------
    LowerBound
        The bound.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> with_record, without = rng.standard_normal(1_000) + 2.0, rng.standard_normal(1_000)
    >>> bool(1.5 < many_runs(with_record, without, delta=1e-5).epsilon < 6)
    True
    """
    rng, given = np.random.default_rng(0), []
    for name, scores in (("present", present), ("absent", absent)):
        values = numbers(name, scores)
        if values.ndim != 1 or len(values) < 10:
            raise ValueError(f"{name} must have shape (m,) with m >= 10, got {values.shape}.")
        given.append(rng.permutation(values))
    return at_a_level(given[0], given[1], delta=delta, confidence=confidence)


def at_a_level(
    members: Vector, others: Vector, *, delta: float, confidence: float, rates: Rates = independent
) -> LowerBound:
    """Bound epsilon by a level of the scores, which a tenth of both kinds chooses."""
    some = len(members) // 10, len(others) // 10

    def bound(level: float, first: Vector, second: Vector) -> LowerBound:
        hits, alarms = int((first > level).sum()), int((second > level).sum())
        return _counted([hits, len(first), alarms, len(second)], delta, confidence, rates)

    choosing = members[: some[0]], others[: some[1]]
    levels = np.quantile(np.concatenate(choosing), np.linspace(0.005, 0.995, 40))
    best = max(levels, key=lambda level: bound(level, *choosing).epsilon)
    found = bound(best, members[some[0] :], others[some[1] :])
    return dataclasses.replace(found, present=len(members), absent=len(others))


def _counted(
    counts: Sequence[int], delta: float, confidence: float, rates: Rates = independent
) -> LowerBound:
    """Return the larger of the bounds by both inequalities, which are about the same two rates."""
    chance = (1 - validate.probability(confidence=confidence)) / 2
    delta = validate.below_one(delta=delta)
    hits, present, alarms, absent = counts
    most, least = rates(hits, present, alarms, absent, chance)
    epsilon = max(0.0, _refuted(most, least, delta), _refuted(1 - least, 1 - most, delta))
    return LowerBound(
        epsilon=epsilon, delta=delta, confidence=confidence, present=present, absent=absent
    )


def _refuted(most: float, least: float, delta: float) -> float:
    """Return the epsilon below which such false and true positive rates are refuted, or -inf."""
    if least <= delta:
        return -math.inf
    return math.log((least - delta) / most) if most else math.inf
