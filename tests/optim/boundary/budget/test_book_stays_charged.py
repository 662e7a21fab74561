"""A run that was shown stays charged, however it ends, goes on or fails."""

import gc
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dpcal import optim
from dpcal.calibrate import Plan, Query
from dpcal.calibrate.together import price_together
from dpcal.errors import BudgetExceeded, LedgerMismatch
from dpcal.optim.boundary.store import read_ledger

OBJECTIVE = optim.Logistic(np.eye(4)[:, :2], [0, 1, 0, 1], classes_from_data=True)
COUNT = 6
PLAN = Plan(
    optimizer="noisy_gd",
    n=4,
    epsilon=1.0,
    delta=1e-5,
    parameters={"learning_rate": 1.0},
    queries=(
        Query(
            name="gradient",
            kind="gradient",
            sampler="full",
            max_norm=1.0,
            noise_multiplier=20.0,
            count=COUNT,
        ),
    ),
)


# What so many runs of the plan cost; the book admits no more.
PRICES = [
    float(price_together([(PLAN.event, 1e-6)] * runs, delta=1e-5)) * (1 - 1e-9)
    for runs in range(12)
]


def book_in(folder, epsilon=1.3):
    """Return a new book whose total admits a few runs of the plan."""
    return optim.BudgetBook(folder / "book", epsilon=epsilon, delta=1e-5)


def run(book, store, **options):
    """Run the plan in the book, kept by a store."""
    return optim.noisy_gd(OBJECTIVE, PLAN, store=book.with_store(store), **options)


def point(position):
    """Return the point that answer number ``position`` is about."""
    return np.full(OBJECTIVE.dimension, position / 8)


def interrupt_after(count):
    calls = iter(range(count))

    def callback(progress):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return callback


def test_a_run_that_ended_is_not_refunded_by_opening_its_store_again(tmp_path):
    book = book_in(tmp_path)
    run(book, tmp_path / "store")
    spent = float(book.spent())
    book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN).close()
    assert float(book.spent()) == spent > 0
    assert [(each.charged, each.ledger.answers) for each in book.runs] == [(True, COUNT)]


def test_a_run_that_was_killed_is_charged_for_what_its_file_holds(tmp_path):
    book = book_in(tmp_path)
    oracle = book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN)
    for position in range(4):
        oracle.gradient(point(position), "gradient")
    kill(oracle)
    with pytest.raises(ValueError, match="shape"):
        run(book, tmp_path / "store", initial=[1.0])
    assert [(each.charged, each.ledger.answers) for each in book.runs] == [(True, 4)]


def test_an_error_tells_of_all_answers_that_the_file_holds(tmp_path):
    book = book_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(book, tmp_path / "store", callback=interrupt_after(4), callback_every=1)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(book, tmp_path / "store", callback=interrupt_after(1), callback_every=1)
    held = read_ledger(tmp_path / "store").answers
    assert held == 5
    assert optim.released(caught.value).answers == held
    del caught
    gc.collect()
    assert [each.ledger.answers for each in book.runs] == [held]


def test_a_store_that_cannot_be_read_leaves_its_run_charged(tmp_path):
    book = book_in(tmp_path)
    run(book, tmp_path / "store")
    spent = float(book.spent())
    oracle = book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN)
    (tmp_path / "store").unlink()
    with pytest.warns(RuntimeWarning, match="did not end"):
        oracle.close()
    assert float(book.spent()) == spent


def test_the_error_of_a_run_leaves_it_though_its_file_is_gone(tmp_path):
    def lose(progress):
        (tmp_path / "store").unlink()
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        optim.noisy_gd(OBJECTIVE, PLAN, store=tmp_path / "store", callback=lose, callback_every=2)
    assert optim.released(caught.value).answers == 2
    run(book := book_in(tmp_path), tmp_path / "kept", callback=lambda progress: progress.step == 4)
    (tmp_path / "kept").rename(tmp_path / "store")
    with pytest.raises(KeyError, match="lost") as caught:
        run(book, tmp_path / "store", callback=lose, callback_every=2)
    assert optim.released(caught.value).answers == 2


