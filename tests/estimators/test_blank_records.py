"""Whether a fit fails does not depend on one record: odd ones are blank, and nobody is told."""

import numpy as np
import pytest

import dpcal
from dpcal import optim
from dpcal.estimators import (
    PCA,
    KMeans,
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    QuantileTransformer,
    Ridge,
    StandardScaler,
)
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.oracle import Admitted
from tests._bad_records import CELLS, EXTREMES, LABELS, strict, with_cell, with_labels

pytest.importorskip("sklearn")

N, D, ROW = 400, 3, 7
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((N, D)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
T = np.clip(2 * X[:, 0], -4, 4)
WIDE = {"bounds": (-4, 4), "epsilon": 4.0}
TARGETS = {**WIDE, "target_bounds": (-9, 9)}

UNSUPERVISED = {
    "scaler": lambda: StandardScaler(**WIDE),
    "scaler, narrow": lambda: StandardScaler(bounds=(-0.1, 0.1)),
    "scaler, learned": lambda: StandardScaler(bounds="learn", epsilon=40.0),
    "quantiles": lambda: QuantileTransformer(n_quantiles=3, **WIDE),
    "quantiles, discrete": lambda: QuantileTransformer(n_quantiles=3, noise="discrete", **WIDE),
    "pca": lambda: PCA(**WIDE),
    "kmeans": lambda: KMeans(3, **WIDE),
    "kmeans, discrete": lambda: KMeans(3, noise="discrete", **WIDE),
}
REGRESSORS = {
    "line": lambda: LinearRegression(solver="statistics", **TARGETS),
    "line, gradient": lambda: LinearRegression(solver="gradient", **TARGETS),
    "line, learned": lambda: LinearRegression(bounds="learn", target_bounds="learn", epsilon=40.0),
    "ridge": lambda: Ridge(solver="statistics", **TARGETS),
}
CLASSIFIERS = {
    "declared": lambda: LogisticRegression(classes=[0, 1], steps=5),
    "three": lambda: LogisticRegression(classes=[0, 1, 77], steps=5),
    "learned": lambda: LogisticRegression(epsilon=8.0, steps=5),
    "bounded": lambda: LogisticRegression(classes=[0, 1], steps=5, **WIDE),
    "bounds learned": lambda: LogisticRegression(
        classes=[0, 1], steps=5, bounds="learn", epsilon=40.0
    ),
    "discrete": lambda: LogisticRegression(classes=[0, 1], steps=5, noise="discrete"),
    "search": lambda: PrivateSearch(LogisticRegression(classes=[0, 1]), {"steps": [5, 10]}),
}
ALL = {**UNSUPERVISED, **REGRESSORS, **CLASSIFIERS}


def _y(name):
    return T if name in REGRESSORS else Y


def _fitted(make, X, y):
    """Return all numbers of a fitted estimator by name, with warnings and errors not hidden."""
    model = make()
    model._seed = 5
    with optim.replaying(), strict():
        model.fit(X, y)
    return _told(model)


def _told(model):
    kept = vars(model) if not hasattr(model, "best_estimator_") else vars(model.best_estimator_)
    told = {}
    for name, value in kept.items():
        if isinstance(value, np.ndarray | float | int | str) or name == "bounds_":
            told[name] = np.asarray(value)
    assert any(name.endswith("_") for name in told)
    return told


def _equal(first, second, *, seeded=True):
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value.dtype == second[name].dtype, name
        assert value.shape == second[name].shape, name
        if seeded:
            np.testing.assert_array_equal(value, second[name], err_msg=name)


@pytest.mark.parametrize("name", ALL)
def test_a_record_with_a_cell_that_is_no_number_is_blank(name):
    make, y = ALL[name], _y(name)
    blank = _fitted(make, with_cell(X, ROW, np.nan), y)
    # A blank record is not the record that was there.
    assert any((value != other).any() for value, other in _both(blank, _fitted(make, X, y)))
    for cell in CELLS:
        _equal(blank, _fitted(make, with_cell(X, ROW, cell), y), seeded=name != "search")
    listed = with_cell(X, ROW, None).tolist()
    _equal(blank, _fitted(make, listed, y), seeded=name != "search")


@pytest.mark.parametrize("name", [each for each in ALL if each != "search"])
def test_a_blank_record_contributes_nothing_to_any_answer(name, monkeypatch):
    asked, choices = [], []
    open_oracle, open_choices = Admitted._open, PrivateChoices.__init__

    def opened(self, objective, *given, **options):
        asked.append(objective)
        open_oracle(self, objective, *given, **options)

    def chosen(self, *given, **options):
        choices.append(self)
        asked.clear()  # bounds are learned after a trial about zeros, which no record enters
        open_choices(self, *given, **options)

    monkeypatch.setattr(Admitted, "_open", opened)
    monkeypatch.setattr(PrivateChoices, "__init__", chosen)
    _fitted(ALL[name], with_cell(X, ROW, np.nan), _y(name))
    assert asked or choices
    for objective in asked:
        w = np.random.default_rng(0).uniform(-1, 1, objective.dimension)
        assert objective.clipped_sum(w, np.array([ROW + 1]), 1.0).any()
        assert not objective.clipped_sum(w, np.array([ROW]), 1.0).any()
    for each in choices:
        record = each._records[ROW]
        assert not (each._known[ROW] and np.isfinite(np.asarray(record, dtype=float)).all())


def _both(first, second):
    assert first.keys() == second.keys()
    assert [each.shape for each in first.values()] == [each.shape for each in second.values()]
    return zip(first.values(), second.values(), strict=True)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_record_with_a_label_of_no_class_is_blank(name):
    make = CLASSIFIERS[name]
    blank = _fitted(make, with_cell(X, ROW, np.nan), Y)
    for label in LABELS:
        array, listed = with_labels(Y, ROW, label)
        _equal(blank, _fitted(make, X, listed), seeded=name != "search")
        if name != "learned" or array.dtype == object:  # the type of an array is public
            _equal(blank, _fitted(make, X, array), seeded=name != "search")


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_record_with_a_target_that_is_no_number_is_blank(name):
    make = REGRESSORS[name]
    blank = _fitted(make, with_cell(X, ROW, np.nan), T)
    for cell in CELLS:
        _equal(blank, _fitted(make, X, with_cell(T, ROW, cell)))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", EXTREMES)
def test_extreme_numbers_raise_no_warning(name, value):
    make, y = ALL[name], _y(name)
    huge = X.copy()
    huge[ROW] = value
    usual = _fitted(make, X, y)
    for _, told in _both(usual, _fitted(make, huge, y)):
        assert np.isfinite(told).all() if told.dtype.kind == "f" else True
    if name in REGRESSORS:
        _both(usual, _fitted(make, X, with_cell(T, ROW, value)))


def test_values_beyond_declared_bounds_are_at_the_nearer_bound():
    at, beyond = X.copy(), X.copy()
    at[ROW], beyond[ROW] = 4.0, 1.7e308
    for name in ("scaler", "pca", "kmeans", "line", "bounded"):
        _equal(_fitted(ALL[name], at, _y(name)), _fitted(ALL[name], beyond, _y(name)))


@pytest.mark.parametrize("name", [each for each in ALL if each != "search"])
def test_partial_fits_and_scores_do_not_fail_for_one_record(name):
    y = _y(name)
    for cell in (np.nan, None, 1.7e308):
        bad = with_cell(X, ROW, cell)
        with optim.replaying(), strict(), dpcal.budget(epsilon=900.0, delta=1e-4) as shared:
            model = ALL[name]().fit(X, y)
            spent = shared.spent
            if hasattr(model, "score"):
                assert np.isfinite(model.score(bad, y))
                assert shared.spent > spent
            if name in CLASSIFIERS:
                assert 0 <= model.score(X, with_labels(Y, ROW, cell)[0]) <= 1
            if hasattr(model, "partial_fit") and "learned" not in name and "gradient" not in name:
                model.partial_fit(bad, y)


def test_a_pipeline_hands_blank_records_on():
    from sklearn.pipeline import make_pipeline

    for cell in (np.nan, np.inf, None, "secret", 1.7e308):
        bad = with_cell(X, ROW, cell)
        for first in ("scaler", "quantiles", "pca", "kmeans"):
            with strict():
                model = make_pipeline(ALL[first](), ALL["declared"]()).fit(bad, Y)
            assert model[-1].coef_.shape[0] == 1


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_tables_with_names_are_read_cell_by_cell(package):
    frames = pytest.importorskip(package)
    for cell in (np.nan, np.inf):
        table = with_cell(X, ROW, cell)
        frame = frames.DataFrame({name: table[:, j].tolist() for j, name in enumerate("abc")})
        with strict(), dpcal.budget(epsilon=9.0, delta=1e-4):
            model = ALL["declared"]().fit(frame, Y)
            assert model.score(frame, Y) > 0.5
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_the_type_of_learned_classes_does_not_tell_that_a_label_is_missing():
    """A series of whole numbers is an array of floats as soon as one of them is missing."""
    polars = pytest.importorskip("polars")
    told = []
    for first in (int(Y[0]), None):
        labels = polars.Series([first, *Y[1:].tolist()])
        model = LogisticRegression(epsilon=20.0, steps=5).fit(X, labels)
        told.append((model.classes_.dtype, model.classes_.tolist(), model.predict(X[:1]).dtype))
    assert told[0] == told[1]
