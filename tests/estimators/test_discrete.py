"""Estimators with discrete noise: the same releases but for noise, and no other generator."""

import numpy as np
import pytest

import dpcal
from dpcal.estimators import LogisticRegression, noisy_accuracy
from dpcal.estimators.checks import ESTIMATORS
from dpcal.optim.boundary.seeds import Streams

MADE = [pytest.param(make, id=type(make()).__name__) for make, _ in ESTIMATORS]


def fitted(make, noise, X, y, epsilon):
    model = make().set_params(epsilon=epsilon, delta=1e-6, noise=noise)
    if getattr(model, "bounds", None) is not None:
        model.set_params(bounds=(-1.0, 1.0))
    if "classes" in model.get_params():
        model.set_params(classes=[0, 1])
    return model.fit(X, y)


@pytest.mark.parametrize("make", MADE)
def test_discrete_noise_costs_and_tells_the_same_as_gaussian(make, monkeypatch):
    """With next to no noise both kinds release the same numbers; plan and price are equal."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    # Classes that overlap: those that do not have an optimum at infinity, where noise has no scale.
    y = (X[:, 0] + rng.uniform(-1, 1, 400) > 0).astype(int)
    gaussian = fitted(make, "gaussian", X, y, epsilon=1e5)

    def refuse(self, role):
        assert self.keyed, f"{role} comes from a generator that is not cryptographic"
        return stream(self, role)

    stream = Streams._stream
    monkeypatch.setattr(Streams, "_stream", refuse)
    discrete = fitted(make, "discrete", X, y, epsilon=1e5)
    plans = [each.report_["plan"] for each in (discrete, gaussian)]
    # A clip may follow from a scale that was released before.
    clips = [[query.pop("max_norm") for query in plan["queries"]] for plan in plans]
    assert clips[0] == pytest.approx(clips[1], rel=1e-3)
    assert plans[0] == plans[1]
    assert discrete.epsilon_spent_ == gaussian.epsilon_spent_
    assert discrete.report_["privacy"]["noise"] == "discrete"
    told = " ".join(
        [gaussian.report_["privacy"]["mechanism"], *gaussian.report_["privacy"]["not_covered"]]
    )
    assert "floating-point" in told
    for name in (
        "coef_",
        "mean_",
        "scale_",
        "quantiles_",
        "components_",
        "cluster_centers_",
        "statistics_",
    ):
        if name in vars(discrete):
            np.testing.assert_allclose(vars(discrete)[name], vars(gaussian)[name], atol=0.02)


def test_a_score_has_the_noise_of_its_estimator(monkeypatch):
    plain = []
    stream = Streams._stream
    monkeypatch.setattr(Streams, "_stream", lambda *a: plain.append(not a[0].keyed) or stream(*a))
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    y = (X[:, 0] > 0).astype(int)
    counts = []
    for noise in ("discrete", "gaussian"):
        model = LogisticRegression(classes=[0, 1], steps=2, noise=noise).fit(X, y)
        plain.clear()
        with dpcal.budget(epsilon=9.0, delta=1e-6):
            model.score(X, y)
            noisy_accuracy(model, X, y, noise=noise)
        counts.append(sum(plain))
    assert counts[0] == 0 < counts[1]
