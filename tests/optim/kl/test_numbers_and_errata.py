"""Optimizers under the KL condition: published numbers and errata."""

import dataclasses
import math

import numpy as np
import pytest
from _built_plans import theory_of
from _kl import HALF, big_plan
from _problems import power
from scipy.optimize import brentq

from dpcal.calibrate import Constants
from dpcal.calibrate.plans.kl_spider import multipliers, schedule
from dpcal.calibrate.plans.proximal_point import stage_weights
from dpcal.errors import BudgetExceeded, LedgerMismatch
from dpcal.optim import Ledger, PrivateOracle, adaptive_gd

# -- published numbers (gamma = L0 = 1, L1 = 2, F0 = 1/2, n = 1e7, d = 100, rho = 1/2, beta = 0.05)


@pytest.mark.parametrize(
    ("kappa", "k", "level", "steps", "noise"),
    [
        (1.5, 1, 0.4969187137, 2, (1.2103823e-5, 4.7935178e-6)),
        (1.5, 3166, 0.00100591073, 8, (1.1351869e-5, 5.6870954e-7)),
        (2.0, 1, 0.496124031, 1, (1.1637869e-5,)),
    ],
)
def test_spider_noise_by_hand(kappa, k, level, steps, noise):
    plan = big_plan(kappa)
    each = schedule(plan)[k - 1]
    assert each.level == pytest.approx(level, rel=2e-6)  # of noises found to 1e-6
    assert each.steps == steps
    if steps == 1:
        each = dataclasses.replace(each, shares=(each.shares[0], 1.0))
    # Standard deviations on the mean: multiplier times bound, over n.
    bounds = (1.0, 2.0 * each.length)
    found = [z * bound / 10**7 for z, bound in zip(multipliers(plan, each), bounds, strict=True)]
    assert found[: len(noise)] == pytest.approx(noise, rel=2e-6)


@pytest.mark.parametrize(
    ("kappa", "stages", "printed_stages", "points"),
    [(3.0, 571, 308, 1440214), (2.0, 472, 251, 1691314)],
)
def test_proximal_counts_by_hand(kappa, stages, printed_stages, points):
    constants = Constants(lipschitz=1.0, smoothness=math.inf, gap=0.5)
    given = {"n": 10**4, "dimension": 10, "gamma": 1.0, "kappa": kappa, "Ltil": 0.5, **HALF}
    p = theory_of("proximal_point", constants, **given).parameters
    assert p["stages"] == stages
    # The points of the inner solver are as many as its logarithm asks for; the first is its start.
    at = [math.log(2 * count / 0.05) ** 2 / count for count in (stages, printed_stages)]
    assert p["inner_steps"] + 1 == pytest.approx(points * at[0] / at[1], rel=4e-6)


def test_adaptive_noise_by_hand():
    """Of rho = 1/2 (n = 1e4): n sqrt(rho) / 2 norms of 2 sqrt(rho) / n each, by replacement.

    Where a record is added there are 2 n sqrt(rho).
    """
    constants = Constants(lipschitz=1.0, smoothness=1.0)
    given = {"n": 10**4, "dimension": 20, "gamma": 1.0, **HALF}
    norm = theory_of("adaptive_gd", constants, **given).query("norm")
    assert norm.noise_multiplier / 10**4 == pytest.approx(0.011892071, rel=1e-6)
    assert norm.count == 3535
    assert 0.5 * norm.share_of_one == pytest.approx(1.4142136e-4, rel=1e-5)
    added = {**given, "neighboring_relation": "add-or-remove-one", "epsilon": 2.0}
    plan = theory_of("adaptive_gd", constants, **added)
    rho = 1 / (2 * plan.query("norm").budget ** 2)
    assert plan.query("norm").count == math.floor(2 * 10**4 * math.sqrt(rho))


@pytest.mark.parametrize("kappa", [1.0, 1.3])
def test_shares_of_a_round_are_the_best_split(kappa):
    """Least s_0^2 + m s_1^2 at a given cost, by brute force over the gradient's share."""
    rounds = schedule(big_plan(kappa))
    each = rounds[700]
    m, drift = each.steps - 1, 2.0 * each.length
    total = each.shares[0] + m * each.shares[1]
    variance = [
        1 / share + m * drift**2 / ((total - share) / m)
        for share in np.linspace(0, total, 2001)[1:-1]
    ]
    best = 1 / each.shares[0] + m * drift**2 / each.shares[1]
    assert m > 1
    assert best == pytest.approx(min(variance), rel=1e-4)
    assert best <= min(variance) * (1 + 1e-9)
    spent = [each.shares[0] + (each.steps - 1) * each.shares[1] for each in rounds]
    assert math.fsum(spent) == pytest.approx(1.0, rel=1e-12)


