"""From a theorem's symbols to a calibrated plan: integers, feasibility, exact noise.

The papers leave universal constants open. A plan keeps the ratios that a theorem gives and
calibrates one common scale to (epsilon, delta) exactly; accuracies follow from that scale.

A planner takes a schedule, which is data, and returns a plan. Where an optimizer has a plan builder
too, the planner calls it with the paper's constants.

>>> from dpcal.calibrate.papers.registry import load
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

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import sympy

from dpcal import _validate
from dpcal._roots import Sides, Stop, bisect
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.papers.claims.language import Schedule, nearest
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.adaptive_gd import adaptive_gd
from dpcal.calibrate.plans.common import (
    Given,
    informative_from,
    promise,
    rounded_down,
    rounded_up,
    single_release,
)
from dpcal.calibrate.plans.correlated_dpsgd import correlated_dpsgd
from dpcal.calibrate.plans.dpsgd import dpsgd
from dpcal.calibrate.plans.jl_glm import jl_glm
from dpcal.calibrate.plans.kl_spider import checked_problem, kl_spider, theory_floor
from dpcal.calibrate.plans.minimax.dp_rgda import dp_rgda as dp_rgda_plan
from dpcal.calibrate.plans.proximal_point import proximal_point
from dpcal.calibrate.plans.recursive_regularization import recursive_regularization
from dpcal.calibrate.plans.second_order.gauss_psgd import gauss_psgd as gauss_psgd_plan
from dpcal.calibrate.plans.second_order.select_point import select_point
from dpcal.calibrate.plans.spiderboost import spiderboost as spiderboost_plan
from dpcal.calibrate.plans.tree_spider import tree_spider
from dpcal.errors import warn_caller

__all__ = ["ALGORITHMS", "PLANNERS", "algorithm_plan", "plan_from", "settle"]

_ROUNDED: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {"up": rounded_up, "down": rounded_down}
)


def plan_from(
    schedule: Schedule, *, n: int, epsilon: float, delta: float, **constants: Any
) -> Plan:
    """Solve a paper's corrected setting to a calibrated plan.

    Parameters
    ----------
    schedule
        Of a paper in ``PLANNERS``.
    n
        Number of records, at least 1.
    epsilon, delta
        The target.
    **constants
        The other arguments of the paper's planner.

    Raises
    ------
    ValueError
        If a constant is missing, unknown or out of range, or no setting is feasible.
    """
    planner = PLANNERS[schedule.name]
    parameters = inspect.signature(planner).parameters
    known = [name for name in parameters if name not in ("schedule", "n", "epsilon", "delta")]
    for name in constants:
        if name not in known:
            raise ValueError(f"constant of {schedule.name} {nearest(name, known)}")
    empty = inspect.Parameter.empty
    missing = [
        name for name in known if parameters[name].default is empty and name not in constants
    ]
    if missing:
        raise ValueError(
            f"constants of {schedule.name} must include {', '.join(missing)}, got none of them."
        )
    count = _validate.count(n=n)
    return planner(schedule, n=count, epsilon=epsilon, delta=delta, **constants)


def settle(schedule: Schedule, names: Sequence[str], values: dict[str, Any]) -> dict[str, Any]:
    """Evaluate settings in order, each rounded to its safe side, adding them to ``values``."""
    for name in names:
        setting = schedule.setting(name)
        expression = setting.expression()
        symbols = sorted(expression.free_symbols, key=str)
        number = sympy.lambdify(symbols, expression, "math")(*(values[str(s)] for s in symbols))
        values[name] = _ROUNDED.get(setting.rounding, float)(float(number))
    return values


def _inputs(n: int, **positives: Any) -> dict[str, Any]:
    values = {name: _validate.positive(**{name: value}) for name, value in positives.items()}
    return {"n": _validate.count(n=n), **values}


def spiderboost(
    schedule: Schedule,
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
    neighboring_relation = _validate.relation(neighboring_relation)
    _inputs(n, d=d, L0=L0, L1=L1, F0=F0)
    return spiderboost_plan(
        Constants(lipschitz=float(L0), smoothness=float(L1), gap=float(F0)),
        n=n,
        dimension=_validate.count(d=d),
        epsilon=epsilon,
        delta=delta,
        preset="theory",
        neighboring_relation=neighboring_relation,
    )


def dp_rgda(
    schedule: Schedule,
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    M: float,
    L: float,
    F0: float,
    mu: float,
    rho: float,
    d2: int | None = None,
    K: int = 2,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of DP-RGDA on empirical risk (Xu et al. 2026, Theorem 1, corrected).

    Parameters
    ----------
    n, d
        Records, and the dimensions of x and y together, at least 2.
    epsilon, delta
        Target.
    M, L, F0, mu, rho
        Lipschitz constant, smoothness constant, gap of the value function, strong concavity and
        Lipschitz constant of the Hessian; all > 0.
    d2
        Dimension of y, in [1, d - 1]; half of d, rounded down, when omitted.
    K
        Inner steps, at least 2.
    neighboring_relation
        Relation of the guarantee.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    if _validate.count(K=K) < 2:
        raise ValueError(f"K must be at least 2, because K = 1 never moves y, got K={K}.")
    values = _inputs(n, d=d, M=M, L=L, F0=F0, mu=mu, rho=rho)
    both = _validate.count(d=d)
    dual = both // 2 if d2 is None else _validate.count(d2=d2)
    if not 1 <= dual < both:
        raise ValueError(f"d2 must be in [1, d - 1] with d={both}, got {d2!r}.")
    return dp_rgda_plan(
        Constants(
            lipschitz=values["M"],
            smoothness=values["L"],
            gap=values["F0"],
            strong_concavity=values["mu"],
            hessian_lipschitz=values["rho"],
        ),
        n=n,
        dimensions=(both - dual, dual),
        epsilon=epsilon,
        delta=delta,
        preset="theory",
        inner_steps=int(K),
        neighboring_relation=neighboring_relation,
    )


def kl_condition(
    schedule: Schedule,
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
    neighboring_relation = _validate.relation(neighboring_relation)
    _inputs(n, d=d, L0=L0, L1=L1, F0=F0, gamma=gamma)
    constants = Constants(lipschitz=float(L0), smoothness=float(L1), gap=float(F0))
    target: dict[str, Any] = {
        "n": n,
        "dimension": _validate.count(d=d),
        "epsilon": epsilon,
        "delta": delta,
        "neighboring_relation": neighboring_relation,
    }
    known: dict[str, Any] = {"gamma": gamma, "kappa": kappa, "beta": beta}
    problem, _ = checked_problem(Given.of(constants, **target), **known)
    if not theory_floor(problem) < problem.F0:
        needed = informative_from(
            lambda size: theory_floor(problem.at_size(size)), problem.F0, problem.n
        )
        raise ValueError(
            f"n must be at least about {needed:.2g} for the floor of Algorithm 1 to lie "
            f"below F0, got n={n}."
        )
    return kl_spider(constants, **target, **known, preset="theory")


def gauss_psgd(
    schedule: Schedule,
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

    Step size, batches and drift are the theorem's, with its absolute constants and logarithms taken
    as 1; the alpha that it would promise so is the parameter ``rate``. Threshold and escapes are
    those of :func:`dpcal.calibrate.gauss_psgd`, for the error that estimates really have. Each
    record is used once, in disjoint batches, so the whole run costs one Gaussian release.

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
    neighboring_relation = _validate.relation(neighboring_relation)
    values = _inputs(n, d=d, G=G, M=M, U=U, rho=rho)
    noise = single_release(epsilon, delta, neighboring_relation)
    values.update(m=1.0, epsilon=1 / noise)
    _gauss_settings(schedule, values)
    if min(values["b1"], values["b2"]) < 1 or max(values["b1"], values["b2"]) > n:
        raise ValueError(
            f"batch sizes must be in [1, n], got b1={values['b1']:.3g} and "
            f"b2={values['b2']:.3g} at n={n}; "
            "a larger U, or more records, makes them feasible."
        )
    b1, b2 = (math.floor(values[name]) for name in ("b1", "b2"))
    plan = gauss_psgd_plan(
        Constants(
            lipschitz=float(G), smoothness=float(M), gap=float(U), hessian_lipschitz=float(rho)
        ),
        n=n,
        dimension=_validate.count(d=d),
        epsilon=epsilon,
        delta=delta,
        learning_rate=min(values["eta"], 1 / M),
        batch_size=b1,
        difference_batch_size=b2,
        drift=values["kappa"],
        steps=max(1, n // (2 * b2)),
        neighboring_relation=neighboring_relation,
    )
    theorem = {"refreshes": max(1, n // (2 * b1)), "rate": values["alpha"]}
    return dataclasses.replace(plan, parameters={**plan.parameters, **theorem})


_ERRORS = ("e1", "e2", "e3", "e4")


def _gauss_settings(schedule: Schedule, values: dict[str, Any]) -> dict[str, Any]:
    """Cross max(e1, e2) and max(e3, e4) in kappa, then settle the batch sizes."""

    def gap(log_kappa: float) -> float:
        trial = settle(schedule, _ERRORS, {**values, "kappa": math.exp(log_kappa)})
        return max(math.log(trial["e1"]), math.log(trial["e2"])) - max(
            math.log(trial["e3"]), math.log(trial["e4"])
        )

    ends = Sides(miss=-200.0, meet=200.0)
    crossing = bisect(lambda log_kappa: gap(log_kappa) <= 0, ends, Stop(evaluations=60))
    values["kappa"] = math.exp(crossing.meet)
    settle(schedule, _ERRORS, values)
    values["alpha"] = max(values[name] for name in _ERRORS)
    values["chi"] = values["alpha"]
    values["eta"] = math.sqrt(values["rho"] * values["alpha"]) / values["M"] ** 2
    values["b1"] = values["n"] * values["kappa"] / (2 * values["U"] * values["eta"])
    values["b2"] = values["n"] * values["eta"] * values["chi"] ** 2 / (2 * values["U"])
    return values


def kan(
    schedule: Schedule,
    *,
    n: int,
    d: float,
    epsilon: float,
    delta: float,
    gamma: float,
    max_norm: float = 1.0,
    lam: float = 0.0,
    rho: float = 0.5,
    corollary: str | None = None,
    neighboring_relation: str = "add-or-remove-one",
) -> Plan:
    """Return the plan of DP-SGD for two-layer KANs (Wang et al. 2026, Corollary 5.5, corrected).

    With correlated noise it is that of Corollary 5.3, at a noise that is proved to be enough.
    Corollary 5.6 is about SGD without noise: its plan has those steps, batches and rate and the
    noise of the target, and a warning that the corollary promises nothing of it.

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
    lam
        Correlation of the noise in [0, 1): the fraction of a step's noise that the next takes back.
    rho
        Sampling rate in (0, 1] of Corollary 5.3.
    corollary
        ``"5.3"``, ``"5.5"`` or ``"5.6"``, the last two with ``lam`` 0; None for 5.5 where ``lam``
        is 0, else 5.3.
    neighboring_relation
        Relation of the guarantee.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    values = {**_inputs(n, d=d, gamma=gamma), "epsilon": _validate.positive(epsilon=epsilon)}
    _validate.rate(gamma=gamma)
    given: dict[str, Any] = {"n": n, "epsilon": epsilon, "delta": delta, "max_norm": max_norm}
    given["neighboring_relation"] = neighboring_relation
    if _validate.non_negative(lam=lam) >= 1:
        raise ValueError(f"lam must be below 1, got {lam}.")
    chosen = corollary or ("5.3" if lam else "5.5")
    _validate.choice(("5.3", "5.5", "5.6"), corollary=chosen)
    if lam and chosen != "5.3":
        raise ValueError(f"lam must be 0 for corollary {chosen}, got {lam}.")
    if chosen == "5.3":
        settle(schedule, ["T53", "m53"], values)
        given |= {"batch_size": rounded_up(_validate.rate(rho=rho) * n), "learning_rate": 1.0}
        if lam:
            strategy = LambdaCGD(values["T53"], lam)
            base = correlated_dpsgd(strategy, statistics=False, **given)
        else:
            base = dpsgd(steps=values["T53"], **given)
    elif chosen == "5.5":
        settle(schedule, ["T55", "B55", "eta55", "m55"], values)
        size = min(n, values["B55"])
        base = dpsgd(steps=values["T55"], batch_size=size, learning_rate=values["eta55"], **given)
    else:
        values["B"] = min(n, rounded_up(gamma * math.sqrt(n)))
        settle(schedule, ["T56", "eta56", "m55"], values)
        base = dpsgd(
            steps=values["T56"], batch_size=values["B"], learning_rate=values["eta56"], **given
        )
        warn_caller(
            "Corollary 5.6 of kan is about SGD without noise, and promises nothing of a run with "
            f"noise: without it, risk would be of order 1 / (gamma^2 n) = {1 / (gamma**2 * n):.3g}."
        )
        noiseless = {"noiseless_accuracy": 1 / (gamma**2 * n), "vacuous": True}
        parameters = {**base.parameters, "width": values["m55"], **noiseless}
        return dataclasses.replace(base, parameters=parameters)

    def accuracy(size: float) -> float:
        return 1 / (gamma * math.sqrt(size)) + math.sqrt(d) / (gamma**3 * size * epsilon)

    record = promise(
        "kan", accuracy(n), ("loss of a constant classifier", math.log(2)), accuracy, n
    )
    width = values["m53" if chosen == "5.3" else "m55"]
    parameters = {**base.parameters, "width": width, **record}
    return dataclasses.replace(base, parameters=parameters)


