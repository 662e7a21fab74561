"""Numbers in the comments of a loop are those of the lines that its page prints."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# For each loop its page, what stands before the box, and the fewest lines that it points at.
BOXES = {
    "first_order/kl_spider": ("kl", "## KL Spider", 8),
    "first_order/proximal_point": ("kl", "## Proximal point", 4),
    "first_order/adaptive_gd": ("kl", "## Adaptive gradient descent", 6),
    "second_order/gauss_psgd": ("second_order", "## The algorithm", 11),
    "minimax/dp_rgda": ("minimax", "Algorithm 2:", 7),
}


@pytest.mark.parametrize("name", BOXES)
def test_loops_point_at_lines_of_the_printed_pseudocode(name):
    page, title, fewest = BOXES[name]
    page = (ROOT / "docs" / f"optimizers_{page}.md").read_text()
    box = page.split(f"{title}\n")[1].split("```")[1].strip("\n").splitlines()
    printed = [int(line.split()[0]) for line in box]
    assert printed == list(range(1, len(box) + 1))
    loop = (ROOT / "optim" / f"{name}.py").read_text()
    told = re.findall(r"\d+", " ".join(re.findall(r"  # (\d+(?:(?:, | to )\d+)*)", loop)))
    assert set(map(int, told)) <= set(printed)
    assert len(set(told)) >= fewest
