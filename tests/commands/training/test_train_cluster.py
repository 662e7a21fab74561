"""``dpcal train FOLDER --cluster ADDRESS``: the bits of a table in memory, in files on workers."""

import json
from itertools import pairwise

import numpy as np
import polars
import pytest
from _cluster import two_workers
from _patients import SCHEMA, patients
from _recording import Alike

import dpcal
from dpcal.optim.boundary.observers import observing

CUTS = (0, 700, 701, 3_000)
# No two rows are equal, for of equal ones the coins depend on how many a file has.
TABLE = polars.DataFrame(patients(CUTS[-1])).with_columns(age=np.linspace(18, 95, CUTS[-1]))


@pytest.fixture(scope="module")
def client():
    with two_workers(__name__) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "patients").mkdir()
    for number, (first, last) in enumerate(pairwise(CUTS)):
        TABLE[first:last].write_parquet(tmp_path / "patients" / f"part-{number}.parquet")
    TABLE.write_parquet(tmp_path / "patients.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "loss"),
    [("sick", "logistic"), pytest.param("risk", "squared", marks=pytest.mark.study)],
)
def test_a_folder_on_workers_gives_the_model_of_one_file(client, folder, target, loss):
    schema = folder / "schema.toml"
    if loss == "squared":
        schema.write_text(SCHEMA.replace('"class"', '"category"').replace("classes", "categories"))
    asked = {"target": target, "loss": loss, "steps": 5, "epsilon": 2.0, "delta": 1e-6, "seed": 1}
    with observing(Alike()):
        here = dpcal.train(folder / "patients.parquet", schema, **asked)
        there = dpcal.train(folder / "patients", schema, cluster=client.scheduler.address, **asked)
    assert np.array_equal(here.model.weights, there.model.weights)
    assert here.model.intercept == there.model.intercept
    assert here.result.ledger == there.result.ledger
    one, other = here.document, there.document
    for part in ("privacy", "training", "everything", "risk", "evaluation"):
        assert one[part] == other[part], part
    for size in ("rows", "left_out", "training_records", "held_out_records", "features", "scaling"):
        assert one["data"][size] == other["data"][size], size
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
    TABLE[:9].write_parquet(folder / "patients" / "part-3.parquet")
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
    TABLE.rename({"clinic": "room"}).write_parquet(part)
    told = refused(*schema)
    assert "part-9.parquet: table must have no column that is not in the schema, got 'room'" in told
