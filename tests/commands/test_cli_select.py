"""``dpcal select`` and ``dpcal train --silos``: what they release, compose, verify and refuse."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from _patients import SCHEMA, as_csv, patients
from _tree import DATA

from dpcal import accountants, optim
from dpcal.accountants import events
from dpcal.calibrate import Plan
from dpcal.report import composed_reports, read, verify
from dpcal.tables import load_model

pytestmark = pytest.mark.slow

TARGET = "--epsilon 2 --delta 1e-6"
MODELS = "--candidates report-1 report-2/model.json"
SELECT = f"select new.csv --accuracy 3 {TARGET} --seed 7 --force"
TRAIN = f"train patients.csv --schema schema.toml --target sick {TARGET}"
SILOS = f"{TRAIN} --seed 5 --optimizer distributed_psgd --silos clinic"


@pytest.fixture(scope="module")
def clinics(cli, tmp_path_factory):
    """Tables of 1,500 records each, a schema, and reports of two models of the first."""
    folder = tmp_path_factory.mktemp("clinics")
    for seed, name in enumerate(("patients.csv", "new.csv")):
        (folder / name).write_text(as_csv(patients(seed=seed)))
    (folder / "schema.toml").write_text(SCHEMA)
    bad = [-40.0, -40.0, 0.0, 0.0, 0.0, 0.0]
    points = {"bad": [bad], "text": [[1, "x"]], "none": [], "short": [[1.0]]}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for seed in (1, 2):
            cli(TRAIN, f"--epochs 3 --seed {seed} -o report-{seed}")
        model = load_model("report-1")
        points["points"] = [bad, [*model.weights, model.intercept]]
        for name, content in points.items():
            (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(autouse=True)
def folder(clinics, monkeypatch):
    """Stand in the folder."""
    monkeypatch.chdir(clinics)
    return clinics


def plan_of(run):
    return Plan.from_json(json.dumps(run["plan"]))


# -- select


@pytest.mark.parametrize("method", ["gaussian", "above-threshold", "report-noisy-max"])
def test_the_chosen_model_and_its_price(cli, method):
    with optim.replaying():
        assert "accepted" in cli(SELECT, MODELS, f"--method {method} -o {method}")
    document = read(Path(method))
    (run,) = document["runs"]
    # The claim is what the plan's answers cost, and no more than the target.
    assert plan_of(run).parameters["candidates"] == 2
    assert run["epsilon"]["upper"] == plan_of(run).price().upper <= 2.0
    assert document["privacy"]["unit"].startswith("one record of the table that candidates")
    assert cli("verify", method)
    given = load_model(f"report-{document['selection']['index'] + 1}")
    chosen = load_model(method)
    np.testing.assert_array_equal(chosen.weights, given.weights)
    assert (chosen.intercept, chosen.labels) == (given.intercept, ("no", "yes"))
    # A claim below what was paid does not pass.
    document["everything"]["epsilon"]["upper"] = 0.9 * run["epsilon"]["lower"]
    assert not verify(document)[-1]["holds"]


def test_training_on_the_same_records_is_composed(cli, folder):
    asked = [SELECT.replace("new.csv", "patients.csv"), MODELS, "-o composed"]
    assert "say --same-records, and the prices are composed" in cli.refused(*asked)
    assert not (folder / "composed").exists()
    with optim.replaying():
        text = cli(*asked, "--same-records")
        assert "with 4 runs of training on the same records" in text
        document = read(Path("composed"))
        assert all(row["holds"] for row in verify(document))
        plans = [plan_of(run) for run in document["runs"]]
        whole = accountants.epsilon(
            events.ComposedDpEvent([plan.event for plan in plans]),
            delta=1e-6,
            neighboring_relation="replace-special",
        )
        assert len(plans) == 5
        assert document["everything"]["epsilon"]["upper"] >= whole.lower > 3.0
        # Without the training's runs the claim would be too small, and verify says so.
        document["everything"]["epsilon"] = document["runs"][-1]["epsilon"]
        assert not verify(document)[-1]["holds"]
        cli(*asked, "--other-records")
    assert len(read(Path("composed"))["runs"]) == 1


def test_points_are_candidates_too_and_none_may_pass(cli, folder):
    asked = [SELECT, "--accuracy 0.5 --schema schema.toml --target sick -o chosen --candidates"]
    with optim.replaying():
        assert "points.json, point 2, after 2 tested" in cli(*asked, "points.json")
        intercept = json.loads((folder / "points.json").read_text())[1][-1]
        assert load_model("chosen").intercept == intercept
        text = cli(*asked, "bad.json", status=1)
    assert "no candidate passed, 1 tested" in text
    document = read(Path("chosen"))
    assert document["selection"]["chosen"] is None
    assert all(row["holds"] for row in verify(document))
    assert not (folder / "chosen" / "model.json").exists()


REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))


def test_wrong_input_is_one_sentence_and_leaves_nothing(cli, folder, tmp_path):
    squared = json.loads((folder / "report-1" / "model.json").read_text())
    squared["loss"] = "squared"
    (folder / "squared.json").write_text(json.dumps(squared))
    (folder / "empty.toml").write_text(SCHEMA.replace('"west"', '"west", "east"'))
    (folder / "unknown.toml").write_text(SCHEMA.replace('west"]', 'west"]\nunknown = "ignore"'))
    for command, lines in ((SELECT, REFUSALS["selections"]), (SILOS, REFUSALS["silos"])):
        for line, words in lines.items():
            sentence = cli.refused(command, line, "-o", tmp_path / "report")
            assert words in sentence, (line, sentence)
            assert list(tmp_path.iterdir()) == [], line


# -- train --silos


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
