"""A schema may ask that `dpcal train` counts odd records as blank, and tells nobody."""

import json

import numpy as np
import pytest

from dpcal.cli import main

SCHEMA = """
[columns.age]
type = "number"
range = [0, 100]
missing = "blank"
[columns.city]
type = "category"
categories = ["Bonn", "Ulm"]
missing = "blank"
unknown = "blank"
[columns.size]
type = "category"
categories = ["S", "M", "L"]
coding = "ordinal"
missing = "blank"
unknown = "blank"
[columns.sick]
type = "class"
classes = ["no", "yes"]
missing = "blank"
unknown = "blank"
"""
USUAL = {"age": "40", "city": "Bonn", "size": "M", "sick": "no"}
ODD = [
    {"age": "secret"},
    {"age": ""},
    {"age": "inf"},
    {"age": "1e999"},
    {"city": "Secretville"},
    {"city": ""},
    {"size": "XXL"},
    {"size": ""},
    {"sick": "perhaps"},
    {"sick": ""},
]


def table(odd=None, number=400):
    rng = np.random.default_rng(0)
    lines = [",".join(USUAL)]
    for row in range(number):
        age = rng.integers(0, 100)
        sick = "yes" if age + rng.normal(0, 10) > 50 else "no"
        record = {"age": str(age), "city": "Ulm", "size": "L", "sick": sick}
        if row == 7:
            record = {**USUAL, **(odd or {})}
        lines.append(",".join(record.values()))
    return "\n".join(lines) + "\n"


def trained(folder, odd, capsys, *words):
    """Return the report of a training, and what was printed."""
    (folder / "t.csv").write_text(table(odd))
    (folder / "schema.toml").write_text(SCHEMA)
    asked = ["train", "t.csv", "--schema", "schema.toml", "--target", "sick", "--epsilon", "5"]
    capsys.readouterr()
    assert main([*asked, "--delta", "1e-5", "--force", "--seed", "3", *words]) == 0
    printed = capsys.readouterr()
    return json.loads((folder / "dpcal-report" / "report.json").read_text()), printed


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--held-out", "unprotected", "--test-fraction", "0.5"),
        ("--features", "splines"),
        ("--features", "random"),
    ],
)
def test_one_record_does_not_end_a_training(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    usual, _ = trained(tmp_path, None, capsys, *words)
    sizes = {"rows", "left_out", "features"}
    for odd in ODD:
        report, printed = trained(tmp_path, odd, capsys, *words)
        assert report.keys() == usual.keys()
        assert {key: report["data"][key] for key in sizes} == {
            key: usual["data"][key] for key in sizes
        }
        assert report["data"]["left_out"] == 0
        assert report["model"]["weights"].keys() == usual["model"]["weights"].keys()
        assert all(np.isfinite(list(report["model"]["weights"].values())))
        for text in (printed.out, printed.err, json.dumps(report)):
            assert "secret" not in text.lower()
            assert "perhaps" not in text
            assert "blank" not in printed.err


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("problem", ["fair", "auc"])
def test_one_record_does_not_end_a_minimax_training(tmp_path, monkeypatch, capsys, problem):
    monkeypatch.chdir(tmp_path)
    words = ["--optimizer", "dp_sgda", "--problem", problem]
    words += ["--group", "city"] if problem == "fair" else []
    for odd in (None, {"age": "secret"}, {"sick": "perhaps"}, {"city": "Secretville"}):
        report, _ = trained(tmp_path, odd, capsys, *words)
        assert report["data"]["left_out"] == 0


@pytest.mark.usefixtures("without_pictures")
def test_a_number_is_blank_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for cell in ("40", "", "secret"):
        (tmp_path / "t.csv").write_text(table({"age": cell}))
        dropped = SCHEMA.split("[columns.sick]")[0] + '[columns.sick]\ntype = "drop"\n'
        (tmp_path / "schema.toml").write_text(dropped)
        asked = [
            "train",
            "t.csv",
            "--schema",
            "schema.toml",
            "--target",
            "age",
            "--loss",
            "squared",
        ]
        assert main([*asked, "--epsilon", "5", "--delta", "1e-5", "--force"]) == 0
        assert "secret" not in "".join(capsys.readouterr())
