"""Plans of every optimizer and a problem for them, which contracts run; and plans by hand."""

import math
import tomllib

import numpy as np
import pytest
from _tree import DATA
from saddles import ToySaddle

from dpcal import calibrate, optim
from dpcal._ext.sums import grid_step
from dpcal.accountants import matrix
from dpcal.calibrate import Plan, Query
from dpcal.calibrate.plans.theory import THEOREMS
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.registry import OPTIMIZERS

DELTA = 1e-5


def query(kind="gradient", *, name="", sampler="full", count=1, **fields):
    """Return a query for answers of norm one with noise of one, named like its kind."""
    given = {"max_norm": 1.0, "noise_multiplier": 1.0, **fields}
    return Query(name=name or kind, kind=kind, sampler=sampler, count=count, **given)


def plan_of(*queries, n, epsilon=9.0, delta=DELTA, optimizer="test", **fields):
    """Return a plan of these queries, whatever they cost."""
    return Plan(optimizer=optimizer, n=n, queries=queries, epsilon=epsilon, delta=delta, **fields)


def noise_again(generator, multiplier, bound, size):
    """Draw the noise of a sum again, from its stream: that of a multiplier and a bound."""
    step = grid_step(bound)
    return step * DiscreteNormals.covering(multiplier * (bound / step), generator).draw(size)


def rounding(bound, d, records, size=None, *, clipped=True):
    """Return how far a mean of d whole numbers of steps may be from that of real ones, in norm.

    Each coordinate of a contribution is rounded, and so is the noise. What is clipped is shorter by
    3/2 (sqrt(d) + 1) steps, and by 2^-40 of the bound, which has up to 2^21 steps.
    """
    shorter = 1.5 * math.sqrt(d) + 1.51 if clipped else 0.0
    steps = records * (shorter + math.sqrt(d) / 2) + math.sqrt(d) / 2
    return steps * grid_step(bound) / (size or records)


def theory_of(name, constants, *, dimension=None, dimensions=(), **given):
    """Return the plan of a theorem at constants; an unknown gap is as large as it may be."""
    letters = {
        letter: getattr(constants, field) for letter, field in THEOREMS[name].constants.items()
    }
    letters |= {"F0": 1e300} if letters.get("F0", 0) is None else {}
    return calibrate.theory(name, d=dimension or sum(dimensions), **letters, **given)


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

    def __init__(self, inner):
        for name in ("n", "dimension", "l2", "penalized", "digest"):
            setattr(self, name, getattr(inner, name))
        self._inner = inner

    def contributions(self, rows, *at):
        return self._inner.contributions(rows.copy(), *at)


def target(n, epsilon=4.0, **more):
    return {"n": n, "epsilon": epsilon, "delta": DELTA, **more}


# Public constants of the regression above: its losses are 1-Lipschitz and 1/4-smooth.
CONSTANTS = calibrate.Constants(lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1)
DIMENSION = 3


def _read(row):
    """Return arguments of a builder: a strategy made, and pairs of sizes as such."""
    if "strategy" in row:
        ((name, values),) = row["strategy"].items()
        row["strategy"] = getattr(matrix, name)(*values)
    if "dimensions" in row:
        row["dimensions"] = tuple(row["dimensions"])
    return row


# For each optimizer, its builder's arguments beside the constants and the target.
BUILT = {
    name: [_read(row) for row in rows]
    for name, rows in tomllib.loads((DATA / "optimizers.toml").read_text(encoding="utf-8")).items()
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
        asked["batch_size"] = n if asked["batch_size"] == "all" else asked["batch_size"]
        first = [asked.pop("strategy")] if "strategy" in asked else []
        return build(*first, **asked), logistic(n, DIMENSION)
    if OPTIMIZERS[name].blocks:
        problem = ToySaddle(n=asked["n"], seed=7)
        return build(problem.constants, **asked), problem
    return build(CONSTANTS, **asked), logistic(asked["n"], asked["dimension"])
