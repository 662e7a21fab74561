"""A fitted estimator is reported, stated and verified as a run of an optimizer is."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dpcal import report
from dpcal.cli import main
from dpcal.errors import UnsupportedEvent
from dpcal.estimators import KMeans, LogisticRegression, PrivateSearch, Ridge, StandardScaler

X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
Y = (X[:, 0] > 0).astype(int)
MODELS = {
    "scaler": lambda: StandardScaler(bounds=(-1, 1)).fit(X),
    "clusters": lambda: KMeans(3, bounds=(-1, 1)).fit(X),
    "ridge": lambda: Ridge(bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, X[:, 0]),
    "classes learned": lambda: LogisticRegression(epsilon=9.0, steps=5).fit(X, Y),
    "bounds learned": lambda: StandardScaler(bounds="learn", epsilon=40.0).fit(X),
    "fitted on": lambda: LogisticRegression(classes=[0, 1], steps=5).fit(X, Y).partial_fit(X, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_estimator_has_a_report_that_verifies(name, tmp_path, capsys):
    model = MODELS[name]()
    folder = report.save(tmp_path / "report", model)
    assert main(["verify", str(folder), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["claims"]
    assert rows[-1]["recomputed"] == float(model.epsilon_spent_)
    page = (folder / "statement.html").read_text()
    assert type(model).__name__ in page
    assert "one training record" in page
    assert "seed" not in page
    told = report.read(folder)
    told["everything"]["epsilon"]["upper"] *= 0.9
    assert not all(row["holds"] for row in report.verify(told))


def test_what_has_no_plan_has_no_report(tmp_path):
    with pytest.raises(NotFittedError):
        report.save(tmp_path / "report", StandardScaler(bounds=(-1, 1)))
    model = LogisticRegression(classes=[0, 1], epsilon=9.0)
    best = PrivateSearch(model, {"steps": [5, 10]}).fit(X, Y).best_estimator_
    with pytest.raises(UnsupportedEvent, match="the price of a search is not"):
        report.save(tmp_path / "report", best)
    assert not list(tmp_path.iterdir())
