"""One answer of an oracle, in compiled code: batch, sum, noise, public divisor, regulariser.

A :class:`Slot` is one query of an open oracle. What an oracle does for an answer once it is
admitted takes a dozen small arrays in numpy; here it takes one, and in a loop none. The random
numbers, and the bits of the answer, are the same. Where a gradient follows a norm at the same
parameters, on all records and with the same bound, the sum behind the norm is used again.

Signals are heard within 50 ms: an answer that Ctrl-C breaks off is not given.

>>> import numpy as np
>>> from dpcal._ext.gradients import ClippedSum
>>> from dpcal._ext.losses import SquaredLoss
>>> from dpcal._ext.sums import Sums, grid_step
>>> from dpcal.optim.boundary.discrete import DiscreteNormals, table_of
>>> from dpcal.optim.boundary.seeds import keyed_generator
>>> kernel = ClippedSum(SquaredLoss(), np.array([[3.0, 4.0]]), np.array([1.0]),
...                           intercept=False)
>>> sums = Sums(keyed_generator(bytes(32)), 2.0, 2, table_of())
>>> slot = Slot(Records(kernel, np.array([0.1, 0.0])), sums, sampling=None,
...             sampling_probability=1.0, batch_size=0, max_norm=1.0, size=2.0)
>>> w = np.array([1.0, 0.0])
>>> answer = slot.answer(w, rows=np.array([0]))
>>> drawn = DiscreteNormals.covering(2.0 / grid_step(1.0), bytes(32)).draw(2) * grid_step(1.0)
>>> bool(np.allclose(answer, (kernel(w, max_norm=1.0) + drawn) / 2.0 + [0.1, 0.0], atol=1e-5))
True
"""

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fmin, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from dpcal._ext.gradients cimport Batch, ClippedSum
from dpcal._ext.samples cimport Sample
from dpcal._ext.sums cimport Sums

from contextlib import nullcontext

import numpy as np

from dpcal._ext.gradients import aligned_zeros

cnp.import_array()

cdef enum:
    SPELL = 1 << 22  # numbers read between two checks for signals, some 5 ms
    ANSWER = 1024  # numbers that take as long as an answer without a record
    NUMBER = 32  # numbers that take as long as a number of noise

# A smaller bound counts as zero: noise in proportion to it could itself round to zero.
cdef double NEGLIGIBLE = 1e-290


cdef inline const void* plain_of(object array, Py_ssize_t size, int kind) except? NULL:
    """Return the numbers of a vector of this many in one block; NULL for anything else."""
    if not cnp.PyArray_CheckExact(array):
        return NULL
    cdef cnp.ndarray vector = <cnp.ndarray>array
    if (
        cnp.PyArray_TYPE(vector) != kind
        or cnp.PyArray_NDIM(vector) != 1
        or cnp.PyArray_DIM(vector, 0) != size
        or not cnp.PyArray_ISCARRAY_RO(vector)
    ):
        return NULL
    return cnp.PyArray_DATA(vector)


cdef inline const double* plain(object array, Py_ssize_t size) except? NULL:
    return <const double*>plain_of(array, size, cnp.NPY_DOUBLE)


cdef inline object fresh(Py_ssize_t size):
    cdef cnp.npy_intp length = size
    return cnp.PyArray_SimpleNew(1, &length, cnp.NPY_DOUBLE)


