"""Strategies against dense algebra, brute force over participation patterns, and known values."""

import itertools
import json
import math
import tomllib
from fractions import Fraction

import numpy as np
import pytest
from _tree import DATA
from contracts._events import NAMES
from hypothesis import given, settings, strategies as st
from scipy.linalg import toeplitz
from scipy.optimize import minimize
from scipy.special import ndtr

from dpcal.accountants import delta
from dpcal.accountants.matrix import (
    BISR,
    BLT,
    PREFIX_SUMS,
    Banded,
    BandedInverse,
    Dense,
    FixedEpochs,
    Identity,
    LambdaCGD,
    LeastSeparation,
    Participation,
    Single,
    SquareRoot,
    Strategy,
    Tree,
    Workload,
)
from dpcal.accountants.matrix.gram import best_gram, may_overlap
from dpcal.accountants.matrix.recurrences import inverse_series
from dpcal.accountants.matrix.sensitivity import most_separated

T = 11
MIXED = Dense(np.tril(np.random.default_rng(0).standard_normal((T, T))) + 2 * np.eye(T))
WRITTEN = tomllib.loads((DATA / "strategies.toml").read_text(encoding="utf-8"))
ALL = [eval(text, NAMES | {"T": T, "MIXED": MIXED}) for text in WRITTEN["matrices"]]
RATES = tuple(np.random.default_rng(4).uniform(0.1, 1.0, T))
WORKLOADS = [PREFIX_SUMS, Workload(0.9), Workload(0.5, 0.9), Workload(0.5, 0.9, RATES)]

each_strategy = pytest.mark.parametrize("strategy", ALL, ids=repr)


def each_strategy_with(choices, times):
    """Cases of every strategy with a few choices, in turn: each choice meets several of a kind."""
    rotated = [
        (strategy, [choices[(place + k) % len(choices)] for k in range(times)])
        for place, strategy in enumerate(ALL)
    ]
    return pytest.mark.parametrize(("strategy", "chosen"), rotated, ids=map(repr, ALL))


def patterns(steps, separation, at_most):
    """Every participation pattern, as index lists."""
    for bits in itertools.product([0, 1], repeat=steps):
        places = np.flatnonzero(bits)
        if 0 < len(places) <= at_most and (len(places) < 2 or np.diff(places).min() >= separation):
            yield places


def signed_worst(C, places):
    """Largest norm of C y over signs: what scalar contributions of norm 1 reach."""
    return max(
        np.linalg.norm(C[:, places] @ np.array((1, *signs)))
        for signs in itertools.product([1, -1], repeat=len(places) - 1)
    )


def check_against_patterns(strategy, schema, allowed):
    """An exact label is attained by summed columns; every value is between two brute-force ones."""
    C, found = strategy.matrix(), strategy.sensitivity(schema)
    gram = np.abs(C.T @ C)
    ceiling = max(math.sqrt(gram[np.ix_(places, places)].sum()) for places in allowed)
    attained = max(signed_worst(C, places) for places in allowed)
    assert found.value >= attained * (1 - 1e-15)
    if found.label == "exact":
        assert found.value == pytest.approx(attained, rel=1e-12)
    else:
        assert found.value >= ceiling * (1 - 1e-13)
    assert found.theorem
    assert (found.participation, found.steps) == (schema, strategy.steps)
    assert Participation.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@each_strategy_with([(11, 1), (4, 3), (3, 4), (2, 6), (1, 11)], times=3)
def test_fixed_epochs_against_all_patterns(strategy, chosen):
    for epochs, each in chosen:
        if epochs == 11 and not strategy.nonnegative:
            continue  # 2^10 signs are covered by the shorter patterns
        allowed = [np.arange(first, T, each) for first in range(each)]
        check_against_patterns(strategy, FixedEpochs(epochs, each), allowed)


@pytest.mark.slow
@each_strategy_with([(2, 2), (3, 3), (3, None), (4, 2), (6, None)], times=2)
def test_min_separation_against_all_patterns(strategy, chosen):
    for separation, at_most in chosen:
        allowed = list(patterns(T, separation, at_most or T))
        check_against_patterns(strategy, LeastSeparation(separation, at_most), allowed)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8), st.integers(1, 8), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_any_nonnegative_column_against_all_patterns(tail, separation, at_most):
    steps = len(tail) + 1
    strategy = Dense(toeplitz([1.0, *tail], np.eye(steps)[0]))
    banded = Banded(steps, steps, [1.0, *tail])
    schema = LeastSeparation(separation, at_most)
    allowed = list(patterns(steps, separation, at_most))
    check_against_patterns(banded, schema, allowed)
    check_against_patterns(strategy, schema, allowed)


