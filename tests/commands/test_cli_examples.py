"""Every command's help has two examples, and a reader who copies them gets an answer."""

import contextlib
import io
import json
import shlex
import shutil

import numpy as np
import pytest

from dpcal.cli import main
from dpcal.commands import COMMANDS, load

# As a reader would meet them: a table, its schema, a model, and what is made of them.
ORDER = ("budget", "schema", "train", "predict", "verify")
ELSEWHERE = ("demo", "attack", "corpus")  # which take long, and have tests of their own


def run(name):
    """Run both examples of a command and check that each says something."""
    for example in load(name).EXAMPLES:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            assert main([name, *shlex.split(example)]) == 0, example
        assert said.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the tables that the examples name, and what those of ``ORDER`` write."""
    pytest.importorskip("polars")
    folder = tmp_path_factory.mktemp("clinic")
    rng = np.random.default_rng(3)
    age, risk = rng.integers(18, 95, 1500), rng.normal(0, 1, 1500).round(2)
    sick = np.where(age / 20 + risk > 3, "yes", "no")
    rows = [f"{a},{r},{s}" for a, r, s in zip(age, risk, sick, strict=True)]
    (folder / "patients.csv").write_text("\n".join(["age,risk,sick", *rows]) + "\n")
    shutil.copy(folder / "patients.csv", folder / "new.csv")
    with contextlib.chdir(folder):
        for name in ORDER:
            run(name)
    return folder


@pytest.fixture
def inside(folder, monkeypatch):
    """Stand in the folder."""
    monkeypatch.chdir(folder)
    return folder


def test_every_command_has_two_examples():
    for name in COMMANDS:
        first, second = load(name).EXAMPLES
        assert first != second


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ORDER + ELSEWHERE])
def test_examples_run(inside, name):
    run(name)


@pytest.mark.slow
def test_two_reports_are_composed(capsys, inside):
    """Both runs are in one budget book's table too: two prices of one composition agree."""
    reports = ["dpcal-report", "second-report"]
    assert main(["verify", *reports, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["together"]["runs"] == 2
    each = [
        json.loads((inside / name / "report.json").read_text())["runs"][0]["epsilon"]["upper"]
        for name in reports
    ]
    assert max(each) < told["together"]["epsilon"]["upper"] < sum(each) * 1.6
    assert "same records" in told["together"]["notes"][0]


@pytest.mark.slow
def test_reports_under_two_relations_are_not_composed(capsys, inside, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(inside / "dpcal-report", other)
    document = json.loads((other / "report.json").read_text())
    for run in (*document["runs"], document["evaluation"]):
        for part in ("plan", "ledger"):
            if part in run:
                run[part]["neighboring_relation"] = "replace-one"
    (other / "report.json").write_text(json.dumps(document))
    assert main(["verify", "dpcal-report", str(other)]) == 2
    assert "share one neighboring relation" in capsys.readouterr().err
