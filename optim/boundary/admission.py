"""Is this answer allowed? By the plan, the adaptive budget, the partitions and the filter.

This module reads no records. An answer is either admitted, and then in the ledger before any record
is read for it, or refused, and then nothing has changed.

>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=3)
>>> plan = Plan(optimizer="noisy_gd", n=4, queries=(query,), epsilon=9.0, delta=1e-6)
>>> admission = Admission(plan)
>>> admission.spend(admission.asked("gradient", "gradient"), 2)
>>> admission.remaining("gradient")
1
>>> admission.spend(query, 2)
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: query 'gradient' may be asked 3 times, 2 are spent, 2 more asked for.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dpcal.calibrate.plan import Plan, Query, compose
from dpcal.errors import NoiseReused, UnsupportedEvent
from dpcal.optim.boundary.batches import Parts
from dpcal.optim.boundary.ledger import Ledger

if TYPE_CHECKING:
    from dpcal.accountants.adaptive.filters import PrivacyFilter

__all__ = ["Admission"]


class Admission:
    """Admits answers to a plan's queries into a ledger, or refuses them.

    Parameters
    ----------
    plan
        Queries, with their counts and their noise.
    filter
        A further budget that pays for every answer; None for the plan alone. One for another
        neighboring relation raises a ValueError, and one beside answers that have no price of their
        own UnsupportedEvent.
    parts
        The plan's partitions; None if no query is disjoint.
    ledger
        Earlier answers, within the plan, or LedgerMismatch is raised; a new ledger when omitted.

    Attributes
    ----------
    filtered
        Whether there is a filter.
    owed
        What charges the budgets in use, called before the first answer; None if none is.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        filter: PrivacyFilter | None = None,  # noqa: A002 -- what it is called in the field
        parts: Parts | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        if filter is not None and filter.neighboring_relation != plan.neighboring_relation:
            raise ValueError(
                f"filter must be for the plan's relation {plan.neighboring_relation!r}, got one "
                f"for {filter.neighboring_relation!r}."
            )
        if filter is not None and any(query.correlation or query.epoch for query in plan.queries):
            raise UnsupportedEvent(
                "A filter prices answers one by one, and those with correlated noise, or on the "
                "batches of whole epochs, have no price of their own."
            )
        self.plan = plan
        self.ledger = Ledger.of(plan) if ledger is None else ledger.within(plan)
        self.filtered = filter is not None
        self.owed: Callable[[], None] | None = None
        self._filter = filter
        self._parts = parts
        self._last_chosen: dict[str, Query] = {}
        self._process = os.getpid()

    def asked(self, name: str, kind: str, noise_multiplier: float | None = None) -> Query:
        """Return the query of this name and kind with the noise of this answer, or refuse it.

        Adaptive queries alone have a ``noise_multiplier`` of the answer. In a forked process
        NoiseReused is raised: the process would draw the noise that its parent draws.
        """
        if os.getpid() != self._process:
            raise NoiseReused(
                "this oracle was made before a fork, and its other process draws the same noise: "
                "make oracles after a fork, each with a seed of its own or with seed=None."
            )
        query = self.plan.query(name)
        if query.kind != kind:
            raise ValueError(
                f"query must be of kind {kind!r}, got {name!r} of kind {query.kind!r}."
            )
        if query.composition == "disjoint" and (
            query.sampler != "fixed-size" or self.plan.neighboring_relation == "add-or-remove-one"
        ):
            raise ValueError(
                f"query must be of kind {kind!r} and, with composition 'disjoint', have sampler "
                "'fixed-size' under 'replace-one' or 'replace-special', got "
                f"{name!r} with sampler {query.sampler!r} under "
                f"{self.plan.neighboring_relation!r}."
            )
        if query.budget is not None:
            return self._chosen(query, noise_multiplier)
        if noise_multiplier is not None:
            raise ValueError(
                f"noise_multiplier is for adaptive queries, got {noise_multiplier!r} for {name!r}, "
                "whose noise is planned."
            )
        return query

    def remaining(self, name: str) -> int:
        """Return the number of answers that are left to the query called ``name``."""
        return self.plan.query(name).count - self.ledger.count(name)

    def affords(self, name: str, noise_multiplier: float) -> bool:
        """Return whether one more answer to an adaptive query, with this noise, is allowed."""
        asked = self._chosen(self.plan.query(name), noise_multiplier)
        fits = self.remaining(name) >= 1 and self.ledger.allows(asked)
        if self._filter is not None and fits:
            return not self._filter.would_exceed(asked.event(self.plan.n))
        return fits

    def spend(self, query: Query, count: int) -> None:
        """Write ``count`` answers into the ledger, or refuse them all and change nothing.

        BudgetExceeded is raised unless the plan's count, its adaptive budget, the records of a
        partition and the filter allow all of them.
        """
        if self._filter is None and query.composition != "disjoint" and self.owed is None:
            # The ledger itself refuses answers that the plan does not allow.
            self.ledger.record(query, count)
            return
        # A filter cannot take a payment back, so all other checks come before it pays.
        self.ledger.check(query, count)
        spent = self.ledger.count(query.name)
        parts = self._parts if query.composition == "disjoint" else None
        if parts is not None:
            parts.check(query, count, spent)
        if self._filter is not None:
            self._pay(self._filter, query, count)
        self._charge()
        self.ledger.record(query, count)
        if parts is not None:
            parts.allot(query, count, spent)

    def spend_in_order(self, answers: Iterable[tuple[Query, int]]) -> None:
        """Write answers to several sequential queries, or refuse them all as :meth:`spend` does."""
        answers = list(answers)
        self._admit(answers)
        for query, count in answers:
            self.ledger.record(query, count)

    def in_turn(self, answers: Iterable[tuple[Query, int]]) -> Callable[[], None]:
        """Return a function that writes these answers, one a call, or refuse them as :meth:`spend`.

        It is for a loop that may end early: the ledger then holds the answers that were given. A
        filter pays for all of them at once.
        """
        answers = list(answers)
        self._admit(answers)
        turn = iter([query for query, count in answers for _ in range(count)])
        return lambda: self.ledger.record(next(turn))

    def _admit(self, answers: list[tuple[Query, int]]) -> None:
        """Check answers to several sequential queries, and pay the filter."""
        totals: dict[Query, int] = {}
        for query, count in answers:
            totals[query] = totals.get(query, 0) + count
        for query, count in totals.items():
            self.ledger.check(query, count)
        if self._filter is not None:
            plan = self.plan
            self._filter.spend(compose(totals.items(), plan.n, plan.neighboring_relation))
        self._charge()

    def _charge(self) -> None:
        """Charge the budgets in use, before the first answer."""
        if self.owed is not None:
            self.owed()
            self.owed = None

    def _chosen(self, query: Query, noise_multiplier: float | None) -> Query:
        """Return an adaptive query with the noise that was chosen for it."""
        if query.budget is not None and noise_multiplier is None:
            raise ValueError(f"noise_multiplier must be given for adaptive query {query.name!r}.")
        # Consecutive answers often have the same noise: the last checked query is kept.
        last = self._last_chosen.get(query.name)
        if last is not None and last.noise_multiplier is noise_multiplier:
            return last
        chosen = query.with_noise(math.nan if noise_multiplier is None else noise_multiplier)
        self._last_chosen[query.name] = chosen
        return chosen

    def _pay(self, budget: PrivacyFilter, query: Query, count: int) -> None:
        if query.composition != "disjoint":
            budget.spend(query.event(self.plan.n), count)
            return
        # The worst of parts that share no record counts; a filter forgets them between calls.
        parts = [(query, count)]
        budget.spend(compose(parts, self.plan.n, self.plan.neighboring_relation))
