"""The laws of a composition by the one rule: both directions and all epsilons from one of them.

>>> from dpcal.accountants.certificates.proofs import Grid, Use
>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = OrderProof(0.0, 1000, 0.0, (Use(0.0, 0, Grid(1.0, 0, 200)),))
>>> with balls.workprec(128):
...     lower, upper = order_bounds(proof, [(Laplace(2.0), 3)], balls.arb(1), "both", False, 128)
>>> print(lower.str(3, radius=False), upper.str(3, radius=False))
0.0691 0.0691
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.order import Cell, Law, gathered, power, spread
from dpcal.accountants.certificates.pairs import Outcomes, oriented, pair_of
from dpcal.accountants.certificates.proofs import OrderProof
from dpcal.accountants.losses.base import PrivacyLoss

__all__ = ["order_bounds"]

# Bits that a mass must have before a group may end with it.
_LEAST_BITS = 30
# A loss, the number of its uses, and whether it is that of the other direction.
Part = tuple[PrivacyLoss, int, bool]


def order_bounds(
    proof: OrderProof,
    losses: Sequence[tuple[PrivacyLoss, int]],
    epsilon: Ball,
    proves: str,
    rounded: bool,
    bits: int,
) -> tuple[Ball, Ball]:
    """Return bounds on delta by laws of the likelihood ratio, at the current precision, ``bits``.

    A bound that is not wanted is 0 or 1.
    """
    known = [(*oriented(loss), times) for loss, times in losses]
    forward = all(way for _, way, _ in known if way is not None)
    forward = forward or any(way for _, way, _ in known)
    parts = tuple((loss, times, way is False and forward) for loss, way, times in known)
    bounds = [balls.arb(0), balls.arb(1)]
    for side, name in enumerate(("lower", "upper")):
        if proves in (name, "both"):
            # Numbers may be so bad that no place on a grid is a number.
            with contextlib.suppress(ArithmeticError, LookupError, ValueError):
                law = _law_of(parts, proof, rounded, bits, bool(side))
                if law is not None:
                    bounds[side] = law.delta(epsilon, forward)
    return bounds[0], balls.arb.min(bounds[1], balls.arb(1))


@lru_cache(maxsize=4)
def _law_of(
    parts: tuple[Part, ...], proof: OrderProof, rounded: bool, bits: int, above: bool
) -> Law | None:
    """Return the law of a composition; None if none is known on this side."""
    zero, one = balls.arb(0), balls.arb(1)
    pairs = [pair_of(loss, rounded, above) for loss, _, _ in parts]
    own = [pair.lattice(item.cells) for pair, item in zip(pairs, proof.uses, strict=True)]
    base, step = _finest(proof, own)
    if step is None or (above and not all(pair.has_upper for pair in pairs)):
        return None
    found = Law(above, zero, step, 0, 0, [one], zero, zero)
    for index, ((_, times, other), pair, item) in enumerate(
        zip(parts, pairs, proof.uses, strict=True)
    ):
        outcomes = pair.outcomes(item.cells, above=above)
        if other and not above and outcomes.points:
            return None
        outcomes = outcomes.reversed if other else outcomes
        lattice = own[index]
        offset = balls.arb(item.offset) if lattice is None or other else lattice[0]
        if above and lattice is None:
            offset = -pair.least if other else pair.least
        empty = Law(above, offset, step, item.level, 0, [], outcomes.lost, outcomes.infinite)
        once = _on_grid(outcomes, empty, index == base)
        tail = proof.tail / len(parts)
        once = once.trimmed(tail / (2 * times * times.bit_length())).at_most(proof.nodes)
        several = power(once, times, proof.nodes, tail)
        found = several if len(parts) == 1 else found.times(several, tail).at_most(proof.nodes)
    return found


def _finest(
    proof: OrderProof, own: list[tuple[Ball, Ball] | None]
) -> tuple[int | None, Ball | None]:
    """Return which part's lattice the finest grid refines, and its step; None if there is none."""
    if proof.step > 0 or not own:
        return None, balls.arb(proof.step or 1)
    for index, (lattice, item) in enumerate(zip(own, proof.uses, strict=True)):
        if lattice is not None:
            return index, lattice[1] / 2**item.level
    return None, None


def _on_grid(outcomes: Outcomes, empty: Law, own: bool) -> Law:
    """Return the law of one use, of points whose own lattice it may be."""

    def known(place: int | None) -> int | None:
        # The first node of a lattice is one of each of its grids.
        return place if own or place == 0 else None

    if empty.above:
        return spread(empty, ((at, q, known(k)) for at, q, k in outcomes.points))
    step = empty.step * 2**empty.level

    def place_of(at: Ball) -> float:
        return float(((at - empty.offset) / step).mid())

    cells: list[Cell] = [(place_of((p / q).log()), q, p) for q, p in _of_mass(outcomes.cells)]
    for at, mass, k in outcomes.points:
        place = known(k)
        if place is not None:
            cells.append((place, mass, None))
            continue
        near = round(place_of(at))
        is_node = at - empty.offset - near * step == 0
        cells.append((near, mass, None) if is_node else (place_of(at), mass, mass * at.exp()))
    cells.sort(key=lambda cell: cell[0])
    return gathered(cells, empty.node).on_nodes(empty)


def _of_mass(cells: list[tuple[Ball, Ball]]) -> Iterator[tuple[Ball, Ball]]:
    """Yield cells, each joined to others until its masses are known to some digits."""
    q, p, last = balls.arb(0), balls.arb(0), None
    for mass, moment in cells:
        q, p = q + mass, p + moment
        if all(item > 0 and item.rel_accuracy_bits() > _LEAST_BITS for item in (q, p)):
            if last is not None:
                yield last
            last, q, p = (q, p), balls.arb(0), balls.arb(0)
    if last is not None:
        yield last[0] + q, last[1] + p
