"""``dpcal train FOLDER --cluster ADDRESS``: the bits of a table in memory, in files on workers."""

import json
from itertools import pairwise

import numpy as np
import pytest
from _alike import Alike
from _cluster import two_workers

import dpcal
from dpcal.optim.boundary.observers import observing

polars = pytest.importorskip("polars")

SCHEMA = """
[columns.age]
type = "number"
range = [0, 100]

[columns.ward]
type = "category"
categories = ["east", "west"]

[columns.sick]
type = "class"
categories = ["no", "yes"]

[columns.cost]
type = "number"
range = [0, 10]
"""
TARGET = {"epsilon": 2.0, "delta": 1e-6, "seed": 1}
CUTS = (0, 700, 701, 3_000)


def table():
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, CUTS[-1])
    ward = np.where(rng.random(CUTS[-1]) < 0.5, "east", "west")
    sick = np.where(age + rng.normal(0, 20, CUTS[-1]) > 60, "yes", "no")
    cost = age / 20 + rng.random(CUTS[-1])
    return polars.DataFrame({"age": age, "ward": ward, "sick": sick, "cost": cost})


@pytest.fixture(scope="module")
def client():
    with two_workers(__name__) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "patients").mkdir()
    for number, (first, last) in enumerate(pairwise(CUTS)):
        table()[first:last].write_parquet(tmp_path / "patients" / f"part-{number}.parquet")
    table().write_parquet(tmp_path / "patients.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "loss"),
    [("sick", "logistic"), pytest.param("cost", "squared", marks=pytest.mark.study)],
)
def test_a_folder_on_workers_gives_the_model_of_one_file(client, folder, target, loss):
    given = (folder / "schema.toml",)
    if loss == "squared":
        given[0].write_text(SCHEMA.replace('type = "class"', 'type = "category"'))
    asked = {"target": target, "loss": loss, "steps": 5, **TARGET}
    with observing(Alike()):
        here = dpcal.train(folder / "patients.parquet", *given, **asked)
        there = dpcal.train(folder / "patients", *given, cluster=client.scheduler.address, **asked)
    assert np.array_equal(here.model.weights, there.model.weights)
    assert here.model.intercept == there.model.intercept
    assert here.result.ledger == there.result.ledger
    one, other = here.document, there.document
    for part in ("privacy", "training", "everything", "risk"):
        assert one[part] == other[part], part
    sizes = ("rows", "left_out", "training_records", "held_out_records", "features", "scaling")
    assert {name: one["data"][name] for name in sizes} == {
        name: other["data"][name] for name in sizes
    }
    assert other["evaluation"] == one["evaluation"]
    assert other["data"]["name"] == "patients"


@pytest.mark.study
def test_a_report_of_a_cluster_is_verified_and_a_book_pays_for_it(cli, client, folder):
    asked = ["train", folder / "patients", "--schema", folder / "schema.toml", "--target sick"]
    asked += ["--epsilon 1 --delta 1e-6 --steps 5 --cluster", client.scheduler.address]
    asked += ["--budget", folder / "clinic.budget", "--force -o", folder / "report"]
    cli(*asked)
    cli("verify", folder / "report")
    assert json.loads((folder / "report" / "report.json").read_text())["budget"]["spent"] <= 1.0
    assert "no record was touched" in cli.refused(*asked)
    # Other records are another data set.
    table()[:9].write_parquet(folder / "patients" / "part-3.parquet")
    assert "records" in cli.refused(*asked)


def test_what_a_cluster_does_not_answer_is_refused_in_a_sentence(cli, client, folder):
    def refused(*options, where=client.scheduler.address, table="patients"):
        asked = ["train", folder / table, "--epsilon 1 --delta 1e-6 --target sick --cluster", where]
        sentence = cli.refused(*asked, "-o", folder / "report", *options)
        assert not (folder / "report").exists()
        return sentence

    schema = ["--schema", folder / "schema.toml"]
    part, whole = folder / "patients" / "part-9.parquet", folder / "patients.parquet"
    assert "needs a folder with files that end in .parquet" in refused(table="patients.parquet")
    assert "classes that are read from the table" in refused("--bounds 0:1")
    assert "--held-out unprotected" in refused(*schema, "--held-out unprotected")
    assert "must be the address of a Dask scheduler" in refused(*schema, where="nowhere")
    part.write_bytes(whole.read_bytes()[:-9])
    assert "part-9.parquet: table must be a readable file" in refused(*schema)
    table().rename({"ward": "room"}).write_parquet(part)
    told = refused(*schema)
    assert "part-9.parquet: table must have no column that is not in the schema, got 'room'" in told
