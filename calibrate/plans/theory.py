r"""From a theorem to a plan: the audited settings of a paper, evaluated at numbers.

The settings are written once, as the texts that ``dpcal audit`` decides claims about. A row of
``theorems.txt`` in the same folder names the settings of one theorem, in the order of their
evaluation; here they become whole numbers on the side where the theorem's conditions hold, exact
noise replaces open constants, and the ratio of noises is the theorem's.

>>> plan = theory("spiderboost", n=100_000, d=20, epsilon=1.0, delta=1e-6, L0=1, L1=1, F0=1)
>>> 0.999 < plan.price() <= 1.0
True
>>> theory("spiderboost", n=20, d=20, epsilon=1.0, delta=1e-6, L0=1, L1=1, F0=1)
Traceback (most recent call last):
    ...
ValueError: n must be at least 27 for the conditions of spiderboost, got n=20.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import sympy
from scipy.special import ndtri

from dpcal._internal import validate
from dpcal._internal.roots import Sides, Stop, bisect
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.papers.claims.language import Schedule, Setting
from dpcal.calibrate.papers.claims.notation import indented, nearest, text_of
from dpcal.calibrate.papers.registry import PAPERS, load
from dpcal.calibrate.plan import Parameters, Plan
from dpcal.calibrate.plans import (
    adaptive_gd,
    common,
    jl_glm,
    kl_spider,
    proximal_point,
    recursive_regularization as recursive,
    tree_spider,
)
from dpcal.calibrate.plans.correlated_dpsgd import correlated_dpsgd
from dpcal.calibrate.plans.dpsgd import dpsgd
from dpcal.calibrate.plans.kl_problem import Problem, chi_quantile, smooth
from dpcal.calibrate.plans.minimax.dp_rgda import Setting as Minimax
from dpcal.calibrate.plans.second_order import gauss_psgd
from dpcal.calibrate.plans.second_order.select_point import select_point
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases
from dpcal.errors import warn_caller

Values = dict[str, Any]

_ROUNDED: Mapping[str, Callable[[float], float]] = {
    "up": common.rounded_up,
    "down": common.rounded_down,
    "": float,
}

# Counts and noise scale alternate until the scale changes by less than this ratio.
_SETTLED, _ROUNDS = 0.002, 6

# A run's noise over one release's: near sqrt(2), and 5 percent more, as promises have two digits.
_ELSEWHERE = 1.05 * math.sqrt(2)

_PERTURBATION = 0.1

# Rounds of gauss_psgd (about 40 suffice), their precision, and inner rounds of the drift kappa.
_ITERATIONS, _FIXED, _DRIFTS = 200, 1e-7, 5


class Theorem(NamedTuple):
    """A row: a theorem's settings in order, and its inputs.

    Parameters
    ----------
    paper
        The name of the paper.
    settings
        Names of audited settings, in the order in which they are evaluated.
    constants
        The paper's letters of fields of :class:`~dpcal.calibrate.Constants`.
    options
        Letters that may be given in addition to n, epsilon and delta, with their defaults; an
        Ellipsis marks one that must be given.
    relation
        The neighboring relation when omitted.
    """

    paper: str
    settings: tuple[str, ...]
    constants: Mapping[str, str]
    options: Mapping[str, Any]
    relation: str

    @classmethod
    def read(cls, paper: str, row: str) -> Theorem:
        """Read ``LETTER=FIELD ...; LETTER[=DEFAULT] ...; RELATION SETTING ...  # SOURCE``."""
        body, _, _ = " ".join(row.split()).partition("#")
        constants, options, (relation, *settings) = (part.split() for part in body.split(";"))
        pairs = [word.partition("=") for word in options]
        values = {key: ast.literal_eval(text) if mark else ... for key, mark, text in pairs}
        fields = dict(word.split("=") for word in constants)
        options_of = {**dict.fromkeys(fields, ...), "d": ..., **values}
        return cls(paper, tuple(settings), fields, options_of, relation)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A theorem at numbers: checked letters, the target, and the settings that were found."""

    name: str
    row: Theorem
    schedule: Schedule
    given: common.Given
    letters: Values
    found: Values = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.given.n

    def at(self, *names: str, **more: Any) -> Values:
        """Return letters and settings in order, each rounded to its safe side; of the row if none.

        Values in ``more`` take the place of letters, and of settings of the same name.
        """
        values = {**self.letters, **more}
        for name in names or self.row.settings:
            if name not in more:
                values[name] = evaluated(self.schedule.setting(name), values)
        return values

    def keep(self, *names: str, **more: Any) -> Values:
        """Return the same, and remember the settings, as they are and as they are printed."""
        values = self.at(*names, **more)
        for name in names or self.row.settings:
            setting = self.schedule.setting(name)
            self.found[name] = values[name], _tried(setting, values, printed=True)
        return values

    def promise(
        self, accuracy: Callable[[float], float], trivial: tuple[str, float], kind: str = "order"
    ) -> Parameters:
        """Return a plan's statement of the theorem's accuracy, a function of n."""
        told = common.promise(self.name, accuracy(self.n), trivial, accuracy, self.n, kind=kind)
        return {"preset": "theory", **told}

    def target(self, **more: Any) -> Values:
        """Return the keywords of a builder about these records and this target."""
        return {"n": self.n, **self.given.target.asked, **more}


@cache
def _compiled(setting: Setting, printed: bool) -> tuple[list[str], Any]:
    expression = setting.expression(printed)
    symbols = sorted(map(str, expression.free_symbols))
    return symbols, sympy.lambdify(symbols, expression, "math")


def evaluated(setting: Setting, values: Values, printed: bool = False) -> Any:
    """Return the value of a setting at numbers, rounded to its safe side."""
    symbols, function = _compiled(setting, printed)
    return _ROUNDED[setting.rounding](float(function(*(values[symbol] for symbol in symbols))))


def _tried(setting: Setting, values: Values, printed: bool = False) -> Any:
    """Return the value of a setting, or the letters that it lacks, or None where it has none."""
    if printed and setting.printed is None:
        return None
    if missing := [name for name in _compiled(setting, printed)[0] if name not in values]:
        return f"needs {', '.join(missing)}"
    try:
        return evaluated(setting, values, printed)
    except (ArithmeticError, ValueError, TypeError):
        return None


def theory(
    name: str,
    *,
    n: int,
    epsilon: float,
    delta: float,
    neighboring_relation: str | None = None,
    accountant: str = "auto",
    **constants: Any,
) -> Plan:
    """Return the plan of a paper's theorem: its audited settings, at the exact noise.

    Parameters
    ----------
    name
        One of ``THEOREMS``: a paper, for its first algorithm, or another algorithm of it.
    n
        Number of records, at least 1.
    epsilon, delta
        The target.
    neighboring_relation
        Failure probability of the guarantee; the theorem's when omitted.
    accountant
        See :mod:`dpcal.calibrate.plans`.
    **constants
        The dimension ``d`` and the paper's constants in its own letters, in the ranges that it
        declares.

    Raises
    ------
    ValueError
        For another name, or a constant that is missing, unknown or out of range.

    Warns
    -----
    VacuousSchedule
        If the theorem promises nothing at these sizes, with the number of records from which it
        would, or if the plan takes longer than anyone waits.

    Examples
    --------
    >>> given = dict(n=10**6, d=20, epsilon=1.0, delta=1e-6, L0=1, L1=1, F0=1, gamma=1)
    >>> theory("adaptive_gd", **given).parameters["learning_rate"]
    0.5
    >>> plan = theory("moments", n=2_000, q=0.05, T=20, epsilon=1.0, delta=1e-6, accountant="renyi")
    >>> plan.accountant, 0.999 < plan.price() <= 1.0
    ('renyi', True)
    """
    given = {"relation": neighboring_relation, "accountant": accountant, **constants}

    def built(at: float) -> Plan:
        case = case_of(name, n=n, epsilon=at, delta=delta, **given)
        return _BUILD[case.name](case)

    return common.priced_by(accountant, built, epsilon)


def theorem_at(name: str, **numbers: Any) -> tuple[Plan, list[tuple[str, Any, Any, str]]]:
    """Return the plan of :func:`theory`, and rows of all settings of its paper.

    A row has a setting's name, its value, the value as printed where that differs, and the source.
    A setting of another theorem is evaluated where its letters are known: else its value is a
    sentence with the letters that it needs, and None where it has no value at these numbers.

    Parameters
    ----------
    name
        As in :func:`theory`.
    **numbers
        Its other arguments; the neighboring relation is ``relation``.
    """
    case = case_of(name, **numbers)
    plan = _BUILD[name](case)
    values = {**case.letters, **{key: value for key, (value, _) in case.found.items()}}
    for setting in case.schedule.settings:
        if setting.name not in case.found:
            value = _tried(setting, values)
            case.found[setting.name] = value, _tried(setting, values, printed=True)
            values |= {setting.name: value} if isinstance(value, int | float) else {}
    return plan, [
        (each.name, *case.found[each.name], each.source) for each in case.schedule.settings
    ]


def case_of(
    name: str,
    *,
    n: int,
    epsilon: float,
    delta: float,
    relation: str | None = None,
    accountant: str = "auto",
    **letters: Any,
) -> Case:
    """Return a theorem at numbers, each checked against the paper's range."""
    if name not in THEOREMS:
        raise ValueError(f"theorem {nearest(name, THEOREMS)}")
    row = THEOREMS[name]
    schedule = load(row.paper)
    for letter in letters:
        if letter not in row.options:
            raise ValueError(f"constant of {name} {nearest(letter, row.options)}")
    values = {**row.options, **letters}
    if missing := [letter for letter, value in values.items() if value is ...]:
        raise ValueError(
            f"constants of {name} must include {', '.join(missing)}, got none of them."
        )
    ranges = {each.name: each for each in schedule.quantities}
    for letter, value in letters.items():
        if value != row.options[letter]:
            values[letter] = _number(letter, value, ranges.get(letter))
    fields: Values = {name: float(values[letter]) for letter, name in row.constants.items()}
    given = common.Given.of(
        Constants(**{"lipschitz": math.inf, "smoothness": math.inf, **fields}),
        n=n,
        dimension=values["d"] or 1,
        epsilon=validate.positive(epsilon=epsilon),
        delta=validate.probability(delta=delta),
        neighboring_relation=relation or row.relation,
        accountant=accountant,
    )
    values |= {"n": given.n, "epsilon": epsilon, "Lam": -math.log(delta), "ell": -math.log(delta)}
    return Case(name=name, row=row, schedule=schedule, given=given, letters=values)


