"""Scores of what is built on private estimators: paid, or refused while a budget is in use."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from joblib import parallel_backend
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as NotPrivate
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    check_cv,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer

import dpcal
from dpcal.accountants import epsilon, events
from dpcal.errors import BudgetExceeded
from dpcal.estimators import (
    KMeans,
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    StandardScaler,
    noisy_accuracy,
    noisy_r2,
    noisy_roc_auc,
)
from dpcal.estimators.parts import model_report
from dpcal.report.saving import NOT_PRIVATE, NOTHING, PRIVATE

X = np.random.default_rng(5).uniform(-1, 1, (600, 3))
Y = (X[:, 0] > 0).astype(int)
ONE = LogisticRegression(classes=[0, 1], steps=5)
SCALER = StandardScaler(bounds=(-1, 1))
BAGS = BaggingClassifier(ONE, 2, bootstrap=False)
FOLDS = KFold(2)
ONCE = {"cv": FOLDS, "error_score": "raise"}

# Before scikit-learn 1.9 the missing tag of a classifier is what they stumble over.
REFUSED = r"reads predictions|should either be a classifier"


def wide():
    """Return a budget for all that a test does."""
    return dpcal.budget(epsilon=90.0, delta=1e-6)


def exact_in_a_thread(fitted, rows, y):
    return (in_a_thread(fitted.predict, rows) == y).mean()


def in_a_thread(read, *given):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read, *given).result()


META = {
    "one against the rest": OneVsRestClassifier(ONE),
    "bags": BAGS,
    "bags in a pipeline": make_pipeline(SCALER, BAGS),
}


@pytest.mark.parametrize("name", META)
def test_exact_scores_of_meta_estimators_are_refused_and_noisy_ones_are_paid(name):
    model = META[name]
    with wide() as shared:
        model.fit(X, Y)
        charged = len(shared.charges)
        with pytest.raises(ValueError, match=r"reads predictions.*noisy_accuracy"):
            model.score(X, Y)
        for scoring in (None, "accuracy", lambda model, *given: model.predict(given[0]).mean()):
            with pytest.raises(ValueError, match="no budget pays for"):
                cross_val_score(model, X, Y, scoring=scoring, **ONCE)
        before = len(shared.charges)
        assert {noisy_accuracy(model, X, Y), noisy_accuracy(model, X, Y)} & {0.0} == set()
        assert len(shared.charges) == before + 2 > charged
        scores = cross_val_score(model, X, Y, cv=FOLDS, scoring=noisy_accuracy)
    assert np.isfinite(scores).all()
    assert 0 < np.mean(model.predict(X) == Y) <= 1  # predictions are not refused
    assert model.score(X, Y) == np.mean(model.predict(X) == Y)  # nor exact ones outside


def test_a_noisy_accuracy_has_the_noise_that_its_price_asks_for():
    """400 scores of a public rule: deviations within 15 percent, false alarm below 10^-4."""

    class Rule:
        _seed = None

        def predict(self, rows):
            return (rows[:, 0] > 0).astype(int)

    rule, told = Rule(), []
    truth = np.mean(rule.predict(X[:, 1:]) == Y)
    for seed in range(400):
        rule._seed = seed
        told.append(noisy_accuracy(rule, X[:, 1:], Y, epsilon=0.7, delta=1e-8))
    with wide() as shared:
        noisy_accuracy(rule, X[:, 1:], Y, epsilon=0.7, delta=1e-8)
    charged = shared.charges[0].event
    assert epsilon(charged, delta=1e-8) == pytest.approx(0.7, rel=1e-6)
    (one,) = charged.events if isinstance(charged, events.ComposedDpEvent) else (charged,)
    deviation = one.noise_multiplier * 0.5 / len(X)
    assert np.std(told) == pytest.approx(deviation, rel=0.15)
    assert abs(np.mean(told) - truth) < norm.isf(1e-5) * deviation / 20


def test_a_noisy_r2_is_near_the_exact_one():
    target = 2 * X[:, 0] + 1
    regressor = LinearRegression(bounds=(-1, 1), target_bounds=(-1, 3), epsilon=5.0)
    model = TransformedTargetRegressor(
        regressor, func=np.abs, inverse_func=np.abs, check_inverse=False
    )
    scoring = partial(noisy_r2, target_bounds=(-1, 3), epsilon=5.0)
    with wide() as shared:
        model.fit(X, np.abs(target))
        with pytest.raises(ValueError, match="no budget pays for"):
            model.score(X, np.abs(target))
        before = len(shared.charges)
        told = scoring(model, X, np.abs(target))
        assert len(shared.charges) == before + 1
        assert len(cross_val_score(model, X, np.abs(target), cv=2, scoring=scoring)) == 2
    assert told == pytest.approx(model.score(X, np.abs(target)), abs=0.1)


class Centred:
    """A step that is no estimator of scikit-learn, and learns."""

    def fit(self, rows, y=None):
        self.mean = rows.mean(axis=0)
        return self

    def transform(self, rows):
        return rows - self.mean


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (make_pipeline(Centred(), ONE), "'centred'"),
        (make_pipeline(SCALER, NotPrivate()), "'logisticregression'"),
        (CalibratedClassifierCV(ONE), "StratifiedKFold"),
        (CalibratedClassifierCV(ONE, cv=FOLDS), REFUSED),
        (TunedThresholdClassifierCV(ONE, cv=FOLDS), REFUSED),
        (BaggingClassifier(ONE, 2), "bootstrap must be False"),
        (OneVsOneClassifier(ONE), "chooses the records of a fit by their labels"),
        (MinMaxScaler(), r"got 'model' \(MinMaxScaler\)"),  # as in a wrapper of one's own
    ],
)
def test_fits_that_a_budget_does_not_pay_for_whole_are_refused(model, told):
    with wide(), pytest.raises(ValueError, match=told):
        model.fit(X, Y)


def centred(rows):
    return rows - rows.mean(axis=0)


MIXERS = {
    "a pipeline": make_pipeline(FunctionTransformer(centred), ONE),
    "a pipeline after a private step": make_pipeline(SCALER, FunctionTransformer(centred), ONE),
    "columns": make_pipeline(
        ColumnTransformer(
            [("some", FunctionTransformer(centred), [0, 1])], remainder="passthrough"
        ),
        ONE,
    ),
    "a union": make_pipeline(FeatureUnion([("some", FunctionTransformer(centred))]), ONE),
    "a sorted table": make_pipeline(FunctionTransformer(lambda rows: np.sort(rows, axis=0)), ONE),
    "bags": BaggingClassifier(make_pipeline(FunctionTransformer(centred), ONE), 2, bootstrap=False),
    "a target": TransformedTargetRegressor(
        LinearRegression(bounds=(-1, 1), target_bounds=(-1, 3)),
        func=centred,
        inverse_func=centred,
        check_inverse=False,
    ),
    "a search": PrivateSearch(
        make_pipeline(FunctionTransformer(centred), ONE), {"logisticregression__l2": [0.1]}
    ),
}


@pytest.mark.parametrize("name", MIXERS)
def test_a_step_that_learns_nothing_and_mixes_rows_is_refused(name):
    with wide() as shared, pytest.raises(ValueError, match="must treat each row by itself, got"):
        MIXERS[name].fit(X, Y)
    # A private step before it may be fitted first, and is paid then.
    assert not shared.spent or name == "a pipeline after a private step"


def test_what_treats_rows_by_themselves_passes_in_every_form_of_a_table():
    polars = pytest.importorskip("polars")
    names = ["a", "b", "c"]

    def logged(table):
        return np.log1p(np.abs(np.asarray(table, dtype=float)))

    steps = FunctionTransformer(logged), Normalizer(), FunctionTransformer(csr_array)
    dense = FunctionTransformer(lambda table: table.toarray())
    holes = X.copy()
    holes[::3, 1] = np.nan
    with wide() as shared:
        for table in X, X.astype(np.float32), X.tolist():
            make_pipeline(*steps, dense, ONE).fit(table, Y)
        make_pipeline(FunctionTransformer(logged), ONE).fit(polars.DataFrame(X, schema=names), Y)
        make_pipeline(FunctionTransformer(logged), ONE).fit(holes, Y)
        make_pipeline(FunctionTransformer(logged), ONE).fit(X.astype(object), Y)
        assert len(shared.charges) == 6


def test_a_report_says_of_a_step_that_mixes_rows_that_it_is_not_private():
    fair, unfair = FunctionTransformer(np.abs), FunctionTransformer(centred)
    steps = model_report(make_pipeline(fair, unfair, ONE).fit(X, Y)).steps
    assert [step["is"] for step in steps] == [NOTHING, NOT_PRIVATE, PRIVATE]


def test_exact_scores_do_not_leave_from_other_threads():
    """A scorer, and an ensemble's score, hand predictions to threads of their own."""
    bags, one = clone(BAGS), clone(ONE)
    refused = partial(pytest.raises, ValueError, match="no budget pays for")
    with wide(), parallel_backend("threading"):
        for model in one, bags:
            with refused():
                cross_val_score(model, X, Y, scoring=exact_in_a_thread, **ONCE)
        one.fit(X, Y)
        bags.fit(X, Y).set_params(n_jobs=2)
        for read in partial(bags.score, y=Y), bags.predict, partial(in_a_thread, one.predict):
            with refused():
                read(X)
        # Noisy scores may be made in threads, and predictions once the budget is out of use.
        assert 0 < noisy_accuracy(bags, X, Y) <= 1
        scoring = lambda *given: in_a_thread(noisy_accuracy, *given)  # noqa: E731
        assert np.isfinite(cross_val_score(one, X, Y, cv=FOLDS, scoring=scoring)).all()
    assert in_a_thread(one.predict, X).shape == Y.shape


