"""What spends a plan step by step: clipped sums, noise, one price, no copy, no state used twice.

One contract for oracles that are handed gradients, and for guards. Each is made of a plan, and
steps through it.
"""

import copy
import importlib
import json
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from _built_plans import rounding
from _steps import planned
from _stored_runs import forked, forks

import dpcal
from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.ranks import Alone, RankedOracle
from dpcal.adapters.stepwise import Guarded, OutOfTurn, StepwiseOracle
from dpcal.errors import BudgetExceeded, LedgerMismatch, NoiseReused

N, COUNT = 40, 12


class Oracle:
    """An oracle as a loop uses it, on records whose gradients are the rows of a table."""

    nothing = ()

    def __init__(self, plan, gradients=None, **options):
        self.gradients = np.ones((N, 3)) if gradients is None else gradients
        self.spender = self.made(plan, self.gradients.shape[1], **options)

    def made(self, plan, dimension, **options):
        return StepwiseOracle(plan, dimension=dimension, **options)

    def draw(self):
        return self.spender.draw()

    def handed_in(self, batch):
        """Return the gradients of a batch."""
        return self.gradients[list(batch)]

    def answer(self, batch):
        self.spender.add(self.handed_in(batch))
        return self.spender.answer()

    def state(self):
        return json.loads(json.dumps(self.spender.state()))

    def go_on(self, state):
        self.spender = StepwiseOracle.continued(state)

    def rest(self):
        """Return the answers that the plan still has."""
        found = []
        with suppress(BudgetExceeded):
            while True:
                found.append(self.answer(self.draw()))
        return found


class Ranked(Oracle):
    """The oracle of ranks, with one rank."""

    def made(self, plan, dimension, **options):
        return RankedOracle(plan, Alone(), {"w": (dimension,)}, lambda: b"parameters", **options)


class Optax(Oracle):
    """The guard of JAX, of two leaves: records are the gradients of a linear loss."""

    nothing = np.zeros(0, dtype=int)

    def made(self, plan, dimension, **options):
        jnp = pytest.importorskip("jax", reason="jax is not installed").numpy
        module = importlib.import_module("dpcal.adapters.optax")

        def loss(params, row):
            return jnp.vdot(params["a"], row[1:]) + params["b"] * row[0]

        self.zeros = {"a": jnp.zeros(dimension - 1), "b": jnp.zeros(())}
        return module.Guard(plan, self.zeros, loss, **options)

    def answer(self, batch):
        table = np.asarray(self.handed_in(batch), dtype=np.float32)
        update = self.spender.gradient(self.zeros, table)
        assert {str(each.dtype) for each in update.values()} == {"float32"}
        return np.hstack([update["b"], update["a"]])

    def state(self):
        return json.loads(json.dumps(self.spender.state_dict()))

    def go_on(self, state):
        self.spender.load_state_dict(state)


class Torch(Optax):
    """The guard of PyTorch: of a linear model at zero, inputs are gradients of this loss."""

    def made(self, plan, dimension, **options):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        self.nothing = torch.zeros(0, dimension), torch.zeros(0, 1)
        rows = torch.tensor(self.gradients, dtype=torch.float32)
        self.records = [(row, torch.full((1,), -0.5)) for row in rows]
        model = torch.nn.Linear(dimension, 1, bias=False)
        self.weight = torch.nn.init.zeros_(model.weight)
        module = importlib.import_module("dpcal.adapters.torch")
        return module.Guard(model, plan, loss=torch.nn.functional.mse_loss, **options)

    def draw(self):
        batch = next(self.spender.loader(self.records), None)
        if batch is None:
            raise BudgetExceeded("the loader is at its end")
        return batch

    def handed_in(self, batch):
        return batch[0].numpy()

    def answer(self, batch):
        assert self.spender.backward(*batch)
        return self.weight.grad.numpy().ravel()


SPENDERS = {each.__name__: each for each in (Oracle, Ranked, Optax, Torch)}
each_spender = pytest.mark.parametrize("kind", SPENDERS.values(), ids=SPENDERS)
stateful = pytest.mark.parametrize("kind", [Oracle, Optax, Torch])


# -- answers


@each_spender
def test_an_answer_is_the_clipped_sum_of_a_batch_over_the_expected_size(kind):
    gradients = np.random.default_rng(0).standard_normal((N, 3)) * 2
    gradients[4] = np.inf
    each = kind(planned(noise_multiplier=1e-4, count=4), gradients)
    for _ in range(4):
        batch = each.draw()
        table = each.handed_in(batch)
        table = table[np.isfinite(table).all(axis=1)]
        norms = np.linalg.norm(table, axis=1, keepdims=True)
        mean = (table * np.minimum(1, 1 / norms)).sum(axis=0) / 20
        np.testing.assert_allclose(each.answer(batch), mean, atol=1e-4)
    assert each.spender.ledger.count("gradient") == 4
    with pytest.raises(BudgetExceeded):
        each.draw()


