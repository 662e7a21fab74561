"""``dpcal verify``: recompute the claims of a report from its ledgers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import dpcal
from dpcal.commands._output import present

EXAMPLE = "dpcal-report"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the report."""
    parser.add_argument("report", type=Path, metavar="FOLDER", help="a folder with a report.json")


def run(options: Namespace) -> int:
    """Print each claim beside what the ledger proves; the exit status is 1 if one does not hold."""
    rows = dpcal.report.verify(dpcal.report.read(options.report))
    lines = [f"{'claim':<24}{'delta':>12}{'claimed epsilon':>20}{'recomputed':>20}"]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        label = f" ({row['label']})" if row["label"] else ""
        numbers = f"{row['delta']:>12.3g}{row['claimed']:>20.9f}{row['recomputed']:>20.9f}"
        lines.append(f"{row['claim']:<24}{numbers}  {verdict}{label}")
    present(options, {"claims": rows}, "\n".join(lines))
    return 0 if all(row["holds"] for row in rows) else 1
