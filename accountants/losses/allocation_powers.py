r"""What is the m-th coefficient of the M-th power of a series? By recurrences, or on a circle.

The moment E L^m exp(-s L) of an allocation is m! M^-m [x^m] (c_0 + c_1 x + ... + c_m x^m)^M
(:mod:`dpcal.accountants.losses.allocation_rays`). Both classes hold ``scales``, by which the c_j
over E Y^j are multiplied before they are handed back, with c_0 = 1.

Of a narrow law m may be in the thousands, but few batches are drawn more than a few times: terms
above an order J are so small that they are left out, as an error, and the coefficient is Cauchy's
integral on a circle through the saddle, by the trapezoid rule. Such coefficients also bound how
fast moments fall along a vertical line (:class:`MovedLines`).

>>> for power in (Recurrence(0.2, 1000, 40), Circle(0.2, 1000, 40)):
...     print(f"{power.log_whole:.12f} {len(power.scales)}")
0.031832425959 41
0.031832425959 15
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from dpcal.accountants.losses.base import Complexes, OutOfReach, Reals

__all__ = ["Circle", "MovedLines", "Recurrence", "log1p", "power_of"]

# Largest logarithm of a moment E Y^j, which extended doubles hold with room for products. Where
# they are plain doubles, numbers that overflow are out of reach too.
_LARGEST = 5000.0
# Above this logarithm numbers are extended doubles.
_LARGEST_DOUBLE = 250.0
# Most orders of a recurrence: a node then takes 0.1 s, and whole contours seconds.
_MOST_ORDERS = 100
# Orders up to which a recurrence is taken, and most points of a circle, times its terms.
_FEW, _MOST_POINTS = 24, 100_000
# Nats below E L^m of all that a circle leaves out, at s = 0.
_LEFT_OUT = 60.0
# Logarithms of the ratio of two circles that are tried.
_RATIOS = np.geomspace(1e-3, 3.0, 60)

# Largest angle of a term, and what minus a times its square is at most: about a fifth of a nat.
_PSI, _TURNED = 1.3, 2.0
# Angles up to the mean one; and s over lambda.
_ANGLES = np.arange(1, 11) / 10
_FACTORS = 2.0 ** np.arange(-1, 6)
# Width of intervals of x, times t, where t > 1.
_FINE = 0.1
# Largest exponent of a moment of Y, and largest growth of all terms together.
_LARGEST_MOMENT, _MOST_GROWN = 300.0, 300.0
# Most orders of a moment.
_MOST_WHOLE = 40
# Relative rounding of the logarithms of sums, far above that of their terms.
_ROUNDING = 1e-9


class Recurrence:
    """The coefficient by recurrences, or products, of all m + 1 terms.

    Parameters
    ----------
    t, batches
        1 / sigma > 0, and M >= 1.
    m
        The order, >= 1.

    Raises
    ------
    OutOfReach
        If it takes too long, or numbers are too large.
    """

    def __init__(self, t: float, batches: int, m: int) -> None:
        if m > _MOST_ORDERS or m * (m - 1) * t * t / 2 > _LARGEST:
            raise OutOfReach
        self._batches, self._m = batches, m
        j = np.arange(m + 1.0)
        # The last coefficient is E L^m, not m! M^-m times as much.
        log_kappa = math.lgamma(m + 1) / m - math.log(batches)
        log_scales = np.asarray(j * (j - 1) * t * t / 2 - gammaln(j + 1) + j * log_kappa)
        extended = np.abs(log_scales).max() >= _LARGEST_DOUBLE
        self.scales: Any = np.exp(log_scales.astype(np.longdouble) if extended else log_scales)
        self.log_whole = float(np.log(coefficients(self.scales, batches)[-1]))

    def log_coefficient(self, c: Any) -> tuple[Complexes, Reals]:
        """Return logs of the coefficient of series, of shape (m + 1, k), and of its rounding.

        The rounding is in units.
        """
        found = np.log(coefficients(c, self._batches)[-1]).astype(complex)
        sizes = np.log(coefficients(np.abs(c), self._batches)[-1]).astype(float)
        return found, sizes + math.log((self._m + 1) * (self._m + 8))

    def log_error(self, c: Any, errors: Reals) -> Reals:
        """Return the log of a bound on what errors of terms do to coefficients.

        Parameters
        ----------
        c, errors
            Terms, and bounds on their errors, of shape (m + 1, k).
        """
        # Of the M factors of a product, one has the error, and m - j is left to the others.
        others = coefficients(_bounded(c, errors), self._batches - 1)
        found = self._batches * (errors * others[::-1]).sum(axis=0)
        return np.asarray(np.log(found).astype(float))


class Circle:
    """The coefficient by Cauchy's integral, of the terms that matter; see :class:`Recurrence`.

    *What is left out.* E L^(m - j) <= E L^m, so that the terms of order j are together at most
    M (m / M)^j E Y^j / j! times E L^m. Far from the saddle 1 + c_1 x is short, and points there are
    bounded by it. *Aliases.* The rule adds the coefficients of orders m + i N, each of which is at
    most that of a larger or a smaller circle.
    """

    def __init__(self, t: float, batches: int, m: int) -> None:
        self._batches, self._m = batches, m
        j = np.arange(m + 1.0)
        log_terms = j * (j - 1) * t * t / 2 - gammaln(j + 1)
        together = math.log(batches) + j * math.log(m / batches) + log_terms
        kept = int(np.flatnonzero(together > -_LEFT_OUT - math.log(m))[-1]) + 1
        if 2 * kept > m:
            raise OutOfReach
        log_r = self._saddle(log_terms[:kept])
        # On the circle of radius r, and in all that is below, terms are c_j r^j.
        self.scales = np.exp(log_terms[:kept] + j[:kept] * log_r)
        self._left_out = float(np.exp(log_terms[kept:] + j[kept:] * log_r).sum())
        self._log_scale = _log_stirling(m) + m * (math.log(m / batches) - log_r)
        self._choose_points()
        with np.errstate(divide="ignore", invalid="ignore"):
            (whole,), _ = self.log_coefficient(self.scales[:, None])
        self.log_whole = float(whole.real)
        if not math.isfinite(self.log_whole):
            raise OutOfReach

    def _saddle(self, log_terms: Reals) -> float:
        """Return log r at which the mean order of a factor is m / M, at s = 0."""
        j, goal = np.arange(float(len(log_terms))), self._m / self._batches
        x = math.log(goal)
        for _ in range(50):
            weights = np.exp(log_terms + j * x)
            weights /= weights.sum()
            mean = float(weights @ j)
            step = (goal - mean) / float(weights @ (j - mean) ** 2)
            x += max(-0.5, min(0.5, step))
            if abs(step) < 1e-9:
                break
        return x

    def _choose_points(self) -> None:
        """Choose the number of points, and circles that bound the orders beyond it, at s = 0."""
        M, m, j = self._batches, self._m, np.arange(float(len(self.scales)))
        shares = self.scales / self.scales.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            grown, shrunk = (
                M * np.log(shares @ np.exp(np.outer(j, ratios))) for ratios in (_RATIOS, -_RATIOS)
            )
        # A share of 0 times infinity bounds nothing.
        grown = np.nan_to_num(grown, nan=math.inf)
        above, below = (grown + _LEFT_OUT) / _RATIOS - m, (shrunk + _LEFT_OUT) / _RATIOS + m
        self._ratios = float(_RATIOS[above.argmin()]), -float(_RATIOS[below.argmin()])
        half = math.ceil(max(above.min(), min(below.min(), m + 1)) / 2)
        self._points = 2 * half + 1
        angles = 2 * math.pi / self._points * np.arange(-half, half + 1.0)
        # Far from the saddle the first two terms point apart.
        one, rest = float(self.scales[1]), float(self.scales[2:].sum())
        least = (1 + one + rest) * math.exp(-_LEFT_OUT / M) - rest
        cosine = (max(least, 0.0) ** 2 - 1 - one * one) / (2 * one)
        self._widest = math.acos(max(-1.0, min(1.0, cosine)))
        self._angles = angles[np.abs(angles) <= self._widest]
        if self._angles.size * len(j) > _MOST_POINTS:
            raise OutOfReach
        self._turns = np.exp(1j * np.outer(self._angles, j[1:]))

    def log_coefficient(self, c: Any) -> tuple[Complexes, Reals]:
        """Return logs of the coefficient of series, of shape (J + 1, k), and of its rounding.

        The rounding is in units.
        """
        log_factors = self._log_factors(c)
        exponents = self._batches * log_factors - 1j * self._m * self._angles[:, None]
        top = exponents.real.max(axis=0)
        values = np.exp(exponents - top)
        # A term errs by its exponent's rounding, and by that of the sum over orders in each factor.
        summed = self._batches * (len(c) + 16) * np.abs(c[1:]).sum(axis=0)
        lost = np.abs(values) * (16 * self._m + summed * np.exp(-log_factors.real))
        scale = top + self._log_scale - math.log(self._points)
        return np.log(values.sum(axis=0)) + scale, np.log(lost.sum(axis=0)) + scale

    def log_error(self, c: Any, errors: Reals) -> Reals:
        """Return the log of a bound on what errors of terms, and aliases, do to coefficients."""
        M, m, j = self._batches, self._m, np.arange(1.0, len(c))
        off = errors.sum(axis=0) + self._left_out
        sizes = self._log_factors(c).real
        # Both factors, and all between them, are at most so large at each point.
        log_off = np.log(off)
        log_others = (M - 1) * np.logaddexp(sizes, log_off)
        top = log_others.max(axis=0)
        found = np.log(M * np.exp(log_others - top).sum(axis=0) / self._points) + log_off + top
        bounded = _bounded(c, errors)[1:]
        if self._angles.size < self._points:
            nearest = np.cos(np.maximum(0.0, self._widest - np.abs(np.angle(c[1]))))
            two = np.sqrt(1 + bounded[0] * (bounded[0] + 2 * nearest))
            found = np.logaddexp(found, M * np.log(two + bounded[1:].sum(axis=0)))
        for ratio in self._ratios:
            grown = M * np.log1p(np.exp(ratio * j) @ bounded)
            beyond = abs(ratio) * self._points
            alias = grown - ratio * m - beyond - math.log(-math.expm1(-beyond))
            found = np.logaddexp(found, alias)
        return np.asarray(found + self._log_scale)

    def _log_factors(self, c: Any) -> Complexes:
        """Return the logarithm of the series at each point of the circle."""
        less = self._turns @ c[1:]
        return log1p(less.real, less.imag)


@lru_cache(maxsize=16)
def power_of(t: float, batches: int, m: int) -> Circle | Recurrence:
    """Return the way that is cheaper; OutOfReach where both take too long."""
    if m > _FEW:
        try:
            return Circle(t, batches, m)
        except OutOfReach:
            pass
    return Recurrence(t, batches, m)


def _log_stirling(m: int) -> float:
    """Return log m! - m log m, without the cancellation of its terms."""
    if m < 20:
        return math.lgamma(m + 1) - m * math.log(m)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * m * m)) / (m * m)) / (m * m)) / m
    return 0.5 * math.log(2 * math.pi * m) + series - m


def _bounded(c: Any, errors: Reals) -> Any:
    """Return bounds on the sizes of terms, of which the first is 1."""
    sizes = np.abs(c) + errors
    sizes[0] = 1.0
    return sizes


def log1p(x: Reals, y: Reals) -> Complexes:
    """Return log(1 + x + i y) to the last digits of small x and y, which numpy's log1p loses."""
    return np.asarray(0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x))


