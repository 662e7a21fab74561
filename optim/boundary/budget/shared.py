"""What may several runs cost together, in one process or in all processes that share a file?

>>> import tempfile
>>> from dpcal.optim.budget import charge
>>> folder = tempfile.TemporaryDirectory()
>>> path = folder.name + "/clinic.budget"
>>> with budget(epsilon=2.0, delta=1e-6, book=path):
...     charge(events.GaussianDpEvent(8.0), "replace-special", label="a scaler")
>>> with budget(book=path) as later:
...     print(f"{later.spent:.3f}", [(run.label, run.state) for run in later.book.runs])
0.504 [('a scaler', 'charged whole')]
>>> folder.cleanup()
"""

from __future__ import annotations

import os

from dpcal import _validate
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.optim.boundary import observers
from dpcal.optim.boundary.budget.book import BudgetBook
from dpcal.optim.boundary.budget.charge import Charge
from dpcal.optim.budget import Budget

__all__ = ["BookedBudget", "budget"]


class BookedBudget(Budget):
    """A budget whose charges are in a budget book, which other processes share.

    A charge is on the disk before the run reads a record, and stays there.

    Parameters
    ----------
    book
        The book, whose total and neighboring relation are the budget's.
    score_share
        See :class:`dpcal.optim.budget.Budget`.
    """

    shared = True

    def __init__(self, book: BudgetBook, *, score_share: float = 0.1) -> None:
        super().__init__(
            epsilon=book.epsilon,
            delta=book.delta,
            neighboring_relation=book.neighboring_relation,
            score_share=score_share,
        )
        self.book = book

    @property
    def event(self) -> events.DpEvent:
        """Everything that the book charges, as one event."""
        size = self.group_size
        charged = (run.plan for run in self.book.runs if run.charged)
        return events.ComposedDpEvent([plan.event_for(size) for plan in charged])

    @property
    def group_size(self) -> int:
        """Largest number of records of a person whom a run in the book is about."""
        return self.book.group_size

    @property
    def spent(self) -> float:
        """Epsilon of everything that the book charges, rounded up."""
        return self.book.spent().upper

    def check(
        self,
        event: events.DpEvent,
        neighboring_relation: str,
        label: str = "run",
        group_size: int = 1,
    ) -> None:
        """Refuse a run as :meth:`dpcal.optim.budget.Budget.check` does, and write nothing.

        An OSError is raised if the book cannot be read.
        """
        self.book.check(self._charge(event, neighboring_relation, label, group_size))

    def pay(
        self,
        event: events.DpEvent,
        neighboring_relation: str,
        label: str = "run",
        group_size: int = 1,
    ) -> None:
        """Write a run into the book by its event, relation and name, or refuse it.

        A run that is observed is not released, and costs nothing.
        """
        charge = self._charge(event, neighboring_relation, label, group_size)
        if observers.observed():
            self.book.check(charge)
        else:
            self.book.charge(charge)

    def _charge(
        self, event: events.DpEvent, neighboring_relation: str, label: str, group_size: int
    ) -> Charge:
        # The first run of the book, here or in another process, may have told it meanwhile.
        self.neighboring_relation = self.neighboring_relation or self.book.neighboring_relation
        self._check_relation(neighboring_relation)
        price = epsilon_of(event, delta=self.delta, neighboring_relation=neighboring_relation)
        return Charge(
            optimizer=label,
            event=event,
            epsilon=price.upper,
            delta=self.delta,
            neighboring_relation=neighboring_relation,
            group_size=group_size,
        )


def budget(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighboring_relation: str | None = None,
    score_share: float = 0.1,
    book: str | os.PathLike[str] | None = None,
) -> Budget:
    """Return a budget, to be used in a ``with`` statement or given to estimators as ``budget``.

    Inside ``with dpcal.budget(epsilon=2.0, delta=1e-6):`` every private run of this process is
    charged before it reads a record, and the first one that the budget does not cover raises
    :class:`dpcal.errors.BudgetExceeded`. Nested budgets are all charged. An argument out of range,
    or another one than an existing book's, raises a ValueError or a TypeError.

    Parameters
    ----------
    epsilon, delta
        A finite number > 0, and one in (0, 1). With an existing book, its own, or None.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``; runs for another one
        are refused. When omitted, that of the book, or of the first run; estimators are for
        ``"replace-special"``.
    score_share
        Share of an estimator's epsilon that its noisy ``score`` costs, in (0, 1].
    book
        Path of a :class:`dpcal.optim.BudgetBook`, made if there is none: charges are rows of this
        file, which other processes and ``dpcal budget`` share. They stay when this process ends.
        Runs that are given the book as their store must stay outside the ``with`` statement, or
        they are charged twice.

    >>> shared = budget(epsilon=2.0, delta=1e-6)
    >>> shared
    <Budget of epsilon=2 at delta=1e-06, 0 spent>
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    if book is not None:
        opened = BudgetBook(
            book, epsilon=epsilon, delta=delta, neighboring_relation=neighboring_relation
        )
        return BookedBudget(opened, score_share=score_share)
    if epsilon is None or delta is None:
        raise ValueError(
            f"epsilon and delta must be numbers, got {epsilon!r} and {delta!r}: only a budget "
            "with a book has them from elsewhere."
        )
    return Budget(
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=neighboring_relation,
        score_share=score_share,
    )
