"""Runs that are kept in a store or a book: one small problem and a plan of each optimizer."""

from functools import cache

import numpy as np

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants, Plan, Query

RNG = np.random.default_rng(0)
N, D = 2_000, 3
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X[:, 0] > 0
OBJECTIVE = optim.Logistic(X, Y, l2=0.1, fit_intercept=False, classes_from_data=True)
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=0.7)
TARGET = {"n": N, "epsilon": 4.0, "delta": 1e-5}
OPTIONS = {
    "noisy_gd": {"steps": 30},
    "spiderboost": {"steps": 30, "batch_size": 200},
    "kl_spider": {"l2": 0.1},
    "adaptive_gd": {"steps": 30},
    "proximal_point": {"gamma": 2.0, "kappa": 2.0, "inner_steps": 5},
    "recursive_regularization": {
        "distance": 3.0,
        "neighboring_relation": "replace-one",
        "subsolver": "noisy_gd",
    },
    "tree_spider": {"neighboring_relation": "replace-one"},
}
OPTIMIZERS = ("dpsgd", "correlated_dpsgd", *OPTIONS)


@cache
def plan_of(name):
    """Return the plan of an optimizer."""
    if name == "dpsgd":
        return calibrate.dpsgd(batch_size=100, steps=30, **TARGET)
    if name == "correlated_dpsgd":
        return calibrate.correlated_dpsgd(
            LambdaCGD(30, 0.5), batch_size=N, sampler="full", **TARGET
        )
    return getattr(calibrate, name)(CONSTANTS, dimension=D, **TARGET, **OPTIONS[name])


def gaussian(sigma=4.0, count=1, *, relation="add-or-remove-one", group_size=1, **parameters):
    """Return a plan of full-batch Gaussian answers."""
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="full",
        max_norm=1.0,
        noise_multiplier=sigma,
        count=count,
        group_size=group_size,
    )
    return Plan(
        optimizer="noisy_gd",
        n=N,
        queries=(query,),
        epsilon=9.0,
        delta=1e-6,
        neighboring_relation=relation,
        parameters={"learning_rate": 0.1, **parameters},
    )


def interrupted_at(count):
    """Return a callback that raises at its ``count``-th call, as Ctrl-C would."""
    calls = iter(range(count))

    def callback(progress):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return callback
