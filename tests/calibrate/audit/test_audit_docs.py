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


def test_own_schedule_is_short():
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    body = block.split("settings = (", 1)[1]
    assert len([line for line in body.splitlines() if line.strip()]) <= 40
