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
that module, and the theorems behind :func:`dpcal.accountants.composition.decompose`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from dpcal import _validate
from dpcal.accountants import interface, proof
from dpcal.accountants.composition import RELATIONS, Composition, Direction, decompose, leaves
from dpcal.accountants.events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dpcal.accountants.loss import Gaussian, OutOfReach
from dpcal.accountants.measures import Total
from dpcal.accountants.proof import ChernoffProof, ContourProof, Lattice, Proof, SupportProof
from dpcal.accountants.sampled import SampledGaussian
from dpcal.errors import CertificateRejected, TargetUnreachable, UnsupportedEvent

__all__ = [
    "Certificate",
    "DeltaBounds",
    "DirectionBounds",
    "Mechanism",
    "certify",
    "verify_certificate",
]

_FORMAT = "dpcal-certificate-1"
_METHODS = {ContourProof: "contour", ChernoffProof: "Chernoff", SupportProof: "support"}
# Precisions that a verifier agrees to work at.
_BITS = (64, 4096)
# How often a proof that came out too wide is tried anew, and by how much its aim is lowered.
_ATTEMPTS, _TIGHTER = 3, 1e-2
# Digits of a recomputed bound before it is compared with a claim.
_MANY_DIGITS = 60


@dataclass(frozen=True)
class Mechanism:
    """A Gaussian mechanism on a Poisson sample (of everyone, at probability 1), used repeatedly."""

    sampling_probability: float
    noise_multiplier: float
    count: int

    @property
    def event(self) -> DpEvent:
        """The mechanism in dp-accounting's vocabulary."""
        step = PoissonSampledDpEvent(
            self.sampling_probability, GaussianDpEvent(self.noise_multiplier)
        )
        return SelfComposedDpEvent(step, self.count)


@dataclass(frozen=True)
class DirectionBounds:
    """Bounds on delta in one direction of the relation, and their proof."""

    direction: str
    lower: Decimal
    upper: Decimal
    bits: int
    proof: Proof


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
        event = ComposedDpEvent([item.event for item in self.mechanisms])
        composition = decompose(event, self.neighboring_relation)
        for direction in composition.directions:
            for loss, _ in direction.parts:
                if not isinstance(loss, Gaussian | SampledGaussian):
                    raise UnsupportedEvent(
                        f"No certificate covers the pair {loss!r}, which dominates a mechanism "
                        f"under neighboring relation {self.neighboring_relation!r}."
                    )
        return composition

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
            "mechanisms": [asdict(item) for item in self.mechanisms],
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
    width: float = 1e-3,
) -> Certificate:
    """Prove bounds on delta at an epsilon, or on epsilon at a delta, in ball arithmetic.

    Parameters
    ----------
    event
        Any composition of Gaussian mechanisms, on Poisson samples or not.
    epsilon, delta
        Exactly one of them: epsilon >= 0, to bound delta; or delta in (0, 1), to bound epsilon.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    width
        Largest width of the bounds, relative to the upper one; in (0, 1).

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no proof here covers the event under this relation.
    TargetUnreachable
        If no proof of affordable size gives bounds so close.
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
    width = _validate.probability(width=width)
    mechanisms = _mechanisms(event)
    if delta is None:
        at = _validate.non_negative(epsilon=epsilon)
        certificate = Certificate(neighboring_relation, mechanisms, None, ())
        proofs: tuple[DeltaBounds, ...] = (_prove(certificate.composition, at, width),)
    else:
        delta = _validate.probability(delta=delta)
        certificate = Certificate(neighboring_relation, mechanisms, delta, ())
        proofs = _prove_epsilon(certificate.composition, delta, width, event)
    certificate = Certificate(neighboring_relation, mechanisms, delta, proofs)
    if _gap(certificate.lower, certificate.upper) > width or not _settles(certificate):
        raise TargetUnreachable(
            f"No proof of affordable size has relative width {width:g}; the best one has "
            f"{certificate.quantity} in [{certificate.lower:.6g}, {certificate.upper:.6g}]."
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
            _verify_direction(claim, direction, item.epsilon)
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
        inner, q = leaf, 1.0
        if isinstance(leaf, PoissonSampledDpEvent):
            inner, q = leaf.event, _validate.rate(sampling_probability=leaf.sampling_probability)
        if isinstance(inner, GaussianDpEvent):
            sigma = _validate.positive(noise_multiplier=inner.noise_multiplier)
            found.append(Mechanism(q, sigma, count))
        elif not isinstance(leaf, NoOpDpEvent):
            raise UnsupportedEvent(
                f"No certificate covers {leaf!r}: only Gaussian mechanisms, Poisson-sampled or not."
            )
    return tuple(found)


def _gap(lower: Decimal, upper: Decimal) -> float:
    """Width of an interval relative to its upper end."""
    return float((upper - lower) / upper) if upper else 0.0


def _settles(certificate: Certificate) -> bool:
    """Whether the bounds on delta imply the bounds on epsilon, if such are claimed."""
    if certificate.delta is None:
        return True
    delta, proofs = Decimal(certificate.delta), certificate.proofs
    return proofs[-1].upper <= delta and (len(proofs) == 1 or proofs[0].lower >= delta)


def _prove_epsilon(
    composition: Composition, delta: float, width: float, event: DpEvent
) -> tuple[DeltaBounds, ...]:
    """Prove delta bounds on either side of the float accountant's epsilon."""
    relation = composition.neighboring_relation
    answer = interface.epsilon(event, delta=delta, neighboring_relation=relation)
    if not math.isfinite(answer.upper):
        raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")
    margin = width * answer.upper / 4
    upper, lower = answer.upper + margin, answer.lower - margin
    sides = [lower, upper] if lower > 0 else [upper]
    # Half of the distance to the target, as a share of delta.
    target = math.log(delta)
    values = [
        interface.log_delta(event, epsilon=side, neighboring_relation=relation).upper
        for side in sides
    ]
    accuracy = min(1e-2, *(abs(value - target) / 2 for value in values))
    return tuple(_prove(composition, side, max(accuracy, 1e-14)) for side in sides)