@given(
    st.lists(st.floats(0.0, 10.0), min_size=1, max_size=9), st.integers(1, 10), st.integers(1, 10)
)
@settings(max_examples=50, deadline=None)
def test_best_separated_sums_against_enumeration(values, separation, at_most):
    values = np.array(values)
    best = max(values[places].sum() for places in patterns(len(values), separation, at_most))
    assert float(most_separated(values, separation, at_most)) == pytest.approx(best, rel=1e-12)
    stacked = np.stack([values, values[::-1]])
    assert np.allclose(most_separated(stacked, separation, at_most), best, rtol=1e-12)


@pytest.mark.slow
def test_dense_bounds_of_long_runs_take_no_cubic_time():
    # At most 400 of 2000 steps: the cap is dropped, which can only raise the bound.
    tree, schema = Tree(2000), LeastSeparation(2, 400)
    found, loose = tree.sensitivity(schema), tree.sensitivity(LeastSeparation(2))
    assert found.label == "upper bound"
    assert np.linalg.norm(tree.matrix()[:, :800:2].sum(axis=1)) <= found.value <= loose.value


def test_labels_are_exact_where_a_theorem_says_so():
    schema = LeastSeparation(3, 3)
    for strategy in (Identity(T), LambdaCGD(T, 0.8), SquareRoot(T), BISR(T, 3), Banded(T, 3)):
        assert strategy.sensitivity(schema).label == "exact", strategy
    for strategy in (MIXED, Tree(T), Banded(T, 4, [1.0, -0.5, 0.3, 0.2])):
        assert strategy.sensitivity(schema).label == "upper bound", strategy
    # Rounding must not turn the closed form into a loose bound at thousands of steps.
    for strategy in (BISR(3000, 8), BLT.optimised(3000, 3), SquareRoot(3000)):
        assert strategy.sensitivity(LeastSeparation(100, 10)).label == "exact", strategy


@each_strategy
def test_a_strategy_against_dense_algebra(strategy):
    C, z = strategy.matrix(), np.random.default_rng(2).standard_normal((T, 5))
    assert (np.triu(C, 1) == 0).all()
    assert np.allclose(C @ strategy.inverse(), np.eye(T), atol=1e-12)
    assert np.allclose(strategy.recurrence(5).solve(z), np.linalg.solve(C, z), atol=1e-12)
    if strategy.coefficients is not None:
        assert (C[:, 0] == strategy.coefficients).all()
        assert np.allclose(strategy.inverse()[:, 0], strategy.inverse_coefficients, atol=1e-13)
    for bands, entries in ((strategy.bands, C), (strategy.inverse_bands, strategy.inverse())):
        assert bands is None or (np.tril(entries, -bands) == 0).all()
    assert strategy.nonnegative == (C.min() >= 0)
    # A record that takes part once moves the outputs by its column.
    single = strategy.sensitivity(Single())
    assert single.label == "exact"
    assert single.value == pytest.approx(np.linalg.norm(C, axis=0).max(), rel=1e-13)
    again = Strategy.from_json(strategy.to_json())
    assert again == strategy
    assert (again.matrix() == C).all()
    json.loads(strategy.to_json(), parse_constant=pytest.fail)
    workload = WORKLOADS[ALL.index(strategy) % len(WORKLOADS)]
    decays, momenta = (
        toeplitz(each ** np.arange(T), np.zeros(T)) for each in (workload.decay, workload.momentum)
    )
    A = decays @ np.diag(workload.learning_rates or np.ones(T)) @ momenta
    assert np.allclose(workload.accumulate(np.eye(T)), A)
    assert np.allclose(workload.coefficients(T), A[:, 0])
    B = A @ np.linalg.inv(C)
    rows, mean = np.linalg.norm(B, axis=1), np.linalg.norm(B) / math.sqrt(T)
    assert np.allclose(strategy.error_profile(workload), rows, rtol=1e-10)
    assert strategy.max_error(workload) == pytest.approx(rows.max(), rel=1e-10)
    assert strategy.mean_error(workload) == pytest.approx(mean, rel=1e-10)
    scaled = strategy.mean_error(workload, participation=Single())
    assert scaled == pytest.approx(mean * single.value, rel=1e-10)


# -- trees against all their nodes


