"""Budget books where something goes wrong, or another writer comes between."""

import contextlib
import copy
import gc
import json
import os
import pickle
import sqlite3

import numpy as np
import pytest
from _stored_runs import OBJECTIVE, ask, gaussian, interrupted_at

import dpcal
from dpcal import optim
from dpcal.accountants import correlated, events, matrix
from dpcal.errors import LedgerMismatch, NoiseReused, UnsupportedEvent
from dpcal.optim import BudgetBook, Ledger

ORIGIN = np.zeros(OBJECTIVE.dimension)
DELTA = 1e-6


@pytest.fixture
def make(tmp_path):
    """Make a book, or open it again."""

    def make(epsilon=None, name="clinic.budget", **options):
        return BudgetBook(tmp_path / name, epsilon=epsilon, delta=DELTA, **options)

    return make


def edit(book, statement, *values):
    """Change the book's file behind its back."""
    with contextlib.closing(sqlite3.connect(book.path)) as file, file:
        file.execute(statement, values)


def first_comes(book, work, monkeypatch):
    """Let another writer do some work after the book was read for the first time."""
    read, waiting = book._file.snapshot, [work]

    def snapshot(*words, **options):
        found = read(*words, **options)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(book._file, "snapshot", snapshot)


def test_the_state_of_a_run_is_told_in_words(make):
    book = make(9.0)
    ask(book, gaussian(40.0))
    book.oracle(OBJECTIVE, gaussian(40.0))
    gc.collect()
    with dpcal.budget(book=book.path) as shared:
        shared.pay(events.GaussianDpEvent(40.0), "add-or-remove-one")
    oracle = book.oracle(OBJECTIVE, gaussian(40.0, count=2))
    assert [run.state for run in book.runs] == [
        "all 1 planned answers",
        "ended before its first answer, free",
        "charged whole",
        "goes on, or was killed",
    ]
    oracle.gradient(ORIGIN, "gradient")
    del oracle
    gc.collect()
    assert book.runs[-1].state == "1 of 2 planned answers"


def test_nothing_is_left_where_the_total_is_spent(make):
    """The filter holds no noise, however large, beside a run that takes the whole total."""
    book = make(1.0, composition="gdp")
    low, high = 1.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        try:
            book.check(gaussian(middle))
            high = middle
        except dpcal.errors.BudgetExceeded:
            low = middle
    ask(book, gaussian(high))
    assert 0 <= book.left() < 1e-6


def test_a_store_goes_on_with_its_own_plan_alone(make, tmp_path):
    book, plan = make(9.0), gaussian(40.0, count=30)
    kept = book.with_store(tmp_path / "run.db")
    with pytest.raises(KeyboardInterrupt):
        optim.noisy_gd(OBJECTIVE, plan, store=kept, callback=interrupted_at(2), callback_every=1)
    gc.collect()
    edit(book, "UPDATE runs SET plan = ?", gaussian(80.0, count=30).to_json())
    with pytest.raises(LedgerMismatch, match="run 1 in the budget book has another plan"):
        optim.noisy_gd(OBJECTIVE, plan, store=kept)


def test_a_charge_sees_what_another_writer_charged_meanwhile(make, monkeypatch):
    book, other = make(1.0), make()
    half = events.GaussianDpEvent(7.0)

    def pay(which):
        with dpcal.budget(book=which.path) as shared:
            shared.book = which
            shared.pay(half, "add-or-remove-one")

    pay(other)
    first_comes(book, lambda: pay(other), monkeypatch)
    # Two of these answers fit, and three do not: the third one's first look saw a single one.
    with pytest.raises(dpcal.errors.BudgetExceeded):
        pay(book)
    assert len(other.runs) == 2
    assert other.spent() <= 1.0


def test_a_row_that_is_completed_meets_another_writer(make, monkeypatch):
    book, other = make(9.0), make()
    oracle = ask(book, gaussian(40.0))
    first_comes(book, lambda: other.change_total(epsilon=8.0), monkeypatch)
    del oracle
    gc.collect()
    assert other.runs[0].state == "all 1 planned answers"
    assert other.epsilon == 8.0


def test_a_ledger_that_is_sent_elsewhere_is_an_ordinary_one(make):
    book = make(9.0)
    oracle = ask(book, gaussian(40.0, count=2))
    there = pickle.loads(pickle.dumps(oracle.ledger))
    assert type(there) is Ledger
    assert there == oracle.ledger
    assert there != there.entries


