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
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, copysign, exp, expm1, fabs, fmax, fmin, log1p, nextafter, sqrt

import numpy as np

ctypedef const double* Row

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define dpcal_prefetch(address) __builtin_prefetch(address)
    #else
    #define dpcal_prefetch(address) ((void)(address))
    #endif

    #if defined(_MSC_VER)
    #define restrict __restrict
    #endif

    /* Where the loader can choose, these two are compiled for wider registers as well. The order of
       every addition is written out and products are never fused into sums, so that all versions
       give the same bits. */
    #if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
    #define DPCAL_WIDER __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define DPCAL_WIDER
    #endif

    /* Inner product in eight partial sums; size is a multiple of 8. */
    DPCAL_WIDER static double dpcal_dot(const double *a, const double *b, Py_ssize_t size) {
        double s[8] = {0};
        for (Py_ssize_t i = 0; i < size; i += 8)
            for (int lane = 0; lane < 8; lane++)
                s[lane] += a[i + lane] * b[i + lane];
        return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }

    /* Inner products of a with b and with c, to the bit as above. The two chains of additions hide
       each other's latency, but only where the compiler is told that lanes are one register. */
    #if defined(__GNUC__) || defined(__clang__)
    DPCAL_WIDER static void dpcal_two_dots(
        const double *a, const double *b, const double *c, Py_ssize_t size, double *ab, double *ac
    ) {
        typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
        lanes s = {0}, t = {0};
        for (Py_ssize_t i = 0; i < size; i += 8) {
            lanes x = *(const lanes *)(a + i);
            s += x * *(const lanes *)(b + i);
            t += x * *(const lanes *)(c + i);
        }
        *ab = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        *ac = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
    }
    #else
    static void dpcal_two_dots(
        const double *a, const double *b, const double *c, Py_ssize_t size, double *ab, double *ac
    ) {
        *ab = dpcal_dot(a, b, size);
        *ac = dpcal_dot(a, c, size);
    }
    #endif

    /* y += factor * x */
    DPCAL_WIDER static void dpcal_axpy(
        double factor, const double *restrict x, double *restrict y, Py_ssize_t size
    ) {
        for (Py_ssize_t i = 0; i < size; i++)
            y[i] += factor * x[i];
    }

    /* The same for four rows at once, to the bit: they share the reading of b, c and y. Long rows
       have one loop's time to arrive: in the meantime it asks for two of the next four. */
    #if defined(__GNUC__) || defined(__clang__)
    #define DPCAL_LANES(a) (*(const lanes *)((a) + i))
    #define DPCAL_SUM(s) (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))
    DPCAL_WIDER static void dpcal_four_dots(
        const double *const *x, const double *const *next, const double *b, Py_ssize_t size,
        double *xb
    ) {
        typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
        const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
        lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (Py_ssize_t i = 0; i < size; i += 8) {
            dpcal_prefetch(next[0] + i);
            dpcal_prefetch(next[1] + i);
            lanes u = DPCAL_LANES(b);
            s0 += DPCAL_LANES(x0) * u;
            s1 += DPCAL_LANES(x1) * u;
            s2 += DPCAL_LANES(x2) * u;
            s3 += DPCAL_LANES(x3) * u;
        }
        xb[0] = DPCAL_SUM(s0);
        xb[1] = DPCAL_SUM(s1);
        xb[2] = DPCAL_SUM(s2);
        xb[3] = DPCAL_SUM(s3);
    }
    DPCAL_WIDER static void dpcal_eight_dots(
        const double *const *x, const double *const *next, const double *b, const double *c,
        Py_ssize_t size, double *xb, double *xc
    ) {
        typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
        const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
        lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};
        for (Py_ssize_t i = 0; i < size; i += 8) {
            dpcal_prefetch(next[0] + i);
            dpcal_prefetch(next[1] + i);
            lanes u = DPCAL_LANES(b), v = DPCAL_LANES(c);
            lanes r = DPCAL_LANES(x0);
            s0 += r * u;
            t0 += r * v;
            r = DPCAL_LANES(x1);
            s1 += r * u;
            t1 += r * v;
            r = DPCAL_LANES(x2);
            s2 += r * u;
            t2 += r * v;
            r = DPCAL_LANES(x3);
            s3 += r * u;
            t3 += r * v;
        }
        xb[0] = DPCAL_SUM(s0);
        xb[1] = DPCAL_SUM(s1);
        xb[2] = DPCAL_SUM(s2);
        xb[3] = DPCAL_SUM(s3);
        xc[0] = DPCAL_SUM(t0);
        xc[1] = DPCAL_SUM(t1);
        xc[2] = DPCAL_SUM(t2);
        xc[3] = DPCAL_SUM(t3);
    }
    #else
    static void dpcal_four_dots(
        const double *const *x, const double *const *next, const double *b, Py_ssize_t size,
        double *xb
    ) {
        for (int k = 0; k < 4; k++)
            xb[k] = dpcal_dot(x[k], b, size);
    }
    static void dpcal_eight_dots(
        const double *const *x, const double *const *next, const double *b, const double *c,
        Py_ssize_t size, double *xb, double *xc
    ) {
        for (int k = 0; k < 4; k++)
            dpcal_two_dots(x[k], b, c, size, xb + k, xc + k);
    }
    #endif

    DPCAL_WIDER static void dpcal_four_axpys(
        const double *factors, const double *const *x, const double *const *next,
        double *restrict y, Py_ssize_t size
    ) {
        const double f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
        const double *restrict x0 = x[0], *restrict x1 = x[1];
        const double *restrict x2 = x[2], *restrict x3 = x[3];
        for (Py_ssize_t i = 0; i < size; i += 8) {
            dpcal_prefetch(next[2] + i);
            dpcal_prefetch(next[3] + i);
            for (Py_ssize_t j = i; j < i + 8; j++)
                y[j] = (((y[j] + f0 * x0[j]) + f1 * x1[j]) + f2 * x2[j]) + f3 * x3[j];
        }
    }
    """
    void dpcal_prefetch(const void* address) noexcept nogil
    double dot "dpcal_dot"(const double* a, const double* b, Py_ssize_t size) noexcept nogil
    void two_dots "dpcal_two_dots"(
        const double* a,
        const double* b,
        const double* c,
        Py_ssize_t size,
        double* ab,
        double* ac,
    ) noexcept nogil
    void axpy "dpcal_axpy"(
        double factor, const double* x, double* y, Py_ssize_t size
    ) noexcept nogil
    void four_dots "dpcal_four_dots"(
        Row* x, const Row* next, const double* b, Py_ssize_t size, double* xb
    ) noexcept nogil
    void eight_dots "dpcal_eight_dots"(
        Row* x,
        Row* next,
        const double* b,
        const double* c,
        Py_ssize_t size,
        double* xb,
        double* xc,
    ) noexcept nogil
    void four_axpys "dpcal_four_axpys"(
        const double* factors,
        Row* x,
        Row* next,
        double* y,
        Py_ssize_t size,
    ) noexcept nogil

cdef enum:
    LANES = 8  # numbers in a cache line; rows are padded to whole lines, so the loops have no tail
    AHEAD = 8  # rows fetched before their turn; many more evict one another from the nearest cache
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
        return copysign(fmin(max_norm / norm, DBL_MAX), slope)
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


cpdef object aligned_zeros(Py_ssize_t size):
    """Return ``size`` zeros whose first byte starts a cache line."""
    raw = np.zeros(size + LANES)
    cdef size_t past_line = <size_t>raw.ctypes.data % (LANES * sizeof(double)) // sizeof(double)
    cdef Py_ssize_t start = LANES - <Py_ssize_t>past_line
    return raw[start : start + size]


cdef class PointLoss:
    """Loss of one score against one target, and its derivative with respect to the score."""

    cdef double value(self, double score, double target) noexcept nogil:
        return 0.0

    cdef double slope(self, double score, double target) noexcept nogil:
        return 0.0


@cython.final
cdef class LogisticLoss(PointLoss):
    """``log(1 + exp(-target * score))``, target in {-1, +1}."""

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


cdef class ClippedSum:
    """What a private step asks of its records: the sum of clipped gradients over given rows.

    Subclasses implement ``add`` and ``add_difference``, which add to ``total``, and ``loss_sum``.
    ``w``, ``v`` and ``total`` hold ``stride`` numbers, of which those from ``dimension`` on are
    zero and stay zero. No record's contribution may have a norm above ``max_norm``, nor a size
    above ``max_loss``.
    """

    cdef void add(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        pass

    cdef void add_difference(
        self,
        const double* w,
        const double* v,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        pass

    cdef double loss_sum(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_loss,
    ) noexcept nogil:
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
        cdef const Py_ssize_t[::1] index = self.checked(rows)
        check_bound("max_norm", max_norm)
        total = aligned_zeros(self.stride)
        cdef double[::1] total_view = total
        cdef const double[::1] parameters = self.padded(w)
        if index.shape[0]:
            with nogil:
                self.add(
                    &parameters[0], &index[0], index.shape[0], max_norm, &total_view[0]
                )
        return total[: self.dimension].copy()

    def difference(self, w, v, rows=None, *, double max_norm=INFINITY):
        """Return the sum over ``rows`` of clipped differences, gradient at ``w`` minus at ``v``.

        Parameters
        ----------
        w, v
            Parameters, shape (dimension,).
        rows, max_norm
            As in a call: the bound is on each record's difference.
        """
        cdef const Py_ssize_t[::1] index = self.checked(rows)
        check_bound("max_norm", max_norm)
        total = aligned_zeros(self.stride)
        cdef double[::1] total_view = total
        cdef const double[::1] to = self.padded(w)
        cdef const double[::1] origin = self.padded(v)
        if index.shape[0]:
            with nogil:
                self.add_difference(
                    &to[0], &origin[0], &index[0], index.shape[0], max_norm, &total_view[0]
                )
        return total[: self.dimension].copy()

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
                total = self.loss_sum(&parameters[0], &index[0], index.shape[0], max_loss)
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


@cython.final
cdef class LinearClippedSum(ClippedSum):
    """Clipped gradient sums of a linear model.

    The records are copied, padded with zeros to whole cache lines, and nobody else holds the copy:
    the norms that clipping relies on cannot come apart from the rows that they belong to.

    Parameters
    ----------
    loss
        The loss of one score.
    X
        Records, shape (n, d), finite.
    targets
        Shape (n,), finite.
    intercept
        Whether each record gets the constant feature 1 at its end, which counts in its norm.
    """

    cdef PointLoss loss
    cdef object owner
    cdef double* rows
    cdef double* targets_and_norms

    def __init__(self, PointLoss loss not None, X, targets, *, bint intercept):
        n, d = X.shape
        if targets.shape != (n,):
            raise ValueError(f"targets must have shape ({n},), got {targets.shape}.")
        self.loss = loss
        self.n = n
        self.dimension = d + intercept
        self.stride = (self.dimension + LANES - 1) // LANES * LANES
        rows = aligned_zeros(n * self.stride)
        table = rows.reshape(n, self.stride)
        table[:, :d] = X
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

    @property
    def norms(self):
        """The rows' norms, rounded up, shape (n,)."""
        return self.owner[1][1::2].copy()

    @property
    def features(self):
        """The records, shape (n, dimension), with the constant feature if there is one."""
        return self.owner[0].reshape(self.n, self.stride)[:, : self.dimension].copy()

    @property
    def targets(self):
        """The targets, shape (n,)."""
        return self.owner[1][::2].copy()

    def mean_loss(self, w):
        """Return the mean loss over all records. Not private."""
        cdef const double[::1] parameters = self.padded(w)
        cdef double total = 0
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.n):
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

    cdef void add(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        cdef const double* x
        cdef const double* pair
        cdef double slope
        cdef Py_ssize_t i
        cdef Py_ssize_t done = self.add_fours(w, NULL, rows, count, max_norm, total)
        for i in range(done, min(count, done + AHEAD)):
            self.prefetch(rows[i])
        for i in range(done, count):
            if i + AHEAD < count:
                self.prefetch(rows[i + AHEAD])
            x = self.rows + rows[i] * self.stride
            pair = self.targets_and_norms + 2 * rows[i]
            slope = self.loss.slope(dot(x, w, self.stride), pair[0])
            slope = clipped(slope, pair[1], max_norm)
            if slope != 0:
                axpy(slope, x, total, self.stride)

    cdef void add_difference(
        self,
        const double* w,
        const double* v,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        cdef const double* x
        cdef const double* pair
        cdef double slope, to, origin
        cdef Py_ssize_t i
        cdef Py_ssize_t done = self.add_fours(w, v, rows, count, max_norm, total)
        for i in range(done, min(count, done + AHEAD)):
            self.prefetch(rows[i])
        for i in range(done, count):
            if i + AHEAD < count:
                self.prefetch(rows[i + AHEAD])
            x = self.rows + rows[i] * self.stride
            pair = self.targets_and_norms + 2 * rows[i]
            two_dots(x, w, v, self.stride, &to, &origin)
            slope = self.loss.slope(to, pair[0]) - self.loss.slope(origin, pair[0])
            slope = clipped(slope, pair[1], max_norm)
            if slope != 0:
                axpy(slope, x, total, self.stride)

    cdef Py_ssize_t add_fours(
        self,
        const double* w,
        const double* v,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        """Add gradients at ``w``, less those at ``v`` if there is one, of rows by fours if long.

        Returns how many rows are done; of what is left there are less than four, or all are short.
        """
        cdef Row[FOUR] x
        cdef Row[FOUR] following
        cdef double[FOUR] to
        cdef double[FOUR] origin
        cdef double[FOUR] slopes
        cdef const double* pair
        cdef Py_ssize_t k, next_row
        cdef Py_ssize_t done = 0
        if self.stride < LONG:
            return 0
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
                slopes[k] = clipped(slopes[k], pair[1], max_norm)
            four_axpys(slopes, x, following, total, self.stride)
            done += FOUR
        return done

    cdef double loss_sum(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_loss,
    ) noexcept nogil:
        cdef double value
        cdef double total = 0
        cdef Py_ssize_t i
        for i in range(count):
            value = self.loss.value(
                dot(self.rows + rows[i] * self.stride, w, self.stride),
                self.targets_and_norms[2 * rows[i]],
            )
            if value == value:  # one that is not a number would give its record away
                total += fmax(-max_loss, fmin(max_loss, value))
        return total
