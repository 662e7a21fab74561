"""Every estimator keeps scikit-learn's contract, and dpcal's: nothing but what the ledger holds."""

import inspect
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from dpcal import budget
from dpcal.accountants import epsilon
from dpcal.errors import BudgetExceeded
from dpcal.estimators.checks import ESTIMATORS
from dpcal.report.files import FORMAT
from dpcal.report.verification import verify

MADE = [pytest.param(make, skipped, id=type(make()).__name__) for make, skipped in ESTIMATORS]


def table(rng, n=200, d=3):
    """Return records in [-1, 1] and labels or targets that depend on them."""
    X = rng.uniform(-1, 1, (n, d))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), MADE)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_but_what_is_listed(make, skipped):
    rows = check_estimator(make(), on_fail=None, on_skip=None, expected_failed_checks=skipped)
    failed = {row["check_name"]: row["exception"] for row in rows if row["status"] == "failed"}
    assert failed == {}
    assert len(rows) > 35


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_what_was_spent_is_the_price_of_the_ledger_and_within_the_target(make, skipped):
    X, y = table(np.random.default_rng(0))
    for target in (0.5, 3.0):
        model = make().set_params(epsilon=target, delta=1e-5)
        if "classes" in model.get_params():
            model.set_params(classes=[0, 1])
        model.fit(X, y)
        relation = "replace-special"
        price = epsilon(model.ledger_.event, delta=1e-5, neighboring_relation=relation)
        assert 0.9 * target < model.epsilon_spent_ <= target
        assert float(model.epsilon_spent_) == float(price)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_the_report_can_be_verified_and_a_smaller_claim_does_not_hold(make, skipped):
    X, y = table(np.random.default_rng(1))
    run = make().set_params(epsilon=2.0).fit(X, y).report_
    whole = {"delta": run["delta"], "epsilon": run["epsilon"]}
    report = {"format": FORMAT, "runs": [run], "everything": whole}
    assert all(row["holds"] for row in verify(report))
    less = {**whole, "epsilon": {**run["epsilon"], "upper": 0.9 * run["epsilon"]["upper"]}}
    assert not verify({**report, "everything": less})[-1]["holds"]


@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_bad_input_is_a_sentence_and_costs_nothing(make, skipped):
    X, y = table(np.random.default_rng(2), n=40)
    spoiled = [
        (X[:, 0], y, "Expected 2D array"),
        (scipy.sparse.csr_matrix(X), y, "(?i)sparse"),
        (X[:1], y[:1], "minimum of 2 is required"),
    ]
    with budget(epsilon=50.0, delta=1e-6) as shared:
        for rows, labels, told in spoiled:
            with pytest.raises((ValueError, TypeError), match=told):
                make().set_params(epsilon=1.0).fit(rows, labels)
        if make().get_params().get("bounds") is not None:
            with pytest.raises(ValueError, match="bounds must be"):
                make().set_params(epsilon=1.0, bounds=None).fit(X, y)
        assert shared.spent == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_a_spent_budget_refuses_the_next_fit_before_it_reads_a_record(make, skipped):
    X, y = table(np.random.default_rng(3))
    shared = budget(epsilon=2.5, delta=1e-6)
    model = make().set_params(epsilon=2.0, budget=shared).fit(X, y)
    spent = shared.spent
    assert 0 < spent <= 2.0
    again = clone(model)
    assert again.budget is shared
    with pytest.raises(BudgetExceeded, match=r"all there is"):
        again.fit(X, y)
    assert shared.spent == spent
    assert not hasattr(again, "ledger_")


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_partial_fit_adds_up(make, skipped):
    model = make().set_params(epsilon=1.0)
    if not hasattr(model, "partial_fit"):
        pytest.skip("it has no partial_fit")
    rng = np.random.default_rng(4)
    kept = {"classes": [0, 1]} if "classes" in model.get_params() else {}
    model.set_params(**kept)
    costs = []
    for _ in range(3):
        model.partial_fit(*table(rng))
        costs.append(float(model.epsilon_spent_))
    assert costs[0] <= 1.0 < costs[1] < costs[2] < 3.0
    model.fit(*table(rng))
    assert model.epsilon_spent_ <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_a_fitted_model_survives_a_pickle(make, skipped):
    X, y = table(np.random.default_rng(5))
    model = make().set_params(epsilon=3.0).fit(X, y)
    found = pickle.loads(pickle.dumps(model))
    ask = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(found, ask)(X), getattr(model, ask)(X))
    assert found.epsilon_spent_.to_dict() == model.epsilon_spent_.to_dict()
    assert found.ledger_ == model.ledger_


@pytest.mark.parametrize("make", [make for make, _ in ESTIMATORS], ids=lambda make: repr(make()))
def test_every_parameter_is_documented_once(make):
    kind = type(make())
    section = inspect.getdoc(kind).split("Parameters\n----------\n")[1].split("\n\nAttributes\n")[0]
    documented = re.findall(r"^(\w[\w, ]*)$", section, re.MULTILINE)
    assert sorted(", ".join(documented).split(", ")) == sorted(kind._get_param_names())
