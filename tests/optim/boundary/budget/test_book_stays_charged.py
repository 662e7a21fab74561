"""A run that was shown stays charged, however it ends, goes on or fails."""

import gc
import multiprocessing
import sqlite3
from contextlib import ExitStack, closing, suppress
from multiprocessing.managers import BaseManager
from unittest import mock

import numpy as np
import pytest
from _stored_runs import OBJECTIVE, D, forks, gaussian, in_memory, interrupted_at
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dpcal import optim
from dpcal.accountants import epsilon, events
from dpcal.errors import BudgetExceeded, LedgerMismatch
from dpcal.optim.boundary.store import read_ledger

COUNT = 6
PLAN = gaussian(20.0, COUNT)
# What so many runs of the plan cost; the book admits no more.
PRICES = [
    float(epsilon(events.SelfComposedDpEvent(PLAN.event, runs), delta=1e-5)) * (1 - 1e-9)
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
    return np.full(D, position / 8)


def rows(book):
    """Return the number of answers of each run."""
    return [each.ledger.answers for each in book.runs]


def test_a_run_that_ended_is_not_refunded_by_opening_its_store_again(tmp_path):
    book = book_in(tmp_path)
    run(book, tmp_path / "store")
    spent = float(book.spent())
    book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN).close()
    assert float(book.spent()) == spent > 0
    assert rows(book) == [COUNT]
    oracle = book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN)
    (tmp_path / "store").unlink()
    with pytest.warns(RuntimeWarning, match="did not end"):
        oracle.close()
    assert float(book.spent()) == spent


def test_a_run_that_was_killed_is_charged_for_what_its_file_holds(tmp_path):
    book = book_in(tmp_path)
    oracle = book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN)
    for position in range(4):
        oracle.gradient(point(position), "gradient")
    kill(oracle)
    # Whoever goes on with it asks nothing.
    book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN).close()
    assert rows(book) == [4]


def test_an_error_tells_of_all_answers_that_the_file_holds(tmp_path):
    book = book_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(book, tmp_path / "store", callback=interrupted_at(4), callback_every=1)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(book, tmp_path / "store", callback=interrupted_at(1), callback_every=1)
    held = read_ledger(tmp_path / "store").answers
    assert held == 5
    assert optim.released(caught.value).answers == held
    del caught
    gc.collect()
    assert [each.ledger.answers for each in book.runs] == [held]


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


@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_run_that_is_opened_twice_before_its_first_answer_is_charged_once(tmp_path, how):
    """A notebook's cell run twice, and two terminals: whoever leaves first frees nothing."""
    book = book_in(tmp_path)
    kept = book.with_store(tmp_path / "store")
    oracle = kept.oracle(OBJECTIVE, PLAN)
    second = kept.oracle(OBJECTIVE, PLAN)
    if how == "close":
        oracle.close()
    oracle = second
    gc.collect()
    for position in range(COUNT):
        oracle.gradient(point(position), "gradient")
    assert float(book.spent()) >= PRICES[1]
    oracle.close()
    assert rows(book) == [COUNT]


def test_a_run_that_goes_on_is_charged_again_where_its_row_is_not(tmp_path):
    """The file was put back to an earlier copy of it."""
    book = book_in(tmp_path)
    kept = book.with_store(tmp_path / "store")
    run(book, tmp_path / "store", callback=lambda progress: True)
    oracle = kept.oracle(OBJECTIVE, PLAN)
    with closing(sqlite3.connect(book.path)) as file, file:
        file.execute("DELETE FROM runs")
    oracle.gradient(np.zeros(D), "gradient")
    assert float(book.spent()) >= PRICES[1]
    oracle._ends.detach()


def test_of_two_runs_that_were_opened_the_first_that_asks_is_answered(tmp_path):
    book = book_in(tmp_path, PRICES[1] * 1.01)
    first, second = (book.oracle(OBJECTIVE, PLAN) for _ in range(2))
    second.gradient(point(0), "gradient")
    with pytest.raises(BudgetExceeded, match="no record was touched"):
        first.gradient(point(0), "gradient")
    assert not first.ledger.entries
    assert len(book.runs) == 1


def test_an_oracle_answers_no_more_once_its_row_has_an_end(tmp_path):
    """The row, and the result, say how many answers there were."""
    book = book_in(tmp_path)
    oracle = book.oracle(OBJECTIVE, PLAN)
    stop = {"callback": lambda progress: progress.step == 3, "callback_every": 1}
    result = optim.noisy_gd(oracle, PLAN, **stop)
    with pytest.raises(LedgerMismatch, match="has ended"):
        oracle.gradient(point(0), "gradient")
    assert [each.ledger.answers for each in book.runs] == [result.ledger.answers] == [3]
    kept = book.with_store(tmp_path / "store").oracle(OBJECTIVE, PLAN)
    kept.close()
    with pytest.raises((LedgerMismatch, ValueError), match="has ended"):
        kept.gradient(point(0), "gradient")


def kill(oracle):
    """End an oracle as SIGKILL would: neither its row nor its waiting answers are written."""
    oracle._ends.detach()
    oracle._kept._file.close()


