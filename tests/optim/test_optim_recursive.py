"""Recursive regularization: rounds, selectors, one pass and its sensitivity, rate."""

import math

import numpy as np
import pytest
from _built_plans import Interpreted, noise_again, plan_of, query, records, theory_of

from dpcal import calibrate, optim
from dpcal._ext.sums import grid_step
from dpcal.calibrate import Constants
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.objectives.linear import Linear

N = 400
X, Y = records(N)
TARGETS = X @ [1.0, -2.0, 0.5, 0.0]
ONES = Constants(lipschitz=1.0, smoothness=1.0)
HUBER = optim.Huber(X, TARGETS, fit_intercept=False)


def plan_for(**options):
    given = {"epsilon": 10.0, "delta": 1e-5, "distance": 3.0, "dimension": 4, "n": N, **options}
    return calibrate.recursive_regularization(ONES, **given)


def theorem_for(*, n):
    given = {"epsilon": 10.0, "delta": 1e-5, "W": 3.0, "dimension": 4, "n": n}
    return theory_of("recursive_regularization", ONES, **given)


def test_blocks_fit_the_records():
    for subsolver in ("noisy_gd", "phased_sgd"):
        for n in (200, 5_000, 10**6):
            plan = plan_for(n=n, subsolver=subsolver, epsilon=1.0)
            parts = [
                each.batch_size * (each.count // each.answers_per_part) for each in plan.queries
            ]
            assert sum(parts) <= n
            assert 1 - 1e-4 < plan.price() <= 1.0


# -- the algorithm


def test_rounds_are_the_paper_s_pseudocode():
    plan = plan_for(n=N, epsilon=30.0)
    lam, T = plan.parameters["regularization"], plan.parameters["rounds"]
    assert T == math.floor(math.log2(1 / lam)) >= 2
    oracle = optim.PrivateOracle(HUBER, plan, seed=3)
    centers, center = [np.zeros(4)], np.zeros(4)
    for t in range(1, T + 1):
        one = plan.query(f"round {t}")
        eta, radius = plan.parameters[f"learning_rate {t}"], plan.parameters[f"radius {t}"]
        mu = (2**t - 1) * lam
        w, iterates = center, []
        for _ in range(one.count):
            gradient = oracle.gradient(w, one.name)
            gradient = gradient + sum(2**k * lam * (w - c) for k, c in enumerate(centers))
            w = w - eta * gradient
            w = w * min(1.0, radius / np.linalg.norm(w))
            iterates.append(w)
        weights = (1 - eta * mu) ** -np.arange(1.0, one.count + 1)
        center = weights @ np.array(iterates) / weights.sum()
        centers.append(center)
    found = optim.recursive_regularization(HUBER, plan, seed=3)
    np.testing.assert_allclose(found.w, center, rtol=1e-9)


@pytest.mark.parametrize(("limit", "build"), [(0.5, plan_for), (1.0, theorem_for)])
def test_steps_are_short_enough_for_the_lemma(limit, build):
    plan = build(n=300)
    lam = plan.parameters["regularization"]
    assert 0 < lam <= 0.5
    for t, one in enumerate(plan.queries, start=1):
        mu = (2**t - 1) * lam
        assert plan.parameters[f"learning_rate {t}"] * (1 + mu) <= limit * (1 + 1e-12)
        assert one.answers_per_part == one.count


def test_phased_steps_are_contractions_without_help():
    plan = plan_for(n=10**6, subsolver="phased_sgd")
    lam = plan.parameters["regularization"]
    for t in range(1, plan.parameters["rounds"] + 1):
        first = plan.parameters[f"learning_rate {t}"] / 4
        assert first * (1 + (2**t - 1) * lam) <= 2
        assert plan.query(f"round {t} phase 1").max_norm == pytest.approx(first)


@pytest.mark.slow
def test_gradients_of_population_risk_fall_with_n():
    # Theory: at least as n^-1/2; a slope above -0.4 over a factor 16 would take an error of 2/3 at
    # one end.
    found = []
    for n in (1_000, 16_000):
        norms = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            rows = rng.standard_normal((n, 5))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            targets = rows @ np.ones(5) + 0.3 * rng.standard_normal(n)
            objective = optim.Huber(rows, targets, fit_intercept=False)
            plan = plan_for(n=n, dimension=5, epsilon=4.0, delta=1e-6, subsolver="phased_sgd")
            w = optim.recursive_regularization(objective, plan, seed=seed).w
            norms.append(np.linalg.norm(objective.gradient(w)))
        found.append(np.mean(norms))
    assert math.log(found[1] / found[0]) / math.log(16) < -0.4


# -- one pass


def one_pass_plan(n, *, batch_size, learning_rate, noise_multiplier=1e-9, count=1):
    given = {"batch_size": batch_size, "noise_multiplier": noise_multiplier, "count": count}
    given |= {"sampler": "fixed-size", "composition": "disjoint"}
    # Gradients are clipped to 1.
    asked = query("one pass", name="pass", max_norm=learning_rate, **given)
    return plan_of(asked, n=n, neighboring_relation="replace-one")


def passed(objective, plan, learning_rate, seed=0, **options):
    oracle = optim.PrivateOracle(objective, plan, seed=seed)
    start = np.full(objective.dimension, 0.5)
    return oracle.one_pass(start, "pass", learning_rate=learning_rate, **options)


@pytest.mark.parametrize("radius", [math.inf, 0.8])
def test_one_pass_is_the_textbook_loop(radius):
    objective = optim.Logistic(3 * X, Y, l2=0.2, classes_from_data=True)
    plan = one_pass_plan(N, batch_size=150, learning_rate=0.3, noise_multiplier=1.5)
    options = {"strength": 0.4, "center": np.arange(5.0), "radius": radius}
    found = passed(objective, plan, 0.3, **options)
    streams = Streams(0, plan, objective.digest)
    noise, parting = streams.noise, streams.parting
    rows, w, kept = parting.permutation(N)[:150], np.full(5, 0.5), []
    for row in rows:
        kept.append(w)
        gradient = objective.clipped_sum(w, np.array([row]), 1.0)
        gradient = gradient + 0.2 * np.append(w[:-1], 0.0) + 0.4 * (w - np.arange(5.0))
        w = w - 0.3 * gradient
        w = w * min(1.0, radius / np.linalg.norm(w))
    expected = np.mean(kept, axis=0) + noise_again(noise, 1.5, 0.3, 5)
    # Mean and noise are rounded; gradients are shorter for it, in steps that forget an eighth.
    off = math.sqrt(5) * grid_step(0.3) * (1 + 1 / 0.12)
    np.testing.assert_allclose(found, expected, rtol=0, atol=off)


@pytest.fixture
def frozen(monkeypatch):
    """Let runs about neighbouring records have the same noise and partitions, as in a proof."""
    monkeypatch.setattr(Linear, "digest", lambda self: b"")


def spread_of_neighbours(eta):
    """How far a replaced record moves one pass, in units of the bound, over coupled runs.

    Steps that are too long would push apart: the first record pushes along the diagonal of 16
    dimensions, one way or the other; then comes one for each axis, with its minimum in the middle;
    then 300 that say nothing.
    """
    sequence = np.zeros((317, 16))
    sequence[0] = 0.25
    sequence[1:17] = np.eye(16)
    plan = one_pass_plan(317, batch_size=317, learning_rate=eta, noise_multiplier=1e-12)
    order = Streams(0, plan, bytes).parting.permutation(317)
    table, targets = np.empty_like(sequence), np.empty(317)
    table[order] = sequence
    targets[order] = np.concatenate([[1e3], np.full(16, 0.5), np.zeros(300)])
    ends = []
    for push in (1e3, -1e3):
        targets[order[0]] = push
        ends.append(passed(optim.Squared(table, targets, fit_intercept=False), plan, eta))
    return np.linalg.norm(ends[0] - ends[1]) / (2 * eta)


@pytest.mark.usefixtures("frozen")
def test_without_the_step_condition_the_bound_is_broken(monkeypatch):
    assert spread_of_neighbours(1.9) <= 1.0
    assert spread_of_neighbours(3.7) <= 1.0
    monkeypatch.setattr(
        "dpcal.optim.boundary.sealed.smoothness_of", lambda kernel, rows: np.zeros(len(rows))
    )
    assert spread_of_neighbours(1.9) <= 1.0
    assert spread_of_neighbours(3.7) > 2.0


def test_clipped_steps_that_do_not_contract_are_refused():
    plan = one_pass_plan(N, batch_size=10, learning_rate=0.5)
    loose = optim.FromGradients(lambda w, rows: X[rows], n=N, dimension=4)
    labels = np.digitize(X[:, 0], [-0.3, 0.3])
    for objective in (
        loose,
        optim.Sigmoid(X, Y, classes_from_data=True),
        optim.Cauchy(X, TARGETS),
        optim.Softmax(X, labels, classes_from_data=True),
        Interpreted(optim.Sigmoid(X, Y, classes_from_data=True)),
    ):
        oracle = optim.PrivateOracle(objective, plan, seed=0)
        with pytest.raises(UnsupportedEvent, match="one pass has a cost for convex losses"):
            oracle.one_pass(np.zeros(objective.dimension), "pass", learning_rate=0.5)
        assert not oracle.ledger.entries
    with pytest.raises(UnsupportedEvent, match="with a regulariser of smoothness 4"):
        passed(HUBER, plan, 0.5, strength=4.0)


def test_a_pass_takes_records_once():
    plan = one_pass_plan(N, batch_size=300, learning_rate=0.5, count=2)
    oracle = optim.PrivateOracle(HUBER, plan, seed=0)
    oracle.one_pass(np.zeros(4), "pass", learning_rate=0.5)
    with pytest.raises(BudgetExceeded, match="has 100 left"):
        oracle.one_pass(np.zeros(4), "pass", learning_rate=0.5)
