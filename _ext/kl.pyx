"""Two loops on all records, fused: adaptive gradient descent, and descent pulled to a centre.

Menart et al. 2024, Algorithms 3 and 4. Nothing is allocated per step and the interpreter lock is
released throughout. The norm and the gradient of a step are two releases about one sum, which is
taken once.
"""

cimport cython
from libc.math cimport INFINITY, fmax, isfinite, nextafter, sqrt
from numpy.random cimport bitgen_t

from dpcal._ext.gradients cimport ClippedSum
from dpcal._ext.noise cimport add_normals, bits_of

from dpcal._ext.gradients import aligned_zeros

import numpy as np

# How a stretch of adaptive descent ended.
GOING, NO_NORM, LOST, NO_GRADIENT, NOT_FINITE = range(5)

cdef enum:
    _GOING = 0
    _NO_NORM = 1
    _LOST = 2
    _NO_GRADIENT = 3
    _NOT_FINITE = 4


@cython.final
cdef class _Sums:
    """Clipped sums over all records, with the regulariser's part, and a stream of noise."""

    cdef ClippedSum kernel
    cdef bitgen_t* noise
    cdef double max_norm, n, l2
    cdef Py_ssize_t size, penalized
    cdef double[::1] w, total
    cdef const Py_ssize_t[::1] rows

    cdef void take(self) noexcept nogil:
        """Set ``total`` to the sum of clipped gradients of all records."""
        self.total[:] = 0.0
        self.kernel.add(
            &self.w[0], &self.rows[0], self.kernel.n, self.max_norm, &self.total[0]
        )

    cdef double regularized(self, Py_ssize_t j) noexcept nogil:
        """Return an entry of the regulariser's gradient."""
        return self.l2 * self.w[j] if j < self.penalized else 0.0

    cdef double norm(self) noexcept nogil:
        """Return the norm of the sum, the regulariser included."""
        cdef double squares = 0, entry
        cdef Py_ssize_t j
        for j in range(self.size):
            entry = self.total[j] + self.n * self.regularized(j)
            squares += entry * entry
        return sqrt(squares)

    cdef double gradient(self, Py_ssize_t j) noexcept nogil:
        """Return an entry of the (noisy) mean gradient."""
        return self.total[j] / self.n + self.regularized(j)


cdef _Sums sums(ClippedSum kernel, w, noise, double max_norm, double l2, Py_ssize_t penalized):
    cdef _Sums made = _Sums()
    if w.shape[0] != kernel.dimension:
        raise ValueError(f"w must have shape ({kernel.dimension},).")
    made.kernel = kernel
    made.noise = bits_of(noise)
    made.max_norm = max_norm
    made.n = kernel.n
    made.l2 = l2
    made.size = kernel.dimension
    made.penalized = penalized
    made.w = kernel.padded(w)
    made.total = aligned_zeros(kernel.stride)
    made.rows = np.arange(kernel.n, dtype=np.intp)
    return made


