"""Numbers in the comments of a loop are those of the lines that its page prints."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BOXES = {
    "kl_spider": ("## KL Spider", 8),
    "proximal_point": ("## Proximal point", 4),
    "adaptive_gd": ("## Adaptive gradient descent", 6),
}


@pytest.mark.parametrize("name", BOXES)
def test_loops_point_at_lines_of_the_printed_pseudocode(name):
    title, fewest = BOXES[name]
    page = (ROOT / "docs" / "optimizers_kl.md").read_text()
    box = page.split(f"{title}\n")[1].split("```")[1].strip("\n").splitlines()
    printed = [int(line.split()[0]) for line in box]
    assert printed == list(range(1, len(box) + 1))
    loop = (ROOT / "optim" / "first_order" / f"{name}.py").read_text()
    told = re.findall(r"\d+", " ".join(re.findall(r"  # (\d+(?:, \d+)*)", loop)))
    assert set(map(int, told)) <= set(printed)
    assert len(set(told)) >= fewest
