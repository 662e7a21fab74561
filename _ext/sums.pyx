"""How do kernels sum in whole numbers, and where do the sums get their noise?

Kernels add records' contributions to an array of doubles, one record after another. A sum begins
with a number M that is so large that neighboring doubles around it are a grid's step h apart, so
that **every addition rounds one record's contribution to the grid**, and nothing else (the sums of
whole numbers after that are exact). The sum is then M away from a whole number of steps, to which
noise is added in whole numbers.

Let a record's contribution, in one coordinate, be x. Adding it moves the sum by x rounded to the
nearest multiple of h. What other records add is the same with and without it, but for ties, which a
processor rounds to an even number of steps: where the two sums are an odd number of steps apart,
the first tie moves one of them by a step, after which they are an even number apart, and all
further ties move both alike. So one record moves a coordinate by at most 3 h / 2 beyond x, and the
sum of d coordinates by at most ``3 h sqrt(d) / 2`` beyond the norm of its contribution. Kernels are
asked to clip to a bound that is shorter by as much. The steps are powers of two.

>>> import numpy as np
>>> from dpcal._ext.gradients import ClippedSum
>>> from dpcal._ext.losses import SquaredLoss
>>> kernel = ClippedSum(SquaredLoss(), np.array([[3.0, 4.0], [0.3, 0.4]]), np.ones(2),
...                           intercept=False)
>>> total = whole_sum(kernel, np.zeros(2), None, np.arange(2), max_norm=1.0)
>>> (total * grid_step(1.0)).round(4).tolist()
[-0.9, -1.2]
"""

from libc.math cimport NAN, fabs, frexp, ldexp, rint, sqrt
from libc.stdint cimport int64_t
from dpcal._ext.discrete cimport DiscreteTable, factors_covering
from dpcal._ext.gradients cimport Batch, ClippedSum
from dpcal._ext.keyed cimport bits_of

import numpy as np

from dpcal._ext.gradients import aligned_zeros

cdef extern from *:
    ctypedef long long wide "__int128"

cdef extern from "steps.h":
    void add_singles "dpcal_add_singles"(
        const float* table, int64_t m, int64_t d, const double* factors, double* total
    ) noexcept nogil
    void add_doubles "dpcal_add_doubles"(
        const double* table, int64_t m, int64_t d, const double* factors, double* total
    ) noexcept nogil
    void singles_squared "dpcal_squares_of_singles"(
        const float* table, int64_t m, int64_t d, double* squares
    ) noexcept nogil
    void doubles_squared "dpcal_squares_of_doubles"(
        const double* table, int64_t m, int64_t d, double* squares
    ) noexcept nogil
    void steps_loop "dpcal_in_steps"(double* sums, int64_t d) noexcept nogil
    void units_loop "dpcal_in_units"(
        int64_t* total, int64_t d, const int64_t* noise, double step, double size
    ) noexcept nogil

cdef enum:
    MOST_SQUARES = 1 << 20  # squares of numbers up to 2^52 that fit in a sum
    DIGITS = 20  # a bound is 2^20 to 2^21 steps long

# Relative margin by which contributions are clipped shorter, for the rounding of kernels.
cdef double ROUNDING = 2.0**-40


# Largest public number in a norm, in steps.
cdef double LARGEST = 2.0**50

# Most records with a sum that stays near M.
MOST_RECORDS = 1 << 29


cdef double step_of(double bound) noexcept nogil:
    cdef int exponent
    frexp(bound, &exponent)
    return ldexp(1.0, exponent - 1 - DIGITS)


cdef double middle_of(double step) noexcept nogil:
    """M: doubles between two thirds and four thirds of it are one step apart."""
    return 1.5 * 4503599627370496.0 * step


cdef double shortened(double bound, Py_ssize_t size) noexcept nogil:
    return bound * (1 - ROUNDING) - 1.5 * (sqrt(size) + 1) * step_of(bound)