# -- errata


@pytest.mark.parametrize(
    ("relation", "factor"), [("replace-one", 17 / 8), ("add-or-remove-one", 17 / 32)]
)
def test_the_printed_noise_of_spider_costs_more_than_its_budget(relation, factor):
    # kappa = 2, where T_k = 1: one gradient and one difference in each round.
    plan = big_plan(2.0, neighboring_relation=relation)
    z = plan.query("gradient").budget
    moved = 2 if relation == "replace-one" else 1
    rho, K, n = (moved / z) ** 2 / 2, plan.parameters["rounds"], plan.n
    gradient = dataclasses.replace(plan.query("gradient"), noise_multiplier=z, count=10**6)
    sigma_hat = math.sqrt(K) / (n * math.sqrt(rho))  # L0 = gamma = 1
    ledger = Ledger(n, relation)
    ledger.record(dataclasses.replace(gradient, noise_multiplier=sigma_hat * n), K)
    for each in schedule(plan):
        sigma_k = math.sqrt(each.level * K) / (n * math.sqrt(rho))
        bound = 2.0 * each.length
        ledger.record(dataclasses.replace(gradient, noise_multiplier=sigma_k * n / bound))
    assert float(ledger.share(z)) == pytest.approx(factor, rel=1e-9)
    if factor > 1:
        with pytest.raises(LedgerMismatch, match=r"2\.125 times their budget"):
            ledger.epsilon(0.1)


def test_the_printed_charge_of_a_negative_norm_is_caught():
    """Literally: noise at its floor when N_t < 0, charged L0^2 d ell / (n^2 N_t^2)."""
    n = 2_000
    objective = power(2.0, n=n, d=1)
    plan = theory_of("adaptive_gd", objective.constants, n=n, dimension=1, gamma=1.0, **HALF)
    rho, L0 = 0.5, objective.constants.lipschitz
    ell = math.log(n * math.sqrt(rho) / 0.05)
    query, z_norm = plan.query("gradient"), plan.query("norm").noise_multiplier

    def literal(seed):
        oracle = PrivateOracle(objective, plan, seed=seed)
        w, charged = np.zeros(1), 0.0
        while charged <= rho / 2:
            N_t = oracle.norm(w, "norm", noise_multiplier=z_norm)
            sigma = max(N_t / math.sqrt(ell), 2 * L0 / (n * math.sqrt(rho)))
            charged += min(L0**2 * ell / (n * N_t) ** 2, rho / 2) + math.sqrt(rho) / n
            z = max(sigma * n / L0, query.noise_multiplier)
            w = w - 0.5 * oracle.gradient(w, "gradient", noise_multiplier=z)

    refused = 0
    for seed in range(4):
        try:
            literal(seed)
        except BudgetExceeded:
            refused += 1
    assert refused >= 2
    honest = adaptive_gd(objective, plan, seed=0)
    assert honest.ledger.share(query.budget) <= 1


def adversarial_stages(weights, error, p):
    """Every stage ends as far from its minimum as its error allows, away from the optimum."""
    w, excess = 1.0, []
    for weight in weights:

        def pulled(x, c=w, weight=weight):
            return x**p / p + weight * (x - c) ** 2

        def slope(x, c=w, weight=weight):
            return x ** (p - 1) + 2 * weight * (x - c)

        exact = brentq(slope, 0.0, w, xtol=1e-300)
        tau = error / weight
        high = exact + math.sqrt(2 * tau / weight) + 1
        w = brentq(lambda x: pulled(x) - pulled(exact) - tau, exact, high, xtol=1e-15)  # noqa: B023
        excess.append(w**p / p)
    return excess


def test_growing_weights_reach_the_theorem_s_level_and_constant_ones_do_not():
    p, Ltil, ratios = 1.5, 0.2, {}
    gamma = p ** (-(p - 1) / p)
    constants = Constants(lipschitz=2.0, smoothness=math.inf, gap=1 / p)
    given = {"dimension": 4, "epsilon": 1.0, "delta": 1e-6}
    for n in (10**6, 10**8):
        plan = theory_of(
            "proximal_point", constants, n=n, gamma=gamma, kappa=3.0, Ltil=Ltil, **given
        )
        weights, floor = stage_weights(plan), plan.parameters["accuracy"]
        error = (floor ** (1 / 3) / (8 * gamma)) ** 2
        ratios[n] = [
            adversarial_stages(chosen, error, p)[-1] / floor
            for chosen in (weights, [Ltil] * len(weights))
        ]
    for staged, constant in ratios.values():
        assert staged <= 1 < constant
    assert ratios[10**8][1] > 3 * ratios[10**6][1]
