"""The laws of a composition by the one rule: both directions and all epsilons from one of them.

>>> from dpcal.accountants.certificates.proofs import Grid
>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = OrderProof(0.0, 1000, 0.0, (Use(0.0, 0, Grid(1.0, 0, 200)),))
>>> with balls.workprec(128):
...     lower, upper = proof.bounds(((Laplace(2.0), 3),), balls.arb(1))
>>> print(lower.str(3, radius=False), upper.str(3, radius=False))
0.0691 0.0691
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.cost import FUNCTION, TERM
from dpcal.accountants.certificates.order import (
    MAX_NODES_OF_LAW,
    Cell,
    Law,
    gathered,
    power,
    spread,
)
from dpcal.accountants.certificates.pairs import Outcomes, oriented, pair_of
from dpcal.accountants.certificates.proofs import (
    GRID,
    MAX_PARTS,
    MAX_POINTS,
    SCORES,
    Grid,
    Interval,
    Parts,
    Proof,
    Scores,
)
from dpcal.accountants.certificates.schema import (
    Reader,
    list_of,
    not_negative,
    number,
    one_of_shapes,
    optional,
    shape_of,
    whole,
)
from dpcal.accountants.losses.base import PrivacyLoss

__all__ = ["MAX_LEVEL", "OrderProof", "Use"]

# Most doublings of a grid's step.
MAX_LEVEL = 64
# Units of a node of a law at each doubling: two products of polynomials, and a coarser grid.
_NODE = 160
# Digits of a number of batches, as many as are multiplied.
_BITS_OF_BATCHES = 62
# Bits that a mass must have before a group may end with it.
_LEAST_BITS = 30
# A loss, the number of its uses, and whether it is that of the other direction.
Part = tuple[PrivacyLoss, int, bool]


def _law(value: Any, name: str) -> Any:
    return shape_of("a law of answers", OrderProof)(value, name)


@dataclass(frozen=True)
class Batch:
    """How answers about a random batch are put on a grid.

    Attributes
    ----------
    law
        The proof by which the ratio of all answers has laws.
    ratios
        The multiples on which the ratios of an epoch's batches are summed; None for a sample.
    """

    law: Annotated[Any, _law]
    ratios: Annotated[Grid | None, optional(GRID)]

    @property
    def points(self) -> int:
        """Most nodes of the law of all answers."""
        return int(self.law.nodes)


_BATCH = shape_of("a batch", Batch)


def _cells_of(value: Mapping[str, Any]) -> Reader:
    return _BATCH if "law" in value else SCORES if "places" in value else GRID


@dataclass(frozen=True)
class Use:
    """How one part of a composition is put on a grid.

    Attributes
    ----------
    offset
        Logarithm of a node of the grid below, for a part without a lattice of its own; the grid
        above has the least ratio as a node.
    level
        How often its grid is twice as coarse as the finest.
    cells
        The cells into which its outcomes are cut.
    """

    offset: Annotated[float, number()]
    level: Annotated[int, whole(0, MAX_LEVEL)]
    cells: Annotated[Grid | Scores | Batch, one_of_shapes(_cells_of, "a grid, scores or a batch")]


@dataclass(frozen=True)
class OrderProof(Proof):
    """Both bounds on delta, by laws on grids above and below the likelihood ratio in convex order.

    Attributes
    ----------
    step
        Step > 0 of the finest grid of logarithms of ratios; 0 for one of which the lattice of the
        first part that has one is as much coarser as that part's ``level`` says.
    nodes
        Most nodes of a law, which is made coarser until it has no more.
    tail
        Mass in [0, 1) that laws may cut off, roughly.
    uses
        How each part is put on a grid.
    """

    NAME = "convex order"

    step: Annotated[float, not_negative]
    nodes: Annotated[int, whole(2, MAX_POINTS)]
    tail: Annotated[float, number("in [0, 1)", lambda x: 0 <= x < 1)]
    uses: Annotated[tuple[Use, ...], list_of(shape_of("a use", Use), 0, MAX_PARTS)]

    def fits(self, parts: Parts) -> bool:
        """Return whether the outcomes of each part may be cut into its cells."""
        return len(self.uses) == len(parts) and all(
            pair_of(loss).fits(item.cells) for (loss, _), item in zip(parts, self.uses, strict=True)
        )

    def work(self, parts: Parts) -> float:
        """Return the work of cells, of nodes, and of products on either side."""
        total = 0.0
        for (loss, times), item in zip(parts, self.uses, strict=True):
            pair = pair_of(loss)
            total += FUNCTION * pair.work_of_cell * pair.size(item.cells)
            total += _NODE * self.nodes * (times.bit_length() + item.level)
            total += TERM * _BITS_OF_BATCHES * pair.terms(item.cells)
        return 2 * total

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
            if proves in (name, "both") and self.fits(parts):
                # Numbers may be so bad that no place on a grid is a number.
                with contextlib.suppress(ArithmeticError, LookupError, ValueError):
                    law = _law_of(told, self, rounded, balls.ctx.prec, bool(side))
                    if law is not None:
                        found[side] = law.delta(epsilon, forward)
        return found[0], balls.arb.min(found[1], balls.arb(1))


def law_of(parts: Parts, proof: OrderProof, rounded: bool, above: bool) -> Law | None:
    """Return the law of a composition in its own direction; None if none is known on this side."""
    told = tuple(
        (each, times, way is False) for loss, times in parts for each, way in [oriented(loss)]
    )
    return _law_of(told, proof, rounded, balls.ctx.prec, above)


@lru_cache(maxsize=8)
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

    known_cells = list(_of_mass(outcomes.cells))
    if len(known_cells) > 1:
        (q, p), last = known_cells[-2:]
        far = place_of((last[1] / last[0]).log()) - place_of((p / q).log())
        if not far < MAX_NODES_OF_LAW / 2:
            known_cells = _joined(known_cells, p / q * step.exp())
    cells: list[Cell] = [(place_of((p / q).log()), q, p) for q, p in known_cells]
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
