"""Runs that survive: killed anywhere, they end at the same bits, and the file holds what left."""

import contextlib
import os
import random
import sqlite3
import struct

import numpy as np
import pytest
from _stored_runs import (
    OBJECTIVE,
    SAMPLED,
    D,
    X,
    Y,
    forks,
    gaussian,
    in_memory,
    interrupted_at,
    killed,
    struck,
)

from dpcal import BudgetBook, optim
from dpcal.errors import LedgerMismatch
from dpcal.optim import Logistic
from dpcal.optim.boundary.store import StoredOracle, read_ledger

PLAN = gaussian(count=30)
ORIGIN = np.zeros(D)


def read_count(path):
    with contextlib.suppress(ValueError):  # killed before the file held a run
        return read_ledger(path).count("gradient")
    return 0


def test_the_file_says_which_noise_its_run_has(tmp_path):
    path, given = tmp_path / "part.db", {"seed": 5, "noise": "discrete"}
    with contextlib.suppress(KeyboardInterrupt):
        callback = interrupted_at(3)
        optim.dpsgd(OBJECTIVE, SAMPLED, store=path, callback=callback, callback_every=1, **given)
    with pytest.raises(ValueError, match="holds a run with other noise"):
        optim.dpsgd(OBJECTIVE, SAMPLED, store=path, seed=5, noise="gaussian")
    again = optim.dpsgd(OBJECTIVE, SAMPLED, store=path, seed=5)
    direct = optim.dpsgd(OBJECTIVE, SAMPLED, **given)
    assert again.noise == "discrete"
    assert again.w.tobytes() == direct.w.tobytes()
    assert again.ledger == direct.ledger == read_ledger(path)


