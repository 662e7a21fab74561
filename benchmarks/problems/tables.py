"""Tables on which optimizers are compared, and how a model of theirs is scored."""

import math

import numpy as np
from numpy.linalg import norm

from dpcal import optim
from dpcal.calibrate import Constants
from dpcal.optim.registry import OPTIMIZERS

L2 = 0.05


class Table:
    """Records with rows scaled to norm 1, which bounds every constant; a fifth is held out."""

    def __init__(self, name, loss, X, y):
        X = X / np.maximum(norm(X, axis=1, keepdims=True), 1e-12)
        order = np.random.default_rng(0).permutation(len(X))
        held_out, training = order[: len(X) // 5], order[len(X) // 5 :]
        self.name, self.held_out = f"{name}, n = {len(training):,}", (X[held_out], y[held_out])
        self.n, self.dimension = X[training].shape
        self.logistic = loss is optim.Logistic
        classes = {"classes_from_data": True} if self.logistic else {}
        self.objective = loss(X[training], y[training], l2=L2, fit_intercept=False, **classes)
        self.constants = Constants(
            lipschitz=1.0 + 1e-12,
            smoothness=0.25 if self.logistic else 1.0,
            strong_convexity=L2,
            gap=math.log(2) if self.logistic else 0.5,
        )
        self.best = self.objective.loss(self.objective.minimize())

    def score(self, w):
        """Return held-out accuracy, or the share of held-out variance that is explained."""
        X, y = self.held_out
        if self.logistic:
            return float((self.objective.predict(X, w) == y).mean())
        return float(1 - ((X @ w - y) ** 2).mean() / y.var())

    def kept(self, w):
        """Return the numbers of a model."""
        error = max(self.objective.loss(w) - self.best, 1e-9)
        return {"error": error, "score": self.score(w)}

    def plan(self, name, epsilon):
        """Return a plan from a user's arguments: sizes, target and public constants."""
        build = OPTIMIZERS[name].build()
        # The one relation that every optimizer can be calibrated for.
        target = {"n": self.n, "epsilon": epsilon, "delta": 1e-5}
        target["neighboring_relation"] = "replace-special"
        if name == "dpsgd":
            return build(
                batch_size=math.ceil(3 * math.sqrt(self.n)), epochs=20, max_norm=1.0, **target
            )
        if name == "correlated_dpsgd":
            from dpcal.accountants.matrix import Banded

            strategy = Banded.optimised(64, 8)
            return build(strategy, batch_size=self.n, sampler="full", max_norm=1.0, **target)
        constants, more = self.constants, {}
        if "l2" in OPTIMIZERS[name].options:
            more["l2"] = L2
        else:
            constants = Constants(**{**vars(constants), "smoothness": constants.smoothness + L2})
        if name == "jl_glm":
            more["embedding_dimension"] = self.dimension  # no table here is worth embedding
        return build(constants, dimension=self.dimension, **more, **target)

    def run(self, name, epsilon, seed):
        """Return the numbers of a run; its epsilon comes from the ledger."""
        plan = self.plan(name, epsilon)
        result = OPTIMIZERS[name].optimizer()(self.objective, plan, seed=seed)
        result.verify()
        spent = optim.Ledger.from_json(result.ledger.to_json()).epsilon(plan.delta)
        assert spent <= plan.epsilon
        return {**self.kept(result.w), "spare": plan.epsilon - spent.upper}


def tables():
    """Return the tables: three of scikit-learn's, and records like California's housing."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

    cancer, digits, diabetes = load_breast_cancer(), load_digits(), load_diabetes()
    low, high = cancer.data.min(axis=0), cancer.data.max(axis=0)
    yield Table(
        "breast cancer", optim.Logistic, 2 * (cancer.data - low) / (high - low) - 1, cancer.target
    )
    yield Table("digits below 5", optim.Logistic, digits.data - 8.0, digits.target < 5)
    # Public bounds of the score: 25 to 346, its middle and half its width rounded.
    y = np.clip((diabetes.target - 185) / 165, -1, 1)
    yield Table("diabetes", optim.Huber, np.c_[diabetes.data / 0.05, np.ones(len(y))], y)
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(20_000, 4)) * [0.45, 0.3, 0.3, 0.7]
    place, age = rng.normal(size=(20_000, 2)), rng.uniform(-1.7, 1.7, 20_000)
    worth = 1.5 * np.exp(logs[:, 0]) - 0.8 * np.exp(logs[:, 2]) - 0.4 * place.sum(axis=1)
    y = np.clip((worth + 0.15 * age + 0.5 * rng.standard_t(4, 20_000) - 0.7) / 2.5, -1, 1)
    X = np.c_[logs / [0.45, 0.3, 0.3, 0.7], age, place, np.ones(20_000)]
    yield Table("housing-like", optim.Huber, X, y)