def tree_of_all_nodes(steps, *, efficient):
    """Prefix sums' weights on the noises of all nodes of the tree, in plain recursion."""
    depth = (steps - 1).bit_length()
    index = {}
    for level in range(depth + 1):
        for place in range(2 ** (depth - level)):
            index[level, place] = len(index)

    def estimate(level, place):
        own = np.eye(len(index))[index[level, place]]
        if level == 0 or not efficient:
            return own, 1.0
        left, below = estimate(level - 1, 2 * place)
        right, _ = estimate(level - 1, 2 * place + 1)
        # Minimum-variance mean of two independent estimates, of variance 1 and 2 below.
        weight = 2 * below / (1 + 2 * below)
        return weight * own + (1 - weight) * (left + right), weight

    rows = []
    for count in range(1, steps + 1):
        row, start = np.zeros(len(index)), 0
        for level in reversed(range(depth + 1)):
            if count >> level & 1:
                row += estimate(level, start >> level)[0]
                start += 1 << level
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("steps", [1, 2, 7, 16, 21])
@pytest.mark.parametrize("efficient", [False, True])
def test_tree_has_the_law_of_all_nodes(steps, efficient):
    B = tree_of_all_nodes(steps, efficient=efficient)
    tree = Tree(steps, efficient=efficient)
    ours = np.tril(np.ones((steps, steps))) @ tree.inverse()
    assert np.allclose(ours @ ours.T, B @ B.T, atol=1e-12)
    levels, plain = math.floor(math.log2(steps)) + 1, Tree(steps)
    assert plain.sensitivity(Single()).value == pytest.approx(math.sqrt(levels), rel=1e-12)
    assert tree.sensitivity(Single()).value <= math.sqrt(levels) * (1 + 1e-12)
    assert tree.mean_error() <= plain.mean_error() * (1 + 1e-12)


# -- values from the literature and from independent computations


def test_values_of_independent_computations():
    for text, exact, digits in WRITTEN["known"]:
        assert eval(text, NAMES) == pytest.approx(exact, rel=digits), text


