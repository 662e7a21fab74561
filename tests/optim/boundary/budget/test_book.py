"""Budget books: nothing is answered that the book does not hold, and no total is overrun."""

import contextlib
import dataclasses
import gc
import json
import math
import os
import pickle
import random
import resource
import signal
import sqlite3
import stat
import struct

import numpy as np
import pytest
from _integrals import gaussian_delta
from _stored_runs import (
    OBJECTIVE,
    SAMPLED,
    D,
    N,
    ask,
    forked,
    forks,
    gaussian,
    in_memory,
    interrupted_at,
    killed,
    struck,
)
from scipy.optimize import brentq

import dpcal
from dpcal import accountants, calibrate, optim
from dpcal.accountants import correlated, events, matrix
from dpcal.errors import BudgetExceeded, LedgerMismatch, NoiseReused, UnsupportedEvent
from dpcal.optim import BudgetBook, Ledger
from dpcal.optim.budget import in_use

ORIGIN = np.zeros(D)
DELTA = 1e-6


def epsilon_of_mu(mu, delta=DELTA):
    """Closed form of the Gaussian mechanism."""
    return brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0, 200, xtol=1e-13)


@pytest.fixture
def make(tmp_path):
    """Make a book, or open it again."""

    def make(epsilon=None, delta=DELTA, name="clinic.budget", **options):
        return BudgetBook(tmp_path / name, epsilon=epsilon, delta=delta, **options)

    return make


def test_it_admits_what_composes_exactly_to_the_total_and_nothing_more(make):
    """k answers with noise sigma are one with noise sigma / sqrt(k), whose epsilon is known."""
    total = epsilon_of_mu(math.sqrt(3) / 4.0)
    book = make(total * (1 + 1e-9))
    for _ in range(3):
        ask(book)
    with pytest.raises(BudgetExceeded, match="no record was touched"):
        book.oracle(OBJECTIVE, gaussian())
    gc.collect()
    assert book.spent() == pytest.approx(total, rel=1e-9)
    assert book.left() < 1e-4  # the billionth that the total is above them
    assert len(book.runs) == 3
    assert book.spent_whatever_was_chosen() > book.spent()


def filled(book, rows):
    """Write so many rows of two kinds, without pricing them."""
    plans = [gaussian(400.0).to_json(), gaussian(500.0).to_json()]
    start = len(book.runs)
    lines = [
        (start + number + 1, "x", "then", plans[number % 3 == 0], None, None, "then", None)
        for number in range(rows)
    ]
    with contextlib.closing(sqlite3.connect(book.path)) as file, file:
        file.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", lines)
    return book


@pytest.mark.parametrize("composition", ["exact", "gdp"])
def test_equal_rows_cost_together_what_they_cost_one_by_one(make, composition):
    book = filled(make(9.0, composition=composition), 31)
    mu = math.sqrt(20 / 400**2 + 11 / 500**2)
    assert book.spent() == pytest.approx(epsilon_of_mu(mu), rel=1e-9)
    ask(book, gaussian(3.0))
    assert book.spent() == pytest.approx(epsilon_of_mu(math.hypot(mu, 1 / 3)), rel=1e-9)
    assert book.runs[-1].number == 32
    total = epsilon_of_mu(mu) * (1 + 1e-9)
    full = filled(make(total, name="full.budget", composition=composition), 31)
    with pytest.raises(BudgetExceeded):
        full.check(gaussian(300.0))


def test_a_charge_hardly_depends_on_the_number_of_rows(make):
    """Calls at 10,000 rows beside 10 rows: no plan of a row is read again."""

    def calls(book):
        return struck(lambda: book.oracle(OBJECTIVE, gaussian(300.0)))

    calls(make(99.0, name="first.budget"))  # loads what is kept
    few, many = (calls(filled(make(99.0, name=f"{rows}.budget"), rows)) for rows in (10, 10_000))
    assert many < 1.5 * few + 100


def mu_of_epsilon(epsilon):
    return brentq(lambda mu: epsilon_of_mu(mu) - epsilon, 1e-3, 2)


@pytest.mark.parametrize("composition", ["exact", "gdp"])
def test_what_is_left_fits_and_a_little_more_does_not(make, composition):
    book = make(2.0, composition=composition)
    ask(book)
    left = math.sqrt(mu_of_epsilon(2.0) ** 2 - 1 / 16)
    assert book.left() == pytest.approx(epsilon_of_mu(left), rel=1e-5)
    book.check(gaussian(1 / left * (1 + 1e-6)))
    with pytest.raises(BudgetExceeded):
        book.check(gaussian(1 / left * (1 - 1e-6)))


