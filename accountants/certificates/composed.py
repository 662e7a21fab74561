"""The laws of a composition by the one rule: both directions and all epsilons from one of them.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = OrderProof(bits=128, step=0.005, nodes=1000, tail=0.0, top=9.0)
>>> from dpcal.accountants.certificates.balls import workprec
>>> with workprec(128):
...     lower, upper = (proof.bound(((Laplace(2.0), 3),), 1.0, above) for above in (False, True))
>>> print(lower.str(3, radius=False), upper.str(3, radius=False))
0.0691 0.0691
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from dpcal.accountants.certificates.balls import Ball, arb, ctx
from dpcal.accountants.certificates.order import Law, gather, power, spread
from dpcal.accountants.certificates.pairs import Limits, Pair, oriented, pair_of
from dpcal.accountants.certificates.proofs import Proof
from dpcal.accountants.losses.base import Parts

_MAX_LEVEL = 64
# Units of a node of a law at each doubling: two products, and a coarser grid.
_NODE = 160


@dataclass(frozen=True)
class OrderProof(Limits, Proof):
    """Both bounds on delta, by laws on grids above and below the ratio in convex order."""

    NAME = "convex order"

    def work_at_128(self, parts: Parts) -> float:
        """Return the work of cells, of nodes, and of products on either side."""
        return 2 * work_of_laws(parts, self)

    def bound(self, parts: Parts, epsilon: float, above: bool) -> Ball:
        """Return the bound by the law of the likelihood ratio above, or below, in convex order."""
        law, forward = law_of(parts, self, above)
        return law.delta(arb(epsilon), forward)


def _level(pair: Pair, step: float, limits: Limits) -> int:
    """Return how often the finest step is doubled, so that one use has no more nodes."""
    nodes = pair.span(limits) / step / max(limits.nodes - 8, 1)
    return min(max(math.ceil(math.log2(max(nodes, 1.0))), 0), _MAX_LEVEL)


def work_of_laws(parts: Parts, limits: Limits) -> float:
    """Return the work of the law of a composition on one side."""
    total = 0.0
    for loss, times in parts:
        pair = pair_of(loss)
        doublings = times.bit_length() + _level(pair, limits.step, limits)
        total += pair.work(limits) + _NODE * limits.nodes * doublings
    return total


def law_of(parts: Parts, limits: Limits, above: bool) -> tuple[Law, bool]:
    """Return the law of a composition when a record is removed, and whether that is its direction.

    Both directions share it.
    """
    known = [(*oriented(loss), times) for loss, times in parts]
    ways = {way for _, way, _ in known} - {None}
    if len(ways) > 1:
        raise ValueError("Losses of both directions have no law in common.")
    told = tuple((loss, times) for loss, _, times in known)
    return _law_of(told, limits, ctx.prec, above), False not in ways


@lru_cache(maxsize=8)
def _law_of(parts: Parts, limits: Limits, bits: int, above: bool) -> Law:
    zero, tail = arb(0), limits.tail / max(len(parts), 1)
    pairs = [pair_of(loss) for loss, _ in parts]
    # The finest grid refines the lattice of the first part that has one.
    step = arb(limits.step)
    own = next((pair.spacing for pair in pairs if pair.spacing is not None), None)
    if own is not None:
        finer = math.log2(max(float((own / step).mid()), 1.0))
        step = own / 2 ** min(math.ceil(finer), _MAX_LEVEL)
    found = Law(above, zero, step, 0, [arb(1)])
    for (_, times), pair in zip(parts, pairs, strict=True):
        coarse = step * 2 ** _level(pair, float(step.mid()), limits)
        cells, at = pair.outcomes(coarse, limits, above)
        empty = Law(above, at, coarse, 0, [])
        once = spread(empty, cells) if above else gather(empty, cells, pair.spacing is None)
        once = once.trimmed(tail / (2 * times * times.bit_length())).at_most(limits.nodes)
        several = power(once, times, limits.nodes, tail)
        found = several if len(parts) == 1 else found.times(several, tail).at_most(limits.nodes)
    return found
