"""Sizes that one mind can hold: of folders, modules, classes and functions.

How tangled a function is, and how many branches, returns and arguments it has, is for ruff to say
(rules C901 and PLR09). An exception is listed with its size and its reason; it may shrink, and one
that is no longer needed fails the test.
"""

import ast
from collections import Counter

import pytest
from _modules import ROOMS, paths
from _tree import ROOT

FILES, MODULE, CLASS, FUNCTION = 20, 600, 300, 60

KNOWN_FOLDERS: dict[str, tuple[int, str]] = {
    "commands": (21, "a module for each command, which is found by its name"),
    "accountants/inversion": (21, "one contour will take the place of several"),
    "benchmarks": (22, "a module for each study"),
    "tests/optim": (22, "a file for each optimizer"),
    "optim/boundary": (21, "all that sees records and noise, for an auditor to read"),
}

KERNEL = "one compiled unit: its inner functions are inlined into each other"

KNOWN_MODULES: dict[str, tuple[int, str]] = {
    "dpcal.optim.boundary.budget.book": (687, "a book is one file and one machine of states"),
    "dpcal._ext.correlated": (1315, KERNEL),
}

KNOWN_CLASSES: dict[str, tuple[int, str]] = {
    "dpcal.optim.boundary.budget.book:BudgetBook": (315, "its rows are read and written together"),
    "dpcal.calibrate.papers.claims.normal:Normal": (
        435,
        "building forms, clearing them and reading signs call each other",
    ),
}

# Lines of all modules of a folder that somebody reads as a whole, before they trust it.
WHOLE = {"calibrate/papers/kernel": 1020}

KNOWN_FUNCTIONS: dict[str, tuple[int, str]] = {}


def lines_of(node):
    """Return how many lines a definition has, without its docstring, which is not code."""
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        text = node.body[0]
        lines -= text.end_lineno - text.lineno + 1
    return lines


def definitions(kinds):
    """Return the lines of every definition of some kinds, by module and qualified name."""

    def walk(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue  # An expression defines neither a class nor a function.
            inner = prefix
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{prefix}{'' if prefix.endswith(':') else '.'}{child.name}"
                if isinstance(child, kinds):
                    found[inner] = lines_of(child)
            walk(child, inner)

    found = {}
    for name, path in paths().items():
        if path.suffix == ".py":
            walk(ast.parse(path.read_text()), f"{name}:")
    return found


def folders():
    """Return the number of source files in every folder of code or of tests."""
    found = Counter()
    for room in (*ROOMS, "tests", "benchmarks"):
        for path in (ROOT / room).rglob("*.py*"):
            if path.suffix in (".py", ".pyx"):
                found[path.parent.relative_to(ROOT).as_posix()] += 1
    return found


def modules():
    """Return the number of lines of every module, compiled ones and tests included."""
    found = dict(paths())
    for room in ("tests", "benchmarks"):
        for path in (ROOT / room).rglob("*.py"):
            found[path.relative_to(ROOT).as_posix()] = path
    return {name: len(path.read_text().splitlines()) for name, path in found.items()}


def classes():
    """Return the lines of every class."""
    return definitions((ast.ClassDef,))


def functions():
    """Return the lines of every function."""
    return definitions((ast.FunctionDef, ast.AsyncFunctionDef))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measured", "most", "known"),
    [
        (folders, FILES, KNOWN_FOLDERS),
        (modules, MODULE, KNOWN_MODULES),
        (classes, CLASS, KNOWN_CLASSES),
        (functions, FUNCTION, KNOWN_FUNCTIONS),
    ],
    ids=["files in a folder", "lines of a module", "lines of a class", "lines of a function"],
)
def test_sizes(measured, most, known):
    sizes = measured()
    allowed = {name: size for name, (size, _) in known.items()}
    large = {name: size for name, size in sizes.items() if size > allowed.get(name, most)}
    assert large == {}
    needless = {name for name in known if sizes.get(name, 0) <= most}
    assert needless == set(), "these exceptions are no longer needed"


@pytest.mark.parametrize("folder", WHOLE)
def test_what_is_read_as_a_whole_is_short(folder):
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / folder).glob("*.py"))
    assert lines <= WHOLE[folder]
