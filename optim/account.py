"""The account of runs about the same records: their joint cost, and whether one more run fits.

An :class:`Account` is a total and the runs that were paid from it. An account computes and refuses,
and writes nothing: a budget in memory holds an account, and a budget book makes an account of its
rows.

>>> from dpcal.calibrate import Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=4.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=9, queries=(query,), epsilon=2.0, delta=1e-6)
>>> account = Account(epsilon=2.0, delta=1e-6).admit(plan)
>>> print(f"{account.spent():.4f} {account.spent_whatever_was_chosen():.4f} {account.left():.4f}")
1.0607 1.5406 1.6322
>>> account.admit(plan).admit(plan).admit(plan)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: This run would bring what is spent on these records to epsilon...
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import attr

from dpcal._internal import validate
from dpcal._internal.files import document_of
from dpcal.accountants import Epsilon, epsilon, events
from dpcal.accountants.adaptive.filters import KINDS, Odometer, PrivacyFilter, renyi_order
from dpcal.accountants.directions import RELATIONS
from dpcal.calibrate.noise import noise_left
from dpcal.calibrate.persons import for_group, unit_of
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded, UnsupportedEvent

COMPOSITIONS = ("exact", *KINDS)

# Noise multiplier: beyond it, epsilon is below 1e-5 at any delta in use.
_NO_ROOM = 1e6
# Relative margin of noise: a cost fits for all rounding of sums.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Charge:
    """An event that a budget charges whole.

    Parameters
    ----------
    optimizer, event
        Name of the method, and all that it may release.
    epsilon, delta
        The charge's own epsilon at this delta, which a book computes and shows; all charges
        together are composed from their events.
    neighboring_relation
        Relation of neighbouring data sets.
    group_size
        Largest number of records of a person whom it is about.
    """

    optimizer: str = "run"
    event: events.DpEvent
    epsilon: float = math.inf
    delta: float
    neighboring_relation: str
    group_size: int = 1

    def event_for(self, group_size: int) -> events.DpEvent:
        """See :meth:`dpcal.calibrate.plan.Priced.event_for`."""
        return for_group(self.event, -(-group_size // self.group_size))

    def to_json(self) -> str:
        """Return the charge as JSON, which :func:`charge_of` reads."""
        return json.dumps({**vars(self), "event": _told(self.event)}, allow_nan=False)


def charge_of(text: str) -> Plan | Charge:
    """Return a plan or a charge from its JSON; an error of reading it if it is neither."""
    values = document_of(text)
    if "event" not in values:
        return Plan.from_json(text)
    return Charge(**{**values, "event": _event(values["event"])})


def _told(value: Any) -> Any:
    """Return an event or its parts as JSON values; JSON has no number for infinity."""
    if isinstance(value, events.DpEvent):
        fields = [field.name for field in attr.fields(type(value))]
        return {
            "type": type(value).__name__,
            **{name: _told(getattr(value, name)) for name in fields},
        }
    if isinstance(value, Sequence):
        return [_told(each) for each in value]
    if isinstance(value, int | float):
        return value if math.isfinite(value) else repr(value)
    raise UnsupportedEvent(
        "A budget book holds plans, and events that are made of numbers. Run this one with the "
        "book as its store."
    )


def _event(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {name: _event(each) for name, each in value.items() if name != "type"}
        return getattr(events, value["type"])(**fields)
    if isinstance(value, list):
        return [_event(each) for each in value]
    return float(value) if isinstance(value, str) else value


class HasAccount:
    """An object with an :class:`Account`, which changes with each payment."""

    @property
    def account(self) -> Account:
        """The total and all runs that are paid from it, at this moment."""
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """The total's epsilon."""
        return self.account.epsilon

    @property
    def delta(self) -> float:
        """The total's delta."""
        return self.account.delta

    @property
    def neighboring_relation(self) -> str | None:
        """Neighbouring relation of data sets; None until the first run fixes it."""
        return self.account.neighboring_relation

    @property
    def group_size(self) -> int:
        """Largest number of records of a person in any run: the cost of all runs is for it.

        A run about single records does not limit a person's number of records. Next to runs about
        persons, its cost is for persons who have at most this many records.
        """
        return self.account.group_size


