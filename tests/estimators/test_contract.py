"""Every estimator keeps scikit-learn's contract, and dpcal's: nothing but what the ledger holds."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import dpcal
from benchmarks.sklearn_releases import ESTIMATORS
from dpcal import report
from dpcal.accountants import epsilon
from dpcal.errors import BudgetExceeded
from dpcal.estimators import LogisticRegression, StandardScaler
from dpcal.report.saving import document_of
from tests.estimators._models import BASES, BEFORE, MODELS, X, Y, made, takes_more, target_of

MADE = [pytest.param(make, skipped, id=repr(make())) for make, skipped in ESTIMATORS]
ODD = {"check_dtype_object": "a record with a cell that is no number is blank"}
CHECKED = [*MADE, *(pytest.param(lambda each=each: clone(each), ODD) for each in BASES.values())]
PAID = [name for name in (*MODELS, *BEFORE) if "search" not in name]

pytestmark = pytest.mark.filterwarnings("ignore:No category")


@pytest.mark.slow
@pytest.mark.parametrize(("make", "skipped"), CHECKED)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_but_what_is_listed(make, skipped):
    rows = check_estimator(make(), on_fail=None, on_skip=None, expected_failed_checks=skipped)
    failed = {row["check_name"]: row["exception"] for row in rows if row["status"] == "failed"}
    assert failed == {}
    assert len(rows) > 35


@pytest.mark.slow
@pytest.mark.parametrize("name", PAID)
def test_budget_ledger_report_and_pickle_agree_on_one_price_within_the_target(name, tmp_path):
    model = made(name, delta=1e-5)
    with dpcal.budget(epsilon=90.0, delta=1e-5) as shared:
        model.fit(X, target_of(name))
    assert 0.8 * model.epsilon < shared.spent <= model.epsilon
    price = epsilon(model.ledger_.event, delta=1e-5, neighboring_relation="replace-special")
    assert float(model.epsilon_spent_) == float(price) == pytest.approx(shared.spent, rel=1e-9)
    run = model.report_
    parts = run["plan"], run["ledger"], run["privacy"], run["epsilon"]
    told = [model.ledger_.neighboring_relation, model.epsilon_spent_.neighboring_relation]
    told += [part["neighboring_relation"] for part in parts]
    assert {*told} == {"replace-special"}
    assert "is published: the claim is about the content of a record" in str(run["privacy"])

    folder = report.save(tmp_path / "report", model)
    document = report.read(folder)
    rows = report.verify(document)
    assert all(row["holds"] for row in rows)
    assert rows[-1]["recomputed"] == float(price)
    page = (folder / "statement.html").read_text()
    assert type(model).__name__ in page
    assert "one training record" in page
    assert "seed" not in page
    document["everything"]["epsilon"]["upper"] *= 0.9
    assert not report.verify(document)[-1]["holds"]

    found = pickle.loads(pickle.dumps(model))
    ask = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(found, ask)(X), getattr(model, ask)(X))
    assert found.epsilon_spent_.to_dict() == model.epsilon_spent_.to_dict()
    assert found.ledger_ == model.ledger_


@pytest.mark.slow
@pytest.mark.parametrize("name", PAID)
def test_a_spent_budget_refuses_the_next_fit_before_it_reads_a_record(name):
    target, y = made(name).epsilon, target_of(name)
    shared = dpcal.budget(epsilon=1.2 * target, delta=1e-6)
    again = made(name)
    with shared:
        made(name).fit(X, y)
        spent = shared.spent
        with pytest.raises(BudgetExceeded, match=r"the total is"):
            again.fit(X, y)
    assert shared.spent == spent
    assert not hasattr(again, "ledger_")


@pytest.mark.slow
@pytest.mark.parametrize("name", filter(takes_more, PAID))
def test_partial_fits_add_up_until_the_next_fit(name):
    model, y, costs = made(name), target_of(name), []
    for _ in range(3):
        costs.append(float(model.partial_fit(X, y).epsilon_spent_))
    assert costs[0] <= model.epsilon < costs[1] < costs[2] < 3 * model.epsilon
    assert all(row["holds"] for row in report.verify(document_of(model)))
    assert model.fit(X, y).epsilon_spent_ <= model.epsilon


@pytest.mark.parametrize(("make", "skipped"), MADE)
def test_every_parameter_is_documented_once(make, skipped):
    kind = type(make())
    section = inspect.getdoc(kind).split("Parameters\n----------\n")[1].split("\n\nAttributes\n")[0]
    documented = re.findall(r"^(\w[\w, ]*)$", section, re.MULTILINE)
    assert sorted(", ".join(documented).split(", ")) == sorted(kind._get_param_names())


def test_there_is_no_random_state():
    for kind in (StandardScaler, LogisticRegression):
        with pytest.raises(TypeError, match="random_state"):
            kind(random_state=0)


# -- noise of both kinds

# What a fit releases, up to its noise.
NUMBERS = (
    *("coef_", "mean_", "scale_", "quantiles_"),
    *("components_", "cluster_centers_", "statistics_"),
)


@pytest.mark.parametrize("name", [name for name in PAID if "learned" not in name])
def test_fits_with_next_to_no_noise_cost_and_tell_the_same(name):
    rng = np.random.default_rng(0)
    rows, y = rng.uniform(-1, 1, (400, 3)), target_of(name)
    if y is Y:
        # Classes that overlap: others have an optimum at infinity, where noise has no scale.
        y = (rows[:, 0] + rng.uniform(-1, 1, 400) > 0).astype(int)
    much = {"epsilon": 1e5, "delta": 1e-6}
    if getattr(made(name), "bounds", None) is not None:
        much["bounds"] = (-1, 1)
    one, other = (made(name, **much).fit(rows, y) for _ in range(2))
    plans = [each.report_["plan"] for each in (one, other)]
    # A clip may follow from a scale that was released before.
    clips = [[query.pop("max_norm") for query in plan["queries"]] for plan in plans]
    assert clips[0] == pytest.approx(clips[1], rel=1e-3)
    assert plans[0] == plans[1]
    assert one.epsilon_spent_ == other.epsilon_spent_
    assert one.report_["privacy"]["noise"] == "discrete"
    for number in NUMBERS:
        if number in vars(one):
            np.testing.assert_allclose(vars(one)[number], vars(other)[number], atol=0.02)
