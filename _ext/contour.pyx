"""Sums over quadrature points of a privacy loss: real tilts, and equally spaced nodes of a vertical contour.

Both kernels keep the digits of ``M - 1`` when the moment-generating function M is close to 1 (a
tiny sampling probability): they sum terms of second order in the loss, never differences of terms
of first order.
"""

import numpy as np

from libc.math cimport cos, exp, expm1, fabs, log, log1p, sin
from libc.string cimport memset

cdef extern from *:
    """
    #include "law.h"
    #define dpcal_tilted_sums(ell, base, second, whole, n, p, excess, far, weights, sums) \\
        (0.5 < (p) && (p) < 2.0 ? DPCAL_WIDEST(dpcal_tilted_near) : DPCAL_WIDEST(dpcal_tilted_far))( \\
            ell, base, second, whole, n, p, excess, far, weights, sums)
    #define dpcal_largest_exponent DPCAL_WIDEST(dpcal_largest_exponent)
    #define dpcal_narrow DPCAL_WIDEST(dpcal_narrow)
    #define dpcal_prepared DPCAL_WIDEST(dpcal_prepared)
    #define dpcal_scaled_sums DPCAL_WIDEST(dpcal_scaled_sums)
    #define dpcal_central_sums DPCAL_WIDEST(dpcal_central_sums)
    #define dpcal_second_order_node DPCAL_WIDEST(dpcal_second_order_node)
    #define dpcal_power_node DPCAL_WIDEST(dpcal_power_node)
    #define dpcal_phase_sums DPCAL_WIDEST(dpcal_phase_sums)
    #define dpcal_mixture_weights DPCAL_WIDEST(dpcal_weights)
    #define dpcal_tilted_line DPCAL_WIDEST(dpcal_tilted_line)
    """

cdef extern from * nogil:
    ctypedef struct dpcal_law:
        double q, log_q, sigma, step
    ctypedef struct dpcal_angle:
        pass
    Py_ssize_t dpcal_padded(Py_ssize_t n)
    dpcal_angle dpcal_angle_of(double angle)
    void dpcal_mixture_weights(
        const dpcal_law *law, dpcal_angle line, const double *points, Py_ssize_t n, double *re, double *im
    )
    void dpcal_tilted_line(
        const dpcal_law *law, dpcal_angle line, double p, const double *at, Py_ssize_t n, double *rows
    )
    void dpcal_narrow(
        const double *ell, const double *log_base, Py_ssize_t n, double p, double least, double least_base, Py_ssize_t *ends
    ) nogil
    double dpcal_largest_exponent(const double *ell, const double *log_base, Py_ssize_t n, double p)
    void dpcal_prepared(
        const double *ell, const double *log_base, Py_ssize_t n, double far, double *base, double *second,
        double *whole
    )
    void dpcal_tilted_sums(
        const double *ell, const double *base, const double *second, const double *whole, Py_ssize_t n,
        double p, double excess, double far, double *weights, double *sums
    )
    void dpcal_scaled_sums(
        const double *ell, const double *log_base, Py_ssize_t n, double p, double largest,
        double *weights, double *sums
    )
    void dpcal_central_sums(
        const double *ell, const double *weights, Py_ssize_t n, double mean, double *sums
    )
    void dpcal_second_order_node(double *table, Py_ssize_t n, double slope, double *sums)
    void dpcal_power_node(double *table, Py_ssize_t n, double *sums)
    void dpcal_phase_sums(
        const double *distance, const double *sizes, const double *errors, Py_ssize_t n, double t, double *sums
    )


# Nodes between two direct evaluations of the recurrence, points that loops take at once, terms of a series in small
# phases, and points from which on it takes less time than their sum.
cdef enum:
    ANCHOR = 128
    LANES = 8
    ORDERS = 19
    FEW = 64
# From this exponent on an exponential times a density is taken as one exponential.
cdef double FAR = 600.0

# Log of what is negligible beside 1 in a sum over any number of points, also in its second order.
cdef double NEGLIGIBLE = -100.0


# 1 / k for k = 0, ..., 16 (the first is not used).
cdef double[17] INVERSE
for _k in range(1, 17):
    INVERSE[_k] = 1.0 / _k


