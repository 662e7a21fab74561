"""Sizes that one mind can hold: of folders, modules, classes and functions.

How tangled a function is, and how many branches, returns and arguments it has, is for ruff to say
(rules C901 and PLR09). An exception is listed with its size and its reason in
``tests/data/sizes.toml``; it may shrink, and one that is no longer needed fails the test.
"""

import ast
import tomllib
from collections import Counter

import pytest
from _modules import ROOMS, paths
from _tree import DATA, ROOT

FILES, MODULE, CLASS, FUNCTION = 20, 600, 300, 60

KNOWN = tomllib.loads((DATA / "sizes.toml").read_text())


def lines_of(node):
    """Return how many lines a definition has, without its docstring, which is not code."""
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        text = node.body[0]
        lines -= text.end_lineno - text.lineno + 1
    return lines


def definitions(node, prefix, kinds):
    """Yield the name and the lines of every definition of some kinds below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{'' if prefix.endswith(':') else '.'}{child.name}"
            if isinstance(child, kinds):
                yield name, lines_of(child)
            yield from definitions(child, name, kinds)
        elif not isinstance(child, ast.expr):  # An expression defines neither of them.
            yield from definitions(child, prefix, kinds)


def defined(*kinds):
    """Return the lines of every definition of some kinds, by module and qualified name."""
    trees = {name: path for name, path in paths().items() if path.suffix == ".py"}
    return {
        found: lines
        for name, path in trees.items()
        for found, lines in definitions(ast.parse(path.read_text()), f"{name}:", kinds)
    }


def sources(*rooms):
    """Return the source files of some rooms."""
    found = [path for room in rooms for path in (ROOT / room).rglob("*.py*")]
    return [path for path in found if path.suffix in (".py", ".pyx")]


def folders():
    """Return the number of source files in every folder of code or of tests."""
    files = sources(*ROOMS, "tests", "benchmarks")
    return Counter(path.parent.relative_to(ROOT).as_posix() for path in files)


def modules():
    """Return the number of lines of every module, compiled ones and tests included."""
    found = dict(paths())
    found |= {path.relative_to(ROOT).as_posix(): path for path in sources("tests", "benchmarks")}
    return {name: len(path.read_text().splitlines()) for name, path in found.items()}


MEASURED = {
    "files in a folder": (folders, FILES, KNOWN["folders"]),
    "lines of a module": (modules, MODULE, KNOWN["modules"]),
    "lines of a class": (lambda: defined(ast.ClassDef), CLASS, KNOWN["classes"]),
    "lines of a function": (lambda: defined(ast.FunctionDef, ast.AsyncFunctionDef), FUNCTION, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_sizes(name):
    measured, most, known = MEASURED[name]
    sizes = measured()
    allowed = {name: size for name, (size, _) in known.items()}
    large = {name: size for name, size in sizes.items() if size > allowed.get(name, most)}
    assert large == {}
    needless = {name for name in known if sizes.get(name, 0) <= most}
    assert needless == set(), "these exceptions are no longer needed"


@pytest.mark.parametrize("folder", KNOWN["whole"])
def test_what_is_read_as_a_whole_is_short(folder):
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / folder).glob("*.py"))
    assert lines <= KNOWN["whole"][folder]