def test_nothing_is_left_where_the_total_is_spent(make, monkeypatch):
    """The filter holds no noise, however large, beside a run that takes the whole total."""
    book, low, high = make(1.0, composition="gdp"), 1.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        try:
            book.check(gaussian(middle))
            high = middle
        except BudgetExceeded:
            low = middle
    ask(book, gaussian(high))
    assert 0 <= book.left() < 1e-6
    monkeypatch.setattr(accountants.PrivacyFilter, "remaining", 0.0)
    assert book.left() == 0


def test_a_renyi_book_pays_at_an_order_that_its_first_run_fixed(make):
    """The filter's own rule: divergences of one order add up to at most its budget."""
    book = make(2.0, composition="renyi")
    paid = 0
    with contextlib.suppress(BudgetExceeded):
        for _ in range(99):
            ask(book)
            paid += 1
    # The order is the best for Gaussian answers; an exact book admits as many or more.
    sigma, orders = 4.0, np.linspace(1.01, 200, 20_000)
    conversion = np.log1p(-1 / orders) - np.log(DELTA * orders) / (orders - 1)
    best = np.max((2.0 - conversion) / (orders / (2 * sigma**2)))
    assert paid == math.floor(best)
    assert 0 < book.left() < epsilon_of_mu(1 / 4.0)


def test_a_filter_refuses_what_its_theorem_does_not_cover(make):
    book = make(2.0, composition="gdp")
    with pytest.raises(UnsupportedEvent, match="Gaussian mechanisms only"):
        book.oracle(OBJECTIVE, SAMPLED)
    assert book.runs == ()
    ask(book, gaussian(40.0))
    with pytest.raises(UnsupportedEvent, match="at most 3 training records"):
        book.check(gaussian(40.0, group_size=3))
    with pytest.raises(ValueError, match="fixed before its first run"):
        book.change_total(epsilon=3.0)


def test_a_ledger_that_is_sent_elsewhere_is_an_ordinary_one(make):
    ledger = ask(make(9.0)).ledger
    there = pickle.loads(pickle.dumps(ledger))
    assert (type(there), there) == (Ledger, ledger)


def test_a_run_that_asked_nothing_is_free_and_can_ask_nothing_later(make):
    book = make(2.0)
    oracle = book.oracle(OBJECTIVE, gaussian(), seed=1)
    oracle.close()
    assert book.runs == ()
    assert book.spent() == 0
    with pytest.raises(LedgerMismatch, match="has ended"):
        oracle.gradient(ORIGIN, "gradient")
    ask(book, seed=1)


def test_a_seed_that_the_book_has_seen_is_refused_for_any_plan(make):
    book = make(9.0)
    ask(book, seed=7)
    for sigma in (4.0, 5.0):
        with pytest.raises(NoiseReused, match="has seen this seed"):
            make().oracle(OBJECTIVE, gaussian(sigma), seed=7)
    for seed in (8, None, None):
        ask(make(), seed=seed)


def test_a_run_that_goes_on_from_its_store_is_charged_once(make, tmp_path):
    book, plan = make(9.0), gaussian(8.0, 30)
    whole = optim.noisy_gd(OBJECTIVE, plan, seed=3)
    for calls, every in ((2, 1), (5, 4), (99, 4)):
        given = {"callback": interrupted_at(calls), "callback_every": 1, "store_every": every}
        with contextlib.suppress(KeyboardInterrupt):
            store = book.with_store(tmp_path / "run.db")
            result = optim.noisy_gd(OBJECTIVE, plan, seed=3, store=store, **given)
        gc.collect()
    (run,) = book.runs
    assert run.ledger == result.ledger == whole.ledger
    assert result.w.tobytes() == whole.w.tobytes()
    with pytest.raises(NoiseReused):
        optim.noisy_gd(OBJECTIVE, plan, seed=3, store=book.with_store(tmp_path / "other.db"))
    with pytest.raises(ValueError, match=r"give book\.with_store"):
        optim.noisy_gd(OBJECTIVE, plan, store=book, store_every=4)


