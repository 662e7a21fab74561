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
from dataclasses import replace
from decimal import Decimal

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
from dpcal.accountants.certificates.search.threshold import choose_threshold
from dpcal.accountants.certificates.verify import verify_certificate
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.transform import Total
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

# Relative width that is aimed at where none is asked for.
_WIDTH = 1e-3
# Width that is aimed at where the upper bound alone is asked for. At a tenth of it the search
# takes a second round, of 20 seconds, for rare large losses; at ten times, bounds have one digit.
_WIDTH_OF_ONE_SIDE = 1e-2
# Relative accuracies of delta that smoothed contours are chosen for in turn, if the upper bound
# alone is asked for, always without the rarest large losses: the first is enough for most runs of
# thousands of steps.
_AIMS_OF_ONE_SIDE = ((0.1, True), (0.03, True), (0.01, True))
# Factor by which an epsilon is moved outward for the upper bound alone.
_FURTHER_OF_ONE_SIDE = 4.0
# Digits to which an upper bound alone is rounded outward.
_DIGITS_OF_ONE_SIDE = 6
# These bounds may be asked for.
_SIDES = ("both", "upper")
# How often a proof that came out too wide is chosen anew. The first attempt is mostly enough, the
# third is for widths near 1e-15; more of them have never been of use.
_ATTEMPTS = 3
# Factor by which each attempt aims at a smaller width.
_TIGHTER = 1e-2
# How often an epsilon is moved outward until delta is proved there. With fewer moves wide proofs
# settle nothing; each further one takes as long as the first.
_MOVES = 3
# Factor by which the distance grows with each such move.
_FURTHER = 16.0
# Bits that masses of intervals lose as differences of tails.
_BITS_LOST_ON_GRIDS = 64
# Bits of a proof that is a closed form of a few numbers. Bounds are given to three digits or
# more.
_BITS_OF_CLOSED_FORMS = 128
# Bits of accuracy of a sum, besides those that delta and the number of uses take.
_BITS_OF_SUMS = 256
# Bits of accuracy of a contour, besides those that the width and the number of uses take.
_BITS_OF_CONTOURS = 96
# Log delta below which the precision of sums does not grow any further, 1e-434.
_LEAST_LOG_DELTA = -1000.0
# Digits at which the distance of two bounds is read off.
_DIGITS = 60

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
        lower bound is then 0, and ``width`` is about how far the upper one may lie above the
        accountant's.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no proof here covers the event under this relation.
    TargetUnreachable
        If no proof of affordable size gives bounds so close, or any but trivial ones.
    MissingExtra
        If python-flint is not installed.

    >>> from dpcal.accountants.events import GaussianDpEvent
    >>> certificate = certify(GaussianDpEvent(2.0), delta=1e-5, width=1e-6)
    >>> f"[{certificate.lower:.4f}, {certificate.upper:.4f}]", len(certificate.proofs)
    ('[1.9931, 1.9931]', 2)
    """
    if (epsilon is None) == (delta is None):
        raise ValueError(
            f"exactly one of epsilon and delta must be given, got {epsilon!r} and {delta!r}."
        )
    sides = _validate.choice(_SIDES, sides=sides)
    default = _WIDTH if sides == "both" else _WIDTH_OF_ONE_SIDE
    aim = default if width is None else _validate.probability(width=width)
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
    """The arguments for either side, in words."""
    items = [each for item in certificate.proofs for each in item.directions]
    lower = max(items, key=lambda item: item.lower).lower_method
    upper = max(certificate.proofs[-1].directions, key=lambda item: item.upper).upper_method
    return lower if lower == upper else f"{lower} from below and {upper} from above"


class _Search:
    """The search for proofs about one composition."""

    def __init__(self, certificate: Certificate, sides: str) -> None:
        self.composition, self.rounded = certificate.composition, certificate.rounded
        self.sides = sides

    def enough(self, event: DpEvent, epsilon: float, width: float) -> Decimal | None:
        """Return a delta at which an upper bound alone is close; None where both are asked for."""
        if self.sides == "both":
            return None
        relation = self.composition.neighboring_relation
        answer = interface.delta(event, epsilon=epsilon, neighboring_relation=relation)
        return Decimal(answer.upper) * Decimal(1 + width)

    def epsilon(self, delta: float, width: float, event: DpEvent) -> tuple[DeltaBounds, ...]:
        """Prove delta bounds on either side of the float accountant's epsilon."""
        relation = self.composition.neighboring_relation
        answer = interface.epsilon(event, delta=delta, neighboring_relation=relation)
        if not math.isfinite(answer.upper):
            raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")
        both = self.sides == "both"
        margin = width * answer.upper / (4 if both else 2)
        further = _FURTHER if both else _FURTHER_OF_ONE_SIDE
        target = Decimal(delta)

        def proved(side: float) -> DeltaBounds:
            # Half of the distance to the target, as a share of delta, is left to the proof.
            value = interface.log_delta(event, epsilon=side, neighboring_relation=relation).upper
            accuracy = abs(value - math.log(delta)) / 2
            return self.delta(side, min(max(accuracy, 1e-14), 0.5), enough=target)

        upper = _settled(answer.upper, margin, lambda item: item.upper <= target, proved, further)
        if upper is None:
            renyi = interface.epsilon(
                event, delta=delta, neighboring_relation=relation, accountant="renyi"
            )
            gap = renyi.upper - answer.upper
            upper = _settled(answer.upper, gap, lambda item: item.upper <= target, proved)
        if upper is None:
            raise TargetUnreachable(
                f"No argument proves an epsilon at delta = {delta:g}: {_TRIED} were tried, up to "
                f"epsilon = {answer.upper + further**_MOVES * margin:.6g}."
            )
        if not both:
            return (upper,)
        lower = _settled(answer.lower, -margin, lambda item: item.lower >= target, proved)
        return (lower, upper) if lower is not None else (upper,)

    def delta(self, epsilon: float, width: float, enough: Decimal | None = None) -> DeltaBounds:
        """Prove bounds on delta, those of the largest direction at most ``width`` apart.

        Where they lie on one side of ``enough``, they may be further apart.
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
        """The best of each side, as soon as they are close, or the upper one is below ``floor``."""
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
        """Units of work of re-proving what a candidate proves."""
        _, given = direction.finite
        parts = [(enclosed(loss, self.rounded), times) for loss, times in given.parts]
        return work(candidate, parts, bits)

    def _bounds(
        self, direction: Direction, epsilon: float, bits: int, candidate: Proof
    ) -> tuple[Decimal, Decimal]:
        """The bounds that a candidate proves, rounded outward by a hundredth of their distance."""
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
            return outward(_DIGITS_OF_ONE_SIDE)
        gap = relative_width(*outward(_DIGITS))
        return outward(3 - math.floor(math.log10(gap)) if gap > 0 else 3)


def _settled(
    start: float,
    margin: float,
    settles: Callable[[DeltaBounds], bool],
    proved: Callable[[float], DeltaBounds],
    further: float = _FURTHER,
) -> DeltaBounds | None:
    """The first bounds that settle a target, further and further from the start."""
    for _ in range(_MOVES):
        side = start + margin
        if side <= 0 < -margin:
            # A lower bound of 0 on epsilon needs no proof.
            return None
        with contextlib.suppress(TargetUnreachable):
            found = proved(max(side, 0.0))
            if settles(found):
                return found
        margin *= further
    return None


# -- candidates

Candidates = Iterator[tuple[int, Proof]]


def _candidates(
    direction: Direction, epsilon: float, width: float, negligible: bool, sides: str
) -> Candidates:
    """Precisions and proofs to try for one or both sides, the most promising first.

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
    if negligible:
        yield from _chosen(bits, lambda: choose_chernoff(parts, epsilon, width=width))
    yield from _two_sided(parts, epsilon, width, bits)
    aims = ((width, False), (width, True)) if sides == "both" else _AIMS_OF_ONE_SIDE
    for accuracy, cut in aims:
        found = list(_smoothed(parts, epsilon, accuracy, cut))
        yield from found
        if found and sides == "both":
            break
    yield from _chosen(bits, lambda: choose_threshold(parts, epsilon))
    yield from _chosen(bits, lambda: choose_chernoff(parts, epsilon, width=width))
    yield from _chosen(bits, lambda: choose_cut_chernoff(parts, epsilon))
    yield from _chosen(bits, lambda: choose_convexity(parts, epsilon))
    yield _BITS_OF_CLOSED_FORMS, SamplingProof()