def moments(
    schedule: Schedule,
    *,
    n: int,
    epsilon: float,
    delta: float,
    q: float,
    T: int,
    max_norm: float = 1.0,
    neighboring_relation: str = "add-or-remove-one",
) -> Plan:
    """Return the plan of DP-SGD (Abadi et al. 2016, Algorithm 1) at the least noise.

    The parameter ``c2`` is the constant of Theorem 1 at which its noise is this one.

    Parameters
    ----------
    n
        Records.
    epsilon, delta
        Target.
    q
        Sampling probability in (0, 1]; the expected lot is q n, rounded up.
    T
        Steps, at least 1.
    max_norm
        Clipping norm > 0.
    neighboring_relation
        Relation of the guarantee.
    """
    values = _inputs(n, epsilon=epsilon)
    size = rounded_up(_validate.rate(q=q) * n)
    given: dict[str, Any] = {"steps": T, "batch_size": size, "max_norm": max_norm}
    given["neighboring_relation"] = neighboring_relation
    plan = dpsgd(n=n, epsilon=epsilon, delta=delta, **given)
    values.update(c2=1.0, q=size / n, T=T, Lam=-math.log(delta))
    unit = settle(schedule, ["sigma"], values)["sigma"]
    constant = plan.query("gradient").noise_multiplier / unit
    return dataclasses.replace(plan, parameters={**plan.parameters, "c2": constant})


