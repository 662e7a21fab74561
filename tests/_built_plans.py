"""Plans of every optimizer and a problem for them, which contracts run; and plans by hand."""

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.accountants.matrix import Banded, LambdaCGD
from dpcal.calibrate import Plan, Query
from dpcal.optim.minimax import ToySaddle
from dpcal.optim.registry import OPTIMIZERS

DELTA = 1e-5


def query(kind="gradient", *, name="", sampler="full", count=1, **fields):
    """Return a query for answers of norm one with noise of one, named like its kind."""
    given = {"max_norm": 1.0, "noise_multiplier": 1.0, **fields}
    return Query(name=name or kind, kind=kind, sampler=sampler, count=count, **given)


def plan_of(*queries, n, epsilon=9.0, delta=DELTA, optimizer="test", **fields):
    """Return a plan of these queries, whatever they cost."""
    return Plan(optimizer=optimizer, n=n, queries=queries, epsilon=epsilon, delta=delta, **fields)


def logistic(n, d):
    """Return a logistic regression on rows of norm one."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X[:, 0] + 0.1 * rng.standard_normal(n) > 0
    return optim.Logistic(X, y, fit_intercept=False, classes_from_data=True)


def records(n):
    """Return rows of norm one in four dimensions, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.random(n) < 1 / (1 + np.exp(-5 * X[:, 0]))


class Interpreted(optim.Objective):
    """An objective without a kernel: that of another one."""

    clipped_sum = clipped_difference_sum = loss = digest = None

    def __init__(self, inner):
        names = "n dimension l2 penalized clipped_sum clipped_difference_sum loss digest"
        for name in (*names.split(), "smoothness_when_convex"):
            setattr(self, name, getattr(inner, name))


def target(n, epsilon=4.0, **more):
    return {"n": n, "epsilon": epsilon, "delta": DELTA, **more}


# Public constants of the regression above: its losses are 1-Lipschitz and 1/4-smooth.
CONSTANTS = calibrate.Constants(lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1)
DIMENSION = 3

# For each optimizer, its builder's arguments beside the constants and the target.
PROBLEM = {"dimension": DIMENSION}
KL = {**PROBLEM, "gamma": 2.0}
SADDLE = {"dimensions": (2, 2)}
EMBEDDED = {"dimension": 400, "embedding_dimension": 5}
BUILT = {
    "dpsgd": [
        {"batch_size": 100, "epochs": 1},
        # One batch of all records: the price of a shuffle of several takes a second.
        {"batch_size": 2_000, "epochs": 3, "sampler": "shuffled-epochs"},
        {"batch_size": 50, "epochs": 10, "sampler": "random-allocation"},
    ],
    "noisy_gd": [PROBLEM, {**PROBLEM, "steps": 5, "max_norm": 0.1}],
    "spiderboost": [
        PROBLEM,
        {**PROBLEM, "steps": 200, "batch_size": 50},
        {**PROBLEM, "preset": "theory"},
    ],
    "tree_spider": [PROBLEM, {**PROBLEM, "preset": "theory"}],
    "recursive_regularization": [
        PROBLEM,
        {**PROBLEM, "subsolver": "phased_sgd"},
        {**PROBLEM, "preset": "theory", "distance": 0.5, "n": 60},
    ],
    "jl_glm": [
        EMBEDDED,
        {**EMBEDDED, "matrix": "sparse", "inner": "noisy_gd"},
        {**EMBEDDED, "inner": "tree_spider"},
        {**EMBEDDED, "inner": "recursive_regularization"},
        {**EMBEDDED, "preset": "theory"},
    ],
    "kl_spider": [KL, {**KL, "kappa": 1.0}, {**KL, "preset": "theory"}],
    "adaptive_gd": [KL, {**KL, "preset": "theory"}],
    "proximal_point": [
        {**KL, "kappa": 3.0, "inner_steps": 32},
        {**KL, "kappa": 3.0, "preset": "theory"},
    ],
    "gauss_psgd": [
        PROBLEM,
        {**PROBLEM, "passes": 3, "reset": "fresh"},
        {**PROBLEM, "period": 4, "reset": "carry"},
        {**PROBLEM, "drift": 0.0, "failure_probability": 0.1},
        {**PROBLEM, "preset": "theory"},
    ],
    "distributed_psgd": [PROBLEM],
    "dp_rgda": [
        {**SADDLE, "steps": 30, "batch_size": 200, "accuracy": 0.5},
        {**SADDLE, "preset": "theory"},
        {**SADDLE, "preset": "population"},
    ],
    "dp_sgda": [{**SADDLE, "steps": 60, "batch_size": 100}],
    "privatediff": [{**SADDLE, "steps": 12}],
    "sto_spider": [{**PROBLEM, "steps": 30}],
    "ada_dp_spider": [{**PROBLEM, "steps": 30}],
    "correlated_dpsgd": [
        {"strategy": LambdaCGD(20, 0.5), "batch_size": 100, "statistics": False, "seed": 3},
        {"strategy": LambdaCGD(20, 0.5), "batch_size": None, "sampler": "full", "seed": 3},
        {
            "strategy": Banded(20, 2, [1.0, 0.4]),
            "batch_size": 100,
            "sampler": "cyclic-poisson",
            "statistics": False,
            "seed": 3,
        },
        {
            "strategy": LambdaCGD(20, 0.5),
            "batch_size": 100,
            "sampler": "balls-in-bins",
            "separation": 20,
            "statistics": "asymptotic",
            "draws": 2_000,
            "seed": 3,
            "delta": 1e-2,
        },
    ],
}
RECORDS = {"tree_spider": 20_000}


def relations(name, number, options):
    """Return every relation for an optimizer's first case, and one in turn for each other case."""
    known = OPTIMIZERS[name].relations
    if options.get("inner") in ("tree_spider", "recursive_regularization"):
        known = OPTIMIZERS[options["inner"]].relations
    return known if number == 0 else [known[number % len(known)]]


CASES = [
    pytest.param(name, options, relation, id=f"{name} {number} {relation}")
    for name, rows in BUILT.items()
    for number, options in enumerate(rows)
    for relation in relations(name, number, options)
]


def built(name, options, relation):
    """Return the plan of an optimizer's own builder, and an objective that fits it."""
    n = RECORDS.get(name, 2_000)
    asked = {**target(n, neighboring_relation=relation), **options}
    build = getattr(calibrate, name)
    if not OPTIMIZERS[name].constants:
        asked["batch_size"] = asked["batch_size"] or n
        first = [asked.pop("strategy")] if "strategy" in asked else []
        return build(*first, **asked), logistic(n, DIMENSION)
    if OPTIMIZERS[name].blocks:
        problem = ToySaddle(n=asked["n"], seed=7)
        return build(problem.constants, **asked), problem
    return build(CONSTANTS, **asked), logistic(asked["n"], asked["dimension"])
