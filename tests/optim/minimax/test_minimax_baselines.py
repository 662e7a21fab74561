"""DP-SGDA, PrivateDiff, Sto-SPIDER and Ada-DP-SPIDER: what they are, and what they cannot do."""

import numpy as np
import pytest
from _built_plans import rounding
from _minimax import noiseless, toy

from dpcal import calibrate, optim

LOOSE = calibrate.Constants(lipschitz=50.0, smoothness=50.0)
TARGET = {"epsilon": 2.0, "delta": 1e-6}
QUADRATIC = {"n": 400, "dimension": 3, **TARGET}


def test_multipliers_of_the_experiment():
    given = {"n": 400, "steps": 400, "batch_size": 50, **TARGET}
    given["neighboring_relation"] = "add-or-remove-one"
    plan = calibrate.sto_spider(LOOSE, dimension=120, period=10, refresh_size=200, **given)
    assert [query.count for query in plan.queries] == [40, 360]
    assert plan.queries[0].noise_multiplier == pytest.approx(8.934, rel=5e-3)
    concave = calibrate.Constants(lipschitz=50.0, smoothness=50.0, strong_concavity=1.0)
    sgda = calibrate.dp_sgda(concave, dimensions=(120, 5), **given)
    assert sgda.query("gradient").noise_multiplier == pytest.approx(5.702, rel=5e-3)


def minimax_plan(build, problem, **options):
    given = {"max_norm": 50.0, "batch_size": problem.n, "value_smoothness": 5.0, **TARGET}
    return build(
        problem.constants, n=problem.n, dimensions=problem.dimensions, **{**given, **options}
    )


def test_sgda_stays_at_the_saddle_where_it_starts():
    problem = toy(2_000)
    rates = {"max_norm": 2.5, "learning_rate": 0.02, "ascent_rate": 0.02}
    short, plan = (
        minimax_plan(calibrate.dp_sgda, problem, steps=steps, **rates) for steps in (50, 400)
    )
    with noiseless():
        result = optim.dp_sgda(problem, short, seed=0)
        moved = optim.dp_sgda(problem, plan, seed=0, initial=[0.3, 0.3])
    # What rounding adds grows on its way from the saddle.
    step = np.eye(4) + 0.02 * np.diag([-1, -1, 1, 1]) @ problem.hessian(np.zeros(4))
    grown = sum(np.linalg.norm(np.linalg.matrix_power(step, k), 2) for k in range(50))
    assert np.abs(result.w).max() < 0.02 * grown * rounding(2.5, 4, 2_000, clipped=False) < 2e-5
    assert np.linalg.norm(problem.phi_gradient(moved.x)) < 0.2
    assert result.status == "finished"


def test_privatediff_converges_off_the_stable_manifold():
    problem = toy(1_000)
    rates = {"learning_rate": 0.2, "ascent_rate": 0.3}
    sizes = {"steps": 150, "period": 10, "inner_steps": 3}
    plan = minimax_plan(calibrate.privatediff, problem, **sizes, **rates)
    assert [query.count for query in plan.queries] == [450, 15, 135]
    with noiseless():
        result = optim.privatediff(problem, plan, seed=0, initial=[0.3, 0.2])
    assert np.linalg.norm(problem.phi_gradient(result.x)) <= 1e-3
    assert abs(result.x[1]) == pytest.approx(1.0, abs=1e-3)
    result.verify()


@pytest.fixture(scope="module")
def quadratic():
    centres = np.random.default_rng(0).standard_normal((400, 3))
    objective = optim.FromGradients(lambda w, rows: w - centres[rows], n=400, dimension=3)
    return objective, centres.mean(axis=0)


@pytest.mark.parametrize("name", ["sto_spider", "ada_dp_spider"])
def test_spiders_minimise_a_quadratic(name, quadratic):
    objective, best = quadratic
    sizes = {"steps": 200, "refresh_size": 400, "batch_size": 400, "learning_rate": 0.3}
    constants = calibrate.Constants(lipschitz=5.0, smoothness=50.0)
    plan = getattr(calibrate, name)(constants, **sizes, **QUADRATIC)
    with noiseless():
        result = getattr(optim, name)(objective, plan, seed=0)
    # A gradient and nine differences are rounded; steps forget earlier ones.
    assert np.abs(result.x - best).max() < 10 * rounding(5.0, 3, 400, clipped=False)
    assert result.ledger.count("refresh") <= plan.query("refresh").count


@pytest.mark.parametrize("name", ["sto_spider", "ada_dp_spider"])
def test_noise_leads_no_spider_away_at_its_defaults(name):
    """At 1 / (2 L) they ended at excess risks of 1.6 to 10^6, and called the runs complete."""
    X = np.random.default_rng(0).standard_normal((450, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    objective = optim.Logistic(X, X[:, 0] > 0, fit_intercept=False, classes=[0, 1])
    known = calibrate.Constants(lipschitz=1.0, smoothness=0.25)
    for epsilon in (0.5, 4.0):
        plan = getattr(calibrate, name)(known, n=450, dimension=30, epsilon=epsilon, delta=1e-5)
        ends = [optim.run(objective, plan, seed=seed).w for seed in range(2)]
        assert np.mean([objective.loss(w) for w in ends]) < 1.05 * objective.loss(np.zeros(30))


def test_a_refresh_is_due_when_the_iterate_has_drifted(quadratic):
    sizes = {"steps": 60, "most_refreshes": 4, "drift": 0.05, "learning_rate": 0.2}
    plan = calibrate.ada_dp_spider(LOOSE, **sizes, **QUADRATIC)
    result = optim.ada_dp_spider(quadratic[0], plan, seed=3)
    steps = [entry.name for entry in result.ledger.entries for _ in range(entry.count)]
    drift, left = np.inf, 4
    for name, norm in zip(steps, result.estimate_norms, strict=True):
        due = drift >= 0.05 and left > 0
        assert (name == "refresh") == due
        drift, left = (0.0, left - 1) if due else (drift, left)
        drift += (0.2 * norm) ** 2
    assert len(steps) == 60
    # Whether a refresh was asked is an output: the whole plan is paid.
    assert result.early
