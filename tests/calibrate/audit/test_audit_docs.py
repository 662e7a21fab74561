"""The page and the notebook about audits run, and the page prints what it says."""

import contextlib
import io
import re

import pytest
from _tree import ROOT


@pytest.mark.slow
def test_page_runs_and_prints_what_it_says():
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    output, names = io.StringIO(), {}
    with contextlib.redirect_stdout(output):
        for block in blocks:
            exec(block, names)
    assert output.getvalue() == "".join(printed)


@pytest.mark.study
def test_notebook_runs():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "notebooks" / "02_audit.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit it without outputs"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/latex" in output.get("data", {}) for output in shown)
    texts = "".join(output.get("text", "") for output in shown)
    assert "the checker accepted all evidence" in texts
    assert "rho-zCDP" in texts
