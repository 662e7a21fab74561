"""Limits of an organisation, held against reports whose claims were computed again."""

import tomllib

import pytest
from _tree import DATA

from dpcal import report

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
BROKEN = {
    2: "max_epsilon = 0.9",
    3: "max_delta = 1e-7",
    4: "min_records = 2001",
    5: 'neighboring_relations = ["replace-one"]',
    6: 'units = ["record"]',
    7: 'samplers = ["poisson"]',
    8: 'noise = ["gaussian"]',
    9: 'held_out = ["noisy"]',
}


@pytest.fixture
def verify(cli, folder, tmp_path):
    """Return what writes a policy, and returns the words that verify reports by it."""

    def words(text, *reports):
        (tmp_path / "clinic.toml").write_text(text)
        return ["verify", *(reports or [folder]), "--policy", tmp_path / "clinic.toml"]

    return words


def test_a_report_that_keeps_every_limit(cli, verify):
    assert "clinic.toml: kept" in cli(*verify(KEPT))


@pytest.mark.parametrize("line", BROKEN)
def test_each_limit_fails_alone_and_names_its_line(cli, verify, line):
    lines = KEPT.splitlines()
    lines[line - 1] = BROKEN[line]
    text = cli(*verify("\n".join(lines)), status=1)
    assert f"clinic.toml, line {line}: {BROKEN[line].split(' =')[0]} = " in text
    assert text.count("clinic.toml, line ") == 1


def test_a_number_of_records_is_told_whole():
    (told,) = report.Policy({"min_records": 2_000_000}).violations({"min_records": 1_234_567})
    assert told.endswith("but the number of records is 1234567.")


def test_the_limit_is_held_against_what_is_proved_and_not_against_the_claim(cli, verify, too_small):
    """A claim below what the ledger proves, and a ledger that was replaced, help nobody."""
    document = report.read(too_small)
    rows = report.verify(document)
    facts = report.facts_of([document], rows[-1]["recomputed"], rows[-1]["delta"])
    assert report.Policy({"max_epsilon": 0.5}).violations(facts)
    assert cli(*verify("max_epsilon = 2", too_small), status=1)


def test_reports_are_held_to_their_composition(cli, verify, folder):
    text = cli(*verify("max_epsilon = 1", folder, folder), status=1)
    assert "line 1: max_epsilon = 1, but epsilon is 2." in text
    assert cli(*verify("max_epsilon = 2", folder, folder))


def test_a_policy_that_is_none_is_refused(cli, verify, folder):
    policies = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))["policies"]
    for text, words in policies.items():
        assert words in cli.refused(*verify(text)), text
    missing = cli.refused("verify", folder, "--policy none.toml")
    assert "policy must be a readable file" in missing
