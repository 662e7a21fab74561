"""The records of a certificate, and the JSON document that holds them.

>>> from decimal import Decimal
>>> from dpcal.accountants import events
>>> argument = Argument("upper", 128, ContourProof(1.0, 0.5, 9, 0.5, 2.0, (None,), (None,)))
>>> one_direction = DirectionBounds("both", Decimal(0), Decimal("0.39"), (argument,))
>>> bounds = DeltaBounds(1.0, (one_direction,))
>>> item = Mechanism(events.GaussianDpEvent(1.0), 1)
>>> certificate = Certificate("add-or-remove-one", (item,), None, (bounds,))
>>> certificate.quantity, certificate.upper
('delta', Decimal('0.39'))
>>> Certificate.from_json(certificate.to_json()) == certificate
True

Reading a document checks its form. Whether its bounds hold is a question for
:func:`~dpcal.accountants.certificates.verify.verify_certificate`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any

from dpcal.accountants.certificates import schema
from dpcal.accountants.certificates.batches import is_batched, with_batches
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.contour import ContourProof, ParityProof
from dpcal.accountants.certificates.cost import BITS
from dpcal.accountants.certificates.mechanisms import (
    MECHANISM,
    Mechanism,
    has_rounded_probabilities,
    mechanisms_of,
)
from dpcal.accountants.certificates.proofs import MAX_PARTS, Proof
from dpcal.accountants.certificates.schema import Shape, choice, document_of, reject, shape_of
from dpcal.accountants.certificates.shuffled_epochs import directions_of
from dpcal.accountants.directions import RELATIONS, Composition
from dpcal.accountants.events import (
    ComposedDpEvent,
    DpEvent,
    SelfComposedDpEvent,
    ShuffledEpochsDpEvent,
)
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import CertificateRejected

__all__ = ["Argument", "Certificate", "DeltaBounds", "DirectionBounds", "relative_width"]

# Name and version of the document's form.
_FORMAT, _FORMER = "dpcal-certificate-3", "dpcal-certificate-2"

# A contour of which only the bound by one moment counts.
_MOMENT = {"step": 1.0, "nodes": 1, "below": 0.0}
_NO_MORE = (
    f"The certificate has the form {_FORMER}, of which only contours without smoothing are read: "
    "prove the claim again with dpcal certify."
)


# The reader of each kind of proof, by the method that an argument states.
_PROOFS = {
    each.NAME: shape_of(f"a proof by {each.NAME}", each, *each.RULES)
    for each in (ContourProof, ParityProof, OrderProof)
}


def relative_width(lower: Decimal, upper: Decimal) -> float:
    """Return the width of an interval relative to its upper end; 0 if that is 0."""
    return float((upper - lower) / upper) if upper else 0.0


@dataclass(frozen=True)
class Argument:
    """One proof, and the precision at which it is checked.

    Attributes
    ----------
    proves
        Bounds that it proves: ``"lower"``, ``"upper"`` or ``"both"``.
    bits
        Precision of the arithmetic.
    proof
        The numbers of the proof.
    """

    proves: str
    bits: int
    proof: Proof

    @property
    def method(self) -> str:
        """The kind of argument."""
        return self.proof.NAME

    def to_dict(self) -> dict[str, Any]:
        """Return the argument as JSON values."""
        values = {"proves": self.proves, "method": self.method, "bits": self.bits}
        return {**values, "proof": document_of(self.proof)}


def _argument(proves: str, method: str, bits: int, proof: Any) -> Argument:
    return Argument(proves, bits, _PROOFS[method](proof, "proof"))


_ARGUMENT = Shape(
    "an argument",
    _argument,
    {
        "proves": choice("lower", "upper", "both"),
        "method": choice(*_PROOFS),
        "bits": schema.whole(*BITS),
        "proof": lambda value, name: value,
    },
)


@dataclass(frozen=True)
class DirectionBounds:
    """Bounds on delta in one direction of the relation, and the arguments for them.

    A lower bound of 0 and an upper bound of 1 need no argument.
    """

    direction: Annotated[str, schema.text]
    lower: Annotated[Decimal, schema.probability_text]
    upper: Annotated[Decimal, schema.probability_text]
    arguments: Annotated[tuple[Argument, ...], schema.list_of(_ARGUMENT, 0, 2)]

    @property
    def lower_method(self) -> str:
        """The kind of argument for the lower bound."""
        return self._method("lower")

    @property
    def upper_method(self) -> str:
        """The kind of argument for the upper bound."""
        return self._method("upper")

    def _method(self, side: str) -> str:
        found = [item.method for item in self.arguments if item.proves in (side, "both")]
        return found[0] if found else "none"


_DIRECTION = shape_of("a direction", DirectionBounds)


@dataclass(frozen=True)
class DeltaBounds:
    """Bounds on delta at one epsilon: the largest of all directions."""

    epsilon: Annotated[float, schema.not_negative]
    directions: Annotated[tuple[DirectionBounds, ...], schema.list_of(_DIRECTION, 1, 2)]

    @property
    def lower(self) -> Decimal:
        """Proved lower bound on delta(epsilon)."""
        return max(item.lower for item in self.directions)

    @property
    def upper(self) -> Decimal:
        """Proved upper bound on delta(epsilon)."""
        return max(item.upper for item in self.directions)


_BOUNDS = shape_of("a proof", DeltaBounds)
_DELTA = schema.optional(schema.number("a number in (0, 1)", lambda x: 0 < x < 1))


@dataclass(frozen=True)
class Certificate:
    """Proved bounds on a composition's delta at an epsilon, or on its epsilon at a delta.

    Attributes
    ----------
    neighboring_relation
        The relation that the bounds hold for.
    mechanisms
        The mechanisms of the composition.
    delta
        The delta at which epsilon is bounded; None if delta is bounded at an epsilon.
    proofs
        Bounds on delta at one epsilon; or at the claimed lower and upper bounds on epsilon, where
        delta is proved to be at least and at most the given one (a lower bound of 0 needs no
        proof).
    """

    neighboring_relation: Annotated[str, choice(*RELATIONS)]
    mechanisms: Annotated[tuple[Mechanism, ...], schema.list_of(MECHANISM, 0, MAX_PARTS)]
    delta: Annotated[float | None, _DELTA]
    proofs: Annotated[tuple[DeltaBounds, ...], schema.list_of(_BOUNDS, 1, 2)]

    @property
    def quantity(self) -> str:
        """The bounded quantity: ``"delta"`` or ``"epsilon"``."""
        return "delta" if self.delta is None else "epsilon"

    @property
    def lower(self) -> Decimal:
        """Proved lower bound; a decimal, which can hold any small delta."""
        if self.delta is None:
            return self.proofs[0].lower
        return Decimal(self.proofs[0].epsilon if len(self.proofs) == 2 else 0)

    @property
    def upper(self) -> Decimal:
        """Proved upper bound."""
        return self.proofs[-1].upper if self.delta is None else Decimal(self.proofs[-1].epsilon)

    @cached_property
    def composition(self) -> Composition:
        """The dominating pairs that the mechanisms compose, or the epochs of one shuffled run."""
        shuffled = [isinstance(item.event, ShuffledEpochsDpEvent) for item in self.mechanisms]
        if shuffled == [True] and self.mechanisms[0].count == 1:
            return directions_of(self.mechanisms[0].event, self.neighboring_relation)
        others = [item for item in self.mechanisms if not is_batched(item.event)]
        plain = ComposedDpEvent([SelfComposedDpEvent(item.event, item.count) for item in others])
        batched = [(x.event, x.count) for x in self.mechanisms if is_batched(x.event)]
        return with_batches(decompose(plain, self.neighboring_relation), batched)

    def covers(self, event: DpEvent) -> bool:
        """Return whether an event composes exactly the mechanisms of the certificate."""
        # A document holds lists where an event may hold tuples.
        return bool(document_of(mechanisms_of(event)) == document_of(self.mechanisms))

    @property
    def rounded(self) -> bool:
        """Whether sampling probabilities or weights are quotients that were rounded."""
        return has_rounded_probabilities(self.mechanisms)

    @property
    def width(self) -> float:
        """Width of the bounds relative to the upper one."""
        return relative_width(self.lower, self.upper)

    @property
    def digest(self) -> str:
        """SHA-256 of the document without its digest, in canonical form."""
        return _digest_of(self._document())

    def _document(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "neighboring_relation": self.neighboring_relation,
            "quantity": self.quantity,
            "lower": str(self.lower),
            "upper": str(self.upper),
            "delta": self.delta,
            "mechanisms": document_of(self.mechanisms),
            "proofs": document_of(self.proofs),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON values."""
        return {**self._document(), "digest": self.digest}

    def to_json(self) -> str:
        """Return the certificate as a JSON document."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, document: str | Mapping[str, Any]) -> Certificate:
        """Return the certificate of a document, without checking its proofs.

        Parameters
        ----------
        document
            JSON text, or the values parsed from it. An entry ``"about"`` is text for readers; it is
            not part of the claim, and is ignored.

        Raises
        ------
        CertificateRejected
            If the document is malformed or does not agree with its digest.
        """
        values = schema.parse(document) if isinstance(document, str) else document
        given = dict(values) if isinstance(values, Mapping) else {}
        given.pop("about", None)
        given = _of_version_2(given) if given.get("format") == _FORMER else given
        own = {name: value for name, value in given.items() if name not in _COMPUTED}
        certificate: Certificate = _CERTIFICATE(own, "certificate")
        for name, value in certificate.to_dict().items():
            if name not in given or given[name] != value:
                found = schema.shown(value)
                reject(name, f"{found} by its other entries", given.get(name, "nothing"))
        return certificate


# -- how a certificate is read from a document


def _digest_of(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its digest, in canonical form."""
    body = {name: value for name, value in values.items() if name != "digest"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _of_version_2(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of version 2 as one of version 3, if all of its proofs are contours.

    Moments are the Chernoff bound of a contour of one node.
    """
    try:
        if values["digest"] != _digest_of(values):
            reject("digest", "that of its other entries", values["digest"])
        found: dict[str, Any] = json.loads(json.dumps({**values, "format": _FORMAT}))
        for bounds in found["proofs"]:
            for direction in bounds["directions"]:
                for item in direction["arguments"]:
                    proof = item["proof"]
                    if item["method"] == "Renyi moment":
                        tilt, sums = proof["tilt"], proof["sums"]
                        item["method"] = "contour"
                        item["proof"] = _MOMENT | {
                            "tilt": tilt / 2,
                            "above": tilt,
                            "sums": sums,
                            "tails": sums,
                        }
                    elif item["method"] not in ("contour", "parity") or proof.pop(
                        "smoothing"
                    ) + proof.pop("shift"):
                        raise CertificateRejected(_NO_MORE)
    except (KeyError, TypeError, AttributeError) as error:
        raise CertificateRejected(_NO_MORE) from error
    return {**found, "digest": _digest_of(found)}


# Entries of the document that follow from the others.
_COMPUTED = ("format", "quantity", "lower", "upper", "digest")
_CERTIFICATE = shape_of(
    "certificate",
    Certificate,
    ("proofs", "one proof if delta is null", lambda x: x.delta is not None or len(x.proofs) == 1),
)
