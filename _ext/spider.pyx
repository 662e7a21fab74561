"""Loops for stationary points, fused: SpiderBoost, and one pass of stochastic gradient descent.

SpiderBoost (Wang et al. 2019; private: Arora et al. 2022, Algorithm 1): every ``period`` steps the
gradient is estimated afresh; in between, differences are added to the estimate. Sampling, clipping,
noise and steps happen without the interpreter and without allocation.

>>> import numpy as np
>>> from dpcal._ext.gradients import LinearClippedSum, SquaredLoss
>>> from dpcal._ext.sums import Sums
>>> kernel = LinearClippedSum(SquaredLoss(), np.eye(2), np.ones(2), intercept=False)
>>> w, v, estimate = np.zeros((3, 2))
>>> everyone = {"sampling_probability": 1.0, "batch_size": 0, "expected_batch_size": 2.0}
>>> exact = {**everyone, "max_norm": 9.0}
>>> change = {**exact, "proportional": True, "cap": 9.0}
>>> sampling, noise = np.random.default_rng(0).spawn(2)
>>> sums = Sums(noise, 0.0)
>>> follow(kernel, w, v, estimate, first=0, steps=3, period=2, learning_rate=2.0, sampling=sampling,
...        refresh=(exact, sums), difference=(change, sums), l2=0.0, penalized=2)
3
>>> w.tolist()  # (w - 1) / 2 vanishes after a full step
[1.0, 1.0]
"""

cimport cython
from libc.math cimport isfinite, sqrt

from dpcal._ext.gradients cimport Batch, ClippedSum
from dpcal._ext.samples cimport NoisySums

import numpy as np

from dpcal._ext.gradients import aligned_zeros


@cython.final
cdef class _Walk:
    """The state of the walk: iterate, the one before, the estimate, and scratch space."""

    cdef NoisySums fresh, change
    cdef double l2
    cdef Py_ssize_t penalized, size
    cdef double[::1] w, v, estimate, total

    cdef void refresh(self) noexcept nogil:
        """Set the estimate to a noisy gradient at ``w``."""
        cdef Py_ssize_t j
        self.fresh.take(&self.w[0], NULL, self.fresh.max_norm, self.total)
        for j in range(self.size):
            self.estimate[j] = self.total[j] / self.fresh.size
            if j < self.penalized:
                self.estimate[j] += self.l2 * self.w[j]

    cdef bint correct(self) noexcept nogil:
        """Add a noisy difference between ``w`` and ``v``; false if their distance overflows."""
        cdef Py_ssize_t j
        cdef double bound = self.change.bound_between(&self.w[0], &self.v[0])
        if bound < 0:
            return False
        self.change.take(&self.w[0], &self.v[0], bound, self.total)
        for j in range(self.size):
            self.estimate[j] += self.total[j] / self.change.size
            if j < self.penalized:
                self.estimate[j] += self.l2 * self.w[j] - self.l2 * self.v[j]
        return True

    cdef bint move(self, double learning_rate) noexcept nogil:
        """Step against the estimate; false, at the iterate before, if that overflows."""
        cdef Py_ssize_t j
        cdef double squares = 0
        for j in range(self.size):
            self.total[j] = self.w[j] - learning_rate * self.estimate[j]
            squares += self.total[j] * self.total[j]
        if not isfinite(squares):
            return False
        for j in range(self.size):
            self.v[j] = self.w[j]
            self.w[j] = self.total[j]
        return True


