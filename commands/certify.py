"""``dpcal certify``: prove bounds on delta or epsilon in ball arithmetic, or check such a proof."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import dpcal
from dpcal.commands._options import add_mechanism, add_relation, add_target, mechanism, number
from dpcal.commands._output import present
from dpcal.errors import CertificateRejected

if TYPE_CHECKING:
    from dpcal.accountants import Certificate

EXAMPLE = "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --epsilon 8 -o proof.json"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the mechanism, exactly one of epsilon and delta, and where certificates are."""
    add_mechanism(parser)
    add_target(parser, needed=False)
    add_relation(parser)
    parser.add_argument(
        "--width",
        type=number,
        metavar="W",
        help="largest relative width of the bounds (default: as narrow as can be proved, to 1e-3)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where the certificate is written"
    )
    parser.add_argument(
        "--check", type=Path, metavar="FILE", help="check this certificate instead of making one"
    )


def run(options: Namespace) -> int:
    """Print the proved bounds; the exit status is 1 if a certificate to check does not hold."""
    if options.check is not None:
        return _check(options)
    event = mechanism(options)
    certificate = dpcal.accountants.certify(
        event,
        epsilon=options.epsilon,
        delta=options.delta,
        neighboring_relation=options.neighboring_relation,
        width=options.width,
    )
    if options.output is not None:
        options.output.write_text(certificate.to_json() + "\n")
    present(options, certificate.to_dict(), _text(certificate))
    return 0


def _check(options: Namespace) -> int:
    """Re-prove the bounds of a certificate."""
    try:
        text = options.check.read_text()
    except (OSError, ValueError) as error:
        raise ValueError(f"--check must name a readable certificate: {error}.") from error
    try:
        certificate = dpcal.accountants.verify_certificate(text)
    except CertificateRejected as error:
        present(options, {"holds": False, "reason": str(error)}, f"DOES NOT HOLD: {error}")
        return 1
    answer = {"holds": True, "certificate": certificate.to_dict()}
    present(options, answer, f"holds: {_text(certificate)}")
    return 0


def _text(certificate: Certificate) -> str:
    """The claim, and what it is about."""
    if certificate.delta is None:
        at = f"epsilon = {certificate.proofs[0].epsilon:g}"
    else:
        at = f"delta = {certificate.delta:g}"
    lines = [
        f"{certificate.quantity} in [{certificate.lower}, {certificate.upper}] at {at}, "
        f"neighboring relation {certificate.neighboring_relation}"
    ]
    for proof in certificate.proofs:
        for item in proof.directions:
            lines.append(
                f"direction {item.direction}: delta({proof.epsilon:g}) in [{item.lower}, "
                f"{item.upper}], below by {item.lower_method}, above by {item.upper_method}"
            )
    lines += [f"{item.event!r}, {item.count} times" for item in certificate.mechanisms]
    return "\n".join(lines)
