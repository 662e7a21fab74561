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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcal._roots import NoBracket, Stop, bisect, bracket
from dpcal.accountants.certificates.cost import BITS
from dpcal.accountants.certificates.proofs import (
    MAX_NODES,
    Clones,
    ContourProof,
    Grid,
    ParityProof,
    Parts,
    Rays,
    ShiftedLattice,
    Substitute,
)
from dpcal.accountants.certificates.search.grids import (
    SHARE,
    Accuracy,
    check_covered,
    choose_grid,
    log_rest,
    on_grid,
    total_on_grids,
)
from dpcal.accountants.certificates.search.lattices import (
    Decay,
    Integrand,
    choose_rays,
    nats_of,
)
from dpcal.accountants.certificates.search.mixtures import CUT_FAMILIES, LINE_FAMILIES
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.saddle import increasing_root, log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation, UnequalAllocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = [
    "about_log_delta",
    "bits_of_contour",
    "choose_contour",
    "choose_parity",
    "choose_smoothed",
    "log_moment",
    "pieces_of",
    "saddle",
]

Reals = NDArray[np.float64]

# Most nodes times points of a contour, all losses together: about 5 seconds at 128 bits.
_MAX_PRODUCTS = 5e7
# Most nodes times points of a smoothed contour; its smoothing is raised until they suffice.
_MAX_SMOOTHED_PRODUCTS = 1.5e7
# Points whose work equals that of a node, beside the points of the losses.
_POINTS_OF_NODE = 16
# Distances of the alias tilts from the contour, in widths of the integrand's peak. Any of them
# gives a valid proof, the best one the largest step.
_DISTANCES = np.array([0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.0, 5.0, 6.0, 8.5, 12.0, 20.0])
# Number of smoothings that are tried, each three times the last, so up to 20,000 times.
_SMOOTHINGS = 9
# Bits in addition to those for the width and for the number of uses, and bits that masses of
# intervals lose as differences of tails.
_BITS_OF_CONTOURS, _LOST_ON_GRIDS = 96, 64
# Log of the factor by which transforms are more accurate than their powers must be.
_SPARE_DIGITS = 3.0


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
    """One part of a contour: its integrand if it is summed on a lattice, or its grid.

    A random allocation is summed on a ray, to these digits at these tilts.
    """

    loss: PrivacyLoss
    times: int
    integrand: Integrand | None
    grid: Grid | None
    tilts: tuple[float, ...]
    digits: float

    def substitute(self, step: float = 0.0, nodes: int = 1) -> Substitute:
        """Return the substitute with which the transform at the nodes is computed."""
        if isinstance(self.loss, Allocation):
            far = step * nodes
            return choose_rays(self.loss, self.tilts, digits=self.digits, far=far, nodes=nodes)
        return self.integrand.coarsest() if self.integrand else self.grid

    def decay(self, c: float) -> Callable[[float], tuple[float, Substitute]]:
        """Return upper estimates of log abs(M(c + i s)), s >= t, by t, and their substitutes."""
        loss, grid = self.loss, self.grid
        if self.integrand:
            return Decay(self.integrand, c).best
        if isinstance(loss, Gaussian) and grid is None:
            variance = 1 / loss.noise_multiplier**2
            return lambda t: (variance * (c * c + c - t * t) / 2, None)
        source = on_grid(loss, grid) if grid and isinstance(loss, LINE_FAMILIES) else loss
        size = float(source.cumulants([c])[0, 0])
        if isinstance(loss, Allocation):
            return lambda t: (size - loss.rate_of_decay * t * t, None)
        return lambda t: (size, grid)


