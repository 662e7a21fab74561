"""Notebooks run from their first cell to their last, and their own assertions hold."""

import importlib.util

import pytest
from _tree import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01_from_target_to_model", "04_estimators", "05_torch"])
def test_notebook_runs(name):
    if name == "05_torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("it stands on a package that is not installed")
    nbformat, nbclient = (pytest.importorskip(each) for each in ("nbformat", "nbclient"))
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
