"""A number of records that was given in public: the records' own may differ from it."""

import dataclasses

import numpy as np
import pytest
from _answers import FIXED, plan_for, query

from dpcal import calibrate, optim
from dpcal.calibrate import Plan

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

QUERY = query(max_norm=10.0, noise_multiplier=1e-9, count=1000)
PLAN = plan_for(QUERY, n=100, relation="add-or-remove-one", public_n=True)
ORIGIN = np.zeros(2)


def objective(n):
    X = np.random.default_rng(0).standard_normal((n, 2))
    return optim.Squared(X, np.ones(n), fit_intercept=False)


@pytest.mark.parametrize("n", [60, 140])
def test_answers_are_about_every_record_and_divided_by_the_public_number(n):
    records = objective(n)
    answer = optim.PrivateOracle(records, PLAN, seed=0).gradient(ORIGIN, "q")
    total = records.clipped_sum(ORIGIN, np.arange(n), 10.0)
    assert answer == pytest.approx(total / 100, abs=1e-8)
    with pytest.raises(ValueError, match=f"n={n} records, got one for n=100"):
        optim.PrivateOracle(records, dataclasses.replace(PLAN, public_n=False), seed=0)


@pytest.mark.parametrize("n", [1500, 2500])
def test_samples_are_of_the_records_that_there_are(n):
    sampled = dataclasses.replace(QUERY, sampler="poisson", sampling_probability=0.5)
    plan = dataclasses.replace(PLAN, n=2000, queries=(sampled,))
    records = optim.Squared(np.ones((n, 1)), np.ones(n), fit_intercept=False)
    oracle = optim.PrivateOracle(records, plan, seed=0)
    sizes = [-1000 * oracle.gradient(np.zeros(1), "q")[0] for _ in range(100)]
    # Each record adds -1: the mean of 100 sizes has a standard deviation of sqrt(n) / 20.
    assert np.mean(sizes) == pytest.approx(n / 2, abs=5 * np.sqrt(n) / 20)


def test_fused_and_plain_loops_agree():
    plan = calibrate.dpsgd(n=100, batch_size=20, steps=30, epsilon=1.0, delta=1e-6)
    plan = dataclasses.replace(plan, public_n=True)
    fused = optim.dpsgd(objective(130), plan, seed=3)
    plain = optim.dpsgd(objective(130), plan, seed=3, callback_every=1, callback=lambda _: None)
    assert fused.w == pytest.approx(plain.w, rel=1e-12)
    assert fused.epsilon(1e-6) <= 1.0


def test_a_plan_with_a_public_number_is_kept_and_only_made_where_it_is_public():
    assert Plan.from_json(PLAN.to_json()) == PLAN
    assert "public_n" not in dataclasses.replace(PLAN, public_n=False).to_json()
    for changes in (
        {"neighboring_relation": "replace-special"},
        {"queries": (dataclasses.replace(QUERY, **FIXED),)},
        {"queries": (dataclasses.replace(QUERY, composition="disjoint"),)},
    ):
        with pytest.raises(ValueError, match="public_n is for"):
            dataclasses.replace(PLAN, **changes)
