"""Renyi divergences of Gaussian answers about Poisson samples, and their events.

An answer has noise z times its sensitivity, on a sample that holds a record with probability q;
u is 1/z**2. Relation: add or remove one. The divergences of an order add up over answers.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> from dpcal.calibrate.papers.kernel import balls
>>> cost = at_whole_order(2, parse("1/100"), parse("1/16"))
>>> balls.value(cost, {}).str(6, radius=False)
'6.44943e-6'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpcal.accountants.events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dpcal.calibrate.papers.claims.ranges import Relation
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    times,
)

__all__ = [
    "HIGHEST",
    "at_whole_order",
    "conditions",
    "converted",
    "event_of",
    "rounded",
    "upper_bound",
]

HIGHEST = 256  # order whose divergence is written as a sum; a sum has at most 400 addends


def at_whole_order(order: int, q: Term, u: Term) -> Term:
    """Return the divergence of an answer at a whole order (Mironov, Talwar and Zhang 2019, 3.3).

    It is ``log(sum_k C(order, k) (1 - q)^(order - k) q^k exp((k^2 - k) u/2))/(order - 1)``, the
    larger one of both directions.
    """
    if q == ONE:
        return times(number(Fraction(order, 2)), u)
    rows = []
    for k in range(order + 1):
        chance = times(_whole_power(minus(ONE, q), order - k), _whole_power(q, k))
        growth = ("exp", times(number(Fraction(k * k - k, 2)), u)) if k > 1 else ONE
        rows.append(times(number(math.comb(order, k)), chance, growth))
    return times(number(Fraction(1, order - 1)), ("log", plus(*rows)))


def _whole_power(base: Term, count: int) -> Term:
    return power(base, number(count)) if count else ONE


def upper_bound(order: Term, q: Term, u: Term) -> Term:
    """Return the bound ``2 q^2 order u`` on the divergence, which needs :func:`conditions`."""
    return times(order, u, number("1/2")) if q == ONE else times(number(2), q, q, order, u)


def conditions(order: Term, q: Term, u: Term) -> list[Relation]:
    """Return the conditions of :func:`upper_bound` (Mironov, Talwar and Zhang 2019, Theorem 11)."""
    if q == ONE:
        return [Relation(ONE, "<", order)]
    rest = minus(order, ONE)
    spread = ("log", plus(ONE, over(ONE, times(q, rest))))
    half = number("1/2")
    first = plus(times(half, over(spread, u)), ("log", u))
    second = plus(times(half, over(power(spread, number(2)), u)), ("log", u), negative(_LOG5))
    return [
        Relation(ONE, "<", order),
        Relation(times(number(5), q), "<=", ONE),
        Relation(times(number(16), u), "<=", ONE),
        Relation(order, "<=", first),
        Relation(
            times(order, plus(spread, ("log", times(q, order)), times(half, u))), "<=", second
        ),
    ]


_LOG5: Term = ("log", number(5))


def converted(cost: Term, order: Term, delta: Term) -> Term:
    """Return the epsilon at a delta of a divergence at an order.

    A number as order takes the bound of Canonne, Kamath and Steinke (2020, Proposition 12), any
    other term the simpler one of Mironov (2017, Proposition 3), which is larger.
    """
    rest = minus(order, ONE)
    if order[0] != "num":
        return plus(cost, over(("log", over(ONE, delta)), rest))
    gain = ("log", over(rest, order))
    return plus(cost, gain, negative(over(("log", times(delta, order)), rest)))


def event_of(rows: Sequence[Sequence[Any]], outward: bool) -> DpEvent:
    """Return answers with numbers as an event, rounded to floating point on one side.

    Parameters
    ----------
    rows
        For each kind of answer enclosures, in balls, of its noise multiplier, count and
        probability.
    outward
        Whether the event costs at least as much as the answers; otherwise at most as much.
    """
    events: list[DpEvent] = []
    for noise, count, chance in rows:
        multiplier = rounded(noise, up=not outward)
        answers = _count(count, up=outward)
        q = min(rounded(chance, up=outward), 1.0)
        one: DpEvent = GaussianDpEvent(multiplier)
        if q < 1:
            one = PoissonSampledDpEvent(q, one)
        if answers:
            events.append(SelfComposedDpEvent(one, answers))
    return ComposedDpEvent(events)


def rounded(ball: Any, up: bool) -> float:
    """Return a float that is certainly at least, or at most, the value of a ball."""
    end = ball.upper() if up else ball.lower()
    return math.nextafter(float(end), math.inf if up else 0.0) if float(end) != end else float(end)


def _count(ball: Any, up: bool) -> int:
    return math.ceil(rounded(ball, True)) if up else math.floor(rounded(ball, False))