def pieces_of(
    parts: Parts,
    tilts: tuple[float, ...],
    width: float,
    log_delta: float,
    grids: Mapping[PrivacyLoss, Grid],
) -> list[Piece]:
    """Return each part with the lattice or the grid that it needs, where no grid is given.

    The tilts at which transforms are needed increase.
    """
    uses = sum(times for _, times in parts)
    digits = math.log(uses / (SHARE * width)) + _SPARE_DIGITS
    aim = Accuracy(tilts[-1], width, log_delta, log_rest(parts, width, log_delta))
    found = []
    for loss, times in parts:
        grid, integrand = grids.get(loss), None
        if grid is None and isinstance(loss, SampledGaussian):
            integrand = Integrand(loss, tilts, digits)
        elif grid is None and not isinstance(loss, Gaussian | Allocation):
            grid = choose_grid(loss, aim)
        found.append(Piece(loss, times, integrand, grid, tilts, digits))
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
    parts: Parts,
    epsilon: float,
    *,
    width: float,
    smoothing: float = 0.0,
    grids: Mapping[PrivacyLoss, Grid] | None = None,
    log_delta: float | None = None,
) -> ContourProof:
    """Return a contour whose bounds on delta are about ``width`` apart, relative to delta.

    Parameters
    ----------
    parts, epsilon, width
        As of all searches; smoothing adds to the width.
    smoothing
        Standard deviation >= 0 of an added Gaussian loss, by which every contour ends.
    grids
        Grids for losses that are replaced by finite laws: losses beyond count as infinite.
    log_delta
        The approximate logarithm of delta; None where the accountant tells it.

    Raises
    ------
    UnsupportedEvent
        If no proof covers a loss.
    OutOfReach
        If no contour of affordable size exists.
    """
    check_covered(parts)
    grids = grids or {}
    log_delta = about_log_delta(parts, epsilon) if log_delta is None else log_delta
    added: Parts = ((Gaussian(1 / smoothing), 1),) if smoothing else ()
    total = total_on_grids(parts + added, grids)
    c, peak_width = saddle(total, epsilon)
    log_floor = log_delta + math.log(SHARE * width)
    step, below, above = _choose_aliases(total, epsilon, c, peak_width, log_floor)
    pieces = pieces_of(parts + added, (below, c, above), width, log_delta, grids)
    nodes, tails = _choose_nodes(pieces, c, step, log_floor + c * epsilon)
    sums = [item.substitute(step, nodes) for item in pieces]
    tails = tuple(a if isinstance(a, Rays) else b for a, b in zip(sums, tails, strict=True))
    if _products(nodes, sums) > (_MAX_SMOOTHED_PRODUCTS if smoothing else _MAX_PRODUCTS):
        raise OutOfReach
    count = len(parts)
    shift = smoothing**2 / 2 + smoothing * math.sqrt(-2 * log_floor) if smoothing else 0.0
    return ContourProof(
        c, step, nodes, below, above, tuple(sums[:count]), tails[:count], smoothing, shift
    )


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


def choose_smoothed(
    parts: Parts, epsilon: float, *, width: float, cut: bool = False
) -> ContourProof:
    """Return a contour with the smallest smoothing that is affordable.

    With ``cut`` the rarest large losses of sampled mechanisms count as infinite.
    """
    if any(isinstance(loss, UnequalAllocation) for loss, _ in parts):
        # Its transform falls, so that every contour ends without smoothing.
        raise OutOfReach
    log_delta = about_log_delta(parts, epsilon)
    grids: dict[PrivacyLoss, Grid] = {}
    if cut:
        aim = Accuracy(1.0, width, log_delta, log_rest(parts, width, log_delta))
        for loss, _ in parts:
            if isinstance(loss, CUT_FAMILIES):
                grids[loss] = choose_grid(loss, aim)
    c, _ = saddle(total_on_grids(parts, grids), epsilon)
    reach = math.sqrt(-2 * (log_delta + math.log(SHARE * width)))
    smoothing = width / (4 * c * reach)
    for _ in range(_SMOOTHINGS):
        try:
            return choose_contour(parts, epsilon, width=width, smoothing=smoothing, grids=grids)
        except OutOfReach:
            smoothing *= 3
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
        elif isinstance(item, Grid):
            lost = max(lost, _LOST_ON_GRIDS)
    bits = _BITS_OF_CONTOURS + 2 * math.ceil(math.log2(uses / width)) + math.ceil(lost)
    return min(bits, BITS[1])