@pytest.mark.parametrize(
    "wrong",
    [{"initial": np.zeros(D + 1)}, {"radius": -1.0}, {"callback": 3}, {"callback_every": 0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_run_that_is_refused_leaves_no_file_and_no_row_of_a_book(wrong, tmp_path):
    book = BudgetBook(tmp_path / "all.budget", epsilon=99.0, delta=1e-3)
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        optim.noisy_gd(OBJECTIVE, PLAN, store=tmp_path / "run.db", **wrong)
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        optim.noisy_gd(OBJECTIVE, PLAN, store=book.with_store(tmp_path / "run.db"), **wrong)
    assert not (tmp_path / "run.db").exists()
    assert not book.runs


def test_an_error_leaves_after_the_answers_that_waited(tmp_path):
    path, calls = tmp_path / "run.db", []

    def gradients(w, rows):
        calls.append(1)
        if len(calls) == 9:
            raise MemoryError
        return X[rows]

    objective = optim.FromGradients(gradients, n=len(X), dimension=D, block=len(X))
    objective.checked = True
    with pytest.raises(MemoryError) as caught:
        optim.noisy_gd(objective, PLAN, store=path, store_every=5)
    # Two calls look at the objective; the seventh answer was paid for, and not made.
    assert (optim.released(caught.value).answers, read_count(path)) == (7, 6)


def test_answers_wait_for_their_transaction_and_nobody_sees_what_waits(tmp_path):
    path, inside, outside = tmp_path / "run.db", [], []

    def gradients(w, rows):
        inside.append(read_count(path))
        return X[rows] * (X[rows] @ w - Y[rows])[:, np.newaxis]

    def callback(progress):
        outside.append((progress.step, read_count(path)))
        if progress.step == 21:
            raise KeyboardInterrupt

    objective = optim.FromGradients(gradients, n=len(X), dimension=D, block=len(X))
    objective.checked = True
    with pytest.raises(KeyboardInterrupt):
        optim.noisy_gd(
            objective, PLAN, store=path, store_every=5, callback=callback, callback_every=7
        )
    # Answer t is computed while the file holds those before the last transaction.
    held = [5 * (t % 7 // 5) + 7 * (t // 7) for t in range(21)]
    assert inside[-21:] == held
    assert outside == [(7, 7), (14, 14), (21, 21)]


@pytest.mark.slow
@forks
@pytest.mark.parametrize("kills", [30, pytest.param(300, marks=pytest.mark.study)])
def test_killed_at_any_moment_it_releases_nothing_that_is_not_in_the_file(kills):
    seen, row = [], struct.Struct("<q3d")

    def run(path, every, tell):
        optim.noisy_gd(
            OBJECTIVE,
            PLAN,
            seed=5,
            store=path,
            callback=lambda p: tell(row.pack(p.step, *p.w)) and None,
            callback_every=every,
            store_every=every,
        )

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


def test_another_run_is_refused(tmp_path):
    path = tmp_path / "run.db"
    optim.noisy_gd(OBJECTIVE, PLAN, seed=1, store=path)
    with pytest.raises(ValueError, match="holds a run with other plan"):
        optim.noisy_gd(OBJECTIVE, gaussian(count=31), store=path)
    turned = Logistic(X[::-1], Y, l2=0.1, fit_intercept=False, classes=[False, True])
    with pytest.raises(ValueError, match="holds a run with other records"):
        optim.noisy_gd(turned, PLAN, store=path)
    with pytest.raises(LedgerMismatch, match="is to another question"):
        optim.noisy_gd(OBJECTIVE, PLAN, store=path, learning_rate=0.001)


def test_of_two_runs_with_one_file_the_first_releases_nothing_more(tmp_path):
    first = StoredOracle(tmp_path / "run.db", OBJECTIVE, PLAN)
    before = first.gradient(ORIGIN, "gradient")
    second = StoredOracle(tmp_path / "run.db", OBJECTIVE, PLAN)
    with pytest.raises(LedgerMismatch, match="was opened by another run"):
        first.gradient(np.ones(D), "gradient")
    assert (second.gradient(ORIGIN, "gradient") == before).all()
    assert second.gradient(np.ones(D), "gradient").any()
    assert read_ledger(tmp_path / "run.db").count("gradient") == 2


def test_the_file_is_a_regular_one_and_its_owner_s_alone(tmp_path):
    (tmp_path / "other.db").touch(0o644)
    for name in ("run.db", "other.db"):
        StoredOracle(tmp_path / name, OBJECTIVE, PLAN).close()
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    (tmp_path / "text.db").write_text("no database")
    os.mkfifo(tmp_path / "pipe")
    for name in ("text.db", "pipe"):
        with pytest.raises(ValueError, match="store must be a path of a file of this kind"):
            StoredOracle(tmp_path / name, OBJECTIVE, PLAN)
    with pytest.raises(ValueError, match="store must be a path in a folder"):
        StoredOracle(tmp_path / "nowhere" / "run.db", OBJECTIVE, PLAN)
    assert not (tmp_path / "nowhere").exists()


DAMAGES = [
    "UPDATE answers SET answer = X'00'",
    "UPDATE answers SET answer = zeroblob(8)",
    "UPDATE answers SET answer = 'text'",
    "UPDATE answers SET answer = 7",
    "UPDATE answers SET state = '{'",
    "UPDATE answers SET state = '[]'",
    "UPDATE answers SET state = '{\"noise\": 1}'",
    "UPDATE answers SET state = replace(hex(zeroblob(99999)), '0', '[')",
    "UPDATE answers SET state = X'00'",
    "UPDATE answers SET entry = '{'",
    "UPDATE answers SET entry = '[]'",
    "UPDATE answers SET entry = '{\"name\": 1}'",
    "UPDATE answers SET entry = CAST(X'FFFE' AS TEXT)",
    "UPDATE answers SET question = X'00'",
    "DELETE FROM answers WHERE position = 0",
    "UPDATE run SET value = '{' WHERE name = 'root'",
    "UPDATE run SET value = '[]' WHERE name = 'root'",
    "UPDATE run SET value = '{}' WHERE name = 'root'",
    "UPDATE run SET value = CAST(X'FFFE' AS TEXT) WHERE name = 'root'",
    "UPDATE run SET value = '[' WHERE name = 'plan'",
    "DELETE FROM run WHERE name = 'root'",
    "DELETE FROM run WHERE name = 'plan'",
    "DELETE FROM run WHERE name = 'owner'",
    "ALTER TABLE answers RENAME COLUMN state TO other",
]


@pytest.mark.parametrize("statement", DAMAGES)
def test_a_damaged_store_is_one_sentence_or_does_not_matter(tmp_path, statement):
    path = tmp_path / "store"
    oracle = StoredOracle(path, OBJECTIVE, PLAN, seed=5)
    for number in range(2):
        oracle.gradient(ORIGIN + number, "gradient")
    oracle.close()
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)
    try:
        read_ledger(path)
        again = StoredOracle(path, OBJECTIVE, PLAN)
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