class Opener:
    """An oracle about a store and a book, and the number of questions that it was asked."""

    def __init__(self, folder, store, every):
        book = optim.BudgetBook(folder / "book")
        self.oracle = book.with_store(folder / store).oracle(OBJECTIVE, PLAN, every=every)
        self.asked = 0

    def answer(self, count):
        """Show up to ``count`` more answers, and return how many were ever shown."""
        for _ in range(min(count, COUNT - self.asked)):
            self.oracle.gradient(point(self.asked), "gradient")
            self.asked += 1
        self.oracle.flush()
        return self.asked

    def ask_another_question(self):
        self.oracle.gradient(point(77), "gradient")

    def end(self, how):
        oracle = self.oracle
        del self.oracle
        if how == "kill":
            kill(oracle)
        elif how == "close":
            oracle.close()
        del oracle
        gc.collect()


class OtherProcess(BaseManager):
    """A forked process with openers of its own, which are called here; it ends by SIGKILL alone."""

    def __init__(self):
        super().__init__(ctx=multiprocessing.get_context("fork"))
        self.start()

    def kill(self):
        self._process.kill()
        self._process.join()


OtherProcess.register("Opener", Opener)


class Books(RuleBasedStateMachine):
    """Runs of one plan in one book, kept by two stores, each opened by several at once.

    Openers live in this process and in another one. The last one owns the store. Those before it
    may show what its file holds, and nothing new.
    """

    STORES = st.sampled_from(["store0", "store1"])

    def __init__(self):
        super().__init__()
        self.kept = ExitStack()
        self.folder = self.kept.enter_context(in_memory())
        self.other = OtherProcess()  # before this process opens a file
        self.book = book_in(self.folder)
        self.open = []  # pairs of a store and an opener, in their order
        self.owner = {}  # the last opener of each store
        self.shown = {"store0": 0, "store1": 0}  # how many answers of each store were ever shown
        self.gone = 0  # runs that were shown, and whose store is gone

    def teardown(self):
        for _, opener in self.open:
            if isinstance(opener, Opener):
                opener.end("kill")
        self.other.kill()
        self.kept.close()

    def drawn(self, data):
        return data.draw(st.sampled_from(self.open))

    def lose(self, pair, how):
        self.open.remove(pair)
        with suppress(LedgerMismatch):  # answers that wait, of one that owns the file no more
            pair[1].end(how)

    @rule(store=STORES, every=st.sampled_from([1, 3]), here=st.booleans())
    def open_it(self, store, every, here):
        """Open a store, beside those that have it open."""
        self.start(store, every, here)

    def start(self, store, every, here):
        self.owner[store] = None
        try:
            opener = (Opener if here else self.other.Opener)(self.folder, store, every)
        except BudgetExceeded:
            return
        self.open.append((store, opener))
        self.owner[store] = opener

    @rule(store=STORES, here=st.booleans(), how=st.sampled_from(["close", "drop"]))
    def open_twice_and_end_the_first(self, store, here, how):
        """Run a notebook's cell twice, or give a command up that runs elsewhere too."""
        first = len(self.open)
        self.start(store, 1, here)
        self.start(store, 1, True)
        if len(self.open) == first + 2:
            self.lose(self.open[first], how)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), count=st.integers(1, 4))
    def answer(self, data, count):
        store, opener = pair = self.drawn(data)
        try:
            shown = opener.answer(count)
        except LedgerMismatch:
            assert self.owner[store] is not opener
            self.lose(pair, "close")
            return
        self.shown[store] = max(self.shown[store], shown)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def ask_another_question(self, data):
        store, opener = pair = self.drawn(data)
        if self.shown[store] == COUNT:
            with pytest.raises((LedgerMismatch, BudgetExceeded)):
                opener.ask_another_question()
            self.lose(pair, "close")

    @precondition(lambda self: self.open)
    @rule(data=st.data(), how=st.sampled_from(["close", "kill", "drop"]))
    def end(self, data, how):
        self.lose(self.drawn(data), how)

    @rule()
    def kill_the_other_process(self):
        self.open = [pair for pair in self.open if isinstance(pair[1], Opener)]
        self.other.kill()
        self.other = OtherProcess()

    @rule(store=STORES)
    def fail_early(self, store):
        self.owner[store] = None

        def fail(*given, **options):
            raise ValueError

        opened = mock.patch("dpcal.optim.driver.Run.__enter__", fail)
        with opened, pytest.raises((ValueError, BudgetExceeded)):
            run(self.book, self.folder / store)
        gc.collect()

    @rule(store=STORES, after=st.integers(0, COUNT))
    def interrupt(self, store, after):
        """Run a new run up to an interruption, and remove its file."""
        if self.shown[store]:  # it asks other questions than the rules above
            return
        for pair in [each for each in self.open if each[0] == store]:
            self.lose(pair, "kill")
        with suppress(KeyboardInterrupt, BudgetExceeded):
            path = self.folder / store
            run(self.book, path, callback=interrupted_at(after), callback_every=1)
        gc.collect()
        if path.exists():
            self.gone += read_ledger(path).answers > 0
            path.unlink()

    @invariant()
    def nothing_that_was_shown_is_refunded(self):
        shown = self.gone + sum(count > 0 for count in self.shown.values())
        assert len(self.book.runs) >= shown
        assert float(self.book.spent()) >= PRICES[shown]

    @invariant()
    def files_hold_what_was_shown(self):
        for store, shown in self.shown.items():
            if shown:
                assert read_ledger(self.folder / store).answers >= shown

    @invariant()
    def no_row_is_without_an_answer(self):
        assert all(each.ledger.answers for each in self.book.runs if each.ended)


@pytest.mark.slow
@forks
class TestBooks(Books.TestCase):
    settings = settings(max_examples=8, stateful_step_count=12, deadline=None)


@pytest.mark.slow
@pytest.mark.study
@forks
class TestBooksLong(Books.TestCase):
    settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
