r"""Which few numbers does a proof about delta(epsilon) need? Chosen fast here, checked elsewhere.

A proof for one direction says where the inversion contour runs, where it may stop, and on which
lattices the transforms are summed. Nothing here is trusted: :mod:`enclosure` derives the interval
from these numbers alone, and bad ones only make it wide.

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc
from scipy.stats import binom, poisson

from dpcal._ext.contour import mixture_log_weights
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.saddle import MAX_TILT, increasing_root, log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = [
    "MAX_LEAST",
    "MAX_LEAST_OF_MANY",
    "MAX_NODES",
    "MAX_POINTS",
    "MAX_TERMS",
    "MAX_WORK",
    "Cells",
    "ChernoffProof",
    "ContourProof",
    "ConvexityProof",
    "Lattice",
    "Parts",
    "Proof",
    "SamplingProof",
    "SumProof",
    "SupportProof",
    "ThresholdProof",
    "choose_chernoff",
    "choose_contour",
    "choose_convexity",
    "choose_cut_chernoff",
    "choose_smoothed",
    "choose_sum",
    "choose_threshold",
    "work",
]

Reals = NDArray[np.float64]
Parts = tuple[tuple[PrivacyLoss, int], ...]
_ON_A_LINE = (Gaussian, SampledGaussian, GaussianMixtures, FixedBatchGaussian)
_COVERED = (
    *_ON_A_LINE,
    Laplace,
    LatticeLoss,
    DiscreteGaussian,
)

# Largest contour and lattice that a proof may use, and that a verifier agrees to recompute.
MAX_NODES = 1 << 17
MAX_POINTS = 1 << 16
# Nodes times points of all parts together (a few seconds).
MAX_WORK = 5e7
_NODE_COST = 16
# What a contour may take that is smoothed as much as it takes.
_SMOOTHED_WORK = 1.5e7
# Terms of a convolution, and the number of outputs that a test may ask to be large: of one part,
# and of several.
MAX_TERMS = 1 << 17
MAX_LEAST, MAX_LEAST_OF_MANY = 1 << 14, 1 << 6
# Distances of the alias tilts from the contour, in widths of the integrand's peak.
_SPREADS = np.array([0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.0, 5.0, 6.0, 8.5, 12.0, 20.0])
# Angles of the shifted lines that are tried; at pi / 2 the bounds on the strip end.
_ANGLES = 1.3 * 0.8 ** np.arange(32.0)
# Tilts of Chernoff bounds that are tried; close to the largest loss the saddle is out of reach.
_TRIAL_TILTS = tuple(2.0**i for i in range(-4, 13))
# How often smoothing is made three times as large, and the levels that thresholds are tried at.
_SMOOTHINGS, _MOST_LEVELS = 9, 200
# Shares of epsilon from which on a single loss counts as large, and cells up to there.
_CUTS, _CUT_CELLS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0), 1000
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
class Cells:
    """Cells of outputs from first step to last step, each step wide, and beyond.

    Of a loss with a density on an interval they are last - first equal parts; of discrete noise,
    the outputs from first to last.
    """

    step: float
    first: int
    last: int


@dataclass(frozen=True)
class ContourProof:
    """Both bounds on delta, by the trapezoid rule on Re z = tilt.

    ``below`` and ``above`` are the tilts whose Chernoff bounds control the aliases. ``sums`` and
    ``tails`` hold, for each part, the lattice for the nodes and that for the bound on what is left
    out; cells, if the part is replaced by finite laws above and below it; None for a Gaussian part,
    whose transform is known. A small Gaussian loss of standard deviation ``smoothing`` may be
    added, which ends every contour; the lower bound is then that at a larger epsilon, by ``shift``,
    less the chance that the added loss is larger than that.
    """

    tilt: float
    step: float
    nodes: int
    below: float
    above: float
    sums: tuple[Lattice | Cells | None, ...]
    tails: tuple[Lattice | Cells | None, ...]
    smoothing: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True)
class ChernoffProof:
    """An upper bound on delta alone, from the Renyi divergence of order 1 + tilt."""

    tilt: float
    sums: tuple[Lattice | Cells | None, ...]


@dataclass(frozen=True)
class ConvexityProof:
    """An upper bound on delta alone, from a bound on each moment by convexity, at one tilt."""

    tilt: float


@dataclass(frozen=True)
class SamplingProof:
    """An upper bound on delta alone: the chance that the record is sampled, and matters, at all."""


@dataclass(frozen=True)
class SumProof:
    """Both bounds on delta of one loss, as the sum over finite laws above and below it.

    A loss on equally spaced values may be used several times: its law is convolved.
    """

    sums: tuple[Cells]


@dataclass(frozen=True)
class ThresholdProof:
    """A lower bound on delta alone, from one test (Neyman and Pearson).

    Its rejection region: at least ``least`` outputs exceed their thresholds. A part whose threshold
    is None is ignored; of a loss with a largest value the output counts if it takes that.
    """

    least: int
    thresholds: tuple[float | None, ...]


@dataclass(frozen=True)
class SupportProof:
    """Delta is 0, because the loss never exceeds epsilon."""


Proof = (
    ContourProof
    | ChernoffProof
    | ConvexityProof
    | SamplingProof
    | SumProof
    | ThresholdProof
    | SupportProof
)


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
        if not isinstance(loss, _COVERED):
            raise UnsupportedEvent(f"No certificate covers {loss!r}.")


@dataclass(frozen=True)
class _Piece:
    """One part of a contour: its integrand, where it has one, or the cells that stand for it."""

    loss: PrivacyLoss
    times: int
    integrand: _Integrand | None
    cells: Cells | None

    def coarsest(self) -> Lattice | Cells | None:
        return self.integrand.coarsest() if self.integrand else self.cells


def _pieces(
    parts: Parts,
    tilts: tuple[float, ...],
    width: float,
    log_delta: float,
    tabled: dict[PrivacyLoss, Cells],
) -> list[_Piece]:
    digits = _digits(parts, width)
    found = []
    for loss, times in parts:
        given = tabled.get(loss)
        if given is None and not isinstance(loss, Gaussian | SampledGaussian):
            given = _cells(loss, tilts[-1], width, log_delta, _log_rest(parts, width, log_delta))
        lined = isinstance(loss, SampledGaussian) and given is None
        integrand = _Integrand(loss, tilts, digits) if lined else None  # type: ignore[arg-type]
        found.append(_Piece(loss, times, integrand, given))
    return found


def _log_rest(parts: Parts, width: float, log_delta: float) -> float:
    """Log of the chance that a single use may leave out."""
    uses = sum(times for _, times in parts)
    return min(log_delta + math.log(_SHARE * width / uses), -8.0)


def _cells(
    loss: PrivacyLoss, tilt: float, width: float, log_delta: float, log_rest: float
) -> Cells:
    """Cells so fine that their finite laws are about ``width`` apart, and wide enough.

    A cell of width d adds at most about d^2 / 6 to the variance of a loss.
    """
    fine = math.sqrt(2 * width / max(1.0, -log_delta))
    if isinstance(loss, LatticeLoss):
        return Cells(1.0, 0, 1)
    if isinstance(loss, Laplace):
        size = min(fine * loss.half_width, math.sqrt(width) / tilt)
        return _limited(1.0, 0.0, 2 * loss.half_width / size)
    reach = math.sqrt(-2 * log_rest)
    if isinstance(loss, DiscreteGaussian):
        far = math.ceil(loss.sigma * reach) + 1
        return _limited(1.0, loss.sensitivity - far, loss.sensitivity + far)
    sigma = float(loss.noise_multiplier)  # type: ignore[attr-defined]
    low, high = _extent(loss)
    gap = max(high - low, 1.0)
    step = sigma * min(fine, math.sqrt(width) * sigma / (tilt * gap), 0.5)
    first = low if isinstance(loss, FixedBatchGaussian) else low - sigma * reach
    # A component of weight w leaves out no more than w does.
    last = max(
        mean + sigma * math.sqrt(-2 * min(log_rest - math.log(max(weight, 1e-300)), -4.0))
        for mean, weight in _mixtures(loss)[0]
    )
    return _limited(step, first / step, last / step)


def _extent(loss: PrivacyLoss) -> tuple[float, float]:
    """Smallest and largest mean of a pair of mixtures."""
    if isinstance(loss, GaussianMixtures):
        means = [mean for mean, _ in (*loss.numerator, *loss.denominator)]
        return min(means), max(means)
    if isinstance(loss, FixedBatchGaussian):
        return 0.5, 1.0
    if isinstance(loss, SampledGaussian) and loss.direction == "add":
        return -1.0, 0.0
    return 0.0, 1.0


def _limited(step: float, first: float, last: float) -> Cells:
    if not last - first < MAX_POINTS / 4:
        raise OutOfReach
    return Cells(step, math.floor(first), math.ceil(last))


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


def choose_contour(
    parts: Parts,
    epsilon: float,
    *,
    width: float,
    smoothing: float = 0.0,
    tabled: dict[PrivacyLoss, Cells] | None = None,
) -> ContourProof:
    """Choose a contour whose bounds on delta are about ``width`` apart, relative to delta.

    Parameters
    ----------
    parts
        Losses, and how often each is used.
    epsilon
        Where delta is bounded.
    width
        Relative width that is aimed at; smoothing adds to it.
    smoothing
        Standard deviation >= 0 of an added Gaussian loss, at which every contour ends.
    tabled
        Cells for losses that are taken within them: what lies beyond counts as infinite.

    Raises
    ------
    UnsupportedEvent
        For another kind of loss.
    OutOfReach
        If no contour of affordable size exists.
    """
    _check(parts)
    log_delta = _log_delta(parts, epsilon)
    added: Parts = ((Gaussian(1 / smoothing), 1),) if smoothing else ()
    total = _Tables(parts + added, tabled or {})
    c, peak_width = _saddle(total, epsilon)
    log_floor = log_delta + math.log(_SHARE * width)
    step, below, above = _choose_aliases(total, epsilon, c, peak_width, log_floor)
    pieces = _pieces(parts + added, (below, c, above), width, log_delta, tabled or {})
    nodes, tails = _choose_nodes(pieces, c, step, log_floor + c * epsilon)
    sums = [item.coarsest() for item in pieces]
    if work(nodes, sums) > (_SMOOTHED_WORK if smoothing else MAX_WORK):
        raise OutOfReach
    count = len(parts)
    shift = smoothing**2 / 2 + smoothing * math.sqrt(-2 * log_floor) if smoothing else 0.0
    return ContourProof(
        c, step, nodes, below, above, tuple(sums[:count]), tails[:count], smoothing, shift
    )


def work(nodes: int, sums: Sequence[Lattice | Cells | None]) -> float:
    """Nodes times points of all parts; a node costs as much as a few points."""
    return nodes * sum((item.last - item.first if item else 0) + _NODE_COST for item in sums)


@lru_cache(maxsize=64)
def _log_delta(parts: Parts, epsilon: float) -> float:
    """About log delta(epsilon): proved from below, or from above, or a saddle-point estimate."""
    bounds = log_delta_bounds(Direction("", parts), epsilon)
    if bounds.lower > -math.inf:
        return bounds.lower
    log_delta = bounds.upper
    if log_delta == -math.inf and Total(parts).upper <= epsilon:
        raise OutOfReach
    if log_delta == -math.inf:
        total = Total(parts)
        c, peak_width = _saddle(total, epsilon)
        peak = float(total.cumulants([c])[0, 0]) - c * epsilon
        log_delta = peak - math.log(c * (1 + c) * math.sqrt(2 * math.pi) / peak_width)
    return log_delta


def choose_smoothed(
    parts: Parts, epsilon: float, *, width: float, cut: bool = False
) -> ContourProof:
    """Choose a contour that an added Gaussian loss ends: the least loss that is affordable.

    Parameters and errors as for :func:`choose_contour`; with ``cut``, the rarest large losses of
    sampled mechanisms count as infinite.
    """
    _check(parts)
    log_delta = _log_delta(parts, epsilon)
    tabled: dict[PrivacyLoss, Cells] = {}
    if cut:
        log_rest = _log_rest(parts, width, log_delta)
        for loss, _ in parts:
            if isinstance(loss, _ON_A_LINE[1:]):
                tabled[loss] = _cells(loss, 1.0, width, log_delta, log_rest)
    c, _ = _saddle(_Tables(parts, tabled), epsilon)
    reach = math.sqrt(-2 * (log_delta + math.log(_SHARE * width)))
    smoothing = width / (4 * c * reach)
    for _ in range(_SMOOTHINGS):
        try:
            return choose_contour(parts, epsilon, width=width, smoothing=smoothing, tabled=tabled)
        except OutOfReach:
            smoothing *= 3
    raise OutOfReach


def _source(piece: _Piece) -> _Table | PrivacyLoss:
    """Whose cumulants those of a part in cells are about."""
    if piece.cells is not None and isinstance(piece.loss, _ON_A_LINE):
        return _Table(piece.loss, piece.cells)
    return piece.loss


def _choose_nodes(
    pieces: list[_Piece], c: float, step: float, log_floor: float
) -> tuple[int, tuple[Lattice | Cells | None, ...]]:
    """Fewest nodes beyond which all the rest stays below exp(log_floor), with the proof of that."""
    decays = [_Decay(item.integrand, c) if item.integrand else None for item in pieces]
    fixed = [
        item.times * float(_source(item).cumulants([c])[0, 0]) if item.cells else 0.0
        for item in pieces
    ]

    def rest(nodes: int) -> tuple[float, tuple[Lattice | Cells | None, ...]]:
        t = nodes * step
        log_size = math.log((1 + 1 / nodes) / (math.pi * t)) + sum(fixed)
        lattices: list[Lattice | Cells | None] = []
        for decay, item in zip(decays, pieces, strict=True):
            lattice: Lattice | Cells | None = item.cells
            if decay:
                value, lattice = decay.best(t)
                log_size += item.times * value
            elif isinstance(item.loss, Gaussian):
                variance = 1 / item.loss.noise_multiplier**2
                log_size += item.times * variance * (c * c + c - t * t) / 2
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


def choose_chernoff(parts: Parts, epsilon: float, *, width: float) -> ChernoffProof:
    """Choose the tilt of a good Chernoff bound.

    Parameters and errors as for :func:`choose_contour`.
    """
    _check(parts)
    total = Total(parts)
    best = min(_TRIAL_TILTS, key=lambda c: _log_chernoff_bound(total, c, epsilon))
    finer = [best * 2.0 ** (k / 8) for k in range(-7, 8)]
    tilts = sorted({*_TRIAL_TILTS, *finer}, key=lambda c: _log_chernoff_bound(total, c, epsilon))
    for c in tilts:
        try:
            log_delta = min(_log_chernoff_bound(total, c, epsilon), -1.0)
            pieces = _pieces(parts, (c,), width, max(log_delta, -1e6), {})
            return ChernoffProof(c, tuple(item.coarsest() for item in pieces))
        except OutOfReach:
            continue
    raise OutOfReach


def choose_cut_chernoff(parts: Parts, epsilon: float) -> ChernoffProof:
    """Choose a Chernoff bound given that no single loss is large, and the chance that one is.

    Parameters and errors as for :func:`choose_contour`.
    """
    _check(parts)
    # A Gaussian's large losses are no rarer than its moments say.
    if not all(isinstance(loss, _ON_A_LINE[1:]) for loss, _ in parts) or epsilon <= 0:
        raise OutOfReach
    best: tuple[float, ChernoffProof] | None = None
    for share in _CUTS:
        tabled: dict[PrivacyLoss, Cells] = {}
        beyond = 0.0
        for loss, times in parts:
            test = _Test(loss)
            at = test.threshold(share * epsilon)
            if at is None:
                at = float(test.x[-1])
            sigma = float(loss.noise_multiplier)  # type: ignore[attr-defined]
            first = 0.5 if isinstance(loss, FixedBatchGaussian) else _extent(loss)[0] - 8 * sigma
            step = max(at - first, sigma) / _CUT_CELLS
            tabled[loss] = _limited(step, first / step, max(at, first + sigma) / step)
            if math.isinf(loss.upper):
                beyond += times * test.chances(tabled[loss].last * step)[0]
        total = _Tables(parts, tabled)
        tilts = np.geomspace(0.1, 1e4, 120) / min(epsilon, 1.0)
        bounds = total.cumulants(tilts)[:, 0] + log_chernoff(tilts) - tilts * epsilon
        chosen = int(np.argmin(bounds))
        value = beyond + math.exp(min(float(bounds[chosen]), 0.0))
        sums = tuple(tabled[loss] for loss, _ in parts)
        if best is None or value < best[0]:
            best = value, ChernoffProof(float(tilts[chosen]), sums)
    if best is None:
        raise OutOfReach
    return best[1]


def choose_convexity(parts: Parts, epsilon: float) -> ConvexityProof:
    """Choose the tilt at which bounds by convexity on the moments are best.

    Parameters and errors as for :func:`choose_contour`.
    """
    _check(parts)
    total = Total(parts)
    tilts = np.geomspace(1e-6, MAX_TILT, 400)
    sizes = [total.log_mgf_bound(float(c)) - c * epsilon + float(log_chernoff(c)) for c in tilts]
    return ConvexityProof(float(tilts[int(np.argmin(sizes))]))


def choose_sum(parts: Parts, epsilon: float, *, width: float) -> SumProof:
    """Choose the cells of a single use; or of a discrete loss, used as often as is affordable.

    Parameters and errors as for :func:`choose_contour`.
    """
    _check(parts)
    if len(parts) != 1:
        raise OutOfReach
    loss, times = parts[0]
    log_delta = _log_delta(parts, epsilon)
    log_rest = min(log_delta + math.log(_SHARE * width / times), -8.0)
    slope = 1.0
    if isinstance(loss, Gaussian | SampledGaussian):
        # As a pair of mixtures, at its loss's slope.
        slope = max(1.0, _saddle(Total(parts), epsilon)[0])
    for aim in (width * 10.0**k for k in range(13)):
        with contextlib.suppress(OutOfReach):
            chosen = _cells(loss, slope, min(aim, 0.1), log_delta, log_rest)
            break
    else:
        raise OutOfReach
    discrete = isinstance(loss, LatticeLoss | DiscreteGaussian)
    values = len(loss.multiples) if isinstance(loss, LatticeLoss) else chosen.last - chosen.first
    if times > 1 and not (discrete and values * times <= MAX_TERMS):
        raise OutOfReach
    return SumProof((chosen,))


# -- outputs on a line, in floats


def _mixtures(loss: PrivacyLoss) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Means and weights of P and of Q, along which the loss grows."""
    if isinstance(loss, GaussianMixtures):
        return list(loss.numerator), list(loss.denominator)
    if isinstance(loss, Gaussian):
        return [(1.0, 1.0)], [(0.0, 1.0)]
    q = float(loss.sampling_probability)  # type: ignore[attr-defined]
    if isinstance(loss, SampledGaussian) and loss.direction == "add":
        return [(0.0, 1.0)], [(0.0, 1 - q), (-1.0, q)]
    return [(0.0, 1 - q), (1.0, q)], [(0.0, 1.0)]


