"""Inequalities of the field's textbooks are proved as they are written."""

import pytest
from _tree import ROOT

from benchmarks.claims.textbook import TEXTBOOK, WITHOUT_PROOF
from dpcal.calibrate.papers.prover import prove

# Each of them needs another way to a proof; together they take two seconds.
QUICK = (
    *("log.root", "exp.product", "means", "softmax", "cosh", "bernstein", "contraction", "steps"),
    *("conversion.constant", "conversion.target", "conversion.order", "moments", "log.sum"),
    *("gauss.tail", "mills.below", "gauss.quantile"),
)


def verdict(name):
    return prove(TEXTBOOK.resolve(TEXTBOOK.claim(name)))


@pytest.mark.parametrize("name", QUICK)
def test_it_is_proved(name):
    assert verdict(name).status == "PROVED"


@pytest.mark.study
@pytest.mark.parametrize("name", [claim.name for claim in TEXTBOOK.claims])
def test_the_benchmark_says_which_are_proved(name):
    assert (verdict(name).status == "PROVED") == (name not in WITHOUT_PROOF)


def test_the_page_states_the_number():
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    proved = len(TEXTBOOK.claims) - len(WITHOUT_PROOF)
    assert f"proves {proved} of {len(TEXTBOOK.claims)} inequalities" in " ".join(page.split())
