"""One budget for all private parts of a model, however deep they are."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler as ExactScaler
from sklearn.utils import all_estimators

import dpcal
from dpcal.estimators import (
    LogisticRegression,
    PrivateSearch,
    QuantileTransformer,
    Ridge,
    StandardScaler,
    split_budget,
)
from dpcal.estimators.callers import learns

X = np.random.default_rng(0).uniform(-1, 1, (600, 3))
Y = (X[:, 0] > 0).astype(int)
TOTAL = {"epsilon": 1.0, "delta": 1e-6}


def scaler():
    return StandardScaler(bounds=(-1, 1))


def one():
    return LogisticRegression(classes=[0, 1], steps=5)


def columns(first, second="passthrough"):
    return ColumnTransformer([("first", first, [0, 1]), ("second", second, [2])])


NESTED = {
    "columns": lambda: make_pipeline(columns(scaler()), one()),
    "both columns": lambda: make_pipeline(
        columns(scaler(), QuantileTransformer(n_quantiles=3, bounds=(-1, 1))), one()
    ),
    "a pipeline in columns": lambda: make_pipeline(
        columns(make_pipeline(FunctionTransformer(), scaler())), one()
    ),
    "a union": lambda: make_pipeline(make_union(scaler(), "passthrough"), one()),
    "the rest of the columns": lambda: make_pipeline(
        ColumnTransformer([("a", "passthrough", [0])], remainder=scaler()), one()
    ),
    "a function": lambda: make_pipeline(columns(scaler(), FunctionTransformer(np.sign)), one()),
    "a transformed target": lambda: TransformedTargetRegressor(
        make_pipeline(columns(scaler()), Ridge(bounds=(-9, 9), target_bounds=(-2, 2))),
        func=np.sinh,
        inverse_func=np.arcsinh,
        check_inverse=False,
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_all_private_parts_together_cost_the_total(name):
    model = split_budget(NESTED[name](), **TOTAL)
    y = X[:, 0] if "target" in name else Y
    with dpcal.budget(epsilon=9.0, delta=1e-6) as shared:
        model.fit(X, y)
    assert 0.8 < shared.spent <= 1.0


def test_a_private_part_that_was_fitted_elsewhere_has_no_share():
    frozen = FrozenEstimator(scaler().fit(X))
    model = split_budget(make_pipeline(frozen, one()), **TOTAL)
    with dpcal.budget(epsilon=9.0, delta=1e-6) as shared:
        model.fit(X, Y)
    assert 0.99 < shared.spent <= 1.0


def test_the_best_of_a_search_has_the_price_of_the_search_in_all_parts():
    model = make_pipeline(columns(scaler()), one())
    search = PrivateSearch(model, {"logisticregression__steps": [5, 10]}, epsilon=9.0).fit(X, Y)
    best = search.best_estimator_
    for part in best[0].transformers_[0][1], best[1]:
        assert part.epsilon_spent_ == search.epsilon_spent_


def test_parts_have_names_for_weights():
    names = ["columntransformer__first", "logisticregression"]
    model = split_budget(
        NESTED["columns"](), **TOTAL, weights=dict(zip(names, (1, 3), strict=True))
    )
    first, last = (model.get_params()[f"{name}__epsilon"] for name in names)
    assert last == pytest.approx(3 * first)
    with pytest.raises(ValueError, match="columntransformer__first, logisticregression, got first"):
        split_budget(NESTED["columns"](), **TOTAL, weights={"first": 1})


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (columns(scaler(), ExactScaler()), r"columntransformer__second' \(StandardScaler\)"),
        (columns(SimpleImputer(), scaler()), r"columntransformer__first' \(SimpleImputer\)"),
        (
            columns(make_pipeline(OneHotEncoder(sparse_output=False), scaler())),
            r"pipeline__onehotencoder'|first__one",
        ),
        (make_union(ExactScaler(), scaler()), r"featureunion__standardscaler-1'|standardscaler"),
    ],
)
def test_nested_parts_that_learn_and_are_not_private_are_named(part, told):
    model = make_pipeline(part, one())
    with pytest.raises(ValueError, match=told):
        split_budget(model, **TOTAL)
    with pytest.raises(ValueError, match=told):
        PrivateSearch(model, {"logisticregression__steps": [5, 10]}).fit(X, Y)
    shared = dpcal.budget(epsilon=9.0, delta=1e-6)
    with shared, pytest.raises(ValueError, match="must be private or learn nothing"):
        model.fit(X, Y)
    assert shared.spent == 0


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(one()),
        make_pipeline(scaler(), OneVsRestClassifier(one())),
        StackingClassifier([("a", one()), ("b", one())], final_estimator=one()),
    ],
)
def test_parts_that_are_fitted_several_times_are_refused(model):
    with pytest.raises(ValueError, match=r"fit each private step once, got .* \((OneVs|Stacking)"):
        split_budget(model, **TOTAL)


def test_the_page_names_every_transformer_and_what_it_learns():
    page = (Path(__file__).parents[2] / "docs" / "scikit_learn.md").read_text()
    section = page.partition("## What may stand before")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| ")][1:]
    listed = {name.strip(): learns for names, learns in rows for name in names.split(",")}
    for name, kind in all_estimators("transformer"):
        assert name in listed, name
        with suppress(TypeError):  # it needs arguments, and so has parts
            assert learns(kind()) == (listed[name].strip() != "no"), name
