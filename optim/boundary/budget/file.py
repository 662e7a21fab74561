"""What does a budget book hold at one moment, how is it changed, and does another run fit?

A decision that is made from the rows is written with the version of the rows: if another process
wrote in between, nothing is written, and the decision is made again.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> file = BookFile(folder.name + "/clinic.budget")
>>> file.begin({"key": "0" * 64, "made": "now", "neighboring_relation": "", "composition": "exact"},
...            ("now", 2.0, 1e-6))
>>> now = file.snapshot()
>>> now.facts["composition"], now.last
('exact', 0)
>>> file.write(now.version, ("INSERT INTO records VALUES (?, ?, ?)", ("tag", "name", "now")))
True
>>> file.write(-1, ("DELETE FROM records", ()))
False
>>> folder.cleanup()

An :class:`Account` is what the runs in it have spent, a pure function of its rows:

>>> from dpcal.calibrate import Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=4.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=9, queries=(query,), epsilon=2.0, delta=1e-6)
>>> account = Account(epsilon=2.0, delta=1e-6, neighboring_relation="add-or-remove-one",
...                   composition="exact", charged=((plan.event, 1),))
>>> print(f"{account.spent():.4f} {account.spent_whatever_was_chosen():.4f} {account.left():.4f}")
1.0607 1.5406 1.6322
>>> account.admit(plan)
>>> from dataclasses import replace
>>> replace(account, charged=((plan.event, 3),)).admit(plan)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: This run would bring what is spent on these records to epsilon = 2.2...
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.accountants import Epsilon, epsilon, events
from dpcal.accountants.adaptive.filters import KINDS, Odometer, PrivacyFilter, renyi_order
from dpcal.accountants.directions import RELATIONS
from dpcal.calibrate.noise import noise_left
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim.boundary.kept import KeptFile, Statement, facts_of
from dpcal.optim.budget import Charge, charge_of

__all__ = [
    "COMPOSITIONS",
    "Account",
    "BookFile",
    "Records",
    "Snapshot",
    "account_of",
    "admitted",
    "bytes_of",
    "name_of",
    "plan_of",
    "relation_of",
]

COMPOSITIONS = ("exact", *KINDS)

# Noise multiplier beyond which the price of an answer is negligible: its epsilon is below 1e-5 at
# any delta that is in use.
_NO_ROOM = 1e6
# Relative: by so much more noise, a cost fits for all rounding of sums.
_ROUNDING = 1e-9

Records = str | os.PathLike[str] | ArrayLike

# Facts about a book, beside its format and the version of its rows.
_FACTS = ("key", "made", "neighboring_relation", "composition")
# Columns of numbers, of texts, and of texts that a run has at its end.
_TOTAL, _RUN, _END = ("epsilon", "delta"), ("label", "started", "plan"), ("ended", "ledger")

Row = dict[str, Any]


class Snapshot(NamedTuple):
    """Content of a book at one moment.

    Every change of the book increases ``version``. The other fields are the ``facts`` about the
    book, by name, the rows of the tables ``totals`` and ``records``, the number of the ``last``
    run, the rows of the ``runs`` that were asked for, and the plans that are ``charged``, in their
    order of writing; the first of them alone if they were not asked for.
    """

    version: int
    facts: dict[str, str]
    totals: list[Row]
    records: list[Row]
    last: int
    runs: list[Row]
    charged: list[str]


class BookFile(KeptFile):
    """The file of a budget book at a path, opened by each method."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "budget book")

    def begin(self, facts: Mapping[str, str], total: tuple[str, float, float]) -> None:
        """Make a book with these facts and its first total, unless there is one."""
        told = {"version": "0", **facts}.items()
        rows = [("INSERT INTO about VALUES (?, ?)", row) for row in told]
        self.make(*rows, ("INSERT INTO totals VALUES (1, ?, ?, ?)", total))

    def snapshot(self, which: str = "FALSE", *values: Any, charged: bool = False) -> Snapshot:
        """Return the content of the book at one moment; ValueError if it is not a budget book.

        Parameters
        ----------
        which, values
            An SQL condition on runs, and its values: rows of these runs are returned.
        charged
            Whether the plans that are charged are returned.
        """
        with self.opened() as file:
            file.execute("BEGIN")
            facts = facts_of(file)
            totals, records = (
                [dict(row) for row in file.execute(f"SELECT * FROM {table} ORDER BY rowid")]
                for table in ("totals", "records")
            )
            asked = file.execute(f"SELECT * FROM runs WHERE {which} ORDER BY number", values)
            runs = [dict(row) for row in asked]
            # Runs have the numbers from 1 on, also where a row was lost.
            (last,) = file.execute("SELECT ifnull(max(number), 0) FROM runs").fetchone()
            costs = "SELECT plan FROM runs WHERE NOT free ORDER BY number LIMIT ?"
            plans = [plan for (plan,) in file.execute(costs, [-1 if charged else 1])]
        self._check(facts, totals, runs)
        return Snapshot(int(facts["version"]), facts, totals, records, last, runs, plans)

    def decide(
        self,
        decide: Callable[[Snapshot], list[Statement]],
        which: str = "FALSE",
        *values: Any,
        charged: bool = False,
    ) -> None:
        """Write what ``decide`` makes of the book's content, anew if it has changed meanwhile.

        The other arguments are those of :meth:`snapshot`.
        """
        while True:
            now = self.snapshot(which, *values, charged=charged)
            statements = decide(now)
            if not statements or self.write(now.version, *statements):
                return

    def _check(self, facts: Mapping[str, str], totals: list[Row], runs: list[Row]) -> None:
        """Refuse a book whose facts, totals or runs are not those that a book writes."""
        for name in _FACTS:
            if name not in facts:
                raise self.damaged(f"it has no {name}")
        if not (
            str(facts.get("version")).isdecimal()
            and re.fullmatch(r"[0-9a-f]{64}", facts["key"])
            and facts["neighboring_relation"] in ("", *RELATIONS)
            and facts["composition"] in COMPOSITIONS
            and totals
            and all(isinstance(row.get(name), float) for row in totals for name in _TOTAL)
            and all(0 < row["epsilon"] < math.inf and 0 < row["delta"] < 1 for row in totals)
            and all(isinstance(row.get(name), str) for row in runs for name in _RUN)
            and all(isinstance(row.get(name), str | None) for row in runs for name in _END)
        ):
            raise self.damaged("a row of it is not what a book writes")

    def write(self, version: int, *statements: Statement) -> bool:
        """Write statements in one transaction, and return True, if the book's version is this one.

        They are then on the disk. If they cannot be written nothing is.
        """
        with self.opened() as file, self.writing(file):
            (now,) = file.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
            if int(now) != version:
                return False
            for statement, values in statements:
                file.execute(statement, values)
            file.execute("UPDATE about SET value = ? WHERE name = 'version'", (str(version + 1),))
        return True


