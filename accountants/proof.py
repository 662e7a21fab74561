r"""Which few numbers does a proof about delta(epsilon) need? Chosen fast here, checked elsewhere.

A proof for one direction says where the inversion contour runs, where it may stop, and on which
lattices the transforms are summed. Nothing here is trusted: :mod:`enclosure` derives the interval
from these numbers alone, and bad ones only make it wide.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.composition import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> remove = decompose(event, "add-or-remove-one").directions[0]
>>> proof = choose_contour(remove.parts, 8.0, width=1e-3)
>>> proof.nodes < 100, 0 < proof.below < proof.tilt < proof.above
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.contour import mixture_log_weights
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.composition import Direction
from dpcal.accountants.loss import Gaussian, OutOfReach, PrivacyLoss
from dpcal.accountants.measures import Total
from dpcal.accountants.saddle import increasing_root, log_chernoff
from dpcal.accountants.sampled import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = [
    "MAX_NODES",
    "MAX_POINTS",
    "MAX_WORK",
    "ChernoffProof",
    "ContourProof",
    "Lattice",
    "Proof",
    "SupportProof",
    "choose_chernoff",
    "choose_contour",
]

Reals = NDArray[np.float64]
Parts = tuple[tuple[PrivacyLoss, int], ...]

# Largest contour and lattice that a proof may use, and that a verifier agrees to recompute.
MAX_NODES = 1 << 17
MAX_POINTS = 1 << 16
# Nodes times points of all parts together (a few seconds).
MAX_WORK = 5e7
# Distances of the alias tilts from the contour, in widths of the integrand's peak.
_SPREADS = np.array([0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.0, 5.0, 6.0, 8.5, 12.0, 20.0])
# Angles of the shifted lines that are tried; at pi / 2 the bounds on the strip end.
_ANGLES = 1.3 * 0.8 ** np.arange(32.0)
# Tilts of Chernoff bounds that are tried; close to the largest loss the saddle is out of reach.
_TRIAL_TILTS = tuple(2.0**i for i in range(-4, 13))
# Aliasing, truncation and quadrature may each contribute this share of the width.
_SHARE = 1 / 16


@dataclass(frozen=True)
class Lattice:
    """Points j step + i angle sigma^2, first <= j <= last, of a shifted trapezoid rule.

    The line lies above the real axis when removing a record and below when adding one.
    """

    angle: float
    step: float
    first: int
    last: int


@dataclass(frozen=True)
class ContourProof:
    """Both bounds on delta, by the trapezoid rule on Re z = tilt.

    ``below`` and ``above`` are the tilts whose Chernoff bounds control the aliases. ``sums`` and
    ``tails`` hold, for each part, the lattice for the nodes and that for the bound on what is left
    out; None for a Gaussian part, whose transform is known.
    """

    tilt: float
    step: float
    nodes: int
    below: float
    above: float
    sums: tuple[Lattice | None, ...]
    tails: tuple[Lattice | None, ...]


@dataclass(frozen=True)
class ChernoffProof:
    """An upper bound on delta alone, from the moment at one tilt."""

    tilt: float
    sums: tuple[Lattice | None, ...]


@dataclass(frozen=True)
class SupportProof:
    """Delta is 0, because the loss never exceeds epsilon."""


Proof = ContourProof | ChernoffProof | SupportProof


def _saddle(total: Total, epsilon: float) -> tuple[float, float]:
    """Tilt c > 0 at the integrand's saddle, and the width of its peak there."""

    def equation(c: float) -> tuple[float, float]:
        _, mean, variance = total.cumulants([c])[0]
        curvature = variance + 1 / c**2 + 1 / (1 + c) ** 2
        return float(mean - epsilon - 1 / c - 1 / (1 + c)), float(curvature)

    mean, variance = total.at_zero
    gap = epsilon - mean
    root = math.hypot(gap, 2 * math.sqrt(variance))
    guess = (gap + root) / (2 * variance) if gap >= 0 else 2 / (root - gap)
    c = increasing_root(equation, 0.0, math.inf, min(max(guess, 1e-9), 8.0))
    return c, 1 / math.sqrt(equation(c)[1])


def _digits(parts: Parts, width: float) -> float:
    """Log of the accuracy that each transform needs, given how often it is multiplied."""
    return math.log(sum(times for _, times in parts) / (_SHARE * width)) + 3.0


