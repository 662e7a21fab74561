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
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

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
from dpcal.accountants.certificates.search.candidates import candidates
from dpcal.accountants.certificates.search.shuffles import is_shuffled, proofs_of_shuffle
from dpcal.accountants.certificates.verify import verify_certificate
from dpcal.accountants.directions import Direction
from dpcal.accountants.events import DpEvent, RandomAllocationDpEvent, ShuffledEpochsDpEvent
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


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """Settings of the search for bounds on one or both sides.

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


_SIDES = {
    "both": _Sides(width=1e-3, share=1 / 4, further=16.0),
    # At a tenth of this width rare large losses take a second round, of 20 seconds; at ten times
    # the width, bounds have one digit.
    "upper": _Sides(width=1e-2, share=1 / 2, further=4.0),
}
# Of a bracket, whose ends are proved apart from one another: the accountant's upper end is an exact
# price, or within a fiftieth of this width of it.
_BRACKET = {
    "upper": _Sides(width=1e-2, share=1 / 16, further=8.0),
    "lower": _Sides(width=1e-2, share=1 / 2, further=8.0),
}


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """Limits of the search.

    Attributes
    ----------
    guesses
        Most proofs that narrow an interval for epsilon, of which the accountant knows little.
    width_of_guess
        Relative width of the bounds on delta of such a proof.
    moves
        Most moves of an epsilon outward until delta is proved there. Each move takes as long as the
        first.
    digits
        Digits to which an upper bound alone is rounded outward.
    digits_of_width
        Digits to which the distance of two bounds is computed.
    """

    guesses: int = 12
    width_of_guess: float = 1e-3
    moves: int = 3
    digits: int = 6
    digits_of_width: int = 60


_LIMITS = _Limits()

_METHODS = ("auto", "contour", "convex-order")
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
        noise; of claims (epsilon, delta), whose worst case is bounded; of permute-and-flip.
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
    sides = _validate.choice(tuple(_SIDES), sides=sides)
    mechanisms = mechanisms_of(event)
    is_bracket = any(isinstance(item.event, ShuffledEpochsDpEvent) for item in mechanisms)
    method = _validate.choice(_METHODS, method=method)
    if is_bracket and method != "auto":
        raise UnsupportedEvent(
            f"shuffled epochs have proofs of their own, of either end: method must be 'auto', got "
            f"{method!r}."
        )
    is_coarse = is_bracket or method == "convex-order"
    aim = _BRACKET["upper"].width if is_coarse else _SIDES[sides].width
    aim = aim if width is None else _validate.probability(width=width)
    proofs: tuple[DeltaBounds, ...]
    if delta is None:
        at = _validate.non_negative(epsilon=epsilon)
        certificate = Certificate(neighboring_relation, mechanisms, None, ())
        search = _Search(certificate, sides, method)
        proofs = (search.delta(at, aim, search.enough(event, at, aim)),)
    else:
        delta = _validate.probability(delta=delta)
        certificate = Certificate(neighboring_relation, mechanisms, delta, ())
        proofs = _Search(certificate, sides, method).epsilon(delta, aim, event)
    certificate = Certificate(neighboring_relation, mechanisms, delta, proofs)
    is_narrow = is_bracket or sides == "upper"
    if width is not None and not is_narrow and certificate.width > width:
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


_Settles = Callable[[DeltaBounds], bool]
_Found = DeltaBounds | None


class _Search:
    """The search for proofs about one composition."""

    def __init__(self, certificate: Certificate, sides: str, method: str) -> None:
        self.certificate, self.sides, self.method = certificate, sides, method
        self.composition, self.rounded = certificate.composition, certificate.rounded
        self.mechanisms = certificate.mechanisms
        self.known: list[tuple[int, OrderProof]] = []

    def enough(self, event: DpEvent, epsilon: float, width: float) -> Decimal | None:
        """Return a delta at which an upper bound alone is close; None for both bounds."""
        if self.sides == "both":
            return None
        relation = self.composition.neighboring_relation
        answer = interface.delta(event, epsilon=epsilon, neighboring_relation=relation)
        return Decimal(answer.upper) * Decimal(1 + width)

    def epsilon(self, delta: float, width: float, event: DpEvent) -> tuple[DeltaBounds, ...]:
        """Return proved delta bounds on either side of the float accountant's epsilon."""
        relation = self.composition.neighboring_relation
        answer = interface.epsilon(event, delta=delta, neighboring_relation=relation)
        if not math.isfinite(answer.upper):
            raise TargetUnreachable(f"No finite epsilon is known at delta = {delta:g}.")
        sides, target = _SIDES[self.sides], Decimal(delta)
        low, high = answer.lower, answer.upper
        if is_shuffled(self.composition.directions[0]):
            return self._of_bracket(low, high, target, width)
        if any(isinstance(item.event, RandomAllocationDpEvent) for item in self.mechanisms):
            low, high = self._pinned(low, high, target, width)
        margin = width * high * sides.share

        def proved(side: float) -> DeltaBounds:
            # Half of the distance to the target, as a share of delta, is left to the proof.
            value = interface.log_delta(event, epsilon=side, neighboring_relation=relation).upper
            accuracy = abs(value - math.log(delta)) / 2
            if (low, high) != (answer.lower, answer.upper):
                accuracy = min(accuracy, width / 2)
            return self.delta(side, min(max(accuracy, 1e-14), 0.5), enough=target)

        upper = _settled(high, margin, lambda item: item.upper <= target, proved, sides)
        if upper is None:
            renyi = interface.epsilon(
                event, delta=delta, neighboring_relation=relation, accountant="renyi"
            )
            gap = renyi.upper - answer.upper
            upper = _settled(answer.upper, gap, lambda item: item.upper <= target, proved)
        if upper is None:
            raise TargetUnreachable(
                f"No argument proves an epsilon at delta = {delta:g}: {_TRIED} were tried, up to "
                f"epsilon = {answer.upper + sides.further**_LIMITS.moves * margin:.6g}."
            )
        if self.sides == "upper":
            return (upper,)
        lower = _settled(low, -margin, lambda item: item.lower >= target, proved)
        return (lower, upper) if lower is not None else (upper,)

    def _of_bracket(
        self, low: float, high: float, target: Decimal, width: float
    ) -> tuple[DeltaBounds, ...]:
        """Return proved delta bounds near both ends of a bracket, each end by its own proofs."""

        def proved(sides: str, start: float, margin: float, settles: _Settles) -> _Found:
            search, settings = _Search(self.certificate, sides, self.method), _BRACKET[sides]
            return _settled(
                start,
                margin * start * settings.share,
                settles,
                lambda side: search.delta(side, width, enough=target),
                settings,
            )

        upper = proved("upper", high, width, lambda item: item.upper <= target)
        if upper is None:
            raise TargetUnreachable(f"No argument proves an epsilon near {high:.6g}.")
        if self.sides == "upper":
            return (upper,)
        lower = proved("lower", low, -width, lambda item: item.lower >= target)
        return (lower, upper) if lower is not None else (upper,)

    def _pinned(
        self, low: float, high: float, target: Decimal, width: float
    ) -> tuple[float, float]:
        """Return epsilons about the one of a delta, by proofs where the accountant's are apart."""
        found: list[tuple[float, float]] = []
        for _ in range(_LIMITS.guesses):
            if high - low <= width * high:
                break
            middle = (low + high) / 2
            if len(found) > 1 and found[-1][1] != found[-2][1]:
                (a, u), (b, v) = found[-2:]
                secant = b - v * (b - a) / (v - u)
                middle = secant if low < secant < high else middle
            bounds = self.delta(middle, _LIMITS.width_of_guess)
            if not bounds.lower or relative_width(bounds.lower, bounds.upper) > 1 / 2:
                break
            if bounds.lower <= target <= bounds.upper:
                return middle, middle
            low, high = (middle, high) if bounds.lower > target else (low, middle)
            found.append((middle, float((bounds.upper / target).ln())))
        return low, high

    def delta(self, epsilon: float, width: float, enough: Decimal | None = None) -> DeltaBounds:
        """Return proved bounds on delta, at most ``width`` apart in the largest direction.

        They may be further apart if they lie on one side of ``enough``.
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
        """Return the best bounds, once they are close or the upper one is below ``floor``."""
        lower, upper = Decimal(0), Decimal(1)
        if self.sides == "lower" and enough is not None and floor >= enough:
            return DirectionBounds(direction.name, lower, upper, ())
        for_lower: Argument | None = None
        for_upper: Argument | None = None
        if is_shuffled(direction):
            near = None if enough is None else float(enough)
            tried = proofs_of_shuffle(direction, epsilon, self.sides, near)
        else:
            tried = candidates(direction, epsilon, width, floor > 0, self.method)
        known = [
            (bits, proof)
            for bits, proof in self.known
            if len(proof.uses) == len(direction.finite[1].parts)
        ]
        for bits, candidate in itertools.chain(known, tried):
            if self._work(direction, bits, candidate) > MAX_WORK_OF_PROOF:
                continue
            low, high = self._bounds(direction, epsilon, bits, candidate)
            argument = Argument(self.sides, bits, candidate)
            if isinstance(candidate, OrderProof):
                # Both directions and all epsilons are read off the same laws.
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

    def _work(self, direction: Direction, bits: int, candidate: Proof) -> float:
        """Return the units of work of re-proving a candidate."""
        return work(candidate, direction.finite[1].parts, bits)

    def _bounds(
        self, direction: Direction, epsilon: float, bits: int, candidate: Proof
    ) -> tuple[Decimal, Decimal]:
        """Return the proved bounds, rounded outward by a hundredth of their distance."""
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
            return outward(_LIMITS.digits)
        gap = relative_width(*outward(_LIMITS.digits_of_width))
        return outward(3 - math.floor(math.log10(gap)) if gap > 0 else 3)


def _settled(
    start: float,
    margin: float,
    settles: _Settles,
    proved: Callable[[float], DeltaBounds],
    sides: _Sides = _SIDES["both"],
) -> _Found:
    """Return the first bounds that settle a target, at growing distances from the start."""
    for _ in range(_LIMITS.moves):
        side = start + margin
        if side <= 0 < -margin:
            # A lower bound of 0 on epsilon takes no proof.
            return None
        with contextlib.suppress(TargetUnreachable):
            found = proved(max(side, 0.0))
            if settles(found):
                return found
        margin *= sides.further
    return None