@pytest.mark.parametrize(
    ("model", "folds", "told"),
    [
        (BAGS, 2, "cv must not depend on labels"),
        (BAGS, StratifiedKFold(2), "cv must not depend on labels"),
        (NotPrivate(), FOLDS, r"got 'model' \(LogisticRegression\)"),
    ],
)
def test_a_cross_validation_that_no_budget_pays_for_is_refused(model, folds, told):
    with wide() as shared, pytest.raises(ValueError, match=told):
        cross_val_score(model, X, Y, cv=folds, scoring=noisy_accuracy, error_score="raise")
    assert shared.spent == 0
    if model is BAGS:
        with wide(), pytest.raises(ValueError, match=told):
            GridSearchCV(ONE, {"l2": [0.1]}, cv=StratifiedKFold(2), error_score="raise").fit(X, Y)


def test_scores_of_public_models_are_paid():
    public = NotPrivate().fit(X[:50], Y[:50])
    with wide() as shared:
        with pytest.raises(ValueError, match="Put what learned elsewhere into a FrozenEstimator"):
            noisy_accuracy(public, X[50:], Y[50:])
        assert shared.spent == 0
        noisy_accuracy(FrozenEstimator(public), X[50:], Y[50:])
        assert shared.spent > 0


@pytest.mark.slow
def test_a_grid_search_and_a_private_search_take_noisy_scores():
    with wide() as shared:
        grid = GridSearchCV(
            OneVsRestClassifier(ONE),
            {"estimator__l2": [0.0, 0.1]},
            cv=FOLDS,
            scoring=noisy_accuracy,
        ).fit(X, Y)
        assert len(shared.charges) == 2 * 2 * 2 + 1
        grid.score(X, Y)
        assert len(shared.charges) == 2 * 2 * 2 + 2
    scoring = partial(noisy_accuracy, epsilon=0.3)
    search = PrivateSearch(ONE, {"l2": [0.0, 0.1]}, scoring=scoring, epsilon=1.5).fit(X, Y)
    assert search.epsilon_spent_ == pytest.approx(1.5, rel=1e-3)
    with pytest.raises(ValueError, match="scoring must pay for what it tells"):
        PrivateSearch(ONE, {"l2": [0.1]}, scoring=lambda model, some, y: 1.0).fit(X, Y)
    with pytest.raises(dpcal.errors.TargetUnreachable):
        PrivateSearch(ONE, {"l2": [0.1]}, scoring=scoring, epsilon=0.2).fit(X, Y)


