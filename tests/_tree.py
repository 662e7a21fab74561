"""Where is the tree that is tested? Its root, and the programs that its pages print."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"


def program(page, heading, number=0):
    """Return the lines of a program of Python under a heading of a page in docs, the first as 0."""
    section = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return section.split("```python\n")[1 + number].split("```")[0]