def _smoothed(parts: Parts, epsilon: float, width: float, cut: bool) -> Candidates:
    """A smoothed contour, perhaps without the rarest large losses."""
    for _, item in _chosen(0, lambda: choose_smoothed(parts, epsilon, width=width, cut=cut)):
        yield _bits_of_contour(parts, width, item), item


def _two_sided(parts: Parts, epsilon: float, width: float, bits: int) -> Candidates:
    """Contours, or finite sums where there is no contour, for smaller and smaller widths."""
    has_transforms = all(isinstance(loss, Gaussian | SampledGaussian) for loss, _ in parts)
    for attempt in range(_ATTEMPTS):
        aim = width * _TIGHTER**attempt
        found: list[tuple[int, Proof]] = []
        if has_transforms:
            chosen = _chosen(0, lambda: choose_contour(parts, epsilon, width=aim))  # noqa: B023
            found = [(_bits_of_contour(parts, aim, item), item) for _, item in chosen]
        if not found:
            found = list(_chosen(bits, lambda: choose_sum(parts, epsilon, width=aim)))  # noqa: B023
        if not found:
            return
        yield from found


def _chosen(bits: int, choose: Callable[[], Proof]) -> Candidates:
    """The proof, if there is one of affordable size."""
    with contextlib.suppress(OutOfReach):
        yield bits, choose()


def _bits_of_sum(direction: Direction, epsilon: float, width: float) -> int:
    """Precision of a sum that is as small as delta, with the digits that a power costs."""
    uses = sum(times for _, times in direction.parts)
    size = max(log_delta_bounds(direction, epsilon).upper, _LEAST_LOG_DELTA)
    bits = _BITS_OF_SUMS + 2 * math.ceil(-size / math.log(2))
    return min(bits + 2 * math.ceil(math.log2(uses / width)), BITS[1])


def _bits_of_contour(parts: Parts, width: float, chosen: Proof) -> int:
    """Twice the digits that a transform needs before it is raised to its power."""
    uses = sum(times for _, times in parts)
    bits = _BITS_OF_CONTOURS + 2 * math.ceil(math.log2(uses / width))
    if isinstance(chosen, ContourProof):
        bits += _bits_lost(parts, chosen)
    return min(bits, BITS[1])


def _bits_lost(parts: Parts, chosen: ContourProof) -> int:
    """By how much terms on the shifted lines may exceed their sum, in bits."""
    lost = 0.0
    for (loss, _), item in zip(parts, chosen.sums, strict=True):
        if isinstance(loss, SampledGaussian) and isinstance(item, ShiftedLattice):
            growth = (item.angle * loss.noise_multiplier) ** 2 / 2
            if loss.direction == "add":
                growth -= chosen.above * math.log(math.cos(item.angle / 2))
            lost = max(lost, growth / math.log(2))
        elif isinstance(item, Grid):
            lost = max(lost, _BITS_LOST_ON_GRIDS)
    return math.ceil(lost)
