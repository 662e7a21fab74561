"""Claims of the paper: analysis."""

from __future__ import annotations

import itertools
from fractions import Fraction

from sympy import Le, diff, exp, log, sqrt

from dpcal.calibrate.auditing.language import Bound, Enumeration, Identity
from dpcal.calibrate.schedules.kan.quantities import (
    HALF,
    L,
    R,
    beta,
    c,
    d,
    ell,
    eta,
    lam,
    m,
    nu,
    u,
    v,
    w,
    x,
)


def _batch_variance(size: int) -> bool:
    """Variance of a batch mean without replacement, over all batches of five numbers."""
    values = [Fraction(k) for k in (3, -1, 4, 1, -5)]
    mean = sum(values) / 5
    spread = sum((x - mean) ** 2 for x in values) / 5
    means = [sum(batch) / size for batch in itertools.combinations(values, size)]
    variance = sum((x - mean) ** 2 for x in means) / len(means)
    return variance == Fraction(5 - size, size * 4) * spread


def _duality(a: Fraction) -> bool:
    """H_a(Q||P) = 1 - a + a H_{1/a}(P||Q) for two laws on four points."""
    first = [Fraction(k, 10) for k in (1, 2, 3, 4)]
    second = [Fraction(k, 10) for k in (4, 1, 3, 2)]

    def divergence(top: list[Fraction], bottom: list[Fraction], factor: Fraction) -> Fraction:
        gaps = [max(x - factor * y, Fraction(0)) for x, y in zip(top, bottom, strict=True)]
        return sum(gaps, Fraction(0))

    return divergence(second, first, a) == 1 - a + a * divergence(first, second, 1 / a)


ANALYSIS = (
    Bound(
        "I19",
        -4 * eta / 3 + 8 * beta * eta**2 + eta / 3,
        -eta / 3,
        where=(Le(eta, 1 / (12 * beta)),),
        statement="descent with eta <= 1/(12 beta)",
    ),
    Bound(
        "I19.young",
        2 * lam * eta**2 * c * u * v,
        eta / (12 * beta) * u**2 + 12 * beta * lam**2 * eta**3 * c**2 * v**2,
        statement="Young's inequality with weight 1/(12 beta)",
    ),
    Bound("I20", x / (2 - x), R(1, 3), on={x: (0, HALF)}, statement="curvature term"),
    Bound(
        "I21",
        eta / 2 * 8 * beta,
        R(1, 3),
        where=(Le(eta, 1 / (12 * beta)),),
        statement="descent, independent noise",
    ),
    Bound(
        "I21.width",
        nu * (2 * u) ** 2,
        HALF,
        at={nu: 8 * x / (64 * x * u**2)},
        statement="(21) implies the curvature condition",
    ),
    Enumeration("I22", _batch_variance, [2, 3], complete=True, statement="batch variance"),
    Bound("I23", 2 * sqrt(2), 4, statement="constants of C.8 and C.9"),
    Bound("I23.log", 1, 2 * log(2), statement="constant of C.6"),
    Bound(
        "I24",
        2 * ell * (v + L * x / 3),
        x**2,
        at={x: sqrt(2 * v * ell) + 2 * L * ell / 3},
        statement="Freedman: the closed form dominates the root",
    ),
    Identity("I25", x / 4 + x / 4 + 2 * x / 8 + 2 * x / 8, x, statement="failure budget"),
    Identity(
        "I26",
        diff(log(1 + exp(-v * (w * u) ** 3 / sqrt(m * d))), w),
        -3 * v * (w * u) ** 2 * u / (sqrt(m * d) * (1 + exp(v * (w * u) ** 3 / sqrt(m * d)))),
        statement="gradient of one unit, by the chain rule",
    ),
    Bound(
        "I27",
        1 / (1 + exp(x)),
        log(1 + exp(-x)),
        on={x: (0, 5)},
        statement="self-bounding logistic loss on [0, 5]",
    ),
    Bound("I27.second", x / (1 + x) ** 2, R(1, 4), statement="second derivative, x = e^z"),
    Enumeration(
        "I28", _duality, [Fraction(k, 3) for k in (1, 2, 3, 4, 9)], statement="hockey-stick duality"
    ),
)
