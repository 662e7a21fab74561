"""How much may several private runs cost together? A budget that composes or refuses them.

Every run that opens while a budget is in use is charged to it before a record is read, wherever in
the process it is opened: by an optimizer, or by an estimator inside cross-validation.

>>> from dpcal.accountants import events
>>> with Budget(epsilon=1.0, delta=1e-6) as shared:
...     charge(events.GaussianDpEvent(6.0), "replace-special")
...     charge(events.GaussianDpEvent(6.0), "replace-special")
...     charge(events.GaussianDpEvent(6.0), "replace-special")
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: This would bring the budget to epsilon=1.239 at delta=1e-06, \
and epsilon=1 is all there is; epsilon=0.9954 is spent, and nothing more was.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from types import TracebackType
from typing import Any, Self

from dpcal import _validate
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.accountants.directions import RELATIONS
from dpcal.calibrate.groups import for_group
from dpcal.errors import BudgetExceeded, UnsupportedEvent

__all__ = ["Budget", "charge", "collected", "in_use", "prepaid", "scoring", "this_process"]

# Budgets in use, the innermost last. They belong to the process and not to a thread: a run in
# another thread would otherwise cost nothing.
_IN_USE: list[Budget] = []
_LOCK = RLock()

# Tells processes of different machines apart: in containers, their numbers are often the same.
_MACHINE = secrets.token_hex(8)

# Whether the runs that this thread opens were paid for together beforehand.
_PREPAID: ContextVar[bool] = ContextVar("prepaid", default=False)

# Where this thread's runs are noted instead of being charged, while their price is computed.
_COLLECTED: ContextVar[list[events.DpEvent] | None] = ContextVar("collected", default=None)

# The budget that this thread's scores are noisy for, though they are paid for elsewhere.
_SCORING: ContextVar[tuple[Budget, ...]] = ContextVar("scoring", default=())


class Budget:
    """A privacy budget that several runs about the same records are paid from.

    It is used in a ``with`` statement, or given to estimators as ``budget``. The price is that of
    all runs together, composed exactly, and not the sum of their epsilons. Runs are priced as if
    their settings had been fixed beforehand. For Gaussian mechanisms on all records the same price
    holds if each is chosen from released values of earlier ones (Smith and Thakurta 2022); with
    other mechanisms, do not choose an epsilon from released values.

    Parameters
    ----------
    epsilon, delta
        A finite number > 0, and a number in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``; that of the first run
        when omitted, and None before it. Runs for another one are refused.
    score_share
        In (0, 1]: while the budget is in use, ``score`` of an estimator of
        :mod:`dpcal.estimators` is a noisy answer about the records that it is given, with this
        share of the estimator's epsilon, and is paid from the budget too.
    """

    # Whether charges are kept in a file, which others may write meanwhile.
    shared = False

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        neighboring_relation: str | None = None,
        score_share: float = 0.1,
    ) -> None:
        neighboring_relation = _validate.relation(neighboring_relation)
        self.epsilon = _validate.positive(epsilon=epsilon)
        self.delta = _validate.probability(delta=delta)
        if neighboring_relation is not None:
            _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
        self.neighboring_relation = neighboring_relation
        self.score_share = _validate.rate(score_share=score_share)
        self._charged: list[tuple[events.DpEvent, int]] = []
        self._process = this_process()

    @property
    def event(self) -> events.DpEvent:
        """Everything that was charged, as one event, for a person of :attr:`group_size` records."""
        return _together(self._charged)

    @property
    def group_size(self) -> int:
        """Largest number of records of a person whom a run is about: all runs are priced for it.

        A run about single records limits nobody's number of records. Beside runs about persons it
        is priced for persons who have at most so many.
        """
        return max((size for _, size in self._charged), default=1)

    @property
    def spent(self) -> float:
        """Epsilon of everything that was charged, at the budget's delta, rounded up."""
        return self._price(self._charged, self.neighboring_relation)

    def _price(self, charged: list[tuple[events.DpEvent, int]], relation: str | None) -> float:
        if not charged or relation is None:
            return 0.0
        return epsilon_of(_together(charged), delta=self.delta, neighboring_relation=relation).upper

    def check(
        self,
        event: events.DpEvent,
        neighboring_relation: str,
        label: str = "run",
        group_size: int = 1,
    ) -> None:
        """Refuse a run that the budget does not allow, as :func:`charge` does; charge nothing."""
        self._check_relation(neighboring_relation)
        price = self._price([*self._charged, (event, group_size)], neighboring_relation)
        if price > self.epsilon:
            raise BudgetExceeded(
                f"This would bring the budget to epsilon={price:.4g} at delta={self.delta:g}, and "
                f"epsilon={self.epsilon:g} is all there is; epsilon={self.spent:.4g} is spent, and "
                "nothing more was."
            )

    def _check_relation(self, neighboring_relation: str) -> None:
        if this_process() != self._process:
            raise BudgetExceeded(
                "This budget was opened in another process and cannot be charged here. Use "
                "n_jobs=1, or threads, while a budget is in use."
            )
        if self.neighboring_relation not in (None, neighboring_relation):
            raise UnsupportedEvent(
                f"The budget is for neighboring relation {self.neighboring_relation!r}, and the "
                f"run is for {neighboring_relation!r}. Estimators are for 'replace-special', and "
                "plans are calibrated for the one that neighboring_relation= names."
            )

    def pay(
        self,
        event: events.DpEvent,
        neighboring_relation: str,
        label: str = "run",
        group_size: int = 1,
    ) -> None:
        """Charge a run, by its event, relation, name and unit; a refused run changes nothing."""
        with _LOCK:
            self.check(event, neighboring_relation, label, group_size)
            self.neighboring_relation = neighboring_relation
            self._charged.append((event, group_size))

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

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        # A copy could be spent again. Cloned estimators share their budget.
        return self

    def __getstate__(self) -> dict[str, Any]:
        # In another process the budget cannot be charged, because the process number differs.
        return dict(self.__dict__)

    def __repr__(self) -> str:
        person = f" by a person of {self.group_size} records" if self.group_size > 1 else ""
        return (
            f"<Budget of epsilon={self.epsilon:g} at delta={self.delta:g}, {self.spent:.4g} spent"
            f"{person}>"
        )


