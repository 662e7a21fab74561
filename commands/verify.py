"""``dpcal verify``: recompute the claims of reports from their ledgers, and compose them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal.calibrate.persons import unit_of
from dpcal.commands._options import add_options
from dpcal.commands.checking.output import at_most, check_new, dump, present
from dpcal.commands.checking.progress import stage

if TYPE_CHECKING:
    from dpcal.report import Policy

EXAMPLES = ("dpcal-report", "dpcal-report second-report --delta 1e-5")

BOUND = (
    "Bound to each other: plan, ledger, delta, neighboring relation and claim of each run, and of "
    "all together; and to report.json the files beside it, by their sums."
)
NOT_BOUND = (
    "Not bound: scores, words and dates in report.json, the table, and whether runs were of silos "
    "or one after another. A report that was forged as a whole, sums and all, passes; --sign and "
    "--key bind all its files to a key."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the reports, and the delta of all of them together."""
    add_options(
        parser,
        """
report FOLDER:path+  a folder with a report.json, or that file; several are composed, as about one
    table
--sign KEY:path      sign every file of each report, into FOLDER.sig beside it: a private Ed25519
    key in PEM
--key PUBLIC:path    check that signature: the public key in PEM
--registry FILE:path  draft an entry for the registry of deployments, of one report whose claims
    hold: what it knows, the rest marked
--policy FILE:path   check that the claims are such as this TOML file allows
--delta D:number     of several reports together, in (0, 1) (default: the largest of theirs)
""",
    )


def run(options: Namespace) -> int:
    """Print each claim beside what the ledger proves; the exit status is 1 if one does not hold."""
    policy = None if options.policy is None else dpcal.report.Policy.read(options.policy)
    documents = _documents(options)
    tables, texts, changed = [], [], {}
    for folder, document in zip(options.report, documents, strict=True):
        stage(options, str(folder))
        rows = dpcal.report.verify(document)
        tables.append(rows)
        problems = dpcal.report.file_problems(_folder(folder), document)
        changed[str(folder)] = problems
        texts.append((f"{folder}\n" if len(documents) > 1 else "") + _text(rows))
        texts[-1] += _about(document, problems)
    holds = all(row["holds"] for rows in tables for row in rows) and not any(changed.values())
    found: dict[str, Any] = {"reports": dict(zip(map(str, options.report), tables, strict=True))}
    if len(documents) == 1:
        found["claims"] = tables[0]
    else:
        stage(options, "all reports together")
        found["together"] = _together(options, documents)
        texts.append(_sentences(found["together"]))
    found.update(files=changed, bound=BOUND, not_bound=NOT_BOUND)
    texts.append(f"{BOUND}\n{NOT_BOUND}")
    if policy is not None:
        found["policy"] = _broken(policy, documents, found)
        holds = holds and not found["policy"]
        texts.append("\n".join(found["policy"]) or f"policy {options.policy}: kept")
    if options.key is not None:
        found["signatures"] = _signatures(options)
        holds = holds and not any(found["signatures"].values())
        texts += [
            f"signature of {folder}: {'; '.join(problems) or 'holds'}"
            for folder, problems in found["signatures"].items()
        ]
    if options.sign is not None:
        if not holds:
            raise ValueError("--sign signs only what holds, and a claim does not.")
        found["signed"] = [
            str(dpcal.report.sign(_folder(path), options.sign)) for path in options.report
        ]
        texts.append(f"signed: {', '.join(found['signed'])}")
    if options.registry is not None:
        if not holds:
            raise ValueError("--registry is for a report whose claims hold, and one does not.")
        entry = dpcal.report.registry_entry(documents[0])
        dpcal.report.replace_file(options.registry, (dump(entry) + "\n").encode())
        texts.append(f"draft of an entry for the registry of deployments: {options.registry}")
    present(options, found, "\n\n".join(texts))
    return 0 if holds else 1


def _documents(options: Namespace) -> list[Any]:
    """Read the reports, and refuse options that do not go with each other or with them."""
    if options.sign is not None and options.key is not None:
        raise ValueError("--sign makes a signature and --key checks one: give one of them.")
    documents = [dpcal.report.read(path) for path in options.report]
    if options.registry is not None:
        check_new(options.registry, force=False)
        if len(documents) > 1:
            raise ValueError(f"--registry is for one report, got {len(documents)}.")
    if options.delta is not None and len(documents) == 1:
        raise ValueError("--delta is for several reports: one report says its own.")
    return documents


def _broken(policy: Policy, documents: list[Any], found: dict[str, Any]) -> list[str]:
    """Return what a policy does not allow in reports whose claims were computed again."""
    if len(documents) > 1:
        upper, delta = found["together"]["epsilon"]["upper"], found["together"]["delta"]
    else:
        upper, delta = found["claims"][-1]["recomputed"], found["claims"][-1]["delta"]
    return policy.violations(dpcal.report.facts_of(documents, upper, delta))


def _signatures(options: Namespace) -> dict[str, list[str]]:
    """Return the problems of each report's signature."""
    return {
        str(path): dpcal.report.signature_problems(_folder(path), options.key)
        for path in options.report
    }


def _folder(path: Path) -> Path:
    """Return the folder of a report that was given as it or as its file."""
    return path if path.is_dir() else path.absolute().parent


def _text(rows: list[dict[str, Any]]) -> str:
    """A table of one report's claims."""
    lines = [f"{'claim':<24}{'delta':>12}{'claimed epsilon':>20}{'recomputed':>20}"]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        label = f" ({row['label']})" if row["label"] else ""
        numbers = f"{row['delta']:>12.3g}{row['claimed']:>20.9f}{row['recomputed']:>20.9f}"
        lines.append(f"{row['claim']:<24}{numbers}  {verdict}{label}")
    return "\n".join(lines)


def _about(document: Any, problems: list[str]) -> str:
    """The lines on unit and relation of a report, and on the files beside it."""
    privacy = document.get("privacy", {})
    lines = [f"{name}: {privacy[key]}" for name, key in ABOUT.items() if key in privacy]
    if "files" in document:
        lines.append(f"files: {'; '.join(problems) or 'as report.json says'}")
    return "".join(f"\n{line}" for line in lines)


ABOUT = {"unit": "unit", "relation": "neighboring_relation"}


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
