r"""What does a mechanism of your own cost? Events from probabilities, profiles and densities.

Each function returns an event that is priced, composed and sampled as any other one. Its premise is
the caller's: that the laws P (with the record) and Q (without it) dominate the mechanism under the
neighboring relation that is named, as a pair of worst neighbors does. All else is bounded here.

A mechanism that answers 0, 1 or 2 with these probabilities:

>>> from dpcal.accountants import delta, epsilon
>>> event = from_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], name="three answers")
>>> print(f"{delta(event, epsilon=0.0):.4f}")       # 0.5 - 0.2
0.3000

Logistic noise of scale 1/2 on a sum that one record moves by at most 1, in ball arithmetic:

>>> import flint
>>> def log_density(x):
...     return flint.arb(2).log() - 2 * x - 2 * (1 + (-2 * x).exp()).log()
>>> noise = from_density(lambda x: log_density(x - 1), log_density, support=(-40.0, 41.0))
>>> print(f"{epsilon(noise, delta=1e-9):.3f}")      # no loss exceeds the distance over the scale
2.000

Sources: a profile's chords are a dominating pair (Zhu, Dong and Wang 2022, Proposition 10 and
Algorithm 1); masses that move to both ends of an interval keep P and Q (Doroshenko et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.events import DominatingPairDpEvent
from dpcal.accountants.inversion.finite_laws import FiniteLaw, gathered
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss, Reals, Tilt
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.mechanisms.amplification import loss_of
from dpcal.accountants.mechanisms.best_run import lower_hull
from dpcal.accountants.mechanisms.row import Pairs, Row, refuse
from dpcal.errors import UnsupportedEvent

__all__ = ["OnlyAbove", "from_density", "from_pld", "from_pmf", "from_profile"]

# Largest distance from 1 of a sum of probabilities, so that a wrong table is found.
_OFF = 1e-9
# Largest distance from 1 of a sum of probabilities that rounding explains.
_ROUNDING = 1e-12
# Nats by which the least loss stands below all others, where it stands for minus infinity.
_FAR = 500.0
# Bits of ball arithmetic: masses down to 1e-70 keep the digits of a double.
_BITS = 300
# Bits that a mass must have: the 53 of a double and a few.
_ACCURATE = 58
# Terms of a Taylor series on a cell. The last is enclosed on the whole cell, and bounds the rest.
_TERMS = 24
# The loss of a record whose presence every output reveals.
_CERTAIN = LossWithFailure(NO_LOSS, 1.0)
# Halvings of a cell on which a mass has too few digits.
_SPLITS = 5
# Largest mass that a support may leave out.
_LEFT_OUT = 1e-3


@dataclass(frozen=True)
class OnlyAbove(PrivacyLoss):
    """A loss that is only known to be dominated by another: answers have no lower end."""

    dominating: PrivacyLoss

    @property
    def has_law(self) -> bool:
        """False: the law is not known."""
        return False

    @property
    def law(self) -> PrivacyLoss:
        """The dominating loss."""
        return self.dominating

    @property
    def upper(self) -> float:
        """The largest loss of the dominating pair."""
        return self.dominating.upper

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return those of the dominating pair, of which log M is a bound."""
        return self.dominating.cumulants(c)

    def log_mgf_bound(self, c: float) -> float:
        """Return that of the dominating pair."""
        return self.dominating.log_mgf_bound(c)

    def tilt(self, c: float) -> Tilt:
        """Return that of the dominating pair."""
        return self.dominating.tilt(c)


def from_pmf(
    with_record: ArrayLike,
    without_record: ArrayLike,
    *,
    name: str = "from_pmf",
    neighboring_relation: str = "add-or-remove-one",
) -> DominatingPairDpEvent:
    """Return the event of a mechanism with finitely many outcomes.

    Parameters
    ----------
    with_record, without_record
        Probabilities >= 0 of each outcome, of shape (k,), under P and under Q. Each is divided by
        its sum, which must be within 1e-9 of 1.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation under which the pair, in both orders, dominates the mechanism.

    Raises
    ------
    ValueError
        If the numbers are not probabilities of the same outcomes.
    """
    p = _probabilities(with_record=with_record)
    q = _probabilities(without_record=without_record)
    if len(p) != len(q):
        raise ValueError(
            f"with_record and without_record must be about the same outcomes, got {len(p)} and "
            f"{len(q)} probabilities."
        )
    laws = [_of_masses(*order) for order in ((p, q), (q, p))]
    return _event(laws, name, neighboring_relation)


