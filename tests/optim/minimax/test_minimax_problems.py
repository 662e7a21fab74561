"""Problems in two blocks: sets, gradients, clipped sums, best responses, and Hessians of Phi."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize

from benchmarks.problems.sensing import MatrixSensing
from dpcal.optim.minimax import (
    AUCMaximization,
    Ball,
    Box,
    CovariateShift,
    Everywhere,
    FairClassification,
    Minimax,
    Simplex,
    ToySaddle,
)
from dpcal.optim.minimax.base import MinimaxObjective

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 3))
LABELS = (X @ [1.0, -1.0, 0.5] + 0.3 * RNG.standard_normal(40) > 0).astype(int)
GROUPS = RNG.integers(0, 3, 40)
TARGETS = X @ [0.5, 0.2, -0.4] + 0.1 * RNG.standard_normal(40)
A = RNG.standard_normal((40, 3))


def bilinear(x, y, rows):
    """F = <a, x> <a, y>."""
    a = A[rows]
    return (a @ y)[:, np.newaxis] * a, (a @ x)[:, np.newaxis] * a


PROBLEMS = {
    "toy": lambda shares=None: ToySaddle(n=40, seed=1, block_shares=shares),
    "fair": lambda shares=None: FairClassification(
        X,
        LABELS,
        GROUPS,
        dual_l2=0.3,
        primal_l2=0.1,
        block_shares=shares,
        classes_from_data=True,
        groups_from_data=True,
    ),
    "shift": lambda shares=None: CovariateShift(
        X, TARGETS, dual_l2=3.0, tilt_norm=2.0, block_shares=shares
    ),
    "auc": lambda shares=None: AUCMaximization(
        X, LABELS, positive_share=0.4, block_shares=shares, classes_from_data=True
    ),
    "sensing": lambda shares=None: MatrixSensing(
        RNG_MATRICES, RNG_MATRICES.sum(axis=(1, 2)), rank=1, block_shares=shares
    ),
    "own": lambda shares=None: Minimax(
        bilinear, n=40, dimensions=(3, 3), dual_l2=2.0, block_shares=shares
    ),
}
RNG_MATRICES = np.random.default_rng(6).standard_normal((40, 3, 2)) / 2


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]()


def points(problem, seed=0, scale=0.4):
    rng = np.random.default_rng(seed)
    d1 = problem.dimensions[0]
    w = scale * rng.standard_normal(problem.dimension)
    w[d1:] = problem.dual_set.project(w[d1:])
    return w


# -- sets


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=8),
    st.sampled_from([Ball(0.7), Box(-0.5, 2.0), Simplex(), Simplex(3.0), Everywhere()]),
    st.integers(0, 1000),
)
def test_a_projection_is_the_nearest_point(values, dual_set, seed):
    """The nearest point p has <y - p, q - p> <= 0 for every q of the set."""
    y = np.array(values)
    p = dual_set.project(y)
    assert np.abs(dual_set.project(p) - p).max() <= 1e-12 * (1 + np.abs(p).max())
    rng = np.random.default_rng(seed)
    for _ in range(5):
        q = dual_set.project(10 * rng.standard_normal(len(y)))
        assert (y - p) @ (q - p) <= 1e-9 * (1 + np.abs(y).max())
    if isinstance(dual_set, Simplex):
        assert p.min() >= 0
        assert p.sum() == pytest.approx(dual_set.total, rel=1e-12)
    if isinstance(dual_set, Box):
        assert ((p >= -0.5) & (p <= 2.0)).all()


@pytest.mark.parametrize(
    ("dual_set", "y", "count"),
    [
        (Ball(1.0), [1.0, 0.0], 1),
        (Ball(1.0), [0.5, 0.0], 2),
        (Box(0.0, 1.0), [0.0, 0.5, 1.0], 1),
        (Simplex(), [0.5, 0.5, 0.0], 1),
        (Simplex(), [1.0, 0.0, 0.0], 0),
        (Simplex(), [0.2, 0.3, 0.5], 2),
    ],
)
def test_free_directions_stay_in_the_set(dual_set, y, count):
    free = dual_set.free_directions(np.array(y))
    assert free.shape == (len(y), count)
    assert free.T @ free == pytest.approx(np.eye(count), abs=1e-12)
    for direction in free.T:
        for sign in (1, -1):
            moved = np.array(y) + sign * 1e-6 * direction
            assert dual_set.project(moved) == pytest.approx(moved, abs=1e-11)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Box(1.0, 1.0), "low must be below high, or no point is left"),
        (lambda: Ball(0.0), "radius must be a finite number > 0, got 0.0"),
        (lambda: Simplex(-1.0), "total must be a finite number > 0, got -1.0"),
        (
            lambda: AUCMaximization(X, LABELS, positive_share=1.0, classes_from_data=True),
            "positive_share must be",
        ),
        (
            lambda: FairClassification(
                X, LABELS, GROUPS, dual_l2=0.0, classes_from_data=True, groups_from_data=True
            ),
            "dual_l2 must be",
        ),
        (
            lambda: FairClassification(
                X, LABELS, GROUPS[:3], dual_l2=1.0, shares=[0.5, 0.5], classes_from_data=True
            ),
            r"groups must have shape \(40,\)",
        ),
        (
            lambda: FairClassification(
                X, LABELS, GROUPS, dual_l2=1.0, shares=[0.5, -0.5], classes_from_data=True
            ),
            "shares must be numbers > 0",
        ),
        (
            lambda: FairClassification(
                X, GROUPS, GROUPS, dual_l2=1.0, classes_from_data=True, groups_from_data=True
            ),
            "two classes",
        ),
        (lambda: CovariateShift(X, TARGETS[:3], dual_l2=1.0), "must hold 40 records"),
        (lambda: MatrixSensing(RNG_MATRICES, [1.0], rank=1), r"A must have shape \(n, p, q\)"),
        (lambda: ToySaddle(n=1), "n must be at least 2"),
    ],
)
def test_wrong_problems_are_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


# -- gradients and clipping


def test_gradients_are_those_of_the_loss(problem):
    if not isinstance(problem, Minimax):
        w = points(problem)
        for j in range(problem.dimension):
            step = np.zeros(problem.dimension)
            step[j] = 1e-6
            slope = (problem.loss(w + step) - problem.loss(w - step)) / 2e-6
            assert problem.gradient(w)[j] == pytest.approx(slope, abs=2e-8)


@pytest.mark.parametrize("shares", [None, (1.0, 2.0)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sums_are_of_records_that_are_clipped_one_by_one(name, shares):
    problem = PROBLEMS[name](shares)
    d1 = problem.dimensions[0]
    w, v = points(problem, 1), points(problem, 2)
    rows = np.array([3, 7, 8, 20, 39])
    for table, found in (
        (problem.record_gradients(w, rows), lambda c: problem.clipped_sum(w, rows, c)),
        (
            problem.record_gradients(w, rows) - problem.record_gradients(v, rows),
            lambda c: problem.clipped_difference_sum(w, v, rows, c),
        ),
    ):
        for bound in (0.05, 0.5, np.inf):
            expected = np.zeros(problem.dimension)
            for row in table:
                if shares is None:
                    expected += row * min(1.0, bound / np.linalg.norm(row))
                else:
                    for block, share in ((slice(0, d1), 1.0), (slice(d1, None), 2.0)):
                        norm, most = np.linalg.norm(row[block]), bound * share / np.sqrt(5)
                        expected[block] += row[block] * min(1.0, most / norm if norm else 1.0)
            assert found(bound) == pytest.approx(expected, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_record_moves_a_sum_by_more_than_the_bound(name):
    problem = PROBLEMS[name]()
    w, v = points(problem, 3, scale=3.0), points(problem, 4, scale=3.0)
    for row in range(problem.n):
        alone = np.array([row])
        assert np.linalg.norm(problem.clipped_sum(w, alone, 0.3)) <= 0.3
        assert np.linalg.norm(problem.clipped_difference_sum(w, v, alone, 0.01)) <= 0.01


@pytest.mark.parametrize("shares", [None, (1.0, 2.0)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_clip_is_the_nearest_point_of_a_ball(name, shares):
    """Norm at most C, the identity inside, 0 at 0, and no pair is moved farther apart.

    Jointly over both blocks; with shares each block has a ball of its own, and so has the pair.
    """
    problem, C = PROBLEMS[name](shares), 0.6
    rng = np.random.default_rng(8)
    points = 10.0 ** rng.uniform(-3, 2, (40, 1)) * rng.standard_normal((40, problem.dimension))
    rows = rng.integers(0, problem.n, 40)

    def each(bound):
        return np.array(
            [
                problem.clipped_sum(w, np.array([row]), bound)
                for w, row in zip(points, rows, strict=True)
            ]
        )

    raw, clipped = each(np.inf), each(C)
    d1 = problem.dimensions[0]
    blocks = [slice(None)] if shares is None else [slice(d1), slice(d1, None)]
    bounds = [C] if shares is None else list(C * np.array(shares) / np.linalg.norm(shares))
    assert (np.linalg.norm(clipped, axis=1) <= C).all()
    for block, bound in zip(blocks, bounds, strict=True):
        before, after = raw[:, block], clipped[:, block]
        sizes = np.linalg.norm(before, axis=1)
        inside = sizes <= bound * (1 - 1e-9)
        assert inside.any() or not (sizes < bound).any()
        np.testing.assert_allclose(after[inside], before[inside], rtol=1e-12, atol=1e-300)
        nearest = before * np.minimum(1, bound / np.maximum(sizes, 1e-300))[:, np.newaxis]
        np.testing.assert_allclose(after, nearest, rtol=1e-9, atol=1e-12)
        # 1-Lipschitz, on all pairs.
        apart = np.linalg.norm(before[:, np.newaxis] - before, axis=2)
        moved = np.linalg.norm(after[:, np.newaxis] - after, axis=2)
        assert (moved <= apart * (1 + 1e-9) + 1e-12).all()


def test_the_averaged_clip_moves_as_far_for_any_number_of_records():
    """One unbounded record takes the clipped average from one side of the ball to the other."""
    batch = 50
    gradients = np.full((batch, 1), -1.0)

    def averaged_then_clipped(table):
        mean = table.mean(axis=0)
        return mean * min(1.0, 1.0 / np.linalg.norm(mean))

    neighbour = gradients.copy()
    neighbour[0] = 1e6
    moved = np.linalg.norm(averaged_then_clipped(neighbour) - averaged_then_clipped(gradients))
    assert moved > 1.9
    each = np.clip(neighbour, -1, 1).mean(axis=0) - np.clip(gradients, -1, 1).mean(axis=0)
    assert np.linalg.norm(each) <= 2 / batch * (1 + 1e-12)


@pytest.mark.parametrize("bound", [1.0, 1e-3])
def test_clipping_orders_keep_to_the_table(bound):
    """Two clipped gradients differ by up to 4 C / b, a clipped difference by 2 C / b."""
    rng = np.random.default_rng(0)
    batch, worst = 10, {"difference": 0.0, "separate": 0.0}

    def clip(rows):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows * np.minimum(1.0, bound / norms)

    for _ in range(300):
        now, then = rng.standard_normal((2, batch, 1))
        other = now.copy(), then.copy()
        other[0][0], other[1][0] = -5 * now[0], 5 * now[0]
        then[0] = -now[0]
        worst["difference"] = max(
            worst["difference"],
            np.linalg.norm((clip(now - then) - clip(other[0] - other[1])).mean(axis=0)),
        )
        separate = clip(now) - clip(then) - clip(other[0]) + clip(other[1])
        worst["separate"] = max(worst["separate"], np.linalg.norm(separate.mean(axis=0)))
    assert worst["difference"] <= 2 * bound / batch * (1 + 1e-12)
    assert 2 * bound / batch < worst["separate"] <= 4 * bound / batch * (1 + 1e-12)


# -- value functions


def test_best_responses_are_best(problem):
    w = points(problem, 7)
    x = problem.split(w)[0]
    found = problem.best_response(x)
    generic = MinimaxObjective.best_response(problem, x)
    assert found == pytest.approx(generic, abs=1e-6)
    assert problem.dual_set.project(found) == pytest.approx(found, abs=1e-12)


def test_the_value_function_has_the_gradient_of_danskin(problem):
    if isinstance(problem, Minimax):
        return
    x = problem.split(points(problem, 8))[0]
    for j in range(len(x)):
        step = np.zeros(len(x))
        step[j] = 1e-5
        slope = (problem.phi(x + step) - problem.phi(x - step)) / 2e-5
        assert problem.phi_gradient(x)[j] == pytest.approx(slope, abs=1e-6)


def test_the_hessian_of_the_value_function_is_the_derivative_of_its_gradient(problem):
    x = problem.split(points(problem, 9))[0]
    H = problem.phi_hessian(x)
    for j in range(len(x)):
        step = np.zeros(len(x))
        step[j] = 1e-5
        column = (problem.phi_gradient(x + step) - problem.phi_gradient(x - step)) / 2e-5
        assert H[:, j] == pytest.approx(column, abs=1e-5)


def test_the_exact_hessian_of_sensing_agrees_with_differences():
    problem = MatrixSensing.generated(n=50, shape=(4, 3), rank=2, seed=1)
    value = problem.value
    x = 0.3 * np.random.default_rng(1).standard_normal(problem.dimensions[0])
    H = problem.phi_hessian(x)
    for j in range(len(x)):
        step = np.zeros(len(x))
        step[j] = 1e-4
        # Phi is a polynomial of degree four: differences of its gradient err by h^2 alone.
        column = (value.gradient(x + step) - value.gradient(x - step)) / 2e-4
        assert H[:, j] == pytest.approx(column, abs=1e-8)
    assert pytest.approx(value.hessian(x), abs=0) == H
    lowest = np.linalg.eigvalsh(problem.phi_hessian(np.zeros(len(x))))[0]
    assert lowest == pytest.approx(-np.linalg.norm(problem.operator_mean(), 2), abs=1e-10)


def test_a_curved_boundary_and_a_flat_dual_are_said():
    edge = Minimax(
        lambda x, y, rows: (np.outer(np.ones(len(rows)), y), np.outer(np.ones(len(rows)), x)),
        n=3,
        dimensions=(2, 2),
        dual_set=Ball(0.1),
        dual_l2=1.0,
    )
    with pytest.raises(ValueError, match="curved boundary"):
        edge.phi_hessian(np.array([1.0, 1.0]))
    assert edge.phi_hessian(np.array([0.01, 0.0])) == pytest.approx(np.eye(2), abs=1e-6)


def test_the_saddle_form_of_auc_is_the_square_surrogate():
    """At best mean scores and dual, f is that of all pairs, up to a constant factor."""
    p = float(LABELS.mean())
    problem = AUCMaximization(X, LABELS, positive_share=p, classes_from_data=True)
    positive, negative = X[LABELS == 1], X[LABELS == 0]

    def of_pairs(w):
        return float(((1 - (positive @ w)[:, np.newaxis] + negative @ w) ** 2).mean())

    def least(w):
        inner = minimize(lambda ab: problem.phi(np.concatenate([w, ab])), np.zeros(2), tol=1e-12)
        return float(inner.fun)

    w, v = np.array([0.2, -0.1, 0.3]), np.array([-0.3, 0.2, 0.1])
    # Ying, Wen and Lyu leave out p (1 - p), which is of no record.
    assert least(w) - least(v) == pytest.approx(p * (1 - p) * (of_pairs(w) - of_pairs(v)), abs=1e-6)
    ranks = problem.auc(X, LABELS == 1, w)
    pairs = np.sign((positive @ w)[:, np.newaxis] - negative @ w)
    assert ranks == pytest.approx(float((pairs > 0).mean() + (pairs == 0).mean() / 2))


def test_fair_weights_lean_to_the_group_that_does_worst():
    problem = PROBLEMS["fair"]()
    x = np.array([1.0, 0.5, -0.5, 0.1])
    losses, weights = problem.group_losses(x), problem.best_response(x)
    assert np.argmax(losses) == np.argmax(weights)
    assert weights.sum() == pytest.approx(1.0)
