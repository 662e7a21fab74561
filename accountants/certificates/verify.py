"""Verification of a certificate: every bound is proved again, from the document's numbers.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.certificates.certify import certify
>>> document = certify(events.GaussianDpEvent(2.0), epsilon=1.0).to_json()
>>> verify_certificate(document).quantity
'delta'
>>> verify_certificate(document.replace("0.00", "0.000"))      # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.CertificateRejected: digest of the certificate must be ...

A verifier trusts python-flint, the bounds that :mod:`~dpcal.accountants.certificates.enclosure`
states, and the theorems behind :func:`dpcal.accountants.mechanisms.decompose.decompose`. It shares
no code with the search for proofs; doubles choose where outputs of laws in convex order are cut,
and no bound. A document keeps a verifier busy no longer than
:mod:`~dpcal.accountants.certificates.proofs` states.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dpcal.accountants.certificates.document import Certificate, DirectionBounds
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose
from dpcal.accountants.certificates.mechanisms import values_of
from dpcal.accountants.certificates.proofs import MAX_WORK
from dpcal.accountants.certificates.schema import reject
from dpcal.accountants.directions import Direction
from dpcal.errors import CertificateRejected, UnsupportedEvent

_MOST_VALUES = 1 << 22


def verify_certificate(
    document: str | Mapping[str, Any] | Certificate, *, most: float | None = None
) -> Certificate:
    """Return a certificate after proving every bound again, only from its numbers.

    Parameters
    ----------
    document
        A certificate, as JSON text, as the values parsed from it, or as an object.
    most
        Units of work of all proofs together, as in
        :mod:`~dpcal.accountants.certificates.proofs`; None for about ten minutes.

    Returns
    -------
    Certificate
        The certificate; its claim holds.

    Raises
    ------
    CertificateRejected
        If the document is malformed, was changed, claims more than its proofs give, or needs more
        work than ``most``.
    """
    if isinstance(document, Certificate):
        document = document.to_dict()
    certificate = Certificate.from_json(document)
    try:
        claims = _claims(certificate)
        proofs = [(claim.proof, item.finite[1].parts) for _, claim, item in claims if claim.proof]
        work = sum(proof.work(parts) for proof, parts in proofs)
    except (UnsupportedEvent, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = str(error).rstrip(".")
        raise CertificateRejected(f"The certificate's claim is refused: {reason}.") from error
    most = MAX_WORK if most is None else most
    if work > most:
        raise CertificateRejected(
            f"The proofs ask for more work than any proof needs: {work:.3g} units, of at most "
            f"{most:.3g} that are allowed."
        )
    for epsilon, claim, direction in claims:
        _check_bounds(claim, direction, epsilon, certificate.rounded)
    return certificate


def _claims(certificate: Certificate) -> list[tuple[float, DirectionBounds, Direction]]:
    """Return each claim with its epsilon, and the losses that theorems give its direction."""
    values = sum(values_of(item.event) for item in certificate.mechanisms)
    if values > _MOST_VALUES:
        reject("mechanisms", f"of at most {_MOST_VALUES} values together", values)
    directions, found = certificate.composition.directions, []
    names = [direction.name for direction in directions]
    for bounds in certificate.proofs:
        if (given := [item.direction for item in bounds.directions]) != names:
            reject("directions", f"{names!r}, as its mechanisms have", given)
        pairs = zip(bounds.directions, directions, strict=True)
        found += [(bounds.epsilon, claim, direction) for claim, direction in pairs]
    return found


def _check_bounds(
    claim: DirectionBounds, direction: Direction, epsilon: float, rounded: bool
) -> None:
    """Check a claim against the bounds of one direction, computed again."""
    lower, upper = Decimal(0), Decimal(1)
    if claim.proof is not None:
        ends = enclose(claim.proof, direction.parts, epsilon, rounded=rounded)
        lower, upper = decimal_bounds(*ends)
    if claim.lower > lower or upper > claim.upper:
        raise CertificateRejected(
            f"The proof for direction {claim.direction!r} at epsilon = {epsilon!r} gives delta in "
            f"[{lower:.12g}, {upper:.12g}], not in [{claim.lower:.60g}, {claim.upper:.60g}] as "
            f"claimed."
        )
