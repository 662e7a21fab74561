"""Sums of clipped contributions in whole numbers: exact, and so as sensitive as they say.

Sums of doubles are more sensitive than their terms are long, because each addition rounds
(Casacuberta, Shoemate, Vadhan and Wagaman 2022). Here every record's clipped contribution is scaled
so that its bound is a whole number, rounded towards zero, checked in whole numbers, and added
without rounding: in any order, one record moves the sum by at most the bound, exactly.

>>> import numpy as np
>>> table = np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]])
>>> total = np.zeros(2, dtype=np.int64)
>>> add_rows(table, 1.0, 1000, total)
>>> total.tolist()
[899, 1199]
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.stdint cimport int64_t

import numpy as np

from dpcal._ext.gradients cimport ClippedSum, aligned_zeros

cdef extern from *:
    ctypedef long long wide "__int128"

# The largest bound in whole numbers: a square fits in 62 bits.
MOST = 1 << 30


def add_rows(const double[:, ::1] table not None, double max_norm, int64_t bound, int64_t[::1] total):
    """Add each row, clipped to ``max_norm`` and rounded towards zero, to ``total``, in place.

    Parameters
    ----------
    table
        Shape (m, d). A row with an entry that is NaN or infinite counts as zero.
    max_norm
        Bound in [1e-280, 1e280] on the L2 norm of a row's contribution.
    bound
        What ``max_norm`` is in whole numbers, from 1 to 2^30.
    total
        Shape (d,).
    """
    cdef Py_ssize_t i, m = table.shape[0], d = table.shape[1]
    _check(max_norm, bound)
    if total.shape[0] != d:
        raise ValueError(f"total must have shape ({d},), got ({total.shape[0]},).")
    scratch = np.empty(d, dtype=np.int64)
    cdef int64_t[::1] rounded = scratch
    with nogil:
        for i in range(m if d else 0):
            _add_row(&table[i, 0], d, max_norm, bound, &rounded[0], &total[0])


def clipped_sum(ClippedSum kernel not None, w, rows, *, double max_norm, int64_t bound):
    """Return the sum of clipped gradients over ``rows``, in whole numbers.

    Parameters
    ----------
    kernel
        Gives a record's clipped gradient.
    w
        Parameters, shape (dimension,).
    rows
        Row numbers in [0, n).
    max_norm, bound
        As for :func:`add_rows`.

    Returns
    -------
    numpy.ndarray
        Shape (dimension,), dtype int64, in units of ``max_norm / bound``.
    """
    return _sum(kernel, kernel.padded(w), None, kernel.checked(rows), max_norm, bound)


def clipped_difference_sum(
    ClippedSum kernel not None, w, v, rows, *, double max_norm, int64_t bound
):
    """Return the sum over ``rows`` of clipped differences of gradients, in whole numbers.

    Parameters
    ----------
    kernel
        Gives the clipped difference of a record's gradients.
    w, v
        Parameters, shape (dimension,): gradients at ``w`` minus at ``v``.
    rows, max_norm, bound
        As for :func:`clipped_sum`.
    """
    return _sum(
        kernel, kernel.padded(w), kernel.padded(v), kernel.checked(rows), max_norm, bound
    )


cdef _sum(ClippedSum kernel, w, v, rows, double max_norm, int64_t bound):
    _check(max_norm, bound)
    alone = aligned_zeros(kernel.stride)
    scratch = np.empty(kernel.stride, dtype=np.int64)
    total = np.zeros(kernel.dimension, dtype=np.int64)
    cdef double[::1] one = alone
    cdef int64_t[::1] rounded = scratch
    cdef int64_t[::1] sums = total
    cdef const double[::1] to = w
    cdef const double[::1] origin = w if v is None else v
    cdef const Py_ssize_t[::1] index = rows
    cdef Py_ssize_t i, m = index.shape[0]
    cdef bint differs = v is not None
    with nogil:
        for i in range(m):
            one[:] = 0
            if differs:
                kernel.add_difference(&to[0], &origin[0], &index[i], 1, max_norm, &one[0])
            else:
                kernel.add(&to[0], &index[i], 1, max_norm, &one[0])
            _add_row(&one[0], kernel.dimension, max_norm, bound, &rounded[0], &sums[0])
    return total


cdef _check(double max_norm, int64_t bound):
    # Within these limits the scale, bound / max_norm, neither overflows nor vanishes.
    if not 1e-280 <= max_norm <= 1e280 or not 1 <= bound <= MOST:
        raise ValueError(
            "max_norm must be a number in [1e-280, 1e280] and bound a whole number from 1 to 2^30, "
            f"got {max_norm!r} and {bound!r}."
        )


cdef void _add_row(
    const double* row,
    Py_ssize_t d,
    double max_norm,
    int64_t bound,
    int64_t* rounded,
    int64_t* total,
) noexcept nogil:
    """Add one row, clipped and rounded towards zero; nothing if it is not finite."""
    cdef double largest = 0, square = 0, norm, unit, factor
    cdef Py_ssize_t j
    for j in range(d):
        # Comparisons with NaN are false, so that it is not the largest: it is looked for apart.
        if not isfinite(row[j]):
            return
        if fabs(row[j]) > largest:
            largest = fabs(row[j])
    if largest == 0:
        return
    # Entries are divided first, so that squares neither overflow nor vanish.
    for j in range(d):
        unit = row[j] / largest
        square += unit * unit
    norm = largest * sqrt(square)
    # Clipped by a hair more than doubles resolve; what the hair misses is seen in whole numbers.
    factor = bound / max_norm if norm <= max_norm else bound * (1 - 1e-12) / norm
    if norm == INFINITY:
        factor = bound * (1 - 1e-12) / sqrt(square) / largest
    while not _rounds(row, d, factor, bound, rounded):
        factor *= 1 - 1e-9
    for j in range(d):
        total[j] += rounded[j]


cdef bint _rounds(
    const double* row, Py_ssize_t d, double factor, int64_t bound, int64_t* rounded
) noexcept nogil:
    """Write ``factor`` times a row, rounded towards zero; return whether its norm is in bounds."""
    cdef wide square = 0
    cdef double scaled
    cdef Py_ssize_t j
    for j in range(d):
        scaled = row[j] * factor
        if not fabs(scaled) <= bound:
            scaled = bound if scaled > 0 else -bound
        rounded[j] = <int64_t>scaled
        square += <wide>rounded[j] * rounded[j]
    return square <= <wide>bound * bound
