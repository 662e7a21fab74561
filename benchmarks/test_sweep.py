"""Random points of the whole box of parameters: ``make bench`` runs these tests.

No answer raises, is NaN or lies on the unsafe side. Bounds from below are tests that an adversary
could run, with closed-form errors. Bounds from above are Renyi's at integer orders. Ball arithmetic
bounds both sides where it is affordable.
"""

import math

import pytest

from benchmarks import sweep

SEED, POINTS = 2027, 15
BALLS = (1, 1, 0, 0)  # proofs of a chunk's answers; those that come first in others take seconds


@pytest.mark.parametrize("chunk", range(4))
def test_answers_hold_everywhere(chunk):
    checked = 0
    for index in range(chunk * POINTS, (chunk + 1) * POINTS):
        point = sweep.draw(SEED, index)
        if len(point.steps) > 1:
            continue
        answer = sweep.ask(point)
        # Where this takes one plain contour, a proof often can.
        due = checked < BALLS[chunk] and answer.method == "contour"
        found, asked = sweep.problems(point, answer, balls=due)
        checked += asked
        assert not found, (point, answer)
    assert checked >= BALLS[chunk]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("chunk", range(3))
def test_answers_hold_where_losses_have_no_exponentials(chunk):
    for index in range(chunk * 10, (chunk + 1) * 10):
        point = sweep.draw_with_little_noise(SEED, index)
        answer = sweep.ask(point)
        assert sweep.problems(point, answer) == ([], False), (point, answer)


@pytest.mark.parametrize(
    ("steps", "delta", "width"),
    [
        ([(1e-7 * (1 + i / 40), 0.3 + 0.005 * i, 5 + i) for i in range(40)], 1e-7, math.inf),
        # Below a cut, where a contour has more points than that of a few losses may have.
        ([(1e-3, 0.5 + 0.0012 * i, 4) for i in range(250)], 1e-6, 1e-6),
    ],
)
def test_many_distinct_losses_of_which_few_are_large_have_both_ends(steps, delta, width):
    point = sweep.Point(tuple(steps), None, math.log(delta))
    answer = sweep.ask(point)
    assert 0 < answer.upper - answer.lower < width * answer.upper
    assert sweep.problems(point, answer) == ([], False)
