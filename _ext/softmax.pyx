"""Sums of clipped per-record gradients of multinomial logistic regression.

The gradient of one record is the outer product of ``p - e_y`` (probabilities minus the class) and
x: its norm is ``||p - e_y|| ||x||``, so clipping costs K numbers, whatever the dimension is. Where
records are sampled they would have to be gathered for BLAS; a kernel reads each where it is.

>>> import numpy as np
>>> kernel = SoftmaxClippedSum(
...     np.array([[3.0, 4.0]]), np.array([1]), 2, norms=np.array([5.0]), intercept=False)
>>> kernel(np.zeros(4), max_norm=1.0).round(6).tolist()  # (1/2, -1/2) times (3, 4), cut to norm 1
[0.424264, 0.565685, -0.424264, -0.565685]
"""

cimport cython
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, exp, fabs, fmax, isfinite, log, nextafter, sqrt

from dpcal._ext.gradients cimport Batch, ClippedSum, clipped_loss

import hashlib

import numpy as np

from dpcal._ext.gradients import aligned_zeros, sealed

cdef enum:
    LANES = 8
    MOST = 64  # classes; their factors live on the stack, so that threads may share a kernel

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(DPCAL_BASELINE)
    #define DPCAL_WIDER __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define DPCAL_WIDER
    #endif
    #if defined(_MSC_VER)
    #define restrict __restrict
    #endif

    /* Inner products of x with each of the K rows of w, d apart; size is a multiple of 8. */
    DPCAL_WIDER static void dpcal_scores(
        const double *x, const double *w, Py_ssize_t K, Py_ssize_t d, Py_ssize_t size, double *out
    ) {
        Py_ssize_t k = 0;
        for (; k + 2 <= K; k += 2) {
            const double *a = w + k * d, *b = a + d;
            double s[8] = {0}, t[8] = {0};
            for (Py_ssize_t i = 0; i < size; i += 8)
                for (int lane = 0; lane < 8; lane++) {
                    s[lane] += x[i + lane] * a[i + lane];
                    t[lane] += x[i + lane] * b[i + lane];
                }
            out[k] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
            out[k + 1] = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
        }
        for (; k < K; k++) {
            const double *a = w + k * d;
            double s[8] = {0};
            for (Py_ssize_t i = 0; i < size; i += 8)
                for (int lane = 0; lane < 8; lane++)
                    s[lane] += x[i + lane] * a[i + lane];
            out[k] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        }
    }

    /* Add each factor times x to its row of y, d apart. */
    DPCAL_WIDER static void dpcal_outer(
        const double *factors, const double *restrict x, double *restrict y, Py_ssize_t K,
        Py_ssize_t d
    ) {
        for (Py_ssize_t k = 0; k < K; k++) {
            double *restrict row = y + k * d;
            const double f = factors[k];
            for (Py_ssize_t i = 0; i < d; i++)
                row[i] += f * x[i];
        }
    }
    """
    void scores_of "dpcal_scores"(
        const double* x, const double* w, Py_ssize_t K, Py_ssize_t d, Py_ssize_t size, double* out
    ) noexcept nogil
    void outer "dpcal_outer"(
        const double* factors, const double* x, double* y, Py_ssize_t K, Py_ssize_t d
    ) noexcept nogil

MOST_CLASSES = MOST


@cython.final
cdef class SoftmaxClippedSum(ClippedSum):
    """Clipped gradient sums of multinomial logistic regression.

    Parameters
    ----------
    X
        Records, shape (n, d), finite. Copied, so that norms cannot come apart from rows.
    labels
        Class of each record, in [0, K), shape (n,). Labels and norms that cannot be written to are
        kept, others are copied.
    classes
        K, at least 2 and at most ``MOST_CLASSES``.
    norms
        Norms of the records, the constant feature included, rounded up; shape (n,).
    intercept
        Whether there are K intercepts, behind the K weight vectors.
    class_weights
        What the loss of a record of each class is multiplied by, before gradients are clipped;
        shape (K,), finite, > 0. All are 1 when omitted.
    """

    cdef object owner
    cdef object class_weights
    cdef const double* rows
    cdef const double* norms
    cdef const Py_ssize_t* labels
    cdef const double* weights
    cdef Py_ssize_t K, d, padded_d
    cdef bint intercept

    def __init__(
        self, X, labels, Py_ssize_t classes, *, norms, bint intercept, class_weights=None
    ):
        self.n, self.d = X.shape
        if not 2 <= classes <= MOST:
            raise ValueError(f"classes must be in [2, {MOST}], got {classes}.")
        if labels.shape != (self.n,) or norms.shape != (self.n,):
            raise ValueError(f"labels and norms must have shape ({self.n},).")
        if labels.min() < 0 or labels.max() >= classes:
            raise ValueError(f"labels must be in [0, {classes}).")
        self.K = classes
        self.intercept = intercept
        self.padded_d = (self.d + LANES - 1) // LANES * LANES
        self.dimension = classes * (self.d + intercept)
        # Room for reading a whole padded row of the last class, where records have zeros.
        self.stride = (self.dimension + 2 * LANES - 1) // LANES * LANES
        rows = aligned_zeros(self.n * self.padded_d)
        rows.reshape(self.n, self.padded_d)[:, : self.d] = X
        own_labels = np.array(labels, dtype=np.intp, copy=labels.flags.writeable or None)
        own_norms = np.array(norms, dtype=np.float64, copy=norms.flags.writeable or None)
        cdef const double[::1] rows_view = rows
        cdef const Py_ssize_t[::1] labels_view = own_labels
        cdef const double[::1] norms_view = own_norms
        own_weights = np.array(
            np.ones(classes) if class_weights is None else class_weights, dtype=np.float64
        )
        if own_weights.shape != (classes,):
            raise ValueError(f"class_weights must have shape ({classes},).")
        cdef const double[::1] weights_view = own_weights
        self.owner = (rows, own_labels, own_norms)
        self.class_weights = own_weights
        self.weights = &weights_view[0]
        self.rows = &rows_view[0]
        self.labels = &labels_view[0]
        self.norms = &norms_view[0]

    def __reduce__(self):
        labels, norms = (sealed(each) for each in self.owner[1:])
        return _softmax, (
            self.features, labels, self.K, norms, self.intercept, self.class_weights
        )

    def digest(self):
        """Return 32 bytes that tell data sets apart; a secret, like the records."""
        state = hashlib.blake2b(digest_size=32)
        state.update(repr((self.n, self.d, self.K, self.intercept)).encode())
        for part in self.owner:
            state.update(part.data)
        return state.digest()

    @property
    def features(self):
        """The records, shape (n, d), without the constant feature; cannot be written to."""
        return sealed(self.owner[0]).reshape(self.n, self.padded_d)[:, : self.d]

    cdef void scores(self, const double* w, Py_ssize_t row, double* out) noexcept nogil:
        cdef Py_ssize_t k
        scores_of(self.rows + row * self.padded_d, w, self.K, self.d, self.padded_d, out)
        if self.intercept:
            for k in range(self.K):
                out[k] += w[self.K * self.d + k]

    cdef void residuals(self, const double* w, Py_ssize_t row, double* out) noexcept nogil:
        """Weighted probabilities minus the class; zero where scores overflow to no number."""
        cdef double largest = -INFINITY
        cdef double total = 0
        cdef Py_ssize_t k
        self.scores(w, row, out)
        for k in range(self.K):
            largest = fmax(largest, out[k])
        for k in range(self.K):
            out[k] = exp(out[k] - largest)
            total += out[k]
        for k in range(self.K):
            out[k] = out[k] / total if isfinite(total) else 0.0
        if isfinite(total):
            out[self.labels[row]] -= 1.0
            for k in range(self.K):
                out[k] *= self.weights[self.labels[row]]

    cdef void clip_and_add(
        self, double* factors, Py_ssize_t row, double max_norm, double* total
    ) noexcept nogil:
        """Add the outer product of factors and the record, scaled down to norm ``max_norm``."""
        cdef double largest = 0
        cdef double squares = 0
        cdef double norm
        cdef Py_ssize_t k
        for k in range(self.K):
            largest = fmax(largest, fabs(factors[k]))
        if largest == 0:
            return
        for k in range(self.K):  # scaled, so that squares do not vanish
            squares += (factors[k] / largest) * (factors[k] / largest)
        norm = largest * sqrt(squares) * (1 + (self.K + 8) * 2.0**-53)
        # Rounded up once more, for the outer product is rounded once more than a row.
        norm = nextafter(nextafter(norm, INFINITY) * self.norms[row], INFINITY)
        if norm > max_norm:
            # Below the normal range a quotient is rounded by more than the norm's slack makes up
            # for; such a record contributes nothing.
            if max_norm / norm < DBL_MIN:
                return
            for k in range(self.K):
                factors[k] *= max_norm / norm
        outer(factors, self.rows + row * self.padded_d, total, self.K, self.d)
        if self.intercept:
            for k in range(self.K):
                total[self.K * self.d + k] += factors[k]

    cdef void add(self, const double* w, const double* v, Batch batch, double* total) noexcept nogil:
        cdef double[MOST] factors
        cdef double[MOST] origin
        cdef Py_ssize_t i, k, row
        for i in range(batch.count):
            row = batch.rows[i]
            self.residuals(w, row, factors)
            if v is not NULL:
                self.residuals(v, row, origin)
                for k in range(self.K):
                    factors[k] -= origin[k]
            self.clip_and_add(factors, row, batch.bound, total)

    cdef double loss_sum(self, const double* w, Batch batch) noexcept nogil:
        cdef double[MOST] scores
        cdef double largest, weight, value
        cdef double total = 0
        cdef Py_ssize_t i, k, label
        for i in range(batch.count):
            label = self.labels[batch.rows[i]]
            self.scores(w, batch.rows[i], scores)
            largest = -INFINITY
            weight = 0
            for k in range(self.K):
                largest = fmax(largest, scores[k])
            for k in range(self.K):
                weight += exp(scores[k] - largest)
            value = (largest + log(weight) if isfinite(largest) else largest) - scores[label]
            total += clipped_loss(value * self.weights[label], batch.bound)
        return total


def _softmax(X, labels, classes, norms, intercept, class_weights):
    """Return a kernel that was pickled."""
    return SoftmaxClippedSum(
        X, labels, classes, norms=norms, intercept=intercept, class_weights=class_weights
    )
