"""Gauss-PSGD's walk on Ada-DP-SPIDER's estimates, fused, and the sums of a trigonometric problem.

Tao et al. 2025, Algorithms 1 and 2: an estimate is a noisy gradient of unused records where the
squared movement since the last such one would reach kappa, and the estimate before plus a noisy
difference of gradients elsewhere. Clipping, noise, steps and tests happen without the interpreter
and without allocation.

>>> import numpy as np
>>> distance(np.array([3.0, 0.0]), np.array([0.0, 4.0]))
5.0
>>> kernel = TrigonometricClippedSum(np.array([[0.0, np.pi / 2]]))
>>> kernel(np.zeros(2)).round(12).tolist()  # sin(w + z)
[0.0, 1.0]
"""

cimport cython
from libc.math cimport cos, fabs, fmax, fmin, isfinite, sin, sqrt
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

from dpcal._ext.gradients cimport ClippedSum
from dpcal._ext.noise cimport add_normals, bits_of

import numpy as np

from dpcal._ext.gradients import aligned_zeros

cdef extern from "<float.h>":
    pass

cdef extern from "<math.h>":
    pass

cdef extern from "rows.h":
    double dot "dpcal_dot"(const double* a, const double* b, Py_ssize_t size) noexcept nogil

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

# How a stretch of a walk ended: all estimates were asked for; an estimate was small; the iterate
# got farther from its start than the radius; it would overflow; the next answer is not for this
# loop, for want of records or because a distance overflows.
GOING, SMALL, ESCAPED, OVERFLOW, ASIDE = range(5)

cdef enum:
    LANES = 8  # numbers in a cache line, as in dpcal._ext.gradients
    _GOING = 0
    _SMALL = 1
    _ESCAPED = 2
    _OVERFLOW = 3
    _ASIDE = 4
    _FRESH = 0
    _CHANGE = 1
    _UNMOVED = 2

cdef double UNIT = 2.0**-53  # relative rounding error of one operation

# Below this a bound is taken for zero: noise in proportion to it could itself round to zero.
cdef double NEGLIGIBLE = 1e-290


cdef double apart(const double* w, const double* v, Py_ssize_t size) noexcept nogil:
    """Return the distance of two vectors, its squares summed from the first to the last."""
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(size):
        squares += (w[j] - v[j]) * (w[j] - v[j])
    return sqrt(squares)


cdef double length(const double* w, Py_ssize_t size) noexcept nogil:
    """Return the norm of a vector, its squares summed from the first to the last."""
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(size):
        squares += w[j] * w[j]
    return sqrt(squares)


def distance(const double[::1] w not None, const double[::1] v not None):
    """Return the distance of two vectors, to the bit as compiled loops compute it.

    Parameters
    ----------
    w, v
        Shape (d,).
    """
    if w.shape[0] != v.shape[0]:
        raise ValueError(f"w and v must have one shape, got {w.shape[0]} and {v.shape[0]} numbers.")
    return apart(&w[0], &v[0], w.shape[0]) if w.shape[0] else 0.0


def norm(const double[::1] w not None):
    """Return the norm of a vector, to the bit as compiled loops compute it.

    Parameters
    ----------
    w
        Shape (d,).
    """
    return length(&w[0], w.shape[0]) if w.shape[0] else 0.0


