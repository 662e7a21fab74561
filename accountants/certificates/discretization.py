r"""How is a privacy loss replaced by finite laws that bound it from either side?

Cut the outputs of a pair (P, Q) into intervals.

* Report only the interval. This is post-processing, so the original loss dominates the loss
  log P(interval) / Q(interval), which has a finite law.
* Let the loss grow along an interval. Move the mass that P and Q have on it to its two ends, where
  the loss takes its values, so that both masses are kept. The resulting finite law dominates the
  original loss (Doroshenko et al. 2022, "connect the dots").

Every number is enclosed in ball arithmetic.

>>> from dpcal.accountants.certificates import balls
>>> with balls.workprec(64):
...     p, q, u, v = (balls.arb(x) for x in ("0.5", "0.4", 0, "0.5"))
...     (_, at_u), (_, at_v) = at_both_ends(p, q, u, v)
...     value, _ = as_one_value(p, q)
...     (at_u + at_v).contains(balls.arb("0.5")), bool(u < value) and bool(value < v)
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.gaussian_pairs import GaussianPair

__all__ = [
    "Law",
    "as_one_value",
    "at_both_ends",
    "law_of",
    "law_of_pair",
    "theta_tail",
]

# A value of a loss and its probability under P.
Atom = tuple[Ball, Ball]


@dataclass(frozen=True)
class Law:
    """The law under P of a privacy loss with finitely many values.

    Attributes
    ----------
    values, masses
        The finite values and their probabilities.
    infinite
        Probability that the loss is infinite.
    """

    values: list[Ball]
    masses: list[Ball]
    infinite: Ball

    @property
    def last(self) -> tuple[Ball, Ball]:
        """The probabilities under P and Q of the last value."""
        return self.masses[-1], self.masses[-1] * (-self.values[-1]).exp()


def law_of(atoms: Iterable[Atom], infinite: Ball | None = None) -> Law:
    """Return the law of finite values with their probabilities, and that of an infinite loss."""
    atoms = list(atoms)
    values, masses = [value for value, _ in atoms], [mass for _, mass in atoms]
    return Law(values, masses, balls.arb(0) if infinite is None else infinite)


def at_both_ends(p: Ball, q: Ball, u: Ball, v: Ball) -> tuple[Atom, Atom]:
    """Return the atoms of an interval with masses p and q, moved to its ends with losses u < v.

    The mass x of P at v solves x + y = p and x exp(-v) + y exp(-u) = q, y the mass at u.
    """
    share = (p - q * u.exp()) / -(u - v).expm1()
    high = balls.arb.max(balls.arb.min(share, p), balls.arb(0))
    return (u, p - high), (v, high)


def as_one_value(p: Ball, q: Ball) -> Atom:
    """Return the loss of an interval with masses p and q if only the interval is reported."""
    return (p / q).log(), p


def law_of_pair(pair: GaussianPair, points: list[Ball], dominating: bool) -> Law:
    """Return a finite law that dominates the loss of a Gaussian pair, or is dominated by it.

    The outputs are cut at the increasing points. The dominated law reports only the interval. In
    the other one the loss above the last point counts as its supremum, which may be infinite; below
    the first it is at most its value there.
    """
    if not dominating:
        ends = [None, *points, None]
        return law_of(as_one_value(*pair.masses(x, y)) for x, y in pairwise(ends))
    losses = [pair.loss(x) for x in points]
    masses = [pair.masses(None, points[0])[0], *[balls.arb(0)] * (len(points) - 1)]
    for j, ((x, y), (u, v)) in enumerate(zip(pairwise(points), pairwise(losses), strict=True)):
        (_, low), (_, high) = at_both_ends(*pair.masses(x, y), u, v)
        masses[j] += low
        masses[j + 1] += high
    largest = pair.largest_loss
    if largest is None:
        return Law(losses, masses, pair.masses(points[-1], None)[0])
    (_, low), last = at_both_ends(*pair.masses(points[-1], None), losses[-1], largest)
    masses[-1] += low
    return law_of([*zip(losses, masses, strict=True), last])


def theta_tail(x: int, variance: Ball) -> Ball:
    """Enclose the sum of exp(-k^2 / (2 variance)) over whole numbers k >= x > 0.

    The sum is at least its first term, at most a geometric series; unbounded for x <= 0.
    """
    if x <= 0:
        return balls.arb("nan")
    first = (-balls.arb(x * x) / (2 * variance)).exp()
    return first * balls.arb(0.5, 0.5) / (1 - (-balls.arb(x) / variance).exp())
