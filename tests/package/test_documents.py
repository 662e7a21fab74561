"""Examples in documents and docstrings print what they say, and what they name is there."""

import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib

import pytest
from _modules import ROOMS, missing, paths
from _tree import DATA, ROOT

from dpcal.accountants.mechanisms import row
from dpcal.calibrate.papers import PAPERS, load
from dpcal.optim import registry

# Modules without an example, and why; one that is no longer needed fails its test.
KNOWN = tomllib.loads((DATA / "without_example.toml").read_text())
REFERENCE = re.compile(r":(?:func|class|mod|data|exc|meth|attr):`~?(dpcal[\w.]*)`")
NAMES = sorted(name for name in paths() if name != "dpcal.__main__")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# A path in backticks that begins with a folder of the tree.
FOLDERS = "|".join([*ROOMS, "benchmarks", "docs", "notebooks", "tests"])
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_examples_of_a_module(name):
    if missing(name):
        pytest.skip("it stands on a package that is not installed")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page, monkeypatch):
    monkeypatch.setattr(registry, "_ENTERED", dict(registry._ENTERED))
    monkeypatch.setattr(row, "_ROWS", dict(row._ROWS))
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_paths_exist():
    named = [(page.name, path) for page in PAGES for path in PATH.findall(page.read_text())]
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


def test_a_page_has_one_title():
    """A second one, as of a wrapped line that begins with "# ", would be in the site's contents."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page


def test_the_front_page_is_short_and_its_numbers_are_those_of_their_sources():
    page = " ".join((ROOT / "README.md").read_text().split())
    assert page.count(" ") < 620
    (loaders,) = (ROOT / "docs").rglob("loaders.md")  # with the table of a command, which is tested
    prices = re.findall(r"\d+\.\d+", page.split("**Loaders.**")[1].split(" - ")[0])
    assert len(prices) == 3
    assert [price for price in prices if price not in loaders.read_text()] == []
    printed = [wrong.printed.kind for paper in PAPERS for wrong in load(paper).errata]
    refuted = sum(kind not in ("prose", "loose") for kind in printed)
    assert f"refutes {refuted} printed statements of six papers" in page


def test_every_public_name_has_a_page_and_a_question(monkeypatch):
    """Epsilon comes first, and what is public is on no list by chance."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    reference = importlib.import_module("reference")
    here = [name for name in reference.PUBLIC if not missing(f"dpcal.{name}")]
    monkeypatch.setattr(reference, "PUBLIC", here)
    groups = reference.grouped()
    names = [name for group in groups.values() for name in group]
    assert names[0] == "dpcal.accountants.epsilon"
    assert sorted(names) == sorted(set(reference.public_names().values()))
    assert len(groups["Other names"]) < 60


def test_the_map_names_every_folder_of_code():
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for room in ("accountants", "calibrate", "commands", "estimators", "optim")
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert [folder for folder in sorted(folders) if f"{folder}/" not in page] == []


# -- docstrings


def ours():
    """Return the text of each Python module of the package, by name."""
    return {name: path.read_text() for name, path in paths().items() if path.suffix == ".py"}


def test_every_module_shows_an_example():
    bare = {
        name
        for name, text in ours().items()
        if paths()[name].name != "__init__.py"
        and not name.startswith(tuple(KNOWN["packages"]))
        and ">>>" not in text
    }
    assert bare == {*KNOWN["modules"]}


@pytest.mark.slow
def test_cross_references_lead_somewhere():
    """Those by full names; the build of the site fails for any other."""
    lost = []
    for name, text in ours().items():
        for reference in {*REFERENCE.findall(text)}:
            try:
                pkgutil.resolve_name(reference)
            except (AttributeError, ImportError):
                if not missing(reference):
                    lost.append(f"{name}: {reference}")
    assert not lost, "\n".join(lost)


def test_the_picture_of_imports_is_that_of_the_code():
    module = runpy.run_path(str(ROOT / "docs" / "draw_imports.py"))
    assert module["picture"]() == module["PICTURE"].read_text(encoding="utf-8")
