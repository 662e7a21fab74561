"""Clipped sums of the trigonometric problem, against its formulas."""

import math

import numpy as np
import pytest

from dpcal._ext.answers import distance, norm
from dpcal._ext.trigonometric import TrigonometricClippedSum
from dpcal.optim.objectives.arrays import clipped_rows

D, N = 5, 6_000
RNG = np.random.default_rng(0)
Z = RNG.uniform(-1, 1, (N, D))
SADDLE = math.pi * np.eye(D)[0]


def direct(w, rows, v=None):
    table = np.sin(Z[rows] + w)
    return table if v is None else table - np.sin(Z[rows] + v)


@pytest.mark.parametrize("max_norm", [0.3, 1.5, 10.0])
def test_sums_are_those_of_the_formula(max_norm):
    kernel = TrigonometricClippedSum(Z)
    rows = RNG.integers(0, N, 400)
    for scale in (1e-8, 1.0, 1e6):
        w = RNG.standard_normal(D) * scale
        v = w + RNG.standard_normal(D) * min(scale, 1.0)
        expected = clipped_rows(direct(w, rows), max_norm)
        assert np.allclose(kernel(w, rows, max_norm=max_norm), expected, atol=1e-9 * (1 + scale))
        expected = clipped_rows(direct(w, rows, v), max_norm)
        found = kernel.difference(w, v, rows, max_norm=max_norm)
        assert np.allclose(found, expected, atol=1e-9 * (1 + scale))
    losses = (1 - np.cos(Z[rows] + v)).sum(axis=1)
    assert kernel.losses(v, rows, max_loss=2.0) == pytest.approx(np.clip(losses, -2, 2).sum())


def test_no_record_moves_a_sum_farther_than_the_bound():
    kernel = TrigonometricClippedSum(Z[:50])
    for _ in range(100):
        w, v = RNG.standard_normal((2, D)) * 10.0 ** RNG.integers(-180, 3)
        for share in (1e-3, 0.5, 1.0):
            bound = share * distance(w, v)
            if bound < 1e-290:
                continue
            for row in (0, 7):
                alone = kernel.difference(w, v, [row], max_norm=bound)
                largest = np.abs(alone).max()
                if largest > 0:
                    assert largest * norm(alone / largest) <= bound * (1 + 4e-16)
    # Differences of near points keep their digits.
    h = np.zeros(D)
    h[0] = 1e-12
    found = kernel.difference(SADDLE + h, SADDLE, [0], max_norm=1.0)[0]
    moved = (SADDLE + h)[0] - SADDLE[0]
    assert found == pytest.approx(moved * math.cos(Z[0, 0] + math.pi), rel=1e-9)
