"""Calibration meets its target from the safe side, as tightly as it says."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.calibrate import Plan, Query
from dpcal.errors import TargetUnreachable, UnsupportedEvent
from dpcal.optim import Ledger


def dpsgd(q, sigma, steps):
    return events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    st.floats(-3, 0).map(lambda x: 10.0**x),
    st.integers(1, 10**6),
    st.floats(-1, 1.3).map(lambda x: 10.0**x),
    st.floats(-10, -5).map(lambda x: 10.0**x),
)
def test_noise_multiplier_is_the_smallest(q, steps, epsilon, delta):
    sigma = calibrate.noise_multiplier(
        lambda value: dpsgd(q, value, steps), epsilon=epsilon, delta=delta
    )
    assert accountants.epsilon(dpsgd(q, sigma, steps), delta=delta) <= epsilon
    assert accountants.epsilon(dpsgd(q, sigma * (1 - 1e-6), steps), delta=delta) > epsilon


@pytest.mark.slow
def test_noise_multiplier_known_values():
    # Reference value of the characteristic accountant's truth; Balle and Wang's analytic Gaussian.
    sigma = calibrate.noise_multiplier(lambda s: dpsgd(0.01, s, 10_000), epsilon=2.0, delta=1e-6)
    assert sigma == pytest.approx(2.3556175, rel=1e-6)
    sigma = calibrate.noise_multiplier(events.GaussianDpEvent, epsilon=1.0, delta=1e-5)
    assert sigma == pytest.approx(3.730631634816464, rel=1e-6)

    def allocated(x):
        # In halves of it, beside an answer that costs next to nothing.
        epochs = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(x / 2, 100), 10)
        return events.ComposedDpEvent([epochs, events.GaussianDpEvent(1e9)])

    # From contours in 400-bit arithmetic on two rays.
    found = calibrate.noise_multiplier(allocated, epsilon=1.7014984358, delta=1e-5)
    assert found == pytest.approx(2.0, rel=2e-6)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.floats(1e-3, 0.5), st.floats(0.7, 5.0), st.floats(0.5, 8.0))
def test_steps_is_the_largest(q, sigma, epsilon):
    def cost(count):
        return accountants.epsilon(dpsgd(q, sigma, count), delta=1e-6)

    if cost(1) > epsilon:
        with pytest.raises(TargetUnreachable, match="steps=1 misses"):
            calibrate.steps(lambda t: dpsgd(q, sigma, t), epsilon=epsilon, delta=1e-6)
        return
    count = calibrate.steps(lambda t: dpsgd(q, sigma, t), epsilon=epsilon, delta=1e-6)
    assert cost(count) <= epsilon < cost(count + 1)


def test_sampling_probability_and_batch_size_are_the_largest():
    q = calibrate.sampling_probability(lambda q: dpsgd(q, 1.0, 1000), epsilon=2.0, delta=1e-6)
    assert accountants.epsilon(dpsgd(q, 1.0, 1000), delta=1e-6) <= 2.0
    assert accountants.epsilon(dpsgd(q * (1 + 1e-6), 1.0, 1000), delta=1e-6) > 2.0
    batch = calibrate.batch_size(
        lambda b: dpsgd(b / 60_000, 1.0, 1000), n=60_000, epsilon=2.0, delta=1e-6
    )
    assert batch == math.floor(q * 60_000)


@pytest.mark.slow
def test_everything_allowed():
    def gentle(q):
        return dpsgd(q, 100.0, 1)

    target = {"epsilon": 2.0, "delta": 1e-6}
    assert calibrate.sampling_probability(gentle, **target) == 1.0
    assert calibrate.batch_size(lambda b: gentle(b / 10), n=10, **target) == 10
    assert calibrate.steps(lambda t: dpsgd(0.01, 50.0, t), at_most=7, **target) == 7


@pytest.mark.parametrize("epsilon", [4e3, 6e3, 1e5, 1e8, 1e10])
def test_hardly_any_noise_for_a_huge_epsilon_is_that_of_the_closed_form(epsilon):
    # delta = Phi(1 / (2 z) - epsilon z) up to a term that is smaller by orders of magnitude.
    delta = 1e-6
    z = calibrate.noise_multiplier(events.GaussianDpEvent, epsilon=epsilon, delta=delta)
    t = stats.norm.isf(delta)
    # epsilon z^2 - t z - 1 / 2 = 0, and the term that is left out only makes delta smaller.
    largest = (t + math.sqrt(t**2 + 2 * epsilon)) / (2 * epsilon)
    # Beyond some 10^4 the accountant's bounds are looser, and so is the answer.
    assert largest * (1 - 0.1 / math.sqrt(epsilon)) < z < largest * (1 + 1e-4)
    spent = accountants.epsilon(events.GaussianDpEvent(z), delta=delta)
    assert epsilon * (1 - 1e-4) < spent <= epsilon


@pytest.mark.slow
def test_samples_never_ask_for_more_noise_than_all_records():
    z = calibrate.noise_multiplier(lambda s: dpsgd(0.9, s, 10), epsilon=1e6, delta=1e-3)
    assert accountants.epsilon(dpsgd(0.9, z, 10), delta=1e-3) <= 1e6
    # Where no quadrature is affordable the bound is a Renyi bound.
    assert accountants.epsilon(dpsgd(1.0, z, 10), delta=1e-3) >= 1e6 * (1 - 1e-3)


def test_dpsgd_plan():
    plan = calibrate.dpsgd(n=60_000, epochs=3, batch_size=500, epsilon=1.0, delta=1e-6)
    query = plan.query("gradient")
    assert plan.parameters["steps"] == query.count == 360
    assert query.sampling_probability == 500 / 60_000
    assert plan.price() <= 1.0
    assert plan.price(accountant="renyi") > 1.0
    same = calibrate.dpsgd(n=60_000, steps=360, batch_size=500, epsilon=1.0, delta=1e-6)
    assert same == plan


POISSON = {"sampler": "poisson", "sampling_probability": 0.1}
FULL = {"sampler": "full"}
PARTS = {"sampler": "fixed-size", "batch_size": 5}


def _query(sampled=POISSON, **changes):
    asked = {"name": "gradient", "kind": "gradient", "max_norm": 1.0}
    return Query(**{**asked, "noise_multiplier": 2.0, "count": 10, **sampled, **changes})


def _plan(*queries, **changes):
    fields = {"optimizer": "dpsgd", "n": 100, "epsilon": 1.0, "delta": 1e-5}
    return Plan(queries=queries, **{**fields, **changes})


def test_plans_round_trip():
    plan = _plan(
        _query(),
        _query(FULL, name="full", count=1),
        _query(PARTS, name="batch", max_norm=1e-140),  # the smallest there is
        parameters={"steps": 10, "note": "x", "flag": True, "rate": 0.5, "none": None},
    )
    assert Plan.from_json(plan.to_json()) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert json.loads(plan.to_json())["queries"][2]["batch_size"] == 5
    assert len(plan.event.events) == 3
    # A kind is read with hyphens too, and written with spaces.
    assert _query(kind="gradient-norm").to_dict()["kind"] == "gradient norm"


def test_plans_that_make_no_sense_are_refused():
    for build, message in (
        (_plan, "queries must be one or more"),
        (lambda: _plan(_query(), _query()), "distinct names"),
        (lambda: _plan(_query()).query("x"), "query must be one of 'gradient'"),
        (lambda: Plan.from_json("[]"), "document must be a plan in JSON"),
    ):
        with pytest.raises(ValueError, match=message):
            build()


def test_parts_cost_as_one_answer_under_a_relation_that_keeps_the_parts():
    query = _query(PARTS, composition="disjoint")
    with pytest.raises(UnsupportedEvent, match="disjoint parts"):
        _plan(query)
    event = _plan(query, neighboring_relation="replace-one").event
    assert event == events.GaussianDpEvent(2.0)


def test_a_grid_of_targets_meets_each_as_tightly_as_one():
    rng = np.random.default_rng(7)
    q, steps = 10 ** rng.uniform(-3, 0, 30), np.rint(10 ** rng.uniform(0, 4, 30)).astype(int)
    targets = 10 ** rng.uniform(-2, 1.5, (2, 1))
    given = {"sampling_probability": q, "steps": steps, "epsilon": targets, "delta": 1e-6}
    found = calibrate.noise_multipliers(events.dpsgd, **given)
    for (i, j), sigma in np.ndenumerate(found):
        epsilon = targets[i, 0]
        assert accountants.epsilon(dpsgd(q[j], sigma, int(steps[j])), delta=1e-6) <= epsilon
        less = dpsgd(q[j], sigma * (1 - 1e-6), int(steps[j]))
        assert accountants.epsilon(less, delta=1e-6) > epsilon
    # A loss that no compiled call serves, and a parameter that is none of the event's own.
    laplace = calibrate.noise_multipliers(
        lambda noise_multiplier, scale: events.LaplaceDpEvent(noise_multiplier * scale),
        scale=[1.0, 2.0],
        epsilon=1.0,
        delta=1e-9,
    )
    assert laplace == pytest.approx([1.0, 0.5], rel=1e-6)


def test_the_price_of_a_plan_is_asked_both_ways():
    plan = _plan(_query())
    delta = plan.price(epsilon=plan.price(1e-6).upper)
    assert 0.999e-6 < delta <= 1e-6 * (1 + 1e-9)
    ledger = Ledger.of(plan)
    ledger.record(plan.queries[0], plan.queries[0].count)
    assert ledger.epsilon(1e-6) == plan.price(1e-6)
    assert ledger.delta(1.0) == plan.price(epsilon=1.0)