cdef class Sums:
    """Sums in whole numbers with discrete Gaussian noise.

    Parameters
    ----------
    generator
        Source of noise.
    noise_multiplier
        Standard deviation of the noise in units of the bound on contributions, at least 0.
    size
        Most coordinates of a sum.
    table
        Of the narrow law that discrete noise is made of, which covers a Gaussian.
    """

    def __init__(
        self,
        generator,
        double noise_multiplier,
        Py_ssize_t size,
        DiscreteTable table not None,
    ):
        self.bits = bits_of(generator)
        self.generator, self.lock = generator, generator.bit_generator.lock
        self.noise_multiplier, self.table = noise_multiplier, table
        self.whole = np.zeros(size, dtype=np.int64)

    cdef double clip(self, double bound, Py_ssize_t size) noexcept nogil:
        """Return what kernels clip to, so that a record moves the sum by at most the bound."""
        return shortened(bound, size)

    cdef void begin(self, double bound, double* total, Py_ssize_t size) noexcept nogil:
        """Write what kernels add to."""
        cdef double middle = middle_of(step_of(bound))
        cdef Py_ssize_t j
        for j in range(size):
            total[j] = middle

    cdef void finish(self, double bound, double* total, Py_ssize_t size) noexcept nogil:
        """Add the noise of a bound on contributions; what comes out is in their units."""
        cdef double step = step_of(bound)
        cdef Py_ssize_t j
        steps_of(total, step, size, &self.whole[0])
        self.add_noise(self.noise_multiplier * (bound / step), &self.whole[0], size)
        for j in range(size):
            total[j] = self.whole[j] * step

    cdef void add_noise(self, double sigma, int64_t* whole, Py_ssize_t size) noexcept nogil:
        if sigma != self.sigma:
            self.sigma, self.terms = sigma, factors_covering(sigma, self.table, self.factors)
        self.table.add(self.bits, self.factors, self.terms, whole, size)

    cdef void correlate(
        self, double bound, double* total, const int64_t* row, int digits, Py_ssize_t size
    ) noexcept nogil:
        """Add a row of noise whose steps are finer by some digits; the sum is in these steps."""
        cdef double step = step_of(bound)
        cdef Py_ssize_t j
        steps_of(total, step, size, &self.whole[0])
        for j in range(size):
            total[j] = (self.whole[j] * (<int64_t>1 << digits) + row[j]) * step

    cdef double norm(
        self, double bound, const double* total, const double* offset, Py_ssize_t size
    ) noexcept nogil:
        """Return the noisy norm of a sum plus a public vector; NaN, undrawn, where it overflows."""
        cdef double step = step_of(bound), public, root
        cdef wide squares = 0
        cdef int64_t entry
        cdef Py_ssize_t j
        if size > MOST_SQUARES:
            return NAN
        steps_of(total, step, size, &self.whole[0])
        for j in range(size):
            public = rint(offset[j] / step)
            if not fabs(public) <= LARGEST:
                return NAN
            entry = self.whole[j] + <int64_t>public
            squares += <wide>entry * entry
        entry = root_of(squares)
        if entry > LARGEST:
            return NAN  # so far from M, doubles are more than a step apart
        root = middle_of(step) + entry * step
        self.finish(bound, &root, 1)
        return root


cdef int64_t root_of(wide square) noexcept nogil:
    """Return the root of a whole number below 2^125, rounded down."""
    cdef int64_t root
    if square == 0:
        return 0
    root = <int64_t>sqrt(<double>square)
    root = <int64_t>((root + square / root) / 2)
    while <wide>root * root > square:
        root -= 1
    while <wide>(root + 1) * (root + 1) <= square:
        root += 1
    return root


cdef void steps_of(
    const double* total, double step, Py_ssize_t size, int64_t* whole
) noexcept nogil:
    """Write how many steps a sum is away from M: both are multiples of the step."""
    cdef double middle = middle_of(step), inverse = 1 / step
    cdef Py_ssize_t j
    for j in range(size):
        whole[j] = <int64_t>((total[j] - middle) * inverse)


def whole_sum(ClippedSum kernel not None, w, v, rows, *, double max_norm):
    """Return the sum of clipped gradients, or of their differences, in steps of the grid.

    Parameters
    ----------
    kernel
        Gives clipped gradients.
    w, v
        Parameters, shape (dimension,): gradients at ``w``, minus those at ``v`` unless it is None.
    rows
        At most 2^29 row numbers in [0, n).
    max_norm
        Bound in [1e-290, 1e290] by which one record moves the sum, in L2 norm, at most.

    Returns
    -------
    numpy.ndarray
        Shape (dimension,), dtype int64, in units of ``grid_step(max_norm)``.
    """
    check_bound(max_norm)
    cdef const Py_ssize_t[::1] index = kernel.checked(rows)
    cdef Py_ssize_t d = kernel.dimension, j
    cdef double step = step_of(max_norm), middle = middle_of(step)
    cdef double[::1] total = aligned_zeros(kernel.stride)
    cdef double[::1] to = kernel.padded(w)
    cdef double[::1] origin = to if v is None else kernel.padded(v)
    made = np.empty(d, dtype=np.int64)
    cdef int64_t[::1] whole = made
    cdef bint differs = v is not None
    if index.shape[0] > MOST_RECORDS:
        raise ValueError(f"rows must be at most 2^29, got {index.shape[0]}.")
    with nogil:
        for j in range(d):
            total[j] = middle
        if index.shape[0]:
            kernel.add(
                &to[0],
                &origin[0] if differs else NULL,
                Batch(&index[0], index.shape[0], shortened(max_norm, d)),
                &total[0],
            )
        steps_of(&total[0], step, d, &whole[0])
    return made


