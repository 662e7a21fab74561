"""Sums of clipped pairs of gradients: a minimax problem's gradient in x and that in y.

Both of a record are clipped together, or each to its share of the bound, and are added as one
vector of d1 + d2 numbers.

>>> import numpy as np
>>> kernel = AreaPairs(np.array([[1.0, 0.0]]), np.array([True]), share=0.5)
>>> kernel(np.array([3.0, 0.0, 0.0, 0.0, 4.0]), max_norm=1.0).round(12).tolist()  # of (-2, 0, -3, 0, -3)
[-0.426401432711, 0.0, -0.639602149067, 0.0, -0.639602149067]
"""

cimport cython
from libc.float cimport DBL_MIN
from libc.math cimport fabs, fmax, isfinite, sqrt
from libc.stdlib cimport abort, free, malloc

from dpcal._ext.gradients cimport Batch, ClippedSum, PointLoss

import numpy as np

cdef double UNIT = 2.0**-53  # relative rounding error of one operation

# Squared norms outside of these are computed again, scaled: squares of entries may have overflowed,
# or may have lost digits below the normal range.
cdef double SMALL = 1e-270
cdef double LARGE = 1e300


cdef double norm_of(const double* g, Py_ssize_t size, double squares) noexcept nogil:
    """Norm of entries, from the sum of their squares, rounded up by enough for a clipped product.

    Returns -1 for entries that are NaN or infinite.
    """
    cdef double largest = 0
    cdef Py_ssize_t i
    if not SMALL < squares < LARGE:
        for i in range(size):
            if not isfinite(g[i]):
                return -1.0
            largest = fmax(largest, fabs(g[i]))
        if largest == 0:
            return 0.0
        squares = 0
        for i in range(size):
            squares += (g[i] / largest) ** 2
        return largest * sqrt(squares) * (1 + (size + 16) * UNIT)
    return sqrt(squares) * (1 + (size + 16) * UNIT)


cdef inline double factor_of(double norm, double max_norm) noexcept nogil:
    """Return what brings a contribution of this norm down to ``max_norm``."""
    cdef double factor
    if norm <= max_norm:
        return 1.0
    factor = max_norm / norm
    # Below the normal range a quotient is rounded by more than the norm's slack makes up for.
    return factor if factor >= DBL_MIN else 0.0


cdef class PairSum(ClippedSum):
    """Sums of records' pairs of gradients, clipped one by one.

    Subclasses implement ``fill``, or the sum. A record whose pair is NaN or infinite contributes
    zero.

    Parameters
    ----------
    n, d1, d2
        Numbers of records, of primal and of dual parameters.
    shares
        None to clip both blocks together; a pair of shares of the bound, whose squares sum to at
        most 1, to clip each block alone.
    """

    cdef readonly Py_ssize_t d1, d2
    cdef bint joint
    cdef double primal, dual

    def __init__(self, Py_ssize_t n, Py_ssize_t d1, Py_ssize_t d2, shares):
        self.n, self.d1, self.d2 = n, d1, d2
        self.dimension = self.stride = d1 + d2
        self.joint = shares is None
        self.primal, self.dual = (1.0, 1.0) if shares is None else shares

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__} holds records, and is not pickled.")

    cdef void fill(self, const double* w, Py_ssize_t row, double* g) noexcept nogil:
        """Write the pair of one record at ``w``, before it is clipped."""
        pass

    cdef void put(self, const double* g, double max_norm, double* total) noexcept nogil:
        """Clip one record's pair, and add it."""
        cdef double first = 0, second = 0, one, other
        cdef Py_ssize_t j
        for j in range(self.d1):
            first += g[j] * g[j]
        for j in range(self.d1, self.dimension):
            second += g[j] * g[j]
        if self.joint:
            one = norm_of(g, self.dimension, first + second)
            if one < 0:
                return
            one = other = factor_of(one, max_norm)
        else:
            one = norm_of(g, self.d1, first)
            other = norm_of(g + self.d1, self.d2, second)
            if one < 0 or other < 0:
                return
            one = factor_of(one, max_norm * self.primal)
            other = factor_of(other, max_norm * self.dual)
        for j in range(self.d1):
            total[j] += one * g[j]
        for j in range(self.d1, self.dimension):
            total[j] += other * g[j]

    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef double* g = scratch(2 * self.dimension)
        cdef double* before = g + self.dimension
        for i in range(batch.count):
            self.fill(w, batch.rows[i], g)
            if v is not NULL:
                self.fill(v, batch.rows[i], before)
                for j in range(self.dimension):
                    g[j] -= before[j]
            self.put(g, batch.bound, total)
        free(g)