class _Integrand:
    """phi_sigma(x) w(x)^p on shifted lines, for one sampled Gaussian, in floats."""

    def __init__(self, loss: SampledGaussian, tilts: tuple[float, ...], digits: float) -> None:
        self.loss, self.digits = loss, digits
        self.sigma = loss.noise_multiplier
        self.powers = [float(loss._power(c)) for c in tilts]
        values = loss.cumulants(tilts)[:, 0]
        # By how much the bounds on M exceed M: that by convexity, and that by min w when adding.
        self.convex = self._excess([loss.log_mgf_bound(c) for c in tilts], values)
        self.flat = self._excess([c * loss.upper if c else 0.0 for c in tilts], values)

    @staticmethod
    def _excess(bounds: list[float], values: Reals) -> float:
        return float(max(0.0, (np.asarray(bounds) - values).max()))

    def _range(self, growth: float) -> tuple[float, float]:
        """Where phi w^p may not be left out, given by how much it grows on the line."""
        reaches = [
            self.sigma * math.sqrt(2 * (self.digits + growth + min(excess, 1e300)))
            for excess in (self.convex, self.flat)
        ]
        low, high = min(0.0, *self.powers) - reaches[0], max(0.0, *self.powers) + reaches[0]
        return max(low, -reaches[1]), min(high, reaches[1])

    def lattice(self, angle: float) -> Lattice:
        """The coarsest lattice on the line of this angle that is accurate enough."""
        shift = angle * self.sigma**2
        turned = min(0.0, *self.powers) * math.log(math.cos(angle))
        deviations = (angle * self.sigma) ** 2
        needed = self.digits + min(self.convex, self.flat) + 2 * deviations + turned
        step = 2 * math.pi * shift / needed
        low, high = self._range(deviations / 2 + turned)
        if not (high - low) / step < MAX_POINTS - 2:
            raise OutOfReach
        return Lattice(angle, step, math.floor(low / step), math.ceil(high / step))

    def coarsest(self) -> Lattice:
        """The lattice with the fewest points."""
        found = []
        for angle in _ANGLES:
            try:
                found.append(self.lattice(float(angle)))
            except OutOfReach:
                continue
        if not found:
            raise OutOfReach
        return max(found, key=lambda lattice: lattice.step)


class _Decay:
    """Upper estimates of log abs(M(c + i s)), s >= t, on a family of shifted lines."""

    def __init__(self, integrand: _Integrand, c: float) -> None:
        loss, sigma = integrand.loss, integrand.sigma
        power = float(loss._power(c))
        self.rows: list[tuple[Lattice, Reals, Reals]] = []
        for angle in _ANGLES:
            try:
                lattice = integrand.lattice(float(angle))
            except OutOfReach:
                break
            x = lattice.step * np.arange(lattice.first, lattice.last + 1.0)
            weights = mixture_log_weights(x, loss.sampling_probability, sigma, float(angle))
            scale = lattice.step / (sigma * math.sqrt(2 * math.pi))
            sizes = 0.5 * ((angle * sigma) ** 2 - (x / sigma) ** 2) + power * weights.real
            self.rows.append((lattice, sizes + math.log(scale), weights.imag))

    def best(self, t: float) -> tuple[float, Lattice]:
        """The smallest bound and its lattice."""
        if not self.rows:
            raise OutOfReach
        values = [np.logaddexp.reduce(sizes - t * angles) for _, sizes, angles in self.rows]
        chosen = int(np.argmin(values))
        return float(values[chosen]), self.rows[chosen][0]


def _check(parts: Parts) -> None:
    for loss, _ in parts:
        if not isinstance(loss, Gaussian | SampledGaussian):
            raise UnsupportedEvent(f"No certificate covers {loss!r}.")


def _integrands(
    parts: Parts, tilts: tuple[float, ...], width: float
) -> list[tuple[_Integrand | None, float, int]]:
    """For each part its integrand, if it needs one, its noise multiplier and its count."""
    digits = _digits(parts, width)
    return [
        (
            _Integrand(loss, tilts, digits) if isinstance(loss, SampledGaussian) else None,
            loss.noise_multiplier,  # type: ignore[attr-defined]
            times,
        )
        for loss, times in parts
    ]


