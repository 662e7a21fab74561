"""From a target to Sto-SPIDER: sampled gradients now and then, clipped differences in between.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0)
>>> plan = sto_spider(constants, n=400, dimension=120, epsilon=2.0, delta=1e-6, steps=400,
...                   period=10, refresh_size=200, batch_size=50)
>>> print(f"{plan.query('refresh').noise_multiplier / 2:.3f}")  # relative to 2 C / b
9.086
"""

from __future__ import annotations

from typing import Any

from dpcal import _validate
from dpcal.calibrate.constants import Constants, public_constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.minimax.releases import Bounds, Releases, positive_or
from dpcal.calibrate.plans.minimax.setting import Setting

__all__ = ["sto_spider"]


@public_constants
def sto_spider(
    constants: Constants,
    *,
    n: int,
    dimension: int,
    epsilon: float,
    delta: float,
    steps: int | None = None,
    period: int | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    sampler: str | None = None,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of Sto-SPIDER that meets (epsilon, delta), with one noise multiplier.

    It minimises a function itself: the value function of a minimax problem where it is known.

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
    steps, period
        T steps (400 when omitted), of which every ``period``-th (10) asks afresh.
    batch_size, refresh_size
        Expected records, in [1, n], of a difference (an eighth of all when omitted) and of a fresh
        gradient (half of them).
    max_norm
        C > 0, to which gradients and differences alike are clipped; L0 when omitted.
    learning_rate
        Step size > 0; 1 / (2 L1) when omitted.
    sampler
        ``"fixed-size"`` (the default under replace-one) or ``"poisson"`` (the default otherwise).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    Plan
        Queries ``"refresh"`` and ``"difference"``.

    References
    ----------
    Liu, Ganesh, Oh and Thakurta 2023, Private (stochastic) non-convex optimization revisited, as
    Xu et al. 2026 run it: without restarts on drift and without further noise near saddle points.
    """
    target = (epsilon, delta, neighboring_relation)
    setting = Setting.of(constants, n, (dimension, 0), target, max_norm)
    T = _validate.count(steps=400 if steps is None else steps)
    sizes: dict[str, Any] = {
        "batch_size": max(1, setting.n // 8) if batch_size is None else batch_size,
        "refresh_size": max(1, setting.n // 2) if refresh_size is None else refresh_size,
    }
    releases = Releases(
        n=setting.n,
        steps=T,
        period=min(T, 10) if period is None else period,
        inner=1,
        relation=neighboring_relation,
        sampler=sampler,
        **sizes,
    )
    bounds = Bounds(gradient=setting.C, difference=setting.C, proportional=False)
    multipliers = releases.scaled((1.0, 1.0), epsilon=epsilon, delta=delta)
    return Plan(
        optimizer="sto_spider",
        n=setting.n,
        queries=releases.queries(multipliers, bounds),
        epsilon=float(epsilon),
        delta=float(delta),
        neighboring_relation=neighboring_relation,
        parameters={
            "primal_dimension": setting.d1,
            "dual_dimension": 0,
            "steps": T,
            "period": releases.period,
            "learning_rate": positive_or(0.5 / setting.L, learning_rate=learning_rate),
            **sizes,
        },
    )
