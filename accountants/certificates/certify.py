r"""Which proof gives the narrowest bounds on delta or epsilon? The search for a certificate.

>>> from dpcal.accountants import events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> certificate = certify(event, epsilon=8.0)
>>> certificate.lower < 2.0283809415e-08 < certificate.upper
True
>>> verify_certificate(certificate.to_json()) == certificate
True

The fast accountants and the modules of :mod:`~dpcal.accountants.certificates.search` choose the
numbers of a proof, in floats. The bounds follow from these numbers alone, in ball arithmetic
(:mod:`~dpcal.accountants.certificates.enclosure`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from dpcal import _validate
from dpcal.accountants import interface
from dpcal.accountants.certificates.cost import BITS, MAX_WORK_OF_PROOF, work
from dpcal.accountants.certificates.document import (
    Argument,
    Certificate,
    DeltaBounds,
    DirectionBounds,
    Mechanism,
    relative_width,
)
from dpcal.accountants.certificates.enclosed_losses import enclosed
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose
from dpcal.accountants.certificates.mechanisms import mechanisms_of
from dpcal.accountants.certificates.proofs import (
    ContourProof,
    Grid,
    Parts,
    Proof,
    Rays,
    SamplingProof,
    ShiftedLattice,
    SupportProof,
)
from dpcal.accountants.certificates.search.contour import choose_contour, choose_smoothed
from dpcal.accountants.certificates.search.finite_sum import choose_sum
from dpcal.accountants.certificates.search.moments import (
    choose_chernoff,
    choose_convexity,
    choose_cut_chernoff,
)
from dpcal.accountants.certificates.search.rays import nats_of
from dpcal.accountants.certificates.search.threshold import choose_threshold
from dpcal.accountants.certificates.verify import verify_certificate
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.events import DpEvent, RandomAllocationDpEvent
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import TargetUnreachable

# The records and the verifier are importable from here as well, as from the documented module
# ``dpcal.accountants.certificate`` that this one replaced.
__all__ = [
    "Argument",
    "Certificate",
    "DeltaBounds",
    "DirectionBounds",
    "Mechanism",
    "certify",
    "verify_certificate",
]


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """Settings of the search for bounds on one or both sides.

    Attributes
    ----------
    width
        Default relative width of the bounds.
    share
        Share of the width by which an epsilon is first moved outward.
    further
        Factor by which that distance grows with each move.
    """

    width: float
    share: float
    further: float


_SIDES = {
    "both": _Sides(width=1e-3, share=1 / 4, further=16.0),
    # At a tenth of this width rare large losses take a second round, of 20 seconds; at ten times
    # the width, bounds have one digit.
    "upper": _Sides(width=1e-2, share=1 / 2, further=4.0),
}


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """Limits of the search.

    Attributes
    ----------
    attempts
        Most attempts at a proof of the given width: the third is for widths near 1e-15.
    tighter
        Factor by which the width is reduced for each attempt.
    guesses
        Most proofs that narrow an interval for epsilon, of which the accountant knows little.
    width_of_guess
        Relative width of the bounds on delta of such a proof.
    moves
        Most moves of an epsilon outward until delta is proved there. Each move takes as long as the
        first.
    digits
        Digits to which an upper bound alone is rounded outward.
    digits_of_width
        Digits to which the distance of two bounds is computed.
    """

    attempts: int = 3
    tighter: float = 1e-2
    guesses: int = 12
    width_of_guess: float = 1e-3
    moves: int = 3
    digits: int = 6
    digits_of_width: int = 60


@dataclass(frozen=True, kw_only=True)
class _Bits:
    """Bits of accuracy.

    Attributes
    ----------
    lost_on_grids
        Bits that masses of intervals lose as differences of tails.
    closed_forms
        Bits for closed forms of a few numbers, whose bounds have three digits or more.
    sums, contours
        Bits in addition to those for delta or the width, and for the number of uses.
    least_log_delta
        Log delta below which the bits of sums do not grow further: 1e-434.
    """

    lost_on_grids: int = 64
    closed_forms: int = 128
    sums: int = 256
    contours: int = 96
    least_log_delta: float = -1000.0


_LIMITS, _BITS = _Limits(), _Bits()
# Families whose transforms are enclosed themselves, and not those of laws on grids.
_WITH_TRANSFORMS = (Gaussian, SampledGaussian, Allocation)
# Relative accuracies of delta for which smoothed contours are chosen in turn, if only the upper
# bound is wanted, always without the rarest large losses: the first is enough for most runs of
# thousands of steps.
_AIMS_OF_ONE_SIDE = ((0.1, True), (0.03, True), (0.01, True))

_TRIED = (
    "a contour, a smoothed contour, a finite sum, a test that counts large outputs, Renyi moments, "
    "their bounds by convexity, and the chance of being sampled"
)


def certify(
    event: DpEvent,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    width: float | None = None,
    sides: str = "both",
) -> Certificate:
    """Prove bounds on delta at an epsilon, or on epsilon at a delta, in ball arithmetic.

    Parameters
    ----------
    event
        Any composition of Gaussian mechanisms, on everyone, Poisson samples or batches without
        replacement; of mixtures of Gaussians; of Laplace, discrete Laplace and discrete Gaussian
        noise; of claims (epsilon, delta), whose worst case is bounded; of permute-and-flip.
    epsilon, delta
        Exactly one of them: epsilon >= 0, to bound delta; or delta in (0, 1), to bound epsilon.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    width
        Largest width of the bounds, relative to the upper one; in (0, 1). None aims at 1e-3, and
        takes the narrowest that can be proved.
    sides
        ``"both"``; or ``"upper"`` for an upper bound alone, which takes a fraction of the time. The
        lower bound is then 0, and ``width`` is about the distance of the upper one from the
        accountant's.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no proof here covers the event under this relation.
    TargetUnreachable
        If no proof of affordable size gives bounds of this width, or any but trivial ones.
    MissingExtra
        If python-flint is not installed.

    >>> from dpcal.accountants.events import GaussianDpEvent
    >>> certificate = certify(GaussianDpEvent(2.0), delta=1e-5, width=1e-6)
    >>> f"[{certificate.lower:.4f}, {certificate.upper:.4f}]", len(certificate.proofs)
    ('[1.9931, 1.9931]', 2)
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    if (epsilon is None) == (delta is None):
        raise ValueError(
            f"exactly one of epsilon and delta must be given, got {epsilon!r} and {delta!r}."
        )
    sides = _validate.choice(tuple(_SIDES), sides=sides)
    aim = _SIDES[sides].width if width is None else _validate.probability(width=width)
    mechanisms = mechanisms_of(event)
    proofs: tuple[DeltaBounds, ...]
    if delta is None:
        at = _validate.non_negative(epsilon=epsilon)
        certificate = Certificate(neighboring_relation, mechanisms, None, ())
        search = _Search(certificate, sides)
        proofs = (search.delta(at, aim, search.enough(event, at, aim)),)
    else:
        delta = _validate.probability(delta=delta)
        certificate = Certificate(neighboring_relation, mechanisms, delta, ())
        proofs = _Search(certificate, sides).epsilon(delta, aim, event)
    certificate = Certificate(neighboring_relation, mechanisms, delta, proofs)
    if width is not None and sides == "both" and certificate.width > width:
        raise TargetUnreachable(
            f"No proof of affordable size has relative width {width:g}; the best one has "
            f"{certificate.quantity} in [{certificate.lower:.6g}, {certificate.upper:.6g}], "
            f"of width {certificate.width:.3g}, by {_methods(certificate)}."
        )
    return certificate


