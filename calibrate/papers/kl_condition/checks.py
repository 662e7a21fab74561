"""Programs that claims and errata of the paper name: loops, sums, and costs."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from dpcal.calibrate.papers.claims.kinds import Enumeration


def _first_round_is_defined(start: int) -> bool:
    """The loop over rounds begins with the round that was initialized."""
    return start == 1


def _loss_of_theorem_8(w: Fraction, minimum: Fraction, tau: Fraction) -> Fraction:
    """Return f(w; 1), which is f(-w; -1); beyond the minimum by a square, powers are rational."""
    beyond = w - minimum
    if beyond <= 0:
        return -beyond
    root = Fraction(isqrt(beyond.numerator), isqrt(beyond.denominator))
    if root**2 != beyond:
        raise ValueError(f"beyond must be a square, got {beyond}.")
    return root ** int(2 * tau)


def _minimum_of_theorem_8(rate: Fraction, tau: Fraction) -> Fraction:
    return rate ** int(1 / (tau - 1)) / 2


def _excess_of_theorem_8(w: Fraction, rate: Fraction, tau: Fraction) -> tuple[Fraction, Fraction]:
    """Return the excess risks of w on the data set S of Theorem 8 and on its neighbor S'."""
    minimum = _minimum_of_theorem_8(rate, tau)
    one, other = (_loss_of_theorem_8(x, minimum, tau) for x in (w, -w))
    least = (1 - rate) * minimum
    ahead, behind = (1 + rate) / 2, (1 - rate) / 2
    return ahead * one + behind * other - least, behind * one + ahead * other - least


def _answers_to_theorem_8(rate: Fraction, tau: Fraction) -> list[Fraction]:
    """Return points between the two minima, and beyond each by up to 9/25."""
    minimum = _minimum_of_theorem_8(rate, tau)
    between = [minimum * Fraction(k, 20) for k in range(-20, 21)]
    beyond = [minimum + Fraction(k, 20) ** 2 for k in range(1, 13)]
    return between + beyond + [-w for w in beyond]


def _theorem_8_separates(case: tuple[Fraction, Fraction]) -> bool:
    """Every answer has excess risk r^kappa/4 or more on one of the two data sets."""
    rate, tau = case
    least = rate ** int(tau / (tau - 1)) / 4
    return all(
        max(_excess_of_theorem_8(w, rate, tau)) >= least for w in _answers_to_theorem_8(rate, tau)
    )


def _theorem_8_grows(case: tuple[Fraction, Fraction]) -> bool:
    """The excess on S is abs(w - a)^tau or more, from the minimum of S' to 9/25 beyond a."""
    rate, tau = case
    minimum = _minimum_of_theorem_8(rate, tau)
    near = [w for w in _answers_to_theorem_8(rate, tau) if w >= -minimum]
    excess = [_excess_of_theorem_8(w, rate, tau)[0] for w in near]
    return min(excess) == 0 and all(
        x**tau.denominator >= abs(w - minimum) ** tau.numerator
        for w, x in zip(near, excess, strict=True)
    )


_INSTANCES = [
    (rate, tau)
    for rate in (Fraction(1, 10), Fraction(1, 100))
    for tau in (Fraction(2), Fraction(3, 2))
]
_SIGNS = [(1, 1, 1, 1), (1, -1, 1, 1), (-1, 1, 1, -1), (1, 1, -1, 1)]


def _instance_of_theorem_7(used: int, zeros: int) -> tuple[Fraction, list[Fraction]]:
    """Return lambda and the minimizer at L0 = D = 1, d = 4: rows of signs over two, and zeros."""
    size = used + zeros
    weight = Fraction(used, 2 * size)
    sums = [Fraction(sum(_SIGNS[k % 4][j] for k in range(used)), 2) for j in range(4)]
    return weight, [-total / (2 * size * weight) for total in sums]


def _squared(vector: list[Fraction]) -> Fraction:
    return sum((x**2 for x in vector), Fraction(0))


def _theorem_7_is_quadratic(case: tuple[int, int]) -> bool:
    """Excess risk on the line of (3, 4, 0, 0)/5, with H = 8 ||w|| - 16 beyond radius 4."""
    weight, best = _instance_of_theorem_7(*case)
    for k in range(-80, 81):
        length = Fraction(k, 10)
        w = [3 * length / 5, 4 * length / 5, Fraction(0), Fraction(0)]
        outer = length**2 if abs(length) <= 4 else 8 * abs(length) - 16
        inner = -2 * sum(x * y for x, y in zip(w, best, strict=True))
        excess = weight * (inner + outer + _squared(best))
        apart = weight * _squared([x - y for x, y in zip(w, best, strict=True)])
        if excess != apart if abs(length) <= 4 else excess < 9 * weight:
            return False
    return True


def _theorem_7_is_bounded(case: tuple[int, int]) -> bool:
    """The minimizer is within D = 1, and gradients of a record within 1 + 8 lambda <= 5."""
    weight, best = _instance_of_theorem_7(*case)
    return _squared(best) <= 1 and 1 + 8 * weight <= 5


_USED = [(1, 0), (1, 7), (4, 4), (6, 0), (9, 91)]


CHECKS: dict[str, Enumeration] = {
    "first_round_is_1": Enumeration(_first_round_is_defined, [1], complete=True),
    "first_round_is_0": Enumeration(_first_round_is_defined, [0]),
    "theorem_8_separates": Enumeration(_theorem_8_separates, _INSTANCES),
    "theorem_8_grows": Enumeration(_theorem_8_grows, _INSTANCES),
    "theorem_7_is_quadratic": Enumeration(_theorem_7_is_quadratic, _USED),
    "theorem_7_is_bounded": Enumeration(_theorem_7_is_bounded, _USED),
}
