"""``dpcal certify REPORT``: the claims of a report proved in ball arithmetic, and bound to it."""

import json

import numpy as np
import pytest

import dpcal
from dpcal import calibrate, optim, report
from dpcal.cli import main

RNG = np.random.default_rng(0)
TABLE = {"age": RNG.uniform(20, 80, 3000), "sick": RNG.choice(["no", "yes"], 3000)}
SCHEMA = {
    "columns": {
        "age": {"type": "number", "range": [0, 100]},
        "sick": {"type": "class", "categories": ["no", "yes"]},
    }
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a report whose claims are proved: of a model and of its scores."""
    folder = tmp_path_factory.mktemp("clinic") / "report"
    found = dpcal.train(TABLE, SCHEMA, target="sick", epsilon=1.0, delta=1e-5, epochs=2)
    found.save(folder)
    assert main(["certify", str(folder)]) == 0
    return folder


def test_the_claims_of_training_and_of_scores_are_proved(trained):
    document = report.read(trained)
    for name, claim in (("certificate", "everything"), ("certificate-scores", "evaluation")):
        proof = json.loads((trained / f"{name}.json").read_text())
        lower, upper = float(proof["lower"]), float(proof["upper"])
        # Delta at the claimed epsilon is the claimed one, but for noise that is 1e-6 too large.
        assert 1e-5 * (1 - 2e-5) < lower <= upper < 1e-5 * (1 + 1e-9)
        assert proof["proofs"][0]["epsilon"] == document[claim]["epsilon"]["upper"]
        assert main(["certify", "--check", str(trained / f"{name}.json")]) == 0
    assert set(document["files"]) >= {"certificate.json", "certificate-scores.json"}
    assert main(["verify", str(trained)]) == 0


def test_a_proof_of_other_runs_is_refused(trained, tmp_path):
    proof = json.loads((trained / "certificate.json").read_text())
    other = json.loads((trained / "certificate-scores.json").read_text())
    forged = {**proof, "about": {**proof["about"], "runs": other["about"]["runs"]}}
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert main(["certify", "--check", str(tmp_path / "forged.json")]) == 1


def test_a_changed_proof_is_found_by_verify(trained, tmp_path, capsys):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in trained.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "certificate.json").write_text("{}")
    assert main(["verify", str(copy)]) == 1
    assert "certificate.json" in capsys.readouterr().out
    # What was changed since is not bound anew.
    assert main(["certify", str(copy)]) == 2
    assert "as they were written" in capsys.readouterr().err


def test_a_claim_that_is_too_small_is_disproved(trained, tmp_path, capsys):
    copy = tmp_path / "copy"
    copy.mkdir()
    document = report.read(trained)
    document["everything"]["epsilon"] |= {"upper": 0.5, "lower": 0.4}
    (copy / "report.json").write_text(json.dumps({**document, "files": {}}))
    assert main(["certify", str(copy)]) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_runs_of_one_report_are_proved_together(tmp_path, capsys):
    objective = optim.Logistic(TABLE["age"][:, None] / 100, TABLE["sick"] == "yes", classes=[0, 1])
    plan = calibrate.dpsgd(n=3000, batch_size=100, steps=20, epsilon=1.0, delta=1e-5)
    results = [dpcal.run(objective, plan) for _ in range(2)]
    earlier = report.runs_of(results[0])
    folder = report.save(tmp_path / "report", results[1], before=earlier)
    assert main(["certify", str(folder), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out).values()
    assert row["verdict"] == "proved"
    assert len(row["proof"]["about"]["runs"]) == 2
    assert row["epsilon"] > 1.2


def test_where_the_price_is_beyond_proof_the_target_is_proved(tmp_path, capsys):
    """Laplace noise has no delta at its epsilon, and a little less of it has a delta at once."""
    found = dpcal.release(TABLE, SCHEMA, ["mean age"], epsilon=0.5, delta=1e-6)
    folder = found.save(tmp_path / "report")
    assert main(["certify", str(folder), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out).values()
    assert row["verdict"] == "proved"
    assert row["epsilon"] >= report.read(folder)["everything"]["epsilon"]["upper"]
    assert main(["certify", "--check", str(folder / "certificate.json")]) == 0


def test_what_no_certificate_covers_is_refused_by_name(tmp_path, capsys):
    found = dpcal.release(TABLE, SCHEMA, ["quantile age 0.5"], epsilon=1.0, delta=1e-5)
    folder = found.save(tmp_path / "report")
    assert main(["certify", str(folder)]) == 2
    assert "ExponentialMechanismDpEvent" in capsys.readouterr().err
    assert not (folder / "certificate.json").exists()


@pytest.mark.parametrize("words", [["--epsilon", "1"], ["--delta", "1e-5"], ["-o", "proof.json"]])
def test_options_of_a_run_are_refused_beside_a_report(trained, words, capsys):
    assert main(["certify", str(trained), *words]) == 2
    assert "says its own" in capsys.readouterr().err
