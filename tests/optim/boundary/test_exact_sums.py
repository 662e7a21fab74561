"""Sums in whole numbers are exactly as sensitive as they say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from _built_plans import plan_of, query
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from dpcal._ext import grid
from dpcal._ext.sums import grid_step, whole_sum
from dpcal.errors import UnsupportedEvent
from dpcal.optim import KAN, MLP, FromGradients, Huber, Logistic, PrivateOracle, Softmax, Squared
from dpcal.optim.boundary.noise import Mechanism, _distance
from dpcal.optim.objectives.contributions import (
    Asked,
    Products,
    gradients,
    hessians,
    losses,
    trusted,
)

BOUND = 1 << 20


def norm_at_most(vector, bound):
    """In whole numbers, without rounding."""
    return sum(int(entry) ** 2 for entry in vector) <= Fraction(bound) ** 2


def objectives():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 4)) * np.exp(rng.normal(0, 3, (12, 1)))
    y = rng.integers(0, 2, 12)
    yield Logistic(X, y, classes_from_data=True)
    yield Squared(X, X[:, 0] + y)
    yield Huber(X, 10.0 * X[:, 0] + y)
    yield Softmax(X, np.arange(len(X)) % 3, classes_from_data=True)
    yield FromGradients(lambda w, rows: X[rows] * 50, n=len(X), dimension=X.shape[1])
    yield MLP(X, y, width=3, classes=[0, 1])
    yield KAN(X, y, width=3, classes=[0, 1])


@pytest.mark.parametrize("objective", list(objectives()), ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("bound", [1e-140, 0.37, 1e140])
def test_one_record_moves_a_sum_by_at_most_the_bound(objective, bound):
    """The sum is the plain one but for rounding, in whole numbers, in any order of the records."""
    rng, step = np.random.default_rng(1), grid_step(bound)
    w, v = rng.standard_normal((2, objective.dimension))
    everyone = np.arange(objective.n, dtype=np.intp)
    asked = [(gradients, (w,)), (gradients, (w, v))]
    if isinstance(objective, Logistic):
        asked += [(losses, (w,)), (hessians, (w,))]
    for of, at in asked:
        whole = of(objective, everyone, *at).whole(bound)
        if bound == 0.37 or of is hessians:
            off = np.abs(whole - of(objective, everyone, *at).clipped(bound) / step)
            assert off.max() <= 8 * objective.n, of
        for gone in everyone:
            moved = whole - of(objective, np.delete(everyone, gone), *at).whole(bound)
            assert norm_at_most(moved, bound / step), of
        assert (of(objective, rng.permutation(everyone), *at).whole(bound) == whole).all(), of


finite = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    arrays(np.float64, (3, 5), elements=finite), st.floats(1e-280, 1e280), st.integers(1, grid.MOST)
)
def test_any_row_is_within_the_bound_and_points_the_same_way(table, max_norm, bound):
    for row in table:
        total = np.zeros(5, dtype=np.int64)
        grid.add_rows(row[np.newaxis], max_norm, bound, total)
        assert norm_at_most(total, bound)
        if np.isfinite(row).all():
            assert (np.sign(total) * np.sign(row) >= 0).all()
        else:
            assert not total.any()


def test_one_record_of_many_moves_a_sum_by_the_bound():
    n = 4_000
    objective = FromGradients(lambda w, rows: np.ones((len(rows), 1)), n=n, dimension=1)
    rows = np.arange(n, dtype=np.intp)
    totals = [
        gradients(objective, some, np.zeros(1)).whole(1.0)
        for some in (rows, rows[1:], rows[:-1], np.delete(rows, n // 2))
    ]
    for without in totals[1:]:
        assert 1 - 1e-5 < int((totals[0] - without)[0]) * grid_step(1.0) <= 1


def test_a_long_row_uses_the_whole_bound():
    for row in (np.array([1e300, -1e300]), np.array([3e-280, 4e-280]), np.full(1000, 7.0)):
        total = np.zeros(len(row), dtype=np.int64)
        grid.add_rows(row[np.newaxis], 1e-280, BOUND, total)
        length = math.sqrt(sum(int(entry) ** 2 for entry in total))
        assert length >= BOUND * (1 - 1e-8) - math.sqrt(len(row))


@given(arrays(np.int64, 3, elements=st.integers(-(2**50), 2**50)), st.integers(0, 2))
def test_a_norm_moves_no_farther_than_its_sum(total, place):
    moved = total.copy()
    moved[place] += BOUND
    offset = np.array([0.3, -5.0, 1e3])
    (first,), (second,) = (Mechanism.norm(each, offset, 1.0) for each in (total, moved))
    assert abs(int(first) - int(second)) <= BOUND


@given(
    arrays(np.float64, (6, 3), elements=st.floats(-4, 4)),
    st.lists(st.integers(-9, 9), min_size=6, max_size=6),
    st.floats(1e-3, 10),
    st.integers(0, 5),
)
def test_a_record_among_ties_moves_a_compiled_sum_by_at_most_the_bound(X, halves, max_norm, gone):
    """Contributions that are odd numbers of half steps are rounded by what was added before."""
    step = grid_step(max_norm)
    X = np.where(np.arange(6)[:, np.newaxis] % 2, X, np.array(halves)[:, np.newaxis] * step / 2)
    objective = Squared(X, -np.ones(6), fit_intercept=False)  # gradients at zero are the rows
    rows = np.arange(6, dtype=np.intp)
    ask = lambda some: whole_sum(objective.kernel, np.zeros(3), None, some, max_norm=max_norm)  # noqa: E731
    assert norm_at_most(ask(rows) - ask(np.delete(rows, gone)), max_norm / step)


def cut(row, scale):
    """A row times a scale, rounded towards zero, in whole numbers."""
    return [math.trunc(Fraction(float(entry)) * scale) for entry in row]


@given(
    arrays(np.float64, (4, 3), elements=finite),
    arrays(np.float64, (4, 2), elements=finite),
    st.floats(1e-200, 1e200),
    st.integers(0, 3),
)
def test_a_record_moves_outer_products_by_at_most_the_bound(left, right, bound, gone):
    with np.errstate(all="ignore"):
        others = np.delete(left, gone, axis=0), np.delete(right, gone, axis=0)
        whole = Products(6, [[(left, right)]]).whole(bound)
        without = Products(6, [[others]]).whole(bound)
    assert norm_at_most(whole - without, Fraction(bound) / Fraction(grid_step(bound)))


def test_outer_products_are_those_of_python_integers():
    rng, bound, n = np.random.default_rng(0), 0.8, 5_000
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    left *= 0.7 / np.linalg.norm(left, axis=1, keepdims=True)
    right *= rng.uniform(0, 1, (n, 1)) / np.linalg.norm(right, axis=1, keepdims=True)
    blocks = [[(left[:4096], right[:4096])], [(left[4096:], right[4096:])]]
    total = [0] * 6
    for a, b in zip(left, right, strict=True):
        up = Fraction(2) ** math.frexp(math.sqrt(sum(float(x) ** 2 for x in b)))[1]
        first, second = cut(a, up * 2**20), cut(b, 2**20 / up)  # the bound is below 2^0
        for i in range(3):
            for j in range(2):
                total[2 * i + j] += first[i] * second[j]
    assert Products(6, blocks).whole(bound).tolist() == [entry >> 19 for entry in total]


def test_sums_that_an_objective_takes_by_itself_do_not_count():
    """Nobody clips them; a class that this package trusts does not vouch for a subclass."""

    class Own(Logistic):
        def contributions(self, rows, *at):
            return Asked(2, lambda bound: np.full(2, 1e6), lambda bound: np.full(2, 1 << 40))

    class Claims(Own):
        pass

    X = np.linspace(-1, 1, 9)[:, np.newaxis]
    trusted(Own)
    kinds, rows = {"classes": [False, True]}, np.arange(9)
    sums = gradients(Own(X, X[:, 0] > 0, **kinds), rows, np.zeros(2)).whole(1.0)
    assert sums[0] == 1 << 40
    with pytest.raises(TypeError, match="of class Claims takes by itself"):
        gradients(Claims(X, X[:, 0] > 0, **kinds), rows, np.zeros(2))


def test_the_distance_of_noise_is_that_of_all_numbers_of_a_plan():
    """Four answers of two numbers fit into the delta, and eight of two queries do not."""
    X = np.linspace(-1, 1, 9)[:, np.newaxis]
    objective = Logistic(X, X[:, 0] > 0, classes=[False, True])
    asked = [query(name=name, count=4) for name in "ab"]
    how = {"n": 9, "delta": 12 * 2.0 ** (20 + _distance())}
    assert objective.dimension == 2
    PrivateOracle(objective, plan_of(asked[0], **how), seed=0)
    with pytest.raises(UnsupportedEvent, match="16 numbers within"):
        PrivateOracle(objective, plan_of(*asked, **how), seed=0)
