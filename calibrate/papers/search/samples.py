"""Terms in floating point at points of a context, so that no time goes to subgoals that are false.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> from dpcal.calibrate.papers.kernel.context import Context
>>> here = Context({"x": "+"}, ((parse("x - 2"), False),))
>>> may_hold(here, parse("x - 1")), may_hold(here, parse("3 - x"))
(True, False)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.terms import Term, subterms

_TRIED, _KEPT = 400, 24
_AT_AN_END = 0.2
_HIGHEST = 700.0  # largest exponent with a finite exponential in floats
_ERROR = 1e-9  # error of a sum, relative to its largest addend
FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": lambda x: math.exp(x) if x < _HIGHEST else math.inf,
    "log": math.log,
    "abs": abs,
    "floor": math.floor,
    "ceiling": math.ceil,
    "erf": math.erf,
    "erfc": math.erfc,
    "sin": math.sin,
    "cos": math.cos,
    "gamma": math.gamma,
    "pi": lambda: math.pi,
    "pow": math.pow,
    "max": max,
    "min": min,
    "mul": lambda *parts: math.prod(parts),
    "add": lambda *parts: math.fsum(parts),
}
FAILURES = (ArithmeticError, ValueError, KeyError)


def program(*terms: Term) -> Callable[[Mapping[str, float]], list[float]]:
    """Return a function that gives the values of terms; each distinct part is computed once."""
    places: dict[Term, int] = {}
    steps: list[tuple[Any, Any]] = []

    def place(term: Term) -> int:
        if term not in places:
            head, *parts = term
            leaf = head in ("num", "sym")
            steps.append((head, parts[0] if leaf else [place(part) for part in parts]))
            places[term] = len(steps) - 1
        return places[term]

    wanted = [place(term) for term in terms]

    def values(point: Mapping[str, float]) -> list[float]:
        found: list[float] = []
        for head, parts in steps:
            if head == "num":
                found.append(float(parts))
            elif head == "sym":
                found.append(point[parts])
            else:
                found.append(FUNCTIONS[head](*[found[k] for k in parts]))
        return [found[k] for k in wanted]

    return values


def may_hold(context: Context, term: Term, strict: bool = False) -> bool:
    """Return False if a term is clearly negative, or zero, at a point where all facts hold."""
    sums = [addend for part in subterms(term) if part[0] == "add" for addend in part[1:]]
    values = program(term, *sums)
    for point in _points(context):
        try:
            value, *addends = values(point)
            # A product or a power may be zero in floating point only.
            if strict and value == 0 and term[0] in ("add", "sym"):
                return False
            largest = max(map(abs, addends), default=0.0) + 1e-12
            if value < -_ERROR * largest or value == -math.inf:
                return False
        except FAILURES:
            continue
    return True


def _points(context: Context) -> list[dict[str, float]]:
    """Return points of the context's domain; few, or none, where the facts are narrow."""
    found: Any = context.__dict__.get("samples")
    if found is None:
        generator, found = random.Random(0), []
        values = program(*(fact for fact, _ in context.facts))
        for _ in range(_TRIED):
            point = {name: _drawn(context, name, generator) for name in context.signs}
            with suppress(*FAILURES):
                rows = zip(values(point), context.facts, strict=True)
                if all(value > 0 or (value == 0 and not strict) for value, (_, strict) in rows):
                    found.append(point)
            if len(found) == _KEPT:
                break
        context.__dict__["samples"] = found
    return list(found)


def _drawn(context: Context, name: str, generator: random.Random) -> float:
    low, high = (None if end is None else float(end) for end in context.box[name])
    ends = [end for end in (low, high) if end or (end == 0 and context.signs[name] != "+")]
    if ends and generator.random() < _AT_AN_END:
        return generator.choice(ends)
    if low is not None and high is not None:
        near = generator.choice((1.0, 1.0, 1e-3))
        share = near * generator.random()
        return low + (high - low) * (share if generator.random() < 0.7 else 1 - share)
    size = float(10.0 ** generator.uniform(-3, 2))
    if low is not None:
        return low + size
    return (high or 0.0) - size if high is not None or generator.random() < 0.5 else size
