"""Nothing of a record stands in an error, and a report names what it tells of the table."""

import pytest
from _patients import SCHEMA, as_csv, patients

HEAD, *ROWS = as_csv(patients(80)).splitlines()
TRAIN = (
    "train people.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-3 --set epochs=1"
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return what writes a table, and a schema with a rule for other clinics."""
    monkeypatch.chdir(tmp_path)

    def write(rows=ROWS, rule=""):
        (tmp_path / "people.csv").write_text("\n".join([HEAD, *rows]) + "\n")
        (tmp_path / "schema.toml").write_text(SCHEMA.replace('west"]', f'west"]\n{rule}'))

    return write


@pytest.mark.parametrize(
    "row", ["4711s,0,west,no", "40,4711s,west,no", "40,0,4711s,no", "40,0,west,4711s"]
)
def test_an_error_tells_neither_a_value_nor_a_row(cli, write, tmp_path, row):
    said = set()
    for place in (5, 50):
        write([*ROWS[:place], row, *ROWS[place:]])
        said.add(cli.refused(TRAIN))
    assert len(said) == 1
    assert "4711s" not in said.pop()
    assert not (tmp_path / "dpcal-report").exists()


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
