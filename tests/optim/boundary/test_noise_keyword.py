"""In every optimizer: ``noise="discrete"``, and a ledger on errors."""

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal._ext.sums import grid_step
from dpcal.accountants.matrix import Banded, LambdaCGD
from dpcal.errors import UnsupportedEvent

N, D = 500, 3
X = np.random.default_rng(0).standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
OBJECTIVE = optim.Logistic(X, X[:, 0] > 0, l2=0.1, fit_intercept=False, classes_from_data=True)
CONSTANTS = calibrate.Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=0.7)
TARGET = {"n": N, "epsilon": 4.0, "delta": 1e-3}
OPTIONS = {
    "noisy_gd": {"steps": 5},
    "spiderboost": {"steps": 5, "batch_size": 100},
    "kl_spider": {"l2": 0.1},
    "adaptive_gd": {"steps": 5},
    "proximal_point": {"gamma": 2.0, "kappa": 2.0, "inner_steps": 5},
    "recursive_regularization": {
        "distance": 3.0,
        "neighboring_relation": "replace-one",
        "subsolver": "noisy_gd",
    },
    "tree_spider": {"neighboring_relation": "replace-one"},
}
# Of mixed signs on samples, for which rows of whole numbers have no proof.
UNPROVED = calibrate.Plan(
    optimizer="correlated_dpsgd",
    queries=(
        calibrate.Query(
            name="gradient",
            kind="gradient",
            sampler="poisson",
            sampling_probability=0.1,
            max_norm=1.0,
            noise_multiplier=2.0,
            count=5,
            correlation=calibrate.Correlation(strategy=Banded(5, 2, [1.0, -0.5])),
        ),
    ),
    parameters={"learning_rate": 0.1},
    **TARGET,
)
PLANS = {
    "correlated_dpsgd": calibrate.correlated_dpsgd(
        LambdaCGD(5, 0.5), batch_size=N, sampler="full", **TARGET
    ),
    "dpsgd": calibrate.dpsgd(batch_size=100, steps=10, **TARGET),
    **{
        name: getattr(calibrate, name)(CONSTANTS, dimension=D, **TARGET, **options)
        for name, options in OPTIONS.items()
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_every_optimizer_runs_with_discrete_noise(name):
    plan = PLANS[name]
    result = getattr(optim, name)(OBJECTIVE, plan, seed=1, noise="discrete")
    assert result.complete
    assert result.epsilon(plan.delta) <= plan.epsilon
    floating = getattr(optim, name)(OBJECTIVE, plan, seed=1, noise="gaussian")
    # A tree that ends at once returns its start.
    assert result.early or (result.w != floating.w).any()


def test_what_is_released_is_a_whole_number_of_steps():
    """One step of descent without a regulariser: the iterate is a multiple of the grid's step."""
    objective = optim.Logistic(np.eye(4), [0, 1, 0, 1], fit_intercept=False, classes_from_data=True)
    plan = calibrate.dpsgd(n=4, batch_size=4, steps=1, epsilon=1.0, delta=1e-3)
    (query,) = plan.queries
    w = optim.dpsgd(objective, plan, learning_rate=4.0, noise="discrete", seed=2).w
    step = grid_step(query.max_norm)
    steps = w / step
    assert np.abs(steps - np.rint(steps)).max() < 1e-6
    w = optim.dpsgd(objective, plan, learning_rate=4.0, seed=2, noise="gaussian").w
    assert np.abs(w / step - np.rint(w / step)).max() > 1e-3


def test_wrong_noise():
    plan = PLANS["dpsgd"]
    with pytest.raises(ValueError, match="noise must be one of"):
        optim.dpsgd(OBJECTIVE, plan, noise="laplace")
    with pytest.raises(ValueError, match="store_every goes with a store, got store_every=5"):
        optim.dpsgd(OBJECTIVE, plan, store_every=5)
    with pytest.raises(ValueError, match="seed, store and noise go with an objective"):
        optim.dpsgd(optim.PrivateOracle(OBJECTIVE, plan), plan, noise="discrete")
    with pytest.raises(UnsupportedEvent, match="correlated noise"):
        optim.correlated_dpsgd(OBJECTIVE, UNPROVED, noise="discrete")


def test_a_refused_noise_leaves_no_file(tmp_path):
    path = tmp_path / "run.db"
    with pytest.raises(UnsupportedEvent, match="correlated noise"):
        optim.correlated_dpsgd(OBJECTIVE, UNPROVED, noise="discrete", store=path)
    assert not path.exists()


@pytest.mark.parametrize("name", [name for name in PLANS if name != "tree_spider"])
def test_an_error_carries_the_ledger_of_what_was_released(name):
    plan, seen = PLANS[name], []

    def fails(progress):
        seen.append(progress.step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(optim, name)(OBJECTIVE, plan, callback=fails, callback_every=1)
    ledger = optim.released(caught.value)
    assert seen == [1]
    assert 1 <= sum(entry.count for entry in ledger.entries) <= sum(q.count for q in plan.queries)
    assert optim.released(ValueError()) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dp_rgda", "dp_sgda", "privatediff"])
def test_minimax_runs_have_discrete_noise_too(name):
    problem = optim.minimax.ToySaddle(n=N, seed=7)
    # A composition of few samples of a fixed size is the dearest to calibrate.
    options = {"dp_rgda": {}, "dp_sgda": {"steps": 60}, "privatediff": {"steps": 6}}[name]
    plan = getattr(calibrate, name)(problem.constants, dimensions=(2, 2), **TARGET, **options)
    box = optim.minimax.Box(-1.0, 1.0)
    run = getattr(optim, name)
    discrete = run(problem, plan, dual_set=box, seed=1, noise="discrete")
    assert discrete.epsilon(plan.delta) <= plan.epsilon
    assert (discrete.w != run(problem, plan, dual_set=box, seed=1, noise="gaussian").w).any()
