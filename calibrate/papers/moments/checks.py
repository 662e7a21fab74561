"""Programs that claims of the paper name: moments of one step, and of 10,000."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import flint

from dpcal.calibrate.papers.claims.kinds import Enumeration

CASES = [
    (order, noise, share)
    for noise in (Fraction(1), Fraction(6, 5), Fraction(2), Fraction(4))
    for order in (1, 2, 3, 4, 8, 20)
    for share in (Fraction(99, 100), Fraction(1, 3), Fraction(1, 100))
]


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


CHECKS: dict[str, Enumeration] = {
    "within_lemma": Enumeration(_within_lemma, CASES),
    "at_most_1.26": Enumeration(lambda order: bool(_example(order) <= 1.26), [19], complete=True),
    "above_1.25": Enumeration(
        lambda order: bool(_example(order) > 1.25), range(1, 33), complete=True
    ),
}
