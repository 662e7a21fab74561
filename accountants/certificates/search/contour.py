"""Where should the contour of a proof run, and where may it stop? Chosen in floats.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> remove = decompose(event, "add-or-remove-one").directions[0]
>>> proof = choose_contour(remove.parts, 8.0, width=1e-3)
>>> proof.nodes < 100, 0 < proof.below < proof.tilt < proof.above
(True, True)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpcal._roots import NoBracket, Stop, bisect, bracket
from dpcal.accountants.certificates.contour import MAX_NODES, ContourProof, ParityProof
from dpcal.accountants.certificates.cost import BITS
from dpcal.accountants.certificates.proofs import Clones, Parts, Rays, ShiftedLattice, Substitute
from dpcal.accountants.certificates.search.lattices import (
    Decay,
    Integrand,
    choose_rays,
    nats_of,
)
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.saddle import increasing_root, log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Reals
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["about_log_delta", "bits_of_contour", "choose_contour", "choose_parity", "contours"]


# Widths of the attempts over the wanted one, until bounds are as narrow: the last contour is for
# widths near 1e-15.
_TIGHTER = (1.0, 1e-2, 1e-4)
# Share of the width that each of aliasing, truncation and quadrature may take.
SHARE = 1 / 16
# Most nodes times points of a contour, all losses together: about 5 seconds at 128 bits.
_MAX_PRODUCTS = 5e7
# Points whose work equals that of a node, beside the points of the losses.
_POINTS_OF_NODE = 16
# Distances of the alias tilts from the contour, in widths of the integrand's peak. Any of them
# gives a valid proof, the best one the largest step.
_DISTANCES = np.array([0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.0, 5.0, 6.0, 8.5, 12.0, 20.0])
# Tilts of Chernoff's bound that are tried first: powers of 2 from 1/16 to 4,096. Outside this
# range, bounds whose delta is a double are rare; denser tilts follow around the best one.
_FIRST_TILTS = tuple(2.0**i for i in range(-4, 13))
# Logarithm of the least delta that a lattice is chosen for: far below the range of a double.
_LEAST_LOG_DELTA = -1e6
# Bits in addition to those for the width and for the number of uses.
_BITS_OF_CONTOURS = 96
# Log of the factor by which transforms are more accurate than their powers must be.
_SPARE_DIGITS = 3.0


def contours(
    parts: Parts, epsilon: float, width: float, negligible: bool
) -> Iterator[tuple[int, ContourProof]]:
    """Yield precisions and contours to try, the most promising first.

    ``negligible`` says that another direction has a larger delta, so that a short proof of an upper
    bound may do.
    """
    if not parts or not has_contour(parts):
        return

    def chosen(choose: Callable[..., ContourProof], width: float) -> list[tuple[int, ContourProof]]:
        """Return the proof, if there is one of affordable size."""
        with contextlib.suppress(OutOfReach):
            proof = choose(parts, epsilon, width=width)
            bits = bits_of_contour(proof, parts, width=width)
            if isinstance(proof, ParityProof):
                # A difference of two numbers of about 1 is as small as delta exp(-epsilon).
                lost = epsilon - about_log_delta(parts, epsilon)
                bits += math.ceil(lost / math.log(2))
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


def has_contour(parts: Parts) -> bool:
    """Return whether every loss has a transform that contours are summed of."""
    known = SampledGaussian, Allocation
    return all(type(loss) is Gaussian or isinstance(loss, known) for loss, _ in parts)


def saddle(total: Total, epsilon: float) -> tuple[float, float]:
    """Return the tilt c > 0 at the integrand's saddle, and the width of its peak there.

    Rays of random allocations are long at small tilts, so that theirs are 1 or more.
    """

    def equation(c: float) -> tuple[float, float, float]:
        _, mean, variance = total.cumulants([c])[0]
        curvature = variance + 1 / c**2 + 1 / (1 + c) ** 2
        return float(mean - epsilon - 1 / c - 1 / (1 + c)), float(curvature), math.nan

    mean, variance = total.at_zero
    gap = epsilon - mean
    root = math.hypot(gap, 2 * math.sqrt(variance))
    guess = (gap + root) / (2 * variance) if gap >= 0 else 2 / (root - gap)
    c = increasing_root(equation, 0.0, math.inf, min(max(guess, 1e-9), 8.0))
    if any(isinstance(loss, Allocation) for loss, _ in total.parts):
        c = max(c, 1.0)
    return c, 1 / math.sqrt(equation(c)[1])


def log_moment(total: Total, tilt: float) -> float:
    """Return the logarithm of M(tilt) of a sum of losses; infinity if it is out of reach."""
    try:
        return float(total.cumulants([tilt])[0, 0])
    except OutOfReach:
        return math.inf


@lru_cache(maxsize=64)
def about_log_delta(parts: Parts, epsilon: float) -> float:
    """Return an approximate log delta(epsilon): a bound, or a saddle-point estimate.

    A delta of 0 is out of reach.
    """
    parts = tuple((getattr(loss, "in_doubles", loss), times) for loss, times in parts)
    bounds = log_delta_bounds(Direction("", parts), epsilon)
    if bounds.lower > -math.inf:
        return bounds.lower
    if bounds.upper > -math.inf:
        return bounds.upper
    total = Total(parts)
    if total.upper <= epsilon:
        raise OutOfReach
    c, peak_width = saddle(total, epsilon)
    peak = float(total.cumulants([c])[0, 0]) - c * epsilon
    return peak - math.log(c * (1 + c) * math.sqrt(2 * math.pi) / peak_width)


@dataclass(frozen=True)
class Piece:
    """One part of a contour, with the integrand that is summed on a lattice, or closed.

    A random allocation is summed on a ray, to these digits at these tilts.
    """

    loss: PrivacyLoss
    times: int
    integrand: Integrand | None
    tilts: tuple[float, ...]
    digits: float

    def substitute(self, step: float = 0.0, nodes: int = 1) -> Substitute:
        """Return the substitute with which the transform at the nodes is computed."""
        if isinstance(self.loss, Allocation):
            far = step * nodes
            return choose_rays(self.loss, self.tilts, digits=self.digits, far=far, nodes=nodes)
        return self.integrand.coarsest() if self.integrand else None

    def decay(self, c: float) -> Callable[[float], tuple[float, Substitute]]:
        """Return upper estimates of log abs(M(c + i s)), s >= t, by t, and their substitutes."""
        if self.integrand:
            return Decay(self.integrand, c).best
        if isinstance(self.loss, Gaussian):
            variance = 1 / self.loss.noise_multiplier**2
            return lambda t: (variance * (c * c + c - t * t) / 2, None)
        assert isinstance(self.loss, Allocation)
        size, rate = float(self.loss.cumulants([c])[0, 0]), self.loss.rate_of_decay
        return lambda t: (size - rate * t * t, None)


def pieces_of(
    parts: Parts, tilts: tuple[float, ...], width: float, log_delta: float
) -> list[Piece]:
    """Return each part with the lattice that it needs.

    The tilts at which transforms are needed increase.
    """
    uses = sum(times for _, times in parts)
    digits = math.log(uses / (SHARE * width)) + _SPARE_DIGITS
    found = []
    for loss, times in parts:
        integrand = None
        if isinstance(loss, SampledGaussian):
            integrand = Integrand(loss, tilts, digits)
        found.append(Piece(loss, times, integrand, tilts, digits))
    return found


def _choose_aliases(
    total: Total, epsilon: float, c: float, peak_width: float, log_floor: float
) -> tuple[float, float, float]:
    """Return the largest step with aliases below exp(log_floor), and the tilts that prove it."""
    below = np.append(0.0, (c - peak_width * _DISTANCES)[c > peak_width * _DISTANCES])
    above = c + peak_width * _DISTANCES

    def steps(tilts: Reals) -> Reals:
        moments = np.array([log_moment(total, float(tilt)) for tilt in tilts])
        bounds = moments + log_chernoff(tilts) - tilts * epsilon
        return 2 * math.pi * np.abs(tilts - c) / np.maximum(bounds - log_floor, 1.0)

    left, right = steps(below), steps(above)
    step = min(float(left.max()), float(right.max()))
    return step, float(below[left.argmax()]), float(above[right.argmax()])


def _choose_nodes(
    pieces: list[Piece], c: float, step: float, log_floor: float
) -> tuple[int, tuple[Substitute, ...]]:
    """Return nearly the fewest nodes with a rest below exp(log_floor), and its tails."""
    decays = [(item.times, item.decay(c)) for item in pieces]

    def is_short(nodes: float) -> bool:
        """Return whether the estimate of the sum over all other nodes is below the floor."""
        log_size = math.log((1 + 1 / nodes) / (math.pi * nodes * step))
        return not log_size + sum(x * decay(nodes * step)[0] for x, decay in decays) > log_floor

    try:
        sides = bracket(is_short, miss=1, start=2, last=MAX_NODES)
    except NoBracket as nothing:
        raise OutOfReach from nothing
    # The sides are powers of 2, so that all middles are whole.
    nodes = int(bisect(is_short, sides, Stop(absolute=1, relative=1 / 64)).meet)
    return nodes, tuple(decay(nodes * step)[1] for _, decay in decays)


def _products(nodes: int, sums: Sequence[Substitute]) -> float:
    """Return nodes times points of all parts."""
    return nodes * sum((item.points if item else 0) + _POINTS_OF_NODE for item in sums)


def choose_contour(
    parts: Parts, epsilon: float, *, width: float, log_delta: float | None = None
) -> ContourProof:
    """Return a contour whose bounds on delta are about ``width`` apart, relative to delta.

    ``log_delta`` is its approximate logarithm; None where the accountant tells it.

    Raises
    ------
    OutOfReach
        If no contour of affordable size exists, or one of the losses has none.
    """
    if not has_contour(parts):
        raise OutOfReach
    log_delta = about_log_delta(parts, epsilon) if log_delta is None else log_delta
    total = Total(parts)
    c, peak_width = saddle(total, epsilon)
    log_floor = log_delta + math.log(SHARE * width)
    step, below, above = _choose_aliases(total, epsilon, c, peak_width, log_floor)
    pieces = pieces_of(parts, (below, c, above), width, log_delta)
    nodes, tails = _choose_nodes(pieces, c, step, log_floor + c * epsilon)
    sums = [item.substitute(step, nodes) for item in pieces]
    tails = tuple(a if isinstance(a, Rays) else b for a, b in zip(sums, tails, strict=True))
    if _products(nodes, sums) > _MAX_PRODUCTS:
        raise OutOfReach
    return ContourProof(c, step, nodes, below, above, tuple(sums), tails)


def choose_parity(
    parts: Parts, epsilon: float, *, width: float, log_delta: float | None = None
) -> ParityProof:
    """Return a contour of the other direction, where all losses tell that direction."""
    opposite = tuple((loss.opposite, times) for loss, times in parts if loss.opposite is not None)
    if len(opposite) < len(parts):
        raise OutOfReach
    log_delta = about_log_delta(parts, epsilon) if log_delta is None else log_delta
    delta = math.exp(log_delta - epsilon)
    if delta == 0:
        raise OutOfReach
    put = delta - math.expm1(-epsilon)
    found = choose_contour(opposite, -epsilon, width=width * delta / put, log_delta=math.log(put))
    return ParityProof(**vars(found))


def choose_chernoff(parts: Parts, epsilon: float, *, width: float) -> ContourProof:
    """Return a contour of one node: of a direction that does not count, Chernoff's bound is enough.

    ``width`` is the accuracy of its moments.
    """
    total = Total(parts)

    def log_bound(c: float) -> float:
        return log_moment(total, c) + float(log_chernoff(c)) - c * epsilon

    best = min(_FIRST_TILTS, key=log_bound)
    finer = [best * 2.0 ** (k / 8) for k in range(-7, 8)]
    for c in sorted({*_FIRST_TILTS, *finer}, key=log_bound):
        with contextlib.suppress(OutOfReach):
            log_delta = max(min(log_bound(c), -1.0), _LEAST_LOG_DELTA)
            sums = [item.substitute() for item in pieces_of(parts, (c / 2, c), width, log_delta)]
            return ContourProof(c / 2, 1.0, 1, 0.0, c, tuple(sums), tuple(sums))
    raise OutOfReach


def bits_of_contour(proof: ContourProof, parts: Parts, *, width: float) -> int:
    """Return the bits that a transform needs before its power is taken, with those lost.

    Terms on the shifted lines may exceed their sum.
    """
    uses, lost = sum(times for _, times in parts), 0.0
    for (loss, _), item in zip(parts, proof.sums, strict=True):
        if isinstance(loss, SampledGaussian) and isinstance(item, ShiftedLattice):
            growth = (item.angle * loss.noise_multiplier) ** 2 / 2
            if loss.direction == "add":
                growth -= proof.above * math.log(math.cos(item.angle / 2))
            lost = max(lost, growth / math.log(2))
        elif isinstance(loss, Allocation) and isinstance(item, Rays | Clones):
            rays = item.rays if isinstance(item, Clones) else item
            lost = max(lost, nats_of(rays, loss.noise_multiplier) / math.log(2))
    bits = _BITS_OF_CONTOURS + 2 * math.ceil(math.log2(uses / width)) + math.ceil(lost)
    return min(bits, BITS[1])
