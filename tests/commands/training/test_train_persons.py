"""``clipped="user"``: persons are the records of a training, and sums of their rows are clipped."""

import dataclasses

import numpy as np
import pytest

import dpcal
from dpcal import train
from dpcal.accountants import events


def persons_table(rows=1_200, persons=300):
    rng = np.random.default_rng(0)
    who, dose = rng.integers(0, persons, rows), rng.uniform(0, 10, rows)
    table = {"who": [f"P{p}" for p in who], "dose": dose, "sick": np.where(dose > 5, "u", "v")}
    schema = {
        "n": rows,
        "group_size": 3,
        "columns": {
            "who": {"type": "person"},
            "dose": {"type": "number", "range": [0, 10]},
            "sick": {"type": "class", "categories": ["u", "v"]},
        },
    }
    return table, schema, who


BY_PERSON = {"target": "sick", "epsilon": 2.0, "delta": 1e-5, "clipped": "user", "steps": 20}


@pytest.mark.parametrize(
    "given", [{}, {"sampler": "random-allocation", "steps": None}, {"noise": "tree"}]
)
def test_persons_are_records_where_their_sums_are_clipped(given):
    table, schema, who = persons_table()
    asked = {**BY_PERSON, "test_fraction": 0.0, "seed": 1, **given}
    found = train(table, schema, **asked)
    plan, data = found.result.plan, found.document["data"]
    persons = len(np.unique(who))
    assert (plan.n, plan.clipped, plan.group_size) == (persons, "user", 3)
    assert plan.neighboring_relation == "replace-special"
    assert data["training_persons"] == persons
    assert data["training_records"] == np.minimum(np.bincount(who), 3).sum()
    assert "number of persons" in data["read_from_data"]
    privacy = found.document["privacy"]
    assert privacy["unit"] == "one person, who has at most 3 training records (rows of the table)"
    assert "the sum of a person's rows is clipped" in privacy["mechanism"]
    found.result.verify()
    # A person costs what a row costs in a table of as many rows.
    (query,) = plan.queries
    alone = dataclasses.replace(query, clipped="row", group_size=1)
    row = dataclasses.replace(plan, queries=(alone,))
    assert found.result.epsilon(1e-5) == row.price() <= 2.0


def test_rows_of_a_person_move_a_step_by_the_clip_at_most():
    """One step about everybody without a regulariser: -rate times a sum, over the persons."""
    table, schema, who = persons_table()
    asked = {**BY_PERSON, "steps": 1, "batch_size": len(np.unique(who)), "max_norm": 0.5}
    asked |= {"test_fraction": 0.0, "learning_rate": 1.0, "epsilon": 1e4}
    mine = who == who[0]
    assert mine.sum() >= 3
    table["dose"] = np.where(mine, 0.0, table["dose"])
    tables = [{**table, "sick": np.where(mine, label, table["sick"])} for label in ("u", "v")]
    results = [train(each, schema, seed=1, **asked).result for each in tables]
    moved = np.linalg.norm(results[0].w - results[1].w)
    (query,) = results[0].plan.queries
    each = 2 * query.max_norm / len(np.unique(who))
    # Noise of two coordinates, in two runs.
    noise = 12 * query.noise_multiplier * query.max_norm / len(np.unique(who))
    assert noise < 0.1 * each
    assert each - noise <= moved <= each + noise


def test_a_public_number_of_persons_is_for_persons_who_come_and_go():
    """A report says the same whoever is there, and a person costs what a record costs."""
    table, schema, who = persons_table()
    asked = {**BY_PERSON, "n": 400, "batch_size": 20, "seed": 1}
    asked |= {"held_out": "none", "test_fraction": 0.25}
    left = who != who[0]
    fewer = {name: np.asarray(column)[left] for name, column in table.items()}
    everybody, rest = (train(each, schema, **asked) for each in (table, fewer))
    plan = everybody.result.plan
    assert (plan.n, plan.public_n, plan.neighboring_relation) == (300, True, "add-or-remove-one")
    assert rest.result.plan == plan
    data, others = (dict(each.document["data"], fingerprint=None) for each in (everybody, rest))
    assert data == others
    assert (data["public_training_persons"], data["read_from_data"]) == (300, [])
    assert not {"rows", "training_records", "training_persons"} & set(data)
    privacy = everybody.document["privacy"]
    assert privacy == rest.document["privacy"]
    assert privacy["unit"] == "one person, who has at most 3 training records (rows of the table)"
    step = events.GaussianDpEvent(plan.queries[0].noise_multiplier)
    run = events.SelfComposedDpEvent(events.PoissonSampledDpEvent(20 / 300, step), 20)
    assert everybody.result.epsilon(1e-5) == dpcal.epsilon(run, delta=1e-5) <= 2.0
    everybody.result.verify()


def test_persons_as_records_are_refused_where_there_are_none():
    table, schema, _ = persons_table()
    for given, why in (
        ({"neighboring_relation": "add-or-remove-one"}, "needs n, a public number of records"),
        ({"n": 300, "neighboring_relation": "replace-special"}, "n is for neighboring_relation"),
        ({"n": 300, "sampler": "shuffled-epochs"}, "is for neighboring_relation replace-one or"),
        ({"n": 300, "noise": "tree", "sampler": "balls-in-bins"}, "n goes with sampler poisson"),
    ):
        with pytest.raises(ValueError, match=why):
            train(table, schema, **given, **BY_PERSON)
    uneven = {"noise": "tree", "sampler": "balls-in-bins", "batch_size": 60, "steps": 13}
    with pytest.raises(ValueError, match=r"steps must be a multiple of separation=\d for .*got 13"):
        train(table, schema, **{**BY_PERSON, **uneven})
    columns = {**schema["columns"], "who": {"type": "drop"}}
    with pytest.raises(ValueError, match="clipped user needs a schema with a column of type"):
        train(table, {"columns": columns}, **BY_PERSON)
    with pytest.raises(ValueError, match="clipped is not for optimizer spiderboost"):
        train(table, schema, optimizer="spiderboost", **BY_PERSON)
    asked = {**BY_PERSON, "clipped": None, "steps": None, "sampler": "random-allocation"}
    with pytest.raises(ValueError, match="persons with several: clipped user takes persons"):
        train(table, schema, **asked)
    with pytest.raises(ValueError, match="group_size is not for optimizer correlated_dpsgd"):
        train(table, schema, noise="tree", **{**BY_PERSON, "clipped": None})
