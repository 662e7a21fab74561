r"""The one rule: laws on grids, above and below the likelihood ratio in convex order.

Let R = P / Q be the likelihood ratio of a composition, under Q, and K = exp(epsilon). Then

    delta = 1 - E min(K, R)        of P from Q,
    delta = 1 - K E min(1 / K, R)  of Q from P, which is the other direction.

R is the product of the ratios of all uses, and min(K, R) is concave in each of them, and rises with
each. *Lemma.* If R'_1, ..., R'_n are independent, and E g(R'_i) >= E g(R_i) for all i and all
concave g that rise, then E min(K, R') >= E min(K, R). *Proof.* Put in one R'_i after another: given
the others, min(K, R) is such a function of it. Hence a lower bound on delta, at every epsilon and
in both directions, if mass is *gathered* in groups, and each group is moved to a node at or above
its mean. An upper bound follows if mass is *spread* to two points with its mean kept; one of the
points may be 0 or infinity.

The nodes are exp(offset + k step). Laws of independent uses multiply as polynomials. A law of too
many nodes is made twice as coarse, by the same two moves.

>>> from dpcal.accountants.certificates.balls import workprec
>>> with workprec(128):
...     third = arb(1) / 3
...     answer = Law(True, arb(-1), arb(2), 0, [1 - third, third])
...     twice = answer.times(answer, 0.0)
...     print([mass.str(3, radius=False) for mass in twice.masses], float(twice.logs()[2][0]))
['0.444', '0.444', '0.111'] 2.0
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from dpcal.accountants.certificates.balls import Ball, arb, arb_poly, ctx

# Most nodes of any law; and nodes above its mean by which a group is raised before it is lost.
MAX_NODES_OF_LAW, _RAISED = 1 << 16, 64
_LEAST_BITS = 30
_ATOM = 0.02

# Masses of Q and P, logs of least and largest ratio: one ball if equal, None for 0 or infinity.
Cell = tuple[Ball, Ball, Ball, Ball]
Masses = defaultdict[int | None, Ball]


def _tiny() -> Ball:
    """Return a distance of ratios far above roundings and far below steps."""
    return arb(2) ** (40 - ctx.prec)


@dataclass(frozen=True)
class Law:
    """The law under Q of a ratio on a grid, above another one in convex order, or below it.

    Attributes
    ----------
    above
        Whether it bounds the ratio from above.
    offset, step
        The nodes are exp(offset + k step), k whole.
    first, masses
        The masses of the nodes k = first, first + 1, ....
    lost
        Mass at a ratio of 0 of a law above, at infinity of one below.
    infinite
        Mass under P of infinite ratios, of a law above.
    """

    above: bool
    offset: Ball
    step: Ball
    first: int
    masses: list[Ball]
    lost: Ball = 0
    infinite: Ball = 0

    def node(self, place: int) -> Ball:
        """Return a node, by its place."""
        return (self.offset + place * self.step).exp()

    def logs(self) -> list[tuple[Ball, Ball]]:
        """Return the logarithms of the nodes, and their masses."""
        places = enumerate(self.masses, self.first)
        return [(self.offset + place * self.step, mass) for place, mass in places]

    def times(self, other: Law, tail: float) -> Law:
        """Return the law of the product of independent ratios, without tails of this mass."""
        one: Law = self
        while one.step < other.step:
            one = one.coarser()
        while other.step < one.step:
            other = other.coarser()
        factor = arb_poly(one.masses)
        by = factor if other is self else arb_poly(other.masses)
        product = factor * by
        return replace(
            one,
            offset=one.offset + other.offset,
            first=one.first + other.first,
            masses=[product[k] for k in range(len(one.masses) + len(other.masses) - 1)],
            lost=one.lost + other.lost - one.lost * other.lost,
            infinite=one.infinite + other.infinite - one.infinite * other.infinite,
        ).trimmed(tail)

    def at_most(self, nodes: int) -> Law:
        """Return the law, made coarser until it has at most so many nodes, or 3.

        Mass on either side of the node 0 has three nodes on every grid.
        """
        found = self
        for _ in range(MAX_NODES_OF_LAW.bit_length()):
            if len(found.masses) <= max(nodes, 3):
                break
            found = found.coarser()
        return found

    def trimmed(self, tail: float) -> Law:
        """Return the law without nodes at either end that have at most this mass together.

        Above, their mass goes to the ratios 0 and infinity. Below, it goes to the least and the
        largest node that are kept. Nodes before the largest one give as much mass as keeps the
        mean.
        """
        low, (q, p) = self._end(range(len(self.masses)), tail)
        high, (r, s) = self._end(range(len(self.masses) - 1, low - 1, -1), tail)
        masses = self.masses[low : high + 1]
        kept = replace(self, first=self.first + low, masses=masses)
        if self.above:
            return replace(kept, lost=self.lost + q + r, infinite=self.infinite + p + s)
        masses[0] += q
        node = self.node(self.first + high)
        for place in reversed(range(len(masses) - 1)):
            below = self.node(kept.first + place)
            needed = arb(((s - r * node) / (node - below)).upper())
            if needed <= masses[place]:
                masses[place] -= needed
                masses[-1] += r + needed
                return kept
            r, s = r + masses[place], s + masses[place] * below
            masses[place] = arb(0)
        return replace(kept, lost=self.lost + r)

    def _end(self, places: range, tail: float) -> tuple[int, tuple[Ball, Ball]]:
        """Return the first node to keep at an end, and the masses under Q and P before it."""
        q = p = arb(0)
        for place in places[:-1]:
            more = self.masses[place]
            moment = more * self.node(self.first + place)
            if q + more > tail or p + moment > tail:
                return place, (q, p)
            q, p = q + more, p + moment
        return places[-1], (q, p)

    def coarser(self) -> Law:
        """Return the law on every second node."""
        masses, first = self.masses, self.first
        if first % 2:
            masses, first = [arb(0), *masses], first - 1
        step = self.step
        coarse = replace(self, step=2 * step, first=first // 2)
        if self.above:
            # The upper node takes this share of the mass between two nodes.
            share = 1 / (step.exp() + 1)
            moved = arb_poly(masses) * arb_poly([1 - share, 1, share])
            return replace(coarse, masses=[moved[k] for k in range(1, len(masses) + 2, 2)])
        return coarse.filled(_raised(mass, log) for log, mass in self.logs())

    def filled(self, cells: Iterable[tuple[Ball, Ball]]) -> Law:
        """Return the law below with cells, of masses under Q and P, gathered on nodes.

        These nodes are a little above the nodes of the law, so that no mass at a node is above it.
        """
        law = replace(self, offset=self.offset + _tiny())

        def place_of(ratio: Ball) -> float:
            return float(((ratio.log() - law.offset) / law.step).mid())

        return _on_nodes(gathered(cells, law.node, place_of), law)

    def delta(self, epsilon: Ball, forward: bool) -> Ball:
        """Return the bound on delta of P from Q, or of Q from P, at an epsilon."""
        K, one = epsilon.exp(), arb(1)
        if self.above:
            total = self.infinite if forward else self.lost
            for log, mass in self.logs():
                beyond = (log if forward else -log) - epsilon
                if not beyond <= 0:
                    gain = K * beyond.expm1() if forward else -(-beyond).expm1()
                    total += mass * arb.max(gain, arb(0))
            return total
        # Masses are rounded up and may add up to more than 1, which only makes the bound smaller.
        most, scale = (K, one) if forward else (one, K)
        kept = (mass * arb.min(most, scale * log.exp()) for log, mass in self.logs())
        return 1 - most * self.lost - sum(kept, arb(0))


def power(law: Law, times: int, nodes: int, tail: float) -> Law:
    """Return the law of a product of ``times`` >= 1 ratios, without tails of about this mass."""
    share = tail / (2 * times.bit_length())
    found: Law | None = None
    uses = 1
    while 2 * uses <= times:
        if times & uses:
            found = law if found is None else found.times(law, share).at_most(nodes)
        uses *= 2
        law = law.times(law, share * min(1.0, uses / times)).at_most(nodes)
    return law if found is None else found.times(law, share).at_most(nodes)


def spread(empty: Law, cells: Iterable[Cell]) -> Law:
    """Return a law above: cells moved to their ends, and these to nodes, with their means kept."""
    found, zero, tiny = Masses(int), arb(0), _tiny()
    width, lost, infinite = empty.step.expm1(), zero, zero

    def put(at: Ball | None, mass: Ball) -> None:
        nonlocal lost, infinite
        if at is None:
            lost += mass
            return
        nearest = round(float(((at - empty.offset) / empty.step).mid()))
        over = (at - empty.offset - nearest * empty.step).expm1()
        if not abs(over) < tiny:
            place = nearest if over > 0 else nearest - 1
            share = (at - empty.offset - place * empty.step).expm1() / width
            if share >= 0 and share <= 1:
                found[place] += mass * (1 - share)
                found[place + 1] += mass * share
                return
        # As much mass goes to 0 as the ratio may be below the node: the mean of the rest stays
        # above it.
        more = arb(abs(over).upper())
        less = arb.min(more, arb(1))
        found[nearest] += mass * (1 - less)
        lost += mass * less
        infinite += mass * empty.node(nearest) * (more + less)

    for q, p, u, v in cells:
        if u is v:
            put(u, q)
            continue
        if not _is_known(q):
            # Mass of few digits would count twice, at an end and beyond it.
            lost, infinite = lost + q, infinite + p
            continue
        low = zero if u is None else u.exp()
        more, high = arb.max(p - q * low, zero), zero
        if v is not None and (apart := v.exp() - low) > 0:
            high = arb.min(more / apart, q)
            put(v, high)
        else:
            infinite += more
        put(u, q - high)
    return _on_nodes(found, replace(empty, lost=lost, infinite=infinite))


def gather(empty: Law, cells: Iterable[Cell], is_free: bool) -> Law:
    """Return a law below: ascending cells in groups, if their masses are known to some digits.

    If its offset is free, most of the mass is at a node.
    """
    kept, lost = [], arb(0)
    for q, p, u, v in cells:
        if u is not v and _is_known(q) and _is_known(p):
            kept.append((q, p))
        elif v is None:
            lost += q
        else:
            kept.append(_raised(arb(q), v))
    kept = [(q, p) for q, p in kept if q > 0]
    law = replace(empty, lost=lost)
    return (_at_least_ratios(law, kept) if is_free and kept else law).filled(kept)


def _raised(mass: Ball, log: Ball) -> tuple[Ball, Ball]:
    """Return as much mass under Q as there may be at a ratio, with its mass under P."""
    most = arb(mass.upper())
    return most, most * log.exp()


def _at_least_ratios(empty: Law, cells: list[tuple[Ball, Ball]]) -> Law:
    """Return the grid with a node at the mean of all ratios that are nearly the least one.

    With rare samples, most ratios are nearly the least one. The rest of such a group, up to the
    next node above it, needs as much mass beyond that node to be gathered with.
    """
    losses = np.array([float((p / q).log().mid()) for q, p in cells])
    of_q = np.array([float(q.mid()) for q, _ in cells])
    chosen = [len(cells) - 1]
    if of_q[-1] * math.exp(min(losses[-1], 700.0)) <= _ATOM:
        step = float(empty.step.mid())
        beyond = losses - float(empty.offset.mid()) - step
        if beyond[0] < -1.5 * step:
            return empty
        over = of_q * np.expm1(np.minimum(beyond, 700.0))
        lacking = -np.cumsum(np.where(beyond < 0, over, 0.0)[::-1])[::-1]
        is_small = (beyond < -step / 2) | (lacking > over[beyond > 0].sum() / 2)
        chosen = np.flatnonzero(is_small & (beyond < 0)).tolist()
    q, p = (sum((cells[k][side] for k in chosen), arb(0)) for side in (0, 1))
    return replace(empty, offset=arb((p / q).log().upper())) if q > 0 else empty


def gathered(
    cells: Iterable[tuple[Ball, Ball]],
    node_of: Callable[[int], Ball],
    place_of: Callable[[Ball], float],
) -> Masses:
    """Return masses under Q of cells, in groups that are each moved to a node above its mean.

    A cell in which a group ends is split. Ascending cells make narrow groups. ``place_of`` returns
    where among the nodes a ratio is, roughly.
    """
    found, near, zero = Masses(int), 1 - 4 * _tiny(), arb(0)

    def begin(q: Ball, p: Ball) -> tuple[int | None, Ball | None, Ball, Ball]:
        """Return the first node above a group, and the group; far above all nodes it is lost."""
        most = p if p > 0 else arb(p.upper())
        if not (q > 0 and most > 0):
            return None, None, q, p
        start = math.ceil(place_of(most / q))
        for place in range(start, start + _RAISED):
            node = node_of(place)
            if p <= node * q:
                return place, node, q, p
        found[None] += q
        return None, None, zero, zero

    place, node, q, p = None, None, zero, zero
    for mass, moment in cells:
        q, p = q + mass, p + moment
        if node is None:
            place, node, q, p = begin(q, p)
        if node is None or p < near * node * q:
            continue
        over, share = moment - node * mass, zero
        if over > 0 and not p <= node * q:
            share = _share((p - node * q) / over)
        kept, moved = q - share * mass, p - share * moment
        if not moved <= node * kept:
            place, node, kept, _ = begin(kept, moved)
        found[place] += kept
        place, node, q, p = begin(share * mass, share * moment)
    found[place] += q
    return found


def _share(about: Ball) -> Ball:
    """Return an exact number that is not below a ball, brought into [0, 1]."""
    exact = arb(about.mid()) + 8 * arb(about.rad())
    return arb(arb.max(arb.min(exact, arb(1)), arb(0)).mid())


def _is_known(mass: Ball) -> bool:
    """Return whether a mass is positive, and known to some digits."""
    return bool(mass > 0 and arb(mass).rel_accuracy_bits() > _LEAST_BITS)


def _on_nodes(found: Masses, empty: Law) -> Law:
    """Return a law with masses added; it bounds nothing if its nodes are too far apart."""
    lost = empty.lost + found.pop(None, arb(0))
    places = [place for place in found if place is not None]
    first, last = min(places, default=0), max(places, default=0)
    if last - first >= MAX_NODES_OF_LAW:
        return replace(empty, first=0, masses=[], lost=arb(1), infinite=arb(1))
    masses = [found.get(place, arb(0)) for place in range(first, last + 1)]
    return replace(empty, first=first, masses=masses, lost=lost)
