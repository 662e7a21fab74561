"""``dpcal verify``: recompute the claims of reports from their ledgers, and compose them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal._internal.columns import columns
from dpcal.calibrate.persons import unit_of
from dpcal.commands._signature import Answer
from dpcal.report.output import at_most

if TYPE_CHECKING:
    from dpcal.report import Policy

BOUND = (
    "Bound to each other: plan, ledger, delta, neighboring relation and claim of each run, and of "
    "all together; and to report.json the other files, by their sums."
)
NOT_BOUND = (
    "Not bound: scores, words and dates in report.json, the table, and whether runs were of silos "
    "or one after another. A report that was forged as a whole, sums and all, passes; --sign and "
    "--key bind all its files to a key."
)


def verify(
    report: Sequence[Path],
    *,
    sign: Path | None = None,
    key: Path | None = None,
    policy: Path | None = None,
    delta: float | None = None,
) -> Answer:
    """Recompute the claims of reports from their ledgers, and compose several.

    The exit status is 1 if a claim does not hold.

    Parameters
    ----------
    report
        Folder with a report.json, or that file. Several reports are composed, as reports about one
        table.
    sign
        Private Ed25519 key in PEM that signs every file of each report; the signature of FOLDER is
        FOLDER.sig.
    key
        Public key in PEM that checks the signature.
    policy
        File of limits that the claims must meet, in TOML.
    delta
        Delta in (0, 1) of several reports together (default: the largest delta of a report).

    Examples
    --------
    dpcal verify dpcal-report
    dpcal verify dpcal-report second-report --delta 1e-5
    """
    if sign is not None and key is not None:
        raise ValueError("--sign makes a signature and --key checks one: give one of them.")
    limits = None if policy is None else dpcal.report.Policy.read(policy)
    documents = [dpcal.report.read(path) for path in report]
    if delta is not None and len(documents) == 1:
        raise ValueError("--delta is for several reports: a single report states its own delta.")
    tables, texts, changed = [], [], {}
    for folder, document in zip(report, documents, strict=True):
        rows = dpcal.report.verify(document)
        tables.append(rows)
        problems = dpcal.report.file_problems(_folder(folder), document)
        changed[str(folder)] = problems
        texts.append((f"{folder}\n" if len(documents) > 1 else "") + _text(rows))
        texts[-1] += _about(document, problems)
    holds = all(row["holds"] for rows in tables for row in rows) and not any(changed.values())
    found: dict[str, Any] = {"reports": dict(zip(map(str, report), tables, strict=True))}
    if len(documents) == 1:
        found["claims"] = tables[0]
    else:
        found["together"] = _together(documents, delta)
        texts.append(_sentences(found["together"]))
    found.update(files=changed, bound=BOUND, not_bound=NOT_BOUND)
    texts.append(f"{BOUND}\n{NOT_BOUND}")
    if limits is not None:
        found["policy"] = _broken(limits, documents, found)
        holds = holds and not found["policy"]
        texts.append("\n".join(found["policy"]) or f"policy {policy}: kept")
    if key is not None:
        found["signatures"] = {
            str(path): dpcal.report.signature_problems(_folder(path), key) for path in report
        }
        holds = holds and not any(found["signatures"].values())
        texts += [
            f"signature of {folder}: {'; '.join(problems) or 'holds'}"
            for folder, problems in found["signatures"].items()
        ]
    if sign is not None:
        if not holds:
            raise ValueError("--sign signs only what holds, and a claim does not.")
        found["signed"] = [str(dpcal.report.sign(_folder(path), sign)) for path in report]
        texts.append(f"signed: {', '.join(found['signed'])}")
    return Answer(found, "\n\n".join(texts), 0 if holds else 1)


def _broken(policy: Policy, documents: list[Any], found: dict[str, Any]) -> list[str]:
    """Return the sentences on recomputed claims that break a policy."""
    if len(documents) > 1:
        upper, delta = found["together"]["epsilon"]["upper"], found["together"]["delta"]
    else:
        upper, delta = found["claims"][-1]["recomputed"], found["claims"][-1]["delta"]
    return policy.violations(dpcal.report.facts_of(documents, upper, delta))


def _folder(path: Path) -> Path:
    """Return the folder of a report, given as a folder or as its file."""
    return path if path.is_dir() else path.absolute().parent


def _text(rows: list[dict[str, Any]]) -> str:
    """Return a table of one report's claims."""
    table = [("claim", "delta", "claimed epsilon", "recomputed", "")]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        label = f" ({row['label']})" if row["label"] else ""
        numbers = (f"{row['delta']:.3g}", f"{row['claimed']:.9f}", f"{row['recomputed']:.9f}")
        table.append((row["claim"], *numbers, verdict + label))
    return "\n".join(columns(table))


def _about(document: Any, problems: list[str]) -> str:
    """Return the lines on unit, relation and other files of a report."""
    privacy = document.get("privacy", {})
    lines = [f"{name}: {privacy[key]}" for name, key in ABOUT.items() if key in privacy]
    if "files" in document:
        lines.append(f"files: {'; '.join(problems) or 'as in report.json'}")
    return "".join(f"\n{line}" for line in lines)


ABOUT = {"unit": "unit", "relation": "neighboring_relation"}


def _together(documents: list[Any], delta: float | None) -> dict[str, Any]:
    """Return the cost of all reports together, with notes."""
    runs = [run for document in documents for run in document["runs"]]
    largest = max(run["delta"] for run in runs)
    delta = largest if delta is None else delta
    epsilon = dpcal.report.composed_reports(documents, delta)
    seeds = sum(bool(run.get("seed_given")) for run in runs)
    notes = [
        "The reports are taken to be about the same records: their fingerprints have different "
        "keys, and cannot show it.",
        "The claim holds if no run was chosen by the results of another run.",
    ]
    if seeds > 1:
        notes.append(
            f"{seeds} runs had seeds that were given: if two had one seed, their noise cancels, "
            "and no claim holds. A budget book (dpcal train --budget) refuses that."
        )
    sizes = (query.get("group_size", 1) for run in runs for query in run["plan"]["queries"])
    unit = unit_of(max(sizes))
    return {
        "runs": len(runs),
        "delta": delta,
        "unit": unit,
        "epsilon": epsilon.to_dict(),
        "notes": notes,
    }


def _sentences(together: dict[str, Any]) -> str:
    upper = at_most(together["epsilon"]["upper"], digits=9)
    head = (
        f"all {together['runs']} runs together: epsilon at most {upper} at delta = "
        f"{together['delta']:g}, {together['epsilon']['neighboring_relation']}, unit: "
        f"{together['unit']}"
    )
    return "\n".join([head, *together["notes"]])
