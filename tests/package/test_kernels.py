"""No compiled function loses an error: one that must not raise runs no Python, or keeps the error.

A function that is declared ``noexcept`` prints an error and goes on: an interruption in there would
end nothing, and what should have been computed would be left as it was.
"""

import re
import textwrap
import tomllib

import pytest
from _tree import DATA, ROOT

CASES = tomllib.loads((DATA / "noexcept.toml").read_text())
SOURCES = sorted((ROOT / "_ext").glob("*.p[yx][xd]"))

# From "cdef" up to the colon, or to the end of a declaration.
HEADER = re.compile(r"^( *)(?:cdef|cpdef|ctypedef)\b[^=:(]*\((?:[^()]|\([^()]*\))*\)[^:\n]*", re.M)

# What a function may do that takes the lock of Python: all of it, and what it raises is kept.
KEEPS_ERRORS = re.compile(
    r'\s*(""".*?"""\s*)?try:\n(?:    .*\n|\n)+except BaseException as error:\n(?:    .*\n|\n)+\Z',
    re.DOTALL,
)


def functions(text):
    """Yield the header and the body, unindented, of each compiled function of a source."""
    for found in HEADER.finditer(text):
        indented = re.compile(rf"(?:{found[1]} +\S.*\n|\s*\n)*")
        body = ""
        if text[found.end() : found.end() + 2] == ":\n":
            body = textwrap.dedent(indented.match(text, found.end() + 2)[0]).rstrip() + "\n"
        yield " ".join(found[0].split()), body


def loses_errors(header, body):
    """Return whether a function may raise an error that nobody sees."""
    if "noexcept" not in header:
        return False
    if "nogil" in header:
        return bool(re.search(r"\bwith gil\b|^\s*(raise|assert)\b", body, re.M))
    return not KEEPS_ERRORS.fullmatch(body)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_function_loses_an_error(source):
    found = [header for header, body in functions(source.read_text()) if loses_errors(header, body)]
    assert found == []


def test_all_functions_are_read():
    read = written = 0
    for source in SOURCES:
        # Functions in C are declared in blocks of their own, and hold no Python.
        text = re.sub(r"^cdef extern .*\n(?: +\S.*\n|\s*\n)*", "", source.read_text(), flags=re.M)
        read += sum("noexcept" in header for header, _ in functions(text))
        written += len(re.findall(r"\) noexcept\b", text))
    assert read == written > 100


@pytest.mark.parametrize("loses", [True, False])
def test_what_counts_as_losing_an_error(loses):
    for source in CASES["loses" if loses else "keeps"]:
        ((header, body),) = functions(source)
        assert loses_errors(header, body) is loses, source
