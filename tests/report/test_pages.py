"""The pages of a report: the claim first, the book that was charged, answers for an auditor."""

import pytest
from _patients import SCHEMA, as_csv, patients

import dpcal
from dpcal import report
from dpcal.report import answers_page, statement_page

TARGET = {"epsilon": 1.0, "delta": 1e-6}


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
    second = dpcal.train(table, schema, target="sick", budget=str(book), epochs=2, **TARGET)
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
