"""Training with correlated noise: prices of whole runs, promises of the oracle.

Statistical statements state their false-alarm rate; all seeds are fixed.
"""

import dataclasses
import json
import math

import numpy as np
import pytest
from _built_plans import _read, query
from _correlated_runs import EXACT, OBJECTIVE, RUNS, N, T, X, plan_for, price as price_of
from _recording import check_promises
from scipy.stats import norm

from dpcal import accountants, calibrate, optim
from dpcal.accountants import correlated, events
from dpcal.accountants.matrix import Banded, Dense, Identity, LambdaCGD
from dpcal.calibrate import Correlation, Plan
from dpcal.errors import BudgetExceeded, LedgerMismatch, UnsupportedEvent
from dpcal.optim import FromGradients, Ledger, PrivateOracle, correlated_dpsgd, replaying
from dpcal.optim.boundary.oracle import Walk
from dpcal.optim.boundary.store import read_ledger, stored


@pytest.fixture(scope="module")
def plans():
    return {name: plan_for(**_read({**row})) for name, row in RUNS.items()}


# -- prices


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_keeps_its_promises_and_plan_and_ledger_have_one_price(name, plans):
    # False alarm below 1e-5 a run; see the recorder.
    plan, exact = plans[name], name in EXACT
    result = check_promises(correlated_dpsgd, OBJECTIVE, plan, seed=5)
    price = plan.price()
    assert result.complete
    assert price == result.epsilon(plan.delta) == result.ledger.epsilon(plan.delta) <= plan.epsilon
    assert (plan.parameters["label"] in ("exact", "certified")) == exact
    again = Plan.from_json(plan.to_json())
    assert again == plan
    ledger = Ledger.from_json(result.ledger.to_json())
    assert again.price() == ledger.epsilon(plan.delta) == price
    if exact:
        return
    assert price.label == plan.parameters["label"] == correlated.answers.WITH_CONFIDENCE
    # Two-sided confidence of each interval: false alarm below 1e-4 a run.
    other = plan.price(seed=99)
    assert other.seed != price.seed
    assert other.lower <= price.upper
    assert price.lower <= other.upper


def test_without_correlation_the_plan_is_that_of_dpsgd():
    options = {"n": 1_000, "batch_size": 50, "epsilon": 1.5, "delta": 1e-6}
    independent = calibrate.dpsgd(steps=80, **options)
    for strategy in (LambdaCGD(80, 0.0), Identity(80), Banded(80, 1, [1.0])):
        plan = calibrate.correlated_dpsgd(strategy, **options)
        assert plan.event == independent.event
        assert plan.price() == independent.price()
    doubled = calibrate.correlated_dpsgd(Banded(80, 1, [2.0]), **options)
    sigma = independent.query("gradient").noise_multiplier
    assert doubled.query("gradient").noise_multiplier == pytest.approx(2 * sigma, rel=1e-6)


def test_all_records_at_every_step_are_one_gaussian():
    plan = plan_for(
        LambdaCGD(T, 0.5), batch_size=N, sampler="full", neighboring_relation="replace-one"
    )
    sensitivity = np.linalg.norm(LambdaCGD(T, 0.5).matrix().sum(axis=1))
    sigma = plan.query("gradient").noise_multiplier
    mu = 2 * sensitivity / sigma
    delta = norm.cdf(mu / 2 - 2 / mu) - math.exp(2) * norm.cdf(-mu / 2 - 2 / mu)
    assert delta == pytest.approx(1e-2, rel=1e-5)


@pytest.mark.slow
def test_proved_bounds_need_more_noise_than_draws(plans):
    proved = plan_for(statistics=False)
    assert proved.parameters["label"] == proved.price().label == "certified"
    assert proved.price() <= 2.0
    drawn = plans["lambda-CGD"].query("gradient").noise_multiplier
    assert proved.query("gradient").noise_multiplier > drawn


