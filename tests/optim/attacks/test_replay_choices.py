"""Choices among candidates, and estimators that make them, are recorded and replayed too."""

from unittest import mock

import numpy as np
import pytest

from dpcal.calibrate import Plan, Query
from dpcal.estimators import KMeans, LogisticRegression, QuantileTransformer
from dpcal.optim import attacks
from dpcal.optim.boundary import choices as choices_module
from dpcal.optim.boundary.admission import Admission
from dpcal.optim.boundary.choices import PrivateChoices

RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((200, 3)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
FAR = X.copy()
FAR[7] = [3, -3, 3]
RELABELLED = np.where(np.arange(200) == 7, 2, Y)
SHARED = {"sampler": "full", "noise_multiplier": 2.0, "count": 1}
LABELS = Query(name="labels", kind="labels", max_norm=1.0, threshold=12.0, **SHARED)
MEDIANS = Query(name="medians", kind="selection", max_norm=0.5, **SHARED)


def opened(records, query, **options):
    plan = Plan(optimizer="choices", n=200, queries=(query,), epsilon=9.0, delta=1e-6)
    return PrivateChoices(records, plan, **options)


@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
def test_choices_are_seen_and_move_by_what_their_query_allows(noise):
    labels = attacks.replay(
        lambda y: opened(y, LABELS, noise=noise).labels("labels"), Y, RELABELLED, price=False
    )
    assert labels.holds, str(labels)
    # One count less and another more, of two that a bound of 1 allows.
    assert labels.largest == pytest.approx(np.sqrt(2) / 2)
    cuts = [-4.0, 0.0, 4.0]
    medians = attacks.replay(
        lambda rows: opened(rows, MEDIANS, noise=noise).medians(0, cuts, "medians"),
        X,
        FAR,
        price=False,
    )
    assert medians.holds, str(medians)
    assert medians.moved == 1
    assert 0.4 < medians.largest <= 1


def test_mistakes_of_choices_are_found_by_name():
    def by_the_range(rows):
        cuts = [rows[:, 0].min(), rows[:, 0].max()]
        return opened(rows, MEDIANS).medians(0, cuts, "medians")

    def all_labels(y):
        opened(y, LABELS).labels("labels")
        return np.unique(y)

    def unwritten(y):
        with mock.patch.object(Admission, "spend"):
            return opened(y, LABELS).labels("labels")

    def tripled(labels):
        found, counts = np.unique(labels, return_counts=True)
        return found, counts * 3

    def counted_thrice(y):
        with mock.patch.object(choices_module, "counted", tripled):
            return opened(y, LABELS).labels("labels")

    longer = X.copy()
    longer[int(X[:, 0].argmax()), 0] = 50.0
    assert attacks.replay(by_the_range, X, longer, price=False).violations == {"parameters"}
    for run, violation in (
        (all_labels, "release"),
        (unwritten, "ledger"),
        (counted_thrice, "sensitivity"),
    ):
        found = attacks.replay(run, Y, RELABELLED, price=False)
        assert found.violations == {violation}, str(found)


@pytest.mark.parametrize(
    "fit",
    [
        lambda table: LogisticRegression(epsilon=8.0).fit(*table),
        lambda table: KMeans(3, bounds=(-4, 4)).fit(table[0]),
        lambda table: QuantileTransformer(bounds=(-4, 4)).fit(table[0]),
    ],
)
def test_estimators_are_replayed(fit):
    found = attacks.replay(fit, (X, Y), (FAR, RELABELLED), price=False)
    assert found.holds, str(found)
    assert found.moved > 0


def test_an_exact_attribute_of_a_fitted_estimator_is_found():
    def fit(table):
        model = KMeans(3, bounds=(-4, 4)).fit(table[0])
        model.centre_ = table[0].mean(axis=0)
        return model

    assert attacks.replay(fit, (X, Y), (FAR, Y), price=False).violations == {"release"}