def follow(
    ClippedSum kernel not None,
    double[::1] w not None,
    double[::1] v not None,
    double[::1] estimate not None,
    *,
    Py_ssize_t first,
    Py_ssize_t steps,
    Py_ssize_t period,
    double learning_rate,
    sampling,
    refresh,
    difference,
    double l2,
    Py_ssize_t penalized,
):
    """Take SpiderBoost steps number ``first`` to ``first + steps - 1``, in place.

    Ranges are the caller's to check: :class:`dpcal.optim.PrivateOracle` is the only caller that
    meets real records.

    Parameters
    ----------
    kernel
        Clipped sums of the records.
    w, v, estimate
        Iterate, the iterate before it, and the estimate of the gradient at ``v``, shape
        (dimension,) each; overwritten.
    first, steps, period
        Steps whose number is a multiple of ``period`` ask for the gradient afresh.
    learning_rate
        Step size.
    sampling
        A ``numpy.random.Generator``.
    refresh, difference
        The queries, each with the sums whose noise it has, as
        :class:`dpcal._ext.samples.NoisySums` takes them.
    l2, penalized
        Strength >= 0 of the regulariser, and how many leading coordinates it covers.

    Returns
    -------
    int
        Steps taken: fewer if iterates would overflow, when the last finite one is kept.
    """
    cdef Py_ssize_t d = kernel.dimension
    if w.shape[0] != d or v.shape[0] != d or estimate.shape[0] != d:
        raise ValueError(f"w, v and estimate must have shape ({d},).")
    cdef _Walk walk = _Walk()
    walk.fresh = NoisySums(kernel, refresh[0], sampling, refresh[1])
    walk.change = NoisySums(kernel, difference[0], sampling, difference[1])
    walk.size = d
    walk.l2 = l2
    walk.penalized = penalized
    walk.w, walk.v = kernel.padded(w), kernel.padded(v)
    walk.estimate = kernel.padded(estimate)
    walk.total = aligned_zeros(kernel.stride)
    cdef Py_ssize_t t
    cdef Py_ssize_t taken = 0
    with sampling.bit_generator.lock, walk.fresh.sums.lock, nogil:
        for t in range(first, first + steps):
            if t % period == 0:
                walk.refresh()
            elif not walk.correct():
                break
            if not walk.move(learning_rate):
                break
            taken += 1
    w[:] = walk.w[:d]
    v[:] = walk.v[:d]
    estimate[:] = walk.estimate[:d]
    return taken


def one_pass(
    ClippedSum kernel not None,
    w,
    rows,
    const double[::1] scales not None,
    const double[::1] pull not None,
    const double[::1] target not None,
    *,
    double learning_rate,
    double max_norm,
    double radius,
):
    """Return the mean of the iterates at which one pass asks for gradients, a record at a time.

    ``w <- P(w - eta (s_i clipped gradient + pull * (w - target)))``, P being the projection onto
    the ball around the origin. Ranges are the caller's to check.

    Parameters
    ----------
    kernel
        Clipped gradient sums of the records.
    w
        Where to start, shape (dimension,).
    rows, scales
        Records in the order in which they are asked, and s_i for each, shape (m,).
    pull, target
        Strength >= 0 and center of the regulariser in each coordinate, shape (dimension,).
    learning_rate, max_norm, radius
        Step size, clipping bound and radius, > 0; the radius may be infinite.
    """
    cdef const Py_ssize_t[::1] order = kernel.checked(rows)
    cdef double[::1] at = kernel.padded(w)
    cdef double[::1] gradient = aligned_zeros(kernel.stride)
    cdef Py_ssize_t d = kernel.dimension
    cdef Py_ssize_t i, j
    cdef double squares
    if pull.shape[0] != d or target.shape[0] != d or scales.shape[0] != order.shape[0]:
        raise ValueError("pull and target must have shape (dimension,), scales one number a row.")
    mean = np.zeros(d)
    cdef double[::1] averaged = mean
    with nogil:
        for i in range(order.shape[0]):
            for j in range(d):
                averaged[j] += (at[j] - averaged[j]) / (i + 1)
            gradient[:] = 0.0
            kernel.add(&at[0], NULL, Batch(&order[i], 1, max_norm), &gradient[0])
            squares = 0
            for j in range(d):
                at[j] -= learning_rate * (scales[i] * gradient[j] + pull[j] * (at[j] - target[j]))
                squares += at[j] * at[j]
            if squares > radius * radius:
                squares = radius / sqrt(squares)
                for j in range(d):
                    at[j] *= squares
    return mean
