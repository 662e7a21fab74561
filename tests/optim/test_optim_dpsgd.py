"""DP-SGD end to end: reproducible, within its plan, honest about how it ended, and it learns."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from dpcal import accountants
from dpcal.accountants import events
from dpcal.calibrate import Plan, Query
from dpcal.errors import LedgerMismatch
from dpcal.optim import Ledger, Logistic, PrivateOracle, Squared, dpsgd, replaying
from dpcal.optim.first_order.dpsgd import default_steps, regret_rate

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return Logistic(StandardScaler().fit_transform(X), y, l2=1e-3, classes_from_data=True), y


def plan_for(n, *, steps=120, batch_size=60, noise_multiplier=1.0, max_norm=1.0, **parameters):
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="poisson",
        sampling_probability=batch_size / n,
        max_norm=max_norm,
        noise_multiplier=noise_multiplier,
        count=steps,
    )
    return Plan(
        optimizer="dpsgd", n=n, queries=(query,), epsilon=1.0, delta=1e-5, parameters=parameters
    )


def test_equal_seeds_give_equal_bits_and_others_do_not(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n)
    a, b, c = (dpsgd(objective, plan, seed=seed) for seed in (1, 1, 2))
    assert a.w.tobytes() == b.w.tobytes()
    assert a.ledger == b.ledger
    assert (a.w != c.w).any()


@pytest.mark.parametrize("output", ["last", "uniform", "tail"])
@pytest.mark.parametrize("every", [1, 7, 60, 119, 120, 1_000])
def test_callbacks_do_not_change_iterates(cancer, output, every):
    objective, _ = cancer
    plan = plan_for(objective.n)
    whole = dpsgd(objective, plan, seed=3, output=output)
    seen = []
    chunked = dpsgd(
        objective,
        plan,
        seed=3,
        output=output,
        callback=lambda progress: seen.append(progress.step),
        callback_every=every,
    )
    assert chunked.w.tobytes() == whole.w.tobytes()
    assert seen == [*range(every, 120, every), 120]


@pytest.mark.parametrize(("output", "first"), [("uniform", 0), ("tail", 60)])
def test_averages_are_means_of_iterates(cancer, output, first):
    objective, _ = cancer
    iterates = []
    result = dpsgd(
        objective,
        plan_for(objective.n),
        seed=4,
        output=output,
        callback=lambda progress: iterates.append(progress.w),
        callback_every=1,
    )
    np.testing.assert_allclose(result.w, np.mean(iterates[first:], axis=0), rtol=1e-10)


def test_iterates_stay_in_the_ball_and_the_trace_tells_their_norms(cancer):
    objective, _ = cancer
    norms = []
    result = dpsgd(
        objective,
        plan_for(objective.n),
        seed=5,
        radius=0.3,
        callback=lambda progress: norms.append(np.linalg.norm(progress.w)),
    )
    assert max(norms) <= 0.3 * (1 + 1e-12)
    assert result.trace.norm.tolist() == pytest.approx(norms)
    assert result.trace.step[-1] == 120


def test_complete_run_spends_the_plan(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n)
    result = dpsgd(objective, plan, seed=0)
    assert result.complete
    assert result.ledger.event == plan.event
    assert Ledger.from_json(result.ledger.to_json()) == result.ledger
    result.verify()


@pytest.mark.parametrize(("output", "every"), [("last", 10), ("uniform", 10), ("tail", 10)])
def test_run_stopped_by_its_callback_costs_the_whole_plan_and_says_so(cancer, output, every):
    objective, _ = cancer
    plan = plan_for(objective.n)
    result = dpsgd(
        objective,
        plan,
        seed=0,
        output=output,
        callback=lambda progress: progress.step >= 30,
        callback_every=every,
    )
    assert not result.complete
    assert result.ledger.count("gradient") == 30
    assert result.message == "stopped by the callback after 30 of 120 planned steps"
    assert np.isfinite(result.w).all()
    assert result.w.any()
    # That it stopped is one of its outputs: the ledger alone would understate what it cost.
    assert result.early
    assert result.epsilon(1e-5) == plan.price(1e-5) > result.ledger.epsilon(1e-5)


def test_callback_that_stops_a_finished_run_changes_nothing(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n)
    result = dpsgd(objective, plan, seed=0, callback=lambda progress: progress.step == 120)
    assert result.complete
    assert result.message == "took all 120 planned steps"


def test_ledger_that_disagrees_with_the_plan_is_refused(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n)
    result = dpsgd(objective, plan, seed=0)
    query = plan.query("gradient")

    def with_ledger(n, *answers):
        ledger = Ledger(n)
        for entry, count in answers:
            ledger.record(entry, count)
        return dataclasses.replace(result, ledger=ledger)

    n = objective.n
    other = dataclasses.replace(query, noise_multiplier=0.5)
    for wrong in (
        with_ledger(n, (query, 119)),
        with_ledger(n, (query, 121)),
        with_ledger(n, (query, 119), (other, 1)),
        with_ledger(n, (query, 120), (dataclasses.replace(query, name="spare"), 1)),
        with_ledger(n + 1, (query, 120)),
    ):
        with pytest.raises(LedgerMismatch):
            wrong.verify()
        with pytest.raises(LedgerMismatch):
            wrong.epsilon(1e-5)


def test_overflowing_run_stops_at_finite_iterates_with_a_true_ledger():
    X, y = np.ones((10, 1)), np.arange(10.0)
    objective = Squared(X, y, l2=1.0, fit_intercept=False)
    with pytest.warns(RuntimeWarning, match="the learning rate is too large"):
        result = dpsgd(
            objective, plan_for(10, batch_size=5), seed=0, learning_rate=1e10, callback_every=10
        )
    assert not result.complete
    assert np.isfinite(result.w).all()
    assert result.message.startswith("stopped after 20 of 120 planned steps")
    assert result.ledger.count("gradient") == 20
    assert result.early
    assert result.epsilon(1e-5) == result.plan.price(1e-5)


def test_learning_rate_comes_from_the_argument_then_the_plan_then_the_default(cancer, tmp_path):
    objective, _ = cancer
    # Runs of different plans share no noise: there is next to none here, and no sampling.
    given = {"batch_size": objective.n, "noise_multiplier": 1e-13}
    bare = plan_for(objective.n, **given)
    planned = plan_for(objective.n, learning_rate=0.05, **given)
    default, reach = default_steps(objective, query=bare.query("gradient"), n=objective.n)

    def same(a, b):
        return np.allclose(a.w, b.w, rtol=1e-9, atol=1e-12)

    assert same(
        dpsgd(objective, planned, seed=1), dpsgd(objective, bare, seed=1, learning_rate=0.05)
    )
    w, squares, rates = np.zeros(objective.dimension), 0.0, []
    with replaying():
        oracle = PrivateOracle(objective, bare, seed=1)
        for _ in range(120):
            g = oracle.gradient(w, "gradient")
            squares += g @ g
            rates.append(min(default, reach / squares**0.5))
            w = w - rates[-1] * g
    # Rows are far longer than the clip, and steps of the default would be too long.
    assert default > 2 * max(rates)
    by_default = dpsgd(objective, bare, seed=1)
    assert same(by_default, dpsgd(objective, bare, seed=1, learning_rate=rates, output="linear"))
    # The steps of a compiled loop are those of a loop in Python.
    with replaying():
        stored = dpsgd(objective, bare, seed=1, store=tmp_path / "run", store_every=120)
    assert same(by_default, stored)
    argument = dpsgd(objective, planned, seed=1, learning_rate=np.full(120, 0.2))
    assert same(argument, dpsgd(objective, bare, seed=1, learning_rate=0.2))


def test_regret_rate_minimises_the_regret_bound():
    plan = plan_for(1_000, steps=400, batch_size=50, noise_multiplier=3.0, max_norm=0.7)
    query = plan.query("gradient")
    best = regret_rate(dimension=20, query=query, n=1_000, radius=2.0)
    square = query.max_norm**2 * (1 + 20 * (3.0 / 50) ** 2)

    def bound(eta):
        return 2.0**2 / (2 * eta * 400) + eta * square / 2

    assert bound(best) < min(bound(0.99 * best), bound(1.01 * best))


def test_little_noise_reaches_the_non_private_optimum(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n, steps=4_000, batch_size=100, noise_multiplier=1e-3, max_norm=20.0)
    result = dpsgd(objective, plan, seed=0, learning_rate=0.2, output="tail")
    optimum = objective.loss(objective.minimize())
    assert optimum <= objective.loss(result.w) <= 1.03 * optimum


def test_moderate_noise_classifies_real_records(cancer):
    objective, y = cancer
    X, _ = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    plan = plan_for(objective.n, steps=600, noise_multiplier=2.0)
    for seed in range(3):
        w = dpsgd(objective, plan, seed=seed).w
        assert (objective.predict(X, w) == y).mean() > 0.96


def test_start_is_where_it_is_told(cancer):
    objective, _ = cancer
    start = np.full(objective.dimension, 5.0)
    plan = plan_for(objective.n, steps=1)
    result = dpsgd(objective, plan, seed=0, initial=start, learning_rate=1e-12)
    np.testing.assert_allclose(result.w, start, atol=1e-9)
    assert (start == 5.0).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0 or 120 of them"),
        ({"learning_rate": [0.1, 0.2]}, "learning_rate must be a number > 0 or 120 of them"),
        ({"learning_rate": np.nan}, "learning_rate must be finite"),
        ({"initial": np.zeros(3)}, r"initial must have shape \(31,\), got \(3,\)"),
        ({"initial": np.full(31, np.inf)}, "initial must be finite"),
        ({"output": "median"}, "output must be one of 'last', 'uniform', 'tail'"),
        ({"radius": 0.0}, "radius must be a number > 0 or infinite, got 0.0"),
        ({"radius": np.nan}, "radius must be a number > 0 or infinite, got nan"),
        ({"callback_every": 0}, "callback_every must be a whole number >= 1, got 0"),
        ({"callback_every": 1.5}, "callback_every must be a whole number >= 1, got 1.5"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(cancer, options, sentence):
    objective, _ = cancer
    with pytest.raises(ValueError, match=sentence):
        dpsgd(objective, plan_for(objective.n), seed=0, **options)


def test_plans_that_do_not_fit_are_refused(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n)
    query = plan.query("gradient")
    for wrong, sentence in (
        (dataclasses.replace(plan, optimizer="spiderboost"), "plan must be for optimizer 'dpsgd'"),
        (dataclasses.replace(plan, n=570), "n=569 records, got one for n=570"),
        (
            dataclasses.replace(plan, queries=(query, dataclasses.replace(query, name="b"))),
            r"plan must have queries of kinds \['gradient'\]",
        ),
        (plan_for(objective.n, learning_rate=-1.0), "learning_rate must be a number > 0"),
        (dataclasses.replace(plan, parameters={"steps": 7}), r"parameters\['steps'\] must agree"),
    ):
        with pytest.raises(ValueError, match=sentence):
            dpsgd(objective, wrong, seed=0)


def test_epsilon_is_recomputed_from_the_ledger(cancer):
    objective, _ = cancer
    plan = plan_for(objective.n)
    whole = dpsgd(objective, plan, seed=0)
    half = dpsgd(
        objective, plan, seed=0, callback=lambda progress: progress.step == 60, callback_every=60
    )
    event = events.dpsgd(sampling_probability=60 / objective.n, noise_multiplier=1.0, steps=60)
    assert whole.epsilon(1e-5) == plan.price(1e-5)
    assert half.ledger.epsilon(1e-5) == accountants.epsilon(event, delta=1e-5)
    assert half.ledger.epsilon(1e-5) < half.epsilon(1e-5) == whole.epsilon(1e-5)
    assert whole.ledger.epsilon(1e-5, accountant="renyi") > whole.epsilon(1e-5)
