"""Searches for thresholds and roots: both sides were evaluated, and their distance is kept."""

import math

import pytest
from hypothesis import assume, given, strategies as st
from scipy.optimize import brentq

from dpcal._internal import roots
from dpcal._internal.roots import (
    NoBracket,
    Sides,
    Stop,
    bisect,
    bracket,
    brent,
    largest_whole,
    newton,
)

thresholds = st.floats(1e-6, 1e6)
widths = st.floats(1e-13, 0.1)


class Noted:
    """A condition or an excess that keeps what it was asked and what it answered."""

    def __init__(self, of):
        self.of, self.known = of, {}

    def __call__(self, x):
        self.known[x] = found = self.of(x)
        return found


@given(threshold=thresholds, start=thresholds, relative=widths, geometric=st.booleans())
def test_a_threshold_is_between_two_evaluated_sides(threshold, start, relative, geometric):
    meets = Noted(lambda x: x >= threshold)
    found = bracket(meets, miss=1e-9, start=start)
    assert found.meet == start or found.meet < 2 * threshold
    sides = bisect(meets, found, Stop(relative=relative), geometric=geometric)
    assert meets.known[sides.meet]
    assert sides.miss == 1e-9 or not meets.known[sides.miss]
    assert sides.miss < threshold <= sides.meet <= sides.miss + relative * sides.meet


@given(threshold=thresholds, start=thresholds)
def test_a_bracket_may_fall_and_ends_where_it_is_told(threshold, start):
    sides = bracket(
        lambda x: x <= threshold, miss=math.inf, start=start, factor=0.5, last=start * 2.0**-60
    )
    assert sides.meet <= threshold < sides.miss
    with pytest.raises(NoBracket) as none:
        bracket(lambda x: False, miss=0.0, start=start, last=8 * start)
    assert (none.value.at, none.value.meets) == (8 * start, False)
    with pytest.raises(NoBracket):
        bracket(lambda x: False, miss=0.0, start=start)


def test_a_bisection_ends_at_neighboring_floats_and_after_its_evaluations():
    meets = Noted(lambda x: x * x >= 2)
    sides = bisect(meets, Sides(meet=2.0, miss=1.0), Stop())
    assert sides.meet == math.nextafter(sides.miss, 2.0)
    assert bisect(meets, Sides(meet=2.0, miss=1.0), Stop(evaluations=1)).meet == 1.5


@given(answers=st.lists(st.sampled_from([True, False]), min_size=200, max_size=200))
def test_the_side_that_is_returned_held_even_where_the_condition_is_not_monotone(answers):
    turn = iter(answers)
    meets = Noted(lambda x: next(turn))
    sides = bisect(meets, Sides(meet=1.0, miss=0.0), Stop(evaluations=150))
    assert sides.meet == 1.0 or meets.known[sides.meet]
    assert sides.miss == 0.0 or not meets.known[sides.miss]


@given(
    root=st.floats(-20.0, 20.0),
    start=st.floats(-20.0, 20.0),
    rising=st.booleans(),
    slope=st.sampled_from([None, 1.0, 0.01, 40.0, math.nan]),
)
def test_newton_finds_both_sides_with_a_good_slope_a_bad_one_and_none(root, start, rising, slope):
    assume(not (rising and (slope is None or math.isnan(slope))))
    sign = 1 if rising else -1

    def value(x):
        return sign * (math.expm1(x - root) if x < root else x - root)

    excess = Noted(lambda x: (value(x), None if slope is None else sign * slope))
    sides = newton(excess, start, -30.0, 30.0, Stop(absolute=1e-6, evaluations=2000))
    assert excess.known[sides.meet][0] <= 0 < excess.known[sides.miss][0]
    assert min(sides.meet, sides.miss) <= root + 1e-12
    assert max(sides.meet, sides.miss) >= root - 1e-12
    assert abs(sides.meet - sides.miss) <= 1e-6


def test_newton_says_which_side_is_missing_and_takes_nan_for_a_miss():
    for value, end, meets in ((1.0, 5.0, False), (-1.0, -5.0, True)):
        with pytest.raises(NoBracket) as none:
            newton(lambda x, value=value: (value, None), 0.0, -5.0, 5.0, Stop(absolute=1e-3))
        assert (none.value.at, none.value.meets) == (end, meets)
    sides = newton(
        lambda x: (math.nan if x < 1 else -1.0, None), 0.0, -5.0, 5.0, Stop(absolute=1e-3)
    )
    assert sides.miss < 1 <= sides.meet


FUNCTIONS = {
    "cubic": lambda x, root: (x - root) ** 3 + 1e-3 * (x - root),
    "exponential": lambda x, root: math.exp(x) - math.exp(root),
    "bent": lambda x, root: math.copysign(abs(x - root) ** 0.3, x - root),
    "flat": lambda x, root: (x - root) ** 9,
    "falling": lambda x, root: math.atan(50 * (root - x)),
}


@given(
    name=st.sampled_from(sorted(FUNCTIONS)),
    root=st.floats(-3.0, 3.0),
    left=st.floats(0.01, 5.0),
    right=st.floats(0.01, 5.0),
    absolute=st.floats(1e-15, 1e-3),
    relative=st.floats(1e-15, 1e-3),
)
def test_brents_method_takes_the_steps_of_scipy(name, root, left, right, absolute, relative):
    of = Noted(lambda x: FUNCTIONS[name](x, root))
    low, high = root - left, root + right
    theirs = brentq(of, low, high, xtol=absolute, rtol=relative, maxiter=200)
    asked, of.known = list(of.known), {}
    sides = brent(of, low, high, Stop(absolute=absolute, relative=relative))
    assert (sides.root, list(of.known)) == (theirs, asked)
    assert of.known[sides.meet] <= 0 <= of.known[sides.miss]
    assert sides.root in (sides.meet, sides.miss)


def test_brents_method_with_a_jump_with_nan_and_without_a_bracket():
    sides = brent(lambda x: -1.0 if x < 0.3 else math.nan, 0.0, 1.0, Stop(absolute=1e-9))
    assert sides.meet < 0.3 <= sides.miss <= sides.meet + 1e-9
    with pytest.raises(NoBracket) as none:
        brent(lambda x: 1 + x * x, -1.0, 1.0, Stop())
    assert not none.value.meets
    # Without a width it ends where no float is left between the sides.
    sides = brent(lambda x: x - 0.1 - x * 1e-17, 0.0, 1.0, Stop())
    assert abs(sides.meet - sides.miss) <= 2e-17


@given(
    threshold=st.integers(1, 10**7),
    most=st.integers(1, 10**7),
    start=st.integers(1, 1000),
    power=st.sampled_from([0.5, 1.0, 3.0]),
    slopes=st.booleans(),
)
def test_the_largest_whole_number_is_exact(threshold, most, start, power, slopes):
    def excess(count):
        value = (count / (threshold + 0.5)) ** power - 1
        return value, power * (value + 1) / count if slopes else None

    assert largest_whole(excess, most=most, start=start) == min(threshold, most)


def test_no_whole_number_below_a_first_miss():
    with pytest.raises(NoBracket):
        largest_whole(lambda count: (count - 0.5, None), most=10, start=3)


@given(at=st.floats(-5.0, 5.0))
def test_a_minimum_is_found(at):
    found = roots.minimum(lambda x: abs(x - at), -6.0, 7.0, sections=70)
    assert found == pytest.approx(at, abs=1e-9)
