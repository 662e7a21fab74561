"""Networks of splines: what they compute, bounds on gradients, and coupled steps of two."""

import math

import numpy as np
import pytest
from scipy.interpolate import BSpline

from dpcal.optim import KAN

N, D = 40, 5
RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (N, D))
TWO = X[:, 0] * X[:, 1] > 0.1


def test_splines_are_a_partition_of_unity_with_known_values():
    network = KAN(X, TWO, width=6, intervals=4, classes=[False, True])
    x = np.linspace(-1, 1, 201)[:, np.newaxis] * np.ones((1, D))
    values = network._basis(x).reshape(201, D, 7)
    assert values.sum(axis=2) == pytest.approx(1.0, abs=1e-14)
    assert values.max() == pytest.approx(2 / 3, abs=1e-14)
    # sup ||h(v)|| is that of (1/6, 2/3, 1/6), at a knot.
    assert np.linalg.norm(values, axis=2).max() == pytest.approx(1 / math.sqrt(2), abs=1e-12)
    beyond = network._basis(np.array([[-3.0] * D, [3.0] * D]))
    assert (beyond == network._basis(np.array([[-1.0] * D, [1.0] * D]))).all()


def test_the_kan_is_the_composition_of_splines_that_it_says():
    network = KAN(X, TWO, width=4, intervals=5, seed=2, classes=[False, True])
    w = network.initial(seed=0)
    knots = -1 + 0.4 * np.arange(-3, 9)
    second = np.random.default_rng(2).standard_normal((8, 4))
    first = np.hstack([BSpline(knots, np.eye(8), 3)(X[:, k]) for k in range(D)])
    units = np.tanh(first @ w.reshape(4, -1).T / math.sqrt(D))
    each = [BSpline(knots, second[:, j], 3)(units[:, j]) for j in range(4)]
    assert network.decision(X, w) == pytest.approx(np.sum(each, axis=0) / 2, abs=1e-13)


def test_the_gradient_of_a_kan_has_a_bound_that_needs_no_data():
    # sup |tanh'| * sup ||h'|| * sup ||h|| * ||c|| / sqrt(m), with d rows of h in one record's norm
    # against the 1 / d of the scores.
    network = KAN(X, TWO, width=8, intervals=4, seed=0, classes=[False, True])
    second = np.random.default_rng(0).standard_normal((7, 8))
    slope = math.sqrt(13) / (4 * 0.5)
    bound = slope / math.sqrt(2) * np.linalg.norm(second) / math.sqrt(8)
    for seed in range(5):
        w = 3 * network.initial(seed=seed)
        for row in range(N):
            gradient = network.clipped_sum(w, np.array([row]), np.inf)
            assert np.linalg.norm(gradient) <= bound * (1 + 1e-12)


def derivatives_of(network):
    """Return the largest norms of the gradient and of a block of the Hessian of any score.

    A hidden unit adds s(tanh(u)), whose derivatives by u are taken on a fine grid; between its
    points they are larger by less than the factor 1.01.
    """
    t = np.linspace(-1, 1, 4_001)[1:-1]
    knots = -1 + 2 / network.intervals * np.arange(-3, network.intervals + 4)
    weights = np.random.default_rng(0).standard_normal((network.intervals + 3, network.width))
    first, second = (BSpline(knots, weights, 3).derivative(k)(t) for k in (1, 2))
    slope = (1 - t * t)[:, np.newaxis]
    by_u, by_uu = first * slope, second * slope**2 - 2 * t[:, np.newaxis] * slope * first
    longest = math.sqrt(D / 2 / D)  # of a record's splines over the root of its columns
    root = math.sqrt(network.width)
    norm = np.linalg.norm(abs(by_u).max(axis=0))
    return 1.01 * longest * norm / root, 1.01 * longest**2 * abs(by_uu).max() / root


@pytest.mark.parametrize("width", [4, 32])
def test_no_step_moves_two_coupled_runs_apart_by_more_than_its_bound(width):
    """Wang et al. 2026, Lemma C.16, for runs with one start, noise and batches.

    D' <= (1 + eta (l + l') a) D + [the record is drawn] (eta b / B) (its losses in both tables),
    where l are losses of the batch, b bounds a score's gradient, and a is twice its Hessian's
    bound. The noise cancels, so that the lemma is about any two places.
    """
    changed, labels, apart = X.copy(), TWO.copy(), []
    changed[0], labels[0] = -X[0], not TWO[0]
    ours, theirs = (
        KAN(*table, width=width, intervals=4, seed=0, classes=[False, True])
        for table in ((X, TWO), (changed, labels))
    )
    b, half = derivatives_of(ours)
    rng = np.random.default_rng(1)
    for trial in range(300):
        w = ours.initial(seed=trial)
        v = w + rng.choice([0.0, 1e-3, 1.0]) * rng.standard_normal(w.size)
        rows, eta, before = (
            rng.permutation(N)[:10],
            10.0 ** rng.integers(-2, 2),
            np.linalg.norm(w - v),
        )
        losses = ours.record_losses(w, rows), theirs.record_losses(v, rows)
        growth = 2 * half * eta * sum(each.mean() for each in losses)
        added = eta * b / 10 * sum(each[rows == 0].sum() for each in losses)
        w = w - eta / 10 * ours.clipped_sum(w, rows, b)
        v = v - eta / 10 * theirs.clipped_sum(v, rows, b)
        after = np.linalg.norm(w - v)
        assert after <= ((1 + growth) * before + added) * (1 + 1e-9)
        if before == 0 and added > 0:
            apart.append(after / added)
    # Where the record alone moves the runs apart, it does so by a fair part of the bound.
    assert max(apart) > 0.2