def from_pld(
    distribution: Any, *, name: str = "from_pld", neighboring_relation: str = "add-or-remove-one"
) -> DominatingPairDpEvent:
    """Return the event of a mechanism whose privacy loss distribution dp-accounting has.

    Answers have an upper end only, because the distribution is rounded up. On a sample, both ends
    are those of the distribution.

    Parameters
    ----------
    distribution
        A pessimistic ``PrivacyLossDistribution`` of ``dp_accounting.pld``.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation that the distribution is about, which it does not say.

    Raises
    ------
    ValueError
        If the distribution is an optimistic one, which bounds nothing from above.
    """
    laws = []
    for pmf in (distribution._pmf_remove, distribution._pmf_add):
        if not pmf._pessimistic_estimate:
            raise ValueError(f"distribution must be a pessimistic estimate, got {distribution!r}.")
        dense = pmf.to_dense_pmf()
        p = np.asarray(dense._probs, dtype=float)
        values = (dense._lower_loss + np.arange(len(p))) * dense._discretization
        some = p > 0
        values, logs = values[some], np.log(p[some]) - values[some]
        infinite = float(dense._infinity_mass)
        missing = 1 - math.fsum(p) - infinite
        infinite += missing if missing > _ROUNDING else 0.0
        laws.append(_balanced(values, logs, infinite, 1 - math.fsum(np.exp(logs))))
    return _event(laws, name, neighboring_relation, OnlyAbove)


def from_profile(
    epsilons: ArrayLike,
    deltas: ArrayLike,
    *,
    name: str = "from_profile",
    neighboring_relation: str = "add-or-remove-one",
) -> DominatingPairDpEvent:
    """Return the event of a mechanism that is (epsilon, delta)-private for several pairs at once.

    A hockey-stick divergence is convex in exp(epsilon), so that chords between the points bound it,
    and so do their mirror images, which say the same with both neighbors exchanged. Answers have an
    upper end only; on a sample, both ends are those of the chords.

    Parameters
    ----------
    epsilons
        Finite numbers >= 0, increasing, of shape (k,).
    deltas
        For each, a number in [0, 1] that bounds delta whichever neighbor comes first.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation that the claims are about.

    Raises
    ------
    ValueError
        If there is no such profile.
    """
    at, bounds = _validate.reals(epsilons=epsilons), _validate.reals(deltas=deltas)
    if at.ndim != 1 or at.shape != bounds.shape or not len(at):
        raise ValueError(
            "epsilons and deltas must be arrays of the same shape (k,), got shapes "
            f"{at.shape} and {bounds.shape}."
        )
    if not (at[0] >= 0 and (np.diff(at) > 0).all() and at[-1] <= _FAR):
        raise ValueError(f"epsilons must increase from 0 or more to at most {_FAR:g}, got {at}.")
    if not ((bounds >= 0) & (bounds <= 1)).all():
        raise ValueError(f"deltas must be numbers in [0, 1], got {bounds}.")
    # Rounded up, at which delta is no larger; from here on all numbers are exact.
    alphas = [Fraction(math.exp(x) * (1 + 2.0**-50) if x else 1.0) for x in at]
    points = [(a, min(Fraction(d), Fraction(1))) for a, d in zip(alphas, bounds, strict=True)]
    mirrored = [(1 / a, 1 - 1 / a + d / a) for a, d in points]
    # Of points at one alpha the lowest counts.
    lowest = dict(sorted([(Fraction(0), Fraction(1)), *mirrored, *points], reverse=True))
    hull, slopes = lower_hull(sorted(lowest.items()))
    slopes = [slope for slope in slopes if slope < 0]
    last = hull[len(slopes)][1]
    values = np.array([_log(a) for a, _ in hull[1 : len(slopes) + 1]])
    logs = np.array([_log(after - slope) for slope, after in pairwise([*slopes, Fraction(0)])])
    law = _balanced(values, logs, float(last), float(1 + slopes[0]) if slopes else 1.0)
    return _event([law, law], name, neighboring_relation, OnlyAbove)


