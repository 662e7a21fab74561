"""Sphinx builds the site from these pages, the notebooks and the docstrings: ``make docs``.

The source folder is the root of the tree, so that a link between two files works the same on a
forge, in an editor and on the site. A reference that leads nowhere, or a warning, fails the build.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from importlib import metadata
from pathlib import Path

from sphinx.ext.autodoc.mock import MockFinder
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.util.nodes import make_refnode

import dpcal

# Modules that stand on the package of an extra are described on a stand-in for it.
EXTRAS = ("distributed", "flwr", "jax", "opacus", "optax", "pipeline_dp", "torch")
MISSING = [name for name in EXTRAS if not importlib.util.find_spec(name)]
sys.meta_path.insert(0, MockFinder(MISSING))

ROOT = Path(__file__).parents[1]
API = ROOT / "docs" / "api"

project = "dpcal"
author = "The dpcal developers"
release = version = metadata.version("dpcal")
html_title = f"dpcal {release}"
html_last_updated_fmt = "%Y-%m-%d"

root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "*.md", ".github/[CS]*.md"]
exclude_patterns = ["README.md", "docs/site"]
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "myst_nb"]
html_theme = "furo"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_extra_path = ["site/index.html"]

myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# A notebook whose library is an extra that is not installed is shown without its outputs.
nb_execution_excludepatterns = [f"*{name}*" for name in MISSING]

autosummary_generate = False
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    # scikit-learn makes these.
    "exclude-members": "set_fit_request, set_inverse_transform_request, set_partial_fit_request, "
    "set_predict_request, set_score_request, set_transform_request",
}
NUMPY = Config(napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "returns_style")])
autodoc_typehints = "none"  # docstrings give types with shapes and units
nitpicky = True
suppress_warnings = ["autosummary.import_cycle"]  # names are given in full

CONTENTS = """

```{toctree}
:hidden:
:caption: %s

%s
```
"""
PAGES = {
    "Start": "first_steps tables releases scikit_learn other_libraries scale loaders migrating "
    "security",
    "By your task": "tasks/data_owner tasks/engineer tasks/accounting_researcher tasks/auditor "
    "tasks/optimizer_researcher tasks/federated_engineer",
    "Price and prove": "accountants your_own_mechanism correlated corpus performance",
    "Optimize": "optimizers optimizers_spider optimizers_second_order optimizers_minimax "
    "optimizers_kl optimizers_sealed your_own_optimizer errata audit",
    "Notebooks": "../notebooks/01_from_target_to_model ../notebooks/02_audit "
    "../notebooks/03_correlated_noise ../notebooks/04_estimators ../notebooks/05_torch",
    "Reference": "api/dpcal glossary ../CHANGELOG",
    "Contribute": "../.github/CONTRIBUTING architecture internals/inverting internals/fused_loops "
    "internals/mutants internals/correlated_proofs ../.github/SECURITY "
    "../.github/CODE_OF_CONDUCT",
}


def list_pages(app, name, source):
    """Append the contents to the front page, whose readers on a forge see links instead."""
    if name == root_doc:
        source[0] += "".join(
            CONTENTS % (part, pages.replace(" ", "\n")) for part, pages in PAGES.items()
        )


def write_reference(app):
    """Write a page for each package: its public names, then its modules with their docstrings."""
    API.mkdir(exist_ok=True)
    folders = {"dpcal": []}
    for found in pkgutil.walk_packages(dpcal.__path__, "dpcal."):
        folders[found.name.rpartition(".")[0]].append(found.name)
        if found.ispkg:
            folders[found.name] = []
    for package, modules in folders.items():
        public = [home(f"{package}.{name}") for name in importlib.import_module(package).__all__]
        parts = [
            titled(package, "=") + f".. automodule:: {package}\n   :no-members:",
            listed(".. autosummary::\n   :nosignatures:", [f"~{name}" for name in public if name]),
            listed(".. toctree::\n   :maxdepth: 1", [name for name in modules if name in folders]),
            *(described(name) for name in modules if name not in folders),
        ]
        text = "\n\n".join(part for part in parts if part) + "\n"
        page = API / f"{package}.rst"
        if not page.exists() or page.read_text() != text:  # else Sphinx would read it again
            page.write_text(text)


def described(module):
    """Return the entry of a module; a name that it only passes on is described where it is from."""
    names = getattr(importlib.import_module(module), "__all__", [])
    homes = {name: home(f"{module}.{name}") for name in names}
    passed = [name for name, full in homes.items() if full and full != f"{module}.{name}"]
    options = f"\n   :exclude-members: +{', '.join(passed)}" if passed else ""
    return titled(module, "-") + f".. automodule:: {module}{options}"


def titled(text, line):
    """Return a title in reStructuredText."""
    return f"{text}\n{line * len(text)}\n\n"


def shape(app, what, name, thing, options, lines):
    """Turn a docstring of NumPy's format into reStructuredText.

    An example may follow a section without a title of its own. Attributes have no sections.
    """
    if what in ("attribute", "data", "property"):
        return
    if not name.startswith("dpcal") or "dp_accounting" in getattr(thing, "__module__", ""):
        lines[:] = [f"``{lines[0]}``"]
        return
    # A formula is an indented block after a colon.
    for i, (line, blank, block) in enumerate(zip(lines, lines[1:], lines[2:], strict=False)):
        inner = len(block) - len(block.lstrip()) - (len(line) - len(line.lstrip()))
        if re.search(r"[^:]:$", line) and not blank and inner >= 4:
            lines[i] += ":"
    start = next((i for i, line in enumerate(lines) if line.startswith(">>> ")), 0)
    if any(line.startswith("-----") for line in lines[:start]):
        lines[start:start] = ["Examples", "--------"]
    lines[:] = NumpyDocstring(lines, NUMPY, app, what, name, thing, options).lines()


def sign(app, what, name, thing, options, signature, returned):
    """Leave out the signature of a compiled function, which is in Cython's notation."""
    return ("(...)", None) if "[:" in (signature or "") else None