def _prove(composition: Composition, epsilon: float, width: float) -> DeltaBounds:
    """Prove bounds on delta, those of the largest direction at most ``width`` apart."""
    found: list[DirectionBounds] = []
    for direction in composition.directions:
        floor = max((item.lower for item in found), default=Decimal(0))
        found.append(_prove_direction(direction, epsilon, width, floor))
    return DeltaBounds(epsilon, tuple(found))


def _prove_direction(
    direction: Direction, epsilon: float, width: float, floor: Decimal
) -> DirectionBounds:
    """The first proof that is narrow enough, or whose upper bound is below ``floor``."""
    best: DirectionBounds | None = None
    for candidate, bits in _candidates(direction, epsilon, width):
        found = _bounds(direction, candidate, epsilon, bits)
        if best is None or found.upper - found.lower < best.upper - best.lower:
            best = found
        if _gap(best.lower, best.upper) <= width or best.upper <= floor:
            break
    if best is None:
        raise TargetUnreachable(
            f"No proof of affordable size bounds delta at epsilon = {epsilon!r} "
            f"in direction {direction.name!r}."
        )
    return best


def _candidates(direction: Direction, epsilon: float, width: float) -> Iterator[tuple[Proof, int]]:
    """Proofs and precisions to try, the most promising first."""
    parts = direction.parts
    if not parts or Total(parts).upper <= epsilon:
        yield SupportProof(), _BITS[0]
    aim = width
    for _ in range(_ATTEMPTS):
        # Twice the digits that a transform needs before it is raised to its power.
        bits = 96 + 2 * math.ceil(math.log2(sum(times for _, times in parts) / aim))
        try:
            chosen = proof.choose_contour(parts, epsilon, width=aim)
            yield chosen, min(bits + _lost_bits(direction, chosen), _BITS[1])
        except OutOfReach:
            break
        aim *= _TIGHTER
    try:
        yield proof.choose_chernoff(parts, epsilon), 1024
    except OutOfReach:
        return


def _lost_bits(direction: Direction, chosen: ContourProof) -> int:
    """By how much terms on the shifted lines may exceed their sum, in bits."""
    lost = 0.0
    for (loss, _), lattice in zip(direction.parts, chosen.sums, strict=True):
        if isinstance(loss, SampledGaussian) and lattice is not None:
            growth = (lattice.angle * loss.noise_multiplier) ** 2 / 2
            if loss.direction == "add":
                growth -= chosen.above * math.log(math.cos(lattice.angle / 2))
            lost = max(lost, growth / math.log(2))
    return math.ceil(lost)


def _enclosed(
    proved: Proof, direction: Direction, epsilon: float, bits: int
) -> Callable[[int], tuple[Decimal, Decimal]]:
    """What a proof proves, as a function of the digits that it is rounded outward to."""
    from dpcal.accountants import enclosure

    lower, upper = enclosure.enclose(proved, direction.parts, epsilon, bits=bits)

    def rounded(digits: int) -> tuple[Decimal, Decimal]:
        low, high = enclosure.decimal_down(lower, digits), enclosure.decimal_up(upper, digits)
        return max(low, Decimal(0)), min(high, Decimal(1))

    return rounded


def _bounds(direction: Direction, proved: Proof, epsilon: float, bits: int) -> DirectionBounds:
    """Bounds rounded outward by a hundredth of their distance."""
    rounded = _enclosed(proved, direction, epsilon, bits)
    gap = _gap(*rounded(_MANY_DIGITS))
    lower, upper = rounded(3 - math.floor(math.log10(gap)) if gap > 0 else 3)
    return DirectionBounds(direction.name, lower, upper, bits, proved)


