"""Batches of records, for compiled answers and others, drawn as numpy's own methods would draw them.

An answer in compiled code draws the same rows from the same stream, without an array for each:

>>> import numpy as np
>>> drawn(100, 1.0, 3, np.random.default_rng(0)).tolist()
[83, 63, 51]
>>> np.random.default_rng(0).choice(100, 3, replace=False, shuffle=False).tolist()
[83, 63, 51]
"""

cimport numpy as cnp
from libc.math cimport INFINITY, isinf, log1p
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_bounded_uint64, random_standard_exponential

from dpcal._ext.keyed cimport bits_of, is_keyed, keyed_rows

import numpy as np

cnp.import_array()

cdef enum:
    BLOCK = 1024


cdef Py_ssize_t next_rows(
    bitgen_t* bits,
    double sampling_probability,
    Py_ssize_t n,
    Py_ssize_t* position,
    Py_ssize_t* rows,
    Py_ssize_t capacity,
) noexcept nogil:
    """Write the next sampled rows at or after ``position``, at most ``capacity``; return how many.

    With E standard exponential and rate = -log(1 - q), P(floor(E / rate) >= k) = exp(-k rate) =
    (1 - q)^k: the gap before the next sampled record. The gap is compared as a double before it
    becomes an integer, so that none is too large. Cryptographic bits give exact gaps instead. The
    sample is complete when fewer than ``capacity`` rows come back.
    """
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t at = position[0]
    cdef double gap, rate = INFINITY
    if sampling_probability < 1:
        if is_keyed(bits):
            return keyed_rows(bits, sampling_probability, n, position, rows, capacity)
        rate = -log1p(-sampling_probability)
    while count < capacity and at < n:
        if not isinf(rate):
            gap = random_standard_exponential(bits) / rate
            if gap >= n - at:
                at = n
                break
            at += <Py_ssize_t>gap
        rows[count] = at
        count += 1
        at += 1
    position[0] = at
    return count


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
    """

    def __init__(
        self, Py_ssize_t n, double sampling_probability, Py_ssize_t batch_size, generator
    ):
        self.n, self.size, self.generator = n, batch_size, generator
        self.sampling_probability = sampling_probability
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
            self.count = next_rows(
                self.bits,
                self.sampling_probability,
                self.n,
                &self.position,
                &self.drawn[0],
                BLOCK,
            )
            if self.count < BLOCK:
                self.position = self.n
        else:
            self.count = 0
        return self.count

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

    The time is proportional to the size of the batch, but for a shuffled tail. A Poisson sample has
    each record independently, with a probability that is right to an absolute error below 2^-50,
    the granularity of the exponential numbers that gaps come from.

    Parameters
    ----------
    n, sampling_probability, batch_size
        As for :class:`Sample`.
    generator
        Read like ``generator.choice(n, batch_size, replace=False, shuffle=False)``, or like
        ``generator.standard_exponential()``, once per gap; not at all for the probability 1.
    """
    if not 0 < sampling_probability <= 1 or not 0 <= batch_size <= n:
        raise ValueError(
            "sampling_probability must be a number in (0, 1] and batch_size in [0, n], got "
            f"{sampling_probability!r} and {batch_size}."
        )
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
