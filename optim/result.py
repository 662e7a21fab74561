"""The result of a private run: parameters, a trace without leaks, the ledger, the plan.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=10.0, count=2)
>>> plan = Plan(optimizer="dpsgd", n=3, queries=(query,), epsilon=1.0, delta=1e-6)
>>> ledger = Ledger(n=3)
>>> ledger.record(query)
>>> trace = Trace(step=np.array([1]), norm=np.array([0.5]), distance=np.array([0.5]))
>>> result = Result(w=np.array([0.3, 0.4]), trace=trace, ledger=ledger, plan=plan, complete=True,
...                 message="took all 2 planned steps")
>>> result.epsilon(1e-6)
Traceback (most recent call last):
    ...
dpcal.errors.LedgerMismatch: query 'gradient' was planned 2 times and answered 1 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate.plan import Plan, Priced, screen, told
from dpcal.optim.boundary.ledger import Ledger, check_ledger

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """Rows on how a run went, shape (r,) each: functions of released iterates only.

    Parameters
    ----------
    step
        Steps taken, increasing.
    norm, distance
        L2 norm of the iterate, and its L2 distance from the iterate of the row before; in the first
        row, from the start.
    """

    step: NDArray[np.int64]
    norm: NDArray[np.float64]
    distance: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, float, float]] = ()) -> Self:
        """Return a trace of rows: step, norm and distance of each."""
        step, norm, distance = np.array(rows).reshape(-1, 3).T.copy()
        return cls(step=step.astype(np.int64), norm=norm, distance=distance)


def _size_of(value: Any) -> Any:
    """Return the size of an array or a tuple of records; any other value as it is."""
    if isinstance(value, np.ndarray):
        return f"of shape {value.shape}"
    many = isinstance(value, tuple) and value and not isinstance(value[0], str | int)
    return f"of length {len(value)}" if many else value


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Priced):
    """Outcome of a private run.

    Parameters
    ----------
    w
        The private parameters, shape (dimension,): the iterate or the mean that was chosen.
    trace, ledger, plan
        Numbers on the run, free of private information; all releases; and the plan.
    complete, message
        Whether the run ended as planned, and a sentence on how it ended.
    status
        The end of the run in a word. ``"finished"``: it took all its planned steps; ``"ended"``: by
        its own rule before that; ``"stopped"``: by the callback, or because iterates or answers
        were not finite. Optimizers that test their point have more words:
        :class:`dpcal.optim.second_order.gauss_psgd.SecondOrderResult`.
    early
        Whether released values decided when the run ended, as with a stopping rule. Such a run
        costs all that was planned, because its end is one of its outputs.
    seed_given
        Whether a seed was given. With a seed you can reproduce the run. It is then private only
        against attackers who neither know nor guess the seed.
    noise
        ``"discrete"`` for every oracle of this package, or ``"gaussian"`` for another oracle that
        does not state its noise: the claim does not hold against traces of floating point.
    read_from_data
        Names of the properties that were read off the records, as ``("classes",)``: no claim covers
        them.
    """

    w: NDArray[np.float64]
    trace: Trace = field(default_factory=Trace.of)
    ledger: Ledger
    plan: Plan
    complete: bool
    message: str
    status: str = "finished"
    early: bool = False
    seed_given: bool = False
    noise: str = "gaussian"
    read_from_data: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Freeze the ledgers: an oracle that goes on answering must not change a result."""
        frozen: dict[str, Any] = {"ledger": self.ledger.frozen()}
        if hasattr(self, "ledgers"):
            frozen["ledgers"] = tuple(each.frozen() for each in self.ledgers)
        for name, value in frozen.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        """Return the outcome of the run, at most 24 lines of at most 100 characters."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        own = {
            name: _size_of(value)
            for name, value in values.items()
            if name not in ("trace", "ledger", "plan", "message", "ledgers", "plans")
        }
        ledgers = [f"ledger {self.ledger!r}"]
        if silos := values.get("plans"):
            sizes = sorted({plan.n for plan in silos})
            about = " to ".join(map(str, dict.fromkeys([sizes[0], sizes[-1]])))
            ledgers = [f"{len(silos)} silos of {about} records, a ledger each"]
        head = f"{self.plan.optimizer}: {self.message}"
        return screen(head, [told(own), *ledgers], most=8) + f"\n{self.plan}"

    @property
    def by_silo(self) -> tuple[tuple[Result, ...], ...]:
        """The runs that are charged to each silo's records: only this run, of the only silo."""
        return ((self,),)

    def verify(self) -> None:
        """Refuse, by LedgerMismatch, a ledger that is not the plan's.

        The ledger must be equal to the plan if the run is complete, and within it otherwise.
        """
        check_ledger(self.ledger, self.plan, exact=self.complete and not self.early)

    def under(self, neighboring_relation: str | None = None) -> tuple[DpEvent, str]:
        """Return the event of the run, composed for a relation, and the relation.

        It is the ledger's, or the whole plan's if the run ended ``early``. A ledger that is not the
        plan's raises LedgerMismatch.
        """
        return self._priced.under(neighboring_relation)

    @property
    def group_size(self) -> int:
        """Largest number of records of a person whom the claim is about; 1 for single records."""
        return self.plan.group_size

    @property
    def accountant(self) -> str:
        """The accountant of the claim, the plan's."""
        return self.plan.accountant

    def event_for(self, group_size: int) -> DpEvent:
        """See :meth:`dpcal.calibrate.plan.Priced.event_for`."""
        return self._priced.event_for(group_size)

    @property
    def _priced(self) -> Plan | Ledger:
        self.verify()
        return self.plan if self.early else self.ledger
