"""``dpcal budget`` and ``dpcal train --budget``: one total for all runs about a table."""

import json
import re

import numpy as np
import pytest
from _tree import ROOT

from dpcal import optim
from dpcal.calibrate import Plan, Query
from dpcal.cli import main
from dpcal.optim import BudgetBook, Squared

pytestmark = pytest.mark.usefixtures("without_pictures")

TARGET = ["--epsilon", "1", "--delta", "1e-5"]


@pytest.fixture
def table(tmp_path):
    """A table of 100 rows, two features, two classes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (100, 2))
    labels = np.where(X[:, 0] > X[:, 1], "yes", "no")
    rows = [f"{a!r},{b!r},{label}" for (a, b), label in zip(X.tolist(), labels, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,b,answer", *rows]) + "\n")
    return path


def train(table, *words):
    """Train, and return the exit status."""
    asked = ["train", "--csv", table, "--target", "answer", "--bounds", "0:10", "--epochs", "3"]
    return main([str(word) for word in [*asked, *words]])


@pytest.mark.slow
def test_runs_are_charged_and_one_that_does_not_fit_leaves_nothing(capsys, table, tmp_path):
    book, first, second = (tmp_path / name for name in ("clinic.budget", "first", "second"))
    assert train(table, *TARGET, "--budget", book, "-o", first) == 0
    assert "new budget book" in capsys.readouterr().err
    before = sorted(path.name for path in tmp_path.iterdir())
    assert train(table, *TARGET, "--budget", book, "-o", second) == 2
    assert "the total is 1; no record was touched" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    change = ["--change-total", "--epsilon", "2", "--json"]
    assert main(["budget", str(book), *change]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["total"] == {"epsilon": 2.0, "delta": 1e-5}
    assert told["spent"]["upper"] <= 1.0 < told["spent"]["upper"] + told["left"] + 1
    assert [run["charged"] for run in told["runs"]] == [True]
    assert train(table, *TARGET, "--budget", book, "-o", second) == 0
    assert main(["budget", str(book)]) == 0
    text = capsys.readouterr().out
    assert "by 2 runs" in text
    assert "table.csv" in text


@pytest.mark.slow
def test_the_book_of_the_page_on_security_pays_for_training(capsys, table, tmp_path, monkeypatch):
    """A run that does not fit leaves it as it was; one under another relation is told the way."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(optim\.BudgetBook\(.*?\))`", page)
    book = eval(line, {"optim": optim})
    asked = ["--delta", "1e-7", "--budget", book.path]
    assert train(table, "--epsilon", "30", *asked, "-o", "first") == 2
    assert "no record was touched" in capsys.readouterr().err
    assert (book.records, book.runs, book.neighboring_relation) == ((), (), None)
    assert train(table, "--epsilon", "0.5", *asked, "-o", "second") == 0
    assert [name for name, _ in book.records] == ["table.csv"]
    assert book.neighboring_relation == "replace-special"
    other = ["--neighboring-relation", "replace-one"]
    assert train(table, "--epsilon", "0.5", *asked, *other, "-o", "third") == 2
    assert "--neighboring-relation replace-special" in capsys.readouterr().err


def test_another_table_is_refused_before_it_is_read(capsys, table, tmp_path):
    book = tmp_path / "clinic.budget"
    BudgetBook(book, epsilon=9.0, delta=1e-5, records=table)
    other = tmp_path / "other.csv"
    other.write_text("not a table at all")
    assert train(other, *TARGET, "--budget", book, "-o", tmp_path / "report") == 2
    assert "records must be those" in capsys.readouterr().err
    assert main(["budget", str(book), "--add-records", str(other)]) == 0
    assert BudgetBook(book).runs == ()
    assert not (tmp_path / "report").exists()


def test_a_seed_serves_once(capsys, table, tmp_path):
    book = tmp_path / "clinic.budget"
    assert main(["budget", str(book), "--epsilon", "9", "--delta", "1e-5"]) == 0
    words = ["--budget", book, "--delta", "1e-5", "--seed", "4"]
    assert train(table, *words, "--epsilon", "1", "-o", tmp_path / "a") == 0
    assert train(table, *words, "--epsilon", "2", "-o", tmp_path / "b") == 2
    assert "has seen this seed" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_was_killed_is_told_by_the_next_command(capsys, table, tmp_path):
    path = tmp_path / "clinic.budget"
    book = BudgetBook(path, epsilon=9.0, delta=1e-5, neighboring_relation="replace-special")
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="full",
        max_norm=1.0,
        noise_multiplier=9.0,
        count=1,
    )
    plan = Plan(
        optimizer="noisy_gd",
        n=100,
        queries=(query,),
        epsilon=1.0,
        delta=1e-5,
        neighboring_relation="replace-special",
    )
    objective = Squared(np.ones((100, 1)), np.ones(100))
    oracle = book.oracle(objective, plan, seed=1)  # no end: as after SIGKILL
    oracle.gradient(np.zeros(objective.dimension), "gradient")
    sentence = "run 1 (noisy_gd, since "
    assert main(["budget", str(path)]) == 0
    assert "was killed: it is charged as planned, epsilon 1" in capsys.readouterr().out
    assert train(table, *TARGET, "--budget", path, "-o", tmp_path / "report") == 0
    assert sentence in capsys.readouterr().err
    oracle.close()
    assert main(["budget", str(path)]) == 0
    assert "was killed: it" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "needs its total"),
        (["--epsilon", "0", "--delta", "1e-6"], "epsilon must be"),
        (["--change-total"], "--change-total needs"),
    ],
)
def test_a_book_is_not_made_without_a_total(capsys, tmp_path, words, named):
    assert main(["budget", str(tmp_path / "clinic.budget"), *words]) == 2
    assert named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_noisy_scores_are_charged_too_or_left_out_with_the_reason(capsys, table, tmp_path):
    words = ["--held-out", "noisy", "--seed", "5", *TARGET]
    roomy, exact = tmp_path / "roomy.budget", tmp_path / "exact.budget"
    BudgetBook(roomy, epsilon=9.0, delta=1e-5, neighboring_relation="replace-special")
    found = []
    for book in (roomy, exact):
        folder = tmp_path / book.stem
        assert train(table, *words, "--budget", book, "-o", folder) == 0
        found.append(json.loads((folder / "report.json").read_text())["evaluation"])
    assert found[0]["held_out"] == "noisy"
    assert [run.charged for run in BudgetBook(roomy).runs] == [True, True]
    assert found[1]["held_out"] == "left out"
    assert "the total is 1" in found[1]["reason"]
    assert [run.charged for run in BudgetBook(exact).runs] == [True]
