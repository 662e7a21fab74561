"""The inner loop of minimax methods, fused: both gradients are followed while y climbs.

:class:`Follower` takes outer steps of DP-RGDA (Xu et al. 2026, Algorithm 3, corrected) over clipped
sums of pairs of gradients: samples, sums, noise and ascent in y, without arrays of single records.

>>> import numpy as np
>>> from dpcal._ext.pairs import AreaPairs
>>> from dpcal._ext.sums import Sums
>>> everyone = {"sampling_probability": 1.0, "batch_size": 0, "expected_batch_size": 1.0}
>>> exact = {**everyone, "max_norm": 9.0, "proportional": False, "cap": 9.0}
>>> sampling, noise = np.random.default_rng(0).spawn(2)
>>> asked = exact, Sums(noise, 0.0)
>>> kernel = AreaPairs(np.array([[1.0]]), np.array([True]), share=0.5)
>>> follower = Follower(kernel, d1=3, sampling=sampling, refresh=asked, difference=asked,
...                     primal_l2=0.0, dual_l2=0.0)
>>> estimate = np.zeros(4)
>>> y = follower.track(np.array([1.0, 0, 0, 0]), np.zeros(4), estimate, refreshed=True,
...                    literal=False, shortest=False, inner_steps=2, ascent_rate=1.0,
...                    project=np.copy, asking=lambda: None)
>>> y.tolist(), estimate.tolist()
([-1.0], [1.0, -1.0, 0.0, -1.0])
"""

cimport cython
from libc.math cimport isfinite

from dpcal._ext.gradients cimport ClippedSum
from dpcal._ext.samples cimport NoisySums

import numpy as np


@cython.final
cdef class Follower:
    """Follows both gradients of a minimax problem while y climbs.

    Parameters
    ----------
    kernel
        Clipped sums of pairs of gradients.
    d1
        How many of the parameters are primal; the others are dual.
    sampling
        A ``numpy.random.Generator``.
    refresh, difference
        The queries, each with the sums whose noise it has, as
        :class:`dpcal._ext.samples.NoisySums` takes them.
    primal_l2, dual_l2
        Strengths >= 0 of the regularisers.
    """

    cdef Py_ssize_t d1, size
    cdef NoisySums fresh, change
    cdef object locks
    cdef double primal_l2, dual_l2
    cdef double[::1] estimate, total

    def __init__(
        self,
        ClippedSum kernel not None,
        *,
        Py_ssize_t d1,
        sampling,
        refresh,
        difference,
        double primal_l2,
        double dual_l2,
    ):
        if not 0 < d1 <= kernel.dimension or kernel.stride != kernel.dimension:
            raise ValueError(f"d1 must be in [1, {kernel.dimension}], got {d1}.")
        self.d1, self.size = d1, kernel.dimension
        self.fresh = NoisySums(kernel, refresh[0], sampling, refresh[1])
        self.change = NoisySums(kernel, difference[0], sampling, difference[1])
        self.locks = (sampling.bit_generator.lock, self.fresh.sums.lock)
        self.primal_l2, self.dual_l2 = primal_l2, dual_l2
        self.total = np.zeros(kernel.dimension)

    cdef void refresh(self, const double* w) noexcept nogil:
        """Set the estimate to a noisy pair of gradients at ``w``."""
        cdef Py_ssize_t j
        cdef double l2
        self.fresh.take(w, NULL, self.fresh.max_norm, self.total)
        for j in range(self.size):
            l2 = self.primal_l2 if j < self.d1 else -self.dual_l2
            self.estimate[j] = self.total[j] / self.fresh.size + l2 * w[j]

    cdef void correct(self, const double* w, const double* v, double bound) noexcept nogil:
        """Add a noisy difference between ``w`` and ``v``, in which a record's is bounded."""
        cdef Py_ssize_t j
        cdef double l2
        self.change.take(w, v, bound, self.total)
        for j in range(self.size):
            l2 = self.primal_l2 if j < self.d1 else -self.dual_l2
            self.estimate[j] += self.total[j] / self.change.size + (l2 * w[j] - l2 * v[j])

    def track(
        self,
        double[::1] at not None,
        double[::1] before not None,
        double[::1] estimate not None,
        *,
        bint refreshed,
        bint literal,
        bint shortest,
        Py_ssize_t inner_steps,
        double ascent_rate,
        project,
        asking,
    ):
        """Take the K estimates of an outer step, and return where y was for the one that is kept.

        Ranges are the caller's to check: :class:`dpcal.optim.minimax.fused.PairLoops` is the only
        caller that meets real records.

        Parameters
        ----------
        at, before
            (x, y) now and where the last estimate was, shape (dimension,); overwritten.
        estimate
            Of both gradients at ``before``, shape (dimension,); overwritten by the one that is
            kept.
        refreshed
            Whether the step begins afresh.
        literal
            Whether a difference follows a refresh at once, as printed.
        shortest
            Whether the estimate with the shortest step of y is kept, in place of the last one.
        inner_steps, ascent_rate
            K, and the step size of y.
        project
            Function that returns the point of Y nearest to its argument, shape (d2,).
        asking
            Function without arguments, called before each answer: no record is read before.

        Returns
        -------
        numpy.ndarray or None
            y of the estimate that is kept, shape (d2,); None if y would not be finite.
        """
        cdef Py_ssize_t d = self.size
        cdef Py_ssize_t k, j
        cdef double bound, length
        cdef double least = -1.0
        cdef double[::1] climbed
        if at.shape[0] != d or before.shape[0] != d or estimate.shape[0] != d:
            raise ValueError(f"at, before and estimate must have shape ({d},).")
        self.estimate = estimate
        sampling, noise = self.locks
        y, kept, chosen = np.array(at[self.d1 :]), None, None
        for k in range(inner_steps):
            if k == 0 and refreshed:
                asking()
                with sampling, noise, nogil:
                    self.refresh(&at[0])
            if k or literal or not refreshed:
                bound = self.change.bound_between(&at[0], &before[0])
                if bound < 0:
                    return None
                asking()
                with sampling, noise, nogil:
                    self.correct(&at[0], &before[0], bound)
            climbed = moved = project(y + ascent_rate * np.asarray(estimate[self.d1 :]))
            for j in range(d - self.d1):
                if not isfinite(climbed[j]):
                    return None
            if shortest:
                length = np.linalg.norm(moved - y) / ascent_rate
                if least < 0 or length < least:
                    kept, chosen, least = y, np.array(estimate), length
            else:
                kept = y
            before[:] = at
            for j in range(d - self.d1):
                at[self.d1 + j] = climbed[j]
            y = moved
        if chosen is not None:
            np.asarray(estimate)[:] = chosen
        return kept
