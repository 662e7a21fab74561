"""``dpcal verify``: recompute the claims of a report from its ledgers."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from dpcal.commands._output import present

EXAMPLE = "dpcal-report"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the report."""
    parser.add_argument("report", type=Path, metavar="FOLDER", help="a folder with a report.json")


def run(options: Namespace) -> int:
    """Print each claim beside what the ledger proves; the exit status is 1 if one does not hold."""
    path = options.report / "report.json"
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"report must hold a readable report.json: {error}.") from error
    from dpcal.report import verify

    rows = verify(document)
    lines = [f"{'claim':<24}{'claimed epsilon':>20}{'from the ledger':>20}"]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        lines.append(
            f"{row['claim']:<24}{row['claimed']:>20.9f}{row['recomputed']:>20.9f}  {verdict}"
        )
    present(options, {"claims": rows}, "\n".join(lines))
    return 0 if all(row["holds"] for row in rows) else 1