def _number(letter: str, value: Any, quantity: Any) -> Any:
    """Return a constant, refused where it is outside of the range that its paper declares."""
    if quantity is None or isinstance(value, str):
        return value
    if quantity.whole:
        return validate.count(**{letter: value})
    number, ends = validate.positive(**{letter: value}), quantity.values()
    if number < (ends.low or 0) or (ends.high is not None and number > ends.high):
        raise ValueError(f"{letter} must be in {quantity.range}, got {value!r}.")
    return number


# ----------------------------------------------------------- refreshed gradients, and differences

# Settings of refreshes and of differences: sizes and noise; bounds on both; the promise.
_SPIDER = {
    "spiderboost": (("b1", "b2"), ("z1", "z2"), ("L0", "L1"), ("bound", "guarantee")),
    "dp_rgda": (("S1", "S2"), ("z_v", "z_u"), ("M", "L"), ("rate", "order")),
}


def _spider(case: Case) -> tuple[Releases, Values, Any, Parameters]:
    """Return counts, settings, queries and promise of a theorem about two kinds of releases.

    Counts and their exact noise scale are alternated until both settle.
    """
    n, single, target = case.n, case.given.z, case.given.target
    sizes, noises, bounds, (promised, kind) = _SPIDER[case.name]
    C, L = (case.letters[name] for name in bounds)

    def exact(scale: float) -> Values:
        """Return letters at which this scale replaces sqrt(log(1/delta))/epsilon."""
        return {"Lam": 1.0, "ell": 1.0, "epsilon": 1 / scale, "kappa": scale}

    scale = math.sqrt(2) * single
    for _ in range(_ROUNDS):
        v = case.at(**exact(scale))
        if v["least_n"] > n:
            raise ValueError(
                f"n must be at least {v['least_n']} for the conditions of {case.name}, got n={n}."
            )
        settled = {"steps": v["T"], "period": min(v["q"], v["T"])}
        settled |= {"refresh_size": v[sizes[0]], "batch_size": v[sizes[1]]}
        inner = int(case.letters.get("K", 1))
        counts = Releases(n=n, relation=target.relation, inner=inner, **settled)
        ratio = v[noises[0]], v[noises[1]]
        multipliers, used = counts.scaled(ratio, target), scale
        scale = multipliers[0] / ratio[0]
        if abs(scale - used) < _SETTLED * used:
            break
    v = case.keep(**{**exact(used), "kappa": scale})

    def accuracy(size: float) -> float:
        if size == n:
            return float(v[promised])
        return float(case.at(**exact(max(scale, _ELSEWHERE * single)), n=size)[promised])

    told = case.promise(accuracy, ("Lipschitz constant", C), kind)
    told |= common.told_of(counts, "steps period batch_size")
    return counts, v, counts.queries(multipliers, Bounds(gradient=C, difference=L)), told


