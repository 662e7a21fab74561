"""From a theorem's symbols to a calibrated plan: integers, feasibility, exact noise.

The papers leave universal constants open. A plan keeps the ratios that a theorem gives and
calibrates one common scale to (epsilon, delta) exactly; accuracies follow from that scale.

>>> from dpcal.calibrate.schedules import load
>>> plan = load("spiderboost").plan(n=100_000, d=20, epsilon=1.0, delta=1e-6, L0=1, L1=1, F0=1)
>>> 0.999 < plan.price() <= 1.0
True
>>> load("spiderboost").plan(n=20, d=20, epsilon=1.0, delta=1e-6, L0=1, L1=1, F0=1)
... # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: n must be at least ... for abar <= 1 and sqrt(F0 L1) abar <= L0, got n=20 (abar = ...).
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy

from dpcal import _validate
from dpcal.calibrate.auditing.language import Schedule, nearest

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate.plan import Plan, Query

__all__ = [
    "checked_constants",
    "dp_rgda",
    "gauss_psgd",
    "kan",
    "kl_condition",
    "spiderboost",
]


class VacuousSchedule(UserWarning):
    """The theorem promises nothing at these sizes."""


def checked_constants(
    schedule: str, planner: Callable[..., Any], constants: Mapping[str, Any]
) -> None:
    """Raise a ValueError that names a missing or an unknown constant."""
    given = inspect.signature(planner).parameters
    known = [name for name in given if name not in ("n", "epsilon", "delta")]
    for name in constants:
        if name not in known:
            raise ValueError(f"constant of {schedule} {nearest(name, known)}")
    missing = [
        n for n in known if given[n].default is inspect.Parameter.empty and n not in constants
    ]
    if missing:
        raise ValueError(
            f"constants of {schedule} must include {', '.join(missing)}, got none of them."
        )


def settle(schedule: Schedule, names: Sequence[str], values: dict[str, Any]) -> dict[str, Any]:
    """Evaluate settings in order, each rounded to its safe side, adding them to ``values``."""
    for name in names:
        setting = schedule.setting(name)
        expression = sympy.sympify(setting.corrected)
        symbols = sorted(expression.free_symbols, key=str)
        number = sympy.lambdify(symbols, expression, "math")(*(values[str(s)] for s in symbols))
        values[name] = _rounded(float(number), setting.rounding)
    return values


def _rounded(number: float, rounding: str) -> float | int:
    if rounding == "up":
        return max(1, math.ceil(number * (1 - 1e-12)))
    return max(1, math.floor(number * (1 + 1e-12))) if rounding == "down" else number


def biting_size(accuracy: Callable[[float], float], limit: float, n: int) -> int:
    """Return the smallest size, to two digits, at which ``accuracy`` falls below ``limit``."""
    high = float(n)
    while accuracy(high) >= limit and high < 1e30:
        high *= 2
    low = high / 2
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if accuracy(middle) < limit else (middle, high)
    digits = 10 ** max(0, math.floor(math.log10(high)) - 1)
    return int(math.ceil(high / digits) * digits)


def judged(
    name: str, value: float, limit: tuple[str, float], accuracy: Callable[[float], float], n: int
) -> dict[str, Any]:
    """Return what the plan records of the theorem's accuracy, warning when it promises nothing."""
    if value < limit[1]:
        return {"accuracy": value, "vacuous": False}
    bites = biting_size(accuracy, limit[1], n)
    warnings.warn(
        f"the theorem of {name} is vacuous at n={n}: it promises {value:.3g}, no better than the "
        f"{limit[0]} {limit[1]:.3g}; it bites from about n={bites:.2g}.",
        VacuousSchedule,
        stacklevel=4,
    )
    return {"accuracy": value, "vacuous": True, "bites_at": bites}


def _inputs(n: int, **positives: Any) -> dict[str, Any]:
    values = {name: _validate.positive(**{name: value}) for name, value in positives.items()}
    return {"n": _validate.count(n=n), **values}


@functools.lru_cache(maxsize=64)
def _single_release(epsilon: float, delta: float, relation: str) -> float:
    from dpcal.accountants.events import GaussianDpEvent
    from dpcal.calibrate.noise import noise_multiplier

    return noise_multiplier(
        GaussianDpEvent, epsilon=epsilon, delta=delta, neighboring_relation=relation
    )


# --------------------------------------------------------------------- variance-reduced estimators


