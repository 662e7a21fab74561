"""A report is written whole or not at all, and a claim below its ledger is found out."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from _tree import DATA

from dpcal import report
from dpcal.accountants import Epsilon
from dpcal.calibrate import Plan, Query
from dpcal.optim import Logistic, dpsgd

X = np.random.default_rng(0).standard_normal((50, 2))
TASK = Logistic(X, X[:, 0] > 0, classes_from_data=True)


def plan_of(**noise):
    query = Query(name="gradient", kind="gradient", max_norm=1.0, **noise)
    return Plan(optimizer="dpsgd", n=50, queries=(query,), epsilon=5.0, delta=1e-5)


@pytest.fixture(scope="module")
def made():
    """A report on two runs."""
    noise = {"sampler": "poisson", "sampling_probability": 0.2, "noise_multiplier": 2.0}
    runs = [dpsgd(TASK, plan_of(count=20, **noise), seed=seed) for seed in (0, 1)]
    return {
        "format": report.FORMAT,
        "privacy": report.privacy_statement(runs[0]),
        "runs": [report.released(run) for run in runs],
        "everything": report.composed_epsilon([run.ledger for run in runs], 1e-5),
    }


@pytest.fixture
def document(made):
    """A copy of it, to be changed."""
    return copy.deepcopy(made)


def holds(document):
    return [row["holds"] for row in report.verify(document)]


def test_verify_agrees_with_what_was_written(cli, document, tmp_path):
    rows = report.verify(json.loads(json.dumps(document)))
    assert [row["holds"] for row in rows] == [True, True, True]
    assert {row["delta"] for row in rows} == {1e-5}
    assert rows[2]["recomputed"] > rows[0]["recomputed"]
    one = document["runs"][0]["epsilon"]["upper"]
    assert one < document["everything"]["epsilon"]["upper"] < 2 * one
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert cli("verify", tmp_path).count("1e-05") == 3
    assert cli("verify", tmp_path / "report.json")
    document["runs"][1]["epsilon"]["upper"] *= 0.999
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert "DOES NOT HOLD" in cli("verify", tmp_path, status=1)


WRITTEN_BEFORE = json.loads((DATA / "reports.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(WRITTEN_BEFORE)))
def test_reports_that_were_written_before_still_verify(cli, place, tmp_path):
    """By former versions: the demonstration, DP-SGD, correlated noise, and noisy scores."""
    false = copy.deepcopy(WRITTEN_BEFORE[place])
    (tmp_path / "report.json").write_text(json.dumps(false))
    # In a process of its own, for nothing that it needs may have been loaded by another test.
    alone = subprocess.run([sys.executable, "-m", "dpcal", "verify", tmp_path], check=False)
    assert alone.returncode == 0
    false["everything"]["epsilon"]["upper"] *= 0.999
    (tmp_path / "report.json").write_text(json.dumps(false))
    assert cli("verify", tmp_path, status=1)


def in_run(number, **change):
    return lambda document: document["runs"][number]["epsilon"].update(change)


def in_entry(**change):
    return lambda document: [run["ledger"]["entries"][0].update(change) for run in document["runs"]]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda d: in_run(1, upper=0.999 * d["runs"][1]["epsilon"]["upper"])(d), [1, 0, 1]),
        (in_run(0, label="exact"), [0, 1, 1]),
        (lambda d: d["runs"][0]["ledger"]["entries"][0].update(count=21), [0, 1, 0]),
        # A ledger outside its plan: with less noise, of more records, of another query.
        (in_entry(noise_multiplier=50.0), [0, 0, 0]),
        (in_entry(name="another"), [0, 0, 0]),
        (lambda d: [run["ledger"].update(n=10**6) for run in d["runs"]], [0, 0, 0]),
    ],
)
def test_verify_finds_what_is_false(document, change, found):
    change(document)
    assert holds(document) == list(map(bool, found))


def test_verify_finds_a_claim_inside_a_wide_interval(document, monkeypatch):
    # A lower bound of zero is true of everything: a claim above it is no proof.
    to_dict = Epsilon.to_dict
    monkeypatch.setattr(Epsilon, "to_dict", lambda self: {**to_dict(self), "lower": 0.0})
    document["runs"][0]["epsilon"]["upper"] = 0.01
    assert holds(document) == [False, True, True]


def test_verify_refuses_what_is_not_a_report(document):
    for damage in ("format", "runs", "everything"):
        less = {name: part for name, part in document.items() if name != damage}
        with pytest.raises(ValueError, match=damage):
            report.verify(less)
    for part in ("plan", "ledger"):
        document["runs"][1][part]["neighboring_relation"] = "replace-special"
    with pytest.raises(ValueError, match="share one neighboring relation"):
        report.verify(document)


def save(folder, files, force=True):
    """Write a report with these files."""
    with report.replacing(folder, force=force) as temporary:
        (temporary / "report.json").write_text(json.dumps({"format": report.FORMAT}))
        for name, text in files.items():
            (temporary / name).write_text(text)
            if text == "interrupted":
                raise KeyboardInterrupt


def kept(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.stem != "report"}


def test_an_old_report_is_replaced_and_files_of_others_stay(tmp_path):
    folder = tmp_path / "report"
    save(folder, {"model.json": "old"})
    others = {"notes.txt": "years of work", "accuracy.png": ""}
    for name, text in others.items():
        (folder / name).write_text(text)
    with pytest.raises(ValueError, match="--force"):
        save(folder, {}, force=False)
    with pytest.raises(KeyboardInterrupt):
        save(folder, {"half": "interrupted"})
    with pytest.raises(ValueError, match=r"holds 'notes\.txt'"):
        save(folder, {"notes.txt": "mine"})
    assert kept(folder) == {"model.json": "old", **others}
    save(folder, {"model.json": "new"})  # an earlier picture of a report goes
    assert kept(folder) == {"model.json": "new", "notes.txt": "years of work"}
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("content", ["not JSON", "[]", "{}", '{"format": "other"}'])
def test_a_folder_with_something_else_is_kept(tmp_path, content):
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ValueError, match="something else"):
        save(tmp_path, {})
    assert (tmp_path / "report.json").read_text() == content


def test_a_file_is_replaced_whole(tmp_path):
    for content in (b"one", b"two"):
        report.replace_file(tmp_path / "plan.json", content)
    assert (tmp_path / "plan.json").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_fingerprints_tell_shapes_types_and_order_apart():
    a, b = np.arange(6.0), np.arange(6.0)[::-1].copy()
    cases = [[a], [a.reshape(2, 3)], [a.astype("f4")], [b], [a, b], [b, a]]
    values = {report.fingerprint(case)["value"] for case in cases}
    assert len(values) == len(cases)
    assert report.fingerprint([a]) == report.fingerprint([np.arange(6.0)])


def test_runs_that_stopped_early_cost_their_plans_together():
    plan = plan_of(sampler="full", noise_multiplier=9.0, count=8)
    run = dpsgd(TASK, plan, seed=0, callback=lambda progress: progress.step == 2, callback_every=1)
    assert run.ledger.count("gradient") == 2
    together = report.composed_epsilon([run], 1e-5)
    assert together["epsilon"]["upper"] == pytest.approx(plan.price(), rel=1e-9)
    written = {"format": report.FORMAT, "runs": [report.released(run)], "everything": together}
    assert holds(written) == [True, True]
    written["everything"] = report.composed_epsilon([run.ledger], 1e-5)
    written["runs"][0]["epsilon"] = run.ledger.epsilon(1e-5).to_dict()
    assert holds(written) == [False, False]
