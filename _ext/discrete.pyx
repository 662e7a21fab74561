"""Discrete Gaussian numbers from uniform bits: a search in a table of cumulative probabilities.

The table holds P(X <= x) in units of 2^-128. A search looks up where it begins, and makes one
comparison if the table is a discrete Gaussian's (``search.h``): neither the instructions nor their
number depend on the number that is drawn, but for one search in 2^45 that needs the lower half of
the table or more comparisons. What it reads lies within 128 KiB, which stay in a processor's second
cache.

A wide law is a sum of terms, whole numbers times numbers from the table: see
:mod:`dpcal.optim.boundary.discrete` for which sums are near the law, and how near.

>>> import numpy as np
>>> half = np.array([1 << 63], dtype=np.uint64)         # P(X <= 0) = 1/2: a fair coin
>>> coins = np.zeros(8, dtype=np.int64)
>>> table = DiscreteTable(1.0, half, np.zeros(1, dtype=np.uint64))
>>> table.draw((3,), coins, np.random.default_rng(0))
>>> sorted(set(coins.tolist()))
[0, 3]
>>> factors_of(1e6, 312.0)
(1, 117, 3203)
"""

from libc.math cimport ceil, sqrt
from libc.stdint cimport int64_t, uint16_t, uint64_t
from numpy.random cimport bitgen_t

import numpy as np

from dpcal._ext.keyed cimport bits_of, words_of

cdef extern from "search.h":
    enum:
        RANGES "DPCAL_RANGES"
    int64_t guide_of "dpcal_guide"(
        const uint64_t* high, int64_t m, uint16_t* guide
    ) noexcept nogil
    bint search "DPCAL_WIDEST(dpcal_search)"(
        const uint64_t* words,
        int64_t count,
        const uint64_t* high,
        const uint16_t* guide,
        int64_t most,
        int64_t* places,
    ) noexcept nogil

cdef enum:
    CHUNK = 256  # numbers that are drawn at once, and words that a search takes at most
    GROUP = 32  # words are taken in groups, the last one of numbers that are drawn at once as well
    TRIED = 64  # tries for the factor of the last term but one

# Standard deviation from which factors make a sum that is hardly wider than it must be.
LEAST = 8192.0

# Relative margin above the rounding errors of a sum's standard deviation.
cdef double ROOM = 1 + 4e-15


cdef double cover(double sigma) noexcept nogil:
    return sqrt(sigma * sigma + 4.0) * (1 + 1e-15)


def cover_of(double sigma):
    """Return the standard deviation of discrete noise that reveals no more than a Gaussian's."""
    return cover(sigma)


cdef int64_t largest_factor(double squares, double narrow) noexcept nogil:
    """Return the largest factor of a term that is added to a sum of so many squares of factors."""
    return <int64_t>(0.9 * sqrt(squares * (narrow * narrow / 4 - 1)))


cdef int choose(double standard_deviation, double narrow, int64_t* factors) noexcept nogil:
    """Write factors whose squares add up to the squared quotient, or little more; return how many.

    All terms but the last have the largest factors, and the last one is rounded up; among a few
    smaller factors of the last term but one, that is taken by which the sum exceeds least.
    """
    cdef double wanted = standard_deviation / narrow
    cdef double squares = 1, before, tried, best
    cdef int64_t last, factor, chosen
    cdef int terms = 1
    wanted *= wanted * ROOM
    factors[0] = 1
    while terms < TERMS:
        factor = largest_factor(squares, narrow)
        last = <int64_t>ceil(sqrt(wanted - squares)) if wanted > squares else 1
        if last <= factor:
            if terms > 1:
                break
            # Three terms come nearer than two.
            factor = min(factor, <int64_t>sqrt(wanted / 2))
        factors[terms] = factor
        squares += <double>factor * factor
        terms += 1
    factors[terms] = last
    if terms < 2:
        return terms + 1
    best, chosen = -1, factors[terms - 1]
    before = squares - <double>chosen * chosen
    for factor in range(chosen, max(chosen - TRIED, 0), -1):
        squares = before + <double>factor * factor
        last = <int64_t>ceil(sqrt(wanted - squares)) if wanted > squares else 1
        tried = squares + <double>last * last
        if last <= largest_factor(squares, narrow) and tried >= wanted and not 0 <= best <= tried:
            best = tried
            factors[terms - 1], factors[terms] = factor, last
    return terms + 1


