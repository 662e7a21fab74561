"""The budget book of a training or a release: checked before a record is read, then paid.

>>> booked(None)
{}
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from dpcal._internal import validate
from dpcal.calibrate import Plan
from dpcal.optim import BudgetBook
from dpcal.optim.boundary.book import Records


def checked_book(budget: str | Path | None, table: Records) -> Path | None:
    """Return the path of a book; refuse a file that is none, or is about other records.

    Raises
    ------
    ValueError
        If it is a file and not a book about ``table``.
    """
    if budget is None:
        return None
    path = Path(validate.instance(str, Path, budget=budget))
    if path.exists():
        BudgetBook(path).about(table)
    return path


def opened_book(path: Path | None, table: Records, plan: Plan) -> BudgetBook | None:
    """Return the book that a plan is charged to, if it fits; None where no book is kept.

    The total of a new book is the plan's own target, and a line on standard error states it. The
    records are entered into the book with the first answer.

    Raises
    ------
    BudgetExceeded
        If the plan would overrun the book's total.
    ValueError
        If the book is about other records, or for another neighboring relation.
    """
    if path is None:
        return None
    if path.exists():
        book = BudgetBook(path)
        for line in book.unfinished():
            print(f"dpcal: {line}.", file=sys.stderr)
    else:
        book = BudgetBook(path, epsilon=plan.epsilon, delta=plan.delta)
        print(
            f"dpcal: {path} is a new budget book with this run's total: epsilon "
            f"{plan.epsilon:g} at delta {plan.delta:g}. 'dpcal budget {path} --change-total "
            "--epsilon E' allows more runs.",
            file=sys.stderr,
        )
    book.about(table).check(plan)
    return book


def booked(path: Path | None) -> dict[str, Any]:
    """Return the section of a report on the budget book that its last run is in; none without one.

    The section has the book's name, the number of the run, the total, the cost of all runs, and the
    unit.
    """
    if path is None:
        return {}
    book = BudgetBook(path)
    whole = book.to_dict()
    return {
        "budget": {
            "name": path.name,
            "run": len(book.runs),
            "epsilon": book.epsilon,
            "delta": book.delta,
            "spent": whole["spent"]["upper"],
            "unit": whole["unit"],
        }
    }
