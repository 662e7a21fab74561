"""The commands ``audit`` and ``schedule``."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpcal.calibrate.papers import ALGORITHMS, PAPERS
from dpcal.calibrate.papers.from_schedule import PLANNERS
from dpcal.cli import main
from dpcal.commands.schedule import CONSTANTS, SCHEDULES

SIZES = ["--n", "60000", "--d", "784", "--epsilon", "1", "--delta", "1e-6"]


def test_explain(capsys):
    assert main(["audit", "kl_condition", "--explain", "EP1"]) == 0
    out = capsys.readouterr().out
    assert "17*rho/8-zCDP" in out
    assert "Use:" in out


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


BALL = "--L0 1 --L1 1 --F0 1"
SCHEDULED = {
    "spiderboost": BALL,
    "tree_spider": BALL,
    "recursive_regularization": "--L0 1 --L1 1",
    "jl_glm": BALL,
    "kl_condition": f"{BALL} --gamma 1",
    "proximal_point": "--L0 1 --F0 1 --gamma 1 --Ltil 1",
    "adaptive_gd": f"{BALL} --gamma 1",
    "gauss_psgd": "--G 1 --M 1 --U 0.5 --rho 1 --neighboring-relation replace-one",
    "select_point": "--G 1 --M 1 --rho 1 --candidates 10 --alpha 0.3",
    "dp_rgda": "--M 1 --L 1 --F0 1 --mu 1 --rho 1",
    "kan": "--gamma 0.5",
    "moments": "--q 0.01 --T 1000",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_that_help_names_prints_a_plan(name, capsys):
    sizes = ["--n", "1000000", "--epsilon", "1", "--delta", "1e-6"]
    sizes += ["--d", "20"] if "d" in SCHEDULES[name][1].split() else []
    assert main(["schedule", name, *sizes, *SCHEDULED[name].split()]) == 0
    document = json.loads(capsys.readouterr().out)
    assert 0 < document["priced_epsilon"] <= 1
    # What a plan promises is a bound or an order, and the two are told apart.
    promised = {"accuracy", "vacuous"} & {*document["parameters"]}
    assert document["accuracy_kind"] in (("guarantee", "order") if promised else (None,))
    with_constants = {"spiderboost", "tree_spider", "kl_condition", "proximal_point", "adaptive_gd"}
    guaranteed = name in {*with_constants, "select_point"}
    assert (document["accuracy_kind"] == "guarantee") == guaranteed


def test_help_names_each_schedule_with_the_constants_that_it_takes():
    assert set(SCHEDULES) == {*PLANNERS, *ALGORITHMS}
    for name, (_, needs) in SCHEDULES.items():
        named, optional = needs.replace("]", "").partition("[")[::2]
        if name in PLANNERS:
            parameters = inspect.signature(PLANNERS[name]).parameters
            known = {*parameters} - {"schedule", "n", "epsilon", "delta", "neighboring_relation"}
            free = {k for k in known if parameters[k].default is not inspect.Parameter.empty}
        else:
            algorithm = ALGORITHMS[name]
            known = {"d", *algorithm.constants, *algorithm.options}
            free = {*algorithm.optional}
        assert {*named.split(), *optional.split()} == known <= {*CONSTANTS}
        assert {*optional.split()} == free


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
        "I37",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "PROVED" in result.stdout


def test_every_constant_of_a_planner_has_an_option():
    assert set(PLANNERS) == set(PAPERS)
    given = {*CONSTANTS, "schedule", "n", "epsilon", "delta", "neighboring_relation"}
    for planner in PLANNERS.values():
        assert set(inspect.signature(planner).parameters) <= given


SIXTH = Path(__file__).parents[2] / "notebooks" / "dpsgd_2014.py"


@pytest.mark.slow
def test_a_sixth_paper_is_audited_from_its_file(capsys, tmp_path):
    path = tmp_path / "paper.json"
    assert main(["audit", str(SIXTH), "--format", "json", "-o", str(path)]) == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    found = {finding["claim"]: finding["status"] for finding in document["findings"]}
    assert found["textbook"] == "PROVED"
    assert document["counts"]["dpsgd_2014"]["REFUTED"] == [*found.values()].count("REFUTED") > 0
    assert capsys.readouterr().out == ""
    assert found["beyond.printed"] == "REFUTED"
    assert found["excess.exact"] == "PROVED"
    assert found["logarithm.printed"] == "REFUTED"
    assert all(finding["source"] for finding in document["findings"])
    assert {wrong["erratum"] for wrong in document["errata"]} == {"beyond", "logarithm"}


BROKEN = {
    "no_schedule": ("x = 1\n", "no_schedule.py must define SCHEDULE"),
    "unknown_symbol": (
        "from dpcal.calibrate.papers import *\n"
        "from dpcal.calibrate.papers import Bound, Quantity, Schedule\n"
        "SCHEDULE = Schedule(name='s', title='', citation='', quantities=(Quantity('n', 'size'),),"
        " claims=(Bound('c', '1 <= m', source='here'),))\n",
        "claim 'c': symbol m is not declared as a quantity; declared are n",
    ),
    "float": (
        "from dpcal.calibrate.papers import Bound, positive\n"
        "(x,) = positive('x')\nBound('c', 0.5 * x, x)\n",
        "claim 'c': number must be exact",
    ),
    "raises": ("1/0\n", "raises.py: division by zero"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_file_is_one_sentence(name, capsys, tmp_path):
    text, sentence = BROKEN[name]
    path = tmp_path / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    assert main(["audit", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_an_installed_schedule_is_found_by_its_name(monkeypatch, capsys, tmp_path):
    from importlib.metadata import EntryPoint

    from dpcal.calibrate.papers import sources

    (tmp_path / "outside_paper.py").write_text(
        "from dpcal.calibrate.papers import Bound, Quantity, Schedule\n"
        "SCHEDULE = Schedule(name='outside', title='', citation='',"
        " quantities=(Quantity('n', 'size'),), claims=(Bound('c', '0 < n', source='here'),))\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("outside", "outside_paper:SCHEDULE", sources.GROUP)
    monkeypatch.setattr(sources, "entry_points", lambda group: [point])
    assert main(["audit", "outside"]) == 0
    assert main(["audit", "outside", "--format", "latex"]) == 0
    assert r"\begin{longtable}" in capsys.readouterr().out
    monkeypatch.setattr(sources, "entry_points", lambda group: [])
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "outside_paper.py").rename(tmp_path / "package" / "paper.py")
    assert main(["audit", "package.paper"]) == 0
