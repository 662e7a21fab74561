"""The draft of an entry for the registry of deployments: what is known, the rest marked."""

import json

from dpcal import report
from dpcal.report.registry import UNKNOWN


def test_what_the_report_knows_is_in_the_entry_and_the_rest_is_marked(cli, folder, tmp_path):
    path = tmp_path / "entry.yaml"
    cli("verify", folder, "--registry", path)
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


def test_an_entry_is_of_one_report_that_holds_and_replaces_no_file(
    cli, folder, too_small, tmp_path
):
    entry, taken = tmp_path / "entry.yaml", tmp_path / "taken.yaml"
    taken.write_text("mine")
    assert "whose claims hold" in cli.refused("verify", too_small, "--registry", entry)
    assert "for one report" in cli.refused("verify", folder, folder, "--registry", entry)
    assert cli.refused("verify", folder, "--registry", taken)
    assert taken.read_text() == "mine"
    assert not entry.exists()
