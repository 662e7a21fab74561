"""One pass of descent with noise in whole numbers: its rounding, its sensitivity, its refusals."""

import dataclasses
import math

import numpy as np
import pytest
from _built_plans import plan_of, query

from dpcal._ext.sums import grid_step
from dpcal.errors import UnsupportedEvent
from dpcal.optim import Logistic, PrivateOracle, Squared
from dpcal.optim.boundary.noise import rounded
from dpcal.optim.boundary.sealed import Pass

N, D, ETA, BOUND = 200, 6, 0.5, 0.1
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * 10.0 ** RNG.integers(-3, 6, (N, 1))
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0)
OBJECTIVE = Logistic(X, Y, fit_intercept=False, classes=[-1, 1])
WHOLE = {"sampler": "fixed-size", "batch_size": N, "composition": "disjoint"}
QUERY = query("one pass", name="pass", max_norm=BOUND, noise_multiplier=3.0, **WHOLE)
PLAN = plan_of(QUERY, n=N, neighboring_relation="replace-one")
ORIGIN = np.zeros(D)
OPTIONS = {"learning_rate": ETA, "strength": 0.3, "radius": 2.0}


def planned(objective=OBJECTIVE, one=QUERY, w=ORIGIN, **options):
    center = np.full(objective.dimension, 0.1)
    return Pass.planned(one, objective, w, **{**OPTIONS, "center": center, **options})


def extended(one_pass, w, table, targets):
    """The mean iterate of a logistic pass in numbers of 64 bits' precision."""
    w, mean = w.astype(np.longdouble), np.zeros(len(w), np.longdouble)
    for x, target in zip(table.astype(np.longdouble), targets, strict=True):
        mean += w
        norm = np.sqrt(x @ x)
        slope = -target / (1 + np.exp(target * (x @ w)))
        slope = np.clip(slope, -one_pass.max_norm / norm, one_pass.max_norm / norm)
        scale = min(1, one_pass.room / (norm * norm / 4))
        w = w - ETA * (scale * slope * x + one_pass.pull * (w - one_pass.target))
        size = np.sqrt(w @ w)
        if size > one_pass.radius:
            w = w * (one_pass.radius / size)
    return mean / len(table)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 2.0**-63, reason="no wider floats here")
def test_a_computed_mean_is_as_close_as_the_bound_says():
    w = RNG.standard_normal(D) / 3
    one_pass = planned(w=w)
    computed = one_pass.mean_iterate(OBJECTIVE, w, np.arange(N, dtype=np.intp))
    error = float(np.linalg.norm(computed - extended(one_pass, w, X, Y)))
    assert 0 < error < N * (4 * D + 100) * 2.0**-53 * (2 + 0.5 + BOUND)


def test_a_record_moves_a_rounded_mean_by_what_is_priced():
    far = np.zeros((N, D))
    far[0] = 100.0
    objectives = [
        Squared(np.abs(far), np.full(N, sign * 1e6), fit_intercept=False) for sign in (1, -1)
    ]
    rows, w = np.arange(N, dtype=np.intp), np.zeros(D)
    short = dataclasses.replace(QUERY, max_norm=1e-3)
    means = [
        rounded(planned(each, short, radius=math.inf).mean_iterate(each, w, rows)).whole(1e-3)
        for each in objectives
    ]
    moved = np.linalg.norm(means[0] - means[1]) * grid_step(short.max_norm)
    # The regulariser forgets the first record.
    assert 0 < moved <= 2 * short.max_norm
    assert math.sqrt(D) / 2 * grid_step(BOUND) / BOUND < planned().lost < 1e-5


def test_answers_are_whole_steps_with_noise_of_the_planned_size():
    answers = [
        PrivateOracle(OBJECTIVE, PLAN, seed=seed).one_pass(np.zeros(D), "pass", **OPTIONS)
        for seed in range(60)
    ]
    steps = np.array(answers) / grid_step(BOUND)
    assert (steps == np.rint(steps)).all()
    assert 0.85 < np.std(answers) / (3.0 * BOUND) < 1.15


def test_rounding_that_takes_too_much_is_refused_and_nothing_is_spent():
    oracle = PrivateOracle(OBJECTIVE, PLAN)
    with pytest.raises(UnsupportedEvent, match="rounding may take at most"):
        oracle.one_pass(np.full(D, 1e12), "pass", **{**OPTIONS, "radius": math.inf})
    assert oracle.ledger.answers == 0


def test_rounding_of_the_longest_iterates_is_taken_off_the_bound():
    """After 10,000 steps of the bound, each rounded as the module says, beside the grid's."""
    objective, steps = Logistic(X[:, :3], Y, fit_intercept=False, classes=[-1, 1]), 10_000
    one = dataclasses.replace(QUERY, max_norm=1.0, batch_size=steps)
    free = {"learning_rate": 1.0, "strength": 0.0, "center": None, "radius": math.inf}
    lost = planned(objective, one, np.zeros(3), **free).lost
    least = steps * (4 * 3 + 100) * 2.0**-53 * steps + math.sqrt(3) / 2 * grid_step(1.0)
    assert least <= lost < 1.01 * least
