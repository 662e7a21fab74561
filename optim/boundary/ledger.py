"""The ledger of every noisy answer, from which epsilon is recomputed.

>>> from dpcal.calibrate import Query
>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.01,
...               max_norm=1.0, noise_multiplier=1.0, count=10_000)
>>> ledger = Ledger(n=50_000)
>>> ledger.record(query, 4_000)
>>> ledger.record(query, 6_000)
>>> len(ledger.entries), ledger.count("gradient")
(1, 10000)
>>> print(f"{ledger.epsilon(1e-6):.4f}")
6.9074
>>> Ledger.from_json(ledger.to_json()) == ledger
True
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from threading import Lock, RLock
from typing import TYPE_CHECKING, Self, cast

from dpcal._internal import validate
from dpcal._internal.files import fields_of, read_as
from dpcal._internal.spending import Spender
from dpcal.accountants.events import DpEvent
from dpcal.accountants.interface import ACCOUNTANTS
from dpcal.calibrate.plan import RELATIONS, Plan, Priced, Query, compose
from dpcal.errors import BudgetExceeded, LedgerMismatch, NoiseReused

if TYPE_CHECKING:
    from dpcal.optim.boundary.batches import Batches

ONE_OF_A_SILO = "one record of one silo, all other records fixed"

_LOCK = RLock()


class Ledger(Priced):
    """Append-only record of noisy answers, in the order in which they were released.

    An entry is the :class:`~dpcal.calibrate.Query` that was answered; its ``count`` is the number
    of answers in a row. A ledger :meth:`of` a plan refuses answers that the plan does not allow.

    Parameters
    ----------
    n
        Number of records that the answers are about, at least 1.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    entries
        Earlier answers.
    accountant
        Accountant that computes the cost of the answers, the plan's own.
    """

    def __init__(
        self,
        n: int,
        neighboring_relation: str = "add-or-remove-one",
        *,
        entries: Iterable[Query] = (),
        accountant: str = "auto",
    ) -> None:
        neighboring_relation = validate.relation(neighboring_relation)
        self._n = validate.count(n=n)
        self._relation = validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
        self._accountant = validate.choice(ACCOUNTANTS, accountant=accountant)
        self._rows: list[tuple[Query, int]] = []
        self._counts: dict[str, int] = {}
        self._shares: dict[float, int] = {}
        self._allowed: dict[str, Query] | None = None
        self._frozen = False
        for entry in entries:
            self.record(entry, entry.count)

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return an empty ledger that refuses answers that a plan does not allow."""
        validate.instance(Plan, plan=plan)
        made = cls(plan.n, plan.neighboring_relation, accountant=plan.accountant)
        made._allowed = {query.name: query for query in plan.queries}
        return made

    def within(self, plan: Plan) -> Self:
        """Return this ledger, which then refuses answers that a plan does not allow.

        If this ledger is frozen, a copy is returned. LedgerMismatch is raised if its entries are
        not within the plan.
        """
        check_ledger(self, validate.instance(Plan, plan=plan), exact=False)
        own: Self | Ledger = self._copy() if self._frozen else self
        own._accountant = plan.accountant
        own._allowed = {query.name: query for query in plan.queries}
        return cast("Self", own)

    def frozen(self) -> Ledger:
        """Return a copy that takes no more answers, as results have it."""
        if self._frozen:
            return self
        made = self._copy()
        made._frozen = True
        return made

    def end(self) -> None:
        """Take no more answers."""
        self._frozen = True

    def _copy(self) -> Ledger:
        made = Ledger(self._n, self._relation, accountant=self._accountant)
        with _LOCK:
            made._rows, made._counts = list(self._rows), dict(self._counts)
            made._shares = dict(self._shares)
        return made

    @property
    def n(self) -> int:
        """Number of records that the answers are about."""
        return self._n

    @property
    def neighboring_relation(self) -> str:
        """Neighbouring relation of data sets."""
        return self._relation

    @property
    def accountant(self) -> str:
        """The accountant that computes the cost of the answers."""
        return self._accountant

    @property
    def entries(self) -> tuple[Query, ...]:
        """The answers so far; a query's ``count`` is the number of answers to it in a row."""
        return tuple(_counted(query, count) for query, count in self._rows)

    @property
    def answers(self) -> int:
        """Number of answers."""
        return sum(self._counts.values())

    @property
    def group_size(self) -> int:
        """Largest number of records of a person whom the answers are about."""
        return max((query.group_size for query, _ in self._rows), default=1)

    def event_for(self, group_size: int) -> DpEvent:
        """See :meth:`dpcal.calibrate.plan.Priced.event_for`."""
        return self._composed(self._relation, validate.count(group_size=group_size))

    def record(self, query: Query, count: int = 1) -> None:
        """Append ``count`` >= 1 answers; BudgetExceeded if the plan does not allow them.

        LedgerMismatch is raised by the ledger of a run that has ended. Counts are written before
        rows: an interrupt in between may refuse an answer, and never allows one more.
        """
        if count != 1:
            count = validate.count(count=count)
        with _LOCK:
            self.check(query, count)
            follows = bool(self._rows) and _alike(self._rows[-1][0], query)
            many, stream = count + (self._rows[-1][1] if follows else 0), query.correlation
            if follows and stream is not None and many > stream.strategy.steps:
                raise ValueError(
                    f"count must be at most the strategy's steps={stream.strategy.steps}, got "
                    f"{many}."
                )
            self._counts[query.name] = self._counts.get(query.name, 0) + count
            if query.budget is not None:
                share = count * _scaled(query.share_of_one)
                self._shares[query.budget] = self._shares.get(query.budget, 0) + share
            if follows:
                self._rows[-1] = (self._rows[-1][0], many)
            else:
                self._rows.append((query, count))

    def allows(self, query: Query, count: int = 1) -> bool:
        """Return whether answers to an adaptive query fit into the rest of its budget."""
        count = validate.count(count=count)
        spent = self._shares.get(query.budget or 0.0, 0)
        return spent + count * _scaled(query.share_of_one) <= _WHOLE

    def check(self, query: Query, count: int = 1) -> None:
        """Raise the errors of :meth:`record`; nothing is written."""
        if self._frozen:
            raise LedgerMismatch("the ledger of a run that has ended takes no more answers.")
        count = validate.count(count=count)
        if self._allowed is None:
            return
        planned = self._allowed.get(query.name)
        if planned is None or not _planned_alike(planned, query):
            raise BudgetExceeded(f"the plan holds no such query as is to be answered: {query}.")
        spent = self._counts.get(query.name, 0)
        if spent + count > planned.count:
            raise BudgetExceeded(
                f"query {query.name!r} may be asked {planned.count} times, {spent} are spent, "
                f"{count} more asked for."
            )
        if query.budget is not None and not self.allows(query, count):
            share, more = float(self.share(query.budget)), count * query.share_of_one
            raise BudgetExceeded(
                f"query {query.name!r} with noise multiplier {query.noise_multiplier!r} would "
                f"spend {more:.6g} of the adaptive budget, {share:.6g} of it is spent."
            )

    def count(self, name: str) -> int:
        """Return the number of answers to the query called ``name``."""
        return self._counts.get(name, 0)

    def share(self, budget: float) -> Fraction:
        """Return the share of an adaptive budget that was spent, rounded up; at most 1 if kept.

        Do not convert the share to an epsilon: the amount that a run spends adaptively is one of
        its outputs. A run costs the whole budget, whatever its share.
        """
        return Fraction(self._shares.get(budget, 0), _WHOLE)

    @property
    def totals(self) -> tuple[Query, ...]:
        """The distinct mechanisms in order of first use; ``count`` is the number of uses."""
        counts: dict[Query, int] = {}
        for query, count in self._rows:
            mechanism = _counted(query, 1)
            counts[mechanism] = counts.get(mechanism, 0) + count
        return tuple(_counted(query, count) for query, count in counts.items())

    def under(self, neighboring_relation: str | None = None) -> tuple[DpEvent, str]:
        """Return the event of all releases, composed for a relation, and the relation.

        Equal mechanisms are gathered: their order does not matter. Correlated noise costs its whole
        strategy from its first answer on. LedgerMismatch is raised if adaptive answers spent more
        than their budget, there are more answers with correlated noise than their strategy has
        steps, or a partition has more parts than records.
        """
        relation = validate.relation(neighboring_relation or self._relation)
        return self._composed(relation, 1), relation

    def _composed(self, relation: str, group_size: int) -> DpEvent:
        self._check_streams()
        for budget in self._shares:
            share = self.share(budget)
            if share > 1:
                raise LedgerMismatch(
                    f"adaptive answers spent {float(share):.6g} times their budget, the noise "
                    f"multiplier {budget!r}."
                )
        asked = ((query, query.count) for query in self.totals)
        event = compose(asked, self._n, relation, group_size)
        self._check_partitions()
        return event

    def _check_streams(self) -> None:
        """Refuse several streams of noise of one name, and more answers than a stream has rows."""
        streams = {_counted(query, 1) for query, _ in self._rows if query.correlation is not None}
        for stream in streams:
            name, count = stream.name, self._counts[stream.name]
            alike = sum(each.name == name for each in streams)
            if alike > 1:
                raise LedgerMismatch(f"answers to {name!r} name {alike} streams of noise.")
            steps = stream.correlation.strategy.steps if stream.correlation else 0
            if count > steps:
                raise LedgerMismatch(
                    f"query {name!r} was answered {count} times, its noise has {steps} rows."
                )

    def _check_partitions(self) -> None:
        """Refuse more parts of a partition than its records allow."""
        needed: dict[str, int] = {}
        for query in self.totals:
            if query.composition == "disjoint":
                name, size = query.partition or query.name, query.batch_size or 0
                parts = -(-query.count // query.answers_per_part)
                needed[name] = needed.get(name, 0) + parts * size
        for name, records in needed.items():
            if records > self._n:
                raise LedgerMismatch(
                    f"parts of partition {name!r} hold {records} records, there are {self._n}."
                )

    def to_json(self) -> str:
        """Return the ledger as a JSON document."""
        document = {
            "n": self._n,
            "neighboring_relation": self._relation,
            "entries": [entry.to_dict() for entry in self.entries],
            **({} if self._accountant == "auto" else {"accountant": self._accountant}),
        }
        return json.dumps(document, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, document: str) -> Ledger:
        """Read a ledger written by :meth:`to_json`.

        A ValueError is raised if the document is not JSON, lacks a field, has an unknown one, or
        has a value out of range.
        """
        must = "document must be a ledger in JSON"
        fields = fields_of(document, must)
        with read_as(must):
            entries = [Query(**entry) for entry in fields.pop("entries")]
            return cls(**fields, entries=entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        about = (self._n, self._relation, self._accountant)
        same = about == (other._n, other._relation, other._accountant)
        return same and self.entries == other.entries

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return f"<Ledger of {self.answers} answers about {self._n} records, {self._relation}>"


class Admits(Spender):
    """Admits answers to a plan's queries into a ledger, or refuses them and changes nothing.

    No record is read for it. Attribute ``_owed`` charges the budgets in use before the first
    answer, or is None; ``_batches`` has the partitions of disjoint queries.
    """

    @property
    def _batches(self) -> Batches:
        raise NotImplementedError

    def _begin_ledger(self, plan: Plan, n: int, ledger: Ledger | None = None) -> None:
        """Begin without answers, or with the answers of a ledger, which must be within the plan.

        A ValueError is raised if the plan is not for n records.
        """
        if plan.n != n and not plan.public_n:
            raise ValueError(f"plan must be for n={n} records, got one for n={plan.n}.")
        self.plan = plan
        self._ledger = Ledger.of(plan) if ledger is None else ledger.within(plan)
        self._owed: Callable[[], None] | None = None
        self._queries = {query.name: query for query in plan.queries}
        self._last_chosen: dict[str, Query] = {}
        self._process, self._lock = os.getpid(), Lock()

    @property
    def ledger(self) -> Ledger:
        """The answers so far; an entry is written before any record is read for it."""
        return self._ledger

    def remaining(self, query: str) -> int:
        """Return the number of answers that are left to the query."""
        return self.plan.query(query).count - self._ledger.count(query)

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return whether one more answer to an adaptive query, with this noise, is allowed."""
        asked = self._with_noise(self.plan.query(query), noise_multiplier)
        return self.remaining(query) >= 1 and self._ledger.allows(asked)

    def _asked(self, name: str, kind: str, noise_multiplier: float | None = None) -> Query:
        """Return the query of this name and kind with the noise of this answer, or refuse it.

        Only adaptive queries have a ``noise_multiplier`` of the answer.
        """
        self._check_process()
        query = self._queries.get(name) or self.plan.query(name)
        if query.kind != kind:
            raise ValueError(
                f"query must be of kind {kind!r}, got {name!r} of kind {query.kind!r}."
            )
        if query.budget is not None:
            return self._with_noise(query, noise_multiplier)
        if noise_multiplier is not None:
            raise ValueError(
                f"noise_multiplier is for adaptive queries, got {noise_multiplier!r} for {name!r}, "
                "whose noise is planned."
            )
        return query

    def _check_process(self) -> None:
        """Refuse a forked process, by NoiseReused: it would draw its parent's noise."""
        if os.getpid() != self._process:
            raise NoiseReused(
                "this oracle was made before a fork, and its other process draws the same noise: "
                "make oracles after a fork, each with a seed of its own or with seed=None."
            )

    def _with_noise(self, query: Query, noise_multiplier: float | None) -> Query:
        """Return an adaptive query with the noise that was chosen for it."""
        if query.budget is not None and noise_multiplier is None:
            raise ValueError(f"noise_multiplier must be given for adaptive query {query.name!r}.")
        last = self._last_chosen.get(query.name)
        if last is not None and last.noise_multiplier is noise_multiplier:
            return last
        chosen = query.with_noise(math.nan if noise_multiplier is None else noise_multiplier)
        self._last_chosen[query.name] = chosen
        return chosen

    def _admit(self, *answers: tuple[Query, int]) -> None:
        """Write answers with their counts into the ledger, or refuse all of them.

        BudgetExceeded is raised unless the plan's counts, its adaptive budget, the records of a
        partition and the budgets in use allow all of them. A caller with a lock holds it.
        """
        ledger = self._ledger
        parts = self._batches.parts if answers[0][0].composition == "disjoint" else None
        if len(answers) > 1 or self._owed or parts is not None:
            # A budget cannot take a payment back, so it pays after all other checks.
            totals: dict[str, tuple[Query, int]] = {}
            for query, count in answers:
                totals[query.name] = query, totals.get(query.name, (query, 0))[1] + count
            for query, count in totals.values():
                ledger.check(query, count)
                if parts is not None:
                    parts.check(query, count, ledger.count(query.name))
            if self._owed is not None:
                self._owed()
                self._owed = None
        for query, count in answers:
            ledger.record(query, count)
            if parts is not None:
                parts.allot(query, count, ledger.count(query.name) - count)


def check_ledger(ledger: Ledger, plan: Plan, *, exact: bool) -> None:
    """Refuse a ledger that is not within a plan; with ``exact``, also an incomplete ledger."""
    about = (ledger.n, ledger.neighboring_relation)
    if about != (plan.n, plan.neighboring_relation):
        raise LedgerMismatch(
            f"the ledger is about n={about[0]} under {about[1]!r}, the plan about "
            f"n={plan.n} under {plan.neighboring_relation!r}."
        )
    admits = Ledger.of(plan)
    try:
        for released in ledger.totals:
            admits.record(released, released.count)
    except BudgetExceeded as refused:
        raise LedgerMismatch(f"{refused}") from None
    for query in plan.queries:
        spent = ledger.count(query.name)
        if exact and query.budget is None and spent < query.count:
            raise LedgerMismatch(
                f"query {query.name!r} was planned {query.count} times and answered {spent} times."
            )


def _planned_alike(query: Query, released: Query) -> bool:
    """Return whether an answer is to this query, with the planned noise or more chosen noise."""
    if released is query or released.origin is query:
        return True
    if query.budget is not None and released.noise_multiplier >= query.noise_multiplier:
        query = query.with_noise(released.noise_multiplier, checked=True)
    return _alike(query, released)


def _alike(query: Query, other: Query) -> bool:
    """Return whether two queries are equal except for their counts."""
    if query is other:
        return True
    if query.name != other.name or query.noise_multiplier != other.noise_multiplier:
        return False
    return query == other or _counted(query, other.count) == other


def _counted(query: Query, count: int) -> Query:
    """Return a query with another count, without checking the fields that it has already."""
    return query if query.count == count else query.with_count(count)


# Shares are doubles of at most 1, so whole multiples of 2^-1074: their sums are exact and fast.
_WHOLE = 1 << 1074


@lru_cache(maxsize=256)
def _scaled(share: float) -> int:
    above, below = share.as_integer_ratio()
    return above * (_WHOLE // below)
