"""What spends a plan step by step: no copy, no second use of a state, no answer that is not paid.

One contract for oracles and guards. Each is made of a plan, and steps through it.
"""

import copy
import importlib
import json
import pickle
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

from dpcal.adapters.ranks import Alone, RankedOracle
from dpcal.adapters.stepwise import OutOfTurn, StepwiseOracle
from dpcal.calibrate import Plan, Query
from dpcal.errors import BudgetExceeded, LedgerMismatch

N, D, COUNT = 40, 3, 12


def planned(**changes):
    fields = {
        "name": "gradient", "kind": "gradient", "sampler": "poisson", "sampling_probability": 0.5,
        "max_norm": 1.0, "noise_multiplier": 2.0, "count": COUNT, **changes,
    }  # fmt: skip
    return Plan(optimizer="dpsgd", n=N, queries=(Query(**fields),), epsilon=1e3, delta=1e-6)


class Oracle:
    """An oracle as a loop uses it."""

    nothing = ()

    def __init__(self, plan):
        self.spender = self.made(plan)

    def made(self, plan):
        return StepwiseOracle(plan, dimension=D)

    def draw(self):
        return self.spender.draw()

    def answer(self, rows):
        self.spender.add(np.ones((len(rows), D)))
        return self.spender.answer()

    def state(self):
        return self.spender.state()

    def go_on(self, state):
        self.spender = StepwiseOracle.continued(state)


class Ranked(Oracle):
    """The oracle of ranks, with one rank."""

    def made(self, plan):
        return RankedOracle(plan, Alone(), {"w": (D,)}, lambda: b"parameters")


class Optax(Oracle):
    """The guard of JAX."""

    def made(self, plan):
        pytest.importorskip("jax", reason="jax is not installed")
        pytest.importorskip("optax", reason="optax is not installed")
        module = importlib.import_module("dpcal.adapters.optax")
        self.params = np.zeros(D, dtype=np.float32)
        return module.Guard(plan, self.params)

    def answer(self, rows):
        gradients = np.ones((len(rows), D), dtype=np.float32)
        return np.asarray(self.spender.transformation().update(gradients, None)[0])

    def state(self):
        return self.spender.state_dict()

    def go_on(self, state):
        self.spender.load_state_dict(state)


class Torch(Optax):
    """The guard of PyTorch."""

    def made(self, plan):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        self.nothing = torch.zeros(0, D), torch.zeros(0, 1)
        self.records = [(torch.ones(D), torch.zeros(1)) for _ in range(N)]
        model = torch.nn.Linear(D, 1, bias=False)
        module = importlib.import_module("dpcal.adapters.torch")
        return module.Guard(model, plan, loss=torch.nn.functional.mse_loss)

    def draw(self):
        batch = next(self.spender.loader(self.records), None)
        if batch is None:
            raise BudgetExceeded("the loader is at its end")
        return batch

    def answer(self, rows):
        assert self.spender.backward(*rows)
        (weight,) = self.spender.model.parameters()
        return weight.grad.numpy().ravel()


SPENDERS = {each.__name__: each for each in (Oracle, Ranked, Optax, Torch)}
each_spender = pytest.mark.parametrize("kind", SPENDERS.values(), ids=SPENDERS)
stateful = pytest.mark.parametrize("kind", [Oracle, Optax, Torch])


