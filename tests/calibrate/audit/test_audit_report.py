"""The audit of the six papers: what must be covered, what must come out, and how it is printed."""

import contextlib
import io
import json
import re
import runpy
import tomllib

import pytest
from _tree import DATA, ROOT

from dpcal.calibrate.papers import PAPERS, audit, load
from dpcal.calibrate.papers.claims.verdicts import Verdict

# The pages of the site that no file has.
PAGES = runpy.run_path(str(ROOT / "docs" / "generate.py"))
AUDITED = tomllib.loads((DATA / "audited.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_erratum_and_every_listed_identity_has_its_entry(paper):
    listed = {key: {*names.split()} for key, names in AUDITED[paper].items()}
    errata = {wrong.name for wrong in load(paper).errata}
    known = {claim.name.split(".")[0] for claim in load(paper).claims}
    missing = listed["errata"] - {re.split(r"[.a-z]", name)[0] for name in errata}
    missing |= listed["identities"] - known - errata
    assert missing == listed["elsewhere"]
    assert all(wrong.use for wrong in load(paper).errata)  # what a reader does instead


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_the_whole_audit(paper):
    """Every verdict is as expected with sound evidence, and is on the page of the paper."""
    report = audit(paper)
    assert [f.claim.name for f in report.findings if not f.as_expected] == []
    assert report.ok
    for finding in report.findings:
        verdict = finding.verdict
        assert (verdict.status == "OPEN") == (finding.claim.kind == "prose")
        assert verdict.reason or verdict.status != "OPEN"
        assert Verdict.from_json(verdict.to_json()) == verdict
    pages = PAGES["errata"](report)
    assert {*pages} == {"index", paper}
    shown = re.split(r" \| |\n|\*\*", pages[paper])
    for finding in report.findings:
        wrong = finding.erratum
        assert (wrong or finding.claim).name in {each.split(" (")[0].strip("| ") for each in shown}
        assert wrong is None or wrong.use in pages[paper].replace(r"\|", "|")
    assert json.loads(report.render("json"))["ok"] is True
    with pytest.raises(ValueError, match="format must be one of"):
        report.render("pdf")


def test_the_printed_kl_noise_costs_17_eighths():
    report = audit("kl_condition", only="EP1")
    (finding,) = (f for f in report.findings if f.claim.name == "EP1.printed")
    evidence = finding.verdict.evidence
    assert float(evidence["left"]) / float(evidence["right"]) == 17 / 8
    assert "17/8" in report.render("table")
    assert "Use: The exact split" in report.explain("EP1")


@pytest.mark.slow
def test_the_page_about_audits_runs_and_prints_what_it_says():
    page = (ROOT / "docs" / "explanation" / "audit.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    output, names = io.StringIO(), {}
    with contextlib.redirect_stdout(output):
        for block in blocks:
            exec(block, names)
    assert output.getvalue() == "".join(printed)
