"""From a target to Ada-DP-SPIDER: gradients afresh when the iterate has drifted, up to a number.

When an estimate is refreshed depends on what was released, so that its count is not known before
the run. The plan pays for the most that may be asked; the order is free.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0)
>>> plan = ada_dp_spider(constants, n=1_000, dimension=5, epsilon=2.0, delta=1e-6, steps=100,
...                      most_refreshes=8)
>>> [(query.name, query.count) for query in plan.queries]
[('refresh', 8), ('difference', 100)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcal import _validate
from dpcal.calibrate.constants import Constants, public_constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.minimax.releases import positive_or, sampling_of, solved
from dpcal.calibrate.plans.minimax.setting import Setting
from dpcal.calibrate.query import Query

__all__ = ["ada_dp_spider"]


@public_constants
def ada_dp_spider(
    constants: Constants,
    *,
    n: int,
    dimension: int,
    epsilon: float,
    delta: float,
    steps: int | None = None,
    most_refreshes: int | None = None,
    drift: float | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    sampler: str | None = None,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of Ada-DP-SPIDER that meets (epsilon, delta), with one noise multiplier.

    Parameters
    ----------
    constants
        Public constants of one record's loss: ``lipschitz`` (unless ``max_norm`` is given) and
        ``smoothness``.
    n
        Number of records, >= 1, public.
    dimension
        Number of parameters, >= 1.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    steps, most_refreshes
        T steps (400 when omitted) and the most, in [1, T], that may ask afresh (a tenth of them):
        all later ones are differences.
    drift
        kappa_d > 0: an estimate is refreshed once ``eta^2 ||v||^2`` have summed up to it; 0.1 when
        omitted, which the cited experiments use.
    batch_size, refresh_size
        Expected records, in [1, n], of a difference (an eighth of all when omitted) and of a fresh
        gradient (half of them).
    max_norm
        C > 0, to which a record's gradient is clipped, and its difference to at most 2 C; L0 when
        omitted.
    learning_rate
        eta > 0; 1 / (2 L1) when omitted.
    sampler
        ``"fixed-size"`` (the default under replace-one) or ``"poisson"`` (the default otherwise).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    Plan
        Queries ``"refresh"`` and ``"difference"``, whose noise is in proportion to the movement.

    References
    ----------
    Tao et al. 2025 (Ada-DP-SPIDER), as Xu et al. 2026 run it on an explicit value function.
    """
    target = (epsilon, delta, neighboring_relation)
    setting = Setting.of(constants, n, (dimension, 0), target, max_norm)
    T = _validate.count(steps=400 if steps is None else steps)
    most = max(1, T // 10) if most_refreshes is None else most_refreshes
    if _validate.count(most_refreshes=most) > T:
        raise ValueError(f"most_refreshes must be at most steps={T}, got {most}.")
    b1 = max(1, setting.n // 2) if refresh_size is None else refresh_size
    b2 = max(1, setting.n // 8) if batch_size is None else batch_size
    whole, some = (sampling_of(size, setting.n, neighboring_relation, sampler) for size in (b1, b2))

    return Plan(
        optimizer="ada_dp_spider",
        n=setting.n,
        queries=solved(_queries(setting, (most, T), (whole, some)), setting.n, target),
        epsilon=float(epsilon),
        delta=float(delta),
        neighboring_relation=neighboring_relation,
        parameters={
            "primal_dimension": setting.d1,
            "dual_dimension": 0,
            "steps": T,
            "drift": _validate.positive(drift=0.1 if drift is None else drift),
            "batch_size": b2,
            "refresh_size": b1,
            "learning_rate": positive_or(0.5 / setting.L, learning_rate=learning_rate),
        },
    )


def _queries(
    setting: Setting,
    counts: tuple[int, int],
    sampling: tuple[dict[str, Any], dict[str, Any]],
) -> Callable[[float], tuple[Query, ...]]:
    """Return queries as a function of their noise multiplier."""
    (most, T), (whole, some) = counts, sampling

    def queries(multiplier: float) -> tuple[Query, ...]:
        return (
            Query(
                name="refresh",
                kind="gradient",
                max_norm=setting.C,
                noise_multiplier=multiplier,
                count=most,
                **whole,
            ),
            Query(
                name="difference",
                kind="gradient difference",
                max_norm=setting.L,
                proportional=True,
                cap=2 * setting.C,
                noise_multiplier=multiplier,
                count=T,
                **some,
            ),
        )

    return queries
