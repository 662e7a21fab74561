"""Whether a fit fails does not depend on one record: odd ones are blank, and nobody is told."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import dpcal
from dpcal import optim
from dpcal.accountants import epsilon, events
from dpcal.estimators import LogisticRegression
from dpcal.optim.attacks.promises import broken_promises
from dpcal.optim.attacks.recording import record
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.objectives.contributions import gradients
from tests._bad_records import CELLS, EXTREMES, LABELS, strict, with_cell, with_labels
from tests.estimators._models import (
    CLASSIFIERS,
    MODELS,
    REGRESSORS,
    T,
    X,
    Y,
    made,
    seeded,
    takes_more,
    target_of,
)

ROW = 7
PAID = [name for name in MODELS if "search" not in name]
# Neither choices that are drawn, nor a last iterate.
SUMS = [name for name in PAID if not any(word in name for word in ("learned", "quantiles", "last"))]


def _fitted(name, rows, y):
    """Return all numbers of a fitted estimator by name, with warnings and errors not hidden."""
    model = seeded(made(name), 5)
    with optim.replaying(), strict():
        model.fit(rows, y)
    told = {}
    for key, value in vars(getattr(model, "best_estimator_", model)).items():
        if isinstance(value, np.ndarray | float | int | str) or key == "bounds_":
            told[key] = np.asarray(value)
    assert any(key.endswith("_") for key in told)
    return told


def _equal(first, second, *, of, seeded=True):
    assert first.keys() == second.keys(), of
    for key, value in first.items():
        assert (value.dtype, value.shape) == (second[key].dtype, second[key].shape), (key, of)
        if seeded:
            np.testing.assert_array_equal(value, second[key], err_msg=f"{key}: {of}")


def odd_records(name):
    """Yield what is odd about one record, and the table and its labels or targets."""
    y = target_of(name)
    for cell in CELLS:
        yield f"cell {cell!r:.20}", with_cell(X, ROW, cell), y
        if name in REGRESSORS:
            yield f"target {cell!r:.20}", X, with_cell(T, ROW, cell)
    yield "cell None in a list", with_cell(X, ROW, None).tolist(), y
    for label in LABELS if name in CLASSIFIERS else ():
        array, listed = with_labels(Y, ROW, label)
        yield f"listed label {label!r:.20}", X, listed
        if name != "learned" or array.dtype == object:  # the type of an array is public
            yield f"label {label!r:.20}", X, array


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_record_with_an_odd_cell_label_or_target_is_blank(name):
    blank = _fitted(name, with_cell(X, ROW, np.nan), target_of(name))
    usual = _fitted(name, X, target_of(name))
    assert any((blank[key] != usual[key]).any() for key in usual)  # it is not the record itself
    for what, rows, y in odd_records(name):
        _equal(blank, _fitted(name, rows, y), of=what, seeded="search" not in name)


@pytest.mark.parametrize("name", PAID)
def test_a_blank_record_contributes_nothing_to_any_answer(name, monkeypatch):
    asked, choices = [], []
    open_oracle, open_choices = PrivateOracle._open, PrivateChoices.__init__

    def opened(self, objective, *given, **options):
        asked.append(objective)
        open_oracle(self, objective, *given, **options)

    def chosen(self, *given, **options):
        choices.append(self)
        asked.clear()  # bounds are learned after a trial about zeros, which no record enters
        open_choices(self, *given, **options)

    monkeypatch.setattr(PrivateOracle, "_open", opened)
    monkeypatch.setattr(PrivateChoices, "__init__", chosen)
    _fitted(name, with_cell(X, ROW, np.nan), target_of(name))
    assert asked or choices
    for objective in asked:
        w = np.random.default_rng(0).uniform(-1, 1, objective.dimension)
        assert objective.clipped_sum(w, np.array([ROW + 1]), 1.0).any()
        assert not objective.clipped_sum(w, np.array([ROW]), 1.0).any()
    for each in choices:
        cells = np.asarray(each._records[ROW], dtype=float)
        assert not (each._known[ROW] and np.isfinite(cells).all())


@pytest.mark.parametrize("name", SUMS)
def test_blanking_a_record_moves_no_sum_by_more_than_is_priced(name):
    """Every sum of a fit, without its noise, with and without each of a few records."""
    rows = np.random.default_rng(0).uniform(-4, 4, (40, 3))
    rows[0], rows[1], rows[2] = 4.0, -4.0, [1e9, -1e9, 1e9]
    model = made(name, epsilon=1.0)
    tape = record(lambda data: model.fit(*data), (rows, np.arange(40) % 2))
    precision = 0.0
    for answer in tape.answers:
        assert answer.kind == "gradient"
        assert answer.size == len(rows)
        (at,) = answer.at
        for row in (0, 1, 2, 17):
            rest = answer.rows[answer.rows != row]
            whole = gradients(answer.objective, rest, at).whole(answer.bound)
            moved = answer.total - Mechanism.values(whole, answer.bound)
            assert np.linalg.norm(moved) <= answer.bound * (1 + 1e-12)
        precision += answer.query.noise_multiplier**-2
    assert list(broken_promises(tape, price=False)) == []
    # The Gaussian mechanism of all answers together, by its closed form, and not by the ledger.
    exact = epsilon(events.GaussianDpEvent(precision**-0.5), delta=1e-6)
    assert float(model.epsilon_spent_) >= exact.lower * (1 - 1e-9)
    assert exact.upper <= 1.0 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_extreme_numbers_raise_no_warning(name):
    y, usual = target_of(name), _fitted(name, X, target_of(name))
    for value in EXTREMES:
        huge = X.copy()
        huge[ROW] = value
        tables = [(huge, y), (X, with_cell(T, ROW, value))][: 2 if name in REGRESSORS else 1]
        for rows, targets in tables:
            found = _fitted(name, rows, targets)
            assert {key: each.shape for key, each in found.items()} == {
                key: each.shape for key, each in usual.items()
            }
            assert all(np.isfinite(each).all() for each in found.values() if each.dtype.kind == "f")


def test_values_beyond_declared_bounds_are_at_the_nearer_bound():
    at, beyond = X.copy(), X.copy()
    at[ROW], beyond[ROW] = 4.0, 1.7e308
    for name in ("scaler", "pca", "kmeans", "line", "bounded"):
        y = target_of(name)
        _equal(_fitted(name, at, y), _fitted(name, beyond, y), of=name)


@pytest.mark.parametrize("name", PAID)
def test_partial_fits_and_scores_do_not_fail_for_one_record(name):
    y = target_of(name)
    for cell in (np.nan, None, 1.7e308):
        bad = with_cell(X, ROW, cell)
        with optim.replaying(), strict(), dpcal.budget(epsilon=900.0, delta=1e-4) as shared:
            model = made(name).fit(X, y)
            spent = shared.spent
            if hasattr(model, "score"):
                assert np.isfinite(model.score(bad, y))
                assert shared.spent > spent
            if name in CLASSIFIERS:
                assert 0 <= model.score(X, with_labels(Y, ROW, cell)[0]) <= 1
            if takes_more(name):
                model.partial_fit(bad, y)


@pytest.mark.parametrize("cell", [np.nan, np.inf, None, "secret", 1.7e308])
def test_a_pipeline_hands_blank_records_on(cell):
    for first in ("scaler", "quantiles", "pca", "kmeans"):
        with strict():
            model = make_pipeline(made(first), made("declared")).fit(with_cell(X, ROW, cell), Y)
        assert model[-1].coef_.shape[0] == 1


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_tables_with_names_are_read_cell_by_cell(package):
    frames = pytest.importorskip(package)
    for cell in (np.nan, np.inf):
        table = with_cell(X, ROW, cell)
        frame = frames.DataFrame({name: table[:, j].tolist() for j, name in enumerate("abc")})
        with strict(), dpcal.budget(epsilon=9.0, delta=1e-4):
            model = made("declared").fit(frame, Y)
            assert model.score(frame, Y) > 0.5
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_types_of_what_is_learned_do_not_tell_that_a_cell_is_missing():
    """A column of whole numbers is an array of floats as soon as one cell is missing."""
    polars = pytest.importorskip("polars")
    told, rows = [], np.resize(X, (1201, 3))
    for first in (1, None):
        frame = polars.DataFrame({"ward": [first, *[1, 2, 7] * 400], "flag": [True] * 1201})
        encoder = made("encoder").fit(frame)
        model = LogisticRegression(epsilon=20.0, steps=5).fit(rows, frame["ward"])
        arrays = (*encoder.categories_, model.classes_, model.predict(rows[:1]))
        names = encoder.get_feature_names_out().tolist()
        told.append(([each.dtype for each in arrays], names, model.classes_.tolist()))
    assert told[0] == told[1]
    assert told[0][1][:3] == ["ward_1", "ward_2", "ward_7"]
    assert told[0][2] == [1, 2, 7]
