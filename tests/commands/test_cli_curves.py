"""``dpcal train --features``: a model of curves, which predicts, is drawn, and costs the same."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import dpcal
from dpcal.cli import main
from dpcal.tables import Coding, Column, Schema

SCHEMA = """
target = "sick"
[columns.age]
type = "number"
range = [0, 100]
[columns."salt $"]
type = "number"
range = [-1, 1]
[columns.sex]
type = "category"
categories = ["f", "m"]
[columns.sick]
type = "class"
classes = ["no", "yes"]
"""
FEATURES = ("bins", "splines", "random")


def rows(n=5_000, seed=0):
    """Return people of whom the young and the old are sick, and a line tells little."""
    rng = np.random.default_rng(seed)
    age, salt = rng.uniform(0, 100, n), rng.uniform(-1, 1, n)
    score = np.abs(age - 50) / 8 - 3 + salt
    return pl.DataFrame(
        {
            "age": age,
            "salt $": salt,
            "sex": rng.choice(["f", "m"], n),
            "sick": np.where(score + rng.logistic(size=n) > 0, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a table, of new rows, and of a report for each kind of features."""
    folder = tmp_path_factory.mktemp("curves")
    rows().write_csv(folder / "t.csv")
    rows(seed=1).drop("sick").write_csv(folder / "new.csv")
    (folder / "s.toml").write_text(SCHEMA)
    for features in ("linear", *FEATURES):
        assert main([*asked(folder), "--features", features, "-o", str(folder / features)]) == 0
    return folder


def asked(folder):
    words = ["train", str(folder / "t.csv"), "--schema", str(folder / "s.toml"), "--seed", "5"]
    return [*words, "--epsilon", "1", "--delta", "1e-6"]


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def shares(folder, features, capsys):
    capsys.readouterr()
    assert main(["predict", str(folder / features), str(folder / "new.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    return np.array([float(line.split(",")[1]) for line in lines])


def test_curves_are_found_and_predicted_where_a_line_finds_nothing(folder, capsys):
    truth = (rows(seed=1)["sick"] == "yes").to_numpy()
    assert roc_auc_score(truth, shares(folder, "linear", capsys)) < 0.7
    for features in FEATURES:
        assert roc_auc_score(truth, shares(folder, features, capsys)) > 0.85, features


def test_the_price_and_the_split_are_those_of_a_line(folder, capsys):
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
        assert main(["verify", str(folder / features)]) == 0
    capsys.readouterr()


def test_values_in_one_bin_have_coins_of_their_own(tmp_path, capsys):
    rows().select("age", "sick").write_csv(tmp_path / "t.csv")
    words = [*asked(tmp_path)[:2], "--target", "sick", "--epsilon", "1", "--delta", "1e-6"]
    words += ["--bounds", "0:100", "--features", "bins", "-o", str(tmp_path / "r")]
    assert main(words) == 0
    capsys.readouterr()
    # 5,000 coins of chance 1/5: six standard deviations are 170.
    assert abs(report_of(tmp_path / "r")["data"]["held_out_records"] - 1000) < 170


def test_what_each_column_adds_is_drawn_and_adds_up_to_the_score(folder):
    for features in ("bins", "splines"):
        model = dpcal.load_model(folder / features)
        curves = model.curves(points=3)
        assert list(curves) == ["age", "salt $"]
        values, added = curves["age"]
        assert values.tolist() == [0.0, 50.0, 100.0]
        table = {"age": values, "salt $": np.zeros(3), "sex": ["f"] * 3}
        scores = model.decision(table)
        np.testing.assert_allclose(np.diff(scores), np.diff(added), rtol=1e-9)
        assert added[1] < 0 < min(added[0], added[2])
        assert "What each column adds" in (folder / features / "statement.html").read_text()
        assert (folder / features / "what-each-column-adds.svg").read_text().startswith("<?xml")
    for features in ("linear", "random"):
        assert dpcal.load_model(folder / features).curves() == {}
        assert not (folder / features / "what-each-column-adds.svg").exists()


def test_features_of_a_row_are_no_longer_than_the_coding_says():
    columns = [Column(name=f"x{i}", type="number", range=(0, 1)) for i in range(3)]
    table = {f"x{i}": np.random.default_rng(i).uniform(-1, 2, 200) for i in range(3)}
    for features in FEATURES:
        made = [
            Column(name=each.name, type="number", range=(0, 1), coding=features) for each in columns
        ]
        coding = Coding([*made[:2], columns[2]])
        squares = (coding.numbers(table) ** 2).sum(axis=1)
        assert 16 < squares.max() <= coding.square_bound * (1 + 1e-12)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--features", "curves"], "invalid choice: 'curves'"),
        (["--features", "bins"], "a public range of every number, column 'age' has none"),
    ],
)
def test_wrong_features_are_refused_and_nothing_is_written(folder, tmp_path, capsys, words, said):
    frame = rows(20).drop("sex")
    frame.write_csv(tmp_path / "t.csv")
    asked = ["train", str(tmp_path / "t.csv"), "--target", "sick", "--epsilon", "1"]
    asked += ["--delta", "1e-6", "-o", str(tmp_path / "r"), *words]
    try:
        status = main(asked)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_schema_may_say_it_of_one_column_and_is_checked(folder):
    schema = Schema.from_toml(SCHEMA.replace("range = [0, 100]", 'range=[0, 100]\ncoding="bins"'))
    found = dpcal.train(rows(600), schema, epsilon=1.0, delta=1e-6, held_out="none")
    assert len(found.model.weights) == 16 + 1 + 2
    assert Schema.from_toml(schema.to_toml()) == schema
    with pytest.raises(
        ValueError, match=r"'age': coding must be .* number with a range, got 'bins'"
    ):
        Column(name="age", type="number", coding="bins")
    with pytest.raises(ValueError, match="got 'splines'"):
        Column(name="sex", type="category", categories=("f", "m"), coding="splines")
    twice = [
        Column(name="age", type="number", range=(0, 1), coding="bins"),
        Column(name="age bins 3", type="number", range=(0, 1)),
    ]
    with pytest.raises(ValueError, match="got 'age bins 3' of two columns"):
        Coding(twice)
