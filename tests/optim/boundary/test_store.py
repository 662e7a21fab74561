"""Runs that survive: killed anywhere, they end at the same bits, and the file holds what left."""

import contextlib
import dataclasses
import multiprocessing
import os
import random
import resource
import signal
import sqlite3
import struct
import tomllib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from _stored_runs import (
    OBJECTIVE,
    SAMPLED,
    D,
    N,
    X,
    Y,
    forked,
    forks,
    gaussian,
    in_memory,
    interrupted_at,
    killed,
    struck,
)
from _tree import DATA
from flint import ctx

from dpcal import BudgetBook, calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.ranks import Alone, RankedOracle
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.errors import LedgerMismatch, NoiseReused
from dpcal.optim import Logistic
from dpcal.optim.boundary.discrete import table_of
from dpcal.optim.boundary.kept import KeptFile
from dpcal.optim.boundary.store import Answers, read_ledger, stored

PLAN = gaussian(count=30)
ORIGIN = np.zeros(D)


def read_count(path):
    with contextlib.suppress(ValueError):  # killed before the file held a run
        return read_ledger(path).count("gradient")
    return 0


def slopes_told(tell):
    """Return an objective of plain slopes that calls ``tell`` before each sum."""

    def gradients(w, rows):
        tell()
        return X[rows] * (X[rows] @ w - Y[rows])[:, np.newaxis]

    objective = optim.FromGradients(gradients, n=len(X), dimension=D, block=len(X))
    objective.checked = True
    return objective


def test_an_error_leaves_after_the_answers_that_waited(tmp_path):
    path, calls = tmp_path / "run.db", iter(range(8))

    def fail():
        if next(calls, None) is None:
            raise MemoryError

    with pytest.raises(MemoryError) as caught:
        optim.noisy_gd(slopes_told(fail), PLAN, store=path, store_every=5)
    # Two calls look at the objective; the seventh answer was paid for, and not made.
    assert (optim.released(caught.value).answers, read_count(path)) == (7, 6)


