"""Problems in two blocks: sets, gradients, clipped sums, best responses, and Hessians of Phi."""

import numpy as np
import pytest
from _minimax import GROUPS, LABELS, PROBLEMS, TARGETS, N, X
from hypothesis import given, strategies as st
from scipy.optimize import minimize

from dpcal.optim.minimax import AUCMaximization, Ball, Box, Everywhere, Minimax, Simplex
from dpcal.optim.minimax.base import MinimaxObjective

# The gradients of the others come without a loss.
TILTS = np.minimum(1, 2 / np.linalg.norm(X, axis=1))  # of the longest, to norm 2
LOSSES = [name for name in PROBLEMS if name not in ("own", "sensing")]


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


# -- gradients and clipping


def slopes(function, at, step):
    """Return central differences of a function of a vector, one for each coordinate."""
    moves = step * np.eye(len(at))
    return np.array([(function(at + m) - function(at - m)) / (2 * step) for m in moves])


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_loss(name):
    problem = PROBLEMS[name]()
    w = points(problem)
    assert problem.gradient(w) == pytest.approx(slopes(problem.loss, w, 1e-6), abs=2e-8)


def test_losses_are_those_of_the_formulas():
    for name, of in {
        "fair": lambda s, w: 3 * w[4:][GROUPS] * np.logaddexp(0, -s * (2 * LABELS - 1)),
        "shift": lambda s, w: (1 + X @ w[4:] * TILTS) * (s - TARGETS) ** 2 / 2,
        "auc": lambda s, w: np.where(
            LABELS,
            0.6 * ((s - w[3]) ** 2 - 2 * (1 + w[5]) * s),
            0.4 * ((s - w[4]) ** 2 + 2 * (1 + w[5]) * s),
        ),
    }.items():
        w = points(PROBLEMS[name](), 3)
        scores = X @ w[:3] + (name != "auc") * w[3]
        found = PROBLEMS[name]().record_losses(w, np.arange(N))
        assert found == pytest.approx(of(scores, w), rel=1e-12)


@pytest.mark.parametrize("shares", [None, (1.0, 2.0)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sums_are_of_records_that_are_clipped_one_by_one(name, shares):
    problem = PROBLEMS[name](block_shares=shares)
    d1 = problem.dimensions[0]
    w, v = points(problem, 1), points(problem, 2)
    same_x = np.concatenate([w[:d1], v[d1:]])
    rows = np.array([3, 7, 8, 20, 39, 8])
    blocks = [(slice(None), 1.0)]
    if shares is not None:
        blocks = [(slice(0, d1), 1 / np.sqrt(5)), (slice(d1, None), 2 / np.sqrt(5))]
    here = problem.record_gradients(w, rows)
    for to in (None, v, same_x):
        table = here if to is None else here - problem.record_gradients(to, rows)
        for bound in (1e-200, 0.05, 0.5, np.inf):
            expected = np.zeros(problem.dimension)
            for row in table:
                for block, share in blocks:
                    norm = np.linalg.norm(row[block])
                    expected[block] += row[block] * min(1.0, bound * share / norm if norm else 1.0)
            if to is None:
                found = problem.clipped_sum(w, rows, bound)
            else:
                found = problem.clipped_difference_sum(w, to, rows, bound)
            near = 1e-11 * min(bound, 1.0) * len(rows)
            assert found == pytest.approx(expected, rel=1e-11, abs=near)


# -- value functions


@pytest.mark.parametrize("name", PROBLEMS)
def test_best_responses_are_best(name):
    problem = PROBLEMS[name]()
    x = problem.split(points(problem, 7))[0]
    found = problem.best_response(x)
    assert found == pytest.approx(MinimaxObjective.best_response(problem, x), abs=1e-6)
    assert problem.dual_set.project(found) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_value_function_has_the_gradient_of_danskin(name):
    problem = PROBLEMS[name]()
    x = problem.split(points(problem, 8))[0]
    assert problem.phi_gradient(x) == pytest.approx(slopes(problem.phi, x, 1e-5), abs=1e-6)


def test_on_a_curved_boundary_the_best_response_turns():
    given = {"n": 3, "dimensions": (2, 2), "dual_set": Ball(0.1), "dual_l2": 1.0}
    edge = Minimax(lambda x, y, rows: tuple(np.tile(z, (len(rows), 1)) for z in (y, x)), **given)
    # Phi is |x| / 10 there, up to a constant.
    turned = 0.1 * (np.eye(2) - 0.5) / np.sqrt(2)
    assert edge.phi_hessian(np.array([1.0, 1.0])) == pytest.approx(turned, abs=1e-6)
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
