"""Nothing of a record stands in an error, and a report names what it tells of the table."""

import pytest

SCHEMA = """
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
ROWS = ["ann,40,no", "bob,60,yes"] * 40
TRAIN = "train people.csv --schema schema.toml --epsilon 1 --delta 1e-3 --epochs 1 -o report"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return what writes a table, and a schema with a rule for other names."""
    monkeypatch.chdir(tmp_path)

    def write(rows=ROWS, rule=""):
        (tmp_path / "people.csv").write_text("\n".join(["name,age,sick", *rows]) + "\n")
        (tmp_path / "schema.toml").write_text(SCHEMA % rule)

    return write


@pytest.mark.parametrize("row", ["secret-4711,40,no", "ann,secret-4711,no", "ann,40,secret-4711"])
def test_an_error_tells_neither_a_value_nor_a_row(cli, write, tmp_path, row):
    said = set()
    for place in (5, 50):
        write([*ROWS[:place], row, *ROWS[place:]])
        said.add(cli.refused(TRAIN))
    assert len(said) == 1
    assert "secret-4711" not in said.pop()
    assert not (tmp_path / "report").exists()


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("rule", ["", 'unknown = "drop-row"', 'unknown = "blank"'])
def test_numbers_of_rows_are_named_where_values_decide_them(cli, write, rule):
    write(rule=rule)
    told = " ".join(cli.json(TRAIN)["data"]["read_from_data"])
    assert ("data.left_out" in told) == ("drop-row" in rule)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("seed", ["", "--seed 1"])
def test_a_split_by_a_given_seed_is_no_secret_and_says_so(cli, write, seed):
    write()
    outside = cli.json(TRAIN, seed)["privacy"]["not_covered"]
    assert any("decides which records are held out" in each for each in outside) == bool(seed)