cdef inline bint finite(const double* x, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(size):
        if not isfinite(x[j]):
            return False
    return True


def distance(const double[::1] w not None, const double[::1] v not None):
    """Return the distance of two vectors, its squares summed from the first to the last.

    Parameters
    ----------
    w, v
        Shape (d,).
    """
    cdef double squares = 0
    cdef Py_ssize_t j
    if w.shape[0] != v.shape[0]:
        raise ValueError(f"w and v must have one shape, got {w.shape[0]} and {v.shape[0]} numbers.")
    for j in range(w.shape[0]):
        squares += (w[j] - v[j]) * (w[j] - v[j])
    return sqrt(squares)


def norm(const double[::1] w not None):
    """Return the norm of a vector, its squares summed from the first to the last.

    Parameters
    ----------
    w
        Shape (d,).
    """
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(w.shape[0]):
        squares += w[j] * w[j]
    return sqrt(squares)


def copied(w, Py_ssize_t dimension):
    """Return a copy of a vector of finite doubles, or None where it is anything else.

    Parameters
    ----------
    w
        Anything.
    dimension
        How many numbers it must hold.
    """
    cdef const double* numbers = plain(w, dimension)
    if numbers is NULL or not finite(numbers, dimension):
        return None
    out = fresh(dimension)
    memcpy(cnp.PyArray_DATA(<cnp.ndarray>out), numbers, dimension * sizeof(double))
    return out


def is_finite(w):
    """Return whether the squared norm of a vector of doubles in one block is known to be finite.

    Parameters
    ----------
    w
        An array.
    """
    cdef const double* numbers
    cdef double total = 0
    cdef Py_ssize_t j, size = len(w)
    numbers = plain(w, size)
    if numbers is NULL:
        return False
    for j in range(size):
        total += numbers[j] * numbers[j]
    return isfinite(total)


@cython.final
cdef class Records:
    """The records of one oracle, with room for a sum over them.

    Parameters
    ----------
    kernel
        Clipped gradient sums of the records.
    strengths
        Of the regulariser in each parameter, shape (dimension,).
    """

    def __init__(self, ClippedSum kernel not None, strengths):
        if strengths.shape != (kernel.dimension,):
            raise ValueError(
                f"strengths must have shape ({kernel.dimension},), got {strengths.shape}."
            )
        self.kernel = kernel
        self.strengths = np.array(strengths, dtype=np.float64)
        self.w, self.v, self.total = self.vectors(3)
        self.summed = -1

    cdef vectors(self, Py_ssize_t count):
        """Return vectors of zeros, those beyond the dimension to stay."""
        cdef Py_ssize_t size = (max(self.kernel.stride, self.kernel.dimension) + 7) // 8 * 8
        return aligned_zeros(count * size).reshape(count, size)

    cdef void place(self, const double* w) noexcept nogil:
        """Copy parameters; what was summed at others is forgotten."""
        if memcmp(&self.w[0], w, self.kernel.dimension * sizeof(double)):
            self.summed = -1
            memcpy(&self.w[0], w, self.kernel.dimension * sizeof(double))

    cdef int work(self, Py_ssize_t read) except -1 nogil:
        """Hear signals now and then; ``read`` is how many numbers were read since."""
        self.spell += read
        if self.spell >= SPELL:
            self.spell = 0
            with gil:
                PyErr_CheckSignals()
        return 0


@cython.final
cdef class Slot:
    """One query of an oracle. Slots of one oracle share room: the caller holds a lock.

    Parameters
    ----------
    records
        Those of the oracle.
    sums
        How contributions are summed and get their noise; may be set anew for each answer.
    sampling
        Generator of batches, which is not that of noise; None where they are all records, or given.
    sampling_probability, batch_size, everyone
        See :class:`dpcal._ext.samples.Sample`; 1, 0 and true where each batch is all records.
    max_norm, proportional, cap
        Bound > 0 on each record's contribution; of differences, if it is ``proportional``, per unit
        of distance, and at most ``cap``.
    size
        Public divisor > 0.
    """

    def __init__(
        self,
        Records records not None,
        Sums sums not None,
        *,
        sampling,
        double sampling_probability,
        Py_ssize_t batch_size,
        double max_norm,
        double size,
        bint everyone=False,
        bint proportional=False,
        double cap=INFINITY,
    ):
        self.records, self.sums = records, sums
        self.lock = nullcontext() if sampling is None else sampling.bit_generator.lock
        if self.lock is sums.lock:
            raise ValueError(
                "sampling and noise must be distinct generators, got the same one twice."
            )
        if everyone and (batch_size or sampling_probability < 1):
            raise ValueError(
                "everyone is for batches of all records, got sampling_probability="
                f"{sampling_probability!r} and batch_size={batch_size}."
            )
        self.sample = Sample(records.kernel.n, sampling_probability, batch_size, sampling)
        self.everyone = everyone
        self.max_norm, self.proportional, self.cap = max_norm, proportional, cap
        self.size = size

    def answer(self, w, v=None, *, rows=None, row=None, int digits=0):
        """Return a noisy mean of clipped gradients, plus the regulariser's gradient.

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        v
            Parameters too, for gradients at ``w`` minus those at ``v``; None for those at ``w``.
        rows
            The batch, row numbers in [0, n), dtype intp; None to draw it here.
        row
            A row of correlated noise in whole numbers, shape (dimension,), which takes the place of
            independent noise.
        digits
            How many bits finer the grid of rows is than that of sums.

        Returns
        -------
        numpy.ndarray or None
            None where the sum is not finite, or an argument is of another kind: nothing is given.
        """
        cdef Py_ssize_t d = self.records.kernel.dimension
        cdef const double* to = plain(w, d)
        cdef const double* origin = NULL if v is None else plain(v, d)
        cdef const int64_t* noise = NULL
        cdef double* out
        cdef bint given = False
        if row is not None:
            noise = <const int64_t*>plain_of(row, d, cnp.NPY_INT64)
        if (
            to is NULL
            or (v is not None and origin is NULL)
            or (row is not None and noise is NULL)
            or not self.take_rows(rows)
        ):
            return None
        self.records.place(to)
        if origin is not NULL:
            memcpy(&self.records.v[0], origin, d * sizeof(double))
            origin = &self.records.v[0]
        answer = fresh(d)
        out = <double*>cnp.PyArray_DATA(<cnp.ndarray>answer)
        with self.lock, self.sums.lock, nogil:
            given = self.take(&self.records.w[0], origin, out, noise, digits)
        return answer if given else None

    def norm(self, w, *, rows):
        """Return a noisy norm of the mean of clipped gradients and the regulariser, shape (1,).

        The sum is kept; ``w`` and ``rows`` are those of :meth:`answer`. None is returned if the
        norm is not finite, or an argument is of another kind: nothing was drawn.
        """
        cdef Records records = self.records
        cdef Py_ssize_t d = records.kernel.dimension, j
        cdef const double* to = plain(w, d)
        cdef double found
        cdef bint finite
        if to is NULL or not self.take_rows(rows):
            return None
        records.place(to)
        with nogil:
            finite = self.sum_at(&records.w[0], NULL, self.max_norm)
        if not finite:
            return None
        records.summed = self.max_norm if self.everyone else -1
        for j in range(d):
            records.v[j] = self.size * (records.strengths[j] * to[j])
        with self.sums.lock:
            found = self.sums.norm(self.max_norm, &records.total[0], &records.v[0], d)
        return np.array([found / self.size]) if isfinite(found) else None

    cdef bint draws(self) except -1:
        """Return whether batches can be drawn here."""
        return self.everyone or self.sample.generator is not None

    cdef bint take_rows(self, rows) except -1:
        """Let the next batch be these rows, if there are any; false if they are no rows."""
        cdef const Py_ssize_t* index
        cdef Py_ssize_t i, count
        self.sample.given = False
        if rows is None:
            return self.draws()
        if not cnp.PyArray_CheckExact(rows) or cnp.PyArray_NDIM(<cnp.ndarray>rows) != 1:
            return False
        count = cnp.PyArray_DIM(<cnp.ndarray>rows, 0)
        index = <const Py_ssize_t*>plain_of(rows, count, cnp.NPY_INTP)
        if index is NULL:
            return False
        for i in range(count):
            if index[i] < 0 or index[i] >= self.records.kernel.n:
                return False
        self.sample.give(index, count)
        return True

    cdef bint take(
        self,
        const double* w,
        const double* v,
        double* out,
        const int64_t* row,
        int digits,
    ) except -1 nogil:
        """Write the next answer; false where no distance or no sum is finite.

        The points have room for a stride of the kernel. The caller holds the locks of both
        generators, and the ledger holds the answer.
        """
        cdef double bound = self.bound_between(w, v), size = self.size, pull
        cdef double* total = &self.records.total[0]
        cdef const double[::1] strengths = self.records.strengths
        cdef Py_ssize_t d = self.records.kernel.dimension, j
        if not self.sum_at(w, v, bound):
            return False
        self.records.summed = -1
        if bound < NEGLIGIBLE:
            pass
        elif row is NULL:
            self.sums.finish(bound, total, d)
        else:
            self.sums.correlate(bound, total, row, digits, d)
            size *= 1 << digits
        for j in range(d):
            pull = strengths[j] * w[j]
            if v is not NULL:
                pull -= strengths[j] * v[j]
            out[j] = total[j] / size + pull
        self.records.work(ANSWER + NUMBER * d)
        return True

    cdef double bound_between(self, const double* w, const double* v) noexcept nogil:
        """Return the bound on a contribution; -1 if it or the distance overflows."""
        cdef Py_ssize_t j
        cdef double bound, squares = 0
        if v is NULL:
            return self.max_norm
        for j in range(self.records.kernel.dimension):
            squares += (w[j] - v[j]) * (w[j] - v[j])
        bound = fmin(self.max_norm * sqrt(squares), self.cap) if self.proportional else self.max_norm
        return bound if isfinite(squares) and isfinite(bound) else -1.0

    cdef bint sum_at(self, const double* w, const double* v, double bound) except -1 nogil:
        """Set the total to the clipped sum over the next batch; false if it is not finite."""
        cdef double* total = &self.records.total[0]
        cdef Py_ssize_t d = self.records.kernel.dimension, count
        cdef double clip = 0
        if bound < 0:
            return False
        if v is NULL and self.everyone and self.records.summed == bound and w == &self.records.w[0]:
            return True
        self.records.summed = -1
        if bound < NEGLIGIBLE:
            self.records.total[:] = 0.0
        else:
            clip = self.sums.clip(bound, d)
            self.sums.begin(bound, total, d)
        self.sample.begin()
        count = self.sample.block()
        while count:
            if bound >= NEGLIGIBLE:
                self.records.kernel.add(w, v, Batch(self.sample.rows, count, clip), total)
                self.records.work(count * self.records.kernel.stride)
            count = self.sample.block()
        return finite(total, d)
