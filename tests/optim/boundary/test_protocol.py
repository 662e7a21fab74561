"""Oracles in place of objectives: whatever answers a plan's queries runs every optimizer."""

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.optim import Ledger, Logistic, PrivateOracle

RNG = np.random.default_rng(0)
N, D = 2_000, 3
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X[:, 0] > 0
OBJECTIVE = Logistic(X, Y, l2=0.1, fit_intercept=False, classes_from_data=True)
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=0.7)
OPTIONS = {
    "noisy_gd": {"steps": 20},
    "spiderboost": {"steps": 20},
    "kl_spider": {"l2": 0.1},
    "adaptive_gd": {"steps": 20},
    "proximal_point": {"gamma": 2.0, "kappa": 2.0, "inner_steps": 10},
    "recursive_regularization": {"distance": 3.0, "neighboring_relation": "replace-one"},
    "tree_spider": {"neighboring_relation": "replace-one"},
}


def plan_of(name):
    target = {"n": N, "epsilon": 4.0, "delta": 1e-5}
    if name == "dpsgd":
        return calibrate.dpsgd(batch_size=100, steps=20, **target)
    if name == "recursive_regularization":
        target["subsolver"] = "noisy_gd"
    return getattr(calibrate, name)(CONSTANTS, dimension=D, **target, **OPTIONS[name])


class Elsewhere:
    """An oracle that is no PrivateOracle: it passes questions on, as if to another machine."""

    def __init__(self, inner):
        self._inner, self.asked = inner, 0
        self.dimension, self.plan = inner.dimension, inner.plan
        self.ledger, self.public, self.l2 = inner.ledger, inner.public, inner.l2
        self.linear_loss = inner.linear_loss

    def __getattr__(self, name):
        if name not in ("gradient", "difference", "norm", "scalar", "remaining", "affords"):
            raise AttributeError(name)
        self.asked += 1
        return getattr(self._inner, name)


@pytest.mark.parametrize("name", ["dpsgd", *OPTIONS])
def test_every_optimizer_runs_on_an_oracle_as_on_its_objective(name):
    plan, optimizer = plan_of(name), getattr(optim, name)
    direct = optimizer(OBJECTIVE, plan, seed=3)
    oracle = PrivateOracle(OBJECTIVE, plan, seed=3)
    given = optimizer(oracle, plan)
    assert given.w.tobytes() == direct.w.tobytes()
    assert given.ledger == oracle.ledger
    far = Elsewhere(PrivateOracle(OBJECTIVE, plan, seed=3))
    result = optimizer(far, plan)
    assert far.asked
    np.testing.assert_allclose(result.w, direct.w, rtol=1e-9, atol=1e-12)
    result.verify()


def test_what_is_no_oracle_and_what_does_not_go_with_one_is_refused():
    plan = plan_of("noisy_gd")
    oracle = PrivateOracle(OBJECTIVE, plan)
    with pytest.raises(TypeError, match="objective must be an Objective or an Oracle"):
        optim.noisy_gd(X, plan)
    with pytest.raises(ValueError, match=r"plan must be the oracle's own, oracle\.plan"):
        optim.noisy_gd(
            oracle,
            calibrate.noisy_gd(CONSTANTS, n=N, dimension=D, epsilon=1.0, delta=1e-5, steps=5),
        )
    with pytest.raises(ValueError, match="seed, store and noise go with an objective"):
        optim.noisy_gd(oracle, plan, seed=1)
    assert oracle.ledger.entries == ()


def test_two_runs_on_one_oracle_share_its_plan():
    plan = plan_of("noisy_gd")
    oracle = PrivateOracle(OBJECTIVE, plan)
    optim.noisy_gd(oracle, plan, callback=lambda p: p.step >= 10, callback_every=10)
    assert oracle.remaining("gradient") == 10
    assert oracle.ledger == Ledger.from_json(oracle.ledger.to_json())
