"""Bounds that are learned: within the budget, in the ledger, and wide enough for most records."""

import numpy as np
import pytest

from dpcal import budget
from dpcal.accountants import epsilon
from dpcal.estimators import (
    PCA,
    Clipper,
    KMeans,
    LinearRegression,
    LogisticRegression,
    QuantileTransformer,
    StandardScaler,
)
from dpcal.estimators.bounds import _orders, _range
from dpcal.report.files import FORMAT
from dpcal.report.verification import verify

MAKERS = {
    "scaler": lambda: StandardScaler(bounds="learn"),
    "quantiles": lambda: QuantileTransformer(bounds="learn", n_quantiles=3),
    "pca": lambda: PCA(bounds="learn"),
    "kmeans": lambda: KMeans(2, bounds="learn"),
    "logistic": lambda: LogisticRegression(bounds="learn", classes=[0, 1], steps=5),
    "linear": lambda: LinearRegression(bounds="learn", target_bounds="learn"),
}


def table(n=5000):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1000, 100, n), rng.normal(0, 1e-3, n), rng.uniform(-9, -5, n)])
    return X, (X[:, 0] > 1000).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_learned_is_paid_and_in_the_ledger(name):
    X, y = table()
    with budget(epsilon=2.0, delta=1e-5) as shared:
        model = MAKERS[name]().set_params(epsilon=2.0, delta=1e-5).fit(X, y)
        assert 0.8 * 2.0 < shared.spent <= 2.0
    assert model.ledger_.entries[0].name == "bounds"
    price = epsilon(model.ledger_.event, delta=1e-5)
    assert float(model.epsilon_spent_) == float(price)
    assert shared.spent == pytest.approx(float(price), rel=1e-9)
    run = model.report_
    whole = {"delta": run["delta"], "epsilon": run["epsilon"]}
    assert all(
        row["holds"] for row in verify({"format": FORMAT, "runs": [run], "everything": whole})
    )
    low, high = model.bounds_
    inside = ((low <= X) & (high >= X)).mean(axis=0)
    assert (inside > 0.9).all()
    # Orders of magnitude are powers of two: no more than four times too wide, and more about 0.
    assert (high - low <= 4 * np.ptp(X, axis=0)).all()
    assert getattr(model, "target_bounds_", (0.0, 1.0))[1] >= 1.0
    assert model.bounds == "learn"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 5.0, 900.0], (2.0, 1024.0)),
        ([-3.0, 0.0, 0.3], (-4.0, 0.5)),
        ([-3.0, -100.0], (-128.0, -2.0)),
        ([1.0], (1.0, 2.0)),
        ([1e-300, 0.0, 2e300], (0.0, 2.0**998)),
    ],
)
def test_the_ends_of_orders_of_magnitude_hold_their_values(values, expected):
    orders = np.unique(_orders(np.array(values)))
    low, high = _range(orders, 0)
    assert low <= min(values)
    assert high >= max(values)
    assert (low, high) == expected


def test_few_records_have_no_bounds_and_partial_fit_needs_them():
    X, _ = table(20)
    with pytest.raises(ValueError, match="too few records share an order of magnitude"):
        StandardScaler(bounds="learn", epsilon=0.5).fit(X)
    with pytest.raises(ValueError, match="learned by fit alone"):
        StandardScaler(bounds="learn").partial_fit(X)
    with budget(epsilon=0.5, delta=1e-5) as shared:
        with pytest.raises(ValueError, match="n_clusters must be at most"):
            KMeans(50, bounds="learn", epsilon=0.1, delta=1e-5).fit(X)
        assert shared.spent == 0.0


def test_bounds_are_forgotten_by_a_fit_with_declared_ones():
    X, _ = table()
    scaler = StandardScaler(bounds="learn", epsilon=2.0).fit(X)
    scaler.set_params(bounds=(-2000, 2000)).fit(X)
    assert not hasattr(scaler, "bounds_")
    assert [entry.name for entry in scaler.ledger_.entries] == ["moments"]


def test_there_is_no_random_state():
    for make in (StandardScaler, LogisticRegression, KMeans):
        with pytest.raises(TypeError, match="random_state does not exist here: noise"):
            make(random_state=0)
        with pytest.raises(TypeError, match="random_state does not exist here: noise"):
            make().set_params(random_state=0)


@pytest.mark.parametrize("make", [StandardScaler, PCA, Clipper])
def test_bounds_beyond_what_squares_can_hold_are_refused_before_anything_is_spent(make):
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    with budget(epsilon=9.0, delta=1e-5) as book:
        for ends in ((-1e308, 1e308), (0.0, 1e101), (0.0, 1e-320)):
            with pytest.raises(ValueError, match="bounds must be between -1e"):
                make(bounds=ends).fit(X)
        assert book.spent == 0
    model = make(bounds=(-1e100, 1e100)).fit(1e100 * X)
    kept = [each for each in vars(model).values() if isinstance(each, np.ndarray)]
    assert all(np.isfinite(each).all() for each in kept if each.dtype.kind == "f")
