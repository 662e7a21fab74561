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
# Their examples take seconds each.
SLOW = {
    "accountants.md",
    "correlated.md",
    "optimizers.md",
    "dpcal.calibrate.correlated",
    "dpcal.calibrate.plans.correlated_dpsgd",
}
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def marked(cases, name_of):
    """Return the cases, with those that are slow marked."""
    return [
        pytest.param(case, id=name_of(case), marks=[pytest.mark.slow] * (name_of(case) in SLOW))
        for case in cases
    ]


@pytest.mark.parametrize("name", marked(["dpcal", *MODULES], str))
def test_module(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", marked(PAGES, lambda page: page.name))
def test_page(page):
    assert doctest.testfile(str(page), module_relative=False).failed == 0
