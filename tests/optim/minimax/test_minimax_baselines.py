"""DP-SGDA, PrivateDiff, Sto-SPIDER and Ada-DP-SPIDER: what they are, and what they cannot do."""

import numpy as np
import pytest
from _minimax import noiseless, toy
from _recording import check_promises

from benchmarks.problems.sensing import MatrixSensing
from dpcal import calibrate, optim
from dpcal.optim.minimax import ToySaddle

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

LOOSE = {"lipschitz": 50.0, "smoothness": 50.0}
TARGET = {"epsilon": 2.0, "delta": 1e-6}


def test_multipliers_of_the_experiment():
    plan = calibrate.sto_spider(
        calibrate.Constants(**LOOSE),
        n=400,
        dimension=120,
        steps=400,
        period=10,
        refresh_size=200,
        batch_size=50,
        neighboring_relation="add-or-remove-one",
        **TARGET,
    )
    assert [query.count for query in plan.queries] == [40, 360]
    assert plan.queries[0].noise_multiplier == pytest.approx(8.934, rel=5e-3)
    sgda = calibrate.dp_sgda(
        calibrate.Constants(**LOOSE, strong_concavity=1.0),
        n=400,
        dimensions=(120, 5),
        steps=400,
        batch_size=50,
        neighboring_relation="add-or-remove-one",
        **TARGET,
    )
    assert sgda.query("gradient").noise_multiplier == pytest.approx(5.702, rel=5e-3)


def minimax_plan(build, problem, **options):
    given = {"max_norm": 50.0, "batch_size": problem.n, "value_smoothness": 5.0, **TARGET}
    return build(
        problem.constants, n=problem.n, dimensions=problem.dimensions, **{**given, **options}
    )


def test_sgda_stays_at_the_saddle_where_it_starts():
    problem = toy(2_000)
    plan = minimax_plan(calibrate.dp_sgda, problem, steps=400, learning_rate=0.02, ascent_rate=0.02)
    with noiseless():
        result = optim.dp_sgda(problem, plan, seed=0)
        assert np.abs(result.w).max() <= 1e-6
        moved = optim.dp_sgda(problem, plan, seed=0, initial=[0.3, 0.3])
    assert np.linalg.norm(problem.phi_gradient(moved.x)) < 0.2
    assert result.status == "finished"


def test_privatediff_converges_off_the_stable_manifold():
    problem = toy(1_000)
    plan = minimax_plan(
        calibrate.privatediff,
        problem,
        steps=150,
        period=10,
        inner_steps=3,
        learning_rate=0.2,
        ascent_rate=0.3,
    )
    assert [query.count for query in plan.queries] == [450, 15, 135]
    with noiseless():
        result = optim.privatediff(problem, plan, seed=0, initial=[0.3, 0.2])
    assert np.linalg.norm(problem.phi_gradient(result.x)) <= 1e-3
    assert abs(result.x[1]) == pytest.approx(1.0, abs=1e-3)
    result.verify()


def quadratic(n=400, d=3):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n, d))
    objective = optim.FromGradients(lambda w, rows: w - centres[rows], n=n, dimension=d)
    return objective, centres.mean(axis=0)


@pytest.mark.parametrize("name", ["sto_spider", "ada_dp_spider"])
def test_spiders_minimise_a_quadratic(name):
    objective, best = quadratic()
    plan = getattr(calibrate, name)(
        calibrate.Constants(**LOOSE),
        n=400,
        dimension=3,
        steps=200,
        refresh_size=400,
        batch_size=400,
        learning_rate=0.3,
        **TARGET,
    )
    with noiseless():
        result = getattr(optim, name)(objective, plan, seed=0)
    assert np.abs(result.x - best).max() < 1e-8
    assert result.ledger.count("refresh") <= plan.query("refresh").count
    assert result.epsilon(1e-6) <= 2.0


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("name", ["sto_spider", "ada_dp_spider"])
def test_noise_leads_no_spider_away_at_its_defaults(name, epsilon):
    """At 1 / (2 L) they ended at excess risks of 1.6 to 10^6, and called the runs complete."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((450, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    objective = optim.Logistic(X, X[:, 0] > 0, fit_intercept=False, classes=[0, 1])
    plan = getattr(calibrate, name)(
        calibrate.Constants(lipschitz=1.0, smoothness=0.25),
        n=450,
        dimension=30,
        epsilon=epsilon,
        delta=1e-5,
    )
    ends = [optim.run(objective, plan, seed=seed).w for seed in range(4)]
    assert np.mean([objective.loss(w) for w in ends]) < 1.05 * objective.loss(np.zeros(30))


def test_a_refresh_is_due_when_the_iterate_has_drifted():
    objective, _ = quadratic()
    plan = calibrate.ada_dp_spider(
        calibrate.Constants(**LOOSE),
        n=400,
        dimension=3,
        steps=60,
        most_refreshes=4,
        drift=0.05,
        learning_rate=0.2,
        **TARGET,
    )
    result = optim.ada_dp_spider(objective, plan, seed=3)
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
    assert result.epsilon(1e-6).upper == plan.price().upper


def test_sto_spider_solves_the_sensing_instance_without_noise():
    problem = MatrixSensing.generated(n=400, shape=(20, 20), rank=3, seed=0)
    plan = calibrate.sto_spider(
        calibrate.Constants(**LOOSE),
        n=400,
        dimension=120,
        steps=400,
        period=10,
        refresh_size=200,
        batch_size=50,
        learning_rate=1.0,
        **TARGET,
    )
    start = 0.1 * np.random.default_rng(0).standard_normal(120)
    with noiseless():
        result = optim.sto_spider(problem.value, plan, seed=0, initial=start)
    assert problem.value.loss(result.x) <= 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("name", ["dp_sgda", "privatediff", "sto_spider", "ada_dp_spider"])
def test_runs_keep_what_their_plans_promise(name, relation):
    more = {"steps": 8, "max_norm": 0.5, "neighboring_relation": relation, **TARGET}
    # To price a few batches of a fixed size takes seconds, to price all records none.
    size = 100 if relation == "replace-one" else 20
    if name in ("dp_sgda", "privatediff"):
        problem = toy(100)
        plan = getattr(calibrate, name)(
            ToySaddle.constants, n=100, dimensions=(2, 2), batch_size=size, **more
        )
    else:
        problem, _ = quadratic(100)
        plan = getattr(calibrate, name)(
            calibrate.Constants(**LOOSE), n=100, dimension=3, batch_size=size, **more
        )
    check_promises(getattr(optim, name), problem, plan, seed=0)
