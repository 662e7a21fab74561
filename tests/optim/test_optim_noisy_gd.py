"""Noisy gradient descent: calibration in closed form, the textbook loop, promises, its rate."""

import dataclasses
import math

import numpy as np
import pytest
from _recording import check_promises, record

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.calibrate import Constants, Plan, Query
from dpcal.optim import (
    Cauchy,
    FromGradients,
    Logistic,
    PrivateOracle,
    Sigmoid,
    Softmax,
    dpsgd,
    noisy_gd,
)
from dpcal.optim.boundary.batches import Batches
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.registry import OPTIMIZERS, find

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

RNG = np.random.default_rng(0)
N = 300
X = RNG.standard_normal((N, 4))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = RNG.random(N) < 1 / (1 + np.exp(-5 * X[:, 0]))
CLASSES = np.digitize(X[:, 0], [-0.3, 0.3])
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, gap=math.log(2))
OBJECTIVE = Logistic(X, Y, fit_intercept=False, classes_from_data=True)


def plan_for(objective=OBJECTIVE, **options):
    given = {"epsilon": 2.0, "delta": 1e-5, **options}
    return calibrate.noisy_gd(CONSTANTS, n=N, dimension=objective.dimension, **given)


# -- promises


@pytest.mark.parametrize(
    "objective",
    [
        OBJECTIVE,
        Sigmoid(X, Y, l2=0.1, classes_from_data=True),
        Cauchy(X, X[:, 0]),
        Softmax(X, CLASSES, classes_from_data=True),
    ],
    ids=lambda objective: type(objective).__name__,
)
@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one", "replace-special"])
def test_noisy_gd_does_what_its_plan_promises(objective, relation):
    plan = plan_for(objective, steps=23, neighboring_relation=relation)
    result = check_promises(noisy_gd, objective, plan, seed=1)
    assert result.complete
    assert result.ledger.event == plan.event


def test_dpsgd_does_what_its_plan_promises():
    plan = calibrate.dpsgd(n=N, batch_size=30, steps=40, epsilon=2.0, delta=1e-5)
    assert check_promises(dpsgd, OBJECTIVE, plan, seed=2).complete


def fixed_size_plan():
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="fixed-size",
        batch_size=30,
        max_norm=0.5,
        noise_multiplier=3.0,
        count=40,
    )
    return Plan(
        optimizer="dpsgd",
        n=N,
        queries=(query,),
        epsilon=9.0,
        delta=1e-5,
        neighboring_relation="replace-one",
    )


def test_fixed_size_batches_are_fresh_and_of_their_size():
    result = check_promises(dpsgd, OBJECTIVE, fixed_size_plan(), seed=2)
    _, tape = record(dpsgd, OBJECTIVE, fixed_size_plan(), seed=2)
    batches = [tuple(sorted(answer.rows)) for answer in tape.answers]
    assert result.complete
    assert len(set(batches)) == 40


@pytest.mark.parametrize(
    ("cheat", "sentence"),
    [
        ({"noise_multiplier": 0.9}, "noise_multiplier=8.6"),
        ({"max_norm": 1.1}, "max_norm=1.1,"),
        ({"count": 24}, "24 times"),
    ],
)
def test_the_recorder_catches_optimizers_that_break_their_plan(cheat, sentence):
    def cheater(objective, plan, *, seed):
        (query,) = plan.queries
        scaled = {k: v if k == "count" else v * getattr(query, k) for k, v in cheat.items()}
        other = dataclasses.replace(plan, queries=(dataclasses.replace(query, **scaled),))
        return dataclasses.replace(noisy_gd(objective, other, seed=seed), plan=plan)

    with pytest.raises(AssertionError, match=sentence):
        check_promises(cheater, OBJECTIVE, plan_for(steps=23), seed=0)


