"""What is made of a report: a policy's verdict, an entry of a registry, and pages."""

import json
import tomllib

import numpy as np
import pytest
from _patients import SCHEMA, as_csv, patients
from _tree import DATA

import dpcal
from dpcal import report
from dpcal.report import answers_page, statement_page

TARGET = {"epsilon": 1.0, "delta": 1e-6}
KEPT = (DATA / "policy.toml").read_text(encoding="utf-8")
REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))
LIMITS = REFUSALS["limits"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    table = {"age": np.random.default_rng(0).uniform(20, 80, 2000)}
    table["who"] = [f"p{i // 2}" for i in range(2000)]
    columns = {"age": {"type": "number", "range": [0, 100]}, "who": {"type": "person"}}
    schema = {"group_size": 2, "columns": columns}
    found = dpcal.release(table, schema, ["mean age"], epsilon=1.0, delta=1e-6)
    return found.save(tmp_path_factory.mktemp("clinic") / "report")


@pytest.fixture
def too_small(folder, tmp_path):
    """A report that claims less than its ledger proves."""
    document = report.read(folder) | {"files": {}}
    document["everything"]["epsilon"]["upper"] = 0.1
    (tmp_path / "false").mkdir()
    (tmp_path / "false" / "report.json").write_text(json.dumps(document))
    return tmp_path / "false"


# -- limits of an organisation, held against claims that were computed again


@pytest.fixture
def verify(cli, folder, tmp_path):
    """Return what writes a policy, and returns the words that verify reports by it."""

    def words(text, *reports):
        (tmp_path / "clinic.toml").write_text(text)
        return ["verify", *(reports or [folder]), "--policy", tmp_path / "clinic.toml"]

    return words


def test_a_report_that_keeps_every_limit(cli, verify):
    assert "clinic.toml: kept" in cli(*verify(KEPT))


@pytest.mark.parametrize("line", range(2, 2 + len(LIMITS)))
def test_each_limit_fails_alone(cli, verify, line):
    lines = KEPT.splitlines()
    lines[line - 1] = LIMITS[line - 2]
    text = cli(*verify("\n".join(lines)), status=1)
    assert f"clinic.toml: {LIMITS[line - 2].split(' =')[0]} = " in text
    assert text.count("clinic.toml: ") == 1


def test_a_number_of_records_is_told_whole():
    (told,) = report.Policy({"min_records": 2_000_000}).violations({"min_records": 1_234_567})
    assert told.endswith("but the number of records is 1234567.")


def test_the_limit_is_held_against_what_is_proved_and_not_against_the_claim(cli, verify, too_small):
    """A claim below what the ledger proves, and a ledger that was replaced, help nobody."""
    document = report.read(too_small)
    rows = report.verify(document)
    facts = report.facts_of([document], rows[-1]["recomputed"], rows[-1]["delta"])
    assert report.Policy({"max_epsilon": 0.5}).violations(facts)
    assert cli(*verify("max_epsilon = 2", too_small), status=1)


def test_reports_are_held_to_their_composition(cli, verify, folder):
    text = cli(*verify("max_epsilon = 1", folder, folder), status=1)
    assert "clinic.toml: max_epsilon = 1, but epsilon is 2." in text
    assert cli(*verify("max_epsilon = 2", folder, folder))


def test_a_policy_that_is_none_is_refused(cli, verify, folder):
    for text, words in REFUSALS["policies"].items():
        assert words in cli.refused(*verify(text)), text
    missing = cli.refused("verify", folder, "--policy none.toml")
    assert "policy must be a readable file" in missing


# -- pages


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Reports of a release and of a model that one book was charged with, one after the other."""
    folder = tmp_path_factory.mktemp("clinic")
    schema = dpcal.tables.Schema.from_toml(SCHEMA)
    table, book = folder / "people.csv", folder / "clinic.budget"
    table.write_text(as_csv(patients()))
    total = {"epsilon": 3.0, "delta": 1e-6, "neighboring_relation": "replace-special"}
    dpcal.BudgetBook(book, records=table, **total)
    first = dpcal.release(table, schema, ["mean age"], budget=book, **TARGET)
    second = dpcal.train(
        table, schema, target="sick", budget=str(book), settings={"epochs": 2}, **TARGET
    )
    second.save(folder / "model")
    return first.save(folder / "release"), folder / "model"


def test_the_statement_names_the_run_of_the_book_and_what_all_spent(folders):
    # Of a training, the first run in the book is about the norm of rows.
    for number, folder in zip((1, 3), folders, strict=True):
        budget = report.read(folder)["budget"]
        assert (budget["run"], budget["name"], budget["epsilon"]) == (number, "clinic.budget", 3.0)
        page = (folder / "statement.html").read_text()
        assert f"run {number} of clinic.budget" in page
        # The claim, its numbers and scores come first, what is behind them on pages of their own.
        first, details = page.split('<div class="details">')
        assert "differentially private" in first
        assert "run " in first
        assert "What is not covered" in details
        assert "None" not in page
    assert budget["spent"] > 1.3


def test_the_answers_say_what_is_known_and_mark_the_rest(cli, folders):
    for folder in folders:
        page = (folder / "sp800-226.html").read_text()
        document = report.read(folder)
        told = [document["privacy"]["unit"], "budget book clinic.budget", "blanked"]
        for words in (*told, "How were the records collected", "not known to dpcal"):
            assert words in page, words
        assert "None" not in page
        assert "http" not in page
    assert cli("verify", *folders)


def test_numbers_on_the_pages_are_rounded_up(folders):
    document = report.read(folders[0])
    document["everything"]["epsilon"]["upper"] = document["runs"][0]["epsilon"]["upper"] = 1.0000001
    assert "1.00001" in answers_page(document)
    assert "1.00001" in statement_page(document, pictures={})
    document["data"] = {"name": "<b>", "read_from_data": []}
    document.pop("budget")
    page = answers_page(document)
    assert "&lt;b&gt;" in page
    assert "1/n" not in page
