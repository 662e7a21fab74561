"""Points at which a goal may fail, by descent on its gap in logarithmic coordinates.

Random points miss a goal that fails in a narrow place, far away, or where two sides touch. A
minimizer goes there in floating point; its result is rounded to few digits, and balls decide about
this exact point. Limits are numbers of evaluations, so that a busy machine finds the same points.

>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.claims.notation import line
>>> dip = line("1/1000 <= (x - 217/100)**2 + y where x in [0, 9], y in [0, 9]")
>>> claim = standalone(dip)
>>> {name: str(value) for name, value in next(lowest(claim, claim.goals()[0])).items()}
{'x': '11/5', 'y': '0'}
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.ranges import Range, Relation
from dpcal.calibrate.papers.kernel.checker import contains
from dpcal.calibrate.papers.search.points import within
from dpcal.calibrate.papers.search.samples import FAILURES, program

Point = dict[str, Fraction]
STARTS = 8
EVALUATIONS = 200
DIGITS = (2, 4, 8, 17)
_FARTHEST = 300.0  # largest coordinate; its exponential and the square of this are floats
_OUTSIDE = 1e4
_TOUCHING = 1e-6  # largest gap that may be zero
_HUGE = Fraction(10) ** 390
_NEAR = 1e-9  # largest distance from a closed end that may be zero


def lowest(claim: Claim, goal: Relation) -> Iterator[Point]:
    """Yield exact points of the domain near the least values of a goal's gap, then its corners."""
    for point in _candidates(_Gap(claim, goal), claim.ranges()):
        if point and contains(claim, point):
            yield point


def _candidates(gap: _Gap, ranges: Mapping[str, Range]) -> Iterator[Point]:
    with contextlib.suppress(*FAILURES):
        yield from _descents(gap, ranges)
    for base in (_HUGE, 1 / _HUGE):
        for far in (*([name] for name in ranges), list(ranges)):
            one = Fraction(1)
            yield {s: within(r, base if s in far else one) for s, r in ranges.items()}


def _descents(gap: _Gap, ranges: Mapping[str, Range]) -> Iterator[Point]:
    for start in _starts(len(ranges)):
        at, least = gap.descended(ranges, {}, start)
        if least > _TOUCHING:
            continue
        for digits in DIGITS:
            for near in (_NEAR, 0.0):
                rows = zip(ranges.items(), at, strict=True)
                yield {s: _exact(r, t, digits, near) for (s, r), t in rows}
        if gap.sign == "<":
            yield from _touching(gap, ranges, at)


def _touching(gap: _Gap, ranges: Mapping[str, Range], at: Sequence[float]) -> Iterator[Point]:
    """Yield points where sides touch along a curve.

    Each symbol in turn gets two digits, and the others follow; the last one gets a small quotient.
    """
    fixed: Point = {}
    *names, last = ranges
    for name in names:
        fixed[name] = _exact(ranges[name], at[0], DIGITS[0], _NEAR)
        rest = {s: r for s, r in ranges.items() if s not in fixed}
        at, _ = gap.descended(rest, fixed, at[1:])
    for digits in DIGITS:
        found = _exact(ranges[last], at[0], DIGITS[-1], _NEAR)
        yield {**fixed, last: found.limit_denominator(10**digits)}


def _starts(size: int) -> Iterator[list[float]]:
    generator = random.Random(0)
    yield from ([at] * size for at in (0.0, -2.0, 5.0) if size)
    for k in range(STARTS - 3 if size else 0):
        scale = (1.0, 3.0, 10.0, 40.0)[k % 4]
        yield [generator.gauss(0.0, scale) for _ in range(size)]


class _Gap:
    """How far a goal is from failing, in floating point; points outside of the domain are worse."""

    def __init__(self, claim: Claim, goal: Relation) -> None:
        facts = (fact for fact, _ in claim.limits())
        self.sign, self.values = goal.sign, program(goal.left, goal.right, *facts)

    def __call__(self, point: Mapping[str, float]) -> float:
        """Return the logarithm of the sides' ratio, where it exists."""
        try:
            left, right, *facts = self.values(point)
            missed = [-fact for fact in facts if fact < 0]
            found = sum(_OUTSIDE * (1.0 + min(10.0, by)) for by in missed) + _apart(left, right)
        except FAILURES:
            return _OUTSIDE
        if not math.isfinite(found):
            return _OUTSIDE
        return -abs(found) if self.sign == "=" and not missed else found

    def descended(
        self, ranges: Mapping[str, Range], fixed: Mapping[str, Fraction], start: Sequence[float]
    ) -> tuple[list[float], float]:
        """Return the coordinates of the least gap that is found, and this gap."""
        known, first = {name: float(x) for name, x in fixed.items()}, np.array(start)

        def gap(at: Any) -> float:
            rows = zip(ranges.items(), at, strict=True)
            return self(
                {**known, **{name: math.fsum(_place(r, float(t))) for (name, r), t in rows}}
            )

        options: Any = {
            "maxfev": EVALUATIONS * len(start),
            "xatol": 1e-10,
            "fatol": 1e-14,
            "initial_simplex": np.vstack([first, first + np.eye(len(start))]),
        }
        found: Any = minimize(gap, first, method="Nelder-Mead", options=options)
        return [float(t) for t in found.x], float(found.fun)


def _apart(left: float, right: float) -> float:
    if left < 0 and right < 0:
        left, right = -right, -left
    if left > 0 and right > 0:
        return math.log(right) - math.log(left)
    gap = right - left
    return math.asinh(gap) + math.copysign(_FARTHEST, gap) if gap else 0.0


def _place(values: Range, t: float) -> tuple[Fraction, float]:
    """Return an end of a range, and the way from there, on a logarithmic scale."""
    low, high = values.low, values.high
    t = max(-_FARTHEST, min(_FARTHEST, t))
    if low is not None and high is not None:
        share = float(high - low) * math.exp(-abs(t)) / (1.0 + math.exp(-abs(t)))
        return (low, share) if t <= 0 else (high, -share)
    if low is not None:
        return low, math.exp(t)
    return (high, -math.exp(t)) if high is not None else (Fraction(0), math.sinh(t))


def _exact(values: Range, t: float, digits: int, near: float) -> Fraction:
    end, way = _place(values, t)
    if values.whole:
        return Fraction(round(end + way))
    closed = not (values.open_low if way > 0 else values.open_high)
    return end + (0 if closed and abs(way) < near else Fraction(f"{way:.{digits}g}"))
