"""Filters and odometers: budgets kept under adaptive choices, theorems checked by simulation."""

import math

import numpy as np
import pytest
from contracts._events import priced
from hypothesis import given, settings, strategies as st

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.adaptive.filters import Odometer, PrivacyFilter, renyi_order
from dpcal.errors import BudgetExceeded, UnsupportedEvent

GAUSSIAN = events.GaussianDpEvent


@given(epsilon=st.floats(1e-3, 30.0), log_delta=st.floats(-60.0, -0.1))
@settings(max_examples=25, deadline=None)
def test_gdp_budget_is_the_largest_that_meets_the_target(epsilon, log_delta):
    target = math.exp(log_delta)
    mu = math.sqrt(PrivacyFilter(epsilon=epsilon, delta=target, kind="gdp").budget)
    assert delta(GAUSSIAN(1 / mu), epsilon=epsilon).lower <= target
    assert delta(GAUSSIAN(1 / (mu * (1 + 1e-6))), epsilon=epsilon) > target


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["renyi", "zcdp", "gdp"])
@given(st.lists(st.floats(3.0, 50.0), min_size=1, max_size=40))
@settings(max_examples=8, deadline=None)
def test_what_a_filter_accepts_meets_its_claim_when_fixed_in_advance(kind, sigmas):
    # Necessary only: a sequence fixed in advance is one of the adaptive ones.
    budget = PrivacyFilter(epsilon=1.0, delta=1e-6, kind=kind)
    accepted = []
    for sigma in sigmas:
        if not budget.would_exceed(GAUSSIAN(sigma)):
            budget.spend(GAUSSIAN(sigma))
            accepted.append(GAUSSIAN(sigma))
    assert budget.spent <= budget.budget
    assert delta(events.ComposedDpEvent(accepted), epsilon=1.0) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "target"), [("renyi", 1e-6), ("zcdp", 1e-6), ("gdp", 1e-6), ("renyi", 0)]
)
def test_no_filter_claims_less_than_its_spends_cost_together(kind, target):
    paid = 0
    for event, relation, _ in priced():
        how = {"delta": target, "neighboring_relation": relation}
        try:
            budget = PrivacyFilter(epsilon=8.0, kind=kind, **how)
            count = int(min(budget.budget // budget.cost(event), 20)) if budget.cost(event) else 0
            direct = epsilon(events.SelfComposedDpEvent(event, count), **how)
        except UnsupportedEvent:
            continue
        paid += count > 0
        assert direct.lower <= budget.epsilon, (event, relation, count)
    assert paid > 2


def test_a_refused_spend_changes_nothing_and_a_smaller_one_may_follow():
    budget = PrivacyFilter(epsilon=1.0, delta=1e-6, kind="gdp")
    budget.spend(GAUSSIAN(6.0))
    before = budget.spent, budget.remaining
    with pytest.raises(BudgetExceeded, match=r"Spending 0\.25 would exceed the remaining"):
        budget.spend(GAUSSIAN(2.0))
    assert (budget.spent, budget.remaining) == before
    budget.spend(GAUSSIAN(8.0))


def test_many_at_once_cost_the_same():
    sampled = events.PoissonSampledDpEvent(0.01, GAUSSIAN(1.0))
    once = PrivacyFilter(epsilon=3.0, delta=1e-6)
    for _ in range(50):
        once.spend(sampled)
    many = PrivacyFilter(epsilon=3.0, delta=1e-6)
    many.spend(events.SelfComposedDpEvent(sampled, 20))
    many.spend(sampled, 30)
    assert once.spent == pytest.approx(many.spent, rel=1e-12)


def test_renyi_budget_is_the_published_conversion():
    # Canonne, Kamath and Steinke (2020), Proposition 12, at order 21.
    budget = PrivacyFilter(epsilon=1.0, delta=1e-6, order=21.0)
    penalty = math.log(1e6) + 20 * math.log1p(-1 / 21) - math.log(21)
    assert budget.budget == pytest.approx(1.0 - penalty / 20, rel=1e-12)
    assert budget.cost(GAUSSIAN(3.0)) == pytest.approx(21 / 18, rel=1e-12)


def test_an_order_for_the_expected_mechanism_admits_more():
    sampled = events.PoissonSampledDpEvent(0.01, GAUSSIAN(0.8))
    default = PrivacyFilter(epsilon=3.0, delta=1e-6)
    order = renyi_order(sampled, epsilon=3.0, delta=1e-6)
    chosen = PrivacyFilter(epsilon=3.0, delta=1e-6, order=order)
    assert chosen.remaining / chosen.cost(sampled) > 1.2 * default.remaining / default.cost(sampled)


def test_the_filter_is_not_the_price_of_the_realised_sequence():
    # Mechanisms far from the expected one: their realised sequence still has a smaller epsilon,
    # at an order that nobody fixed in advance. The filter proves nothing for it, and refuses.
    sampled = events.PoissonSampledDpEvent(0.01, GAUSSIAN(0.8))
    budget = PrivacyFilter(epsilon=3.0, delta=1e-6)
    accepted = 0
    while not budget.would_exceed(sampled):
        budget.spend(sampled)
        accepted += 1
    realised = events.SelfComposedDpEvent(sampled, accepted + 1)
    assert epsilon(realised, delta=1e-6, accountant="renyi") < 3.0
    with pytest.raises(BudgetExceeded):
        budget.spend(sampled)


def adaptive_losses(rng, runs, budget):
    """Losses of a Gaussian analyst who spends more boldly as long as luck is against the record.

    The loss of N(1, s^2) against N(0, s^2) is N(m / 2, m) with m = 1 / s^2. All of the squared
    budget is spent at the end.
    """
    loss, left = np.zeros(runs), np.full(runs, budget)
    for step in range(30):
        bold = np.where(loss > 0.3, 0.4, 0.05)
        cost = left if step == 29 else left * bold
        loss += cost / 2 + np.sqrt(cost) * rng.standard_normal(runs)
        left = left - cost
    return loss


@pytest.mark.slow
def test_gdp_filter_holds_and_is_tight_for_an_adaptive_analyst():
    # delta(epsilon) = E_P[(1 - exp(epsilon - L))_+]; Hoeffding at 1e-9 for 400 000 runs.
    runs = 400_000
    budget = PrivacyFilter(epsilon=1.0, delta=0.1, kind="gdp").budget
    losses = adaptive_losses(np.random.default_rng(7), runs, budget)
    achieved = np.maximum(-np.expm1(1.0 - losses), 0.0).mean()
    assert abs(achieved - 0.1) < math.sqrt(math.log(2e9) / (2 * runs))


def stopped_losses(reported):
    """How often the loss ever exceeds what is reported, over 20 000 runs of 400 equal steps."""
    rng = np.random.default_rng(11)
    exceeded = np.zeros(20_000, dtype=bool)
    loss = np.zeros(20_000)
    mu = 0.1
    for step in range(400):
        loss += mu**2 / 2 + mu * rng.standard_normal(20_000)
        exceeded |= loss > reported[step]
    return exceeded.mean()


def test_stopping_at_will_breaks_the_price_of_a_fixed_sequence_but_not_the_odometer():
    # The fixed price after t steps, epsilon_t with P[L_t > epsilon_t] = delta exactly, is right
    # for each t. Whoever stops as soon as the loss exceeds it finds it wrong far more often.
    level = 0.05
    variance = 0.1**2 * np.arange(1, 401)
    fixed = variance / 2 + 1.6448536269514722 * np.sqrt(variance)
    odometer, running = Odometer(delta=level, orders=(1.5, 2.0, 3.0, 5.0)), []
    for _ in range(400):
        odometer.spend(GAUSSIAN(10.0))
        running.append(odometer.epsilon)
    # Hoeffding at 1e-9 for 20 000 runs.
    margin = math.sqrt(math.log(1e9) / (2 * 20_000))
    assert stopped_losses(fixed) > 3 * level + margin
    assert stopped_losses(running) < level + margin


def test_odometer_is_ville_at_the_best_order():
    odometer = Odometer(delta=1e-5, orders=(3.0, 9.0))
    assert odometer.epsilon == 0.0
    odometer.spend(GAUSSIAN(2.0), 4)
    candidates = [order * 4 / 8 + math.log(2e5) / (order - 1) for order in (3.0, 9.0)]
    assert odometer.epsilon == pytest.approx(min(candidates), rel=1e-12)
    assert odometer.spent == pytest.approx({3.0: 1.5, 9.0: 4.5})


@pytest.mark.slow
def test_odometer_never_falls_and_exceeds_the_fixed_price():
    odometer, last = Odometer(delta=1e-6), 0.0
    sampled = events.PoissonSampledDpEvent(0.02, GAUSSIAN(0.7))
    for steps in range(1, 30):
        odometer.spend(sampled)
        assert odometer.epsilon > last
        last = odometer.epsilon
        assert last > epsilon(events.SelfComposedDpEvent(sampled, steps), delta=1e-6)


def test_settings_of_a_filter_are_fixed():
    budget = PrivacyFilter(epsilon=1.0, delta=1e-6)
    with pytest.raises(AttributeError, match="budget of a PrivacyFilter is fixed"):
        budget.budget = 2 * budget.budget


def test_relations_and_zcdp_events():
    replace = PrivacyFilter(epsilon=1.0, delta=1e-6, kind="gdp", neighboring_relation="replace-one")
    add = PrivacyFilter(epsilon=1.0, delta=1e-6, kind="gdp")
    assert replace.cost(GAUSSIAN(10.0)) == pytest.approx(4 * add.cost(GAUSSIAN(10.0)))
    zcdp = PrivacyFilter(epsilon=1.0, delta=1e-6, kind="zcdp")
    mixed = events.ComposedDpEvent([events.ZCDpEvent(0.001), GAUSSIAN(20.0)])
    assert zcdp.cost(mixed) == pytest.approx(0.001 + 1 / 800)
