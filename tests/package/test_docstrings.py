"""Docstrings are readable alone, modules show an example, and comments are sentences.

An exception is listed, and one that is no longer needed fails its test.
"""

import ast
import re
import tokenize

import pytest
from _modules import paths
from _tree import ROOT

# A docstring that begins so can only be read after another one.
BEGINNING = r"(The same\b|As above|Like above|Same as|Ditto|See above)"
LEANING = re.compile(BEGINNING, re.IGNORECASE)
# Where a text does so, the source has a quotation mark before it.
QUOTED = re.compile(rf"[\"']\s*{BEGINNING}", re.IGNORECASE)

# Modules whose examples are their ``EXAMPLE``, which the tests of commands run; lists of names; and
# the claims of papers, which are data.
PAPERS = ("dp_rgda", "gauss_psgd", "kan", "kl_condition", "spiderboost")
WITHOUT_EXAMPLE = (
    "dpcal.commands",
    "dpcal.errors",
    "dpcal.__main__",
    "dpcal._ext",
    *(f"dpcal.calibrate.papers.{paper}" for paper in PAPERS),
)
KNOWN_WITHOUT_EXAMPLE = {
    # Loops of the oracle, whose examples are those of the optimizers that they take steps of.
    "dpcal.optim.boundary.adaptive",
    "dpcal.optim.boundary.one_pass",
    # Parts of one inversion, whose example is that of ``dpcal.accountants.inversion.strategy``.
    "dpcal.accountants.inversion.inversion",
    "dpcal.accountants.inversion.jumps",
    "dpcal.accountants.inversion.solve",
    # Parts of one search, whose example is that of ``dpcal.calibrate.papers.prover``.
    "dpcal.calibrate.papers.search.boxes",
    "dpcal.calibrate.papers.search.moves",
    "dpcal.calibrate.papers.search.products",
}

KNOWN_LEANING = {}

KNOWN_FRAGMENTS = {}


def docstrings(path):
    """Return (line, text) of every docstring of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def comments(path):
    """Return (line, text) of every comment that has lines to itself, joined over its lines."""
    found, last = [], None
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type != tokenize.COMMENT or token.line.strip() != token.string.strip():
                continue
            text = token.string.lstrip("#").strip()
            if last is not None and token.start[0] == last + 1:
                found[-1] = (found[-1][0], f"{found[-1][1]} {text}")
            else:
                found.append((token.start[0], text))
            last = token.start[0]
    return found


def ours():
    """Return the Python modules of the package, by name."""
    return {name: path for name, path in paths().items() if path.suffix == ".py"}


def everything():
    """Return those, and the tests and benchmarks, by path."""
    files = list(ours().values())
    files += [path for room in ("tests", "benchmarks") for path in (ROOT / room).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path for path in files}


def test_no_docstring_leans_on_another():
    found = {
        name: sum(bool(LEANING.match(text)) for _, text in docstrings(path))
        for name, path in everything().items()
        if QUOTED.search(path.read_text())
    }
    found = {name: count for name, count in found.items() if count}
    assert found == KNOWN_LEANING


def test_every_module_shows_an_example():
    bare = {
        name
        for name, path in ours().items()
        if path.name != "__init__.py"
        and not name.startswith(WITHOUT_EXAMPLE)
        and ">>>" not in path.read_text()
    }
    assert bare == KNOWN_WITHOUT_EXAMPLE


# Titles of parts of a file, directives and formulas are not sentences, and need not be.
ASIDE = re.compile(r"(-- |noqa|type:|fmt:|pragma|cython:|!|[-=]{3,})")


@pytest.mark.slow
def test_comments_end_as_sentences_do():
    """A comment on lines of its own begins with a capital, a name or a formula, and ends."""
    found = {}
    for name, path in ours().items():
        open_ended = [
            line
            for line, text in comments(path)
            if not ASIDE.match(text) and not text.endswith((".", "?", "!", ":", ".)"))
        ]
        if open_ended:
            found[name] = len(open_ended)
    assert found == KNOWN_FRAGMENTS


@pytest.mark.parametrize(
    ("text", "leans"),
    [("The same for arrays.", True), ("Return the same row twice.", False), ("As above.", True)],
)
def test_knows_a_leaning_docstring(text, leans):
    assert bool(LEANING.match(text)) == leans
    assert bool(QUOTED.search(f'def f():\n    """\n    {text}\n    """')) == leans
