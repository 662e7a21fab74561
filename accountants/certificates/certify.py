r"""How can anyone check an epsilon or a delta? A small document, and a function that re-proves it.

>>> from dpcal.accountants import events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> certificate = certify(event, epsilon=8.0)
>>> certificate.lower < 2.0283809415e-08 < certificate.upper
True
>>> verify_certificate(certificate.to_json()) == certificate
True

The fast accountants choose the numbers of a proof (:mod:`proof`); what they prove follows from them
alone, in ball arithmetic (:mod:`enclosure`). A verifier trusts python-flint, the bounds stated in
that module, and the theorems behind :func:`dpcal.accountants.mechanisms.decompose.decompose`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import attr

from dpcal import _validate
from dpcal.accountants import interface
from dpcal.accountants.certificates import proofs as proof
from dpcal.accountants.certificates.proofs import (
    Cells,
    ChernoffProof,
    ContourProof,
    ConvexityProof,
    Lattice,
    Parts,
    Proof,
    SamplingProof,
    SumProof,
    SupportProof,
    ThresholdProof,
)
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import RELATIONS, Composition, Direction
from dpcal.accountants.events import (
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NoOpDpEvent,
    PermuteAndFlipDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.errors import CertificateRejected, TargetUnreachable, UnsupportedEvent

__all__ = [
    "Argument",
    "Certificate",
    "DeltaBounds",
    "DirectionBounds",
    "Mechanism",
    "certify",
    "verify_certificate",
]

_FORMAT = "dpcal-certificate-2"
_METHODS: dict[type[Proof], str] = {
    ContourProof: "contour",
    ChernoffProof: "Renyi moment",
    ConvexityProof: "convexity",
    SamplingProof: "sampling",
    SumProof: "finite sum",
    ThresholdProof: "threshold test",
    SupportProof: "support",
}
# Mechanisms whose dominating pairs the proofs can enclose from their parameters, and the classes
# whose sampling probability is a quotient that was rounded.
_EVENTS: tuple[type[DpEvent], ...] = (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    MixtureOfGaussiansDpEvent,
    LaplaceDpEvent,
    DiscreteLaplaceDpEvent,
    DiscreteGaussianDpEvent,
    EpsilonDeltaDpEvent,
    PermuteAndFlipDpEvent,
)
_DIVIDED = (SampledWithoutReplacementDpEvent, MixtureOfGaussiansDpEvent)
_CLASSES = {item.__name__: item for item in _EVENTS}
_COVERED = (
    "Gaussian mechanisms, on everyone, Poisson samples or batches without replacement, mixtures of "
    "Gaussians, Laplace, discrete Laplace and discrete Gaussian noise, and claims of (epsilon, "
    "delta) or permute-and-flip"
)
# Precisions that a verifier agrees to work at.
_BITS = (64, 4096)
# How often a proof that came out too wide is tried anew, and by how much its aim is lowered.
_ATTEMPTS, _TIGHTER = 3, 1e-2
# The width that is aimed at where none is asked for.
_WIDTH = 1e-3
# How often, and how much, an epsilon is moved outward until delta is proved there.
_MOVES, _FURTHER = 3, 16.0
# Bits that the masses of a cell lose as differences.
_CELL_BITS = 64
# Values of a discrete loss and components of a mixture, at most.
_MOST_VALUES, _MOST_COMPONENTS = 1 << 16, 1 << 8
# Digits of a recomputed bound before it is compared with a claim.
_MANY_DIGITS = 60


@dataclass(frozen=True)
class Mechanism:
    """An elementary event, used repeatedly."""

    event: DpEvent
    count: int


@dataclass(frozen=True)
class Argument:
    """One proof, the precision it is checked at, and what it proves.

    That is ``"lower"``, ``"upper"`` or ``"both"`` bounds.
    """

    proves: str
    bits: int
    proof: Proof

    @property
    def method(self) -> str:
        """What kind of argument it is."""
        smoothed = isinstance(self.proof, ContourProof) and self.proof.smoothing > 0
        return ("smoothed " if smoothed else "") + _METHODS[type(self.proof)]


@dataclass(frozen=True)
class DirectionBounds:
    """Bounds on delta in one direction of the relation, and what proves each side.

    A lower bound of 0 and an upper one of 1 need no argument.
    """

    direction: str
    lower: Decimal
    upper: Decimal
    arguments: tuple[Argument, ...]

    @property
    def lower_method(self) -> str:
        """The argument for the lower bound."""
        return self._method("lower")

    @property
    def upper_method(self) -> str:
        """The argument for the upper bound."""
        return self._method("upper")

    def _method(self, side: str) -> str:
        found = [item.method for item in self.arguments if item.proves in (side, "both")]
        return found[0] if found else "none"


@dataclass(frozen=True)
class DeltaBounds:
    """Bounds on delta at one epsilon: the largest of all directions."""

    epsilon: float
    directions: tuple[DirectionBounds, ...]

    @property
    def lower(self) -> Decimal:
        """Proved lower bound on delta(epsilon)."""
        return max(item.lower for item in self.directions)

    @property
    def upper(self) -> Decimal:
        """Proved upper bound on delta(epsilon)."""
        return max(item.upper for item in self.directions)


@dataclass(frozen=True)
class Certificate:
    """Proved bounds on a composition's delta at an epsilon, or on its epsilon at a delta.

    Attributes
    ----------
    neighboring_relation
        The relation that the bounds hold for.
    mechanisms
        What is composed.
    delta
        The delta at which epsilon is bounded; None if delta is bounded at an epsilon.
    proofs
        Bounds on delta at one epsilon; or at the claimed lower and upper bounds on epsilon, where
        delta is proved to be at least and at most the given one (a lower bound of 0 needs no
        proof).
    """

    neighboring_relation: str
    mechanisms: tuple[Mechanism, ...]
    delta: float | None
    proofs: tuple[DeltaBounds, ...]

    @property
    def quantity(self) -> str:
        """What is bounded: ``"delta"`` or ``"epsilon"``."""
        return "delta" if self.delta is None else "epsilon"

    @property
    def lower(self) -> Decimal:
        """Proved lower bound; a decimal, so that no delta is too small."""
        if self.delta is None:
            return self.proofs[0].lower
        return Decimal(self.proofs[0].epsilon if len(self.proofs) == 2 else 0)

    @property
    def upper(self) -> Decimal:
        """Proved upper bound."""
        return self.proofs[-1].upper if self.delta is None else Decimal(self.proofs[-1].epsilon)

    @property
    def composition(self) -> Composition:
        """The dominating pairs that the mechanisms compose."""
        events = [SelfComposedDpEvent(item.event, item.count) for item in self.mechanisms]
        return decompose(ComposedDpEvent(events), self.neighboring_relation)

    @property
    def rounded(self) -> bool:
        """Whether sampling probabilities or weights are quotients that were rounded."""
        return any(isinstance(item.event, _DIVIDED) for item in self.mechanisms)

    @property
    def width(self) -> float:
        """Width of the bounds relative to the upper one."""
        return _gap(self.lower, self.upper)

    @property
    def digest(self) -> str:
        """SHA-256 of the document without its digest, in canonical form."""
        text = json.dumps(self._document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _document(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "neighboring_relation": self.neighboring_relation,
            "quantity": self.quantity,
            "lower": str(self.lower),
            "upper": str(self.upper),
            "delta": self.delta,
            "mechanisms": [
                {"event": _event_document(item.event), "count": item.count}
                for item in self.mechanisms
            ],
            "proofs": [
                {
                    "epsilon": item.epsilon,
                    "directions": [_direction_document(each) for each in item.directions],
                }
                for item in self.proofs
            ],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON values."""
        return {**self._document(), "digest": self.digest}

    def to_json(self) -> str:
        """Return the certificate as a JSON document."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, document: str | Mapping[str, Any]) -> Certificate:
        """Read a document, without checking its proofs.

        Raises
        ------
        CertificateRejected
            If it is malformed or does not agree with its digest.
        """
        values = _parsed(document)
        certificate = _certificate(values)
        for name, value in certificate.to_dict().items():
            if values[name] != value:
                raise CertificateRejected(
                    f"{name} of the certificate must be {value!r} by its other entries, "
                    f"got {values[name]!r}."
                )
        return certificate


def certify(
    event: DpEvent,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    width: float | None = None,
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
    aim = _WIDTH if width is None else _validate.probability(width=width)
    mechanisms = _mechanisms(event)
    proofs: tuple[DeltaBounds, ...]
    if delta is None:
        at = _validate.non_negative(epsilon=epsilon)
        certificate = Certificate(neighboring_relation, mechanisms, None, ())
        proofs = (_Prover(certificate).delta(at, aim),)
    else:
        delta = _validate.probability(delta=delta)
        certificate = Certificate(neighboring_relation, mechanisms, delta, ())
        proofs = _Prover(certificate).epsilon(delta, aim, event)
    certificate = Certificate(neighboring_relation, mechanisms, delta, proofs)
    if width is not None and certificate.width > width:
        raise TargetUnreachable(
            f"No proof of affordable size has relative width {width:g}; the best one has "
            f"{certificate.quantity} in [{certificate.lower:.6g}, {certificate.upper:.6g}], "
            f"of width {certificate.width:.3g}, by {_argued(certificate)}."
        )
    return certificate


def verify_certificate(document: str | Mapping[str, Any] | Certificate) -> Certificate:
    """Re-prove every bound of a certificate from its numbers alone.

    Parameters
    ----------
    document
        A certificate, as JSON text, as the values parsed from it, or as an object.

    Returns
    -------
    Certificate
        The certificate, whose claim holds.

    Raises
    ------
    CertificateRejected
        If the document is malformed, was changed, or claims more than its proofs give.
    MissingExtra
        If python-flint is not installed.
    """
    if isinstance(document, Certificate):
        document = document.to_dict()
    certificate = Certificate.from_json(document)
    try:
        composition = certificate.composition
    except (UnsupportedEvent, TypeError, ValueError) as error:
        raise CertificateRejected(f"The certificate's mechanisms are refused: {error}") from error
    for item in certificate.proofs:
        names = [each.direction for each in item.directions]
        if names != [direction.name for direction in composition.directions]:
            raise CertificateRejected(
                f"directions of the certificate must be those of its mechanisms, got {names!r}."
            )
        for claim, direction in zip(item.directions, composition.directions, strict=True):
            _verify_direction(claim, direction, item.epsilon, certificate.rounded)
    if not _settles(certificate):
        raise CertificateRejected(
            f"The certificate's bounds on delta do not settle its epsilon at delta = "
            f"{certificate.delta!r}."
        )
    return certificate


# -- proving


def _mechanisms(event: DpEvent) -> tuple[Mechanism, ...]:
    """The event as data of the certificate's own."""
    found = []
    for leaf, count in leaves(event).items():
        if isinstance(leaf, NoOpDpEvent):
            continue
        if not _enclosable(leaf):
            raise UnsupportedEvent(f"No certificate covers {leaf!r}: only {_COVERED}.")
        found.append(Mechanism(leaf, count))
    return tuple(found)


