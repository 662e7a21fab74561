"""Runs with correlated noise: strategies, samplers, and a plan of each."""

import numpy as np

from dpcal import calibrate
from dpcal.accountants.matrix import (
    BISR,
    BLT,
    Banded,
    Identity,
    LambdaCGD,
    SquareRoot,
    Tree,
)
from dpcal.optim import Logistic

N, T = 120, 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
OBJECTIVE = Logistic(X, X[:, 0] > 0.2, classes_from_data=True)
THREE = Banded(T, 3, [1.0, 0.5, 0.25])

# Strategy, sampling and whether the price needs no draws.
RUNS = {
    "independent": (Identity(T), {"batch_size": 12}, True),
    "lambda-CGD": (LambdaCGD(T, 0.5), {"batch_size": 12}, False),
    "banded, Poisson": (THREE, {"batch_size": 12}, False),
    "banded, cyclic": (THREE, {"batch_size": 12, "sampler": "cyclic-poisson"}, True),
    "banded, separated": (THREE, {"batch_size": 12, "sampler": "min-separation"}, False),
    "lambda-CGD, allocated": (
        LambdaCGD(T, 0.5),
        {"batch_size": 30, "sampler": "random-allocation"},
        False,
    ),
    "inverse, bins": (BISR(T, 2), {"batch_size": 30, "sampler": "balls-in-bins"}, False),
    "square root, all": (SquareRoot(T), {"batch_size": N, "sampler": "full"}, True),
    "buffered, all": (BLT(T, (0.6,), (0.4,)), {"batch_size": N, "sampler": "full"}, True),
    "tree, all": (Tree(T), {"batch_size": N, "sampler": "full"}, True),
}


def plan_for(strategy=None, *, batch_size=12, **options):
    settings = {"n": N, "epsilon": 2.0, "delta": 1e-2, "draws": 4_000, "seed": 1, **options}
    strategy = LambdaCGD(T, 0.5) if strategy is None else strategy
    return calibrate.correlated_dpsgd(strategy, batch_size=batch_size, **settings)
