"""Runs that survive: killed anywhere, they end at the same bits, and the file holds what left."""

import contextlib
import gc
import os
import random
import signal
import sqlite3
import struct
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from _stored_runs import CONSTANTS, OBJECTIVE, OPTIMIZERS, TARGET, D, X, Y, interrupted_at, plan_of

from dpcal import calibrate, optim
from dpcal.errors import LedgerMismatch
from dpcal.optim import Logistic
from dpcal.optim.boundary.store import StoredOracle, read_ledger


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_ends_at_the_same_bits_wherever_it_was_interrupted(name, tmp_path):
    optimizer, plan = getattr(optim, name), plan_of(name)
    whole = optimizer(OBJECTIVE, plan, seed=5, store=tmp_path / "whole.db")
    direct = optimizer(OBJECTIVE, plan, seed=5)
    np.testing.assert_allclose(whole.w, direct.w, rtol=1e-9, atol=1e-12)
    path = tmp_path / "part.db"
    for calls in (1, 3, 9):
        with contextlib.suppress(KeyboardInterrupt):
            optimizer(
                OBJECTIVE,
                plan,
                seed=5,
                store=path,
                callback=interrupted_at(calls),
                callback_every=1,
            )
    before = read_ledger(path)
    again = optimizer(OBJECTIVE, plan, seed=5, store=path)
    assert again.w.tobytes() == whole.w.tobytes()
    assert again.ledger == whole.ledger == read_ledger(path)
    assert again.message == whole.message
    assert [e.name for e in before.entries] == [e.name for e in again.ledger.entries][
        : len(before.entries)
    ]
    again.verify()


def test_phases_of_stochastic_descent_survive_too(tmp_path):
    plan = calibrate.recursive_regularization(
        CONSTANTS,
        dimension=D,
        distance=3.0,
        subsolver="phased_sgd",
        neighboring_relation="replace-one",
        **TARGET,
    )
    check_survival(OBJECTIVE, plan, tmp_path)


def test_embedded_runs_survive_too(tmp_path):
    plan = calibrate.jl_glm(
        CONSTANTS, dimension=D, inner="noisy_gd", embedding_dimension=2, steps=12, **TARGET
    )
    check_survival(Logistic(X, Y, fit_intercept=False, classes_from_data=True), plan, tmp_path)


def check_survival(objective, plan, folder):
    """Interrupt a run twice, and compare how it ends with a run that was not interrupted."""
    optimizer = getattr(optim, plan.optimizer)
    whole = optimizer(objective, plan, seed=5, store=folder / "whole.db")
    direct = optimizer(objective, plan, seed=5)
    np.testing.assert_allclose(whole.w, direct.w, rtol=1e-9, atol=1e-12)
    path = folder / "part.db"
    for calls in (1, 3):
        with contextlib.suppress(KeyboardInterrupt):
            optimizer(
                objective,
                plan,
                seed=5,
                store=path,
                callback=interrupted_at(calls),
                callback_every=1,
            )
    assert 0 < read_ledger(path).answers < sum(query.count for query in plan.queries)
    again = optimizer(objective, plan, seed=5, store=path)
    assert again.w.tobytes() == whole.w.tobytes()
    assert again.ledger == whole.ledger == read_ledger(path)


@pytest.mark.parametrize("name", ["dpsgd", "adaptive_gd", "tree_spider"])
def test_runs_of_whole_numbers_survive_too(name, tmp_path):
    """The file holds how many words of the key's stream were taken."""
    optimizer, plan, path = getattr(optim, name), plan_of(name), tmp_path / "part.db"
    given = {"seed": 5, "noise": "discrete"}
    direct = optimizer(OBJECTIVE, plan, **given)
    for calls in (1, 3):
        with contextlib.suppress(KeyboardInterrupt):
            callback = interrupted_at(calls)
            optimizer(OBJECTIVE, plan, store=path, callback=callback, callback_every=1, **given)
    again = optimizer(OBJECTIVE, plan, store=path, **given)
    assert again.w.tobytes() == direct.w.tobytes()
    assert again.ledger == direct.ledger == read_ledger(path)
    with pytest.raises(ValueError, match="holds a run with other noise"):
        optimizer(OBJECTIVE, plan, store=path, seed=5, noise="gaussian")
    # What the file says is what is not said.
    assert optimizer(OBJECTIVE, plan, store=path, seed=5).noise == "discrete"


