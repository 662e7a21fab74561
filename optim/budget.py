"""The privacy budget of several runs, which composes their costs or refuses a run.

Every run that opens while a budget is in use is charged to it at its first answer, before a record
is read, wherever in the process it is opened: by an optimizer, or by an estimator inside
cross-validation. A run that is refused before its first answer costs nothing.

>>> from dpcal.accountants import events
>>> with Budget(epsilon=1.0, delta=1e-6) as shared:
...     for run in range(3):
...         shared.pay(events.GaussianDpEvent(6.0), "replace-special")
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: This run would bring what is spent on these records to epsilon = \
1.23902 at delta = 1e-06, the total is 1; no record was touched.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from dpcal import optim
from dpcal._internal import validate
from dpcal._internal.spending import Spender
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim.account import Account, Charge, HasAccount

if TYPE_CHECKING:
    from dpcal.optim.boundary.book import BudgetBook

T = TypeVar("T")

# Innermost last; they belong to the process, as a run in another thread must not be free.
_IN_USE: list[Budget] = []
_LOCK = RLock()

# Distinguishes processes of different machines: in containers, process numbers are often the same.
_MACHINE = secrets.token_hex(8)

# Takes this thread's payments in place of budgets in use, to pay together or to find a cost.
_PAYER: ContextVar[Callable[[Plan | Charge], Callable[[], None] | None] | None] = ContextVar(
    "payer", default=None
)

# In order of making: budgets below ``_ASIDE`` check this thread's runs, and do not charge them.
_NUMBERS = count()
_ASIDE: ContextVar[int] = ContextVar("aside", default=0)

# The budget for which this thread's scores are noisy, though they are paid for elsewhere.
_SCORING: ContextVar[tuple[Budget, ...]] = ContextVar("scoring", default=())


class Budget(HasAccount, Spender):
    """A privacy budget that several runs about the same records are paid from.

    Use the budget in a ``with`` statement, or give it to estimators as ``budget``. Inside ``with
    dpcal.budget(epsilon=2.0, delta=1e-6):`` every private run of this process is charged before it
    reads a record, and the first one that the budget does not cover raises
    :class:`dpcal.errors.BudgetExceeded`. Nested budgets are all charged. All runs together have one
    cost, composed exactly; it is not the sum of their epsilons. The cost holds for runs with
    settings that were fixed beforehand. For Gaussian mechanisms on all records the same cost holds
    if you choose each from released values of earlier ones (Smith and Thakurta 2022). With other
    mechanisms, do not choose an epsilon from released values. An argument out of range, or another
    one than an existing book's, raises a ValueError or a TypeError.

    Parameters
    ----------
    epsilon, delta
        Finite number > 0, and a number in (0, 1). With an existing book, its own, or None.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``; the relation of the
        book or of the first run when omitted, and None before it. Runs for another relation are
        refused; estimators are for ``"replace-special"``.
    score_share
        Share in (0, 1] of an estimator's epsilon: while the budget is in use, ``score`` of an
        estimator of :mod:`dpcal.estimators` is a noisy answer about the records that it is given,
        at this share, and is paid from the budget too.
    book
        A :class:`dpcal.optim.BudgetBook`, or its path, where a book is made if there is none.
        Charges are rows of this file, on the disk before a run reads a record; other processes and
        ``dpcal budget`` share them. The charges stay when this process ends. Runs that are given
        the book as their store must stay outside the ``with`` statement, or they are charged twice.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = folder.name + "/clinic.budget"
    >>> with Budget(epsilon=2.0, delta=1e-6, book=path) as shared:
    ...     shared.pay(events.GaussianDpEvent(8.0), "replace-special", label="a scaler")
    >>> with Budget(book=path) as later:
    ...     print(f"{later.spent:.3f}", [(run.label, run.state) for run in later.book.runs])
    0.504 [('a scaler', 'charged whole')]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighboring_relation: str | None = None,
        score_share: float = 0.1,
        book: str | os.PathLike[str] | BudgetBook | None = None,
    ) -> None:
        relation = validate.relation(neighboring_relation)
        if isinstance(book, str | os.PathLike):
            book = optim.BudgetBook(
                book, epsilon=epsilon, delta=delta, neighboring_relation=relation
            )
        self.score_share = validate.rate(score_share=score_share)
        self.book = book
        self._own = Account(
            epsilon=validate.positive(epsilon=epsilon if book is None else book.epsilon),
            delta=validate.probability(delta=delta if book is None else book.delta),
            neighboring_relation=relation if book is None else book.neighboring_relation,
        )
        self._process = this_process()
        self._checked: tuple[Plan | Charge, Account, Account] | None = None
        self._number = next(_NUMBERS)

    @property
    def account(self) -> Account:
        """The total and all runs that are paid from it, at this moment."""
        return self._own if self.book is None else self.book.account

    @property
    def charges(self) -> list[Plan | Charge]:
        """Everything that was charged, in order."""
        return [run for run, count in self.account.charged for _ in range(count)]

    @property
    def event(self) -> events.DpEvent:
        """Everything that was charged, as one event, for a person of :attr:`group_size` records."""
        return self.account.event

    @property
    def spent(self) -> float:
        """Epsilon of everything that was charged, at the budget's delta, rounded up."""
        return self.account.spent().upper

    def check(self, run: Plan | Charge) -> None:
        """Refuse a run as :func:`owed` does; charge nothing."""
        self._check_process()
        if self.book is not None:
            self.book.check(run)
        elif self._checked is None or self._checked[:2] != (run, self._own):
            self._checked = run, self._own, self._own.admit(run)

    def _check_process(self) -> None:
        if this_process() != self._process:
            raise BudgetExceeded(
                "This budget was opened in another process and cannot be charged here. Use "
                "n_jobs=1, or threads, while a budget is in use."
            )

    def pay(
        self,
        event: events.DpEvent,
        neighboring_relation: str,
        label: str = "run",
        group_size: int = 1,
    ) -> None:
        """Charge a run, by its event, relation, name and unit; a refused run changes nothing."""
        self.charge(
            Charge(
                optimizer=label,
                event=event,
                delta=self._own.delta,
                neighboring_relation=neighboring_relation,
                group_size=group_size,
            )
        )

    def charge(self, run: Plan | Charge) -> None:
        """Charge a run; a refused run changes nothing."""
        if self.book is not None:
            self._check_process()
            if isinstance(run, Charge):
                relation = run.neighboring_relation
                alone = epsilon_of(run.event, delta=run.delta, neighboring_relation=relation)
                run = replace(run, epsilon=alone.upper)
            self.book.charge(run)
            return
        with _LOCK:
            self.check(run)
            assert self._checked is not None
            self._own = self._checked[2]

    def __enter__(self) -> Self:
        with _LOCK:
            _IN_USE.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _LOCK:
            _IN_USE.remove(self)

    def __repr__(self) -> str:
        person = f" by a person of {self.group_size} records" if self.group_size > 1 else ""
        return (
            f"<Budget of epsilon={self.epsilon:g} at delta={self.delta:g}, {self.spent:.4g} spent"
            f"{person}>"
        )


