"""The laws of a composition by the one rule: both directions and all epsilons from one of them.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = OrderProof(bits=128, step=0.005, nodes=1000, tail=0.0, top=9.0)
>>> with balls.workprec(128):
...     lower, upper = proof.bounds(((Laplace(2.0), 3),), balls.arb(1))
>>> print(lower.str(3, radius=False), upper.str(3, radius=False))
0.0691 0.0691
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.order import (
    MAX_NODES_OF_LAW,
    Cell,
    Law,
    gathered,
    power,
    spread,
)
from dpcal.accountants.certificates.pairs import Grid, Limits, Outcomes, Pair, oriented, pair_of
from dpcal.accountants.certificates.proofs import Interval, Parts, Proof
from dpcal.accountants.losses.base import PrivacyLoss

__all__ = ["OrderProof", "law_of", "work_of_laws"]

# Most doublings of a grid's step.
_MAX_LEVEL = 64
# Units of a node of a law at each doubling: two products of polynomials, and a coarser grid.
_NODE = 160
# Bits that a mass must have before a group may end with it.
_LEAST_BITS = 30
# Mass under P of a largest ratio that is a node.
_ATOM = 0.02
# A loss, the number of its uses, and whether it is that of the other direction.
Part = tuple[PrivacyLoss, int, bool]


@dataclass(frozen=True)
class OrderProof(Limits, Proof):
    """Both bounds on delta, by laws on grids above and below the ratio in convex order."""

    NAME = "convex order"

    def fits(self, parts: Parts) -> bool:
        """Return whether laws of all losses are known."""
        return all(pair_of(loss) for loss, _ in parts)

    def work_at_128(self, parts: Parts) -> float:
        """Return the work of cells, of nodes, and of products on either side."""
        return 2 * work_of_laws(parts, self)

    def bounds(
        self, parts: Parts, epsilon: Ball, *, rounded: bool = False, proves: str = "both"
    ) -> Interval:
        """Return bounds on delta by laws of the likelihood ratio."""
        known = [(*oriented(loss), times) for loss, times in parts]
        forward = all(way for _, way, _ in known if way is not None)
        forward = forward or any(way for _, way, _ in known)
        told = tuple((loss, times, way is False and forward) for loss, way, times in known)
        found = [balls.arb(0), balls.arb(1)]
        for side, name in enumerate(("lower", "upper")):
            if proves in (name, "both"):
                # Numbers may be so bad that no place on a grid is a number.
                with contextlib.suppress(ArithmeticError, LookupError, ValueError):
                    law = _law_of(told, self, rounded, balls.ctx.prec, bool(side))
                    if law is not None:
                        found[side] = law.delta(epsilon, forward)
        return found[0], balls.arb.min(found[1], balls.arb(1))


def work_of_laws(parts: Parts, limits: Limits) -> float:
    """Return the work of the law of a composition on one side."""
    total = 0.0
    for loss, times in parts:
        pair = pair_of(loss)
        level = max(0.0, math.log2(max(pair.span(limits) / limits.step / limits.nodes, 1.0)))
        total += pair.work(limits) + _NODE * limits.nodes * (times.bit_length() + level)
    return total


def law_of(parts: Parts, limits: Limits, rounded: bool, above: bool) -> Law | None:
    """Return the law of a composition in its own direction; None if none is known on this side."""
    told = tuple(
        (each, times, way is False) for loss, times in parts for each, way in [oriented(loss)]
    )
    return _law_of(told, limits, rounded, balls.ctx.prec, above)


@lru_cache(maxsize=8)
def _law_of(
    parts: tuple[Part, ...], limits: Limits, rounded: bool, bits: int, above: bool
) -> Law | None:
    """Return the law of a composition; None if none is known on this side."""
    zero, one, tail = balls.arb(0), balls.arb(1), limits.tail / max(len(parts), 1)
    pairs = [pair_of(loss, rounded, above) for loss, _, _ in parts]
    # The finest grid refines the lattice of the first part that has one.
    step, fineness, base = balls.arb(limits.step), 0, None
    for index, pair in enumerate(pairs):
        if pair.lattice is not None:
            finer = math.log2(max(float((pair.lattice[1] / step).mid()), 1.0))
            fineness = 1 << min(math.ceil(finer), _MAX_LEVEL)
            step, base = pair.lattice[1] / fineness, index
            break
    found = Law(above, zero, step, 0, 0, [one], zero, zero)
    for index, ((_, times, other), pair) in enumerate(zip(parts, pairs, strict=True)):
        nodes = pair.span(limits) / float(step.mid()) / max(limits.nodes - 8, 1)
        level = min(max(math.ceil(math.log2(max(nodes, 1.0))), 0), _MAX_LEVEL)
        once = _once(pair, limits, (step, level, fineness * (index == base)), above, other)
        if once is None:
            return None
        once = once.trimmed(tail / (2 * times * times.bit_length())).at_most(limits.nodes)
        several = power(once, times, limits.nodes, tail)
        found = several if len(parts) == 1 else found.times(several, tail).at_most(limits.nodes)
    return found


def _once(
    pair: Pair, limits: Limits, scale: tuple[Ball, int, int], above: bool, other: bool
) -> Law | None:
    """Return the law of one use on the grid of a step, a level and a fineness, in either order."""
    step, level, fineness = scale
    width, lattice = step * 2**level, None if other else pair.lattice
    offset = (-pair.least if other else pair.least) if lattice is None else lattice[0]
    # The nodes of a pair that is turned around are not those of the outcomes.
    spacing = Fraction(0 if other else fineness, 2**level)
    own = pair.least if pair.lattice is None else pair.lattice[0]
    outcomes = pair.outcomes(Grid(own, width, spacing, limits), above)
    if other:
        if not above and outcomes.points:
            return None
        outcomes = outcomes.reversed
    empty = Law(above, offset, step, level, 0, [], outcomes.lost, outcomes.infinite)
    return spread(empty, outcomes.points) if above else _gathered(outcomes, empty, lattice is None)


def _gathered(outcomes: Outcomes, empty: Law, is_free: bool) -> Law:
    """Return the law below; if its offset is free, it is where most of the mass is at a node."""
    cells, unknown = _of_mass(outcomes.cells)
    placed = [(place, mass) for _, mass, place in outcomes.points if place is not None]
    logs = [(p / q).log() for q, p in cells]
    free = [(at, q) for at, q, place in outcomes.points if place is None]
    cells += [(q, q * at.exp()) for at, q in free]
    logs += [at for at, _ in free]
    order = sorted(range(len(cells)), key=lambda k: float(logs[k].mid()))
    cells, logs = [cells[k] for k in order], [logs[k] for k in order]
    step = empty.step * 2**empty.level
    if is_free and not placed and cells:
        empty = _at_least_ratios(empty, cells, logs)
    if len(cells) > 1 and not (logs[-1] - logs[-2]) / step < MAX_NODES_OF_LAW / 2:
        cells = _joined(cells, (logs[-2] + step).exp())
        logs = [*logs[: len(cells) - 1], (cells[-1][1] / cells[-1][0]).log()]

    def place_of(at: Ball) -> float:
        return float(((at - empty.offset) / step).mid())

    rows: list[Cell] = [(place_of(at), q, p) for at, (q, p) in zip(logs, cells, strict=True)] + [
        (place, mass, None) for place, mass in placed
    ]
    rows.sort(key=lambda row: row[0])
    law = gathered(rows, empty.node).on_nodes(empty)
    return replace(law, lost=law.lost + unknown)


def _at_least_ratios(empty: Law, cells: list[tuple[Ball, Ball]], logs: list[Ball]) -> Law:
    """Return the grid with a node at the mean of all ratios that are nearly the least one.

    Rare samples tell nearly always as little. What is left of such a group, up to the next node
    above it, must have as much beyond that node to be gathered with.
    """
    losses = np.array([float(at.mid()) for at in logs])
    of_q = np.array([float(q.mid()) for q, _ in cells])
    chosen = [len(cells) - 1]
    # No mass is above a largest ratio, to be gathered with.
    if of_q[-1] * math.exp(min(losses[-1], 700.0)) <= _ATOM:
        step = float((empty.step * 2**empty.level).mid())
        beyond = losses - float(empty.offset.mid()) - step
        if beyond[0] < -1.5 * step:
            return empty
        over = of_q * np.expm1(np.minimum(beyond, 700.0))
        lacking = -np.cumsum(np.where(beyond < 0, over, 0.0)[::-1])[::-1]
        is_small = (beyond < -step / 2) | (lacking > over[beyond > 0].sum() / 2)
        chosen = np.flatnonzero(is_small & (beyond < 0)).tolist()
    q, p = (sum((cells[k][side] for k in chosen), balls.arb(0)) for side in (0, 1))
    # A node that is not below the mean, where all of these ratios are one.
    nearest = math.nextafter(float((p / q).log().upper()), math.inf)
    return replace(empty, offset=balls.arb(nearest)) if math.isfinite(nearest) else empty


def _joined(cells: list[tuple[Ball, Ball]], ratio: Ball) -> list[tuple[Ball, Ball]]:
    """Return ascending cells of which the last one is joined with others until it has a ratio."""
    *kept, (q, p) = cells
    while kept:
        a, b = kept.pop()
        share = balls.arb(((p - ratio * q) / (ratio * a - b)).mid())
        if 0 <= share < 1:
            return [*kept, (a - share * a, b - share * b), (q + share * a, p + share * b)]
        q, p = q + a, p + b
    return [(q, p)]


def _of_mass(cells: list[tuple[Ball, Ball]]) -> tuple[list[tuple[Ball, Ball]], Ball]:
    """Return cells, each joined to others until its masses are known to some digits.

    The second value is mass that is in none of them.
    """
    found: list[tuple[Ball, Ball]] = []
    q, p = balls.arb(0), balls.arb(0)
    for mass, moment in cells:
        q, p = q + mass, p + moment
        if all(item > 0 and item.rel_accuracy_bits() > _LEAST_BITS for item in (q, p)):
            found.append((q, p))
            q, p = balls.arb(0), balls.arb(0)
    if not found:
        return [], q
    last, moment = found.pop()
    return [*found, (last + q, moment + p)], balls.arb(0)
