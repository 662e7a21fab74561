"""Answers to threads, to forked processes and after a restart: no noise is used twice."""

import dataclasses
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from _stored_runs import OBJECTIVE, D, N, forked, forks, gaussian, interrupted_at
from flint import ctx

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.calibrate import Correlation
from dpcal.errors import NoiseReused
from dpcal.optim.boundary.discrete import _table
from dpcal.optim.boundary.store import StoredOracle, read_ledger

FULL, ROWS = gaussian(5.0, 80), Correlation(strategy=LambdaCGD(8, 0.5))
CORRELATED = dataclasses.replace(
    FULL, queries=(dataclasses.replace(FULL.queries[0], count=8, correlation=ROWS),)
)


@pytest.mark.parametrize("every", [1, 8])
def test_answers_to_threads_are_in_the_file_before_they_leave(tmp_path, every):
    path = tmp_path / "store"
    oracle = StoredOracle(path, OBJECTIVE, FULL, every=every)

    def ask(number):
        found = oracle.gradient(np.full(D, number / 8), "gradient")
        oracle.flush()
        return found.tobytes()

    with ThreadPoolExecutor(8) as pool:
        left = list(pool.map(ask, range(40)))
    # As a killed process leaves it: what waits is lost.
    oracle._file.close()
    with sqlite3.connect(path) as file:
        held = [answer for (answer,) in file.execute("SELECT answer FROM answers")]
    assert sorted(held) == sorted(left)
    assert len(set(left)) == 40
    assert read_ledger(path).answers == 40
    # A new process draws other noise than every one of these.
    again = StoredOracle(path, OBJECTIVE, FULL)
    with sqlite3.connect(path) as file:
        order = [row[0] for row in file.execute("SELECT answer FROM answers ORDER BY position")]
    for answer in order:
        number = left.index(answer)
        point = np.full(D, number / 8)
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


def test_the_same_noise_is_refused_after_a_state_was_gone_on_with():
    oracle = optim.PrivateOracle(OBJECTIVE, CORRELATED)
    w = np.zeros(D)
    for _ in range(3):
        oracle.gradient(w, "gradient")
    early = oracle.state()
    resumed = optim.PrivateOracle.resumed(OBJECTIVE, CORRELATED, early)
    resumed.gradient(w, "gradient")
    for one in (optim.PrivateOracle.resumed(OBJECTIVE, CORRELATED, early), oracle):
        with pytest.raises(NoiseReused, match="row 3 of this run's correlated noise"):
            one.gradient(w + 1, "gradient")
    latest = optim.PrivateOracle.resumed(OBJECTIVE, CORRELATED, resumed.state())
    latest.gradient(w, "gradient")


def test_a_stored_run_goes_on_in_the_process_that_was_interrupted(tmp_path):
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
        found = list(pool.map(_table.__wrapped__, scales))
    assert ctx.prec == 53
    for scale, table in zip(scales, found, strict=True):
        assert np.array_equal(table.words(), _table.__wrapped__(scale).words())
