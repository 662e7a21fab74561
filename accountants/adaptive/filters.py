r"""May one more mechanism run, chosen by earlier answers? Privacy filters and odometers.

An accountant prices mechanisms that are fixed in advance. If noise, sampling or the number of steps
depend on past outputs, the epsilon of the realised sequence is not a proof: the sequence itself
depends on the data. A *filter* has its budget fixed in advance and refuses a spend that would
exceed it; all accepted mechanisms together are (epsilon, delta)-private. An *odometer* has no
budget and reports an epsilon that holds at any stopping time.

>>> from dpcal.accountants.events import GaussianDpEvent
>>> budget = PrivacyFilter(epsilon=1.0, delta=1e-6, kind="gdp")
>>> budget.spend(GaussianDpEvent(8.0))
>>> budget.would_exceed(GaussianDpEvent(4.0))
True
>>> budget.spend(GaussianDpEvent(4.0))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: Spending 0.0625 would exceed the remaining ...
>>> budget.spend(GaussianDpEvent(6.0))
>>> print(f"{budget.remaining:.6f}")
0.012626

Notation: P and Q are the laws of all outputs on two neighbors, L the log-ratio of their densities,
c = order - 1 > 0, and rho_t the Renyi divergence of this order of the t-th mechanism given the
past, in the worse direction. Theorems:

* Renyi filter (Feldman and Zrnic 2021; Lecuyer 2021). If sum rho_t <= B almost surely, for *one*
  order fixed in advance, the whole has a Renyi divergence of at most B at this order, because
  exp(c sum_t (L_t - rho_t)) is a supermartingale under P. Then delta(epsilon) <= exp(c (B -
  epsilon)) c^c / (1 + c)^(1 + c) (Canonne, Kamath and Steinke 2020, Proposition 12), which gives B.
* zCDP filter (one budget for all orders; Whitehouse, Ramdas, Rogers and Wu 2023). If sum rho_t <=
  rho almost surely with rho_t the zCDP parameters, the whole is rho-zCDP, and the best order may be
  taken in the conversion.
* Gaussian-DP filter (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023). If sum mu_t^2 <=
  mu^2 almost surely, for mu_t-GDP mechanisms, the whole is mu-GDP, as if all were fixed in advance.
* Pure filter (delta = 0, the Renyi filter of infinite order). If sum epsilon_t <= epsilon almost
  surely, for epsilon_t-private mechanisms, the whole is epsilon-private: loss by loss, L_t <=
  epsilon_t.
* Renyi odometer. By Ville's inequality for the supermartingale above, P[L > S_j + log(k / delta) /
  c_j at some time] <= delta / k, with S_j the running sum at the order 1 + c_j; a union bound makes
  it hold for k orders fixed in advance, at once and at all times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from threading import Lock

from dpcal import _validate
from dpcal._roots import minimum
from dpcal._spending import Spender
from dpcal.accountants import events
from dpcal.accountants.curves.conversions import largest_mu, renyi_divergence
from dpcal.accountants.curves.tradeoff import squared_gdp_mu
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.accountants.mechanisms.pure import pure_epsilon
from dpcal.accountants.rounding import UNIT, next_up, rounded_up
from dpcal.errors import BudgetExceeded, TargetUnreachable, UnsupportedEvent

__all__ = ["Odometer", "PrivacyFilter", "renyi_order"]

KINDS = ("renyi", "zcdp", "gdp")

_UNITS = {
    "renyi": "Renyi divergence of order {order:.6g}",
    "zcdp": "sum of zCDP parameters",
    "gdp": "sum of squared GDP parameters",
}
# Orders 1 + c of an odometer, unless others are given.
_ORDERS = tuple(1 + 2.0**k for k in range(-1, 11))
# They find the logarithm of an order to 1e-5, where the budget is flat to ten digits.
_SECTIONS = 29


def _squared_mu(event: events.DpEvent, relation: str) -> float:
    """Return the squared GDP parameter of a composition of Gaussian mechanisms."""
    composition = decompose(event, relation)
    if not composition.private:
        return math.inf
    squared = squared_gdp_mu(composition.directions[0])
    if squared is None:
        raise UnsupportedEvent(
            f"A filter of kind 'gdp' takes Gaussian mechanisms only, got {event!r}."
        )
    return squared


def _rho(event: events.DpEvent, relation: str) -> float:
    """Return the zCDP parameter of a composition of Gaussian mechanisms and zCDP events."""
    total = 0.0
    for leaf, times in leaves(event).items():
        if not isinstance(leaf, events.ZCDpEvent):
            total += _squared_mu(leaf, relation) / 2 * times
        elif leaf.xi == 0:
            # The parameter is stated for the relation in use, so that no conversion is needed.
            total += _validate.non_negative(rho=leaf.rho) * times
        else:
            raise UnsupportedEvent(f"A filter of kind 'zcdp' needs xi=0, got {leaf!r}.")
        total = next_up(total * (1 + UNIT))
    return total


def _renyi_budget(c: float, epsilon: float, log_delta: float) -> float:
    """Return the largest Renyi divergence of order 1 + c that implies (epsilon, delta), or < 0."""
    margin = 8 * UNIT * (abs(log_delta) / c + epsilon + 4 / c + 4)
    return epsilon + (log_delta - float(log_chernoff(c))) / c - margin


def _best_order(cost: Callable[[float], float], epsilon: float, log_delta: float) -> float:
    """Return the order at which the budget is the largest multiple of ``cost(order)``."""

    def multiple(x: float) -> float:
        c = math.exp(x)
        return -_renyi_budget(c, epsilon, log_delta) / cost(1 + c)

    # Orders below this have a negative budget; far above it, every cost is more than the budget.
    least = max(-log_delta / epsilon, 1.0)
    ends = math.log(0.01 * least), math.log(100 * least)
    return 1 + math.exp(minimum(multiple, *ends, sections=_SECTIONS))


def _zcdp_budget(epsilon: float, log_delta: float) -> float:
    """Return the largest rho such that rho-zCDP implies (epsilon, delta) at the best order."""
    order = _best_order(lambda order: order, epsilon, log_delta)
    return _renyi_budget(order - 1, epsilon, log_delta) / order


def _gdp_budget(epsilon: float, log_delta: float) -> float:
    """Return the largest mu^2 such that mu-GDP implies (epsilon, delta), rounded down."""
    return largest_mu(epsilon, log_delta) ** 2 * (1 - 4 * UNIT)


def renyi_order(
    event: events.DpEvent,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the order at which a Renyi filter admits the most repetitions of ``event``.

    Choose the order *before* the first spend, from the mechanism that is expected.

    Parameters
    ----------
    event
        The expected mechanism.
    epsilon
        Budget of the filter, > 0.
    delta
        Budget of the filter, in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    >>> print(f"{renyi_order(events.GaussianDpEvent(10.0), epsilon=1.0, delta=1e-6):.3f}")
    21.985
    """
    neighboring_relation = _validate.relation(neighboring_relation)

    def divergence(order: float) -> float:
        return renyi_divergence(event, order=order, neighboring_relation=neighboring_relation)

    log_delta = math.log(_validate.probability(delta=delta))
    return _best_order(divergence, _validate.positive(epsilon=epsilon), log_delta)


