"""Budget books: nothing is answered that the book does not hold, and no total is overrun."""

import contextlib
import gc
import math
import os
import random
import resource
import signal
import sqlite3
import stat
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from _stored_runs import OBJECTIVE, OPTIMIZERS, TARGET, N, gaussian, interrupted_at, plan_of
from scipy.optimize import brentq
from scipy.stats import norm

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.errors import BudgetExceeded, LedgerMismatch, NoiseReused, UnsupportedEvent
from dpcal.optim import BudgetBook

ORIGIN = np.zeros(OBJECTIVE.dimension)
DELTA = 1e-6
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def epsilon_of_mu(mu, delta=DELTA):
    """Closed form of the Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""

    def excess(epsilon):
        tail = np.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        return norm.cdf(mu / 2 - epsilon / mu) - tail - delta

    return brentq(excess, 0, 200, xtol=1e-13)


@pytest.fixture
def make(tmp_path):
    """Make a book, or open it again."""

    def make(epsilon=None, delta=DELTA, name="clinic.budget", **options):
        return BudgetBook(tmp_path / name, epsilon=epsilon, delta=delta, **options)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("fits", [1, 3])
def test_it_admits_what_composes_exactly_to_the_total_and_nothing_more(make, fits):
    """k answers with noise sigma are one with noise sigma / sqrt(k), whose epsilon is known."""
    total = epsilon_of_mu(math.sqrt(fits) / 4.0)
    book = make(total * (1 + 1e-9))
    for _ in range(fits):
        book.oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
    with pytest.raises(BudgetExceeded, match="no record was touched"):
        book.oracle(OBJECTIVE, gaussian())
    gc.collect()
    assert book.spent() == pytest.approx(total, rel=1e-9)
    assert book.left() < 1e-4  # the billionth that the total is above them
    assert [run.charged for run in book.runs] == [True] * fits
    assert book.spent_whatever_was_chosen() > book.spent()


def filled(book, rows):
    """Write so many rows of two kinds, and two rows that are free, without pricing them."""
    plans = [gaussian(400.0).to_json(), gaussian(500.0).to_json()]
    start = len(book.runs)
    lines = [
        (start + number + 1, "x", "then", plans[number % 3 == 0], None, None, "then", None, free)
        for number, free in enumerate([0] * rows + [1, 1])
    ]
    with contextlib.closing(sqlite3.connect(book.path)) as file, file:
        file.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", lines)
    return book


@pytest.mark.parametrize("composition", ["exact", "gdp"])
def test_equal_rows_cost_together_what_they_cost_one_by_one(make, composition):
    book = filled(make(9.0, composition=composition), 31)
    mu = math.sqrt(20 / 400**2 + 11 / 500**2)
    assert book.spent() == pytest.approx(epsilon_of_mu(mu), rel=1e-9)
    book.oracle(OBJECTIVE, gaussian(3.0)).gradient(ORIGIN, "gradient")
    assert book.spent() == pytest.approx(epsilon_of_mu(math.hypot(mu, 1 / 3)), rel=1e-9)
    assert book.runs[-1].number == 34


def test_a_charge_hardly_depends_on_the_number_of_rows(make):
    """Calls at 10,000 rows beside 10 rows: no plan of a row is read again."""

    def calls(book):
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            book.oracle(OBJECTIVE, gaussian(300.0))
        finally:
            sys.setprofile(None)
        return count

    few, many = (calls(filled(make(99.0, name=f"{rows}.budget"), rows)) for rows in (10, 10_000))
    assert many < 1.5 * few + 100


def test_what_is_left_fits_and_a_little_more_does_not(make):
    book = make(2.0)
    book.oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
    mu = brentq(lambda mu: epsilon_of_mu(mu) - 2.0, 1e-3, 2)
    left = math.sqrt(mu**2 - 1 / 16)
    assert book.left() == pytest.approx(epsilon_of_mu(left), rel=1e-5)
    book.check(gaussian(1 / left * (1 + 1e-6)))
    with pytest.raises(BudgetExceeded):
        book.check(gaussian(1 / left * (1 - 1e-6)))


def test_a_renyi_book_pays_at_an_order_that_its_first_run_fixed(make):
    """The filter's own rule: divergences of one order add up to at most its budget."""
    book = make(2.0, composition="renyi")
    paid = 0
    with contextlib.suppress(BudgetExceeded):
        for _ in range(99):
            book.oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
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
        book.oracle(OBJECTIVE, plan_of("dpsgd"))
    assert book.runs == ()
    book.oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
    with pytest.raises(ValueError, match="fixed before its first run"):
        book.change_total(epsilon=3.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_takes_a_book_and_completes_its_row(make, name):
    plan = plan_of(name)
    book = make(5.0, plan.delta, neighboring_relation=plan.neighboring_relation)
    result = getattr(optim, name)(OBJECTIVE, plan, seed=5, store=book)
    (run,) = book.runs
    assert run.plan == plan
    assert run.ledger == result.ledger
    assert book.spent() == pytest.approx(plan.price().upper, rel=1e-9)
    assert book.spent(1e-9) == pytest.approx(plan.price(1e-9).upper, rel=1e-9)
    direct = getattr(optim, name)(OBJECTIVE, plan, seed=5)
    assert result.w.tobytes() == direct.w.tobytes()


@pytest.mark.slow
def test_an_interrupted_run_keeps_its_row_its_ledger_and_its_whole_cost(make):
    book = make(9.0, neighboring_relation="add-or-remove-one")
    plan = gaussian(8.0, 30)
    with pytest.raises(KeyboardInterrupt):
        optim.noisy_gd(OBJECTIVE, plan, store=book, callback=interrupted_at(7), callback_every=1)
    gc.collect()
    (run,) = book.runs
    assert run.charged
    assert run.ended is not None
    assert 7 <= run.ledger.count("gradient") < 30
    assert book.spent() == pytest.approx(epsilon_of_mu(math.sqrt(30) / 8), rel=1e-9)


def test_a_run_that_diverged_keeps_its_row(make):
    book = make(99.0)
    with pytest.warns(RuntimeWarning, match="infinite"):
        result = optim.noisy_gd(
            optim.Squared(np.ones((N, 1)), np.ones(N), l2=1.0, fit_intercept=False),
            gaussian(4.0, 400),
            learning_rate=1.99,
            initial=[1e307],
            store=book,
        )
    (run,) = book.runs
    assert not result.complete
    assert run.charged
    assert run.ledger == result.ledger


def test_a_run_that_asked_nothing_is_free_and_can_ask_nothing_later(make):
    book = make(2.0)
    oracle = book.oracle(OBJECTIVE, gaussian(), seed=1)
    assert book.left() < make().epsilon / 2 + 1  # charged while it may still ask
    oracle.close()
    assert not book.runs[0].charged
    assert book.spent() == 0
    with pytest.raises(LedgerMismatch, match="without an answer"):
        oracle.gradient(ORIGIN, "gradient")
    book.oracle(OBJECTIVE, gaussian(), seed=1).gradient(ORIGIN, "gradient")


def test_a_seed_that_the_book_has_seen_is_refused_for_any_plan(make):
    book = make(9.0)
    book.oracle(OBJECTIVE, gaussian(4.0), seed=7).gradient(ORIGIN, "gradient")
    for sigma in (4.0, 5.0):
        with pytest.raises(NoiseReused, match="has seen this seed"):
            make().oracle(OBJECTIVE, gaussian(sigma), seed=7)
    for seed in (8, None, None):
        make().oracle(OBJECTIVE, gaussian(), seed=seed).gradient(ORIGIN, "gradient")


@pytest.mark.slow
def test_a_run_that_goes_on_from_its_store_is_charged_once(make, tmp_path):
    book, plan = make(9.0), gaussian(8.0, 30)
    whole = optim.noisy_gd(OBJECTIVE, plan, seed=3)
    for calls in (2, 5, None):
        kept = book.with_store(tmp_path / "run.db")
        callback = None if calls is None else interrupted_at(calls)
        with contextlib.suppress(KeyboardInterrupt):
            result = optim.noisy_gd(
                OBJECTIVE, plan, seed=3, store=kept, callback=callback, callback_every=1
            )
        gc.collect()
    (run,) = book.runs
    assert run.ledger == result.ledger == whole.ledger
    np.testing.assert_allclose(result.w, whole.w, rtol=1e-12)
    with pytest.raises(NoiseReused):
        optim.noisy_gd(OBJECTIVE, plan, seed=3, store=book.with_store(tmp_path / "other.db"))


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
    with pytest.raises(ValueError, match="relation of budget book"):
        book.oracle(OBJECTIVE, gaussian(relation="replace-one"))
    with pytest.raises(ValueError, match="needs its total"):
        BudgetBook(tmp_path / "none.budget")
    assert not (tmp_path / "none.budget").exists()
    with pytest.raises(ValueError, match="must be a budget book"):
        BudgetBook(table)
    assert stat.S_IMODE(book.path.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clinic.budget", "patients.csv"]


def test_a_changed_total_is_kept_beside_the_former_one(make):
    book = make(1.0)
    with pytest.raises(BudgetExceeded):
        book.check(gaussian(4.0))
    book.change_total(epsilon=2.0)
    book.check(gaussian(4.0))
    assert [total[1:] for total in book.totals] == [(1.0, DELTA), (2.0, DELTA)]


def forked(work):
    """Start a child that does some work and ends, whatever happens: by its status, or else 0.

    A child that left by an exception would go on with the tests of its parent.
    """
    child = os.fork()
    if not child:
        status = 1
        try:
            status = work() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


@pytest.mark.slow
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
    oracle.gradient(ORIGIN, "gradient")
    assert make().runs[0].charged


@forks
def test_processes_at_once_never_overrun_the_total(make):
    """Ten processes ask for a run each, four fit: four are admitted, whoever comes first."""
    make(epsilon_of_mu(math.sqrt(4) / 4.0) * (1 + 1e-9))
    reader, writer = os.pipe()

    def asks():
        with contextlib.suppress(BudgetExceeded):
            make().oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
            os.write(writer, b"x")

    children = [forked(asks) for _ in range(10)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert len(pipe.read()) == 4
    assert len(make().runs) == 4


@pytest.mark.slow
@forks
def test_after_a_hundred_kills_nothing_was_answered_that_the_book_does_not_hold(make):
    """A child makes one run after another, and tells of every answer after it has it."""
    with contextlib.ExitStack() as stack:
        # In memory where that is possible: a killed process leaves no less on a disk.
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=shared))
        answered, alive, runs = killed_a_hundred_times(Path(folder) / "clinic.budget")
    held = {run.plan.parameters["number"] for run in runs if run.charged}
    assert answered <= held
    assert alive > 50  # kills hit runs, and not only their beginning
    assert len(held) < len(answered) + 101


def killed_a_hundred_times(path):
    """Return the runs that were answered, in how many children, and all runs of the book."""
    book = BudgetBook(path, epsilon=1e3, delta=DELTA)
    pauses, pace, answered, alive = random.Random(0), 0.01, set(), 0
    for round_ in range(100):
        book.spent()
        reader, writer = os.pipe()

        def runs(first=100 * round_, writer=writer):
            for number in range(100):
                plan = gaussian(40.0, number=first + number)
                oracle = BudgetBook(path).oracle(OBJECTIVE, plan)
                oracle.gradient(ORIGIN, "gradient")
                os.write(writer, struct.pack("<q", first + number))
                if number % 2:
                    oracle.close()

        child = forked(runs)
        os.close(writer)
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            # After none, one or two answers, and somewhere in the run that follows.
            began = time.perf_counter()
            told = b"".join(pipe.read(8) for _ in range(pauses.choice((0, 1, 1, 2))))
            pace = (time.perf_counter() - began) / (len(told) / 8) if told else pace
            time.sleep(pauses.uniform(0.0, pace))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told += pipe.read()
        answered |= {number for (number,) in struct.iter_unpack("<q", told)}
        alive += len(told) > 0
    return answered, alive, book.runs


@forks
def test_on_a_full_disk_nothing_is_answered_and_the_book_stays_readable(make):
    """The child's files may grow by little more than the book has, so that writes fail."""
    book = make(9.0)
    book.oracle(OBJECTIVE, gaussian(), seed=1).gradient(ORIGIN, "gradient")
    gc.collect()

    def asks():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            make().oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
        except OSError as error:
            return 0 if "cannot be read or written" in str(error) else 2
        return 1

    assert os.waitpid(forked(asks), 0)[1] == 0
    assert len(make().runs) == 1
    book.oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
    assert len(book.runs) == 2


@pytest.mark.slow
def test_correlated_noise_is_added_where_it_does_not_compose(make):
    """A run on random batches has a price of its own, which is added with its delta."""
    plan = calibrate.correlated_dpsgd(
        LambdaCGD(10, 0.5), batch_size=100, statistics="none", **{**TARGET, "delta": 1e-6}
    )
    book = make(9.0, 1e-5)
    book.oracle(OBJECTIVE, plan).gradient(ORIGIN, "gradient")
    book.oracle(OBJECTIVE, gaussian()).gradient(ORIGIN, "gradient")
    rest = epsilon_of_mu(1 / 4.0, 9e-6)
    assert book.spent().upper == pytest.approx(plan.price().upper + rest, rel=1e-6)
    book.oracle(OBJECTIVE, plan).gradient(ORIGIN, "gradient")
    rest = epsilon_of_mu(1 / 4.0, 8e-6)
    assert book.spent().upper == pytest.approx(2 * plan.price().upper + rest, rel=1e-6)
