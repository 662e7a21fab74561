"""Sums of clipped gradients of models of scores, without forming a gradient.

A record's loss is a function of its K scores ``<w_k, x>``, and perhaps of a few further parameters,
the tail. So its gradient is the outer product of K factors and ``x``, and a few numbers in the tail:
all of linear and multinomial regression, and of minimax problems about linear models. The row's
norm is known beforehand, so clipping costs K numbers, however long the row is. There is one loop for
all of them, of two primitives (``rows.h``): the scores of a few rows, and the sum of these rows
times their factors. In between, a :class:`Loss` turns scores into factors, one record at a time.

A record adds at most the bound, in exact arithmetic, for the rounded numbers that are added. With u
= 2^-53: computed norms of m factors are too small by less than (m + 4) u, relatively, and are
enlarged by (m + 16) u; those of rows of d numbers by d + 4 and d + 8; a product, two roots of sums of
two squares and the enlargement itself by 8 u together, and are enlarged by 16 u. So a contribution
that is scaled by bound / norm, rounded, is below the bound by 10 u, and the three roundings of
factor, product and sum's term are below 3 u. Below the normal range, where rounding is not relative,
a quotient makes the contribution zero. A factor, or a norm, that is not finite counts as zero, and
so does a record whose row or target is not finite; but a single slope that overflows keeps its
sign, and is clipped like any other. Scores need no bound: whatever a factor is, it is clipped.

>>> import numpy as np
>>> from dpcal._ext.losses import SoftmaxLoss, SquaredLoss
>>> X, y = np.array([[3.0, 4.0]]), np.array([1.0])
>>> kernel = ClippedSum(SquaredLoss(), X, y, intercept=False)
>>> kernel(np.zeros(2), max_norm=1.0).round(12).tolist()  # (0 - 1) * (3, 4), clipped to norm 1
[-0.6, -0.8]
>>> kernel = ClippedSum(SoftmaxLoss(2), X, y, intercept=False)
>>> kernel(np.zeros(4), max_norm=1.0).round(6).tolist()  # (1/2, -1/2) times (3, 4), cut to norm 1
[0.424264, 0.565685, -0.424264, -0.565685]
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBuffer_FillInfo
from libc.float cimport DBL_MAX, DBL_MIN
from libc.math cimport INFINITY, copysign, fabs, fmax, fmin, isfinite, isnan, nextafter, sqrt
from libc.stdlib cimport abort, free, malloc
from libc.string cimport memcpy, memset

from dpcal._ext.losses cimport Loss, PointLoss, Record
from dpcal._ext.rows cimport Row, add_rows, dpcal_prefetch, scores_of

import hashlib

import numpy as np

cnp.import_array()

cdef enum:
    LANES = 8  # numbers in a cache line; rows are padded to whole lines, so the loops have no tail
    COPIED = 512  # rows copied at a time, so that making them takes little memory
    MANY = 32  # most rows taken together
    NEAR = 4096  # numbers of rows taken together, 32 KB, where these are at least four
    STACK = 256  # numbers that a sum may take from the stack

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


cdef inline double norm_of(
    const double* f, Py_ssize_t size, Py_ssize_t count, double norm
) noexcept nogil:
    """Norm of numbers, the first ``count`` times rows of a norm, rounded up; infinite if one is not finite."""
    cdef double largest = 0, squares = 0, entry
    cdef Py_ssize_t i
    for i in range(size):
        entry = f[i] * norm if i < count else f[i]
        squares += entry * entry
    if 1e-270 < squares < 1e300:
        return sqrt(squares) * (1 + (size + 16) * UNIT)
    squares = 0  # squares overflowed, or lost digits below the normal range
    for i in range(size):
        entry = f[i] * norm if i < count else f[i]
        if not isfinite(entry):
            return INFINITY
        largest = fmax(largest, fabs(entry))
    for i in range(size if largest > 0 else 0):
        entry = f[i] * norm if i < count else f[i]
        squares += (entry / largest) ** 2
    return largest * sqrt(squares) * (1 + (size + 16) * UNIT)


cdef inline double factor_of(double norm, double max_norm) noexcept nogil:
    """Return a factor for a contribution of this norm; 0 below the normal range."""
    cdef double factor = max_norm / norm if norm > max_norm else 1.0
    return factor if factor >= DBL_MIN else 0.0


cdef double* room_for(Py_ssize_t size) noexcept nogil:
    """Return room for a few thousand numbers, without which no process can go on."""
    cdef double* room = <double*>malloc(size * sizeof(double))
    if room is NULL:
        abort()
    return room


cdef int check_bound(str name, double value) except -1:
    """Refuse a bound that bounds nothing."""
    if not value > 0:
        raise ValueError(f"{name} must be a number > 0, got {value!r}.")
    return 0


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


@cython.final
cdef class ClippedSum:
    """Sums of clipped gradients, of their differences, and of clipped losses, over given rows.

    Parameters are the weights of each score, and then the loss's tail. The records are copied,
    padded with zeros to whole cache lines, and the copy is not shared: the norms that clipping
    relies on cannot come apart from the rows that they belong to. A record with a row or a target
    that is not finite contributes zero.

    Parameters
    ----------
    loss
        Of one record.
    X
        Records, shape (n, d): an array, or what has its shape and its rows ``X[a:b]``.
    targets
        Shape (n,).
    intercept
        Whether each record gets the constant feature 1 at its end, which counts in its norm.
    weights
        Numbers > 0 that losses are multiplied by, before gradients are clipped: one for targets up
        to 0 and one for others, or one for each of K > 1 classes. None for 1.
    shares, dual
        None to clip a gradient as a whole. Two shares of the bound, whose squares sum to at most 1,
        clip its last ``dual`` numbers alone, and the others alone.
    """

    def __init__(
        self,
        Loss loss not None,
        X,
        targets,
        *,
        bint intercept,
        weights=None,
        shares=None,
        Py_ssize_t dual=0,
    ):
        n, d = X.shape
        if targets.shape != (n,):
            raise ValueError(f"targets must have shape ({n},), got {targets.shape}.")
        self.loss, self.n, self.intercept, self.width = loss, n, intercept, d + intercept
        self.padded_row = (self.width + LANES - 1) // LANES * LANES
        self.taken = min(MANY, max(4, NEAR // self.padded_row // 4 * 4))
        self.point = loss if isinstance(loss, PointLoss) else None
        self.dimension = loss.scores * self.width + loss.tail
        self.stride = self.dimension + 2 * LANES if loss.tail or loss.scores > 1 else self.padded_row
        self.joint, self.dual = shares is None, dual
        self.primal_share, self.dual_share = (1.0, 1.0) if shares is None else shares
        if not (self.joint or self.primal_share**2 + self.dual_share**2 <= 1):
            raise ValueError(f"shares must have squares that sum to at most 1, got {shares}.")
        rows = aligned_zeros(n * self.padded_row)
        table = rows.reshape(n, self.padded_row)
        pairs = aligned_zeros(2 * n)
        for first in range(0, n, COPIED):
            some = slice(first, first + COPIED)
            table[some, :d], pairs[::2][some] = X[some], targets[some]
        if intercept:
            table[:, d] = 1.0
        self.weights = None if weights is None else np.array(weights, dtype=np.float64)
        self.owner = (rows, pairs)
        self.bind()

    cdef int bind(self) except -1:
        """Compute norms, and keep addresses; rows that are not finite become zero, their targets NaN."""
        cdef double[::1] rows = self.owner[0], pairs = self.owner[1], weights
        cdef Py_ssize_t i, j
        cdef bint finite
        for i in range(self.n):
            finite = True
            for j in range(i * self.padded_row, (i + 1) * self.padded_row):
                finite &= isfinite(rows[j])
            if not finite:
                rows[i * self.padded_row : (i + 1) * self.padded_row] = 0.0
                pairs[2 * i] = np.nan
            pairs[2 * i + 1] = norm_rounded_up(&rows[i * self.padded_row], self.width)
            if self.point is None and not 0 <= pairs[2 * i] < self.loss.scores and self.loss.scores > 1:
                pairs[2 * i] = np.nan  # no class
        self.rows, self.targets_and_norms = &rows[0], &pairs[0]
        if self.weights is not None:
            weights = self.weights
            if weights.shape[0] != max(2, self.loss.scores):
                raise ValueError(f"weights must be one for each class, got {self.weights}.")
            self.class_weights = &weights[0]
        return 0

    def __reduce__(self):
        table = np.ascontiguousarray(self.features[:, : self.width - self.intercept])
        given = self.loss, table, self.targets, self.intercept, self.weights
        return _again, (*given, None if self.joint else (self.primal_share, self.dual_share), self.dual)

    def __call__(self, w, rows=None, *, v=None, double max_norm=INFINITY):
        """Return the sum of clipped gradients over ``rows``, all of them when omitted.

        Parameters
        ----------
        w, v
            Parameters, shape (dimension,): gradients at ``w``, less those at ``v`` if it is given.
        rows
            Row numbers in [0, n), any order, repetitions counted.
        max_norm
            Bound > 0 on each record's contribution; infinite for none.
        """
        cdef const Py_ssize_t[::1] index = self.checked(rows)
        check_bound("max_norm", max_norm)
        cdef const double[::1] to = self.padded(w)
        cdef const double[::1] origin = to if v is None else self.padded(v)
        cdef bint differs = v is not None
        made = aligned_zeros(self.stride)
        cdef double[::1] total = made
        if index.shape[0]:
            with nogil:
                self.add(
                    &to[0],
                    &origin[0] if differs else NULL,
                    Batch(&index[0], index.shape[0], max_norm),
                    &total[0],
                )
        return made[: self.dimension].copy()

    def losses(self, w, rows=None, *, double max_loss=INFINITY):
        """Return the sum over ``rows`` of losses, each clipped to [-max_loss, max_loss].

        ``w`` and ``rows`` are as in a call; ``max_loss`` > 0 may be infinite.
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

    def digest(self):
        """Return 32 bytes that tell data sets apart; a secret, like the records."""
        state = hashlib.blake2b(digest_size=32)
        state.update(repr((self.n, self.dimension, self.intercept)).encode())
        for part in self.owner:
            state.update(part.data)
        return state.digest()

    @property
    def curvature(self):
        """That of the loss, times the largest weight."""
        return self.loss.curvature * (1.0 if self.weights is None else self.weights.max())

    @property
    def norms(self):
        """The rows' norms, rounded up, shape (n,)."""
        return self.owner[1][1::2].copy()

    @property
    def features(self):
        """The records, shape (n, d), with the constant feature; cannot be written to."""
        return sealed(self.owner[0]).reshape(self.n, self.padded_row)[:, : self.width]

    @property
    def targets(self):
        """The targets, shape (n,)."""
        return self.owner[1][::2].copy()

    cdef inline Row near(self, Py_ssize_t row) noexcept nogil:
        """Return a row, and let its target come."""
        dpcal_prefetch(self.targets_and_norms + 2 * row)
        return self.rows + row * self.padded_row

    cdef inline double weight(self, double target) noexcept nogil:
        if self.class_weights is NULL:
            return 1.0
        return self.class_weights[<Py_ssize_t>target if self.loss.scores > 1 else target > 0]

    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil:
        """Add to ``total`` the gradients at ``w``, less those at ``v`` unless it is NULL.

        ``w``, ``v`` and ``total`` hold ``stride`` numbers, of which those from ``dimension`` on are
        zero and stay zero. The next rows are fetched while some are summed.
        """
        cdef Row[MANY] x
        cdef Row[MANY] following
        cdef double[STACK] near
        cdef Py_ssize_t K = self.loss.scores, E = self.loss.tail, i, k, size, more
        # Scores of some rows at both points, and the contribution of one record.
        cdef Py_ssize_t needed = 2 * MANY * K + 2 * (K + E)
        cdef double* room = near
        cdef double* origin
        if needed > STACK:
            room = room_for(needed)
        origin = room + MANY * K
        more = min(batch.count, self.taken)
        for i in range(more):
            following[i] = self.near(batch.rows[i])
            for k in range(0, self.padded_row, 8):
                dpcal_prefetch(following[i] + k)
        while batch.count > 0:
            size, more = more, min(batch.count - more, self.taken)
            memcpy(x, following, size * sizeof(Row))
            for i in range(more):
                following[i] = self.near(batch.rows[size + i])
            for k in range(K):
                scores_of(
                    x, NULL if k else following, size, w + k * self.width, self.padded_row, room + k, K
                )
                if v is not NULL:
                    scores_of(x, NULL, size, v + k * self.width, self.padded_row, origin + k, K)
            if self.point is not None:
                self.points(room, NULL if v is NULL else origin, batch, size)
            else:
                self.factors(w, v, room, batch, size, total)
            for k in range(K):
                add_rows(
                    room + k, K, x, NULL if k else following, size, total + k * self.width, self.padded_row
                )
            batch.rows += size
            batch.count -= size
        if needed > STACK:
            free(room)

    cdef inline void points(
        self, double* scores, const double* origin, Batch batch, Py_ssize_t size
    ) noexcept nogil:
        """Write clipped slopes of losses of one score in place of the scores."""
        cdef const double* pair
        cdef Py_ssize_t i
        for i in range(size):
            pair = self.targets_and_norms + 2 * batch.rows[i]
            scores[i] = self.point.slope(scores[i], pair[0])
            if origin is not NULL:
                scores[i] -= self.point.slope(origin[i], pair[0])
            scores[i] = clipped(scores[i] * self.weight(pair[0]), pair[1], batch.bound)

    cdef void factors(
        self,
        const double* w,
        const double* v,
        double* scores,
        Batch batch,
        Py_ssize_t size,
        double* total,
    ) noexcept nogil:
        """Write clipped factors in place of the scores, and add what is in the tail."""
        cdef Py_ssize_t K = self.loss.scores, E = self.loss.tail, end = K * self.width, row, i, k
        cdef const double* pair
        cdef double* out = scores + 2 * MANY * K
        cdef double* before = out + K + E
        cdef double weight, primal, dual
        cdef Record at
        for i in range(size):
            pair = self.targets_and_norms + 2 * batch.rows[i]
            if isnan(pair[0]):
                memset(scores + i * K, 0, K * sizeof(double))
                continue
            row = batch.rows[i]
            at = Record(scores + i * K, w + end, pair[0], row)
            self.loss.slopes(&at, out)
            if v is not NULL:
                at.scores, at.tail = scores + (MANY + i) * K, v + end
                self.loss.slopes(&at, before)
                for k in range(K + E):
                    out[k] -= before[k]
            weight = self.weight(pair[0])
            for k in range(K + E if weight != 1 else 0):
                out[k] *= weight
            self.clip(out, pair[1], batch.bound, &primal, &dual)
            for k in range(K):
                scores[i * K + k] = out[k] * primal
            for k in range(E - self.dual):
                total[end + k] += out[K + k] * primal
            for k in range(E - self.dual, E):
                total[end + k] += out[K + k] * dual

    cdef inline void clip(
        self, double* out, double norm, double bound, double* primal, double* dual
    ) noexcept nogil:
        """Compute what shortens K factors of a row of this norm, and the tail, to the bound."""
        cdef Py_ssize_t size = self.loss.scores + self.loss.tail, last = 0 if self.joint else self.dual
        cdef double first = norm_of(out, size - last, self.loss.scores, norm), second = 0
        if last:
            second = norm_of(out + size - last, last, 0, 1.0)
        if not isfinite(first + second):
            memset(out, 0, size * sizeof(double))
        primal[0] = factor_of(first, bound * self.primal_share)
        dual[0] = factor_of(second, bound * self.dual_share) if last else primal[0]

    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil:
        cdef double total = 0, value
        cdef double[STACK] near
        cdef double* scores = near
        cdef Row x
        cdef Record at
        cdef const double* pair
        cdef Py_ssize_t i, k, K = self.loss.scores
        if K > STACK:
            scores = room_for(K)
        for i in range(batch.count):
            x = self.rows + batch.rows[i] * self.padded_row
            pair = self.targets_and_norms + 2 * batch.rows[i]
            if isnan(pair[0]):
                continue
            for k in range(K):
                scores_of(&x, NULL, 1, w + k * self.width, self.padded_row, scores + k, 1)
            at = Record(scores, w + K * self.width, pair[0], batch.rows[i])
            value = self.loss.value(&at)
            # A NaN in the sum would reveal its record.
            value *= self.weight(pair[0])
            total += fmax(-batch.bound, fmin(batch.bound, value)) if value == value else 0.0
        if K > STACK:
            free(scores)
        return total


def _again(loss, X, targets, intercept, weights, shares, dual):
    """Return a kernel that was pickled."""
    given = {"intercept": intercept, "weights": weights, "shares": shares, "dual": dual}
    return ClippedSum(loss, X, targets, **given)
