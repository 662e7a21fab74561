"""The records of a certificate, and the JSON document that holds them.

>>> from decimal import Decimal
>>> from dpcal.accountants import events
>>> proof = OrderProof(bits=128, step=0.1, nodes=99, tail=0.0, top=9.0)
>>> bounds = DeltaBounds(1.0, (DirectionBounds("both", Decimal(0), Decimal("0.39"), proof),))
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
from dpcal.accountants.certificates.batches import is_batched, pairs_of
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.contour import ContourProof, ParityProof
from dpcal.accountants.certificates.enclosure import relative_width
from dpcal.accountants.certificates.mechanisms import Mechanism, is_rounded, mechanisms_of
from dpcal.accountants.certificates.proofs import MAX_PARTS, Proof
from dpcal.accountants.certificates.schema import choice, document_of, optional, reject, shape_of
from dpcal.accountants.directions import RELATIONS, Composition
from dpcal.accountants.events import DpEvent
from dpcal.accountants.mechanisms.decompose import composed
from dpcal.errors import CertificateRejected

_FORMAT = "dpcal-certificate-6"
_PROOFS = {
    each.NAME: shape_of(f"a proof by {each.NAME}", each)
    for each in (ContourProof, ParityProof, OrderProof)
}


def _proof(value: Any, name: str) -> Any:
    """Return the proof of a document."""
    given = dict(value) if isinstance(value, Mapping) else {}
    return _PROOFS[choice(*_PROOFS)(given.pop("method", None), "method")](given, name)


@dataclass(frozen=True)
class DirectionBounds:
    """Bounds on delta in one direction of the relation, and the proof of them.

    A lower bound of 0 and an upper bound of 1 need no proof.
    """

    direction: Annotated[str, choice("both", "remove", "add")]
    lower: Annotated[Decimal, schema.probability_text]
    upper: Annotated[Decimal, schema.probability_text]
    proof: Annotated[Proof | None, optional(_proof)]

    @property
    def method(self) -> str:
        """The kind of argument."""
        return self.proof.NAME if self.proof else "none"


@dataclass(frozen=True)
class DeltaBounds:
    """Bounds on delta at one epsilon: the largest of all directions."""

    epsilon: Annotated[float, schema.not_negative]
    directions: Annotated[
        tuple[DirectionBounds, ...],
        schema.list_of(shape_of("a direction", DirectionBounds), 1, 2),
    ]

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
        The mechanisms of the composition.
    delta
        The delta at which epsilon is bounded; None if delta is bounded at an epsilon.
    proofs
        Bounds on delta at one epsilon; or at the claimed lower and upper bounds on epsilon, where
        delta is proved to be at least and at most the given one (a lower bound of 0 needs no
        proof).
    """

    neighboring_relation: Annotated[str, choice(*RELATIONS)]
    mechanisms: Annotated[
        tuple[Mechanism, ...], schema.list_of(shape_of("mechanism", Mechanism), 0, MAX_PARTS)
    ]
    delta: Annotated[float | None, optional(schema.number("in (0, 1)", lambda x: 0 < x < 1))]
    proofs: Annotated[
        tuple[DeltaBounds, ...], schema.list_of(shape_of("a proof", DeltaBounds), 1, 2)
    ]

    def __post_init__(self) -> None:
        """Refuse a second proof of one delta, and bounds on delta that do not settle an epsilon."""
        if self.delta is None and len(self.proofs) > 1:
            raise ValueError("proofs must be one if delta is null")
        if self.delta is not None and self.proofs:
            *lower, upper = self.proofs
            if upper.upper > self.delta or any(each.lower < self.delta for each in lower):
                raise ValueError(f"bounds on delta do not settle epsilon at delta = {self.delta!r}")

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
        """The dominating pairs that the mechanisms compose."""
        relation = self.neighboring_relation
        ordered = sorted(self.mechanisms, key=lambda item: is_batched(item.event))
        return composed(((pairs_of(x.event, relation), x.count) for x in ordered), relation)

    def covers(self, event: DpEvent) -> bool:
        """Return whether an event composes exactly the mechanisms of the certificate."""
        # A document has lists where an event may have tuples.
        return bool(document_of(mechanisms_of(event)) == document_of(self.mechanisms))

    @property
    def rounded(self) -> bool:
        """Whether sampling probabilities or weights are quotients that were rounded."""
        return any(is_rounded(item.event) for item in self.mechanisms)

    @property
    def width(self) -> float:
        """Width of the bounds relative to the upper one."""
        return relative_width(self.lower, self.upper)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON values, with the SHA-256 of their canonical form."""
        body = {
            "format": _FORMAT,
            "quantity": self.quantity,
            "lower": str(self.lower),
            "upper": str(self.upper),
            **document_of(self),
        }
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return {**body, "digest": hashlib.sha256(canonical.encode()).hexdigest()}

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
            If the document is malformed, has another version, or does not agree with its digest.
        """
        values = schema.parse(document) if isinstance(document, str) else document
        given = dict(values) if isinstance(values, Mapping) else {}
        given.pop("about", None)
        if given.get("format", _FORMAT) != _FORMAT:
            raise CertificateRejected(
                f"format of the certificate must be {_FORMAT!r}, got "
                f"{schema.shown(given['format'])}: prove the claim again with dpcal certify."
            )
        own = {name: value for name, value in given.items() if name not in _COMPUTED}
        try:
            certificate: Certificate = _CERTIFICATE(own, "certificate")
        except RecursionError as error:
            raise CertificateRejected("The certificate has too many levels.") from error
        for name, value in certificate.to_dict().items():
            if name not in given or given[name] != value:
                found = schema.shown(value)
                reject(name, f"{found} by its other entries", given.get(name, "nothing"))
        return certificate


_COMPUTED = ("format", "quantity", "lower", "upper", "digest")
_CERTIFICATE = shape_of("certificate", Certificate)
