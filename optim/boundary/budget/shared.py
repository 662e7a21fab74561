"""What may several runs cost together, in one process or in all processes that share a file?

>>> import tempfile
>>> from dpcal.accountants import events
>>> from dpcal.optim.budget import owed
>>> folder = tempfile.TemporaryDirectory()
>>> path = folder.name + "/clinic.budget"
>>> with budget(epsilon=2.0, delta=1e-6, book=path):
...     owed(events.GaussianDpEvent(8.0), "replace-special", label="a scaler")()
>>> with budget(book=path) as later:
...     print(f"{later.spent:.3f}", [(run.label, run.state) for run in later.book.runs])
0.504 [('a scaler', 'charged whole')]
>>> folder.cleanup()
"""

from __future__ import annotations

import os

from dpcal import _validate
from dpcal.optim.boundary.budget.book import BudgetBook
from dpcal.optim.budget import Budget

__all__ = ["budget"]


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
        kept = BudgetBook(
            book, epsilon=epsilon, delta=delta, neighboring_relation=neighboring_relation
        )
        return Budget(book=kept, score_share=score_share)
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
