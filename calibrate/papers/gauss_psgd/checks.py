"""Programs that claims and errata of the paper name: loops, sums, and prices."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Claim, Enumeration


def drift_window(calls: int) -> bool:
    """The drift tested at call t ends with x_{t-1} - x_{t-2}."""
    moves = [k * k for k in range(1, calls + 1)]
    tested = sum(moves[: calls - 1])
    return tested == sum(k * k for k in range(1, calls))


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


def _returns_anchor(case: tuple[int, int]) -> bool:
    """After the last failed round, index t - 1 is the index of the anchor."""
    anchor, steps = case
    t_now = anchor
    for _ in range(steps):
        t_now += 1
    return t_now - 1 == anchor


def _printed_drift_window(calls: int) -> bool:
    """The drift tested at call t includes x_t - x_{t-1}, which is not known yet."""
    moves = [k * k for k in range(1, calls + 1)]
    return sum(moves) == sum(k * k for k in range(1, calls))


CHECKS: dict[str, Claim] = {
    "crossings_are_optimal": Enumeration(
        "", _crossings_are_optimal, [Fraction(k, 24) for k in range(1, 48)]
    ),
    "one_step_later": Enumeration("", _returns_anchor, [(5, 1)]),
    "several_steps_later": Enumeration("", _returns_anchor, [(5, 4), (9, 3)]),
    "drift_window": Enumeration("", drift_window, list(range(2, 8))),
    "printed_drift_window": Enumeration("", _printed_drift_window, list(range(2, 8))),
}