def test_the_recorder_catches_an_oracle_that_breaks_its_promise(monkeypatch):
    honest = PrivateOracle._noisy_mean
    monkeypatch.setattr(
        PrivateOracle, "_noisy_mean", lambda self, total, q, b: honest(self, total, q, b / 2)
    )
    with pytest.raises(AssertionError, match="the noise was in units of"):
        check_promises(noisy_gd, OBJECTIVE, plan_for(steps=3), seed=0)
    monkeypatch.undo()
    monkeypatch.setattr(
        Batches, "sample", lambda *_: np.repeat(np.arange(N // 2, dtype=np.intp), 2)
    )
    with pytest.raises(AssertionError, match="a record is sampled twice"):
        check_promises(noisy_gd, OBJECTIVE, plan_for(steps=3), seed=0)


# -- calibration


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one", "replace-special"])
@pytest.mark.parametrize("steps", [1, 17, 1000])
def test_noise_is_that_of_one_gaussian_release(relation, steps):
    plan = plan_for(steps=steps, neighboring_relation=relation)
    assert 2.0 * (1 - 1e-5) < plan.price() <= 2.0
    z = plan.query("gradient").noise_multiplier / math.sqrt(steps)
    single = accountants.epsilon(
        events.GaussianDpEvent(z), delta=1e-5, neighboring_relation=relation
    )
    assert single == pytest.approx(2.0, rel=1e-5)


def test_steps_minimise_the_bound():
    best = plan_for()
    assert best.parameters["learning_rate"] == 4.0
    others = [plan_for(steps=best.parameters["steps"] + k) for k in (-8, 8)]
    accuracy = [plan.parameters["accuracy"] for plan in (best, *others)]
    assert accuracy[0] == min(accuracy)


def test_the_published_size_of_the_bound():
    # L0 = L1 = F0 = 1, d = 20, epsilon = 1, delta = 1e-6: sqrt(2 / T + d s^2) at its best T.
    ones = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    target = {"dimension": 20, "epsilon": 1.0, "delta": 1e-6}
    found = {}
    for n in (1_000, 10_000, 100_000):
        plan = calibrate.noisy_gd(ones, n=n, **target)
        found[n] = plan.parameters["accuracy"]
    slope = math.log(found[100_000] / found[1_000]) / math.log(100)
    assert slope == pytest.approx(-0.5, abs=0.01)
    assert found[10_000] == pytest.approx(0.0731, abs=2e-4)


@pytest.mark.parametrize(
    ("constants", "options", "sentence"),
    [
        ({"lipschitz": math.inf}, {}, "max_norm must be given where constants.lipschitz is no"),
        ({"smoothness": math.inf}, {}, "learning_rate must be given where constants.smoothness"),
        ({"gap": None}, {}, "steps must be given where constants.gap is no number > 0"),
        ({}, {"steps": 0}, "steps must be a whole number >= 1"),
        ({}, {"max_norm": 0.0}, "max_norm must be a finite number > 0"),
        ({}, {"dimension": 0}, "dimension must be a whole number >= 1"),
    ],
)
def test_what_is_missing_is_named(constants, options, sentence):
    given = {"n": N, "dimension": 4, "epsilon": 1.0, "delta": 1e-5, **options}
    with pytest.raises(ValueError, match=sentence):
        calibrate.noisy_gd(dataclasses.replace(CONSTANTS, **constants), **given)


def test_a_bound_is_promised_only_where_it_is_proved():
    assert "accuracy" in plan_for().parameters
    assert "accuracy" not in plan_for(max_norm=0.5).parameters
    assert "accuracy" not in plan_for(learning_rate=4.1).parameters


# -- the run


def test_steps_are_the_textbook_algorithm():
    plan = plan_for(steps=20)
    objective = Logistic(X, Y, l2=0.1, classes_from_data=True)
    query, eta = plan.query("gradient"), plan.parameters["learning_rate"]
    plan = plan_for(Logistic(X, Y, classes_from_data=True), steps=20)
    noise = Streams(3, plan, objective.digest).noise
    eta /= 1 + 0.1 * eta  # the regulariser adds its l2 to the smoothness
    w = np.zeros(5)
    for _ in range(20):
        total = objective.clipped_sum(w, np.arange(N), query.max_norm)
        total += noise.normal(0.0, query.noise_multiplier * query.max_norm, 5)
        w = w - eta * (total / N + 0.1 * np.append(w[:-1], 0.0))
        w *= min(1.0, 2.0 / np.linalg.norm(w))
    found = noisy_gd(objective, plan, seed=3, radius=2.0)
    np.testing.assert_allclose(found.w, w, rtol=1e-10)
    assert found.trace.step.tolist() == list(range(1, 21))
    assert found.trace.norm[-1] == pytest.approx(np.linalg.norm(w))


def test_equal_seeds_give_equal_bits_and_callbacks_change_nothing():
    plan, seen = plan_for(steps=12), []
    first = noisy_gd(OBJECTIVE, plan, seed=1)
    second = noisy_gd(
        OBJECTIVE, plan, seed=1, callback=lambda p: seen.append(p.step), callback_every=5
    )
    assert first.w.tobytes() == second.w.tobytes()
    assert seen == [5, 10, 12]
    assert (noisy_gd(OBJECTIVE, plan, seed=2).w != first.w).any()


@pytest.mark.slow
def test_a_random_iterate_is_uniform_and_one_of_them():
    # 300 draws out of 3 iterates: each 100 +- 50 is beyond 6 standard deviations.
    plan = plan_for(steps=3)
    drawn = []
    for seed in range(300):
        iterates = iterates_of(plan, seed)
        w = noisy_gd(OBJECTIVE, plan, seed=seed, output="random").w
        drawn += [k for k in range(3) if (iterates[k] == w).all()]
    assert len(drawn) == 300
    assert np.abs(np.bincount(drawn, minlength=3) - 100).max() < 50


def test_a_run_stopped_by_its_callback_costs_the_whole_plan():
    plan = plan_for(steps=30)
    result = noisy_gd(OBJECTIVE, plan, seed=0, callback=lambda p: p.step >= 10, callback_every=5)
    assert result.ledger.count("gradient") == 10
    assert not result.complete
    assert result.message == "stopped by the callback after 10 of 30 planned steps"
    assert result.epsilon(1e-5) == plan.price(1e-5)


def test_overflow_stops_the_run_at_a_finite_iterate():
    quadratic = FromGradients(lambda w, rows: np.zeros((len(rows), 4)), n=N, dimension=4)
    plan = plan_for(steps=500, learning_rate=1e154)
    with pytest.warns(RuntimeWarning, match="the learning rate is too large"):
        result = noisy_gd(quadratic, plan, seed=0)
    assert not result.complete
    assert np.isfinite(result.w).all()
    assert result.ledger.count("gradient") < 500
    result.verify()


@pytest.mark.parametrize("optimizer", [noisy_gd, dpsgd])
def test_a_record_whose_gradient_is_not_a_number_away_from_the_start_is_not_noticed(optimizer):
    def gradients(w, rows):
        table = np.full((len(rows), 4), 0.1)
        table[rows == 5] = np.nan if w.any() else 0.1
        return table

    broken = FromGradients(gradients, n=N, dimension=4)
    plan = (
        plan_for(steps=30)
        if optimizer is noisy_gd
        else calibrate.dpsgd(n=N, batch_size=300, steps=30, epsilon=9.0, delta=1e-5)
    )
    options = {} if optimizer is noisy_gd else {"callback_every": 1}
    result = optimizer(broken, plan, seed=0, **options)
    assert result.complete
    assert not result.early
    assert result.message == "took all 30 planned steps"
    result.verify()


def iterates_of(plan, seed):
    iterates = [np.zeros(4)]
    noisy_gd(OBJECTIVE, plan, seed=seed, callback=lambda p: iterates.append(p.w), callback_every=1)
    return iterates


@pytest.mark.slow
def test_the_bound_holds_on_average():
    # Mean over iterates of the true squared gradient norm against the promised bound.
    plan = plan_for(epsilon=8.0)
    squares = [
        np.mean([np.sum(OBJECTIVE.gradient(w) ** 2) for w in iterates_of(plan, seed)[:-1]])
        for seed in range(5)
    ]
    assert math.sqrt(np.mean(squares)) <= plan.parameters["accuracy"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be a finite number > 0"),
        ({"output": "best"}, "output must be one of 'last', 'random'"),
        ({"radius": 0.0}, "radius must be a number > 0"),
        ({"initial": np.zeros(3)}, r"initial must have shape \(4,\)"),
        ({"callback_every": 0}, "callback_every must be a whole number >= 1"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        noisy_gd(OBJECTIVE, plan_for(steps=3), seed=0, **options)


def test_plans_that_do_not_fit_are_refused():
    plan = plan_for(steps=3)
    with pytest.raises(ValueError, match="plan must be for optimizer 'noisy_gd'"):
        noisy_gd(OBJECTIVE, dataclasses.replace(plan, optimizer="dpsgd"))
    (query,) = plan.queries
    other = dataclasses.replace(query, kind="scalar")
    with pytest.raises(ValueError, match="plan must have queries of kinds"):
        noisy_gd(OBJECTIVE, dataclasses.replace(plan, queries=(other,)))


# -- the table


def test_every_row_of_the_table_has_a_builder_and_an_optimizer():
    for name, row in OPTIMIZERS.items():
        assert row.name == name
        assert row.build() is getattr(calibrate, name)
        assert callable(row.optimizer())
    with pytest.raises(ValueError, match="optimizer must be one of 'dpsgd', 'noisy_gd'"):
        find("adam")