def test_another_process_neither_answers_nor_completes_the_row(make, monkeypatch):
    book = make(9.0)
    oracle = ask(book, gaussian(40.0, count=2))
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(NoiseReused, match="made before a fork"):
            oracle.gradient(ORIGIN, "gradient")
        del oracle
        gc.collect()
    assert book.runs[0].state == "goes on, or was killed"


def test_the_budget_of_a_book_is_its_content(make):
    book = make(2.0)
    ask(book, gaussian(30.0, group_size=2))
    with dpcal.budget(book=book.path) as shared:
        assert shared.group_size == 2
        before = shared.spent
        event = events.GaussianDpEvent(40.0)
        shared.check(event, "add-or-remove-one", group_size=2)
        with pytest.raises(dpcal.errors.BudgetExceeded):
            shared.check(events.GaussianDpEvent(1.0), "add-or-remove-one")
        assert shared.spent == before
        assert len(book.runs) == 1
        whole = dpcal.epsilon(shared.event, delta=DELTA)
        assert float(whole) == pytest.approx(before, rel=1e-12)
    assert copy.copy(shared) is copy.deepcopy(shared) is shared


def test_a_budget_in_memory_is_one_event_for_the_largest_person():
    with dpcal.budget(epsilon=2.0, delta=DELTA) as budget:
        budget.pay(events.GaussianDpEvent(30.0), "add-or-remove-one", group_size=2)
        budget.pay(events.GaussianDpEvent(60.0), "add-or-remove-one")
    # For a person of two records the second answer counts as one of half its noise.
    alike = events.ComposedDpEvent([events.GaussianDpEvent(30.0), events.GaussianDpEvent(30.0)])
    assert dpcal.epsilon(budget.event, delta=DELTA) == pytest.approx(
        float(dpcal.epsilon(alike, delta=DELTA)), rel=1e-9
    )
    assert copy.copy(budget) is copy.deepcopy({"one": budget})["one"] is budget


def test_an_event_that_is_not_made_of_numbers_is_not_charged(make):
    strategy, sampler = matrix.LambdaCGD(steps=10, decay=0.5), correlated.Poisson(0.1)
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, 40.0, draws=2000, seed=0)
    book = make(9.0)
    with (
        dpcal.budget(book=book.path) as shared,
        pytest.raises(UnsupportedEvent, match="made of numbers"),
    ):
        shared.pay(event, "add-or-remove-one")
    assert book.runs == ()


def test_arrays_are_records_too(make):
    table = np.arange(6.0).reshape(3, 2)
    book = make(2.0, records=table)
    make(records=table.copy(order="F"))
    for other in (table + 1, table.reshape(2, 3), table.astype(np.float32)):
        with pytest.raises(ValueError, match="got others in 'arrays'"):
            make(records=other)
    with pytest.raises(TypeError, match="an array of numbers"):
        make(records=np.array([object()]))
    assert [name for name, _ in book.records] == ["arrays"]


def test_a_file_that_is_not_a_book_is_one_sentence(make):
    book = make(2.0)
    ask(book, gaussian(40.0))
    for statement, told in (
        ("UPDATE runs SET plan = '{'", "budget book is damaged, a run in it has no plan"),
        (
            "UPDATE book SET value = 'dpcal budget book 99' WHERE name = 'format'",
            "of format 'dpcal budget book 1', got 'dpcal budget boo",
        ),
        ("DROP TABLE totals", r"must be a budget book: no such table: totals\."),
    ):
        edit(book, statement)
        with pytest.raises(ValueError, match=told):
            book.spent()
    book.path.unlink()
    with pytest.raises(ValueError, match="There is no budget book"):
        book.spent()
    os.mkfifo(book.path)
    with pytest.raises(ValueError, match="must be a budget book"):
        book.spent()


def test_a_write_that_fails_leaves_nothing(make):
    book = make(2.0)
    file, version = book._file, book._file.snapshot().version
    total = ("INSERT INTO totals VALUES (2, 'then', 3.0, 1e-6)", ())
    with pytest.raises(OSError, match=r"cannot be read or written: .*syntax"):
        file.write(version, total, ("INSERT nowhere", ()))
    with pytest.raises(ValueError, match="no such table: elsewhere"):
        file.write(version, total, ("INSERT INTO elsewhere VALUES (1)", ()))
    with pytest.raises(sqlite3.IntegrityError):
        file.write(version, total, total)
    assert file.snapshot().version == version
    assert json.loads(json.dumps(book.to_dict()))["total"] == {"epsilon": 2.0, "delta": DELTA}
