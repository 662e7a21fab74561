"""What was really released? A ledger holds every noisy answer, and epsilon is recomputed from it.

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

import dataclasses
import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpcal import _validate
from dpcal.accountants import Epsilon
from dpcal.accountants import epsilon as epsilon_of
from dpcal.accountants.events import DpEvent
from dpcal.calibrate.plan import RELATIONS, Plan, Query, compose
from dpcal.errors import LedgerMismatch

__all__ = ["Ledger", "check_ledger"]


class Ledger:
    """Append-only record of noisy answers, in the order in which they were released.

    An entry is the :class:`~dpcal.calibrate.Query` that was answered, its ``count`` being how many
    times in a row.

    Parameters
    ----------
    n
        Number of records that the answers are about, at least 1.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    entries
        What was released already.
    """

    def __init__(
        self,
        n: int,
        neighboring_relation: str = "add-or-remove-one",
        *,
        entries: Iterable[Query] = (),
    ) -> None:
        self._n = _validate.count(n=n)
        self._relation = _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
        self._entries: list[Query] = []
        self._counts: dict[str, int] = {}
        self._shares: dict[float, Fraction] = {}
        for entry in entries:
            self.record(entry, entry.count)

    @property
    def n(self) -> int:
        """Number of records that the answers are about."""
        return self._n

    @property
    def neighboring_relation(self) -> str:
        """Which data sets count as neighbours."""
        return self._relation

    @property
    def entries(self) -> tuple[Query, ...]:
        """The answers so far; a query's ``count`` is how many times in a row it was answered."""
        return tuple(self._entries)

    def record(self, query: Query, count: int = 1) -> None:
        """Append ``count`` >= 1 answers to ``query``, whatever ``query.count`` would allow."""
        entry = dataclasses.replace(query, count=_validate.count(count=count))
        last = self._entries[-1] if self._entries else None
        if last is not None and dataclasses.replace(last, count=entry.count) == entry:
            self._entries[-1] = dataclasses.replace(last, count=last.count + entry.count)
        else:
            self._entries.append(entry)
        self._counts[entry.name] = self.count(entry.name) + entry.count
        if entry.budget is not None:
            self._shares[entry.budget] = self.share(entry.budget) + entry.share

    def record_chosen(self, query: Query, noise_multipliers: Iterable[float]) -> None:
        """Append one answer to an adaptive query for each noise multiplier, in this order.

        It is :meth:`record` of each, only faster.
        """
        if query.budget is None:
            raise ValueError(f"query must be adaptive, got {query.name!r}.")
        chosen = [_validate.positive(noise_multiplier=each) for each in noise_multipliers]
        template = {**vars(query), "count": 1}
        shares = []
        for multiplier in chosen:
            entry = object.__new__(Query)
            vars(entry).update(template, noise_multiplier=multiplier)
            self._entries.append(entry)
            shares.append(entry.share_of_one.as_integer_ratio())
        self._counts[query.name] = self.count(query.name) + len(shares)
        # Denominators are powers of two.
        common = max((below for _, below in shares), default=1)
        more = Fraction(sum(above * (common // below) for above, below in shares), common)
        self._shares[query.budget] = self.share(query.budget) + more

    def count(self, name: str) -> int:
        """Return how often the query called ``name`` was answered."""
        return self._counts.get(name, 0)

    def share(self, budget: float) -> Fraction:
        """Return which share of an adaptive budget was spent, rounded up; at most 1 if kept.

        It must not be converted to an epsilon: how much a run spends adaptively is itself one of
        its outputs. What was spent, whatever the share, costs the whole budget.
        """
        return self._shares.get(budget, Fraction(0))

    @property
    def totals(self) -> tuple[Query, ...]:
        """The distinct mechanisms in order of first use; ``count`` is how often each was used."""
        counts: dict[Query, int] = {}
        for entry in self._entries:
            mechanism = dataclasses.replace(entry, count=1)
            counts[mechanism] = counts.get(mechanism, 0) + entry.count
        return tuple(dataclasses.replace(query, count=k) for query, k in counts.items())

    @property
    def event(self) -> DpEvent:
        """The event of everything released; order costs nothing, so equal ones are gathered.

        Correlated noise costs its whole strategy once its first answer was given.

        Raises
        ------
        LedgerMismatch
            If adaptive answers spent more than their budget, there are more answers with
            correlated noise than their strategy has steps, or a partition has more parts than
            there are records for.
        """
        return self._composed(self._relation)

    def _composed(self, neighboring_relation: str) -> DpEvent:
        self._check_streams()
        for budget, share in self._shares.items():
            if share > 1:
                raise LedgerMismatch(
                    f"adaptive answers spent {float(share):.6g} times their budget, the noise "
                    f"multiplier {budget!r}."
                )
        asked = ((query, query.count) for query in self.totals)
        event = compose(asked, self._n, neighboring_relation)
        self._check_partitions()
        return event

    def _check_streams(self) -> None:
        for name, count in self._counts.items():
            streams = {
                dataclasses.replace(entry, count=1)
                for entry in self._entries
                if entry.name == name and entry.correlation is not None
            }
            if len(streams) > 1:
                raise LedgerMismatch(f"answers to {name!r} name {len(streams)} streams of noise.")
            for entry in streams:
                steps = entry.correlation.strategy.steps if entry.correlation else 0
                if count > steps:
                    raise LedgerMismatch(
                        f"query {name!r} was answered {count} times, its noise has {steps} rows."
                    )

    def _check_partitions(self) -> None:
        """Refuse parts that cannot all be disjoint."""
        needed: dict[str, int] = {}
        for query in self.totals:
            if query.composition == "disjoint":
                name, size = query.partition or query.name, query.batch_size or self._n
                parts = -(-query.count // query.answers_per_part)
                needed[name] = needed.get(name, 0) + parts * size
        for name, records in needed.items():
            if records > self._n:
                raise LedgerMismatch(
                    f"parts of partition {name!r} hold {records} records, there are {self._n}."
                )

    def epsilon(self, delta: float, **options: Any) -> Epsilon:
        """Return the certified epsilon of everything released.

        Parameters
        ----------
        delta
            In (0, 1).
        **options
            Passed to :func:`dpcal.accountants.epsilon`; the neighboring relation is the ledger's
            unless given. Answers are composed as theorems for the relation in use allow.
        """
        relation = options.setdefault("neighboring_relation", self._relation)
        return epsilon_of(self._composed(relation), delta=delta, **options)

    def to_json(self) -> str:
        """Return the ledger as a JSON document."""
        document = {
            "n": self._n,
            "neighboring_relation": self._relation,
            "entries": [entry.to_dict() for entry in self._entries],
        }
        return json.dumps(document, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, document: str) -> Ledger:
        """Read a ledger written by :meth:`to_json`.

        Raises
        ------
        ValueError
            If the document is not JSON, lacks a field, has an unknown one, or a value is out of
            range.
        """
        try:
            fields = json.loads(document)
            entries = [Query(**entry) for entry in fields.pop("entries")]
            return cls(**fields, entries=entries)
        except (json.JSONDecodeError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"document must be a ledger in JSON, got {error}.") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return (self._n, self._relation, self._entries) == (
            other._n,
            other._relation,
            other._entries,
        )

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        answers = sum(entry.count for entry in self._entries)
        return f"<Ledger of {answers} answers about {self._n} records, {self._relation}>"


def check_ledger(ledger: Ledger, plan: Plan, *, exact: bool) -> None:
    """Refuse a ledger that is not within a plan; if ``exact``, one that is not all of it."""
    about = (ledger.n, ledger.neighboring_relation)
    if about != (plan.n, plan.neighboring_relation):
        raise LedgerMismatch(
            f"the ledger is about n={about[0]} under {about[1]!r}, the plan about "
            f"n={plan.n} under {plan.neighboring_relation!r}."
        )
    planned = {query.name: query for query in plan.queries}
    for released in ledger.totals:
        query = planned.get(released.name)
        if query is None or not _allows(query, released):
            raise LedgerMismatch(f"the plan holds no such query as was answered: {released}.")
        if query.budget is not None and ledger.share(query.budget) > 1:
            raise LedgerMismatch("adaptive answers spent more than the plan's budget.")
    for name, query in planned.items():
        spent = ledger.count(name)
        missing = exact and query.budget is None and spent < query.count
        if spent > query.count or missing:
            raise LedgerMismatch(
                f"query {name!r} was planned {query.count} times and answered {spent} times."
            )


def _allows(query: Query, released: Query) -> bool:
    """Whether an answer is to this query, with the noise that was planned, or chosen above it."""
    same = dataclasses.replace(query, count=released.count)
    if query.budget is not None and released.noise_multiplier >= query.noise_multiplier:
        same = dataclasses.replace(same, noise_multiplier=released.noise_multiplier)
    return same == released
