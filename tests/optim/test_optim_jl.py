"""Embedded linear models: what the lemma says, exact identities, chosen dimensions."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.optim.first_order.jl_glm import embedding
from dpcal.optim.registry import find

RNG = np.random.default_rng(0)
N, D, RANK = 300, 200, 6
SPAN, _ = np.linalg.qr(RNG.standard_normal((D, RANK)))
X = RNG.standard_normal((N, RANK)) @ SPAN.T
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X @ SPAN[:, 0] > 0
SIGMOID = Constants(lipschitz=0.3, smoothness=0.155, gap=0.25)
OBJECTIVE = optim.Sigmoid(X, Y, fit_intercept=False, classes_from_data=True)
INNER = ["spiderboost", "noisy_gd", "recursive_regularization", "tree_spider"]


def plan_for(n=N, dimension=D, **options):
    given = {"epsilon": 8.0, "delta": 1e-5, **options}
    return calibrate.jl_glm(SIGMOID, n=n, dimension=dimension, **given)


# -- the matrix


@pytest.mark.parametrize("matrix", ["gaussian", "sparse"])
def test_norms_and_inner_products_are_kept_as_the_lemma_says(matrix):
    # ||A x||^2 / ||x||^2 has mean 1 and, for Gaussian A, the law of chi2_k / k; sparse matrices
    # have a variance of at most 2 / k. Means over 400 matrices: 6 standard deviations.
    k, x, found = 64, RNG.standard_normal(D), []
    given = {"inner": "noisy_gd", "matrix": matrix}
    plan = plan_for(embedding_dimension=k, **given)
    for seed in range(400):
        seeded = {**plan.parameters, "matrix_seed": seed}
        A = embedding(dataclasses.replace(plan, parameters=seeded), D)
        assert A.shape == (k, D)
        found.append(np.sum((A @ x) ** 2) / (x @ x))
    assert abs(np.mean(found) - 1) < 6 * math.sqrt(2 / k / 400)
    assert np.var(found) < 2 / k * 1.5
    if matrix == "gaussian":
        assert stats.kstest(np.array(found) * k, stats.chi2(k).cdf).pvalue > 1e-6
    # k = 24 log(n) / eps^2 keeps all pairs of n unit vectors within eps, but for a chance of 1 / n.
    points = RNG.standard_normal((50, 2_000))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    A = embedding(plan_for(dimension=2_000, embedding_dimension=600, **given), 2_000)
    assert np.abs((points @ A.T) @ (A @ points.T) - points @ points.T).max() < 0.4


@pytest.mark.slow
def test_the_matrix_is_a_function_of_the_plan():
    plan, other = plan_for(embedding_dimension=20), plan_for(embedding_dimension=20, matrix_seed=1)
    assert (embedding(plan, D) == embedding(calibrate.Plan.from_json(plan.to_json()), D)).all()
    assert (embedding(plan, D) != embedding(other, D)).any()
    assert embedding(plan_for(embedding_dimension=D), D) is None


# -- embedded records


def test_loss_and_gradient_of_a_lifted_solution_are_those_in_few_dimensions():
    # Enough dimensions that no record is scaled down.
    A = embedding(plan_for(embedding_dimension=120), D)
    assert (np.linalg.norm(X @ A.T, axis=1) < math.sqrt(2)).all()
    u = RNG.standard_normal(120)
    for objective in (OBJECTIVE, optim.Logistic(X, Y, fit_intercept=False, classes_from_data=True)):
        small = objective.embedded(A)
        assert small.loss(u) == pytest.approx(objective.loss(u @ A), rel=1e-12)
        np.testing.assert_allclose(
            small.gradient(u), A @ objective.gradient(u @ A), rtol=1e-9, atol=1e-12
        )


def test_embedded_records_are_never_longer_than_root_two():
    objective, root = optim.Huber(X, X[:, 0], fit_intercept=True), math.sqrt(2)
    for k in (1, 2, 5):
        longest = 0.0
        for seed in range(20):
            A = np.random.default_rng(seed).standard_normal((k, D + 1)) / math.sqrt(k)
            small = objective.embedded(A)
            assert (small.kernel.norms / objective.kernel.norms).max() <= root * (1 + 1e-12)
            most = root * objective.constants.lipschitz * (1 + 1e-9)
            assert small.constants.lipschitz <= most
            longest = max(longest, (np.linalg.norm(X @ A[:, :D].T, axis=1)).max())
        assert longest > root  # some were scaled down


def test_what_becomes_of_a_record_depends_on_it_alone():
    A, changed = RNG.standard_normal((3, D)), X.copy()
    changed[0] = 100 * RNG.standard_normal(D)
    whole, other = (
        optim.Sigmoid(table, Y, fit_intercept=False, classes=[0, 1]).embedded(A).kernel.features
        for table in (X, changed)
    )
    np.testing.assert_allclose(whole[1:], other[1:], rtol=1e-12)


# -- plans and runs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")
@pytest.mark.parametrize("inner", INNER)
def test_a_solution_is_that_of_the_inner_optimizer_lifted(inner):
    plan = plan_for(inner=inner, embedding_dimension=12, neighboring_relation="replace-one")
    objective, A = (
        optim.Logistic(X, Y, fit_intercept=False, classes_from_data=True),
        embedding(plan, D),
    )
    relabelled = dataclasses.replace(plan, optimizer=inner)
    alone = find(inner).optimizer()(objective.embedded(A), relabelled, seed=4)
    lifted = optim.jl_glm(objective, plan, seed=4)
    np.testing.assert_allclose(lifted.w, alone.w @ A, rtol=1e-9)
    assert lifted.ledger == alone.ledger
    assert 8.0 * (1 - 1e-4) < plan.price() <= 8.0


def test_enough_dimensions_leave_records_alone():
    plan = plan_for(dimension=D, embedding_dimension=D, inner="noisy_gd")
    direct = calibrate.noisy_gd(SIGMOID, n=N, dimension=D, epsilon=8.0, delta=1e-5)
    assert plan.queries == direct.queries
    found = optim.jl_glm(OBJECTIVE, plan, seed=1)
    inner = dataclasses.replace(plan, optimizer="noisy_gd")
    assert found.w.tobytes() == optim.noisy_gd(OBJECTIVE, inner, seed=1).w.tobytes()


@pytest.mark.slow
def test_dimensions_are_chosen_as_the_corollaries_say():
    # k as (n epsilon)^(4/5) for SpiderBoost and as n epsilon for the convex method, whatever d is.
    for inner, exponent in (("spiderboost", 4 / 5), ("recursive_regularization", 1.0)):
        chosen = [
            plan_for(n=n, dimension=10**7, inner=inner, neighboring_relation="replace-one")
            .parameters["embedding_dimension"]
            for n in (10**4, 10**6)
        ]  # fmt: skip
        assert math.log(chosen[1] / chosen[0]) / math.log(100) == pytest.approx(exponent, abs=0.02)
    assert plan_for(rank=1).parameters["embedding_dimension"] <= math.ceil(math.log(2 * N / 1e-5))


@pytest.mark.slow
def test_what_cannot_be_embedded_is_refused():
    plan = plan_for(embedding_dimension=10)
    with pytest.raises(ValueError, match="l2 must be 0 for records to be embedded"):
        optim.jl_glm(optim.Sigmoid(X, Y, l2=0.1, classes_from_data=True), plan)
    loose = optim.FromGradients(lambda w, rows: X[rows], n=N, dimension=D)
    for objective in (loose, optim.Softmax(X, np.arange(N) % 3, classes_from_data=True)):
        with pytest.raises(TypeError, match="objective must be a linear model"):
            optim.jl_glm(objective, plan)
