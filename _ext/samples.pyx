"""Batches of records: Poisson samples, and batches of a fixed size as numpy's methods draw them.

An answer in compiled code draws the same rows from the same stream, without an array for each.
Poisson samples are made from a table and coins of 128 bits (``gaps.h``), without floating point:
they are exact where the words of the generator are uniform.

>>> import numpy as np
>>> drawn(100, 1.0, 3, np.random.default_rng(0)).tolist()
[83, 63, 51]
>>> np.random.default_rng(0).choice(100, 3, replace=False, shuffle=False).tolist()
[83, 63, 51]
"""

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_bounded_uint64

from dpcal._ext.keyed cimport bits_of

from functools import lru_cache

import numpy as np

cnp.import_array()

cdef extern from "gaps.h":
    enum:
        ENTRIES "DPCAL_ENTRIES"
    void prepare "dpcal_gaps_prepare"(gap_table* gaps, double sampling_probability) noexcept nogil
    wide kept "dpcal_gaps_kept"(const gap_table* gaps, uint64_t L) noexcept nogil

cdef enum:
    BLOCK = 1024


cdef class Gaps:
    """The table of the gaps before members of a Poisson sample, at a probability in (0, 1)."""

    def __init__(self, double sampling_probability):
        prepare(&self.table, sampling_probability)


gaps_of = lru_cache(maxsize=8)(Gaps)


def law_of_gaps(sampling_probability):
    """Return b, P(H <= k) for each entry k, and r^(2^i) for i < b: see ``gaps.h``.

    The sampling probability is in (0, 1); probabilities are in units of 2^-128.
    """
    cdef Gaps gaps = gaps_of(sampling_probability)
    table = [(int(gaps.table.high[k]) << 64) + int(gaps.table.low[k]) for k in range(ENTRIES)]
    digits = gaps.table.digits
    return digits, table, [whole(gaps.table.powers[i]) for i in range(digits)]


cdef whole(wide share):
    return (int(<uint64_t>(share >> 64)) << 64) + int(<uint64_t>share)


cdef inline uint64_t word(bitgen_t* bits) noexcept nogil:
    return bits.next_uint64(bits.state)


cdef inline int64_t gap_of(bitgen_t* bits, const gap_table* gaps, int64_t most) noexcept nogil:
    """Draw a gap; any number from ``most`` on stands for all that are."""
    cdef int64_t gap = 0
    cdef int b = gaps.digits, k
    cdef uint64_t first, rest, last
    while True:
        first = word(bits)
        k = gaps.guide[first >> 54]
        while k < ENTRIES and gaps.high[k] < first:
            k += 1
        if k < ENTRIES and gaps.high[k] == first:
            rest = word(bits)
            while k < ENTRIES and gaps.high[k] == first and gaps.low[k] <= rest:
                k += 1
        gap += <int64_t>k << b
        # Beyond the table the law is the same again.
        if k < ENTRIES or gap >= most:
            break
    while b:
        first = word(bits)
        last = first & ((<uint64_t>1 << b) - 1)
        first >>= b
        if first < gaps.sure or keeps(bits, gaps, last, first):
            return gap + <int64_t>last
    return gap


cdef bint keeps(
    bitgen_t* bits, const gap_table* gaps, uint64_t last, uint64_t first
) noexcept nogil:
    """Toss the coin that keeps L, of which the first 64 - b bits are there."""
    cdef int b = gaps.digits
    cdef wide share = kept(gaps, last)
    cdef uint64_t upper = <uint64_t>(share >> 64)
    if first != upper >> b:
        return first < upper >> b
    # The bits that follow: b of the upper word, and the lower word.
    upper = upper << (64 - b)
    first = word(bits) >> (64 - b) << (64 - b)
    if first != upper:
        return first < upper
    return word(bits) < <uint64_t>share


