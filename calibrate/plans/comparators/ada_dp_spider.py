"""From a target to Ada-DP-SPIDER: gradients afresh when the iterate has drifted, up to a number.

The released values decide when an estimate is refreshed, so the number of refreshes is not known
before the run. The plan pays for the largest number; the order is free.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0)
>>> plan = ada_dp_spider(constants, n=1_000, dimension=5, epsilon=2.0, delta=1e-6, steps=100,
...                      most_refreshes=8)
>>> [(query.name, query.count) for query in plan.queries]
[('refresh', 8), ('difference', 100)]
"""

from __future__ import annotations

from dpcal import _validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.minimax.setting import Setting
from dpcal.calibrate.plans.variance_reduction import rate_within_noise
from dpcal.calibrate.query import Query

__all__ = ["ada_dp_spider"]


@common.builder("replace-one")
def ada_dp_spider(
    given: Given,
    *,
    steps: int | None = None,
    most_refreshes: int | None = None,
    drift: float | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    sampler: str | None = None,
) -> Plan:
    """Return the plan of Ada-DP-SPIDER that meets (epsilon, delta), with one noise multiplier.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps, most_refreshes
        T steps (400 when omitted) and the most, in [1, T], that may take a fresh gradient (a tenth
        of them): all later ones are differences.
    drift
        kappa_d > 0: an estimate is refreshed once ``eta^2 ||v||^2`` have summed up to it; 0.1 when
        omitted, which the cited experiments use.
    batch_size, refresh_size
        An eighth and a half of all records when omitted.
    max_norm
        A record's difference is clipped to at most twice this bound.
    learning_rate
        1 / (2 L) when omitted, or less where noise would lead the iterates away.

    Returns
    -------
    Plan
        Queries ``"refresh"`` and ``"difference"``, whose noise is in proportion to the movement.

    References
    ----------
    Tao et al. 2025 (Ada-DP-SPIDER), as Xu et al. 2026 run it on an explicit value function.
    """
    n, target, setting = given.n, given.target, Setting.of(given, max_norm)
    T = _validate.count(steps=400 if steps is None else steps)
    most = max(1, T // 10) if most_refreshes is None else most_refreshes
    if _validate.count(most_refreshes=most) > T:
        raise ValueError(f"most_refreshes must be at most steps={T}, got {most}.")
    b1 = _validate.count(refresh_size=max(1, n // 2) if refresh_size is None else refresh_size)
    b2 = max(1, n // 8) if batch_size is None else batch_size
    whole, some = (common.sampling_of(size, n, target.relation, sampler) for size in (b1, b2))

    def queries(multiplier: float) -> tuple[Query, ...]:
        refresh = common.gradients(setting.C, multiplier, most, name="refresh", **whole)
        return refresh, common.differences(refresh, setting.L, count=T, **some)

    made = target.met_by(queries, n)
    # Short steps may never drift far enough for a second refresh.
    rate = rate_within_noise(made, n=n, d=setting.d, L=setting.L, steps=T, period=T)
    parameters: dict[str, Parameter] = {
        **setting.dimensions,
        "steps": T,
        "drift": common.positive_or(0.1, drift=drift),
        "batch_size": b2,
        "refresh_size": b1,
        "learning_rate": common.positive_or(rate, learning_rate=learning_rate),
    }
    return given.plan("ada_dp_spider", made, parameters)