@dataclass(frozen=True, kw_only=True)
class Account:
    """A total, and the plans and other charges that are paid from it.

    Parameters
    ----------
    epsilon, delta
        The total: epsilon > 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    composition
        One of ``COMPOSITIONS``.
    charged
        The event of each plan or other charge, and the number of its runs, in order.
    order
        Of a Renyi filter: fixed by the first run, None before it.
    group_size
        Largest number of records of a person whom a run is about: events are those for such a
        person.
    """

    epsilon: float
    delta: float
    neighboring_relation: str
    composition: str
    charged: tuple[tuple[events.DpEvent, int], ...] = ()
    order: float | None = None
    group_size: int = 1

    def spent(self, delta: float | None = None) -> Epsilon:
        """Return the epsilon of all charged plans, composed exactly; at the total's delta."""
        return self._price(self._runs(), self.delta if delta is None else delta)

    def spent_whatever_was_chosen(self) -> float:
        """Return an epsilon that holds however plans were chosen: that of an odometer.

        UnsupportedEvent is raised if a plan has no Renyi divergence here.
        """
        odometer = Odometer(delta=self.delta, neighboring_relation=self.neighboring_relation)
        for event, count in self.charged:
            odometer.spend(event, count)
        return odometer.epsilon

    def left(self) -> float:
        """Return the epsilon of one more Gaussian answer that would fit, rounded down; or 0."""
        noise = self._noise_left()
        if math.isinf(noise):
            return 0.0
        relation = self.neighboring_relation
        event = events.GaussianDpEvent(noise)
        return epsilon(event, delta=self.delta, neighboring_relation=relation).lower

    def admit(self, plan: Plan | Charge) -> None:
        """Refuse a plan that would overrun the total (BudgetExceeded).

        UnsupportedEvent is raised if the filter's theorem does not cover the plan.
        """
        event = plan.event_for(self.group_size)
        if self.composition == "exact":
            price = self._price([*self._runs(), event], self.delta)
            if price.upper > self.epsilon:
                raise BudgetExceeded(
                    "This run would bring what is spent on these records to epsilon = "
                    f"{price.upper:.6g} at delta = {self.delta:g}, the total is "
                    f"{self.epsilon:g}; no record was touched."
                )
            return
        budget = self._filter(plan)
        if budget.would_exceed(event):
            raise BudgetExceeded(
                f"This run costs {budget.cost(event):.6g}, and {budget.remaining:.6g} of "
                f"{budget.budget:.6g} is left ({budget.unit}); no record was touched."
            )

    def order_for(self, plan: Plan | Charge) -> float | None:
        """Return the order of a Renyi filter: the first run's, which chooses it by its plan."""
        if self.composition != "renyi" or self.order is not None:
            return self.order
        return renyi_order(
            plan.event_for(self.group_size),
            epsilon=self.epsilon,
            delta=self.delta,
            neighboring_relation=self.neighboring_relation,
        )

    def _filter(self, plan: Plan | Charge | None) -> PrivacyFilter:
        """Return the filter with all charged plans paid."""
        budget = PrivacyFilter(
            epsilon=self.epsilon,
            delta=self.delta,
            kind=self.composition,
            neighboring_relation=self.neighboring_relation,
            order=self.order if plan is None else self.order_for(plan),
        )
        for event, count in self.charged:
            budget.spend(event, count)
        return budget

    def _runs(self) -> list[events.DpEvent]:
        """Return the events of all runs, equal ones together."""
        return [events.SelfComposedDpEvent(*each) for each in self.charged]

    def _price(self, runs: list[events.DpEvent], delta: float) -> Epsilon:
        relation = self.neighboring_relation
        return epsilon(events.ComposedDpEvent(runs), delta=delta, neighboring_relation=relation)

    def _noise_left(self) -> float:
        """Noise multiplier of one more Gaussian answer that fits, infinite if none does."""
        if self.composition == "exact":
            return noise_left(
                self._runs(),
                epsilon=self.epsilon,
                delta=self.delta,
                neighboring_relation=self.neighboring_relation,
            )
        budget = self._filter(None)
        if not budget.remaining > 0:
            return math.inf
        # A cost is inversely proportional to the square of the noise.
        cost = budget.cost(events.GaussianDpEvent(1.0))
        noise = math.sqrt(cost / budget.remaining) * (1 + _ROUNDING)
        fits = noise <= _NO_ROOM and not budget.would_exceed(events.GaussianDpEvent(noise))
        return noise if fits else math.inf


