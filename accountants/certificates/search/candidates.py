"""Which proofs are tried for bounds on delta, at which precision, and in which order?

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> direction = Direction("both", ((Gaussian(2.0), 3),))
>>> [proof.NAME for _, proof in candidates(direction, 1.0, 1e-3, False, "auto")][2:]
['contour', 'convex order', 'convex order', 'convex order']
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

from dpcal.accountants.certificates.contour import ContourProof, ParityProof
from dpcal.accountants.certificates.cost import BITS, MAX_WORK_OF_PROOF, work
from dpcal.accountants.certificates.proofs import Parts, Proof
from dpcal.accountants.certificates.search.contour import (
    about_log_delta,
    bits_of_contour,
    choose_chernoff,
    choose_contour,
    choose_parity,
    has_contour,
)
from dpcal.accountants.certificates.search.order import choose_order
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["candidates"]

# Widths of the attempts at a contour and at laws, over the wanted one, until bounds are as narrow:
# the last contour is for widths near 1e-15.
_TIGHTER, _FINER = (1.0, 1e-2, 1e-4), (1.0, 1 / 8, 1 / 64)
# Widths of the attempts at laws where the wanted one takes too many nodes: the first is taken.
_WIDER = tuple(4.0**k for k in range(1, 8))
_WIDEST = 0.5

Candidates = Iterator[tuple[int, Proof]]


def candidates(
    direction: Direction, epsilon: float, width: float, negligible: bool, method: str
) -> Candidates:
    """Yield precisions and proofs to try, the most promising first.

    ``negligible`` says that another direction has a larger delta, so that a short proof of an upper
    bound may do.
    """
    parts = direction.finite[1].parts
    if method != "convex-order" and parts and has_contour(parts):
        yield from _contours(parts, epsilon, width, negligible)
    if method != "contour":
        yield from _laws(parts, epsilon, width)


def _contours(parts: Parts, epsilon: float, width: float, negligible: bool) -> Candidates:
    def chosen(choose: Callable[..., ContourProof], width: float) -> list[tuple[int, Proof]]:
        """Return the proof, if there is one of affordable size."""
        with contextlib.suppress(OutOfReach):
            proof = choose(parts, epsilon, width=width)
            bits = bits_of_contour(proof, parts, width=width)
            if isinstance(proof, ParityProof):
                # A difference of two numbers of about 1 is as small as delta.
                bits += math.ceil(-about_log_delta(parts, epsilon) / math.log(2))
            return [(min(bits, BITS[1]), proof)]
        return []

    if negligible:
        yield from chosen(choose_chernoff, width)
    if any(isinstance(loss, Allocation) for loss, _ in parts):
        yield from chosen(choose_parity, width)
    for share in _TIGHTER:
        found = chosen(choose_contour, width * share)
        yield from found
        if not found:
            break


def _laws(parts: Parts, epsilon: float, width: float) -> Candidates:
    log_delta = None
    with contextlib.suppress(OutOfReach):
        log_delta = about_log_delta(parts, epsilon) if parts else None
    found = False
    for share in (*_FINER, *_WIDER):
        if found and share > 1:
            return
        with contextlib.suppress(OutOfReach):
            aim = min(share * width, _WIDEST)
            bits, proof = choose_order(parts, epsilon, log_delta=log_delta, width=aim)
            if work(proof, parts, bits) < MAX_WORK_OF_PROOF:
                yield bits, proof
                found = True
