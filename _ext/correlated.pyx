"""Likelihood ratios of correlated Gaussian noise under random participation, many draws at a time.

With fields ``a = C^T x / sigma^2`` and ``G = C^T C / sigma^2``, the likelihood ratio of a draw is

    L = E_y exp(sum_t y_t (a_t - G_tt / 2) - sum_{t < u} y_t y_u G_tu),

a partition function. The participations y follow an automaton: in state q of round t, a record
stays idle with log-probability ``idle[t, q]`` and moves to ``idle_to[t, q]``, or joins with
log-probability ``join[t, q]`` and moves to ``join_to[t, q]``.

All arrays of fields have shape (rounds, draws). Draws are worked on in lanes, so that the
compiler can use vector instructions; no sum is reordered, so results do not depend on the
processor or on which draws share a block.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, exp, log

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>

    #define LANES 32

    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(DPCAL_BASELINE)
    /* One copy for each generation of vector instructions, chosen when the module is loaded. */
    #define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define CLONES
    #endif

    /* out = exp(x) = e 2^k for numbers between -700 and 700: e within 2^-0.5 and 2^0.5, k whole.
       Taylor polynomials in pairs of pairs, whose sums need not wait for one another. */
    static CLONES void exponentials(const double *x, double *out) {
        for (int i = 0; i < LANES; i++) {
            double shifted = x[i] * 1.4426950408889634 + 6755399441055744.0;
            double k = shifted - 6755399441055744.0;
            double r = (x[i] - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
            double r2 = r * r, r4 = r2 * r2, scale;
            double e0 = (1.0 + r) + (0.5 + r * (1.0 / 6.0)) * r2;
            double e1 = (1.0 / 24.0 + r * (1.0 / 120.0)) + (1.0 / 720.0 + r * (1.0 / 5040.0)) * r2;
            double e2 = (1.0 / 40320.0 + r * (1.0 / 362880.0))
                + (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) * r2;
            double e3 = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
            int64_t bits;
            memcpy(&bits, &shifted, 8);
            bits = (int64_t)((uint64_t)(bits + 1023) << 52);
            memcpy(&scale, &bits, 8);
            out[i] = (e0 + (e1 + (e2 + e3 * r4) * r4) * r4) * scale;
        }
    }

    /* What later rounds weigh in each memory of one state of the law, a round earlier. An idle round
       leads from memory j to a share of memories cell0[j] and cell0[j] + 1, a participation, which
       weighs enter cost[j] e, to those of cell1[j]. */
    static CLONES void sparse_step(int n, const int *cell0, const double *share0,
                                   const int *cell1, const double *share1, double stay,
                                   double enter, const double *cost, const double *e,
                                   const double *idle, const double *join, double *out) {
        for (int j = 0; j < n; j++) {
            const double *x = idle + cell0[j] * LANES, *y = join + cell1[j] * LANES;
            const double b = stay * share0[j], a = stay * (1.0 - share0[j]);
            const double d = enter * cost[j] * share1[j], c = enter * cost[j] * (1.0 - share1[j]);
            double *to = out + j * LANES;
            if (enter > 0.0) {
                for (int l = 0; l < LANES; l++) to[l] = c * y[l];
                if (d > 0.0)
                    for (int l = 0; l < LANES; l++) to[l] += d * y[LANES + l];
                for (int l = 0; l < LANES; l++) to[l] = a * x[l] + e[l] * to[l];
            } else
                for (int l = 0; l < LANES; l++) to[l] = a * x[l];
            if (b > 0.0)
                for (int l = 0; l < LANES; l++) to[l] += b * x[LANES + l];
        }
    }
    """
    enum: LANES
    void sparse_step(int, const int*, const double*, const int*, const double*, double, double,
                     const double*, const double*, const double*, const double*,
                     double*) noexcept nogil
    void exponentials(const double*, double*) noexcept nogil


