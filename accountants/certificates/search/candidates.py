"""Which proofs are tried for bounds on delta, at which precision, and in which order?

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> direction = Direction("both", ((Gaussian(2.0), 3),))
>>> [proof.method for _, proof in candidates(direction, 1.0, 1e-3, False, "both")][:2]
['contour', 'contour']
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dpcal.accountants.certificates.cost import BITS
from dpcal.accountants.certificates.proofs import (
    ContourProof,
    ParityProof,
    Proof,
    SamplingProof,
    SupportProof,
)
from dpcal.accountants.certificates.search.contour import (
    bits_of_contour,
    choose_contour,
    choose_parity,
    choose_smoothed,
)
from dpcal.accountants.certificates.search.finite_laws import choose_order, choose_sum
from dpcal.accountants.certificates.search.grids import check_covered
from dpcal.accountants.certificates.search.moments import (
    choose_chernoff,
    choose_convexity,
    choose_cut_chernoff,
)
from dpcal.accountants.certificates.search.threshold import choose_threshold
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["by_order", "candidates"]

# Most attempts at a proof of the given width, each of a hundredth of the last one's width: the
# third is for widths near 1e-15.
_ATTEMPTS, _TIGHTER = 3, 1e-2


@dataclass(frozen=True, kw_only=True)
class _Bits:
    """Bits of accuracy.

    Attributes
    ----------
    closed_forms
        Bits for closed forms of a few numbers, whose bounds have three digits or more.
    sums
        Bits in addition to those for delta and for the number of uses.
    least_log_delta
        Log delta below which the bits of sums do not grow further: 1e-434.
    """

    closed_forms: int = 128
    sums: int = 256
    least_log_delta: float = -1000.0


_BITS = _Bits()
# Families whose transforms are enclosed themselves, and not those of laws on grids.
_WITH_TRANSFORMS = (Gaussian, SampledGaussian, Allocation)
# Relative accuracies of delta for which smoothed contours are chosen in turn, if only the upper
# bound is wanted, always without the rarest large losses: the first is enough for most runs of
# thousands of steps.
_AIMS_OF_ONE_SIDE = ((0.1, True), (0.03, True), (0.01, True))

Candidates = Iterator[tuple[int, Proof]]


def candidates(
    direction: Direction,
    epsilon: float,
    width: float,
    negligible: bool,
    sides: str,
) -> Candidates:
    """Yield precisions and proofs to try for one or both sides, the most promising first.

    ``negligible`` says that another direction has a larger delta, so that a short proof of an upper
    bound may do.
    """
    _, given = direction.finite
    parts = given.parts
    if not parts or Total(parts).upper <= epsilon:
        yield BITS[0], SupportProof()
        if not parts:
            return
    check_covered(parts)
    # Those of a sum as small as delta, with the digits that a power loses.
    uses = sum(times for _, times in parts)
    bits = _BITS.sums + 2 * _bits_of_delta(given, epsilon) + 2 * math.ceil(math.log2(uses / width))
    bits = min(bits, BITS[1])

    def chosen(choose: Callable[..., Proof], **options: Any) -> list[tuple[int, Proof]]:
        """Return the proof, if there is one of affordable size."""
        with contextlib.suppress(OutOfReach):
            proof = choose(parts, epsilon, **options)
            if not isinstance(proof, ContourProof):
                return [(bits, proof)]
            needed = bits_of_contour(proof, parts, width=options["width"])
            if isinstance(proof, ParityProof):
                # A difference of two numbers of about 1 is as small as delta.
                needed = min(needed + _bits_of_delta(given, epsilon), BITS[1])
            return [(needed, proof)]
        return []

    if negligible:
        yield from chosen(choose_chernoff, width=width)
    if any(isinstance(loss, Allocation) for loss, _ in parts):
        yield from chosen(choose_parity, width=width)
    has_transforms = all(isinstance(loss, _WITH_TRANSFORMS) for loss, _ in parts)
    for attempt in range(_ATTEMPTS):
        aim = width * _TIGHTER**attempt
        found = chosen(choose_contour, width=aim) if has_transforms else []
        found = found or chosen(choose_sum, width=aim)
        yield from found
        if not found:
            break
    aims = ((width, False), (width, True)) if sides == "both" else _AIMS_OF_ONE_SIDE
    for aim, cut in aims:
        found = chosen(choose_smoothed, width=aim, cut=cut)
        yield from found
        if found and sides == "both":
            break
    yield from chosen(choose_threshold)
    yield from chosen(choose_chernoff, width=width)
    yield from chosen(choose_cut_chernoff)
    yield from chosen(choose_convexity)
    yield _BITS.closed_forms, SamplingProof()


def by_order(direction: Direction, epsilon: float, width: float) -> Candidates:
    """Yield a proof by convex order; refuse other losses than those of one random allocation."""
    with contextlib.suppress(OutOfReach):
        proof = choose_order(direction.parts, epsilon, width=width)
        yield _BITS.closed_forms + 2 * _bits_of_delta(direction, epsilon), proof


def _bits_of_delta(direction: Direction, epsilon: float) -> int:
    """Return the bits by which delta is below 1."""
    size = max(log_delta_bounds(direction, epsilon).upper, _BITS.least_log_delta)
    return math.ceil(-size / math.log(2))
