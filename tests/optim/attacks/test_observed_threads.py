"""Attacks see the oracles of threads, and refuse runs with oracles that they cannot see."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.errors import UnobservedOracle
from dpcal.optim import Logistic, attacks

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


def inside(run):
    """Return a run in a thread that knows its observer."""

    def started(table):
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(copy_context().run, run, table).result()

    return started


def test_oracles_of_threads_are_seen():
    assert all(each.holds for each in attacks.replay_table(inside(trained), X, Y))
    found = attacks.replay_table(inside(leaking), X, Y)
    assert not all(each.holds for each in found)
    assert {each.answers for each in found} == {PLAN.queries[0].count}


def test_threads_that_know_no_observer_are_refused():
    with ThreadPoolExecutor(1) as executor:
        executor.submit(int).result()

        def run(table):
            trained(table)
            return executor.submit(trained, table).result()

        with pytest.raises(UnobservedOracle, match="1 oracles were opened in other threads"):
            attacks.replay_table(run, X, Y)
    # Nothing is left of it: other runs are as they were.
    assert optim.dpsgd(Logistic(X, Y, classes=[0, 1]), PLAN).complete


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_oracles_of_forked_processes_are_refused():
    fork = multiprocessing.get_context("fork")

    def run(table):
        with ProcessPoolExecutor(1, mp_context=fork) as executor:
            return executor.submit(trained, table).result()

    with pytest.raises(UnobservedOracle, match="in a forked process"):
        attacks.replay_table(run, X, Y)
