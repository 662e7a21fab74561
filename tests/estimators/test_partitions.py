"""Estimators on Dask collections: the bits of a fit in memory, and one ledger."""

from threading import get_ident

import numpy as np
import pytest
from _alike import Alike
from _cluster import two_workers
from sklearn.pipeline import Pipeline, make_pipeline

import dpcal
from dpcal.estimators import (
    PCA,
    Clipper,
    KMeans,
    LinearRegression,
    LogisticRegression,
    OneHotEncoder,
    QuantileTransformer,
    Ridge,
    SimpleImputer,
    Splines,
    StandardScaler,
)
from dpcal.optim.boundary.observers import observing

array = pytest.importorskip("dask.array")

N, D = 1_200, 3
WIDE = {"bounds": (-2.0, 2.0), "epsilon": 2.0}
LINE = LogisticRegression(epsilon=2.0, steps=5, classes=[0, 1, 2])
# Supervised ones first: classes, bounds and scale that are learned, solvers of both kinds.
MODELS = (
    LogisticRegression(epsilon=2.0, steps=5),
    LogisticRegression(epsilon=4.0, steps=5, bounds="learn", classes=[0, 1, 2]),
    LinearRegression(**WIDE, target_bounds=(-4, 4), solver="statistics"),
    Ridge(**WIDE, target_bounds="learn", solver="gradient", row_norm=0.3),
)
LEARNED_ALONE = (
    StandardScaler(**WIDE),
    PCA(2, **WIDE),
    KMeans(2, **WIDE),
    SimpleImputer(**WIDE),
    SimpleImputer(**WIDE, strategy="median", missing_values=0.0),
    QuantileTransformer(bounds="learn", epsilon=8.0, n_quantiles=3),
    Clipper(**WIDE),
    OneHotEncoder(epsilon=4.0),
    OneHotEncoder(categories=[[-1, 0, 1]] * D),
    make_pipeline(StandardScaler(**WIDE), Splines(bounds=(-4, 4)), LINE),
)


def records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = (X[:, 0] > -0.5).astype(int) + (X[:, 0] > 0.5)
    X[::50, 1] = np.nan
    X[7] = np.inf
    return X, y


@pytest.fixture(scope="module")
def client():
    with two_workers(__name__, processes=False) as made:
        yield made


def learned(model, *given):
    """What a fit learned, by name, as arrays."""
    with observing(Alike()):
        model.fit(*given)
    last = model[-1] if isinstance(model, Pipeline) else model
    found = {name: value for name, value in vars(last).items() if name.endswith("_")}
    # These differ from fit to fit by the clock, or hold the same as the rest.
    del found["report_"]
    ledger = found.pop("ledger_")
    return found, [] if ledger is None else ledger.entries


def same(first, second):
    assert first[1] == second[1]
    assert first[0].keys() == second[0].keys()
    for name, value in first[0].items():
        values, others = (
            each if isinstance(each, (list, tuple)) else [each] for each in (value, second[0][name])
        )
        assert len(values) == len(others)
        assert all(map(np.array_equal, values, others)), name


@pytest.mark.slow
def test_a_fit_on_partitions_has_the_bits_of_one_in_memory(client):
    X, y = records()
    # Partitions of one record, of none, and of most.
    chunks = ((1, 899, 0, 300), (D,))
    far, labels = array.from_array(X, chunks=chunks), array.from_array(y, chunks=chunks[:1])
    for model in MODELS:
        same(learned(model, X, y), learned(model, far, labels))
    whole = np.nan_to_num(np.rint(X), posinf=0).clip(-1, 1)
    for model in LEARNED_ALONE:
        categories = isinstance(model, OneHotEncoder)
        given = (whole if categories else X), y
        parts = array.from_array(given[0], chunks=chunks), labels
        same(learned(model, *given), learned(model, *parts))
        if hasattr(model, "predict"):
            asked = array.from_array(whole, chunks=chunks)
            assert np.array_equal(model.predict(asked).compute(), model.predict(whole))


@pytest.mark.slow
def test_nothing_is_learned_that_no_budget_pays_for(client):
    X, y = records()
    far, labels = (array.from_array(each, chunks=(600, -1)[: each.ndim]) for each in (X, y))
    with dpcal.budget(epsilon=1.0, delta=1e-6) as shared:
        model = LogisticRegression(epsilon=0.8, steps=5).fit(far, labels)
        assert 0.79 < shared.spent <= 0.8
        assert [query.name for query in model.ledger_.entries] == ["labels", "scale", "gradient"]
        with pytest.raises(dpcal.errors.BudgetExceeded):
            StandardScaler(**WIDE).fit(far)


def test_partitions_that_do_not_fit_are_refused_in_a_sentence(client, monkeypatch):
    X, y = records()
    far = array.from_array(X, chunks=(600, D))
    model = LogisticRegression(epsilon=1.0)
    for wrong, words in (
        (y, "together, got a ndarray"),
        (array.from_array(y, chunks=300), r"the same partitions, got \[2, 4\]"),
        (array.from_array(y, chunks=((500, 700),)), "partition 0 must have a target for each"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(far, wrong)
    with pytest.raises(ValueError, match="groups must be None"):
        model.fit(far, array.from_array(y, chunks=600), groups=y)
    with pytest.raises(ValueError, match="must hold a record, got none"):
        StandardScaler(**WIDE).fit(array.zeros((0, D)))
    with pytest.raises(ValueError, match="needs 2 records at least, got 1"):
        StandardScaler(**WIDE).fit(array.zeros((1, D)))
    told, home = "dpcal.optim.silos.partitioned.version", get_ident()
    monkeypatch.setattr(told, lambda name: "9.1" if get_ident() == home else "9.0")
    with pytest.raises(
        ValueError, match=r"workers must have dpcal 9\.1, as here, got 9\.0 on inproc"
    ):
        StandardScaler(**WIDE).fit(far)


@pytest.mark.slow
def test_data_frames_keep_their_columns(client):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = records()
    table = pandas.DataFrame(X, columns=["age", "height", "weight"]).assign(sick=y)
    far = frames.from_pandas(table, npartitions=3, sort=False)
    names = ["age", "height", "weight"]
    model = LogisticRegression(epsilon=2.0, steps=5)
    here, there = (
        learned(model, table[names], table["sick"]),
        learned(model, far[names], far["sick"]),
    )
    same(here, there)
    assert here[0]["feature_names_in_"].tolist() == names
    scaler = StandardScaler(**WIDE).fit(far[names])
    assert np.array_equal(
        scaler.transform(far[names]).compute(), scaler.transform(table[names]), True
    )
    other = frames.from_map(
        lambda j: table[names] if j else table[[*names[1:], "sick"]], range(2), meta=table[names]
    )
    with pytest.raises(ValueError, match=r"partition 0 must have the columns .* got .*sick"):
        StandardScaler(**WIDE).fit(other)
