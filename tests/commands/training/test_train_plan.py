"""Which optimizer does ``dpcal train`` take, and at what cost? Told before anything is spent."""

import json

import pytest

import dpcal
from dpcal import calibrate

WORDS = "--target answer --classes no,yes --bounds 0:10 --epsilon 1 --delta 1e-6 --plan"


def test_a_plan_is_printed_and_nothing_is_spent_or_written(cli, table, tmp_path):
    book = ["--budget", tmp_path / "clinic.budget", "-o", tmp_path / "report"]
    told = cli.json("train", table, WORDS, *book)
    assert not list(tmp_path.iterdir())
    # What is printed is a plan within its target, and its cost is the plan's.
    plan = calibrate.Plan.from_json(json.dumps(told["plan"]))
    assert plan.price() <= 1.0
    assert told["passes"] == pytest.approx(plan.evaluations / plan.n)
    assert told["chosen"]
    names = [row["optimizer"] for row in told["recommendation"]["rows"]]
    assert told["optimizer"] == next(name for name in names if name != "correlated_dpsgd")


@pytest.mark.parametrize("tuning", ["--steps 30", "--optimizer dpsgd"])
def test_what_is_given_is_taken(cli, table, tuning):
    text = cli("train", table, WORDS, tuning)
    assert text.startswith("plan of dpsgd, target epsilon = 1 at delta = 1e-06")
    assert ("steps 30," in text) is (tuning == "--steps 30")
    assert "passes" in text.splitlines()[-2]
    assert "of this machine" in text.splitlines()[-2]
    assert text.endswith("nothing was spent: without --plan this plan is run\n")


def test_training_runs_what_is_chosen(table):
    """With few parameters and little noise full batches have the smaller predicted error."""
    columns = {name: {"type": "number", "range": [0, 10]} for name in "abc"}
    schema = {"columns": {**columns, "answer": {"type": "class", "categories": ["no", "yes"]}}}
    found = dpcal.train(table, schema, target="answer", epsilon=4.0, delta=1e-6, seed=1)
    assert found.result.plan.optimizer == "noisy_gd"
    assert found.document["training"]["optimizer"] == "noisy_gd"
    assert found.document["training"]["averaging"] == "linear"
    assert [query.name for query in found.result.plan.queries][-1] == "gradient"
    assert found.result.complete
    assert found.result.epsilon(1e-6) <= 4.0
