"""Clipped gradient sums of linear models: the invariants that the privacy claim rests on."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import AreaLoss, LogisticLoss, SoftmaxLoss, SquaredLoss, TiltedLoss


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


LOSSES = {
    "logistic": LogisticLoss(),
    "squared": SquaredLoss(),
    "softmax": SoftmaxLoss(3, intercepts=True),
    "tilted": TiltedLoss(SquaredLoss(), np.array([[1e200, -3.0, 5e-324], [0, 1, -1]]), base=1.0),
    "area": AreaLoss(0.3),
}
numbers = arrays(float, 20, elements=st.floats())
cancelling = np.array([1e308, -1e308, 5e-324, math.nan, *[1.0] * 16])


@pytest.mark.slow
@settings(deadline=None)
@given(st.sampled_from([*LOSSES]), numbers, numbers, st.floats(1e-6, 1e6), st.booleans())
@example("squared", np.full(20, 1e300), np.array([1e300, -1e300] * 10), 1.0, False)
@example("squared", np.array([1e300, 5e-324] * 10), np.zeros(20), 1.0, False)
@example("softmax", cancelling, cancelling[::-1], 1.0, False)
@example("area", cancelling, cancelling, 1.0, True)
def test_no_record_contributes_more_than_the_bound(name, X, w, max_norm, apart):
    # In exact arithmetic, for the rounded numbers that are added; overflow and NaN included.
    how = {"shares": (0.6, 0.8), "dual": LOSSES[name].tail} if apart else {}
    targets = np.array([1.0, X[-1]])
    kernel = ClippedSum(LOSSES[name], X[:8].reshape(2, 4), targets, intercept=False, **how)
    w = w[: kernel.dimension]
    for row, v in itertools.product(range(2), (None, w[::-1])):
        contribution = kernel(w, [row], v=v, max_norm=max_norm)
        assert sum(Fraction(entry) ** 2 for entry in contribution) <= Fraction(max_norm) ** 2
        blank = not np.isfinite(X[4 * row : 4 * row + 4]).all()
        assert not (blank and contribution.any())


def squared(X, y):
    """Return the kernel of squared losses, without an intercept."""
    return ClippedSum(SquaredLoss(), np.asarray(X), np.asarray(y), intercept=False)


def test_slopes_that_are_infinite_or_no_numbers_are_clipped():
    kernel = squared([[1.0, 1.0]], [0.0])
    with np.errstate(over="ignore"):
        contribution = kernel(np.array([1.7e308, 1.7e308]), max_norm=1.0)
    np.testing.assert_allclose(contribution, [math.sqrt(0.5)] * 2, rtol=1e-14)
    assert kernel(np.array([np.nan, 1.0]), max_norm=1.0).tolist() == [0.0, 0.0]
    # The score is finite and the residual overflows; the row's norm has no finite reciprocal.
    X = [[5e-324, 5e-324]]
    finite, with_overflow = squared(X, [-1.7e308]), squared(X, [-np.inf])
    for contribution in (finite(np.zeros(2)), with_overflow(np.zeros(2), max_norm=1e-10)):
        assert np.isfinite(contribution).all()
    assert np.linalg.norm(with_overflow(np.zeros(2), max_norm=1e-20)) <= 1e-20


@settings(deadline=None)
@given(arrays(float, (3, 9), elements=st.floats(-1e308, 1e308, allow_subnormal=False)))
def test_norms_are_upper_bounds_and_tight(X):
    kernel = squared(X, np.zeros(3))
    for row, norm in zip(X, kernel.norms, strict=True):
        largest = max(abs(row)) or 1.0
        exact = math.sqrt(math.fsum((entry / largest) ** 2 for entry in row))
        assert exact <= norm / largest * (1 + 1e-16) <= exact * (1 + 1e-14) or norm == math.inf


def test_logistic_loss_keeps_its_digits_at_both_ends():
    kernel = ClippedSum(LogisticLoss(), np.ones((1, 1)), np.ones(1), intercept=False)
    for margin in (-800.0, -30.0, -1.0, 0.0, 1.0, 30.0, 800.0):
        exact = np.logaddexp(0.0, -margin)
        assert kernel.losses([margin]) == pytest.approx(exact, rel=1e-14, abs=0)


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
    kernel = squared(X, y)
    assert (kernel(w, rows) == total).all()


def test_records_are_copied_and_bad_arguments_refused():
    X = np.ones((3, 2))
    kernel = squared(X, np.zeros(3))
    before = kernel(np.ones(2))
    X[:] = 1e6
    assert (kernel(np.ones(2)) == before).all()
    w = np.zeros(2)
    for rows in ([-1], [3], [0, 1, 2**40]):
        with pytest.raises(ValueError, match=r"rows must be in \[0, n\) with n=3, got"):
            kernel(w, rows)
    for max_norm in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="max_norm must be a number > 0"):
            kernel(w, max_norm=max_norm)
    with pytest.raises(ValueError, match=r"w must have shape \(2,\), got \(3,\)"):
        kernel(np.zeros(3))


@pytest.mark.parametrize("d", [30, 63, 64, 65, 200])
@pytest.mark.parametrize("loss", [LogisticLoss, SquaredLoss])
def test_rows_taken_together_give_the_bits_of_rows_taken_singly(loss, d):
    # Long rows are summed by fours; two of these are about to overflow.
    rng = np.random.default_rng(d)
    X, y = rng.standard_normal((40, d)), rng.choice([-1.0, 1.0], size=40)
    X[3] *= 1e305
    X[4], y[4] = 0.0, 1.7e308 if loss is SquaredLoss else 1.0
    kernel = ClippedSum(loss(), X, y, intercept=False)
    w, v = rng.standard_normal((2, d))
    for count in (*range(10), 100):
        rows = rng.integers(0, 40, size=count)
        rows[:2] = [3, 4][:count]
        for ask in (
            lambda some: kernel(w, some, max_norm=0.7),
            lambda some: kernel(w, some, v=v, max_norm=0.7),
        ):
            total = np.zeros(d)
            for row in rows:
                one = ask([row])
                assert np.linalg.norm(one) <= 0.7
                total += one
            assert (ask(rows) == total).all()