def _enclosable(event: DpEvent) -> bool:
    """Whether the event's dominating pair follows from its parameters in balls."""
    if isinstance(event, PoissonSampledDpEvent | SampledWithoutReplacementDpEvent):
        return type(event.event) is GaussianDpEvent
    if isinstance(event, DiscreteLaplaceDpEvent):
        # Its law is written out, value by value.
        return not isinstance(event.sensitivity, int | float) or event.sensitivity <= _MOST_VALUES
    if isinstance(event, MixtureOfGaussiansDpEvent):
        return len(event.sensitivities) <= _MOST_COMPONENTS
    return type(event) in _EVENTS


def _gap(lower: Decimal, upper: Decimal) -> float:
    """Width of an interval relative to its upper end."""
    return float((upper - lower) / upper) if upper else 0.0


def _settles(certificate: Certificate) -> bool:
    """Whether the bounds on delta imply the bounds on epsilon, if such are claimed."""
    if certificate.delta is None:
        return True
    delta, proofs = Decimal(certificate.delta), certificate.proofs
    return proofs[-1].upper <= delta and (len(proofs) == 1 or proofs[0].lower >= delta)


def _argued(certificate: Certificate) -> str:
    """The arguments for either side, in words."""
    items = [each for item in certificate.proofs for each in item.directions]
    lower = max(items, key=lambda item: item.lower).lower_method
    upper = max(certificate.proofs[-1].directions, key=lambda item: item.upper).upper_method
    return lower if lower == upper else f"{lower} from below and {upper} from above"


