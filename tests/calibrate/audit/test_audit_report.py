"""The audit of the six papers: what must be covered, what must come out, and how it is printed."""

import json
import re

import pytest
from _tree import ROOT

from dpcal.calibrate.papers import PAPERS, audit, load
from dpcal.calibrate.papers.claims.verdicts import Verdict


def numbered(prefix, last, first=1, width=0):
    return [f"{prefix}{k:0{width}d}" for k in range(first, last + 1)]


ERRATA = {
    "kl_condition": [
        *numbered("EP", 17),
        *numbered("EA", 8),
        *numbered("EU", 20),
        *numbered("EL", 10),
    ],
    "spiderboost": [f"E{k}" for k in range(1, 52) if k != 27],
    "gauss_psgd": numbered("E", 29),
    "dp_rgda": [
        *numbered("ER-", 13, width=2),
        *(f"ER-{k}" for k in (*range(20, 28), *range(30, 41), 41, 42, 43, *range(50, 59))),
        *(f"ER-{k}" for k in (60, 61, 62, *range(70, 81), 81, *range(90, 95))),
    ],
    "kan": numbered("E", 26, width=2),
    "moments": numbered("M", 6),
}

CLAIMS = {
    "kl_condition": [
        *numbered("A", 15),
        *(f"B{k}" for k in (1, 2, 3, 5, 6, 7, 8, 9)),
        *numbered("C", 13),
        *(f"D{k}" for k in (1, 2, 3, 4, 6, 7, 8, 9)),
        *numbered("E", 5),
        *numbered("F", 7),
    ],
    "spiderboost": [f"S{k}" for k in range(1, 82) if k not in (37, 52, 58, 72)],
    "gauss_psgd": [
        *(f"A{k}" for k in range(1, 28) if k not in (11, 24)),
        *(f"B{k}" for k in (1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20)),
        *(f"C{k}" for k in (1, 3, 4, 5, 6, 7)),
        *(f"X{k}" for k in (1, 2, 4, 5, 6, 9)),
        "D1",
    ],
    "dp_rgda": [
        *(f"E{k:02d}" for k in (1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19)),
        *(f"P{k:02d}" for k in (4, 5, 9, 10, 12, 13, 14, 15)),
        *(f"X{k:02d}" for k in (2, 5, 8, 10, 11, 12, 13)),
        *(f"C{k:02d}" for k in (1, 2, 3, 4)),
        *("D04", "D06", "G01"),
    ],
    "kan": [f"I{k:02d}" for k in range(1, 38) if k not in (3, 34)] + ["I03"],
    "moments": ["budget", "order", "square", "below", "above", "between", "shift", "strong"],
}


# These are the corrected sides of errata, or held of any numbers whatever.
SAID_BY_ERRATA = {
    "kl_condition": ["A1", "D1", "F4"],
    "spiderboost": ["S28", "S43", "S49", "S50", "S61", "S62", "S81"],
    "gauss_psgd": ["A17", "A4", "B20", "D1", "X4"],
    "dp_rgda": ["C01", "C04", "E15", "P12", "X02"],
    "kan": [],
    "moments": [],
}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_erratum_has_its_entry(paper):
    known = {re.split(r"[.a-z]", wrong.name)[0] for wrong in load(paper).errata}
    missing = {name.split(".")[0] for name in ERRATA[paper]} - known
    if paper == "dp_rgda":
        missing -= {"ER-79"}
    # What was printed nowhere is a claim now: a redundant term, and a practical remark.
    assert missing == ({"E21", "E26"} if paper == "kan" else set())


@pytest.mark.parametrize("paper", PAPERS)
def test_every_listed_identity_has_its_claim(paper):
    known = {claim.name.split(".")[0] for claim in load(paper).claims}
    errata = {wrong.name for wrong in load(paper).errata}
    assert set(CLAIMS[paper]) - known - errata == set(SAID_BY_ERRATA[paper])


def every_verdict_is_as_expected_and_its_evidence_is_sound(report):
    assert [(f.schedule.name, f.claim.name) for f in report.findings if not f.as_expected] == []
    assert report.ok


def open_claims_are_exactly_the_prose(report):
    assert all((f.verdict.status == "OPEN") == (f.claim.kind == "prose") for f in report.findings)
    assert all(f.verdict.reason for f in report.findings if f.verdict.status == "OPEN")


def verdicts_survive_json(report):
    for finding in report.findings:
        assert Verdict.from_json(finding.verdict.to_json()) == finding.verdict


def its_part_of_the_page_is_current(report):
    head, part = report.render("markdown").split("\n## ")
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    said = "run: dpcal audit --format markdown -o docs/errata.md"
    assert head.rstrip().splitlines()[-1] in page.splitlines(), said
    assert part.strip() in [each.strip() for each in page.split("\n## ")], said


def it_is_printed_in_every_format(report):
    assert json.loads(report.render("json"))["ok"] is True
    assert report.render("html").startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match="format must be one of"):
        report.render("pdf")


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_the_whole_audit(paper):
    # One test of a paper makes its audit, and all checks read it.
    report = audit(paper)
    every_verdict_is_as_expected_and_its_evidence_is_sound(report)
    open_claims_are_exactly_the_prose(report)
    verdicts_survive_json(report)
    its_part_of_the_page_is_current(report)
    it_is_printed_in_every_format(report)


def test_the_printed_kl_noise_costs_17_eighths():
    report = audit("kl_condition", only="EP1")
    (finding,) = (f for f in report.findings if f.claim.name == "EP1.printed")
    evidence = finding.verdict.evidence
    assert float(evidence["left"]) / float(evidence["right"]) == 17 / 8
    assert "17/8" in report.render("table")
    text = report.explain("EP1")
    assert "EP1.printed" in text
    assert "EP1.corrected" in text
    assert "Use: The exact split" in text


@pytest.mark.parametrize(("paper", "claim"), [("kl_conditon", None), ("kan", "E2"), ("kan", "i01")])
def test_unknown_names_offer_the_nearest(paper, claim):
    with pytest.raises(ValueError, match="did you mean"):
        audit(paper, only=claim)
