"""Packages of others: declared, with every name that is used, and missed in one sentence."""

import ast
import functools
import pkgutil
import subprocess
import sys
import tomllib

import pytest
from _modules import imports_of, paths
from _tree import DATA, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
# Packages that are imported by another name than they are installed.
NAMES = {"attr": "attrs", "flint": "python-flint", "sklearn": "scikit-learn"}


def names_of(requirements):
    """Return the names of packages without versions and extras."""
    marks = str.maketrans("<>=[", "    ")
    return {each.translate(marks).split()[0].lower() for each in requirements}


DECLARED = names_of(PROJECT["project"]["dependencies"])


def distribution(module):
    """Return the package that holds a module."""
    top = module.partition(".")[0]
    return NAMES.get(top, top.replace("_", "-"))


@functools.cache
def others():
    """Return what each Python module of the package imports of other packages, with the line."""
    found = {}
    for name, path in paths().items():
        if path.suffix == ".py":
            found[name] = [
                (target, line)
                for target, line, _ in imports_of(path.read_text())
                if target.partition(".")[0] not in {"dpcal", *sys.stdlib_module_names}
            ]
    return found


def test_every_package_that_is_imported_is_declared():
    known = DECLARED.union(*map(names_of, EXTRAS.values()))
    for module, targets in others().items():
        for target, line in targets:
            assert distribution(target) in known, f"{module}, line {line}: {target}"


def test_packages_of_extras_are_imported_where_a_sentence_names_the_extra():
    """In a ``with needing(...)``, or a ``try`` that raises MissingExtra, or behind another one."""
    behind = {"dpcal.optim.silos.partitioned", "dpcal.optim.silos.parts"}  # dask, of distributed
    behind |= {"dpcal.plot.privacy", "dpcal.plot.style"}  # parts of matplotlib
    behind |= {"dpcal.adapters.torch"}  # parts of torch
    for module, targets in others().items():
        optional = [(t, line) for t, line in targets if distribution(t) not in DECLARED]
        if not optional or module in behind or module.startswith("dpcal.estimators."):
            continue  # all names of the estimators are found by their package, which says it
        guarded = {
            inner.lineno
            for node in ast.walk(ast.parse(paths()[module].read_text()))
            if (isinstance(node, ast.With) and "needing" in ast.dump(node.items[0]))
            or (isinstance(node, ast.Try) and "MissingExtra" in ast.dump(node))
            for inner in ast.walk(node)
            if isinstance(inner, ast.Import | ast.ImportFrom)
        }
        assert {line for _, line in optional} <= guarded, module


# -- names that are used of packages that type checkers do not read


def used(source):
    """Return every dotted name that a module uses of other packages, as it is imported."""
    nodes, bound = [*ast.walk(ast.parse(source))], {}
    for node in nodes:
        home = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            name = alias.name if home or alias.asname else alias.name.partition(".")[0]
            bound[alias.asname or name] = home + name
    found = {*bound.values()}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in bound and rest.replace(".", "").isidentifier():
                found.add(f"{bound[first]}.{rest}")
    return found


def found(dotted):
    """Return whether a dotted name leads to something."""
    try:
        pkgutil.resolve_name(dotted)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize("package", ["dp_accounting", "prv_accountant", "flint", "sympy", "attr"])
def test_every_name_that_is_used_of_a_package_is_there(package):
    names = set()
    for name, targets in others().items():
        if any(target.partition(".")[0] == package for target, _ in targets):
            names |= {n for n in used(paths()[name].read_text()) if n.startswith(f"{package}.")}
    assert names
    assert [name for name in names if not found(name)] == []


# -- packages of extras that are not there

DOORS = tomllib.loads((DATA / "extras.toml").read_text())
BLOCKED = """
import sys
import dpcal, dpcal.errors
blocked, door = sys.argv[1:]
sys.modules[blocked] = None
try:
    exec(door)
except dpcal.errors.MissingExtra as error:
    assert isinstance(error, ImportError)
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_a_missing_package_is_told_with_its_extra(door):
    package, extra = DOORS[door]
    command = [sys.executable, "-c", BLOCKED, package, door]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"pip install '.[{extra}]'" in done.stdout
    assert done.stdout.count("\n") == 1
    assert distribution(package) in names_of(EXTRAS[extra])
