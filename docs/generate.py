"""Pages that follow from data: the errata of the six audited papers, and the rows of the corpus.

``docs/conf.py`` calls :func:`write_pages` before Sphinx reads the pages, and ``python
docs/generate.py`` does by hand. None of these pages is in git.
"""

import json
from collections import Counter
from pathlib import Path

from dpcal.calibrate.papers import PAPERS, audit
from dpcal.calibrate.papers.deciding import Store

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "benchmarks" / "corpus" / "questions.jsonl"
SCORES = ROOT / "build" / "corpus" / "scores" / "scores.md"  # written by benchmarks.corpus

CONTENTS = """
```{{toctree}}
:maxdepth: 1

{}
```

[The errata with a privacy consequence](../../explanation/errata.md) are explained on a page of
their own; [how claims are decided](../../explanation/audit.md) is another one.
"""
CORPUS = """# Rows of the corpus

You can use these {rows:,} questions with proved brackets to test an accountant:
[how, and how they are proved](../explanation/proofs.md#the-corpus).

{families}

| proof | rows |
| --- | --- |
{proofs}
"""


def write_pages(folder: Path) -> None:
    """Write all pages below ``docs/``, or another folder, where their text has changed."""
    report = audit(store=Store(ROOT / "build" / "audit.json"))
    write(folder / "reference" / "corpus.md", corpus())
    for name, text in errata(report).items():
        write(folder / "reference" / "errata" / f"{name}.md", text)


def errata(report) -> dict[str, str]:
    """Return the page of each paper of an audit by its name, and that of all as ``index``."""
    head, *parts = report.render("markdown").split("\n## ")
    papers = list(report.counts)
    pages = {
        name: "# " + part.rstrip() + "\n\n[All papers](index.md)\n"
        for name, part in zip(papers, parts, strict=True)
    }
    return {"index": head.rstrip() + "\n" + CONTENTS.format("\n".join(papers))} | pages


def corpus() -> str:
    """Return the page of the corpus: rows by family and proof, and scores if they were made."""
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    lines = [("family", "rows", "nasty", "about epsilon"), ("---",) * 4]
    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family]
        nasty = sum(row["setting"] == "nasty" for row in own)
        lines.append((family, len(own), nasty, sum("delta" in row["asked"] for row in own)))
    proofs = Counter(row["proof"] for row in rows).most_common()
    page = CORPUS.format(rows=len(rows), families=table(lines), proofs=table(proofs))
    return page + ("\n## Scores\n\n" + SCORES.read_text() if SCORES.exists() else "")


def table(lines) -> str:
    """Return rows of cells as lines of Markdown."""
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in lines)


def write(path: Path, text: str) -> None:
    """Write a page; one whose text is the same stays as it is, so that Sphinx need not read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(ROOT / "docs")
    print(f"errata of {', '.join(PAPERS)}, and the corpus, are below docs/reference/")