class _Meter(Spender):
    """The costs of events under one relation; the cost of each event is computed once.

    Threads may share it. It cannot be copied or pickled: a copy could be spent once more.
    """

    def __init__(self, neighboring_relation: str) -> None:
        neighboring_relation = _validate.relation(neighboring_relation)
        self._relation = _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
        self._known: dict[events.DpEvent, tuple[float, ...]] = {}
        self._lock = Lock()

    @property
    def neighboring_relation(self) -> str:
        """Which data sets count as neighbors."""
        return self._relation

    def _price(self, event: events.DpEvent) -> tuple[float, ...]:
        """Return the costs of an event: one number for each order or unit."""
        raise NotImplementedError

    def _divergences(self, event: events.DpEvent, orders: Iterable[float]) -> tuple[float, ...]:
        return tuple(
            renyi_divergence(event, order=order, neighboring_relation=self._relation)
            for order in orders
        )

    def _costs(self, event: events.DpEvent, count: int) -> tuple[float, ...]:
        """Return the costs of ``count`` runs, rounded up."""
        times = _validate.count(count=count)
        try:
            known = event in self._known
        except TypeError:  # Compositions of lists have no hash.
            return tuple(next_up(cost * times) for cost in self._price(event))
        if not known:
            self._known[event] = self._price(event)
        return tuple(next_up(cost * times) for cost in self._known[event])


