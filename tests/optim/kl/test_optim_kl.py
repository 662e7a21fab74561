"""Optimizers under the KL condition: guarantees, textbook loops, refusals."""

import dataclasses
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from _built_plans import noise_again, rounding
from _kl import TARGET, N, X, Y, plan_for, start
from _problems import power, ripples
from _recording import record
from scipy import stats

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.kl_problem import Problem
from dpcal.calibrate.plans.theory import case_of
from dpcal.errors import VacuousSchedule
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.first_order.proximal_point import regularized_descent

LOGISTIC = Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.01, gap=math.log(2))
ROUGH = Constants(lipschitz=1.0, smoothness=math.inf, strong_convexity=0.01, gap=0.7)
OTHER = Constants(lipschitz=1.0, smoothness=1.0, gap=0.7)


def rows_of_norm_one(n, d):
    rows = np.random.default_rng(0).standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return optim.Logistic(rows, rows[:, 0] > 0, l2=0.01, fit_intercept=False, classes=[0, 1])


# -- fused loops


@pytest.mark.slow
@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("optimizer", [optim.adaptive_gd, optim.proximal_point])
def test_compiled_answers_are_those_of_watched_oracles(optimizer, l2):
    objective = optim.Logistic(X, Y, l2=l2, classes_from_data=True)
    options = {"constants": Constants(lipschitz=1.0, smoothness=0.5, gap=0.7)}
    adaptive = optimizer is optim.adaptive_gd
    more = (
        {"steps": 400, "epsilon": 2e3}
        if adaptive
        else {"gamma": 2.0, "inner_steps": 100, "epsilon": 20.0}
    )
    plan = plan_for(getattr(calibrate, optimizer.__name__), objective, **options, **more)
    slow, _ = record(optimizer, objective, plan, seed=5)
    fast = optimizer(objective, plan, seed=5)
    np.testing.assert_allclose(fast.w, slow.w, rtol=1e-9)
    assert fast.message == slow.message
    for name in (query.name for query in plan.queries):
        assert fast.ledger.count(name) == slow.ledger.count(name) > 5
    fast.verify()
    assert fast.epsilon(1e-5) == slow.epsilon(1e-5) == plan.price(1e-5)
    if optimizer is optim.adaptive_gd:
        least = optimizer(objective, plan, seed=5, output="smallest-norm")
        also, _ = record(optimizer, objective, plan, seed=5, output="smallest-norm")
        np.testing.assert_allclose(least.w, also.w, rtol=1e-9)
        share, exact = (x.ledger.share(plan.query("norm").budget) for x in (fast, slow))
        assert float(share) == pytest.approx(float(exact), rel=1e-9)
        assert share <= 1


# -- guarantees


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "length", "share", "runs", "misses"),
    [
        # Failures are at most 5 %: more than 6 of 20 has a chance below 1e-4.
        (power(2.0), 1.0, 0.1, 20, 6),
        (power(6.0), 1.0, 0.1, 20, 6),
        (ripples(20_000, 3), 2.0, 0.05, 5, 0),
    ],
    ids=["p=2", "p=6", "not convex"],
)
def test_spider_keeps_its_promise_at_practical_sizes(objective, length, share, runs, misses):
    plan = plan_for(calibrate.kl_spider, objective)
    initial = length * start(objective)
    accuracy = plan.parameters["accuracy"]
    assert accuracy < share * objective.loss(initial)
    ends = [optim.kl_spider(objective, plan, seed=seed, initial=initial).w for seed in range(runs)]
    assert sum(objective.loss(w) > accuracy for w in ends) <= misses


def test_spider_is_near_sgd_where_it_promises_nothing():
    """It kept four fifths of its start's excess risk on such plans, and did not warn of them.

    DP-SGD's rate is that of a linear model; those of Spider's plain steps hold for any KL loss.
    """
    objective = rows_of_norm_one(450, 10)
    target = {"n": 450, "epsilon": 2.0, "delta": 1e-5, "neighboring_relation": "replace-special"}
    with pytest.warns(VacuousSchedule, match="informative from about n="):
        plan = calibrate.kl_spider(LOGISTIC, dimension=10, l2=0.01, **target)
    assert plan.parameters["informative_from_n"] > 450
    assert plan.parameters["accuracy"] == plan.parameters["gap"]
    results = [optim.kl_spider(objective, plan, seed=seed) for seed in range(10)]
    sgd = calibrate.dpsgd(batch_size=64, epochs=20, **target)
    others = [optim.dpsgd(objective, sgd, seed=seed, output="tail") for seed in range(10)]
    least = objective.loss(objective.minimize())
    excess, other = (
        np.mean([objective.loss(result.w) - least for result in runs]) for runs in (results, others)
    )
    assert excess < 2 * other < objective.loss(np.zeros(10)) - least


