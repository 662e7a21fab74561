"""Programs of pages run as they are printed: each alone in an empty folder, and from a wheel."""

import doctest
import importlib.util
import re

import pytest
from _tree import program

from dpcal import accountants
from dpcal.adapters.loaders import AllocationSampler

# Page and heading, by the package that a program is for.
HEADINGS = {
    "torch": ("how_to/pytorch.md", "A private training loop"),
    "torch.utils.data": ("how_to/pytorch.md", "A loader in place of shuffle=True"),
    "opacus": ("how_to/pytorch.md", "Opacus"),
    "flwr": ("how_to/jax.md", "Flower"),
    "optax": ("how_to/jax.md", "JAX"),
}


def block(package):
    if importlib.util.find_spec(package.partition(".")[0]) is None:
        pytest.skip(f"{package} is not installed; `python -m benchmarks adapters` installs it")
    return program(*HEADINGS[package])


def most(words):
    """Return the largest number that looks like a price."""
    return max(float(word) for word in words if re.fullmatch(r"1\.9\d+|2\.0", word))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["torch", "opacus", "optax"])
def test_a_printed_block_runs_alone_and_stays_within_its_epsilon(
    package, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    exec(block(package), {})
    assert most(capsys.readouterr().out.split()) <= 2.0


def test_the_block_of_samplers_prints_their_price(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(block("torch.utils.data"), {})
    words = capsys.readouterr().out.split()
    event = AllocationSampler(2_000, 10).event(1.1, 5)
    assert float(words[0]) == accountants.epsilon(event, delta=1e-6)
    assert words[1] == "RandomSampler"


@pytest.mark.slow
@pytest.mark.parametrize("package", ["sklearn", "torch", "opacus", "flwr"])
def test_a_program_runs_from_a_wheel(installed, tmp_path, package):
    source = tmp_path / "door.py"
    if package == "sklearn":
        page = program("how_to/scikit_learn.md", "A complete program")
        source.write_text(doctest.script_from_examples(page))
    else:
        source.write_text(block(package))
    installed.python("-W", "ignore", source, cwd=tmp_path)