def test_a_model_that_was_sent_to_another_process_has_no_free_score(monkeypatch):
    with wide():
        sent = pickle.dumps(ONE.fit(X, Y))
    there = pickle.loads(sent)
    monkeypatch.setattr("os.getpid", lambda: -1)
    for score in (there.score, partial(noisy_accuracy, there), lambda rows, y: there.predict(rows)):
        with pytest.raises(BudgetExceeded, match="sent here from a process"):
            score(X, Y)


def test_a_budget_is_refused_where_nobody_sees_what_is_fitted():
    told = pytest.raises(ValueError, match="skip_parameter_validation of scikit-learn")
    with wide(), config_context(skip_parameter_validation=True), told:
        ONE.fit(X, Y)


def test_exact_scores_of_clusters_are_refused():
    def largest(model, rows):
        return float(np.bincount(model.predict(rows)).max())

    model = KMeans(2, bounds=(-1, 1))
    assert len(cross_val_score(model, X, cv=2, scoring=largest)) == 2
    with wide(), pytest.raises(ValueError, match="no budget pays for"):
        cross_val_score(model, X, cv=2, scoring=largest, error_score="raise")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_whether_a_score_fails_does_not_depend_on_a_record(value):
    model, rows = OneVsRestClassifier(ONE).fit(X, Y), X.copy()
    rows[7] = value
    with np.errstate(over="raise", invalid="raise"):
        assert 0 <= noisy_accuracy(model, rows, Y) <= 1


