"""Notebooks run from their first cell to their last, and their own assertions hold."""

import importlib.util
import json

import pytest
from _tree import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01_from_target_to_model", "04_estimators", "05_torch"])
def test_notebook_runs(name):
    if name == "05_torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("it stands on a package that is not installed")
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())
    names = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            # What a kernel runs, without the seconds that a kernel takes to start.
            exec(compile("".join(cell["source"]), f"{name}, {cell['id']}", "exec"), names)
    assert len(names) > 10