def from_density(
    log_p: Callable[[Any], Any],
    log_q: Callable[[Any], Any],
    *,
    support: tuple[float, float],
    cells: int = 1024,
    name: str = "from_density",
    neighboring_relation: str = "add-or-remove-one",
) -> DominatingPairDpEvent:
    """Return the event of a mechanism whose answer is a number with a known density.

    The support is cut into cells, on which densities are integrated and the loss is enclosed in
    ball arithmetic. What lies outside counts as a loss without bound.

    Parameters
    ----------
    log_p, log_q
        Logarithms of the densities under P and under Q. They take a power series of balls,
        ``flint.arb_series``, and return one, by its arithmetic and its methods (``exp``, ``log``,
        ``erf``, ...), so that densities are smooth. A constant that is not a double is written as
        a ball: ``flint.arb(2).log()``.
    support
        Finite ends (low, high), which leave out at most a thousandth of either law. Delta is at
        least the mass that they leave out.
    cells
        Number >= 2 of cells of equal length, which are halved where an integral needs it.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation under which the pair, in both orders, dominates the mechanism.

    Raises
    ------
    UnsupportedEvent
        If an integral or the loss on a cell is not bounded, or too much is left out.
    """
    low, high = (_validate.finite(support=end) for end in support)
    count = _validate.count(cells=cells)
    if not low < high or count < 2:
        raise ValueError(
            f"support must be two increasing numbers, and cells at least 2, got {support!r} and "
            f"{cells!r}."
        )
    low_ends, high_ends, masses, tails = _integrals(log_p, log_q, np.linspace(low, high, count + 1))
    laws = [
        _of_cells(low_ends, high_ends, *masses, *tails),
        _of_cells(-high_ends, -low_ends, *masses[::-1], *tails[::-1]),
    ]
    return _event(laws, name, neighboring_relation)


def _event(
    laws: Iterable[FiniteLaw],
    name: str,
    relation: str,
    known: Callable[[PrivacyLoss], PrivacyLoss] = lambda loss: loss,
) -> DominatingPairDpEvent:
    """Return the event of two laws: with the record first, and without it first."""
    relation = _validate.choice(RELATIONS, neighboring_relation=_validate.relation(relation))
    found = (loss_of(gathered(law), name) if law.outside < 1 else _CERTAIN for law in laws)
    remove, add = (loss if loss is NO_LOSS else known(loss) for loss in found)
    return DominatingPairDpEvent(name, relation, remove, add)


def _probabilities(**argument: Any) -> list[Fraction]:
    """Return probabilities of outcomes, divided by their sum, without rounding."""
    ((name, value),) = argument.items()
    given = np.asarray(value, dtype=float)
    total = math.fsum(given) if given.ndim == 1 and np.isfinite(given).all() else math.nan
    if not (abs(total - 1) <= _OFF and (given >= 0).all()):
        raise ValueError(
            f"{name} must be an array of shape (k,) of probabilities >= 0 that add up to 1, got "
            f"{value!r}."
        )
    found = [Fraction(float(each)) for each in given]
    whole = sum(found)
    return [each / whole for each in found]


def _of_masses(p: list[Fraction], q: list[Fraction]) -> FiniteLaw:
    """Return the law of log p / q under p."""
    both = [pair for pair in zip(p, q, strict=True) if all(pair)]
    values = np.array([_log(mine / other) for mine, other in both])
    logs = np.array([_log(other) for _, other in both])
    gained = sum(mine for mine, other in zip(p, q, strict=True) if not other)
    lost = sum(other for mine, other in zip(p, q, strict=True) if not mine)
    law = _balanced(values, logs, float(gained), float(lost))
    if gained <= lost or not both:
        return law
    # An attacker who takes some outcomes for others sees no more.
    top = int(np.argmax(values))
    values[top] = _log((both[top][0] + gained - lost) / both[top][1])
    return replace(law, below=_balanced(values, logs, float(lost), float(lost)))


