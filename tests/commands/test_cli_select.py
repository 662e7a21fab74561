"""``dpcal select`` and ``dpcal train --silos``: what they release, compose, verify and refuse."""

import json

import numpy as np
import pytest

from dpcal import accountants, optim
from dpcal.accountants import events
from dpcal.calibrate import Plan
from dpcal.cli import main
from dpcal.report import composed_reports, read, verify
from dpcal.tables import load_model

SCHEMA = """
[columns.age]
type = "number"
range = [18, 95]
[columns.risk]
type = "number"
range = [-4, 4]
[columns.clinic]
type = "category"
categories = ["north", "south", "west"]
[columns.sick]
type = "class"
classes = ["no", "yes"]
"""
TARGET = ["--epsilon", "2", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of 1,500 records each, a schema, and reports of two models of the first."""
    pytest.importorskip("polars")
    folder = tmp_path_factory.mktemp("clinics")
    rng = np.random.default_rng(1)
    for name in ("patients.csv", "new.csv"):
        age, risk = rng.integers(18, 95, 1500), rng.normal(0, 1, 1500).round(2)
        clinic = rng.choice(["north", "south", "west"], 1500, p=[0.4, 0.3, 0.3])
        sick = np.where(age / 20 + risk > 3, "yes", "no")
        rows = [",".join(map(str, row)) for row in zip(age, risk, clinic, sick, strict=True)]
        (folder / name).write_text("\n".join(["age,risk,clinic,sick", *rows]) + "\n")
    (folder / "schema.toml").write_text(SCHEMA)
    for seed in ("1", "2"):
        trained = ["--epochs", "3", "--seed", seed, "-o", str(folder / f"report-{seed}")]
        assert main(["train", *table(folder), "--target", "sick", *TARGET, *trained]) == 0
    return folder


def table(folder, name="patients.csv"):
    return [str(folder / name), "--schema", str(folder / "schema.toml")]


def select(folder, *given, name="new.csv", accuracy="3", out="selection"):
    asked = ["select", str(folder / name), "--accuracy", accuracy, *TARGET, "--seed", "7"]
    return [*asked, "--force", "-o", str(folder / out), *map(str, given)]


def reports(folder):
    return ["--candidates", str(folder / "report-1"), str(folder / "report-2" / "model.json")]


# -- select


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gaussian", "above-threshold", "report-noisy-max"])
def test_the_chosen_model_and_its_price(capsys, folder, method):
    out = f"selection-{method}"
    with optim.replaying():
        assert main(select(folder, *reports(folder), "--method", method, out=out)) == 0
    text = capsys.readouterr().out
    document = read(folder / out)
    (run,) = document["runs"]
    # The claim is what the plan's answers cost, and no more than the target.
    plan = Plan.from_json(json.dumps(run["plan"]))
    assert plan.parameters["candidates"] == 2
    assert run["epsilon"]["upper"] == plan.price().upper <= 2.0
    assert "accepted" in text
    assert document["privacy"]["unit"].startswith("one record of the table that candidates")
    assert all(row["holds"] for row in verify(document))
    assert main(["verify", str(folder / out)]) == 0
    index = document["selection"]["index"]
    given = load_model(folder / f"report-{index + 1}")
    chosen = load_model(folder / out)
    np.testing.assert_array_equal(chosen.weights, given.weights)
    assert (chosen.intercept, chosen.labels) == (given.intercept, ("no", "yes"))
    # A claim below what was paid does not pass.
    document["everything"]["epsilon"]["upper"] = 0.9 * run["epsilon"]["lower"]
    assert not verify(document)[-1]["holds"]


@pytest.mark.slow
def test_training_on_the_same_records_is_composed(capsys, folder):
    asked = select(folder, *reports(folder), name="patients.csv", out="composed")
    assert main(asked) == 2
    assert "say --same-records, and the prices are composed" in capsys.readouterr().err
    assert not (folder / "composed").exists()
    with optim.replaying():
        assert main([*asked, "--same-records"]) == 0
        assert "with 4 runs of training on the same records" in capsys.readouterr().out
        document = read(folder / "composed")
        assert len(document["runs"]) == 5
        assert all(row["holds"] for row in verify(document))
        plans = [Plan.from_json(json.dumps(run["plan"])) for run in document["runs"]]
        whole = accountants.epsilon(
            events.ComposedDpEvent([plan.event for plan in plans]),
            delta=1e-6,
            neighboring_relation="replace-special",
        )
        assert document["everything"]["epsilon"]["upper"] >= whole.lower > 3.0
        # Without the training's runs the claim would be too small, and verify says so.
        alone = document["runs"][-1]["epsilon"]
        document["everything"]["epsilon"] = alone
        assert not verify(document)[-1]["holds"]
        assert main([*asked, "--other-records"]) == 0
    assert len(read(folder / "composed")["runs"]) == 1


@pytest.mark.slow
def test_points_are_candidates_too_and_none_may_pass(capsys, folder):
    model = load_model(folder / "report-1")
    good, bad = [*model.weights, model.intercept], [-40.0, -40.0, 0.0, 0.0, 0.0, 0.0]
    (folder / "points.json").write_text(json.dumps([bad, good]))
    given = ["--schema", folder / "schema.toml", "--target", "sick"]
    points = ["--candidates", folder / "points.json"]
    asked = select(folder, *given, *points, accuracy="0.5", out="points")
    with optim.replaying():
        assert main(asked) == 0
        assert "points.json, point 2, after 2 tested" in capsys.readouterr().out
        assert load_model(folder / "points").intercept == good[-1]
        (folder / "points.json").write_text(json.dumps([bad]))
        assert main(asked) == 1
    assert "no candidate passed, 1 tested" in capsys.readouterr().out
    document = read(folder / "points")
    assert document["selection"]["chosen"] is None
    assert all(row["holds"] for row in verify(document))
    assert not (folder / "points" / "model.json").exists()


def write(folder, name, content):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda f: [], "select needs --candidates"),
        (lambda f: ["--candidates", f / "nowhere"], "candidates must be readable files"),
        (lambda f: ["--candidates", f / "schema.toml"], "candidates must be readable files"),
        (lambda f: ["--candidates", write(f, "a.json", [[1, "x"]])], "lists of finite numbers"),
        (lambda f: ["--candidates", write(f, "b.json", [])], "lists of finite numbers"),
        (lambda f: ["--candidates", write(f, "c.json", [[1.0]])], "select needs --schema and"),
        (
            lambda f: [
                *("--candidates", write(f, "c.json", [[1.0]])),
                *("--schema", f / "schema.toml", "--target", "sick"),
            ],
            "candidates must be points of 6 numbers",
        ),
        (lambda f: [*reports(f), "--target", "sick"], "are for candidates that are points"),
        (lambda f: [*reports(f), "--accuracy", "0"], "accuracy must be a finite number > 0"),
        (lambda f: [*reports(f), "--method", "guess"], "invalid choice: 'guess'"),
        (
            lambda f: [*reports(f), "--method", "power-method"],
            "n must be larger for method='power-method', got 1500",
        ),
        (lambda f: [*reports(f), "--same-records", "--other-records"], "exclude each other"),
        (
            lambda f: [*reports(f), "--neighboring-relation", "add-or-remove-one"],
            "must be replace-one or replace-special",
        ),
        (
            lambda f: [
                *reports(f),
                "--same-records",
                "--neighboring-relation",
                "replace-one",
            ],
            "one neighboring relation for all runs",
        ),
        (lambda f: [*reports(f), "--failure-probability", "2"], "failure_probability must be"),
        (lambda f: [*reports(f), "--epsilon", "-1"], "epsilon must be"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing(capsys, folder, given, sentence):
    assert main(select(folder, *given(folder), out="wrong")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert not (folder / "wrong").exists()


def test_a_model_of_numbers_has_no_saddle_to_be_told_from(capsys, tmp_path):
    about = {"loss": "squared"}
    model = {"format": "dpcal-model"}
    path = write(tmp_path, "model.json", {**model, "about": about})
    assert main(select(tmp_path, "--candidates", path)) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


# -- train --silos


def train(folder, *given, name="patients.csv"):
    asked = ["train", *table(folder, name), "--target", "sick", *TARGET, "--seed", "5"]
    return [*asked, "--optimizer", "distributed_psgd", "--silos", "clinic", *map(str, given)]


@pytest.mark.slow
def test_each_silo_of_a_table_has_its_own_ledger(capsys, folder):
    out = folder / "silos"
    with optim.replaying():
        assert main([*train(folder), "--force", "-o", str(out)]) == 0
    assert "3 silos, each with noise and a ledger of its own" in capsys.readouterr().out
    document = read(out)
    sizes = document["training"]["silos"]["training_records"]
    assert list(sizes) == ["north", "south", "west"]
    assert sum(sizes.values()) == document["data"]["training_records"]
    assert [run["silo"] for run in document["runs"]] == [0, 1, 2]
    for run, n in zip(document["runs"], sizes.values(), strict=True):
        plan = Plan.from_json(json.dumps(run["plan"]))
        assert (plan.n, plan.parameters["silos"]) == (n, 3)
        asked = sum(entry["count"] * entry["batch_size"] for entry in run["ledger"]["entries"])
        assert 0 < asked <= n
        assert plan.price().upper == run["epsilon"]["upper"] <= 2.0
    assert document["privacy"]["unit"] == "one record of one silo, all other records fixed"
    assert "number of records of each 'clinic'" in document["data"]["read_from_data"]
    assert main(["verify", str(out)]) == 0
    # A record is in one silo: two such reports cost what one silo pays twice, not six times.
    twice = composed_reports([document, document], 1e-6)
    events_of_one = [Plan.from_json(json.dumps(document["runs"][0]["plan"])).event] * 2
    scores = Plan.from_json(json.dumps(document["evaluation"]["plan"])).event
    direct = accountants.epsilon(
        events.ComposedDpEvent([*events_of_one, scores, scores]),
        delta=1e-6,
        neighboring_relation="replace-special",
    )
    assert float(twice) == pytest.approx(float(direct), rel=1e-6)
    # Runs of one silo in place of three are composed, and the claim no longer holds.
    for run in document["runs"]:
        run["silo"] = 0
    assert not verify(document)[-1]["holds"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--silos", "age"], "must be a column of type 'category'"),
        (["--silos", "nobody"], "nobody"),
        (["--optimizer", "dpsgd"], "--silos is for --optimizer distributed_psgd, got dpsgd"),
        (["--budget", "book"], "each silo has its own"),
    ],
)
def test_wrong_silos_are_one_sentence(capsys, folder, tmp_path, given, sentence):
    assert main([*train(folder, *given), "-o", str(tmp_path / "report")]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_silos_need_a_schema_and_a_record_each(capsys, folder, tmp_path):
    plain = ["train", str(folder / "patients.csv"), "--target", "sick", *TARGET]
    asked = [*plain, "--optimizer", "distributed_psgd", "--silos", "clinic"]
    assert main([*asked, "-o", str(tmp_path / "report")]) == 2
    assert "--silos needs a --schema" in capsys.readouterr().err
    for old, new, sentence in (
        ('"west"]', '"west", "east"]', "'east' has none"),
        ('"west"]', '"west"]\nunknown = "ignore"', "a silo for each record"),
    ):
        (tmp_path / "schema.toml").write_text(SCHEMA.replace(old, new))
        given = [*asked, "--schema", str(tmp_path / "schema.toml")]
        assert main([*given, "-o", str(tmp_path / "report")]) == 2
        assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["schema.toml"]
