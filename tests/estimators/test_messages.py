"""No error and no warning of an estimator holds a value of a record, whatever it is given."""

import traceback
import warnings
from collections import namedtuple
from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import dpcal
from dpcal import estimators
from tests.estimators._models import made

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


FITS = ("fit", "fit_predict", "fit_transform")
WITH_TARGETS = (*FITS, "partial_fit", "score")
READS = (
    *("partial_fit", "score", "predict", "transform", "inverse_transform"),
    *("decision_function", "predict_proba", "predict_log_proba"),
)
ON_NUMBERS = (
    *("declared", "line", "line, gradient", "ridge", "ridge, gradient", "scaler", "quantiles"),
    *("pca", "kmeans", "imputer", "clipper", "waves", "splines", "bins", "search"),
)
MODELS = (*ON_NUMBERS, "kmeans, learned", "encoder", "declared encoder")


def test_models_are_all_there():
    kinds = {type(made(name)).__name__ for name in MODELS}
    assert kinds == {name for name in estimators.__all__ if name[0].isupper()}


@pytest.mark.parametrize("bad", ["text", "date"])
def test_a_column_of_another_type_is_refused_and_costs_nothing(bad):
    column = pl.lit("east") if bad == "text" else pl.lit(7).cast(pl.Date)
    frame = pl.DataFrame(RNG.uniform(-1, 1, (60, 2)), schema=["a", "b"])
    with dpcal.budget(epsilon=1e3, delta=1e-5) as book:
        for name in ON_NUMBERS:
            with pytest.raises(TypeError, match="got column 'ward' of type"):
                made(name).fit(frame.with_columns(column.alias("ward")), np.resize([0, 1], 60))
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


def asked(place, names, model, X, y):
    """Yield where a table is, the name and a call of some methods of a model."""
    for name in names:
        given = (X, y) if name in WITH_TARGETS else (X,)
        if method := getattr(model, name, None):
            yield place, name, partial(method, *given)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_no_message_holds_a_value_of_a_record(kind):
    much = {"epsilon": 100.0} if "epsilon" in made(kind).get_params() else {}
    labels = np.resize([0, 1], 60)
    good = RNG.uniform(-1, 1, (60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = made(kind, **much).fit(good, labels)
        found = set()
        for what, table in malformed():
            # Targets that are not read are so in one form.
            targets = WITH_TARGETS if hasattr(fitted, "score") or what == "objects" else ()
            asks = [
                *asked("X, fresh", FITS + READS, made(kind, **much), table, labels),
                *asked("X", READS, fitted, table, labels),
                *asked("y", targets, fitted, good, table),
            ]
            for place, method, ask in asks:
                text = said(ask)
                if any(digits in text for digits in DIGITS):
                    found.add((what, place, method))
    assert sorted(found) == []
