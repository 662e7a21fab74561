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

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, isnan, log
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef enum:
    # Most times that a question is asked anew with further points: each serve twice the tilt.
    EXTENSIONS = 40


cdef class Law:
    """A privacy loss as the compiled inversion takes it. Made by its static methods."""

    cdef dpcal_law law
    cdef object loss
    # Arrays that the law points to.
    cdef tuple kept

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

    @staticmethod
    def points(loss, double highest):
        """Return a loss of any family, or None if it has no points.

        Parameters
        ----------
        loss
            It has ``served(highest)``, which returns points as rows for tilts up to ``highest``, or
            None; and numbers ``upper``, ``log_unaffected``, ``surplus`` and ``steep``.
        highest
            A first tilt that the points serve; further ones are asked for where they are needed.
        """
        cdef Law self = Law.__new__(Law)
        self.loss = loss
        return self if self.serve(highest) else None

    cdef bint serve(self, double highest) except -1:
        """Take points for tilts up to a highest one; return whether there are some."""
        cdef dpcal_law law
        cdef dpcal_work work
        cdef double[:, ::1] real
        cdef double[2] gone
        found = self.loss.served(highest)
        if found is None:
            return False
        memset(&law, 0, sizeof(law))
        memset(&work, 0, sizeof(work))
        real = found.real
        law.highest = found.highest
        law.upper, law.log_unaffected = self.loss.upper, self.loss.log_unaffected
        law.surplus, law.steep = self.loss.surplus, self.loss.steep
        law.latest, law.reach = found.latest, found.reach
        law.normal, law.until = found.normal
        for i in range(2):
            law.merged_loss[i], law.merged_log[i] = found.merged[i]
        take_line(&law.line, found.line)
        if found.near is not None:
            take_line(&law.near, found.near)
        gone[0], gone[1], units = found.gone
        status = dpcal_take_points(&law, real.shape[1], &real[0, 0], gone, units, &work)
        dpcal_free_work(&work)
        if status == DPCAL_MEMORY:
            raise MemoryError
        self.law, self.kept = law, (found.real, found.line, found.near)
        return status == DPCAL_DONE


cdef int is_interrupted(void* heard) noexcept with gil:
    """Keep what a signal's handler raises, such as KeyboardInterrupt; return whether it does."""
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        (<list>heard).append(error)
        return 1
    return 0


cdef dpcal_work work_for(list heard):
    """Return memory for questions, which end where a signal's handler raises."""
    cdef dpcal_work work
    memset(&work, 0, sizeof(work))
    work.stopped, work.owner = is_interrupted, <void*>heard
    return work


cdef void take_line(dpcal_line* line, double[:, ::1] rows):
    line.n = rows.shape[1]
    line.re, line.im, line.size = &rows[0, 0], &rows[1, 0], &rows[2, 0]
    line.phase, line.error, line.rounding = &rows[3, 0], &rows[4, 0], &rows[5, 0]


cdef enum:
    EPSILON = 0
    LOG_DELTA = 1
    AT_MOST = 2
    LOG_DELTAS = 3


cdef int asked(
    int kind, list parts, double at, double target, bint patient, dpcal_answer* out,
    const dpcal_beyond* beyond = NULL, const double* points = NULL, Py_ssize_t n = 0,
    double* lower = NULL, double* upper = NULL,
) except -1:
    """Ask about losses, and again with further points where these were missing."""
    cdef Law law
    cdef Py_ssize_t i = 0
    for _ in range(EXTENSIONS):
        wanted = asked_once(
            kind, parts, at, target, patient, out, beyond, points + i, n - i, lower + i, upper + i
        )
        while i < n and not isnan(lower[i]):
            i += 1
        if not wanted or (i == n if n > 0 else out.status <= DPCAL_WIDE):
            break
        # Twice the tilt serves its neighbors, too.
        for place, tilt in wanted:
            law = parts[place][0]
            if tilt > law.law.highest and not law.serve(2.0 ** np.ceil(np.log2(1.1 * tilt))):
                return 0
    return 0


cdef list asked_once(
    int kind, list parts, double at, double target, bint patient, dpcal_answer* out,
    const dpcal_beyond* beyond, const double* points, Py_ssize_t n, double* lower, double* upper,
):
    """Ask about losses and their counts; return the places of those that lacked points, and the tilts.

    Copies of the losses are filled, so that none is shared.
    """
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
    heard = []
    work = work_for(heard)
    kept, wanted = [], []
    try:
        for i in range(k):
            law, times = parts[i]
            laws[i] = (<Law?>law).law
            # Another thread may take further points meanwhile.
            kept.append((<Law>law).kept)
            pointers[i] = &laws[i]
            counts[i] = times
    except BaseException:
        free(laws)
        raise
    with nogil:
        if kind == EPSILON:
            dpcal_epsilon(pointers, counts, k, target, patient, beyond, &work, out)
        elif kind == LOG_DELTA:
            dpcal_log_delta(pointers, counts, k, at, patient, beyond, &work, out)
        elif kind == AT_MOST:
            dpcal_at_most(pointers, counts, k, at, target, &work, out)
        else:
            dpcal_log_deltas(pointers, counts, k, points, n, patient, &work, lower, upper, out)
        dpcal_free_work(&work)
    for i in range(k):
        dpcal_free_law(&laws[i])
        if laws[i].wanted > laws[i].highest:
            wanted.append((i, laws[i].wanted))
    free(laws)
    if out.status == DPCAL_MEMORY:
        raise MemoryError
    if out.status == DPCAL_STOPPED:
        raise heard[0]
    return wanted