def listed(directive, rows):
    """Return a directive with a row for each name; nothing if there are none."""
    return directive + "\n\n   " + "\n   ".join(rows) if rows else ""


def importable(module):
    """Whether a name is that of a module."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def found(name):
    """Return the object of a full name and its nearest owners, the outermost first; else None."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for cut in range(len(parts), 0, -1):
        if importable(".".join(parts[:cut])):
            owners = [importlib.import_module(".".join(parts[:cut]))]
            for part in parts[cut:]:
                if not hasattr(owners[-1], part):
                    fields = getattr(owners[-1], "__annotations__", {})
                    return owners if part in fields and part == parts[-1] else None
                owners.append(getattr(owners[-1], part))
            return owners
    return None


def home(name):
    """Return the full name under which a function or class is defined; None for other objects."""
    thing = (found(name) or [None])[-1]
    if inspect.isclass(thing) or inspect.isroutine(thing):
        full = f"{thing.__module__}.{thing.__qualname__}"
        return full if full.startswith("dpcal.") else None
    return None


def resolve(app, env, node, text):
    """Return a link for a reference that Sphinx does not find: to the object where it is defined.

    An object without an entry of its own, a field or a constant, is found on its class or module.
    A name of another package is shown as it is.
    """
    if node.get("refdomain") != "py":
        return None
    target, module, scope = (node.get(key) for key in ("reftarget", "py:module", "py:class"))
    inner = [f"{module}.{scope}.{target}"] if scope else []
    bases = (found(f"{module}.{scope}") or [])[-1:] if scope else []
    inner += [
        f"{base.__module__}.{target}"
        for each in bases
        for base in each.__mro__
        if base.__name__ == target.partition(".")[0]
    ]
    for name in (target, *inner, f"{module}.{target}"):
        owners = found(name)
        if not owners:
            continue
        if not name.startswith("dpcal"):
            return text
        for owner in reversed(owners):
            full = getattr(owner, "__qualname__", None)
            full = f"{owner.__module__}.{full}" if full else getattr(owner, "__name__", "")
            entry = env.domains.python_domain.objects.get(full)
            if entry:
                return make_refnode(
                    app.builder, node["refdoc"], entry.docname, entry.node_id, text, full
                )
    return None


def setup(app):
    """Connect the functions above to the build."""
    app.connect("source-read", list_pages)
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", shape)
    app.connect("autodoc-process-signature", sign)
    app.connect("missing-reference", resolve)
