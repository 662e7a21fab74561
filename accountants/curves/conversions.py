r"""Conversions between notions of privacy, each by the best theorem known.

A claim that was published without its mechanism is an event, and converts as any other one:

>>> from dpcal.accountants import epsilon, events
>>> print(f"{epsilon(events.ZCDpEvent(0.1), delta=1e-6):.6f}")
2.141939
>>> print(f"{epsilon(events.GaussianDpEvent(1 / 0.2**0.5), delta=1e-6):.6f}")     # mu-GDP
1.994527
>>> print(f"{renyi_divergence(events.EpsilonDeltaDpEvent(1.0), order=8.0):.6f}")
0.955248

Some conversions do not exist: (epsilon, delta) with delta > 0 implies no finite Renyi divergence,
no rho and no mu, as the output may reveal everything with probability delta; rho implies no mu.
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal._internal.roots import Stop, brent
from dpcal.accountants import renyi
from dpcal.accountants.directions import relation_of
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_down

__all__ = ["renyi_divergence"]


def renyi_divergence(
    event: DpEvent, *, order: float, neighboring_relation: str = "add-or-remove-one"
) -> float:
    """Return the Renyi divergence of an event in the worse direction, rounded up.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    order
        Any real number > 1.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    >>> from dpcal.accountants import events
    >>> print(f"{renyi_divergence(events.GaussianDpEvent(2.0), order=8.0):.6f}")
    1.000000
    """
    neighboring_relation = relation_of(neighboring_relation)
    alpha = validate.order(order=order)
    composition = decompose(event, neighboring_relation)
    if not composition.private:
        return math.inf
    return max(renyi.divergence(direction, alpha) for direction in composition.directions)


def largest_mu(epsilon: float, log_delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta), rounded down."""

    def excess(mu: float) -> float:
        value, error = log_gaussian_delta(epsilon, mu)
        return max(value + error, -1e300) - log_delta

    # Chernoff's bound proves one mu, and delta_mu(epsilon) <= mu / sqrt(2 pi) another.
    low = 2 * epsilon / (math.sqrt(-2 * log_delta) + math.sqrt(2 * (epsilon - log_delta)))
    low = max(low, math.sqrt(2 * math.pi) * exp_down(log_delta)) * (1 - 8 * UNIT)
    if not excess(low) <= 0:
        return low
    high = 2 * low
    while excess(high) <= 0:
        high *= 2
    return brent(excess, low, high, Stop(absolute=1e-300, relative=1e-14)).meet
