r"""What does one notion of privacy imply for another? Conversions, by the best theorem known.

Numbers that were published without an event come as (epsilon, delta), as a Renyi divergence, as
zCDP's rho or as Gaussian DP's mu. Each function turns one claim into another that it implies,
rounded to the safe side; orders are optimised over all reals.

>>> print(f"{epsilon_from_zcdp(0.1, delta=1e-6):.6f} {epsilon_from_gdp(0.2**0.5, delta=1e-6):.6f}")
2.141939 1.994527
>>> print(f"{renyi_from_pure(1.0, order=8.0):.6f}")
0.955248

Some conversions do not exist: (epsilon, delta) with delta > 0 implies no finite Renyi divergence,
no rho and no mu, as the output may reveal everything with probability delta; rho implies no mu.
"""

from __future__ import annotations

import math

from dpcal import _validate
from dpcal._roots import Stop, brent
from dpcal.accountants import characteristic, renyi
from dpcal.accountants.directions import Direction, relation_of
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.losses.gaussian import Gaussian, log_gaussian_delta
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_down

__all__ = [
    "epsilon_from_gdp",
    "epsilon_from_renyi",
    "epsilon_from_zcdp",
    "renyi_divergence",
    "renyi_from_pure",
]


def _gaussian(mu: float) -> Direction:
    """Return the Gaussian mechanism whose mu is not smaller; no mechanism for a mu of 0."""
    return Direction("both", ((Gaussian((1 - 2 * UNIT) / mu), 1),) if mu else ())


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
    alpha = _validate.order(order=order)
    composition = decompose(event, neighboring_relation)
    if not composition.private:
        return math.inf
    return max(renyi.divergence(direction, alpha) for direction in composition.directions)


def epsilon_from_renyi(divergence: float, *, order: float, delta: float) -> float:
    """Return the epsilon at ``delta`` that a Renyi divergence >= 0 of one order implies.

    Canonne, Kamath and Steinke (2020), Proposition 12; Balle, Barthe, Gaboardi, Hsu and Sato
    (2020) have the same bound.

    >>> print(f"{epsilon_from_renyi(1.0, order=8.0, delta=1e-5):.6f}")
    2.214109
    """
    c = _validate.order(order=order) - 1
    value = _validate.non_negative(divergence=divergence)
    log_delta = math.log(_validate.probability(delta=delta))
    penalty = (float(log_chernoff(c)) - log_delta) / c
    margin = 16 * UNIT * (value + abs(log_delta) / c + 4 / c + 4)
    return max(0.0, value + penalty + margin)


def largest_mu(epsilon: float, log_delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta), rounded down."""

    def excess(mu: float) -> float:
        value, error = log_gaussian_delta(epsilon, mu)
        return max(value + error, -1e300) - log_delta

    # Chernoff's bound proves one mu, and delta_mu(epsilon) <= mu / sqrt(2 pi) another, even if
    # ``excess`` has no correct digits.
    low = 2 * epsilon / (math.sqrt(-2 * log_delta) + math.sqrt(2 * (epsilon - log_delta)))
    low = max(low, math.sqrt(2 * math.pi) * exp_down(log_delta)) * (1 - 8 * UNIT)
    if not excess(low) <= 0:
        return low
    high = 2 * low
    while excess(high) <= 0:
        high *= 2
    return brent(excess, low, high, Stop(absolute=1e-300, relative=1e-14)).meet


def renyi_from_pure(epsilon: float, *, order: float) -> float:
    """Return the Renyi divergence that (epsilon, 0) implies: that of randomized response.

    Randomized response dominates every pure mechanism (Kairouz, Oh and Viswanath 2015), so no
    bound is smaller.
    """
    e, alpha = _validate.non_negative(epsilon=epsilon), _validate.order(order=order)
    # This is the log of (exp(a e) + exp((1 - a) e)) / (1 + exp(e)), written without overflow.
    gain = math.log1p(math.exp((1 - 2 * alpha) * e)) - math.log1p(math.exp(-e))
    value = e + gain / (alpha - 1)
    return min(e, max(0.0, value + 16 * UNIT * (e + 1 / (alpha - 1))))


def epsilon_from_zcdp(rho: float, *, delta: float) -> float:
    """Return the epsilon at ``delta`` that rho-zCDP implies, at the best real order.

    Canonne, Kamath and Steinke (2020), Proposition 12, at every order at once.
    """
    log_delta = math.log(_validate.probability(delta=delta))
    direction = _gaussian(math.sqrt(2 * _validate.non_negative(rho=rho)))
    return renyi.epsilon_bounds(direction, log_delta).upper


def epsilon_from_gdp(mu: float, *, delta: float) -> float:
    """Return the epsilon at ``delta`` that mu-GDP implies (Dong, Roth and Su 2022; exact)."""
    log_delta = math.log(_validate.probability(delta=delta))
    direction = _gaussian(_validate.non_negative(mu=mu))
    return characteristic.epsilon_bounds(direction, log_delta).upper
