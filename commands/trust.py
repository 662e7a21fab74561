"""``dpcal verify`` and ``dpcal budget``: claims of reports, and the budget of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import dpcal
from dpcal._internal.columns import columns
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.runs import Relation
from dpcal.commands._signature import Answer
from dpcal.errors import UnsupportedEvent
from dpcal.report.output import at_least, at_most

__all__ = ["budget", "verify"]


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
    names, several = [str(path) for path in report], len(documents) > 1
    if delta is not None and not several:
        raise ValueError("--delta is for several reports: a single report states its own delta.")
    folders = [path if path.is_dir() else path.absolute().parent for path in report]
    tables = [dpcal.report.verify(document) for document in documents]
    changed = [*map(dpcal.report.file_problems, folders, documents)]
    texts = [*map(_of_claims, tables, documents, changed)]
    found: dict[str, Any] = {"reports": dict(zip(names, tables, strict=True))}
    if several:
        texts = [f"{name}\n{text}" for name, text in zip(names, texts, strict=True)]
        found["together"] = together = _together(documents, delta)
        texts.append(_sentences(together))
        upper, delta = together["epsilon"]["upper"], together["delta"]
    else:
        (found["claims"],) = tables
        upper, delta = tables[0][-1]["recomputed"], tables[0][-1]["delta"]
    found |= {"files": dict(zip(names, changed, strict=True)), "bound": BOUND}
    found["not_bound"] = NOT_BOUND
    texts.append(f"{BOUND}\n{NOT_BOUND}")
    problems = [*changed]
    if limits is not None:
        found["policy"] = limits.violations(dpcal.report.facts_of(documents, upper, delta))
        problems.append(found["policy"])
        texts.append("\n".join(found["policy"]) or f"policy {policy}: kept")
    if key is not None:
        signed = [dpcal.report.signature_problems(folder, key) for folder in folders]
        found["signatures"] = dict(zip(names, signed, strict=True))
        problems += signed
        texts += [
            f"signature of {name}: {'; '.join(told) or 'holds'}"
            for name, told in found["signatures"].items()
        ]
    holds = all(row["holds"] for rows in tables for row in rows) and not any(problems)
    if sign is not None:
        if not holds:
            raise ValueError("--sign signs only what holds, and a claim does not.")
        found["signed"] = [str(dpcal.report.sign(folder, sign)) for folder in folders]
        texts.append(f"signed: {', '.join(found['signed'])}")
    return Answer(found, "\n\n".join(texts), 0 if holds else 1)


def _of_claims(rows: list[dict[str, Any]], document: Any, problems: list[str]) -> str:
    """Return a table of one report's claims, and lines on its unit, relation and files."""
    table = [("claim", "delta", "claimed epsilon", "recomputed", "")]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        label = f" ({row['label']})" if row["label"] else ""
        numbers = (f"{row['delta']:.3g}", f"{row['claimed']:.9f}", f"{row['recomputed']:.9f}")
        table.append((row["claim"], *numbers, verdict + label))
    lines, privacy = columns(table), document.get("privacy", {})
    lines += [f"{name}: {privacy[key]}" for name, key in ABOUT.items() if key in privacy]
    if "files" in document:
        lines.append(f"files: {'; '.join(problems) or 'as in report.json'}")
    return "\n".join(lines)


ABOUT = {"unit": "unit", "relation": "neighboring_relation"}


def _together(documents: list[Any], delta: float | None) -> dict[str, Any]:
    """Return the cost of all reports together, with notes."""
    seeds = sum(bool(run.get("seed_given")) for each in documents for run in each["runs"])
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
    return {**dpcal.report.composed_reports(documents, delta), "notes": notes}


def _sentences(together: dict[str, Any]) -> str:
    upper = at_most(together["epsilon"]["upper"], digits=9)
    head = (
        f"all {together['runs']} runs together: epsilon at most {upper} at delta = "
        f"{together['delta']:g}, {together['epsilon']['neighboring_relation']}, unit: "
        f"{together['unit']}"
    )
    return "\n".join([head, *together["notes"]])


