"""The choice of a contour and of its end for a proof, in floats.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> remove = decompose(event, "add-or-remove-one").directions[0]
>>> proof = choose_contour(remove.parts, 8.0, log_delta=-17.7, width=1e-3)
>>> proof.nodes < 200, 0 < proof.below < proof.tilt < proof.above
(True, True)
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_left
from dataclasses import replace
from typing import Any

import numpy as np

from dpcal.accountants.certificates.contour import (
    MAX_NODES,
    ContourProof,
    ParityProof,
    has_contour,
    opposite,
)
from dpcal.accountants.certificates.proofs import BITS, MAX_WORK_OF_PROOF
from dpcal.accountants.certificates.search.lines import line_of, log_beyond
from dpcal.accountants.inversion.saddle import increasing_root, log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, Parts, Reals

# Share of the width that each of aliasing, truncation and quadrature may take.
_SHARE = 1 / 16
# In widths of the integrand's peak: all give valid proofs, and the best one the largest step.
_DISTANCES = np.array([0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.0, 5.0, 6.0, 8.5, 12.0, 20.0])
# Largest tilt of a loss that is never above epsilon, and a distance that stands for none.
_LARGEST_TILT, _CLOSEST = 4096.0, 1e-300
_BITS, _TERMS = 64, 1.25
_SPARE_DIGITS = 3.0


def saddle(total: Total, epsilon: float) -> tuple[float, float]:
    """Return the tilt c > 0 at the integrand's saddle, and the width of its peak there.

    Rays of random allocations are long at small tilts, so that their tilts are 1 or more.
    """

    def equation(c: float) -> tuple[float, float, float]:
        _, mean, variance = total.cumulants([c])[0]
        curvature = variance + 1 / c**2 + 1 / (1 + c) ** 2
        return float(mean - epsilon - 1 / c - 1 / (1 + c)), float(curvature), math.nan

    c = increasing_root(equation, 1.0)
    if any(isinstance(loss, Allocation) for loss, _ in total.parts):
        c = max(c, 1.0)
    return c, 1 / math.sqrt(equation(c)[1])


def _choose_aliases(
    total: Total, epsilon: float, c: float, peak_width: float, log_floor: float
) -> tuple[float, float, float]:
    """Return the largest step with aliases below exp(log_floor), and the tilts that prove it."""
    below = np.append(0.0, (c - peak_width * _DISTANCES)[c > peak_width * _DISTANCES])
    above = c + peak_width * _DISTANCES

    def log_moment(tilt: float) -> float:
        with contextlib.suppress(OutOfReach):
            return float(total.cumulants([tilt])[0, 0])
        return math.inf

    def steps(tilts: Reals) -> Reals:
        moments = np.array([log_moment(tilt) for tilt in tilts.tolist()])
        bounds = moments + log_chernoff(tilts) - tilts * epsilon
        return 2 * math.pi * np.abs(tilts - c) / np.maximum(bounds - log_floor, 1.0)

    left, right = steps(below), steps(above)
    step = min(float(left.max()), float(right.max()))
    return step, float(below[left.argmax()]), float(above[right.argmax()])


def _choose_nodes(parts: Parts, digits: float, c: float, step: float, log_floor: float) -> int:
    """Return the fewest nodes with a rest below exp(log_floor)."""

    def is_short(nodes: int) -> bool:
        """Return whether the estimate of the sum over all other nodes is below the floor."""
        log_size = math.log((1 + 1 / nodes) / (math.pi * nodes * step))
        sizes = sum(times * log_beyond(loss, digits, c, nodes * step) for loss, times in parts)
        return not log_size + sizes > log_floor

    nodes = 1 + bisect_left(range(1, MAX_NODES + 1), True, key=is_short)
    if nodes > MAX_NODES:
        raise OutOfReach
    return nodes


def _with_lines(proof: ContourProof, parts: Any, digits: float) -> ContourProof:
    """Return a proof with its lines, at the precision they need, if it is of affordable size."""
    # At a tilt of 0 below the contour, this line bounds the rest beyond the contour.
    asked = (
        (proof.tilt, (proof.nodes - 1) * proof.step),
        (proof.below or proof.tilt, 0.0),
        (proof.above, 0.0),
    )
    found, nats = [], _TERMS * digits
    for loss, _ in parts:
        lines = tuple(line for each in asked if (line := line_of(loss, digits, *each)))
        # Sums over one batch are accurate to the mass beyond their reach.
        reaches = (line.reach * line.step * loss.noise_multiplier for line in lines)
        nats = max(nats, *(reach**2 / 2 for reach in reaches)) if lines else nats
        found.append(lines)
    bits = min(_BITS + math.ceil(nats / math.log(2)), BITS[1])
    proof = replace(proof, bits=bits, lines=tuple(found))
    if not proof.work(parts) < MAX_WORK_OF_PROOF:
        raise OutOfReach
    return proof


def choose_contour(parts: Parts, epsilon: float, *, log_delta: float, width: float) -> ContourProof:
    """Return a contour with bounds on delta about ``width`` apart, relative to a known delta.

    If only the other direction has transforms, the contour is for that direction.

    Raises
    ------
    OutOfReach
        If no contour of affordable size exists, or one of the losses has none.
    """
    turned = opposite(parts)
    if log_delta == -math.inf or not (has_contour(parts) or has_contour(turned)):
        raise OutOfReach
    log_error = log_delta + math.log(_SHARE * width)
    if has_contour(parts):
        return _contour(parts, epsilon, log_delta, log_error)
    log_value = math.log(math.exp(log_delta - epsilon) - math.expm1(-epsilon))
    found = _contour(turned, -epsilon, log_value, log_error - epsilon)
    return ParityProof(**vars(found))


def _contour(parts: Parts, epsilon: float, log_value: float, log_error: float) -> ContourProof:
    """Return a contour with errors of aliasing, truncation and quadrature below this."""
    total = Total(parts)
    if total.upper > epsilon:
        c, peak_width = saddle(total, epsilon)
    else:
        # Delta is 0: a large tilt makes Chernoff's bound as small as is wanted.
        c = peak_width = min(log_error / (total.upper - epsilon - _CLOSEST), _LARGEST_TILT)
    step, below, above = _choose_aliases(total, epsilon, c, peak_width, log_error)
    if not below < c < above:
        raise OutOfReach
    # The integrand may be far larger than its integral.
    larger = float(total.cumulants([c])[0, 0]) - c * epsilon - math.log(c) - log_value
    digits = math.log(sum(times for _, times in parts)) + log_value - log_error + _SPARE_DIGITS
    digits += max(larger, 0.0)
    nodes = _choose_nodes(parts, digits, c, step, log_error + c * epsilon)
    proof = ContourProof(BITS[0], c, step, nodes, below, above, ())
    return _with_lines(proof, parts, digits)