def _balanced(values: Reals, logs: Reals, gained: float, lost: float) -> FiniteLaw:
    """Return a law whose laws P and Q have outcomes of their own, with the same probability.

    Parameters
    ----------
    values, logs
        Finite losses, and their log probabilities under Q.
    gained, lost
        Probabilities of the outcomes that P alone, and that Q alone has.
    """
    order = np.argsort(values)
    values, logs = values[order], logs[order]
    excess = gained - lost
    if not len(values) or gained >= 1:
        return FiniteLaw(np.zeros(0), np.zeros(0), 1.0)
    if excess < 0:
        # Under P the loss is never minus infinity; there it has a probability below 1e-217.
        values = np.append(min(values[0], 0.0) - _FAR, values)
        logs = np.append(math.log(-excess), logs)
    elif excess > 0:
        # Q alone has outcomes with this probability, too, if it has less of those of small loss.
        room = -np.exp(logs) * np.expm1(np.minimum(values, 0.0))
        taken = np.clip(excess - (np.cumsum(room) - room), 0.0, room)
        some = taken > 0
        left = np.maximum(np.exp(logs[some]) - taken[some], np.exp((logs + values)[some]))
        moved = (logs + values)[some] - np.log(left)
        values, logs = values.copy(), logs.copy()
        values[some], logs[some] = np.minimum(moved, 0.0), np.log(left)
    first = np.argsort(values)
    values, logs = values[first], logs[first]
    starts = np.flatnonzero(np.diff(values, prepend=-math.inf) > 0)
    return FiniteLaw(values[starts], np.logaddexp.reduceat(logs, starts), gained)


def _log(x: Fraction) -> float:
    """Return the logarithm of a positive fraction, with its digits near 1 and at any size."""
    if abs(x - 1) < Fraction(1, 4):
        return math.log1p(float(x - 1))
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    near = x / Fraction(2) ** shift
    return math.log(near) + shift * math.log(2.0)


def _of_cells(
    low: Reals, high: Reals, log_p: Reals, log_q: Reals, gained: float, lost: float
) -> FiniteLaw:
    """Return the law of losses that lie in cells, rounded up, above the law of the cells."""
    ratio = np.clip(log_p - log_q, low, high)
    gap = np.expm1(low - high)
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low = log_q + np.log(np.expm1(ratio - high) / gap)
        to_high = log_q + ratio - high + np.log(np.expm1(low - ratio) / gap)
    some = np.concatenate([to_low, to_high]) > -math.inf
    values, logs = np.concatenate([low, high])[some], np.concatenate([to_low, to_high])[some]
    # Whoever takes the outcomes outside for those of one cell sees no more.
    p, q = np.exp(log_p), np.exp(log_q)
    widest = int(np.argmax(p + q))
    p[widest] += gained
    q[widest] += lost
    below = _balanced(np.log(p) - np.log(q), np.log(q), 0.0, 0.0)
    return replace(_balanced(values, logs, gained, lost), below=below)


