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
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.cost import MAX_WORK_OF_PROOF, work
from dpcal.accountants.certificates.document import (
    Argument,
    Certificate,
    DeltaBounds,
    DirectionBounds,
    relative_width,
)
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose
from dpcal.accountants.certificates.mechanisms import Mechanism, mechanisms_of
from dpcal.accountants.certificates.proofs import Proof
from dpcal.accountants.certificates.search.contour import contours
from dpcal.accountants.certificates.search.order import laws
from dpcal.accountants.certificates.search.shuffles import is_shuffled, proofs_of_shuffle
from dpcal.accountants.certificates.verify import verify_certificate
from dpcal.accountants.directions import Direction
from dpcal.accountants.events import DpEvent
from dpcal.errors import TargetUnreachable, UnsupportedEvent

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


@dataclass(frozen=True)
class _Ends:
    """How the ends of an interval for epsilon are searched for.

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


# At a tenth of the width of an upper end, rare large losses take a second round, of 20 seconds; at
# ten times the width, bounds have one digit.
_BOTH, _UPPER = _Ends(1e-3, 1 / 4, 16.0), _Ends(1e-2, 1 / 2, 4.0)
# Of a bracket, whose ends are proved apart from one another: the accountant's upper end is an exact
# price, or within a fiftieth of this width of it.
_BRACKET = {"upper": _Ends(1e-2, 1 / 16, 8.0), "lower": _Ends(1e-2, 1 / 2, 8.0)}
# Most moves of an epsilon outward until delta is proved there: each takes as long as the first.
_MOVES = 3
# Digits to which an upper bound alone is rounded outward, and the distance of two bounds.
_DIGITS, _DIGITS_OF_WIDTH = 6, 60

_TRIED = "a contour and laws in convex order"


def certify(
    event: DpEvent,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    width: float | None = None,
    sides: str = "both",
    method: str = "auto",
) -> Certificate:
    """Prove bounds on delta at an epsilon, or on epsilon at a delta, in ball arithmetic.

    Parameters
    ----------
    event
        Any composition of Gaussian mechanisms, on everyone, Poisson samples or batches without
        replacement; of mixtures of Gaussians; of Laplace, discrete Laplace and discrete Gaussian
        noise, also of several such answers about one random batch; of claims (epsilon, delta),
        whose worst case is bounded; of permute-and-flip.
    epsilon, delta
        Exactly one of them: epsilon >= 0, to bound delta; or delta in (0, 1), to bound epsilon.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    width
        Largest width of the bounds, relative to the upper one; in (0, 1). None aims at 1e-3, and
        takes the narrowest that can be proved. Of a run over shuffled epochs, whose price is a
        bracket, it is about the distance of each end from the accountant's.
    sides
        ``"both"``; or ``"upper"`` for an upper bound alone, which takes a fraction of the time. The
        lower bound is then 0, and ``width`` is about the distance of the upper one from the
        accountant's.
    method
        ``"auto"``; ``"contour"`` for a contour alone, of either direction; or ``"convex-order"``
        for laws in convex order alone, which aim at a width of 1e-2: of Gaussian mechanisms, their
        samples and random allocation it is a second proof that shares nothing with the contour but
        balls. Shuffled epochs take ``"auto"``.

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
    neighboring_relation = _validate.relation(neighboring_relation)
    if (epsilon is None) == (delta is None):
        raise ValueError(
            f"exactly one of epsilon and delta must be given, got {epsilon!r} and {delta!r}."
        )
    sides = _validate.choice(("both", "upper"), sides=sides)
    mechanisms = mechanisms_of(event)
    method = _validate.choice(("auto", "contour", "convex-order"), method=method)
    delta = delta if delta is None else _validate.probability(delta=delta)
    search = _Search(Certificate(neighboring_relation, mechanisms, delta, ()), sides, method)
    is_bracket = search.is_bracket
    if is_bracket and method != "auto":
        raise UnsupportedEvent(
            f"shuffled epochs have proofs of their own, of either end: method must be 'auto', got "
            f"{method!r}."
        )
    is_coarse = sides == "upper" or is_bracket or method == "convex-order"
    aim = (_UPPER if is_coarse else _BOTH).width
    aim = aim if width is None else _validate.probability(width=width)
    proofs: tuple[DeltaBounds, ...]
    if delta is None:
        at = _validate.non_negative(epsilon=epsilon)
        proofs = (search.delta(at, aim, search.enough(event, at, aim)),)
    else:
        proofs = search.epsilon(delta, aim, event)
    certificate = Certificate(neighboring_relation, mechanisms, delta, proofs)
    if width is not None and not is_bracket and sides == "both" and certificate.width > width:
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

    def __init__(self, certificate: Certificate, sides: str, method: str) -> None:
        self.certificate, self.sides, self.method = certificate, sides, method
        self.composition, self.rounded = certificate.composition, certificate.rounded
        self.known: list[tuple[int, Proof]] = []

    @property
    def is_bracket(self) -> bool:
        """Whether either end has proofs of its own."""
        return is_shuffled(self.composition.directions[0])

    def enough(self, event: DpEvent, epsilon: float, width: float) -> Decimal | None:
        """Return a delta at which an upper bound alone is close; None for both bounds."""
        if self.sides == "both":
            return None
        relation = self.composition.neighboring_relation
        answer = interface.delta(event, epsilon=epsilon, neighboring_relation=relation)
        return Decimal(answer.upper) * Decimal(1 + width)

    def epsilon(self, delta: float, width: float, event: DpEvent) -> tuple[DeltaBounds, ...]:
        """Return proved delta bounds on either side of the float accountant's epsilon.

        The ends of a bracket have proofs of their own.
        """
        relation, target = self.composition.neighboring_relation, Decimal(delta)
        answer = interface.epsilon(event, delta=delta, neighboring_relation=relation)
        if not math.isfinite(answer.upper):
            raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")

        def proved(side: float) -> DeltaBounds:
            if self.is_bracket:
                return search.delta(side, width, enough=target)
            # Half of the distance to the target, as a share of delta, is left to the proof.
            value = interface.log_delta(event, epsilon=side, neighboring_relation=relation).upper
            accuracy = abs(value - math.log(delta)) / 2
            return self.delta(side, min(max(accuracy, 1e-14), 0.5), enough=target)

        search = _Search(self.certificate, "upper", self.method)
        ends = _BRACKET["upper"] if self.is_bracket else _UPPER if self.sides == "upper" else _BOTH
        margin = width * answer.upper * ends.share
        upper = _settled(answer.upper, margin, ends, proved, lambda item: item.upper <= target)
        if upper is None:
            raise TargetUnreachable(
                f"No argument proves an epsilon at delta = {delta:g}: {_TRIED} were tried, up to "
                f"epsilon = {answer.upper + ends.further**_MOVES * margin:.6g}."
            )
        if self.sides == "upper":
            return (upper,)
        search.sides, ends = "lower", _BRACKET["lower"] if self.is_bracket else _BOTH
        margin = -width * answer.lower * ends.share if self.is_bracket else -margin
        lower = _settled(answer.lower, margin, ends, proved, lambda item: item.lower >= target)
        return (lower, upper) if lower is not None else (upper,)

    def delta(self, epsilon: float, width: float, enough: Decimal | None = None) -> DeltaBounds:
        """Return proved bounds on delta, at most ``width`` apart in the largest direction.

        They may be further apart if they lie on one side of ``enough``.
        """
        found: list[DirectionBounds] = []
        for direction in self.composition.directions:
            floor = max((item.lower for item in found), default=Decimal(0))
            found.append(self._direction(direction, epsilon, width, floor, enough))
        return DeltaBounds(epsilon, tuple(found))

    def _candidates(
        self,
        direction: Direction,
        epsilon: float,
        width: float,
        floor: Decimal,
        enough: Decimal | None,
    ) -> Iterator[tuple[int, Proof]]:
        """Yield precisions and proofs to try, the most promising first."""
        parts = direction.finite[1].parts
        if is_shuffled(direction):
            near = None if enough is None else float(enough)
            yield from proofs_of_shuffle(direction, epsilon, self.sides, near)
            return
        # Both directions and all epsilons are read off the same laws.
        yield from [item for item in self.known if item[1].fits(parts)]
        if self.method != "convex-order":
            yield from contours(parts, epsilon, width, negligible=floor > 0)
        if self.method != "contour":
            yield from laws(parts, epsilon, width)

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
        if self.sides == "lower" and enough is not None and floor >= enough:
            return DirectionBounds(direction.name, lower, upper, ())
        for_lower: Argument | None = None
        for_upper: Argument | None = None
        parts = direction.finite[1].parts
        for bits, candidate in self._candidates(direction, epsilon, width, floor, enough):
            if work(candidate, parts, bits) > MAX_WORK_OF_PROOF:
                continue
            low, high = self._bounds(direction, epsilon, bits, candidate)
            argument = Argument(self.sides, bits, candidate)
            if isinstance(candidate, OrderProof):
                self.known = [(bits, candidate)]
            if low > lower and self.sides != "upper":
                lower, for_lower = low, argument
            if high < upper and self.sides != "lower":
                upper, for_upper = high, argument
            settled = enough is not None and (upper <= enough or lower >= enough)
            if relative_width(lower, upper) <= width or upper <= floor or settled:
                break
        if for_lower is None and for_upper is None and self.sides != "lower":
            raise TargetUnreachable(
                f"No argument says anything about delta at epsilon = {epsilon!r} in direction "
                f"{direction.name!r}: {_TRIED} were tried."
            )
        if for_lower is for_upper and for_upper is not None:
            return DirectionBounds(direction.name, lower, upper, (for_upper,))
        sides = (("lower", for_lower), ("upper", for_upper))
        arguments = tuple(replace(item, proves=side) for side, item in sides if item is not None)
        return DirectionBounds(direction.name, lower, upper, arguments)

    def _bounds(
        self, direction: Direction, epsilon: float, bits: int, candidate: Proof
    ) -> tuple[Decimal, Decimal]:
        """Return the proved bounds, rounded outward by a hundredth of their distance."""
        how: dict[str, Any] = {"bits": bits, "rounded": self.rounded, "proves": self.sides}
        outward = decimal_bounds(*enclose(candidate, direction.parts, epsilon, **how))
        if self.sides == "upper":
            return outward(_DIGITS)
        gap = relative_width(*outward(_DIGITS_OF_WIDTH))
        return outward(3 - math.floor(math.log10(gap)) if gap > 0 else 3)


def _settled(
    start: float,
    margin: float,
    ends: _Ends,
    proved: Callable[[float], DeltaBounds],
    settles: Callable[[DeltaBounds], bool],
) -> DeltaBounds | None:
    """Return the first bounds that settle a target, at growing distances from the start."""
    for _ in range(_MOVES):
        side = start + margin
        if side <= 0 < -margin:
            # A lower bound of 0 on epsilon takes no proof.
            return None
        with contextlib.suppress(TargetUnreachable):
            found = proved(max(side, 0.0))
            if settles(found):
                return found
        margin *= ends.further
    return None
