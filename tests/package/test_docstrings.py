"""Modules show an example, and cross references lead somewhere.

An exception is listed, and one that is no longer needed fails its test.
"""

import ast
import importlib
import re

import pytest
from _modules import missing, paths

# Modules whose examples are their ``EXAMPLE``, which the tests of commands run; lists of names; and
# the claims of papers, which are data.
PAPERS = ("dp_rgda", "gauss_psgd", "kan", "kl_condition", "moments", "spiderboost")
WITHOUT_EXAMPLE = (
    "dpcal.commands",
    "dpcal.errors",
    "dpcal.__main__",
    "dpcal._ext",
    *(f"dpcal.calibrate.papers.{paper}" for paper in PAPERS),
)
KNOWN_WITHOUT_EXAMPLE = {
    # Loops of the oracle, whose examples are those of the optimizers that they take steps of.
    "dpcal.optim.boundary.one_pass",
    "dpcal.optim.minimax.fused",
    # Parts of one inversion, whose example is that of ``dpcal.accountants.inversion.strategy``.
    "dpcal.accountants.inversion.inversion",
    "dpcal.accountants.inversion.jumps",
    "dpcal.accountants.inversion.solve",
    # Parts of one search, whose example is that of ``dpcal.calibrate.papers.prover``.
    "dpcal.calibrate.papers.search.boxes",
    "dpcal.calibrate.papers.search.moves",
    "dpcal.calibrate.papers.search.products",
}
# What reStructuredText takes for a substitution; code and indented blocks may have bars.
SUBSTITUTION = re.compile(r"(?<![\w|])\|[^\s|](?:[^|]*[^\s|])?\|(?![\w|])")
REFERENCE = re.compile(r":(?:func|class|mod|data|exc|meth|attr):`~?([\w.]+)`")


def ours():
    """Return the Python modules of the package, by name."""
    return {name: path for name, path in paths().items() if path.suffix == ".py"}


def test_every_module_shows_an_example():
    bare = {
        name
        for name, path in ours().items()
        if path.name != "__init__.py"
        and not name.startswith(WITHOUT_EXAMPLE)
        and ">>>" not in path.read_text()
    }
    assert bare == KNOWN_WITHOUT_EXAMPLE


def test_docstrings_have_no_bars_that_the_site_takes_for_substitutions():
    found = []
    for name, path in ours().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = re.sub(r"``.*?``", "", ast.get_docstring(node) or "", flags=re.DOTALL)
                prose = re.sub(r"(?m)^ .*$|^>>>(?s:.*?)(?:\n\n|\Z)", "", text)
                found += [f"{name}: {each}" for each in SUBSTITUTION.findall(prose)]
    assert not found, "\n".join(found)


def followed(start, names):
    """Whether attributes lead on from an object, over annotated fields too."""
    for name in names:
        if not hasattr(start, name):
            return name in getattr(start, "__annotations__", {})
        start = getattr(start, name)
    return True


def found(reference, module, classes):
    """Whether a reference leads to an object, from a module, a class of it or a base of one."""
    if reference.startswith("dpcal"):
        within = max((name for name in paths() if f"{reference}.".startswith(f"{name}.")), key=len)
        names = reference.removeprefix(within).split(".")[1:]
        return followed(importlib.import_module(within), names)
    there = importlib.import_module(module)
    first, *names = reference.split(".")
    bases = [base for each in classes for base in each.__mro__ if base.__name__ == first]
    return any(followed(each, names) for each in bases) or any(
        followed(each, [first, *names]) for each in (there, *classes)
    )


@pytest.mark.slow
def test_cross_references_lead_somewhere():
    lost = []
    for name, path in ours().items():
        text = path.read_text()
        if ":`" not in text or missing(name) or name == "dpcal.__main__":
            continue
        module = importlib.import_module(name)
        classes = [
            getattr(module, node.name)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ClassDef) and hasattr(module, node.name)
        ]
        lost += [
            f"{name}: {reference}"
            for reference in REFERENCE.findall(text)
            if not found(reference, name, classes)
        ]
    assert not lost, "\n".join(lost)