cdef double* scratch(Py_ssize_t size) noexcept nogil:
    """Return room for so many numbers: a few thousand bytes, without which no process can go on."""
    cdef double* room = <double*>malloc(max(size, 1) * sizeof(double))
    if room is NULL:
        abort()
    return room


@cython.final
cdef class TiltedPairs(PairSum):
    """Pairs of ``(base + <y, phi_i>) loss(<w, x_i>, t_i)``: a linear model with weighted losses.

    Parameters
    ----------
    loss
        Of one score.
    X, targets, tilts
        Rows x_i, shape (n, p); numbers t_i, shape (n,); rows phi_i, shape (n, d2). Copied.
    base
        As above.
    shares
        As for :class:`PairSum`.
    """

    cdef PointLoss loss
    cdef double[:, ::1] X, tilts
    cdef double[::1] targets
    cdef double base

    def __init__(self, PointLoss loss not None, X, targets, tilts, *, double base, shares=None):
        super().__init__(len(X), X.shape[1], tilts.shape[1], shares)
        self.loss, self.base = loss, base
        self.X = np.array(X, dtype=np.float64, order="C")
        self.tilts = np.array(tilts, dtype=np.float64, order="C")
        self.targets = np.array(targets, dtype=np.float64)

    cdef void fill(self, const double* w, Py_ssize_t row, double* g) noexcept nogil:
        cdef const double* x = &self.X[row, 0]
        cdef const double* phi = &self.tilts[row, 0]
        cdef double score = inner(x, w, self.d1)
        cdef double weight = self.base + inner(phi, w + self.d1, self.d2)
        cdef double value = self.loss.value(score, self.targets[row])
        cdef Py_ssize_t j
        weight *= self.loss.slope(score, self.targets[row])
        for j in range(self.d1):
            g[j] = weight * x[j]
        for j in range(self.d2):
            g[self.d1 + j] = value * phi[j]


@cython.final
cdef class AreaPairs(PairSum):
    """Pairs of the saddle form of AUC: x is (weights, a, b), y one number.

    Parameters
    ----------
    X
        Rows, shape (n, p). Copied.
    positive
        Whether each record is positive, shape (n,).
    share
        The positives' share, p of :class:`dpcal.optim.minimax.AUCMaximization`.
    shares
        As for :class:`PairSum`.
    """

    cdef double[:, ::1] X
    cdef unsigned char[::1] positive
    cdef double share

    def __init__(self, X, positive, *, double share, shares=None):
        super().__init__(len(X), X.shape[1] + 2, 1, shares)
        self.X = np.array(X, dtype=np.float64, order="C")
        self.positive = np.array(positive, dtype=np.uint8)
        self.share = share

    cdef void fill(self, const double* w, Py_ssize_t row, double* g) noexcept nogil:
        cdef Py_ssize_t p = self.d1 - 2
        cdef Py_ssize_t j
        cdef const double* x = &self.X[row, 0]
        cdef double score = inner(x, w, p)
        cdef double away, lean, slope
        if self.positive[row]:
            lean, away = self.share - 1, (1 - self.share) * (score - w[p])
        else:
            lean, away = self.share, self.share * (score - w[p + 1])
        slope = 2 * away + 2 * (1 + w[p + 2]) * lean
        for j in range(p):
            g[j] = slope * x[j]
        g[p] = -2 * away if self.positive[row] else 0.0
        g[p + 1] = 0.0 if self.positive[row] else -2 * away
        g[p + 2] = 2 * lean * score


cdef inline double inner(const double* a, const double* b, Py_ssize_t size) noexcept nogil:
    """Inner product in four partial sums, whose additions hide one another's latency."""
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0
    cdef Py_ssize_t j = 0
    while j + 4 <= size:
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
        j += 4
    while j < size:
        s0 += a[j] * b[j]
        j += 1
    return (s0 + s1) + (s2 + s3)