# Fields beyond them could carry sums out of the range of a double between two divisions, or have an
# exponential out of it.
cdef double LARGEST = 150.0
cdef double SMALLEST = -700.0
# Smallest value of a sum in units of the largest sum: a smaller one could become zero.
cdef double LEAST = 1e-250
# Rounds between two divisions of sums by their largest one.
cdef Py_ssize_t DIVIDED = 4


def log_ratios(
    const double[:, ::1] a,
    const double[::1] half_energies,
    tuple idles,
    tuple joins,
    const double[:, ::1] costs,
    const Py_ssize_t[::1] kinds,
    tuple tables,
):
    """Return log L of every draw, by sums over the states of the law and memories; NaN in doubt.

    A draw is in doubt where a field is far from 0 or a sum leaves the range of a double.

    Parameters
    ----------
    a
        Fields, shape (rounds, draws).
    half_energies
        Half of the diagonal of C^T C / sigma^2.
    idles, joins
        Memories after an idle round and after a participation: the first of two, and the share of
        the one after it, of shape (memories,) each. Memory 0 is the start, and what later rounds
        weigh falls from it to the last one.
    costs
        Of shape (kinds, memories): exp of minus the overlap of a participation with earlier ones.
    kinds
        Row of ``costs`` for each round.
    tables
        The automaton of participations: idle, join, idle_to, join_to and start.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], n = costs.shape[1], stride = n * LANES
    cdef Py_ssize_t t, q, l, i, block, first, width
    cdef const int[::1] cell0, cell1
    cdef const double[::1] share0, share1
    cell0, share0 = idles
    cell1, share1 = joins
    idle, join, idle_next, join_next, begin = tables
    cdef const double[:, ::1] stay = np.exp(idle), enter = np.exp(join)
    cdef const int[:, ::1] idle_to = idle_next, join_to = join_next
    cdef const double[::1] start = np.exp(begin)
    cdef Py_ssize_t states = start.shape[0]
    cdef double[:, ::1] values = np.empty((2, states * stride))
    cdef double *now
    cdef double *then
    cdef double *swap
    cdef double g[LANES]
    cdef double e[LANES]
    cdef double logs[LANES]
    cdef double total, least
    out = np.empty(m)
    cdef double[::1] result = out
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            now, then = &values[0, 0], &values[1, 0]
            for i in range(states * stride):
                now[i] = 1.0
            for l in range(LANES):
                logs[l] = 0.0
            for t in range(rounds - 1, -1, -1):
                for l in range(LANES):
                    g[l] = a[t, first + l] - half_energies[t] if l < width else 0.0
                    if not SMALLEST < g[l] < LARGEST:
                        g[l], logs[l] = 0.0, NAN
                exponentials(g, e)
                for q in range(states):
                    sparse_step(
                        <int>n, &cell0[0], &share0[0], &cell1[0], &share1[0], stay[t, q],
                        enter[t, q], &costs[kinds[t], 0], e, now + idle_to[t, q] * stride,
                        now + join_to[t, q] * stride, then + q * stride,
                    )
                swap = now
                now = then
                then = swap
                if t % DIVIDED == 0:
                    for l in range(LANES):
                        total = 0.0
                        least = INFINITY
                        for q in range(states):
                            total = max(total, now[q * stride + l])
                            if now[(q + 1) * stride - LANES + l] > 0.0:
                                least = min(least, now[(q + 1) * stride - LANES + l])
                        if not LEAST * total < least < INFINITY or not total < INFINITY:
                            total, logs[l] = 1.0, NAN
                        logs[l] += log(total)
                        g[l] = 1.0 / total
                    for i in range(states * n):
                        for l in range(LANES):
                            now[i * LANES + l] *= g[l]
            for l in range(width):
                total = 0.0
                for q in range(states):
                    total += start[q] * now[q * stride + l]
                result[first + l] = logs[l] + log(total)
    return out