class PrivacyFilter(_Meter):
    """A budget for mechanisms that are chosen one by one from past outputs.

    However the spends are chosen, all that the filter accepts is (epsilon, delta)-private together.

    Parameters
    ----------
    epsilon
        Budget, > 0.
    delta
        Budget, in [0, 1). At 0, the filter takes pure mechanisms, whose epsilons add up.
    kind
        ``"renyi"`` (any supported mechanism), ``"zcdp"`` (Gaussian mechanisms and zCDP events) or
        ``"gdp"`` (Gaussian mechanisms only, the tightest for them).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    order
        The order > 1 of a Renyi filter, fixed from now on; by default the best for Gaussian
        mechanisms. See :func:`renyi_order`. At delta=0 it is infinite.

    Notes
    -----
    ``spent`` is in the filter's own unit. It must not be converted to an epsilon if the run stopped
    because of its outputs: use an :class:`Odometer` for that.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        kind: str = "renyi",
        neighboring_relation: str = "add-or-remove-one",
        order: float | None = None,
    ) -> None:
        self._epsilon = _validate.positive(epsilon=epsilon)
        self._delta = _validate.below_one(delta=delta)
        self._kind = _validate.choice(KINDS, kind=kind)
        super().__init__(neighboring_relation)
        self._order: float | None = None
        self._spent = 0.0
        if self._delta == 0:
            if kind != "renyi" or order not in (None, math.inf):
                raise ValueError(
                    "delta must be in (0, 1) for a filter of another kind than 'renyi', or of a "
                    f"finite order, got {delta!r}."
                )
            self._order, self._budget = math.inf, self._epsilon
            return
        log_delta = math.log(self._delta)
        if kind == "renyi":
            self._order = (
                _best_order(lambda order: order, self._epsilon, log_delta)
                if order is None
                else _validate.order(order=order)
            )
            self._budget = _renyi_budget(self._order - 1, self._epsilon, log_delta)
        elif order is not None:
            raise TypeError(f"order is for a filter of kind 'renyi', got it with kind={kind!r}.")
        else:
            budget = _zcdp_budget if kind == "zcdp" else _gdp_budget
            self._budget = budget(self._epsilon, log_delta)
        if self._budget <= 0:
            raise TargetUnreachable(
                f"At order {self._order:.6g} no positive Renyi divergence implies "
                f"epsilon={epsilon!r} at delta={delta!r}: choose a larger order."
            )

    @property
    def epsilon(self) -> float:
        """Epsilon of everything that the filter will ever accept."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """Delta of everything that the filter will ever accept."""
        return self._delta

    @property
    def kind(self) -> str:
        """The kind of the filter: the theorem that is used."""
        return self._kind

    @property
    def order(self) -> float | None:
        """Order of a Renyi filter, None for the others."""
        return self._order

    @property
    def unit(self) -> str:
        """The unit of ``budget``, ``spent`` and ``remaining``."""
        return _UNITS[self._kind].format(order=self._order)

    @property
    def budget(self) -> float:
        """All that may be spent, in the filter's unit."""
        return self._budget

    @property
    def spent(self) -> float:
        """The cost so far, in the filter's unit, rounded up."""
        return self._spent

    @property
    def remaining(self) -> float:
        """The rest of the budget, in the filter's unit."""
        return self._budget - self._spent

    def cost(self, event: events.DpEvent, count: int = 1) -> float:
        """Return the cost of ``count`` >= 1 runs of ``event``, in the filter's unit, rounded up.

        Raises
        ------
        UnsupportedEvent
            If the filter's theorem does not cover the event.
        """
        if self._order == math.inf:
            return self._price(events.SelfComposedDpEvent(event, _validate.count(count=count)))[0]
        return self._costs(event, count)[0]

    def would_exceed(self, event: events.DpEvent, count: int = 1) -> bool:
        """Return whether :meth:`spend` would raise BudgetExceeded."""
        return self._after(self.cost(event, count)) > self._budget

    def _after(self, cost: float) -> float:
        """Return all that is spent once a cost is paid, rounded up: pure costs if need be alone."""
        total = self._spent + cost
        if self._order != math.inf or math.isinf(total):
            return next_up(total)
        return rounded_up(total, Fraction(self._spent) + Fraction(cost))

    def spend(self, event: events.DpEvent, count: int = 1) -> None:
        """Pay for ``count`` >= 1 runs of ``event``; call it before the mechanism sees any record.

        Raises
        ------
        BudgetExceeded
            If not enough remains; then nothing is spent, and smaller spends may follow.
        UnsupportedEvent
            If the filter's theorem does not cover the event.
        """
        cost = self.cost(event, count)
        with self._lock:
            spent = self._after(cost)
            if spent > self._budget:
                raise BudgetExceeded(
                    f"Spending {cost:.6g} would exceed the remaining {self.remaining:.6g} "
                    f"of {self._budget:.6g} ({self.unit})."
                )
            self._spent = spent

    def _price(self, event: events.DpEvent) -> tuple[float, ...]:
        if self._order == math.inf:
            return (pure_epsilon(event, self._relation).upper,)
        if self._order is not None:
            return self._divergences(event, (self._order,))
        return ((_rho if self._kind == "zcdp" else _squared_mu)(event, self._relation),)