cdef class Sample:
    """The batches of one query, in turn, each in blocks of at most ``BLOCK`` rows.

    Parameters
    ----------
    n
        Number of records.
    sampling_probability
        In (0, 1]; of Poisson samples.
    batch_size
        Rows of a batch of fixed size, in [1, n]; 0 for Poisson samples.
    generator
        What batches are drawn with; None where they are all records, or given.

    Arguments out of range raise a ValueError.
    """

    def __init__(
        self, Py_ssize_t n, double sampling_probability, Py_ssize_t batch_size, generator
    ):
        if not 0 < sampling_probability <= 1 or not 0 <= batch_size <= n:
            raise ValueError(
                "sampling_probability must be a number in (0, 1] and batch_size in [0, n], got "
                f"{sampling_probability!r} and {batch_size}."
            )
        self.n, self.size, self.generator = n, batch_size, generator
        self.gaps = None if sampling_probability == 1 else gaps_of(sampling_probability)
        self.drawn = np.empty(batch_size or BLOCK, dtype=np.intp)
        if generator is None:
            return
        self.bits = bits_of(generator)
        # Where numpy.random.Generator.choice shuffles the tail of all row numbers, and where it
        # draws numbers one by one (Floyd's algorithm).
        self.shuffled = n > 10_000 and batch_size > n // 20
        if self.shuffled:
            self.order = np.arange(n, dtype=np.intp)
            self.swaps = np.empty(batch_size, dtype=np.intp)
        elif batch_size:
            self.taken = np.zeros(n, dtype=np.uint8)

    cdef void give(self, const Py_ssize_t* rows, Py_ssize_t count) noexcept nogil:
        """Let the next batch be these rows, which must live as long."""
        self.given, self.rows, self.left = True, rows, count

    cdef void begin(self) noexcept nogil:
        """Begin the next batch."""
        self.count = self.position = 0
        if self.given:
            self.given = False
        elif self.size:
            if self.shuffled:
                self.shuffle_tail()
            else:
                self.draw()
            self.rows, self.left = &self.drawn[0], self.size
        else:
            self.left = -1

    cdef Py_ssize_t block(self) noexcept nogil:
        """Let ``rows`` be the next ones; return how many, none when the batch is complete."""
        if self.left >= 0:
            self.rows += self.count
            self.count = min(self.left, <Py_ssize_t>BLOCK)
            self.left -= self.count
        elif self.position < self.n:
            self.rows = &self.drawn[0]
            self.count = self.members()
        else:
            self.count = 0
        return self.count

    cdef Py_ssize_t members(self) noexcept nogil:
        """Write the next rows of a Poisson sample, at most ``BLOCK``; return how many."""
        cdef Py_ssize_t count = 0
        cdef int64_t at = self.position, gap = 0
        while count < BLOCK and at < self.n:
            if self.gaps is not None:
                gap = gap_of(self.bits, &self.gaps.table, self.n - at)
            if gap >= self.n - at:
                at = self.n
                break
            at += gap
            self.drawn[count] = at
            count += 1
            at += 1
        self.position = at
        return count

    cdef void draw(self) noexcept nogil:
        cdef Py_ssize_t i, row
        cdef Py_ssize_t first = self.n - self.size
        for i in range(self.size):
            row = <Py_ssize_t>random_bounded_uint64(self.bits, 0, <uint64_t>(first + i), 0, 0)
            if self.taken[row]:
                row = first + i
            self.taken[row] = 1
            self.drawn[i] = row
        for i in range(self.size):
            self.taken[self.drawn[i]] = 0

    cdef void shuffle_tail(self) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef Py_ssize_t first = self.n - self.size
        for i in range(self.n - 1, first - 1, -1):
            j = <Py_ssize_t>random_bounded_uint64(self.bits, 0, <uint64_t>i, 0, 0)
            self.swaps[i - first] = j
            self.order[i], self.order[j] = self.order[j], self.order[i]
        for i in range(self.size):
            self.drawn[i] = self.order[first + i]
        for i in range(first, self.n):
            j = self.swaps[i - first]
            self.order[i], self.order[j] = self.order[j], self.order[i]


def drawn(Py_ssize_t n, double sampling_probability, Py_ssize_t batch_size, generator):
    """Return the rows of one batch, dtype ``intp``; those of a Poisson sample in increasing order.

    The time is proportional to the size of the batch, but for a shuffled tail.

    Parameters
    ----------
    n, sampling_probability, batch_size
        As for :class:`Sample`.
    generator
        Read like ``generator.choice(n, batch_size, replace=False, shuffle=False)``, or one to three
        words a gap as a rule; not at all for the probability 1.
    """
    cdef Sample sample
    bits_of(generator)  # refuses another object
    sample = Sample(n, sampling_probability, batch_size, generator)
    parts = []
    with generator.bit_generator.lock:
        sample.begin()
        while sample.block():
            parts.append(taken(sample.rows, sample.count))
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.intp), *parts])


cdef object taken(const Py_ssize_t* rows, Py_ssize_t count):
    """Return a copy of row numbers."""
    cdef cnp.npy_intp length = count
    cdef object made = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INTP)
    memcpy(cnp.PyArray_DATA(<cnp.ndarray>made), rows, count * sizeof(Py_ssize_t))
    return made
