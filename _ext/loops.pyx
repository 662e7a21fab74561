"""The loop of DP-SGD (Abadi et al. 2016, Algorithm 1), fused: sample, clip, sum, add noise, step.

Nothing is allocated per step and the interpreter lock is released throughout. A batch is sampled
and summed block by block, so memory does not depend on its size.
"""

cimport cython
from libc.math cimport INFINITY, sqrt
from numpy.random cimport bitgen_t

from dpcal._ext.gradients cimport Batch, ClippedSum
from dpcal._ext.noise cimport bits_of, next_rows
from dpcal._ext.sums cimport Sums

from dpcal._ext.gradients import aligned_zeros

cdef enum:
    BLOCK = 1024


@cython.final
cdef class _Step:
    """The kernel, random streams, constants and scratch space of a step."""

    cdef ClippedSum kernel
    cdef bitgen_t* sampling
    cdef Sums sums
    cdef double sampling_probability, max_norm, expected_batch_size, l2, radius, reach, squares
    cdef Py_ssize_t penalized
    cdef double[::1] w, total
    cdef Py_ssize_t[BLOCK] rows

    cdef void noisy_sum(self) noexcept nogil:
        """Set ``total`` to the sum of clipped gradients over a fresh Poisson sample, plus noise."""
        cdef Py_ssize_t position = 0
        cdef Py_ssize_t count = BLOCK
        cdef Py_ssize_t d = self.kernel.dimension
        cdef double clip = self.sums.clip(self.max_norm, d)
        self.sums.begin(self.max_norm, &self.total[0], d)
        while count == BLOCK:
            count = next_rows(
                self.sampling,
                self.sampling_probability,
                self.kernel.n,
                &position,
                self.rows,
                BLOCK,
            )
            self.kernel.add(
                &self.w[0], NULL, Batch(&self.rows[0], count, clip), &self.total[0]
            )
        self.sums.finish(self.max_norm, &self.total[0], d)

    cdef void move(self, double learning_rate) noexcept nogil:
        """Step against the noisy mean gradient plus the regulariser's, then project."""
        cdef double gradient, longest
        cdef double squares = 0
        cdef Py_ssize_t j
        for j in range(self.kernel.dimension):
            gradient = self.total[j] / self.expected_batch_size
            if j < self.penalized:
                gradient += self.l2 * self.w[j]
            self.total[j] = gradient
            self.squares += gradient * gradient
        longest = self.reach / sqrt(self.squares)
        if longest < learning_rate:
            learning_rate = longest
        for j in range(self.kernel.dimension):
            self.w[j] -= learning_rate * self.total[j]
            squares += self.w[j] * self.w[j]
        if squares > self.radius * self.radius:
            squares = self.radius / sqrt(squares)
            for j in range(self.kernel.dimension):
                self.w[j] *= squares


def descend(
    ClippedSum kernel not None,
    double[::1] w not None,
    *,
    const double[::1] learning_rates not None,
    sampling,
    Sums sums not None,
    double sampling_probability,
    double max_norm,
    double expected_batch_size,
    double l2,
    Py_ssize_t penalized,
    double radius,
    double[::1] average=None,
    Py_ssize_t averaged=0,
    double growth=0.0,
    double reach=INFINITY,
    double[::1] squares=None,
):
    """Take one DP-SGD step per learning rate, in place.

    Ranges are the caller's to check: :class:`dpcal.optim.PrivateOracle` is the only caller that
    meets real records.

    Parameters
    ----------
    kernel
        Clipped gradient sums of the records.
    w
        Parameters, shape (dimension,); overwritten.
    learning_rates
        One per step, shape (k,).
    sampling, sums
        A ``numpy.random.Generator``, and sums whose noise comes from another one.
    sampling_probability
        In (0, 1].
    max_norm
        Clipping bound > 0.
    expected_batch_size
        What the noisy sum is divided by, > 0.
    l2, penalized
        Strength >= 0 of the regulariser, and how many leading coordinates it covers.
    radius
        Radius > 0 of the ball around the origin that iterates are projected onto; infinite for
        none.
    average, averaged
        Running mean of iterates, shape (dimension,), overwritten; and how many iterates it holds
        already.
    growth
        Weights of the mean: 0 for equal ones, 1 for those that grow with the iterate's number.
    reach, squares
        No rate is above ``reach`` over the root of the sum of squared norms of all gradients so
        far, of which ``squares``, shape (1,), holds that of those before; it is overwritten.
    """
    if w.shape[0] != kernel.dimension or (
        average is not None and average.shape[0] != kernel.dimension
    ):
        raise ValueError(f"w and average must have shape ({kernel.dimension},).")
    if sampling.bit_generator.lock is sums.lock:
        raise ValueError("sampling and noise must be distinct generators, got the same one twice.")
    cdef _Step step = _Step()
    step.kernel = kernel
    step.sampling = bits_of(sampling)
    step.sums = sums
    step.sampling_probability = sampling_probability
    step.max_norm = max_norm
    step.expected_batch_size = expected_batch_size
    step.l2 = l2
    step.penalized = penalized
    step.radius = radius
    step.reach = reach
    step.squares = 0 if squares is None else squares[0]
    step.w = kernel.padded(w)
    step.total = aligned_zeros(kernel.stride)
    cdef Py_ssize_t t, j
    with sampling.bit_generator.lock, sums.lock, nogil:
        for t in range(learning_rates.shape[0]):
            step.noisy_sum()
            step.move(learning_rates[t])
            if average is not None:
                for j in range(kernel.dimension):
                    average[j] += (
                        (step.w[j] - average[j]) * (1 + growth) / (averaged + t + 1 + growth)
                    )
    w[:] = step.w[: kernel.dimension]
    if squares is not None:
        squares[0] = step.squares
