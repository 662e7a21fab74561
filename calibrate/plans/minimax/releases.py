"""How much noise for both gradients of a minimax problem? Joint releases, and their split.

One release is about both blocks at once: they share its sample, so that to account for them apart
would be wrong. A refresh asks for gradients, an increment for their differences.

>>> releases = Releases(n=400, steps=400, period=10, inner=5, refresh_size=200, batch_size=50,
...                     relation="replace-one")
>>> releases.refreshes, releases.increments
(40, 1960)
>>> common = releases.scaled((1.0, 1.0), epsilon=2.0, delta=1e-6)
>>> print(f"{common[0] / 2:.3f}")  # relative to 2 C / b, of which a record that is replaced moves
14.531
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcal import _validate
from dpcal.accountants import events
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.plan import compose
from dpcal.calibrate.query import Query

__all__ = ["Bounds", "Releases", "positive_or", "sampler_for", "sampling_of", "solved"]

SAMPLERS = ("fixed-size", "poisson")


def sampler_for(relation: str) -> str:
    """Return the sampler of batches under a relation: fixed sizes where a record is replaced."""
    return "fixed-size" if relation == "replace-one" else "poisson"


def positive_or(default: float, **argument: float | None) -> float:
    """Return an argument that must be a number > 0, or the default where it is None."""
    (value,) = argument.values()
    return default if value is None else _validate.positive(**argument)


def sampling_of(size: int, n: int, relation: str, sampler: str | None = None) -> dict[str, Any]:
    """Return the keywords of a query about samples of a size; all records where it is n.

    Parameters
    ----------
    size
        Expected number of records, in [1, n].
    n
        Number of records.
    relation
        The neighboring relation.
    sampler
        ``"fixed-size"`` or ``"poisson"``; None for that of the relation.
    """
    if _validate.count(batch_size=size) > n:
        raise ValueError(f"batch_size must be at most n={n}, got {size}.")
    chosen = sampler_for(relation) if sampler is None else sampler
    _validate.choice(SAMPLERS, sampler=chosen)
    if size == n:
        return {"sampler": "full"}
    if chosen == "poisson":
        return {"sampler": "poisson", "sampling_probability": size / n}
    return {"sampler": "fixed-size", "batch_size": int(size)}


def solved(
    queries_of: Callable[[float], tuple[Query, ...]], n: int, target: tuple[float, float, str]
) -> tuple[Query, ...]:
    """Return queries with the least common noise multiplier that meets a target.

    Parameters
    ----------
    queries_of
        From a multiplier to queries.
    n
        Number of records.
    target
        epsilon, delta and the neighboring relation.
    """
    epsilon, delta, relation = target
    multiplier = noise_multiplier(
        lambda value: compose(((each, each.count) for each in queries_of(value)), n, relation),
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=relation,
    )
    return queries_of(multiplier)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """To what contributions are clipped.

    Parameters
    ----------
    gradient
        C1 > 0, of a record's pair of gradients.
    difference
        Of a record's difference: C_u > 0 itself (rule A), or with ``proportional`` per unit of
        joint movement of (x, y), and at most 2 C1 (rule B).
    proportional
        Which of the two.
    """

    gradient: float = 1.0
    difference: float = 1.0
    proportional: bool = True


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Every release of a run, as counts and sizes of samples.

    Parameters
    ----------
    n
        Number of records.
    steps
        T: outer steps, at least 1.
    period
        q: outer steps from one refresh to the next.
    inner
        K: estimates of an outer step, at least 1.
    refresh_size, batch_size
        Expected records of a refresh and of an increment, in [1, n]; n is all of them.
    relation
        The neighboring relation.
    sampler
        Of samples that are not all records; None for that of the relation.
    literal
        Whether an outer step with a refresh makes K increments too, as printed in the paper.
    warm_start
        Refreshes before the first outer step.
    """

    n: int
    steps: int
    period: int
    inner: int
    refresh_size: int
    batch_size: int
    relation: str
    sampler: str | None = None
    literal: bool = False
    warm_start: int = 0

    def __post_init__(self) -> None:
        for name in ("n", "steps", "period", "inner", "refresh_size", "batch_size"):
            object.__setattr__(self, name, _validate.count(**{name: getattr(self, name)}))
        for name in ("refresh_size", "batch_size"):
            if getattr(self, name) > self.n:
                raise ValueError(f"{name} must be at most n={self.n}, got {getattr(self, name)}.")
        if self.steps < self.period:
            raise ValueError(
                f"steps must be at least period={self.period}, or the estimates are never "
                f"refreshed, got {self.steps}."
            )
        if self.sampler is not None:
            _validate.choice(SAMPLERS, sampler=self.sampler)

    @property
    def refreshes(self) -> int:
        """R = ceil(T / q)."""
        return -(-self.steps // self.period)

    @property
    def increments(self) -> int:
        """T K - R, or T K as printed."""
        return self.steps * self.inner - (0 if self.literal else self.refreshes)

    def queries(self, multipliers: tuple[float, float], bounds: Bounds) -> tuple[Query, ...]:
        """Return the plan's queries, of those below that are asked at all.

        They are ``"warm start"``, ``"refresh"`` and ``"difference"``.

        Parameters
        ----------
        multipliers
            Noise multipliers of a refresh and of an increment, in units of the bounds.
        bounds
            To what contributions are clipped.
        """
        refresh = Query(
            name="refresh",
            kind="gradient",
            max_norm=bounds.gradient,
            noise_multiplier=multipliers[0],
            count=self.refreshes,
            **self._sampling(self.refresh_size),
        )
        made = [refresh]
        if self.warm_start:
            made.insert(0, dataclasses.replace(refresh, name="warm start", count=self.warm_start))
        if self.increments:
            made.append(
                Query(
                    name="difference",
                    kind="gradient difference",
                    max_norm=bounds.difference,
                    proportional=bounds.proportional,
                    cap=2 * bounds.gradient if bounds.proportional else None,
                    noise_multiplier=multipliers[1],
                    count=self.increments,
                    **self._sampling(self.batch_size),
                )
            )
        return tuple(made)

    def event(self, multipliers: tuple[float, float]) -> events.DpEvent:
        """Return the event of the whole run."""
        queries = self.queries(multipliers, Bounds())
        return compose(((query, query.count) for query in queries), self.n, self.relation)

    def split(self, variances: tuple[float, float]) -> tuple[float, float]:
        """Return the ratio of noises with the least variance of an estimate, at one price.

        Parameters
        ----------
        variances
            a1 and a2 > 0: an estimate errs by ``a1 z1^2 + a2 z2^2`` at the end of a period.

        Returns
        -------
        tuple
            z1 and z2 up to a common factor: ``z1^2 : z2^2 = sqrt(c1 / a1) : sqrt(c2 / a2)``, c1
            and c2 being counts times squared sampling rates, which are the prices where noise is
            plenty. At another price a common factor is solved for.
        """
        costs = (
            (self.refreshes + self.warm_start) * (self.refresh_size / self.n) ** 2,
            max(self.increments, 1) * (self.batch_size / self.n) ** 2,
        )
        ratios = [(cost / a) ** 0.25 for cost, a in zip(costs, variances, strict=True)]
        return 1.0, ratios[1] / ratios[0]

    def scaled(
        self, ray: tuple[float, float], *, epsilon: float, delta: float
    ) -> tuple[float, float]:
        """Return the smallest multipliers along a ray that meet (epsilon, delta), exactly."""
        scale = noise_multiplier(
            lambda value: self.event((value * ray[0], value * ray[1])),
            epsilon=epsilon,
            delta=delta,
            neighboring_relation=self.relation,
        )
        return scale * ray[0], scale * ray[1]

    def implied_constants(
        self, multipliers: tuple[float, float], *, epsilon: float, delta: float
    ) -> tuple[float, float]:
        """Return what the paper's universal constant c would be, for a refresh and an increment.

        Algorithm 3 prints noise ``c C sqrt(log(1 / delta)) / epsilon max(1 / b, sqrt(count) / n)``
        on an average over b records. The values are a diagnostic; no noise is set by them.
        """
        found = []
        counts = (self.steps / self.period, self.steps * self.inner)
        for z, size, count in zip(
            multipliers, (self.refresh_size, self.batch_size), counts, strict=True
        ):
            printed = max(1 / size, math.sqrt(count) / self.n) * math.sqrt(math.log(1 / delta))
            found.append(z / size * epsilon / printed)
        return found[0], found[1]

    def _sampling(self, size: int) -> dict[str, Any]:
        return sampling_of(size, self.n, self.relation, self.sampler)
