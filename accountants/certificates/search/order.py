"""Grids on which laws are compared in convex order, found by trying.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = next(order_proofs(((Laplace(2.0), 3),), 1.0, -2.7, 0.0, width=1e-2, rounded=False))
>>> proof.nodes < 4000, 0 < proof.step < 1
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from dpcal.accountants.certificates.balls import arb, workprec
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.order import MAX_NODES_OF_LAW
from dpcal.accountants.certificates.pairs import oriented, pair_of
from dpcal.accountants.certificates.proofs import BITS, MAX_WORK_OF_PROOF
from dpcal.accountants.losses.base import Parts
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian

# Shares of delta times the width: for mass that laws cut off, and for nodes.
_CUT, _SHARE = 1 / 32, 1 / 2
# Most grids; limits and margin of the next step over this one: errors are squares of steps.
_TRIES, _FINER, _SPARE = 4, (1 / 16, 0.7), 0.85
_FIRST = 1e-3
_BITS = 112
_REACH, _LEAST_NODES = 24, 1 << 10
# Standard deviation of a normal loss over its delta at an epsilon of 0, if delta is small.
_AT_ZERO = 2.5
# Nats beyond which tails are cut, and the logarithm of a delta that stands for 0.
_MOST_NATS, _SMALL = 3000.0, -50.0


def order_proofs(
    parts: Parts, epsilon: float, log_delta: float, log_target: float, width: float, rounded: bool
) -> Iterator[OrderProof]:
    """Yield proofs on finer grids, until bounds are about ``width`` apart, relative to delta.

    If delta is below the known one, the width is relative to the known one. If the known delta is
    0, rounding leaves less than a target. No proof is yielded if none of affordable size has bounds
    that are not trivial.

    Raises
    ------
    UnsupportedEvent
        If no certificate covers a loss.
    """
    proof = _first(parts, epsilon, log_delta, log_target, width)
    for _ in range(_TRIES):
        while proof.work(parts) > MAX_WORK_OF_PROOF and proof.nodes > _LEAST_NODES:
            proof = replace(proof, nodes=proof.nodes // 2)
        if proof.work(parts) > MAX_WORK_OF_PROOF:
            return
        yield proof
        lower, upper = enclose(proof, parts, epsilon, rounded=rounded)
        with workprec(proof.bits):
            size = arb.max(upper, arb(log_delta).exp())
            found = float(((upper - lower) / size).upper()) if upper > 0 else 0.0
        if not found > width:
            return
        finer = min(max(_SPARE * math.sqrt(width / found), _FINER[0]), _FINER[1])
        nodes = min(math.ceil(proof.nodes / finer), MAX_NODES_OF_LAW)
        proof = replace(proof, step=proof.step * finer, nodes=nodes)


def _first(
    parts: Parts, epsilon: float, log_delta: float, log_target: float, width: float
) -> OrderProof:
    """Return the grid that adds no more variance than the width allows, if all mass is off it."""
    count = max(sum(times for _, times in parts), 1)
    known = log_delta if log_delta > -math.inf else min(log_target, _SMALL)
    log_tail = max(known + math.log(_CUT * width), -_MOST_NATS)
    log_rest = log_tail - math.log(count) - 1
    bits = _BITS + math.ceil((math.log(count / width) - known) / math.log(2))
    top = max(epsilon, 0.0) - log_rest + 8
    if any(isinstance(loss, DiscreteGaussian) for loss, _ in parts):
        # Outputs beyond all others are lost, not lowered.
        log_tail -= epsilon
    tail = 0.0 if log_delta == -math.inf or log_tail < -700 else math.exp(log_tail)
    # The standard deviation of a normal loss with this delta.
    far = math.sqrt(-2 * known)
    deviation = max(math.hypot(far, math.sqrt(2 * epsilon)) - far, _AT_ZERO * math.exp(known))
    variance = deviation**2
    tilt = max(epsilon / variance - 0.5, 0.0)
    # A ratio's moment grows by tilt (tilt + 1) / 2 times the growth of its logarithm's variance.
    allowed = _SHARE * max(width, _FIRST) / max(tilt * (tilt + 1) / 2, 1 / (4 * variance))
    step, nodes = math.sqrt(6 * allowed / count), _REACH * math.sqrt(variance / allowed)
    if len(parts) == 1 and isinstance(parts[0][0], LatticeLoss | DiscreteGaussian):
        # This law is exact if no mass moves.
        with workprec(BITS[0]):
            pair = pair_of(oriented(parts[0][0])[0])
            step = float(pair.spacing.upper()) * (1 + 1e-9)
        limits = OrderProof(BITS[0], step, MAX_NODES_OF_LAW, tail, top)
        nodes = pair.span(limits) / step * count + 16
    nodes = math.ceil(min(max(nodes, _LEAST_NODES), MAX_NODES_OF_LAW))
    return OrderProof(min(bits, BITS[1]), step, nodes, tail, top)
