"""Attacks see the oracles of threads, and refuse runs with oracles that they cannot see."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.errors import UnobservedOracle
from dpcal.optim import Logistic, attacks
from dpcal.optim.attacks.recording import record

N, D = 60, 3
X = np.random.default_rng(0).standard_normal((N, D))
Y = X[:, 0] > 0
PLAN = calibrate.dpsgd(n=N, batch_size=20, steps=5, epsilon=2.0, delta=1e-5)


def trained(table):
    return optim.dpsgd(Logistic(table[0], table[1], classes=[False, True]), PLAN).w


def leaking(table):
    """Let the first record choose the learning rate."""
    objective = Logistic(table[0], table[1], classes=[False, True])
    return optim.dpsgd(objective, PLAN, learning_rate=0.1 + abs(float(table[0][0, 0]))).w


def inside(run, made=ThreadPoolExecutor, **options):
    """Return a run in a thread, or in a process."""

    def started(table):
        with made(1, **options) as executor:
            return executor.submit(run, table).result()

    return started


def test_oracles_of_threads_are_seen():
    assert all(each.holds for each in attacks.replay_table(inside(trained), X, Y))
    found = attacks.replay_table(inside(leaking), X, Y)
    assert not all(each.holds for each in found)
    assert {each.answers for each in found} == {PLAN.queries[0].count}


def test_threads_that_were_there_before_are_refused():
    with ThreadPoolExecutor(1) as executor:
        executor.submit(int).result()

        def run(table):
            trained(table)
            return executor.submit(trained, table).result()

        with pytest.raises(UnobservedOracle, match="1 oracles were opened in threads"):
            attacks.replay_table(run, X, Y)
    # Nothing is left of it: other runs are as they were.
    assert optim.dpsgd(Logistic(X, Y, classes=[0, 1]), PLAN).complete


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_oracles_of_other_processes_are_refused():
    fork = multiprocessing.get_context("fork")
    with pytest.raises(UnobservedOracle, match="in a process of its own"):
        attacks.replay_table(inside(trained, ProcessPoolExecutor, mp_context=fork), X, Y)


CHILD = """
import numpy as np
from dpcal import calibrate, optim
plan = calibrate.dpsgd(n=60, batch_size=20, steps=5, epsilon=2.0, delta=1e-5)
try:
    optim.dpsgd(optim.Logistic(np.eye(60, 3), np.arange(60) % 2, classes=[0, 1]), plan)
    print("trained")
except Exception as refused:
    print(type(refused).__name__, refused)
"""


def in_a_new_process(table):
    """Train in a process that shares nothing with this one, and return what it said."""
    command = [sys.executable, "-c", CHILD]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_oracles_of_new_processes_are_refused_while_a_run_is_attacked():
    tape = record(in_a_new_process, (X, Y))
    assert tape.outcome.startswith("UnobservedOracle an oracle cannot be observed")
    # Nothing is left of it: processes that are started afterwards may train.
    assert "DPCAL_OBSERVING" not in os.environ


@pytest.mark.slow
def test_a_process_that_outlives_the_attack_may_train():
    started = []

    def left_running(table):
        # It trains when it is told to: after the attack.
        waits = "input()\n" + CHILD
        command = [sys.executable, "-c", waits]
        started.append(subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True))

    record(left_running, (X, Y))
    (child,) = started
    said, errors = child.communicate("\n")
    assert said.strip() == "trained", errors
