"""Estimators on Dask collections: the bits of a fit in memory, and one ledger."""

from threading import get_ident

import numpy as np
import pytest
from _cluster import two_workers
from _recording import Alike
from sklearn.pipeline import Pipeline, make_pipeline

import dpcal
from dpcal.estimators import LogisticRegression
from dpcal.optim.boundary.noise import observing
from tests.estimators._models import made

array = pytest.importorskip("dask.array")

N, D = 1_200, 3
LINE = LogisticRegression(epsilon=2.0, steps=5, classes=[0, 1, 2])
# Classes, bounds and scale that are learned, and solvers of both kinds.
MODELS = (
    *(made(name) for name in ("learned", "line", "scaler", "pca", "kmeans", "imputer", "clipper")),
    made("bounds learned", classes=[0, 1, 2], epsilon=4.0),
    made("ridge, gradient", target_bounds="learn", row_norm=0.3),
    made("medians", missing_values=0.0),
    made("quantiles", bounds="learn", epsilon=8.0),
    make_pipeline(made("scaler"), made("splines"), LINE),
)
ENCODERS = (made("encoder"), made("encoder", categories=[[-1, 0, 1]] * D))


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
    whole = np.nan_to_num(np.rint(X), posinf=0).clip(-1, 1)
    parts = array.from_array(whole, chunks=(chunks[0], (1, 2)))  # columns are cut too
    for model in MODELS:
        same(learned(model, X, y), learned(model, far, labels))
        if hasattr(model, "predict"):
            assert np.array_equal(model.predict(parts).compute(), model.predict(whole))
    for model in ENCODERS:
        same(learned(model, whole, y), learned(model, parts, labels))


@pytest.mark.slow
def test_nothing_is_learned_that_no_budget_pays_for(client):
    X, y = records()
    far, labels = (array.from_array(each, chunks=(600, -1)[: each.ndim]) for each in (X, y))
    with dpcal.budget(epsilon=1.0, delta=1e-6) as shared:
        model = LogisticRegression(epsilon=0.8, steps=5).fit(far, labels)
        assert 0.79 < shared.spent <= 0.8
        assert [query.name for query in model.ledger_.entries] == ["labels", "scale", "gradient"]
        with pytest.raises(dpcal.errors.BudgetExceeded):
            made("scaler").fit(far)


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
        made("scaler").fit(array.zeros((0, D)))
    with pytest.raises(ValueError, match="needs 2 records at least, got 1"):
        made("scaler").fit(array.zeros((1, D)))
    told, home = "dpcal.optim.silos.parts.version", get_ident()
    monkeypatch.setattr(told, lambda name: "9.1" if get_ident() == home else "9.0")
    with pytest.raises(
        ValueError, match=r"workers must have dpcal 9\.1, as here, got 9\.0 on inproc"
    ):
        made("scaler").fit(far)


@pytest.mark.slow
def test_data_frames_keep_their_columns(client):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = records()
    table = pandas.DataFrame(X, columns=["age", "height", "weight"]).assign(sick=y)
    far = frames.from_pandas(table, npartitions=3, sort=False)
    names = ["age", "height", "weight"]
    model = LogisticRegression(epsilon=2.0, steps=5)
    here = learned(model, table[names], table["sick"])
    same(here, learned(model, far[names], far["sick"]))
    assert here[0]["feature_names_in_"].tolist() == names
    scaler = made("scaler").fit(far[names])
    assert np.array_equal(
        scaler.transform(far[names]).compute(), scaler.transform(table[names]), True
    )
    other = frames.from_map(
        lambda j: table[names] if j else table[[*names[1:], "sick"]], range(2), meta=table[names]
    )
    with pytest.raises(ValueError, match=r"partition 0 must have the columns .* got .*sick"):
        made("scaler").fit(other)
