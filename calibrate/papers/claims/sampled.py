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
from dpcal.calibrate.papers.kernel import terms as t

HIGHEST = 256  # order whose divergence is written as a sum; a sum has at most 400 addends


def at_whole_order(order: int, q: t.Term, u: t.Term) -> t.Term:
    """Return the divergence of an answer at a whole order (Mironov, Talwar and Zhang 2019, 3.3).

    It is ``log(sum_k C(order, k) (1 - q)^(order - k) q^k exp((k^2 - k) u/2))/(order - 1)``, the
    larger one of both directions.
    """
    if q == t.ONE:
        return t.times(t.number(Fraction(order, 2)), u)
    rows = []
    for k in range(order + 1):
        chance = t.times(_whole_power(t.minus(t.ONE, q), order - k), _whole_power(q, k))
        growth = ("exp", t.times(t.number(Fraction(k * k - k, 2)), u)) if k > 1 else t.ONE
        rows.append(t.times(t.number(math.comb(order, k)), chance, growth))
    return t.times(t.number(Fraction(1, order - 1)), ("log", t.plus(*rows)))


def _whole_power(base: t.Term, count: int) -> t.Term:
    return t.power(base, t.number(count)) if count else t.ONE


def upper_bound(order: t.Term, q: t.Term, u: t.Term) -> t.Term:
    """Return the bound ``2 q^2 order u`` on the divergence, which needs :func:`conditions`."""
    return (
        t.times(order, u, t.number("1/2")) if q == t.ONE else t.times(t.number(2), q, q, order, u)
    )


def conditions(order: t.Term, q: t.Term, u: t.Term) -> list[Relation]:
    """Return the conditions of :func:`upper_bound` (Mironov, Talwar and Zhang 2019, Theorem 11)."""
    if q == t.ONE:
        return [Relation(t.ONE, "<", order)]
    rest = t.minus(order, t.ONE)
    spread = ("log", t.plus(t.ONE, t.over(t.ONE, t.times(q, rest))))
    half = t.number("1/2")
    first = t.plus(t.times(half, t.over(spread, u)), ("log", u))
    second = t.plus(
        t.times(half, t.over(t.power(spread, t.number(2)), u)), ("log", u), t.negative(_LOG5)
    )
    return [
        Relation(t.ONE, "<", order),
        Relation(t.times(t.number(5), q), "<=", t.ONE),
        Relation(t.times(t.number(16), u), "<=", t.ONE),
        Relation(order, "<=", first),
        Relation(
            t.times(order, t.plus(spread, ("log", t.times(q, order)), t.times(half, u))),
            "<=",
            second,
        ),
    ]


_LOG5: t.Term = ("log", t.number(5))


def converted(cost: t.Term, order: t.Term, delta: t.Term) -> t.Term:
    """Return the epsilon at a delta of a divergence at an order.

    A number as order takes the bound of Canonne, Kamath and Steinke (2020, Proposition 12), any
    other term the simpler one of Mironov (2017, Proposition 3), which is larger.
    """
    rest = t.minus(order, t.ONE)
    if order[0] != "num":
        return t.plus(cost, t.over(("log", t.over(t.ONE, delta)), rest))
    gain = ("log", t.over(rest, order))
    return t.plus(cost, gain, t.negative(t.over(("log", t.times(delta, order)), rest)))


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
