"""What have the runs in a budget book spent, and does another fit? Pure functions of its rows.

>>> from dpcal.calibrate import Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=4.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=9, queries=(query,), epsilon=2.0, delta=1e-6)
>>> account = Account(epsilon=2.0, delta=1e-6, neighboring_relation="add-or-remove-one",
...                   composition="exact", charged=((plan.event, 1e-6, 1),))
>>> print(f"{account.spent():.4f} {account.spent_whatever_was_chosen():.4f} {account.left():.4f}")
1.0607 1.5406 1.6322
>>> account.admit(plan)
>>> from dataclasses import replace
>>> replace(account, charged=((plan.event, 1e-6, 3),)).admit(plan)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: This run would bring what is spent on these records to epsilon = 2.2...
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcal.accountants import Epsilon, epsilon, events
from dpcal.accountants.adaptive.filters import KINDS, Odometer, PrivacyFilter, renyi_order
from dpcal.accountants.together import price_together
from dpcal.calibrate.noise import noise_left
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded
from dpcal.optim.budget import Charge

__all__ = ["COMPOSITIONS", "Account"]

COMPOSITIONS = ("exact", *KINDS)

# Noise multiplier beyond which the price of an answer is negligible: its epsilon is below 1e-5 at
# any delta that is in use.
_NO_ROOM = 1e6
# Relative: by so much more noise, a cost fits for all rounding of sums.
_ROUNDING = 1e-9


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
        The event of each plan or other charge, its delta, and the number of its runs, in order.
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
    charged: tuple[tuple[events.DpEvent, float, int], ...] = ()
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
        for event, _, count in self.charged:
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
            price = self._price([*self._runs(), (event, plan.delta)], self.delta)
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
        for event, _, count in self.charged:
            budget.spend(event, count)
        return budget

    def _runs(self) -> list[tuple[events.DpEvent, float]]:
        """Return events of all runs with their deltas, equal ones together where that is exact."""
        runs: list[tuple[events.DpEvent, float]] = []
        for event, delta, count in self.charged:
            if isinstance(event, events.CorrelatedGaussianDpEvent):
                # It composes by adding its price, run by run.
                runs += [(event, delta)] * count
            else:
                runs.append((events.SelfComposedDpEvent(event, count), delta))
        return runs

    def _price(self, runs: list[tuple[events.DpEvent, float]], delta: float) -> Epsilon:
        relation = self.neighboring_relation
        return price_together(runs, delta=delta, neighboring_relation=relation)

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
