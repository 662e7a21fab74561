"""An oracle that is handed gradients answers as one that takes them itself."""

import json

import numpy as np
import pytest

import dpcal
from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters import stepwise
from dpcal.adapters.stepwise import Guarded, OutOfTurn, StepwiseOracle
from dpcal.calibrate import Correlation, Plan, Query
from dpcal.errors import BudgetExceeded, LedgerMismatch


def plan(**changes):
    fields = {
        "name": "gradient", "kind": "gradient", "sampler": "poisson", "sampling_probability": 0.5,
        "max_norm": 1.0, "noise_multiplier": 1e-9, "count": 4, **changes,
    }  # fmt: skip
    return Plan(optimizer="dpsgd", n=20, queries=(Query(**fields),), epsilon=1e9, delta=1e-6)


def test_pieces_of_a_batch_add_up_to_clipped_sums_over_the_expected_size():
    gradients = np.random.default_rng(0).standard_normal((20, 3)) * 2
    norms = np.linalg.norm(gradients, axis=1)
    clipped = gradients * np.minimum(1, 1 / norms)[:, np.newaxis]
    gradients[4], clipped[4] = np.inf, 0.0
    for noise in ("gaussian", "discrete"):
        multiplier = 1e-9 if noise == "gaussian" else 1e-3
        oracle = StepwiseOracle(plan(noise_multiplier=multiplier), dimension=3, noise=noise)
        while oracle.remaining("gradient"):
            rows = oracle.draw()
            oracle.add(gradients[rows[:5]])
            oracle.add(gradients[rows[5:]])
            np.testing.assert_allclose(oracle.answer(), clipped[rows].sum(axis=0) / 10, atol=1e-3)


def test_an_empty_batch_is_noise_alone():
    """A thousand coordinates of variance 4 / 0.02^2: within 15 percent but for one in 10^10."""
    empty = plan(sampling_probability=1e-3, noise_multiplier=2.0)
    oracle = StepwiseOracle(empty, dimension=1000, seed=1)
    assert len(oracle.draw()) == 0
    answer = oracle.answer()
    assert np.std(answer) == pytest.approx(2.0 / 0.02, rel=0.15)
    assert oracle.ledger.count("gradient") == 1


def test_the_ledger_is_written_before_a_batch_is_known_and_turns_are_kept():
    oracle = StepwiseOracle(plan(count=2), dimension=3)
    with pytest.raises(OutOfTurn, match="must be drawn before"):
        oracle.add(np.ones((1, 3)))
    with pytest.raises(OutOfTurn, match="must be drawn before"):
        oracle.answer()
    oracle.draw()
    assert oracle.ledger.count("gradient") == 1
    with pytest.raises(OutOfTurn, match="must be answered for"):
        oracle.draw()
    oracle.give_up()
    oracle.draw()
    oracle.answer()
    with pytest.raises(BudgetExceeded):
        oracle.draw()
    assert oracle.ledger.count("gradient") == 2


def test_a_budget_is_charged_for_the_whole_plan():
    planned = calibrate.dpsgd(n=20, batch_size=10, steps=4, epsilon=1.0, delta=1e-6)
    with dpcal.budget(epsilon=1.2, delta=1e-6) as shared:
        StepwiseOracle(planned, dimension=3).draw()
        with pytest.raises(BudgetExceeded):
            StepwiseOracle(planned, dimension=3)
    assert shared.spent == pytest.approx(planned.price())


def test_correlated_noise_goes_on_after_a_stop_as_if_there_had_been_none():
    """With a seed, noise of all rounds is one matrix product; a stop changes no row of it."""
    correlated = plan(
        sampler="balls-in-bins", sampling_probability=None, separation=4, count=8,
        noise_multiplier=2.0, correlation=Correlation(strategy=LambdaCGD(8, 0.5)),
    )  # fmt: skip
    whole, part = (StepwiseOracle(correlated, dimension=3, seed=5) for _ in range(2))
    answers = []
    for oracle in (whole, part):
        steps = 8 if oracle is whole else 3
        for _ in range(steps):
            oracle.draw()
            answers.append(oracle.answer())
    resumed = StepwiseOracle.continued(json.loads(json.dumps(part.state())))
    for _ in range(5):
        resumed.draw()
        answers.append(resumed.answer())
    np.testing.assert_array_equal(answers[:8], answers[8:])
    assert resumed.ledger == whole.ledger


def test_independent_noise_is_not_drawn_twice_after_a_stop(monkeypatch):
    """In two processes, of which neither sees what the other one has given."""
    monkeypatch.setattr(stepwise, "_GIVEN", stepwise._Given())
    first = StepwiseOracle(plan(noise_multiplier=2.0), dimension=3, seed=6)
    state = first.state()
    assert "seed" not in state or state["seed"] is None
    first.draw()
    monkeypatch.setattr(stepwise, "_GIVEN", stepwise._Given())
    second = StepwiseOracle.continued(state)
    second.draw()
    assert (first.answer() != second.answer()).all()


def test_a_plan_of_other_queries_is_refused():
    with pytest.raises(ValueError, match="one query of kind 'gradient', got 'scalar'"):
        StepwiseOracle(plan(kind="scalar"), dimension=3)


def test_no_more_records_are_summed_than_were_drawn():
    oracle = StepwiseOracle(plan(noise_multiplier=2.0), dimension=3, seed=6)
    rows = oracle.draw()
    oracle.add(np.ones((len(rows), 3)))
    with pytest.raises(OutOfTurn, match="count must be at most 0"):
        oracle.add(np.ones((1, 3)))
    oracle.answer()
    with pytest.raises(OutOfTurn, match="must be drawn"):
        oracle.add(np.ones((1, 3)))


def test_a_guard_does_not_forget_what_it_released():
    guard = Guarded()
    guard._oracle = StepwiseOracle(plan(noise_multiplier=2.0, count=5), dimension=3, seed=6)
    start = guard.state_dict()
    guard._oracle.draw()
    guard._oracle.answer()
    later = guard.state_dict()
    with pytest.raises(LedgerMismatch, match="must hold the 1 answers that this guard has given"):
        guard.load_state_dict(start)
    guard.load_state_dict(later)
    assert guard.ledger.answers == 1


def test_a_loop_that_is_left_early_costs_its_whole_plan_as_a_result_does():
    """Whoever leaves it has seen what was released."""
    guard = Guarded()
    guard._oracle = StepwiseOracle(plan(noise_multiplier=3.0), dimension=3)
    assert guard.epsilon(1e-6) == 0
    guard._oracle.draw()
    guard._oracle.answer()
    assert guard.epsilon(1e-6) == guard.plan.price()
    assert guard.ledger.epsilon(1e-6) < 0.9 * guard.plan.price()