def _together(charged: list[tuple[events.DpEvent, int]]) -> events.DpEvent:
    """Return all charges as one event, for the largest person whom one of them is about."""
    most = max((size for _, size in charged), default=1)
    return events.ComposedDpEvent([for_group(event, -(-most // size)) for event, size in charged])


def this_process() -> str:
    """Return a name of this process that no other process has, on any machine."""
    return f"{_MACHINE}-{os.getpid()}"


def in_use() -> tuple[Budget, ...]:
    """Return the budgets in use, the innermost last."""
    return (*_IN_USE, *_SCORING.get())


def charge(
    event: events.DpEvent,
    neighboring_relation: str,
    also: Budget | None = None,
    *,
    label: str = "run",
    group_size: int = 1,
) -> None:
    """Charge every budget in use, or refuse and charge none; nothing happens without a budget.

    BudgetExceeded is raised if all runs together would cost more than the budget, or it is another
    process's; UnsupportedEvent if the relation is not the budget's, or no theorem prices the event.

    Parameters
    ----------
    event, neighboring_relation
        All that a run may release, and the relation of its plan.
    also
        A further budget, which is charged once even if it is in use.
    label
        Name of the run where charges are written down.
    group_size
        Largest number of records of a person whom the run is about.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    collecting = _COLLECTED.get()
    if collecting is not None:
        if group_size > 1:
            raise UnsupportedEvent(
                "Runs that are paid for together are about single records, got one about persons "
                f"of {group_size} records."
            )
        collecting.append(event)
        return
    if _PREPAID.get():
        return
    with _LOCK:
        budgets = list({id(each): each for each in [*_IN_USE, *([also] if also else [])]}.values())
        for each in budgets if len(budgets) > 1 else ():
            # The only one checks before it pays.
            each.check(event, neighboring_relation, label, group_size)
        # A budget in a file comes first: charges of others may have exhausted it meanwhile.
        for each in sorted(budgets, key=lambda each: not each.shared):
            each.pay(event, neighboring_relation, label, group_size)


@contextmanager
def prepaid(
    event: events.DpEvent,
    neighboring_relation: str,
    also: Budget | None = None,
    *,
    label: str = "run",
    group_size: int = 1,
) -> Iterator[None]:
    """Charge several runs together, as :func:`charge` does; runs inside cost nothing more."""
    charge(event, neighboring_relation, also, label=label, group_size=group_size)
    before, noted = _PREPAID.set(True), _COLLECTED.set(None)
    try:
        yield
    finally:
        _PREPAID.reset(before)
        _COLLECTED.reset(noted)


@contextmanager
def collected() -> Iterator[list[events.DpEvent]]:
    """Collect the events of the runs that this thread opens inside, and charge none of them.

    It is for runs that are paid for together, and for runs on blank records, whose answers are not
    used.
    """
    found: list[events.DpEvent] = []
    before = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(before)


@contextmanager
def scoring(score_share: float) -> Iterator[None]:
    """Make estimators of this thread score with noise, at a share of their epsilon, uncharged."""
    before = _SCORING.set((Budget(epsilon=1.0, delta=0.5, score_share=score_share),))
    try:
        yield
    finally:
        _SCORING.reset(before)