cdef int factors_covering(double sigma, DiscreteTable table, int64_t* factors) noexcept nogil:
    """Write the factors of noise that covers a Gaussian, wider than ``LEAST``; return how many."""
    return choose(cover(sigma), table.standard_deviation, factors)


def factors_of(double standard_deviation, double narrow):
    """Return 1, k_1, ..., k_m for a sum of terms that is at least as wide.

    Parameters
    ----------
    standard_deviation
        Of the sum, larger than ``narrow``.
    narrow
        Standard deviation of a number from the table, at least 3.
    """
    cdef int64_t[TERMS + 1] factors
    cdef int terms = choose(standard_deviation, narrow, factors)
    return tuple([factors[term] for term in range(terms)])


cdef class DiscreteTable:
    """A table of a narrow law.

    Parameters
    ----------
    standard_deviation
        Of the law.
    high, low
        Upper and lower words of P(X <= x) in units of 2^-128, for consecutive whole numbers x
        around zero; in increasing order. Their number is a power of two less one, below 2^16.
    """

    def __init__(self, double standard_deviation, high, low):
        self.standard_deviation, self.high, self.low = standard_deviation, high, low
        cdef Py_ssize_t m = self.high.shape[0]
        if self.low.shape[0] != m or not 0 < m < 1 << 16 or m & (m + 1):
            raise ValueError(
                "high and low must hold the same number of words, a power of two less one below "
                f"2^16, got {m} and {self.low.shape[0]}."
            )
        self.guide = np.empty(RANGES, dtype=np.uint16)
        self.most = guide_of(&self.high[0], m, &self.guide[0])

    def words(self):
        """Return the upper and the lower words."""
        return np.asarray(self.high), np.asarray(self.low)

    def draw(self, factors, int64_t[::1] out not None, generator):
        """Add a sum of terms to each element of ``out``, shape (d,), in place.

        Parameters
        ----------
        factors
            Of the terms, at most 17.
        generator
            Whose words are read.
        """
        cdef int64_t[TERMS + 1] kept
        cdef int terms = len(factors), term
        if terms > TERMS:
            raise ValueError(f"factors must be at most {TERMS}, got {terms}.")
        for term in range(terms):
            kept[term] = factors[term]
        cdef bitgen_t* bits = bits_of(generator)
        if out.shape[0]:
            with generator.bit_generator.lock, nogil:
                self.add(bits, kept, terms, &out[0], out.shape[0])

    cdef void add(
        self,
        bitgen_t* bits,
        const int64_t* factors,
        int terms,
        int64_t* out,
        Py_ssize_t size,
    ) noexcept nogil:
        cdef uint64_t[(TERMS + 1) * CHUNK] words
        cdef int64_t[CHUNK] places
        cdef const uint64_t* high = &self.high[0]
        cdef int64_t least = -(self.high.shape[0] // 2)
        cdef Py_ssize_t count
        cdef int term
        while size > 0:
            count = min(size, <Py_ssize_t>CHUNK)
            words_of(bits, words, count * terms)
            for term in range(terms):
                if search(&words[term * count], count, high, &self.guide[0], self.most, places):
                    self.settle(bits, &words[term * count], places, count)
                accumulate(factors[term], least, places, out, count)
            if high[0] == 0:
                # A group is filled up with words 0, which are ties, and seeds keep their numbers.
                for _ in range(-count * terms & (GROUP - 1)):
                    bits.next_uint64(bits.state)
            out += count
            size -= count

    cdef void settle(
        self, bitgen_t* bits, const uint64_t* words, int64_t* places, Py_ssize_t count
    ) noexcept nogil:
        """Correct the places of words that were not compared with all entries near them.

        A word that equals upper words is settled by the 64 bits that come after.
        """
        cdef uint64_t rest
        cdef int64_t m = self.high.shape[0]
        cdef Py_ssize_t i
        for i in range(count):
            while places[i] < m and self.high[places[i]] <= words[i]:
                places[i] += 1
            if places[i] == 0 or self.high[places[i] - 1] != words[i]:
                continue
            rest = bits.next_uint64(bits.state)
            while (
                places[i] > 0
                and self.high[places[i] - 1] == words[i]
                and rest < self.low[places[i] - 1]
            ):
                places[i] -= 1


cdef inline void accumulate(
    int64_t factor, int64_t least, const int64_t* places, int64_t* out, Py_ssize_t size
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(size):
        out[i] += factor * (least + places[i])
