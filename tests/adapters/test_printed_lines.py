"""Blocks of the page of adapters run as they are printed, each alone in an empty folder."""

import importlib.util
import re

import pytest
from _tree import ROOT

from dpcal import accountants
from dpcal.adapters.loaders import AllocationSampler

PAGE = (ROOT / "docs" / "other_libraries.md").read_text()
# By the heading above it, with the packages that it needs.
BLOCKS = {
    "## PyTorch: `Guard(model, plan)`": ["torch"],
    "### A loader in place of `shuffle=True`": ["torch"],
    '## Opacus: `accountant="dpcal"`': ["torch", "opacus"],
    "## JAX: a gradient transformation": ["jax", "optax"],
}


def printed(heading, tmp_path, monkeypatch, capsys):
    """Run the block below a heading, and return the words that it prints."""
    for package in BLOCKS[heading]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", PAGE.partition(f"{heading}\n")[2], re.DOTALL)[1]
    exec(block, {})
    return capsys.readouterr().out.split()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("heading", [each for each in BLOCKS if "loader" not in each])
def test_a_printed_block_runs_alone_and_stays_within_its_epsilon(
    heading, tmp_path, monkeypatch, capsys
):
    words = printed(heading, tmp_path, monkeypatch, capsys)
    found = [float(word) for word in words if re.fullmatch(r"1\.9\d+|2\.0", word)]
    assert found
    assert max(found) <= 2.0


def test_the_block_of_samplers_prints_their_price(tmp_path, monkeypatch, capsys):
    words = printed("### A loader in place of `shuffle=True`", tmp_path, monkeypatch, capsys)
    event = AllocationSampler(2_000, 10).event(1.1, 5)
    assert float(words[0]) == accountants.epsilon(event, delta=1e-6)
    assert words[1] == "RandomSampler"
