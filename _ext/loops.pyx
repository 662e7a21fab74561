"""The one compiled loop of the optimizers: steps along noisy gradients, and along their differences.

A step is an answer, a move against it, and a projection. Where answers are those of a
:class:`dpcal._ext.answers.Slot`, nothing is allocated for a step, and the interpreter is called
only for signals, and for projections that are not onto a ball. A function can answer too.

>>> import numpy as np
>>> from dpcal._ext.answers import Records, Slot
>>> from dpcal._ext.gradients import ClippedSum
>>> from dpcal._ext.losses import SquaredLoss
>>> from dpcal._ext.sums import Sums
>>> from dpcal.optim.boundary.discrete import table_of
>>> kernel = ClippedSum(SquaredLoss(), np.eye(2), np.ones(2), intercept=False)
>>> sampling, noise = np.random.default_rng(0).spawn(2)
>>> given = {"sampling": sampling, "sampling_probability": 1.0, "batch_size": 0, "size": 2.0,
...          "everyone": True}
>>> records, sums = Records(kernel, np.zeros(2)), Sums(noise, 0.01, 2, table_of())
>>> fresh, change = (Slot(records, sums, max_norm=9.0, **given) for _ in range(2))
>>> steps = Steps(fresh, change, np.zeros(2), rates=np.full(3, 2.0), period=2)
>>> steps.take(3), steps.w.round().tolist()  # (w - 1) / 2 vanishes after a full step
(3, [1.0, 1.0])
>>> half = Steps(lambda w: (w - 1) / 2, None, np.zeros(2), rates=np.ones(3))
>>> half.take(3), half.w.tolist()
(3, [0.875, 0.875])
"""

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, isfinite, sqrt
from libc.string cimport memcpy

from dpcal._ext.answers cimport Slot

from contextlib import nullcontext

import numpy as np

from dpcal._ext.gradients import aligned_zeros

cnp.import_array()


cdef object copy_of(const double* x, Py_ssize_t size):
    cdef cnp.npy_intp length = size
    made = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_DOUBLE)
    memcpy(cnp.PyArray_DATA(<cnp.ndarray>made), x, size * sizeof(double))
    return made


