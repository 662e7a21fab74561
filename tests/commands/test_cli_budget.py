"""``dpcal budget`` and ``dpcal train --budget``: one total for all runs about a table."""

import json
import re

import numpy as np
import pytest
from _built_plans import plan_of, query
from _tree import ROOT

from dpcal import optim
from dpcal.optim import BudgetBook, Squared

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_pictures")]

TARGET = "--epsilon 1 --delta 1e-5"
CHARGED = "replace-special"


@pytest.fixture
def train(table, tmp_path, monkeypatch):
    """Stand in an empty folder, and return the words that train on a table there."""
    monkeypatch.chdir(tmp_path)
    schema = ["--schema", table.with_suffix(".toml")]
    return ["train", table, *schema, "--target answer --set epochs=3 --budget clinic.budget"]


def test_runs_are_charged_and_one_that_does_not_fit_leaves_nothing(cli, train, tmp_path):
    status, _, err = cli.run(*train, TARGET, "-o first")
    assert status == 0
    assert "new budget book" in err
    before = sorted(tmp_path.iterdir())
    assert "the total is 1; no record was touched" in cli.refused(*train, TARGET, "-o second")
    assert sorted(tmp_path.iterdir()) == before
    told = cli.json("budget clinic.budget --change-total --epsilon 2")
    assert told["total"] == {"epsilon": 2.0, "delta": 1e-5}
    assert told["spent"]["upper"] <= 1.0 < told["spent"]["upper"] + told["left"] + 1
    assert len(told["runs"]) == 1
    cli(*train, TARGET, "-o second")
    text = cli("budget clinic.budget")
    assert "by 2 runs" in text
    assert "table.csv" in text


def test_the_book_of_the_page_on_the_boundary_pays_for_training(cli, train):
    """A run that does not fit leaves it as it was; one under another relation is told the way."""
    page = " ".join((ROOT / "docs/explanation/boundary.md").read_text(encoding="utf-8").split())
    (line,) = re.findall(r"`(optim\.BudgetBook\(.*?\))`", page)
    book = eval(line, {"optim": optim})
    asked = [*train, "--delta 1e-7 --budget", book.path]
    assert "no record was touched" in cli.refused(*asked, "--epsilon 10 -o first")
    assert (book.records, book.runs, book.neighboring_relation) == ((), (), None)
    cli(*asked, "--epsilon 0.5 -o second")
    assert [name for name, _ in book.records] == ["table.csv"]
    assert book.neighboring_relation == CHARGED
    other = "--epsilon 0.5 --neighboring-relation replace-one -o third"
    assert f"--neighboring-relation {CHARGED}" in cli.refused(*asked, other)


def test_another_table_is_refused_before_it_is_read(cli, train, tmp_path):
    BudgetBook("clinic.budget", epsilon=9.0, delta=1e-5, records=train[1])
    train[1] = tmp_path / "other.csv"
    train[1].write_text("not a table at all")
    assert "records must be those" in cli.refused(*train, TARGET, "-o report")
    cli("budget clinic.budget --add-records", train[1])
    assert BudgetBook("clinic.budget").runs == ()
    assert not (tmp_path / "report").exists()


def test_a_seed_serves_once(cli, train):
    cli("budget clinic.budget --epsilon 9 --delta 1e-5")
    cli(*train, "--delta 1e-5 --seed 4 --epsilon 1 -o a")
    assert "has seen this seed" in cli.refused(*train, "--delta 1e-5 --seed 4 --epsilon 2 -o b")


def test_a_run_that_was_killed_is_told_by_the_next_command(cli, train):
    book = BudgetBook("clinic.budget", epsilon=9.0, delta=1e-5, neighboring_relation=CHARGED)
    target = {"epsilon": 1.0, "neighboring_relation": CHARGED, "optimizer": "noisy_gd"}
    plan = plan_of(query(noise_multiplier=9.0), n=100, **target)
    objective = Squared(np.ones((100, 1)), np.ones(100))
    oracle = book.oracle(objective, plan, seed=1)  # no end: as after SIGKILL
    oracle.gradient(np.zeros(objective.dimension), "gradient")
    assert "was killed: it is charged as planned, epsilon 1" in cli("budget clinic.budget")
    status, _, err = cli.run(*train, TARGET, "-o report")
    assert status == 0
    assert "run 1 (noisy_gd, since " in err
    oracle.close()
    assert "was killed: it" not in cli("budget clinic.budget")


def test_noisy_scores_are_charged_too_or_left_out_with_the_reason(cli, train, tmp_path):
    roomy = BudgetBook("roomy.budget", epsilon=9.0, delta=1e-5, neighboring_relation=CHARGED)
    found = []
    for name in ("roomy", "exact"):
        cli(*train, TARGET, f"--held-out noisy --seed 5 --budget {name}.budget -o {name}")
        found.append(json.loads((tmp_path / name / "report.json").read_text())["evaluation"])
    assert found[0]["held_out"] == "noisy"
    assert len(roomy.runs) == 2
    assert found[1]["held_out"] == "left out"
    assert "the total is 1" in found[1]["reason"]
    assert len(BudgetBook("exact.budget").runs) == 1
