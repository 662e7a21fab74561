"""Pages address their reader, and docstrings and comments grow plainer: words are counted."""

import ast
import io
import re
import tokenize
import tomllib

import pytest
from _tree import DATA, ROOT

# For each mark, what counts as one.
WORDS = {
    "you": r"your?s?",
    "use": r"can|use|uses|using",
    "example": r"examples?|for instance",
    "what": r"what",
    "whose": r"whose",
    "alone": r"alone",
    "beside": r"beside",
    "nobody": r"nobody",
    "those": r"those",
    "of": r"(?<=[.:] )of",
    "price": r"prices?|priced",
    "door": r"doors?|rooms?",
    "say": r"says?|said|tells?|told|asks?|asked",
}
# Of 1,000 words of a page, at least and at most; a page may have each of the latter once.
LEAST = {"you": 5.0, "use": 6.0, "example": 0.4}
MOST = {"what": 1.5, "whose": 0.3, "alone": 0.3, "beside": 0.3, "nobody": 0.3, "those": 0.3}
MOST |= {"of": 0.0, "price": 0.3, "door": 0.0}
# Of 1,000 words of a package's docstrings and comments, at most; comments are lines of its code.
PACKAGES = tomllib.loads((DATA / "language.toml").read_text())
# The reference is lists, and generated in part.
PAGES = [ROOT / "README.md", ROOT / ".github" / "CONTRIBUTING.md"]
PAGES += [
    page for page in (ROOT / "docs").rglob("*.md") if ROOT / "docs/reference" not in page.parents
]


def counts(text):
    """Return the number of words of a text, and of each mark; code and tables do not count."""
    text = re.sub(r"(?ms)^(`{3,}|\${2}).*?^\1", " ", text)
    text = re.sub(r"(?m)^( {4,}|\s*>>>|\s*\.\.\.|\||#|:::|<).*$", " ", text)
    text = re.sub(r"`+[^`]*`+|\$[^$\n]*\$|\]\([^)]*\)", " ", text)
    text = " ".join(text.split()).lower()
    found = {mark: len(re.findall(rf"\b(?:{words})\b", text)) for mark, words in WORDS.items()}
    return len(re.findall(r"[a-z']+", text)), found


def prose(package):
    """Return the docstrings of a package, its comments, and the number of lines of its code."""
    docstrings, comments, lines = [], [], 0
    for path in sorted((ROOT / package).rglob("*.py")):
        source = path.read_text()
        lines += len([line for line in source.splitlines() if line.strip()])
        nodes = (ast.Module, ast.ClassDef, ast.FunctionDef)
        found = [ast.get_docstring(n) for n in ast.walk(ast.parse(source)) if isinstance(n, nodes)]
        docstrings += [re.sub(r"(?m)^ +", "", text) for text in found if text]
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        spoken = [t.string for t in tokens if t.type == tokenize.COMMENT]
        comments += [text[1:] for text in spoken if "noqa" not in text and "type: " not in text]
        lines -= sum(len(text.splitlines()) for text in found if text)
    return docstrings, comments, lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_speaks_to_its_reader(page):
    number, found = counts(page.read_text())
    for mark, least in LEAST.items():
        if number >= 300:
            assert found[mark] >= int(least * number / 1000), f"{mark}: too few of {number} words"
    for mark, most in MOST.items():
        assert found[mark] <= max(1, most * number / 1000), f"{mark} in {number} words"


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_comments_grow_plainer(package):
    docstrings, comments, lines = prose(package)
    number, found = counts("\n".join([*docstrings, " ".join(comments)]))
    most = dict(PACKAGES[package])
    assert 100 * len(comments) <= most.pop("comments") * lines
    for mark, limit in most.items():
        assert 1000 * found[mark] <= limit * number, f"{mark}: {1000 * found[mark] / number:.2f}"