def test_a_book_keeps_runs_of_whole_numbers_and_their_files(tmp_path):
    plan = plan_of("dpsgd")
    book = optim.BudgetBook(tmp_path / "total.budget", epsilon=9.0, delta=1e-4)
    given = {"seed": 5, "noise": "discrete"}
    direct = optim.dpsgd(OBJECTIVE, plan, **given)
    with contextlib.suppress(KeyboardInterrupt):
        store, callback = book.with_store(tmp_path / "run.db"), interrupted_at(2)
        optim.dpsgd(OBJECTIVE, plan, store=store, store_every=4, callback=callback, **given)
    store = book.with_store(tmp_path / "run.db")
    again = optim.dpsgd(OBJECTIVE, plan, store=store, store_every=4, **given)
    assert again.w.tobytes() == direct.w.tobytes()
    assert [run.state for run in book.runs] == ["all 30 planned answers"]
    other = optim.dpsgd(OBJECTIVE, plan, store=book, noise="discrete")
    assert other.complete
    with pytest.raises(ValueError, match=r"give book\.with_store"):
        optim.dpsgd(OBJECTIVE, plan, store=book, store_every=4)


def test_answers_wait_for_their_transaction_and_nobody_sees_what_waits(tmp_path):
    path, plan, inside, outside = tmp_path / "run.db", plan_of("noisy_gd"), [], []

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
            objective, plan, store=path, store_every=5, callback=callback, callback_every=7
        )
    # Answer t is computed while the file holds those before the last transaction.
    held = [5 * (t % 7 // 5) + 7 * (t // 7) for t in range(21)]
    assert inside[-21:] == held
    assert outside == [(7, 7), (14, 14), (21, 21)]


@pytest.fixture
def few_pages():
    """Let a child share its parent's pages: a collection would touch, and so copy, all of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def folder(tmp_path):
    """A folder in memory where there is one: what a killed process wrote is there all the same."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


def killed(path, plan, rows, after, every=1):
    """Run noisy_gd in a child process, kill it so many seconds after some iterates have left it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        optim.noisy_gd(
            OBJECTIVE,
            plan,
            seed=5,
            store=path,
            callback=lambda p: os.write(writer, struct.pack("<q3d", p.step, *p.w)) and None,
            callback_every=every,
            store_every=every,
        )
        os._exit(0)
    os.close(writer)
    released, size = [], struct.calcsize("<q3d")
    with os.fdopen(reader, "rb") as pipe:
        while len(released) < rows and len(row := pipe.read(size)) == size:
            released.append(struct.unpack("<q3d", row))
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while len(row := pipe.read(size)) == size:
            released.append(struct.unpack("<q3d", row))
    return released


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_points_it_releases_nothing_that_is_not_in_the_file(few_pages, folder):
    plan = calibrate.noisy_gd(CONSTANTS, dimension=D, **{**TARGET, "epsilon": 40.0}, steps=40)
    seen = []
    optim.noisy_gd(
        OBJECTIVE,
        plan,
        seed=5,
        store=folder / "whole.db",
        callback=lambda p: seen.append((p.step, *p.w)),
        callback_every=1,
    )
    chance, kills, path, held = random.Random(0), 0, folder / "run.db", 0
    for attempt in range(200):
        if held >= plan.queries[0].count:
            path = folder / f"run{attempt}.db"
        every = chance.choice([1, 4])
        rows, after = chance.randrange(4), chance.uniform(0.0, 0.01 if kills % 2 else 0.002)
        released = killed(path, plan, rows, after, every)
        kills += 1
        held = read_count(path)
        # An iterate that left is one of the whole run's, and its answer is in the file.
        assert released == seen[every - 1 :: every][: len(released)]
        assert held >= every * len(released)
    assert kills == 200


def read_count(path):
    with contextlib.suppress(ValueError):  # killed before the file held a run
        return read_ledger(path).count("gradient")
    return 0


def test_another_run_is_refused(tmp_path):
    path, plan = tmp_path / "run.db", plan_of("noisy_gd")
    optim.noisy_gd(OBJECTIVE, plan, seed=1, store=path)
    longer = calibrate.noisy_gd(CONSTANTS, dimension=D, **TARGET, steps=31)
    with pytest.raises(ValueError, match="holds a run with other plan"):
        optim.noisy_gd(OBJECTIVE, longer, store=path)
    with pytest.raises(ValueError, match="holds a run with other records"):
        optim.noisy_gd(
            Logistic(X[::-1], Y, l2=0.1, fit_intercept=False, classes_from_data=True),
            plan,
            store=path,
        )
    with pytest.raises(LedgerMismatch, match="is to another question"):
        optim.noisy_gd(OBJECTIVE, plan, store=path, learning_rate=0.001)
    (tmp_path / "text.db").write_text("no database")
    with pytest.raises(ValueError, match="store must be a path of a file of this kind"):
        optim.noisy_gd(OBJECTIVE, plan, store=tmp_path / "text.db")


def test_of_two_runs_with_one_file_the_first_releases_nothing_more(tmp_path):
    first = StoredOracle(tmp_path / "run.db", OBJECTIVE, plan_of("noisy_gd"))
    before = first.gradient(np.zeros(D), "gradient")
    second = StoredOracle(tmp_path / "run.db", OBJECTIVE, plan_of("noisy_gd"))
    with pytest.raises(LedgerMismatch, match="was opened by another run"):
        first.gradient(np.ones(D), "gradient")
    assert (second.gradient(np.zeros(D), "gradient") == before).all()
    assert second.gradient(np.ones(D), "gradient").any()
    assert read_ledger(tmp_path / "run.db").count("gradient") == 2


@pytest.mark.parametrize("mode", [None, 0o644])
def test_the_file_is_its_owner_s_alone(mode, tmp_path):
    if mode is not None:
        (tmp_path / "run.db").touch(mode)
    optim.noisy_gd(OBJECTIVE, plan_of("noisy_gd"), store=tmp_path / "run.db")
    assert (tmp_path / "run.db").stat().st_mode & 0o077 == 0


def test_a_path_where_no_file_can_be_is_one_sentence(tmp_path):
    where = tmp_path / "nowhere" / "run.db"
    with pytest.raises(ValueError, match="store must be a path in a folder"):
        optim.noisy_gd(OBJECTIVE, plan_of("noisy_gd"), store=where)
    assert not where.parent.exists()


@pytest.mark.parametrize("place", ["answers SET entry", "answers SET state", "run SET value"])
def test_a_damaged_row_is_one_sentence(tmp_path, place):
    plan = plan_of("noisy_gd")
    oracle = StoredOracle(tmp_path / "store", OBJECTIVE, plan)
    w = np.zeros(OBJECTIVE.dimension)
    oracle.gradient(w, plan.queries[0].name)
    oracle.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "store")) as file, file:
        where = " WHERE name = 'root'" if place.startswith("run") else ""
        file.execute(f"UPDATE {place} = '{{' {where}")

    def read():
        StoredOracle(tmp_path / "store", OBJECTIVE, plan).gradient(w, plan.queries[0].name)
        read_ledger(tmp_path / "store")

    with pytest.raises(ValueError, match=r"store .* is damaged, a row of it holds no JSON"):
        read()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answers SET answer = X'00'",
        "UPDATE answers SET answer = zeroblob(8)",
        "UPDATE answers SET answer = 'text'",
        "UPDATE answers SET answer = 7",
        "UPDATE answers SET state = '[]'",
        "UPDATE answers SET state = '{\"noise\": 1}'",
        "UPDATE answers SET state = replace(hex(zeroblob(99999)), '0', '[')",
        "UPDATE answers SET state = X'00'",
        "UPDATE answers SET entry = '[]'",
        "UPDATE answers SET entry = '{\"name\": 1}'",
        "UPDATE answers SET entry = CAST(X'FFFE' AS TEXT)",
        "UPDATE answers SET question = X'00'",
        "DELETE FROM answers WHERE position = 0",
        "UPDATE run SET value = '[]' WHERE name = 'root'",
        "UPDATE run SET value = '{}' WHERE name = 'root'",
        "UPDATE run SET value = CAST(X'FFFE' AS TEXT) WHERE name = 'root'",
        "UPDATE run SET value = '[' WHERE name = 'plan'",
        "DELETE FROM run WHERE name = 'root'",
        "DELETE FROM run WHERE name = 'plan'",
        "DELETE FROM run WHERE name = 'owner'",
        "ALTER TABLE answers RENAME COLUMN state TO other",
    ],
)
def test_a_damaged_store_is_one_sentence_or_does_not_matter(tmp_path, statement):
    plan, path = plan_of("noisy_gd"), tmp_path / "store"
    with contextlib.suppress(KeyboardInterrupt):
        optim.noisy_gd(
            OBJECTIVE, plan, store=path, callback=interrupted_at(2), callback_every=1, seed=5
        )
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)

    def use():
        read_ledger(path)
        optim.noisy_gd(OBJECTIVE, plan, store=path)

    matters = "'owner'" not in statement and "entry" not in statement
    try:
        use()
    except (ValueError, OSError, LedgerMismatch) as error:
        found = str(error)
        assert str(path) in found
        assert found.endswith(".")
        assert len(found) < 400
    else:
        assert not matters


def test_a_damaged_plan_in_a_book_is_one_sentence(tmp_path):
    book = optim.BudgetBook(tmp_path / "book", epsilon=9.0, delta=1e-3)
    optim.noisy_gd(OBJECTIVE, plan_of("noisy_gd"), store=book)
    with contextlib.closing(sqlite3.connect(tmp_path / "book")) as file, file:
        file.execute("UPDATE runs SET plan = '{'")
    with pytest.raises(ValueError, match="budget book is damaged, a run in it has no plan"):
        book.spent()
