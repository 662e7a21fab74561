"""One budget for all private parts of a model, however deep they are."""

from contextlib import suppress

import numpy as np
import pytest
from _tree import ROOT
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer as ExactImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler as ExactScaler,
)
from sklearn.utils import all_estimators

import dpcal
from dpcal.accountants import epsilon, events
from dpcal.estimators import LogisticRegression, PrivateSearch, split_budget
from dpcal.estimators.parts import learns
from tests.estimators._models import made

X = np.random.default_rng(0).uniform(-1, 1, (600, 3))
Y = (X[:, 0] > 0).astype(int)
TOTAL = {"epsilon": 1.0, "delta": 1e-6}
SCALER = made("scaler", bounds=(-1, 1))
ONE = LogisticRegression(classes=[0, 1], steps=5)


def columns(first, second="passthrough"):
    return ColumnTransformer([("first", first, [0, 1]), ("second", second, [2])])


IN_COLUMNS = make_pipeline(columns(SCALER), ONE)
# What stands before a model.
NESTED = {
    "columns": columns(SCALER),
    "both columns": columns(SCALER, made("quantiles", bounds=(-1, 1))),
    "medians": make_pipeline(made("medians", bounds=(-1, 1)), SCALER),
    "a pipeline in columns": columns(make_pipeline(FunctionTransformer(), SCALER)),
    "a union": make_union(SCALER, "passthrough"),
    "the rest of the columns": ColumnTransformer([("a", "passthrough", [0])], remainder=SCALER),
    "functions": columns(SCALER, make_pipeline(FunctionTransformer(np.sign), Normalizer())),
    "nothing": "passthrough",
    "what was fitted elsewhere": make_pipeline(
        FrozenEstimator(MinMaxScaler().fit(X)), FrozenEstimator(clone(SCALER).fit(X))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_all_private_parts_together_cost_the_total(name):
    model = split_budget(make_pipeline(NESTED[name], ONE), **TOTAL)
    with dpcal.budget(epsilon=9.0, delta=1e-6) as shared:
        model.fit(X, Y)
    assert 0.75 < shared.spent <= 1.0
    assert shared.spent > 0.99 or name in ("both columns", "medians")


def test_a_model_of_a_transformed_target_costs_the_total():
    ridge = made("ridge", solver="auto", bounds=(-9, 9), target_bounds=(-2, 2))
    model = TransformedTargetRegressor(
        make_pipeline(columns(SCALER), ridge), func=np.sinh, inverse_func=np.arcsinh
    )
    with dpcal.budget(epsilon=9.0, delta=1e-6) as shared:
        split_budget(model.set_params(check_inverse=False), **TOTAL).fit(X, X[:, 0])
    assert 0.8 < shared.spent <= 1.0


def test_the_best_of_a_search_has_the_price_of_the_search_in_all_parts():
    grid = {"logisticregression__steps": [5, 10]}
    search = PrivateSearch(IN_COLUMNS, grid, epsilon=9.0).fit(X, Y)
    best = search.best_estimator_
    for part in best[0].transformers_[0][1], best[1]:
        assert part.epsilon_spent_ == search.epsilon_spent_


@pytest.mark.slow
def test_shares_follow_their_weights_and_add_up():
    steps = make_pipeline(SCALER, made("pca", n_components=2), ONE)
    model = split_budget(steps, epsilon=2.0, delta=1e-6, weights=[1, 2, 5])
    shares = np.array([(step.epsilon, step.delta) for step in model])
    assert shares[:, 0] / shares[0, 0] == pytest.approx([1.0, 2.0, 5.0])
    assert 2.0 < shares[:, 0].sum() < 2.0 * 3**0.5
    assert shares[:, 1].sum() <= 1e-6
    model.fit(X, Y)
    whole = events.ComposedDpEvent([step.ledger_.event for step in model])
    assert 1.999 < epsilon(whole, delta=1e-6) <= 2.0
    assert steps[0].epsilon == SCALER.epsilon


def test_bad_weights_and_parts_that_are_fitted_several_times_are_refused():
    rest, stack = OneVsRestClassifier(ONE), [("a", ONE), ("b", ONE)]
    private = "columntransformer__first, logisticregression"
    once = "fit each private step once, got"
    for model, weights, told in (
        (IN_COLUMNS, [1.0], f"one for each of {private}, got 1"),
        (IN_COLUMNS, [1.0, -1.0], "weights must be a finite number > 0, got -1.0"),
        (rest, None, rf"{once} .* \(OneVs"),
        (make_pipeline(SCALER, rest), None, rf"{once} .* \(OneVs"),
        (StackingClassifier(stack, final_estimator=ONE), None, rf"{once} .* \(Stacking"),
    ):
        with pytest.raises(ValueError, match=told):
            split_budget(model, **TOTAL, weights=weights)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (ExactScaler(), "'standardscaler'"),
        (SelectKBest(k=2), "'selectkbest'"),
        (make_pipeline(ExactScaler()), "'pipeline"),
        (columns(SCALER, ExactScaler()), r"columntransformer__second' \(StandardScaler\)"),
        (columns(ExactImputer(), SCALER), r"columntransformer__first' \(SimpleImputer\)"),
        (
            columns(make_pipeline(OneHotEncoder(sparse_output=False), SCALER)),
            r"pipeline__onehotencoder'|first__one",
        ),
        (make_union(ExactScaler(), SCALER), r"featureunion__standardscaler-1'|standardscaler"),
    ],
    ids=repr,
)
def test_parts_that_learn_and_are_not_private_are_named(part, told):
    model = make_pipeline(part, ONE)
    with pytest.raises(ValueError, match=told):
        split_budget(model, **TOTAL)
    with pytest.raises(ValueError, match=f"{told}.*not private"):
        PrivateSearch(model, {"logisticregression__steps": [5, 10]}).fit(X, Y)
    shared = dpcal.budget(epsilon=9.0, delta=1e-6)
    with shared, pytest.raises(ValueError, match="must be private or learn nothing"):
        model.fit(X, Y)
    assert shared.spent == 0


def test_the_page_names_every_transformer_and_what_it_learns():
    page = (ROOT / "docs" / "how_to" / "scikit_learn.md").read_text()
    section = page.partition("## Parts of a pipeline")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| ")][1:]
    listed = {name.strip(): learns for names, learns in rows for name in names.split(",")}
    for name, kind in all_estimators("transformer"):
        assert name in listed, name
        with suppress(TypeError):  # it needs arguments, and so has parts
            assert learns(kind()) == (listed[name].strip() != "no"), name
