"""Which optimizer does ``dpcal train`` take, and at what cost? Told before anything is spent."""

import json
import time

import numpy as np
import pytest

import dpcal
from dpcal import calibrate, optim

WORDS = "--target answer --epsilon 1 --delta 1e-6 --plan"


def test_a_plan_is_printed_and_nothing_is_spent_or_written(cli, table, tmp_path):
    book = ["--budget", tmp_path / "clinic.budget", "-o", tmp_path / "report"]
    told = cli.json("train", table, "--schema", table.with_suffix(".toml"), WORDS, *book)
    assert not list(tmp_path.iterdir())
    # What is printed is a plan within its target, and its cost is the plan's.
    plan = calibrate.Plan.from_json(json.dumps(told["plan"]))
    assert plan.price() <= 1.0
    assert plan.n == 160  # as many as of any run: splits are of one size
    assert told["passes"] == pytest.approx(plan.evaluations / plan.n)
    assert told["chosen"]
    names = [row["optimizer"] for row in told["recommendation"]["rows"]]
    assert told["optimizer"] == next(name for name in names if name != "correlated_dpsgd")


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


@pytest.mark.study
def test_seconds_are_predicted_within_a_factor_of_two():
    """Of processor time: the better of three runs."""
    n, d = 40_000, 20
    X = np.random.default_rng(1).standard_normal((n, d)) / d**0.5
    objective = optim.Logistic(X, X[:, 0] > 0, l2=0.05, fit_intercept=False, classes=[False, True])
    target = {"n": n, "epsilon": 1.0, "delta": 1e-6}
    known = {"lipschitz": 1.0, "smoothness": 0.25, "gap": 0.7, "strong_convexity": objective.l2}
    descent = {"dimension": d, "steps": 5, **target}
    constants = calibrate.Constants(**known)
    # Of the last iterate rows are shortened once: with few steps that is most of the time.
    last = calibrate.noisy_gd(constants, release="last", l2=objective.l2, **descent)
    plans = (
        calibrate.dpsgd(batch_size=2_000, steps=200, **target),
        calibrate.noisy_gd(constants, **{**descent, "steps": 20}),
        last,
    )
    for plan in plans:
        taken = []
        for _ in range(3):
            began = time.thread_time()
            optim.run(objective, plan)
            taken.append(time.thread_time() - began)
        assert 0.5 < min(taken) / plan.seconds(d) < 2.0
    every = calibrate.noisy_gd(constants, release="all", **descent)
    assert last.seconds(d) > 1.2 * every.seconds(d)
