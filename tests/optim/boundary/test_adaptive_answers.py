"""Answers whose noise is chosen on the way: budgets, filters, and what a run costs then."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from _answers import (
    LOGISTIC,
    D,
    N,
    W,
    adaptive_plan,
    oracle_for,
    query,
    result_of,
    untouchable,
)
from _built_plans import noise_again, rounding
from hypothesis import given, settings, strategies as st

from dpcal.accountants import PrivacyFilter, events
from dpcal.calibrate import noise_multiplier
from dpcal.errors import BudgetExceeded, LedgerMismatch
from dpcal.optim import Ledger, PrivateOracle
from dpcal.optim.boundary.oracle import Walk
from dpcal.optim.boundary.seeds import Streams


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.booleans(), st.floats(4.0, 60.0)), max_size=30))
def test_adaptive_answers_never_overrun_their_budget(choices):
    oracle = PrivateOracle(LOGISTIC, adaptive_plan(), seed=0)
    spent = Fraction(0)
    for is_norm, z in choices:
        ask, name = (oracle.norm, "n") if is_norm else (oracle.gradient, "g")
        cost = (2 / Fraction(z)) ** 2
        before = oracle.ledger.to_json()
        if oracle.affords(name, z):
            ask(W, name, noise_multiplier=z)
            spent += cost
        else:
            with pytest.raises(BudgetExceeded, match="of the adaptive budget"):
                ask(W, name, noise_multiplier=z)
            assert oracle.ledger.to_json() == before
            assert spent + cost > 1 - Fraction(1, 10**12)
    assert spent <= 1
    assert spent <= oracle.ledger.share(2.0) <= spent * (1 + Fraction(1, 10**14))
    again = Ledger.from_json(oracle.ledger.to_json())
    assert again.share(2.0) == oracle.ledger.share(2.0)
    if choices and spent:
        assert again.event == oracle.plan.event == events.GaussianDpEvent(2.0)


@pytest.mark.parametrize("kind", ["gdp", "zcdp"])
@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one", "replace-special"])
def test_the_ledger_and_a_filter_agree_on_what_was_spent(kind, relation):
    budget = noise_multiplier(
        events.GaussianDpEvent, epsilon=1.0, delta=1e-5, neighboring_relation=relation
    )
    purse = PrivacyFilter(epsilon=2.0, delta=1e-5, kind=kind, neighboring_relation=relation)
    plan = adaptive_plan(budget, relation=relation)
    assert plan.price() <= 1.0
    oracle = PrivateOracle(LOGISTIC, plan, seed=0)
    for z in np.linspace(3 * budget, 20 * budget, 30):
        if oracle.affords("g", z):
            oracle.gradient(W, "g", noise_multiplier=z)
    whole = (2 if relation == "replace-one" else 1) ** 2 / budget**2
    share = float(oracle.ledger.share(budget)) * whole
    for entry in oracle.ledger.entries:
        purse.spend(entry.event(N), entry.count)
    assert purse.spent == pytest.approx(share if kind == "gdp" else share / 2, rel=1e-12)
    assert oracle.ledger.epsilon(1e-5) == plan.price()


def test_adaptive_noise_is_required_checked_and_used():
    plan = adaptive_plan(relation="replace-special")
    oracle, compiled = PrivateOracle(untouchable(), plan, seed=0), PrivateOracle(LOGISTIC, plan)
    needed = "noise_multiplier must be given for adaptive query 'g'"
    with pytest.raises(ValueError, match=needed):
        oracle.gradient(W, "g")
    with pytest.raises(ValueError, match=needed):
        Walk(compiled, W, "g", rates=np.full(1, 0.1)).take()
    with pytest.raises(ValueError, match=r"at least the planned 2.0 for query 'g', got 1.9"):
        oracle.gradient(W, "g", noise_multiplier=1.9)
    assert oracle.ledger.entries == compiled.ledger.entries == ()
    loud = PrivateOracle(LOGISTIC, plan, seed=4).gradient(W, "g", noise_multiplier=50.0)
    noise = noise_again(Streams(4, plan, LOGISTIC.digest).noise, 50.0, 0.5, D)
    exact = LOGISTIC.clipped_sum(W, np.arange(N), 0.5)
    slope = LOGISTIC.regularizer_gradient(W)
    off = rounding(0.5, D, N)
    np.testing.assert_allclose(loud, (exact + noise) / N + slope, rtol=1e-12, atol=off)
    fixed = oracle_for(query(), objective=untouchable())
    with pytest.raises(ValueError, match="noise_multiplier is for adaptive queries"):
        fixed.gradient(W, "q", noise_multiplier=3.0)
    with pytest.raises(ValueError, match="query must be adaptive"):
        fixed.affords("q", 3.0)
    # One answer may spend the whole budget.
    oracle = PrivateOracle(LOGISTIC, adaptive_plan(), seed=0)
    oracle.gradient(W, "g", noise_multiplier=2.0)
    assert oracle.ledger.share(2.0) == 1
    assert not oracle.affords("g", 1e6)
    # The last answer of a plan is afforded, and none after it.
    oracle = PrivateOracle(LOGISTIC, adaptive_plan(count=1), seed=0)
    assert oracle.affords("g", 40.0)
    oracle.gradient(W, "g", noise_multiplier=40.0)
    assert not oracle.affords("g", 40.0)


def test_a_run_that_chose_what_to_spend_costs_its_budget():
    oracle = PrivateOracle(LOGISTIC, adaptive_plan(), seed=0)
    oracle.gradient(W, "g", noise_multiplier=40.0)
    result = result_of(oracle)
    assert result.epsilon(1e-5) == oracle.plan.price(1e-5)
    entry = query("g", budget=2.0, noise_multiplier=2.5)
    overspent = Ledger(N, "replace-one")
    overspent.record(entry, 2)
    with pytest.raises(LedgerMismatch, match=r"spent 1.28 times their budget"):
        _ = overspent.event
    with pytest.raises(LedgerMismatch, match="of the adaptive budget"):
        dataclasses.replace(result, ledger=overspent).verify()
    quieter = Ledger(N, "replace-one")
    quieter.record(dataclasses.replace(entry, budget=1.0, noise_multiplier=1.5))
    with pytest.raises(LedgerMismatch, match="the plan holds no such query"):
        dataclasses.replace(result, ledger=quieter).verify()


def test_a_run_has_all_planned_answers_or_stopped_itself():
    oracle = oracle_for(query(noise_multiplier=8.0))
    oracle.gradient(W, "q")
    with pytest.raises(LedgerMismatch, match="planned 10 times and answered 1 times"):
        result_of(oracle).verify()
    result_of(oracle, early=True).verify()