def test_a_run_that_asked_nothing_is_free_once(tmp_path):
    book = book_in(tmp_path)
    book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN).close()
    assert [each.charged for each in book.runs] == [False]
    assert float(book.spent()) == 0


def kill(oracle):
    """End an oracle as SIGKILL would: neither its row nor its waiting answers are written."""
    oracle._ends.detach()
    oracle._file.close()


class Books(RuleBasedStateMachine):
    """Runs of one plan in one book, kept by two stores, opened by one process after another."""

    STORES = st.integers(0, 1)

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.book = book_in(self.folder)
        self.open = {}  # the oracle of each store that is open
        self.asked = {}  # how many answers it gave
        self.shown = {0: 0, 1: 0}  # how many answers of each store were ever shown
        self.gone = 0  # runs that were shown, and whose store is gone

    def teardown(self):
        for oracle in self.open.values():
            kill(oracle)
        shutil.rmtree(self.folder)

    def path(self, k):
        return self.folder / f"store{k}"

    def leave(self, k):
        self.asked.pop(k)
        return self.open.pop(k)

    @rule(k=STORES, every=st.sampled_from([1, 3]), again=st.booleans())
    def start(self, k, every, again):
        """Open a store, as a new process would; a second run takes the file from the first."""
        book = optim.BudgetBook(self.folder / "book") if again else self.book
        try:
            oracle = book.with_store(self.path(k)).oracle(OBJECTIVE, PLAN, every=every)
        except BudgetExceeded:
            return
        if k in self.open:
            kill(self.leave(k))
        self.open[k], self.asked[k] = oracle, 0

    @precondition(lambda self: self.open)
    @rule(data=st.data(), count=st.integers(1, 4))
    def answer(self, data, count):
        k = data.draw(st.sampled_from(sorted(self.open)))
        for _ in range(min(count, COUNT - self.asked[k])):
            self.open[k].gradient(point(self.asked[k]), "gradient")
            self.asked[k] += 1
        self.open[k].flush()
        self.shown[k] = max(self.shown[k], self.asked[k])

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def ask_another_question(self, data):
        k = data.draw(st.sampled_from(sorted(self.open)))
        if self.asked[k] < self.shown[k]:
            with pytest.raises(LedgerMismatch, match="another question"):
                self.open[k].gradient(point(77), "gradient")
            self.leave(k).close()

    @precondition(lambda self: self.open)
    @rule(data=st.data(), how=st.sampled_from(["close", "kill", "drop"]))
    def end(self, data, how):
        oracle = self.leave(data.draw(st.sampled_from(sorted(self.open))))
        if how == "kill":
            kill(oracle)
        elif how == "close":
            oracle.close()
        del oracle
        gc.collect()

    @rule(k=STORES)
    def fail_early(self, k):
        if k in self.open:
            kill(self.leave(k))
        with pytest.raises((ValueError, BudgetExceeded)):
            run(self.book, self.path(k), initial=[1.0])

    @rule(k=STORES, after=st.integers(0, COUNT))
    def interrupt(self, k, after):
        if k in self.open:
            kill(self.leave(k))
        if self.shown[k]:  # it asks other questions than the rules above
            return
        with suppress(KeyboardInterrupt, BudgetExceeded):
            run(self.book, self.path(k), callback=interrupt_after(after), callback_every=1)
        gc.collect()
        if self.path(k).exists():
            self.gone += read_ledger(self.path(k)).answers > 0
            self.path(k).unlink()

    @invariant()
    def nothing_that_was_shown_is_refunded(self):
        shown = self.gone + sum(count > 0 for count in self.shown.values())
        assert sum(each.charged for each in self.book.runs) >= shown
        assert float(self.book.spent()) >= PRICES[shown]

    @invariant()
    def rows_hold_what_was_shown(self):
        ends = [each.ledger.answers for each in self.book.runs if each.ended and each.charged]
        for k, shown in self.shown.items():
            if k not in self.open and shown:
                assert read_ledger(self.path(k)).answers >= shown
        assert all(count > 0 for count in ends)


@pytest.mark.slow
class TestBooks(Books.TestCase):
    settings = settings(max_examples=6, stateful_step_count=15, deadline=None)


@pytest.mark.slow
@pytest.mark.study
class TestBooksLong(Books.TestCase):
    settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
