"""Population gradients and learned matrices: the studies of one pass, of rounds, and of sensing."""

import math

import numpy as np
import pytest

from benchmarks.optimizers_spider import fitted, leaves, location
from benchmarks.problems.sensing_learned import learned, plans


def test_slopes_and_their_intervals_are_those_of_a_line():
    sizes = (100, 400, 1_600)
    exact = fitted(sizes, [[7 * n ** (-1 / 3) for n in sizes]] * 3)
    assert exact["slope"] == pytest.approx(-1 / 3)
    assert exact["interval"] == pytest.approx([-1 / 3, -1 / 3])
    noisy = fitted(sizes, [[1, 0.5, 0.25], [1, 0.25, 1 / 16]])
    assert noisy["slope"] == pytest.approx(-0.75)
    half = 12.706 * 0.25  # Student's t with one degree of freedom
    assert noisy["interval"] == pytest.approx([-0.75 - half, -0.75 + half], rel=1e-4)


def test_the_rest_of_the_records_makes_a_tree_s_gradient_smaller():
    """Each of three seeds; the gap is a factor of six in docs/optimizers_spider.md."""
    for seed in range(3):
        stopped, ended = leaves(100_000, seed)
        assert ended < stopped / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "epsilon", "low", "high"), [(5, 4.0, -0.9, -0.2), (100, 0.5, -1, -0.5)]
)
def test_rounds_have_about_the_slope_of_their_theorem(d, epsilon, low, high):
    """Two sizes a factor of ten apart, medians of three seeds."""
    ends = [
        np.median([location(n, seed, d=d, epsilon=epsilon) for seed in range(3)])
        for n in (1_000, 10_000)
    ]
    assert low < math.log10(ends[1] / ends[0]) < high


@pytest.mark.slow
def test_nothing_is_learned_from_the_paper_s_number_of_measurements_and_noise_alone_is_worse():
    assert all(plan.price() <= 2.0 for plan in plans(400).values())
    rows = {label: losses for label, losses, _ in learned(400, 1)}
    assert rows["DP-RGDA"][0] > rows["the start"][0]
    assert rows["noisy_gd, without data"][0] > rows["noisy_gd"][0]
    assert rows["DP-RGDA, without data"][0] > rows["the start"][0]