@each_spender
def test_an_empty_batch_is_noise_alone(kind):
    """A thousand coordinates of variance 4 / 0.04^2: within 15 percent but for one in 10^10."""
    empty = planned(sampling_probability=1e-3, noise_multiplier=2.0)
    each = kind(empty, np.ones((N, 1000)), seed=1)
    batch = each.draw()
    assert len(each.handed_in(batch)) == 0
    assert np.std(each.answer(batch)) == pytest.approx(2.0 / 0.04, rel=0.15)
    assert each.spender.ledger.count("gradient") == 1


def test_pieces_of_a_batch_add_up():
    gradients = np.random.default_rng(0).standard_normal((N, 3)) / 9
    oracle = StepwiseOracle(planned(noise_multiplier=1e-4), dimension=3)
    while oracle.remaining("gradient"):
        rows = oracle.draw()
        oracle.add(gradients[rows[:5]])
        oracle.add(gradients[rows[5:]])
        np.testing.assert_allclose(oracle.answer(), gradients[rows].sum(axis=0) / 20, atol=1e-4)


# Gradients of one record: huge, of the wrong sign, not finite, and hardly any.
WILD = [1e30, -1e4, np.nan, np.inf, 1e-3]


@each_spender
@pytest.mark.parametrize("drawn", [{}, {"sampler": "shuffled-epochs", "epoch": 2}])
def test_a_record_moves_an_answer_by_at_most_its_bound_over_the_public_size(kind, drawn):
    """One record's gradient is set to zero; both runs have the same draws and noise of 1e-3."""
    plan = planned(noise_multiplier=1e-3, max_norm=0.5, count=2, **drawn)
    for value in WILD:
        answers = []
        for other in (value, 0.0):
            gradients = np.random.default_rng(0).normal(size=(N, 4)) * 3
            gradients[11] = other
            answers.append(np.array(kind(plan, gradients, seed=8).rest()))
        moved = np.linalg.norm(answers[0] - answers[1], axis=1)
        assert moved.shape == (2,)
        assert moved.max() * 20 <= 0.5 * 1.05, value


@each_spender
def test_a_budget_is_charged_for_the_whole_plan(kind):
    plan = calibrate.dpsgd(n=N, batch_size=10, steps=4, epsilon=1.0, delta=1e-6)
    with dpcal.budget(epsilon=1.2, delta=1e-6) as shared:
        kind(plan).draw()
        with pytest.raises(BudgetExceeded):
            kind(plan)
    assert shared.spent == pytest.approx(plan.price())


# -- turns


@each_spender
def test_turns_are_kept_and_a_batch_that_is_given_up_stays_paid(kind):
    each = kind(planned())
    with pytest.raises(OutOfTurn, match=r"must be drawn before|needs a batch"):
        each.answer(each.nothing)
    each.answer(each.draw())
    with pytest.raises(OutOfTurn, match=r"must be drawn before|needs a batch"):
        each.answer(each.nothing)
    each.draw()  # and an exception before it is answered
    assert each.spender.ledger.count("gradient") == 2
    with pytest.raises(OutOfTurn, match=r"call give_up\(\)\. Its answer stays in the ledger"):
        each.draw()
    each.spender.give_up()
    each.spender.give_up()  # nothing is open
    assert each.spender.ledger.answers == 2
    assert len(each.rest()) == COUNT - 2
    assert each.spender.ledger.answers == COUNT


@each_spender
@pytest.mark.parametrize("between", [False, True], ids=["at rest", "between draw and answer"])
def test_no_copy_of_a_spender_is_made(kind, between):
    each = kind(planned())
    batch = each.draw() if between else None
    for twin in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        with pytest.raises(TypeError, match="must not be copied or pickled"):
            twin(each.spender)
    assert batch is None or each.answer(batch).shape == (3,)


@forks
@pytest.mark.parametrize("kind", [Oracle, Ranked])
def test_a_batch_is_not_answered_in_a_fork_as_well(kind):
    """Both processes would draw the same noise, for gradients that may differ."""
    each = kind(planned())
    batch = each.draw()

    def answers():
        with pytest.raises(NoiseReused, match="made before a fork"):
            each.answer(batch)

    assert os.waitpid(forked(answers), 0)[1] == 0
    assert each.answer(batch).shape == (3,)


@pytest.fixture
def switching_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@each_spender
def test_eight_threads_get_no_more_answers_than_are_paid(kind, switching_often):
    """Each batch is answered once, however threads switch between a draw and its answer."""
    for _ in range(3):
        each, answers = kind(planned()), []

        def work(_, each=each, answers=answers):
            for _ in range(4 * COUNT):
                try:
                    batch = each.draw()
                except (OutOfTurn, ValueError):  # it is another thread's turn, or generator
                    batch = each.nothing
                except BudgetExceeded:
                    return
                # A thread without a batch asks for the answer to another thread's.
                with suppress(OutOfTurn, ValueError, BudgetExceeded):
                    answers.append(each.answer(batch))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(answers) <= each.spender.ledger.answers <= COUNT


def test_no_more_records_are_summed_than_were_drawn_and_no_other_query_is_answered():
    oracle = StepwiseOracle(planned(), dimension=3, seed=6)
    oracle.add(np.ones((len(oracle.draw()), 3)))
    with pytest.raises(OutOfTurn, match="count must be at most 0"):
        oracle.add(np.ones((1, 3)))
    with pytest.raises(ValueError, match="one query of kind 'gradient', got 'scalar'"):
        StepwiseOracle(planned(kind="scalar"), dimension=3)


