"""Exact points of a claim's domain, for the search for a counterexample.

>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.claims.notation import line
>>> claim = standalone(line("x <= y where x in [0, 1], y in [2, 3]"))
>>> [str(value) for value in next(points(claim, 0)).values()]
['1', '2']
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.ranges import Range
from dpcal.calibrate.papers.kernel.checker import contains
from dpcal.calibrate.papers.kernel.normal import exact
from dpcal.calibrate.papers.kernel.terms import symbols

Point = dict[str, Fraction]
_HUGE = Fraction(10) ** 30
FIELD = 12  # points of the field's sizes, before others: a reader trusts a counterexample there
USUAL = 24  # points of smaller sizes, next; most counterexamples are among these two kinds


def points(claim: Claim, count: int, seed: int = 0) -> Iterator[Point]:
    """Yield points inside the domain: usual sizes, simple and random points."""
    for point in _candidates(claim, claim.ranges(), count, seed):
        if contains(claim, point):
            yield point


def witness(claim: Claim) -> Point | None:
    """Return a point of the domain, or None if no point is found."""
    return next(points(claim, 3000, seed=7), None)


def _candidates(claim: Claim, domain: dict[str, Range], count: int, seed: int) -> Iterator[Point]:
    generator = random.Random(seed)
    if any(values.whole for values in domain.values()):
        sizes = random.Random(seed)
        for k in range(FIELD + USUAL):
            yield {s: _usual(r, sizes, field=k < FIELD) for s, r in domain.items()}
    for base in (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(1, 1000), _HUGE, Fraction(0)):
        yield {s: within(r, base) for s, r in domain.items()}
    for k in range(count):
        point = {s: _draw(r, generator, k < count // 3) for s, r in domain.items()}
        yield _moved_inside(claim, domain, point) if k % 2 else point


def _usual(values: Range, generator: random.Random, field: bool) -> Fraction:
    """Return a size that a reader may have.

    In the field counts are 1e3 to 1e8 and probabilities 1e-9 to 1e-3; smaller counts go up to a
    million. Other numbers are near 1.
    """
    powers = range(-1, 2)
    if values.whole:
        powers = range(3, 9) if field else range(1, 7)
    elif field and values.low == 0 and values.high == 1:
        powers = range(-9, -2)
    return within(values, Fraction(10) ** generator.choice(powers))


def _moved_inside(claim: Claim, domain: dict[str, Range], point: Point) -> Point:
    """Set a lone side of each condition to twice or half the other side, to meet the condition."""
    point = dict(point)
    for small, _, large in claim.where:
        for lone, other, scale in ((large, small, Fraction(2)), (small, large, Fraction(1, 2))):
            if lone[0] == "sym" and lone[1] not in symbols(other):
                value = exact(other, point)
                if value is not None and value > 0:
                    point[lone[1]] = within(domain[lone[1]], value * scale)
                    break
    return point


def within(values: Range, wanted: Fraction) -> Fraction:
    """Return a value of a range, the wanted one if it is one."""
    low, high, open_low, open_high, whole = values
    if low is not None and (wanted < low or (wanted == low and open_low)):
        room = Fraction(1) if high is None else (high - low) / 2
        wanted = low + (room if open_low else Fraction(0))
    if high is not None and (wanted > high or (wanted == high and open_high)):
        room = Fraction(1) if low is None else (high - low) / 2
        wanted = high - (room if open_high else Fraction(0))
    return Fraction(math.ceil(wanted)) if whole else wanted


def _draw(values: Range, generator: random.Random, simple: bool) -> Fraction:
    low, high = values.low, values.high
    if low is not None and high is not None:
        if low > 0 and high / low > 1000:
            drawn = math.exp(generator.uniform(math.log(low), math.log(high)))
            return within(values, Fraction(f"{drawn:.3g}"))
        return within(values, low + (high - low) * Fraction(generator.randint(1, 63), 64))
    if simple:
        size = Fraction(generator.choice((1, 2, 3, 5, 10, 100)))
    else:
        digits = Fraction(generator.randint(100, 999), 100)
        size = digits * Fraction(10) ** generator.randint(0, 3)
    size = 1 / size if generator.random() < 0.5 else size
    if low is not None:
        return within(values, low + size)
    if high is not None:
        return within(values, high - size)
    return within(values, size if generator.random() < 0.5 else -size)
