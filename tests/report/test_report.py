"""A report is written whole or not at all, and a claim below its ledger is found out."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from _tree import DATA

from dpcal.calibrate import Plan, Query
from dpcal.cli import main
from dpcal.optim import Logistic, dpsgd
from dpcal.report import (
    FORMAT,
    composed_epsilon,
    fingerprint,
    privacy_statement,
    released,
    replace_file,
    replacing,
    verify,
)


@pytest.fixture(scope="module")
def document():
    """A report on two runs."""
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="poisson",
        sampling_probability=0.2,
        max_norm=1.0,
        noise_multiplier=2.0,
        count=20,
    )
    plan = Plan(optimizer="dpsgd", n=50, queries=(query,), epsilon=5.0, delta=1e-5)
    X = np.random.default_rng(0).standard_normal((50, 2))
    runs = [
        dpsgd(Logistic(X, X[:, 0] > 0, classes_from_data=True), plan, seed=seed) for seed in (0, 1)
    ]
    return {
        "format": FORMAT,
        "privacy": privacy_statement(runs[0]),
        "runs": [released(run) for run in runs],
        "everything": composed_epsilon([run.ledger for run in runs], 1e-5),
    }


def test_verify_agrees_with_what_was_written(document):
    rows = verify(json.loads(json.dumps(document)))
    assert len(rows) == 3
    assert all(row["holds"] for row in rows)
    assert rows[2]["recomputed"] > rows[0]["recomputed"]


WRITTEN_BEFORE = json.loads((DATA / "reports.json").read_text())


@pytest.mark.parametrize("place", range(len(WRITTEN_BEFORE)))
def test_reports_that_were_written_before_still_verify(place, tmp_path):
    """By former versions: the demonstration, DP-SGD, correlated noise, and noisy scores."""
    (tmp_path / "report.json").write_text(json.dumps(WRITTEN_BEFORE[place]))
    # In a process of its own, for nothing that it needs may have been loaded by another test.
    alone = subprocess.run([sys.executable, "-m", "dpcal", "verify", tmp_path], check=False)
    assert alone.returncode == 0
    false = copy.deepcopy(WRITTEN_BEFORE[place])
    false["everything"]["epsilon"]["upper"] *= 0.999
    (tmp_path / "report.json").write_text(json.dumps(false))
    assert main(["verify", str(tmp_path)]) == 1


def test_verify_finds_a_claim_that_is_too_small(document, tmp_path, capsys):
    false = copy.deepcopy(document)
    false["runs"][1]["epsilon"]["upper"] *= 0.999
    assert [row["holds"] for row in verify(false)] == [True, False, True]
    (tmp_path / "report.json").write_text(json.dumps(false))
    assert main(["verify", str(tmp_path)]) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_verify_finds_a_longer_ledger(document):
    false = copy.deepcopy(document)
    false["runs"][0]["ledger"]["entries"][0]["count"] += 1
    assert [row["holds"] for row in verify(false)] == [False, True, False]


@pytest.mark.parametrize("damage", ["format", "runs", "everything"])
def test_verify_refuses_what_is_not_a_report(document, damage):
    broken = {key: value for key, value in document.items() if key != damage}
    with pytest.raises(ValueError, match=damage):
        verify(broken)


def test_two_releases_cost_more_than_one(document):
    one = document["runs"][0]["epsilon"]["upper"]
    assert one < document["everything"]["epsilon"]["upper"] < 2 * one


def test_an_old_report_is_replaced(tmp_path):
    folder = tmp_path / "report"
    for content in ("old", "new"):
        with replacing(folder, force=content == "new") as temporary:
            (temporary / "report.json").write_text(json.dumps({"format": FORMAT}))
            (temporary / "model.json").write_text(content)
    assert {path.name for path in folder.iterdir()} == {"report.json", "model.json"}
    assert (folder / "model.json").read_text() == "new"
    assert list(tmp_path.iterdir()) == [folder]


def test_an_old_report_is_kept_unless_told_otherwise(tmp_path):
    (tmp_path / "report.json").write_text(json.dumps({"format": FORMAT}))
    with pytest.raises(ValueError, match="--force"), replacing(tmp_path):
        pytest.fail("must not start")


def test_files_of_others_stay_in_the_folder(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps({"format": FORMAT}))
    (folder / "accuracy.png").touch()
    (folder / "notes.txt").write_text("years of work")
    with replacing(folder, force=True) as temporary:
        (temporary / "report.json").write_text(json.dumps({"format": FORMAT}))
    assert {path.name for path in folder.iterdir()} == {"report.json", "notes.txt"}
    assert (folder / "notes.txt").read_text() == "years of work"

    def taking():
        with replacing(folder, force=True) as new:
            (new / "report.json").write_text(json.dumps({"format": FORMAT}))
            (new / "notes.txt").touch()

    with pytest.raises(ValueError, match=r"holds 'notes\.txt'"):
        taking()
    assert (folder / "notes.txt").read_text() == "years of work"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_failure_leaves_the_old_report(tmp_path):
    folder = tmp_path / "report"
    with replacing(folder) as temporary:
        (temporary / "report.json").write_text(json.dumps({"format": FORMAT}))

    def interrupted():
        with replacing(folder, force=True) as temporary:
            (temporary / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in folder.iterdir()] == ["report.json"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("content", ["not JSON", "[]", "{}", '{"format": "other"}'])
def test_a_folder_with_something_else_is_kept(tmp_path, content):
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ValueError, match="something else"), replacing(tmp_path):
        pytest.fail("must not start")
    assert (tmp_path / "report.json").read_text() == content


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "plan.json"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_fingerprints_tell_shapes_types_and_order_apart():
    a, b = np.arange(6.0), np.arange(6.0)[::-1].copy()
    cases = [[a], [a.reshape(2, 3)], [a.astype("f4")], [b], [a, b], [b, a]]
    values = {fingerprint(case)["value"] for case in cases}
    assert len(values) == len(cases)
    assert fingerprint([a]) == fingerprint([np.arange(6.0)])


def _rewritten(document, change):
    false = copy.deepcopy(document)
    for run in false["runs"]:
        change(run)
    return [row["holds"] for row in verify(false)]


def test_verify_finds_a_claim_inside_a_wide_interval(document, monkeypatch):
    # A lower bound of zero is true of everything: a claim above it is no proof.
    from dpcal.accountants import Epsilon

    monkeypatch.setattr(Epsilon, "to_dict", _with_no_lower_bound(Epsilon.to_dict))
    false = copy.deepcopy(document)
    false["runs"][0]["epsilon"]["upper"] = 0.01
    assert [row["holds"] for row in verify(false)] == [False, True, True]


def _with_no_lower_bound(to_dict):
    return lambda self: {**to_dict(self), "lower": 0.0}


def test_verify_finds_a_ledger_outside_its_plan(document):
    def quieter(run):
        run["ledger"]["entries"][0]["noise_multiplier"] = 50.0

    def larger(run):
        run["ledger"]["n"] = 10**6

    def unknown(run):
        run["ledger"]["entries"][0]["name"] = "another"

    for change in (quieter, larger, unknown):
        assert _rewritten(document, change) == [False] * 3


def test_verify_names_the_delta_and_the_confidence(document, tmp_path, capsys):
    assert {row["delta"] for row in verify(document)} == {1e-5}
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("1e-05") == 3
    assert main(["verify", str(tmp_path / "report.json")]) == 0
    false = copy.deepcopy(document)
    false["runs"][0]["epsilon"]["label"] = "exact"
    assert [row["holds"] for row in verify(false)] == [False, True, True]


def test_runs_that_stopped_early_cost_their_plans_together():
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="full",
        max_norm=1.0,
        noise_multiplier=9.0,
        count=8,
    )
    plan = Plan(optimizer="dpsgd", n=50, queries=(query,), epsilon=5.0, delta=1e-5)
    X = np.random.default_rng(0).standard_normal((50, 2))
    task = Logistic(X, X[:, 0] > 0, classes_from_data=True)
    run = dpsgd(task, plan, seed=0, callback=lambda progress: progress.step == 2, callback_every=1)
    assert run.ledger.count("gradient") == 2
    together = composed_epsilon([run], 1e-5)
    assert together["epsilon"]["upper"] == pytest.approx(plan.price(), rel=1e-9)
    written = {"format": FORMAT, "runs": [released(run)], "everything": together}
    assert all(row["holds"] for row in verify(written))
    written["everything"] = composed_epsilon([run.ledger], 1e-5)
    written["runs"][0]["epsilon"] = run.ledger.epsilon(1e-5).to_dict()
    assert [row["holds"] for row in verify(written)] == [False, False]


def test_runs_under_different_relations_have_no_price_together(document):
    false = copy.deepcopy(document)
    for part in ("plan", "ledger"):
        false["runs"][1][part]["neighboring_relation"] = "replace-special"
    with pytest.raises(ValueError, match="share one neighboring relation"):
        verify(false)
