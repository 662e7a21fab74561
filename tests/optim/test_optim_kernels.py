"""Clipped gradient sums against plain numpy, and the invariants that the privacy claim rests on."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from dpcal._ext.gradients import LinearClippedSum, LogisticLoss, SquaredLoss, aligned_zeros

SLOPES = {
    LogisticLoss: lambda score, y: -y / (1 + np.exp(y * score)),
    SquaredLoss: lambda score, y: score - y,
}


def plain_sum(loss, X, y, w, rows, max_norm):
    """Return the clipped sum in numpy, one gradient at a time."""
    total = np.zeros(X.shape[1])
    for row in rows:
        gradient = SLOPES[loss](X[row] @ w, y[row]) * X[row]
        norm = np.linalg.norm(gradient)
        total += gradient * min(1.0, max_norm / norm) if norm > 0 else gradient
    return total


@st.composite
def problems(draw, magnitude=100.0):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 20))
    number = st.floats(-magnitude, magnitude)
    X = draw(arrays(float, (n, d), elements=number))
    w = draw(arrays(float, d, elements=number))
    loss = draw(st.sampled_from([LogisticLoss, SquaredLoss]))
    target = st.sampled_from([-1.0, 1.0]) if loss is LogisticLoss else number
    y = draw(arrays(float, n, elements=target))
    rows = draw(st.lists(st.integers(0, n - 1), max_size=30))
    return loss, X, y, w, rows


@pytest.mark.slow
@settings(deadline=None)
@given(problems(magnitude=5.0), st.floats(1e-3, 1e3))
def test_sum_is_the_sum_of_clipped_gradients(problem, max_norm):
    loss, X, y, w, rows = problem
    kernel = LinearClippedSum(loss(), X, y, intercept=False)
    expected = plain_sum(loss, X, y, w, rows, max_norm)
    error = np.abs(kernel(w, rows, max_norm=max_norm) - expected).max()
    assert error <= 1e-12 * (1 + max_norm * len(rows))


@pytest.mark.slow
@settings(deadline=None)
@given(problems(magnitude=5.0))
def test_intercept_is_a_constant_last_feature(problem):
    loss, X, y, w, rows = problem
    w = np.append(w, 0.5)
    with_ones = np.hstack([X, np.ones((len(X), 1))])
    kernel = LinearClippedSum(loss(), X, y, intercept=True)
    expected = plain_sum(loss, with_ones, y, w, rows, 1.0)
    np.testing.assert_allclose(kernel(w, rows, max_norm=1.0), expected, atol=1e-11)


@pytest.mark.slow
@settings(deadline=None)
@given(problems(magnitude=1e300), st.floats(1e-6, 1e6))
@example((SquaredLoss, np.full((1, 2), 1e300), np.array([1.0]), np.array([1e300, -1e300]), []), 1.0)
@example((SquaredLoss, np.array([[1e300, 5e-324]]), np.zeros(1), np.array([1e300, 1.0]), []), 1.0)
def test_no_record_contributes_more_than_the_bound(problem, max_norm):
    # In exact arithmetic, for the rounded numbers that are added; overflow and NaN included.
    loss, X, y, w, _ = problem
    kernel = LinearClippedSum(loss(), X, y, intercept=False)
    for row in range(len(X)):
        contribution = kernel(w, [row], max_norm=max_norm)
        assert np.isfinite(contribution).all()
        scaled = [float(entry) / max_norm for entry in contribution]
        assert math.fsum(entry**2 for entry in scaled) <= 1.0


@pytest.mark.slow
@settings(deadline=None)
@given(problems(magnitude=1e3), st.floats(1e-3, 1e3), st.data())
def test_neighbouring_data_sets_have_sums_within_the_bound(problem, max_norm, data):
    loss, X, y, w, _ = problem
    gone = data.draw(st.integers(0, len(X) - 1))
    kernel = LinearClippedSum(loss(), X, y, intercept=True)
    w = np.append(w, 1.0)
    rest = np.delete(np.arange(len(X)), gone)
    moved = kernel(w, max_norm=max_norm) - kernel(w, rest, max_norm=max_norm)
    rounding = 1e-14 * len(X) * max_norm
    assert np.linalg.norm(moved) <= max_norm + rounding


def test_infinite_slope_is_clipped_and_keeps_its_direction():
    X = np.array([[1.0, 1.0]])
    kernel = LinearClippedSum(SquaredLoss(), X, np.array([0.0]), intercept=False)
    with np.errstate(over="ignore"):
        contribution = kernel(np.array([1.7e308, 1.7e308]), max_norm=1.0)
    np.testing.assert_allclose(contribution, [math.sqrt(0.5)] * 2, rtol=1e-14)


def test_infinite_slope_on_a_vanishing_row_stays_within_the_bound():
    # The score is finite and the residual overflows; the row's norm has no finite reciprocal.
    X, y = np.array([[5e-324, 5e-324]]), np.array([-1.7e308])
    kernel = LinearClippedSum(SquaredLoss(), X, y, intercept=False)
    with_overflow = LinearClippedSum(SquaredLoss(), X, np.array([-np.inf]), intercept=False)
    for contribution in (kernel(np.zeros(2)), with_overflow(np.zeros(2), max_norm=1e-10)):
        assert np.isfinite(contribution).all()
    assert np.linalg.norm(with_overflow(np.zeros(2), max_norm=1e-20)) <= 1e-20


def test_slope_that_is_not_a_number_contributes_nothing():
    kernel = LinearClippedSum(SquaredLoss(), np.ones((1, 2)), np.zeros(1), intercept=False)
    assert kernel(np.array([np.nan, 1.0]), max_norm=1.0).tolist() == [0.0, 0.0]


@settings(deadline=None)
@given(arrays(float, (3, 9), elements=st.floats(-1e308, 1e308, allow_subnormal=False)))
def test_norms_are_upper_bounds_and_tight(X):
    kernel = LinearClippedSum(SquaredLoss(), X, np.zeros(3), intercept=False)
    for row, norm in zip(X, kernel.norms, strict=True):
        largest = max(abs(row)) or 1.0
        exact = math.sqrt(math.fsum((entry / largest) ** 2 for entry in row))
        assert exact <= norm / largest * (1 + 1e-16) <= exact * (1 + 1e-14) or norm == math.inf


@pytest.mark.parametrize("margin", [-800.0, -30.0, -1.0, 0.0, 1.0, 30.0, 800.0])
def test_logistic_loss_keeps_its_digits_at_both_ends(margin):
    kernel = LinearClippedSum(LogisticLoss(), np.ones((1, 1)), np.ones(1), intercept=False)
    exact = np.logaddexp(0.0, -margin)
    assert kernel.mean_loss([margin]) == pytest.approx(exact, rel=1e-14, abs=0)


@pytest.mark.slow
@settings(deadline=None)
@given(problems(magnitude=10.0))
def test_sums_have_one_order_on_every_processor(problem):
    # Eight partial sums, then pairs; every product is rounded before it is added.
    _, X, y, w, rows = problem
    n, d = X.shape
    lanes = np.zeros((n, -(-d // 8) * 8))
    lanes[:, :d] = X * w
    s = np.zeros((n, 8))
    for block in np.split(lanes, lanes.shape[1] // 8, axis=1):
        s += block
    halves = s[:, :4] + s[:, 4:]
    scores = (halves[:, 0] + halves[:, 2]) + (halves[:, 1] + halves[:, 3])
    total = np.zeros(d)
    for row in rows:
        total += (scores[row] - y[row]) * X[row]
    kernel = LinearClippedSum(SquaredLoss(), X, y, intercept=False)
    assert (kernel(w, rows) == total).all()


def test_records_are_copied():
    X = np.ones((2, 3))
    kernel = LinearClippedSum(SquaredLoss(), X, np.zeros(2), intercept=False)
    before = kernel(np.ones(3))
    X[:] = 1e6
    assert (kernel(np.ones(3)) == before).all()


@pytest.mark.parametrize("rows", [[-1], [3], [0, 1, 2**40]])
def test_rows_outside_the_records_are_refused(rows):
    kernel = LinearClippedSum(SquaredLoss(), np.ones((3, 2)), np.zeros(3), intercept=False)
    with pytest.raises(ValueError, match=r"rows must be in \[0, n\) with n=3, got"):
        kernel(np.zeros(2), rows)


@pytest.mark.parametrize("max_norm", [0.0, -1.0, math.nan])
def test_bounds_that_bound_nothing_are_refused(max_norm):
    kernel = LinearClippedSum(SquaredLoss(), np.ones((3, 2)), np.zeros(3), intercept=False)
    with pytest.raises(ValueError, match="max_norm must be a number > 0"):
        kernel(np.zeros(2), max_norm=max_norm)


def test_wrong_shape_of_parameters_is_refused():
    kernel = LinearClippedSum(SquaredLoss(), np.ones((3, 2)), np.zeros(3), intercept=False)
    with pytest.raises(ValueError, match=r"w must have shape \(2,\), got \(3,\)"):
        kernel(np.zeros(3))


@given(st.integers(0, 200))
def test_aligned_zeros_start_a_cache_line(size):
    buffer = aligned_zeros(size)
    assert buffer.shape == (size,)
    assert not buffer.any()
    assert size == 0 or buffer.ctypes.data % 64 == 0


@pytest.mark.parametrize("d", [30, 63, 64, 65, 200])
@pytest.mark.parametrize("loss", [LogisticLoss, SquaredLoss])
def test_rows_taken_together_give_the_bits_of_rows_taken_singly(loss, d):
    # Long rows are summed by fours; two of these are about to overflow.
    rng = np.random.default_rng(d)
    X, y = rng.standard_normal((40, d)), rng.choice([-1.0, 1.0], size=40)
    X[3] *= 1e305
    X[4], y[4] = 0.0, 1.7e308 if loss is SquaredLoss else 1.0
    kernel = LinearClippedSum(loss(), X, y, intercept=False)
    w, v = rng.standard_normal((2, d))
    for count in (*range(10), 100):
        rows = rng.integers(0, 40, size=count)
        rows[:2] = [3, 4][:count]
        for ask in (
            lambda some: kernel(w, some, max_norm=0.7),
            lambda some: kernel.difference(w, v, some, max_norm=0.7),
        ):
            total = np.zeros(d)
            for row in rows:
                one = ask([row])
                assert np.linalg.norm(one) <= 0.7
                total += one
            assert (ask(rows) == total).all()