cdef inline void complex_expm2(double re, double im, double *out_re, double *out_im) noexcept nogil:
    """exp(z) - 1 - z for z = re + i im, to full precision relative to |z|^2 / 2."""
    cdef double a, b, t, size
    cdef int k
    if re * re + im * im > 0.25:
        size = exp(re)
        out_re[0] = size * cos(im) - 1.0 - re
        out_im[0] = size * sin(im) - im
        return
    a = 0.0
    b = 0.0
    for k in range(16 if re * re + im * im > 0.0004 else 8, 2, -1):
        t = ((1.0 + a) * re - b * im) * INVERSE[k]
        b = ((1.0 + a) * im + b * re) * INVERSE[k]
        a = t
    a += 1.0
    t = 0.5 * (re * re - im * im)
    size = re * im
    out_re[0] = t * a - size * b
    out_im[0] = t * b + size * a


def mixture_log_weights(const double[::1] x, double q, double sigma, double angle):
    """Return log(1 - q + q exp(u)) at u = (2 x - 1) / (2 sigma^2) + i angle, elementwise.

    It is real for an angle of 0. The digits of the weight less one are kept, and nothing overflows.
    """
    cdef Py_ssize_t n = x.shape[0], padded = dpcal_padded(n)
    cdef dpcal_law law
    table = np.zeros((2, padded))
    points = np.zeros(padded)
    points[:n] = x
    cdef double[:, ::1] result = table
    cdef double[::1] at = points
    law.q, law.log_q, law.sigma, law.step = q, log(q), sigma, 1.0
    with nogil:
        dpcal_mixture_weights(&law, dpcal_angle_of(angle), &at[0], padded, &result[0, 0], &result[1, 0])
    return table[0, :n] if angle == 0.0 else table[0, :n] + 1j * table[1, :n]


def tilted_line(
    const double[::1] x, double q, double sigma, double angle, double power, const double[::1] at, double least,
    const double complex[::1] log_share=None,
):
    """Points x + i angle sigma^2 under the density times w^power, without points that do not count.

    ``at`` holds the log of the mass, the mean and the variance of log w under these weights, and the density's largest
    logarithm. Points count if their weight, also in the variance, is above that of the one that counts most by ``least``,
    a logarithm < 0. ``log_share`` is the log of a factor of the density at each point.

    Returns
    -------
    tuple of ndarrays
        log w, weights, and the sizes of the terms of the weights' logarithms.
    """
    cdef Py_ssize_t n = x.shape[0], padded = dpcal_padded(n), j, kept = 0
    cdef dpcal_law law
    cdef double most = -1e308
    table = np.zeros((9, padded))
    cdef double[:, ::1] rows = table
    law.q, law.log_q, law.sigma, law.step = q, log(q), sigma, 1.0
    with nogil:
        for j in range(n):
            rows[0, j] = x[j]
            if log_share is not None:
                rows[1, j] = log_share[j].real
                rows[2, j] = log_share[j].imag
        dpcal_tilted_line(&law, dpcal_angle_of(angle), power, &at[0], padded, &rows[0, 0])
        for j in range(n):
            most = max(most, rows[8, j])
        for j in range(n):
            if rows[8, j] > most + least:
                kept += 1
    values, weights, sizes = np.empty(kept, dtype=complex), np.empty(kept, dtype=complex), np.empty(kept)
    cdef double complex[::1] ell = values, weight = weights
    cdef double[::1] size = sizes
    kept = 0
    with nogil:
        for j in range(n):
            if rows[8, j] > most + least:
                ell[kept] = rows[3, j] + 1j * rows[4, j]
                weight[kept] = rows[5, j] + 1j * rows[6, j]
                size[kept] = rows[7, j]
                kept += 1
    return values, weights, sizes


cdef void scaled_moments(
    const double[:, ::1] points, double p, double largest, double *weights, double *result
) noexcept nogil:
    """Log mass and moments, with the largest term scaled to 1 so that nothing overflows."""
    cdef double[3] sums
    cdef Py_ssize_t[2] ends
    dpcal_narrow(
        &points[0, 0], &points[1, 0], points.shape[1], p, largest + NEGLIGIBLE, 1e308, ends
    )
    dpcal_scaled_sums(
        &points[0, ends[0]], &points[1, ends[0]], ends[1] - ends[0], p, largest, weights, sums
    )
    result[0] = largest + log(sums[2])
    result[1] = sums[1] / sums[2]
    central_moments(points, ends, sums[2], weights, result)