def adaptive_descent(
    ClippedSum kernel not None,
    double[::1] w not None,
    *,
    Py_ssize_t steps,
    noise,
    double max_norm,
    double l2,
    Py_ssize_t penalized,
    double learning_rate,
    double norm_multiplier,
    double unit,
    double least,
    double budget,
    double spent,
    double norm_share,
    double smallest,
    double[::1] best not None,
    double[::1] multipliers not None,
):
    """Take at most ``steps`` steps of Algorithm 3 in place, refusing before every release.

    Parameters
    ----------
    kernel
        Clipped gradient sums of the records.
    w
        Parameters, shape (dimension,); overwritten.
    steps
        At least 1, and within what either query has left.
    noise
        A ``numpy.random.Generator``.
    max_norm
        Clipping bound > 0, of both queries.
    l2, penalized
        Strength >= 0 of the regulariser, and how many leading coordinates it covers.
    learning_rate
        Of every step.
    norm_multiplier, norm_share
        Of a norm: its noise, in units of ``max_norm``, and what it spends of the budget.
    unit
        Multiplier of a gradient per unit of the noisy norm.
    least, budget
        The smallest multiplier of a gradient, and the one that would spend the whole budget.
    spent
        What is spent of the budget, rounded up.
    smallest, best
        The smallest noisy norm so far, and its parameters, shape (dimension,); overwritten.
    multipliers
        Shape (steps,); overwritten by those of the gradients.

    Returns
    -------
    tuple
        (norms released, gradients released, smallest norm, one of ``GOING``, ...).
    """
    cdef _Sums at = sums(kernel, w, noise, max_norm, l2, penalized)
    cdef Py_ssize_t norms = 0, gradients = 0, j
    cdef double norm, z, share
    cdef int ended = _GOING
    if best.shape[0] != kernel.dimension or multipliers.shape[0] < steps:
        raise ValueError("best and multipliers must have shapes (dimension,) and (steps,).")
    with noise.bit_generator.lock, nogil:
        while gradients < steps:
            if more(spent, norm_share) > 1:
                ended = _NO_NORM
                break
            spent = more(spent, norm_share)
            norms += 1
            at.take()
            norm = at.norm()
            if not isfinite(norm):
                ended = _NOT_FINITE
                break
            add_normals(at.noise, norm_multiplier * max_norm, &norm, 1)
            norm /= at.n
            if norm < smallest:
                smallest = norm
                for j in range(at.size):
                    best[j] = at.w[j]
            if norm <= 0:
                ended = _LOST
                break
            z = unit * norm
            share = budget / z
            share = 1.0 if share == 1 else nextafter(share * share * (1 + 2.0**-51), INFINITY)
            if z < least or more(spent, share) > 1:
                ended = _NO_GRADIENT
                break
            spent = more(spent, share)
            multipliers[gradients] = z
            gradients += 1
            add_normals(at.noise, z * max_norm, &at.total[0], at.size)
            for j in range(at.size):
                at.total[j] = at.gradient(j)
            for j in range(at.size):
                at.w[j] -= learning_rate * at.total[j]
    w[:] = at.w[: at.size]
    return norms, gradients, smallest, ended


cdef double more(double spent, double share) noexcept nogil:
    """Return the sum rounded up; exact sums are left alone only where nothing was spent."""
    return nextafter(spent + share, INFINITY) if spent > 0 else share


def pulled_descent(
    ClippedSum kernel not None,
    const double[::1] center not None,
    double[::1] mean not None,
    *,
    Py_ssize_t steps,
    noise,
    double max_norm,
    double l2,
    Py_ssize_t penalized,
    double standard_deviation,
    double weight,
):
    """Minimise F + weight ||w - center||^2 by Algorithm 4; write the weighted mean of iterates.

    Parameters
    ----------
    kernel, noise, max_norm, l2, penalized
        As for :func:`adaptive_descent`.
    center
        Start, and centre of the ball of radius ``max_norm / (2 weight)``, shape (dimension,).
    mean
        Shape (dimension,); overwritten.
    steps
        At least 1.
    standard_deviation
        Of the noise on the sum, at least 0.
    weight
        Greater than 0.
    """
    cdef _Sums at = sums(kernel, center, noise, max_norm, l2, penalized)
    cdef double radius = max_norm / (2 * weight)
    cdef double away, squares, shrink
    cdef Py_ssize_t t, j
    if mean.shape[0] != kernel.dimension:
        raise ValueError(f"mean must have shape ({kernel.dimension},).")
    with noise.bit_generator.lock, nogil:
        mean[:] = center
        for t in range(1, steps + 1):
            at.take()
            add_normals(at.noise, standard_deviation, &at.total[0], at.size)
            squares = 0
            for j in range(at.size):
                away = at.w[j] - center[j]
                away -= 2 / (weight * (t + 1)) * (at.gradient(j) + 2 * weight * away)
                at.total[j] = away
                squares += away * away
            shrink = radius / fmax(sqrt(squares), radius)
            for j in range(at.size):
                at.w[j] = center[j] + shrink * at.total[j]
                mean[j] += 2.0 / (t + 2) * (at.w[j] - mean[j])
