"""``dpcal train --silos``: what it releases, composes, verifies and refuses."""

import json
import tomllib
from pathlib import Path

import pytest
from _patients import SCHEMA, as_csv, patients
from _tree import DATA

from dpcal import accountants, optim
from dpcal.accountants import events
from dpcal.calibrate import Plan
from dpcal.report import composed_reports, read, verify

pytestmark = pytest.mark.slow

TARGET = "--epsilon 2 --delta 1e-6"
TRAIN = f"train patients.csv --schema schema.toml --target sick {TARGET}"
SILOS = f"{TRAIN} --seed 5 --optimizer distributed_psgd --silos clinic"


@pytest.fixture(scope="module")
def clinics(cli, tmp_path_factory):
    """A table of 1,500 records and its schema."""
    folder = tmp_path_factory.mktemp("clinics")
    (folder / "patients.csv").write_text(as_csv(patients(seed=0)))
    (folder / "schema.toml").write_text(SCHEMA)
    return folder


@pytest.fixture(autouse=True)
def folder(clinics, monkeypatch):
    """Stand in the folder."""
    monkeypatch.chdir(clinics)
    return clinics


def plan_of(run):
    return Plan.from_json(json.dumps(run["plan"]))


REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))


def test_wrong_input_is_one_sentence_and_leaves_nothing(cli, folder, tmp_path):
    (folder / "empty.toml").write_text(SCHEMA.replace('"west"', '"west", "east"'))
    (folder / "unknown.toml").write_text(SCHEMA.replace('west"]', 'west"]\nunknown = "ignore"'))
    for line, words in REFUSALS["silos"].items():
        sentence = cli.refused(SILOS, line, "-o", tmp_path / "report")
        assert words in sentence, (line, sentence)
        assert list(tmp_path.iterdir()) == [], line


def test_each_silo_of_a_table_has_its_own_ledger(cli):
    with optim.replaying():
        text = cli(SILOS, "--force -o silos")
    assert "3 silos, each with noise and a ledger of its own" in text
    document = read(Path("silos"))
    sizes = document["training"]["silos"]["training_records"]
    assert list(sizes) == ["north", "south", "west"]
    assert sum(sizes.values()) == document["data"]["training_records"]
    assert [run["silo"] for run in document["runs"]] == [0, 1, 2]
    for run, n in zip(document["runs"], sizes.values(), strict=True):
        plan = plan_of(run)
        assert (plan.n, plan.parameters["silos"]) == (n, 3)
        asked = sum(entry["count"] * entry["batch_size"] for entry in run["ledger"]["entries"])
        assert 0 < asked <= n
        assert plan.price().upper == run["epsilon"]["upper"] <= 2.0
    assert document["privacy"]["unit"] == "one record of one silo, all other records fixed"
    assert "number of records of each 'clinic'" in document["data"]["read_from_data"]
    assert cli("verify silos")
    # A record is in one silo: two such reports cost what one silo pays twice, not six times.
    twice = composed_reports([document, document], 1e-6)
    pair = [plan_of(document["runs"][0]).event, plan_of(document["evaluation"]).event]
    direct = accountants.epsilon(
        events.ComposedDpEvent([*pair, *pair]), delta=1e-6, neighboring_relation="replace-special"
    )
    assert float(twice) == pytest.approx(float(direct), rel=1e-6)
    # Runs of one silo in place of three are composed, and the claim no longer holds.
    for run in document["runs"]:
        run["silo"] = 0
    assert not verify(document)[-1]["holds"]
