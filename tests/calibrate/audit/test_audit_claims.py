"""Claims in the papers' notation: each is decided as it should be, with evidence, or refused."""

import pytest
from _claims import SECTIONS, STATUSES, claims, schedule
from _tree import ROOT

from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import verdict_of


def rows():
    """Yield the section, claim and status of each claim; those that take long are a study."""
    for section, table in SECTIONS.items():
        quick = table.get("quick", "").split()
        for status in STATUSES:
            for claim in claims(section, status):
                marks = pytest.mark.study if quick and claim.name not in quick else ()
                name = f"{section}-{claim.name}"
                yield pytest.param(section, claim, status, marks=marks, id=name)


@pytest.mark.slow
@pytest.mark.parametrize(("section", "claim", "status"), [*rows()])
def test_a_claim_is_decided_as_it_should_be(section, claim, status):
    resolved = schedule(section).resolve(claim)
    found = prove(resolved, seconds=20.0 if status == "PROVED" else 2.0)
    assert found.status == status, found.reason
    assert found.reason or status != "OPEN"
    assert verdict_of(resolved, found) == ""


REFUSED = [
    (section, *row)
    for section, table in SECTIONS.items()
    for row in table.get("refused", {}).items()
]


def written(section, text):
    """Return the claim of a paper of which it is the only lemma."""
    made = schedule(section, f"Lemma 1:\n    c: {text}")
    return made.resolve(made.claim("c"))


@pytest.mark.parametrize(("section", "text", "sentence"), REFUSED)
def test_what_a_claim_cannot_say_is_refused_in_a_sentence(section, text, sentence):
    with pytest.raises(ValueError, match=r"^claim '[cd]'") as error:
        written(section, text)
    assert sentence in str(error.value)


@pytest.mark.parametrize("section", ["orders", "signed", "planted"])
def test_no_true_or_false_claim_is_refused_as_empty(section):
    texts = [SECTIONS[section].get(status, "") for status in STATUSES]
    assert len(schedule(section, "".join(texts)).claims) > 8


def test_the_page_states_how_many_textbook_inequalities_are_proved():
    page = (ROOT / "docs" / "explanation" / "audit.md").read_text(encoding="utf-8")
    proved, without = (len(claims("textbook", status)) for status in ("PROVED", "OPEN"))
    assert f"it proves {proved} of {proved + without} inequalities" in " ".join(page.split())


PAPER = """
from dpcal.calibrate.papers import Schedule
SCHEDULE = Schedule(name="p", quantities="x y: any number", claims='''
Lemma 1:
    c: {claim}
''')
"""


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("2*sqrt(x*y) < x + y", "REFUTED"),
        ("x**4 - 2*x**2*y + y**2 + (y - 17/10)**2 > 0", "OPEN"),
        ("2*sqrt(x*y) <= x + y", "PROVED"),
    ],
)
def test_the_status_of_the_command_says_what_is_not_proved(claim, status, tmp_path, cli):
    paper = tmp_path / "paper.py"
    paper.write_text(PAPER.format(claim=claim), encoding="utf-8")
    code, text, _ = cli.run("audit", paper, "--processes 0 --fresh")
    proved = status == "PROVED"
    assert code == (0 if proved else 1)
    assert status in text
    assert text.startswith("p\n  c " if proved else "p\n! c ")
    assert ("the checker accepted all evidence" in text) == proved


FAULTY = """
from dpcal.calibrate.papers import Schedule
SCHEDULE = Schedule(
    name="p", title="", citation="", quantities="n: records; [1, oo)",
    settings='''
        T: 2*n  # Theorem 1
    ''',
    claims='''
        Lemma 1:
            good: n <= T
            c: T <= 3*n
    ''',
)
"""


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("3*n", "3*m", "line 11: claim 'c': symbol m is not declared"),
        ("T: 2*n", "T: n*T", "line 10: claim 'good': settings and values must not define"),
        (
            "3*n",
            "n where T <= n",
            "line 11: claim 'c' says nothing: it restates the hypothesis T <= n",
        ),
        ("3*n", "3*(n", "line 11: claim 'c': formula must be in Python's notation"),
        ("Lemma 1:", "Lemma 1", "line 9: theorem must end with a colon"),
    ],
)
def test_a_fault_of_a_file_is_a_sentence_with_its_line(old, new, place, tmp_path, cli):
    paper = tmp_path / "paper.py"
    paper.write_text(FAULTY.replace(old, new), encoding="utf-8")
    code, _, said = cli.run("audit", paper, "--processes 0 --fresh")
    assert code == 2
    assert f"paper.py, {place}" in said
