"""Hessians: against differences of gradients, their clipping, their noise, and who gives them."""

import math

import numpy as np
import pytest
from _built_plans import plan_of, query
from saddles import Trigonometric

from dpcal import optim
from dpcal._ext.sums import grid_step
from dpcal.errors import BrokenObjective
from dpcal.optim.objectives.contributions import Matrices, hessian_products, hessians
from dpcal.optim.second_order.oracle import SecondOrderOracle, symmetric

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
LABELS = np.where(RNG.random(40) < 0.5, "a", "b")
THREE = RNG.integers(0, 3, 40)
TARGETS = RNG.standard_normal(40)


def rotated(gradients=None, products=None):
    """Return a quadratic loss of a user's, with a Hessian that may be wrong."""
    H = np.array([[2.0, 1.0], [1.0, -3.0]])
    return optim.FromGradients(
        gradients or (lambda w, rows: np.tile(w @ H, (len(rows), 1)) + X[rows, :2]),
        n=40,
        dimension=2,
        hessian_vectors=products or (lambda w, v, rows: np.tile(H @ v, (len(rows), 1))),
    )


CLASSES = {"classes_from_data": True}
OBJECTIVES = {
    "logistic": optim.Logistic(X, LABELS, l2=0.1, **CLASSES),
    "squared": optim.Squared(X, TARGETS),
    "huber": optim.Huber(X, TARGETS, width=9.0),
    "cauchy": optim.Cauchy(X, TARGETS),
    "welsch": optim.Welsch(X, TARGETS),
    "sigmoid": optim.Sigmoid(X, LABELS, **CLASSES),
    "softmax": optim.Softmax(X, THREE, l2=0.1, **CLASSES),
    "softmax without intercept": optim.Softmax(X, THREE, fit_intercept=False, **CLASSES),
    "mlp": optim.MLP(X, THREE, width=4, l2=0.1, **CLASSES),
    "trigonometric": Trigonometric(X),
    "custom": rotated(),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_products_are_derivatives_of_gradients(name):
    objective = OBJECTIVES[name]
    d = objective.dimension
    w, v = 0.3 * np.random.default_rng(1).standard_normal((2, d))
    h = 1e-5
    expected = (objective.gradient(w + h * v) - objective.gradient(w - h * v)) / (2 * h)
    assert objective.hessian_vector(w, v) == pytest.approx(expected, rel=1e-6, abs=1e-8)
    optim.check_objective(objective)
    H = np.array([objective.hessian_vector(w, unit) for unit in np.eye(d)])
    found = optim.curvature(objective, w)
    assert found == pytest.approx(np.linalg.eigvalsh(H)[0], rel=1e-9, abs=1e-9)
    product = objective.hessian_vector(w, found.direction)
    assert product == pytest.approx(found * found.direction, abs=1e-9)


def test_many_parameters_go_by_lanczos():
    objective = Trigonometric(0.1 * np.random.default_rng(2).standard_normal((50, 300)))
    w = np.zeros(300)
    w[17] = 3.0
    found = optim.curvature(objective, w)
    assert found == pytest.approx(np.cos(objective.Z[:, 17] + 3.0).mean(), abs=1e-6)
    assert abs(found.direction[17]) == pytest.approx(1.0, abs=1e-3)
    assert found.error < 1e-4


def test_a_hessian_that_is_wrong_is_told():
    turned = np.array([[2.0, 1.0], [0.5, -3.0]])
    skew = rotated(products=lambda w, v, rows: np.tile(turned @ v, (len(rows), 1)))
    for ask in (optim.check_objective, lambda each: optim.curvature(each, np.zeros(2))):
        with pytest.raises(BrokenObjective, match="symmetric"):
            ask(skew)
    other = rotated(products=lambda w, v, rows: np.tile(v, (len(rows), 1)))
    with pytest.raises(BrokenObjective, match="derivative of the gradients"):
        optim.check_objective(other)
    for none in (
        optim.KAN(X, LABELS, width=2, **CLASSES),
        optim.FromGradients(lambda w, rows: X, n=40, dimension=3),
    ):
        with pytest.raises(TypeError, match="essian"):
            optim.curvature(none, np.zeros(none.dimension))


@pytest.mark.parametrize("name", ["logistic", "cauchy", "trigonometric", "custom", "mlp"])
@pytest.mark.parametrize("spectral", [False, True])
def test_no_record_moves_a_sum_of_hessians_by_more_than_its_bound(name, spectral):
    objective = OBJECTIVES[name]
    d = objective.dimension
    w = 0.5 * np.random.default_rng(3).standard_normal(d)
    rows = np.arange(4 if name == "mlp" else 12)
    free = [hessians(objective, rows[i : i + 1], w).clipped(math.inf) for i in range(len(rows))]
    order = 2 if spectral else None
    norms = [np.linalg.norm(symmetric(each, d), order) for each in free]
    bound = float(np.median(norms))
    clipped = [
        hessians(objective, rows[i : i + 1], w, spectral=spectral).clipped(bound)
        for i in range(len(rows))
    ]
    for whole, one, norm in zip(free, clipped, norms, strict=True):
        assert one == pytest.approx(whole * min(1.0, bound / norm), rel=1e-6, abs=1e-12)
        H = symmetric(one, d)
        assert np.linalg.norm(H, order) <= bound
        # What is released is the triangle, whose norm is no larger than the matrix's.
        assert np.linalg.norm(one) <= np.linalg.norm(H) * (1 + 1e-12)
    total = hessians(objective, rows, w, spectral=spectral).clipped(bound)
    assert total == pytest.approx(np.sum(clipped, axis=0), rel=1e-9, abs=1e-12)


def planned(kind, **fields):
    asked = query(kind, name="asked", **{"noise_multiplier": 3.0, "max_norm": 2.0, **fields})
    return plan_of(asked, n=40, optimizer="select_point", neighboring_relation="replace-one")


def test_a_bound_on_operator_norms_is_kept_whatever_a_method_returns():
    """A triangle of ones is shorter than the matrix of ones that it stands for."""
    ones = np.ones((3, 3))

    class Own(optim.Squared):
        def hessian_contributions(self, rows, w):
            return self.handed

    own = Own(X, TARGETS, fit_intercept=False)
    own.handed = Matrices(3, [np.triu(ones)[np.newaxis]])
    total = hessians(own, np.array([0]), np.zeros(3), spectral=True).clipped(1.0)
    assert symmetric(total, 3) == pytest.approx(ones / 3, rel=1e-9)
    own.handed = np.ones((1, 6))
    with pytest.raises(TypeError, match="must return Matrices or Squares, got ndarray"):
        hessians(own, np.array([0]), np.zeros(3), spectral=True)


def test_the_noise_on_a_hessian_is_symmetric_and_its_triangle_independent():
    """400 answers in 3 dimensions; chances below are two-sided, false alarms about 1e-4 in all."""
    objective = Trigonometric(X)
    plan = planned("hessian", count=400)
    oracle = SecondOrderOracle(objective, plan, seed=0)
    exact = symmetric(hessians(objective, np.arange(40), np.zeros(3)).clipped(2.0), 3)
    answers = np.array([oracle.hessian(np.zeros(3), "asked") for _ in range(400)])
    assert (answers == answers.transpose(0, 2, 1)).all()
    noise = (40 * answers - exact)[:, *np.triu_indices(3)] / 6.0
    assert abs((noise**2).sum() - noise.size) < 4.5 * math.sqrt(2 * noise.size)
    assert np.abs(np.corrcoef(noise.T) - np.eye(6)).max() < 4.5 / math.sqrt(400)
    assert oracle.ledger.count("asked") == 400


def test_products_with_a_vector_are_private_too():
    objective = OBJECTIVES["logistic"]
    oracle = SecondOrderOracle(objective, planned("hessian vector", noise_multiplier=1e-9), seed=0)
    w, v = np.random.default_rng(1).standard_normal((2, 4))
    v /= np.linalg.norm(v)
    rows = np.arange(40)
    expected = hessian_products(objective, rows, w, v).clipped(2.0) / 40
    expected += objective.regularizer_gradient(v)
    assert oracle.hessian_vector(w, v, "asked") == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["hessian", "hessian vector"])
def test_sums_of_curvature_are_whole_with_discrete_noise(kind):
    """Without noise to speak of: the sum of clipped contributions, rounded onto the grid."""
    objective, w, v = Trigonometric(X), np.full(3, 0.4), np.array([1.0, -2.0, 0.5])
    plan = planned(kind, noise_multiplier=1e-5, max_norm=0.7)
    oracle, everyone = SecondOrderOracle(objective, plan, seed=1), np.arange(objective.n)
    if kind == "hessian":
        found = oracle.hessian(w, "asked")
        near = symmetric(hessians(objective, everyone, w).clipped(0.7), 3) / objective.n
    else:
        found = oracle.hessian_vector(w, v, "asked")
        near = hessian_products(objective, everyone, w, v).clipped(0.7) / objective.n
    np.testing.assert_allclose(found, near, atol=1e-5)
    steps = found * 40 / grid_step(0.7)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
