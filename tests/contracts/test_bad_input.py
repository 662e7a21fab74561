"""Ten records, constants that are wrong, sparse rows: every optimizer stays within its price."""

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse
from _built_plans import CONSTANTS, DIMENSION, logistic, target
from saddles import ToySaddle

from dpcal import calibrate, estimators, optim
from dpcal.accountants.matrix import Banded
from dpcal.errors import VacuousSchedule
from dpcal.optim.registry import OPTIMIZERS

# Of builders without constants, and the least that others must be told.
SIZES = {
    "dpsgd": {"batch_size": 2, "steps": 20},
    "correlated_dpsgd": {"sampler": "full", "batch_size": 10},
    "kl_spider": {"gamma": 6.0},
    "proximal_point": {"gamma": 6.0, "kappa": 2.0},
}
NAMES = [name for name in OPTIMIZERS if name != "distributed_psgd"]


def run(name, n, scale=1.0):
    """Return the result of an optimizer at its defaults, and its warnings."""
    asked = {**target(n, epsilon=1.0), **SIZES.get(name, {})}
    constants, objective = CONSTANTS, logistic(n, DIMENSION)
    if OPTIMIZERS[name].blocks:
        objective = ToySaddle(n=n, seed=7)
        constants, asked = objective.constants, {"dimensions": (2, 2), **asked}
    elif OPTIMIZERS[name].constants:
        asked["dimension"] = DIMENSION
    wrong = {each: scale * getattr(constants, each) for each in ("lipschitz", "smoothness")}
    first = [dataclasses.replace(constants, **wrong)] if OPTIMIZERS[name].constants else []
    first = [Banded(16, 4)] if name == "correlated_dpsgd" else first
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = optim.run(objective, getattr(calibrate, name)(*first, **asked), seed=1)
    return result, [str(each.message) for each in told if each.category is VacuousSchedule]


@pytest.mark.parametrize("name", NAMES)
def test_ten_records_are_said_to_be_too_few_before_anything_is_spent(name):
    result, told = run(name, 10)
    assert np.isfinite(result.w).all()
    assert result.epsilon(1e-5) <= 1.0
    (sentence,) = (each for each in told if "hides them" in each)
    assert "expected to end better than its start" in sentence
    assert result.complete


def test_noise_of_the_mean_of_all_gradients_is_that_of_one_release():
    """Full batches, adaptive or not, and correlated noise have one release's; samples have more."""
    asked = target(1_000, epsilon=1.0)
    (alone,) = calibrate.noisy_gd(CONSTANTS, dimension=16, steps=1, **asked).queries
    release = 4 * alone.noise_multiplier / 1_000
    for steps in (1, 50):
        full = calibrate.noisy_gd(CONSTANTS, dimension=16, steps=steps, **asked)
        assert full.noise_norm(16) == pytest.approx(release, rel=1e-6)
    adaptive = calibrate.adaptive_gd(CONSTANTS, dimension=16, **asked)
    assert adaptive.noise_norm(16) == pytest.approx(release, rel=0.2)
    # Gaussian noise of which a mean cannot have less: the matrix's sum of all rows has norm 1.
    banded = calibrate.correlated_dpsgd(Banded(16, 4), sampler="full", batch_size=1_000, **asked)
    assert release < banded.noise_norm(16) < 1.3 * release
    sampled = calibrate.dpsgd(batch_size=50, steps=100, **asked)
    assert release < sampled.noise_norm(16) < 2 * release
    assert sampled.noise_norm(64) == pytest.approx(2 * sampled.noise_norm(16))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SIZES])
def test_constants_ten_times_wrong_cost_accuracy_alone(name, scale):
    if OPTIMIZERS[name].blocks and scale < 1:
        with pytest.raises(ValueError, match="strong_concavity must be in"):
            run(name, 1_000, scale=scale)
        return
    result, _ = run(name, 1_000, scale=scale)
    assert np.isfinite(result.w).all()
    assert result.epsilon(1e-5) <= 1.0


TOO_FEW = {"epsilon": 1.0, "delta": 1e-6}
BOUNDED = {"bounds": (-3, 3), "target_bounds": (0, 1), **TOO_FEW}
MODELS = {
    "logistic": lambda: estimators.LogisticRegression(classes=[0, 1], **TOO_FEW),
    "last": lambda: estimators.LogisticRegression(
        classes=[0, 1], release="last", l2=0.1, **TOO_FEW
    ),
    "gradient": lambda: estimators.LinearRegression(solver="gradient", **BOUNDED),
    "auto": lambda: estimators.Ridge(**BOUNDED),
}


@pytest.mark.parametrize(("n", "d"), [(10, 3), (50, 400)])
@pytest.mark.parametrize("name", MODELS)
def test_estimators_say_that_noise_hides_few_records_or_fewer_than_columns(name, n, d):
    X, y = np.random.default_rng(0).standard_normal((n, d)), np.arange(n) % 2
    with pytest.warns(VacuousSchedule, match="hides them, and the run is not expected"):
        model = MODELS[name]().fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.epsilon_spent_ <= 1.0


def test_ten_labels_that_are_too_few_to_be_released_are_said_to_be():
    X, y = np.random.default_rng(0).standard_normal((10, 3)), np.arange(10) % 2
    with pytest.raises(ValueError, match="noisy counts told of 0: labels that fewer than about"):
        estimators.LogisticRegression(**TOO_FEW).fit(X, y)


def test_sparse_rows_are_refused_in_a_sentence():
    X, y = scipy.sparse.csr_matrix(np.eye(6)), np.arange(6) % 2
    more = {"MLP": {"width": 2}, "KAN": {"width": 2}, "Logistic": {"classes": [0, 1]}}
    for name in ("Logistic", "Squared", "Softmax", "Huber", "MLP", "KAN"):
        with pytest.raises(TypeError, match="must be a dense array, got a sparse one: use its to"):
            getattr(optim, name)(X, y, **more.get(name, {}))
    for model in MODELS.values():
        with pytest.raises(TypeError, match=r"(?i)sparse"):
            model().fit(X, y)