cdef void central_moments(
    const double[:, ::1] points, Py_ssize_t *ends, double total, const double *weights, double *result
) noexcept nogil:
    """Variance and fourth central moment, from weights of some points and their mean in the result."""
    cdef double[2] sums
    dpcal_central_sums(&points[0, ends[0]], weights, ends[1] - ends[0], result[1], sums)
    result[2] = sums[0] / total
    result[3] = sums[1] / total


cdef void moments_at(
    const double[:, ::1] points, double p, double excess, bint plain, double *weights, double *result
) noexcept nogil:
    """Moments of prepared points at a power, less the sum of the base and that of base exp(ell) unless plain."""
    cdef Py_ssize_t j, start
    cdef double a, d, weight, jump, size, largest
    cdef double[3] sums
    cdef Py_ssize_t[2] ends
    largest = dpcal_largest_exponent(&points[0, 0], &points[1, 0], points.shape[1], p)
    if plain or largest >= 500.0:
        scaled_moments(points, p, largest, weights, result)
        return
    dpcal_narrow(&points[0, 0], &points[1, 0], points.shape[1], p, NEGLIGIBLE, 2 * NEGLIGIBLE, ends)
    start = ends[0]
    dpcal_tilted_sums(
        &points[0, start], &points[2, start], &points[3, start], &points[4, start],
        ends[1] - start, p, excess, FAR, weights, sums,
    )
    for j in range(start, ends[1]):
        a = p * points[0, j]
        if points[2, j] != 0.0 and a < FAR:
            continue
        # The base is nothing here, but exp(ell) times it may be all.
        size = points[1, j] + a
        d = excess * points[0, j]
        weight = exp(size) if size > 2 * NEGLIGIBLE else 0.0
        jump = exp(points[1, j] + points[0, j])
        sums[0] += jump * (expm1(d) - excess) if fabs(d) < 1.0 else weight - p * jump
        sums[1] += weight * points[0, j] - jump
        sums[2] += weight
        weights[j - start] = weight
    if not sums[0] > -0.5:
        # So far from 1, M has more digits as the sum that it is.
        scaled_moments(points, p, largest, weights, result)
        return
    result[0] = log1p(sums[0])
    result[1] = sums[1] / (1.0 + sums[0])
    central_moments(points, ends, sums[2], weights, result)


def moments_of(
    list tables, const double[::1] powers, const double[::1] excesses, const unsigned char[:, ::1] plain
):
    """Moments of ``ell`` under tilts of several measures, for each power p.

    ``tables`` holds what :func:`prepared_moments` returns for the points of each measure.
    ``excesses`` are the powers less 1. Where ``plain``, of shape (len(tables), len(powers)), is 0, measure and power are those of
    :func:`tilted_moments`. Elsewhere the measure is any positive one, of which nothing is known.

    Returns
    -------
    ndarray of shape (len(tables), len(powers), 4)
        Logarithm of the mass, mean, variance and fourth central moment of ``ell``.
    """
    cdef Py_ssize_t i, k
    out = np.empty((len(tables), powers.shape[0], 4))
    cdef double[:, :, ::1] result = out
    cdef double[::1] weights = np.empty(max([table.shape[1] for table in tables], default=0))
    cdef const double[:, ::1] points
    for k in range(len(tables)):
        points = tables[k]
        with nogil:
            for i in range(powers.shape[0]):
                moments_at(points, powers[i], excesses[i], plain[k, i], &weights[0], &result[k, i, 0])
    return out


def tilted_moments(
    const double[::1] ell,
    const double[::1] log_base,
    const double[::1] powers,
    const double[::1] excesses=None,
):
    """Moments of ``ell`` under the tilted measures ``base * exp(p * ell) / M(p)``, for each power p.

    The points must satisfy ``sum(base) = sum(base * exp(ell)) = 1`` up to quadrature error, which
    is used exactly. ``excesses`` are the powers less 1, for those who know them to more digits.

    Returns
    -------
    ndarray of shape (len(powers), 4)
        log M(p), mean, variance and fourth central moment of ``ell``.
    """
    plain = np.zeros((1, powers.shape[0]), dtype=np.uint8)
    if excesses is None:
        excesses = np.asarray(powers) - 1.0
    return moments_of([prepared_moments(ell, log_base)], powers, excesses, plain)[0]