# Every admission composes all plans, so each is read from its JSON only once in a process.
plan_of = lru_cache(maxsize=2**14)(charge_of)


@lru_cache(maxsize=2**14)
def _event_of(text: str, group_size: int) -> events.DpEvent:
    """Return the event, for a person, of a plan or a charge in JSON."""
    return plan_of(text).event_for(group_size)


def relation_of(now: Snapshot) -> str | None:
    """Return the relation of a book: its own, or that of the first run that is charged, or None."""
    own = now.facts["neighboring_relation"]
    return own or (plan_of(now.charged[0]).neighboring_relation if now.charged else None)


def account_of(now: Snapshot, group_size: int = 1, relation: str = RELATIONS[0]) -> Account:
    """Return the account of all runs, for the largest person whom one of them is about.

    Its relation is the book's, or ``relation`` before the first run.
    """
    total, order = now.totals[-1], now.facts.get("order")
    together = Counter(now.charged)
    group_size = max(group_size, *(plan_of(plan).group_size for plan in together), 1)
    # Equal plans are composed together. A filter adds them up in the order of the runs.
    exact = now.facts["composition"] == "exact"
    counts = together.items() if exact else [(plan, 1) for plan in now.charged]
    return Account(
        epsilon=total["epsilon"],
        delta=total["delta"],
        neighboring_relation=relation_of(now) or relation,
        composition=now.facts["composition"],
        charged=tuple((_event_of(plan, group_size), count) for plan, count in counts),
        order=None if order is None else float(order),
        group_size=group_size,
    )


def admitted(plan: Plan | Charge, now: Snapshot, book: str) -> Account:
    """Refuse a plan that does not fit; return the account that it would be charged to."""
    own = validate.instance(Plan, Charge, plan=plan).neighboring_relation
    relation = relation_of(now) or own
    if own != relation:
        raise ValueError(
            f"plan must be for the relation of {book}, {relation!r}, got one "
            f"for {own!r}: make it with neighboring_relation={relation!r} (in commands, "
            f"--neighboring-relation {relation}), or use another book for runs of this relation."
        )
    account = account_of(now, plan.group_size, relation)
    if account.composition != "exact" and now.charged:
        before = account_of(now).group_size
        if account.group_size > before:
            raise UnsupportedEvent(
                f"The filter of {book} has been about {unit_of(before)} since "
                f"its first run, and this run is about {unit_of(plan.group_size)}: use another "
                "book."
            )
    account.admit(plan)
    return account


def name_of(records: Records) -> str:
    """Return the name of a file, or a word for arrays."""
    return Path(records).name if isinstance(records, str | os.PathLike) else "arrays"


def bytes_of(records: Records) -> bytes:
    """Return a digest of a file's content, or of an array's shape, type and numbers."""
    if isinstance(records, str | os.PathLike):
        with open(records, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    array = np.ascontiguousarray(records)
    if array.dtype.hasobject:
        raise TypeError(f"records must be a path or an array of numbers, got {type(records)}.")
    head = json.dumps({"shape": array.shape, "dtype": array.dtype.str}).encode()
    return hashlib.sha256(head + b"\0" + array.tobytes()).digest()
