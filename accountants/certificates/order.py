r"""The one rule: laws on grids, above and below the likelihood ratio in convex order.

Let R = P / Q be the likelihood ratio of a composition, under Q, and K = exp(epsilon). Then

    delta = 1 - E min(K, R)        of P from Q,
    delta = 1 - K E min(1 / K, R)  of Q from P, which is the other direction.

R is the product of the ratios of all uses, and min(K, R) is concave in each of them, and rises with
each. *Lemma.* If R'_1, ..., R'_n are independent, and E g(R'_i) >= E g(R_i) for all i and all
concave g that rise, then E min(K, R') >= E min(K, R). *Proof.* Put in one R'_i after another: given
the others, min(K, R) is such a function of it. Hence a lower bound on delta, at every epsilon and
in both directions, if mass is *gathered* in groups, each moved to a node at or above its mean; and
an upper bound if mass is *spread* to two points with its mean kept, of which one may be 0 or
infinity.

The nodes are exp(offset + k step). Laws of independent uses multiply as polynomials. A law of too
many nodes is made twice as coarse, by the same two moves.

>>> with balls.workprec(128):
...     zero, third = balls.arb(0), balls.arb(1) / 3
...     answer = Law(True, balls.arb(-1), balls.arb(2), 0, 0, [1 - third, third], zero, zero)
...     twice = answer.times(answer, 0.0)
...     print([mass.str(3, radius=False) for mass in twice.masses], float(twice.log_node(2)))
['0.444', '0.444', '0.111'] 2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball

__all__ = ["MAX_NODES_OF_LAW", "Law", "Masses", "gathered", "power", "spread"]

# Most nodes of any law, and nodes above its mean that a group is raised by before it is given up.
MAX_NODES_OF_LAW, _RAISED = 1 << 16, 64

# The logarithm of a ratio, its mass under Q, and its place if it is at a node.
Point = tuple[Ball, Ball, int | None]
# The place of outcomes among nodes, roughly; their masses under Q and P. With P None, it is a node.
Cell = tuple[float, Ball, Ball | None]


@dataclass(frozen=True)
class Law:
    """The law under Q of a ratio on a grid, above another one in convex order, or below it.

    Attributes
    ----------
    above
        Whether it bounds the ratio from above.
    offset, step, level
        The nodes are exp(offset + k step 2^level), k whole.
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
    level: int
    first: int
    masses: list[Ball]
    lost: Ball
    infinite: Ball

    def node(self, place: int) -> Ball:
        """Return a node, by its place."""
        return (self.offset + place * self.step * 2**self.level).exp()

    def log_node(self, place: int) -> Ball:
        """Return the logarithm of a node, by its place among the masses."""
        return self.offset + (self.first + place) * self.step * 2**self.level

    def times(self, other: Law, tail: float) -> Law:
        """Return the law of the product of independent ratios, without tails of this mass."""
        one: Law = self
        while one.level < other.level:
            one = one.coarser()
        while other.level < one.level:
            other = other.coarser()
        factor = balls.arb_poly(one.masses)
        # A square takes half of the time.
        by = factor if other is self else balls.arb_poly(other.masses)
        masses = (factor * by).coeffs()
        masses += [balls.arb(0)] * (len(one.masses) + len(other.masses) - 1 - len(masses))
        return replace(
            one,
            offset=one.offset + other.offset,
            first=one.first + other.first,
            masses=masses,
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
        """Return the law without nodes at either end that have at most this mass together."""
        masses = list(self.masses)
        low, (q, p) = self._end(masses, range(len(masses)), tail)
        lost = self.lost
        if self.above:
            moved = p / self.log_node(low).exp()
            masses[low], lost = masses[low] + moved, lost + q - moved
        else:
            masses[low] += q
        # What was cut off at one end is not cut off again.
        high, (q, p) = self._end(masses, range(len(masses) - 1, low - 1, -1), tail)
        node, infinite = self.log_node(high).exp(), self.infinite
        if self.above:
            masses[high], infinite = masses[high] + q, infinite + p - q * node
        elif high < len(masses) - 1:
            lost += self._lowered(masses, range(high - 1, low - 1, -1), node, (q, p))
        kept = masses[low : high + 1]
        found = {"first": self.first + low, "masses": kept, "lost": lost, "infinite": infinite}
        return replace(self, **found)

    def _end(self, masses: list[Ball], places: range, tail: float) -> tuple[int, tuple[Ball, Ball]]:
        """Return the first node to keep at an end, and the masses under Q and P before it."""
        q = p = balls.arb(0)
        for place in places[:-1]:
            mass = masses[place]
            moment = p + mass * self.log_node(place).exp()
            if moment > tail or (places.step == 1 and q + mass > tail):
                return place, (q, p)
            q, p = q + mass, moment
        return places[-1], (q, p)

    def _lowered(
        self, masses: list[Ball], places: range, node: Ball, top: tuple[Ball, Ball]
    ) -> Ball:
        """Gather in a node what is above it, with as much from the places below as keeps the mean.

        Return what is left if there is not as much.
        """
        q, p = top
        for place in places:
            below = self.log_node(place).exp()
            needed = balls.arb(((p - q * node) / (node - below)).upper())
            if needed <= masses[place]:
                masses[place] -= needed
                masses[places.start + 1] += q + needed
                return balls.arb(0)
            q, p = q + masses[place], p + masses[place] * below
            masses[place] = balls.arb(0)
        return q

    def coarser(self) -> Law:
        """Return the law on every second node."""
        masses, first = self.masses, self.first
        if first % 2:
            masses, first = [balls.arb(0), *masses], first - 1
        step = self.step * 2**self.level
        coarse = replace(self, level=self.level + 1, first=first // 2)
        if self.above:
            # What is between two nodes goes to the upper one with this share.
            share = 1 / (step.exp() + 1)
            terms = (balls.arb_poly(masses) * balls.arb_poly([1 - share, 1, share])).coeffs()
            terms += [balls.arb(0)] * (len(masses) + 2 - len(terms))
            return replace(coarse, masses=terms[1 : len(masses) + 2 : 2])
        start = self.offset + first * step
        cells = (
            (first // 2 + k / 2, mass, mass * (start + k * step).exp() if k % 2 else None)
            for k, mass in enumerate(masses)
        )
        return gathered(cells, coarse.node).on_nodes(coarse)

    def delta(self, epsilon: Ball, forward: bool) -> Ball:
        """Return the bound on delta of P from Q, or of Q from P, at an epsilon."""
        zero, K = balls.arb(0), epsilon.exp()
        logs = [self.log_node(place) for place in range(len(self.masses))]
        if self.above:
            total = self.infinite if forward else self.lost
        else:
            moments = (m * log.exp() for m, log in zip(self.masses, logs, strict=True))
            total = 1 - sum(moments, zero) - K * self.lost if forward else zero
        for mass, log in zip(self.masses, logs, strict=True):
            beyond = (log if forward else -log) - epsilon
            if not beyond <= 0:
                gain = K * beyond.expm1() if forward else -(-beyond).expm1()
                total += mass * balls.arb.max(gain, zero)
        return total


def power(law: Law, times: int, nodes: int, tail: float) -> Law:
    """Return the law of a product of ``times`` >= 1 ratios, without tails of about this mass."""
    share = tail / (2 * times.bit_length())
    found: Law | None = None
    uses = 1
    while 2 * uses <= times:
        if times & uses:
            found = law if found is None else found.times(law, share).at_most(nodes)
        uses *= 2
        # What is cut off one factor is cut off all of them.
        law = law.times(law, share * min(1.0, uses / times)).at_most(nodes)
    return law if found is None else found.times(law, share).at_most(nodes)


def spread(empty: Law, points: Iterable[Point]) -> Law:
    """Return a law above: points, each moved to the two nodes about it so that its mean is kept."""
    found = Masses()
    step = empty.step * 2**empty.level
    width, infinite = step.expm1(), balls.arb(0)
    for at, mass, known in points:
        if known is not None:
            found.add(known, mass)
            continue
        place = math.floor(float(((at - empty.offset) / step).mid()))
        beyond = at - empty.offset - place * step
        if not beyond >= 0:
            place, beyond = place - 1, beyond + step
        if not beyond >= 0:
            found.add(None, mass)
            infinite += mass * at.exp()
            continue
        if beyond == 0:
            found.add(place, mass)
            continue
        more = balls.arb((beyond - step).upper())
        share = balls.arb.min(beyond.expm1() / width, balls.arb(1))
        found.add(place, mass * (1 - share))
        found.add(place + 1, mass * share)
        if more > 0:
            # By as much a ratio, of few digits, may be above both nodes.
            infinite += mass * empty.node(place + 1) * more.expm1()
    return found.on_nodes(replace(empty, infinite=empty.infinite + infinite))


def gathered(cells: Iterable[Cell], node_of: Callable[[int], Ball]) -> Masses:
    """Return masses of ascending cells in groups, each moved to a node that is above its mean.

    A cell in which a group ends is split.
    """
    found, group = Masses(), False
    q = p = node = balls.arb(0)
    place: int | None = None

    def first_above(start: int, mass: Ball, moment: Ball) -> tuple[int | None, Ball]:
        for place in range(start, start + _RAISED):
            node = node_of(place)
            if moment <= node * mass:
                return place, node
        return None, balls.arb("inf")

    for at, mass, moment in cells:
        if moment is None:
            found.add(int(at), mass)
            continue
        if not group:
            place, node = first_above(math.ceil(at), mass, moment)
        q, p, group = q + mass, p + moment, True
        if place is None or p < node * q:
            continue
        share = _left_out(p - node * q, moment - node * mass)
        kept, its_moment = q - share * mass, p - share * moment
        if not its_moment <= node * kept:
            place, _ = first_above(place + 1, kept, its_moment)
        found.add(place, kept)
        q, p, group = share * mass, share * moment, bool(share > 0)
        if group:
            place, node = first_above(math.ceil(at), mass, moment)
    if group:
        found.add(place, q)
    return found


def _left_out(more: Ball, over: Ball) -> Ball:
    """Return an exact share of the last cell without which a group's mean is at its node."""
    if not over > 0:
        return balls.arb(0)
    share = more / over
    exact = balls.arb(share.mid()) + 8 * balls.arb(share.rad())
    return balls.arb(balls.arb.max(balls.arb.min(exact, balls.arb(1)), balls.arb(0)).mid())


class Masses(dict[int | None, Ball]):
    """Masses by the places of their nodes; None is that of infinity, of laws above that of 0."""

    def add(self, place: int | None, mass: Ball) -> None:
        """Add mass at a node."""
        self[place] = self[place] + mass if place in self else mass

    def on_nodes(self, empty: Law) -> Law:
        """Return the law; one that bounds nothing if its nodes are too far apart."""
        zero, one = balls.arb(0), balls.arb(1)
        lost = empty.lost + self.pop(None, zero)
        places = [place for place in self if place is not None]
        first, last = min(places, default=0), max(places, default=0)
        if last - first >= MAX_NODES_OF_LAW:
            return replace(empty, first=0, masses=[zero], lost=one, infinite=one)
        masses = [self.get(place, zero) for place in range(first, last + 1)]
        return replace(empty, first=first, masses=masses, lost=lost)
