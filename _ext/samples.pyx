"""Fresh samples of the records for compiled loops, drawn as numpy's own methods would draw them.

A loop that takes many answers at once draws the same rows from the same stream as
:class:`dpcal.optim.boundary.batches.Batches` does for single answers, without an array for each:

>>> import numpy as np
>>> drawn(100, 1.0, 3, np.random.default_rng(0)).tolist()
[83, 63, 51]
>>> np.random.default_rng(0).choice(100, 3, replace=False, shuffle=False).tolist()
[83, 63, 51]
"""

from libc.math cimport fmin, isfinite, sqrt
from libc.stdint cimport uint64_t
from numpy.random.c_distributions cimport random_bounded_uint64

from dpcal._ext.gradients cimport Batch, ClippedSum
from dpcal._ext.noise cimport bits_of, next_rows
from dpcal._ext.sums cimport Sums

import numpy as np

cdef enum:
    BLOCK = 1024

# Below this a bound is taken for zero: noise in proportion to it could itself round to zero.
cdef double NEGLIGIBLE = 1e-290


cdef class Sample:
    """Fresh samples of the records, drawn from the stream as numpy's own methods would draw them.

    A sample comes in blocks: Poisson samples of at most ``BLOCK`` rows, batches of a fixed size as
    a whole. The generator that ``bits`` are of must outlive the sample.

    Parameters
    ----------
    n
        Number of records.
    sampling_probability
        In (0, 1]; of Poisson samples.
    batch_size
        Rows of a batch of fixed size, in [1, n]; 0 for Poisson samples.
    """

    def __init__(self, Py_ssize_t n, double sampling_probability, Py_ssize_t batch_size):
        self.n, self.size = n, batch_size
        self.sampling_probability = sampling_probability
        self.rows = np.empty(batch_size or BLOCK, dtype=np.intp)
        # Where numpy.random.Generator.choice shuffles the tail of all row numbers, and where it
        # draws numbers one by one (Floyd's algorithm).
        self.shuffled = n > 10_000 and batch_size > n // 20
        if self.shuffled:
            self.order = np.arange(n, dtype=np.intp)
            self.swaps = np.empty(batch_size, dtype=np.intp)
        elif batch_size:
            self.taken = np.zeros(n, dtype=np.uint8)

    cdef void begin(self) noexcept nogil:
        self.position = 0

    cdef Py_ssize_t block(self) noexcept nogil:
        """Fill ``rows``; return how many there are, none when the sample is complete."""
        cdef Py_ssize_t count
        if not self.size:
            if self.position >= self.n:
                return 0
            count = next_rows(
                self.bits,
                self.sampling_probability,
                self.n,
                &self.position,
                &self.rows[0],
                BLOCK,
            )
            if count < BLOCK:
                self.position = self.n
            return count
        if self.position:
            return 0
        self.position = 1
        if self.shuffled:
            self.shuffle_tail()
        else:
            self.draw()
        return self.size

    cdef void draw(self) noexcept nogil:
        cdef Py_ssize_t i, row
        cdef Py_ssize_t first = self.n - self.size
        for i in range(self.size):
            row = <Py_ssize_t>random_bounded_uint64(self.bits, 0, <uint64_t>(first + i), 0, 0)
            if self.taken[row]:
                row = first + i
            self.taken[row] = 1
            self.rows[i] = row
        for i in range(self.size):
            self.taken[self.rows[i]] = 0

    cdef void shuffle_tail(self) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef Py_ssize_t first = self.n - self.size
        for i in range(self.n - 1, first - 1, -1):
            j = <Py_ssize_t>random_bounded_uint64(self.bits, 0, <uint64_t>i, 0, 0)
            self.swaps[i - first] = j
            self.order[i], self.order[j] = self.order[j], self.order[i]
        for i in range(self.size):
            self.rows[i] = self.order[first + i]
        for i in range(first, self.n):
            j = self.swaps[i - first]
            self.order[i], self.order[j] = self.order[j], self.order[i]


cdef class NoisySums:
    """Noisy sums of clipped gradients, or of their differences, over fresh samples.

    Parameters
    ----------
    kernel
        Clipped sums of the records.
    described
        A mapping with ``sampling_probability`` in (0, 1], ``batch_size`` (0 for Poisson samples),
        ``max_norm`` and ``expected_batch_size``; for differences also
        ``proportional`` (``max_norm`` is then per unit of distance) and ``cap``.
    sampling, sums
        A ``numpy.random.Generator``, and sums whose noise comes from another one.
    """

    def __init__(self, ClippedSum kernel not None, described, sampling, Sums sums not None):
        if sampling.bit_generator.lock is sums.lock:
            raise ValueError(
                "sampling and noise must be distinct generators, got the same one twice."
            )
        self.kernel = kernel
        self.sample = Sample(
            kernel.n, described["sampling_probability"], described["batch_size"]
        )
        self.sample.bits, self.sums = bits_of(sampling), sums
        self.max_norm = described["max_norm"]
        self.size = described["expected_batch_size"]
        self.proportional = described.get("proportional", False)
        self.cap = described.get("cap", self.max_norm)

    cdef double bound_between(self, const double* w, const double* v) noexcept nogil:
        """Return the bound on a record's difference; -1 if it or the distance overflows."""
        cdef Py_ssize_t j
        cdef double bound, squares = 0
        for j in range(self.kernel.dimension):
            squares += (w[j] - v[j]) * (w[j] - v[j])
        if not isfinite(squares):
            return -1.0
        if not self.proportional:
            return self.max_norm
        bound = fmin(self.max_norm * sqrt(squares), self.cap)
        return bound if isfinite(bound) else -1.0

    cdef void take(
        self, const double* w, const double* v, double bound, double[::1] total
    ) noexcept nogil:
        """Set ``total`` to the noisy sum over the next sample, where records are bounded so."""
        cdef Py_ssize_t count, d = self.kernel.dimension
        cdef double clip
        if bound < NEGLIGIBLE:
            total[:] = 0.0
        else:
            clip = self.sums.clip(bound, d)
            self.sums.begin(bound, &total[0], d)
        self.sample.begin()
        count = self.sample.block()
        while count:
            if bound >= NEGLIGIBLE:
                self.kernel.add(w, v, Batch(&self.sample.rows[0], count, clip), &total[0])
            count = self.sample.block()
        if bound >= NEGLIGIBLE:
            self.sums.finish(bound, &total[0], d)


def drawn(Py_ssize_t n, double sampling_probability, Py_ssize_t batch_size, generator):
    """Return the rows of one sample, as compiled loops draw it, dtype ``intp``.

    Parameters
    ----------
    n, sampling_probability, batch_size
        As for :class:`Sample`.
    generator
        Read like ``generator.choice(n, batch_size, replace=False, shuffle=False)``, or as
        :func:`dpcal._ext.noise.poisson_sample` reads it.
    """
    if not 0 < sampling_probability <= 1 or not 0 <= batch_size <= n:
        raise ValueError(
            "sampling_probability must be in (0, 1] and batch_size in [0, n], got "
            f"{sampling_probability!r} and {batch_size}."
        )
    cdef Sample sample = Sample(n, sampling_probability, batch_size)
    sample.bits = bits_of(generator)
    cdef Py_ssize_t count
    parts = [np.empty(0, dtype=np.intp)]
    with generator.bit_generator.lock:
        sample.begin()
        count = sample.block()
        while count:
            parts.append(np.array(sample.rows[:count]))
            count = sample.block()
    return np.concatenate(parts)
