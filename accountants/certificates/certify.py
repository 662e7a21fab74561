r"""Search for a certificate: the proof with the narrowest bounds on delta or epsilon.

>>> from dpcal.accountants import events, verify_certificate
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> certificate = certify(event, epsilon=8.0)
>>> certificate.lower < 2.0283809415e-08 < certificate.upper
True
>>> verify_certificate(certificate.to_json()) == certificate
True

The fast accountants and the modules of :mod:`~dpcal.accountants.certificates.search` choose the
numbers of a proof, in floats. The bounds follow only from these numbers, in ball arithmetic
(:mod:`~dpcal.accountants.certificates.enclosure`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache

from dpcal._internal import validate
from dpcal.accountants import interface
from dpcal.accountants.certificates.balls import arb, workprec
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.document import Certificate, DeltaBounds, DirectionBounds
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose, relative_width
from dpcal.accountants.certificates.mechanisms import mechanisms_of
from dpcal.accountants.certificates.proofs import Proof
from dpcal.accountants.certificates.search.contour import choose_contour
from dpcal.accountants.certificates.search.order import order_proofs
from dpcal.accountants.directions import Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import OutOfReach, Parts
from dpcal.errors import TargetUnreachable

# Relative widths: of a proof, and of a second proof in convex order.
_WIDTH, _COARSE = 1e-3, 1e-2
_TIGHTER = (1.0, 1e-2, 1e-4)
_MOVES = (0.25, 0.5, 4.0, 64.0)


def certify(
    event: DpEvent,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    width: float | None = None,
    method: str = "auto",
) -> Certificate:
    """Prove bounds on delta at an epsilon, or on epsilon at a delta, in ball arithmetic.

    Parameters
    ----------
    event
        Any composition of Gaussian mechanisms, on everyone, Poisson samples or batches without
        replacement; of mixtures of Gaussians; of Laplace, discrete Laplace and discrete Gaussian
        noise, also of several such answers about one random batch; of claims (epsilon, delta),
        bounded by their worst case; of permute-and-flip.
    epsilon, delta
        Exactly one of them: epsilon >= 0, to bound delta; or delta in (0, 1), to bound epsilon.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    width
        Largest width of the bounds, relative to the upper one; in (0, 1). None aims at 1e-3, and
        takes the narrowest bounds that can be proved.
    method
        ``"auto"``; ``"contour"`` for contours only, of either direction; or ``"convex-order"`` for
        laws in convex order only, which aim at a width of 1e-2. For Gaussian mechanisms, their
        samples and random allocation, ``"convex-order"`` is a second proof that shares only ball
        arithmetic with the contour.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no proof here covers the event under this relation.
    TargetUnreachable
        If no proof of affordable size gives bounds of this width, or any but trivial ones.

    >>> from dpcal.accountants.events import GaussianDpEvent
    >>> certificate = certify(GaussianDpEvent(2.0), delta=1e-5, width=1e-6)
    >>> f"[{certificate.lower:.4f}, {certificate.upper:.4f}]", len(certificate.proofs)
    ('[1.9931, 1.9931]', 2)
    """
    neighboring_relation = validate.relation(neighboring_relation)
    validate.only_one(epsilon=epsilon, delta=delta)
    mechanisms = mechanisms_of(event)
    method = validate.choice(("auto", "contour", "convex-order"), method=method)
    delta = delta if delta is None else validate.probability(delta=delta)
    claim = Certificate(neighboring_relation, mechanisms, delta, ())
    search = _Search(event, claim, method)
    aim = _COARSE if method == "convex-order" else _WIDTH
    aim = aim if width is None else validate.probability(width=width)
    if delta is None:
        proofs = [search.delta(validate.non_negative(epsilon=epsilon), aim)]
    else:
        proofs = search.epsilon(delta, aim)
    certificate = replace(claim, proofs=tuple(proofs))
    if width is not None and certificate.width > width:
        worst = max(certificate.proofs[-1].directions, key=lambda item: item.upper)
        raise TargetUnreachable(
            f"No proof of affordable size has relative width {width:g}; the best one has "
            f"{certificate.quantity} in [{certificate.lower:.6g}, {certificate.upper:.6g}], "
            f"of width {certificate.width:.3g}, by {worst.method}."
        )
    return certificate


@dataclass(eq=False)
class _Search:
    """The search for proofs of a certificate about an event; the certificate has none yet."""

    event: DpEvent
    certificate: Certificate
    method: str
    known: list[Proof] = field(default_factory=list)

    def epsilon(self, delta: float, width: float) -> list[DeltaBounds]:
        """Return proved delta bounds on either side of the float accountant's epsilon."""
        relation, target = self.certificate.neighboring_relation, Decimal(delta)
        answer = interface.epsilon(self.event, delta=delta, neighboring_relation=relation)
        if not math.isfinite(answer.upper):
            raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")

        def settled(sign: int) -> DeltaBounds | None:
            """Return the first bounds that settle the target, at growing distances on a side."""
            for move in _MOVES:
                side = answer.upper + sign * move * width * answer.upper
                if side <= 0 and sign < 0:
                    return None
                # The proof may use half of the distance to the target, as a share of delta.
                accuracy = abs(self._log_delta(side) - math.log(delta)) / 2
                with contextlib.suppress(TargetUnreachable):
                    found = self.delta(side, min(max(accuracy, 1e-14), 0.5))
                    if found.upper <= target if sign > 0 else found.lower >= target:
                        return found
            return None

        if (upper := settled(1)) is None:
            most = answer.upper * (1 + _MOVES[-1] * width)
            raise TargetUnreachable(
                f"No argument proves an epsilon at delta = {delta:g}: a contour and laws in convex "
                f"order were tried, up to epsilon = {most:.6g}."
            )
        lower = settled(-1)
        return [upper] if lower is None else [lower, upper]

    def delta(self, epsilon: float, width: float) -> DeltaBounds:
        """Return proved bounds on delta, at most ``width`` apart in the largest direction."""
        directions = self.certificate.composition.directions
        return DeltaBounds(epsilon, tuple(self._direction(x, epsilon, width) for x in directions))

    @lru_cache(maxsize=2)  # noqa: B019 -- two numbers
    def _log_delta(self, epsilon: float) -> float:
        """Return the lower end of log delta in doubles; the upper end if the lower one is -inf."""
        relation = self.certificate.neighboring_relation
        bounds = interface.log_delta(self.event, epsilon=epsilon, neighboring_relation=relation)
        return bounds.lower if bounds.lower > -math.inf else bounds.upper

    def _candidates(self, parts: Parts, epsilon: float, width: float) -> Iterator[Proof]:
        """Yield proofs to try, the most promising first."""
        yield from self.known
        log_delta = self._log_delta(epsilon)
        with contextlib.suppress(OutOfReach):
            for share in _TIGHTER if self.method != "convex-order" and parts else ():
                yield choose_contour(parts, epsilon, log_delta=log_delta, width=width * share)
        if self.method != "contour":
            target, rounded = math.log(self.certificate.delta or 1.0), self.certificate.rounded
            yield from order_proofs(parts, epsilon, log_delta, target, width, rounded)

    def _direction(self, direction: Direction, epsilon: float, width: float) -> DirectionBounds:
        """Return the best bounds, once they are close as the delta of the worst direction goes."""
        best = DirectionBounds(direction.name, Decimal(0), Decimal(1), None)
        size = Decimal(self._log_delta(epsilon)).exp()
        parts = direction.finite[1].parts
        for proof in self._candidates(parts, epsilon, width):
            found = self._bounds(direction, epsilon, proof)
            best = min(best, found, key=lambda x: (relative_width(x.lower, x.upper), x.upper))
            if best.upper - best.lower <= Decimal(width) * max(size, best.upper):
                break
        if isinstance(best.proof, OrderProof):
            self.known = [best.proof]
        if best.proof is None:
            raise TargetUnreachable(
                f"No argument says anything about delta at epsilon = {epsilon!r} in direction "
                f"{direction.name!r}: a contour and laws in convex order were tried."
            )
        return best

    def _bounds(self, direction: Direction, epsilon: float, proof: Proof) -> DirectionBounds:
        """Return the proved bounds, moved and rounded outward by a hundredth of their distance.

        A verifier cuts outputs of laws in convex order by doubles. Their last digits may differ on
        another machine, which moves a bound by far less.
        """
        lower, upper = enclose(proof, direction.parts, epsilon, rounded=self.certificate.rounded)
        with workprec(proof.bits):
            if upper > 0:
                lower = arb.max(lower, arb(0))
                lower, upper = lower - (upper - lower) / 100, upper + (upper - lower) / 100
        gap = relative_width(*decimal_bounds(lower, upper))
        digits = 3 - math.floor(math.log10(gap)) if gap > 0 else 3
        return DirectionBounds(direction.name, *decimal_bounds(lower, upper, digits), proof)
