"""Optimizers under the KL condition: promises, published numbers, guarantees, errata, attacks."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from _recording import Entry, Sum, check_promises, record
from scipy import stats
from scipy.optimize import brentq

from dpcal import calibrate
from dpcal.calibrate import Constants
from dpcal.calibrate.plans.adaptive_gd import _norms
from dpcal.calibrate.plans.kl_problem import Problem
from dpcal.calibrate.plans.kl_spider import multipliers, schedule
from dpcal.calibrate.plans.proximal_point import (
    _inner_error,
    _inner_steps,
    _stage_count,
    stage_weights,
)
from dpcal.errors import BudgetExceeded, LedgerMismatch, VacuousSchedule
from dpcal.optim import (
    Cauchy,
    FromGradients,
    Ledger,
    Logistic,
    PrivateOracle,
    Squared,
    adaptive_gd,
    kl_spider,
    proximal_point,
)
from dpcal.optim.boundary.adaptive import AdaptiveLoops
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.problems import PowerNorm, Ripples, balanced
from dpcal.optim.proximal_point import regularized_descent

RELATIONS = ["add-or-remove-one", "replace-one", "replace-special"]
TARGET = {"epsilon": 2.0, "delta": 1e-5}
RNG = np.random.default_rng(0)
N = 300
X = RNG.standard_normal((N, 4))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = RNG.random(N) < 1 / (1 + np.exp(-5 * X[:, 0]))
# delta(1) of a Gaussian release with sensitivity equal to its noise: rho = 1/2.
HALF = {"epsilon": 1.0, "delta": 0.12693673750664397, "neighboring_relation": "replace-one"}


def power(p, n=2_000, d=5, seed=1):
    return PowerNorm(balanced(n, d, seed=seed), power=p)


def start(objective):
    return np.eye(objective.dimension)[0]


def plan_for(build, objective, **options):
    given = {"n": objective.n, "dimension": objective.dimension, **TARGET, **options}
    if isinstance(objective, PowerNorm | Ripples) and build is not calibrate.adaptive_gd:
        given = dict(zip(("gamma", "kappa"), objective.kl, strict=True)) | given
    constants = given.pop("constants", None) or objective.constants
    return build(constants, **{"public": True, **given})


# -- promises

LOGISTIC = Logistic(X, Y, l2=0.1, fit_intercept=False)
CASES = {
    "spider, strongly convex": (kl_spider, LOGISTIC, {"l2": 0.1}),
    "spider, kappa = 1.2": (kl_spider, power(6.0), {}),
    "spider, clipped": (kl_spider, Cauchy(X, 9 * X[:, 0]), {"gamma": 5.0}),
    "proximal point": (proximal_point, power(1.5, n=200), {"inner_steps": 40}),
    "proximal point, clipped": (
        proximal_point,
        Cauchy(X, 9 * X[:, 0]),
        {"gamma": 5.0, "inner_steps": 64, "weak_convexity": 0.125},
    ),
    "adaptive": (adaptive_gd, LOGISTIC, {"l2": 0.1}),
    "adaptive, clipped": (adaptive_gd, Cauchy(X, 9 * X[:, 0]), {"steps": 20}),
}


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("case", CASES)
def test_optimizers_do_what_their_plans_promise(case, relation):
    optimizer, objective, options = CASES[case]
    build = getattr(calibrate, optimizer.__name__)
    small = Constants(
        lipschitz=objective.constants.lipschitz * (0.3 if "clipped" in case else 1.0),
        smoothness=objective.constants.smoothness,
        strong_convexity=objective.constants.strong_convexity,
        gap=0.7,
    )
    plan = plan_for(build, objective, constants=small, neighboring_relation=relation, **options)
    initial = 0.9 * start(objective)
    result = check_promises(optimizer, objective, plan, seed=3, initial=initial)
    assert result.complete
    assert TARGET["epsilon"] * (1 - 1e-5) < plan.price() <= TARGET["epsilon"]
    assert result.epsilon(TARGET["delta"]) == plan.price()


@pytest.mark.slow
@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("optimizer", [adaptive_gd, proximal_point])
def test_fused_loops_do_what_the_readable_ones_do(optimizer, l2):
    objective = Logistic(X, Y, l2=l2)
    options = {"gamma": 2.0, "constants": Constants(lipschitz=1.0, smoothness=0.5, gap=0.7)}
    adaptive = optimizer is adaptive_gd
    more = {"steps": 400, "epsilon": 2e3} if adaptive else {"inner_steps": 100, "epsilon": 20.0}
    plan = plan_for(getattr(calibrate, optimizer.__name__), objective, **options, **more)
    slow, _ = record(optimizer, objective, plan, seed=5)
    fast = optimizer(objective, plan, seed=5)
    np.testing.assert_allclose(fast.w, slow.w, rtol=1e-9)
    assert fast.message == slow.message
    for name in (query.name for query in plan.queries):
        assert fast.ledger.count(name) == slow.ledger.count(name) > 5
    fast.verify()
    assert fast.epsilon(1e-5) == slow.epsilon(1e-5) == plan.price(1e-5)
    if optimizer is adaptive_gd:
        least = optimizer(objective, plan, seed=5, output="smallest-norm")
        also, _ = record(optimizer, objective, plan, seed=5, output="smallest-norm")
        np.testing.assert_allclose(least.w, also.w, rtol=1e-9)
        share, exact = (x.ledger.share(plan.query("norm").budget) for x in (fast, slow))
        assert float(share) == pytest.approx(float(exact), rel=1e-9)
        assert share <= 1


def test_many_adaptive_answers_are_recorded_as_one_by_one():
    query = plan_for(calibrate.adaptive_gd, LOGISTIC).query("gradient")
    one, many = Ledger(N), Ledger(N)
    chosen = [query.noise_multiplier * k for k in (1.0, 1.7, 1.7, 30.0)]
    for z in chosen:
        one.record(dataclasses.replace(query, noise_multiplier=z))
    many.record_chosen(query, chosen)
    assert many.totals == one.totals
    assert many.count("gradient") == 4
    assert many.share(query.budget) == one.share(query.budget)
    assert Ledger.from_json(many.to_json()).totals == one.totals


# -- published numbers (gamma = L0 = 1, L1 = 2, F0 = 1/2, n = 1e7, d = 100, rho = 1/2, beta = 0.05)


@pytest.mark.parametrize(
    ("kappa", "rounds", "extra", "floor", "first", "steps", "radius"),
    [
        (1.0, 3284, 0.00390625, 0.01154563, 967, 113346, 216.62886),
        (1.5, 3166, 0.006200785359, 0.0010059107, 1005, 21193, 67.181319),
        (2.0, 3386, 0.0078125, 7.7133704e-5, 1128, 3386, 24.86902),
    ],
)
def test_spider_theory_by_hand(kappa, rounds, extra, floor, first, steps, radius):
    plan = big_plan(kappa)
    p = plan.parameters
    assert (p["rounds"], p["steps"], p["vacuous"]) == (rounds, steps, False)
    assert p["contraction"] - 1 == pytest.approx(extra, rel=1e-9)
    assert p["floor"] == p["accuracy"] == pytest.approx(floor, rel=1e-6)
    assert p["radius"] == pytest.approx(radius, rel=1e-6)
    levels = [each.level for each in schedule(plan)]
    assert levels.index(p["floor"]) + 1 == first


def big_plan(kappa, **options):
    constants = Constants(lipschitz=1.0, smoothness=2.0, gap=0.5)
    given = {"n": 10**7, "dimension": 100, "gamma": 1.0, "kappa": kappa, **HALF, **options}
    return calibrate.kl_spider(constants, preset="theory", **given)


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
    assert each.level == pytest.approx(level, rel=1e-8)
    assert each.steps == steps
    if steps == 1:
        each = dataclasses.replace(each, shares=(each.shares[0], 1.0))
    z_0, z_1 = multipliers(plan, each)
    # Standard deviations on the mean: multiplier times bound, over n.
    assert z_0 * 1.0 / 10**7 == pytest.approx(noise[0], rel=2e-6)
    if steps > 1:
        assert z_1 * 2.0 * each.length / 10**7 == pytest.approx(noise[1], rel=2e-6)


@pytest.mark.parametrize(
    ("kappa", "stages", "printed_stages", "points"),
    [(3.0, 571, 308, 1440214), (2.0, 472, 251, 1691314)],
)
def test_proximal_counts_by_hand(kappa, stages, printed_stages, points):
    constants = Constants(lipschitz=1.0, smoothness=math.inf, gap=0.5)
    problem = Problem.of(constants, n=10**4, dimension=10, gamma=1.0, kappa=kappa, **HALF)
    assert _stage_count(problem, 0.5) == stages
    # The points of the inner solver for the printed number of stages; the first is its start.
    assert _inner_steps(problem, printed_stages) + 1 == pytest.approx(points, rel=2e-6)


def test_adaptive_noise_by_hand():
    # n = 1e4, d = 20, rho = 1/2, replace-one: n sqrt(rho) / 2 norms, of 2 sqrt(rho) / n each.
    constants = Constants(lipschitz=1.0, smoothness=1.0)
    plan = calibrate.adaptive_gd(constants, n=10**4, dimension=20, preset="theory", **HALF)
    norm = plan.query("norm")
    assert norm.noise_multiplier / 10**4 == pytest.approx(0.011892071, rel=1e-6)
    assert norm.count == 3535
    assert 0.5 * float(norm.share) / norm.count == pytest.approx(1.4142136e-4, rel=1e-5)


def test_shares_of_a_round_are_the_best_split():
    # Minimise s_0^2 + m s_1^2 at a given cost by brute force over the gradient's share.
    for kappa in (1.0, 1.3):
        each = schedule(big_plan(kappa))[700]
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


# -- guarantees


@pytest.mark.slow
@pytest.mark.parametrize("p", [2.0, 3.0, 6.0])
def test_spider_keeps_its_promise_at_practical_sizes(p):
    # Failures are at most 5 %: more than 9 of 40 has a chance below 1e-4 for each p.
    objective = power(p)
    plan = plan_for(calibrate.kl_spider, objective)
    w = start(objective)
    excess = [
        objective.loss(kl_spider(objective, plan, seed=seed, initial=w).w) for seed in range(40)
    ]
    assert plan.parameters["accuracy"] < 0.1 * plan.parameters["gap"]
    assert np.sum(np.array(excess) > plan.parameters["accuracy"]) <= 9


def test_spider_keeps_its_promise_on_a_loss_that_is_not_convex():
    objective = Ripples(balanced(20_000, 3, seed=0), radius=2.0)
    plan = plan_for(calibrate.kl_spider, objective)
    w = np.array([2.0, 0.0, 0.0])
    excess = [
        objective.loss(kl_spider(objective, plan, seed=seed, initial=w).w) for seed in range(10)
    ]
    assert plan.parameters["accuracy"] < 0.05 * objective.loss(w)
    assert max(excess) <= plan.parameters["accuracy"]


def test_spider_never_ends_above_its_start_where_it_promises_nothing():
    # Each run may fail with a chance of beta = 1 in 10^4.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((350, 10)), rng.random(350) < 0.5
    X[:, 0] += np.where(y, 3.0, -3.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    objective = Logistic(X, y, l2=0.05, fit_intercept=False)
    constants = Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.05, gap=math.log(2))
    start, moved = objective.loss(np.zeros(10)), {}
    for epsilon in (0.5, 2.0):
        plan = calibrate.kl_spider(
            constants,
            n=350,
            dimension=10,
            epsilon=epsilon,
            delta=1e-5,
            l2=0.05,
            beta=1e-4,
            neighboring_relation="replace-one",
        )
        assert plan.parameters["vacuous"] is True
        assert plan.parameters["accuracy"] == plan.parameters["gap"]
        assert epsilon * (1 - 1e-4) < plan.price() <= epsilon
        losses = []
        for seed in range(30):
            result = kl_spider(objective, plan, seed=seed)
            assert result.complete
            assert result.epsilon(1e-5) == plan.price(1e-5)
            losses.append(objective.loss(result.w))
        assert max(losses) <= start
        moved[epsilon] = np.mean(np.array(losses) < start)
    assert moved[2.0] > 0.9


def test_spider_keeps_the_promise_of_its_theory():
    # rho is huge, so that the constants of the theorem bite at few records.
    objective = power(3.0, n=4_000, d=2)
    plan = plan_for(calibrate.kl_spider, objective, epsilon=4_000.0, preset="theory")
    assert plan.parameters["vacuous"] is False
    result = kl_spider(objective, plan, seed=0, initial=start(objective))
    assert objective.loss(result.w) <= plan.parameters["accuracy"] < plan.parameters["gap"]


def test_without_noise_every_round_reaches_its_level():
    for p in (2.0, 4.0):
        objective = power(p)
        plan = plan_for(calibrate.kl_spider, objective)
        options = {"seed": 0, "initial": start(objective), "noiseless": True}
        result, _ = record(kl_spider, objective, plan, **options)
        assert objective.loss(result.w) <= schedule(plan)[-1].level


def test_adaptive_steps_descend_as_the_theory_says():
    # F(w_t) - F(w_{t+1}) >= (||grad F||^2 - s^2) / (8 L1) in all steps, but for 5 % of the runs.
    objective = power(4.0, n=20_000, d=50)
    constants = objective.constants
    plan = plan_for(calibrate.adaptive_gd, objective, preset="theory", epsilon=50.0)
    norms = plan.query("norm").count
    s = stats.norm.isf(0.05 / (2 * norms)) * plan.query("norm").noise_multiplier
    s *= constants.lipschitz / objective.n
    broken = 0
    for seed in range(5):
        w = [start(objective)]
        adaptive_gd(
            objective,
            plan,
            seed=seed,
            initial=w[0],
            callback=lambda progress, seen=w: seen.append(progress.w),
            callback_every=1,
        )
        falls = -np.diff([objective.loss(x) for x in w])
        least = [
            (np.linalg.norm(objective.gradient(x)) ** 2 - s**2) / (8 * constants.smoothness)
            for x in w[:-1]
        ]
        assert len(w) > 5
        broken += bool((falls < np.array(least) - 1e-15).any())
    assert broken == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "p", "sizes", "lowest", "highest"),
    [
        (kl_spider, 2.0, (4_000, 16_000, 64_000), 1.7, 2.4),
        (kl_spider, 3.0, (4_000, 16_000, 64_000), 1.3, 1.9),
        (kl_spider, 6.0, (4_000, 16_000, 64_000), 0.95, 1.6),
        (proximal_point, 1.5, (500, 2_000), 1.8, 3.4),
    ],
)
def test_excess_risk_falls_as_fast_as_the_theorem_says(optimizer, p, sizes, lowest, highest):
    # The rate is kappa, with logarithms that make it look steeper at these sizes.
    log_excess = []
    for n in sizes:
        objective = power(p, n=n, d=4)
        plan = plan_for(getattr(calibrate, optimizer.__name__), objective)
        seeds = range(3 if optimizer is proximal_point else 5)
        w = start(objective)
        found = [objective.loss(optimizer(objective, plan, seed=s, initial=w).w) for s in seeds]
        log_excess.append(np.log(found).mean())
    slope = -np.polyfit(np.log(sizes), log_excess, 1)[0]
    assert lowest < slope < highest


def test_where_the_theory_promises_nothing_it_says_so_and_touches_nothing():
    def gradients(w, rows):
        raise AssertionError("a record was touched")

    objective = FromGradients(gradients, n=N, dimension=4)
    constants = Constants(lipschitz=1.0, smoothness=1.0, gap=0.5)
    w = np.array([0.1, 0.2, 0.3, 0.4])
    for optimizer, options in ((kl_spider, {"gamma": 1.0}), (proximal_point, {"gamma": 1.0})):
        with pytest.warns(VacuousSchedule, match="informative from about n="):
            plan = plan_for(
                getattr(calibrate, optimizer.__name__),
                objective,
                constants=constants,
                preset="theory",
                **options,
            )
        assert plan.parameters["vacuous"] is True
        result = optimizer(objective, plan, seed=0, initial=w)
        assert (result.w == w).all()
        assert result.ledger.entries == ()
        assert "promises nothing" in result.message
    with pytest.warns(VacuousSchedule):
        plan = plan_for(
            calibrate.adaptive_gd, objective, constants=constants, preset="theory", gamma=1.0
        )
    assert plan.parameters["vacuous"] is True


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
    nu, c, z = (
        plan.parameters["tolerance"],
        plan.parameters["contraction"],
        plan.queries[0].budget,
    )
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
    w, spent, steps = start(objective), 0.0, 0
    for k, (G, M, h, drift, V) in enumerate(rounds):
        needs = [(V_j / G_j) ** 2 for G_j, _, _, _, V_j in rounds[k:]]
        budget = (1 - spent) * needs[0] / sum(needs)  # what earlier rounds left is shared out
        g = gradient(w) + z * math.sqrt(V / budget) * L0 / n * noise.standard_normal(d)
        spent += budget / V
        t = 0
        while t < M and np.linalg.norm(g) >= (1 - nu) * G:
            before, w, t = w, w - h * g / np.linalg.norm(g), t + 1
            if t < M:
                s = z * math.sqrt(V / (budget * drift)) * L1 * h / n
                g = g + gradient(w) - gradient(before) + s * noise.standard_normal(d)
                spent += budget * drift / V
        steps += t
    result = kl_spider(objective, plan, seed=4, initial=start(objective))
    np.testing.assert_allclose(result.w, w, rtol=1e-6, atol=1e-9)
    assert result.message == f"ended all {len(rounds)} rounds after {steps} steps"
    assert float(result.ledger.share(z)) == pytest.approx(spent, rel=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_gradient_that_the_budget_does_not_pay_for_is_not_taken(compiled):
    # One feature that is always 1 and a target far away: clipped gradients are all the same.
    n, d = 50, 100
    objective = FromGradients(lambda w, rows: np.full((len(rows), d), -0.1), n=n, dimension=d)
    if compiled:
        objective = Cauchy(np.full((n, d), 0.1), np.full(n, 1e3), width=1e3, fit_intercept=False)
    constants = Constants(lipschitz=1.0, smoothness=1.0)
    plan = plan_for(calibrate.adaptive_gd, objective, constants=constants, steps=8)
    result = adaptive_gd(objective, plan, seed=1, output="smallest-norm")
    assert "the next gradient costs more than is left" in result.message
    budget = plan.query("norm").budget
    left = 1 - result.ledger.share(budget)
    # The gradient refused would have cost about (budget C q / (n N))^2 with N about 1.
    assert 0 <= left < 2 * (budget * 10 / n) ** 2
    assert result.ledger.count("norm") == result.ledger.count("gradient") + 1
    assert result.epsilon(TARGET["delta"]) == plan.price()


# -- the inner solver


def test_the_inner_solver_is_the_textbook_s():
    rng = np.random.default_rng(3)
    noise, A, center, weight = (
        rng.standard_normal((40, 3)),
        np.diag([1.0, 2.0, 0.1]),
        np.ones(3),
        0.3,
    )
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


@pytest.mark.slow
def test_the_inner_error_stays_below_its_bound():
    # The bound of every stage at once holds with probability 0.95: here 100 single stages.
    weight, S = 0.05, 300
    objective = Logistic(X, Y, fit_intercept=False)
    problem = Problem.of(
        Constants(lipschitz=1.0, smoothness=0.25), n=N, dimension=4, gamma=1.0, **TARGET
    )
    tau = _inner_error(problem, 1, S) / weight
    plan = plan_for(
        calibrate.proximal_point,
        objective,
        gamma=1.0,
        constants=Constants(lipschitz=1.0, smoothness=0.25, gap=1e-3),
        inner_steps=S,
    )
    assert plan.parameters["stages"] == 1
    pulled = Logistic(X, Y, l2=2 * weight, fit_intercept=False)
    best = pulled.loss(pulled.minimize())
    errors = [
        pulled.loss(
            regularized_descent(PrivateOracle(objective, plan, seed=k), np.zeros(4), weight, S)
        )
        - best
        for k in range(100)
    ]
    assert 0 < max(errors) <= tau


# -- errata


def test_a_round_starts_where_the_last_gradient_was_tested():
    objective = power(4.0)
    plan = plan_for(calibrate.kl_spider, objective)
    _, happened = record(kl_spider, objective, plan, seed=1, initial=start(objective))
    sums = [event for event in happened if isinstance(event, Sum)]
    stopped_by_test = 0
    for before, after in itertools.pairwise(sums):
        if before.kind == "gradient difference" and after.kind == "gradient":
            tested, at = before.at[0], after.at[0]
            stopped_by_test += (tested == at).all()
            # The last step of a full round is not tested; any other round ends where it was.
            lengths = [each.length for each in schedule(plan)]
            moved = np.linalg.norm(at - tested)
            assert moved == 0 or np.isclose(moved, lengths, rtol=1e-9).any()
    assert stopped_by_test >= 3


def test_a_round_releases_one_difference_less_than_it_makes_steps():
    objective = power(6.0)
    plan = plan_for(calibrate.kl_spider, objective)
    _, happened = record(kl_spider, objective, plan, seed=1, initial=start(objective))
    asked = "".join(e.query.name[0] for e in happened if isinstance(e, Entry))
    rounds = [len(part) for part in asked.split("g")[1:]]
    assert len(rounds) == plan.parameters["rounds"]
    assert all(m <= each.steps - 1 for m, each in zip(rounds, schedule(plan), strict=True))


@pytest.mark.slow
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
    plan = calibrate.adaptive_gd(
        objective.constants, public=True, n=n, dimension=1, preset="theory", **HALF
    )
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
    for seed in range(10):
        try:
            literal(seed)
        except BudgetExceeded:
            refused += 1
    assert refused >= 5
    honest = [adaptive_gd(objective, plan, seed=seed) for seed in range(10)]
    assert all(run.ledger.share(query.budget) <= 1 for run in honest)


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
    for n in (10**6, 10**8):
        plan = calibrate.proximal_point(
            constants,
            n=n,
            dimension=4,
            epsilon=1.0,
            delta=1e-6,
            gamma=gamma,
            kappa=3.0,
            weak_convexity=Ltil,
            preset="theory",
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


# -- attacks


def tilted_line(x):
    """f(w; x) = -x w with x in {-1, 1}: one record moves the gradient as far as any can."""
    x = np.asarray(x, dtype=float)[:, np.newaxis]
    return FromGradients(lambda w, rows: -x[rows], n=len(x), dimension=1)


def epsilon_shown(optimizer, plan, runs, delta):
    """A lower bound on epsilon from the outputs on two neighbors, wrong with a chance of 2e-6.

    Half of the runs choose a threshold, the other half test it (Clopper and Pearson 1934).
    """
    spent = [
        np.array([statistic(optimizer, tilted_line(x), plan, seed) for seed in range(runs)])
        for x in ([1, -1], [1, 1])
    ]
    half = runs // 2
    (choose_0, test_0), (choose_1, test_1) = ((s[:half], s[half:]) for s in spent)

    def shown(level, low, high):
        hits, alarms = int((high > level).sum()), int((low > level).sum())
        least = stats.beta.ppf(1e-6, hits, half - hits + 1) if hits else 0.0
        most = stats.beta.ppf(1 - 1e-6, alarms + 1, half - alarms) if alarms < half else 1.0
        return math.log((least - delta) / most) if least > delta else -math.inf

    levels = np.quantile(np.concatenate([choose_0, choose_1]), np.linspace(0.02, 0.98, 49))
    best = max(levels, key=lambda level: shown(level, choose_0, choose_1))
    return shown(best, test_0, test_1)


def statistic(optimizer, objective, plan, seed):
    """What the whole released path says, or at least where it ends."""
    path = []
    result = optimizer(
        objective, plan, seed=seed, callback=lambda p: path.append(p.w[0]), callback_every=1
    )
    return (sum(path) if path else 0.0) + 1e-9 * result.w[0]


ATTACKED = {
    "kl_spider": {"gamma": 1.0, "kappa": 2.0},
    "proximal_point": {"gamma": 1.0, "kappa": 2.0, "inner_steps": 3},
    "adaptive_gd": {"steps": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKED)
def test_attacks_show_no_more_than_claimed_and_catch_a_broken_variant(name):
    optimizer, build = {
        "kl_spider": (kl_spider, calibrate.kl_spider),
        "proximal_point": (proximal_point, calibrate.proximal_point),
        "adaptive_gd": (adaptive_gd, calibrate.adaptive_gd),
    }[name]
    constants = Constants(lipschitz=1.0, smoothness=1.0, gap=0.5)
    given = {"n": 2, "dimension": 1, "delta": 1e-3, "neighboring_relation": "replace-one"}

    def shown(epsilon):
        plan = build(constants, epsilon=epsilon, **given, **ATTACKED[name])
        return epsilon_shown(optimizer, plan, 700, 1e-3)

    assert shown(2.0) <= 2.0
    # A tenth of the noise that a claim of 2 needs, or less.
    assert shown(80.0) > 2.0


# -- problems


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 6.0])
def test_constants_of_powers_of_a_norm(p):
    objective = power(p, n=40, d=3)
    gamma, kappa = objective.kl
    constants = objective.constants
    directions = np.random.default_rng(0).standard_normal((200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points = directions * np.linspace(0.01, 3.0, 200)[:, np.newaxis]
    everyone = np.arange(40)
    for w in points:
        norms = [np.linalg.norm(objective.clipped_sum(w, [i], math.inf)) for i in everyone[:5]]
        assert max(norms) <= constants.lipschitz
        if np.linalg.norm(w) <= 1:
            gradient = np.linalg.norm(objective.gradient(w))
            assert objective.loss(w) == pytest.approx((gamma * gradient) ** kappa, rel=1e-9)
    if p >= 2:
        changes = [objective.slope(w) - objective.slope(v) for w, v in itertools.pairwise(points)]
        far = np.linalg.norm(np.diff(points, axis=0), axis=1)
        assert (np.linalg.norm(changes, axis=1) <= constants.smoothness * far).all()


def test_constants_of_ripples():
    objective = Ripples(balanced(40, 1, seed=0), radius=3.0)
    gamma, kappa = objective.kl
    w = np.linspace(1e-3, 12.0, 200_001)
    loss, slope = w**2 + 3 * np.sin(w) ** 2, 2 * w + 3 * np.sin(2 * w)
    worst = (loss / slope**2).max()
    assert gamma**kappa * (1 - 1e-4) < worst <= gamma**kappa
    assert np.abs(np.diff(slope) / np.diff(w)).max() <= objective.constants.smoothness
    inside = np.abs(slope[w <= 3.0]).max() + 1.0
    assert inside <= objective.constants.lipschitz
    assert loss[w <= 3.0].max() <= objective.constants.gap


def test_tilted_sums_clip_per_record():
    objective = power(3.0, n=40, d=3)
    w, rows = np.array([0.5, -0.4, 0.2]), np.array([3, 3, 17])
    each = [objective.clipped_sum(w, np.array([i]), math.inf) for i in rows]
    cut = [g * min(1.0, 0.7 / np.linalg.norm(g)) for g in each]
    np.testing.assert_allclose(objective.clipped_sum(w, rows, 0.7), np.sum(cut, axis=0), rtol=1e-9)
    with pytest.raises(ValueError, match="n must be even"):
        balanced(3, 2)


# -- arguments


def test_all_shares_of_a_plan_are_its_budget():
    for plan in (big_plan(1.0), plan_for(calibrate.kl_spider, power(4.0))):
        spent = [each.shares[0] + (each.steps - 1) * each.shares[1] for each in schedule(plan)]
        assert math.fsum(spent) == pytest.approx(1.0, rel=1e-12)


def test_fused_loops_are_refused_where_they_cannot_run():
    plan = plan_for(calibrate.adaptive_gd, power(2.0, n=20), steps=3)
    given = {"steps": 2, "norm_multiplier": 50.0, "unit": 1.0, "learning_rate": 0.1}
    with pytest.raises(TypeError, match="about an objective with a kernel"):
        AdaptiveLoops(PrivateOracle(power(2.0, n=20), plan, seed=0))
    squared = Squared(np.ones((20, 5)), np.zeros(20), fit_intercept=False)
    oracle = PrivateOracle(squared, plan, seed=0)
    with pytest.raises(ValueError, match="must be adaptive with one budget"):
        AdaptiveLoops(oracle).adapt(np.zeros(5), "norm", "norm", **given)
    assert oracle.ledger.entries == ()
    query = dataclasses.replace(plan.query("gradient"), budget=None)
    with pytest.raises(ValueError, match="query must be adaptive"):
        Ledger(20).record_chosen(query, [50.0])


def test_plans_that_lack_a_number_are_refused():
    plan = plan_for(calibrate.adaptive_gd, LOGISTIC)
    rest = {k: v for k, v in plan.parameters.items() if k != "shrink"}
    with pytest.raises(ValueError, match=r"plan.parameters\['shrink'\] must be a number"):
        adaptive_gd(LOGISTIC, dataclasses.replace(plan, parameters=rest))


@pytest.mark.parametrize(
    ("build", "options", "sentence"),
    [
        (calibrate.kl_spider, {"kappa": 3.0, "gamma": 1.0}, r"kappa must be in \[1, 2\]"),
        (calibrate.kl_spider, {}, "gamma must be given"),
        (calibrate.kl_spider, {"gamma": 0.1}, "gamma must be at least"),
        (calibrate.kl_spider, {"gamma": 1.0, "preset": "best"}, "preset must be one of"),
        (calibrate.proximal_point, {"kappa": 1.0, "gamma": 1.0}, "kappa must be at least 2"),
        (
            calibrate.proximal_point,
            {"gamma": 1.0, "inner_steps": 3, "preset": "theory"},
            "inner_steps is for preset 'practical'",
        ),
        (calibrate.adaptive_gd, {"kappa": 2.5}, r"kappa must be in \[1, 2\]"),
        (
            calibrate.adaptive_gd,
            {"steps": 5, "preset": "theory"},
            "steps is for preset 'practical'",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(build, options, sentence):
    constants = Constants(lipschitz=1.0, smoothness=1.0, gap=0.5)
    with pytest.raises(ValueError, match=sentence):
        build(constants, n=1_000, dimension=3, **TARGET, **options)


def test_missing_constants_are_named():
    unknown = Constants(lipschitz=math.inf, smoothness=math.inf)
    given = {"n": 1_000, "dimension": 3, "gamma": 1.0, **TARGET}
    with pytest.raises(ValueError, match=r"constants\.lipschitz must be a finite number"):
        calibrate.kl_spider(unknown, **given)
    rough = dataclasses.replace(unknown, lipschitz=1.0)
    for build in (calibrate.kl_spider, calibrate.adaptive_gd):
        with pytest.raises(ValueError, match=r"constants\.smoothness must be a finite number"):
            build(rough, **given)
    assert calibrate.proximal_point(rough, **given).parameters["gap"] == 1.0


def test_the_printed_number_of_norms():
    # n sqrt(rho) / 2 when a record is replaced, 2 n sqrt(rho) when one is added.
    constants = Constants(lipschitz=1.0, smoothness=1.0)
    given = {"n": 10_000, "dimension": 3, "gamma": 1.0, "epsilon": 1.0, "delta": 1e-5}
    for relation, factor in (("replace-one", 0.5), ("add-or-remove-one", 2.0)):
        problem = Problem.of(constants, neighboring_relation=relation, **given)
        assert _norms(problem) == math.floor(factor * 10_000 * math.sqrt(problem.rho))