def _line_losses(loss: PrivacyLoss, x: Reals) -> Reals:
    """The loss at outputs, with the digits of small values."""
    sigma = float(loss.noise_multiplier)  # type: ignore[attr-defined]
    sides = []
    for mixture in _mixtures(loss):
        exponents = np.array([a * (2 * x - a) / (2 * sigma**2) for a, _ in mixture])
        weights = np.array([[w] for _, w in mixture])
        gains = (weights * np.expm1(np.minimum(exponents, 1.0))).sum(axis=0)
        far = np.logaddexp.reduce(np.log(np.maximum(weights, 1e-300)) + exponents)
        sides.append(np.where(exponents.max(axis=0) < 1.0, np.log1p(gains), far))
    return np.asarray(sides[0] - sides[1])


def _line_tails(loss: PrivacyLoss, x: Reals, side: int) -> Reals:
    """P (side 0) or Q (side 1) of the outputs beyond x."""
    scale = float(loss.noise_multiplier) * math.sqrt(2)  # type: ignore[attr-defined]
    terms = [w * erfc((x - mean) / scale) / 2 for mean, w in _mixtures(loss)[side]]
    return np.asarray(sum(terms))


class _Table:
    """Cumulants of the law of one loss within its cells, in floats: rare large losses are cut."""

    def __init__(self, loss: PrivacyLoss, cells: Cells) -> None:
        x = cells.step * np.arange(cells.first, cells.last + 1.0)
        batch = isinstance(loss, FixedBatchGaussian)
        x = x[x > 0.5] if batch else x
        q = -np.diff(_line_tails(loss, x, 1))
        ell = _line_losses(loss, (x[1:] + x[:-1]) / 2)
        if batch:
            ell, q = np.concatenate([-ell, ell]), np.concatenate([q * np.exp(ell), q])
            ell, q = np.append(ell, 0.0), np.append(q, max(1 - q.sum(), 0.0))
        with np.errstate(divide="ignore"):
            # An underflow counts for nothing, however large the loss there is.
            self.log_q = np.log(q / q.sum())
        # Shifted so that P is a law as well.
        self.ell = ell - self._log_mgf(1.0, ell)

    def _log_mgf(self, power: float, ell: Reals) -> float:
        """Log of the sum of q exp(power ell), with the digits of what is near 0."""
        x, sizes = power * ell, self.log_q + power * ell
        if float(sizes.max()) < 1.0:
            q = np.exp(self.log_q)
            gains = np.where(x < 1.0, q * np.expm1(np.minimum(x, 1.0)), np.exp(sizes) - q)
            if float(gains.sum()) > -0.5:
                return math.log1p(float(gains.sum()))
        return float(np.logaddexp.reduce(sizes))

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Log M, mean and variance at each tilt."""
        rows = []
        for power in 1.0 + np.atleast_1d(np.asarray(c, dtype=float)):
            log_mgf = self._log_mgf(float(power), self.ell)
            weights = np.exp(self.log_q + power * self.ell - log_mgf)
            mean = float(weights @ self.ell)
            rows.append((log_mgf, mean, float(weights @ (self.ell - mean) ** 2)))
        return np.array(rows)


class _Tables(Total):
    """A sum of losses, those of some parts within their cells."""

    def __init__(self, parts: Parts, tabled: dict[PrivacyLoss, Cells]) -> None:
        super().__init__(parts)
        self.sources = [
            (_Table(loss, tabled[loss]) if loss in tabled else loss, times) for loss, times in parts
        ]

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Log M, mean and variance of the tilted sums."""
        total = np.zeros((len(c), 3))
        for source, times in self.sources:
            total += times * source.cumulants(c)[:, :3]
        return total


