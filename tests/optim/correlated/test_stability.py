"""Coupled runs of KANs (Wang et al. 2026, Lemma C.16): every step within its bound."""

import math

import numpy as np
import pytest

from benchmarks.problems.kan_stability import constants, coupled, table
from dpcal.optim import KAN


def test_the_constants_bound_gradients_and_hessians_of_scores():
    """At random weights, by differences of the scores' exact gradients."""
    X, y = table(30, 2, 0)
    network = KAN(X, y, width=5, intervals=4, classes=[False, True])
    a, b = constants(network)
    rng = np.random.default_rng(1)
    largest = 0.0
    for _ in range(200):
        w = 3 * rng.standard_normal(network.dimension)
        for i in rng.integers(0, 30, 3):
            H = network._H[i : i + 1]

            def gradient(w, H=H):
                return np.outer(network._forward(w, H)[1][0], H[0]).ravel()

            g = gradient(w)
            assert np.linalg.norm(g) <= b
            # The Hessian has one block a unit, of rank one.
            step = 1e-5 * np.tile(H[0], 5) / np.linalg.norm(H)
            change = (gradient(w + step) - gradient(w - step)).reshape(5, -1) / 2e-5
            curvature = np.linalg.norm(change, axis=1).max()
            assert curvature <= a / 2
            largest = max(largest, curvature / (a / 2))
    assert largest > 0.3


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_no_step_moves_coupled_runs_apart_by_more_than_its_bound(decay, rate):
    apart = 0.0
    for record in range(3):
        (after, bound, growth, added, _), b = coupled(
            8, n=60, steps=40, batch=20, decay=decay, rate=rate, record=record, seed=record
        )
        assert (after <= bound * (1 + 1e-9)).all()
        assert growth.min() > 0
        # Before the record is drawn, the runs are one and the same.
        first = int(np.argmax(added > 0))
        assert (after[:first] == 0).all()
        # Some step of the record's own batch comes within a fifth of its bound.
        apart = max(apart, float((after[added > 0] / bound[added > 0]).max()))
        assert math.isfinite(b)
    assert apart > 0.2


def test_small_growth_keeps_the_distance_within_e_times_what_was_added():
    """Lemma C.21, where its condition holds."""
    for record in range(3):
        (after, _, growth, added, _), _ = coupled(
            64, n=60, steps=30, batch=20, rate=0.005, record=record, seed=record
        )
        assert growth.sum() <= 1
        assert (after <= math.e * np.cumsum(added) * (1 + 1e-9)).all()
        assert after[-1] > 0.2 * added.sum()
