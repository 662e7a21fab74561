"""The draft of an entry for the registry of deployments: what is known, the rest marked."""

import json

import numpy as np
import pytest

import dpcal
from dpcal import report
from dpcal.cli import main
from dpcal.report.registry import UNKNOWN

RNG = np.random.default_rng(0)
TABLE = {"age": RNG.uniform(20, 80, 2000), "who": [f"p{i // 2}" for i in range(2000)]}
SCHEMA = {
    "group_size": 2,
    "columns": {"age": {"type": "number", "range": [0, 100]}, "who": {"type": "person"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = dpcal.release(TABLE, SCHEMA, ["mean age"], epsilon=1.0, delta=1e-6)
    return found.save(tmp_path_factory.mktemp("clinic") / "report")


def test_what_the_report_knows_is_in_the_entry_and_the_rest_is_marked(folder, tmp_path):
    path = tmp_path / "entry.yaml"
    assert main(["verify", str(folder), "--registry", str(path)]) == 0
    entry = json.loads(path.read_text())
    told = entry["deployment"]
    claim = report.read(folder)["everything"]
    parameters = {"epsilon": claim["epsilon"]["upper"], "delta": 1e-6}
    assert told["privacy_loss"]["privacy_parameters"] == parameters
    assert told["privacy_loss"]["privacy_unit"] == "User-level"
    assert "2 training records" in told["privacy_loss"]["privacy_unit_description"]
    assert told["product"]["data_product_type"] == "Summary statistics"
    assert "blanked" in told["dp_flavor"]["input_metric"]
    assert "1 runs with 1 planned answers" in told["accounting"]["composition"]
    assert "number of records" in told["dp_flavor"]["unprotected_quantities"]
    assert told["product"]["intended_use"] == told["model"]["actors"] == UNKNOWN
    assert entry["status"] == "Draft"


def test_no_entry_of_a_claim_that_does_not_hold(folder, tmp_path, capsys):
    document = report.read(folder)
    document["everything"]["epsilon"]["upper"] = 0.1
    (tmp_path / "report.json").write_text(json.dumps({**document, "files": {}}))
    entry = tmp_path / "entry.yaml"
    assert main(["verify", str(tmp_path / "report.json"), "--registry", str(entry)]) == 2
    assert "whose claims hold" in capsys.readouterr().err
    assert not entry.exists()


def test_an_entry_replaces_no_file_and_is_of_one_report(folder, tmp_path, capsys):
    taken = tmp_path / "entry.yaml"
    taken.write_text("mine")
    assert main(["verify", str(folder), "--registry", str(taken)]) == 2
    assert taken.read_text() == "mine"
    both = [str(folder), str(folder), "--registry", str(tmp_path / "other.yaml")]
    assert main(["verify", *both]) == 2
    assert "for one report" in capsys.readouterr().err
