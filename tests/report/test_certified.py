"""``dpcal certify REPORT``: the claims of a report proved in ball arithmetic, and bound to it."""

import json
import shutil

import pytest
from _patients import SCHEMA, patients

import dpcal
from dpcal import calibrate, optim, report

TABLE = patients(3000)
PUBLIC = dpcal.tables.Schema.from_toml(SCHEMA)


@pytest.fixture(scope="module")
def trained(cli, tmp_path_factory):
    """The folder of a report whose claims are proved: of a model and of its scores."""
    folder = tmp_path_factory.mktemp("clinic") / "report"
    found = dpcal.train(
        TABLE, PUBLIC, target="sick", epsilon=1.0, delta=1e-5, settings={"epochs": 2}
    )
    found.save(folder)
    cli("certify", folder)
    return folder


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of that folder, to be changed."""
    return shutil.copytree(trained, tmp_path / "copy")


def test_the_claims_of_training_and_of_scores_are_proved(cli, trained):
    document = report.read(trained)
    for name, claim in (("certificate", "everything"), ("certificate-scores", "evaluation")):
        proof = json.loads((trained / f"{name}.json").read_text())
        lower, upper = float(proof["lower"]), float(proof["upper"])
        # Delta at the claimed epsilon is the claimed one, but for noise that is 1e-6 too large.
        assert 1e-5 * (1 - 2e-5) < lower <= upper < 1e-5 * (1 + 1e-9)
        assert proof["proofs"][0]["epsilon"] == document[claim]["epsilon"]["upper"]
        assert cli("check", trained / f"{name}.json")
    assert set(document["files"]) >= {"certificate.json", "certificate-scores.json"}
    assert cli("verify", trained)


def test_a_proof_of_other_runs_is_refused(cli, trained, tmp_path):
    proof = json.loads((trained / "certificate.json").read_text())
    other = json.loads((trained / "certificate-scores.json").read_text())
    forged = {**proof, "about": {**proof["about"], "runs": other["about"]["runs"]}}
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert "DOES NOT HOLD" in cli("check", tmp_path / "forged.json", status=1)


def test_a_changed_file_beside_the_report_is_found(cli, copied):
    told = cli("verify", copied)
    assert "unit: one training record" in told
    assert "relation: replace-special" in told
    assert "files: as in report.json" in told
    (copied / "certificate.json").write_text("{}")
    (copied / "statement.html").unlink()
    (problems,) = cli.json("verify", copied, status=1)["files"].values()
    assert problems == ["'certificate.json' was changed", "'statement.html' is missing"]
    # What was changed since is not bound anew.
    assert "as they were written" in cli.refused("certify", copied)
    document = report.read(copied) | {"files": {"../../secret": "0"}}
    (copied / "report.json").write_text(json.dumps(document))
    assert "files must be names" in cli("verify", copied, status=1)


def test_a_claim_that_is_too_small_is_disproved(cli, copied):
    document = report.read(copied) | {"files": {}}
    document["everything"]["epsilon"] |= {"upper": 0.5, "lower": 0.4}
    (copied / "report.json").write_text(json.dumps(document))
    assert "DOES NOT HOLD" in cli("certify", copied, status=1)


def test_runs_of_one_report_are_proved_together(cli, tmp_path):
    objective = optim.Logistic(TABLE["age"][:, None] / 100, TABLE["sick"] == "yes", classes=[0, 1])
    plan = calibrate.dpsgd(n=3000, batch_size=100, steps=20, epsilon=1.0, delta=1e-5)
    results = [dpcal.run(objective, plan) for _ in range(2)]
    folder = report.save(tmp_path / "report", report.Runs(by_silo=(tuple(results),)))
    (row,) = cli.json("certify", folder).values()
    assert row["verdict"] == "proved"
    assert len(row["proof"]["about"]["runs"]) == 2
    assert row["epsilon"] > 1.2


def test_where_the_price_is_beyond_proof_the_target_is_proved(cli, tmp_path):
    """Laplace noise has no delta at its epsilon, and a little less of it has a delta at once."""
    found = dpcal.release(TABLE, PUBLIC, ["mean age"], epsilon=0.5, delta=1e-6)
    folder = found.save(tmp_path / "report")
    (row,) = cli.json("certify", folder).values()
    assert row["verdict"] == "proved"
    assert row["epsilon"] >= report.read(folder)["everything"]["epsilon"]["upper"]
    assert cli("check", folder / "certificate.json")


def test_what_no_certificate_covers_is_refused_by_name(cli, tmp_path):
    found = dpcal.release(TABLE, PUBLIC, ["quantile age 0.5"], epsilon=1.0, delta=1e-5)
    folder = found.save(tmp_path / "report")
    assert "ExponentialMechanismDpEvent" in cli.refused("certify", folder)
    assert not (folder / "certificate.json").exists()


def test_options_of_a_run_are_refused_beside_a_report(cli, trained):
    for words in ("--epsilon 1", "--delta 1e-5", "-o proof.json"):
        assert "has its own" in cli.refused("certify", trained, words)
