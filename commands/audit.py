"""``dpcal audit``: prove or refute the printed settings of six papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import dpcal
from dpcal.commands._shared import bar
from dpcal.commands._signature import Answer


def audit(
    paper: str | None = None,
    *,
    explain: str | None = None,
    format: Literal["table", "json", "markdown", "latex"] = "table",  # noqa: A002
    output: Path | None = None,
    processes: int = 2,
    fresh: bool = False,
) -> Answer:
    """Prove or refute the printed settings of six papers.

    The exit status is 1 if a verdict differs from the expected verdict.

    Parameters
    ----------
    paper
        kl_condition, spiderboost, gauss_psgd, dp_rgda, kan or moments (default: all six), a file
        my_paper.py or a module package.module that defines SCHEDULE, or a name that an installed
        package offers.
    explain
        Show one claim or erratum, with formula and evidence.
    format
        Format of the report.
    output
        File for the report.
    processes
        Number of child processes that decide claims, each with limits of time and memory; 0 uses
        this process.
    fresh
        Decide all claims again, and use no stored verdict.

    Examples
    --------
    dpcal audit kl_condition --explain EP1
    dpcal audit spiderboost --format markdown -o spiderboost.md
    """
    if explain and not paper:
        raise ValueError("explain needs a paper, as in: dpcal audit kl_condition --explain EP1.")
    report = dpcal.calibrate.audit(
        paper,
        only=explain,
        progress=bar("dpcal audit", "claim"),
        processes=processes,
        store=None if fresh else dpcal.calibrate.papers.default_store(),
    )
    text = report.explain(explain) if explain else report.render(format)
    document = json.loads(report.render("json"))
    if output is not None:
        dpcal.report.replace_file(output, (text.rstrip("\n") + "\n").encode())
        text = f"written to {output}"
    return Answer(document, text.rstrip("\n"), 0 if report.ok else 1)