@pytest.mark.slow
def test_answers_with_correlated_noise_are_not_independent(plans):
    # The same multipliers as independent noise would cost less: that price must not be reached.
    plan = plans["lambda-CGD"]
    (one,), event = plan.queries, plan.event
    naive = events.dpsgd(sampling_probability=0.1, noise_multiplier=one.noise_multiplier, steps=T)
    assert plan.price().lower > 1.2 * accountants.epsilon(naive, delta=plan.delta)
    with pytest.raises(UnsupportedEvent, match="no price of its own"):
        one.event(N)
    twice = accountants.epsilon(events.ComposedDpEvent([event, event]), delta=1e-2)
    assert twice > plan.price()
    assert twice > 1.2 * accountants.epsilon(events.SelfComposedDpEvent(naive, 2), delta=1e-2)
    single = accountants.epsilon(events.ComposedDpEvent([event]), delta=plan.delta)
    assert single == plan.price()
    # Exact prices of separated steps hold for zeroed records; plans have none for replaced ones.
    with pytest.raises(UnsupportedEvent, match=r"not calibrated for .* 'replace-one'"):
        plans["banded, cyclic"].price(neighboring_relation="replace-one")
    delta = accountants.delta(event, epsilon=2.0)
    assert 0 < delta.lower <= delta.estimate <= delta <= 2e-2


@pytest.mark.slow
def test_the_failure_probability_of_every_confirmation_is_part_of_delta(plans):
    (query,) = plans["lambda-CGD"].queries
    correlation, failure = query.correlation, query.correlation.failure_probability
    assert correlation.confirmations * failure == pytest.approx(1e-4)
    price = plans["lambda-CGD"].price()
    asked = {"noise_multiplier": query.noise_multiplier, "failure_probability": failure}
    asked |= {"delta": 1e-2 - (correlation.confirmations - 1) * failure}
    asked |= {"draws": correlation.draws, "seed": correlation.seed}
    direct = price_of(correlation.strategy, correlated.Poisson(0.1), **asked)
    assert price == direct
    assert price.neighboring_relation == "add-or-remove-one"


# -- what ledgers say


def test_ledgers_with_more_answers_or_streams_than_planned_are_refused(plans):
    (one,) = plans["lambda-CGD"].queries
    ledger = Ledger(N, entries=[one])
    with pytest.raises(ValueError, match="count must be at most the strategy's steps=12"):
        ledger.record(one, 1)
    split = Ledger(N, entries=[one.with_count(8), query(name="other"), one.with_count(8)])
    louder = dataclasses.replace(one, count=2, noise_multiplier=9.0)
    for wrong, told in (
        (split, "answered 16 times, its noise has 12 rows"),
        (Ledger(N, entries=[one.with_count(2), louder]), "2 streams"),
    ):
        with pytest.raises(LedgerMismatch, match=told):
            _ = wrong.event
    alone = Ledger(N, entries=[one]).epsilon(1e-2)
    for other in (query(name="other"), dataclasses.replace(one, name="again")):
        assert Ledger(N, entries=[one, other]).epsilon(1e-2) > alone


# -- what the oracle does


def test_compiled_steps_are_not_for_correlated_noise():
    # Their noise is drawn afresh in every step: it is not what such a query's price is about.
    plan = plan_for(LambdaCGD(T, 0.5), batch_size=N, sampler="full")
    start = np.zeros(OBJECTIVE.dimension), "gradient"
    walk = Walk(PrivateOracle(OBJECTIVE, plan, seed=0), *start, rates=np.ones(2))
    assert not walk.compiled


def check_gone_on(path, plan, asks, half):
    """Close a stored run half way, open it again, and compare it with a run in memory."""
    points = [np.zeros(4) if k < half else np.ones(4) for k in range(len(asks))]
    with replaying():
        whole = PrivateOracle(OBJECTIVE, plan, seed=11)
        due = [whole.gradient(w, name) for w, name in zip(points, asks, strict=True)]
        part = stored(path, OBJECTIVE, plan, seed=11)
        for w, name in zip(points[:half], asks, strict=False):
            part.gradient(w, name)
        part.close()
    assert read_ledger(path).answers == half
    again = stored(path, OBJECTIVE, plan)
    found = [again.gradient(w, name) for w, name in zip(points, asks, strict=True)]
    assert np.array_equal(due, found), plan
    return again


