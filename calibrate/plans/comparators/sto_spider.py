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
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import Given, builder, positive_or
from dpcal.calibrate.plans.minimax.setting import Setting
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases, rate_within_noise

__all__ = ["sto_spider"]


@builder("replace-one")
def sto_spider(
    given: Given,
    *,
    steps: int | None = None,
    period: int | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    sampler: str | None = None,
) -> Plan:
    """Return the plan of Sto-SPIDER that meets (epsilon, delta), with one noise multiplier.

    It minimises a function itself: the value function of a minimax problem where it is known.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps, period
        T steps (400 when omitted), of which every ``period``-th (10) takes a fresh gradient.
    batch_size, refresh_size
        An eighth and a half of all records when omitted.
    max_norm
        Gradients and differences alike are clipped to it.
    learning_rate
        1 / (2 L) when omitted, or less where noise would lead the iterates away.

    Returns
    -------
    Plan
        Queries ``"refresh"`` and ``"difference"``.

    References
    ----------
    Liu, Ganesh, Oh and Thakurta 2023, Private (stochastic) non-convex optimization revisited, as
    Xu et al. 2026 run it: without restarts on drift and without further noise near saddle points.
    """
    target, setting = given.target, Setting.of(given, max_norm)
    T = _validate.count(steps=400 if steps is None else steps)
    b1 = max(1, setting.n // 2) if refresh_size is None else refresh_size
    b2 = max(1, setting.n // 8) if batch_size is None else batch_size
    sizes: dict[str, Any] = {"batch_size": b2, "refresh_size": _validate.count(refresh_size=b1)}
    releases = Releases(
        n=setting.n,
        steps=T,
        period=min(T, 10) if period is None else period,
        relation=target.relation,
        sampler=sampler,
        **sizes,
    )
    bounds = Bounds(gradient=setting.C, difference=setting.C, proportional=False)
    queries = releases.queries(releases.scaled((1.0, 1.0), target), bounds)
    rate = rate_within_noise(
        queries, n=setting.n, d=setting.d, L=setting.L, steps=T, period=releases.period
    )
    parameters = {
        **setting.dimensions,
        "steps": T,
        "period": releases.period,
        "learning_rate": positive_or(rate, learning_rate=learning_rate),
        **sizes,
    }
    return given.plan("sto_spider", queries, parameters)
