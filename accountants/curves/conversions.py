r"""What does one notion of privacy imply for another? Conversions, by the best theorem known.

Numbers that were published without an event come as (epsilon, delta), as a Renyi divergence, as
zCDP's rho or as Gaussian DP's mu. Each function turns one claim into another that it implies,
rounded to the safe side; orders are optimised over all reals.

>>> print(f"{epsilon_from_zcdp(0.1, delta=1e-6):.6f} {epsilon_from_gdp(0.2**0.5, delta=1e-6):.6f}")
2.141939 1.994527
>>> print(f"{renyi_from_pure(1.0, order=8.0):.6f} {rho_from_pure(1.0):.6f}")
0.955248 0.500000

Some conversions do not exist: (epsilon, delta) with delta > 0 implies no finite Renyi
divergence, no rho and no mu, as the output may reveal everything with probability delta; rho
implies no mu. :func:`least_renyi` remains true: a mechanism with at least this delta cannot have a
Renyi divergence below it.
"""

from __future__ import annotations

import math

from dpcal import _validate
from dpcal._roots import Stop, brent
from dpcal.accountants import characteristic, renyi
from dpcal.accountants.directions import Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_up

__all__ = [
    "delta_from_gdp",
    "delta_from_pair",
    "delta_from_renyi",
    "delta_from_zcdp",
    "epsilon_from_gdp",
    "epsilon_from_renyi",
    "epsilon_from_zcdp",
    "least_renyi",
    "renyi_divergence",
    "renyi_from_gdp",
    "renyi_from_pure",
    "renyi_from_zcdp",
    "rho_from_gdp",
    "rho_from_pure",
]


def _up(value: float) -> float:
    return value * (1 + 8 * UNIT)


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
    neighboring_relation = _validate.relation(neighboring_relation)
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


def delta_from_renyi(divergence: float, *, order: float, epsilon: float) -> float:
    """Return the delta at ``epsilon`` that a Renyi divergence >= 0 of one order implies.

    Canonne, Kamath and Steinke (2020), Proposition 12, solved for delta.

    >>> print(f"{delta_from_renyi(1.0, order=8.0, epsilon=2.214109):.4e}")
    1.0000e-05
    """
    c = _validate.order(order=order) - 1
    value = _validate.non_negative(divergence=divergence)
    target = _validate.non_negative(epsilon=epsilon)
    margin = 16 * UNIT * (c * (value + target) + 4)
    return exp_up(min(0.0, c * (value - target) + float(log_chernoff(c)) + margin))


def least_renyi(epsilon: float, *, delta: float, order: float) -> float:
    """Return the least Renyi divergence that any mechanism with this delta(epsilon) can have.

    So a mechanism whose divergence is smaller is (epsilon, delta)-private, the best statement from
    a single order; and a measured delta(epsilon) refutes a smaller divergence. By Asoodeh, Liao,
    Calmon, Kosut and Sankar (2021) two points suffice: the least divergence of order a of (p, 1 -
    p) from (q, 1 - q) with p - exp(epsilon) q = delta. Rounded down.

    Parameters
    ----------
    epsilon
        A number >= 0.
    delta
        In (0, 1).
    order
        Any real number > 1.

    >>> print(f"{least_renyi(2.214091, delta=1e-5, order=8.0):.6f}")
    1.000112
    """
    e, d = _validate.non_negative(epsilon=epsilon), _validate.probability(delta=delta)
    alpha, shrink = _validate.order(order=order), math.exp(-e)

    def log_sum(p: float) -> tuple[float, float]:
        # The results are the logarithm of the convex sum, and its derivative in p.
        q = (p - d) * shrink
        first = alpha * math.log(p) + (1 - alpha) * math.log(q)
        second = alpha * math.log1p(-p) + (1 - alpha) * math.log1p(-q)
        top = max(first, second)
        a, b = math.exp(first - top), math.exp(second - top)
        rates = (
            alpha / p + (1 - alpha) * shrink / q,
            -alpha / (1 - p) - (1 - alpha) * shrink / (1 - q),
        )
        return top + math.log(a + b), (a * rates[0] + b * rates[1]) / (a + b)

    span = 1 - d
    low, high = d + span * 1e-12, d + span * (1 - 1e-12)
    p = high
    if log_sum(low)[1] < 0 < log_sum(high)[1]:
        stop = Stop(absolute=1e-300, relative=1e-14)
        p = brent(lambda x: log_sum(x)[1], low, high, stop).root
    value, slope = log_sum(p)
    # A convex function lies above its tangent on the whole range.
    rest = 1 - abs(slope) * (p - d if slope > 0 else 1 - p)
    if rest <= 0:
        return 0.0
    margin = 64 * UNIT * alpha * (4 + e - math.log(min(p - d, 1 - p)))
    return max(0.0, (value + math.log(rest) - margin) / (alpha - 1))


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


