"""``dpcal.train`` does for a table in memory what the command does for a file."""

import json
import math
import re
import tomllib

import polars as pl
import pytest
from _patients import SCHEMA as PUBLIC, patients
from _tree import DATA

import dpcal
from dpcal.errors import BudgetExceeded, UnsupportedEvent

TARGET = {"target": "sick", "epsilon": 1.0, "delta": 1e-6}
SCHEMA = PUBLIC.replace("[18, 95]", '[18, 95]\nmissing = "blank"')


def rows(n=900):
    table = {name: column.tolist() for name, column in patients(n).items()}
    table["age"][5] = None
    return table


@pytest.fixture
def files(tmp_path):
    (tmp_path / "s.toml").write_text(SCHEMA)
    pl.DataFrame(rows()).write_csv(tmp_path / "t.csv")
    return tmp_path


def as_pandas(table):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({**table, "age": [math.nan if x is None else x for x in table["age"]]})


@pytest.mark.slow
@pytest.mark.parametrize("make", [dict, pl.DataFrame, as_pandas])
def test_a_table_in_memory_has_the_bits_of_its_file(cli, files, make):
    words = "--target sick --epsilon 1 --delta 1e-6 --seed 3 -o"
    cli("train", files / "t.csv", "--schema", files / "s.toml", words, files / "cli")
    found = dpcal.train(make(rows()), dpcal.tables.Schema.from_toml(SCHEMA), seed=3, **TARGET)
    told = json.loads((files / "cli" / "report.json").read_text())
    assert found.document["model"] == told["model"]
    assert found.document["runs"] == told["runs"]
    found.save(files / "py")
    assert dpcal.load_model(files / "py").weights.tolist() == found.model.weights.tolist()
    assert (files / "py" / "statement.html").exists()
    assert "all 900" not in cli("verify", files / "py")
    assert "accuracy" in str(found)
    with pytest.raises(ValueError, match="output"):
        found.save(files / "py")


@pytest.mark.slow
def test_a_table_is_trained_on_by_epochs(files):
    # Of a shuffle with so little noise the price takes no second.
    options = {**TARGET, "epsilon": 30.0, "held_out": "none", "seed": 3}
    options["settings"] = {"sampler": "shuffled-epochs", "epochs": 9.5, "batch_size": 36}
    found = dpcal.train(rows(), files / "s.toml", **options)
    plan, query = found.result.plan, found.result.plan.query("gradient")
    assert [each.name for each in plan.queries] == ["gradient"]
    assert (query.sampler, query.epoch) == ("shuffled-epochs", math.ceil(plan.n / 36))
    assert query.count == 10 * query.epoch
    (run,) = found.document["runs"]
    assert run["epsilon"]["upper"] == found.result.epsilon(1e-6).upper <= 30.0


@pytest.mark.slow
def test_runs_on_a_table_in_memory_are_in_the_book(files):
    schema, book = files / "s.toml", files / "b"
    dpcal.train(rows(), schema, budget=book, seed=3, **TARGET)
    with pytest.raises(BudgetExceeded, match="no record was touched"):
        dpcal.train(rows(), schema, budget=str(book), **TARGET)
    with pytest.raises(ValueError, match="records must be those that budget book"):
        dpcal.train(rows(901), schema, budget=book, **TARGET)
    # The norm of rows is a run of its own.
    assert [run.label for run in dpcal.BudgetBook(book).runs] == ["scale", "noisy_gd"]


CALLS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))["calls"]
TABLES = {
    "must hold numbers, texts and": rows(9) | {"age": [[1, 2]] * 9},
    "table must be a data frame": 7,
    "table must hold a column": {},
    "column": {"age": [3]},
}


def test_bad_calls_are_sentences_in_the_words_of_a_call(files):
    calls = [(told, rows(9), options) for told, options in CALLS.items()]
    for told, table, options in [*calls, *((told, each, {}) for told, each in TABLES.items())]:
        with pytest.raises(
            (ValueError, TypeError, UnsupportedEvent), match=re.escape(told)
        ) as caught:
            dpcal.train(table, files / "s.toml", **{**TARGET, **options})
        assert "--" not in str(caught.value), told
