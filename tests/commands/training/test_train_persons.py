"""``clipped="user"``: persons are the records of a training, and sums of their rows are clipped."""

import dataclasses
import re
import tomllib

import numpy as np
import pytest
from _tree import DATA

import dpcal
from dpcal import report, train
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

RNG = np.random.default_rng(0)
WHO, DOSE = RNG.integers(0, 300, 1_200), RNG.uniform(0, 10, 1_200)
TABLE = {"who": [f"P{p}" for p in WHO], "dose": DOSE, "sick": np.where(DOSE > 5, "u", "v")}
COLUMNS = {
    "who": {"type": "person"},
    "dose": {"type": "number", "range": [0, 10]},
    "sick": {"type": "class", "categories": ["u", "v"]},
}
SCHEMA = {"n": 1_200, "group_size": 3, "columns": COLUMNS}
PERSONS = len(np.unique(WHO))
UNIT = "one person, who has at most 3 training records (rows of the table)"
TARGET = {"target": "sick", "epsilon": 2.0, "delta": 1e-5}
USER = {"clipped": "user", "steps": 20}
BY_PERSON = {**TARGET, "settings": USER}


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", [{}, {"settings": {"sampler": "random-allocation", "clipped": "user"}}]
)
def test_persons_are_records_where_their_sums_are_clipped(given):
    found = train(TABLE, SCHEMA, **{**BY_PERSON, "test_fraction": 0.0, "seed": 1, **given})
    plan, data = found.result.plan, found.document["data"]
    assert (plan.n, plan.clipped, plan.group_size) == (PERSONS, "user", 3)
    assert plan.neighboring_relation == "replace-special"
    assert data["training_persons"] == PERSONS
    assert data["training_records"] == np.minimum(np.bincount(WHO), 3).sum()
    assert "number of persons" in data["read_from_data"]
    privacy = found.document["privacy"]
    assert privacy["unit"] == UNIT
    assert "the sum of a person's rows is clipped" in privacy["mechanism"]
    found.result.verify()
    # A person costs what a row costs in a table of as many rows.
    (query,) = plan.queries
    alone = dataclasses.replace(query, clipped="row", group_size=1)
    row = dataclasses.replace(plan, queries=(alone,))
    assert found.result.epsilon(1e-5) == row.price() <= 2.0


def test_rows_of_a_person_move_a_step_by_the_clip_at_most():
    """One step about everybody without a regulariser: -rate times a sum, over the persons."""
    step = {"batch_size": PERSONS, "max_norm": 0.5, "steps": 1, "learning_rate": 1.0}
    asked = {**TARGET, "epsilon": 1e4, "settings": {**USER, **step}, "test_fraction": 0.0}
    mine = WHO[0] == WHO
    assert mine.sum() >= 3
    table = {**TABLE, "dose": np.where(mine, 0.0, DOSE)}
    tables = [{**table, "sick": np.where(mine, label, TABLE["sick"])} for label in ("u", "v")]
    results = [train(each, SCHEMA, seed=1, **asked).result for each in tables]
    moved = np.linalg.norm(results[0].w - results[1].w)
    (query,) = results[0].plan.queries
    each = 2 * query.max_norm / PERSONS
    # Noise of two coordinates, in two runs.
    noise = 12 * query.noise_multiplier * query.max_norm / PERSONS
    assert noise < 0.1 * each
    assert each - noise <= moved <= each + noise


def test_a_public_number_of_persons_is_for_persons_who_come_and_go():
    """A report says the same whoever is there, and a person costs what a record costs."""
    asked = {**TARGET, "n": 400, "seed": 1, "settings": {**USER, "batch_size": 20}}
    asked |= {"held_out": "none", "test_fraction": 0.25}
    fewer = {name: np.asarray(column)[WHO[0] != WHO] for name, column in TABLE.items()}
    everybody, rest = (train(each, SCHEMA, **asked) for each in (TABLE, fewer))
    plan = everybody.result.plan
    assert (plan.n, plan.public_n, plan.neighboring_relation) == (300, True, "add-or-remove-one")
    assert rest.result.plan == plan
    data, others = (dict(each.document["data"], fingerprint=None) for each in (everybody, rest))
    assert data == others
    assert (data["public_training_persons"], data["read_from_data"]) == (300, [])
    assert not {"rows", "training_records", "training_persons"} & set(data)
    privacy = everybody.document["privacy"]
    assert privacy == rest.document["privacy"]
    assert privacy["unit"] == UNIT
    step = events.GaussianDpEvent(plan.queries[0].noise_multiplier)
    run = events.SelfComposedDpEvent(events.PoissonSampledDpEvent(20 / 300, step), 20)
    assert everybody.result.epsilon(1e-5) == dpcal.epsilon(run, delta=1e-5) <= 2.0
    everybody.result.verify()


def test_rows_of_a_person_that_are_clipped_one_by_one_cost_more():
    """A rule of one row a person needs less noise than one of three."""
    asked = TARGET
    three, one = (
        train(TABLE, {**SCHEMA, "n": None, "group_size": most}, **asked) for most in (3, 1)
    )
    document = three.document
    used = document["data"]["training_records"] + document["data"]["held_out_records"]
    assert used == np.minimum(np.bincount(WHO), 3).sum()
    assert document["privacy"]["unit"] == UNIT
    assert one.document["privacy"]["unit"].startswith("one person, who has at most one training")
    for dear, cheap in zip(three.result.plan.queries, one.result.plan.queries, strict=False):
        assert dear.group_size == 3
        assert cheap.noise_multiplier < dear.noise_multiplier / 1.5
    assert all(row["holds"] for row in report.verify(document))
    # A theorem about single records is not one about persons.
    with pytest.raises(ValueError, match="group_size is not for optimizer tree_spider"):
        train(TABLE, {**SCHEMA, "n": None}, **{**asked, "optimizer": "tree_spider"})


REFUSED = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))["persons"]


def test_persons_as_records_are_refused_where_there_are_none():
    for why, given in REFUSED.items():
        settings = {**USER, **given.pop("settings", {})}
        with pytest.raises((ValueError, UnsupportedEvent), match=re.escape(why)):
            train(TABLE, SCHEMA, **{**BY_PERSON, "settings": settings, **given})
    nobody = {"columns": {**COLUMNS, "who": {"type": "drop"}}}
    with pytest.raises(ValueError, match="clipped='user' needs a schema with a column of type"):
        train(TABLE, nobody, **BY_PERSON)
