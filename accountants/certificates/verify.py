"""Does a certificate hold? Every bound is proved again, from the numbers of the document alone.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.certificates.certify import certify
>>> document = certify(events.GaussianDpEvent(2.0), epsilon=1.0).to_json()
>>> verify_certificate(document).quantity
'delta'
>>> verify_certificate(document.replace("0.00", "0.000"))      # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.CertificateRejected: digest of the certificate must be ...

A verifier trusts python-flint, the bounds that
:mod:`~dpcal.accountants.certificates.enclosure` states, and the theorems behind
:func:`dpcal.accountants.mechanisms.decompose.decompose`. It shares no code with the search for
proofs; doubles choose where outputs of laws in convex order are cut, and no bound. No document
keeps it busy for longer than :mod:`~dpcal.accountants.certificates.proofs` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dpcal.accountants.certificates.document import Certificate, DirectionBounds
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose
from dpcal.accountants.certificates.mechanisms import values_of
from dpcal.accountants.certificates.proofs import MAX_WORK
from dpcal.accountants.directions import Composition, Direction
from dpcal.errors import CertificateRejected, UnsupportedEvent

__all__ = ["verify_certificate"]

# Most values and components of all mechanisms together, which are priced in floats before any proof
# is checked. Four million take a few seconds.
_MOST_VALUES = 1 << 22
# Digits to which a bound is computed before it is compared with a claim. Claims have 3 to 40
# digits.
_DIGITS = 60


def verify_certificate(
    document: str | Mapping[str, Any] | Certificate, *, most: float | None = None
) -> Certificate:
    """Return a certificate after proving every bound again, from its numbers alone.

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
        The certificate, whose claim holds.

    Raises
    ------
    CertificateRejected
        If the document is malformed, was changed, claims more than its proofs give, or asks for
        more work.
    """
    if isinstance(document, Certificate):
        document = document.to_dict()
    certificate = Certificate.from_json(document)
    composition = _composition(certificate)
    names = [direction.name for direction in composition.directions]
    for bounds in certificate.proofs:
        if [item.direction for item in bounds.directions] != names:
            raise CertificateRejected(
                f"directions of the certificate must be {names!r}, as its mechanisms have, "
                f"got {[item.direction for item in bounds.directions]!r}."
            )
    claims = [
        (bounds.epsilon, claim, direction)
        for bounds in certificate.proofs
        for claim, direction in zip(bounds.directions, composition.directions, strict=True)
    ]
    total, most = 0.0, MAX_WORK if most is None else most
    for _, claim, direction in claims:
        total += _work(claim, direction)
        if total > most:
            raise CertificateRejected(
                f"The proofs ask for more work than any proof needs: {total:.3g} units or more, of "
                f"which at most {most:.3g} are allowed."
            )
    for epsilon, claim, direction in claims:
        _check_bounds(claim, direction, epsilon, certificate.rounded)
    _check_epsilon(certificate)
    return certificate


def _composition(certificate: Certificate) -> Composition:
    """Return the losses that the mechanisms compose, by the theorems that cover them."""
    values = sum(values_of(item.event) for item in certificate.mechanisms)
    if values > _MOST_VALUES:
        raise CertificateRejected(
            f"mechanisms of the certificate must have at most {_MOST_VALUES} values together, "
            f"got {values}."
        )
    try:
        return certificate.composition
    except (UnsupportedEvent, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _refused(error) from error


def _refused(error: Exception) -> CertificateRejected:
    """Return the rejection of mechanisms that no theorem or no proof covers."""
    reason = str(error).rstrip(".")
    return CertificateRejected(f"The certificate's mechanisms are refused: {reason}.")


def _work(claim: DirectionBounds, direction: Direction) -> float:
    """Return the work of a proof; refuse one that does not fit its losses."""
    if claim.proof is None:
        return 0.0
    parts = direction.finite[1].parts
    try:
        if not claim.proof.fits(parts):
            raise CertificateRejected(
                f"The proof for direction {direction.name!r} must fit its losses."
            )
        return claim.proof.work(parts)
    except (UnsupportedEvent, ArithmeticError, ValueError) as error:
        raise _refused(error) from error


def _check_bounds(
    claim: DirectionBounds, direction: Direction, epsilon: float, rounded: bool
) -> None:
    """Check a claim against the bounds of one direction, computed again."""
    lower, upper = Decimal(0), Decimal(1)
    if claim.proof is not None:
        ends = enclose(claim.proof, direction.parts, epsilon, rounded=rounded)
        lower, upper = decimal_bounds(*ends, _DIGITS)
    if claim.lower > lower or upper > claim.upper:
        raise CertificateRejected(
            f"The proof for direction {claim.direction!r} at epsilon = {epsilon!r} gives delta in "
            f"[{lower:.12g}, {upper:.12g}], not in [{claim.lower:.60g}, {claim.upper:.60g}] as "
            f"claimed."
        )


def _check_epsilon(certificate: Certificate) -> None:
    """Check that the bounds on delta imply the claimed bounds on epsilon, if there are any."""
    if certificate.delta is None:
        return
    delta, found = Decimal(certificate.delta), certificate.proofs
    if not (found[-1].upper <= delta and (len(found) == 1 or found[0].lower >= delta)):
        raise CertificateRejected(
            f"The certificate's bounds on delta do not settle its epsilon at delta = "
            f"{certificate.delta!r}."
        )