def test_a_book_is_about_its_records_its_relation_and_its_total(make, tmp_path):
    table = tmp_path / "patients.csv"
    table.write_text("a,b\n1,2\n")
    book = make(2.0, records=table, neighboring_relation="add-or-remove-one")
    assert book.records[0][0] == "patients.csv"
    make(records=str(table))
    table.write_text("a,b\n1,3\n")
    with pytest.raises(ValueError, match=r"got others in 'patients\.csv'"):
        make(records=table)
    book.add_records(table)
    make(2.0, records=table)
    with pytest.raises(ValueError, match="epsilon must be that of budget book"):
        make(3.0)
    with pytest.raises(UnsupportedEvent, match="relation of budget book"):
        book.oracle(OBJECTIVE, gaussian(relation="replace-one"))
    with pytest.raises(ValueError, match="needs its total"):
        BudgetBook(tmp_path / "none.budget")
    assert not (tmp_path / "none.budget").exists()
    with pytest.raises(ValueError, match="must be a budget book"):
        BudgetBook(table)
    assert stat.S_IMODE(book.path.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clinic.budget", "patients.csv"]


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


@pytest.mark.parametrize("composition", ["exact", "gdp"])
def test_a_changed_total_is_kept_beside_the_former_one(make, composition):
    book = make(1.0, composition=composition)
    with pytest.raises(BudgetExceeded):
        book.check(gaussian())
    book.change_total(epsilon=2.0)
    ask(book)
    book.change_total(epsilon=2.0, delta=DELTA)
    book.change_total()
    assert [total[1:] for total in book.totals] == [(1.0, DELTA), (2.0, DELTA)]


@forks
def test_a_forked_process_asks_nothing_on_its_parents_row(make):
    oracle = make(2.0).oracle(OBJECTIVE, gaussian())

    def asks():
        nonlocal oracle
        with contextlib.suppress(NoiseReused):
            oracle.gradient(ORIGIN, "gradient")
            return 1
        del oracle
        gc.collect()
        return 0

    assert os.waitpid(forked(asks), 0)[1] == 0
    assert make().runs == ()
    oracle.gradient(ORIGIN, "gradient")
    assert make().runs[0].state == "goes on, or was killed"


@forks
def test_processes_at_once_never_overrun_the_total(make):
    """Ten processes ask for a run each, four fit: four are admitted, whoever comes first."""
    make(epsilon_of_mu(math.sqrt(4) / 4.0) * (1 + 1e-9))
    reader, writer = os.pipe()

    def asks():
        with contextlib.suppress(BudgetExceeded):
            ask(make())
            os.write(writer, b"x")

    children = [forked(asks) for _ in range(10)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert len(pipe.read()) == 4
    assert len(make().runs) == 4


@pytest.mark.slow
@forks
@pytest.mark.parametrize("kills", [40, pytest.param(400, marks=pytest.mark.study)])
def test_killed_at_any_moment_it_answers_nothing_that_the_book_does_not_hold(kills):
    """A child makes one run after another, and tells of every answer after it has it."""

    def run(path, number, tell):
        oracle = ask(BudgetBook(path), gaussian(40.0, number=number))
        tell(struct.pack("<q", number))
        if number % 2:
            oracle.close()

    def runs(tell, path, first):
        for number in range(first, first + 3):
            run(path, number, tell)

    answered, held, alive = set(), set(), 0
    # A run costs more calls the more rows of other plans its book holds.
    for part in range(kills // 40):
        with in_memory() as folder:
            path = folder / "clinic.budget"
            book = BudgetBook(path, epsilon=1e3, delta=DELTA)
            number = 10_000 * part
            run(path, number, len)  # what is loaded and kept once is no moment of later runs
            chance = random.Random(part)
            moments = struck(lambda where=path, last=number + 1: run(where, last, len))
            answered |= {number, number + 1}
            for first in range(number + 10, number + 410, 10):
                told = killed(runs, chance.randint(1, 4 * moments), path, first)
                answered |= {number for (number,) in struct.iter_unpack("<q", told)}
                alive += len(told) > 0
            held |= {each.plan.parameters["number"] for each in book.runs}
    assert answered <= held
    assert kills / 4 < alive  # kills hit runs, and not only their beginning
    assert len(held) <= len(answered) + kills


@forks
def test_on_a_full_disk_nothing_is_answered_and_the_book_stays_readable(make):
    """The child's files may grow by little more than the book has, so that writes fail."""
    book = make(9.0)
    ask(book, seed=1)
    gc.collect()

    def asks():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            ask(make())
        except OSError as error:
            return 0 if "cannot be read or written" in str(error) else 2
        return 1

    assert os.waitpid(forked(asks), 0)[1] == 0
    assert len(make().runs) == 1
    ask(book)
    assert len(book.runs) == 2


def test_correlated_noise_costs_what_its_composition_costs(make):
    """A run on random batches composes with other runs, and costs less than its price added."""
    plan = calibrate.correlated_dpsgd(
        matrix.LambdaCGD(10, 0.5), n=N, batch_size=20, statistics=False, epsilon=4.0, delta=1e-6
    )
    book = make(20.0, 1e-5)
    ask(book, plan)
    assert float(book.spent()) <= plan.price().upper
    ask(book)
    for number in (1, 2):
        rest = epsilon_of_mu(1 / 4.0, 1e-5 - number * 1e-6)
        added = number * plan.price().upper + rest
        assert max(rest, plan.price(1e-5).upper) < book.spent().upper < added
        ask(book, plan)


# -- where something goes wrong, or another writer comes between


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
    gc.collect()
    with dpcal.budget(book=book.path) as shared:
        shared.pay(events.GaussianDpEvent(40.0), "add-or-remove-one")
    oracle = ask(book, gaussian(40.0, count=2))
    assert [run.state for run in book.runs] == [
        *("all 1 planned answers", "charged whole", "goes on, or was killed")
    ]
    del oracle
    gc.collect()
    assert book.runs[-1].state == "1 of 2 planned answers"


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
    with pytest.raises(BudgetExceeded):
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


def test_the_budget_of_a_book_is_its_content(make):
    book = make(2.0)
    ask(book, gaussian(30.0, group_size=2))
    with dpcal.budget(book=book.path) as shared:
        assert shared.group_size == 2
        before = shared.spent
        with pytest.raises(BudgetExceeded):
            shared.pay(events.GaussianDpEvent(1.0), "add-or-remove-one")
        assert shared.spent == before
        assert len(book.runs) == 1
        whole = dpcal.epsilon(shared.event, delta=DELTA)
        assert float(whole) == pytest.approx(before, rel=1e-12)
        plan = dataclasses.replace(gaussian(40.0), delta=DELTA / 2)
        optim.noisy_gd(OBJECTIVE, plan, learning_rate=0.1)
    assert book.runs[-1].plan == plan


def test_a_budget_in_memory_is_one_event_for_the_largest_person():
    with dpcal.budget(epsilon=2.0, delta=DELTA) as budget:
        budget.pay(events.GaussianDpEvent(30.0), "add-or-remove-one", group_size=2)
        budget.pay(events.GaussianDpEvent(60.0), "add-or-remove-one")
    # For a person of two records the second answer counts as one of half its noise.
    alike = events.ComposedDpEvent([events.GaussianDpEvent(30.0), events.GaussianDpEvent(30.0)])
    whole = pytest.approx(float(dpcal.epsilon(alike, delta=DELTA)), rel=1e-9)
    assert float(dpcal.epsilon(budget.event, delta=DELTA)) == whole
    assert budget.spent == whole
    assert in_use() == ()


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


def test_a_file_that_is_not_a_book_is_one_sentence(make):
    book = make(2.0)
    edit(book, "UPDATE about SET value = 'dpcal budget book 99' WHERE name = 'format'")
    with pytest.raises(ValueError, match="of format 'dpcal budget book 2', got 'dpcal budget boo"):
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
    with pytest.raises(ValueError, match="is damaged, UNIQUE"):
        file.write(version, total, total)
    assert file.snapshot().version == version
    assert json.loads(json.dumps(book.to_dict()))["total"] == {"epsilon": 2.0, "delta": DELTA}


def test_what_is_read_of_a_damaged_or_closed_file_is_one_sentence(make):
    book = make(2.0)
    file = book._file.connect()
    file.close()
    with pytest.raises(ValueError, match="is closed"), book._file.named():
        file.execute("SELECT * FROM about")
    with pytest.raises(ValueError, match="no UTF-8"), book._file.named():
        b"\xff".decode()
    edit(book, "UPDATE about SET value = 'ab' WHERE name = 'key'")
    with pytest.raises(ValueError, match="its key has another length"):
        book.spent()