def renyi_from_zcdp(rho: float, *, order: float) -> float:
    """Return order times rho, the definition of zCDP (Bun and Steinke 2016).

    >>> print(f"{renyi_from_zcdp(0.5, order=3.0):.6f}")
    1.500000
    """
    return _up(_validate.order(order=order) * _validate.non_negative(rho=rho))


def renyi_from_gdp(mu: float, *, order: float) -> float:
    """Return order mu^2 / 2, the divergence of N(mu, 1) from N(0, 1).

    A trade-off curve above a Gaussian one is post-processing of the Gaussian pair (Dong, Roth and
    Su 2022), whose divergence no post-processing exceeds.

    >>> print(f"{renyi_from_gdp(1.0, order=3.0):.6f}")
    1.500000
    """
    return _up(_validate.order(order=order) * rho_from_gdp(mu))


def rho_from_gdp(mu: float) -> float:
    """Return mu^2 / 2, the zCDP parameter of mu-GDP; see :func:`renyi_from_gdp`.

    >>> rho_from_gdp(0.0)
    0.0
    """
    return _up(_validate.non_negative(mu=mu) ** 2 / 2)


def rho_from_pure(epsilon: float) -> float:
    """Return epsilon^2 / 2, the zCDP parameter of (epsilon, 0) (Bun and Steinke 2016)."""
    return _up(_validate.non_negative(epsilon=epsilon) ** 2 / 2)


def epsilon_from_zcdp(rho: float, *, delta: float) -> float:
    """Return the epsilon at ``delta`` that rho-zCDP implies, at the best real order.

    Canonne, Kamath and Steinke (2020), Proposition 12, at every order at once.
    """
    log_delta = math.log(_validate.probability(delta=delta))
    direction = _gaussian(math.sqrt(2 * _validate.non_negative(rho=rho)))
    return renyi.epsilon_bounds(direction, log_delta).upper


def delta_from_zcdp(rho: float, *, epsilon: float) -> float:
    """Return the delta at ``epsilon`` that rho-zCDP implies, as :func:`epsilon_from_zcdp`.

    >>> print(f"{delta_from_zcdp(0.1, epsilon=2.141939):.4e}")
    1.0000e-06
    """
    target = _validate.non_negative(epsilon=epsilon)
    direction = _gaussian(math.sqrt(2 * _validate.non_negative(rho=rho)))
    return exp_up(renyi.log_delta_bounds(direction, target).upper)


def epsilon_from_gdp(mu: float, *, delta: float) -> float:
    """Return the epsilon at ``delta`` that mu-GDP implies (Dong, Roth and Su 2022; exact)."""
    log_delta = math.log(_validate.probability(delta=delta))
    direction = _gaussian(_validate.non_negative(mu=mu))
    return characteristic.epsilon_bounds(direction, log_delta).upper


def delta_from_gdp(mu: float, *, epsilon: float) -> float:
    """Return the delta at ``epsilon`` that mu-GDP implies: Balle and Wang (2018), Theorem 8.

    >>> print(f"{delta_from_gdp(1.0, epsilon=1.0):.6f}")
    0.126937
    """
    target = _validate.non_negative(epsilon=epsilon)
    direction = _gaussian(_validate.non_negative(mu=mu))
    return exp_up(characteristic.log_delta_bounds(direction, target).upper)


def delta_from_pair(epsilon: float, delta: float, *, other_epsilon: float) -> float:
    """Return the delta at another epsilon that (epsilon, delta) implies.

    For a smaller e' it is 1 - (1 - delta) (1 + exp(e')) / (1 + exp(epsilon)), by the mechanism that
    dominates all others (Kairouz, Oh and Viswanath 2015); for a larger e' it is delta itself.

    >>> print(f"{delta_from_pair(1.0, 1e-6, other_epsilon=0.0):.6f}")
    0.462118
    """
    e = _validate.non_negative(epsilon=epsilon)
    other = _validate.non_negative(other_epsilon=other_epsilon)
    delta = _validate.below_one(delta=delta)
    if other >= e:
        return delta
    # This is 1 - (1 + exp(e')) / (1 + exp(e)), written without overflow.
    gap = -math.expm1(other - e) / (1 + math.exp(-e))
    return min(1.0, _up(gap + delta * (1 - gap)))
