"""The page about audits runs, and prints what it says."""

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