def _spiderboost(case: Case) -> Plan:
    counts, v, queries, told = _spider(case)
    share = counts.refreshes * (case.given.z / queries[0].noise_multiplier) ** 2
    told |= {"learning_rate": v["eta"], "refresh_share": share}
    return case.given.plan("spiderboost", queries, told)


def _minimax(case: Case) -> Minimax:
    """Return the setting of a minimax problem; half of its numbers are dual if d2 is omitted."""
    d, d2, K = (case.letters[name] for name in ("d", "d2", "K"))
    dual = d // 2 if d2 is None else validate.count(d2=d2)
    if not 1 <= dual < d:
        raise ValueError(f"d2 must be in [1, d - 1] with d={d}, got {d2!r}.")
    if K < 2:
        raise ValueError(f"K must be at least 2, because K = 1 never moves y, got K={K}.")
    return Minimax.of(dataclasses.replace(case.given, d=(d - dual, dual)))


def _dp_rgda(case: Case) -> Plan:
    setting = _minimax(case)
    counts, v, queries, told = _spider(case)
    return _escaping(case, setting, counts, queries, v["rate"], told)


def _escaping(
    case: Case, setting: Minimax, counts: Releases, queries: Any, alpha: float, told: Parameters
) -> Plan:
    """Return the plan with steps of descent, and the escape of Lemma 6 at its caps."""
    rho_phi = setting.value_hessian_lipschitz
    letters: Values = {"alpha": alpha, "L_Phi": setting.L_Phi, "rho_phi": rho_phi}
    letters |= {"d1": setting.d1, "delta2": _PERTURBATION}
    iota = case.keep("log_h", **letters)["log_h"]
    v = case.keep(*["eta", "eta_h", "alpha_h", "R", "r", "t_thres", "D_bar"], **letters, iota=iota)
    bounds = Bounds(gradient=setting.C, difference=setting.L)
    multipliers = queries[0].noise_multiplier, queries[-1].noise_multiplier
    floor = setting.floor(setting.errors(counts, bounds, v["eta"]), multipliers)
    told = {**told, **setting.certified(floor, alpha, v["eta_h"], v["D_bar"]), "warm_start": 0}
    told |= {"algorithm": "corrected", "step": "normalised", "step_length": v["eta"]}
    told |= {"ascent_rate": 1 / setting.L, "select": "last", "inner_steps": counts.inner}
    told |= {"escape_steps": v["t_thres"], "escape_rate": v["eta_h"], "perturbation": v["r"]}
    told |= {"movement": v["D_bar"], **setting.dimensions}
    told |= common.told_of(counts, "steps period batch_size refresh_size")
    return case.given.plan("dp_rgda", queries, told)


