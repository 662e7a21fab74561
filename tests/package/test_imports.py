"""Packages of others: declared, with every name that is used, and missed in one sentence."""

import ast
import functools
import importlib
import importlib.util
import subprocess
import sys
import tomllib

import pytest
from _modules import imports_of, paths
from _tree import ROOT

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
    behind = {"dpcal.optim.silos.partitioned", "dpcal.optim.silos.reading"}  # dask, of distributed
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
    bound, found = {}, set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                found.add(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
    for node in ast.walk(tree):
        chain, base = [], node
        while isinstance(base, ast.Attribute):
            chain.append(base.attr)
            base = base.value
        if chain and isinstance(base, ast.Name) and base.id in bound:
            found.add(".".join([bound[base.id], *reversed(chain)]))
    return found


def missing_in(dotted):
    """Return the first part of a dotted name that no module has; None if all are there."""
    first, *rest = dotted.split(".")
    value, so_far = importlib.import_module(first), first
    for part in rest:
        so_far += f".{part}"
        if not hasattr(value, part):
            if importlib.util.find_spec(so_far) is None:
                return so_far
            importlib.import_module(so_far)
        value = getattr(value, part)
        if not isinstance(value, type(sys)):
            return None  # what objects have is not the package's namespace
    return None


@pytest.mark.parametrize("package", ["dp_accounting", "prv_accountant", "flint", "sympy", "attr"])
def test_every_name_that_is_used_of_a_package_is_there(package):
    names = set()
    for name, targets in others().items():
        if any(target.partition(".")[0] == package for target, _ in targets):
            names |= {n for n in used(paths()[name].read_text()) if n.startswith(f"{package}.")}
    assert names
    assert {name for name in names if missing_in(name)} == set()


# -- packages of extras that are not there

BLOCKED = """
import importlib, sys
import dpcal, dpcal.errors
blocked, door = sys.argv[1:]
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
for name in [n for n in sys.modules if n.partition(".")[0] == blocked]:
    del sys.modules[name]
try:
    exec(door)
except dpcal.errors.MissingExtra as error:
    assert isinstance(error, ImportError)
    print(error)
"""
DOORS = {
    "from dpcal.estimators import LogisticRegression": ("sklearn", "sklearn"),
    "import dpcal; dpcal.estimators.PCA": ("joblib", "sklearn"),
    "from dpcal.adapters import torch": ("torch", "torch"),
    "import dpcal.adapters.device_noise": ("torch", "torch"),
    "import dpcal.adapters.optax": ("jax", "jax"),
    "from dpcal.adapters.opacus import Accountant": ("opacus", "opacus"),
    "import dpcal.adapters.flower": ("flwr", "flower"),
    "from dpcal.adapters import pipeline_dp": ("pipeline_dp", "pipeline-dp"),
    "import dpcal.tables.reading as reading; reading.polars()": ("polars", "train"),
    "dpcal.optim.DaskSilos(None, [])": ("distributed", "dask"),
    "import dpcal.plot.style as style; style.figure_and_axes()": ("matplotlib", "plot"),
    "from dpcal import cli; cli._completion('bash')": ("shtab", "completion"),
}


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