def whole_norm(const int64_t[::1] total not None, const double[::1] steps not None):
    """Return the norm of the sum of two vectors of whole numbers, rounded down.

    Parameters
    ----------
    total, steps
        Shape (d,); the sum's squared norm is below 2^125.
    """
    cdef wide squares = 0
    cdef int64_t entry
    cdef Py_ssize_t j
    if steps.shape[0] != total.shape[0]:
        raise ValueError(f"steps must have shape ({total.shape[0]},), got ({steps.shape[0]},).")
    for j in range(total.shape[0]):
        entry = total[j] + <int64_t>steps[j]
        squares += <wide>entry * entry
    return root_of(squares)


def in_steps(double[::1] sums not None):
    """Return sums below 2^62, in steps of a grid, rounded towards zero, as whole numbers.

    The result is in the memory of ``sums``, which must not be used again.
    """
    if sums.shape[0]:
        steps_loop(&sums[0], sums.shape[0])
    return np.asarray(sums).view(np.int64)


def add_scaled(table, factors, double[::1] total not None):
    """Add rows of a table in single or double precision, times factors, to a total in doubles.

    Parameters
    ----------
    table, factors
        Arrays of shapes (m, d) and (m,), the factors in doubles.
    total
        Shape (d,), in place: each of its numbers gets m products, which are rounded once or twice.
    """
    cdef const double[::1] shares = factors
    cdef const float[:, ::1] singles
    cdef const double[:, ::1] doubles
    cdef Py_ssize_t m = shares.shape[0], d = total.shape[0]
    if table.shape != (m, d):
        raise ValueError(f"table must have shape {(m, d)}, got {table.shape}.")
    if not m or not d:
        return
    if table.dtype == np.float32:
        singles = table
        add_singles(&singles[0, 0], m, d, &shares[0], &total[0])
    else:
        doubles = table
        add_doubles(&doubles[0, 0], m, d, &shares[0], &total[0])


def squares_of(table):
    """Return the squared norms of rows, summed in doubles, shape (m,).

    Parameters
    ----------
    table
        Shape (m, d), in single or double precision.
    """
    cdef const float[:, ::1] singles
    cdef const double[:, ::1] doubles
    made = np.zeros(table.shape[0])
    cdef double[::1] squares = made
    if not table.size:
        return made
    if table.dtype == np.float32:
        singles = table
        singles_squared(&singles[0, 0], singles.shape[0], singles.shape[1], &squares[0])
    else:
        doubles = table
        doubles_squared(&doubles[0, 0], doubles.shape[0], doubles.shape[1], &squares[0])
    return made


def in_units(int64_t[::1] total not None, const int64_t[::1] noise, double step, double size):
    """Return whole steps, plus noise if it is given, in the units of the answer, over a size > 0.

    The result is in the memory of ``total``, which must not be used again.
    """
    cdef Py_ssize_t d = total.shape[0]
    cdef const int64_t* added = NULL
    if noise is not None and noise.shape[0] != d:
        raise ValueError(f"noise must have shape ({d},), got ({noise.shape[0]},).")
    if d and noise is not None:
        added = &noise[0]
    if d:
        units_loop(&total[0], d, added, step, size)
    return np.asarray(total).view(np.float64)


def grid_step(double max_norm):
    """Return the step of the grid for a bound in [1e-290, 1e290]: a power of two."""
    check_bound(max_norm)
    return step_of(max_norm)


cdef check_bound(double max_norm):
    if not 1e-290 <= max_norm <= 1e290:
        raise ValueError(f"max_norm must be a number in [1e-290, 1e290], got {max_norm!r}.")
