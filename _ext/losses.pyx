"""Losses of single records, functions of scores, and their derivatives.

>>> import numpy as np
>>> from dpcal._ext.gradients import ClippedSum
>>> kernel = ClippedSum(HuberLoss(2.0), np.array([[1.0]]), np.array([-3.0]), intercept=False)
>>> kernel.losses([1.0]), kernel([1.0]).tolist()  # a residual of 4
(6.0, [2.0])
"""

cimport cython
from libc.math cimport INFINITY, copysign, exp, expm1, fabs, fmax, fmin, isfinite, log, log1p

from dpcal._ext.rows cimport Row, scores_of

import numpy as np

cdef enum:
    LANES = 8  # numbers in a cache line, to which rows are padded


cdef class Loss:
    """Loss of one record, a function of its scores, of the tail of the parameters, and its target.

    ``scores`` is how many scores there are, ``tail`` the length of the tail, and ``curvature`` the
    largest second derivative by the score of a convex loss of one score, infinite for others.
    """

    curvature = INFINITY

    cdef double value(self, const Record* at) noexcept nogil:
        return 0.0

    cdef void slopes(self, const Record* at, double* out) noexcept nogil:
        """Write the derivatives by each score, and then those by the tail."""
        pass


cdef class PointLoss(Loss):
    """Loss of one score and a target, perhaps with a width > 0, the scale of residuals."""

    def __init__(self, double width=1.0):
        self.scores, self.width = 1, width

    cdef double loss_at(self, double score, double target) noexcept nogil:
        return 0.0

    cdef double slope(self, double score, double target) noexcept nogil:
        return 0.0

    cdef double value(self, const Record* at) noexcept nogil:
        return self.loss_at(at.scores[0], at.target)

    cdef void slopes(self, const Record* at, double* out) noexcept nogil:
        out[0] = self.slope(at.scores[0], at.target)


@cython.final
cdef class LogisticLoss(PointLoss):
    """``log(1 + exp(-target * score))``, target in {-1, +1}."""

    curvature = 0.25

    cdef double loss_at(self, double score, double target) noexcept nogil:
        cdef double margin = target * score
        return log1p(exp(-fabs(margin))) - fmin(margin, 0.0)

    cdef double slope(self, double score, double target) noexcept nogil:
        return -target / (1.0 + exp(target * score))


@cython.final
cdef class SquaredLoss(PointLoss):
    """``(score - target)**2 / 2``."""

    curvature = 1.0

    cdef double loss_at(self, double score, double target) noexcept nogil:
        return 0.5 * (score - target) * (score - target)

    cdef double slope(self, double score, double target) noexcept nogil:
        return score - target


@cython.final
cdef class HuberLoss(PointLoss):
    """``r**2 / 2`` for residuals up to ``width``, linear beyond (Huber 1964)."""

    curvature = 1.0

    cdef double loss_at(self, double score, double target) noexcept nogil:
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

    cdef double loss_at(self, double score, double target) noexcept nogil:
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

    cdef double loss_at(self, double score, double target) noexcept nogil:
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

    cdef double loss_at(self, double score, double target) noexcept nogil:
        cdef double wrong = 1.0 / (1.0 + exp(target * score))
        return wrong * wrong

    cdef double slope(self, double score, double target) noexcept nogil:
        cdef double wrong = 1.0 / (1.0 + exp(target * score))
        return -2.0 * target * wrong * wrong / (1.0 + exp(-target * score))