@pytest.mark.parametrize("named", [False, True])
def test_a_record_that_has_no_prediction_is_blank(named):
    """A text among numbers, in one column or one array, fails a step or a model for all records."""
    polars = pytest.importorskip("polars")
    texts = ["secret" if i < 300 else repr(float(x)) for i, x in enumerate(X[:, 0])]
    if named:
        table = polars.DataFrame({f"x{j}": X[:, j] for j in range(3)})
        odd = table.with_columns(polars.Series("x0", texts))
        all_odd = table.with_columns(polars.lit("secret").alias("x0"))
        model = clone(ONE).fit(table, Y)
    else:
        table = X
        odd = np.column_stack([np.array(texts, dtype=object), X[:, 1:]])
        plus = FunctionTransformer(lambda rows: np.asarray(rows, dtype=float) + 1)
        model = make_pipeline(plus, clone(ONE)).fit(table, Y)
    score = noisy_accuracy(model, odd, Y, epsilon=50.0)
    right = model.predict(table) == Y
    assert score == pytest.approx(right[300:].mean() / 2 + 0.25, abs=0.02)
    assert abs(score - right.mean()) > 0.05
    if named:
        with pytest.raises(ValueError, match="convert"):
            noisy_accuracy(model, all_odd, Y)


@pytest.mark.parametrize("likely", [False, True])
def test_a_noisy_area_is_near_the_exact_one_at_the_price_asked_for(likely):
    model = LogisticRegression(bounds=(-1, 1), epsilon=5.0, classes=[0, 1]).fit(X, Y)
    shown = model if not likely else OnlyLikely(model)
    truth = roc_auc_score(Y, model.decision_function(X))
    told = [noisy_roc_auc(shown, X, Y, epsilon=20.0) for _ in range(5)]
    assert told == pytest.approx([truth] * 5, abs=0.05)
    assert len(set(told)) > 1
    with wide() as shared:
        noisy_roc_auc(shown, X, Y, epsilon=0.3)
        assert shared.spent == pytest.approx(0.3, rel=1e-6)
        with pytest.raises(BudgetExceeded):
            noisy_roc_auc(shown, X, Y, epsilon=1e9)


class OnlyLikely:
    """A model without ``decision_function``."""

    def __init__(self, model):
        self.model, self.classes_ = model, model.classes_

    def predict_proba(self, X):
        return self.model.predict_proba(X)


def test_the_area_of_a_rare_class_ranks_models_and_other_classes_are_refused():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1e6, (6_000, 2))
    rare = (rows[:, 0] + 3e5 * rng.standard_normal(len(rows)) > 1.2e6).astype(int)
    good, bad = (
        LogisticRegression(bounds=(0, 1e6), epsilon=20.0, classes=[0, 1], **change).fit(rows, rare)
        for change in ({}, {"steps": 1, "learning_rate": 1e-9})
    )
    exact = roc_auc_score(rare, good.decision_function(rows))
    assert noisy_roc_auc(good, rows, rare, epsilon=20.0) == pytest.approx(exact, abs=0.02)
    assert noisy_accuracy(bad, rows, rare) > 0.8  # which tells nothing
    assert noisy_roc_auc(good, rows[:40], rare[:40]) == 0.5  # noise hides both classes
    three = LogisticRegression(bounds=(0, 1e6), classes=[0, 1, 2]).fit(rows, rare)
    with pytest.raises(ValueError, match=r"two classes, got \[0, 1, 2\]"):
        noisy_roc_auc(three, rows, rare)


def test_folds_that_a_budget_pays_for_do_not_depend_on_labels():
    """Of stratified folds one other label moves other records too."""
    rows, y = X[:30], np.arange(30) % 2
    other = np.where(np.arange(30) == 4, 1, y)
    model = LogisticRegression(epsilon=0.1, classes=[0, 1], steps=2)

    def folds(labels):
        found = cross_validate(model, rows, labels, cv=3, return_indices=True)["indices"]["test"]
        return [each.tolist() for each in found]

    assert folds(y) != folds(other)
    with wide():
        assert folds(y) == folds(other)
    for each in (model, make_pipeline(SCALER, model), PrivateSearch(model, {"steps": [1, 2]})):
        assert isinstance(check_cv(3, y, classifier=is_classifier(each)), StratifiedKFold)
        with wide():
            assert isinstance(check_cv(3, y, classifier=is_classifier(each)), KFold)
