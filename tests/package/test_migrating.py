"""Lines of other packages and the lines in their place give the same, where both are installed."""

import re

import pytest
from _tree import ROOT

SECTIONS = re.compile(r"^## (.+?)\n.*?```python\n(from|import)(.*?)```", re.DOTALL | re.MULTILINE)
PAGE = (ROOT / "docs" / "migrating.md").read_text()
BEFORE = {name: first + rest for name, first, rest in SECTIONS.findall(PAGE)}
# A privacy parameter of the package is at least ours, up to its stated error; a score is near ours.
AGREE = {
    "dp-accounting": lambda before, after: after <= before * (1 + 1e-9) <= after * 1.001,
    "Opacus": lambda before, after: after <= before <= after * 1.02,
    "diffprivlib": lambda before, after: abs(before - after) < 0.1,
    "TensorFlow Privacy": lambda before, after: f"{after:.2f}" in before,
}


def after(section):
    """Return the last value that the lines of this package gave in a section."""
    lines = PAGE[: PAGE.index(f"## {section}")] + PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    code = re.findall(r"^(?:>>>|\.\.\.) (.*)$", lines, re.MULTILINE)
    names = {}
    exec("\n".join(code), names)
    return names["after"]


def test_every_package_of_the_page_has_lines():
    assert set(BEFORE) == set(AGREE)
    assert all(code.count("\n") <= 12 for code in BEFORE.values())


@pytest.mark.parametrize("section", AGREE)
def test_the_lines_agree(section):
    peers = re.findall(r"^(?:from|import) (\w+)", BEFORE[section], re.MULTILINE)
    for package in peers:
        pytest.importorskip(package, exc_type=ImportError)
    names = {}
    exec(BEFORE[section], names)
    assert AGREE[section](names["before"], after(section))