class _Families:
    """Refreshes over all records and differences over batches, on one noise scale.

    Batches are Poisson samples, or of a fixed size where a record is replaced.
    """

    def __init__(
        self, n: int, steps: int, period: int, batch: int, relation: str, inner: int = 1
    ) -> None:
        self.n, self.batch = n, batch
        self.sampler = "fixed-size" if relation == "replace-one" else "poisson"
        self.refreshes = -(-steps // period)
        self.differences = max(0, steps * inner - self.refreshes)
        self.refresh_scale = max(1.0, math.sqrt(steps / period))
        self.difference_scale = max(1.0, batch * math.sqrt(steps * inner) / n)

    def queries(self, scale: float, max_norm: float, per_distance: float) -> tuple[Query, ...]:
        """Return both queries at a common scale of the noise multipliers."""
        from dpcal.calibrate.plan import Query

        refresh = Query(
            name="refresh",
            kind="gradient",
            sampler="full",
            max_norm=max_norm,
            noise_multiplier=scale * self.refresh_scale,
            count=self.refreshes,
        )
        if not self.differences:
            return (refresh,)
        sampler = self.sampler if self.batch < self.n else "full"
        difference = Query(
            name="difference",
            kind="gradient difference",
            sampler=sampler,
            sampling_probability=self.batch / self.n if sampler == "poisson" else None,
            batch_size=self.batch if sampler == "fixed-size" else None,
            max_norm=per_distance,
            proportional=True,
            cap=2 * max_norm,
            noise_multiplier=scale * self.difference_scale,
            count=self.differences,
        )
        return refresh, difference

    def scale(self, epsilon: float, delta: float, relation: str) -> float:
        """Return the smallest common scale that meets the target."""
        from dpcal.calibrate.noise import noise_multiplier
        from dpcal.calibrate.plan import compose

        def event(value: float) -> DpEvent:
            queries = self.queries(value, 1.0, 1.0)
            return compose(((query, query.count) for query in queries), self.n, relation)

        return noise_multiplier(event, epsilon=epsilon, delta=delta, neighboring_relation=relation)


def _fixed_point(
    families: Callable[[float], _Families],
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    relation: str,
) -> tuple[_Families, float, float]:
    """Alternate between the schedule and its exact noise scale until both settle."""
    scale = math.sqrt(2) * _single_release(epsilon, delta, relation)
    rate = math.sqrt(d) * scale / n
    for _ in range(6):
        family = families(rate)
        renewed = family.scale(epsilon, delta, relation)
        settled = abs(renewed - scale) < 0.002 * scale
        scale, rate = renewed, math.sqrt(d) * renewed / n
        if settled:
            break
    return family, scale, rate


def _rate_at(
    size: float, n: int, rate: float, scale: float, target: tuple[float, float, str]
) -> float:
    """Rate variable at another size; the noise scale tends to sqrt(2) z*."""
    limit = 1.05 * math.sqrt(2) * _single_release(*target)
    return rate * n / size * (1 if size == n else max(1.0, limit / scale))


def _needs_more_records(n: int, rate: float, worst: float, condition: str, name: str) -> None:
    if worst > 1:
        raise ValueError(
            f"n must be at least {math.ceil(n * worst):d} for {condition}, got n={n} ({name} "
            f"= {rate:.3g})."
        )


def _variance_reduced(
    schedule: Schedule,
    values: dict[str, Any],
    names: tuple[str, str, str, str],
    caps: tuple[float, str],
    d: float,
    target: tuple[float, float, str],
    inner: int = 1,
) -> tuple[_Families, float, float]:
    """Solve settings (first branch, T, period, batch) of a refresh-and-difference schedule."""
    rate_name = "abar" if "abar" in {str(s.symbol) for s in schedule.settings} else "eb"
    epsilon, delta, relation = target
    n = values["n"]

    def families(rate: float) -> _Families:
        _needs_more_records(n, rate, rate * max(1.0, caps[0]), caps[1], rate_name)
        values[rate_name] = rate
        settle(schedule, names, values)
        _, steps, period, batch = (values[name] for name in names)
        return _Families(n, steps, min(period, steps), batch, relation, inner)

    return _fixed_point(families, n, d, epsilon, delta, relation)


def spiderboost(
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    L0: float,
    L1: float,
    F0: float,
    neighboring_relation: str = "add-or-remove-one",
) -> Plan:
    """Return the plan of Private SpiderBoost (Arora et al. 2022, Theorem 9, corrected).

    Parameters
    ----------
    n, d
        Records and dimension.
    epsilon, delta
        Target.
    L0, L1, F0
        Lipschitz constant, smoothness constant, public bound on the initial gap; all > 0.
    neighboring_relation
        Relation of the guarantee.
    """
    from dpcal.calibrate.constants import Constants
    from dpcal.calibrate.plans.spiderboost import spiderboost as plan_of

    _inputs(n, d=d, L0=L0, L1=L1, F0=F0)
    return plan_of(
        Constants(lipschitz=float(L0), smoothness=float(L1), gap=float(F0)),
        n=n,
        dimension=_validate.count(d=d),
        epsilon=epsilon,
        delta=delta,
        preset="theory",
        neighboring_relation=neighboring_relation,
    )


def spiderboost_counts(
    *, n: int, d: float, L0: float, L1: float, F0: float, target: tuple[float, float, str]
) -> tuple[int, int, int]:
    """Return steps, period and batch size of Theorem 9, corrected, at the exact noise scale."""
    from dpcal.calibrate.schedules.spiderboost import SCHEDULE

    values = _inputs(n, d=d, L0=L0, L1=L1, F0=F0)
    caps = (math.sqrt(F0 * L1) / L0, "abar <= 1 and sqrt(F0 L1) abar <= L0")
    _variance_reduced(SCHEDULE, values, ("T1", "T", "q", "b2"), caps, d, target)
    return values["T"], min(values["q"], values["T"]), values["b2"]


def dp_rgda(
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    M: float,
    L: float,
    F0: float,
    K: int = 2,
    neighboring_relation: str = "add-or-remove-one",
) -> Plan:
    """Return the plan of DP-RGDA on empirical risk (Xu et al. 2026, Theorem 1, corrected).

    Parameters
    ----------
    n, d
        Records, and the dimensions of x and y together.
    epsilon, delta
        Target.
    M, L, F0
        Lipschitz constant, smoothness constant, gap of the value function; all > 0.
    K
        Inner steps, at least 2.
    neighboring_relation
        Relation of the guarantee.
    """
    from dpcal.calibrate.schedules.dp_rgda import SCHEDULE

    if _validate.count(K=K) < 2:
        raise ValueError(f"K must be at least 2, because K = 1 never moves y, got K={K}.")
    values = {**_inputs(n, d=d, M=M, L=L, F0=F0), "K": K}
    caps = (math.sqrt(F0 * L) / M, "eb <= 1 and sqrt(F0 L) eb <= M")
    family, scale, rate = _variance_reduced(
        SCHEDULE, values, ("T1", "T", "q", "S2"), caps, d, (epsilon, delta, neighboring_relation), K
    )

    def accuracy(size: float) -> float:
        here = _rate_at(size, n, rate, scale, (epsilon, delta, neighboring_relation))
        return float((math.sqrt(F0 * L * M) * here) ** (2 / 3) + M * here)

    record = judged("dp_rgda", accuracy(n), ("Lipschitz constant", float(M)), accuracy, n)
    return _assembled(
        "dp_rgda",
        values,
        ("T", "q", "S2", "K"),
        family.queries(scale, M, L),
        (epsilon, delta, neighboring_relation),
        record,
    )


def _assembled(
    optimizer: str,
    values: Mapping[str, Any],
    keep: Sequence[str],
    queries: tuple[Query, ...],
    target: tuple[float, float, str],
    record: Mapping[str, Any],
) -> Plan:
    from dpcal.calibrate.plan import Plan

    epsilon, delta, relation = target
    return Plan(
        optimizer=optimizer,
        n=values["n"],
        queries=queries,
        epsilon=float(epsilon),
        delta=float(delta),
        neighboring_relation=relation,
        parameters={**{name: values[name] for name in keep}, **record},
    )


# ------------------------------------------------------------------------------------ other papers


def kl_condition(
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    L0: float,
    L1: float,
    F0: float,
    gamma: float,
    kappa: float = 2.0,
    beta: float = 0.05,
    neighboring_relation: str = "add-or-remove-one",
) -> Plan:
    """Return the plan of KL Spider (Menart et al., Algorithm 1, corrected).

    Parameters
    ----------
    n, d
        Records and dimension.
    epsilon, delta
        Target.
    L0, L1, F0
        Lipschitz constant, smoothness constant, public bound on the initial excess risk; all > 0.
    gamma, kappa
        KL constant > 0 and exponent in [1, 2].
    beta
        Failure probability in (0, 1).
    neighboring_relation
        Relation of the guarantee.
    """
    if not 1 <= _validate.positive(kappa=kappa) <= 2:
        raise ValueError(f"kappa must be in [1, 2] for Algorithm 1, got {kappa!r}.")
    _validate.probability(beta=beta)
    constants = _inputs(n, d=d, L0=L0, L1=L1, F0=F0, gamma=gamma)
    constants.update(kappa=kappa, beta=beta, F0=min(F0, (gamma * L0) ** kappa))
    if kappa == 2 and gamma**2 * L1 < 0.5:
        raise ValueError(
            f"gamma must be at least {math.sqrt(0.5 / L1):.4g} for L1={L1} (smooth and PL force "
            f"gamma^2 L1 >= 1/2), got {gamma}."
        )
    single = _single_release(epsilon, delta, neighboring_relation)
    sensitivity = 2 if neighboring_relation == "replace-one" else 1
    constants["rho"] = (sensitivity / single) ** 2 / 2
    values = _kl_levels(dict(constants))
    if values is None:
        needed = biting_size(lambda size: _kl_level({**constants, "n": size}), 1.0, n)
        raise ValueError(
            f"n must be at least about {needed:.2g} for the floor of Algorithm 1 to lie "
            f"below F0, got n={n}."
        )
    steps = sum(_kl_counts(values))
    target = (epsilon, delta, neighboring_relation)
    queries = _kl_queries(values, steps - values["K"], target)
    record = {"accuracy": values["level"], "vacuous": False, "steps": steps}
    return _assembled(
        "kl_spider", values, ("K", "c", "level", "gamma", "kappa"), queries, target, record
    )


def _kl_levels(values: dict[str, Any]) -> dict[str, Any] | None:
    """Return the settings of Algorithm 1, or None where its guards return the starting point."""
    from dpcal.calibrate.schedules.kl_condition import SCHEDULE

    settle(SCHEDULE, ["X", "a", "c", "R"], values)
    if values["R"] <= 1:
        return None
    settle(SCHEDULE, ["K", "beta_k"], values)
    if values["beta_k"] >= 1 / 6:
        return None
    settle(SCHEDULE, ["level"], values)
    return values if values["level"] < values["F0"] else None


def _kl_level(values: dict[str, Any]) -> float:
    """Return the floor relative to the start, or 1 where the guards act."""
    settled = _kl_levels(values)
    return 1.0 if settled is None else settled["level"] / settled["F0"]


def _kl_counts(values: Mapping[str, Any]) -> list[int]:
    """Return the number of steps of each round."""
    power = (2 - values["kappa"]) / values["kappa"]
    level, counts = values["F0"], []
    for _ in range(values["K"]):
        level = max(level / values["c"], values["level"])
        counts.append(max(1, math.ceil((values["F0"] / level) ** power * (1 - 1e-12))))
    return counts


def _kl_queries(
    values: Mapping[str, Any], differences: int, target: tuple[float, float, str]
) -> tuple[Query, ...]:
    """Give round starts 4/5 of the budget: sensitivities are at least 4 to 1."""
    from dpcal.calibrate.noise import noise_multiplier
    from dpcal.calibrate.plan import Query, compose

    share = 0.8 if differences else 1.0

    def queries(scale: float) -> tuple[Query, ...]:
        start = Query(
            name="gradient",
            kind="gradient",
            sampler="full",
            max_norm=values["L0"],
            noise_multiplier=scale * math.sqrt(values["K"] / share),
            count=values["K"],
        )
        if not differences:
            return (start,)
        difference = Query(
            name="difference",
            kind="gradient difference",
            sampler="full",
            max_norm=values["L1"],
            proportional=True,
            noise_multiplier=scale * math.sqrt(differences / (1 - share)),
            count=differences,
        )
        return start, difference

    epsilon, delta, relation = target
    scale = noise_multiplier(
        lambda value: compose(((q, q.count) for q in queries(value)), values["n"], relation),
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=relation,
    )
    return queries(scale)


def gauss_psgd(
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    G: float,
    M: float,
    U: float,
    rho: float,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of Gauss-PSGD with Ada-DP-SPIDER (Tao et al. 2025, Theorem 2, corrected).

    Absolute constants and logarithms of the theorem are taken as 1; each record is used once, in
    disjoint batches, so the whole run costs one Gaussian release.

    Parameters
    ----------
    n, d
        Records and dimension.
    epsilon, delta
        Target.
    G, M, U, rho
        Lipschitz constant, smoothness constant, initial gap, Hessian Lipschitz constant; all > 0.
    neighboring_relation
        ``"replace-one"`` or ``"replace-special"``: disjoint batches need records that stay in
        place.
    """
    values = _inputs(n, d=d, G=G, M=M, U=U, rho=rho)
    noise = _single_release(epsilon, delta, neighboring_relation)
    values.update(m=1.0, epsilon=1 / noise)
    _gauss_settings(values)
    if min(values["b1"], values["b2"]) < 1 or max(values["b1"], values["b2"]) > n:
        raise ValueError(
            f"batch sizes must be in [1, n], got b1={values['b1']:.3g} and "
            f"b2={values['b2']:.3g} at n={n}; "
            "a larger U, or more records, makes them feasible."
        )
    refresh, difference = (max(1, math.floor(values[name])) for name in ("b1", "b2"))
    calls = max(1, n // (2 * refresh)), max(1, n // (2 * difference))
    values.update(b1=refresh, b2=difference, refreshes=calls[0], steps=calls[1])

    def accuracy(size: float) -> float:
        return float(_gauss_settings({**values, "n": size})["alpha"])

    record = judged("gauss_psgd", values["alpha"], ("Lipschitz constant", float(G)), accuracy, n)
    queries = _disjoint_queries(noise, calls, (G, M))
    target = (epsilon, delta, neighboring_relation)
    keep = ("b1", "b2", "refreshes", "steps", "eta", "kappa")
    return _assembled("gauss_psgd", values, keep, queries, target, record)


def _gauss_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Cross max(e1, e2) and max(e3, e4) in kappa, then settle the batch sizes."""
    from dpcal.calibrate.schedules.gauss_psgd import SCHEDULE

    def gap(log_kappa: float) -> float:
        trial = settle(SCHEDULE, ["e1", "e2", "e3", "e4"], {**values, "kappa": math.exp(log_kappa)})
        return max(math.log(trial["e1"]), math.log(trial["e2"])) - max(
            math.log(trial["e3"]), math.log(trial["e4"])
        )

    low, high = -200.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) > 0 else (low, middle)
    values["kappa"] = math.exp(high)
    settle(SCHEDULE, ["e1", "e2", "e3", "e4"], values)
    values["alpha"] = max(values[name] for name in ("e1", "e2", "e3", "e4"))
    values["chi"] = values["alpha"]
    values["eta"] = math.sqrt(values["rho"] * values["alpha"]) / values["M"] ** 2
    values["b1"] = values["n"] * values["kappa"] / (2 * values["U"] * values["eta"])
    values["b2"] = values["n"] * values["eta"] * values["chi"] ** 2 / (2 * values["U"])
    return values


def _disjoint_queries(
    noise: float, calls: tuple[int, int], norms: tuple[float, float]
) -> tuple[Query, ...]:
    """Two kinds of answers on disjoint records, priced without amplification."""
    from dpcal.calibrate.plan import Query

    refresh = Query(
        name="refresh",
        kind="gradient",
        sampler="full",
        max_norm=norms[0],
        noise_multiplier=noise * math.sqrt(2),
        count=calls[0],
        composition="disjoint",
    )
    difference = Query(
        name="difference",
        kind="gradient difference",
        sampler="full",
        max_norm=norms[1],
        proportional=True,
        noise_multiplier=noise * math.sqrt(2),
        count=calls[1],
        composition="disjoint",
    )
    return refresh, difference


def kan(
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    gamma: float,
    max_norm: float = 1.0,
    neighboring_relation: str = "add-or-remove-one",
) -> Plan:
    """Return the plan of DP-SGD for two-layer KANs (Wang et al. 2026, Corollary 5.5, corrected).

    Parameters
    ----------
    n, d
        Records and input dimension.
    epsilon, delta
        Target.
    gamma
        Margin in (0, 1], a public number.
    max_norm
        Clipping norm > 0.
    neighboring_relation
        Relation of the guarantee.
    """
    from dpcal.calibrate.plan import Plan
    from dpcal.calibrate.plans.dpsgd import dpsgd
    from dpcal.calibrate.schedules.kan import SCHEDULE

    values = {**_inputs(n, d=d, gamma=gamma), "epsilon": _validate.positive(epsilon=epsilon)}
    _validate.rate(gamma=gamma)
    settle(SCHEDULE, ["T55", "B55", "eta55", "m55"], values)
    base = dpsgd(
        n=n,
        steps=values["T55"],
        batch_size=min(n, values["B55"]),
        epsilon=epsilon,
        delta=delta,
        max_norm=max_norm,
        learning_rate=values["eta55"],
        neighboring_relation=neighboring_relation,
    )

    def accuracy(size: float) -> float:
        return 1 / (gamma * math.sqrt(size)) + math.sqrt(d) / (gamma**3 * size * epsilon)

    record = judged("kan", accuracy(n), ("loss of a constant classifier", math.log(2)), accuracy, n)
    return Plan(
        optimizer=base.optimizer,
        n=n,
        queries=base.queries,
        epsilon=base.epsilon,
        delta=base.delta,
        neighboring_relation=neighboring_relation,
        parameters={**base.parameters, "width": values["m55"], **record},
    )