def test_a_run_goes_on_where_it_stopped(plans, tmp_path):
    for number, plan in enumerate(plans.values()):
        again = check_gone_on(tmp_path / str(number), plan, ["gradient"] * T, 5)
        with pytest.raises(BudgetExceeded):
            again.gradient(np.zeros(4), "gradient")


def test_interleaved_streams_go_on_where_they_stopped(plans, tmp_path):
    # A record that sits out must still do so afterwards, whichever query was asked in between.
    (one,) = plans["banded, separated"].queries
    pair = (one, dataclasses.replace(one, name="other"))
    plan = dataclasses.replace(plans["banded, separated"], queries=pair)
    asks = ["gradient", "other", "other", "gradient", "other", "other", "gradient", "gradient"]
    check_gone_on(tmp_path / "run", plan, asks, 5)


def test_an_answer_that_fails_spends_its_round():
    def gradients(w, rows):
        if w[0] == 7:
            raise RuntimeError("a gradient that cannot be computed")
        return np.zeros((len(rows), 1))

    objective = FromGradients(gradients, n=4, dimension=1)
    strategy = LambdaCGD(5, 0.5)
    plan = plan_for(strategy, n=4, batch_size=4, sampler="full")
    sigma = plan.query("gradient").noise_multiplier
    oracle = PrivateOracle(objective, plan, seed=2)
    untouched = PrivateOracle(objective, plan, seed=2)
    rows = [untouched.gradient(np.zeros(1), "gradient")[0] for _ in range(5)]
    answers = [oracle.gradient(np.zeros(1), "gradient")[0]]
    with pytest.raises(RuntimeError, match="cannot be computed"):
        oracle.gradient(np.full(1, 7.0), "gradient")
    answers += [oracle.gradient(np.zeros(1), "gradient")[0] for _ in range(3)]
    assert answers == [rows[0], *rows[2:]]
    assert oracle.remaining("gradient") == 0
    z = strategy.matrix() @ np.array(rows) * 4 / sigma
    assert np.abs(z).max() < 5  # false alarm 3e-6


def test_iterates_stay_in_a_ball_around_the_start_or_its_centre(plans):
    start, away = np.array([3.0, -1.0, 2.0, 0.5]), []
    follow = {"callback": lambda p: away.append(np.linalg.norm(p.w - start)), "callback_every": 1}
    options = {"seed": 1, "learning_rate": 50.0, "initial": start, **follow}
    correlated_dpsgd(OBJECTIVE, plans["lambda-CGD"], radius=0.3, **options)
    assert max(away) == pytest.approx(0.3, rel=1e-12)
    correlated_dpsgd(OBJECTIVE, plans["lambda-CGD"], center=start + 0.1, radius=1.0, **options)
    assert max(away) <= 1.2 + 1e-12


@pytest.mark.parametrize("name", ["dpsgd", "correlated_dpsgd"])
def test_iterates_stay_in_the_ball_of_the_plan_around_the_start(name, plans):
    """Wang et al. 2026, Algorithm 1: K = {W : ||W - W_0|| <= R}."""
    given, start, away = (
        {"n": N, "batch_size": 20, "steps": 30},
        np.array([3.0, -1.0, 2.0, 0.5]),
        [],
    )
    independent = calibrate.dpsgd(epsilon=1.0, delta=1e-5, **given)
    plan = independent if name == "dpsgd" else plans["lambda-CGD"]
    near = dataclasses.replace(plan, parameters={**plan.parameters, "projection_radius": 0.3})
    follow = {"callback": lambda p: away.append(np.linalg.norm(p.w - start)), "callback_every": 1}
    options = {"seed": 1, "learning_rate": 50.0, "initial": start, **follow}
    optim.run(OBJECTIVE, near, **options)
    assert max(away) == pytest.approx(0.3, rel=1e-12)
    with replaying():
        optim.run(OBJECTIVE, near, **options, radius=9e9)
    assert max(away) > 1.0  # the user's ball is the wider one
    assert near.price() == plan.price()
    none = dataclasses.replace(plan, parameters={**plan.parameters, "projection_radius": 0.0})
    with pytest.raises(ValueError, match="projection_radius must be"):
        optim.run(OBJECTIVE, none)