def budget(
    book: Path,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    change_total: bool = False,
    neighboring_relation: Relation | None = None,
    composition: Literal["exact", "renyi", "zcdp", "gdp"] | None = None,
    add_records: Path | None = None,
) -> Answer:
    """Print the runs of a data set, their cost, and the remaining budget.

    Parameters
    ----------
    book
        File of the budget book; a new file if you give a total.
    epsilon
        Total epsilon of a new book, > 0.
    delta
        Delta of the total, in (0, 1).
    change_total
        Change the total; the book keeps the former one.
    neighboring_relation
        Neighboring relation (default: the relation of the book's first run).
    composition
        Rule of composition. Use exact if you fix all runs before you see a result. Use renyi if you
        choose runs by earlier results; zcdp and gdp do the same for Gaussian noise only (default:
        exact).
    add_records
        Table with another form of the same people's records, which runs may use from now on.

    Examples
    --------
    dpcal budget clinic.budget --epsilon 3 --delta 1e-6
    dpcal budget clinic.budget --json
    """
    given: dict[str, Any] = {
        "neighboring_relation": neighboring_relation,
        "composition": composition,
    }
    total: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    if change_total:
        if epsilon is None and delta is None:
            raise ValueError("--change-total needs --epsilon or --delta.")
        opened = dpcal.optim.BudgetBook(book, **given)
        opened.change_total(**total)
    else:
        opened = dpcal.optim.BudgetBook(book, **total, **given)
    if add_records is not None:
        opened.add_records(add_records)
    return Answer(opened.to_dict(), _of_book(opened))


_FEWER_ROWS = (
    "         runs about fewer rows are charged for that many rows, and do not count them:",
    "         the claim is about persons with at most that many rows in the table",
)


def _of_book(book: Any) -> str:
    """Return the text on past runs, their cost and the remaining budget."""
    runs, delta = book.runs, book.delta
    lines = [
        f"budget book {book.path}: {book.neighboring_relation or 'the relation of its first run'}, "
        f"composition {book.composition}",
        f"unit     {unit_of(book.group_size)}",
        *(_FEWER_ROWS if len({run.plan.group_size for run in runs}) > 1 else ()),
        f"total    epsilon {book.epsilon:g} at delta {delta:g}",
        f"spent    epsilon at most {at_most(book.spent().upper, digits=6)} by {len(runs)} "
        f"run{'s' * (len(runs) != 1)} together (not a sum)",
    ]
    if runs:
        lines.append(f"         if a run was chosen after a look at results: {_whatever(book)}")
    lines.append(
        f"left     one more run of epsilon up to {at_least(book.left(), digits=4)} at delta "
        f"{delta:g}, if its noise is Gaussian"
    )
    for since, former, at in book.totals[:-1]:
        lines.append(f"former   epsilon {former:g} at delta {at:g}, since {since}")
    lines += [f"records  {name}, since {added}" for name, added in book.records]
    table = [("run", "started", "label", "alone", "delta", "rows", "state")]
    for run in runs:
        plan = run.plan
        numbers = (f"{plan.epsilon:.4g}", f"{plan.delta:.2g}", str(plan.group_size))
        table.append((str(run.number), run.started, run.label, *numbers, run.state))
    lines += ["", *columns(table)] if runs else []
    lines += ["", *book.unfinished()] if book.unfinished() else []
    return "\n".join(lines)


def _whatever(book: Any) -> str:
    """Return the bound that holds where runs were chosen by results."""
    if book.composition != "exact":
        return f"at most the total, epsilon {book.epsilon:g},"
    try:
        return f"epsilon at most {at_most(book.spent_whatever_was_chosen(), digits=6)}"
    except UnsupportedEvent:
        return "no bound is known"
