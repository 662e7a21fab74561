"""Notebooks run to their ends here, and once more where the site shows their outputs."""

import json
import shutil

import pytest
from _tree import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path):
    return [each for each in json.loads(path.read_text())["cells"] if each["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_run_by_the_site_and_committed_without_outputs(path):
    site = (ROOT / "docs" / "conf.py").read_text()
    assert f"../notebooks/{path.stem}" in site
    assert "nb_execution_raise_on_error = True" in site
    assert not any(cell["outputs"] for cell in cells(path))
    drawn = [cell for cell in cells(path) if "SVG(" in "".join(cell["source"])]
    assert drawn
    assert all(len(cell["metadata"]["mystnb"]["image"]["alt"]) > 40 for cell in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end(path, monkeypatch, tmp_path):
    """Its own assertions hold."""
    monkeypatch.chdir(shutil.copytree(path.parent, tmp_path / "notebooks"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "__main__"}
    for cell in cells(path):
        exec(compile("".join(cell["source"]), f"{path.stem}, {cell['id']}", "exec"), names)
