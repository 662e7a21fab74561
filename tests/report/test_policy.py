"""Limits of an organisation, held against reports whose claims were computed again."""

import json

import numpy as np
import pytest

import dpcal
from dpcal import report
from dpcal.cli import main

RNG = np.random.default_rng(0)
TABLE = {"age": RNG.uniform(20, 80, 2000), "who": [f"p{i // 2}" for i in range(2000)]}
SCHEMA = {
    "group_size": 2,
    "columns": {"age": {"type": "number", "range": [0, 100]}, "who": {"type": "person"}},
}
KEPT = """\
# limits of the clinic
max_epsilon = 1.0
max_delta = 1e-6
min_records = 1000
neighboring_relations = ["replace-special", "replace-one"]
units = ["person"]
samplers = ["full"]
noise = ["discrete"]
held_out = ["none", "noisy"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = dpcal.release(TABLE, SCHEMA, ["mean age"], epsilon=1.0, delta=1e-6)
    return found.save(tmp_path_factory.mktemp("clinic") / "report")


def verified(folder, tmp_path, text, *reports):
    policy = tmp_path / "clinic.toml"
    policy.write_text(text)
    return main(["verify", str(folder), *map(str, reports), "--policy", str(policy)])


def test_a_report_that_keeps_every_limit(folder, tmp_path, capsys):
    assert verified(folder, tmp_path, KEPT) == 0
    assert "clinic.toml: kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        (2, "max_epsilon = 0.9"),
        (3, "max_delta = 1e-7"),
        (4, "min_records = 2001"),
        (5, 'neighboring_relations = ["replace-one"]'),
        (6, 'units = ["record"]'),
        (7, 'samplers = ["poisson"]'),
        (8, 'noise = ["gaussian"]'),
        (9, 'held_out = ["noisy"]'),
    ],
)
def test_each_limit_fails_alone_and_names_its_line(folder, tmp_path, capsys, line, limit):
    lines = KEPT.splitlines()
    lines[line - 1] = limit
    assert verified(folder, tmp_path, "\n".join(lines)) == 1
    out = capsys.readouterr().out
    assert f"clinic.toml, line {line}: {limit.split(' =')[0]} = " in out
    assert out.count("clinic.toml, line ") == 1


def test_a_number_of_records_is_told_whole():
    (told,) = report.Policy({"min_records": 2_000_000}).violations({"min_records": 1_234_567})
    assert told.endswith("but the number of records is 1234567.")


def test_the_limit_is_held_against_what_is_proved_and_not_against_the_claim(folder, tmp_path):
    """A claim below what the ledger proves, and a ledger that was replaced, help nobody."""
    document = report.read(folder)
    document["everything"]["epsilon"]["upper"] = 0.1
    (tmp_path / "report.json").write_text(json.dumps({**document, "files": {}}))
    policy = report.Policy({"max_epsilon": 0.5})
    rows = report.verify(document)
    facts = report.facts_of([document], rows[-1]["recomputed"], rows[-1]["delta"])
    assert policy.violations(facts)
    assert verified(tmp_path, tmp_path, "max_epsilon = 2") == 1


def test_reports_are_held_to_their_composition(folder, tmp_path, capsys):
    assert verified(folder, tmp_path, "max_epsilon = 1", folder) == 1
    assert "line 1: max_epsilon = 1, but epsilon is 2." in capsys.readouterr().out
    assert verified(folder, tmp_path, "max_epsilon = 2", folder) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one limit at least"),
        ("max_eps = 1", "got 'max_eps'"),
        ("max_epsilon = -1", "max_epsilon must be a finite number > 0"),
        ("max_epsilon = '1'", "max_epsilon must be a finite number > 0"),
        ("min_records = 0.5", "min_records must be a whole number"),
        ("samplers = 'poisson'", "samplers must be a list of some of"),
        ("samplers = []", "samplers must be a list of some of"),
        ("units = ['household']", "got ['household']"),
        ("units = [1]", "got [1]"),
        ("max_epsilon = [", "clinic.toml"),
    ],
)
def test_a_policy_that_is_none_is_refused(folder, tmp_path, capsys, text, words):
    assert verified(folder, tmp_path, text) == 2
    assert words in capsys.readouterr().err


def test_no_file_no_policy(folder, tmp_path, capsys):
    assert main(["verify", str(folder), "--policy", str(tmp_path / "none.toml")]) == 2
    assert "policy must be a readable file" in capsys.readouterr().err