def test_what_was_broken_off_sums_no_record_twice():
    """Inside of its sum; and the whole batch is added again."""
    oracle = StepwiseOracle(planned(noise_multiplier=1e-9), dimension=1)

    def failing(some, bound):
        raise MemoryError

    rows = oracle.draw()
    with pytest.raises(MemoryError):
        oracle.add_whole(len(rows), failing)
    oracle.add(np.ones((len(rows), 1)))
    off = rounding(1.0, 1, len(rows), 1)
    assert oracle.answer()[0] * N / 2 == pytest.approx(len(rows), rel=0, abs=off)


@pytest.mark.parametrize("kind", [Oracle, Ranked])
def test_records_that_are_held_elsewhere_are_not_asked_by_the_oracle_itself(kind):
    """Rows that it would draw are not those that were handed in: one may be summed many times."""
    each = kind(planned())
    each.answer(each.draw())
    with pytest.raises(TypeError, match="asked by draw, add and answer"):
        each.spender.gradient(np.zeros(3), "gradient")
    assert each.spender.ledger.answers == 1


def test_an_interrupt_while_a_batch_is_drawn_leaves_ranks_at_the_same_step(monkeypatch):
    """Whole batches of an epoch: the step that was broken off is asked again, of the same batch."""
    plan = planned(sampler="shuffled-epochs", epoch=4)
    whole, each = Ranked(plan).spender, Ranked(plan).spender
    each._root = whole._root
    batch_of, broken = RankedOracle._batch_of, []

    def interrupted(self, step):
        rows = batch_of(self, step)
        if self is each and step == 1 and not broken:
            broken.append(step)
            raise KeyboardInterrupt
        return rows

    def batches(oracle):
        while oracle.remaining("gradient") > COUNT - 4 or oracle.drawn:
            with suppress(KeyboardInterrupt):
                yield oracle.draw().tolist()
                oracle.give_up()

    monkeypatch.setattr(RankedOracle, "_batch_of", interrupted)
    assert list(batches(each)) == list(batches(whole))
    assert broken == [1]
    assert each.ledger.answers == 4


# -- states


@stateful
def test_one_state_is_gone_on_from_once_in_a_process(kind):
    """Three spenders from one state have no more answers together than the plan has."""
    first = kind(planned())
    state = first.state()
    first.answer(first.draw())
    for each in (kind(planned()), kind(planned())):
        each.go_on(state)
        with pytest.raises(LedgerMismatch, match="go on from a state once"):
            each.draw()
    last = kind(planned())
    last.go_on(first.state())
    assert len(last.rest()) == COUNT - 1
    if kind is Oracle:
        former = {**first.state(), "noise": "gaussian"}
        with pytest.raises(ValueError, match="Gaussian noise of an earlier release"):
            kind(planned()).go_on(former)


@stateful
def test_correlated_noise_goes_on_after_a_stop_as_if_there_had_been_none(kind):
    """With a seed, noise of all rounds is one matrix product; a stop changes no row of it."""
    plan = planned(LambdaCGD(8, 0.5), sampler="balls-in-bins", separation=4, count=8)
    whole, part = (kind(plan, seed=5) for _ in range(2))
    answers = [part.answer(part.draw()) for _ in range(3)]
    resumed = kind(plan)
    resumed.go_on(part.state())
    np.testing.assert_array_equal(whole.rest(), answers + resumed.rest())
    assert resumed.spender.ledger == whole.spender.ledger
    if kind is not Oracle:
        with pytest.raises(ValueError, match="same plan and number"):
            kind(plan, np.ones((N, 4))).go_on(part.state())


def test_independent_noise_is_not_drawn_twice_after_a_stop():
    """In two processes, of which neither sees what the other one has given."""
    first, second = Oracle(planned(), seed=6), Oracle(planned())
    state = first.state()
    assert state["seed"] is None
    # A state of an earlier version has no name of its run.
    del state["run"]
    second.go_on(state)
    batches = first.draw(), second.draw()
    assert (first.answer(batches[0][:0]) != second.answer(batches[1][:0])).all()
    assert second.spender.remaining("gradient") == COUNT - 1


def test_a_guard_does_not_forget_what_it_released_and_costs_its_whole_plan_as_a_result_does():
    """Whoever leaves a loop early has seen what was released."""
    guard = Guarded()
    guard._oracle = StepwiseOracle(planned(), dimension=3, seed=6)
    start = guard.state_dict()
    assert guard.epsilon(1e-6) == 0
    guard._oracle.draw()
    guard._oracle.answer()
    assert guard.epsilon(1e-6) == guard.plan.price()
    assert guard.ledger.epsilon(1e-6) < 0.9 * guard.plan.price()
    later = guard.state_dict()
    with pytest.raises(LedgerMismatch, match="must hold the 1 answers that this guard has given"):
        guard.load_state_dict(start)
    guard.load_state_dict(later)
    assert guard.ledger.answers == 1