@cython.final
cdef class SoftmaxLoss(Loss):
    """Cross entropy of K classes, the target a number in [0, K); the tail are K intercepts, or none."""

    def __init__(self, Py_ssize_t classes, *, bint intercepts=False):
        self.scores, self.tail = classes, classes * intercepts

    cdef double value(self, const Record* at) noexcept nogil:
        cdef double largest = -INFINITY, weight = 0
        cdef Py_ssize_t k, K = self.scores, label = <Py_ssize_t>at.target
        for k in range(K):
            largest = fmax(largest, at.scores[k] + (at.tail[k] if self.tail else 0.0))
        for k in range(K):
            weight += exp(at.scores[k] + (at.tail[k] if self.tail else 0.0) - largest)
        largest += log(weight) if isfinite(largest) else 0.0
        return largest - (at.scores[label] + (at.tail[label] if self.tail else 0.0))

    cdef void slopes(self, const Record* at, double* out) noexcept nogil:
        """Write probabilities minus the class; zero where scores overflow to no number."""
        cdef double largest = -INFINITY, total = 0
        cdef Py_ssize_t k, K = self.scores
        for k in range(K):
            out[k] = at.scores[k] + (at.tail[k] if self.tail else 0.0)
            largest = fmax(largest, out[k])
        for k in range(K):
            out[k] = exp(out[k] - largest)
            total += out[k]
        for k in range(K):
            out[k] = out[k] / total if isfinite(total) else 0.0
        out[<Py_ssize_t>at.target] -= 1.0 if isfinite(total) else 0.0
        for k in range(self.tail):
            out[K + k] = out[k]


@cython.final
cdef class TiltedLoss(Loss):
    """``(base + <y, phi>) loss``, y the tail; rows phi of all records, shape (n, d2)."""

    cdef PointLoss loss
    cdef double[:, ::1] tilts
    cdef double base

    def __init__(self, PointLoss loss not None, tilts, *, double base):
        self.scores, self.tail = 1, tilts.shape[1]
        self.loss, self.base = loss, base
        self.tilts = np.zeros((len(tilts), (self.tail + LANES - 1) // LANES * LANES))
        np.asarray(self.tilts)[:, : self.tail] = tilts

    cdef double weight(self, const double* tail, Py_ssize_t row) noexcept nogil:
        cdef Row phi = &self.tilts[row, 0]
        cdef double tilt = 0
        cdef Py_ssize_t j
        if self.tail <= LANES:  # a call would take longer
            for j in range(self.tail):
                tilt += phi[j] * tail[j]
        else:
            scores_of(&phi, NULL, 1, tail, self.tilts.shape[1], &tilt, 1)
        return self.base + tilt

    cdef double value(self, const Record* at) noexcept nogil:
        return self.weight(at.tail, at.row) * self.loss.loss_at(at.scores[0], at.target)

    cdef void slopes(self, const Record* at, double* out) noexcept nogil:
        cdef double value = self.loss.loss_at(at.scores[0], at.target)
        cdef Row phi = &self.tilts[at.row, 0]
        cdef Py_ssize_t j
        out[0] = self.weight(at.tail, at.row) * self.loss.slope(at.scores[0], at.target)
        for j in range(self.tail):
            out[1 + j] = value * phi[j]


@cython.final
cdef class AreaLoss(Loss):
    """The saddle form of AUC at a share p of positives, targets above 0; the tail is (a, b, y)."""

    cdef double share

    def __init__(self, double share):
        self.scores, self.tail, self.share = 1, 3, share

    cdef double value(self, const Record* at) noexcept nogil:
        cdef double away = at.scores[0] - (at.tail[0] if at.target > 0 else at.tail[1])
        cdef double lean = self.share - 1 if at.target > 0 else self.share
        return fabs(lean) * away * away + 2 * (1 + at.tail[2]) * lean * at.scores[0]

    cdef void slopes(self, const Record* at, double* out) noexcept nogil:
        cdef double lean = self.share - 1 if at.target > 0 else self.share
        cdef double away = fabs(lean) * (at.scores[0] - (at.tail[0] if at.target > 0 else at.tail[1]))
        out[0] = 2 * away + 2 * (1 + at.tail[2]) * lean
        out[1] = -2 * away if at.target > 0 else 0.0
        out[2] = 0.0 if at.target > 0 else -2 * away
        out[3] = 2 * lean * at.scores[0]