PLANNERS: Mapping[str, Callable[..., Plan]] = MappingProxyType(
    {
        planner.__name__: planner
        for planner in (spiderboost, dp_rgda, kl_condition, gauss_psgd, kan, moments)
    }
)


@dataclass(frozen=True)
class _Algorithm:
    """A builder whose preset is a theorem of a paper, and the paper's names of its arguments.

    ``constants`` and ``options`` map the paper's symbols to fields of
    :class:`~dpcal.calibrate.Constants` and to arguments of the builder; those in ``optional`` may
    be left out.
    """

    source: str
    builder: Callable[..., Plan]
    constants: Mapping[str, str]
    options: Mapping[str, str]
    optional: tuple[str, ...] = ()
    preset: Mapping[str, str] = field(default_factory=lambda: {"preset": "theory"})

    def plan(self, name: str, given: Mapping[str, Any], **target: Any) -> Plan:
        """Return the plan at the constants that are given."""
        known = {**self.constants, **self.options}
        for symbol in given:
            if symbol not in (*known, "neighboring_relation"):
                raise ValueError(f"constant of {name} {nearest(symbol, known)}")
        missing = [symbol for symbol in known if symbol not in (*given, *self.optional)]
        if missing:
            raise ValueError(f"constants of {name} must include {', '.join(missing)}, got none.")
        fields: dict[str, Any] = {
            self.constants[s]: float(v) for s, v in given.items() if s in self.constants
        }
        options = {self.options[s]: v for s, v in given.items() if s in self.options}
        if "neighboring_relation" in given:
            options["neighboring_relation"] = given["neighboring_relation"]
        fields.setdefault("smoothness", math.inf)
        return self.builder(Constants(**fields), **target, **options, **self.preset)


