"""Optimizers by predicted error: the law against explicit runs, plans that run, a command."""

import math

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.accountants import events
from dpcal.accountants.matrix import Banded
from dpcal.calibrate import targets
from dpcal.calibrate.recommending.error_law import averaged, transposed_inverse

SIZES = {"n": 4_000, "dimension": 8, "epsilon": 1.0, "delta": 1e-6, "typical_norm": 1.0}


def test_the_law_is_that_of_an_explicit_run_on_a_quadratic():
    """The mean of iterates is linear in start and noises: each is put in by itself."""
    curved, eta, steps = np.array([0.05, 0.7]), 1.3, 12
    weights = 2 * np.arange(1, steps + 1) / (steps * (steps + 1))

    def mean(start, noises):
        w, found = start, np.zeros(2)
        for t in range(steps):
            w = w - eta * (curved * w + noises[t])
            found = found + weights[t] * w
        return found

    bias, squared = averaged(curved, eta, steps, None)
    np.testing.assert_allclose(mean(np.ones(2), np.zeros((steps, 2))), bias, rtol=1e-12)
    units = np.eye(steps)
    moved = np.array([mean(np.zeros(2), np.repeat(unit[:, None], 2, axis=1)) for unit in units])
    np.testing.assert_allclose((moved**2).sum(axis=0), squared, rtol=1e-12)
    strategy = Banded(steps, 3)
    mixed = np.linalg.inv(strategy.matrix())  # noises of the run, from independent ones
    np.testing.assert_allclose(
        ((moved.T @ mixed) ** 2).sum(axis=1), averaged(curved, eta, steps, strategy)[1], rtol=1e-10
    )
    np.testing.assert_allclose(transposed_inverse(strategy, moved.T), moved.T @ mixed, rtol=1e-9)


@pytest.mark.slow
def test_plans_meet_their_target_and_errors_are_about_as_predicted():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4_000, 8)) / math.sqrt(8)
    scores = X @ rng.standard_normal(8)
    y = rng.random(4_000) < 1 / (1 + np.exp(-1.5 * scores / scores.std()))
    objective = optim.Logistic(X, y, fit_intercept=False, classes=[False, True])
    table = calibrate.recommend("logistic", **SIZES, row_norm=2.0)
    assert [row.error for row in table.rows] == sorted(row.error for row in table.rows)
    assert {"dpsgd", "noisy_gd", "correlated_dpsgd"} == {row.optimizer for row in table.rows}
    least = objective.loss(objective.minimize())
    for row in table.rows:
        assert row.plan.price() <= 1.0
        ends = [optim.run(objective, row.plan, seed=seed, **row.options) for seed in range(4)]
        excess = np.mean([objective.loss(end.w) - least for end in ends])
        assert row.low / 2 < excess < 2 * row.high
    for bound in table.bounds:
        assert bound.plan.price() <= 1.0
        assert bound.basis == "theorem"


@pytest.mark.study
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_errors_fall_in_records_and_epsilon_and_rise_in_dimensions(loss):
    def error(**changes):
        return calibrate.recommend(loss, **{**SIZES, **changes}, passes=20).rows[0].error

    middle = error()
    assert error(n=16_000) < middle < error(n=1_000)
    assert error(epsilon=4.0) < middle < error(epsilon=0.5)
    assert error(dimension=2) < middle < error(dimension=32)


def test_the_lower_bound_and_the_costs_are_what_they_say():
    table = calibrate.recommend("logistic", **SIZES, passes=5, l2=0.01)
    assert table.lower_bound == pytest.approx(math.sqrt(8 * math.log(1e6)) / 4_000)
    assert table.statistical == pytest.approx(0.001)
    row = next(row for row in table.rows if row.optimizer == "dpsgd")
    query = row.plan.query("gradient")
    assert row.evaluations == pytest.approx(query.count * query.sampling_probability * 4_000)
    assert row.passes == pytest.approx(5.0, rel=0.01)
    told = str(table).partition("To be known")[2]
    assert all(each.needs in " ".join(told.split()) for each in (*table.rows, *table.bounds))


@pytest.mark.parametrize("epsilon", [1e3, 1e5])
def test_a_large_epsilon_takes_few_prices(monkeypatch, epsilon):
    """Prices with so little noise are slow; the rank of the first row hangs on none of them."""
    asked = []
    price = targets.epsilon_of

    def counted(event, **options):
        asked.append(event)
        return price(event, **options)

    monkeypatch.setattr(targets, "epsilon_of", counted)
    sizes = {"n": 2_000, "dimension": 100, "delta": 1e-5}
    table = calibrate.recommend("logistic", epsilon=epsilon, **sizes)
    # Steps of DP-SGD; those of SpiderBoost have more noise, and quick prices.
    assert sum(isinstance(each, events.SelfComposedDpEvent) for each in asked) <= 12
    assert {"noisy_gd", "dpsgd"} <= {row.optimizer for row in table.rows}
    # Without noise, more passes are never worse.
    row = next(row for row in table.rows if row.optimizer == "dpsgd")
    assert row.passes == pytest.approx(60, rel=0.02)