def coefficients(terms: Any, power: int) -> Any:
    """Return as many coefficients of (terms[0] + terms[1] x + ...)^power, with terms[0] = 1.

    Both ways add up numbers of one sign where the terms are >= 0, so that little is rounded.
    """
    count = len(terms)
    if power >= count:
        found = np.ones_like(terms)
        orders = np.arange(1, count).astype(terms.real.dtype)
        for k in range(1, count):
            j = orders[:k]
            weights = ((j * power - k + j) / k)[(..., *[None] * (terms.ndim - 1))]
            found[k] = (weights * terms[1 : k + 1] * found[k - 1 :: -1][:k]).sum(axis=0)
        return found
    found = np.zeros_like(terms)
    found[0] = 1
    for digit in f"{power:b}":
        found = _product(found, found)
        if digit == "1":
            found = _product(found, terms)
    return found


def _product(one: Any, other: Any) -> Any:
    """Return a product of polynomials to as many terms."""
    return np.stack([(one[: k + 1] * other[k::-1]).sum(axis=0) for k in range(len(one))])


class MovedLines:
    """Bounds on abs(E L^(a + i u)) / E L^a, for which lines of large X_j are moved.

    L = (Y_1 + ... + Y_M) / M, Y_j = exp(t X_j - t^2 / 2), as in
    :mod:`dpcal.accountants.losses.allocation_rays`. Let eta(x) be between 0 and psi / t, psi < pi /
    2.

    *Theorem.* Let a, u >= 0, k(x) = exp(eta(x)^2 / 2) (1 + eta'(x)^2)^(1/2), and 0 = alpha_0 < ...
    < alpha_n < psi. For all s_1, ..., s_n >= 0 and s_(n + 1) = 0

        abs(E L^(a + i u)) <= sum over i = 0, ..., n of exp(-u alpha_i) A_(i + 1),
        A_i = E L^a prod_j k(X_j) exp(-s_i Y_j sin(t eta(X_j) - alpha_i)).

    For a < 0 it holds with cos(psi / 2)^a times as much.

    *Proof.* Move the integral over each x_j to x_j + i eta(x_j). There all Y_j have angles in [0,
    psi], so that L^(a + i u) is analytic, and its size is abs(L)^a exp(-u arg L). The density and
    the length of the line grow by k(x_j). For a >= 0 abs(L) is at most the L of real numbers. For a
    < 0 it is at least cos(psi / 2) times that: the part of L in the direction exp(i psi / 2), to
    which every term has at most this angle. Let alpha_i be the last angle with arg L >= alpha_i.
    Then arg L < alpha_(i + 1), so that the sum of Y_j sin(t eta(X_j) - alpha_(i + 1)), which is the
    imaginary part of M L exp(-i alpha_(i + 1)), is below 0, and exp(-s_(i + 1) times it) is above
    1. ∎

    For whole a >= 0 A_i is a coefficient of an M-th power, and A_i is log-convex in a. For a < 0
    L^a falls with every x_j, so that A_(n + 1) <= E L^a (E k)^M if k rises (Chebyshev), and A_i^2
    is at most E L^(2 a) (E k(X)^2 exp(-2 s_i Y sin(t eta(X) - alpha_i)))^M (Cauchy and Schwarz).

    Where all x_j move by as much, the bound is exp(-u^2 t^2 / (2 M)). But few X_j make up most of
    L, and the others need not move. For small angles the best choice is eta(x) = lambda times the
    integral of exp(tau x - tau^2 / 2) over 0 <= tau <= t, lambda = u / M: it solves eta - eta'' + x
    eta' = lambda t exp(t x - t^2 / 2), and leaves exp(-u^2 (exp(t^2) - 1) / (2 M)), as for a normal
    law of the same variance. Means are sums over intervals of x, on each of which a term is at its
    largest.

    >>> decay = MovedLines(1 / 0.382, 121_606, 3.612, log_f=1.915)
    >>> print(decay.at(np.array([50.0, 100.0, 200.0])).round(1))
    [ -1.1  -6.4 -17.8]
    >>> -round(200.0**2 * 0.382**-2 / 2 / 121_606, 1)
    -1.1

    Parameters
    ----------
    t, batches
        1 / sigma > 0, and M >= 1.
    a
        Real part.
    log_f, log_f_twice
        A lower bound on log E L^a; for a < 0 also an upper bound on log E L^(2 a).
    """

    def __init__(
        self, t: float, batches: int, a: float, log_f: float, log_f_twice: float = math.nan
    ) -> None:
        self._t, self._batches, self._a = t, batches, a
        self._log_f, self._log_f_twice = log_f, log_f_twice
        self._whole, self._share = max(0, math.floor(a)), max(a, 0.0) % 1
        self._psi = _PSI if a >= 0 else min(_PSI, math.sqrt(_TURNED / -a))
        orders = self._whole + 1
        # No bound is known of moments that are too large for doubles.
        self._is_known = (
            orders * (orders - 1) * t * t / 2 < _LARGEST_MOMENT and orders < _MOST_WHOLE
        )
        self._bounds: dict[int, tuple[Reals, Reals] | None] = {}
        if self._is_known:
            self._choose_intervals(orders)

    def at(self, u: Reals) -> Reals:
        """Return bounds at imaginary parts u > 0, each of which holds for larger ones, too."""
        found = np.zeros_like(u)
        if not self._is_known:
            return found
        # Lambda is a power of 2, about half of u / M.
        for k in np.unique(np.round(np.log2(u / self._batches) - 0.8)):
            if int(k) not in self._bounds:
                self._bounds[int(k)] = self._bound(2.0**k)
        for bound in tuple(self._bounds.values()):  # another thread may add one
            if bound is not None:
                terms = bound[1] - np.multiply.outer(u, bound[0])
                found = np.minimum(found, np.logaddexp.reduce(terms, axis=-1))
        return found

    def _choose_intervals(self, orders: int) -> None:
        """Choose intervals of x, and find their masses and numbers at their ends."""
        t, root = self._t, math.sqrt(2)
        x = np.arange(-8.5, 9 + orders * t, _FINE / max(t, 1.0))
        # Masses of X without and with Y^j / E Y^j, by the nearer tail.
        z = x - t * np.arange(orders + 1)[:, None]
        below, above = ndtr(z), ndtr(-z)
        inner = np.where(z[:, 1:] < 0, np.diff(below), -np.diff(above))
        self._mass = np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1)
        y = np.exp(np.minimum(t * x - t * t / 2, 600.0))
        # The integral over tau is that of a normal law from x - t to x, and its slope grows with x.
        near = erfcx(np.abs(x) / root)
        far = erfcx(np.abs(x - t) / root) * y
        inside = 2 * np.exp(np.minimum(x * x / 2, 600.0)) - near - far
        shape = np.where((x > 0) & (x < t), inside, np.abs(near - far))
        self._y, self._shape = y, math.sqrt(math.pi / 2) * shape
        self._slope = np.maximum(x * self._shape - (y - 1), 0.0) + 1e-12
        j = np.arange(orders + 1.0)
        self._scales = np.exp(j * (j - 1) * t * t / 2 - gammaln(j + 1))
        self._log_scales = gammaln(j + 1) - j * math.log(self._batches)

    def _bound(self, lam: float) -> tuple[Reals, Reals] | None:
        """Return angles and logarithms of their A; None if terms are large."""
        t, most = self._t, self._psi / self._t
        moved = np.minimum(lam * self._shape, most)
        # At the left and at the right end of each interval; it is constant beyond the last point.
        low, high = np.append(0.0, moved), np.append(moved, moved[-1])
        slope = np.where(low < most, lam * np.append(self._slope, 0.0), 0.0)
        grown = high**2 / 2 + np.log1p(slope**2) / 2
        if self._batches * (self._mass[0] @ np.expm1(grown)) > _MOST_GROWN:
            return None
        angles = _ANGLES * float(self._mass[1] @ np.sin(t * low))
        sines = np.sin(t * low - angles[:, None])
        least, largest = np.append(0.0, self._y), np.append(self._y, self._y[-1])
        imaginary = np.where(sines > 0, least, largest) * sines
        less = -lam * np.multiply.outer(_FACTORS, imaginary) + grown
        if self._a >= 0:
            parts, whole = self._log_moments(less), self._log_moments(grown)
        else:
            turned = self._a * math.log(math.cos(self._psi / 2))
            parts = turned + self._log_f_twice / 2 + self._log_powers(2 * less) / 2
            whole = turned + self._log_f + self._log_powers(np.maximum.accumulate(grown))
        return np.append(0.0, angles), np.append(parts.min(axis=0), whole) - self._log_f

    def _log_powers(self, terms: Reals) -> Reals:
        """Return bounds on log E prod of exp(terms), terms on the last axis."""
        found = self._batches * np.log1p(np.expm1(terms) @ self._mass[0])
        return np.asarray(found + _ROUNDING * (1 + np.abs(found)))

    def _log_moments(self, terms: Reals) -> Reals:
        """Return bounds on log E L^a prod of exp(terms), terms on the last axis."""
        less = np.expm1(terms)
        log_first = np.log1p(less @ self._mass[0])
        c = self._scales * ((less + 1) @ self._mass.T) / np.exp(log_first)[..., None]
        c[..., 0] = 1.0
        found = np.log(coefficients(np.moveaxis(c, -1, 0), self._batches)[self._whole :])
        found += self._log_scales[self._whole :].reshape(2, *[1] * log_first.ndim)
        below, above = found + self._batches * log_first
        mixed = (1 - self._share) * below + self._share * above
        return np.asarray(mixed + _ROUNDING * (1 + np.abs(mixed)))