# -- verifying


def _verify_direction(claim: DirectionBounds, direction: Direction, epsilon: float) -> None:
    """Recompute the bounds of one direction and compare them with what is claimed."""
    _check_size(claim.proof, direction)
    lower, upper = _enclosed(claim.proof, direction, epsilon, claim.bits)(_MANY_DIGITS)
    if claim.lower > lower or upper > claim.upper:
        raise CertificateRejected(
            f"The proof for direction {claim.direction!r} at epsilon = {epsilon!r} gives delta in "
            f"[{lower:.12g}, {upper:.12g}], not in [{claim.lower}, {claim.upper}] as claimed."
        )


def _check_size(proved: Proof, direction: Direction) -> None:
    """Reject lattices that do not belong to the parts, and work that nobody would do."""
    if isinstance(proved, SupportProof):
        return
    sampled = [isinstance(loss, SampledGaussian) for loss, _ in direction.parts]
    groups = [proved.sums] + ([proved.tails] if isinstance(proved, ContourProof) else [])
    for lattices in groups:
        if [item is not None for item in lattices] != sampled:
            raise CertificateRejected("The proof must have one lattice for each sampled part.")
    nodes = proved.nodes if isinstance(proved, ContourProof) else 1
    if nodes * sum(item.last - item.first for item in proved.sums if item) > proof.MAX_WORK:
        raise CertificateRejected("The proof asks for more work than any proof needs.")


# -- the document


def _direction_document(item: DirectionBounds) -> dict[str, Any]:
    return {
        "direction": item.direction,
        "lower": str(item.lower),
        "upper": str(item.upper),
        "bits": item.bits,
        "method": _METHODS[type(item.proof)],
        "proof": json.loads(json.dumps(asdict(item.proof))),
    }


def _parsed(document: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError as error:
            raise CertificateRejected(f"The certificate is not JSON: {error}.") from error
    names = ("format", "neighboring_relation", "quantity", "lower", "upper", "delta")
    return _record(document, "certificate", *names, "mechanisms", "proofs", "digest")


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
    entries = _record(value, "mechanism", "sampling_probability", "noise_multiplier", "count")
    q = entries["sampling_probability"]
    return Mechanism(
        _number(q, "sampling_probability", "a number in (0, 1]", lambda x: 0 < x <= 1),
        _positive(entries["noise_multiplier"], "noise_multiplier"),
        _whole(entries["count"], "count", 1, 1 << 62),
    )


def _delta_bounds(value: Any) -> DeltaBounds:
    entries = _record(value, "a proof", "epsilon", "directions")
    epsilon = _number(entries["epsilon"], "epsilon", "a finite number >= 0", lambda x: x >= 0)
    directions = _list(entries["directions"], "directions")
    if not directions:
        _reject("directions", "a list of at least one direction", directions)
    return DeltaBounds(epsilon, tuple(_direction_bounds(item) for item in directions))


def _direction_bounds(value: Any) -> DirectionBounds:
    names = ("direction", "lower", "upper", "bits", "method", "proof")
    entries = _record(value, "a direction", *names)
    method = entries["method"]
    if method not in _READERS:
        _reject("method", f"one of {', '.join(_READERS)}", method)
    return DirectionBounds(
        str(entries["direction"]),
        _probability(entries["lower"], "lower"),
        _probability(entries["upper"], "upper"),
        _whole(entries["bits"], "bits", *_BITS),
        _READERS[method](entries["proof"]),
    )


def _contour_proof(value: Any) -> ContourProof:
    names = ("tilt", "step", "nodes", "below", "above", "sums", "tails")
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
    )


def _chernoff_proof(value: Any) -> ChernoffProof:
    entries = _record(value, "a Chernoff proof", "tilt", "sums")
    return ChernoffProof(_positive(entries["tilt"], "tilt"), _lattices(entries["sums"], "sums"))


def _support_proof(value: Any) -> SupportProof:
    _record(value, "a support proof")
    return SupportProof()


_READERS: dict[str, Callable[[Any], Proof]] = {
    "contour": _contour_proof,
    "Chernoff": _chernoff_proof,
    "support": _support_proof,
}


def _lattices(value: Any, name: str) -> tuple[Lattice | None, ...]:
    return tuple(None if item is None else _lattice(item) for item in _list(value, name))


def _lattice(value: Any) -> Lattice:
    entries = _record(value, "a lattice", "angle", "step", "first", "last")
    far = 1 << 40
    first = _whole(entries["first"], "first", -far, far)
    return Lattice(
        _number(entries["angle"], "angle", "in (0, 1.57)", lambda x: 0 < x < 1.57),
        _positive(entries["step"], "step"),
        first,
        _whole(entries["last"], "last", first, first + proof.MAX_POINTS),
    )
