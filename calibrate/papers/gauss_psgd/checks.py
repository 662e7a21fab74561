"""Programs that claims and errata of the paper name."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.kinds import Enumeration


def _crossings_are_optimal(a: Fraction) -> bool:
    """With unit constants and p = n^-a, the best kappa gives the largest crossing."""
    lines = [  # exponent of e_i as intercept + slope * (exponent of kappa)
        (Fraction(-2, 3), Fraction(-2, 3)),
        (-2 * a, Fraction(-2)),
        (Fraction(-2, 9), Fraction(2, 9)),
        (-2 * a / 7, Fraction(1, 7)),
    ]
    crossings = [(b - a_) / (i - j) for a_, i in lines[:2] for b, j in lines[2:]]
    best = min(max(c0 + c1 * k for c0, c1 in lines) for k in crossings)
    claimed = max(Fraction(-1, 3), -2 * a / 5, -2 * (2 * a + 1) / 17, -(a + 1) / 5)
    return best == claimed


CHECKS: dict[str, Enumeration] = {
    "crossings_are_optimal": Enumeration(
        _crossings_are_optimal, [Fraction(k, 24) for k in range(1, 48)]
    ),
}
