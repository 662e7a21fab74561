"""DP-SGD: its averages and learning rates, its price from the ledger, and it learns."""

import dataclasses

import numpy as np
import pytest
from _built_plans import plan_of, query
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from dpcal.errors import LedgerMismatch
from dpcal.optim import Ledger, Logistic, PrivateOracle, Squared, dpsgd, replaying
from dpcal.optim.first_order.dpsgd import default_steps, regret_rate

X, Y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
OBJECTIVE = Logistic(X, Y, l2=1e-3, classes=[0, 1])
N = OBJECTIVE.n


def plan_for(n=N, *, steps=120, batch_size=60, parameters=None, **fields):
    asked = query(sampler="poisson", sampling_probability=batch_size / n, count=steps, **fields)
    return plan_of(asked, n=n, optimizer="dpsgd", epsilon=1.0, parameters=parameters or {})


@pytest.mark.parametrize(("output", "first"), [("uniform", 0), ("tail", 60)])
def test_averages_are_means_of_iterates(output, first):
    iterates = []
    follow = {"callback": lambda progress: iterates.append(progress.w), "callback_every": 1}
    result = dpsgd(OBJECTIVE, plan_for(), seed=4, output=output, **follow)
    np.testing.assert_allclose(result.w, np.mean(iterates[first:], axis=0), rtol=1e-10)


def test_ledger_that_disagrees_with_the_plan_is_refused():
    plan = plan_for()
    (one,) = plan.queries
    result = dpsgd(OBJECTIVE, plan, seed=0)
    other = dataclasses.replace(one, noise_multiplier=0.5)
    spare = dataclasses.replace(one, name="spare")
    for n, *answers in (
        (N, (one, 119)),
        (N, (one, 121)),
        (N, (one, 119), (other, 1)),
        (N, (one, 120), (spare, 1)),
        (N + 1, (one, 120)),
    ):
        ledger = Ledger(n, entries=[entry.with_count(count) for entry, count in answers])
        wrong = dataclasses.replace(result, ledger=ledger)
        for ask in (wrong.verify, lambda wrong=wrong: wrong.epsilon(1e-5)):
            with pytest.raises(LedgerMismatch):
                ask()


def test_overflowing_run_stops_at_finite_iterates_with_a_true_ledger():
    objective = Squared(np.ones((10, 1)), np.arange(10.0), l2=1.0, fit_intercept=False)
    with pytest.warns(RuntimeWarning, match="the learning rate is too large"):
        result = dpsgd(
            objective, plan_for(10, batch_size=5), seed=0, learning_rate=1e10, callback_every=10
        )
    assert not result.complete
    assert np.isfinite(result.w).all()
    assert result.message.startswith("stopped after 15 of 120 planned steps")
    assert result.ledger.count("gradient") == 20  # up to the next row of the trace
    assert result.early
    assert result.epsilon(1e-5) == result.plan.price(1e-5)


def test_learning_rate_comes_from_the_argument_then_the_plan_then_the_default(tmp_path):
    # Runs of different plans share no noise: there is next to none here, and no sampling.
    given = {"batch_size": N, "noise_multiplier": 1e-9}
    bare, planned = plan_for(**given), plan_for(parameters={"learning_rate": 0.05}, **given)
    default, reach = default_steps(OBJECTIVE, query=bare.query("gradient"), n=N)

    def same(plan, other, options, others):
        a, b = dpsgd(OBJECTIVE, plan, seed=1, **options), dpsgd(OBJECTIVE, other, seed=1, **others)
        return np.allclose(a.w, b.w, rtol=1e-9, atol=1e-6)

    assert same(planned, bare, {}, {"learning_rate": 0.05})
    w, squares, rates = np.zeros(OBJECTIVE.dimension), 0.0, []
    with replaying():
        oracle = PrivateOracle(OBJECTIVE, bare, seed=1)
        for _ in range(120):
            g = oracle.gradient(w, "gradient")
            squares += g @ g
            rates.append(min(default, reach / squares**0.5))
            w = w - rates[-1] * g
    # Rows are far longer than the clip, and steps of the default would be too long.
    assert default > 2 * max(rates)
    assert same(bare, bare, {}, {"learning_rate": rates, "output": "linear"})
    # The steps of a compiled loop are those of a loop in Python.
    assert same(bare, bare, {}, {"store": tmp_path / "run", "store_every": 120})
    assert same(planned, bare, {"learning_rate": np.full(120, 0.2)}, {"learning_rate": 0.2})


def test_regret_rate_minimises_the_regret_bound():
    plan = plan_for(1_000, steps=400, batch_size=50, noise_multiplier=3.0, max_norm=0.7)
    (one,) = plan.queries
    best = regret_rate(dimension=20, query=one, n=1_000, radius=2.0)
    square = one.max_norm**2 * (1 + 20 * (3.0 / 50) ** 2)

    def bound(eta):
        return 2.0**2 / (2 * eta * 400) + eta * square / 2

    assert bound(best) < min(bound(0.99 * best), bound(1.01 * best))


def test_little_noise_reaches_the_optimum_and_moderate_noise_classifies_real_records():
    plan = plan_for(steps=4_000, batch_size=100, noise_multiplier=1e-3, max_norm=20.0)
    result = dpsgd(OBJECTIVE, plan, seed=0, learning_rate=0.2, output="tail")
    optimum = OBJECTIVE.loss(OBJECTIVE.minimize())
    assert optimum <= OBJECTIVE.loss(result.w) <= 1.03 * optimum
    plan = plan_for(steps=600, noise_multiplier=2.0)
    for seed in range(3):
        w = dpsgd(OBJECTIVE, plan, seed=seed).w
        assert (OBJECTIVE.predict(X, w) == Y).mean() > 0.96