@cython.final
cdef class TrigonometricClippedSum(ClippedSum):
    """Clipped gradient sums of the losses ``sum_j (1 - cos(w_j + z_j))``.

    By the addition theorem a sum needs the sines and cosines of records, which are taken once, and
    those of parameters, but none of both: gradients are ``cos(w) sin(z) + sin(w) cos(z)``, and
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

    cdef void add(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        cdef Py_ssize_t j
        cdef double* scratch = <double*>malloc(3 * self.stride * sizeof(double))
        if scratch is NULL:
            return  # no record contributes; what is released is noise
        for j in range(self.stride):
            scratch[j] = cos(w[j])
            scratch[self.stride + j] = sin(w[j])
        self.add_rows(scratch, 1.0, rows, count, max_norm, total)
        free(scratch)

    cdef void add_difference(
        self,
        const double* w,
        const double* v,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        cdef Py_ssize_t j
        cdef double middle, change
        cdef double largest = 0
        cdef double* scratch = <double*>malloc(3 * self.stride * sizeof(double))
        if scratch is NULL:
            return
        for j in range(self.stride):
            scratch[j] = 2 * sin((w[j] - v[j]) / 2)
            largest = fmax(largest, fabs(scratch[j]))
        if largest > 0:
            # In units of the largest entry, so that squares do not vanish.
            for j in range(self.stride):
                middle = w[j] / 2 + v[j] / 2
                change = scratch[j] / largest
                scratch[j] = -change * sin(middle)
                scratch[self.stride + j] = change * cos(middle)
            self.add_rows(scratch, largest, rows, count, max_norm, total)
        free(scratch)

    cdef void add_rows(
        self,
        double* scratch,
        double unit,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_norm,
        double* total,
    ) noexcept nogil:
        """Add ``unit (a sin(z) + b cos(z))``, clipped, for each row; scratch holds a, b and space."""
        add_turned(
            self.rows,
            rows,
            count,
            scratch,
            scratch + self.stride,
            scratch + 2 * self.stride,
            unit,
            max_norm,
            1 + (self.stride + 16) * UNIT,
            total,
            self.stride,
        )

    cdef double loss_sum(
        self,
        const double* w,
        const Py_ssize_t* rows,
        Py_ssize_t count,
        double max_loss,
    ) noexcept nogil:
        cdef double value
        cdef double total = 0
        cdef Py_ssize_t i, j
        cdef const double* row
        cdef double* scratch = <double*>malloc(2 * self.stride * sizeof(double))
        if scratch is NULL:
            return 0.0
        for j in range(self.stride):
            scratch[j] = -sin(w[j])
            scratch[self.stride + j] = cos(w[j])
        for i in range(count):
            row = self.rows + 2 * rows[i] * self.stride
            value = self.dimension - dot(row, scratch, 2 * self.stride)
            if value == value:  # one that is not a number would give its record away
                total += fmax(-max_loss, fmin(max_loss, value))
        free(scratch)
        return total


@cython.final
cdef class _Answer:
    """What the loop knows of a query: its batch, its bound, its noise, how often it is left."""

    cdef Py_ssize_t batch, left
    cdef double max_norm, cap, multiplier, size

    def __init__(self, described):
        self.batch, self.left = described["batch_size"], described["left"]
        self.max_norm, self.cap = described["max_norm"], described["cap"]
        self.multiplier = described["noise_multiplier"]
        self.size = described["expected_batch_size"]


@cython.final
cdef class _Walk:
    """The state of the walk: iterate, last point and estimate, those before, and scratch space."""

    cdef ClippedSum kernel
    cdef _Answer fresh, change
    cdef bitgen_t* noise
    cdef const Py_ssize_t[::1] rows
    cdef double l2, kappa, drift, drift_before
    cdef Py_ssize_t penalized, size, used, calls, period
    cdef bint known, known_before
    cdef double[::1] w, point, gradient, point_before, gradient_before, total

    cdef double regularized(self, const double* w, Py_ssize_t j) noexcept nogil:
        """Return an entry of the regulariser's gradient."""
        return self.l2 * w[j] if j < self.penalized else 0.0

    cdef bint has(self, _Answer answer) noexcept nogil:
        """Whether the answer may be asked, and its records are there."""
        return answer.left > 0 and self.used + answer.batch <= self.rows.shape[0]

    cdef int query(self) noexcept nogil:
        """Estimate the gradient at ``w``; return what was asked, or ``ASIDE`` with no change."""
        cdef double moved = 0
        cdef double drift = 0
        cdef bint due
        if self.known:
            moved = apart(&self.w[0], &self.point[0], self.size)
            drift = self.drift + moved * moved
        due = self.calls % self.period == 0 if self.period else drift >= self.kappa
        if not self.known or due:
            if not self.has(self.fresh):
                return -1
            self.remember()
            self.refresh()
            self.drift = 0
            return _FRESH
        if not moved > 0:
            self.remember()
            self.drift = drift
            return _UNMOVED
        if not self.has(self.change):
            return -1
        if not isfinite(fmin(self.change.max_norm * moved, self.change.cap)):
            return -1
        self.remember()
        self.correct(moved)
        self.drift = drift
        return _CHANGE

    cdef void remember(self) noexcept nogil:
        """Set the state before to the state."""
        self.known_before, self.drift_before = self.known, self.drift
        self.point_before[:] = self.point
        self.gradient_before[:] = self.gradient

    cdef void refresh(self) noexcept nogil:
        """Set the estimate to a noisy gradient at ``w``."""
        cdef Py_ssize_t j
        self.total[:] = 0.0
        self.kernel.add(
            &self.w[0],
            &self.rows[self.used],
            self.fresh.batch,
            self.fresh.max_norm,
            &self.total[0],
        )
        self.used += self.fresh.batch
        self.fresh.left -= 1
        add_normals(
            self.noise, self.fresh.multiplier * self.fresh.max_norm, &self.total[0], self.size
        )
        for j in range(self.size):
            self.gradient[j] = self.total[j] / self.fresh.size + self.regularized(&self.w[0], j)

    cdef void correct(self, double moved) noexcept nogil:
        """Add a noisy difference between ``w`` and the last point to the estimate."""
        cdef double bound = fmin(self.change.max_norm * moved, self.change.cap)
        cdef double penalty
        cdef Py_ssize_t j
        self.total[:] = 0.0
        if bound >= NEGLIGIBLE:
            self.kernel.add_difference(
                &self.w[0],
                &self.point[0],
                &self.rows[self.used],
                self.change.batch,
                bound,
                &self.total[0],
            )
            add_normals(self.noise, self.change.multiplier * bound, &self.total[0], self.size)
        self.used += self.change.batch
        self.change.left -= 1
        for j in range(self.size):
            penalty = self.regularized(&self.w[0], j) - self.regularized(&self.point[0], j)
            self.gradient[j] += self.total[j] / self.change.size + penalty

    cdef bint move(self, double learning_rate) noexcept nogil:
        """Step against the estimate; false, at the iterate before, if that overflows."""
        cdef Py_ssize_t j
        cdef double squares = 0
        for j in range(self.size):
            self.total[j] = self.w[j] - learning_rate * self.gradient[j]
            squares += self.total[j] * self.total[j]
        if not isfinite(squares):
            return False
        for j in range(self.size):
            self.w[j] = self.total[j]
        return True


