"""Epsilon and log delta of a sum of privacy losses on one contour, in one compiled call.

The algorithm, its errors and where each is bounded are in ``law.h`` and ``contour.h``. A question
that the contour does not serve gets no answer, and is for :mod:`dpcal.accountants.inversion`.

>>> import math
>>> removed = Law.sampled_gaussian(0.01, 1.0, add=False)
>>> lower, upper, method = epsilon([(removed, 10_000)], math.log(1e-6))
>>> print(f"{upper:.8f} {method}")
6.90738450 contour
"""

import numpy as np

from libc.stdlib cimport free, malloc
from libc.string cimport memset


cdef class Law:
    """A privacy loss as the compiled inversion takes it. Made by its static methods."""

    cdef dpcal_law law

    @staticmethod
    def sampled_gaussian(double q, double sigma, bint add):
        """Return the loss of the Poisson-sampled Gaussian mechanism.

        Parameters
        ----------
        q
            Sampling probability in (0, 1).
        sigma
            Noise multiplier > 0.
        add
            Whether a record is added; otherwise it is removed.
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


cdef enum:
    EPSILON = 0
    LOG_DELTA = 1
    AT_MOST = 2
    LOG_DELTAS = 3
    EPSILONS = 4


cdef int asked(
    int kind, list parts, double at, double target, dpcal_answer* out,
    const double* points = NULL, Py_ssize_t n = 0, double* ends = NULL,
) except -1:
    """Ask about losses and their counts; copies of the losses are filled, so that none is shared."""
    cdef Py_ssize_t k = len(parts), i
    cdef dpcal_work work
    cdef dpcal_law* laws
    cdef dpcal_law** pointers
    cdef double* counts
    laws = <dpcal_law*>malloc(k * (sizeof(dpcal_law) + sizeof(dpcal_law*) + sizeof(double)) + 1)
    if laws is NULL:
        raise MemoryError
    pointers = <dpcal_law**>(laws + k)
    counts = <double*>(pointers + k)
    memset(&work, 0, sizeof(work))
    try:
        for i in range(k):
            law, times = parts[i]
            laws[i] = (<Law?>law).law
            pointers[i] = &laws[i]
            counts[i] = times
    except BaseException:
        free(laws)
        raise
    with nogil:
        if kind == EPSILON:
            dpcal_epsilon(pointers, counts, k, target, &work, out)
        elif kind == LOG_DELTA:
            dpcal_log_delta(pointers, counts, k, at, &work, out)
        elif kind == AT_MOST:
            dpcal_at_most(pointers, counts, k, at, target, &work, out)
        elif kind == LOG_DELTAS:
            dpcal_log_deltas(pointers, counts, k, points, n, &work, ends, ends + n, out)
        else:
            dpcal_epsilons(pointers, counts, k, points, n, &work, ends, ends + n, out)
        for i in range(k):
            dpcal_free_law(&laws[i])
        dpcal_free_work(&work)
        free(laws)
    if out.status == DPCAL_MEMORY:
        raise MemoryError
    return 0


def epsilon(list parts not None, double log_delta):
    """Return (lower, upper, method) of the smallest epsilon >= 0 with log delta <= ``log_delta``.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    log_delta
        A negative number.

    Returns
    -------
    tuple or None
        None if one contour does not answer the question.
    """
    cdef dpcal_answer out
    asked(EPSILON, parts, 0.0, log_delta, &out)
    if out.status != DPCAL_DONE:
        return None
    return out.lower, out.upper, "sampling" if out.sampling else "contour"


def log_delta(list parts not None, double epsilon):
    """Return (lower, upper, method) of log delta(epsilon), epsilon >= 0.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    epsilon
        A finite number >= 0.

    Returns
    -------
    tuple or None
        None if one contour does not answer the question.
    """
    cdef dpcal_answer out
    asked(LOG_DELTA, parts, epsilon, 0.0, &out)
    if out.status != DPCAL_DONE:
        return None
    return out.lower, out.upper, "sampling" if out.sampling else "contour"


def at_most(list parts not None, double epsilon, double log_delta):
    """Return whether a quick bound on log delta(epsilon) is at most ``log_delta``.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    epsilon
        A finite number >= 0.
    log_delta
        A negative number.

    Returns
    -------
    bool or None
        None if one contour does not answer the question.
    """
    cdef dpcal_answer out
    asked(AT_MOST, parts, epsilon, log_delta, &out)
    return out.upper <= log_delta if out.status == DPCAL_DONE else None


def log_deltas(list parts not None, const double[::1] epsilons not None):
    """Return lower and upper bounds on log delta at many epsilons, from few contours.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    epsilons
        Finite numbers >= 0 that rise, shape (n,).

    Returns
    -------
    ndarray of shape (2, n)
        Lower ends are NaN where one contour does not answer the question.
    """
    return curve(LOG_DELTAS, parts, epsilons)


def epsilons(list parts not None, const double[::1] log_deltas not None):
    """Return lower and upper bounds on epsilon at many log deltas, from few contours.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    log_deltas
        Negative numbers that fall, shape (n,).

    Returns
    -------
    ndarray of shape (2, n)
        Lower ends are NaN where one contour does not answer the question.
    """
    return curve(EPSILONS, parts, log_deltas)


cdef curve(int kind, list parts, const double[::1] points):
    cdef dpcal_answer out
    cdef Py_ssize_t n = points.shape[0]
    found = np.empty((2, n))
    cdef double[:, ::1] ends = found
    if n:
        asked(kind, parts, 0.0, 0.0, &out, &points[0], n, &ends[0, 0])
    return found


def many(list rows not None, const double[::1] at not None, bint log_deltas):
    """Return bounds of many questions, each the worst of the directions of a row.

    Parameters
    ----------
    rows
        For each question, a list of directions; each is a list of laws and how often each adds up.
    at
        For each question its log delta < 0, for epsilons, or its epsilon >= 0, for log deltas.
    log_deltas
        Whether log deltas are asked.

    Returns
    -------
    ndarray of shape (len(rows), 3)
        Lower and upper ends, and 0 for a contour, 1 for sampling or -1 for no answer.
    """
    cdef Py_ssize_t n = len(rows), total = 0, sides = 0, i, row, side, first
    cdef dpcal_work work
    cdef dpcal_answer out
    cdef Law law
    if at.shape[0] != n:
        raise ValueError(f"at must have one number for each of the {n} rows, got {at.shape[0]}.")
    for directions in rows:
        sides += len(directions)
        for parts in directions:
            total += len(parts)
    found = np.empty((n, 3))
    cdef double[:, ::1] answers = found
    cdef double[::1] counts = np.empty(total + 1)
    cdef Py_ssize_t[::1] ends = np.zeros(n + 1, dtype=np.intp)
    cdef dpcal_law* laws = <dpcal_law*>malloc((total + 1) * sizeof(dpcal_law))
    cdef dpcal_law** pointers = <dpcal_law**>malloc((total + 1) * sizeof(dpcal_law*))
    cdef dpcal_direction* asked_of = <dpcal_direction*>malloc((sides + 1) * sizeof(dpcal_direction))
    memset(&work, 0, sizeof(work))
    try:
        if laws is NULL or pointers is NULL or asked_of is NULL:
            raise MemoryError
        i = side = 0
        for row in range(n):
            for parts in rows[row]:
                asked_of[side] = dpcal_direction(pointers + i, &counts[i], len(parts))
                side += 1
                for law, times in parts:
                    laws[i] = law.law
                    pointers[i] = &laws[i]
                    counts[i] = times
                    i += 1
            ends[row + 1] = side
        with nogil:
            for row in range(n):
                first = ends[row]
                if log_deltas:
                    dpcal_worst_log_delta(
                        asked_of + first, ends[row + 1] - first, at[row], &work, &out
                    )
                else:
                    dpcal_worst_epsilon(
                        asked_of + first, ends[row + 1] - first, at[row], &work, &out
                    )
                answers[row, 0] = out.lower
                answers[row, 1] = out.upper
                answers[row, 2] = out.sampling if out.status == DPCAL_DONE else -1
                for side in range(first, ends[row + 1]):
                    for i in range(asked_of[side].k):
                        dpcal_free_law(asked_of[side].laws[i])
    finally:
        dpcal_free_work(&work)
        free(laws)
        free(pointers)
        free(asked_of)
    return found