# -- tests


def choose_threshold(parts: Parts, epsilon: float) -> ThresholdProof:
    """Choose a test whose errors bound delta from below.

    Parameters and errors as for :func:`choose_contour`.
    """
    _check(parts)
    tests = [_Test(loss) for loss, _ in parts]
    levels = np.unique(np.concatenate([test.levels for test in tests]))
    if len(levels) > _MOST_LEVELS:
        levels = levels[:: -(-len(levels) // _MOST_LEVELS)]
    best: tuple[float, int, tuple[float | None, ...]] = (0.0, 1, ())
    for level in levels:
        thresholds = tuple(test.threshold(float(level)) for test in tests)
        chances = [
            (*test.chances(at), times)
            for test, at, (_, times) in zip(tests, thresholds, parts, strict=True)
            if at is not None
        ]
        if chances:
            value, least = _power_of(chances, epsilon)
            if value > best[0]:
                best = value, least, thresholds
    if best[0] <= 0:
        raise OutOfReach
    return ThresholdProof(best[1], best[2])


class _Test:
    """Thresholds on one output, in floats."""

    def __init__(self, loss: PrivacyLoss) -> None:
        self.loss = loss
        self.x = np.empty(0)
        if isinstance(loss, _ON_A_LINE):
            low, high = _extent(loss)
            low = low if isinstance(loss, FixedBatchGaussian) else low - 5 * loss.noise_multiplier
            self.x = np.linspace(low, high + 38 * loss.noise_multiplier, 4000)
            self.levels = _line_losses(loss, self.x)
        elif isinstance(loss, DiscreteGaussian):
            reach = math.ceil(30 * loss.sigma)
            self.x = np.arange(-reach, reach + loss.sensitivity + 1.0)
            s = loss.sensitivity
            self.levels = np.asarray(s * (2 * self.x - s) / (2 * loss.sigma**2))
        else:
            self.levels = np.array([loss.upper])

    def threshold(self, level: float) -> float | None:
        """The output at which the loss is about so large, None if it never is."""
        if not len(self.x):
            return 0.0 if level <= self.loss.upper else None
        index = int(np.searchsorted(self.levels, level))
        return float(self.x[index]) if index < len(self.x) else None

    def chances(self, at: float) -> tuple[float, float]:
        """P and Q of an output that exceeds a threshold."""
        loss = self.loss
        if isinstance(loss, _ON_A_LINE):
            p, q = (float(_line_tails(loss, np.array(at), side)) for side in (0, 1))
            return p, q
        if isinstance(loss, DiscreteGaussian):
            scale = loss.sigma * math.sqrt(2)
            p, q = (float(erfc((at - 0.5 - m) / scale)) / 2 for m in (loss.sensitivity, 0))
            return p, q
        p = 0.5 if isinstance(loss, Laplace) else 1 / (1 + math.exp(-loss.upper))
        return p, p * math.exp(-loss.upper)


def _power_of(chances: list[tuple[float, float, int]], epsilon: float) -> tuple[float, int]:
    """About P(N >= k) - exp(epsilon) Q(N >= k) of the best k, and that k."""
    rates = [sum(times * item[side] for *item, times in chances) for side in (0, 1)]
    if not 0 < rates[1] < rates[0]:
        return 0.0, 1
    # Where the likelihood ratio of two Poisson laws exceeds exp(epsilon).
    least = math.ceil((epsilon + rates[0] - rates[1]) / math.log(rates[0] / rates[1]))
    most = MAX_LEAST if len(chances) == 1 else MAX_LEAST_OF_MANY
    best = (0.0, 1)
    for k in {1, *range(max(1, least - 1), least + 2)}:
        if k > most:
            continue
        if len(chances) == 1:
            p, q, times = chances[0]
            tails = [float(binom.sf(k - 1, times, chance)) for chance in (p, q)]
        else:
            tails = [float(poisson.sf(k - 1, rate)) for rate in rates]
        value = tails[0] - math.exp(min(epsilon, 700.0)) * tails[1]
        best = max(best, (value, k))
    return best