@dataclass(frozen=True, kw_only=True)
class Account:
    """A total, and the plans and other charges that are paid from it.

    Parameters
    ----------
    epsilon, delta
        The total: epsilon > 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``; None for the relation
        of the first run.
    composition
        One of ``COMPOSITIONS``.
    charged
        Each run, and how often it is charged, in order.
    order
        Order of a Renyi filter: fixed by the first run, None before it.
    owner
        Owner of the account, as sentences name it.
    """

    epsilon: float
    delta: float
    neighboring_relation: str | None = None
    composition: str = "exact"
    charged: tuple[tuple[Plan | Charge, int], ...] = ()
    order: float | None = None
    owner: str = "the budget"

    def __post_init__(self) -> None:
        validate.positive(epsilon=self.epsilon)
        validate.probability(delta=self.delta)
        validate.choice(COMPOSITIONS, composition=self.composition)
        if self.neighboring_relation is not None:
            validate.choice(RELATIONS, neighboring_relation=self.neighboring_relation)

    @property
    def group_size(self) -> int:
        """Largest number of records of a person in any run; the cost of all runs is for it."""
        return max((run.group_size for run, _ in self.charged), default=1)

    @property
    def event(self) -> events.DpEvent:
        """All runs as one event, for a person of :attr:`group_size` records."""
        most = self.group_size
        runs = ((run.event_for(most), count) for run, count in self.charged)
        return events.ComposedDpEvent([events.SelfComposedDpEvent(*each) for each in runs])

    @property
    def _about(self) -> dict[str, Any]:
        """The total's delta and the relation, as keywords of accountants."""
        relation = self.neighboring_relation or RELATIONS[0]
        return {"delta": self.delta, "neighboring_relation": relation}

    def spent(self, delta: float | None = None) -> Epsilon:
        """Return the epsilon of all runs, composed exactly; at the total's delta when omitted."""
        about = self._about if delta is None else {**self._about, "delta": delta}
        return epsilon(self.event, **about)

    def spent_whatever_was_chosen(self) -> float:
        """Return an epsilon that holds however runs were chosen, by an odometer.

        UnsupportedEvent is raised if a run has no Renyi divergence here.
        """
        odometer = Odometer(**self._about)
        self._pay(odometer)
        return odometer.epsilon

    def left(self) -> float:
        """Return the epsilon of one more Gaussian answer that would fit, rounded down; or 0."""
        noise = self._noise_left()
        if math.isinf(noise):
            return 0.0
        return epsilon(events.GaussianDpEvent(noise), **self._about).lower

    def admit(self, run: Plan | Charge) -> Self:
        """Return the account with one more run, or refuse it.

        BudgetExceeded is raised if it would overrun the total; UnsupportedEvent if the theorem of
        the filter does not cover it, or it is for another neighboring relation.
        """
        own = validate.instance(Plan, Charge, plan=run).neighboring_relation
        if self.neighboring_relation not in (None, own):
            raise UnsupportedEvent(
                f"The neighboring relation of {self.owner} is {self.neighboring_relation!r}, and "
                f"the run is for {own!r}: plan it with neighboring_relation="
                f"{self.neighboring_relation!r} (in commands, --neighboring-relation "
                f"{self.neighboring_relation}), or use another one. Estimators are for "
                "'replace-special'."
            )
        now = replace(self, neighboring_relation=own)
        if self.composition != "exact":
            now = replace(now, order=now._paid_order(run))
        after = replace(now, charged=(*self.charged, (run, 1)))
        price = after.spent().upper if self.composition == "exact" else 0.0
        if price > self.epsilon:
            raise BudgetExceeded(
                "This run would bring what is spent on these records to epsilon = "
                f"{price:.6g} at delta = {self.delta:g}, the total is {self.epsilon:g}; no record "
                "was touched."
            )
        return after

    def _paid_order(self, run: Plan | Charge) -> float | None:
        """Refuse a run that a filter does not admit; return the order of a Renyi filter."""
        if self.charged and run.group_size > self.group_size:
            raise UnsupportedEvent(
                f"The filter of {self.owner} has been about {unit_of(self.group_size)} since its "
                f"first run, and this run is about {unit_of(run.group_size)}: use another one."
            )
        event, order = run.event_for(max(self.group_size, run.group_size)), self.order
        if self.composition == "renyi" and order is None:
            order = renyi_order(event, epsilon=self.epsilon, **self._about)
        budget = self._filter(order)
        if budget.would_exceed(event):
            raise BudgetExceeded(
                f"This run costs {budget.cost(event):.6g}, and {budget.remaining:.6g} of "
                f"{budget.budget:.6g} is left ({budget.unit}); no record was touched."
            )
        return order

    def _filter(self, order: float | None) -> PrivacyFilter:
        """Return the filter with all runs paid."""
        total: dict[str, Any] = {"epsilon": self.epsilon, **self._about}
        made = PrivacyFilter(**total, kind=self.composition, order=order)
        self._pay(made)
        return made

    def _pay(self, spender: PrivacyFilter | Odometer) -> None:
        """Let a filter or an odometer pay all runs."""
        most = self.group_size
        for run, count in self.charged:
            spender.spend(run.event_for(most), count)

    def _noise_left(self) -> float:
        """Noise multiplier of one more Gaussian answer that fits, infinite if none does."""
        if self.composition == "exact":
            return noise_left([self.event], epsilon=self.epsilon, **self._about)
        budget = self._filter(self.order)
        if not budget.remaining > 0:
            return math.inf
        cost = budget.cost(events.GaussianDpEvent(1.0))
        noise = math.sqrt(cost / budget.remaining) * (1 + _ROUNDING)
        fits = noise <= _NO_ROOM and not budget.would_exceed(events.GaussianDpEvent(noise))
        return noise if fits else math.inf
