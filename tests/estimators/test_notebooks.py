"""Notebooks run from their first cell to their last, and their own assertions hold."""

import importlib.util

import _notebooks
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01_from_target_to_model", "04_estimators", "05_torch"])
def test_notebook_runs(name):
    if name == "05_torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("it stands on a package that is not installed")
    assert len(_notebooks.run(name)) > 10
