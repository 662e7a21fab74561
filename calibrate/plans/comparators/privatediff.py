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

from dpcal import _validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.minimax.setting import Setting
from dpcal.calibrate.query import Query

__all__ = ["privatediff"]


@common.builder("replace-one", sizes="dimensions")
def privatediff(
    given: Given,
    *,
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
) -> Plan:
    """Return the plan of PrivateDiff that meets (epsilon, delta), with one noise multiplier.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps, period, inner_steps
        T rounds (200 when omitted), of which every ``period``-th (10) restarts, with so many ascent
        steps of y each (2).
    batch_size, refresh_size
        Expected records of ascents and differences (sqrt(n), at least a tenth of all, when
        omitted) and of restarts (all).
    learning_rate
        1 / (2 L_Phi) when omitted.

    Returns
    -------
    Plan
        Queries ``"ascent"``, ``"refresh"`` and ``"difference"``.

    References
    ----------
    Zhang et al. 2025 (PrivateDiff), as the comparison in Xu et al. 2026 describes it: step sizes
    and periods are not given there, so that its numbers cannot be reproduced from the text.
    """
    n, target = given.n, given.target
    setting = Setting.of(given, max_norm, value_smoothness)
    T = _validate.count(steps=200 if steps is None else steps)
    q = _validate.count(period=min(T, 10) if period is None else period)
    K = _validate.count(inner_steps=2 if inner_steps is None else inner_steps)
    if batch_size is None:
        batch_size = min(n, max(math.ceil(math.sqrt(n)), math.ceil(n / 10)))
    b1 = _validate.count(refresh_size=n if refresh_size is None else refresh_size)
    some, whole = (common.sampling_of(b, n, target.relation, sampler) for b in (batch_size, b1))
    restarts = -(-T // q)

    def queries(multiplier: float) -> tuple[Query, ...]:
        ascent = common.gradients(setting.C, multiplier, T * K, name="ascent", **some)
        refresh = common.gradients(setting.C, multiplier, restarts, name="refresh", **whole)
        if restarts == T:
            return ascent, refresh
        return ascent, refresh, common.differences(ascent, setting.L, count=T - restarts)

    parameters: dict[str, Parameter] = {
        **setting.dimensions,
        "steps": T,
        "period": q,
        "inner_steps": K,
        "batch_size": batch_size,
        "learning_rate": common.positive_or(0.5 / setting.L_Phi, learning_rate=learning_rate),
        "ascent_rate": common.positive_or(1 / setting.L, ascent_rate=ascent_rate),
    }
    return given.plan("privatediff", target.met_by(queries, n), parameters)
