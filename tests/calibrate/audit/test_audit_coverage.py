"""Every numbered statement of a paper is the source of a claim, or is listed with its reason.

``statements.txt`` beside a paper's claims lists its theorems, corollaries, lemmas, numbered
equations, and the lines of its algorithms that set a parameter. A statement that no claim, setting
or erratum names as its source stands below ``Outside`` with the reason; theorems, corollaries and
lines never do.
"""

import re
from collections import Counter

import pytest
from _tree import ROOT

from dpcal.calibrate.papers import PAPERS, load
from dpcal.calibrate.papers.claims.notation import indented, text_of

NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)?"
LIST = rf"{NUMBER}(?:(?:, | and | to |, and ){NUMBER})*"
WORDS = {"Theorem": "Theorems?", "Corollary": "Corollar(?:y|ies)", "Lemma": "Lemmas?"}
LINES = re.compile(rf"Algorithm (\d+), (?:lines?|steps?) ({LIST})")
EQUATIONS = re.compile(r"(?<!\w)\((\d+)\)(?:(?:-| to )\((\d+)\))?")


def numbers(text):
    """Return the numbers of a list such as ``1, 3 to 5 and 7``, or ``C.7 to C.9``."""
    found = []
    for part in re.split(r", and |, | and ", text):
        low, _, high = part.partition(" to ")
        prefix, _, first = low.rpartition(".") if high else ("", "", "")
        dot = f"{prefix}." if prefix else ""
        last = int(high.rpartition(".")[2]) if high else 0
        found += [f"{dot}{k}" for k in range(int(first), last + 1)] if high else [low]
    return found


def named(text):
    """Return the statements that a source names: pairs of a kind and a number."""
    pairs = {
        (kind, number)
        for kind, word in WORDS.items()
        for row in re.findall(rf"\b{word} ({LIST})", text)
        for number in numbers(row)
    }
    rows = {(f"Algorithm {a}", n) for a, row in LINES.findall(text) for n in numbers(row)}
    equations = {
        ("Equation", str(k))
        for first, last in EQUATIONS.findall(text)
        for k in range(int(first), int(last or first) + 1)
    }
    return pairs | rows | equations


def statements(paper):
    """Return the numbered statements of a paper, and those outside with their reasons."""
    listed, outside = set(), {}
    for entry in indented(text_of(f"dpcal.calibrate.papers.{paper}", "statements")):
        kind, _, rest = entry.partition(":")
        if kind == "Outside":
            for row in filter(str.strip, rest.split("\n")):
                name, _, reason = row.strip().partition(": ")
                what, _, which = name.partition(" ")
                for number in numbers(which):
                    outside[what.removesuffix("s"), number] = reason
        else:
            parts = re.findall(rf"{NUMBER}(?: to {NUMBER})?", rest)
            listed |= {(kind, number) for part in parts for number in numbers(part)}
    return listed, outside


def sources(paper):
    schedule = load(paper)
    parts = (*schedule.all_claims(), *schedule.errata, *schedule.settings)
    return set().union(*(named(part.source) for part in parts))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_is_a_source_or_has_a_reason(paper):
    listed, outside = statements(paper)
    covered = sources(paper)
    assert {*listed} - covered - {*outside} == set()
    # What a claim names needs no reason, and a reason is about a statement of the paper.
    assert {*outside} & covered == set()
    assert {*outside} <= listed
    assert all(len(reason) > 10 for reason in outside.values())
    assert {kind for kind, _ in outside} <= {"Lemma", "Equation"}


def test_the_page_counts_what_is_covered_and_the_printed_formulas():
    page = (ROOT / "docs" / "explanation" / "audit.md").read_text(encoding="utf-8")
    words = " ".join(page.split())
    for paper in PAPERS:
        listed, outside = statements(paper)
        every, left = (Counter(kind.split()[0] for kind, _ in kinds) for kinds in (listed, outside))
        lemmas, equations = (
            f"{every[kind] - left[kind]} of {every[kind]}" for kind in ("Lemma", "Equation")
        )
        stated = every["Theorem"] + every["Corollary"]
        row = f"| {paper} | {stated} | {lemmas} | {equations} | {every['Algorithm']} |"
        assert row in page, row
    errata = [wrong for paper in PAPERS for wrong in load(paper).errata]
    about = [bool(wrong.about) for wrong in errata if wrong.printed.kind != "prose"]
    assert f"Among {len(about)} printed formulas" in words
    assert f"loose, {about.count(False)} use settings" in words
    assert f"The other {sum(about)} are" in words