def _choose_aliases(
    total: Total, epsilon: float, c: float, peak_width: float, log_floor: float
) -> tuple[float, float, float]:
    """The largest step whose aliases stay below exp(log_floor), and the tilts that prove it."""
    below = np.append(0.0, (c - peak_width * _SPREADS)[c > peak_width * _SPREADS])
    above = c + peak_width * _SPREADS

    def steps(tilts: Reals) -> Reals:
        bounds = total.cumulants(tilts)[:, 0] + log_chernoff(tilts) - tilts * epsilon
        return 2 * math.pi * np.abs(tilts - c) / np.maximum(bounds - log_floor, 1.0)

    left, right = steps(below), steps(above)
    step = min(float(left.max()), float(right.max()))
    return step, float(below[left.argmax()]), float(above[right.argmax()])


def choose_contour(parts: Parts, epsilon: float, *, width: float) -> ContourProof:
    """Choose a contour whose bounds on delta are about ``width`` apart, relative to delta.

    Parameters
    ----------
    parts
        Gaussian and sampled Gaussian losses, and how often each is used.
    epsilon
        Where delta is bounded.
    width
        Relative width that is aimed at.

    Raises
    ------
    UnsupportedEvent
        For another kind of loss.
    OutOfReach
        If no contour of affordable size exists.
    """
    _check(parts)
    total = Total(parts)
    c, peak_width = _saddle(total, epsilon)
    log_delta = log_delta_bounds(Direction("", parts), epsilon).lower
    if log_delta == -math.inf:
        # The saddle-point estimate.
        peak = float(total.cumulants([c])[0, 0]) - c * epsilon
        log_delta = peak - math.log(c * (1 + c) * math.sqrt(2 * math.pi) / peak_width)
    log_floor = log_delta + math.log(_SHARE * width)
    step, below, above = _choose_aliases(total, epsilon, c, peak_width, log_floor)
    integrands = _integrands(parts, (below, c, above), width)
    nodes, tails = _choose_nodes(integrands, c, step, log_floor + c * epsilon)
    sums = tuple(item.coarsest() if item else None for item, _, _ in integrands)
    if nodes * sum(item.last - item.first for item in sums if item) > MAX_WORK:
        raise OutOfReach
    return ContourProof(c, step, nodes, below, above, sums, tails)


def _choose_nodes(
    integrands: list[tuple[_Integrand | None, float, int]], c: float, step: float, log_floor: float
) -> tuple[int, tuple[Lattice | None, ...]]:
    """Fewest nodes beyond which all the rest stays below exp(log_floor), with the proof of that."""
    decays = [_Decay(item, c) if item else None for item, _, _ in integrands]

    def rest(nodes: int) -> tuple[float, tuple[Lattice | None, ...]]:
        t = nodes * step
        log_size, lattices = math.log((1 + 1 / nodes) / (math.pi * t)), []
        for decay, (_, sigma, times) in zip(decays, integrands, strict=True):
            value, lattice = (c * c + c - t * t) / (2 * sigma**2), None
            if decay:
                value, lattice = decay.best(t)
            log_size += times * value
            lattices.append(lattice)
        return log_size, tuple(lattices)

    high = 2
    while rest(high)[0] > log_floor:
        high *= 2
        if high > MAX_NODES:
            raise OutOfReach
    low = high // 2
    while high - low > max(1, high // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if rest(middle)[0] > log_floor else (low, middle)
    return high, rest(high)[1]


def _log_chernoff_bound(total: Total, c: float, epsilon: float) -> float:
    """Logarithm of the Chernoff bound on delta(epsilon) at tilt c; infinite out of reach."""
    try:
        return float(total.cumulants([c])[0, 0] + log_chernoff(c) - c * epsilon)
    except OutOfReach:
        return math.inf


def choose_chernoff(parts: Parts, epsilon: float) -> ChernoffProof:
    """Choose the tilt of a good Chernoff bound.

    Parameters and errors as for :func:`choose_contour`.
    """
    _check(parts)
    total = Total(parts)
    tilts = sorted(_TRIAL_TILTS, key=lambda c: _log_chernoff_bound(total, c, epsilon))
    for c in tilts:
        try:
            sums = [item.coarsest() if item else None for item, _, _ in _integrands(parts, (c,), 1)]
        except OutOfReach:
            continue
        return ChernoffProof(c, tuple(sums))
    raise OutOfReach
