"""Every example in the documentation runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest
from _tree import ROOT

import dpcal

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(dpcal.__path__, "dpcal.")
    if module.name.rpartition(".")[2] not in ("__main__", "setup")
)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("name", ["dpcal", *MODULES])
def test_module(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page):
    assert doctest.testfile(str(page), module_relative=False).failed == 0
