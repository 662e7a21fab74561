"""From a target to KL Spider: how many rounds, how long, and how much noise in each?

Round k brings the excess risk down from c Phi_k to Phi_k = F0 / c^k. It starts from a noisy
gradient and follows it, in steps of a length that does not depend on the data, with noisy gradient
differences, until the estimate is small:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, gap=0.5)
>>> plan = kl_spider(constants, n=100_000, dimension=20, epsilon=1.0, delta=1e-6, gamma=0.8)
>>> rounds = schedule(plan)
>>> len(rounds) == plan.parameters["rounds"]
True
>>> plan.parameters["accuracy"] < 0.001 < 0.5  # with probability 0.95, where clipping never acts
True
>>> 1.0 - 1e-5 < plan.price() <= 1.0
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dpcal.calibrate.plan import Parameter, Parameters, Plan
from dpcal.calibrate.plans import common, kl_problem as kl
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.kl_problem import Problem, numbers
from dpcal.errors import warn_caller


@dataclass(frozen=True, kw_only=True)
class Round:
    """The public settings of round k.

    Parameters
    ----------
    level
        Phi_k: the excess risk that it aims at.
    threshold
        The norm of the estimate below which it ends.
    steps, length
        Steps it may take, at least 1, and how long each is.
    shares
        Shares of the budget: for the gradient, and for each of ``steps - 1`` differences. In
        proportion to sensitivities, which makes the variance of the last estimate the smallest for
        their sum.
    """

    level: float
    threshold: float
    steps: int
    length: float
    shares: tuple[float, float]


@common.builder()
def kl_spider(
    given: Given,
    *,
    gamma: float | None = None,
    kappa: float = 2.0,
    beta: float = 0.05,
    l2: float = 0.0,
) -> Plan:
    r"""Return the plan of KL Spider (Menart et al. 2024, Algorithm 1) that meets (epsilon, delta).

    With r_k the zCDP budget of round k, M_k its steps, D0 and D_k
    the sensitivities of a gradient and of a difference over a step, and the split of Notes,

        V_k = D0 + (M_k - 1) D_k,   error of an estimate <= q V_k / sqrt(2 r_k)

    with q the chi quantile of d dimensions at ``beta`` over the number of estimates. If that is at
    most nu G_k, G_k = Phi_k^(1/kappa) / gamma, then steps of length (1 - 2 nu) G_k / L1 while the
    estimate is at least (1 - nu) G_k bring F down by (1 - 2 nu)^2 G_k^2 / (2 L1) each, and the KL
    condition ends the round at an excess risk of at most Phi_k. Here nu and c are the ones that
    promise most, budgets grow as V_k^2 / G_k^2, so that early rounds, which stand more noise, cost
    little, and the rest of a round's budget goes to the later ones. Where no round keeps its
    tolerance, it warns, and plans plain steps of noisy gradient descent. The schedule of the paper
    is :func:`dpcal.calibrate.theory`'s.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``lipschitz`` L0, to which gradients are clipped, and ``smoothness`` L1, per unit of
        distance of differences; ``gap`` F0, or (gamma L0)^kappa.
    gamma
        KL constant > 0; ``(2 strong_convexity)^(-1/2)`` when omitted, for kappa = 2.
    kappa
        KL exponent in [1, 2].

    Returns
    -------
    Plan
        Its two adaptive queries share one budget; see :func:`schedule` for the rounds.
        ``parameters["accuracy"]`` bounds the excess risk with probability 1 - beta, for losses with
        gradients that are never clipped and F that is KL where the run goes; ``"vacuous"`` states
        that it is no better than the start's, and ``"radius"`` how far that is at most.

    Warns
    -----
    VacuousSchedule
        If nothing is promised at these sizes, with the number of records from which it would be; or
        more than noisy gradient descent reaches on average.

    Notes
    -----
    Spending r on a gradient and m differences in proportion to their sensitivities, D0 : D_k each,
    minimises the variance s_0^2 + m s_1^2 of their sum: it is V^2 / (2 r).
    """
    problem = checked_problem(given, kappa=kappa, l2=l2, gamma=gamma, beta=beta)
    return planned(problem, *_practical(problem))


def planned(problem: Problem, settled: Parameters, told: Parameters) -> Plan:
    """Return the plan of rounds that are settled, with the facts about their accuracy."""
    settled = {**settled, **_known(problem), **told}
    rounds = _rounds(settled)
    parameters = {
        **settled,
        "steps": sum(each.steps for each in rounds),
        "radius": sum(each.steps * each.length for each in rounds),
    }
    if rounds and min(each.threshold for each in rounds) >= problem.L0:
        why = f"all rounds end at gradients that are no longer than L0={problem.L0:.3g}"
        common.warn_no_step("kl_spider", problem.n, why)
    if rounds:
        parameters["gradient_share"] = sum(each.shares[0] for each in rounds)
    # Two adaptive queries on one budget: noise differs from round to round.
    queries = [common.gradients(problem.L0, problem.z, max(1, len(rounds)), budget=problem.z)]
    if count := sum(each.steps - 1 for each in rounds):
        queries.append(common.differences(queries[0], problem.constants.smoothness, count=count))
    return problem.plan("kl_spider", tuple(queries), parameters)


def _known(p: Problem) -> Parameters:
    """Return the facts of the problem that rounds and their run need."""
    return {**p.told, "smoothness": p.L1, "per_distance": p.constants.smoothness}


def checked_problem(given: Given, **known: Any) -> Problem:
    """Return the problem of a smooth KL loss; refuse a gamma that no smooth loss can have."""
    problem = kl.smooth(given, "KL Spider", **known)
    if problem.kappa == 2 and problem.gamma**2 * problem.L1 < 0.5 * (1 - 1e-12):
        raise ValueError(
            f"gamma must be at least {math.sqrt(0.5 / problem.L1):.4g} for L1={problem.L1} (a "
            f"smooth loss is no steeper than that), got {problem.gamma}."
        )
    return problem


def schedule(plan: Plan) -> list[Round]:
    """Return the rounds of a plan for KL Spider; none where its theorem promises nothing."""
    return _rounds(plan.parameters)


def _levels(p: Mapping[str, Parameter]) -> Iterator[tuple[float, float, int, float, float, float]]:
    """Yield level, G, steps, length, D_k / D0 and V_k / D0 of rounds: lines 9 to 12."""
    kappa, c, gamma, L0, L1, per_distance, level, floor, stride, descent = numbers(
        p, "kappa contraction gamma lipschitz smoothness per_distance gap floor stride descent"
    )
    work = (c - 1) / descent * gamma**2 * L1
    while True:
        level = max(level / c, floor)  # 9
        G = level ** (1 / kappa) / gamma
        steps = common.rounded_up(work * level ** ((kappa - 2) / kappa))  # 10
        length = stride * G / L1  # 11
        drift = min(per_distance * length, 2 * L0) / L0  # 12
        yield level, G, steps, length, drift, 1 + (steps - 1) * drift


def _rounds(p: Mapping[str, Parameter]) -> list[Round]:
    """Return levels, steps, lengths and shares of the budget: lines 8 to 13 of Algorithm 1."""
    tolerance, count = numbers(p, "tolerance rounds")
    found = list(islice(_levels(p), int(count)))
    needs = [1.0 if p["preset"] == "theory" else (V / G) ** 2 for _, G, *_, V in found]
    whole = math.fsum(needs)
    return [
        Round(
            level=level,
            threshold=(1 - tolerance) * G,
            steps=steps,
            length=length,
            shares=(need / whole / V, need / whole * drift / V),  # 13
        )
        for (level, G, steps, length, drift, V), need in zip(found, needs, strict=True)
    ]


def multipliers(plan: Plan, each: Round, left: float = 1.0) -> tuple[float, float]:
    """Return the noise multipliers of a round's gradient and of its differences.

    Parameters
    ----------
    plan
        For its budget.
    each
        The round.
    left
        By which factor >= 1 more of the budget is left for it than was planned.
    """
    budget = plan.query("gradient").budget or 0.0
    gradient, difference = each.shares
    return kl.multiplier(budget, gradient * left), kl.multiplier(budget, difference * left)


_TRIED = tuple((nu / 32, 1.25**power) for nu in range(1, 16) for power in range(1, 16))


def _practical(problem: Problem) -> tuple[Parameters, Parameters]:
    """Return settings with the fewest steps and a promise within a tenth of the best.

    With them, the facts about their accuracy.
    """
    tried = [(*_deepest(problem, *pair), *pair) for pair in _TRIED]
    best = min(accuracy for _, accuracy, *_ in tried)
    _, accuracy, rounds, nu, c = min(row for row in tried if row[1] <= 1.1 * best)
    if not rounds:

        def promised(p: Problem) -> float:
            return min(_deepest(p, *pair)[1] for pair in _TRIED)

        return _plain(problem), problem.promise("kl_spider", promised)
    if (plain := problem.descended()) < accuracy:
        warn_caller(
            f"kl_spider ends where its proof does, at an excess risk of {accuracy:.2g}; the mean "
            f"of noisy_gd's is at most {plain:.2g} for the same budget."
        )
    told: Parameters = {"accuracy": accuracy, "accuracy_kind": "guarantee", "vacuous": False}
    return _settled(nu, c, rounds), told


def _plain(p: Problem) -> Parameters:
    """Return rounds of one step each, as in noisy gradient descent, as many as it would take.

    Steps are 1 / L1 per unit of the gradient, and no longer than that along one of norm L0.
    """
    noise = math.sqrt(p.d / (2 * p.rho)) * p.sensitivity
    steps = min(kl.MOST_PLAIN, common.rounded_up(math.sqrt(2 * p.L1 * p.F0) / noise))
    stride = p.L0 * p.gamma / p.F0 ** (1 / p.kappa)
    return {**_settled(0.0, 1.0, steps), "tolerance": 1.0, "stride": stride}


def _settled(nu: float, c: float, rounds: int) -> Parameters:
    return {
        "preset": "practical",
        "rounds": rounds,
        "contraction": c,
        "floor": 0.0,
        "tolerance": nu,
        "stride": 1 - 2 * nu,
        "descent": (1 - 2 * nu) ** 2 / 2,
    }


def _deepest(p: Problem, nu: float, c: float) -> tuple[int, float, int]:
    """Return (steps, accuracy, rounds) of the most rounds whose errors all stay in tolerance."""
    budget = 2 * p.rho * (nu / p.sensitivity) ** 2
    level, spent, estimates, rounds = p.F0, 0.0, 0, 0
    for deeper, G, steps, *_, V in islice(_levels({**_settled(nu, c, 0), **_known(p)}), 1000):
        spent += (V / G) ** 2
        if kl.chi_quantile(p.d, p.beta / (estimates + steps)) ** 2 * spent > budget:
            break
        level, rounds, estimates = deeper, rounds + 1, estimates + steps
    return estimates, level, rounds
