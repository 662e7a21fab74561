"""Bounds on the error rates of an attack, and on the epsilon that they prove by themselves.

>>> import numpy as np
>>> members, others = np.repeat([1.0, -1.0], [900, 100]), np.repeat([1.0, -1.0], [100, 900])
>>> most, least = apart(members, others, 0.0, 0.005)
>>> print(f"false positives at most {most:.3f}, true positives at least {least:.3f}")
false positives at most 0.127, true positives at least 0.873
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from dpcal.accountants.correlated.draws.confidence import lower_mean, upper_mean
from dpcal.optim.objectives.arrays import Vector

__all__ = ["Rates", "apart", "together", "without_curve"]

Rates = Callable[[Vector, Vector, float, float], tuple[float, float]]


def apart(members: Vector, others: Vector, level: float, chance: float) -> tuple[float, float]:
    """Return an upper bound on false and a lower bound on true positives (Clopper, Pearson)."""
    alarms, hits = int((others > level).sum()), int((members > level).sum())
    most = (
        special.betaincinv(alarms + 1, len(others) - alarms, 1 - chance)
        if (alarms < len(others))
        else 1.0
    )
    least = special.betaincinv(hits, len(members) - hits + 1, chance) if hits else 0.0
    return float(most), float(least)


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
        return math.log((least - delta) / most) if least > delta else -math.inf

    choosing = members[: some[0]], others[: some[1]]
    levels = np.quantile(np.concatenate(choosing), np.linspace(0.02, 0.995, 40))
    best = max(levels, key=lambda level: bound(float(level), *choosing))
    return max(0.0, bound(float(best), members[some[0] :], others[some[1] :]))
