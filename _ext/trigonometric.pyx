"""Clipped sums of a trigonometric problem, whose saddle points are known.

>>> import numpy as np
>>> kernel = TrigonometricClippedSum(np.array([[0.0, np.pi / 2]]))
>>> kernel(np.zeros(2)).round(12).tolist()  # sin(w + z)
[0.0, 1.0]
"""

cimport cython
from libc.math cimport cos, fabs, fmax, sin
from libc.stdlib cimport free, malloc

from dpcal._ext.gradients cimport Batch, ClippedSum, clipped_loss
from dpcal._ext.rows cimport dot

import numpy as np

from dpcal._ext.gradients import aligned_zeros

cdef extern from "<float.h>":
    pass

cdef extern from "<math.h>":
    pass

cdef extern from "rows.h":
    pass

cdef extern from *:
    """
    /* Add unit (a sin(z) + b cos(z)), clipped to max_norm, for each row; a row of the table holds its
       sines, and then its cosines. The order of every addition is written out, as in rows.h. A square
       root is taken only where a norm is near its limit or beyond. A row whose norm is not finite, or
       whose factor is below the normal range, where it would be rounded by more than the slack makes
       up for, contributes zero. */
    DPCAL_WIDER static void dpcal_add_turned(
        const double *table, const Py_ssize_t *rows, Py_ssize_t count, const double *restrict a,
        const double *restrict b, double *restrict turn, double unit, double max_norm, double slack,
        double *restrict total, Py_ssize_t size
    ) {
        const double limit = max_norm / unit;
        const double surely = limit * limit * (1 - 1e-15);
        for (Py_ssize_t i = 0; i < count; i++) {
            const double *restrict row = table + 2 * size * rows[i];
            double s[8] = {0};
            if (i + 8 < count)
                for (Py_ssize_t j = 0; j < 2 * size; j += 8)
                    dpcal_prefetch(table + 2 * size * rows[i + 8] + j);
            for (Py_ssize_t j = 0; j < size; j += 8)
                for (int lane = 0; lane < 8; lane++) {
                    double t = a[j + lane] * row[j + lane] + b[j + lane] * row[size + j + lane];
                    turn[j + lane] = t;
                    s[lane] += t * t;
                }
            double squares = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
            double factor = unit;
            if (!(squares * (slack * slack) <= surely)) {
                double norm = sqrt(squares) * slack;
                if (!(norm <= limit))
                    factor = max_norm / norm;
                if (!(norm < INFINITY) || factor < DBL_MIN)
                    continue;
            }
            for (Py_ssize_t j = 0; j < size; j++)
                total[j] += factor * turn[j];
        }
    }
    """
    void add_turned "dpcal_add_turned"(
        const double* table,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        const double* a,
        const double* b,
        double* turn,
        double unit,
        double max_norm,
        double slack,
        double* total,
        Py_ssize_t size,
    ) noexcept nogil

cdef enum:
    LANES = 8  # numbers in a cache line, as in dpcal._ext.gradients

cdef double UNIT = 2.0**-53  # relative rounding error of one operation


@cython.final
cdef class TrigonometricClippedSum(ClippedSum):
    """Clipped gradient sums of the losses ``sum_j (1 - cos(w_j + z_j))``.

    By the addition theorem a sum needs the sines and cosines of records, which are taken once, and
    of parameters, but not of their sums: gradients are ``cos(w) sin(z) + sin(w) cos(z)``, and
    differences ``2 sin(h) (cos(m) cos(z) - sin(m) sin(z))``, with h half of w - v and m the middle.

    Parameters
    ----------
    Z
        Records, shape (n, d), finite.
    """

    cdef object owner
    cdef double* rows

    def __init__(self, Z):
        n, d = Z.shape
        self.n, self.dimension = n, d
        self.stride = (self.dimension + LANES - 1) // LANES * LANES
        rows = aligned_zeros(2 * n * self.stride)
        table = rows.reshape(n, 2, self.stride)
        table[:, 0, :d] = np.sin(Z)
        table[:, 1, :d] = np.cos(Z)
        cdef double[::1] view = rows
        self.owner = (rows, Z)
        self.rows = &view[0]

    def __reduce__(self):
        return TrigonometricClippedSum, (self.owner[1],)

    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil:
        cdef Py_ssize_t j
        cdef double middle, change, largest = 1.0
        cdef double* a = <double*>malloc(3 * self.stride * sizeof(double))
        cdef double* b
        if a is NULL:
            return  # no record contributes; what is released is noise
        b = a + self.stride
        if v is NULL:
            for j in range(self.stride):
                a[j], b[j] = cos(w[j]), sin(w[j])
        else:
            largest = 0.0
            for j in range(self.stride):
                a[j] = 2 * sin((w[j] - v[j]) / 2)
                largest = fmax(largest, fabs(a[j]))
            # In units of the largest entry, so that squares do not vanish.
            for j in range(self.stride if largest > 0 else 0):
                middle = w[j] / 2 + v[j] / 2
                change = a[j] / largest
                a[j], b[j] = -change * sin(middle), change * cos(middle)
        if largest > 0:
            add_turned(
                self.rows,
                batch.rows,
                batch.count,
                a,
                b,
                b + self.stride,
                largest,
                batch.bound,
                1 + (self.stride + 16) * UNIT,
                total,
                self.stride,
            )
        free(a)

    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil:
        cdef double total = 0
        cdef Py_ssize_t i, j
        cdef double* scratch = <double*>malloc(2 * self.stride * sizeof(double))
        if scratch is NULL:
            return 0.0
        for j in range(self.stride):
            scratch[j] = -sin(w[j])
            scratch[self.stride + j] = cos(w[j])
        for i in range(batch.count):
            total += clipped_loss(
                self.dimension
                - dot(self.rows + 2 * batch.rows[i] * self.stride, scratch, 2 * self.stride),
                batch.bound,
            )
        free(scratch)
        return total
