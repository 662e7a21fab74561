"""Claims are about a record that is blanked: no more than is priced depends on any one record."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_validate
from sklearn.pipeline import make_pipeline

import dpcal
from dpcal.accountants import epsilon, events
from dpcal.estimators import (
    PCA,
    KMeans,
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    StandardScaler,
)
from dpcal.optim.attacks.promises import broken_promises
from dpcal.optim.attacks.recording import record

FAR = {"bounds": (-2.0, 2.0), "target_bounds": (-1.0, 1.0)}
MAKERS = {
    "scaler": lambda: StandardScaler(bounds=(-2, 2)),
    "pca": lambda: PCA(bounds=(-2, 2), row_norm=1.5),
    "kmeans": lambda: KMeans(3, bounds=(-2, 2)),
    "logistic": lambda: LogisticRegression(classes=[0, 1], steps=3),
    "three classes": lambda: LogisticRegression(classes=[0, 1, 2], steps=3, bounds=(-2, 2)),
    "statistics": lambda: LinearRegression(solver="statistics", **FAR),
    "gradients": lambda: LinearRegression(solver="gradient", **FAR),
}


def hostile(rng, n=40, d=3):
    """Records on, in and far outside of their bounds: no record may move a sum by more."""
    X = rng.uniform(-2, 2, (n, d))
    X[0], X[1], X[2] = 2.0, -2.0, [1e9, -1e9, 1e9]
    return X, (np.arange(n) % 2).astype(int)


@pytest.mark.parametrize("name", MAKERS)
def test_blanking_a_record_moves_no_sum_by_more_than_is_priced(name):
    """Every sum of a fit, without its noise, with and without each of a few records."""
    X, y = hostile(np.random.default_rng(0))
    model = MAKERS[name]().set_params(noise="gaussian")
    tape = record(lambda data: model.fit(*data), (X, y))
    precision = 0.0
    for answer in tape.answers:
        assert answer.kind == "gradient"
        assert answer.size == len(X)
        (at,) = answer.at
        for row in (0, 1, 2, 17):
            rest = answer.rows[answer.rows != row]
            without = answer.objective.clipped_sum(at, rest, answer.bound)
            assert np.linalg.norm(answer.total - without) <= answer.bound * (1 + 1e-9)
        precision += answer.query.noise_multiplier**-2
    assert list(broken_promises(tape, price=False)) == []
    # The Gaussian mechanism of all answers together, by its closed form, and not by the ledger.
    exact = epsilon(events.GaussianDpEvent(precision**-0.5), delta=1e-6)
    assert float(model.epsilon_spent_) >= exact.lower * (1 - 1e-9)
    assert exact.upper <= 1.0 + 1e-9


@pytest.mark.parametrize("name", MAKERS)
def test_ledger_report_and_price_name_one_relation(name):
    X, y = hostile(np.random.default_rng(1))
    model = MAKERS[name]().fit(X, y)
    relations = {
        model.ledger_.neighboring_relation,
        model.epsilon_spent_.neighboring_relation,
        model.report_["plan"]["neighboring_relation"],
        model.report_["ledger"]["neighboring_relation"],
        model.report_["privacy"]["neighboring_relation"],
        model.report_["epsilon"]["neighboring_relation"],
    }
    assert relations == {"replace-special"}
    assert "is told: the claim is about what a record" in str(model.report_["privacy"])


@pytest.mark.slow
def test_folds_that_a_budget_pays_for_do_not_depend_on_labels():
    """Of stratified folds one other label moves other records too."""
    X, y = np.random.default_rng(2).uniform(-1, 1, (30, 2)), np.arange(30) % 2
    other = y.copy()
    other[4] = 1
    model = LogisticRegression(epsilon=0.1, classes=[0, 1], steps=2)
    asked = {"cv": 3, "return_indices": True}

    def folds(labels):
        found = cross_validate(model, X, labels, **asked)["indices"]["test"]
        return [each.tolist() for each in found]

    assert folds(y) != folds(other)
    with dpcal.budget(epsilon=3.0, delta=1e-6):
        assert folds(y) == folds(other)
    for classifier in (
        model,
        make_pipeline(StandardScaler(bounds=(-1, 1)), model),
        PrivateSearch(model, {"steps": [1, 2]}),
    ):
        assert isinstance(check_cv(3, y, classifier=is_classifier(classifier)), StratifiedKFold)
        with dpcal.budget(epsilon=3.0, delta=1e-6):
            found = check_cv(3, y, classifier=is_classifier(classifier))
        assert isinstance(found, KFold)


def test_what_a_fit_will_cost_is_not_found_from_the_labels():
    """Where one class alone is there, the refusal is an answer about the records: it is paid."""
    X = np.random.default_rng(3).uniform(-1, 1, (900, 2))
    with dpcal.budget(epsilon=3.0, delta=1e-6) as shared:
        with pytest.raises(ValueError, match="two classes or more"):
            LogisticRegression(bounds="learn", epsilon=2.0, steps=2).fit(X, ["only"] * 900)
        assert 1.5 < shared.spent <= 2.0
