"""No error and no warning of an estimator holds a value of a record, whatever it is given."""

import traceback
import warnings
from collections import namedtuple

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import dpcal
from dpcal import estimators
from dpcal.estimators import (
    PCA,
    Bins,
    Clipper,
    KMeans,
    LinearRegression,
    LogisticRegression,
    OneHotEncoder,
    PrivateSearch,
    QuantileTransformer,
    RandomFeatures,
    Ridge,
    SimpleImputer,
    Splines,
    StandardScaler,
)

RNG = np.random.default_rng(0)
MARK = 726.34815  # no shape, no setting and no message holds these digits by itself
DIGITS = ("726.34", "72634", "26.348", "7.2634", "26348")
Secret = namedtuple("Secret", "value")


class Strange:
    """An object that shows what it holds wherever it is printed."""

    def __init__(self, shape=()):
        self.shape = shape

    def __repr__(self):
        return f"Strange({MARK})"

    def __float__(self):
        raise TypeError(repr(self))


def malformed():
    """Yield names and tables that hold the mark in every cell."""
    whole = np.full((60, 2), MARK) + RNG.integers(0, 2, (60, 2)) * 1e-9
    objects = np.full((60, 2), None)
    objects[:] = Strange()
    yield "one column, flat", whole[:, 0]
    yield "three dimensions", whole[:, :, np.newaxis]
    yield "a number", MARK
    yield "no dimension", np.array(MARK)
    yield "complex", whole + 0j
    yield "complex list", (whole + 1j).tolist()
    yield "texts", whole.astype(str)
    yield "bytes", whole.astype("S")
    yield "list of texts", whole.astype(str).tolist()
    yield "a text", str(MARK)
    yield "ragged", [[MARK], [MARK, MARK]] * 30
    yield "ragged in depth", [[[MARK], [MARK, MARK]]] * 30
    yield "objects", objects
    yield "objects in lists", [[Strange(), Strange()]] * 60
    yield "objects, flat", [Strange()] * 60
    yield "dates", np.full((60, 2), 72_634_815, dtype="M8[s]")
    yield "records", np.array([(MARK, MARK)] * 60, dtype=[("a", float), ("b", float)])
    yield "tuples", [Secret(MARK)] * 60
    yield "mappings", [{"a": MARK, "b": MARK}] * 60
    yield "a mapping", {"a": [MARK] * 60}
    yield "sets", [{MARK}] * 60
    yield "a generator", (row for row in whole)
    yield "sparse", csr_matrix(whole)
    yield "a matrix", np.matrix(whole)
    yield "masked", np.ma.masked_less(whole, MARK)
    yield "one row", whole[:1]
    yield "no row", whole[:0]
    yield "no column", whole[:, :0]
    yield "too many columns", np.hstack([whole, whole])
    yield "not finite", np.where(RNG.random((60, 2)) < 0.5, np.nan, whole)
    yield "infinite", np.where(RNG.random((60, 2)) < 0.5, np.inf, whole)
    yield "huge", whole * 1e300
    yield "right", whole
    yield "frame of texts", pl.DataFrame(whole, schema=["a", "b"]).cast(pl.String)
    yield "frame of lists", pl.DataFrame({"a": [[MARK]] * 60, "b": [[MARK]] * 60})
    yield "frame of dates", pl.DataFrame({"a": [7_263], "b": [7_263]}).cast(pl.Date)
    yield "frame of numbers", pl.DataFrame(whole, schema=["a", "b"])
    yield "frame of others", pl.DataFrame(whole, schema=["c", "d"])


METHODS = (
    *("fit", "partial_fit", "predict", "transform", "inverse_transform", "score"),
    *("decision_function", "predict_proba", "predict_log_proba", "fit_transform", "fit_predict"),
)
QUICK = {"epsilon": 100.0, "steps": 5, "max_norm": 1.0, "learning_rate": 0.1}
WIDE = {"bounds": (-1.0, 1.0), "epsilon": 100.0}
TARGETS = {**WIDE, "target_bounds": (-1.0, 1.0)}
INSIDE = {"bounds": (-1.0, 1.0)}
ON_NUMBERS = [
    lambda: LogisticRegression(classes=[0, 1], **QUICK),
    lambda: LinearRegression(**TARGETS, solver="statistics"),
    lambda: LinearRegression(**TARGETS, solver="gradient", row_norm=1.0),
    lambda: Ridge(**TARGETS, solver="statistics"),
    lambda: Ridge(**TARGETS, solver="gradient"),
    lambda: StandardScaler(**WIDE),
    lambda: QuantileTransformer(**WIDE, n_quantiles=3),
    lambda: PCA(**WIDE),
    lambda: KMeans(2, **WIDE),
    lambda: SimpleImputer(**WIDE),
    lambda: Clipper(**WIDE),
    lambda: RandomFeatures(**INSIDE, n_waves=4),
    lambda: Splines(**INSIDE, n_knots=3),
    lambda: Bins(**INSIDE, n_bins=3),
    lambda: PrivateSearch(
        LogisticRegression(classes=[0, 1], **QUICK), {"l2": [0.0, 0.1]}, trials=2
    ),
]
MODELS = [
    *ON_NUMBERS,
    lambda: KMeans(2, bounds="learn", epsilon=100.0),
    lambda: OneHotEncoder(epsilon=100.0),
    lambda: OneHotEncoder(categories=[[0, 1], [0, 1]]),
]


def test_models_are_all_there():
    made = {type(make()).__name__ for make in MODELS}
    assert made == {name for name in estimators.__all__ if name[0].isupper()}


@pytest.mark.parametrize("bad", ["text", "date"])
def test_a_column_of_another_type_is_refused_and_costs_nothing(bad):
    column = pl.lit("east") if bad == "text" else pl.lit(7).cast(pl.Date)
    frame = pl.DataFrame(RNG.uniform(-1, 1, (60, 2)), schema=["a", "b"])
    with dpcal.budget(epsilon=1e3, delta=1e-5) as book:
        for make in ON_NUMBERS:
            with pytest.raises(TypeError, match="got column 'ward' of type"):
                make().fit(frame.with_columns(column.alias("ward")), np.resize([0, 1], 60))
        assert book.spent == 0


def said(ask):
    """Return all that a call raises and warns of, with what was raised before it."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            ask()
        except Exception as error:
            heard.append(error)
    return "".join(
        "".join(traceback.format_exception(each))
        if isinstance(each, Exception)
        else str(each.message)
        for each in heard
    )


def asked(model, X, y):
    """Yield a name, and a call, for each method of a fitted and of a fresh model."""
    for name in METHODS:
        for method in [getattr(model, name, None)]:
            if method is None:
                continue
            with_y = name in ("fit", "partial_fit", "score", "fit_predict", "fit_transform")
            yield (
                name,
                (lambda method=method: method(X, y))
                if with_y
                else (lambda method=method: method(X)),
            )


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS, ids=lambda make: type(make()).__name__)
def test_no_message_holds_a_value_of_a_record(make):
    labels = np.resize([0, 1], 60)
    good = RNG.uniform(-1, 1, (60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make().fit(good, labels)
        found = []
        for name, X in malformed():
            for model in (make(), fitted):
                for method, ask in asked(model, X, labels):
                    text = said(ask)
                    found += [(name, method, digits) for digits in DIGITS if digits in text]
        # Targets, beside records that are right.
        for name, y in malformed():
            for method, ask in asked(fitted, good, y):
                text = said(ask)
                found += [(f"y: {name}", method, digits) for digits in DIGITS if digits in text]
    assert sorted({each[:2] for each in found}) == []
