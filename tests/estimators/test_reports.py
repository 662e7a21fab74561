"""A fitted estimator is reported, stated and verified as a run of an optimizer is."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler as ExactScaler

from dpcal import report
from dpcal.accountants import epsilon, events
from dpcal.errors import UnsupportedEvent
from dpcal.estimators import LogisticRegression, PrivateSearch, split_budget
from tests.estimators._models import made

X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
Y = (X[:, 0] > 0).astype(int)


def pipeline(exact):
    columns = ColumnTransformer(
        [
            ("scaled", made("scaler", bounds=(-1, 1), epsilon=1.0), [0]),
            ("kept", made("imputer", strategy="constant"), [1]),
            ("gone", "drop", [2]),
        ]
    )
    return make_pipeline(columns, exact, LogisticRegression(classes=[0, 1], steps=5, epsilon=2.0))


def test_a_report_of_a_pipeline_composes_its_steps_and_lists_them(cli, tmp_path):
    model = split_budget(pipeline(FunctionTransformer()), epsilon=2.0, delta=1e-6).fit(X, Y)
    folder = report.save(tmp_path / "report", model)
    assert cli("verify", folder)
    told = report.read(folder)
    kinds = {step["name"]: step["is"] for step in told["steps"]}
    private = "private, with a budget of its own"
    assert kinds == {
        "columntransformer__scaled": private,
        "columntransformer__kept": "learns nothing",
        "columntransformer__gone": "learns nothing",
        "functiontransformer": "learns nothing",
        "logisticregression": private,
    }
    parts = model[0].transformers_[0][1], model[-1]
    spent = [step["epsilon"] for step in told["steps"] if "epsilon" in step]
    assert spent == [part.epsilon_spent_.upper for part in parts]
    everything = told["everything"]
    assert everything["delta"] == pytest.approx(1e-6)
    assert 1.99 < everything["epsilon"]["upper"] <= 2.0 * (1 + 1e-6)
    whole = events.ComposedDpEvent([part.ledger_.event for part in parts])
    exact = epsilon(whole, delta=everything["delta"], neighboring_relation="replace-special")
    assert everything["epsilon"]["upper"] == pytest.approx(exact.upper, rel=1e-9)
    for part in parts:
        assert f"{type(part).__name__} releases" in told["privacy"]["mechanism"]
    page = (folder / "statement.html").read_text()
    assert "columntransformer__kept (SimpleImputer): learns nothing" in page


def test_a_step_that_is_not_private_is_named_where_the_claim_is(tmp_path):
    frozen = FrozenEstimator(ExactScaler().fit(X[:, :2]))
    for exact, words in (ExactScaler(), "is not private"), (frozen, "was fitted elsewhere"):
        model = pipeline(exact).fit(X, Y)
        told = report.read(report.save(tmp_path / "report", model, force=True))
        (sentence,) = [each for each in told["privacy"]["not_covered"] if words in each]
        assert type(exact).__name__.lower() in sentence
        learned = "if what 'standardscaler' learned is public" in told["privacy"]["unit"]
        assert learned == (exact is not frozen)
    lone = report.read(report.save(tmp_path / "alone", model[-1]))
    assert any("before the estimator" in each for each in lone["privacy"]["not_covered"])
    assert "steps" not in lone


def test_a_report_is_about_the_fit_and_not_about_parameters_set_later(tmp_path):
    encoder = made("encoder").fit(Y[:, np.newaxis])
    model = make_pipeline(encoder.set_params(categories=[[0, 1]]))
    assert report.read(report.save(tmp_path / "report", model))["steps"][0]["epsilon"] > 0


ONE = LogisticRegression(classes=[0, 1], steps=5, epsilon=9.0)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (make_pipeline(ExactScaler()).fit(X), ValueError, "private and learned, got Pipeline"),
        (ExactScaler().fit(X), ValueError, "private and learned, got StandardScaler"),
        (made("encoder", categories=[[0]] * 3).fit(X), ValueError, "got OneHotEncoder without"),
        (OneVsRestClassifier(ONE).fit(X, Y), ValueError, "fit each private step"),
        (PrivateSearch(ONE, {"steps": [5]}).fit(X, Y).best_estimator_, UnsupportedEvent, "search"),
        (made("scaler"), NotFittedError, "not fitted"),
        ("model", TypeError, "result must be that of an optimizer, .* got str"),
    ],
)
def test_what_has_no_private_part_or_no_plan_has_no_report(model, error, words, tmp_path):
    with pytest.raises(error, match=words):
        report.save(tmp_path / "report", model)
    assert not list(tmp_path.iterdir())
