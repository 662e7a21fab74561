"""Limits of an organisation, held against reports whose claims were computed again."""

import tomllib

import pytest
from _tree import DATA

from dpcal import report

KEPT = (DATA / "policy.toml").read_text(encoding="utf-8")
REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))
LIMITS = REFUSALS["limits"]


@pytest.fixture
def verify(cli, folder, tmp_path):
    """Return what writes a policy, and returns the words that verify reports by it."""

    def words(text, *reports):
        (tmp_path / "clinic.toml").write_text(text)
        return ["verify", *(reports or [folder]), "--policy", tmp_path / "clinic.toml"]

    return words


def test_a_report_that_keeps_every_limit(cli, verify):
    assert "clinic.toml: kept" in cli(*verify(KEPT))


@pytest.mark.parametrize("line", range(2, 2 + len(LIMITS)))
def test_each_limit_fails_alone_and_names_its_line(cli, verify, line):
    lines = KEPT.splitlines()
    lines[line - 1] = LIMITS[line - 2]
    text = cli(*verify("\n".join(lines)), status=1)
    assert f"clinic.toml, line {line}: {LIMITS[line - 2].split(' =')[0]} = " in text
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
    for text, words in REFUSALS["policies"].items():
        assert words in cli.refused(*verify(text)), text
    missing = cli.refused("verify", folder, "--policy none.toml")
    assert "policy must be a readable file" in missing