# What each says of the same sizes, and the losses that it says so of.
REACH_LESS = {
    "kl_spider": "ends where its proof does, at an excess risk of",
    "proximal_point": "does not use that the loss is smooth",
    "tree_spider": "reads each record once, and its gradients err by",
}


def test_plans_say_before_anything_is_spent_where_plain_steps_reach_less():
    """A regularised logistic loss at n = 20,000, d = 50; noisy_gd has the better bound in each."""
    sizes = {"n": 20_000, "dimension": 50, "epsilon": 1.0, "delta": 1e-5}
    objective = rows_of_norm_one(20_000, 50)
    plan = calibrate.noisy_gd(LOGISTIC, steps=64, **sizes)
    ends = [optim.noisy_gd(objective, plan, seed=seed).w for seed in range(3)]
    least = objective.loss(objective.minimize())
    excess = np.mean([objective.loss(w) - least for w in ends])
    norm = np.mean([np.linalg.norm(objective.gradient(w)) for w in ends])
    for name, sentence in REACH_LESS.items():
        more = {"l2": 0.01} if name == "kl_spider" else {}
        with pytest.warns(VacuousSchedule, match=sentence) as told:
            getattr(calibrate, name)(LOGISTIC, **sizes, **more)
        # A bound on a mean: runs of as many plain steps are below it.
        bound = float(str(told[0].message).split(" at most ")[1].split()[0].rstrip("."))
        assert (norm if name == "tree_spider" else excess) < bound
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # No bound on plain steps is known for these losses.
        calibrate.proximal_point(ROUGH, **sizes)
        calibrate.proximal_point(OTHER, gamma=2.0, kappa=3.0, **sizes)
    with pytest.raises(ValueError, match="gamma must be given"):
        calibrate.kl_spider(OTHER, **sizes)


