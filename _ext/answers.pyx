"""One answer of an oracle, in compiled code: sum, noise, public divisor, regulariser.

What an oracle does for an answer once it is admitted and its rows are drawn takes a dozen small
arrays in numpy; here it takes one. The random numbers, and the bits of the answer, are the same.
Where a gradient follows a norm at the same parameters, on the same rows and with the same bound,
the sum behind the norm is used again.

>>> import numpy as np
>>> from dpcal._ext.gradients import LinearClippedSum, SquaredLoss
>>> from dpcal._ext.sums import Sums
>>> kernel = LinearClippedSum(SquaredLoss(), np.array([[3.0, 4.0]]), np.array([1.0]),
...                           intercept=False)
>>> answers = Answers(kernel, np.array([0.1, 0.0]))
>>> sums = Sums(np.random.default_rng(0), 2.0)
>>> w = np.array([1.0, 0.0])
>>> answer = answers.answer(w, rows=np.array([0]), max_norm=1.0, sums=sums, size=2.0)
>>> drawn = 2.0 * np.random.default_rng(0).standard_normal(2)
>>> bool((answer == (kernel(w, max_norm=1.0) + drawn) / 2.0 + [0.1, 0.0]).all())
True
"""

cimport cython
cimport numpy as cnp
from libc.math cimport isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from dpcal._ext.gradients cimport Batch, ClippedSum
from dpcal._ext.sums cimport Sums, WholeSums

import numpy as np

from dpcal._ext.gradients import aligned_zeros

cnp.import_array()


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
cdef class Answers:
    """Answers about the records of one kernel. Calls share scratch space: the caller holds a lock.

    Parameters
    ----------
    kernel
        Clipped gradient sums of the records.
    strengths
        Of the regulariser in each parameter, shape (dimension,).
    """

    cdef ClippedSum kernel
    cdef double[::1] w, v, total
    cdef double[::1] strengths
    # Rows and bound of a sum at w that is in total; None for no sum.
    cdef object summed_rows
    cdef double summed_bound

    def __init__(self, ClippedSum kernel not None, strengths):
        if strengths.shape != (kernel.dimension,):
            raise ValueError(
                f"strengths must have shape ({kernel.dimension},), got {strengths.shape}."
            )
        self.kernel = kernel
        self.strengths = np.array(strengths, dtype=np.float64)
        # Zeros beyond the dimension, which stay.
        self.w, self.v, self.total = (
            aligned_zeros(max(kernel.stride, kernel.dimension)) for _ in range(3)
        )
        self.summed_rows = None

    def answer(
        self,
        w,
        v=None,
        *,
        rows,
        double max_norm,
        Sums sums not None,
        double size,
        row=None,
        int digits=0,
    ):
        """Return a noisy mean of clipped gradients, plus the regulariser's gradient.

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        v
            Parameters too, for gradients at ``w`` minus those at ``v``; None for those at ``w``.
        rows
            Row numbers in [0, n), dtype intp.
        max_norm
            Bound > 0 on each record's contribution.
        sums
            How contributions are summed and get their noise.
        size
            Public divisor > 0.
        row
            A row of correlated noise, shape (dimension,), which takes the place of independent
            noise: of C^-1 z for sums in doubles, and of whole numbers for others.
        digits
            How many bits finer the grid of whole rows is than that of sums.

        Returns
        -------
        numpy.ndarray or None
            None where the sum is not finite, or an argument is of another kind: nothing was drawn.
        """
        cdef Py_ssize_t d = self.kernel.dimension, i
        cdef const double* to = plain(w, d)
        cdef const double* origin = NULL if v is None else plain(v, d)
        cdef const double* correlated = NULL
        cdef const int64_t* whole = NULL
        cdef double* total = &self.total[0]
        cdef double* out
        if to is NULL or (v is not None and origin is NULL):
            return None
        if row is not None and sums.whole_numbers:
            whole = <const int64_t*>plain_of(row, d, cnp.NPY_INT64)
        elif row is not None:
            correlated = plain(row, d)
        if row is not None and correlated is NULL and whole is NULL:
            return None
        if not self.sum_at(to, origin, rows, max_norm, sums):
            return None
        # The noise is added in place.
        self.summed_rows = None
        if row is None:
            with sums.lock:
                sums.finish(max_norm, total, d)
        elif whole is not NULL:
            (<WholeSums>sums).correlate(max_norm, total, whole, digits, d)
            size *= 1 << digits
        else:
            for i in range(d):
                total[i] += sums.noise_multiplier * max_norm * correlated[i]
        answer = fresh(d)
        out = <double*>cnp.PyArray_DATA(<cnp.ndarray>answer)
        for i in range(d):
            if origin is NULL:
                out[i] = total[i] / size + self.strengths[i] * to[i]
            else:
                out[i] = total[i] / size + (
                    self.strengths[i] * to[i] - self.strengths[i] * origin[i]
                )
        return answer

    def norm(self, w, *, rows, double max_norm, Sums sums not None, double size):
        """Return a noisy norm of the mean of clipped gradients and the regulariser; keep the sum.

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        rows
            Row numbers in [0, n), dtype intp.
        max_norm
            Bound > 0 on each record's contribution.
        sums
            How contributions are summed, and what noise the norm of the sum gets.
        size
            Public divisor > 0.

        Returns
        -------
        float or None
            None if the norm is not finite, or an argument is of another kind: nothing was drawn.
        """
        cdef Py_ssize_t d = self.kernel.dimension, j
        cdef const double* to = plain(w, d)
        cdef double found
        if to is NULL or not self.sum_at(to, NULL, rows, max_norm, sums):
            return None
        self.summed_rows, self.summed_bound = rows, max_norm
        for j in range(d):
            self.v[j] = size * (self.strengths[j] * to[j])
        with sums.lock:
            found = sums.norm(max_norm, &self.total[0], &self.v[0], d)
        return found / size if isfinite(found) else None

    cdef bint sum_at(
        self, const double* to, const double* origin, rows, double max_norm, Sums sums
    ) except -1:
        """Set ``total`` to a clipped sum; false if it is not finite, or not of arrays."""
        cdef Py_ssize_t d = self.kernel.dimension, i, count
        cdef const Py_ssize_t* index
        cdef double* total = &self.total[0]
        cdef bint kept = (
            origin is NULL
            and self.summed_rows is not None
            and self.summed_rows is rows
            and self.summed_bound == max_norm
            and memcmp(&self.w[0], to, d * sizeof(double)) == 0
        )
        if kept:
            return True
        self.summed_rows = None
        if not max_norm > 0 or not cnp.PyArray_CheckExact(rows):
            return False
        if (
            cnp.PyArray_TYPE(<cnp.ndarray>rows) != cnp.NPY_INTP
            or cnp.PyArray_NDIM(<cnp.ndarray>rows) != 1
            or not cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>rows)
        ):
            return False
        index = <const Py_ssize_t*>cnp.PyArray_DATA(<cnp.ndarray>rows)
        count = cnp.PyArray_DIM(<cnp.ndarray>rows, 0)
        for i in range(count):
            if index[i] < 0 or index[i] >= self.kernel.n:
                return False
        memcpy(&self.w[0], to, d * sizeof(double))
        sums.begin(max_norm, total, d)
        if origin is not NULL:
            memcpy(&self.v[0], origin, d * sizeof(double))
            origin = &self.v[0]
        with nogil:
            self.kernel.add(&self.w[0], origin, Batch(index, count, sums.clip(max_norm, d)), total)
        return finite(total, d)
