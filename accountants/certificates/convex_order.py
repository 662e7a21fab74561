r"""Random allocation by convex order: laws on grids above and below the likelihood ratio.

E epochs of M batches have the likelihood ratio Lambda = prod_e (1 / M) sum_j Y_ej, Y = exp(t X -
t^2 / 2), t = 1 / sigma, X standard normal, and, with K = exp(epsilon),

    delta = 1 - E min(K, Lambda)        if a record is removed,
    delta = 1 - K E min(1 / K, Lambda)  if a record is added.

The function g = min(K, Lambda) is concave in each Y, in each sum of an epoch, and rises with all
of them. *Lemma.* If Y'_1, ..., Y'_n are independent, and E h(Y'_i) >= E h(Y_i) for all i and all
convex h, then E g(Y') <= E g(Y). *Proof.* Put in one Y'_i after another: given the others, -g is
convex in it. (One case is Lemma C.5 of Ertan and van Dijk 2026.) Hence an upper bound on delta,
at every epsilon and in both directions, if

* mass between two nodes is moved to them so that its mean is kept, and mass beyond the last one is
  lowered onto it;

and a lower bound, if

* mass is gathered in groups, each moved to its mean, which is a node, or raised to a node above it;
  mass beyond the last node is raised to infinity.

Y and its sums are on a lattice of equal steps, L and its products on one of equal ratios. Both are
powers of polynomials. Nothing here is used by, or uses, the transform of
:mod:`~dpcal.accountants.certificates.allocation_transform`.

>>> from dpcal.accountants.certificates.proofs import Grid, OrderProof
>>> proof = OrderProof(width=0.1, cells=6000, ratios=Grid(0.002, -2000, 2000))
>>> with balls.workprec(128):
...     laws = LawsOfRatio(1.0, 100, 10, proof)
...     lower, upper = laws.delta(balls.arb(1.7014984358), "remove")
>>> print(lower.str(3, radius=False), upper.str(3, radius=False))
9.89e-6 1.01e-5
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball, power
from dpcal.accountants.certificates.proofs import OrderProof

__all__ = ["LawsOfRatio", "laws_of_ratio"]

# A mass, and the mass times its mean.
Atom = tuple[Ball, Ball]
# Mass below which an atom is joined to the next one, which is far below any delta of use.
_LEAST = 1e-60


class LawsOfRatio:
    """Laws on grids that bound the likelihood ratio of a run in convex order, from both sides."""

    def __init__(self, noise_multiplier: float, batches: int, epochs: int, proof: OrderProof):
        arb = balls.arb
        self.proof, self.t = proof, 1 / arb(noise_multiplier)
        width, logs = arb(proof.width), proof.ratios
        self.nodes = [(k * arb(logs.step)).exp() for k in range(logs.first, logs.last + 1)]
        cells, beyond = self._cells(width)
        spread = self._spread_cells(cells, beyond, width)
        steps = [k * width for k in range(1, proof.cells + 1)]
        gathered = [arb(0), *_gathered(cells, steps)]
        self.laws = []
        for law, upper in ((gathered, False), (spread, True)):
            sums = power(law, batches, _Window(0, len(law), upper).sum_of)
            ratios = [(mass, mass * k * width / batches) for k, mass in enumerate(sums)]
            epoch = _spread(ratios, self.nodes) if upper else _gathered(ratios[1:], self.nodes)
            self.laws.append(power(epoch, epochs, _Window(logs.first, len(epoch), upper).sum_of))

    def _cells(self, width: Ball) -> tuple[list[Atom], Ball]:
        """Return the atoms of Y in intervals of equal width, and the mass beyond."""
        root = balls.arb(2).sqrt()
        found, below = [], (balls.arb(0), balls.arb(0))
        for k in range(1, self.proof.cells + 1):
            x = ((k * width).log() / self.t + self.t / 2) / root
            # E Y 1{X < z} = P(X < z - t).
            at = (-x).erfc() / 2, (self.t / root - x).erfc() / 2
            found.append((at[0] - below[0], at[1] - below[1]))
            below = at
        return found, 1 - below[0]

    def _spread_cells(self, cells: list[Atom], beyond: Ball, width: Ball) -> list[Ball]:
        """Return the masses at the ends of the intervals, whose means are kept."""
        law = [balls.arb(0)] * (len(cells) + 1)
        for k, (mass, moment) in enumerate(cells):
            high = moment / width - k * mass
            law[k] += mass - high
            law[k + 1] += high
        law[-1] += beyond
        return law

    def delta(self, epsilon: Ball, direction: str) -> tuple[Ball, Ball]:
        """Return a lower and an upper bound on delta at an epsilon."""
        K, one = epsilon.exp(), balls.arb(1)
        bounds = []
        for law in self.laws:
            # The mass that a law lacks is at 0 above, and at infinity below.
            lacking = 1 - sum(law, balls.arb(0)) if law is self.laws[0] else balls.arb(0)
            if direction == "remove":
                least = [balls.arb.min(K, node) for node in self.nodes]
                lacking *= K
            else:
                least = [balls.arb.min(one, K * node) for node in self.nodes]
            kept = sum((a * b for a, b in zip(law, least, strict=True)), balls.arb(0))
            bounds.append(1 - kept - lacking)
        return bounds[0], bounds[1]


@lru_cache(maxsize=2)
def laws_of_ratio(
    noise_multiplier: float, batches: int, epochs: int, proof: OrderProof, bits: int
) -> LawsOfRatio:
    """Return the laws, of which both directions and all epsilons are read off."""
    with balls.workprec(bits):
        return LawsOfRatio(noise_multiplier, batches, epochs, proof)


class _Window:
    """A window of whole numbers, or of logarithms, for laws of sums of independent ones.

    Parameters
    ----------
    first, size
        The first number, and how many there are.
    upper
        Whether numbers above the window are lowered to its last one, and those below lost; if not,
        those below are raised to its first one, and those above lost.
    """

    def __init__(self, first: int, size: int, upper: bool) -> None:
        self.first, self.size, self.upper = first, size, upper

    def sum_of(self, one: list[Ball], other: list[Ball]) -> list[Ball]:
        """Return the law of the sum of two numbers."""
        terms: list[Ball] = (balls.arb_poly(one) * balls.arb_poly(other)).coeffs()
        # The sum of numbers at places i and j is at place i + j + first.
        low, high = max(-self.first, 0), max(self.size - self.first, 0)
        law = [balls.arb(0)] * max(self.first, 0) + terms[low:high]
        law = (law + [balls.arb(0)] * self.size)[: self.size]
        if self.upper:
            law[-1] += sum(terms[high:], balls.arb(0))
        else:
            law[0] += sum(terms[:low], balls.arb(0))
        return law


def _spread(atoms: list[Atom], nodes: list[Ball]) -> list[Ball]:
    """Return masses at nodes to which atoms are moved so that means are kept, or lowered.

    Mass at 0 is lost, and mass beyond the last node is lowered onto it.
    """
    law, k = [balls.arb(0)] * len(nodes), 0
    for mass, moment in atoms:
        # Atoms ascend, and the mean of each is moment / mass, of a mass that is known only nearly.
        at = _last_below(moment, mass, nodes, k)
        if at < 0:
            law[0] += balls.arb.min(moment / nodes[0], mass)
            continue
        k = at
        if k == len(nodes) - 1:
            law[k] += mass
        else:
            # An atom that may be above the next node is moved to the one beyond.
            end = k + 1 if moment <= mass * nodes[k + 1] else min(k + 2, len(nodes) - 1)
            high = (moment - nodes[k] * mass) / (nodes[end] - nodes[k])
            high = balls.arb.min(high, mass)
            law[k] += mass - high
            law[end] += high
    return law


def _last_below(moment: Ball, mass: Ball, nodes: list[Ball], start: int) -> int:
    """Return the last node that is surely below an atom, from ``start`` on; -1 if it is not."""
    k = start
    while k + 1 < len(nodes) and nodes[k + 1] * mass <= moment:
        k += 1
    return k if nodes[k] * mass <= moment else -1


def _gathered(atoms: list[Atom], nodes: list[Ball]) -> list[Ball]:
    """Return masses at nodes which are means of groups of ascending atoms, or above them.

    An atom in which a group ends is split. Mass that no node is above is lost.
    """
    law, k = [balls.arb(0)] * len(nodes), 0
    group = balls.arb(0), balls.arb(0)
    for mass, moment in _of_mass(atoms):
        if not group[0] > 0:
            k = _first_above(moment, mass, nodes, k)
        if k == len(nodes):
            break
        group = group[0] + mass, group[1] + moment
        if group[1] < nodes[k] * group[0]:
            continue
        share = _left_out(group, (mass, moment), nodes[k])
        kept = group[0] - share * mass, group[1] - share * moment
        # A group whose mean is not surely as small is raised to the next node.
        place = k if kept[1] <= nodes[k] * kept[0] else k + 1
        if place < len(nodes):
            law[place] += kept[0]
        group = share * mass, share * moment
        k = _first_above(moment, mass, nodes, k)
    if k < len(nodes):
        law[k] += group[0]
    return law


def _left_out(group: Atom, atom: Atom, node: Ball) -> Ball:
    """Return an exact share of the last atom without which a group has its mean at a node.

    It is larger by far less than a digit of a bound, so that the mean is surely not above the node.
    """
    arb, above = balls.arb, atom[1] - node * atom[0]
    if not above > 0:
        return arb(0)
    share = arb(((group[1] - node * group[0]) / above).mid()) + arb(2) ** -70
    return arb(arb.min(share, arb(1)).mid())


def _first_above(moment: Ball, mass: Ball, nodes: list[Ball], start: int) -> int:
    """Return the first node surely above an atom, from ``start`` on; their number if none is."""
    k = start
    while k < len(nodes) and not nodes[k] * mass > moment:
        k += 1
    return k


def _of_mass(atoms: list[Atom]) -> Iterator[Atom]:
    """Yield atoms, each joined to those before it until its mass is far above its radius."""
    mass, moment = balls.arb(0), balls.arb(0)
    for one, two in atoms:
        mass, moment = mass + one, moment + two
        if mass > _LEAST:
            yield mass, moment
            mass, moment = balls.arb(0), balls.arb(0)