def _integrals(
    log_p: Callable[[Any], Any], log_q: Callable[[Any], Any], edges: Reals
) -> tuple[Reals, Reals, tuple[Reals, Reals], tuple[float, float]]:
    """Return the ends of the loss on each cell, the log masses of P and Q, and those left out.

    A cell whose mass has too few digits is halved, and in the end left out.
    """
    import flint

    before = flint.ctx.prec, flint.ctx.cap
    flint.ctx.prec, flint.ctx.cap = _BITS, _TERMS + 1
    try:
        losses: list[tuple[float, float]] = []
        kept: list[tuple[Any, Any]] = []
        pieces = [(float(a), float(b), _SPLITS) for a, b in reversed(list(pairwise(edges)))]
        while pieces:
            a, b, splits = pieces.pop()
            cell = _Cell(flint, a, b)
            p, q = (cell.integral(cell.series(each, exp=True)) for each in (log_p, log_q))
            if min(p.rel_accuracy_bits(), q.rel_accuracy_bits()) >= _ACCURATE:
                kept.append((p, q))
                losses.append(cell.range(cell.series(lambda x: log_p(x) - log_q(x))))
            elif splits:
                middle = (a + b) / 2
                pieces += [(middle, b, splits - 1), (a, middle, splits - 1)]
        tails = tuple(_left_out(1 - sum(each, flint.arb(0))) for each in zip(*kept, strict=True))
        logs = np.array([[float(mass.log().mid()) for mass in pair] for pair in kept]).T
    finally:
        flint.ctx.prec, flint.ctx.cap = before
    ends = np.array(losses).reshape(-1, 2)
    if len(tails) < 2 or not np.isfinite(ends).all():
        raise UnsupportedEvent(
            "The densities or the loss are not bounded on a cell of the support: they must be "
            "smooth there, and cells short."
        )
    return ends[:, 0], ends[:, 1], (logs[0], logs[1]), (tails[0], tails[1])


def _left_out(rest: Any) -> float:
    """Return the mass outside of all cells, rounded up."""
    if rest < 0 or not rest < _LEFT_OUT:
        raise UnsupportedEvent(
            f"A density must integrate to at most 1 over the support, and to at least "
            f"{1 - _LEFT_OUT}, in ball arithmetic; it leaves out {float(rest.mid()):g}. Constants "
            "such as a root of 2 pi are to be balls, the support wide, and cells short."
        )
    return max(math.nextafter(float(rest.upper()), 1.0), 0.0)


class _Cell:
    """Taylor series of a function on one cell, at its middle, and an enclosure of the rest."""

    def __init__(self, flint: Any, a: float, b: float) -> None:
        self._flint = flint
        low, high = flint.arb(a), flint.arb(b)
        # Sums and halves of doubles have fewer bits than balls; the radius is rounded up.
        middle, self._half = (low + high) / 2, (high - low) / 2
        self._at = middle, flint.arb(middle, self._half)

    def series(self, function: Callable[[Any], Any], *, exp: bool = False) -> list[Any]:
        """Return the coefficients at the middle; the last one is enclosed on the whole cell."""
        found = []
        for point in self._at:
            value = function(self._flint.arb_series([point, 1], _TERMS + 1))
            value = self._flint.arb_series(value)
            value = value.exp() if exp else value
            if value.prec < _TERMS + 1:
                raise UnsupportedEvent("A density must keep all terms of its power series.")
            found.append([*value.coeffs(), *[self._flint.arb(0)] * (_TERMS + 1)])
        return [*found[0][:_TERMS], found[1][_TERMS]]

    def integral(self, terms: list[Any]) -> Any:
        """Return a ball that holds the integral over the cell."""
        half = self._half
        *known, rest = terms
        total = sum(
            (2 * half ** (k + 1) / (k + 1) * term for k, term in enumerate(known) if k % 2 == 0),
            self._flint.arb(0),
        )
        return total + 2 * half ** (_TERMS + 1) / (_TERMS + 1) * rest.union(-rest)

    def range(self, terms: list[Any]) -> tuple[float, float]:
        """Return numbers below and above all values on the cell."""
        off = self._flint.arb(0, self._half)
        found = self._flint.arb(0)
        for term in reversed(terms):
            found = found * off + term
        return (
            math.nextafter(float(found.lower()), -math.inf),
            math.nextafter(float(found.upper()), math.inf),
        )


@Row(
    from_pmf([0.6, 0.4], [0.4, 0.6]),
    "[your own mechanism](your_own_mechanism.md), under the relation that it names",
)
def _pair(event: DominatingPairDpEvent, relation: str) -> Pairs:
    if relation != event.neighboring_relation:
        reason = f"Its pair dominates it under {event.neighboring_relation!r}."
        raise refuse(event, relation, reason)
    for name, loss in (("removed", event.removed), ("added", event.added)):
        if not isinstance(loss, PrivacyLoss):
            raise TypeError(f"{name} must be a PrivacyLoss, got {loss!r}.")
    return event.removed, event.added
