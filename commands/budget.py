"""``dpcal budget``: what was spent on a data set, by which runs, and what is left."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import dpcal
from dpcal.calibrate.persons import unit_of
from dpcal.commands._options import add_options, fields_of, relation
from dpcal.commands.checking.output import at_least, at_most, present
from dpcal.errors import UnsupportedEvent

EXAMPLES = ("clinic.budget --epsilon 3 --delta 1e-6", "clinic.budget --json")
COMPOSITIONS = ("exact", "renyi", "zcdp", "gdp")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the book, and the total of a new one."""
    add_options(
        parser,
        """
book FILE:path  a budget book, or a new one
[total: of a new book, or with --change-total]
--epsilon E:number  > 0
--delta D:number    in (0, 1)
--change-total      change it; the book keeps the former one
""",
        relation("that of the book's first run"),
        """
--composition NAME        exact: runs are fixed with no look at earlier results; renyi: they may
    be chosen by them; zcdp, gdp: likewise, for Gaussian noise alone (default: exact)
--add-records TABLE:path  another form of the same people's records, which runs may use from now
    on
""",
        composition=COMPOSITIONS,
    )


def run(options: Namespace) -> int:
    """Make or change a book where options do, and print it."""
    book = _opened(options)
    if options.add_records is not None:
        book.add_records(options.add_records)
    present(options, book.to_dict(), _text(book))
    return 0


def _opened(options: Namespace) -> Any:
    """Return the book, made or changed by the options."""
    given = fields_of(options, "neighboring_relation", "composition")
    total = fields_of(options, "epsilon", "delta")
    if not options.change_total:
        return dpcal.optim.BudgetBook(options.book, **total, **given)
    if options.epsilon is None and options.delta is None:
        raise ValueError("--change-total needs --epsilon or --delta.")
    book = dpcal.optim.BudgetBook(options.book, **given)
    book.change_total(**total)
    return book


def _text(book: Any) -> str:
    """Return the text on what was spent, by which runs, and what is left."""
    runs, delta = book.runs, book.delta
    charged = sum(run.charged for run in runs)
    lines = [
        f"budget book {book.path}: {book.neighboring_relation or 'the relation of its first run'}, "
        f"composition {book.composition}",
        f"unit     {unit_of(book.group_size)}",
        *_mixed(book),
        f"total    epsilon {book.epsilon:g} at delta {delta:g}",
        f"spent    epsilon at most {at_most(book.spent().upper, digits=6)} by {charged} "
        f"run{'' if charged == 1 else 's'}, chosen with no look at earlier results",
    ]
    if charged:
        lines.append(f"         {_whatever(book)} however runs were chosen")
    lines.append(
        f"left     one more run of epsilon up to {at_least(book.left(), digits=4)} at delta "
        f"{delta:g}, if its noise is Gaussian"
    )
    lines += [
        f"former   epsilon {old[1]:g} at delta {old[2]:g}, since {old[0]}"
        for old in book.totals[:-1]
    ]
    lines += [f"records  {name}, since {added}" for name, added in book.records]
    if runs:
        lines += [
            "",
            f"{'run':>4}  {'started':<26}{'label':<20}{'epsilon':>9}{'delta':>9}  rows  state",
        ]
    lines += [
        f"{run.number:>4}  {run.started:<26}{run.label:<20}{run.plan.epsilon:>9.4g}"
        f"{run.plan.delta:>9.2g}{run.plan.group_size:>6}  {run.state}"
        for run in runs
    ]
    lines += ["", *book.unfinished()] if book.unfinished() else []
    return "\n".join(lines)


def _mixed(book: Any) -> list[str]:
    """Return the lines on runs that limit nobody's number of rows, where others do."""
    if len({run.plan.group_size for run in book.runs if run.charged}) < 2:
        return []
    return [
        "         runs about fewer rows are priced for such a person, and do not count his rows:",
        "         the claim is about persons who have no more in the table",
    ]


def _whatever(book: Any) -> str:
    """Return the bound that holds where runs were chosen by results."""
    if book.composition != "exact":
        return f"at most the total, epsilon {book.epsilon:g},"
    try:
        return f"epsilon at most {at_most(book.spent_whatever_was_chosen(), digits=6)}"
    except UnsupportedEvent:
        return "no bound is known"
