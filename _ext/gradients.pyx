"""Sums of clipped per-record gradients, without ever forming one of them.

A linear model's loss at record i is ``value(<w, x_i>, y_i)``, so its gradient is ``slope(<w, x_i>,
y_i) * x_i``: a number times a row. Its norm is ``|slope| * ||x_i||``, and the row's norm is known
beforehand, so clipping costs one comparison and the whole pass reads each row once: dot product,
slope, clip, add, while the row is in the first-level cache. The difference of one record's
gradients at two parameter vectors is a number times the same row, and is clipped as cheaply.

Long rows are taken by fours, which share the reading of the parameters and of the sum, and fetch
the next four meanwhile: then a sum takes about as long as its rows take to arrive from memory. BLAS
would need them in one block, and gathering them takes longer than all of this.

>>> import numpy as np
>>> X, y = np.array([[3.0, 4.0]]), np.array([1.0])
>>> kernel = LinearClippedSum(SquaredLoss(), X, y, intercept=False)
>>> kernel(np.zeros(2), max_norm=1.0).round(12).tolist()  # (0 - 1) * (3, 4), clipped to norm 1
[-0.6, -0.8]
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.float cimport DBL_MAX, DBL_MIN
from libc.math cimport INFINITY, copysign, exp, expm1, fabs, fmax, fmin, isnan, log1p, nextafter, sqrt
from libc.string cimport memcpy

from dpcal._ext.rows cimport Row, dot, dpcal_prefetch, many_axpys, many_dots
from dpcal._ext.rows cimport eight_dots, four_axpys, four_dots

import hashlib

import numpy as np

cnp.import_array()

cdef enum:
    LANES = 8  # numbers in a cache line; rows are padded to whole lines, so the loops have no tail
    BLOCK = 512  # rows that are copied at a time, so that what makes them takes little room
    MANY = 32  # short rows taken together: at most 14 KB of them, less than half the nearest cache
    FOUR = 4  # rows that are taken at once where they are long
    LONG = 64  # numbers from which on a row is

cdef double UNIT = 2.0**-53  # relative rounding error of one operation


cdef inline double clipped(double slope, double norm, double max_norm) noexcept nogil:
    """Return the slope whose product with a row of this norm has norm at most ``max_norm``.

    A slope that overflowed keeps its sign and is clipped like any other; one that is not a number
    becomes zero, because a NaN in the sum would give its record away.
    """
    cdef double size = fabs(slope) * norm
    if size <= max_norm:
        return slope
    if size > max_norm:
        size = fmin(max_norm / norm, DBL_MAX)
        # Below the normal range a quotient is rounded by more than the norm's slack makes up for.
        return copysign(size, slope) if size >= DBL_MIN else 0.0
    return 0.0


cdef double norm_rounded_up(const double* row, Py_ssize_t size) noexcept nogil:
    """Norm of a row, rounded up by enough to cover the rounding of the clipped product too."""
    cdef double largest = 0, total = 0
    cdef Py_ssize_t i
    for i in range(size):
        largest = fmax(largest, fabs(row[i]))
    if largest == 0:
        return 0.0
    for i in range(size):  # scaled, so that squares neither overflow nor vanish
        total += (row[i] / largest) ** 2
    return nextafter(largest * sqrt(total) * (1 + (size + 8) * UNIT), INFINITY)


cdef object check_bound(str name, double value):
    """Refuse a bound that bounds nothing."""
    if not value > 0:
        raise ValueError(f"{name} must be a number > 0, got {value!r}.")


cdef class _Sealed:
    """Memory of an array, which is reached from nowhere else, for reading alone."""

    cdef object array

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        cdef cnp.ndarray array = self.array
        PyBuffer_FillInfo(
            buffer, self, cnp.PyArray_DATA(array), cnp.PyArray_NBYTES(array), 1, flags
        )


def sealed(array):
    """Return a view of an array in one block, which nobody can make writable; nothing is copied.

    A flag of numpy's could be set again by whoever holds an array that owns its memory, or a view
    of one. The array itself must not be handed out.
    """
    cdef _Sealed memory = _Sealed()
    if not array.flags.c_contiguous:
        raise ValueError("array must be in one block.")
    memory.array = array
    return np.frombuffer(memory, dtype=array.dtype).reshape(array.shape)


cpdef object aligned_zeros(Py_ssize_t size):
    """Return ``size`` zeros whose first byte starts a cache line."""
    raw = np.zeros(size + LANES)
    cdef size_t first = <size_t>cnp.PyArray_DATA(<cnp.ndarray>raw)
    cdef size_t past_line = first % (LANES * sizeof(double)) // sizeof(double)
    cdef Py_ssize_t start = LANES - <Py_ssize_t>past_line
    return raw[start : start + size]


cdef class PointLoss:
    """Loss of one score against one target, and its derivative with respect to the score.

    ``curvature`` is the largest second derivative by the score of a convex loss, infinite for
    others.
    """

    @property
    def curvature(self):
        return INFINITY

    cdef double value(self, double score, double target) noexcept nogil:
        return 0.0

    cdef double slope(self, double score, double target) noexcept nogil:
        return 0.0


@cython.final
cdef class LogisticLoss(PointLoss):
    """``log(1 + exp(-target * score))``, target in {-1, +1}."""

    @property
    def curvature(self):
        return 0.25

    cdef double value(self, double score, double target) noexcept nogil:
        cdef double margin = target * score
        if margin > 0:
            return log1p(exp(-margin))
        return log1p(exp(margin)) - margin

    cdef double slope(self, double score, double target) noexcept nogil:
        return -target / (1.0 + exp(target * score))


@cython.final
cdef class SquaredLoss(PointLoss):
    """``(score - target)**2 / 2``."""

    @property
    def curvature(self):
        return 1.0

    cdef double value(self, double score, double target) noexcept nogil:
        return 0.5 * (score - target) * (score - target)

    cdef double slope(self, double score, double target) noexcept nogil:
        return score - target


@cython.final
cdef class HuberLoss(PointLoss):
    """``r**2 / 2`` for residuals up to ``width``, linear beyond (Huber 1964)."""

    cdef double width

    def __init__(self, double width):
        self.width = width

    @property
    def curvature(self):
        return 1.0

    cdef double value(self, double score, double target) noexcept nogil:
        cdef double size = fabs(score - target)
        if size <= self.width:
            return 0.5 * size * size
        return self.width * (size - 0.5 * self.width)

    cdef double slope(self, double score, double target) noexcept nogil:
        cdef double residual = score - target
        if fabs(residual) > self.width:
            return copysign(self.width, residual)
        return residual


@cython.final
cdef class CauchyLoss(PointLoss):
    """``width**2 / 2 * log(1 + (r / width)**2)``: grows like a logarithm, not convex."""

    cdef double width

    def __init__(self, double width):
        self.width = width

    cdef double value(self, double score, double target) noexcept nogil:
        cdef double u = (score - target) / self.width
        return 0.5 * self.width * self.width * log1p(u * u)

    cdef double slope(self, double score, double target) noexcept nogil:
        cdef double u = (score - target) / self.width
        if fabs(u) > 1:  # so that an infinite residual has slope zero
            return self.width / (u + 1 / u)
        return self.width * u / (1 + u * u)


@cython.final
cdef class WelschLoss(PointLoss):
    """``width**2 / 2 * (1 - exp(-(r / width)**2))``: bounded, not convex."""

    cdef double width

    def __init__(self, double width):
        self.width = width

    cdef double value(self, double score, double target) noexcept nogil:
        cdef double u = (score - target) / self.width
        return -0.5 * self.width * self.width * expm1(-u * u)

    cdef double slope(self, double score, double target) noexcept nogil:
        cdef double u = (score - target) / self.width
        if fabs(u) > 40:  # exp(-1600) is zero; infinity times zero is not a number
            return 0.0
        return self.width * u * exp(-u * u)


@cython.final
cdef class SigmoidLoss(PointLoss):
    """``1 / (1 + exp(target * score))**2``, target in {-1, +1}: bounded, not convex."""

    cdef double value(self, double score, double target) noexcept nogil:
        cdef double wrong = 1.0 / (1.0 + exp(target * score))
        return wrong * wrong

    cdef double slope(self, double score, double target) noexcept nogil:
        cdef double wrong = 1.0 / (1.0 + exp(target * score))
        return -2.0 * target * wrong * wrong / (1.0 + exp(-target * score))


@cython.final
cdef class ClassWeighted(PointLoss):
    """A loss times a weight: ``above`` for targets above zero, ``below`` for the others.

    Gradients are weighted before they are clipped, so that the clipping norm bounds what a record
    contributes whatever the weights are.
    """

    cdef PointLoss loss
    cdef double below
    cdef double above

    def __init__(self, PointLoss loss not None, double below, double above):
        self.loss = loss
        self.below = below
        self.above = above

    @property
    def curvature(self):
        return fmax(self.below, self.above) * self.loss.curvature

    cdef double value(self, double score, double target) noexcept nogil:
        return (self.above if target > 0 else self.below) * self.loss.value(score, target)

    cdef double slope(self, double score, double target) noexcept nogil:
        return (self.above if target > 0 else self.below) * self.loss.slope(score, target)


cdef class ClippedSum:
    """The sum of clipped gradients over given rows.

    Subclasses implement ``loss_sum`` and ``add``, which adds to ``total`` the gradients at ``w``, or
    those at ``w`` less those at ``v`` unless ``v`` is NULL. ``w``, ``v`` and ``total`` hold
    ``stride`` numbers, of which those from ``dimension`` on are zero and stay zero. No record's
    contribution may be larger than the batch's bound.
    """

    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil:
        pass

    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil:
        return 0.0

    def __call__(self, w, rows=None, *, double max_norm=INFINITY):
        """Return the sum of clipped gradients over ``rows``, all of them when omitted.

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        rows
            Row numbers in [0, n), any order, repetitions counted.
        max_norm
            Bound > 0 on each record's contribution; infinite for the plain gradient.
        """
        check_bound("max_norm", max_norm)
        return summed(self, w, None, rows, max_norm)

    def difference(self, w, v, rows=None, *, double max_norm=INFINITY):
        """Return the sum over ``rows`` of clipped differences, gradient at ``w`` minus at ``v``.

        Parameters
        ----------
        w, v
            Parameters, shape (dimension,).
        rows, max_norm
            As in a call: the bound is on each record's difference.
        """
        check_bound("max_norm", max_norm)
        return summed(self, w, v, rows, max_norm)

    def losses(self, w, rows=None, *, double max_loss=INFINITY):
        """Return the sum over ``rows`` of losses, each clipped to [-max_loss, max_loss].

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        rows
            As in a call.
        max_loss
            Bound > 0 on each record's contribution; infinite for none.
        """
        cdef const Py_ssize_t[::1] index = self.checked(rows)
        check_bound("max_loss", max_loss)
        cdef const double[::1] parameters = self.padded(w)
        cdef double total = 0
        if index.shape[0]:
            with nogil:
                total = self.loss_sum(&parameters[0], Batch(&index[0], index.shape[0], max_loss))
        return total

    def checked(self, rows):
        """Return ``rows`` as contiguous row numbers, all of them for None, or refuse them."""
        if rows is None:
            rows = np.arange(self.n, dtype=np.intp)
        rows = np.ascontiguousarray(rows, dtype=np.intp)
        cdef const Py_ssize_t[::1] index = rows
        cdef Py_ssize_t i
        for i in range(index.shape[0]):
            if index[i] < 0 or index[i] >= self.n:
                raise ValueError(f"rows must be in [0, n) with n={self.n}, got {index[i]}.")
        return rows

    def padded(self, w):
        """Return a copy of ``w`` with zeros up to the stride."""
        w = np.asarray(w, dtype=np.float64)
        if w.shape != (self.dimension,):
            raise ValueError(f"w must have shape ({self.dimension},), got {w.shape}.")
        parameters = aligned_zeros(self.stride)
        parameters[: self.dimension] = w
        return parameters


cdef object summed(ClippedSum kernel, object w, object v, object rows, double max_norm):
    """Return the clipped sum at ``w``, or of differences between ``w`` and ``v``."""
    cdef const Py_ssize_t[::1] index = kernel.checked(rows)
    cdef Py_ssize_t size = kernel.stride, d = kernel.dimension
    # One block, and vectors whose first byte starts a cache line.
    cdef double* held = <double*>PyMem_RawCalloc(3 * size + LANES, sizeof(double))
    if held is NULL:
        raise MemoryError()
    cdef double* total = <double*>((<size_t>held + 63) & ~<size_t>63)
    cdef const double* origin = NULL
    try:
        put(w, total + size, d)
        if v is not None:
            origin = total + 2 * size
            put(v, total + 2 * size, d)
        if index.shape[0]:
            with nogil:
                kernel.add(total + size, origin, Batch(&index[0], index.shape[0], max_norm), total)
        made = np.empty(d)
        memcpy(cnp.PyArray_DATA(<cnp.ndarray>made), total, d * sizeof(double))
        return made
    finally:
        PyMem_RawFree(held)


cdef int put(object w, double* out, Py_ssize_t d) except -1:
    """Copy parameters to ``out``, or refuse their shape."""
    cdef cnp.ndarray vector = np.ascontiguousarray(w, dtype=np.float64)
    # An array of no dimension has become one of one; what was given tells.
    if np.shape(w) != (d,):
        raise ValueError(f"w must have shape ({d},), got {np.shape(w)}.")
    memcpy(out, cnp.PyArray_DATA(vector), d * sizeof(double))
    return 0


@cython.final
@cython.final
cdef class LinearClippedSum(ClippedSum):
    """Clipped gradient sums of a linear model.

    The records are copied, padded with zeros to whole cache lines, and the copy is not shared:
    the norms that clipping relies on cannot come apart from the rows that they belong to.

    Parameters
    ----------
    loss
        The loss of one score.
    X
        Records, shape (n, d), finite: an array, or what has its shape and its rows ``X[a:b]``.
    targets
        Shape (n,), finite, or NaN: that record contributes zero.
    intercept
        Whether each record gets the constant feature 1 at its end, which counts in its norm.
    """

    cdef readonly PointLoss loss
    cdef object owner
    cdef double* rows
    cdef double* targets_and_norms
    cdef bint intercept

    def __init__(self, PointLoss loss not None, X, targets, *, bint intercept):
        n, d = X.shape
        if targets.shape != (n,):
            raise ValueError(f"targets must have shape ({n},), got {targets.shape}.")
        self.loss = loss
        self.intercept = intercept
        self.n = n
        self.dimension = d + intercept
        self.stride = (self.dimension + LANES - 1) // LANES * LANES
        rows = aligned_zeros(n * self.stride)
        table = rows.reshape(n, self.stride)
        for first in range(0, n, BLOCK):
            table[first : first + BLOCK, :d] = X[first : first + BLOCK]
        if intercept:
            table[:, d] = 1.0
        pairs = aligned_zeros(2 * n)
        pairs[::2] = targets
        cdef double[::1] rows_view = rows
        cdef double[::1] pairs_view = pairs
        self.owner = (rows, pairs)
        self.rows = &rows_view[0]
        self.targets_and_norms = &pairs_view[0]
        cdef Py_ssize_t i
        for i in range(self.n):
            self.targets_and_norms[2 * i + 1] = norm_rounded_up(
                self.rows + i * self.stride, self.dimension
            )

    def __reduce__(self):
        d = self.dimension - self.intercept
        table = np.ascontiguousarray(self.features[:, :d])
        return _linear, (self.loss, table, self.targets, self.intercept)

    def digest(self):
        """Return 32 bytes that tell data sets apart; a secret, like the records."""
        state = hashlib.blake2b(digest_size=32)
        state.update(repr((self.n, self.dimension, self.intercept)).encode())
        for part in self.owner:
            state.update(part.data)
        return state.digest()

    @property
    def norms(self):
        """The rows' norms, rounded up, shape (n,)."""
        return self.owner[1][1::2].copy()

    @property
    def features(self):
        """The records, shape (n, dimension), with the constant feature; cannot be written to."""
        return sealed(self.owner[0]).reshape(self.n, self.stride)[:, : self.dimension]

    @property
    def targets(self):
        """The targets, shape (n,)."""
        return self.owner[1][::2].copy()

    def mean_loss(self, w):
        """Return the mean loss over all records, zero for those of no target. Not private."""
        cdef const double[::1] parameters = self.padded(w)
        cdef double total = 0
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.n):
                if isnan(self.targets_and_norms[2 * i]):
                    continue
                total += self.loss.value(
                    dot(self.rows + i * self.stride, &parameters[0], self.stride),
                    self.targets_and_norms[2 * i],
                )
        return total / self.n

    cdef inline void prefetch(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t i
        dpcal_prefetch(self.targets_and_norms + 2 * row)
        for i in range(0, self.stride, 8):
            dpcal_prefetch(self.rows + row * self.stride + i)

    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil:
        cdef Py_ssize_t done = 0
        if self.stride >= LONG:
            done = self.add_fours(w, v, batch, total)
            batch.rows += done
            batch.count -= done
        # A constant NULL lets the compiler leave the second point out of the loop.
        if v is NULL:
            self.add_many(w, NULL, batch.rows, batch.count, batch.bound, total)
        else:
            self.add_many(w, v, batch.rows, batch.count, batch.bound, total)

    cdef void add_many(
        self,
        const double* w,
        const double* v,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double bound,
        double* total,
    ) noexcept nogil:
        """Add gradients at ``w``, less those at ``v`` if there is one, in blocks of rows.

        All scores of a block come first, then all slopes, then the sum: three short loops, in none
        of which a row waits for the one before. The next block is fetched meanwhile.
        """
        cdef double[MANY] scores
        cdef double[MANY] origin
        cdef const double* pair
        cdef Py_ssize_t i, size
        for i in range(min(count, MANY)):
            self.prefetch(rows[i])
        while count > 0:
            size = min(count, MANY)
            for i in range(size, min(count, 2 * size)):
                self.prefetch(rows[i])
            many_dots(self.rows, rows, size, w, self.stride, scores)
            if v is not NULL:
                many_dots(self.rows, rows, size, v, self.stride, origin)
            for i in range(size):
                pair = self.targets_and_norms + 2 * rows[i]
                scores[i] = self.loss.slope(scores[i], pair[0])
                if v is not NULL:
                    scores[i] -= self.loss.slope(origin[i], pair[0])
                scores[i] = clipped(scores[i], pair[1], bound)
            many_axpys(scores, self.rows, rows, size, total, self.stride)
            rows += size
            count -= size

    cdef Py_ssize_t add_fours(
        self, const double* w, const double* v, Batch batch, double* total
    ) noexcept nogil:
        """Add gradients at ``w``, less those at ``v`` if there is one, of long rows by fours.

        Returns how many rows are done: all but at most three.
        """
        cdef Row[FOUR] x
        cdef Row[FOUR] following
        cdef double[FOUR] to
        cdef double[FOUR] origin
        cdef double[FOUR] slopes
        cdef const double* pair
        cdef const Py_ssize_t* rows = batch.rows
        cdef Py_ssize_t k, next_row, count = batch.count
        cdef Py_ssize_t done = 0
        while done + FOUR <= count:
            for k in range(FOUR):
                next_row = rows[min(done + k + FOUR, count - 1)]
                x[k] = self.rows + rows[done + k] * self.stride
                following[k] = self.rows + next_row * self.stride
                dpcal_prefetch(self.targets_and_norms + 2 * next_row)
            if v is NULL:
                four_dots(x, following, w, self.stride, to)
            else:
                eight_dots(x, following, w, v, self.stride, to, origin)
            for k in range(FOUR):
                pair = self.targets_and_norms + 2 * rows[done + k]
                slopes[k] = self.loss.slope(to[k], pair[0])
                if v is not NULL:
                    slopes[k] -= self.loss.slope(origin[k], pair[0])
                slopes[k] = clipped(slopes[k], pair[1], batch.bound)
            four_axpys(slopes, x, following, total, self.stride)
            done += FOUR
        return done

    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil:
        cdef double total = 0
        cdef const double* pair
        cdef Py_ssize_t i
        for i in range(batch.count):
            pair = self.targets_and_norms + 2 * batch.rows[i]
            total += clipped_loss(
                self.loss.value(
                    dot(self.rows + batch.rows[i] * self.stride, w, self.stride), pair[0]
                ),
                batch.bound,
            )
        return total


def _linear(loss, X, targets, intercept):
    """Return a kernel that was pickled."""
    return LinearClippedSum(loss, X, targets, intercept=intercept)
