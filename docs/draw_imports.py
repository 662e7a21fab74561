"""Draw which package imports which: ``python docs/draw_imports.py`` writes ``figures/imports.svg``.

A package stands above all that it imports; an arrow that follows from others is left out. Names of
``dpcal`` that are found when they are used count as imports, imports for type checkers do not.
"""

import ast
import re
import textwrap
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "figures" / "imports.svg"
OUTSIDE = ("benchmarks", "build", "docs", "notebooks", "tests")
WIDTH, GAP, LINE = 760, 36, 15
LETTERS = 50
STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #1a1d21; text-anchor: middle; }
  .inside { font-size: 12px; fill: #5a6270; }
  rect { fill: #f4f6f8; stroke: #005a9c; }
  path { stroke: #5a6270; fill: none; marker-end: url(#head); }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8eb; } .inside { fill: #a3abb8; }
    rect { fill: #1e2329; stroke: #7cc0f5; } path { stroke: #a3abb8; }
  }
"""


def rooms():
    """Return the packages of the root, each with the packages inside."""
    found = {}
    for package in sorted(ROOT.glob("*/__init__.py")):
        if package.parent.name not in OUTSIDE and not package.parent.name.startswith("_"):
            inner = sorted(path.parent.name for path in package.parent.glob("*/__init__.py"))
            found[package.parent.name] = inner
    return {"_ext": [], **found}


def imported(path, names):
    """Return which of these packages a module imports, or uses as ``dpcal.NAME``."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
    for block in [node for node in ast.walk(tree) if isinstance(node, ast.If)]:
        if ast.unparse(block.test) == "TYPE_CHECKING":
            block.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    return {name for name in names if any(re.match(rf"dpcal\.{name}\b", each) for each in found)}


def arrows(names):
    """Return the pairs of a package and one that it imports, without those that others imply."""
    reached = {
        name: set().union(*(imported(path, names) for path in (ROOT / name).rglob("*.py"))) - {name}
        for name in names
    }
    for middle, first in product(names, names):
        if middle in reached[first]:
            reached[first] |= reached[middle]
    direct = [(first, last) for first in names for last in reached[first]]
    return [
        (first, last)
        for first, last in sorted(direct)
        if not any(last in reached[middle] for middle in reached[first])
    ]


def picture():
    """Return the picture as SVG."""
    inside = rooms()
    drawn, floor = arrows(tuple(inside)), dict.fromkeys(inside, 0)
    for _ in inside:
        for first, last in drawn:
            floor[first] = max(floor[first], floor[last] + 1)
    parts, places, y = [], {}, 10
    for level in sorted(set(floor.values()), reverse=True):
        row = [name for name in inside if floor[name] == level]
        wide = min(360, WIDTH // len(row) - 20)
        texts = {
            name: textwrap.wrap(", ".join(inside[name]), LETTERS * wide // 360) for name in row
        }
        height = 32 + LINE * max(map(len, texts.values()))
        for number, name in enumerate(row):
            x = WIDTH * (2 * number + 1) // (2 * len(row))
            places[name] = x, y, y + height
            parts += [
                f'<rect x="{x - wide // 2}" y="{y}" width="{wide}" height="{height}"/>',
                f'<text x="{x}" y="{y + 20}">{name}</text>',
            ]
            for below, line in enumerate(texts[name], 1):
                at = f'x="{x}" y="{y + 21 + LINE * below}"'
                parts.append(f'<text class="inside" {at}>{line}</text>')
        y += height + GAP
    for first, last in drawn:
        (x, _, start), (at, end, _) = places[first], places[last]
        at += max(-20, min(20, x - at))
        parts.append(f'<path d="M{x},{start} L{at},{end - 5}"/>')
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" '
        'style="fill:#5a6270;stroke:none;marker-end:none"/></marker></defs>'
    )
    size = f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([start, f"<style>{STYLE}</style>", head, *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
