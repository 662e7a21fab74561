"""Sums of clipped contributions in whole numbers: exact, and so as sensitive as they say.

Sums of doubles are more sensitive than their terms are long, because each addition rounds
(Casacuberta, Shoemate, Vadhan and Wagaman 2022). Here every record's clipped contribution is scaled
so that its bound is a whole number, rounded towards zero, checked in whole numbers, and added
without rounding: in any order, one record moves the sum by at most the bound, exactly.

>>> import numpy as np
>>> table = np.array([[3.0, 4.0], [0.25, 0.5], [np.nan, 1.0]])
>>> total = np.zeros(2, dtype=np.int64)
>>> add_rows(table, 1.0, 1000, total)
>>> total.tolist()
[850, 1300]
"""

from libc.math cimport NAN, fabs, frexp, isfinite, ldexp, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

import numpy as np

from dpcal._ext.gradients cimport Batch, ClippedSum

cdef extern from *:
    ctypedef long long wide "__int128"

# Above any whole number of a factor; 2^20 squares of it fit in a word.
cdef double LARGEST = (1 << 21) + 1
cdef enum:
    WIDEST = 1 << 20

# Largest bound in whole numbers: entries fit in 32 bits, and squares in 62.
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
    scratch = np.empty(d, dtype=np.int32)
    cdef int32_t[::1] rounded = scratch
    with nogil:
        for i in range(m if d else 0):
            _add_row(&table[i, 0], d, max_norm, bound, &rounded[0], &total[0])


def clipped_loss_sum(ClippedSum kernel not None, w, rows, *, double max_loss, int64_t bound):
    """Return the sum over ``rows`` of clipped losses, in whole numbers.

    Parameters
    ----------
    kernel
        Gives a record's clipped loss.
    w
        Parameters, shape (dimension,).
    rows
        Row numbers in [0, n).
    bound
        As for :func:`add_rows`.
    max_loss
        Bound in [1e-280, 1e280] on the size of a loss.

    Returns
    -------
    numpy.ndarray
        Shape (1,), dtype int64, in units of ``max_loss / bound``.
    """
    _check(max_loss, bound)
    total = np.zeros(1, dtype=np.int64)
    cdef int64_t[::1] sums = total
    cdef const double[::1] at = kernel.padded(w)
    cdef const Py_ssize_t[::1] index = kernel.checked(rows)
    cdef Py_ssize_t i, m = index.shape[0]
    cdef double loss
    cdef int32_t rounded
    with nogil:
        for i in range(m):
            loss = kernel.loss_sum(&at[0], Batch(&index[i], 1, max_loss))
            _add_row(&loss, 1, max_loss, bound, &rounded, &sums[0])
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
    int32_t* rounded,
    int64_t* total,
) noexcept nogil:
    """Add one row, clipped and rounded towards zero; nothing if it is not finite."""
    cdef Py_ssize_t j
    cdef double factor
    if not _rounds(row, d, bound / max_norm, bound, rounded):
        factor = _clipping_factor(row, d, max_norm, bound)
        if factor == 0:
            return
        while not _rounds(row, d, factor, bound, rounded):
            factor *= 1 - 1e-9
    for j in range(d):
        total[j] += rounded[j]


cdef double _clipping_factor(
    const double* row, Py_ssize_t d, double max_norm, int64_t bound
) noexcept nogil:
    """Return what brings a row's norm to the bound, about; 0 if the row is zero or not finite."""
    cdef double largest = 0, square = 0, norm, share
    cdef Py_ssize_t j
    for j in range(d):
        if not isfinite(row[j]):
            return 0
        if fabs(row[j]) > largest:
            largest = fabs(row[j])
    if largest == 0:
        return 0
    # Entries are divided first, so that squares neither overflow nor vanish.
    for j in range(d):
        share = row[j] / largest
        square += share * share
    norm = largest * sqrt(square)
    if norm <= max_norm:
        return bound / max_norm
    return bound / sqrt(square) / largest