@each_spender
@pytest.mark.parametrize("between", [False, True], ids=["at rest", "between draw and answer"])
@pytest.mark.parametrize(
    "twin", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_no_copy_of_a_spender_is_made(kind, between, twin):
    each = kind(planned())
    rows = each.draw() if between else None
    with pytest.raises(TypeError, match="must not be copied or pickled"):
        twin(each.spender)
    if between:
        assert each.answer(rows).shape == (D,)


@each_spender
def test_eight_threads_get_no_more_answers_than_are_paid(kind):
    """Each batch is answered once, however threads switch between a draw and its answer."""
    for _ in range(3):
        each = kind(planned())
        answers, gate = [], threading.Barrier(8)

        def work(each=each, answers=answers, gate=gate):
            gate.wait()
            for _ in range(4 * COUNT):
                try:
                    rows = each.draw()
                except (OutOfTurn, ValueError):  # it is another thread's turn, or generator
                    rows = each.nothing
                except BudgetExceeded:
                    return
                # A thread without a batch asks for the answer to another thread's.
                with suppress(OutOfTurn, ValueError, BudgetExceeded):
                    answers.append(each.answer(rows))

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        paid = each.spender.ledger.answers
        assert paid <= COUNT
        assert len(answers) <= paid


@stateful
def test_one_state_is_gone_on_from_once_in_a_process(kind):
    """Three spenders from one state have no more answers together than the plan has."""
    first, answers = kind(planned()), 0
    state = json.loads(json.dumps(first.state()))
    for each in (first, kind(planned()), kind(planned())):
        if each is not first:
            each.go_on(state)
        for _ in range(5):
            try:
                rows = each.draw()
            except LedgerMismatch as error:
                assert "go on from a state once" in str(error)  # noqa: PT017
                break
            each.answer(rows)
            answers += 1
    assert answers == 5
    last = kind(planned())
    last.go_on(json.loads(json.dumps(first.state())))
    while True:
        try:
            last.answer(last.draw())
            answers += 1
        except BudgetExceeded:
            break
    assert answers == COUNT


def test_a_state_of_an_earlier_version_is_still_gone_on_from():
    """It has no name of its run."""
    first = StepwiseOracle(planned(), dimension=D)
    first.draw()
    state = {name: each for name, each in first.state().items() if name != "run"}
    assert StepwiseOracle.continued(state).remaining("gradient") == COUNT - 1


@each_spender
def test_after_an_exception_a_batch_is_given_up_and_its_answer_stays_paid(kind):
    each = kind(planned())
    each.answer(each.draw())
    each.draw()  # and an exception before it is answered
    with pytest.raises(OutOfTurn, match=r"call give_up\(\)\. Its answer stays in the ledger"):
        each.draw()
    each.spender.give_up()
    each.spender.give_up()  # nothing is open
    assert each.spender.ledger.answers == 2
    left = 0
    while True:
        try:
            each.answer(each.draw())
            left += 1
        except BudgetExceeded:
            break
    assert left == COUNT - 2
    assert each.spender.ledger.answers == COUNT


def test_a_step_that_was_broken_off_sums_no_record_twice():
    """Half of a batch is added, an interrupt comes, and the whole batch is added again."""
    oracle = StepwiseOracle(planned(noise_multiplier=1e-9), dimension=1, noise="gaussian")
    rows = oracle.draw()
    with pytest.raises(KeyboardInterrupt), oracle.together():  # noqa: PT012
        oracle.add(np.ones((len(rows) // 2, 1)))
        raise KeyboardInterrupt
    oracle.add(np.ones((len(rows), 1)))
    assert oracle.answer()[0] * N / 2 == pytest.approx(len(rows), abs=1e-6)


def test_an_exception_inside_of_a_sum_leaves_the_batch_as_it_was():
    oracle = StepwiseOracle(planned(noise_multiplier=1e-9), dimension=1, noise="gaussian")
    rows = oracle.draw()

    def failing(some, bound):
        raise MemoryError

    with pytest.raises(MemoryError):
        oracle.add_sums(len(rows), failing)
    oracle.add(np.ones((len(rows), 1)))
    assert oracle.answer()[0] * N / 2 == pytest.approx(len(rows), abs=1e-6)


@pytest.mark.parametrize("kind", [Oracle, Ranked])
def test_records_that_are_held_elsewhere_are_not_asked_by_the_oracle_itself(kind):
    """Rows that it would draw are not those that were handed in: one may be summed many times."""
    each = kind(planned())
    each.answer(each.draw())
    with pytest.raises(TypeError, match="asked by draw, add and answer"):
        each.spender.gradient(np.zeros(D), "gradient")
    assert each.spender.ledger.answers == 1


def test_an_interrupt_while_a_batch_is_drawn_leaves_ranks_at_the_same_step(monkeypatch):
    """Whole batches of an epoch: the step that was broken off is asked again, of the same batch."""
    plan = planned(sampler="shuffled-epochs", sampling_probability=None, epoch=4)
    whole, each = Ranked(plan).spender, Ranked(plan).spender
    each._root = whole._root
    expected = []
    for _ in range(4):
        expected.append(whole.draw().tolist())
        whole.give_up()
    broken = []

    def interrupted(self, step, original=RankedOracle._batch_of):
        rows = original(self, step)
        if step == 1 and not broken:
            broken.append(step)
            raise KeyboardInterrupt
        return rows

    monkeypatch.setattr(RankedOracle, "_batch_of", interrupted)
    found = []
    while len(found) < 4:
        with suppress(KeyboardInterrupt):
            found.append(each.draw().tolist())
            each.give_up()
    assert broken == [1]
    assert found == expected
    assert each.ledger.answers == 4
