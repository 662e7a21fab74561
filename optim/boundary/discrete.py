r"""Discrete Gaussian noise from cryptographic bits, by tables of whole numbers.

Floating-point Gaussians are not the Gaussians of the theorems: which numbers can come out depends
on the sum that they are added to (Mironov 2012; Jin, McMurtry, Rubinstein and Ohrimenko 2022).
Whole numbers have no such trace. :class:`DiscreteNormals` draws from the law

    P(x) proportional to exp(-x^2 / (2 S^2)),     x a whole number,

up to a total-variation distance that it states, with bits of AES-256 in counter mode.

**How.** A wide law is a sum of narrow ones, X = Y_0 + k_1 Y_1 + ... + k_m Y_m with independent Y_i
from one table of standard deviation s, and S^2 = s^2 (1 + k_1^2 + ... + k_m^2). Completing the
square,

    P(L + k Y = x) = c exp(-x^2 / (2 (l^2 + k^2 s^2))) sum_j exp(-(j - c_x)^2 / (2 t^2)),
    t^2 = l^2 s^2 / (l^2 + k^2 s^2),

for a partial sum L of standard deviation l, with a center c_x that depends on x. By Poisson
summation the last sum is t sqrt(2 pi) times 1 up to

    smoothing(t) = 2 sum_{j >= 1} exp(-2 pi^2 j^2 t^2),

whatever c_x is (Peikert 2010, "An efficient and parallel Gaussian sampler for lattices", Theorem
3.1, in one dimension). The factors k_i are so small that t >= 2, where smoothing(t) < 2^-112. All
wide laws come from one table. A law is wider than its argument by one part in 2,500 at most (one
part in 250 below 2^16).

**Its cost.** Let f be a vector of whole numbers. Draw y from N(f, (S^2 - r^2) I) and round each of
its coordinates at random, to x with probability proportional to exp(-(x - y_i)^2 / (2 r^2)). The
same two facts show that the result is f + X in law, up to a factor between (1 - e)^2 / (1 + e)^2
and its inverse for each coordinate, e = smoothing(r). Rounding is post-processing. So f + X is at
most as revealing as the Gaussian mechanism with standard deviation sqrt(S^2 - r^2): in any number
of dimensions, for any shift, after subsampling and under composition.
:meth:`DiscreteNormals.covering` takes r = 2, so that you account for discrete noise as for a
Gaussian's.

The same bits draw the discrete Laplace law, P(x) proportional to ``exp(-|x| / t)`` for whole x and
a whole scale t, without any error: every decision is made with whole numbers (Canonne, Kamath and
Steinke 2020, The discrete Gaussian for differential privacy, algorithms 1 and 2).

**Its cost.** The proofs of the sparse vector technique and of report noisy max use one property of
their noise: a shift by k changes a probability by at most a factor ``e^(k / t)`` (Dwork and Roth
2014, theorem 3.23 and claim 3.9; Lyu, Su and Li 2017). For whole scores that a record moves by at
most D steps, this law with t = b D has the property at every shift that can occur. Ties, which real
noise has with probability zero, go to a fixed candidate. So a candidate is still chosen exactly if
its noise is below a number that a record moves by at most 2 D. So both mechanisms cost as much as
with real noise of scale b.

A sum that a record moves by k whole numbers, plus this law with a whole t' >= t + 1, reveals no
more than the Laplace mechanism of scale t at the shift k. With y within 1/2 of the place y* where
the likelihood ratio is e^epsilon, its delta at epsilon is

    1 - e^((epsilon - k / t') / 2) cosh((y - y*) / t') / cosh(1 / (2 t'))
        <= 1 - e^((epsilon - k / t') / 2) (1 - 1 / (8 t'^2)),

and k / t - k / t' >= 1 / (t t') makes up for the last factor. Laplace laws are log-concave. So
shifts of several numbers, or by several records one after another, cost as much as one shift by
their sum.

>>> normals = DiscreteNormals.covering(1000.0, key=bytes(32))
>>> normals.standard_deviation >= math.hypot(1000.0, 2.0)
True
>>> normals.draw(5).tolist()
[-1241, -95, 280, -13, 1726]
>>> normals.log2_total_variation < -105
True
>>> bits = keyed_generator(bytes(32))
>>> [whole_laplace(1000, bits) for _ in range(4)]
[544, 178, 438, -1206]
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.discrete import LEAST as WIDE, DiscreteTable, cover_of, factors_of
from dpcal._internal import validate
from dpcal.optim.boundary.seeds import keyed_generator

Integers = NDArray[np.int64]

# Entries of the table of P(X <= x), a power of two less one: 64 KiB fit in a second cache.
TABLE = 8191
# Bits of a probability: 8,191 entries are off by at most 2^-115.
PRECISION = 128
_WORKING = 512
# Largest standard deviation of a table: a mass below 2^-123 is beyond its ends, 13.1 of them away.
WIDEST = 312.0
# Smallest t of a sum, in whole numbers, because smoothing(2) = 2^-112.9.
SMOOTH = 2.0
# |X| stays below 2^61, so that its sums with clipped records fit in 64 bits.
MOST = 2.0**56
# Narrowest law for which neighbors' laws overlap by more than the total-variation distance.
LEAST = 0.1
# Products with small numbers of trials stay below 2^63.
_WIDEST_LAPLACE = 1 << 52


class DiscreteNormals:
    """Draws whole numbers x with probability proportional to exp(-x^2 / (2 S^2)).

    Parameters
    ----------
    standard_deviation
        Lower bound on S, in [0.1, 2^56], or a ValueError is raised. S is larger by at most one part
        in 250, and mostly by less.
    key
        32 secret bytes for this object only, a generator that supplies the words, or None for bytes
        of the operating system.

    Attributes
    ----------
    standard_deviation
        S, rounded down.
    factors
        1, k_1, ..., k_m: the factors of the terms of a sum.
    log2_total_variation
        Base-2 logarithm of a bound on the total-variation distance between the law of one number
        and the discrete Gaussian. Distances add up over coordinates and draws.
    """

    def __init__(
        self, standard_deviation: float, key: bytes | np.random.Generator | None = None
    ) -> None:
        asked = validate.within(LEAST, MOST, standard_deviation=standard_deviation)
        if asked >= WIDE:
            self.factors = factors_of(asked, WIDEST)
            self._table, self._narrow = table_of(), WIDEST
            self.standard_deviation = WIDEST * _spread(self.factors) * (1 - 4e-16)
        elif asked > WIDEST:
            self.factors = _factors(asked)
            # Rounded up: the noise may be larger than the argument, never smaller.
            self._narrow = asked / _spread(self.factors) * (1 + 4e-16)
            self._table = table_of(self._narrow)
            self.standard_deviation = self._narrow * _spread(self.factors) * (1 - 4e-16)
        else:
            self.factors, self._narrow, self.standard_deviation = (1,), asked, asked
            self._table = table_of(asked)
        self._bits = key if isinstance(key, np.random.Generator) else keyed_generator(key)

    @classmethod
    def covering(
        cls, standard_deviation: float, key: bytes | np.random.Generator | None = None
    ) -> DiscreteNormals:
        """Return noise for whole numbers that reveals no more than a Gaussian's.

        The Gaussian, for which the privacy claim is made, has this standard deviation in (0, 2^55].
        A vector of whole numbers plus the noise is a post-processing of the vector plus independent
        Gaussians, up to the distance ``log2_total_variation`` for each coordinate.
        """
        sigma = validate.within(2.0**-20, MOST / 2, standard_deviation=standard_deviation)
        return cls(cover_of(sigma), key)

    @property
    def log2_total_variation(self) -> float:
        """Base-2 logarithm of a bound on the distance of one number's law from the exact one."""
        terms = len(self.factors)
        # Each table has an error of half a unit an entry, and the mass beyond both of its ends.
        table = (TABLE + 1) * 2.0**-PRECISION + math.exp(-0.5 * (TABLE // 2 / self._narrow) ** 2)
        # The law of a sum, and rounding in ``covering``, have factors in (1 +- e) / (1 +- e).
        sums = math.fsum(4 * smoothing(t) for t in (*self._widths(), SMOOTH))
        return math.log2(terms * table + sums)

    def _widths(self) -> list[float]:
        """Return the t of each sum of a partial sum and its next term."""
        widths, partial = [], self._narrow
        for factor in self.factors[1:]:
            step = factor * self._narrow
            widths.append(partial * self._narrow / math.hypot(partial, step))
            partial = math.hypot(partial, step)
        return widths

    def draw(self, size: int) -> Integers:
        """Return ``size`` independent numbers, shape (size,), dtype int64."""
        out = np.zeros(size, dtype=np.int64)
        self.add(out)
        return out

    def add(self, out: Integers) -> None:
        """Add a number to each element of ``out``, shape (d,), in place."""
        self._table.draw(self.factors, out, self._bits)


def smoothing(t: float) -> float:
    """Bound the relative distance of a sum of exp(-(j - c)^2 / (2 t^2)) over whole j from its mean.

    The mean is over c; t >= 0.5 is the standard deviation. The bound is 2 sum_{j >= 1} exp(-2 pi^2
    j^2 t^2), by Poisson summation.
    """
    first = math.exp(-2 * (math.pi * t) ** 2)
    return 2 * first / (1 - first) * (1 + 1e-12)


def _spread(factors: tuple[int, ...]) -> float:
    """Return a sum's standard deviation in units of its table's."""
    return math.sqrt(math.fsum(k * k for k in factors))


def _factors(standard_deviation: float) -> tuple[int, int]:
    """Return 1 and the least k for which two terms of a table are wide enough, in (WIDEST, WIDE).

    A factor of at most WIDE / WIDEST < 27 leaves t above SMOOTH, which it would be up to 150.
    """
    return 1, math.ceil(math.sqrt((standard_deviation / WIDEST) ** 2 - 1) * (1 + 4e-16))


@lru_cache(maxsize=16)
def table_of(standard_deviation: float = WIDEST) -> DiscreteTable:
    """Return a table of P(X <= x), rounded down, for x from -4095 to 4095.

    All wide laws are made of the widest one.

    Weights exp(-x^2 rate) are products of exp(-rate), in fixed point.
    """
    numerator, denominator = standard_deviation.as_integer_ratio()
    step = _exponential(denominator**2, 2 * numerator**2)
    ratio, twice = step, step * step >> _WORKING
    weights = [1 << _WORKING]
    for _ in range(TABLE // 2 + 1):
        weights.append(weights[-1] * ratio >> _WORKING)
        ratio = ratio * twice >> _WORKING
    total = 2 * sum(weights) - weights[0]
    below, shares = weights[-1], []
    for x in range(-(TABLE // 2), TABLE // 2 + 1):
        below += weights[abs(x)]
        shares.append(min((below << PRECISION) // total, 2**PRECISION - 1))
    high = np.array([share >> 64 for share in shares], dtype=np.uint64)
    low = np.array([share & (2**64 - 1) for share in shares], dtype=np.uint64)
    return DiscreteTable(standard_deviation, high, low)


def _exponential(numerator: int, denominator: int) -> int:
    """Return exp(-numerator / denominator) in units of 2^-512, within 2^-480."""
    halved = max(0, (numerator // denominator + 1).bit_length())
    x = (numerator << _WORKING) // (denominator << halved)
    term = total = 1 << _WORKING
    for k in range(1, 200):
        term = -(term * x >> _WORKING) // k
        total += term
    for _ in range(halved):
        total = total * total >> _WORKING
    return total


def whole_laplace(scale: int, bits: np.random.Generator) -> int:
    """Return x with probability proportional to ``exp(-|x| / scale)``, for a scale from 1 to 2^52.

    Words of the generator must be uniform; use AES in counter mode where privacy matters.
    """
    if not 1 <= scale <= _WIDEST_LAPLACE:
        raise ValueError(f"scale must be a whole number from 1 to 2^52, got {scale!r}.")
    while True:
        rest = int(bits.integers(scale))
        if not _survives(rest, scale, bits):
            continue
        size = rest
        while _survives(1, 1, bits):
            size += scale
        negative = bool(bits.integers(2))
        if size or not negative:
            return -size if negative else size


def _survives(numerator: int, denominator: int, bits: np.random.Generator) -> bool:
    """Return True with probability exp(-numerator / denominator), in [1 / e, 1]."""
    trials = 1
    while int(bits.integers(denominator * trials)) < numerator:
        trials += 1
    return trials % 2 == 1
