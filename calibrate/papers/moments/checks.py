"""Programs that claims of the paper name: moments of one step, compositions, and a tail bound."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import flint

from dpcal.calibrate.papers.claims.language import Claim, Enumeration

CASES = [
    (order, noise, share)
    for noise in (Fraction(1), Fraction(6, 5), Fraction(2), Fraction(4))
    for order in (1, 2, 3, 4, 8, 20)
    for share in (Fraction(99, 100), Fraction(1, 3), Fraction(1, 100))
]

# Two laws of an answer on three values, with and without a record.
LAWS = (
    ((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 3),) * 3),
    (
        (Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)),
        (Fraction(2, 5), Fraction(2, 5), Fraction(1, 5)),
    ),
    (
        (Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)),
        (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)),
    ),
)


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def log_moment(order: int, rate: flint.arb, noise: Fraction) -> flint.arb:
    """Return alpha(order) of a Gaussian answer about a Poisson sample that may hold the record."""
    terms = (
        comb(order + 1, k)
        * (1 - rate) ** (order + 1 - k)
        * rate**k
        * _ball(Fraction(k * k - k) / (2 * noise**2)).exp()
        for k in range(order + 2)
    )
    return sum(terms, flint.arb(0)).log()


def _within_lemma(case: tuple[int, Fraction, Fraction]) -> bool:
    """Lemma 3 with constant 1, at a share of the largest rate that its conditions allow."""
    order, noise, share = case
    with flint.ctx.workprec(300):
        wide = _ball(noise)
        limit = (-order / wide**2).exp() / wide
        rate = _ball(share) * min(limit, 1 / (16 * wide))
        lead = rate**2 * order * (order + 1) / ((1 - rate) * wide**2)
        return bool(log_moment(order, rate, noise) <= lead + (rate * order / wide) ** 3)


def _example(order: int) -> flint.arb:
    """Return the epsilon of 10,000 steps at q = 0.01, noise 4, delta 1e-5, from one order."""
    steps = 10_000 * log_moment(order, _ball(Fraction(1, 100)), Fraction(4))
    return (steps + flint.arb(10**5).log()) / order


def _moment(
    with_record: tuple[Fraction, ...], without: tuple[Fraction, ...], order: int
) -> Fraction:
    return sum(
        (p * (p / r) ** order for p, r in zip(with_record, without, strict=True)), Fraction(0)
    )


def _composes(case: tuple[int, tuple[int, int, int], int]) -> bool:
    """Whether the moment of an adaptive pair is at most the product of the largest moments."""
    first, second, order = case
    joint = [
        [LAWS[first][side][o] * p for o in range(3) for p in LAWS[second[o]][side]]
        for side in (0, 1)
    ]
    largest = max(_moment(*LAWS[k], order) for k in second)
    return (
        _moment(tuple(joint[0]), tuple(joint[1]), order) <= _moment(*LAWS[first], order) * largest
    )


def _tail(case: tuple[int, Fraction, int]) -> bool:
    """Whether exp(alpha - order*epsilon) is at least the delta at a factor e^epsilon."""
    law, factor, order = case
    pairs = zip(*LAWS[law], strict=True)
    delta = sum((max(p - factor * r, Fraction(0)) for p, r in pairs), Fraction(0))
    return delta <= _moment(*LAWS[law], order) / factor**order


CHECKS: dict[str, Claim] = {
    "within_lemma": Enumeration("", _within_lemma, CASES),
    "at_most_1.26": Enumeration(
        "", lambda order: bool(_example(order) <= 1.26), [19], complete=True
    ),
    "above_1.25": Enumeration(
        "", lambda order: bool(_example(order) > 1.25), range(1, 33), complete=True
    ),
    "composes": Enumeration(
        "",
        _composes,
        [
            (k, row, o)
            for k in range(3)
            for row in itertools.product(range(3), repeat=3)
            for o in (1, 2, 5)
        ],
    ),
    "tail": Enumeration(
        "",
        _tail,
        [
            (k, factor, o)
            for k in range(3)
            for factor in (Fraction(11, 10), Fraction(3, 2))
            for o in range(1, 9)
        ],
    ),
}
