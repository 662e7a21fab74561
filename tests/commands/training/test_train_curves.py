"""A schema codes numbers as curves: the model predicts, is drawn, and costs the same."""

import json

import numpy as np
import polars as pl
import pytest
from _tree import DATA
from sklearn.metrics import roc_auc_score

import dpcal
from dpcal.tables import Coding, Column, Records, Schema, Source

SCHEMA = (DATA / "curves.toml").read_text(encoding="utf-8")
FEATURES = ("bins", "splines", "random")
TARGET = "--epsilon 1 --delta 1e-6"


def rows(n=5_000, seed=0):
    """Return people of whom the young and the old are sick, and a line tells little."""
    rng = np.random.default_rng(seed)
    age, salt = rng.uniform(0, 100, n), rng.uniform(-1, 1, n)
    score = np.abs(age - 50) / 8 - 3 + salt
    sick = np.where(score + rng.logistic(size=n) > 0, "yes", "no")
    return pl.DataFrame(
        {"age": age, "salt $": salt, "sex": rng.choice(["f", "m"], n), "sick": sick}
    )


@pytest.fixture(scope="module")
def folder(cli, tmp_path_factory):
    """The folder of a table, of new rows, and of a report for each kind of features."""
    folder = tmp_path_factory.mktemp("curves")
    rows().write_csv(folder / "t.csv")
    rows(seed=1).drop("sick").write_csv(folder / "new.csv")
    for features in ("linear", *FEATURES):
        coding = "" if features == "linear" else f'coding = "{features}"\n'
        schema = folder / f"{features}.toml"
        schema.write_text(SCHEMA.replace("range =", f"{coding}range ="))
        asked = ["train", folder / "t.csv", "--seed 5", TARGET, "--schema", schema]
        cli(*asked, "-o", folder / features)
    return folder


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


@pytest.mark.slow
def test_curves_are_found_and_predicted_where_a_line_finds_nothing(cli, folder):
    truth = (rows(seed=1)["sick"] == "yes").to_numpy()
    found = {}
    for features in ("linear", *FEATURES):
        lines = cli("predict", folder / features, folder / "new.csv").splitlines()[1:]
        found[features] = roc_auc_score(truth, [float(line.split(",")[1]) for line in lines])
    assert found.pop("linear") < 0.7
    assert min(found.values()) > 0.85, found


@pytest.mark.slow
def test_the_price_and_the_split_are_those_of_a_line(cli, folder):
    line = report_of(folder / "linear")
    for features in FEATURES:
        report = report_of(folder / features)
        # Steps follow from the number of columns, and the price is the target's in any case.
        price, least = (each["everything"]["epsilon"]["upper"] for each in (report, line))
        assert 1 - 1e-6 < price <= 1
        assert price == pytest.approx(least, rel=1e-6)
        assert report["data"]["training_records"] == line["data"]["training_records"]
        kinds = report["data"]["scaling"]["schema"]["columns"]
        assert kinds["age"]["coding"] == features
        assert "coding" not in kinds["sex"]
        assert cli("verify", folder / features)


def test_values_in_one_bin_have_coins_of_their_own():
    columns = [Column(name="age", type="number", range=(0, 100), coding="bins")]
    schema = Schema(columns=(*columns, Column(name="sick", type="number")))
    source = Source(rows().select("age", "sick"))
    found = Records(source, schema, target="sick", key=b"a key", held_out=0.2, told=False)
    # 5,000 coins of chance 1/5: six standard deviations are 170.
    assert abs(len(found.y_test) - 1000) < 170


@pytest.mark.slow
def test_what_each_column_adds_is_drawn_and_adds_up_to_the_score(folder):
    for features in ("bins", "splines"):
        model = dpcal.load_model(folder / features)
        curves = model.curves(points=3)
        assert list(curves) == ["age", "salt $"]
        values, added = curves["age"]
        assert values.tolist() == [0.0, 50.0, 100.0]
        scores = model.decision({"age": values, "salt $": np.zeros(3), "sex": ["f"] * 3})
        np.testing.assert_allclose(np.diff(scores), np.diff(added), rtol=1e-9)
        assert added[1] < 0 < min(added[0], added[2])
        assert "What each column adds" in (folder / features / "statement.html").read_text()
        assert (folder / features / "what-each-column-adds.svg").read_text().startswith("<?xml")
    for features in ("linear", "random"):
        assert dpcal.load_model(folder / features).curves() == {}
        assert not (folder / features / "what-each-column-adds.svg").exists()


def test_a_schema_may_say_it_of_one_column_and_is_checked():
    schema = Schema.from_toml(SCHEMA.replace("range = [0, 100]", 'range=[0, 100]\ncoding="bins"'))
    found = dpcal.train(rows(600), schema, epsilon=1.0, delta=1e-6, held_out="none")
    assert len(found.model.weights) == 16 + 1 + 2
    assert Schema.from_toml(schema.to_toml()) == schema
    with pytest.raises(ValueError, match=r"coding must be .* number with a range, got 'bins'"):
        Column(name="age", type="number", coding="bins")
    with pytest.raises(ValueError, match="got 'splines'"):
        Column(name="sex", type="category", categories=("f", "m"), coding="splines")
    twice = [("age", "bins"), ("age bins 3", "one-hot")]
    with pytest.raises(ValueError, match="got 'age bins 3' of two columns"):
        Coding([Column(name=n, type="number", range=(0, 1), coding=c) for n, c in twice])