def _methods(certificate: Certificate) -> str:
    """Return the arguments for either side, in words."""
    items = [each for item in certificate.proofs for each in item.directions]
    lower = max(items, key=lambda item: item.lower).lower_method
    upper = max(certificate.proofs[-1].directions, key=lambda item: item.upper).upper_method
    return lower if lower == upper else f"{lower} from below and {upper} from above"


class _Search:
    """The search for proofs about one composition."""

    def __init__(self, certificate: Certificate, sides: str) -> None:
        self.composition, self.rounded = certificate.composition, certificate.rounded
        self.mechanisms = certificate.mechanisms
        self.sides = sides

    def enough(self, event: DpEvent, epsilon: float, width: float) -> Decimal | None:
        """Return a delta at which an upper bound alone is close; None for both bounds."""
        if self.sides == "both":
            return None
        relation = self.composition.neighboring_relation
        answer = interface.delta(event, epsilon=epsilon, neighboring_relation=relation)
        return Decimal(answer.upper) * Decimal(1 + width)

    def epsilon(self, delta: float, width: float, event: DpEvent) -> tuple[DeltaBounds, ...]:
        """Return proved delta bounds on either side of the float accountant's epsilon."""
        relation = self.composition.neighboring_relation
        answer = interface.epsilon(event, delta=delta, neighboring_relation=relation)
        if not math.isfinite(answer.upper):
            raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")
        sides, target = _SIDES[self.sides], Decimal(delta)
        low, high = answer.lower, answer.upper
        if any(isinstance(item.event, RandomAllocationDpEvent) for item in self.mechanisms):
            low, high = self._pinned(low, high, target, width)
        margin = width * high * sides.share

        def proved(side: float) -> DeltaBounds:
            # Half of the distance to the target, as a share of delta, is left to the proof.
            value = interface.log_delta(event, epsilon=side, neighboring_relation=relation).upper
            accuracy = abs(value - math.log(delta)) / 2
            if (low, high) != (answer.lower, answer.upper):
                accuracy = min(accuracy, width / 2)
            return self.delta(side, min(max(accuracy, 1e-14), 0.5), enough=target)

        upper = _settled(high, margin, lambda item: item.upper <= target, proved, sides)
        if upper is None:
            renyi = interface.epsilon(
                event, delta=delta, neighboring_relation=relation, accountant="renyi"
            )
            gap = renyi.upper - answer.upper
            upper = _settled(answer.upper, gap, lambda item: item.upper <= target, proved)
        if upper is None:
            raise TargetUnreachable(
                f"No argument proves an epsilon at delta = {delta:g}: {_TRIED} were tried, up to "
                f"epsilon = {answer.upper + sides.further**_LIMITS.moves * margin:.6g}."
            )
        if self.sides == "upper":
            return (upper,)
        lower = _settled(low, -margin, lambda item: item.lower >= target, proved)
        return (lower, upper) if lower is not None else (upper,)

    def _pinned(
        self, low: float, high: float, target: Decimal, width: float
    ) -> tuple[float, float]:
        """Return epsilons about the one of a delta, by proofs where the accountant's are apart."""
        found: list[tuple[float, float]] = []
        for _ in range(_LIMITS.guesses):
            if high - low <= width * high:
                break
            middle = (low + high) / 2
            if len(found) > 1 and found[-1][1] != found[-2][1]:
                (a, u), (b, v) = found[-2:]
                secant = b - v * (b - a) / (v - u)
                middle = secant if low < secant < high else middle
            bounds = self.delta(middle, _LIMITS.width_of_guess)
            if not bounds.lower or relative_width(bounds.lower, bounds.upper) > 1 / 2:
                break
            if bounds.lower <= target <= bounds.upper:
                return middle, middle
            low, high = (middle, high) if bounds.lower > target else (low, middle)
            found.append((middle, float((bounds.upper / target).ln())))
        return low, high

    def delta(self, epsilon: float, width: float, enough: Decimal | None = None) -> DeltaBounds:
        """Return proved bounds on delta, at most ``width`` apart in the largest direction.

        They may be further apart if they lie on one side of ``enough``.
        """
        found: list[DirectionBounds] = []
        for direction in self.composition.directions:
            floor = max((item.lower for item in found), default=Decimal(0))
            found.append(self._direction(direction, epsilon, width, floor, enough))
        return DeltaBounds(epsilon, tuple(found))

    def _direction(
        self,
        direction: Direction,
        epsilon: float,
        width: float,
        floor: Decimal,
        enough: Decimal | None,
    ) -> DirectionBounds:
        """Return the best bounds, once they are close or the upper one is below ``floor``."""
        lower, upper = Decimal(0), Decimal(1)
        for_lower: Argument | None = None
        for_upper: Argument | None = None
        for bits, candidate in _candidates(direction, epsilon, width, floor > 0, self.sides):
            if self._work(direction, bits, candidate) > MAX_WORK_OF_PROOF:
                continue
            low, high = self._bounds(direction, epsilon, bits, candidate)
            argument = Argument(self.sides, bits, candidate)
            if low > lower and self.sides == "both":
                lower, for_lower = low, argument
            if high < upper:
                upper, for_upper = high, argument
            settled = enough is not None and (upper <= enough or lower >= enough)
            if relative_width(lower, upper) <= width or upper <= floor or settled:
                break
        if for_lower is None and for_upper is None:
            raise TargetUnreachable(
                f"No argument says anything about delta at epsilon = {epsilon!r} in direction "
                f"{direction.name!r}: {_TRIED} were tried."
            )
        if for_lower is for_upper and for_upper is not None:
            return DirectionBounds(direction.name, lower, upper, (for_upper,))
        sides = (("lower", for_lower), ("upper", for_upper))
        arguments = tuple(replace(item, proves=side) for side, item in sides if item is not None)
        return DirectionBounds(direction.name, lower, upper, arguments)

    def _work(self, direction: Direction, bits: int, candidate: Proof) -> float:
        """Return the units of work of re-proving a candidate."""
        _, given = direction.finite
        parts = [(enclosed(loss, self.rounded), times) for loss, times in given.parts]
        return work(candidate, parts, bits)

    def _bounds(
        self, direction: Direction, epsilon: float, bits: int, candidate: Proof
    ) -> tuple[Decimal, Decimal]:
        """Return the proved bounds, rounded outward by a hundredth of their distance."""
        ends = enclose(
            candidate,
            direction.parts,
            epsilon,
            bits=bits,
            rounded=self.rounded,
            proves=self.sides,
        )
        outward = decimal_bounds(*ends)
        if self.sides == "upper":
            return outward(_LIMITS.digits)
        gap = relative_width(*outward(_LIMITS.digits_of_width))
        return outward(3 - math.floor(math.log10(gap)) if gap > 0 else 3)


