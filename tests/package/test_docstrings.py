"""Modules show an example, and cross references lead somewhere.

An exception is listed, and one that is no longer needed fails its test.
"""

import pkgutil
import re
import tomllib

import pytest
from _modules import missing, paths
from _tree import DATA

# Modules without an example, and why.
KNOWN = tomllib.loads((DATA / "without_example.toml").read_text())
REFERENCE = re.compile(r":(?:func|class|mod|data|exc|meth|attr):`~?(dpcal[\w.]*)`")


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
