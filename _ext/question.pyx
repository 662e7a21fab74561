"""Epsilon and log delta of a sum of privacy losses on one contour, in one compiled call.

The algorithm, its errors and where each is bounded are in ``law.h`` and ``contour.h``. A question
that the contour does not serve gets no answer, and is for :mod:`dpcal.accountants.inversion`.
Parts are lists of laws and how often each adds up.

>>> import math
>>> removed = Law.sampled_gaussian(0.01, 1.0, add=False)
>>> lower, upper, method = epsilon([(removed, 10_000)], math.log(1e-6))
>>> print(f"{upper:.8f} {method}")
6.90738450 contour
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, isnan
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef enum:
    # Most repetitions of a question with further points: each serves twice the tilt.
    EXTENSIONS = 40


cdef class Law:
    """A privacy loss as the compiled inversion takes it. Made by its static methods."""

    cdef dpcal_law law
    cdef object loss
    # Arrays that the law points to.
    cdef tuple kept

    @staticmethod
    def sampled_gaussian(double q, double sigma, bint add):
        """Return the loss of the Poisson-sampled Gaussian mechanism when a record is added, or removed.

        The sampling probability is in (0, 1), and the noise multiplier > 0.
        """
        cdef Law self = Law.__new__(Law)
        dpcal_sampled_gaussian(&self.law, q, sigma, add)
        return self

    @staticmethod
    def gaussian(double variance):
        """Return a normal loss, of mean half its variance > 0."""
        cdef Law self = Law.__new__(Law)
        dpcal_gaussian(&self.law, variance)
        return self

    @staticmethod
    def points(loss, double highest):
        """Return a loss of any family, or None if it has no points.

        It has ``served(highest)``, which returns points as rows for tilts up to ``highest``, or None;
        and numbers ``upper``, ``log_unaffected``, ``surplus`` and ``steep``. Points for tilts beyond
        this highest one are asked for where they are needed.
        """
        cdef Law self = Law.__new__(Law)
        self.loss = loss
        return self if self.serve(highest) else None

    cdef bint serve(self, double highest) except -1:
        """Take points for tilts up to a highest one; return whether there are some."""
        cdef dpcal_law law
        cdef double[:, ::1] line
        found = self.loss.served(highest)
        if found is None:
            return False
        memset(&law, 0, sizeof(law))
        law.owned, law.highest = 1, found.highest
        law.upper, law.log_unaffected = self.loss.upper, self.loss.log_unaffected
        law.surplus, law.steep = self.loss.surplus, self.loss.steep
        law.latest, law.reach = found.latest, found.reach
        law.normal, law.until = found.normal
        for i in range(2):
            law.merged_loss[i], law.merged_log[i] = found.merged[i]
        line = found.line
        law.line = dpcal_line_of(&line[0, 0], line.shape[1])
        taken = took_points(&law, found.real, found.gone)
        self.law, self.kept = law, (found.real, found.line)
        return taken


cdef bint took_points(dpcal_law* law, double[:, ::1] rows, tuple masses) except -1:
    """Give points to a law, and the masses that are gone; return whether they serve."""
    cdef double[2] gone
    cdef double[::1] weights = np.empty(rows.shape[1])
    gone[0], gone[1], units = masses
    return dpcal_take_points(law, rows.shape[1], &rows[0, 0], gone, units, &weights[0]) == DPCAL_DONE


cdef int is_interrupted(void* heard) noexcept with gil:
    """Keep what a signal's handler raises, such as KeyboardInterrupt; return whether it does."""
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        (<list>heard).append(error)
        return 1
    return 0


cdef int asked(
    int kind, list parts, double epsilon, double log_delta, dpcal_answer* out,
    int patient=0, const dpcal_beyond* beyond=NULL, dpcal_curve curve=dpcal_curve(NULL, 0, NULL, NULL),
) except -1:
    """Ask about losses, and again with further points where these were missing."""
    cdef Law law
    for _ in range(EXTENSIONS):
        wanted = asked_once(kind, parts, epsilon, log_delta, out, patient, beyond, curve)
        many = curve.n > 0
        while curve.n > 0 and not isnan(curve.lower[0]):
            curve = dpcal_curve(curve.at + 1, curve.n - 1, curve.lower + 1, curve.upper + 1)
        if not wanted or (curve.n == 0 if many else out.status <= DPCAL_WIDE):
            break
        # Twice the tilt serves its neighbors, too.
        for place, tilt in wanted:
            law = parts[place][0]
            if tilt > law.law.highest and not law.serve(2.0 ** np.ceil(np.log2(1.1 * tilt))):
                return 0
    return 0