def test_plans_for_convex_losses_name_dpsgd_and_other_losses_are_not_told():
    sizes = {"n": 20_000, "dimension": 50, "epsilon": 1.0, "delta": 1e-6}
    sizes["neighboring_relation"] = "replace-one"
    for name in ("spiderboost", "adaptive_gd", "recursive_regularization"):
        with pytest.warns(VacuousSchedule, match=f"is convex, and {name} ended above dpsgd"):
            getattr(calibrate, name)(LOGISTIC, **sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", VacuousSchedule)
        calibrate.spiderboost(OTHER, **sizes)
        calibrate.adaptive_gd(OTHER, **sizes)
        # Nothing is proved, or was measured, of one pass: its plans promise nothing either.
        calibrate.recursive_regularization(OTHER, subsolver="phased_sgd", **sizes)


@pytest.mark.parametrize(
    ("kappa", "gamma", "smoothness", "gap"),
    [(2.0, 7.0, 0.25, 0.7), (2.0, 0.5, 1.0, 0.5), (1.5, 1.0, 1.0, 0.9), (1.2, 1.0, 0.8, 0.9)],
)
def test_the_bound_on_plain_steps_is_that_of_the_worst_risk_on_the_way(
    kappa, gamma, smoothness, gap
):
    """Against the largest value over a grid of smaller risks at each step."""
    constants = Constants(lipschitz=1.0, smoothness=smoothness, gap=gap)
    given = Given.of(constants, n=20_000, dimension=50, epsilon=1.0, delta=1e-5)
    problem = Problem.of(given, gamma=gamma, kappa=kappa)
    best = math.inf
    for steps in (2**k for k in range(9)):
        noise = steps * 50 * problem.sensitivity**2 / (2 * problem.rho) / (2 * smoothness)
        level = problem.F0
        for _ in range(steps):
            risks = np.linspace(0, level, 2_001)
            left = risks - risks ** (2 / kappa) / (2 * smoothness * gamma**2)
            level = left.max() + noise
        best = min(best, level)
    assert best > 0
    assert problem.descended() == pytest.approx(best, rel=1e-3)


def test_inner_steps_end_where_noise_makes_them_pointless():
    constants = dataclasses.replace(LOGISTIC, smoothness=1.0)
    for epsilon in (0.5, 4.0):
        given = {"n": 4_000, "dimension": 10, "epsilon": epsilon, "delta": 1e-5}
        p = calibrate.proximal_point(constants, **given).parameters
        assert p["inner_steps"] < 512
        # Of the last stage: what more inner steps would lower, and noise, which they would not.
        assert 2 * p["predicted"] / p["gamma"] ** 2 / p["inner_steps"] <= p["noise"] / 3


def test_spider_keeps_the_promise_of_its_theory():
    # rho is huge, so that the constants of the theorem bite at few records.
    objective = power(3.0, n=4_000, d=2)
    plan = plan_for("kl_condition", objective, epsilon=4_000.0)
    assert plan.parameters["vacuous"] is False
    result = optim.kl_spider(objective, plan, seed=0, initial=start(objective))
    assert objective.loss(result.w) <= plan.parameters["accuracy"] < plan.parameters["gap"]


def test_adaptive_steps_descend_as_the_theory_says():
    # F(w_t) - F(w_{t+1}) >= (||grad F||^2 - s^2) / (8 L1) in all steps, but for 5 % of the runs.
    objective = power(4.0, n=20_000, d=50)
    constants = objective.constants
    plan = plan_for("adaptive_gd", objective, epsilon=50.0)
    norms = plan.query("norm").count
    s = stats.norm.isf(0.05 / (2 * norms)) * plan.query("norm").noise_multiplier
    s *= constants.lipschitz / objective.n
    broken = 0
    for seed in range(2):
        w = [start(objective)]

        def look(progress, seen=w):
            seen.append(progress.w)

        optim.adaptive_gd(objective, plan, seed=seed, initial=w[0], callback=look, callback_every=1)
        falls = -np.diff([objective.loss(x) for x in w])
        least = [
            (np.linalg.norm(objective.gradient(x)) ** 2 - s**2) / (8 * constants.smoothness)
            for x in w[:-1]
        ]
        assert len(w) > 5
        broken += bool((falls < np.array(least) - 1e-15).any())
    assert broken == 0


def test_where_the_theory_promises_nothing_it_says_so_and_touches_nothing():
    def gradients(w, rows):
        raise AssertionError("a record was touched")

    objective = optim.FromGradients(gradients, n=N, dimension=4)
    given = {"constants": OTHER, "gamma": 1.0}
    w = np.array([0.1, 0.2, 0.3, 0.4])
    theorems = ("kl_condition", "proximal_point", "adaptive_gd")
    for name, optimizer in zip(
        theorems, (optim.kl_spider, optim.proximal_point, optim.adaptive_gd), strict=True
    ):
        with pytest.warns(VacuousSchedule):
            plan = plan_for(name, objective, **given)
        assert plan.parameters["vacuous"] is True
        if optimizer is not optim.adaptive_gd:
            result = optimizer(objective, plan, seed=0, initial=w)
            assert (result.w == w).all()
            assert result.ledger.entries == ()
            assert "promises nothing" in result.message


# -- the loops, again


@pytest.mark.parametrize("p", [2.0, 4.0])
def test_spider_is_the_textbook_s(p):
    """Algorithm 1 in plain numpy, on the same noise."""
    objective = power(p)
    n, d = objective.n, objective.dimension
    plan = plan_for(calibrate.kl_spider, objective, neighboring_relation="replace-one")
    noise = Streams(4, plan, objective.digest).noise
    L0, L1 = (getattr(objective.constants, name) for name in ("lipschitz", "smoothness"))
    gamma, kappa = objective.kl
    nu, c = plan.parameters["tolerance"], plan.parameters["contraction"]
    z = plan.queries[0].budget
    gradient = objective.gradient
    rounds = []
    level = 1 / p
    for _ in range(plan.parameters["rounds"]):
        level /= c
        G = level ** (1 / kappa) / gamma
        M = math.ceil((c - 1) * level * 2 * L1 / ((1 - 2 * nu) * G) ** 2 * (1 - 1e-12))
        h = (1 - 2 * nu) * G / L1
        V = 1 + (M - 1) * L1 * h / L0
        rounds.append((G, M, h, L1 * h / L0, V))
    w, spent, steps, off = start(objective), 0.0, 0, 0.0
    for k, (G, M, h, drift, V) in enumerate(rounds):
        needs = [(V_j / G_j) ** 2 for G_j, _, _, _, V_j in rounds[k:]]
        budget = (1 - spent) * needs[0] / sum(needs)  # what earlier rounds left is shared out
        g = gradient(w) + noise_again(noise, z * math.sqrt(V / budget), L0, d) / n
        off_g = rounding(L0, d, n, clipped=False) + L1 * off  # rounding moves w by off
        spent += budget / V
        t = 0
        while t < M and np.linalg.norm(g) >= (1 - nu) * G:
            before, w, t = w, w - h * g / np.linalg.norm(g), t + 1
            off, off_before = off + h * off_g / np.linalg.norm(g), off
            if t < M:
                s = noise_again(noise, z * math.sqrt(V / (budget * drift)), L1 * h, d) / n
                g = g + gradient(w) - gradient(before) + s
                off_g += rounding(L1 * h, d, n, clipped=False) + L1 * (off + off_before)
                spent += budget * drift / V
        steps += t
    result = optim.kl_spider(objective, plan, seed=4, initial=start(objective))
    assert np.linalg.norm(result.w - w) < off < 5e-5
    assert result.message == f"ended all {len(rounds)} rounds after {steps} steps"
    assert float(result.ledger.share(z)) == pytest.approx(spent, rel=1e-9)
    assert sum(entry.count for entry in result.ledger.entries) * n <= plan.evaluations


@pytest.mark.parametrize("compiled", [True, False])
def test_a_gradient_that_the_budget_does_not_pay_for_is_not_taken(compiled):
    # One feature that is always 1 and a target far away: clipped gradients are all the same.
    n, d = 50, 100
    objective = optim.FromGradients(lambda w, rows: np.full((len(rows), d), -0.1), n=n, dimension=d)
    if compiled:
        objective = optim.Cauchy(
            np.full((n, d), 0.1), np.full(n, 1e3), width=1e3, fit_intercept=False
        )
    constants = Constants(lipschitz=1.0, smoothness=1.0)
    plan = plan_for(calibrate.adaptive_gd, objective, constants=constants, steps=8)
    result = optim.adaptive_gd(objective, plan, seed=5, output="smallest-norm")
    assert "the next gradient costs more than is left" in result.message
    budget = plan.query("norm").budget
    left = 1 - result.ledger.share(budget)
    # The gradient refused would have cost about (budget C q / (n N))^2 with N about 1.
    assert 0 <= left < 2 * (budget * 10 / n) ** 2
    assert result.ledger.count("norm") == result.ledger.count("gradient") + 1
    assert result.epsilon(TARGET["delta"]) == plan.price()


# -- the inner solver


def test_the_inner_solver_is_the_textbook_s():
    noise = np.random.default_rng(3).standard_normal((40, 3))
    A, center, weight = np.diag([1.0, 2.0, 0.1]), np.ones(3), 0.3
    answers = iter(noise)
    query = SimpleNamespace(max_norm=0.5)
    oracle = SimpleNamespace(
        compiled=False,
        plan=SimpleNamespace(query=lambda name: query),
        gradient=lambda w, name: A @ w + next(answers),
    )
    found = regularized_descent(oracle, center, weight, 40)
    points, radius = [center], 0.5 / (2 * weight)
    for t in range(1, 41):
        w = points[-1]
        w = w - 2 / (weight * (t + 1)) * (A @ w + noise[t - 1] + 2 * weight * (w - center))
        distance = np.linalg.norm(w - center)
        points.append(w if distance <= radius else center + (w - center) * radius / distance)
    weights = [2 * t / (41 * 42) for t in range(1, 42)]
    assert sum(weights) == pytest.approx(1.0)
    np.testing.assert_allclose(found, np.average(points, axis=0, weights=weights), rtol=1e-12)
    assert max(np.linalg.norm(w - center) for w in points) <= radius * (1 + 1e-12)


def test_the_inner_error_stays_below_its_bound():
    # The bound of every stage at once holds with probability 0.95: here 20 single stages.
    weight, S = 0.05, 300
    objective = optim.Logistic(X, Y, fit_intercept=False, classes_from_data=True)
    known = Constants(lipschitz=1.0, smoothness=0.25)
    problem = Problem.of(Given.of(known, n=N, dimension=4, **TARGET), gamma=1.0)
    case = case_of("proximal_point", n=N, d=4, L0=1.0, F0=1.0, gamma=1.0, **TARGET)
    sizes = {"rho": problem.rho, "D": problem.sensitivity, "m": S, "T": 1}
    v = case.at("X", "ell_prox", **sizes)
    tau = case.at("A_prox", **v, ell_in=v["ell_prox"])["A_prox"] * v["X"] ** 2 / weight
    asked = {"gamma": 1.0, "constants": dataclasses.replace(known, gap=1e-3), "inner_steps": S}
    plan = plan_for(calibrate.proximal_point, objective, **asked)
    assert plan.parameters["stages"] == 1
    pulled = optim.Logistic(X, Y, l2=2 * weight, fit_intercept=False, classes_from_data=True)
    best = pulled.loss(pulled.minimize())
    oracles = [optim.PrivateOracle(objective, plan, seed=k) for k in range(20)]
    ends = [regularized_descent(oracle, np.zeros(4), weight, S) for oracle in oracles]
    assert 0 < max(pulled.loss(w) for w in ends) - best <= tau
