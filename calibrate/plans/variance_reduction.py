"""How much noise for a gradient estimate that is refreshed now and then, else kept by differences?

A refresh asks all records; a difference asks a batch. Where theorems leave absolute constants open,
the ratio of the two noise multipliers is the theorem's, and their common scale is calibrated.

>>> counts = Counts(n=1_000, steps=100, period=10, batch=50, relation="add-or-remove-one")
>>> counts.refreshes, counts.differences
(10, 90)
>>> [query.sampler for query in counts.queries((3.0, 1.0), max_norm=1.0, per_distance=1.0)]
['full', 'poisson']
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcal.accountants import events
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.plan import compose
from dpcal.calibrate.plans.common import single_release
from dpcal.calibrate.query import Query

__all__ = ["Counts", "Target", "settled_counts"]

Target = tuple[float, float, str]
"""epsilon, delta and the neighboring relation."""

# Schedule and noise scale are alternated until the scale changes by less than this ratio. The scale
# enters settings that are rounded to whole numbers, so more digits would not change a plan by more
# than a step or two. Neither half nor twice of it changes the one plan that reads it.
_SETTLED = 0.002
# How often schedule and noise scale are alternated at most. Neither half nor twice of it changes
# the one plan that reads it.
_ROUNDS = 6


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How often an estimate is refreshed and updated, and on how many records.

    Parameters
    ----------
    n
        Number of records.
    steps
        Steps of the outer loop, at least 1.
    period
        The estimate is refreshed every so many steps.
    batch
        Expected number of records of a difference, at most n. Batches are Poisson samples, or of a
        fixed size where a record is replaced, or all records where ``batch`` is n.
    relation
        The neighboring relation.
    inner
        Answers of a step: more than one where a step has an inner loop.
    """

    n: int
    steps: int
    period: int
    batch: int
    relation: str
    inner: int = 1

    @property
    def refreshes(self) -> int:
        """Fresh gradients of the whole run."""
        return -(-self.steps // self.period)

    @property
    def differences(self) -> int:
        """Differences of the whole run."""
        return max(0, self.steps * self.inner - self.refreshes)

    def queries(
        self, multipliers: tuple[float, float], max_norm: float, per_distance: float
    ) -> tuple[Query, ...]:
        """Return the plan's queries: ``"refresh"`` and, if any is asked, ``"difference"``.

        Parameters
        ----------
        multipliers
            Noise multipliers of a refresh and of a difference.
        max_norm
            Bound C > 0 on the norm of one record's gradient.
        per_distance
            Bound on its change per unit of distance between iterates, capped at 2 C.
        """
        refresh = Query(
            name="refresh",
            kind="gradient",
            sampler="full",
            max_norm=max_norm,
            noise_multiplier=multipliers[0],
            count=self.refreshes,
        )
        if not self.differences:
            return (refresh,)
        sampler = "fixed-size" if self.relation == "replace-one" else "poisson"
        sampler = sampler if self.batch < self.n else "full"
        difference = Query(
            name="difference",
            kind="gradient difference",
            sampler=sampler,
            sampling_probability=self.batch / self.n if sampler == "poisson" else None,
            batch_size=self.batch if sampler == "fixed-size" else None,
            max_norm=per_distance,
            proportional=True,
            cap=2 * max_norm,
            noise_multiplier=multipliers[1],
            count=self.differences,
        )
        return refresh, difference

    def event(self, multipliers: tuple[float, float], first: int = 0) -> events.DpEvent:
        """Return the event of the whole run, or of its differences alone if ``first`` is 1."""
        queries = self.queries(multipliers, 1.0, 1.0)[first:]
        return compose(((query, query.count) for query in queries), self.n, self.relation)

    def multipliers(self, scale: float) -> tuple[float, float]:
        """Return the noise multipliers at a common scale, in the ratio of the theorems."""
        refresh = max(1.0, math.sqrt(self.steps / self.period))
        difference = max(1.0, self.batch * math.sqrt(self.steps * self.inner) / self.n)
        return scale * refresh, scale * difference


def settled_counts(
    counts_at: Callable[[float], Counts], target: Target, *, n: int, d: float
) -> tuple[Counts, float, float]:
    """Alternate between a theorem's counts and their exact noise scale until both settle.

    Parameters
    ----------
    counts_at
        The counts as a function of the theorem's rate variable, sqrt(d) scale / n.
    target
        epsilon, delta and the neighboring relation.
    n, d
        Records and dimension.

    Returns
    -------
    tuple
        Counts, noise scale and rate variable.
    """
    epsilon, delta, relation = target
    scale = math.sqrt(2) * single_release(epsilon, delta, relation)
    rate = math.sqrt(d) * scale / n
    for _ in range(_ROUNDS):
        counts = counts_at(rate)
        renewed = noise_multiplier(
            lambda value, counts=counts: counts.event(counts.multipliers(value)),  # type: ignore[misc]
            epsilon=epsilon,
            delta=delta,
            neighboring_relation=relation,
        )
        settled = abs(renewed - scale) < _SETTLED * scale
        scale, rate = renewed, math.sqrt(d) * renewed / n
        if settled:
            break
    return counts, scale, rate