cdef padded_points(const double[::1] ell, const double[::1] log_base, int rows):
    """Return an array of rows, of which the first two are ell and log_base, padded with mass 0."""
    cdef Py_ssize_t n = ell.shape[0]
    out = np.zeros((rows, dpcal_padded(n)))
    out[0, :n] = ell
    out[1, :n] = log_base
    out[1, n:] = -1e300
    return out


def prepared_moments(const double[::1] ell, const double[::1] log_base):
    """Return points as loops take them: padded to a multiple of 8 with points of mass 0.

    The rows are ell, log_base, base, exp(ell) - 1 - ell and exp(ell); the last three are 0 where the
    base or exp(ell) has no double.
    """
    out = padded_points(ell, log_base, 5)
    cdef double[:, ::1] rows = out
    with nogil:
        dpcal_prepared(
            &rows[0, 0], &rows[1, 0], rows.shape[1], FAR, &rows[2, 0], &rows[3, 0], &rows[4, 0]
        )
    return out


def second_order_sums(
    const double complex[::1] theta, const double complex[::1] weights, Py_ssize_t start, Py_ssize_t stop
):
    """Return ``sum_j weights_j (exp(i k theta_j) - 1 - i k theta_j)`` for k = start, ..., stop - 1.

    One complex multiplication a point and node; the recurrence restarts from a direct evaluation
    every 128 nodes. Points with phases of at most 1 at every node have a series in their moments instead, if they are
    many. ``theta_j`` needs a non-negative imaginary part, so that no factor exceeds 1 in modulus.
    """
    points, masses = np.asarray(theta), np.asarray(weights)
    near = np.abs(points) * stop <= 1.0
    cdef double[ORDERS][2] moments
    cdef Py_ssize_t order
    cdef bint series = np.count_nonzero(near) >= FEW
    if series:
        series_moments(points[near], masses[near], stop, moments)
        theta, weights = points[~near], masses[~near]
    cdef Py_ssize_t n = theta.shape[0], j, k, stop_row
    cdef Py_ssize_t padded = dpcal_padded(n)
    out = np.zeros(stop - start, dtype=np.complex128)
    cdef double complex[::1] result = out
    # Rows: state, step factor exp(i theta), constant and slope of the increment; real and
    # imaginary parts apart.
    cdef double[:, ::1] table = np.zeros((8, padded))
    cdef double *sr
    cdef double *si
    cdef double *er
    cdef double *ei
    cdef double *gr
    cdef double *gi
    cdef double *fr
    cdef double *fi
    cdef double a, b, x, y, wr, wi, dr, di
    cdef double[2] sums
    sr = &table[0, 0]
    si = &table[1, 0]
    er = &table[2, 0]
    ei = &table[3, 0]
    gr = &table[4, 0]
    gi = &table[5, 0]
    fr = &table[6, 0]
    fi = &table[7, 0]
    with nogil:
        for j in range(n):
            x = -theta[j].imag
            y = theta[j].real
            wr = weights[j].real
            wi = weights[j].imag
            complex_expm2(x, y, &a, &b)
            er[j] = 1.0 + x + a
            ei[j] = y + b
            gr[j] = wr * a - wi * b
            gi[j] = wr * b + wi * a
            # i theta (exp(i theta) - 1)
            dr = x * (x + a) - y * (y + b)
            di = x * (y + b) + y * (x + a)
            fr[j] = wr * dr - wi * di
            fi[j] = wr * di + wi * dr
        k = start
        while k < stop:
            for j in range(n):
                complex_expm2(-k * theta[j].imag, k * theta[j].real, &a, &b)
                wr = weights[j].real
                wi = weights[j].imag
                sr[j] = wr * a - wi * b
                si[j] = wr * b + wi * a
            stop_row = min(stop, k + ANCHOR)
            while k < stop_row:
                dpcal_second_order_node(&table[0, 0], padded, <double> k, sums)
                result[k - start] = sums[0] + 1j * sums[1]
                k += 1
        if series:
            for k in range(start, stop):
                a = b = 0.0
                x = <double> k / stop
                for order in range(ORDERS - 1, 0, -1):
                    a = (a + moments[order][0]) * x
                    b = (b + moments[order][1]) * x
                result[k - start] = result[k - start] + (a * x + 1j * (b * x))
    return out