def one_pass(case: Case, size: float, noise: float, units: Values) -> Values:
    """Return the one-pass settings with the least accuracy that so many records suffice for.

    ``noise`` is sqrt(d) times the multiplier of one release; gradients are in units of their bound.
    """

    def at(log_alpha: float) -> Values:
        v = case.at(**units, rr=noise, alpha=math.exp(log_alpha))
        v["q_pop"] = min(v["q_pop"], v["T_pop"])
        v["refreshes"] = -(-v["T_pop"] // v["q_pop"])
        increments = v["T_pop"] * int(v["K"]) - v["refreshes"]
        return {**v, "records": v["refreshes"] * v["S1_pop"] + increments * v["S2_pop"]}

    low, high = math.log(1e-12), math.log(1e3)
    if (least := at(high)["records"]) > size:
        raise ValueError(
            f"n must be at least {least} for one pass over disjoint batches, got {size:g}."
        )
    ends, stop = Sides(meet=high, miss=low), Stop(evaluations=60)
    return at(bisect(lambda x: at(x)["records"] <= size, ends, stop).meet)


def _dp_rgda_population(case: Case) -> Plan:
    setting, single = _minimax(case), case.given.z
    common.replaced_in_place(case.given.target.relation)
    M, noise = setting.C, math.sqrt(case.letters["d"]) * single
    units = {"L_Phi": setting.L_Phi / M**2}
    v = one_pass(case, case.n, noise, units)
    case.keep(**units, rr=noise, alpha=v["alpha"])
    sizes = v["S1_pop"], v["S2_pop"]
    settled = {"steps": v["T_pop"], "period": v["q_pop"], "inner": int(v["K"])}
    settled |= {"refresh_size": sizes[0], "batch_size": sizes[1]}
    counts = Releases(n=case.n, relation=case.given.target.relation, **settled)
    pairs = counts.queries((single, single), Bounds(gradient=M, difference=setting.L))
    queries = tuple(
        dataclasses.replace(query, sampling_probability=None, **common.disjoint(size, "one pass"))
        for query, size in zip(pairs, sizes, strict=False)
    )

    def accuracy(size: float) -> float:
        return float(M * one_pass(case, size, noise, units)["alpha"])

    told = case.promise(accuracy, ("Lipschitz constant", M)) | {"preset": "population"}
    return _escaping(case, setting, counts, queries, M * v["alpha"], told)


# ------------------------------------------------------------- trees, and recursive regularization


def _tree_spider(case: Case) -> Plan:
    problem = tree_spider.problem_of(case.given, case.letters["p"])

    def tree_at(size: float) -> tree_spider.Tree:
        wanted = case.at("b", n=size)["b"]
        depth = max(k for k in range(1, 60) if k * 2 ** (k + 1) <= max(wanted, 4))
        batch = 2**depth * math.ceil(wanted / 2**depth)
        if batch * (depth + 2) > 2 * size:
            needed = math.ceil(batch * (depth / 2 + 1))
            raise ValueError(f"n must be at least {needed} for one round, got n={size:g}.")
        v = case.keep("b", "alpha", "beta", "trees", n=size, u=batch, D=depth)
        error = case.keep("threshold", **{**v, "T": v["trees"]})["threshold"]
        return tree_spider.Tree(depth, batch, v["trees"], v["beta"], error)

    trivial = "Lipschitz constant", problem.L0
    told = case.promise(lambda size: 3 * tree_at(size).error, trivial, "guarantee")
    return tree_spider.planned(problem, tree_at(case.n), told)


def _recursive_regularization(case: Case) -> Plan:
    letters = case.letters
    problem = recursive.problem_of(case.given, letters["W"])
    W = problem.W
    v = case.keep("lam", "lam_1", "centers", "rate_5", W=W)
    T, rounds = v["centers"], []
    if case.n < 2 * T:
        raise ValueError(f"n must be at least {2 * T} for {T} rounds, got n={case.n}.")
    block = {"n": T * (case.n // T), "rounds": T, "W": W, "lam_1": v["lam_1"]}
    for t in range(1, T + 1):
        at = case.keep("modulus", "radius", **block, j=t)
        at |= {"mu_t": at["modulus"], "R_t": at["radius"]}
        at["K_t"] = max(2, case.keep("inner", **at)["inner"])
        step = case.keep("step", **at)["step"]
        rounds.append(recursive.Round(steps=at["K_t"], learning_rate=step, radius=at["radius"]))
    trivial = "Lipschitz constant", letters["L0"]
    told = case.promise(lambda size: case.at("rate_5", n=size)["rate_5"], trivial)
    return recursive.planned(problem, "noisy_gd", v["lam_1"], rounds, told)


def _jl_glm(case: Case) -> Plan:
    """Return SpiderBoost's plan on records in as many dimensions as Algorithm 4 takes."""
    (C, d, rank), known = (case.letters[k] for k in ("L0", "d", "rank")), case.given.constants

    def error(k: float) -> float:
        noise = math.sqrt(k) * case.given.z / case.n
        embedding = case.at("embedding", k=k)["embedding"]
        return float(jl_glm.growth("spiderboost", case.given, C, noise) + embedding)

    k = jl_glm.least(error, case.given, rank)
    case.keep("embedding", k=k)
    told = case.promise(lambda size: error(k) * math.sqrt(case.n / size), ("Lipschitz constant", C))
    inner = jl_glm.embedded(known) if k < d else known
    constants: Values = {"L0": inner.lipschitz, "L1": inner.smoothness, "F0": inner.gap}
    plan = theory("spiderboost", d=k, **case.target(), **constants)
    told |= {"matrix": "gaussian", "matrix_seed": 0}
    return jl_glm.wrapped(plan, "spiderboost", k, told)


# ------------------------------------------------------------------------------- the KL condition


def _kl(case: Case, check: Callable[..., Problem]) -> Problem:
    """Return the checked problem of a KL theorem."""
    return check(case.given, **{name: case.letters[name] for name in ("gamma", "kappa", "beta")})


def _sizes(p: Problem) -> Values:
    return {"n": p.n, "rho": p.rho, "F0": p.F0}


def _kl_condition(case: Case) -> Plan:
    problem = _kl(case, kl_spider.checked_problem)

    def levels(p: Problem) -> Values | None:
        """Return the settings, or None where a guard returns the start (lines 2, 5 and 6)."""
        v = case.keep("X", "a", "c", "R", "K", "beta_k", **_sizes(p))
        if v["R"] <= 1 or v["beta_k"] >= 1 / 6:
            return None
        v = case.keep("level", **v)
        return v if v["level"] < p.F0 else None

    none: Values = {"K": 0, "c": 2.0, "level": problem.F0}
    told = problem.promise(case.name, lambda p: (levels(p) or none)["level"])
    v = levels(problem) or none
    settled: Parameters = {"rounds": v["K"], "contraction": v["c"], "floor": v["level"]}
    # Lines 8 and 11 and Lemma 9. Unit of errors: the least gradient norm at excess risk Phi_k.
    settled |= {"tolerance": 1 / 8, "stride": 1 / 4, "descent": 1 / 64}
    return kl_spider.planned(problem, settled, {"preset": "theory", **told})


def _proximal_point(case: Case) -> Plan:
    problem = _kl(case, Problem.of)

    def levels(p: Problem) -> tuple[int, int, float] | None:
        """Return stages, gradients of each and floor, or None where a guard stops."""
        v = case.keep("X", "R", "T_prox", **_sizes(p))
        if v["R"] <= 1:
            return None
        T = v["T_prox"]
        v["ell_in"] = case.keep("ell_prox", T=T)["ell_prox"]
        S = max(2, case.keep("T_in", **{**v, "rho": p.rho / T})["T_in"]) - 1
        v |= {"T": T, "m": S, "D": p.sensitivity, "Lam": 1.0}
        v["A"] = case.keep("A_prox", **v)["A_prox"]
        floor = case.keep("level_prox", **v)["level_prox"]
        return (T, S, floor) if floor < p.F0 else None

    none = 0, 1, problem.F0
    promised = problem.promise(case.name, lambda p: (levels(p) or none)[2])
    stages, inner, floor = levels(problem) or none
    told = {"preset": "theory", **promised, "stages": stages, "inner_steps": inner, "floor": floor}
    told |= {**problem.told, "weak_convexity": case.letters["Ltil"]}
    return proximal_point.planned(problem, told)


def _adaptive_gd(case: Case) -> Plan:
    problem = _kl(case, partial(smooth, name="adaptive gradient descent"))

    def norms(p: Problem) -> tuple[float, int]:
        """Return the multiplier of a norm, and the number of norms that the budget pays for."""
        z = case.keep("sigma_norm", **_sizes(p))["sigma_norm"] * p.n / p.L0
        return z, max(1, math.floor((z / p.z) ** 2))

    def floor(p: Problem) -> float:
        v, T = case.keep("X", "a", "R", "c_gd", "phases", **_sizes(p)), norms(p)[1]
        if v["R"] <= 1 or not 8 * v["phases"] < p.n * math.sqrt(p.rho):
            return math.inf
        q = math.sqrt(p.d) + math.sqrt(2 * math.log(T / p.beta))
        v |= {"ell": 128 * v["c_gd"] ** ((4 - p.kappa) / p.kappa) * q**2 / p.d}
        noise = float(ndtri(1 - p.beta / (2 * T))) * p.L0 / math.sqrt(p.n * math.sqrt(p.rho))
        terms = ["main_term", "second_term", "third_term"][: 3 if p.kappa < 2 else 2]
        v = case.keep(*terms, **v, p_max=v["phases"], s_n=noise)
        return float(sum(v[name] for name in terms))

    told = {"preset": "theory", **problem.promise(case.name, floor)}
    floor(problem)
    z, count = norms(problem)
    told |= {"shrink": 2.0, "quantile": chi_quantile(problem.d, problem.beta / count)}
    return adaptive_gd.planned(problem, count, max(z, problem.z * (1 + 1e-11)), told)


# -------------------------------------------------------------------------- second-order points


def fixed_point(case: Case, size: float, z: float) -> Values:
    """Return the settings of (5) and (6) where they agree with the error of their own batches.

    z is the noise multiplier of an answer, which takes the place of 1/epsilon.
    """
    x: Values = {"psi": case.letters["G"], "mu": 1.0, "kappa": 1.0}
    for _ in range(_ITERATIONS):
        v = case.at("iota", "chi", "alpha", "eta", **x, n=size, epsilon=1 / z)
        v["eta"] = min(v["eta"], 1 / v["M"])  # as M >= sqrt(rho alpha), which is assumed
        v = case.at("Gamma", "R", "Phi", "saddles", "Q_all", "calls", **v)
        v["T"] = v["calls"]
        for _ in range(_DRIFTS):
            best = case.at("refreshes", "b_refresh", "b_difference", "kappa_best", **v)
            v["kappa"] = math.cbrt(v["kappa"] ** 2 * best["kappa_best"])
        v = case.at(*case.row.settings[:-1], **v)
        v = case.at("log_mu", **v, r=v["noise"])
        to = {"psi": v["error"], "mu": v["log_mu"]}
        moved = max(abs(math.log(to[name] / x[name])) for name in to)
        if moved < _FIXED:
            break
        x = {name: math.sqrt(x[name] * to[name]) for name in to} | {"kappa": v["kappa"]}
    return v


def _gauss_psgd(case: Case) -> Plan:
    z = case.given.z
    try:
        v = fixed_point(case, float(case.n), z)
    except (ArithmeticError, ValueError):
        raise ValueError(
            f"n must be larger for the settings of gauss_psgd to have a solution, got {case.n}."
        ) from None
    case.keep(**v)
    options = gauss_psgd.Options(
        learning_rate=v["eta"],
        drift=v["kappa"],
        batch_size=min(case.n, v["b_refresh"]),
        difference_batch_size=min(case.n, v["b_difference"]),
        threshold=v["chi"],
        escape_radius=v["R"],
        escape_steps=v["Gamma"],
        escape_rounds=v["Q_all"],
    )

    def accuracy(size: float) -> float:
        return float(fixed_point(case, size, z)["alpha"])

    plan = gauss_psgd.planned(case.given, None, options, int(case.letters["m"]), accuracy)
    return _told(plan, {"preset": "theory"})


def _told(plan: Plan, told: Parameters) -> Plan:
    return dataclasses.replace(plan, parameters={**plan.parameters, **told})


def _select_point(case: Case) -> Plan:
    letters = case.letters
    asked = {"candidates": letters["candidates"], "accuracy": letters["alpha"]}
    asked |= {"failure_probability": letters["omega"], "silos": int(letters["m"])}
    plan = select_point(case.given.constants, dimension=letters["d"], **asked, **case.target())
    case.keep(T=letters["candidates"], z=plan.queries[0].noise_multiplier)
    return plan


# ----------------------------------------------------------------------------------------- DP-SGD

# Corollaries: steps, width, batch size and step size, and further settings.
_KAN = {
    "5.3": ("T53", "m53"),
    "5.5": ("T55", "m55", "B55", "eta55"),
    "5.6": ("T56", "m55", "eta56", "noiseless"),
}


def _kan(case: Case) -> Plan:
    letters, n, gamma = case.letters, case.n, case.letters["gamma"]
    lam = validate.below_one(lam=letters["lam"])
    chosen = letters["corollary"] or ("5.3" if lam else "5.5")
    names = _KAN[validate.choice(tuple(_KAN), corollary=chosen)]
    if lam and chosen != "5.3":
        raise ValueError(f"lam must be 0 for corollary {chosen}, got {lam}.")
    wanted = validate.rate(rho=letters["rho"]) * n
    if chosen == "5.6":
        wanted = min(n, gamma * math.sqrt(n))
    v = case.keep(*names, "risk", B=common.rounded_up(wanted))
    steps, size = v[names[0]], v.get("B55", v["B"])
    radius = case.keep("R_star", T=steps)["R_star"]
    rate = v.get(f"eta{names[0][1:]}", 1.0)
    given = case.target(max_norm=letters["max_norm"], batch_size=size, learning_rate=rate)
    if lam:
        base = correlated_dpsgd(LambdaCGD(steps, lam), statistics=False, **given)
    else:
        base = dpsgd(steps=steps, **given)
    told: Parameters = {"width": v[names[1]], "projection_radius": radius}
    if chosen == "5.6":
        warn_caller(
            "Corollary 5.6 of kan is about SGD without noise, and promises nothing of a run with "
            f"noise: without it, risk would be of order 1 / (gamma^2 n) = {v['noiseless']:.3g}."
        )
        told |= {"noiseless_accuracy": v["noiseless"], "vacuous": True}
    else:
        trivial = "loss of a constant classifier", math.log(2)
        told |= case.promise(lambda size: float(case.at("risk", n=size)["risk"]), trivial)
    return _told(base, told)


def _moments(case: Case) -> Plan:
    """Return DP-SGD at the least noise; c2 is the constant of Theorem 1."""
    letters = case.letters
    size = common.rounded_up(validate.rate(q=letters["q"]) * case.n)
    how = {"max_norm": letters["max_norm"], "batch_size": size, "steps": letters["T"]}
    plan = dpsgd(**case.target(**how))
    unit = case.at(q=size / case.n, c2=1.0)["sigma"]
    constant = plan.query("gradient").noise_multiplier / unit
    case.keep(q=size / case.n, c2=constant)
    return _told(plan, {"c2": constant})


# ------------------------------------------------------------------------------------------- rows

_BUILD: Mapping[str, Callable[[Case], Plan]] = {
    build.__name__.removeprefix("_"): build
    for build in (
        *(_spiderboost, _tree_spider, _recursive_regularization, _jl_glm, _kl_condition),
        *(_proximal_point, _adaptive_gd, _gauss_psgd, _select_point, _dp_rgda),
        *(_dp_rgda_population, _kan, _moments),
    )
}

THEOREMS: Mapping[str, Theorem] = MappingProxyType(
    {
        name: Theorem.read(paper, rest)
        for paper in PAPERS
        for row in indented(text_of(f"dpcal.calibrate.papers.{paper}", "theorems"))
        for name, _, rest in [row.partition(":")]
    }
)