cdef list asked_once(
    int kind, list parts, double epsilon, double log_delta, dpcal_answer* out,
    int patient, const dpcal_beyond* beyond, dpcal_curve curve,
):
    """Ask about losses and their counts; return the places of those that lacked points, and the tilts.

    Copies of the losses are filled, so that none is shared.
    """
    cdef Py_ssize_t k = len(parts), i
    cdef dpcal_work work
    cdef dpcal_question ask
    cdef dpcal_law* laws
    cdef double* counts
    laws = <dpcal_law*>malloc(k * (sizeof(dpcal_law) + sizeof(dpcal_tilt) + sizeof(double)) + 1)
    if laws is NULL:
        raise MemoryError
    memset(&ask, 0, sizeof(ask))
    memset(&work, 0, sizeof(work))
    heard, kept, wanted = [], [], []
    work.stopped, work.owner = is_interrupted, <void*>heard
    ask.k, ask.patient, ask.beyond, ask.curve, ask.work = k, patient, beyond, curve, &work
    ask.laws, ask.parts = laws, <dpcal_tilt*>(laws + k)
    ask.counts = counts = <double*>(ask.parts + k)
    try:
        for i in range(k):
            law, counts[i] = parts[i]
            laws[i] = (<Law?>law).law
            # Another thread may add points meanwhile.
            kept.append((<Law>law).kept)
    except BaseException:
        free(laws)
        raise
    with nogil:
        dpcal_ask(&ask, kind, epsilon, log_delta, out)
        dpcal_free_work(&work)
    for i in range(k):
        free(laws[i].block)
        if laws[i].wanted > laws[i].highest:
            wanted.append((i, laws[i].wanted))
    free(laws)
    if out.status == DPCAL_MEMORY:
        raise MemoryError
    if out.status == DPCAL_STOPPED:
        raise heard[0]
    return wanted


cdef tuple bounded(int kind, list parts, double epsilon, double log_delta, int patient, beyond):
    cdef dpcal_answer out
    cdef dpcal_beyond cut
    if beyond is not None:
        cut.p, cut.q, cut.units = beyond.p, beyond.q, beyond.units
        for i in range(DPCAL_PUTS):
            cut.tilts[i], cut.bounds[i] = beyond.tilts[i], beyond.bounds[i]
    asked(kind, parts, epsilon, log_delta, &out, patient, NULL if beyond is None else &cut)
    if out.status != DPCAL_DONE and not (patient and out.status == DPCAL_WIDE):
        return None
    return out.lower, out.upper, "sampling" if out.sampling else "smoothed" if out.smoothed else "contour"


def epsilon(list parts not None, double log_delta, bint patient=False, beyond=None):
    """Return (lower, upper, method) of the smallest epsilon >= 0 with log delta <= ``log_delta`` < 0.

    It is None if one contour does not answer the question. A ``patient`` contour may be long or
    smoothed, and its bounds wide. ``beyond`` is what delta has beyond the laws' cut
    (:class:`dpcal.accountants.inversion.cut.Beyond`), or None.
    """
    return bounded(DPCAL_EPSILON, parts, 0.0, log_delta, patient, beyond)


def log_delta(list parts not None, double epsilon, bint patient=False, beyond=None):
    """Return (lower, upper, method) of log delta at a finite epsilon >= 0.

    It is None if one contour does not answer the question; ``patient`` and ``beyond`` are those of
    :func:`epsilon`.
    """
    return bounded(DPCAL_LOG_DELTA, parts, epsilon, 0.0, patient, beyond)


def at_most(list parts not None, double epsilon, double log_delta):
    """Return whether a quick bound on log delta at a finite epsilon >= 0 is at most ``log_delta`` < 0.

    It is None if one contour does not answer the question.
    """
    cdef dpcal_answer out
    asked(DPCAL_LOG_DELTA, parts, epsilon, log_delta, &out)
    return out.upper <= log_delta if out.status == DPCAL_DONE else None


