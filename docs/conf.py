"""Sphinx builds the site from these pages, the notebooks and the docstrings: ``make docs``.

The source folder is the root of the tree, so that a link between two files works the same on a
forge, in an editor and on the site. A reference that leads nowhere, or a warning, fails the build.
"""

import importlib
import importlib.util
import re
import sys
from importlib import metadata
from pathlib import Path

from docutils.nodes import SkipNode, math_block
from latex2mathml.converter import convert
from sphinx.ext.autodoc.mock import MockFinder
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.util.nodes import make_refnode

# Modules that stand on the package of an extra are described on a stand-in for it.
EXTRAS = ("distributed", "flwr", "jax", "opacus", "optax", "pipeline_dp", "torch")
MISSING = [name for name in EXTRAS if not importlib.util.find_spec(name)]
sys.meta_path.insert(0, MockFinder(MISSING))

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import generate  # noqa: E402
import reference  # noqa: E402  it describes the adapters, too, on the stand-ins

PUBLIC = reference.public_names()
# The first of two names that are alike is meant.
SHORT = {full.rpartition(".")[2]: full for full in reversed(PUBLIC.values())}

project = "dpcal"
author = copyright = "The dpcal developers"  # noqa: A001
release = version = metadata.version("dpcal")
html_title = f"dpcal {release}"
html_last_updated_fmt = "%Y-%m-%d"

root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "*.md", ".github/[CS]*.md"]
exclude_patterns = ["README.md", "docs/site"]
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "myst_nb", "sphinx_design"]
html_theme = "furo"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_extra_path = ["site/index.html"]
html_search_scorer = str(ROOT / "docs" / "site" / "scorer.js")
html_math_renderer = "mathml"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
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
    "exclude-members": "set_fit_request, set_inverse_transform_request, set_partial_fit_request, "
    "set_predict_request, set_score_request, set_transform_request",
}
NUMPY = Config(napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "returns_style")])
autodoc_typehints = "none"  # docstrings give types with shapes and units
nitpicky = True
suppress_warnings = ["autosummary.import_cycle"]

CONTENTS = """

```{toctree}
:hidden:
:caption: %s

%s
```
"""
PAGES = {
    "Tutorials": "tutorials/first_epsilon tutorials/table_to_model tutorials/audit_a_paper",
    "How-to": "how_to/tables how_to/releases how_to/scikit_learn how_to/pytorch how_to/jax "
    "how_to/many_machines how_to/budgets how_to/epsilon how_to/loaders how_to/correlated_noise "
    "how_to/audit_a_claim how_to/own_mechanism how_to/own_optimizer how_to/migrating",
    "Reference": "reference/api reference/command_line reference/mechanisms reference/optimizers "
    "reference/errata/index reference/corpus reference/glossary ../CHANGELOG",
    "Explanation": "explanation/accountant explanation/batches explanation/boundary "
    "explanation/optimizers explanation/silos explanation/last_iterate "
    "explanation/correlated_noise explanation/audit explanation/errata explanation/proofs "
    "explanation/compiled_code explanation/evaluation",
    "Notebooks": "../notebooks/01_trade_off ../notebooks/02_loaders "
    "../notebooks/03_privacy_and_accuracy ../notebooks/04_counterexample "
    "../notebooks/05_correlated_noise",
    "Contribute": "../.github/CONTRIBUTING architecture ../.github/SECURITY "
    "../.github/CODE_OF_CONDUCT",
}


def list_pages(app, name, source):
    """Append the contents to the front page, whose readers on a forge see links instead."""
    if name == root_doc:
        source[0] += "".join(
            CONTENTS % (part, pages.replace(" ", "\n")) for part, pages in PAGES.items()
        )


def write_pages(app):
    """Write the pages that follow from the code."""
    reference.write_reference(ROOT / "docs" / "reference")
    generate.write_pages(ROOT / "docs")


def write_math(writer, node):
    """Write a formula as MathML, which a browser shows without a server's help."""
    display = "block" if isinstance(node, math_block) else "inline"
    writer.body.append(convert(node.astext(), display=display))
    raise SkipNode


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


def resolve(app, env, node, text):
    """Return a link for a reference that Sphinx does not find: to the page of the public name.

    An object without an entry of its own, a field or a constant, is found on its class. Names of
    other packages, and names that are not public, are shown as they are.
    """
    if node.get("refdomain") != "py":
        return None
    objects = env.domains.python_domain.objects
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
        for owner in reversed(owners):
            if entry := objects.get(PUBLIC.get(reference.home(owner))):
                return link(app, node, entry, text)
        return text
    if entry := objects.get(SHORT.get(target)):
        return link(app, node, entry, text)
    # A name that is not public may be one of the module that defines the page's object.
    page = node["refdoc"].rpartition("/")[2]
    described = (found(page) or [None])[-1]
    inside = sys.modules.get(getattr(described, "__module__", ""))
    return text if page == "api" or hasattr(inside, target.partition(".")[0]) else None


def link(app, node, entry, text):
    """Return a link to an entry of the API."""
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, text)


def setup(app):
    """Connect the functions above to the build."""
    app.connect("source-read", list_pages)
    app.connect("builder-inited", write_pages)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("autodoc-process-docstring", shape)
    app.connect("autodoc-process-signature", sign)
    app.connect("missing-reference", resolve)
