"""The command ``audit``."""

import json
from importlib.metadata import EntryPoint

import pytest
from _tree import ROOT

from dpcal.calibrate.papers import sources


@pytest.mark.slow
def test_a_sixth_paper_is_audited_from_its_file(cli, tmp_path):
    path = tmp_path / "paper.json"
    sixth = ROOT / "notebooks" / "dpsgd_2014.py"
    assert "written to" in cli("audit", sixth, "--format json -o", path)
    document = json.loads(path.read_text(encoding="utf-8"))
    found = {finding["claim"]: finding["status"] for finding in document["findings"]}
    told = ("textbook", "beyond.printed", "excess.exact", "logarithm.printed")
    assert [found[name] for name in told] == ["PROVED", "REFUTED", "PROVED", "REFUTED"]
    assert document["counts"]["dpsgd_2014"]["REFUTED"] == [*found.values()].count("REFUTED")
    assert all(finding["source"] for finding in document["findings"])
    assert {wrong["erratum"] for wrong in document["errata"]} == {"beyond", "logarithm"}


def test_an_installed_schedule_is_found_by_its_name(cli, monkeypatch, tmp_path):
    (tmp_path / "outside_paper.py").write_text(
        "from dpcal.calibrate.papers import Schedule\n"
        "SCHEDULE = Schedule(name='outside', quantities='n: size',"
        " claims='Lemma 1:\\n  c: 0 < n')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("outside", "outside_paper:SCHEDULE", sources.GROUP)
    monkeypatch.setattr(sources, "entry_points", lambda group: [point])
    assert cli("audit outside")
    assert r"\begin{longtable}" in cli("audit outside --format latex")
    monkeypatch.setattr(sources, "entry_points", lambda group: [])
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "outside_paper.py").rename(tmp_path / "package" / "paper.py")
    assert cli("audit package.paper")
