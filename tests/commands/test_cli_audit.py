"""The command ``audit``."""

import json
from importlib.metadata import EntryPoint

import pytest
from _tree import ROOT

from dpcal.calibrate import Plan
from dpcal.calibrate.papers import sources

BALL = "L0=1 L1=1 F0=1"
SIZES = "d=784 epsilon=1 delta=1e-6"


def test_a_theorem_at_numbers_is_a_table_of_its_settings_its_plan_and_its_cost(cli):
    out = cli("audit spiderboost --at n=60000", SIZES, BALL)
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["q"][1:4:2] != rows["q"][2:4:2]
    assert rows["lam"][1:3] == ["needs", "W"]
    assert (
        "refresh: kind gradient, sampler full, max_norm 1, noise_multiplier 60.2988, count 103"
        in out
    )
    assert out.strip().endswith(" at delta 1e-06")
    assert 0.999 < float(out.split()[-4]) <= 1


def test_a_theorem_at_numbers_is_a_document_with_a_plan_that_runs(cli):
    status, out, err = cli.run("audit spiderboost --json --at n=400", SIZES, BALL)
    assert status == 0
    assert "vacuous at n=400" in err
    document = json.loads(out)
    plan = Plan.from_json(json.dumps(document["plan"]))
    assert plan.parameters["informative_from_n"] > 400
    assert 0.999 < document["priced_epsilon"] == float(plan.price()) <= 1
    assert document["accuracy_kind"] == "guarantee"
    found = {row["setting"]: row["value"] for row in document["settings"]}
    assert (found["T"], found["b2"]) == (plan.parameters["steps"], plan.parameters["batch_size"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("spiderboost --at n=60000 epsilon=1", "--at must have delta, got none"),
        ("spiderboost --at n 3", "--at: must be NAME=VALUE, got 'n'"),
        (f"spiderboost --at n=10 {SIZES} L0=1", "constants of spiderboost must include L1, F0"),
        (f"spiderbost --at n=10 {SIZES}", "did you mean 'spiderboost'"),
        (f"--at n=10 {SIZES}", "--at needs a paper"),
    ],
)
def test_what_a_theorem_lacks_is_said_in_a_sentence(cli, words, sentence):
    status, _, err = cli.run("audit", words)
    assert status == 2
    assert sentence in err


def test_a_command_that_is_gone_names_its_successor(cli):
    status, _, err = cli.run("schedule spiderboost --n 60000")
    assert status == 2
    assert "schedule may be meant to be audit PAPER --at" in err


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