cdef bint _rounds(
    const double* row, Py_ssize_t d, double factor, int64_t bound, int32_t* rounded
) noexcept nogil:
    """Write ``factor`` times a row, rounded towards zero; return whether its norm is in bounds.

    A row with an entry that is NaN, infinite or alone out of bounds is not.
    """
    cdef double scaled
    cdef bint within = True
    cdef int64_t square = 0
    cdef wide squares = 0
    cdef Py_ssize_t j, start = 0, stop
    # Squares of at most bound^2 that add up to less than 2^62.
    cdef Py_ssize_t together = ((<int64_t>1) << 62) // (bound * bound)
    while start < d:
        stop = d if d - start < together else start + together
        square = 0
        for j in range(start, stop):
            scaled = row[j] * factor
            within &= fabs(scaled) <= bound
            scaled = scaled if fabs(scaled) <= bound else 0.0
            rounded[j] = <int32_t>scaled
            square += <int64_t>rounded[j] * rounded[j]
        squares += square
        start = stop
    return within and squares <= <wide>bound * bound


def whole_factors(
    const double[:, ::1] left not None,
    const double[:, ::1] right not None,
    double[::1] squares not None,
    *,
    int exponent,
    int bits,
):
    """Return rows of whole numbers whose outer products are those of ``left`` and ``right``, cut.

    A unit of a product is 2^(exponent - 2 bits). A right row is scaled by a power of two to a norm
    in [1/2, 1], its left row by the inverse, and both are rounded towards zero. A row with a number
    that is not finite gets zeros, and so does one whose whole numbers are longer than 2^bits, or
    2^(bits + 1) on the left.

    Parameters
    ----------
    left, right
        Shapes (m, a) and (m, b).
    squares
        Shape (m,): the squared norms of the outer products, in units, are added to it.
    exponent, bits
        Of the unit; bits at most 20.

    Returns
    -------
    tuple[numpy.ndarray, numpy.ndarray]
        Shapes (m, a) and (m, b).
    """
    cdef Py_ssize_t m = left.shape[0], a = left.shape[1], b = right.shape[1], i
    cdef double along, across
    if right.shape[0] != m or squares.shape[0] != m or not 0 < bits <= 20 or not 0 < a < WIDEST or not 0 < b < WIDEST:
        raise ValueError(
            "left, right and squares must have as many rows, of 1 to 2^20 numbers, got shapes "
            f"{(m, a)}, {(right.shape[0], b)} and {(squares.shape[0],)}."
        )
    made_left, made_right = np.zeros((m, a)), np.zeros((m, b))
    cdef double[:, ::1] whole_left = made_left, whole_right = made_right
    cdef int scale
    with nogil:
        for i in range(m):
            scale = _scale_of(&right[i, 0], b)
            across = _cut(&right[i, 0], &whole_right[i, 0], b, ldexp(1.0, bits - scale))
            along = _cut(&left[i, 0], &whole_left[i, 0], a, ldexp(1.0, scale + bits - exponent))
            if along <= ldexp(1.0, 2 * bits + 2) and across <= ldexp(1.0, 2 * bits):
                squares[i] += along * across
            else:
                memset(&whole_left[i, 0], 0, a * sizeof(double))
                memset(&whole_right[i, 0], 0, b * sizeof(double))
    return made_left, made_right


cdef int _scale_of(const double* row, Py_ssize_t d) noexcept nogil:
    """Return an exponent from -1000 on whose power of two is the least above a row's norm."""
    cdef double largest = 0, square = 0, share, inverse
    cdef double[8] parts
    cdef Py_ssize_t j
    cdef int first, second, k
    memset(parts, 0, sizeof(parts))
    for j in range(d):
        share = fabs(row[j])
        largest = share if share > largest else largest
    if not isfinite(largest) or largest < ldexp(1.0, -1000):
        return -1000
    frexp(largest, &first)
    inverse = ldexp(1.0, -first)
    for j in range(0, d - 7, 8):
        for k in range(8):
            share = row[j + k] * inverse
            parts[k] += share * share
    for j in range(d - d % 8, d):
        share = row[j] * inverse
        parts[0] += share * share
    for k in range(8):
        square += parts[k]
    frexp(sqrt(square), &second)
    return first + second


cdef double _cut(const double* row, double* whole, Py_ssize_t d, double scale) noexcept nogil:
    """Write a row times a scale, rounded towards zero; return its squared norm, or NaN."""
    cdef double entry
    cdef int64_t square = 0
    cdef int32_t rounded
    cdef bint wrong = False
    cdef Py_ssize_t j
    for j in range(d):
        entry = row[j] * scale
        wrong |= entry != entry
        entry = entry if entry < LARGEST else LARGEST
        entry = entry if entry > -LARGEST else -LARGEST
        rounded = <int32_t>entry
        whole[j] = rounded
        square += <int64_t>rounded * rounded
    return NAN if wrong else <double>square