cdef void series_moments(
    const double complex[::1] theta, const double complex[::1] weights, Py_ssize_t stop, double[2] *moments
) noexcept nogil:
    """Sums of weights (i s)^k / k!, s = stop theta, k = 1, ..., ORDERS, in LANES sums each.

    With s <= 1, terms beyond these are below s^2 / 2 times 2 / 20! < 1e-18.
    """
    cdef double[LANES][2] power, phase
    cdef double[ORDERS][LANES][2] sums
    cdef Py_ssize_t j, lane, order, n = theta.shape[0]
    cdef double a, b
    memset(sums, 0, sizeof(sums))
    j = 0
    while j < n:
        for lane in range(LANES):
            power[lane][0] = weights[j + lane].real if j + lane < n else 0.0
            power[lane][1] = weights[j + lane].imag if j + lane < n else 0.0
            phase[lane][0] = -stop * theta[j + lane].imag if j + lane < n else 0.0
            phase[lane][1] = stop * theta[j + lane].real if j + lane < n else 0.0
        for order in range(ORDERS):
            for lane in range(LANES):
                a = power[lane][0] * phase[lane][0] - power[lane][1] * phase[lane][1]
                b = power[lane][0] * phase[lane][1] + power[lane][1] * phase[lane][0]
                power[lane][0] = a / (order + 1)
                power[lane][1] = b / (order + 1)
                sums[order][lane][0] += power[lane][0]
                sums[order][lane][1] += power[lane][1]
        j += LANES
    for order in range(ORDERS):
        moments[order][0] = moments[order][1] = 0.0
        for lane in range(LANES):
            moments[order][0] += sums[order][lane][0]
            moments[order][1] += sums[order][lane][1]


def phase_sums(const double[::1] distances, const double[::1] sizes, const double[::1] errors, const double[::1] t):
    """Return sums of min(s^2 / 2, 2) errors, min(s, 2) errors, and (2 + s) sizes where s > 1, s = t distances.

    The shape is (3, len(t)).
    """
    cdef Py_ssize_t n = distances.shape[0], padded = dpcal_padded(n), k
    cdef double[3] found
    table = np.zeros((3, padded))
    table[0, :n], table[1, :n], table[2, :n] = distances, sizes, errors
    cdef double[:, ::1] rows = table
    out = np.empty((3, t.shape[0]))
    cdef double[:, ::1] sums = out
    with nogil:
        for k in range(t.shape[0]):
            dpcal_phase_sums(&rows[0, 0], &rows[1, 0], &rows[2, 0], padded, t[k], found)
            sums[0, k], sums[1, k], sums[2, k] = found[0], found[1], found[2]
    return out


def power_sums(
    const double complex[::1] theta,
    const double complex[::1] weights,
    Py_ssize_t start,
    Py_ssize_t stop,
):
    """Return ``sum_j weights_j exp(i k theta_j)`` for k = start, ..., stop - 1.

    As :func:`second_order_sums`, without keeping the digits of a difference from the first order.
    """
    cdef Py_ssize_t n = theta.shape[0], j, k, stop_row
    cdef Py_ssize_t padded = dpcal_padded(n)
    out = np.zeros(stop - start, dtype=np.complex128)
    cdef double complex[::1] result = out
    # Rows: state and step factor; real and imaginary parts apart.
    cdef double[:, ::1] table = np.zeros((4, padded))
    cdef double *sr = &table[0, 0]
    cdef double *si = &table[1, 0]
    cdef double *er = &table[2, 0]
    cdef double *ei = &table[3, 0]
    cdef double a, b, size
    cdef double[2] sums
    with nogil:
        for j in range(n):
            size = exp(-theta[j].imag)
            er[j] = size * cos(theta[j].real)
            ei[j] = size * sin(theta[j].real)
        k = start
        while k < stop:
            for j in range(n):
                size = exp(-k * theta[j].imag)
                a = size * cos(k * theta[j].real)
                b = size * sin(k * theta[j].real)
                sr[j] = weights[j].real * a - weights[j].imag * b
                si[j] = weights[j].real * b + weights[j].imag * a
            stop_row = min(stop, k + ANCHOR)
            while k < stop_row:
                dpcal_power_node(&table[0, 0], padded, sums)
                result[k - start] = sums[0] + 1j * sums[1]
                k += 1
    return out
