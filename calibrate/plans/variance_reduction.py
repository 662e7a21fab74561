"""How much noise for a gradient estimate that is refreshed now and then, else kept by differences?

A refresh queries gradients, a difference their change between two points. Each has samples of its
own size. In a minimax problem one release is about both blocks at once: they share its sample, so
that to account for them apart would be wrong. Where theorems leave absolute constants open, the
ratio of the two noise multipliers is the theorem's, and their common scale is calibrated.

>>> releases = Releases(n=400, steps=400, period=10, inner=5, refresh_size=200, batch_size=50,
...                     relation="replace-one")
>>> releases.refreshes, releases.differences
(40, 1960)
>>> common = releases.scaled((1.0, 1.0), Target(2.0, 1e-6, "replace-one"))
>>> print(f"{common[0] / 2:.3f}")  # relative to 2 C / b, of which a record that is replaced moves
14.531
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.calibrate.plan import compose
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Target
from dpcal.calibrate.query import Query

# Largest noise of differences in proportion to steps, in units of the estimate.
_FEEDBACK = 0.5
# Largest share of the promised fall by which noise may raise the loss.
_RAISED = 0.1


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds to which contributions are clipped.

    Parameters
    ----------
    gradient
        C > 0, of a record's gradient, or of its pair of gradients in a minimax problem.
    difference
        Bound on a record's difference: the bound itself, or with ``proportional`` per unit of
        movement, and at most 2 C.
    proportional
        Which of the two.
    """

    gradient: float = 1.0
    difference: float = 1.0
    proportional: bool = True


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Counts of every release of a run, and sizes of their samples.

    Parameters
    ----------
    n
        Number of records.
    steps
        T: outer steps, at least 1.
    period
        q: outer steps from one refresh to the next, at most T.
    refresh_size, batch_size
        Expected records of a refresh and of a difference, in [1, n]; n is all of them.
    relation
        The neighboring relation.
    inner
        K: estimates of an outer step, at least 1.
    sampler
        Sampler of samples that are not all records; None for the relation's default.
    literal
        Whether an outer step with a refresh makes K differences too, as printed in the paper of
        DP-RGDA.
    warm_start
        Refreshes before the first outer step.
    """

    n: int
    steps: int
    period: int
    refresh_size: int
    batch_size: int
    relation: str
    inner: int = 1
    sampler: str | None = None
    literal: bool = False
    warm_start: int = 0

    def __post_init__(self) -> None:
        for name in ("n", "steps", "period", "inner"):
            object.__setattr__(self, name, validate.count(**{name: getattr(self, name)}))
        for name in ("refresh_size", "batch_size"):
            size = common.at_most(self.n, **{name: getattr(self, name)})
            object.__setattr__(self, name, size)
        if self.steps < self.period:
            raise ValueError(
                f"steps must be at least period={self.period}, or the estimates are never "
                f"refreshed, got {self.steps}."
            )

    @property
    def refreshes(self) -> int:
        """R = ceil(T / q)."""
        return -(-self.steps // self.period)

    @property
    def differences(self) -> int:
        """T K - R, or T K as printed."""
        return self.steps * self.inner - (0 if self.literal else self.refreshes)

    def queries(self, multipliers: tuple[float, float], bounds: Bounds) -> tuple[Query, ...]:
        """Return ``"warm start"``, ``"refresh"`` and ``"difference"``, as far as they are needed.

        Multipliers for a refresh and for a difference, in units of the bounds.
        """
        (z1, z2), sizes = multipliers, (self.refresh_size, self.batch_size)
        whole, some = (common.sampling_of(b, self.n, self.relation, self.sampler) for b in sizes)
        refresh = common.gradients(bounds.gradient, z1, self.refreshes, name="refresh", **whole)
        made = [refresh]
        if self.warm_start:
            made.insert(0, dataclasses.replace(refresh, name="warm start", count=self.warm_start))
        if self.differences:
            own = {"noise_multiplier": z2, "count": self.differences, **some}
            own |= {} if bounds.proportional else {"proportional": False, "cap": None}
            made.append(common.differences(refresh, bounds.difference, **own))
        return tuple(made)

    def event(self, multipliers: tuple[float, float]) -> events.DpEvent:
        """Return the event of the whole run."""
        queries = self.queries(multipliers, Bounds())
        return compose(((query, query.count) for query in queries), self.n, self.relation)

    def split(self, variances: tuple[float, float]) -> tuple[float, float]:
        """Return the ratio of noises with the least variance of an estimate, at one epsilon.

        An estimate errs by ``a1 z1^2 + a2 z2^2`` at the end of a period, a1 and a2 > 0 being the
        variances. Then ``z1^2 : z2^2 = sqrt(c1 / a1) : sqrt(c2 / a2)``, with c1 and c2 the counts
        times squared sampling rates, which are the costs at large noise.
        """
        refreshes, differences = self.refreshes + self.warm_start, max(self.differences, 1)
        one = refreshes * (self.refresh_size / self.n) ** 2 / variances[0]
        two = differences * (self.batch_size / self.n) ** 2 / variances[1]
        return 1.0, two**0.25 / one**0.25

    def scaled(self, ray: tuple[float, float], target: Target) -> tuple[float, float]:
        """Return the smallest multipliers along a ray that meet a target, exactly."""
        scale = target.noise(lambda value: self.event((value * ray[0], value * ray[1])))
        return scale * ray[0], scale * ray[1]


def rate_within_noise(
    queries: tuple[Query, ...], *, n: int, d: float, L: float, steps: int, period: int
) -> float:
    """Return 1 / (2 L), or less where noise would lead the iterates away from where they start.

    Queries are a refresh and, if needed, a difference. The noise of a refresh, of variance v, is in
    ``period`` steps one after another, and so leads iterates of step size eta away by eta^2 steps
    period v on average, which raises the loss by L / 2 times as much. It may raise it by a tenth of
    C^2 / (2 L), the most that a gradient of norm C promises to lower it by. Noise in proportion to
    steps must not feed on itself.
    """
    rate, variance = 0.5 / L, 0.0
    refresh = queries[0]
    for query in queries:
        noise = math.sqrt(d) * query.noise_multiplier * query.max_norm
        noise /= query.expected_batch_size(n)
        if query.proportional:
            rate = min(rate, _FEEDBACK / (noise * math.sqrt(steps)))
        else:
            variance += noise**2 * (1 if query is refresh else period / 2)
    far = math.sqrt(steps * period * variance / _RAISED)
    return min(rate, refresh.max_norm / (L * far))