_SMOOTH = {"L0": "lipschitz", "L1": "smoothness"}
_GAP = {**_SMOOTH, "F0": "gap"}
_KL = {"gamma": "gamma", "kappa": "kappa", "beta": "beta"}
_ARORA, _MENART = "Arora et al. 2022, Algorithm", "Menart et al. 2024, Algorithm"

ALGORITHMS: Mapping[str, _Algorithm] = MappingProxyType(
    {
        "tree_spider": _Algorithm(
            f"{_ARORA} 2", tree_spider, _GAP, {"beta": "failure_probability"}, ("beta",)
        ),
        "recursive_regularization": _Algorithm(
            f"{_ARORA} 3", recursive_regularization, _SMOOTH, {"W": "distance"}, ("W",)
        ),
        "jl_glm": _Algorithm(f"{_ARORA} 4", jl_glm, _GAP, {"rank": "rank"}, ("rank",)),
        "proximal_point": _Algorithm(
            f"{_MENART} 2",
            proximal_point,
            {"L0": "lipschitz", "F0": "gap"},
            {**_KL, "Ltil": "weak_convexity"},
            ("kappa", "beta", "Ltil"),
        ),
        "adaptive_gd": _Algorithm(f"{_MENART} 3", adaptive_gd, _GAP, _KL, ("kappa", "beta")),
        "select_point": _Algorithm(
            "Tao et al. 2025, Algorithm 4",
            select_point,
            {"G": "lipschitz", "M": "smoothness", "rho": "hessian_lipschitz"},
            {"candidates": "candidates", "alpha": "accuracy", "beta": "failure_probability"},
            ("beta",),
            {},
        ),
    }
)


def algorithm_plan(
    name: str, *, n: int, d: float, epsilon: float, delta: float, **constants: Any
) -> Plan:
    """Return the plan of an algorithm of a paper that is not its first.

    Parameters
    ----------
    name
        One of ``ALGORITHMS``.
    n, d
        Records and dimension.
    epsilon, delta
        Target.
    **constants
        The paper's constants: ``L0``, ``L1``, ``F0`` and so on.

    Raises
    ------
    ValueError
        If a constant is missing, unknown or out of range.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm {nearest(name, ALGORITHMS)}")
    target = {"n": _validate.count(n=n), "dimension": _validate.count(d=d)}
    return ALGORITHMS[name].plan(name, constants, **target, epsilon=epsilon, delta=delta)
