"""From a target to PrivateDiff: inner ascents, restarts, and differences in between.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, strong_concavity=1.0)
>>> plan = privatediff(constants, n=1_000, dimensions=(3, 2), epsilon=2.0, delta=1e-6, steps=40,
...                    period=10, inner_steps=2, batch_size=100)
>>> [(query.name, query.count) for query in plan.queries]
[('ascent', 80), ('refresh', 4), ('difference', 36)]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpcal import _validate
from dpcal.calibrate.constants import Constants, public_constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.minimax.releases import positive_or, sampling_of, solved
from dpcal.calibrate.plans.minimax.setting import Setting
from dpcal.calibrate.query import Query

__all__ = ["privatediff"]


@public_constants
def privatediff(
    constants: Constants,
    *,
    n: int,
    dimensions: tuple[int, int],
    epsilon: float,
    delta: float,
    steps: int | None = None,
    period: int | None = None,
    inner_steps: int | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    ascent_rate: float | None = None,
    value_smoothness: float | None = None,
    sampler: str | None = None,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of PrivateDiff that meets (epsilon, delta), with one noise multiplier.

    Parameters
    ----------
    constants
        Public constants of one record's F: ``lipschitz`` (unless ``max_norm`` is given),
        ``smoothness`` and ``strong_concavity``.
    n
        Number of records, >= 1, public.
    dimensions
        d1 and d2.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    steps, period, inner_steps
        T rounds (200 when omitted), of which every ``period``-th (10) restarts, with so many ascent
        steps of y each (2).
    batch_size, refresh_size
        Expected records, in [1, n], of ascents and differences (sqrt(n), at least a tenth of all,
        when omitted) and of restarts (all).
    max_norm
        C1 > 0, to which a record's pair of gradients is clipped; M when omitted.
    learning_rate, ascent_rate
        Step sizes > 0 of x and of y; 1 / (2 L_Phi) and 1 / L when omitted.
    value_smoothness
        L_Phi > 0; (1 + kappa) L when omitted.
    sampler
        ``"fixed-size"`` (the default under replace-one) or ``"poisson"`` (the default otherwise).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    Plan
        Queries ``"ascent"``, ``"refresh"`` and ``"difference"``.

    References
    ----------
    Zhang et al. 2025 (PrivateDiff), as the comparison in Xu et al. 2026 describes it: step sizes
    and periods are not given there, so that its numbers cannot be reproduced from the text.
    """
    target = (epsilon, delta, neighboring_relation)
    setting = Setting.of(constants, n, dimensions, target, max_norm, value_smoothness)
    n = setting.n
    T = _validate.count(steps=200 if steps is None else steps)
    q = _validate.count(period=min(T, 10) if period is None else period)
    K = _validate.count(inner_steps=2 if inner_steps is None else inner_steps)
    if batch_size is None:
        batch_size = min(n, max(math.ceil(math.sqrt(n)), math.ceil(n / 10)))
    sampling = sampling_of(batch_size, n, neighboring_relation, sampler)
    whole = sampling_of(
        n if refresh_size is None else refresh_size, n, neighboring_relation, sampler
    )
    return Plan(
        optimizer="privatediff",
        n=n,
        queries=solved(_queries(setting, (T, q, K), (sampling, whole)), n, target),
        epsilon=float(epsilon),
        delta=float(delta),
        neighboring_relation=neighboring_relation,
        parameters={
            "primal_dimension": setting.d1,
            "dual_dimension": setting.d2,
            "steps": T,
            "period": q,
            "inner_steps": K,
            "batch_size": batch_size,
            "learning_rate": positive_or(0.5 / setting.L_Phi, learning_rate=learning_rate),
            "ascent_rate": positive_or(1 / setting.L, ascent_rate=ascent_rate),
        },
    )


def _queries(
    setting: Setting,
    counts: tuple[int, int, int],
    sampling: tuple[dict[str, Any], dict[str, Any]],
) -> Callable[[float], tuple[Query, ...]]:
    """Return queries as a function of their noise multiplier."""
    T, q, K = counts
    some, whole = sampling
    restarts = -(-T // q)

    def queries(multiplier: float) -> tuple[Query, ...]:
        gradient: dict[str, Any] = {
            "kind": "gradient",
            "max_norm": setting.C,
            "noise_multiplier": multiplier,
        }
        made = [
            Query(name="ascent", count=T * K, **gradient, **some),
            Query(name="refresh", count=restarts, **gradient, **whole),
        ]
        if restarts < T:
            difference = Query(
                name="difference",
                kind="gradient difference",
                max_norm=setting.L,
                proportional=True,
                cap=2 * setting.C,
                noise_multiplier=multiplier,
                count=T - restarts,
                **some,
            )
            made.append(difference)
        return tuple(made)

    return queries
