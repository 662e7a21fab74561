"""Networks: bounds of single records, blocks and splines."""

import math

import numpy as np
import pytest
from scipy.interpolate import BSpline

from dpcal.optim import KAN, MLP

N, D = 40, 5
RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (N, D))
TWO = X[:, 0] * X[:, 1] > 0.1
THREE = np.digitize(X[:, 0] + X[:, 2], [-0.4, 0.4])
NETWORKS = {
    "mlp": MLP(X, THREE, width=6, l2=0.1, classes=[0, 1, 2]),
    "kan": KAN(X, TWO, width=6, intervals=4, l2=0.1, classes=[False, True]),
}


@pytest.fixture(params=NETWORKS)
def network(request):
    return NETWORKS[request.param]


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e150, 1e308])
def test_no_record_moves_a_sum_by_more_than_the_bound(network, scale):
    # Also where activations saturate, products overflow, or nothing is a number any more.
    w = scale * np.clip(network.initial(seed=8), -1.0, 1.0)
    for bound in (1e-3, 1.0):
        for row in range(N):
            moved = network.clipped_sum(w, np.array([row]), bound)
            assert np.isfinite(moved).all()
            # The bound holds to the last bit, in exact arithmetic on the sum of one record.
            assert math.fsum(x * x for x in moved) <= bound**2 * (1 + 2.0**-50)


def test_blocks_do_not_change_sums(network, monkeypatch):
    w, rows = network.initial(seed=9), np.arange(N)
    whole = network.clipped_sum(w, rows, 0.5)
    monkeypatch.setattr("dpcal.optim.objectives.networks._BLOCK", 7)
    assert network.clipped_sum(w, rows, 0.5) == pytest.approx(whole, rel=1e-12, abs=1e-14)


def test_splines_are_a_partition_of_unity_with_known_values():
    network = NETWORKS["kan"]
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
