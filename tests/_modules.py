"""The package's own sources and what they import, read and never run.

>>> list(imports_of("from dpcal import b"))
[('dpcal', 1, False)]
"""

import ast
import functools
import importlib.util
from collections.abc import Iterator

from _tree import ROOT

ROOMS = ("_ext", "_internal", "accountants", "adapters", "calibrate", "commands")
ROOMS += ("estimators", "optim", "plot", "report", "tables")


# Modules that stand on a package of an extra, which the tests' environment need not have.
OPTIONAL = {
    "dpcal.adapters.flower": "flwr",
    "dpcal.adapters.pipeline_dp": "pipeline_dp",
    "dpcal.adapters.opacus": "opacus",
    "dpcal.adapters.optax": "optax",
    "dpcal.adapters.clipping": "torch",
    "dpcal.adapters.terms": "torch",
    "dpcal.adapters.sites": "torch",
    "dpcal.adapters.torch": "torch",
}


def missing(module):
    """Whether a module of the package stands on a package that is not installed."""
    return module in OPTIONAL and importlib.util.find_spec(OPTIONAL[module]) is None


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


def imports_of(source) -> Iterator[tuple[str, int, bool]]:
    """Return every import of a module: what, on which line, and whether a function makes it."""
    for node, inside in _statements(ast.parse(source), inside=False):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"line {node.lineno}: a relative import"
            targets = [node.module]
        for target in targets:
            yield target, node.lineno, inside


def names_imported(source) -> Iterator[tuple[str, str]]:
    """Return every pair (module, name) of the statements ``from module import name``."""
    for node, _ in _statements(ast.parse(source), inside=False):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def _statements(node, *, inside):
    """Return every import statement below a node, and whether it stands in a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _statements(child, inside=inside or function)


def packages():
    """Return the packages that list their public names."""
    return sorted(
        name
        for name, path in paths().items()
        if path.name == "__init__.py" and "lazy.attach(" in path.read_text()
    )