@pytest.mark.slow
def test_best_strategies_of_independent_computations():
    best = Dense.optimised(256)
    assert best.mean_error(participation=Single()) ** 2 == pytest.approx(6.3726681, abs=2e-7)
    assert np.allclose(np.linalg.norm(best.matrix(), axis=0), 1.0, atol=1e-10)
    for steps, epochs, decay, error in (
        (2048, 8, 0.969087, 16.12818),
        (1000, 1, 0.956246, 4.780699),
        (1000, 10, 0.953045, 15.248619),
    ):
        schema = FixedEpochs(epochs, steps // epochs)
        best = LambdaCGD.optimised(steps, participation=schema)
        assert best.decay == pytest.approx(decay, abs=2e-6)
        assert best.mean_error(participation=schema) == pytest.approx(error, rel=1e-6)


# -- optimisation


def test_optimised_families_beat_an_independent_search():
    rates = Workload(momentum=0.5, learning_rates=(1.0, 0.3) * 20)

    def renewals(tail):
        return BandedInverse(40, (1.0, *(-np.abs(tail) / max(1.0, np.abs(tail).sum()))))

    for workload, error, make in (
        (PREFIX_SUMS, "max_error", lambda tail: Banded(40, 3, [1.0, *tail])),
        (rates, "mean_error", lambda tail: Banded(40, 3, [1.0, *tail])),
        (rates, "mean_error", renewals),
    ):
        aim = {"participation": FixedEpochs(5, 8), "workload": workload}
        found = [
            minimize(lambda x: getattr(make(x), error)(**aim), start, method="Nelder-Mead").fun  # noqa: B023
            for start in np.random.default_rng(0).uniform(0.1, 0.5, (4, 2))
        ]
        best = type(make(np.full(2, 0.3))).optimised(40, 3, error=error.split("_")[0], **aim)
        assert getattr(best, error)(**aim) <= min(found) * (1 + 1e-6)


def test_more_buffers_are_no_worse_and_approach_the_optimum():
    schema = FixedEpochs(4, 64)
    errors = [
        BLT.optimised(256, count, participation=schema).mean_error(participation=schema)
        for count in (1, 2, 3)
    ]
    # Two positive buffers are as good as more here: extra ones collapse onto them.
    assert errors[0] > 1.01 * errors[1]
    assert errors[2] <= errors[1] * (1 + 1e-9)
    single = BLT.optimised(256, 3).mean_error(participation=Single())
    assert 2.52441 < single < 2.668782  # between the best matrix of all and the square root


@pytest.mark.slow
def test_five_buffers_of_a_million_steps_are_near_the_best():
    steps = 10**6
    best = BLT.optimised(steps, 5, error="max")
    # By the columns of C and of its inverse.
    product = best.max_error() * best.sensitivity(Single()).value
    root = float((SquareRoot(steps).coefficients ** 2).sum())
    assert root < product < 1.01 * root
    # The mean singular value of prefix sums is below what any factorisation reaches.
    angles = (2 * np.arange(1, steps + 1) - 1) * math.pi / (4 * steps + 2)
    least = float((0.5 / np.sin(angles)).mean())
    assert least < product < 1.1 * least


def test_dense_strategies_for_several_epochs():
    steps, schema = 24, FixedEpochs(3, 8)
    shared = Dense.optimised(steps, participation=schema)
    equal = Dense.optimised(steps, participation=schema, equal_norms=True)
    apart = Dense.optimised(steps, participation=LeastSeparation(8))
    for found in (shared, equal):
        X = found.matrix().T @ found.matrix()
        for first in range(8):
            gram = X[first::8, first::8]
            assert np.allclose(gram - np.diag(gram.diagonal()), 0, atol=1e-10)
        assert found.sensitivity(schema).value == pytest.approx(math.sqrt(3), rel=1e-9)
    assert np.allclose(np.linalg.norm(equal.matrix(), axis=0), 1, atol=1e-10)
    assert apart.bands == 8
    # More freedom is less error: norms, then pairs of steps that never meet, then Toeplitz bands.
    errors = [each.mean_error(participation=schema) for each in (shared, equal, apart)]
    banded = Banded.optimised(steps, 8, participation=schema).mean_error(participation=schema)
    assert errors[0] < errors[1] < errors[2] < banded
    # Where a record takes part once, descent finds what the fixed point does.
    A = np.tril(np.ones((steps, steps)))
    fixed = Dense.optimised(steps).matrix()
    assert np.allclose(best_gram(A, Single(), equal_norms=True), fixed.T @ fixed, atol=1e-6)


def test_no_neighbor_of_a_dense_optimum_is_better():
    # The programme is convex, so that a point without a better neighbor is the best of all.
    rng, schema, A = np.random.default_rng(3), FixedEpochs(2, 4), np.tril(np.ones((8, 8)))
    X = best_gram(A, schema, equal_norms=False)

    def value(gram):
        sums = gram.diagonal()[:4] + gram.diagonal()[4:]
        return np.trace(A.T @ A @ np.linalg.inv(gram)) * sums.max()

    for _ in range(200):
        change = rng.standard_normal((8, 8)) * (may_overlap(8, schema) | np.eye(8, dtype=bool))
        assert value(X + 1e-3 * (change + change.T)) >= value(X) * (1 - 1e-9)


@pytest.mark.parametrize("growth", [1.0, 1e3, 1e7])
def test_fast_inverses_are_within_the_margin_of_noise_in_whole_numbers(growth):
    # Rows of that noise have a margin of 1e-4 for all roundings. Matrices with more growth explode.
    head = np.convolve(SquareRoot(5000).coefficients, [1.0, -(growth ** (1 / 6000))])[:5000]
    fast, slow = (inverse_series(head, 6000, fast=each) for each in (True, False))
    assert np.abs(fast).sum() == pytest.approx(np.abs(slow).sum(), rel=1e-9)


# -- price


def test_events_are_priced_as_gaussians():
    strategy, alone = LambdaCGD(1000, 0.9), FixedEpochs(10, 100, independent=True)
    for relation, moved in (("replace-special", 1), ("replace-one", 2), ("add-or-remove-one", 1)):
        event = strategy.event(20.0, alone, neighboring_relation=relation)
        mu = moved * 7.2549359298 / 20.0
        expected = ndtr(mu / 2 - 1 / mu) - math.e * ndtr(-mu / 2 - 1 / mu)
        found = delta(event, epsilon=1.0, neighboring_relation=relation)
        assert found == pytest.approx(expected, rel=1e-8)


def test_sensitivity_is_never_rounded_down():
    # Against sums in exact rational arithmetic.
    for decay in (0.3, 0.97):
        strategy = LambdaCGD(150, decay)
        column = [Fraction(float(value)) for value in strategy.coefficients]
        for schema in (Single(), LeastSeparation(7, 11), LeastSeparation(3), LeastSeparation(1)):
            rows = (sum(column[t - k] for k in schema.earliest(t + 1)) for t in range(150))
            square, found = sum(row**2 for row in rows), strategy.sensitivity(schema).value
            assert square <= Fraction(found) ** 2 <= square * (1 + Fraction(1, 10**12))
