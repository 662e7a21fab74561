"""The characteristic accountant against 140-bit reference values and published constants."""

import json
import math

import pytest
from _tree import DATA
from mpmath import mp, mpf

from dpcal import accountants
from dpcal.accountants import characteristic, events
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

ROWS = json.loads((DATA / "poisson_gaussian.json").read_text())["rows"]


def _case(row):
    loss = SampledGaussian(row["q"], row["sigma"], row["direction"])
    with mp.workdps(40):
        truth = float(mp.log(mpf(row["delta"])))
    return Direction(row["direction"], ((loss, row["steps"]),)), truth


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['q']}-{row['sigma']}-{row['epsilon']}")
def test_both_questions_match_the_reference_and_bracket_it(row):
    direction, truth = _case(row)
    bounds = characteristic.log_delta_bounds(direction, row["epsilon"])
    # The truth is rounded to a double of size up to 120: half a unit there is 7e-15.
    rounding = 1e-16 * abs(truth)
    assert bounds.method in ("contour", "cut")
    assert bounds.lower <= truth + rounding
    assert truth - rounding <= bounds.upper
    # Widest at the sparsest row, 0.001-0.7-0.5: each rounding at its worst in the phases of 2000
    # losses at 1100 nodes, and in a mean of losses that are exponentials, moves it by 3.8e-11.
    # A cut leaves a put of up to exp(-18) of delta.
    closer = 1 if bounds.method == "contour" else 20
    assert abs(math.expm1(bounds.upper - truth)) < 5e-11 * closer
    bounds = characteristic.epsilon_bounds(direction, truth)
    assert bounds.lower - 1e-14 <= row["epsilon"] <= bounds.upper + 1e-14
    # At a cut, rounding of the points below it counts most.
    assert bounds.upper - bounds.lower < (2e-11 if closer == 1 else 4e-9)


@pytest.mark.parametrize(("steps", "truth"), [(1500, 1.6553534717241), (4500, 2.8514636235030)])
def test_published_saddle_point_values(steps, truth):
    # Alghamdi et al., ICML 2023: sigma = 2, q = 0.01, delta = 1e-15.
    event = events.dpsgd(sampling_probability=0.01, noise_multiplier=2.0, steps=steps)
    assert accountants.epsilon(event, delta=1e-15) == pytest.approx(truth, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "truth"), [(1, 0.7402241), (50, 5.2285352)])
def test_two_hundred_distinct_steps(repeats, truth):
    steps = [
        events.dpsgd(
            sampling_probability=0.002 + 0.0001 * i, noise_multiplier=0.8 + 0.005 * i, steps=repeats
        )
        for i in range(200)
    ]
    answer = accountants.epsilon(events.ComposedDpEvent(steps), delta=1e-6)
    assert answer == pytest.approx(truth, abs=6e-8)
    assert answer.upper - answer.lower < 1e-9
