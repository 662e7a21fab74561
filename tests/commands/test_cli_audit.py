"""The commands ``audit`` and ``schedule``."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpcal.calibrate.plans.from_schedule import PLANNERS
from dpcal.calibrate.schedules import PAPERS
from dpcal.cli import main
from dpcal.commands.schedule import CONSTANTS

SIZES = ["--n", "60000", "--d", "784", "--epsilon", "1", "--delta", "1e-6"]


def test_explain(capsys):
    assert main(["audit", "kl_condition", "--explain", "EP1"]) == 0
    out = capsys.readouterr().out
    assert "17*rho/8-zCDP" in out
    assert "Use:" in out


@pytest.mark.slow
def test_formats_and_output(tmp_path, capsys):
    path = tmp_path / "kan.json"
    assert main(["audit", "kan", "--format", "json", "-o", str(path)]) == 0
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    assert document["counts"]["kan"]["REFUTED"] > 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["audit", "kl_conditon"], "did you mean 'kl_condition'?"),
        (["audit", "kl_condition", "--explain", "EP99"], "did you mean"),
        (["audit", "--explain", "EP1"], "--explain needs a paper"),
        (["schedule", "spiderbost", *SIZES], "did you mean 'spiderboost'?"),
        (["schedule", "spiderboost", *SIZES], "must include L0, L1, F0"),
        (["schedule", "spiderboost", *SIZES, "--L0", "1", "--L1", "1", "--F0", "0"], "F0 must be"),
        (["schedule", "kan", *SIZES, "--gamma", "0.1", "--L0", "1"], "constant of kan must be"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, sentence, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_schedule_prints_a_plan_that_meets_its_target(capsys):
    assert main(["schedule", "spiderboost", *SIZES, "--L0", "1", "--L1", "1", "--F0", "1"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert 0.999 < document["priced_epsilon"] <= 1
    assert captured.err == ""


def test_vacuous_schedule_warns_and_names_a_size(capsys):
    arguments = ["--n", "400", *SIZES[2:], "--L0", "1", "--L1", "1", "--F0", "1"]
    assert main(["schedule", "spiderboost", *arguments]) == 0
    captured = capsys.readouterr()
    assert "vacuous at n=400" in captured.err
    assert json.loads(captured.out)["parameters"]["informative_from_n"] > 400


@pytest.mark.slow
def test_module_runs():
    command = [
        sys.executable,
        "-m",
        "dpcal",
        "audit",
        "kan",
        "--explain",
        "I33",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "PROVED" in result.stdout


def test_every_constant_of_a_planner_has_an_option():
    assert set(PLANNERS) == set(PAPERS)
    given = {*CONSTANTS, "schedule", "n", "epsilon", "delta", "neighboring_relation"}
    for planner in PLANNERS.values():
        assert set(inspect.signature(planner).parameters) <= given
