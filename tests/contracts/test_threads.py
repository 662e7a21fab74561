"""Kernels keep no state between calls: threads that share inputs get the bits of one thread."""

import sys
import warnings

import numpy as np
import pytest
from _correlated_runs import price
from _tree import ROOT
from contracts._runs import SMALL, together
from saddles import Trigonometric

from dpcal import accountants, optim
from dpcal.accountants import correlated, events, matrix
from dpcal.calibrate import Constants, dpsgd, recursive_regularization

THREADS, ROUNDS = 3, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
Y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
PLAN = dpsgd(n=400, batch_size=40, steps=15, epsilon=2.0, delta=1e-5)
SIZES = {"n": 400, "dimension": 6, "epsilon": 2.0, "delta": 1e-5, "subsolver": "phased_sgd"}
PASSES = recursive_regularization(Constants(lipschitz=1.0, smoothness=0.25, gap=0.7), **SIZES)
SHARED = optim.Logistic(X, Y > 0, classes=[False, True])


def run(name, objective, plan, **options):
    with optim.replaying():
        return np.asarray(getattr(optim, name)(objective, plan, seed=3, **options).w).tobytes()


def priced(event, **options):
    found = accountants.epsilon(event, delta=1e-6, **options)
    return found.lower, found.upper


def simulated():
    asked = {"delta": 1e-3, "noise_multiplier": 2.0, "draws": 500, "seed": 1}
    found = price(matrix.LambdaCGD(20, 0.5), correlated.Poisson(0.2), **asked)
    return found.lower, float(found)


def of_run(run):
    return lambda: run().w.tobytes()


def tasks():
    """Return functions whose answers do not depend on time; inputs are shared by all threads."""
    step = events.PoissonSampledDpEvent(0.01, events.GaussianDpEvent(1.0))
    batch = events.SampledWithoutReplacementDpEvent(1000, 10, events.GaussianDpEvent(2.0))
    return {
        "question": lambda: priced(events.SelfComposedDpEvent(step, 1000)),
        "contour": lambda: priced(events.SelfComposedDpEvent(batch, 50)),
        "correlated": simulated,
        "shared objective": lambda: run("dpsgd", SHARED, PLAN),
        "one pass": lambda: run("recursive_regularization", SHARED, PASSES),
        "trigonometric": lambda: run("dpsgd", Trigonometric(X), PLAN),
        "softmax": lambda: run("dpsgd", optim.Softmax(X, Y, classes=[0, 1, 2]), PLAN),
        **{f"run of {name}": of_run(run) for name, (run, *_) in SMALL.items()},
    }


def in_threads(task):
    """Return the answers of all threads."""
    found = []

    def work():
        for _ in range(ROUNDS):
            try:
                found.append(task())
            except Exception as error:  # the assertion shows it
                found.append(repr(error))

    together(THREADS, work)
    return found


@pytest.mark.slow
def test_threads_get_the_bits_of_one_thread():
    warnings.simplefilter("ignore")
    for name, task in tasks().items():
        assert set(in_threads(task)) == {task()}, name
    loaded = {each.rpartition(".")[2] for each in sys.modules if each.startswith("dpcal._ext.")}
    assert {source.stem for source in (ROOT / "_ext").glob("*.pyx")} <= loaded