class _Prover:
    """Finds proofs about one composition."""

    def __init__(self, certificate: Certificate) -> None:
        self.composition, self.rounded = certificate.composition, certificate.rounded

    def epsilon(self, delta: float, width: float, event: DpEvent) -> tuple[DeltaBounds, ...]:
        """Prove delta bounds on either side of the float accountant's epsilon."""
        relation = self.composition.neighboring_relation
        answer = interface.epsilon(event, delta=delta, neighboring_relation=relation)
        if not math.isfinite(answer.upper):
            raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")
        margin = width * answer.upper / 4
        target = Decimal(delta)

        def proved(side: float) -> DeltaBounds:
            # Half of the distance to the target, as a share of delta.
            value = interface.log_delta(event, epsilon=side, neighboring_relation=relation).upper
            accuracy = abs(value - math.log(delta)) / 2
            return self.delta(side, min(max(accuracy, 1e-14), 0.5), enough=target)

        upper = self._settled(answer.upper, margin, lambda item: item.upper <= target, proved)
        if upper is None:
            renyi = interface.epsilon(
                event, delta=delta, neighboring_relation=relation, accountant="renyi"
            )
            further = renyi.upper - answer.upper
            upper = self._settled(answer.upper, further, lambda item: item.upper <= target, proved)
        if upper is None:
            raise TargetUnreachable(
                f"No argument proves an epsilon at delta = {delta:g}: {_TRIED} were tried, up to "
                f"epsilon = {answer.upper + _FURTHER**_MOVES * margin:.6g}."
            )
        lower = self._settled(answer.lower, -margin, lambda item: item.lower >= target, proved)
        return (lower, upper) if lower is not None else (upper,)

    def _settled(
        self,
        start: float,
        margin: float,
        settles: Callable[[DeltaBounds], bool],
        proved: Callable[[float], DeltaBounds],
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
            margin *= _FURTHER
        return None

    def delta(self, epsilon: float, width: float, enough: Decimal | None = None) -> DeltaBounds:
        """Prove bounds on delta, those of the largest direction at most ``width`` apart.

        Where they lie on one side of ``enough``, that is enough.
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
        sides: dict[str, tuple[Decimal, Argument | None]] = {
            "lower": (Decimal(0), None),
            "upper": (Decimal(1), None),
        }
        for bits, candidate in _candidates(direction, epsilon, width, floor > 0):
            lower, upper = _bounds(direction, candidate, epsilon, bits, self.rounded)
            argument = Argument("both", bits, candidate)
            if lower > sides["lower"][0]:
                sides["lower"] = lower, argument
            if upper < sides["upper"][0]:
                sides["upper"] = upper, argument
            low, high = sides["lower"][0], sides["upper"][0]
            settled = enough is not None and (high <= enough or low >= enough)
            if _gap(low, high) <= width or high <= floor or settled:
                break
        (lower, below), (upper, above) = sides["lower"], sides["upper"]
        if below is None and above is None:
            raise TargetUnreachable(
                f"No argument says anything about delta at epsilon = {epsilon!r} in direction "
                f"{direction.name!r}: {_TRIED} were tried."
            )
        if below is above and above is not None:
            return DirectionBounds(direction.name, lower, upper, (above,))
        arguments = [
            replace(item, proves=side) for side, (_, item) in sides.items() if item is not None
        ]
        return DirectionBounds(direction.name, lower, upper, tuple(arguments))


_TRIED = (
    "a contour, a smoothed contour, a finite sum, a test that counts large outputs, Renyi moments, "
    "their bounds by convexity, and the chance of being sampled"
)


def _candidates(
    direction: Direction, epsilon: float, width: float, negligible: bool
) -> Iterator[tuple[int, Proof]]:
    """Precisions and proofs to try, the most promising first."""
    _, given = direction.finite
    parts = given.parts
    if not parts or Total(parts).upper <= epsilon:
        yield _BITS[0], SupportProof()
        if not parts:
            return
    uses = sum(times for _, times in parts)
    size = log_delta_bounds(given, epsilon).upper
    # Of sums that are as small as delta, and of the digits that a power costs.
    small = 256 + 2 * math.ceil(-max(size, -1000.0) / math.log(2))
    bits = min(small + 2 * math.ceil(math.log2(uses / width)), _BITS[1])
    if negligible:
        yield from _chosen(bits, lambda: proof.choose_chernoff(parts, epsilon, width=width))
    analytic = all(isinstance(loss, Gaussian | SampledGaussian) for loss, _ in parts)
    for aim in (width * _TIGHTER**k for k in range(_ATTEMPTS)):
        found: list[tuple[int, Proof]] = []
        if analytic:
            chosen = _chosen(0, lambda: proof.choose_contour(parts, epsilon, width=aim))  # noqa: B023
            found = [(_contour_bits(parts, aim, item), item) for _, item in chosen]
        if not found:
            found = list(
                _chosen(bits, lambda: proof.choose_sum(parts, epsilon, width=aim))  # noqa: B023
            )
        if not found:
            break
        yield from found
    smoothed = list(_chosen(0, lambda: proof.choose_smoothed(parts, epsilon, width=width))) or list(
        _chosen(0, lambda: proof.choose_smoothed(parts, epsilon, width=width, cut=True))
    )
    yield from ((_contour_bits(parts, width, item), item) for _, item in smoothed)
    yield from _chosen(bits, lambda: proof.choose_threshold(parts, epsilon))
    yield from _chosen(bits, lambda: proof.choose_chernoff(parts, epsilon, width=width))
    yield from _chosen(bits, lambda: proof.choose_cut_chernoff(parts, epsilon))
    yield from _chosen(bits, lambda: proof.choose_convexity(parts, epsilon))
    yield _BITS[0] * 2, proof.SamplingProof()


def _chosen(bits: int, choose: Callable[[], Proof]) -> Iterator[tuple[int, Proof]]:
    """The proof, if there is one of affordable size."""
    with contextlib.suppress(OutOfReach):
        yield bits, choose()


def _contour_bits(parts: Parts, width: float, chosen: Proof) -> int:
    """Twice the digits that a transform needs before it is raised to its power."""
    uses = sum(times for _, times in parts)
    bits = 96 + 2 * math.ceil(math.log2(uses / width))
    if isinstance(chosen, ContourProof):
        bits += _lost_bits(parts, chosen)
    return min(bits, _BITS[1])


def _lost_bits(parts: Parts, chosen: ContourProof) -> int:
    """By how much terms on the shifted lines may exceed their sum, in bits."""
    lost = 0.0
    for (loss, _), lattice in zip(parts, chosen.sums, strict=True):
        if isinstance(loss, SampledGaussian) and isinstance(lattice, Lattice):
            growth = (lattice.angle * loss.noise_multiplier) ** 2 / 2
            if loss.direction == "add":
                growth -= chosen.above * math.log(math.cos(lattice.angle / 2))
            lost = max(lost, growth / math.log(2))
        elif isinstance(lattice, Cells):
            lost = max(lost, _CELL_BITS)
    return math.ceil(lost)


def _enclosed(
    proved: Proof, direction: Direction, epsilon: float, bits: int, rounded: bool
) -> Callable[[int], tuple[Decimal, Decimal]]:
    """What a proof proves, as a function of the digits that it is rounded outward to."""
    from dpcal.accountants.certificates import enclosure

    lower, upper = enclosure.enclose(proved, direction.parts, epsilon, bits=bits, rounded=rounded)

    def outward(digits: int) -> tuple[Decimal, Decimal]:
        low, high = enclosure.decimal_down(lower, digits), enclosure.decimal_up(upper, digits)
        return max(low, Decimal(0)), min(high, Decimal(1))

    return outward


def _bounds(
    direction: Direction, proved: Proof, epsilon: float, bits: int, rounded: bool
) -> tuple[Decimal, Decimal]:
    """Bounds rounded outward by a hundredth of their distance."""
    outward = _enclosed(proved, direction, epsilon, bits, rounded)
    gap = _gap(*outward(_MANY_DIGITS))
    return outward(3 - math.floor(math.log10(gap)) if gap > 0 else 3)


# -- verifying


def _verify_direction(
    claim: DirectionBounds, direction: Direction, epsilon: float, rounded: bool
) -> None:
    """Recompute the bounds of one direction and compare them with what is claimed."""
    best = {"lower": Decimal(0), "upper": Decimal(1)}
    for item in claim.arguments:
        _check_size(item.proof, direction)
        lower, upper = _enclosed(item.proof, direction, epsilon, item.bits, rounded)(_MANY_DIGITS)
        if item.proves != "upper":
            best["lower"] = max(best["lower"], lower)
        if item.proves != "lower":
            best["upper"] = min(best["upper"], upper)
    if claim.lower > best["lower"] or best["upper"] > claim.upper:
        raise CertificateRejected(
            f"The proof for direction {claim.direction!r} at epsilon = {epsilon!r} gives delta in "
            f"[{best['lower']:.12g}, {best['upper']:.12g}], not in [{claim.lower}, {claim.upper}] "
            "as claimed."
        )


def _check_size(proved: Proof, direction: Direction) -> None:
    """Reject lattices that do not belong to the parts, and work that nobody would do."""
    _, given = direction.finite
    losses = [loss for loss, _ in given.parts]
    if isinstance(proved, ContourProof | ChernoffProof | SumProof):
        groups: list[Sequence[Lattice | Cells | None]] = [proved.sums]
        if isinstance(proved, ContourProof):
            groups.append(proved.tails)
            cut = [item if isinstance(item, Cells) else None for item in proved.sums]
            if cut != [item if isinstance(item, Cells) else None for item in proved.tails]:
                raise CertificateRejected("The proof must have the same cells in sums and tails.")
        for lattices in groups:
            if len(lattices) != len(losses) or not all(
                isinstance(item, _needed(loss, proved))
                for loss, item in zip(losses, lattices, strict=True)
            ):
                raise CertificateRejected("The proof must have the lattices of its parts.")
        nodes = proved.nodes if isinstance(proved, ContourProof) else 1
        asked = proof.work(nodes, proved.sums) > proof.MAX_WORK
    if isinstance(proved, SumProof):
        loss, times = given.parts[0]
        values = proved.sums[0].last - proved.sums[0].first
        if isinstance(loss, LatticeLoss):
            values = len(loss.multiples)
        discrete = isinstance(loss, LatticeLoss | DiscreteGaussian)
        asked = times > 1 and not (discrete and max(values, 1) * times <= proof.MAX_TERMS)
    elif isinstance(proved, ThresholdProof):
        if len(proved.thresholds) != len(losses):
            raise CertificateRejected("The proof must have one threshold for each part.")
        used = sum(item is not None for item in proved.thresholds)
        asked = proved.least > (proof.MAX_LEAST if used < 2 else proof.MAX_LEAST_OF_MANY)
    elif not isinstance(proved, ContourProof | ChernoffProof):
        asked = False
    if asked:
        raise CertificateRejected("The proof asks for more work than any proof needs.")


def _needed(loss: PrivacyLoss, proved: Proof) -> tuple[type[Any], ...]:
    """What stands for a part in a proof."""
    if isinstance(proved, SumProof):
        return (Cells,)
    if isinstance(loss, Gaussian):
        return (type(None),)
    return (Lattice, Cells) if isinstance(loss, SampledGaussian) else (Cells,)


# -- the document


def _direction_document(item: DirectionBounds) -> dict[str, Any]:
    return {
        "direction": item.direction,
        "lower": str(item.lower),
        "upper": str(item.upper),
        "arguments": [
            {
                "proves": each.proves,
                "method": each.method,
                "bits": each.bits,
                "proof": json.loads(json.dumps(asdict(each.proof))),
            }
            for each in item.arguments
        ],
    }


def _event_document(event: DpEvent) -> dict[str, Any]:
    """The class of an event and its parameters."""
    values = {item.name: getattr(event, item.name) for item in attr.fields(type(event))}
    return {
        "type": type(event).__name__,
        **{
            name: _event_document(value) if isinstance(value, DpEvent) else _plain(value)
            for name, value in values.items()
        },
    }


def _plain(value: Any) -> Any:
    """A number, or numbers, as JSON has them."""
    return json.loads(json.dumps(value, default=lambda other: other.item()))


def _parsed(document: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(document, str):
        try:
            document = json.loads(document, object_pairs_hook=_entries)
        except (ValueError, RecursionError) as error:
            raise CertificateRejected(f"The certificate is not JSON: {error}.") from error
    names = ("format", "neighboring_relation", "quantity", "lower", "upper", "delta")
    return _record(document, "certificate", *names, "mechanisms", "proofs", "digest")


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of two entries of one name, readers may take either."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError(f"an object has an entry twice among {[name for name, _ in pairs]}")
    return entries


def _certificate(values: Mapping[str, Any]) -> Certificate:
    """Build the certificate from its entries, each of which has to have the right kind."""
    if values["neighboring_relation"] not in RELATIONS:
        _reject("neighboring_relation", f"one of {RELATIONS}", values["neighboring_relation"])
    delta = values["delta"]
    if delta is not None:
        delta = _number(delta, "delta", "a number in (0, 1)", lambda x: 0 < x < 1)
    proofs = tuple(_delta_bounds(item) for item in _list(values["proofs"], "proofs"))
    if len(proofs) not in ((1,) if delta is None else (1, 2)):
        _reject("proofs", "one proof, or two for an epsilon", f"{len(proofs)} proofs")
    mechanisms = tuple(_mechanism(item) for item in _list(values["mechanisms"], "mechanisms"))
    return Certificate(values["neighboring_relation"], mechanisms, delta, proofs)


def _reject(name: str, allowed: str, value: Any) -> NoReturn:
    raise CertificateRejected(f"{name} of the certificate must be {allowed}, got {value!r}.")


def _record(value: Any, owner: str, *names: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise CertificateRejected(
            f"{owner} must have exactly the entries {list(names)}, "
            f"got {list(value) if isinstance(value, Mapping) else value!r}."
        )
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        _reject(name, "a list", value)
    return list(value)


def _number(value: Any, name: str, allowed: str, valid: Callable[[float], bool]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _reject(name, allowed, value)
    if not (abs(value) <= 1e300 and valid(value)):
        _reject(name, allowed, value)
    return float(value)


def _positive(value: Any, name: str) -> float:
    return _number(value, name, "a finite number > 0", lambda x: x > 0)


def _whole(value: Any, name: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        _reject(name, f"a whole number in [{low}, {high}]", value)
    return int(value)


def _probability(value: Any, name: str) -> Decimal:
    allowed = "a decimal in [0, 1], as a string"
    if not isinstance(value, str):
        _reject(name, allowed, value)
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("NaN")
    if number.is_nan() or not 0 <= number <= 1:
        _reject(name, allowed, value)
    return number


def _mechanism(value: Any) -> Mechanism:
    entries = _record(value, "mechanism", "event", "count")
    return Mechanism(_event(entries["event"]), _whole(entries["count"], "count", 1, 1 << 62))


def _event(value: Any) -> DpEvent:
    """Build an event that certificates cover; its parameters are checked where it is priced."""
    name = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(name, str) or name not in _CLASSES:
        _reject("type of an event", f"one of {sorted(_CLASSES)}", name)
    fields = [item.name for item in attr.fields(_CLASSES[name])]
    entries = _record(value, name, "type", *fields)
    event = _CLASSES[name](**{item: _parameter(entries[item], item) for item in fields})
    if not _enclosable(event):
        _reject("an event", f"one of {_COVERED}", event)
    return event


def _parameter(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return _event(value)
    if isinstance(value, list):
        return tuple(_finite(item, name) for item in value)
    return _finite(value, name)


def _finite(value: Any, name: str) -> float:
    number = _number(value, name, "a finite number", lambda _: True)
    return value if isinstance(value, int) else number


def _delta_bounds(value: Any) -> DeltaBounds:
    entries = _record(value, "a proof", "epsilon", "directions")
    epsilon = _number(entries["epsilon"], "epsilon", "a finite number >= 0", lambda x: x >= 0)
    directions = _list(entries["directions"], "directions")
    if not directions:
        _reject("directions", "a list of at least one direction", directions)
    return DeltaBounds(epsilon, tuple(_direction_bounds(item) for item in directions))


def _direction_bounds(value: Any) -> DirectionBounds:
    entries = _record(value, "a direction", "direction", "lower", "upper", "arguments")
    arguments = _list(entries["arguments"], "arguments")
    if len(arguments) > 2:
        _reject("arguments", "at most one for each side", f"{len(arguments)} arguments")
    return DirectionBounds(
        str(entries["direction"]),
        _probability(entries["lower"], "lower"),
        _probability(entries["upper"], "upper"),
        tuple(_argument(item) for item in arguments),
    )


def _argument(value: Any) -> Argument:
    entries = _record(value, "an argument", "proves", "method", "bits", "proof")
    method = entries["method"]
    if not isinstance(method, str) or method not in _READERS:
        _reject("method", f"one of {', '.join(_READERS)}", method)
    if entries["proves"] not in ("lower", "upper", "both"):
        _reject("proves", "'lower', 'upper' or 'both'", entries["proves"])
    bits = _whole(entries["bits"], "bits", *_BITS)
    argument = Argument(entries["proves"], bits, _READERS[method](entries["proof"]))
    if argument.method != method:
        _reject("method", repr(argument.method), method)
    return argument


def _contour_proof(value: Any) -> ContourProof:
    names = ("tilt", "step", "nodes", "below", "above", "sums", "tails", "smoothing", "shift")
    entries = _record(value, "a contour proof", *names)
    tilt = _positive(entries["tilt"], "tilt")
    return ContourProof(
        tilt,
        _positive(entries["step"], "step"),
        _whole(entries["nodes"], "nodes", 1, proof.MAX_NODES),
        _number(entries["below"], "below", "in [0, tilt)", lambda x: 0 <= x < tilt),
        _number(entries["above"], "above", "above tilt", lambda x: x > tilt),
        _lattices(entries["sums"], "sums"),
        _lattices(entries["tails"], "tails"),
        _number(entries["smoothing"], "smoothing", "a number >= 0", lambda x: x >= 0),
        _number(entries["shift"], "shift", "a number >= 0", lambda x: x >= 0),
    )


def _chernoff_proof(value: Any) -> ChernoffProof:
    entries = _record(value, "a Chernoff proof", "tilt", "sums")
    return ChernoffProof(_positive(entries["tilt"], "tilt"), _lattices(entries["sums"], "sums"))


def _convexity_proof(value: Any) -> ConvexityProof:
    entries = _record(value, "a proof by convexity", "tilt")
    return ConvexityProof(_positive(entries["tilt"], "tilt"))


def _sampling_proof(value: Any) -> SamplingProof:
    _record(value, "a proof by sampling")
    return SamplingProof()


def _sum_proof(value: Any) -> SumProof:
    entries = _record(value, "a finite sum", "sums")
    items = _lattices(entries["sums"], "sums")
    if len(items) != 1 or not isinstance(items[0], Cells):
        _reject("sums", "the cells of one part", entries["sums"])
    return SumProof((items[0],))


def _threshold_proof(value: Any) -> ThresholdProof:
    entries = _record(value, "a threshold test", "least", "thresholds")
    thresholds = tuple(
        None if item is None else _number(item, "threshold", "a finite number", lambda _: True)
        for item in _list(entries["thresholds"], "thresholds")
    )
    return ThresholdProof(_whole(entries["least"], "least", 1, proof.MAX_LEAST), thresholds)


def _support_proof(value: Any) -> SupportProof:
    _record(value, "a support proof")
    return SupportProof()


_READERS: dict[str, Callable[[Any], Proof]] = {
    "contour": _contour_proof,
    "smoothed contour": _contour_proof,
    "Renyi moment": _chernoff_proof,
    "convexity": _convexity_proof,
    "sampling": _sampling_proof,
    "finite sum": _sum_proof,
    "threshold test": _threshold_proof,
    "support": _support_proof,
}


def _lattices(value: Any, name: str) -> tuple[Lattice | Cells | None, ...]:
    return tuple(None if item is None else _lattice(item) for item in _list(value, name))


def _lattice(value: Any) -> Lattice | Cells:
    shifted = isinstance(value, Mapping) and "angle" in value
    names = ("angle",) if shifted else ()
    entries = _record(value, "a lattice", *names, "step", "first", "last")
    far = 1 << 40
    first = _whole(entries["first"], "first", -far, far)
    step = _positive(entries["step"], "step")
    last = _whole(entries["last"], "last", first, first + proof.MAX_POINTS)
    if not shifted:
        return Cells(step, first, last)
    angle = _number(entries["angle"], "angle", "in (0, 1.57)", lambda x: 0 < x < 1.57)
    return Lattice(angle, step, first, last)
