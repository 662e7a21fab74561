"""Lines of other packages and the lines in their place give the same.

``tests/data/migrating.json`` has what the packages answered, with their versions, so that a pair is
compared where its package is not installed; where it is, it must still answer so.
"""

import json
import re

import pytest
from _tree import DATA, ROOT

SECTIONS = re.compile(r"^## (.+?)\n.*?```python\n(from|import)(.*?)```", re.DOTALL | re.MULTILINE)
PAGE = (ROOT / "docs" / "how_to" / "migrating.md").read_text()
BEFORE = {name: first + rest for name, first, rest in SECTIONS.findall(PAGE)}
RECORDED = json.loads((DATA / "migrating.json").read_text())


def sampled(statement):
    """Return the epsilon of Poisson samples in a statement of TensorFlow Privacy."""
    return float(re.search(r"Poisson sampling \(\*\): +([0-9.]+)", statement)[1])


# A privacy parameter of the package is at least ours, up to its stated error (which is the gap
# between Renyi's price and the exact one for TensorFlow Privacy); a score is near ours.
AGREE = {
    "dp-accounting": lambda before, after: after <= before * (1 + 1e-9) <= after * 1.001,
    "Opacus": lambda before, after: after <= before <= after * 1.02,
    "diffprivlib": lambda before, after: abs(before - after) < 0.1,
    "TensorFlow Privacy": lambda before, after: after <= sampled(before) <= after * 1.12,
}


def lines(section):
    """Return what runs of the page up to the end of a section."""
    text = PAGE[: PAGE.index(f"## {section}")] + PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.*)$", text, re.MULTILINE))


def after(section, name="after"):
    """Return the last value that the lines of this package gave to a name in a section."""
    names = {}
    exec(lines(section), names)
    return names[name]


def test_every_package_of_the_page_has_lines_and_a_recorded_answer():
    assert set(BEFORE) == set(AGREE) == set(RECORDED)
    assert all(code.count("\n") <= 12 for code in BEFORE.values())
    assert all(answer["version"] for answer in RECORDED.values())


@pytest.mark.parametrize("section", AGREE)
def test_the_lines_agree_with_the_recorded_answer(section):
    assert AGREE[section](RECORDED[section]["before"], after(section))


@pytest.mark.parametrize("section", AGREE)
def test_the_package_still_answers_so(section):
    peers = re.findall(r"^(?:from|import) (\w+)", BEFORE[section], re.MULTILINE)
    for package in peers:
        pytest.importorskip(package, exc_type=ImportError)
    names = {}
    exec(BEFORE[section], names)
    assert AGREE[section](names["before"], after(section))


def test_a_statement_about_microbatches_is_priced_at_half_of_the_noise():
    """The default of TensorFlow Privacy, which the page names with its number."""
    import dpcal

    statement = RECORDED["TensorFlow Privacy"]["with microbatches"]
    assert "with microbatching" in statement
    assert "without microbatching" in RECORDED["TensorFlow Privacy"]["before"]
    halved = float(dpcal.epsilon(after("TensorFlow Privacy", "halved"), delta=1e-5))
    assert halved <= sampled(statement) <= halved * 1.12
    for number in (statement, RECORDED["TensorFlow Privacy"]["before"]):
        assert f"{sampled(number):.3f}".rstrip("0") in PAGE