def walk(
    ClippedSum kernel not None,
    double[::1] w not None,
    state,
    *,
    rows,
    fresh,
    change,
    Py_ssize_t most,
    Py_ssize_t calls,
    Py_ssize_t period,
    double kappa,
    double learning_rate,
    double threshold,
    const double[::1] start not None,
    double radius,
    noise,
    double l2,
    Py_ssize_t penalized,
):
    """Ask for at most ``most`` estimates, and step against each, in place.

    Ranges are the caller's to check: :class:`dpcal.optim.PrivateOracle` is the only caller that
    meets real records.

    Parameters
    ----------
    kernel
        Clipped sums of the records.
    w
        Iterate, shape (dimension,); overwritten.
    state
        (point, estimate, drift) of the last estimate; None makes the next one fresh.
    rows
        Unused records of the partition, in their order.
    fresh, change
        Mappings with ``batch_size``, ``left`` (how often it may be asked), ``max_norm``, ``cap``,
        ``noise_multiplier`` and ``expected_batch_size``; of a change ``max_norm`` is per unit of
        distance, and ``cap`` bounds it.
    most
        At least 1.
    calls, period
        Estimates so far; where the period is not 0, those whose number is a multiple of it are
        fresh.
    kappa
        Where the period is 0, an estimate is fresh if the drift would reach this.
    learning_rate
        Of every step.
    threshold
        An estimate no longer than this ends the stretch before a step is taken; negative for none.
    start, radius
        A step that ends as far from ``start`` as the radius ends the stretch.
    noise
        A ``numpy.random.Generator``.
    l2, penalized
        Strength >= 0 of the regulariser, and how many leading coordinates it covers.

    Returns
    -------
    tuple
        (steps, kinds, ended, state, state before the last estimate). Kinds are 0 for a fresh
        gradient, 1 for a difference, 2 for an unmoved point, shape (estimates,).
    """
    cdef Py_ssize_t d = kernel.dimension
    if w.shape[0] != d or start.shape[0] != d:
        raise ValueError(f"w and start must have shape ({d},).")
    cdef _Walk at = _Walk()
    at.kernel = kernel
    at.fresh, at.change = _Answer(fresh), _Answer(change)
    at.noise = bits_of(noise)
    at.rows = kernel.checked(rows)
    at.l2, at.kappa = l2, kappa
    at.penalized, at.size, at.calls, at.period = penalized, d, calls, period
    at.known = at.known_before = state is not None
    last = (np.asarray(w), np.asarray(w), 0.0) if state is None else state
    point, gradient, at.drift = last[0], last[1], last[2]
    at.drift_before = at.drift
    at.w, at.point = kernel.padded(w), kernel.padded(point)
    at.gradient, at.total = kernel.padded(gradient), aligned_zeros(kernel.stride)
    at.point_before, at.gradient_before = at.point.copy(), at.gradient.copy()
    kinds = np.empty(most, dtype=np.uint8)
    cdef unsigned char[::1] asked = kinds
    cdef Py_ssize_t steps = 0
    cdef Py_ssize_t estimates = 0
    cdef int ended = _GOING
    cdef int kind
    with noise.bit_generator.lock, nogil:
        while estimates < most:
            kind = at.query()
            if kind < 0:
                ended = _ASIDE
                break
            at.point[:] = at.w
            at.known = True
            at.calls += 1
            asked[estimates] = kind
            estimates += 1
            if not length(&at.gradient[0], d) > threshold:
                ended = _SMALL
                break
            if not at.move(learning_rate):
                ended = _OVERFLOW
                break
            steps += 1
            if apart(&at.w[0], &start[0], d) >= radius:
                ended = _ESCAPED
                break
    w[:] = at.w[:d]
    return steps, kinds[:estimates], ended, told(at, True), told(at, False)


cdef object told(_Walk at, bint after):
    """Return the state after the last estimate, or before it."""
    cdef Py_ssize_t d = at.size
    if not (at.known if after else at.known_before):
        return None
    point = at.point if after else at.point_before
    gradient = at.gradient if after else at.gradient_before
    drift = at.drift if after else at.drift_before
    return np.array(point[:d]), np.array(gradient[:d]), drift
