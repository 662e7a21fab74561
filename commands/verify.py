"""``dpcal verify``: recompute the claims of reports from their ledgers, and compose them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import dpcal
from dpcal.commands._options import add_options
from dpcal.commands._output import at_most, present
from dpcal.commands.checking.progress import stage

EXAMPLES = ("dpcal-report", "dpcal-report second-report --delta 1e-5")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the reports, and the delta of all of them together."""
    add_options(
        parser,
        """
report FOLDER:path+  a folder with a report.json, or that file; several are composed, as about one
    table
--delta D:number     of several reports together, in (0, 1) (default: the largest of theirs)
""",
    )


def run(options: Namespace) -> int:
    """Print each claim beside what the ledger proves; the exit status is 1 if one does not hold."""
    documents = [dpcal.report.read(path) for path in options.report]
    if options.delta is not None and len(documents) == 1:
        raise ValueError("--delta is for several reports: one report says its own.")
    tables, texts = [], []
    for folder, document in zip(options.report, documents, strict=True):
        stage(options, str(folder))
        rows = dpcal.report.verify(document)
        tables.append(rows)
        texts.append((f"{folder}\n" if len(documents) > 1 else "") + _text(rows))
    holds = all(row["holds"] for rows in tables for row in rows)
    found: dict[str, Any] = {"claims": tables[0]}
    if len(documents) > 1:
        stage(options, "all reports together")
        found = {"reports": dict(zip(map(str, options.report), tables, strict=True))}
        found["together"] = _together(options, documents)
        texts.append(_sentences(found["together"]))
    present(options, found, "\n\n".join(texts))
    return 0 if holds else 1


def _text(rows: list[dict[str, Any]]) -> str:
    """A table of one report's claims."""
    lines = [f"{'claim':<24}{'delta':>12}{'claimed epsilon':>20}{'recomputed':>20}"]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        label = f" ({row['label']})" if row["label"] else ""
        numbers = f"{row['delta']:>12.3g}{row['claimed']:>20.9f}{row['recomputed']:>20.9f}"
        lines.append(f"{row['claim']:<24}{numbers}  {verdict}{label}")
    return "\n".join(lines)


def _together(options: Namespace, documents: list[Any]) -> dict[str, Any]:
    """The price of all reports, and what to know about it."""
    runs = [run for document in documents for run in document["runs"]]
    largest = max(run["delta"] for run in runs)
    delta = largest if options.delta is None else options.delta
    epsilon = dpcal.report.composed_reports(documents, delta)
    seeds = sum(bool(run.get("seed_given")) for run in runs)
    notes = [
        "The reports are taken to be about the same records: fingerprints have keys of their own, "
        "so that nobody can tell.",
        "The claim holds where no run was chosen with a look at what another one released.",
    ]
    if seeds > 1:
        notes.append(
            f"{seeds} runs had seeds that were given: if two had one seed, their noise cancels, "
            "and no claim holds. A budget book (dpcal train --budget) refuses that."
        )
    return {"runs": len(runs), "delta": delta, "epsilon": epsilon.to_dict(), "notes": notes}


def _sentences(together: dict[str, Any]) -> str:
    upper = at_most(together["epsilon"]["upper"], digits=9)
    head = (
        f"all {together['runs']} runs together: epsilon at most {upper} at delta = "
        f"{together['delta']:g}, {together['epsilon']['neighboring_relation']}"
    )
    return "\n".join([head, *together["notes"]])
