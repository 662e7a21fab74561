"""Nothing of a record stands in an error, and a report names what it tells of the table."""

import json

import pytest

from dpcal.cli import main

TOML = """
target = "sick"
[columns.name]
type = "category"
categories = ["ann", "bob"]
%s
[columns.age]
type = "number"
range = [0, 100]
[columns.sick]
type = "class"
classes = ["no", "yes"]
"""
ROWS = [("ann", 40, "no"), ("bob", 60, "yes")] * 40
ASKED = ["--epsilon", "1", "--delta", "1e-3", "--epochs", "1", "--json"]


def train(tmp_path, rows, rule="", *words):
    lines = ["name,age,sick", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "schema.toml").write_text(TOML % rule)
    asked = ["train", "people.csv", "--schema", "schema.toml", *ASKED, "-o", "report", *words]
    return main(asked)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "row", [("secret-4711", 40, "no"), ("ann", "secret-4711", "no"), ("ann", 40, "secret-4711")]
)
def test_an_error_tells_neither_a_value_nor_a_row(tmp_path, capsys, row):
    said = set()
    for place in (5, 50):
        assert train(tmp_path, [*ROWS[:place], row, *ROWS[place:]]) == 2
        said.add(capsys.readouterr().err)
    assert len(said) == 1
    assert "secret-4711" not in said.pop()
    assert not (tmp_path / "report").exists()


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("rule", ["", 'unknown = "drop-row"', 'unknown = "blank"'])
def test_numbers_of_rows_are_named_where_values_decide_them(tmp_path, capsys, rule):
    assert train(tmp_path, ROWS, rule) == 0
    told = " ".join(json.loads(capsys.readouterr().out)["data"]["read_from_data"])
    assert ("data.left_out" in told) == ("drop-row" in rule)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("words", [[], ["--seed", "1"]])
def test_a_split_by_a_given_seed_is_no_secret_and_says_so(tmp_path, capsys, words):
    assert train(tmp_path, ROWS, "", *words) == 0
    outside = json.loads(capsys.readouterr().out)["privacy"]["not_covered"]
    assert any("decides which records are held out" in each for each in outside) == bool(words)
