"""``dpcal budget``: the runs of a data set, their cost, and the remaining budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import dpcal
from dpcal._internal.columns import columns
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.runs import Relation
from dpcal.commands._signature import Answer
from dpcal.errors import UnsupportedEvent
from dpcal.report.output import at_least, at_most


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
    return Answer(opened.to_dict(), _text(opened))


_FEWER_ROWS = (
    "         runs about fewer rows are charged for that many rows, and do not count them:",
    "         the claim is about persons with at most that many rows in the table",
)


def _text(book: Any) -> str:
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