def test_answers_wait_for_their_transaction_and_nobody_sees_what_waits(tmp_path):
    path, inside, outside = tmp_path / "run.db", [], []

    def callback(progress):
        outside.append((progress.step, read_count(path)))
        if progress.step == 21:
            raise KeyboardInterrupt

    objective = slopes_told(lambda: inside.append(read_count(path)))
    given = {"store": path, "store_every": 5, "callback": callback, "callback_every": 7}
    with pytest.raises(KeyboardInterrupt):
        optim.noisy_gd(objective, PLAN, **given)
    # Answer t is computed while the file holds those before the last transaction.
    held = [5 * (t % 7 // 5) + 7 * (t // 7) for t in range(21)]
    assert inside[-21:] == held
    assert outside == [(7, 7), (14, 14), (21, 21)]


@forks
def test_on_a_full_disk_no_answer_leaves_a_stored_run(tmp_path):
    given = {"store": tmp_path / "run.db", "callback_every": 1, "seed": 1}
    with pytest.raises(KeyboardInterrupt):
        optim.noisy_gd(OBJECTIVE, PLAN, callback=interrupted_at(14), **given)

    def goes_on():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        shown = []
        try:
            optim.noisy_gd(OBJECTIVE, PLAN, callback=lambda now: shown.append(now.step), **given)
        except OSError as error:
            return 0 if "cannot be read or written" in str(error) and len(shown) < 16 else 2
        return 1

    assert os.waitpid(forked(goes_on), 0)[1] == 0
    assert read_count(given["store"]) == 15
    with optim.replaying():
        assert (
            optim.noisy_gd(OBJECTIVE, PLAN, **given).w == optim.noisy_gd(OBJECTIVE, PLAN, seed=1).w
        ).all()


@pytest.mark.slow
@forks
@pytest.mark.parametrize("kills", [30, pytest.param(300, marks=pytest.mark.study)])
def test_killed_at_any_moment_it_releases_nothing_that_is_not_in_the_file(kills):
    seen, row = [], struct.Struct("<q3d")

    def run(path, every, tell):
        often = {"callback_every": every, "store_every": every}

        def told(progress):
            tell(row.pack(progress.step, *progress.w))

        optim.noisy_gd(OBJECTIVE, PLAN, seed=5, store=path, callback=told, **often)

    with in_memory() as folder:
        run(folder / "first.db", 1, len)  # what is loaded and kept once is no moment of later runs
        moments = struck(lambda: run(folder / "whole.db", 1, seen.append))
        chance, path, held, hit = random.Random(0), folder / "run.db", 0, 0
        for number in range(kills):
            if held == 30:
                path = folder / f"run{number}.db"
            every, at = chance.choice([1, 4]), chance.randint(1, moments // 3)
            told = killed(lambda tell, *about: run(*about, tell), at, path, every)
            released = [told[first : first + row.size] for first in range(0, len(told), row.size)]
            held = read_count(path)
            # An iterate that left is one of the whole run's, and its answer is in the file.
            assert released == seen[every - 1 :: every][: len(released)]
            assert held >= every * len(released)
            hit += 0 < held < 30
    assert hit > kills / 2


def test_another_run_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    optim.noisy_gd(OBJECTIVE, PLAN, seed=1, store=path)
    turned = Logistic(X[::-1], Y, l2=0.1, fit_intercept=False, classes=[False, True])
    for error, told, objective, plan, more in (
        (ValueError, "holds a run with other plan", OBJECTIVE, gaussian(count=31), {}),
        (ValueError, "holds a run with other records", turned, PLAN, {}),
        (LedgerMismatch, "is to another question", OBJECTIVE, PLAN, {"learning_rate": 0.001}),
    ):
        with pytest.raises(error, match=told):
            optim.noisy_gd(objective, plan, store=path, **more)
    # Of an earlier release, whose Gaussian noise was in floating point.
    with monkeypatch.context() as earlier:
        earlier.setattr(optim.PrivateOracle, "noise", "gaussian")
        optim.noisy_gd(OBJECTIVE, PLAN, seed=2, store=tmp_path / "old.db")
    with pytest.raises(ValueError, match="holds a run with other noise"):
        optim.noisy_gd(OBJECTIVE, PLAN, store=tmp_path / "old.db")
    assert optim.noisy_gd(OBJECTIVE, PLAN, store=path).noise == "discrete"


def test_of_two_runs_with_one_file_the_first_releases_nothing_more(tmp_path):
    first = stored(tmp_path / "run.db", OBJECTIVE, PLAN)
    before = first.gradient(ORIGIN, "gradient")
    second = stored(tmp_path / "run.db", OBJECTIVE, PLAN)
    with pytest.raises(LedgerMismatch, match="was opened by another run"):
        first.gradient(np.ones(D), "gradient")
    assert (second.gradient(ORIGIN, "gradient") == before).all()
    assert second.gradient(np.ones(D), "gradient").any()
    assert read_ledger(tmp_path / "run.db").count("gradient") == 2


def test_the_file_is_a_regular_one_and_its_owner_s_alone(tmp_path):
    (tmp_path / "other.db").touch(0o644)
    for name in ("run.db", "other.db"):
        stored(tmp_path / name, OBJECTIVE, PLAN).close()
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    (tmp_path / "text.db").write_text("no database")
    os.mkfifo(tmp_path / "pipe")
    for name in ("text.db", "pipe"):
        with pytest.raises(ValueError, match="must be a store"):
            stored(tmp_path / name, OBJECTIVE, PLAN)
    with pytest.raises(ValueError, match="must be in a folder"):
        stored(tmp_path / "nowhere" / "run.db", OBJECTIVE, PLAN)
    assert not (tmp_path / "nowhere").exists()


DAMAGES = tomllib.loads((DATA / "damaged_stores.toml").read_text())["damages"]


@pytest.mark.parametrize("statement", DAMAGES)
def test_a_damaged_store_is_one_sentence_or_does_not_matter(tmp_path, statement):
    path = tmp_path / "store"
    oracle = stored(path, OBJECTIVE, PLAN, seed=5)
    for number in range(2):
        oracle.gradient(ORIGIN + number, "gradient")
    oracle.close()
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)
    try:
        read_ledger(path)
        again = stored(path, OBJECTIVE, PLAN)
        for number in range(3):
            again.gradient(ORIGIN + number, "gradient")
        again.close()
    except (ValueError, OSError, LedgerMismatch) as error:
        found = str(error)
        assert str(path) in found
        assert found.endswith(".")
        assert len(found) < 400
    else:
        assert "'owner'" in statement or "entry" in statement


# -- several processes start one new run on one file

STEPS = SAMPLED.queries[0].count


def at_once(count, work):
    """Return what ``work(meet)`` returns or raises in forked processes, which ``meet`` there."""
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(count), context.SimpleQueue()

    def child():
        met = []
        try:
            found.put(work(lambda: met.append(barrier.wait(60))))
        except Exception as error:
            if not met:
                barrier.abort()  # nobody waits for a process that has ended
            found.put(f"{type(error).__name__}: {error}")

    children = [context.Process(target=child) for _ in range(count)]
    for each in children:
        each.start()
    ends = [found.get() for _ in children]
    for each in children:
        each.join()
    return ends


def meeting(meet, function):
    """Return a function that first waits, once, for the other processes at its place."""
    waits = [meet]

    def met(*given, **options):
        if waits:
            waits.pop()()
        return function(*given, **options)

    return met


# Between a look for the file and its making; between its making and the row of the run; between
# the row, which claims the file too, and the first answer.
PLACES = {
    "file": (KeptFile, "make"),
    "row": (KeptFile, "hide"),
    "owner": (Answers, "again"),
}


@forks
@pytest.mark.parametrize("booked", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_one_run_is_released_and_its_file_holds_all_of_it(tmp_path, place, booked):
    path, book = tmp_path / "run.db", tmp_path / "clinic.budget"
    if booked:
        BudgetBook(book, epsilon=6.0, delta=1e-5)

    def work(meet):
        where, name = PLACES[place]
        setattr(where, name, meeting(meet, getattr(where, name)))
        kept = BudgetBook(book).with_store(path) if booked else path
        return optim.dpsgd(OBJECTIVE, SAMPLED, store=kept).w.tobytes()

    check_released(at_once(3, work), path)
    # None of them is charged again.
    if booked:
        assert len(BudgetBook(book).runs) == 1


def check_released(ends, path):
    """One run is released, other processes are refused, and the file holds all of it."""
    released = {end for end in ends if isinstance(end, bytes)}
    refused = [end for end in ends if isinstance(end, str)]
    assert len(released) == 1, ends
    # In a book, all but the one that writes the row go on in it.
    assert all(end.startswith(LedgerMismatch.__name__) for end in refused), refused
    assert read_ledger(path).answers == STEPS


@forks
def test_ranked_runs_are_released_and_their_file_holds_them(tmp_path):
    path = tmp_path / "run.db"

    def work(meet):
        KeptFile.make = meeting(meet, KeptFile.make)
        oracle = RankedOracle(SAMPLED, Alone(), {"w": (2,)}, lambda: b"w", store=path)
        answers = []
        for _ in range(STEPS):
            oracle.add(np.ones((len(oracle.draw()), 2)))
            answers.append(oracle.answer().tobytes())
        return b"".join(answers)

    check_released(at_once(3, work), path)


def test_a_file_that_holds_a_run_survives_whatever_is_refused(tmp_path):
    """Also where it came into being after a second process had looked for it."""
    path = tmp_path / "run.db"
    optim.dpsgd(OBJECTIVE, SAMPLED, store=path)
    other = dataclasses.replace(SAMPLED, epsilon=4.1)
    for looked in (True, False):
        with pytest.MonkeyPatch.context() as patched:
            if not looked:
                patched.setattr("pathlib.Path.exists", lambda self: False)
            with pytest.raises(ValueError, match="holds a run with other plan"):
                optim.dpsgd(OBJECTIVE, other, store=path)
        assert read_ledger(path).answers == STEPS


# -- answers to threads, to forked processes and after a restart: no noise is used twice

FULL = gaussian(5.0, 80)


@pytest.mark.parametrize("every", [1, 8])
def test_answers_to_threads_are_in_the_file_before_they_leave(tmp_path, every):
    path = tmp_path / "store"
    oracle = stored(path, OBJECTIVE, FULL, every=every)

    def ask(number):
        found = oracle.gradient(np.full(D, number / 8), "gradient")
        oracle.flush()
        return found.tobytes()

    with ThreadPoolExecutor(8) as pool:
        left = list(pool.map(ask, range(40)))
    # As a killed process leaves it: what waits is lost.
    oracle._kept._file.close()
    with sqlite3.connect(path) as file:
        held = [
            answer for (answer,) in file.execute("SELECT answer FROM answers ORDER BY position")
        ]
    assert sorted(held) == sorted(left)
    assert len(set(left)) == 40
    assert read_ledger(path).answers == 40
    # A new process draws other noise than every one of these.
    again = stored(path, OBJECTIVE, FULL)
    for answer in held:
        point = np.full(D, left.index(answer) / 8)
        assert again.gradient(point, "gradient").tobytes() == answer
    assert again.gradient(np.zeros(D), "gradient").tobytes() not in held


@forks
def test_an_oracle_answers_in_the_process_that_made_it():
    oracle, w = optim.PrivateOracle(OBJECTIVE, FULL, seed=3), np.zeros(D)
    guard = StepwiseOracle(FULL, dimension=2, seed=3)
    oracle.gradient(w, "gradient")

    def asks():
        for ask in (lambda: oracle.gradient(w, "gradient"), guard.draw):
            with pytest.raises(NoiseReused, match="made before a fork"):
                ask()

    assert os.waitpid(forked(asks), 0)[1] == 0
    oracle.gradient(w, "gradient")
    guard.draw()


def test_where_the_same_noise_is_refused_a_stored_run_goes_on_after_an_interruption(tmp_path):
    """Rows that were drawn and never released may be drawn again."""
    plan = calibrate.correlated_dpsgd(
        LambdaCGD(8, 0.5), n=N, batch_size=N, sampler="full", epsilon=4.0, delta=1e-5
    )
    given = {"store": tmp_path / "store", "store_every": 4}
    ends = {"callback": interrupted_at(0), "callback_every": 6}
    with pytest.raises(KeyboardInterrupt):
        optim.correlated_dpsgd(OBJECTIVE, plan, **ends, **given)
    assert optim.correlated_dpsgd(OBJECTIVE, plan, **given).complete


def test_tables_of_noise_made_by_threads_are_those_of_one_thread():
    scales = [8 + number / 7 for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(table_of.__wrapped__, scales))
    assert ctx.prec == 53
    for scale, table in zip(scales, found, strict=True):
        assert np.array_equal(table.words(), table_of.__wrapped__(scale).words())
