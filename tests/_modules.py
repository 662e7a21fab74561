"""Which module imports which? The package's own sources, read and never run.

>>> arrows = list(imports_of("dpcal.a", "from dpcal import b", modules={"dpcal.a", "dpcal.b"}))
>>> [(arrow.target, arrow.place) for arrow in arrows]
[('dpcal.b', 'module')]
"""

import ast
import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

from _tree import ROOT

ROOMS = (
    "_ext",
    "accountants",
    "adapters",
    "calibrate",
    "commands",
    "estimators",
    "optim",
    "plot",
    "report",
    "tables",
)


# Modules that stand on a package of an extra, which the tests' environment need not have.
OPTIONAL = {
    "dpcal.adapters.flower": "flwr",
    "dpcal.adapters.opacus": "opacus",
    "dpcal.adapters.optax": "optax",
    "dpcal.adapters.torch": "torch",
}


def missing(module):
    """Whether a module of the package stands on a package that is not installed."""
    return module in OPTIONAL and importlib.util.find_spec(OPTIONAL[module]) is None


@dataclass(frozen=True)
class Arrow:
    """One import: who imports, what is imported, on which line, and in which place.

    ``place`` is "module" (when the importer is imported), "function" (when a function runs) or
    "types" (under TYPE_CHECKING: read by type checkers, and never run).
    """

    source: str
    target: str
    line: int
    place: str

    def __str__(self):
        return f"{self.source} -> {self.target} (line {self.line}, {self.place})"


@functools.cache
def paths():
    """Return the file of every module of the package, by the module's name."""
    files = [path for path in ROOT.glob("*.py") if path.name != "setup.py"]
    for room in ROOMS:
        files += (ROOT / room).rglob("*.py")
        files += (ROOT / room).rglob("*.pyx")
    named = {}
    for path in sorted(files):
        parts = path.relative_to(ROOT).with_suffix("").parts
        named[".".join(["dpcal", *(part for part in parts if part != "__init__")])] = path
    return named


@functools.cache
def arrows():
    """Return every import in the package's Python modules, in the order of the names."""
    found = []
    for name, path in paths().items():
        if path.suffix == ".py":
            found += imports_of(name, path.read_text(), modules=paths())
    return tuple(found)


def imports_of(name, source, *, modules) -> Iterator[Arrow]:
    """Return what one module imports.

    A name that is no module belongs to the package that it is taken from. That a module's packages
    are imported before it is not counted, because every module would then import every other.
    """
    for node, place in _statements(ast.parse(source), "module"):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{name}, line {node.lineno}: a relative import"
            longer = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [each if each in modules else node.module for each in longer]
        for target in dict.fromkeys(targets):
            yield Arrow(name, target, node.lineno, place)


def names_imported(source) -> Iterator[tuple[str, str]]:
    """Return every pair (module, name) of the statements ``from module import name``."""
    for node, _ in _statements(ast.parse(source), "module"):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def _statements(node, place):
    """Return every import statement below a node, and the place where it stands."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, place
        elif isinstance(child, ast.If) and _names_type_checking(child.test):
            yield from _statements(ast.Module(child.body, []), "types")
            yield from _statements(ast.Module(child.orelse, []), place)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _statements(child, "function")
        else:
            yield from _statements(child, place)


def _names_type_checking(test):
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def cycles(pairs):
    """Return the groups of two or more names that reach each other (Tarjan 1972), sorted."""
    edges = {}
    for source, target in pairs:
        edges.setdefault(source, set()).add(target)
        edges.setdefault(target, set())
    order, low, stack, groups = {}, {}, [], []

    def visit(name):
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in sorted(edges[name]):
            if target not in order:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            place = stack.index(name)
            groups.append(sorted(stack[place:]))
            del stack[place:]

    for name in sorted(edges):
        if name not in order:
            visit(name)
    loops = [[name] for name in edges if name in edges[name]]
    return sorted([group for group in groups if len(group) > 1] + loops)