cdef class Steps:
    """Steps ``w <- P(w - eta_t g_t)``. The caller writes answers into the ledger before.

    Of step t, g_t is an answer of ``refresh`` at w_t if t is a multiple of ``period``, and else
    g_(t-1) plus an answer of ``difference`` between w_t and w_(t-1).

    Parameters
    ----------
    refresh, difference
        Slots of one oracle, whose generators are the same and which draw their batches; or
        functions of w_t, and of w_t and w_(t-1). The latter None if all g_t are fresh.
    w
        The start, shape (dimension,).
    rates
        eta_t of all steps.
    period, step
        Steps from one fresh gradient to the next; number of the first step.
    radius
        Of the ball around the origin that w is projected onto; infinite for none.
    reach
        No rate is above ``reach / sqrt(|g_0|^2 + ... + |g_t|^2)``.
    averaged_from, growth
        Step from whose end on iterates are averaged, and whether their weights are equal (0) or
        grow with their number (1).
    fixed, project
        How many leading parameters stay, and the projection of the others in place of a ball.

    Arguments out of range, and answers of a function with another shape, raise a ValueError.
    """

    cdef Slot refresh, difference
    cdef object fresh, change, project, lock, noise_lock
    cdef object held
    cdef double *at
    cdef double *before
    cdef double *estimate
    cdef double *to
    cdef double *average
    cdef const double[::1] rates
    cdef readonly Py_ssize_t step
    cdef Py_ssize_t d, period, fixed, averaged_from
    cdef double radius, reach, squares, growth

    def __init__(
        self,
        refresh,
        difference,
        w,
        *,
        rates,
        Py_ssize_t period=1,
        Py_ssize_t step=0,
        double radius=INFINITY,
        double reach=INFINITY,
        averaged_from=None,
        double growth=0.0,
        Py_ssize_t fixed=0,
        project=None,
    ):
        self.d = len(w)
        if period < 1 or not 0 <= fixed <= self.d:
            raise ValueError(
                f"period must be at least 1, and fixed in [0, {self.d}], got {period} and {fixed}."
            )
        # Without differences every gradient is fresh.
        self.period = 1 if difference is None else period
        cdef double[:, ::1] held
        if isinstance(refresh, Slot):
            self.take_slots(refresh, difference)
            held = self.refresh.records.vectors(5)
        else:
            self.fresh, self.change = refresh, difference
            self.lock = self.noise_lock = nullcontext()
            held = aligned_zeros(5 * self.d).reshape(5, self.d)
        self.rates = np.ascontiguousarray(rates, dtype=np.float64)
        self.radius, self.reach, self.project, self.fixed = radius, reach, project, fixed
        self.averaged_from = len(rates) if averaged_from is None else averaged_from
        self.growth = growth
        self.held = held
        self.at, self.before, self.estimate = &held[0, 0], &held[1, 0], &held[2, 0]
        self.to, self.average = &held[3, 0], &held[4, 0]
        self.start(w, w, np.zeros(self.d), step)

    cdef int take_slots(self, Slot refresh, Slot difference) except -1:
        """Let slots answer; refuse slots that do not draw their batches."""
        cdef Py_ssize_t dimension = refresh.records.kernel.dimension
        if self.d != dimension:
            raise ValueError(f"w must have shape ({dimension},), got {self.d} numbers.")
        if not (refresh.draws() and (difference is None or difference.draws())):
            raise ValueError("refresh and difference must draw their batches, got one without.")
        self.refresh, self.difference = refresh, difference
        self.lock = refresh.lock if difference is None or not refresh.everyone else difference.lock
        self.noise_lock = refresh.sums.lock
        return 0

    def start(
        self,
        const double[::1] w not None,
        const double[::1] previous not None,
        const double[::1] gradient not None,
        Py_ssize_t step,
    ):
        """Go on from an iterate, the one before, the estimate there, and a number of steps."""
        if not w.shape[0] == previous.shape[0] == gradient.shape[0] == self.d:
            raise ValueError(f"w must have shape ({self.d},), got {w.shape[0]} numbers.")
        if step < 0:
            raise ValueError(f"step must be at least 0, got {step}.")
        memcpy(self.at, &w[0], self.d * sizeof(double))
        memcpy(self.before, &previous[0], self.d * sizeof(double))
        memcpy(self.estimate, &gradient[0], self.d * sizeof(double))
        self.step = step

    @property
    def w(self):
        """The iterate."""
        return copy_of(self.at, self.d)

    @property
    def previous(self):
        """The iterate before."""
        return copy_of(self.before, self.d)

    @property
    def gradient(self):
        """The estimate of the last step."""
        return copy_of(self.estimate, self.d)

    @property
    def mean(self):
        """The mean of iterates."""
        return copy_of(self.average, self.d)

    def take(self, Py_ssize_t count):
        """Take so many steps; return how many: fewer where an iterate would not be finite."""
        cdef Py_ssize_t end = min(self.step + count, self.rates.shape[0]), first = self.step
        with self.lock, self.noise_lock, nogil:
            while self.step < end and self.estimated() and self.moved():
                self.step += 1
        return self.step - first

    cdef bint estimated(self) except -1 nogil:
        """Answer at the iterate; false where there is no finite answer."""
        cdef Py_ssize_t j
        if self.refresh is None:
            with gil:
                self.asked()
        elif self.step % self.period == 0:
            return self.refresh.take(self.at, NULL, self.estimate, NULL, 0)
        elif not self.difference.take(self.at, self.before, self.to, NULL, 0):
            return False
        for j in range(self.d if self.step % self.period else 0):
            self.estimate[j] += self.to[j]
        return True

    cdef int asked(self) except -1:
        """Let a function answer: a gradient at its place, or a difference to be added."""
        cdef bint is_fresh = self.step % self.period == 0
        answer = self.fresh(self.w) if is_fresh else self.change(self.w, self.previous)
        cdef const double[::1] numbers = np.ascontiguousarray(answer, dtype=np.float64)
        if numbers.shape[0] != self.d:
            raise ValueError(f"an answer must have shape ({self.d},), got {np.shape(answer)}.")
        memcpy(self.estimate if is_fresh else self.to, &numbers[0], self.d * sizeof(double))
        return 0

    cdef bint moved(self) except -1 nogil:
        """Step against the estimate; false, at the iterate before, if that overflows."""
        cdef double rate = self.rates[self.step], norm = 0, count
        cdef Py_ssize_t j
        if self.reach < INFINITY:
            for j in range(self.d):
                self.squares += self.estimate[j] * self.estimate[j]
            rate = min(rate, self.reach / sqrt(self.squares))
        for j in range(self.d):
            self.to[j] = self.at[j] - rate * self.estimate[j] if j >= self.fixed else self.at[j]
        if self.project is not None:
            with gil:
                self.projected()
        for j in range(self.d):
            norm += self.to[j] * self.to[j]
        if not isfinite(norm):
            return False
        if norm > self.radius * self.radius:
            norm = self.radius / sqrt(norm)
            for j in range(self.d):
                self.to[j] *= norm
        self.at, self.before, self.to = self.to, self.at, self.before
        count = self.step + 1 - self.averaged_from
        for j in range(self.d if count > 0 else 0):
            self.average[j] += (self.at[j] - self.average[j]) * (1 + self.growth) / (
                count + self.growth
            )
        return True

    cdef int projected(self) except -1:
        """Project what moves."""
        free = np.asarray(<double[: self.d - self.fixed]>(self.to + self.fixed))
        free[:] = self.project(free.copy())
        return 0