def _settled(
    start: float,
    margin: float,
    settles: Callable[[DeltaBounds], bool],
    proved: Callable[[float], DeltaBounds],
    sides: _Sides = _SIDES["both"],
) -> DeltaBounds | None:
    """Return the first bounds that settle a target, at growing distances from the start."""
    for _ in range(_LIMITS.moves):
        side = start + margin
        if side <= 0 < -margin:
            # A lower bound of 0 on epsilon takes no proof.
            return None
        with contextlib.suppress(TargetUnreachable):
            found = proved(max(side, 0.0))
            if settles(found):
                return found
        margin *= sides.further
    return None


# -- candidates

Candidates = Iterator[tuple[int, Proof]]


def _candidates(
    direction: Direction, epsilon: float, width: float, negligible: bool, sides: str
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
    bits = _bits_of_sum(given, epsilon, width)

    def chosen(choose: Callable[..., Proof], **options: Any) -> list[tuple[int, Proof]]:
        """Return the proof, if there is one of affordable size."""
        with contextlib.suppress(OutOfReach):
            proof = choose(parts, epsilon, **options)
            if isinstance(proof, ContourProof):
                return [(_bits_of_contour(proof, parts, **options), proof)]
            return [(bits, proof)]
        return []

    if negligible:
        yield from chosen(choose_chernoff, width=width)
    has_transforms = all(isinstance(loss, _WITH_TRANSFORMS) for loss, _ in parts)
    for attempt in range(_LIMITS.attempts):
        aim = width * _LIMITS.tighter**attempt
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


def _bits_of_sum(direction: Direction, epsilon: float, width: float) -> int:
    """Return the bits of a sum as small as delta, with the digits that a power loses."""
    uses = sum(times for _, times in direction.parts)
    size = max(log_delta_bounds(direction, epsilon).upper, _BITS.least_log_delta)
    bits = _BITS.sums + 2 * math.ceil(-size / math.log(2))
    return min(bits + 2 * math.ceil(math.log2(uses / width)), BITS[1])


def _bits_of_contour(proof: ContourProof, parts: Parts, *, width: float, cut: bool = False) -> int:
    """Return the bits that a transform needs before its power is taken, with those lost."""
    uses = sum(times for _, times in parts)
    bits = _BITS.contours + 2 * math.ceil(math.log2(uses / width))
    return min(bits + _bits_lost(parts, proof), BITS[1])


def _bits_lost(parts: Parts, chosen: ContourProof) -> int:
    """Return the number of bits by which terms on the shifted lines may exceed their sum."""
    lost = 0.0
    for (loss, _), item in zip(parts, chosen.sums, strict=True):
        if isinstance(loss, SampledGaussian) and isinstance(item, ShiftedLattice):
            growth = (item.angle * loss.noise_multiplier) ** 2 / 2
            if loss.direction == "add":
                growth -= chosen.above * math.log(math.cos(item.angle / 2))
            lost = max(lost, growth / math.log(2))
        elif isinstance(loss, Allocation) and isinstance(item, Rays):
            lost = max(lost, nats_of(item, loss.noise_multiplier) / math.log(2))
        elif isinstance(item, Grid):
            lost = max(lost, _BITS.lost_on_grids)
    return math.ceil(lost)