class Odometer(_Meter):
    """A running epsilon that holds whenever, and for whatever reason, the run stops.

    For any rule that picks mechanisms and the time of stopping from past outputs, with probability
    at least 1 - delta under P, the privacy loss is at most :attr:`epsilon` at every time. Hence
    P(E) <= E_Q[exp(epsilon at the stop); E] + delta for every event E of outputs up to the stop.

    Parameters
    ----------
    delta
        In (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    orders
        Renyi orders > 1, fixed from now on; delta is split evenly among them.

    >>> odometer = Odometer(delta=1e-6)
    >>> for noise_multiplier in (8.0, 4.0, 6.0):
    ...     odometer.spend(events.GaussianDpEvent(noise_multiplier))
    >>> print(f"{odometer.epsilon:.4f}")
    1.9189
    """

    def __init__(
        self,
        *,
        delta: float,
        neighboring_relation: str = "add-or-remove-one",
        orders: Iterable[float] = _ORDERS,
    ) -> None:
        self._delta = _validate.probability(delta=delta)
        super().__init__(neighboring_relation)
        self._orders = tuple(orders)
        if not self._orders:
            raise ValueError("orders must name at least one order > 1, got none.")
        for order in self._orders:
            _validate.order(order=order)
        self._spent = (0.0,) * len(self._orders)

    @property
    def delta(self) -> float:
        """Probability with which the reported epsilon may be too small at any time."""
        return self._delta

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders, fixed in advance."""
        return self._orders

    @property
    def spent(self) -> dict[float, float]:
        """Renyi divergence spent so far at each order, rounded up."""
        return dict(zip(self._orders, self._spent, strict=True))

    @property
    def epsilon(self) -> float:
        """The epsilon that holds now; 0 before the first spend."""
        if not any(self._spent):
            return 0.0
        penalty = (math.log(len(self._orders)) - math.log(self._delta)) * (1 + 4 * UNIT)
        pairs = zip(self._orders, self._spent, strict=True)
        return min(next_up(spent + next_up(penalty / (order - 1))) for order, spent in pairs)

    def spend(self, event: events.DpEvent, count: int = 1) -> None:
        """Count ``count`` >= 1 runs of ``event``.

        Raises
        ------
        UnsupportedEvent
            If no theorem here covers the event.
        """
        costs = self._costs(event, count)
        with self._lock:
            self._spent = tuple(next_up(a + b) for a, b in zip(self._spent, costs, strict=True))

    def _price(self, event: events.DpEvent) -> tuple[float, ...]:
        return self._divergences(event, self._orders)
