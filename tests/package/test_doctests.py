"""Every example in the documentation runs and prints what it says."""

import doctest
import importlib

import pytest
from _modules import missing, paths
from _tree import ROOT

from dpcal.optim import registry

MODULES = sorted(name for name in paths() if name != "dpcal.__main__")
# Their examples take seconds each.
SLOW = {
    "accountants.md",
    "correlated.md",
    "optimizers.md",
    "dpcal.calibrate.correlated.calibration",
    "dpcal.calibrate.plans.correlated_dpsgd",
    "dpcal.optim.objectives.networks",
    "dpcal.optim.first_order.proximal_point",
}
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def marked(cases, name_of):
    """Return the cases, with those that are slow marked."""
    return [
        pytest.param(case, id=name_of(case), marks=[pytest.mark.slow] * (name_of(case) in SLOW))
        for case in cases
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(MODULES, str))
def test_module(name):
    if missing(name):
        pytest.skip("it stands on a package that is not installed")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", marked(PAGES, lambda page: page.name))
def test_page(page, monkeypatch):
    monkeypatch.setattr(registry, "_ENTERED", dict(registry._ENTERED))
    assert doctest.testfile(str(page), module_relative=False).failed == 0