@pytest.mark.slow
def test_correlation_takes_noise_back():
    # Per coordinate, prefix sums of n steps have variance sigma^2 (1 + (1 - lambda)^2 (n - 1)).
    steps, d = 50, 20_000
    objective = FromGradients(lambda w, rows: np.zeros((len(rows), d)), n=2, dimension=d)
    for decay in (0.0, 0.5, 0.9):
        plan = plan_for(LambdaCGD(steps, decay), n=2, batch_size=2, sampler="full")
        sigma = plan.query("gradient").noise_multiplier
        result = correlated_dpsgd(objective, plan, seed=6, learning_rate=2.0)
        expected = sigma * math.sqrt(1 + (1 - decay) ** 2 * (steps - 1))
        # The relative error of a standard deviation from d numbers is 1 / sqrt(2 d): 5 of them.
        assert result.w.std() == pytest.approx(expected, rel=5 / math.sqrt(2 * d))


# -- refusals


@pytest.mark.slow
def test_too_few_draws_leave_the_proved_bound():
    with pytest.warns(RuntimeWarning, match="proved and not drawn; more draws may need less"):
        plan = plan_for(draws=10, delta=1e-6, sampler="min-separation", separation=2)
    assert plan.parameters["label"] == "certified"
    assert plan.price() <= plan.epsilon


def test_matrices_of_both_signs_cost_what_their_absolute_values_cost():
    C = np.eye(T) - np.diag(np.full(T - 1, 0.4), -1) + np.diag(np.full(T - 2, -0.3), -2)
    both = [plan_for(Dense(M), statistics=False).query("gradient") for M in (C, np.abs(C))]
    assert both[0].noise_multiplier == both[1].noise_multiplier
    plan = plan_for(Dense(C), batch_size=N, sampler="full")
    assert plan.parameters["label"] == "certified"


def test_a_correlated_query_is_read_from_its_document():
    correlation = Correlation(strategy=LambdaCGD(T, 0.5))
    given = {"sampler": "poisson", "sampling_probability": 0.1, "count": T}
    one = query(**given, correlation=correlation)
    assert query(**given, correlation=correlation.to_dict()) == one
    with pytest.raises(ValueError, match="strategy must be one of"):
        query(**given, correlation={"strategy": {"strategy": "none"}})


# -- the command line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        (LambdaCGD(12, 0.5), {"statistics": False}),
        (Banded(12, 3), {"sampler": "cyclic-poisson"}),
    ],
)
def test_the_command_line_trains_and_verifies(cli, tmp_path, strategy, how):
    table, report = tmp_path / "table.csv", tmp_path / "report"
    lines = [f"{a:.4f},{b:.4f},{'no' if a < b else 'yes'}" for a, b in X[:, :2]]
    table.write_text("\n".join(["a,b,label", *lines]) + "\n")
    target = {"epsilon": 2.0, "delta": 1e-2, "neighboring_relation": "replace-special"}
    planned = calibrate.correlated_dpsgd(strategy, n=len(X), batch_size=12, **target, **how)
    (tmp_path / "plan.json").write_text(planned.to_json())
    asked = "--target label --test-fraction 0 --use-plan"
    told = cli("train", table, asked, tmp_path / "plan.json", "-o", report)
    (run,) = json.loads((report / "report.json").read_text())["runs"]
    plan = Plan.from_json(json.dumps(run["plan"]))
    assert plan.optimizer == "correlated_dpsgd"
    assert plan.query("gradient").correlation.strategy.steps == 12
    assert run["epsilon"]["upper"] == plan.price() <= 2
    assert f"the cost is {plan.parameters['label']}" in told
    cli("verify", report)