def log_deltas(list parts not None, const double[::1] epsilons not None, bint patient=False):
    """Return lower and upper bounds on log delta at many epsilons, from few contours.

    The epsilons are finite numbers >= 0 that rise, shape (n,). In the result, of shape (2, n), lower
    ends are NaN where one contour does not answer the question.
    """
    cdef dpcal_answer out
    cdef Py_ssize_t n = epsilons.shape[0]
    found = np.empty((2, n))
    cdef double[:, ::1] ends = found
    if n > 0:
        curve = dpcal_curve(&epsilons[0], n, &ends[0, 0], &ends[1, 0])
        asked(DPCAL_LOG_DELTAS, parts, 0.0, 0.0, &out, patient, NULL, curve)
    return found


def many(list rows not None, const double[::1] at not None, bint log_deltas):
    """Return bounds of many questions, each the worst of the directions of a row.

    A row is a list of directions, each of which is a list of parts, and ``at`` is its log delta < 0,
    or for ``log_deltas`` its epsilon >= 0. The result, of shape (len(rows), 3), has lower and upper
    ends, and 0 for a contour, 1 for sampling or -1 for no answer.
    """
    found = np.empty((len(rows), 3))
    for i, (row, each) in enumerate(zip(rows, at, strict=True)):
        found[i] = worst(row, each, log_deltas)
    return found


cdef tuple worst(list directions, double at, bint log_deltas):
    cdef dpcal_answer one
    cdef double lower = -INFINITY, upper = -INFINITY, sampling = 0
    for parts in directions:
        # A direction is left out where a quick bound proves its epsilon smaller.
        if upper > -INFINITY and not log_deltas:
            asked(DPCAL_LOG_DELTA, parts, upper, at, &one)
            if one.status == DPCAL_DONE and one.upper <= at:
                continue
        if log_deltas:
            asked(DPCAL_LOG_DELTA, parts, at, 0.0, &one)
        else:
            asked(DPCAL_EPSILON, parts, 0.0, at, &one)
        if one.status != DPCAL_DONE:
            return lower, upper, -1
        sampling = one.sampling if one.upper > upper else sampling
        lower, upper = max(lower, one.lower), max(upper, one.upper)
    return lower, upper, sampling


def moments(double[:, ::1] rows not None, const double[::1] c not None):
    """Return log M, mean, variance and fourth central moment of a loss tilted by numbers c > -1.

    The digits of M - 1 are kept where M is near 1. ``rows`` are points as ``law.h`` takes them:
    losses, masses, their logarithms, and two errors in units; both P and Q have mass 1. The result
    has shape (len(c), 4).
    """
    cdef dpcal_law law
    cdef dpcal_moments at
    cdef Py_ssize_t i
    memset(&law, 0, sizeof(law))
    law.highest = INFINITY
    found = np.empty((c.shape[0], 4))
    cdef double[:, ::1] table = found
    cdef double[::1] weights = np.empty(rows.shape[1])
    took_points(&law, rows, (0.0, 0.0, 0.0))
    with nogil:
        for i in range(c.shape[0]):
            dpcal_moments_at(&law, c[i], &weights[0], &at)
            table[i, 0], table[i, 1], table[i, 2], table[i, 3] = at.log_mass, at.mean, at.variance, at.fourth
    return found


def mixture_log_weights(const double[::1] x not None, double q, double sigma, double angle):
    """Return log(1 - q + q exp(u)) at u = (2 x - 1) / (2 sigma^2) + i angle, elementwise.

    It is real for an angle of 0. The digits of the weight less one are kept, and nothing overflows.
    """
    cdef Py_ssize_t n = x.shape[0], padded = dpcal_padded(n)
    cdef dpcal_law law
    table = np.zeros((3, padded))
    table[0, :n] = x
    cdef double[:, ::1] rows = table
    dpcal_sampled_gaussian(&law, q, sigma, False)
    with nogil:
        dpcal_weights(&law, angle, &rows[0, 0], padded, &rows[1, 0], &rows[2, 0])
    return table[1, :n] if angle == 0.0 else table[1, :n] + 1j * table[2, :n]
