"""Plan builders of the methods that the papers of this package are compared with.

For their parameters see :mod:`dpcal.calibrate.plans` and :mod:`dpcal.calibrate.plans.minimax`. Each
has one noise multiplier for all its answers.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, strong_concavity=1.0)
>>> target = dict(epsilon=2.0, delta=1e-6)
>>> plan = dp_sgda(constants, n=400, dimensions=(3, 2), steps=400, batch_size=50, **target)
>>> print(f"{plan.query('gradient').noise_multiplier / 2:.3f}")  # relative to 2 C / b
5.931
>>> plan = privatediff(constants, n=1_000, dimensions=(3, 2), steps=40, period=10, inner_steps=2,
...                    batch_size=100, **target)
>>> [(query.name, query.count) for query in plan.queries]
[('ascent', 80), ('refresh', 4), ('difference', 36)]
>>> plan = ada_dp_spider(constants, n=1_000, dimension=5, steps=100, most_refreshes=8, **target)
>>> [(query.name, query.count) for query in plan.queries]
[('refresh', 8), ('difference', 100)]
>>> plan = sto_spider(constants, n=400, dimension=120, steps=400, period=10, refresh_size=200,
...                   batch_size=50, **target)
>>> print(f"{plan.query('refresh').noise_multiplier / 2:.3f}")
9.086
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import (
    Given,
    builder,
    differences,
    gradients,
    positive_or,
    sampling_of,
)
from dpcal.calibrate.plans.minimax.dp_rgda import Setting
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases, rate_within_noise
from dpcal.calibrate.query import Query


@builder("replace-one", sizes="dimensions")
def dp_sgda(
    given: Given,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    ascent_rate: float | None = None,
    value_smoothness: float | None = None,
) -> Plan:
    """Return the plan of DP-SGDA that meets (epsilon, delta): a release of both gradients a step.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps
        Twenty passes when omitted.
    batch_size
        3 sqrt(n), and at least 64, when omitted.
    learning_rate
        1 / L_Phi when omitted.

    Returns
    -------
    Plan
        One query, ``"gradient"``.

    References
    ----------
    Yang, Hu, Wang and Ying 2022, Differentially private SGDA for minimax problems.
    """
    n, setting = given.n, Setting.of(given, max_norm, value_smoothness)
    b = min(n, max(64, math.ceil(3 * math.sqrt(n)))) if batch_size is None else batch_size
    sampling = sampling_of(b, n, given.target.relation)
    T = math.ceil(20 * n / b) if steps is None else validate.count(steps=steps)
    parameters = {
        **setting.dimensions,
        "steps": T,
        "batch_size": b,
        "learning_rate": positive_or(1 / setting.L_Phi, learning_rate=learning_rate),
        "ascent_rate": positive_or(1 / setting.L, ascent_rate=ascent_rate),
    }
    queries = given.target.met_by(lambda z: (gradients(setting.C, z, T, **sampling),), n)
    return given.plan("dp_sgda", queries, parameters)


@builder("replace-one", sizes="dimensions")
def privatediff(
    given: Given,
    *,
    steps: int = 200,
    period: int | None = None,
    inner_steps: int = 2,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    ascent_rate: float | None = None,
    value_smoothness: float | None = None,
) -> Plan:
    """Return the plan of PrivateDiff that meets (epsilon, delta): ascents, restarts, differences.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps, period, inner_steps
        T rounds; every ``period``-th of them (10 when omitted) restarts, with so many ascent steps
        of y each.
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
    n, setting = given.n, Setting.of(given, max_norm, value_smoothness)
    T, K = validate.count(steps=steps), validate.count(inner_steps=inner_steps)
    q = validate.count(period=min(T, 10) if period is None else period)
    b2 = max(math.ceil(math.sqrt(n)), math.ceil(n / 10)) if batch_size is None else batch_size
    b1 = validate.count(refresh_size=n if refresh_size is None else refresh_size)
    some, whole = (sampling_of(b, n, given.target.relation) for b in (b2, b1))
    restarts = -(-T // q)

    def queries(multiplier: float) -> tuple[Query, ...]:
        ascent = gradients(setting.C, multiplier, T * K, name="ascent", **some)
        refresh = gradients(setting.C, multiplier, restarts, name="refresh", **whole)
        if restarts == T:
            return ascent, refresh
        return ascent, refresh, differences(ascent, setting.L, count=T - restarts)

    parameters = {
        **setting.dimensions,
        "steps": T,
        "period": q,
        "inner_steps": K,
        "batch_size": b2,
        "learning_rate": positive_or(0.5 / setting.L_Phi, learning_rate=learning_rate),
        "ascent_rate": positive_or(1 / setting.L, ascent_rate=ascent_rate),
    }
    return given.plan("privatediff", given.target.met_by(queries, n), parameters)


@builder("replace-one")
def ada_dp_spider(
    given: Given,
    *,
    steps: int = 400,
    most_refreshes: int | None = None,
    drift: float = 0.1,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
) -> Plan:
    """Return the plan of Ada-DP-SPIDER that meets (epsilon, delta).

    The released values decide when an estimate is refreshed, so that the number of refreshes is not
    known before the run. The plan pays for the largest number; the order is free.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps, most_refreshes
        T steps and the most, in [1, T], that may take a fresh gradient (a tenth of them when
        omitted): all later ones are differences.
    drift
        kappa_d > 0: an estimate is refreshed once ``eta^2 ||v||^2`` have summed up to it; the cited
        experiments use 0.1.
    batch_size, refresh_size
        An eighth and a half of all records when omitted.
    max_norm
        A record's difference is clipped to at most twice this bound.
    learning_rate
        1 / (2 L) when omitted, or less where noise would lead the iterates away.

    Returns
    -------
    Plan
        Queries ``"refresh"`` and ``"difference"``, with noise in proportion to the movement.

    References
    ----------
    Tao et al. 2025 (Ada-DP-SPIDER), as Xu et al. 2026 run it on an explicit value function.
    """
    n, setting, T = given.n, Setting.of(given, max_norm), validate.count(steps=steps)
    most = max(1, T // 10) if most_refreshes is None else most_refreshes
    if validate.count(most_refreshes=most) > T:
        raise ValueError(f"most_refreshes must be at most steps={T}, got {most}.")
    b1 = validate.count(refresh_size=max(1, n // 2) if refresh_size is None else refresh_size)
    b2 = max(1, n // 8) if batch_size is None else batch_size
    whole, some = (sampling_of(size, n, given.target.relation) for size in (b1, b2))

    def queries(multiplier: float) -> tuple[Query, ...]:
        refresh = gradients(setting.C, multiplier, most, name="refresh", **whole)
        return refresh, differences(refresh, setting.L, count=T, **some)

    made = given.target.met_by(queries, n)
    # Short steps may never drift far enough for a second refresh.
    rate = rate_within_noise(made, n=n, d=setting.d, L=setting.L, steps=T, period=T)
    parameters = {
        **setting.dimensions,
        "steps": T,
        "drift": validate.positive(drift=drift),
        "batch_size": b2,
        "refresh_size": b1,
        "learning_rate": positive_or(rate, learning_rate=learning_rate),
    }
    return given.plan("ada_dp_spider", made, parameters)


@builder("replace-one")
def sto_spider(
    given: Given,
    *,
    steps: int = 400,
    period: int | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
) -> Plan:
    """Return the plan of Sto-SPIDER that meets (epsilon, delta).

    It minimises a function itself: the value function of a minimax problem where it is known.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps, period
        T steps; every ``period``-th of them (10 when omitted) takes a fresh gradient.
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
    n, setting, T = given.n, Setting.of(given, max_norm), validate.count(steps=steps)
    releases = Releases(
        n=n,
        steps=T,
        period=min(T, 10) if period is None else period,
        refresh_size=max(1, n // 2) if refresh_size is None else refresh_size,
        batch_size=max(1, n // 8) if batch_size is None else batch_size,
        relation=given.target.relation,
    )
    q = releases.period
    bounds = Bounds(gradient=setting.C, difference=setting.C, proportional=False)
    queries = releases.queries(releases.scaled((1.0, 1.0), given.target), bounds)
    rate = rate_within_noise(queries, n=n, d=setting.d, L=setting.L, steps=T, period=q)
    parameters = {
        **setting.dimensions,
        "steps": T,
        "period": q,
        "learning_rate": positive_or(rate, learning_rate=learning_rate),
        "batch_size": releases.batch_size,
        "refresh_size": releases.refresh_size,
    }
    return given.plan("sto_spider", queries, parameters)
