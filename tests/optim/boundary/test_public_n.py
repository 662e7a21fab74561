"""A number of records that was given in public: the records' own may differ from it."""

import dataclasses

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.calibrate import Plan, Query

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

QUERY = Query(
    name="gradient",
    kind="gradient",
    sampler="full",
    max_norm=10.0,
    noise_multiplier=1e-9,
    count=3,
)
PLAN = Plan(optimizer="noisy_gd", n=100, queries=(QUERY,), epsilon=1.0, delta=1e-6, public_n=True)


def objective(n):
    X = np.random.default_rng(0).standard_normal((n, 2))
    return optim.Squared(X, np.ones(n), fit_intercept=False)


@pytest.mark.parametrize("n", [60, 140])
def test_answers_are_about_every_record_and_divided_by_the_public_number(n):
    records = objective(n)
    answer = optim.PrivateOracle(records, PLAN, seed=0).gradient(np.zeros(2), "gradient")
    total = records.clipped_sum(np.zeros(2), np.arange(n), 10.0)
    assert answer == pytest.approx(total / 100, abs=1e-8)


@pytest.mark.parametrize("n", [1500, 2500])
def test_samples_are_of_the_records_that_there_are(n):
    query = dataclasses.replace(QUERY, sampler="poisson", sampling_probability=0.5, count=1000)
    plan = dataclasses.replace(PLAN, n=2000, queries=(query,))
    records = optim.Squared(np.ones((n, 1)), np.ones(n), fit_intercept=False)
    oracle = optim.PrivateOracle(records, plan, seed=0)
    sizes = [-1000 * oracle.gradient(np.zeros(1), "gradient")[0] for _ in range(100)]
    # Each record adds -1: the mean of 100 sizes has a standard deviation of sqrt(n) / 20.
    assert np.mean(sizes) == pytest.approx(n / 2, abs=5 * np.sqrt(n) / 20)


def test_fused_and_plain_loops_agree():
    plan = calibrate.dpsgd(n=100, batch_size=20, steps=30, epsilon=1.0, delta=1e-6)
    plan = dataclasses.replace(plan, public_n=True)
    records = objective(130)
    fused = optim.dpsgd(records, plan, seed=3)
    plain = optim.dpsgd(records, plan, seed=3, callback_every=1, callback=lambda _: None)
    assert fused.w == pytest.approx(plain.w, rel=1e-12)
    assert fused.epsilon(1e-6) <= 1.0


def test_a_plan_is_read_as_it_was_written():
    assert Plan.from_json(PLAN.to_json()) == PLAN
    assert "public_n" not in dataclasses.replace(PLAN, public_n=False).to_json()


@pytest.mark.parametrize(
    "changes",
    [
        {"neighboring_relation": "replace-special"},
        {"queries": (dataclasses.replace(QUERY, sampler="fixed-size", batch_size=5),)},
        {
            "queries": (
                dataclasses.replace(QUERY, sampler="full", composition="disjoint", batch_size=None),
            )
        },
    ],
)
def test_what_no_public_number_is_for(changes):
    with pytest.raises(ValueError, match="public_n is for"):
        dataclasses.replace(PLAN, **changes)


def test_without_it_the_numbers_must_agree():
    plan = dataclasses.replace(PLAN, public_n=False)
    with pytest.raises(ValueError, match="n=60 records, got one for n=100"):
        optim.PrivateOracle(objective(60), plan, seed=0)