cdef const dpcal_beyond* taken(beyond, dpcal_beyond* cut) except? NULL:
    if beyond is None:
        return NULL
    cut.p, cut.q, cut.units = beyond.p, beyond.q, beyond.units
    for i in range(DPCAL_PUTS):
        cut.tilts[i], cut.bounds[i] = beyond.tilts[i], beyond.bounds[i]
    return cut


cdef answer(dpcal_answer* out, bint wide):
    if out.status != DPCAL_DONE and not (wide and out.status == DPCAL_WIDE):
        return None
    method = "sampling" if out.sampling else "smoothed" if out.smoothed else "contour"
    return out.lower, out.upper, method


def epsilon(list parts not None, double log_delta, bint patient=False, beyond=None):
    """Return (lower, upper, method) of the smallest epsilon >= 0 with log delta <= ``log_delta``.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    log_delta
        A negative number.
    patient
        Whether the contour may be long or smoothed, and the bounds wide.
    beyond
        What delta has beyond the laws' cut (:class:`dpcal.accountants.inversion.cut.Beyond`), or None.

    Returns
    -------
    tuple or None
        None if one contour does not answer the question.
    """
    cdef dpcal_answer out
    cdef dpcal_beyond cut
    asked(EPSILON, parts, 0.0, log_delta, patient, &out, taken(beyond, &cut))
    return answer(&out, patient)


def log_delta(list parts not None, double epsilon, bint patient=False, beyond=None):
    """Return (lower, upper, method) of log delta(epsilon), epsilon >= 0.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    epsilon
        A finite number >= 0.
    patient
        Whether the contour may be long or smoothed, and the bounds wide.
    beyond
        What delta has beyond the laws' cut (:class:`dpcal.accountants.inversion.cut.Beyond`), or None.

    Returns
    -------
    tuple or None
        None if one contour does not answer the question.
    """
    cdef dpcal_answer out
    cdef dpcal_beyond cut
    asked(LOG_DELTA, parts, epsilon, 0.0, patient, &out, taken(beyond, &cut))
    return answer(&out, patient)


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
    asked(AT_MOST, parts, epsilon, log_delta, False, &out)
    return out.upper <= log_delta if out.status == DPCAL_DONE else None


def log_deltas(list parts not None, const double[::1] epsilons not None, bint patient=False):
    """Return lower and upper bounds on log delta at many epsilons, from few contours.

    Parameters
    ----------
    parts
        Laws and how often each adds up.
    epsilons
        Finite numbers >= 0 that rise, shape (n,).
    patient
        Whether contours may be long or smoothed.

    Returns
    -------
    ndarray of shape (2, n)
        Lower ends are NaN where one contour does not answer the question.
    """
    cdef dpcal_answer out
    cdef Py_ssize_t n = epsilons.shape[0]
    found = np.empty((2, n))
    cdef double[:, ::1] ends = found
    if n > 0:
        asked(LOG_DELTAS, parts, 0.0, 0.0, patient, &out, NULL, &epsilons[0], n, &ends[0, 0], &ends[1, 0])
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
    heard = []
    work = work_for(heard)
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
                if out.status == DPCAL_STOPPED:
                    break
        if heard:
            raise heard[0]
    finally:
        dpcal_free_work(&work)
        free(laws)
        free(pointers)
        free(asked_of)
    return found


def moments(double[:, ::1] rows not None, const double[::1] c not None):
    """Return log M, mean, variance and fourth central moment of a loss tilted by numbers c > -1.

    The digits of M - 1 are kept where M is near 1.

    Parameters
    ----------
    rows
        Points as ``law.h`` takes them: losses, masses, their logarithms, and two errors in units.
        Both P and Q have mass 1.
    c
        The tilts, shape (n,).

    Returns
    -------
    ndarray of shape (n, 4)
    """
    cdef dpcal_law law
    cdef dpcal_work work
    cdef dpcal_moments at
    cdef double[2] gone
    cdef Py_ssize_t i
    memset(&law, 0, sizeof(law))
    memset(&work, 0, sizeof(work))
    gone[0] = gone[1] = 0.0
    law.highest = INFINITY
    found = np.empty((c.shape[0], 4))
    cdef double[:, ::1] table = found
    cdef double[::1] weights = np.empty(rows.shape[1])
    status = dpcal_take_points(&law, rows.shape[1], &rows[0, 0], gone, 0.0, &work)
    dpcal_free_work(&work)
    if status == DPCAL_MEMORY:
        raise MemoryError
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
    law.q, law.log_q, law.sigma, law.step = q, log(q), sigma, 1.0
    with nogil:
        dpcal_weights(&law, dpcal_angle_of(angle), &rows[0, 0], padded, &rows[1, 0], &rows[2, 0])
    return table[1, :n] if angle == 0.0 else table[1, :n] + 1j * table[2, :n]
