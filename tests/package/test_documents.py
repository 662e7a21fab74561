"""Files and names that the documents speak of are there."""

import re
import shlex

import pytest
from _tree import ROOT

from dpcal import cli

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# A path in backticks that begins with a folder of the tree.
FOLDERS = (
    "_ext|accountants|adapters|benchmarks|calibrate|commands|docs|estimators|notebooks|optim|plot|report"
    "|tables|tests"
)
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")


def test_paths_exist():
    named = [(page.name, path) for page in PAGES for path in PATH.findall(page.read_text())]
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


def test_a_page_has_one_title():
    """A second one, as of a wrapped line that begins with "# ", would be in the site's contents."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/first_steps.md"])
def test_commands_of_the_first_pages_are_understood(page):
    text = (ROOT / page).read_text()
    commands = re.findall(r"^ {4,}dpcal (.*)$", text, re.MULTILINE)
    assert commands
    for command in commands:
        words = shlex.split(command, comments=True)
        assert cli._parser(words[0]).parse_args(words).command == words[0]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_tables_of_loaders_agree(page):
    """The full table is that of a command, which its own test runs."""
    full = (ROOT / "docs" / "loaders.md").read_text()
    table = (ROOT / page).read_text().split("| loader | epsilon |")[1].split("\n\n")[0]
    prices = re.findall(r"\d+\.\d+", table)
    assert len(prices) >= 4
    assert [price for price in prices if price not in full] == []


def test_every_page_has_a_place_on_the_site():
    contents = (ROOT / "docs" / "conf.py").read_text().split("PAGES = {")[1].split("\n}")[0]
    listed = set(re.findall(r"[\w./]+", contents))
    pages = [path for path in PAGES if ROOT / "docs" in path.parents and path.stem != "index"]
    named = [path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in pages]
    built = [name for name in named if not name.startswith("api/")]
    assert [name for name in built if name not in listed] == []


def test_the_map_names_every_folder_of_code():
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for room in ("accountants", "calibrate", "commands", "estimators", "optim")
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert [folder for folder in sorted(folders) if f"{folder}/" not in page] == []