budget = Budget


def this_process() -> str:
    """Return a name of this process that no other process has, on any machine."""
    return f"{_MACHINE}-{os.getpid()}"


def in_use() -> tuple[Budget, ...]:
    """Return the budgets in use, the innermost last."""
    return (*_IN_USE, *_SCORING.get())


class _Once:
    """A payment that is made at the first call, unless it is refused."""

    def __init__(self, pay: Callable[[], None]) -> None:
        self._pay: Callable[[], None] | None = pay

    def __call__(self) -> None:
        with _LOCK:
            if self._pay is not None:
                self._pay()
                self._pay = None


def owed(run: Plan | Charge) -> Callable[[], None] | None:
    """Return the payment that charges every budget in use now, once, or refuse and charge none.

    The payment is called before the first answer of a run that may release no more than a plan or a
    charge states; None is returned where no budget pays. BudgetExceeded is raised if all runs
    together would cost more than the budget, or it is another process's; UnsupportedEvent if the
    relation is not the budget's, or no theorem prices the event.
    """
    payer = _PAYER.get()
    if payer is not None:
        return payer(run)
    if not _IN_USE:
        return None
    # A budget in a file comes first: charges of others may have exhausted it meanwhile.
    budgets = sorted(dict.fromkeys(_IN_USE), key=lambda each: each.book is None)
    paying = [each for each in budgets if each._number >= _ASIDE.get()]

    def pay() -> None:
        for each in budgets if len(budgets) > 1 else ():
            each.check(run)
        for each in paying:
            each.charge(run)

    with _LOCK:
        for each in budgets:
            each.check(run)
    return _Once(pay)


@contextmanager
def _within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable another value inside."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


@contextmanager
def prepaid(run: Plan | Charge, *, at_once: bool = False) -> Iterator[None]:
    """Charge several runs together, as :func:`owed` does, at the first answer of one of them.

    ``at_once`` charges them now, for runs in other threads and processes, which do not know it.
    """
    pay = owed(run)
    if at_once and pay is not None:
        pay()
    with _within(_PAYER, lambda _: pay):
        yield


@contextmanager
def _collected() -> Iterator[list[events.DpEvent]]:
    """Collect the events of the runs that this thread opens inside, and charge none of them.

    Use it for the trials of a search, which are paid for together, and for runs on zeroed-out
    records, which release no answer.
    """
    found: list[events.DpEvent] = []

    def note(run: Plan | Charge) -> None:
        if run.group_size > 1:
            raise UnsupportedEvent(
                "Runs that are paid for together are about single records, got one about persons "
                f"of {run.group_size} records."
            )
        found.append(run.event)

    with _within(_PAYER, note):
        yield found


def _aside() -> AbstractContextManager[None]:
    """Charge nothing to the budgets that there are now: for runs inside that are not released."""
    return _within(_ASIDE, next(_NUMBERS))


def scoring(score_share: float) -> AbstractContextManager[None]:
    """Make estimators of this thread score with noise, at a share of their epsilon, uncharged."""
    return _within(_SCORING, (Budget(epsilon=1.0, delta=0.5, score_share=score_share),))
