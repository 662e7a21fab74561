r"""May one more mechanism run, chosen by earlier answers? Privacy filters and odometers.

An accountant takes mechanisms that are fixed in advance. If noise, sampling or the number of steps
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
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple

from dpcal._internal import validate
from dpcal._internal.roots import minimum
from dpcal._internal.spending import Spender
from dpcal.accountants import events
from dpcal.accountants.curves.conversions import largest_mu, renyi_divergence
from dpcal.accountants.curves.tradeoff import squared_gdp_mu
from dpcal.accountants.directions import relation_of
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.accountants.mechanisms.pure import pure_epsilon
from dpcal.accountants.rounding import UNIT, next_up, sum_up
from dpcal.errors import BudgetExceeded, TargetUnreachable, UnsupportedEvent

_ORDERS = tuple(1 + 2.0**k for k in range(-1, 11))
# Golden-section steps: the logarithm of the order is known to 1e-5, the budget to ten digits.
_SECTIONS = 29


def _divergence(event: events.DpEvent, relation: str, order: float) -> float:
    """Return the Renyi divergence of an event; at order infinity it is the largest loss."""
    if order == math.inf:
        return pure_epsilon(event, relation).upper
    return renyi_divergence(event, order=order, neighboring_relation=relation)


def _squared_mu(event: events.DpEvent, relation: str, _: float = math.nan) -> float:
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


def _rho(event: events.DpEvent, relation: str, _: float) -> float:
    """Return the zCDP parameter of a composition of Gaussian mechanisms and zCDP events."""
    total = 0.0
    for leaf, times in leaves(event).items():
        if not isinstance(leaf, events.ZCDpEvent):
            total += _squared_mu(leaf, relation) / 2 * times
        elif leaf.xi == 0:
            total += validate.non_negative(rho=leaf.rho) * times
        else:
            raise UnsupportedEvent(f"A filter of kind 'zcdp' needs xi=0, got {leaf!r}.")
        total = next_up(total * (1 + UNIT))
    return total


def _renyi_budget(epsilon: float, log_delta: float, order: float) -> float:
    """Return the largest Renyi divergence of an order that implies (epsilon, delta), or < 0."""
    if order == math.inf:
        return epsilon
    c = order - 1
    margin = 8 * UNIT * (abs(log_delta) / c + epsilon + 4 / c + 4)
    return epsilon + (log_delta - float(log_chernoff(c))) / c - margin


def _best_order(
    epsilon: float, log_delta: float, cost: Callable[[float], float] = lambda order: order
) -> float:
    """Return the order at which the budget is the largest multiple of ``cost(order)``.

    Divergences of Gaussian mechanisms are multiples of the order.
    """

    def multiple(x: float) -> float:
        order = 1 + math.exp(x)
        return -_renyi_budget(epsilon, log_delta, order) / cost(order)

    # Orders below this have a negative budget; far above it, every cost is more than the budget.
    least = max(-log_delta / epsilon, 1.0)
    ends = math.log(0.01 * least), math.log(100 * least)
    return 1 + math.exp(minimum(multiple, *ends, sections=_SECTIONS))


def _zcdp_budget(epsilon: float, log_delta: float, _: float) -> float:
    """Return the largest rho such that rho-zCDP implies (epsilon, delta) at the best order."""
    order = _best_order(epsilon, log_delta)
    return _renyi_budget(epsilon, log_delta, order) / order


def _gdp_budget(epsilon: float, log_delta: float, _: float) -> float:
    """Return the largest mu^2 such that mu-GDP implies (epsilon, delta), rounded down."""
    return largest_mu(epsilon, log_delta) ** 2 * (1 - 4 * UNIT)


class _Kind(NamedTuple):
    """A theorem: the quantity that adds up, its budget for a target, and an event's part.

    ``budget`` takes epsilon, log delta and the order, and ``price`` an event, a relation and the
    order, which only Renyi divergences have.
    """

    unit: str
    budget: Callable[[float, float, float], float]
    price: Callable[[events.DpEvent, str, float], float]


_KINDS = MappingProxyType(
    {
        "renyi": _Kind("Renyi divergence of order {:.6g}", _renyi_budget, _divergence),
        "zcdp": _Kind("sum of zCDP parameters", _zcdp_budget, _rho),
        "gdp": _Kind("sum of squared GDP parameters", _gdp_budget, _squared_mu),
    }
)
KINDS = tuple(_KINDS)


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
    neighboring_relation = relation_of(neighboring_relation)

    def divergence(order: float) -> float:
        return renyi_divergence(event, order=order, neighboring_relation=neighboring_relation)

    log_delta = math.log(validate.probability(delta=delta))
    return _best_order(validate.positive(epsilon=epsilon), log_delta, divergence)


class _Meter(Spender):
    """Running sums of costs of events under one relation; each event's costs are computed once.

    Threads may share it. It cannot be copied or pickled: a copy could be spent once more. Public
    attributes are fixed when it is made.
    """

    _spent: tuple[float, ...]

    def __init__(self, neighboring_relation: str) -> None:
        self.neighboring_relation = relation_of(neighboring_relation)
        self._known: dict[tuple[tuple[events.DpEvent, int], ...], tuple[float, ...]] = {}
        self._lock = Lock()

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and name in vars(self):
            raise AttributeError(f"{name} of a {type(self).__name__} is fixed.")
        super().__setattr__(name, value)

    def _prices(self, event: events.DpEvent) -> tuple[float, ...]:
        """Return the costs of an event, one for each sum."""
        raise NotImplementedError

    def _costs(self, event: events.DpEvent, count: int) -> tuple[float, ...]:
        """Return the costs of ``count`` runs, rounded up."""
        runs = events.SelfComposedDpEvent(event, validate.count(count=count))
        key = tuple(leaves(runs).items())
        if key not in self._known:
            self._known[key] = self._prices(runs)
        return self._known[key]

    def _after(self, costs: tuple[float, ...]) -> tuple[float, ...]:
        """Return the sums once costs are paid, rounded up."""
        return tuple(map(sum_up, zip(self._spent, costs, strict=True)))

    def _admit(self, costs: tuple[float, ...], after: tuple[float, ...]) -> None:
        """Refuse costs that a budget does not allow."""

    def spend(self, event: events.DpEvent, count: int = 1) -> None:
        """Pay for ``count`` >= 1 runs of ``event``; call it before the mechanism sees any record.

        Raises
        ------
        BudgetExceeded
            If less than this remains of a filter; then nothing is spent, and smaller spends may
            follow.
        UnsupportedEvent
            If the theorem in use does not cover the event.
        """
        costs = self._costs(event, count)
        with self._lock:
            after = self._after(costs)
            self._admit(costs, after)
            self._spent = after


class PrivacyFilter(_Meter):
    """A budget for mechanisms that are chosen one by one from past outputs.

    However the spends are chosen, all that the filter accepts is (epsilon, delta)-private together.

    Parameters
    ----------
    epsilon
        Budget, > 0.
    delta
        Budget, in [0, 1). At 0, the filter takes pure mechanisms, and adds up their epsilons.
    kind
        ``"renyi"`` (any supported mechanism), ``"zcdp"`` (Gaussian mechanisms and zCDP events) or
        ``"gdp"`` (Gaussian mechanisms only, the tightest for them).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    order
        The order > 1 of a Renyi filter, fixed from now on; by default the best for Gaussian
        mechanisms. See :func:`renyi_order`. At delta=0 it is infinite.

    Attributes
    ----------
    epsilon, delta
        Largest total of all mechanisms that the filter will ever accept.
    kind, order
        As given, or chosen; ``order`` is None but for a Renyi filter.
    unit
        The unit of ``budget``, ``spent`` and ``remaining``.
    budget
        All that may be spent.

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
        self.epsilon = validate.positive(epsilon=epsilon)
        self.delta = validate.below_one(delta=delta)
        self.kind = validate.choice(KINDS, kind=kind)
        super().__init__(neighboring_relation)
        log_delta = math.log(self.delta) if self.delta else -math.inf
        if self.delta == 0:
            if kind != "renyi" or order not in (None, math.inf):
                raise ValueError(
                    "delta must be in (0, 1) for a filter of another kind than 'renyi', or of a "
                    f"finite order, got {delta!r}."
                )
            order = math.inf
        elif kind != "renyi" and order is not None:
            raise TypeError(f"order is for a filter of kind 'renyi', got it with kind={kind!r}.")
        elif order is not None:
            order = validate.order(order=order)
        elif kind == "renyi":
            order = _best_order(self.epsilon, log_delta)
        self.order = order
        self._kind, self._order = _KINDS[self.kind], math.nan if order is None else order
        self.unit = self._kind.unit.format(order)
        self.budget = self._kind.budget(self.epsilon, log_delta, self._order)
        self._spent = (0.0,)
        if self.budget <= 0:
            raise TargetUnreachable(
                f"At order {self._order:.6g} no positive Renyi divergence implies "
                f"epsilon={epsilon!r} at delta={delta!r}: choose a larger order."
            )

    @property
    def spent(self) -> float:
        """The cost so far, in the filter's unit, rounded up."""
        return self._spent[0]

    @property
    def remaining(self) -> float:
        """The rest of the budget, in the filter's unit."""
        return self.budget - self.spent

    def cost(self, event: events.DpEvent, count: int = 1) -> float:
        """Return the cost of ``count`` >= 1 runs of ``event``, in the filter's unit, rounded up.

        Raises
        ------
        UnsupportedEvent
            If the filter's theorem does not cover the event.
        """
        return self._costs(event, count)[0]

    def would_exceed(self, event: events.DpEvent, count: int = 1) -> bool:
        """Return whether :meth:`spend` would raise BudgetExceeded."""
        return self._after(self._costs(event, count))[0] > self.budget

    def _prices(self, event: events.DpEvent) -> tuple[float, ...]:
        return (self._kind.price(event, self.neighboring_relation, self._order),)

    def _admit(self, costs: tuple[float, ...], after: tuple[float, ...]) -> None:
        if after[0] > self.budget:
            raise BudgetExceeded(
                f"Spending {costs[0]:.6g} would exceed the remaining {self.remaining:.6g} "
                f"of {self.budget:.6g} ({self.unit})."
            )


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
        Renyi orders > 1, fixed from now on; delta is split evenly among them. It is the probability
        with which the reported epsilon may be too small at any time.

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
        self.delta = validate.probability(delta=delta)
        super().__init__(neighboring_relation)
        self.orders = tuple(orders)
        if not self.orders:
            raise ValueError("orders must name at least one order > 1, got none.")
        for order in self.orders:
            validate.order(order=order)
        self._spent = (0.0,) * len(self.orders)

    @property
    def spent(self) -> dict[float, float]:
        """Renyi divergence spent so far at each order, rounded up."""
        return dict(zip(self.orders, self._spent, strict=True))

    @property
    def epsilon(self) -> float:
        """The epsilon that holds now; 0 before the first spend."""
        if not any(self._spent):
            return 0.0
        penalty = (math.log(len(self.orders)) - math.log(self.delta)) * (1 + 4 * UNIT)
        pairs = zip(self.orders, self._spent, strict=True)
        return min(next_up(spent + next_up(penalty / (order - 1))) for order, spent in pairs)

    def _prices(self, event: events.DpEvent) -> tuple[float, ...]:
        relation = self.neighboring_relation
        return tuple(_divergence(event, relation, order) for order in self.orders)
