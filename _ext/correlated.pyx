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

cimport cython
from libc.math cimport INFINITY, NAN, exp, fabs, log, log1p
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

from dpcal._ext.noise cimport bits_of

cdef double LN_2 = 0.6931471805599453

cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define LANES 32

    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(DPCAL_BASELINE)
    /* One copy for each generation of vector instructions, chosen when the module is loaded. */
    #define CLONED
    #define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define CLONES
    #endif

    /* exp(x) = e 2^k: e within 2^-0.5 and 2^0.5, k a whole number. Taylor polynomials in pairs of
       pairs, whose sums need not wait for one another. */
    #define EXP_PARTS(x, k, e)                                                                    \\
        double k = ((x) * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0, e;       \\
        {                                                                                         \\
            double r_ = ((x) - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;  \\
            double r2_ = r_ * r_, r4_ = r2_ * r2_;                                                \\
            double e0_ = (1.0 + r_) + (0.5 + r_ * (1.0 / 6.0)) * r2_;                             \\
            double e1_ = (1.0 / 24.0 + r_ * (1.0 / 120.0))                                        \\
                + (1.0 / 720.0 + r_ * (1.0 / 5040.0)) * r2_;                                      \\
            double e2_ = (1.0 / 40320.0 + r_ * (1.0 / 362880.0))                                  \\
                + (1.0 / 3628800.0 + r_ * (1.0 / 39916800.0)) * r2_;                              \\
            double e3_ = 1.0 / 479001600.0 + r_ * (1.0 / 6227020800.0);                           \\
            e = e0_ + (e1_ + (e2_ + e3_ * r4_) * r4_) * r4_;                                      \\
        }

    /* scale = 2^k for a whole number k from -1022 to 1023. */
    #define POWER_OF_TWO(k, scale)                                                                \\
        double scale;                                                                             \\
        {                                                                                         \\
            double shifted_ = (k) + 6755399441055744.0;                                           \\
            int64_t bits_;                                                                        \\
            memcpy(&bits_, &shifted_, 8);                                                         \\
            bits_ = (int64_t)((uint64_t)(bits_ + 1023) << 52);                                    \\
            memcpy(&scale, &bits_, 8);                                                            \\
        }

    /* log(exp(a) + exp(b)) of every lane, with an absolute error of a few 1e-16 besides rounding. */
    #define LOG_ADD_EXP(out, first, second)                                                       \\
        for (int l = 0; l < LANES; l++) {                                                         \\
            double a_ = (first)[l], b_ = (second)[l];                                             \\
            double top = a_ > b_ ? a_ : b_, low = a_ > b_ ? b_ : a_;                              \\
            double x_ = low - top;                                                                \\
            x_ = x_ > -700.0 ? x_ : -700.0;                                                       \\
            EXP_PARTS(x_, k_, part_)                                                              \\
            POWER_OF_TWO(k_, scale_)                                                              \\
            double e_ = part_ * scale_;                                                           \\
            /* log(1 + e) = 2 artanh(w) (+ log 2), |w| <= 0.172. */                               \\
            double upper_ = e_ > 0.41421356237309503 ? 1.0 : 0.0;                                 \\
            double w_ = (e_ - upper_) / (2.0 + e_ + upper_);                                      \\
            double v_ = w_ * w_;                                                                  \\
            double v2_ = v_ * v_, v4_ = v2_ * v2_;                                                \\
            double p0_ = (1.0 + v_ * (1.0 / 3.0)) + (1.0 / 5.0 + v_ * (1.0 / 7.0)) * v2_;         \\
            double p1_ = (1.0 / 9.0 + v_ * (1.0 / 11.0)) + (1.0 / 13.0 + v_ * (1.0 / 15.0)) * v2_;\\
            double p2_ = (1.0 / 17.0 + v_ * (1.0 / 19.0)) + (1.0 / 21.0) * v2_;                   \\
            double p_ = p0_ + (p1_ + p2_ * v4_) * v4_;                                            \\
            (out)[l] = top + (2.0 * w_ * p_ + upper_ * 0.6931471805599453);                       \\
        }

    /* out = log(exp(c0 + W0 idle) + exp(c1 + g + W1 join)) at every node of a dense grid. */
    static CLONES void dense_step(int n, const double *W0, const double *W1, const double *idle,
                                  const double *join, const double *c0, const double *c1,
                                  const double *g, double *out) {
        double A[LANES], B[LANES];
        for (int j = 0; j < n; j++) {
            for (int l = 0; l < LANES; l++) A[l] = c0[j];
            for (int l = 0; l < LANES; l++) B[l] = c1[j] + g[l];
            for (int k = 0; k < n; k++) {
                const double u = W0[j * n + k], v = W1[j * n + k];
                const double *x = idle + k * LANES, *y = join + k * LANES;
                for (int l = 0; l < LANES; l++) A[l] += u * x[l];
                for (int l = 0; l < LANES; l++) B[l] += v * y[l];
            }
            LOG_ADD_EXP(out + j * LANES, A, B)
        }
    }

    /* out[o, j, b] = sum_k W[j, k] in[o, k, b]: one axis of a grid of vectors moves. */
    static CLONES void axis_step(int outer, int n, int inner, const double *W, const double *in,
                                 double *out) {
        double A[LANES];
        for (int o = 0; o < outer; o++)
            for (int j = 0; j < n; j++)
                for (int b = 0; b < inner; b++) {
                    const double *x = in + (o * n * inner + b) * LANES;
                    for (int l = 0; l < LANES; l++) A[l] = 0.0;
                    for (int k = 0; k < n; k++) {
                        const double u = W[j * n + k];
                        for (int l = 0; l < LANES; l++) A[l] += u * x[k * inner * LANES + l];
                    }
                    memcpy(out + ((o * n + j) * inner + b) * LANES, A, sizeof A);
                }
    }

    /* out = log(exp(out) + exp(c + scale g + W M)) at every node. */
    static CLONES void dense_merge(int n, const double *W, const double *M, const double *c,
                                   double scale, const double *g, double *out) {
        double B[LANES];
        for (int j = 0; j < n; j++) {
            for (int l = 0; l < LANES; l++) B[l] = c[j] + scale * g[l];
            for (int k = 0; k < n; k++) {
                const double v = W[j * n + k];
                for (int l = 0; l < LANES; l++) B[l] += v * M[k * LANES + l];
            }
            LOG_ADD_EXP(out + j * LANES, out + j * LANES, B)
        }
    }

    /* The same with a chord between two nodes in place of the dense product: an upper bound of a
       convex function. */
    static CLONES void chord_step(int n, const int32_t *cell0, const int32_t *cell1,
                                  const double *share0, const double *share1, const double *idle,
                                  const double *join, const double *c0, const double *c1,
                                  const double *g, double *out) {
        double A[LANES], B[LANES];
        for (int j = 0; j < n; j++) {
            const double *x = idle + cell0[j] * LANES, *y = join + cell1[j] * LANES;
            const double u = share0[j], v = share1[j];
            for (int l = 0; l < LANES; l++)
                A[l] = c0[j] + ((1.0 - u) * x[l] + u * x[LANES + l]);
            for (int l = 0; l < LANES; l++)
                B[l] = c1[j] + g[l] + ((1.0 - v) * y[l] + v * y[LANES + l]);
            LOG_ADD_EXP(out + j * LANES, A, B)
        }
    }

    /* Values and slopes of affine minorants at the nodes, moved one round back: at each point the
       better one of the two neighbors is used. */
    static CLONES void tangent_step(int n, const int32_t *cell0, const int32_t *cell1,
                                    const double *s, double decay, double energy,
                                    const double *idle, const double *idle_slope,
                                    const double *join, const double *join_slope,
                                    const double *c0, const double *c1, const double *g,
                                    double *out, double *out_slope) {
        double A[LANES], B[LANES], dA[LANES], dB[LANES];
        for (int j = 0; j < n; j++) {
            const int i0 = cell0[j], i1 = cell1[j];
            const double to0 = decay * s[j], to1 = decay * s[j] + 1.0;
            const double *x = idle + i0 * LANES, *dx = idle_slope + i0 * LANES;
            const double *y = join + i1 * LANES, *dy = join_slope + i1 * LANES;
            for (int l = 0; l < LANES; l++) {
                double left = x[l] + dx[l] * (to0 - s[i0]);
                double right = x[LANES + l] + dx[LANES + l] * (to0 - s[i0 + 1]);
                A[l] = c0[j] + (right > left ? right : left);
                dA[l] = right > left ? dx[LANES + l] : dx[l];
            }
            for (int l = 0; l < LANES; l++) {
                double left = y[l] + dy[l] * (to1 - s[i1]);
                double right = y[LANES + l] + dy[LANES + l] * (to1 - s[i1 + 1]);
                B[l] = c1[j] + g[l] + (right > left ? right : left);
                dB[l] = right > left ? dy[LANES + l] : dy[l];
            }
            double *v = out + j * LANES, *d = out_slope + j * LANES;
            LOG_ADD_EXP(v, A, B)
            for (int l = 0; l < LANES; l++) {
                double p = B[l] > A[l] ? 1.0 - exp(A[l] - v[l]) : exp(B[l] - v[l]);
                p = p < 0.0 ? 0.0 : (p > 1.0 ? 1.0 : p);
                d[l] = decay * ((1.0 - p) * dA[l] + p * (dB[l] - energy));
            }
        }
    }

    /* One state of a transfer matrix. */
    static CLONES void pair_step(const double *idle, const double *join, double c0, double c1,
                                 const double *g, double *out) {
        double A[LANES], B[LANES];
        for (int l = 0; l < LANES; l++) A[l] = c0 + idle[l];
        for (int l = 0; l < LANES; l++) B[l] = c1 + g[l] + join[l];
        LOG_ADD_EXP(out, A, B)
    }

    /* out = c0 idle + c1 e join. */
    static CLONES void pair_products(const double *idle, const double *join, double c0, double c1,
                                     const double *e, double *out) {
        for (int l = 0; l < LANES; l++) out[l] = c0 * idle[l] + c1 * e[l] * join[l];
    }

    /* out = exp(x) where x >= -700, else 0. */
    static CLONES void exponentials(int count, const double *x, double *out) {
        for (int i = 0; i < count; i++) {
            double x_ = x[i] > -700.0 ? x[i] : -700.0;
            EXP_PARTS(x_, k, e)
            POWER_OF_TWO(k, scale)
            out[i] = x[i] < -700.0 ? 0.0 : e * scale;
        }
    }

    /* Sums over nodes stay in registers, each of which holds WIDTH lanes. The code is the same for
       every width, and so is what comes out. */
    #if defined(__GNUC__)
    #define FETCH(address) __builtin_prefetch(address)
    #define VECTORS(WIDTH)                                                                        \\
        typedef double vec __attribute__((vector_size(8 * WIDTH)));                               \\
        typedef int64_t chosen __attribute__((vector_size(8 * WIDTH)));
    #define BELOW(x, y) ((chosen)((x) < (y)))
    #define LEAST(x, y) ((vec)((BELOW(x, y) & (chosen)(x)) | (~BELOW(x, y) & (chosen)(y))))
    #else
    #define FETCH(address)
    #define VECTORS(WIDTH) typedef double vec;
    #define LEAST(x, y) ((x) < (y) ? (x) : (y))
    #endif

    /* Sums and differences times the halves of rows j, n - 1 - j, j + 1 and n - 2 - j. */
    #define PRODUCTS(a, b, folded)                                                                \\
        vec a##0 = p[0] * folded[0], a##1 = p[1] * folded[0];                                     \\
        vec a##2 = p[2] * folded[0], a##3 = p[3] * folded[0];                                     \\
        vec b##0 = p[4] * folded[h * GROUPS], b##1 = p[5] * folded[h * GROUPS];                   \\
        vec b##2 = p[6] * folded[h * GROUPS], b##3 = p[7] * folded[h * GROUPS];                   \\
        for (const double *w = p + 8; w < p + 8 * h; w += 8) {                                    \\
            const vec sum = *(folded += GROUPS), difference = folded[h * GROUPS];                 \\
            a##0 += w[0] * sum;                                                                   \\
            a##1 += w[1] * sum;                                                                   \\
            a##2 += w[2] * sum;                                                                   \\
            a##3 += w[3] * sum;                                                                   \\
            b##0 += w[4] * difference;                                                            \\
            b##1 += w[5] * difference;                                                            \\
            b##2 += w[6] * difference;                                                            \\
            b##3 += w[7] * difference;                                                            \\
        }

    #define STEPS(NAME, TARGET, WIDTH)                                                            \\
    /* Sums and differences of mirrored values, one after the other. ``worst`` becomes at least a \\
       bound on the relative error of the polynomial through the values. */                       \\
    TARGET static void fold_##NAME(int n, const double *tail, double rounding,                    \\
                                   const double *values, double *folded, double *worst) {         \\
        VECTORS(WIDTH)                                                                            \\
        const int h = n / 2, GROUPS = LANES / WIDTH;                                              \\
        vec sums_of_tails[LANES / WIDTH], lows[LANES / WIDTH];                                    \\
        for (int g = 0; g < GROUPS; g++) {                                                        \\
            const vec *in = (const vec *)values + g;                                              \\
            vec *sums = (vec *)folded + g, *differences = sums + h * GROUPS;                      \\
            vec total = in[0] - in[0], least = in[0], other = in[0];                              \\
            for (int k = 0; k < h; k++) {                                                         \\
                const vec x = in[k * GROUPS], y = in[(n - 1 - k) * GROUPS], sum = x + y;          \\
                sums[k * GROUPS] = sum;                                                           \\
                differences[k * GROUPS] = x - y;                                                  \\
                total += tail[k] * sum;                                                           \\
                least = LEAST(x, least);                                                          \\
                other = LEAST(y, other);                                                          \\
            }                                                                                     \\
            sums_of_tails[g] = total;                                                             \\
            lows[g] = LEAST(least, other);                                                        \\
        }                                                                                         \\
        const double *last = (const double *)sums_of_tails, *low = (const double *)lows;          \\
        for (int l = 0; l < LANES; l++) {                                                         \\
            const double first = values[l], end = values[(n - 1) * LANES + l];                    \\
            const double top = first > end ? first : end;                                         \\
            double error = (fabs(last[l]) + rounding * top) / low[l];                             \\
            error = (low[l] > 0.0) & (error < INFINITY) ? error : INFINITY;                       \\
            /* A state that no path leaves is 0 everywhere. */                                    \\
            error = (top == 0.0) & (low[l] == 0.0) ? 0.0 : error;                                 \\
            worst[l] = error > worst[l] ? error : worst[l];                                       \\
        }                                                                                         \\
    }                                                                                             \\
                                                                                                  \\
    /* out = stay keep (idle at decay s) + enter take cost (join at decay s + 1) at every node.   \\
       The nodes, and the two maps, are mirror images of one another: a row of the matrix that    \\
       interpolates at decay s is, read backwards, one of the matrix for decay s + 1. */          \\
    TARGET static void step_##NAME(int n, const double *halves, double stay, double enter,        \\
                                   const double *keep, const double *take, const double *cost,    \\
                                   const double *idle, const double *join, double *out,           \\
                                   double *loss) {                                                \\
        VECTORS(WIDTH)                                                                            \\
        const ptrdiff_t h = n / 2, GROUPS = LANES / WIDTH;                                        \\
        for (int g = 0; g < GROUPS; g++) {                                                        \\
            const vec kept = stay * ((const vec *)keep)[g];                                       \\
            const vec taken = enter * ((const vec *)take)[g];                                     \\
            const vec *x = (const vec *)idle + g, *y = (const vec *)join + g;                     \\
            vec *to = (vec *)out + g;                                                             \\
            const double *p = halves;                                                             \\
            for (int j = 0; j < h; j += 2, p += 8 * h) {                                          \\
                const int i = n - 1 - j;                                                          \\
                const vec *from = x;                                                              \\
                PRODUCTS(a, b, from)                                                              \\
                vec up0 = kept * (a0 + b0), down0 = a0 - b0;                                      \\
                vec up1 = kept * (a1 + b1), down1 = a1 - b1;                                      \\
                vec up2 = kept * (a2 + b2), down2 = a2 - b2;                                      \\
                vec up3 = kept * (a3 + b3), down3 = a3 - b3;                                      \\
                if (x != y) {                                                                     \\
                    from = y;                                                                     \\
                    PRODUCTS(c, d, from)                                                          \\
                    down0 = c0 - d0;                                                              \\
                    down1 = c1 - d1;                                                              \\
                    down2 = c2 - d2;                                                              \\
                    down3 = c3 - d3;                                                              \\
                }                                                                                 \\
                to[j * GROUPS] = up0 + taken * (cost[j] * down1);                                 \\
                to[i * GROUPS] = up1 + taken * (cost[i] * down0);                                 \\
                to[(j + 1) * GROUPS] = up2 + taken * (cost[j + 1] * down3);                       \\
                to[(i - 1) * GROUPS] = up3 + taken * (cost[i - 1] * down2);                       \\
            }                                                                                     \\
        }                                                                                         \\
        /* A state that may still be left must stay above 2^-600: no step leads to 0 there. */    \\
        for (int l = 0; l < LANES; l++) {                                                         \\
            const double x = idle[l] + idle[h * LANES + l], y = join[l] + join[h * LANES + l];    \\
            const int alive = (stay > 0.0) & (x > 0.0) | (enter > 0.0) & (y > 0.0);               \\
            loss[l] = alive & !(out[l] >= 0x1p-600) ? INFINITY : loss[l];                         \\
        }                                                                                         \\
    }

    #if defined(CLONED)
    STEPS(wide, __attribute__((target("arch=x86-64-v4"))), 8)
    STEPS(middle, __attribute__((target("avx2"))), 4)
    STEPS(narrow, , 2)
    #define WIDEST(step)                                                                          \\
        (__builtin_cpu_supports("x86-64-v4") ? step##_wide                                        \\
         : __builtin_cpu_supports("avx2") ? step##_middle : step##_narrow)
    #elif defined(__GNUC__)
    STEPS(narrow, , 2)
    #define WIDEST(step) step##_narrow
    #else
    STEPS(narrow, , 1)
    #define WIDEST(step) step##_narrow
    #endif

    static void fold(int n, const double *tail, double rounding, const double *values,
                     double *folded, double *worst) {
        WIDEST(fold)(n, tail, rounding, values, folded, worst);
    }

    static void mirrored_step(int n, const double *halves, double stay, double enter,
                              const double *keep, const double *take, const double *cost,
                              const double *idle, const double *join, double *out, double *loss) {
        WIDEST(step)(n, halves, stay, enter, keep, take, cost, idle, join, out, loss);
    }

    /* Rows of fields lie far apart: ask for those of a round some rounds ahead. */
    static void fetch_fields(const double *a, int width) {
        for (int l = 0; l < width; l += 8) FETCH(a + l);
    }

    /* exp(a - half_energy - tilt) = take / keep, where ``keep`` is a power of two and neither
       exceeds 2. Closes the account of the round before. */
    static CLONES void field_step(const double *__restrict a, double half_energy, double decay,
                                  double *__restrict tilt, double *__restrict exponent,
                                  double *__restrict keep, double *__restrict take,
                                  double *__restrict worst, double *__restrict loss) {
        for (int l = 0; l < LANES; l++) {
            loss[l] += worst[l];
            worst[l] = 0.0;
            double x = (a[l] - half_energy) - tilt[l];
            loss[l] = fabs(x) <= 200.0 ? loss[l] : INFINITY;
            x = fabs(x) <= 200.0 ? x : 0.0;
            EXP_PARTS(x, k, e)
            const double up = k > 0.0 ? k : 0.0, less = -up, rest = k - up;
            POWER_OF_TWO(less, kept)
            POWER_OF_TWO(rest, scale)
            keep[l] = kept;
            take[l] = e * scale;
            exponent[l] += up;
            tilt[l] *= decay;
        }
    }

    /* Where the sums over automaton states differ by more than a factor of 4 from one end to the
       other, or are far from 1, move an exponential of the state and a power of two out of them. */
    static CLONES void flatten(int states, int n, const double *s, double *values, double *tilt,
                               double *exponent, double *loss) {
        const double per_bit = 0.6931471805599453 * 0x1p-52 / s[n - 1];
        enum { PART = 8 };
        for (int g = 0; g < LANES; g += PART) {
            double *all = values + g;
            double steep[PART], scale[PART];
            int needed = 0;
            for (int l = 0; l < PART; l++) {
                double first = 0.0, end = 0.0;
                for (int q = 0; q < states; q++) {
                    first += all[q * n * LANES + l];
                    end += all[(q * n + n - 1) * LANES + l];
                }
                const int sound = (first > 0.0) & (end > 0.0);
                loss[g + l] = sound ? loss[g + l] : INFINITY;
                first = sound ? first : 1.0;
                end = sound ? end : 1.0;
                /* The bits of a double are its logarithm to a tenth; any tilt is exact. */
                int64_t high, low;
                memcpy(&high, &first, 8);
                memcpy(&low, &end, 8);
                const double rise = (double)(high - low), k = (double)((high >> 52) - 1023);
                const int wanted = (fabs(rise) > 0x1p53) | (fabs(k) > 100.0);
                const double less = wanted ? -k : 0.0;
                POWER_OF_TWO(less, power)
                scale[l] = power;
                steep[l] = wanted ? rise * per_bit : 0.0;
                exponent[g + l] -= less;
                tilt[g + l] += steep[l];
                needed |= wanted;
            }
            for (int j = 0; needed && j < n; j++) {
                double factor[PART];
                for (int l = 0; l < PART; l++) {
                    const double x = steep[l] * s[j];
                    EXP_PARTS(x, k, e)
                    POWER_OF_TWO(k, power)
                    factor[l] = e * power * scale[l];
                }
                for (int q = 0; q < states; q++)
                    for (int l = 0; l < PART; l++) all[(q * n + j) * LANES + l] *= factor[l];
            }
        }
    }
    """
    enum: LANES
    void fetch_fields(const double*, int) noexcept nogil
    void exponentials(int, const double*, double*) noexcept nogil
    void fold(int, const double*, double, const double*, double*, double*) noexcept nogil
    void mirrored_step(int, const double*, double, double, const double*, const double*,
                       const double*, const double*, const double*, double*,
                       double*) noexcept nogil
    void field_step(const double*, double, double, double*, double*, double*, double*,
                    double*, double*) noexcept nogil
    void flatten(int, int, const double*, double*, double*, double*, double*) noexcept nogil
    void dense_step(int, const double*, const double*, const double*, const double*,
                    const double*, const double*, const double*, double*) noexcept nogil
    void axis_step(int, int, int, const double*, const double*, double*) noexcept nogil
    void dense_merge(int, const double*, const double*, const double*, double,
                     const double*, double*) noexcept nogil
    void chord_step(int, const int*, const int*, const double*, const double*, const double*,
                    const double*, const double*, const double*, const double*,
                    double*) noexcept nogil
    void tangent_step(int, const int*, const int*, const double*, double, double, const double*,
                      const double*, const double*, const double*, const double*, const double*,
                      const double*, double*, double*) noexcept nogil
    void pair_step(const double*, const double*, double, double, const double*,
                   double*) noexcept nogil
    void pair_products(const double*, const double*, double, double, const double*,
                       double*) noexcept nogil


cdef inline void load_fields(
    const double[:, ::1] a, Py_ssize_t t, Py_ssize_t first, Py_ssize_t width, double* g
) noexcept nogil:
    """Fields of a block of draws in round t; lanes past the last draw hold zeros."""
    cdef Py_ssize_t l
    for l in range(LANES):
        g[l] = a[t, first + l] if l < width else 0.0


cdef inline void start_of(
    const double[::1] start, const double* values, Py_ssize_t stride, Py_ssize_t first,
    Py_ssize_t width, double[::1] result
) noexcept nogil:
    """log sum_q start[q] M[q] at the first node, for a block of draws."""
    cdef Py_ssize_t l, q
    cdef double largest, total
    for l in range(width):
        largest = -INFINITY
        for q in range(start.shape[0]):
            largest = max(largest, start[q] + values[q * stride + l])
        total = 0.0
        for q in range(start.shape[0]):
            total += exp(start[q] + values[q * stride + l] - largest)
        result[first + l] = largest + log(total)


cdef inline double log_add(double x, double y) noexcept nogil:
    cdef double top = max(x, y)
    if top == -INFINITY:
        return top
    return top + log1p(exp(-fabs(x - y)))


cdef inline double largest_of(const double[::1] values) noexcept nogil:
    cdef Py_ssize_t i
    cdef double largest = -INFINITY
    for i in range(values.shape[0]):
        largest = max(largest, values[i])
    return largest


cdef inline Py_ssize_t picked(const double* shares, Py_ssize_t count, double threshold) noexcept nogil:
    """The first number whose share, with all before it, exceeds a threshold; else the last one."""
    cdef Py_ssize_t chosen = 0
    while chosen < count - 1:
        threshold -= shares[chosen]
        if threshold < 0.0:
            break
        chosen += 1
    return chosen


@cython.final
cdef class Law:
    """The automaton of participations, as views of its five tables."""

    cdef const double[:, ::1] idle, join
    cdef const int[:, ::1] idle_to, join_to
    cdef const double[::1] start
    cdef Py_ssize_t states

    def __cinit__(self, tuple tables):
        self.idle, self.join, self.idle_to, self.join_to, self.start = tables
        self.states = self.start.shape[0]

    cdef inline double weight(self, Py_ssize_t t, int state, double field) noexcept nogil:
        """Log of the mean weight of staying idle and of joining at a field."""
        return log_add(self.idle[t, state], self.join[t, state] + field)


@cython.final
cdef class Sweep:
    """Values of a block of draws at all nodes, now and a round earlier, and costs at the nodes."""

    cdef object owners
    cdef Py_ssize_t size
    cdef double *now
    cdef double *then
    cdef double *c0
    cdef double *c1

    def __cinit__(self, Py_ssize_t size, Py_ssize_t nodes):
        cdef double[:, ::1] values = np.empty((2, size)), costs = np.empty((2, nodes))
        self.owners, self.size = (values, costs), size
        self.now, self.then = &values[0, 0], &values[1, 0]
        self.c0, self.c1 = &costs[0, 0], &costs[1, 0]

    cdef inline void begin(self) noexcept nogil:
        """Set all values to zero."""
        memset(self.now, 0, self.size * sizeof(double))

    cdef inline void turn(self) noexcept nogil:
        """Take the values of the round before."""
        self.now, self.then = self.then, self.now

    cdef inline void cost(
        self, const double[::1] s, double decay, double energy, double stays, double joins
    ) noexcept nogil:
        """Costs of staying idle and of joining at the states of one number."""
        cdef Py_ssize_t j
        for j in range(s.shape[0]):
            self.c0[j] = stays
            self.c1[j] = joins - energy * (0.5 + decay * s[j])


def ar1_states(double[:, ::1] y, double decay):
    """Turn participations into states in place: s[t] = decay s[t-1] + y[t]; shape (rounds, draws)."""
    cdef Py_ssize_t t, l, rounds = y.shape[0], m = y.shape[1]
    with nogil:
        for t in range(1, rounds):
            for l in range(m):
                y[t, l] += decay * y[t - 1, l]


def ar1_fields(double[:, ::1] x, double decay, double variance):
    """Turn observations into fields in place: a[t] = x[t] / variance + decay a[t+1]."""
    cdef Py_ssize_t t, l, rounds = x.shape[0], m = x.shape[1]
    with nogil:
        for t in range(rounds - 1, -1, -1):
            for l in range(m):
                x[t, l] = x[t, l] / variance + (decay * x[t + 1, l] if t + 1 < rounds else 0.0)


def series_states(double[:, ::1] y, const double[::1] decays, const double[::1] scales):
    """Turn participations into C y in place, for C with a unit diagonal and geometric series below.

    ``C[t + k, t] = sum_j scales[j] decays[j]^(k - 1)``; ``y`` has shape (rounds, draws).
    """
    cdef Py_ssize_t t, j, l, rounds = y.shape[0], m = y.shape[1], series = decays.shape[0]
    cdef double taken
    cdef double[:, ::1] state = np.zeros((series, m))
    with nogil:
        for t in range(rounds):
            for l in range(m):
                taken = y[t, l]
                for j in range(series):
                    y[t, l] += scales[j] * state[j, l]
                    state[j, l] = decays[j] * state[j, l] + taken


def series_fields(
    double[:, ::1] x, const double[::1] decays, const double[::1] scales, double variance
):
    """Turn observations into fields C^T x / variance in place, for C of geometric series."""
    cdef Py_ssize_t t, j, l, rounds = x.shape[0], m = x.shape[1], series = decays.shape[0]
    cdef double seen
    cdef double[:, ::1] state = np.zeros((series, m))
    with nogil:
        for t in range(rounds - 1, -1, -1):
            for l in range(m):
                seen = x[t, l] / variance
                x[t, l] = seen
                for j in range(series):
                    x[t, l] += scales[j] * state[j, l]
                    state[j, l] = decays[j] * state[j, l] + seen


def band_states(double[:, ::1] y, const double[::1] column):
    """Turn participations into C y in place, for a Toeplitz C with few bands."""
    cdef Py_ssize_t t, k, l, rounds = y.shape[0], m = y.shape[1], bands = column.shape[0]
    with nogil:
        for t in range(rounds - 1, -1, -1):
            for l in range(m):
                y[t, l] *= column[0]
            for k in range(1, min(bands, t + 1)):
                for l in range(m):
                    y[t, l] += column[k] * y[t - k, l]


def band_fields(double[:, ::1] x, const double[::1] column, double variance):
    """Turn observations into fields C^T x / variance in place, for a Toeplitz C with few bands."""
    cdef Py_ssize_t t, k, l, rounds = x.shape[0], m = x.shape[1], bands = column.shape[0]
    with nogil:
        for t in range(rounds):
            for l in range(m):
                x[t, l] *= column[0]
            for k in range(1, min(bands, rounds - t)):
                for l in range(m):
                    x[t, l] += column[k] * x[t + k, l]
            for l in range(m):
                x[t, l] /= variance


def grid_log_ratio(
    const double[:, ::1] a,
    const double[::1] energies,
    const double[::1] s,
    const double[:, ::1] W0,
    const double[:, ::1] W1,
    double decay,
    tuple tables,
):
    """log L for ``C[t, u] = decay^(t - u)``, by values of log M on a dense grid of states.

    Parameters
    ----------
    a
        Fields, shape (rounds, draws).
    energies
        Diagonal of C^T C / sigma^2.
    s, W0, W1
        Nodes, and the matrices that interpolate at ``decay s`` and ``decay s + 1``.
    tables
        The automaton of participations: idle, join, idle_to, join_to and start.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], n = s.shape[0], stride = n * LANES
    cdef Py_ssize_t t, q, block, first, width
    cdef Law law = Law(tables)
    cdef Sweep sweep = Sweep(law.states * stride, n)
    out = np.empty(m)
    cdef double[::1] result = out
    cdef double g[LANES]
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            sweep.begin()
            for t in range(rounds - 1, -1, -1):
                load_fields(a, t, first, width, g)
                for q in range(law.states):
                    sweep.cost(s, decay, energies[t], law.idle[t, q], law.join[t, q])
                    dense_step(
                        <int>n, &W0[0, 0], &W1[0, 0], sweep.now + law.idle_to[t, q] * stride,
                        sweep.now + law.join_to[t, q] * stride, sweep.c0, sweep.c1, g,
                        sweep.then + q * stride,
                    )
                sweep.turn()
            start_of(law.start, sweep.now, stride, first, width, result)
    return out


cdef enum:
    FLATTEN_EVERY = 4
    FETCH_AHEAD = 4


cdef aligned(Py_ssize_t rows, Py_ssize_t columns):
    """Zeros that start at a multiple of 64 bytes, as vectors ask for."""
    raw = np.zeros(rows * columns + 8)
    first = -raw.ctypes.data // 8 % 8
    return raw[first : first + rows * columns].reshape(rows, columns)


def likelihood_log_ratio(
    const double[:, ::1] a,
    const double[::1] energies,
    const double[::1] s,
    const double[:, :, ::1] halves,
    const double[::1] tail,
    double decay,
    double rounding,
    double tolerance,
    tuple tables,
):
    """log L for ``C[t, u] = decay^(t - u)``, by values of M itself; NaN where they are in doubt.

    M is carried as exp(-tilt s) 2^exponent times the values. A draw is in doubt where a sum of
    bounds on relative errors exceeds ``tolerance``, or a field is far from 0.

    Parameters
    ----------
    a
        Fields, shape (rounds, draws).
    energies
        Diagonal of C^T C / sigma^2.
    s
        Chebyshev nodes of [0, 1 / (1 - decay)]; their number n is a multiple of 4.
    halves
        Of shape (n / 4, n / 2, 8): the matrix that interpolates at ``decay s``, in blocks of its
        rows j, n - 1 - j, j + 1 and n - 2 - j for even j, with weights for sums of mirrored values
        in the first four columns and for their differences in the last.
    tail
        Weights of sums of mirrored values, for a bound on the polynomial's error.
    rounding
        Bound on the rounding of a value, relative to the largest.
    tolerance
        Largest sum of the relative errors of all rounds.
    tables
        The automaton of participations: idle, join, idle_to, join_to and start.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], n = s.shape[0]
    cdef Law law = Law(tables)
    cdef Py_ssize_t t, q, j, l, block, first, width, source, stride = n * LANES, states = law.states
    cdef double total
    out = np.empty(m)
    cdef double[::1] result = out
    cdef double[:, ::1] values = aligned(states, stride)
    cdef double[:, ::1] folded = aligned(states, stride)
    cdef double[:, ::1] lanes = aligned(7, LANES)
    cdef double *g = &lanes[0, 0]
    cdef const double *fields
    cdef double *tilt = &lanes[1, 0]
    cdef double *exponent = &lanes[2, 0]
    cdef double *keep = &lanes[3, 0]
    cdef double *take = &lanes[4, 0]
    cdef double *worst = &lanes[5, 0]
    cdef double *loss = &lanes[6, 0]
    costs = np.outer(energies, s)
    costs *= -decay
    cdef double[:, ::1] cost = costs
    cdef double[:, ::1] stay = np.empty((rounds, states))
    cdef double[:, ::1] enter = np.empty((rounds, states))
    cdef double[::1] begin = np.empty(states)
    exponentials(<int>(rounds * n), &cost[0, 0], &cost[0, 0])
    exponentials(<int>(rounds * states), &law.idle[0, 0], &stay[0, 0])
    exponentials(<int>(rounds * states), &law.join[0, 0], &enter[0, 0])
    exponentials(<int>states, &law.start[0], &begin[0])
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            for q in range(states):
                for j in range(stride):
                    values[q, j] = 1.0
            for l in range(LANES):
                tilt[l] = 0.0
                exponent[l] = 0.0
                worst[l] = 0.0
                loss[l] = 0.0
            for t in range(rounds - 1, -1, -1):
                if t >= FETCH_AHEAD:
                    fetch_fields(&a[t - FETCH_AHEAD, first], <int>width)
                fields = &a[t, first]
                if width < LANES:
                    load_fields(a, t, first, width, g)
                    fields = g
                field_step(
                    fields, 0.5 * energies[t], decay, tilt, exponent, keep, take, worst, loss
                )
                for q in range(states):
                    fold(<int>n, &tail[0], rounding, &values[q, 0], &folded[q, 0], worst)
                for q in range(states):
                    # Where nobody joins, any source of joins will do.
                    source = law.join_to[t, q] if enter[t, q] > 0.0 else law.idle_to[t, q]
                    mirrored_step(
                        <int>n, &halves[0, 0, 0], stay[t, q], enter[t, q], keep, take, &cost[t, 0],
                        &folded[law.idle_to[t, q], 0], &folded[source, 0], &values[q, 0], loss,
                    )
                if t % FLATTEN_EVERY == 0:
                    flatten(<int>states, <int>n, &s[0], &values[0, 0], tilt, exponent, loss)
            for l in range(width):
                total = 0.0
                for q in range(states):
                    total += begin[q] * values[q, l]
                result[first + l] = NAN
                if loss[l] + worst[l] <= tolerance and total > 0.0:
                    result[first + l] = log(total) + exponent[l] * LN_2
    return out


cdef const double* moved(
    const double* values, const double[:, :, ::1] W, const int[::1] shape, Py_ssize_t last,
    Py_ssize_t total, double* scratch
) noexcept nogil:
    """Values after every axis but the last has moved; ``scratch`` holds two grids."""
    cdef Py_ssize_t axis, outer = 1, inner = total
    cdef const double* source = values
    cdef double* target = scratch
    for axis in range(last):
        inner //= shape[axis]
        axis_step(<int>outer, shape[axis], <int>inner, &W[axis, 0, 0], source, target)
        source = target
        target = scratch + total * LANES if target == scratch else scratch
        outer *= shape[axis]
    return source


def vector_log_ratio(
    const double[:, ::1] a,
    const double[::1] energies,
    const double[:, ::1] couplings,
    const int[::1] shape,
    const double[:, ::1] points,
    const double[:, :, ::1] W0,
    const double[:, :, ::1] W1,
    const double[::1] origin,
    tuple tables,
):
    """log L where the past is a vector of states, by values of log M on a grid of its axes.

    Parameters
    ----------
    a
        Fields, shape (rounds, draws).
    energies
        Diagonal of C^T C / sigma^2.
    couplings
        Of shape (rounds, axes): taking part in round t costs ``couplings[t] @ state``.
    shape
        Nodes of each axis.
    points
        States of all nodes, shape (nodes, axes), the last axis fastest.
    W0, W1
        For each axis the matrix that interpolates at the states which follow an idle round and a
        participation, one row after another at the start of ``W0[axis]``.
    origin
        Weights of the nodes at the state without participations, shape (nodes,).
    tables
        The automaton of participations: idle, join, idle_to, join_to and start.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], axes = shape.shape[0]
    cdef Py_ssize_t nodes = points.shape[0], stride = nodes * LANES
    cdef Py_ssize_t t, q, i, j, l, o, block, first, width, last = axes - 1, n = shape[axes - 1]
    out = np.empty(m)
    cdef double[::1] result = out
    cdef Law law = Law(tables)
    cdef Sweep sweep = Sweep(law.states * stride, nodes)
    cdef double[:, ::1] scratch = np.empty((2, 2 * stride))
    cdef double[:, ::1] first_values = np.empty((law.states, LANES))
    cdef const double *stays
    cdef const double *joins
    cdef double cost
    cdef double g[LANES]
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            sweep.begin()
            for t in range(rounds - 1, -1, -1):
                load_fields(a, t, first, width, g)
                for q in range(law.states):
                    for j in range(nodes):
                        cost = 0.5 * energies[t]
                        for i in range(axes):
                            cost += couplings[t, i] * points[j, i]
                        sweep.c0[j] = law.idle[t, q]
                        sweep.c1[j] = law.join[t, q] - cost
                    stays = moved(
                        sweep.now + law.idle_to[t, q] * stride, W0, shape, last, nodes,
                        &scratch[0, 0],
                    )
                    joins = moved(
                        sweep.now + law.join_to[t, q] * stride, W1, shape, last, nodes,
                        &scratch[1, 0],
                    )
                    for o in range(nodes // n):
                        dense_step(
                            <int>n, &W0[last, 0, 0], &W1[last, 0, 0], stays + o * n * LANES,
                            joins + o * n * LANES, sweep.c0 + o * n, sweep.c1 + o * n, g,
                            sweep.then + q * stride + o * n * LANES,
                        )
                sweep.turn()
            for q in range(law.states):
                for l in range(LANES):
                    first_values[q, l] = 0.0
                for j in range(nodes):
                    if origin[j] != 0.0:
                        for l in range(LANES):
                            first_values[q, l] += (
                                origin[j] * sweep.now[q * stride + j * LANES + l]
                            )
            start_of(law.start, &first_values[0, 0], LANES, first, width, result)
    return out


def counts_log_ratio(
    const double[:, ::1] a,
    const double[::1] energies,
    const double[::1] s,
    const double[:, :, ::1] W,
    double decay,
    const double[:, ::1] log_probabilities,
):
    """log of the ratio for counts: k participations in a round with state-dependent probability.

    ``W[k]`` interpolates at ``decay s + k``, and ``log_probabilities[k]`` belongs to the nodes.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], n = s.shape[0], kinds = W.shape[0]
    cdef Py_ssize_t t, j, k, l, block, first, width
    out = np.empty(m)
    cdef double[::1] result = out
    cdef Sweep sweep = Sweep(n * LANES, n)
    cdef double g[LANES]
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            sweep.begin()
            for t in range(rounds - 1, -1, -1):
                load_fields(a, t, first, width, g)
                for k in range(1, kinds):
                    for j in range(n):
                        sweep.c1[j] = log_probabilities[k, j] - k * energies[t] * (
                            0.5 * k + decay * s[j]
                        )
                        sweep.c0[j] = log_probabilities[0, j]
                    if k == 1:
                        dense_step(
                            <int>n, &W[0, 0, 0], &W[1, 0, 0], sweep.now, sweep.now, sweep.c0,
                            sweep.c1, g, sweep.then,
                        )
                    else:
                        dense_merge(
                            <int>n, &W[k, 0, 0], sweep.now, sweep.c1, <double>k, g, sweep.then
                        )
                sweep.turn()
            for l in range(width):
                result[first + l] = sweep.now[l]
    return out


def bracket_log_ratio(
    const double[:, ::1] a,
    const double[::1] energies,
    const double[::1] s,
    const int[::1] cell0,
    const int[::1] cell1,
    const double[::1] share0,
    const double[::1] share1,
    double decay,
    tuple tables,
    bint upper,
):
    """A one-sided bound on log L for ``C[t, u] = decay^(t - u)``, before rounding.

    log M is convex and decreasing in the state: chords lie above it, and tangents below. ``cell``
    names the node left of each point that is asked for, and ``share`` the chord's weight of the
    right one, with points past the last node moved to it.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], n = s.shape[0], stride = n * LANES
    cdef Py_ssize_t t, q, block, first, width, slopes, at_idle, at_join
    cdef Law law = Law(tables)
    cdef Sweep sweep = Sweep((1 if upper else 2) * law.states * stride, n)
    out = np.empty(m)
    cdef double[::1] result = out
    cdef double g[LANES]
    slopes = law.states * stride
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            sweep.begin()
            for t in range(rounds - 1, -1, -1):
                load_fields(a, t, first, width, g)
                for q in range(law.states):
                    sweep.cost(s, decay, energies[t], law.idle[t, q], law.join[t, q])
                    at_idle = law.idle_to[t, q] * stride
                    at_join = law.join_to[t, q] * stride
                    if upper:
                        chord_step(
                            <int>n, &cell0[0], &cell1[0], &share0[0], &share1[0],
                            sweep.now + at_idle, sweep.now + at_join, sweep.c0, sweep.c1, g,
                            sweep.then + q * stride,
                        )
                    else:
                        tangent_step(
                            <int>n, &cell0[0], &cell1[0], &s[0], decay, energies[t],
                            sweep.now + at_idle, sweep.now + slopes + at_idle,
                            sweep.now + at_join, sweep.now + slopes + at_join, sweep.c0, sweep.c1,
                            g, sweep.then + q * stride, sweep.then + slopes + q * stride,
                        )
                sweep.turn()
            start_of(law.start, sweep.now, stride, first, width, result)
    return out


# Fields beyond this could carry sums out of the range of a double between two divisions.
cdef double LARGEST_FIELD = 150.0
# Rounds between two divisions of sums by their largest one.
cdef Py_ssize_t RESCALED = 4


cdef inline double repulsion_of(
    const double[:, ::1] gram, Py_ssize_t t, Py_ssize_t word
) noexcept nogil:
    """Cost of joining round t after the participations whose bits are set in a word."""
    cdef Py_ssize_t k
    cdef double total = 0.5 * gram[t, 0]
    for k in range(1, min(gram.shape[1], t + 1)):
        if (word >> (k - 1)) & 1:
            total += gram[t - k, k]
    return total


cdef bint banded_products(
    const double[:, ::1] a,
    const double[:, ::1] repulsions,
    const Py_ssize_t[::1] kinds,
    Law law,
    Py_ssize_t first,
    Py_ssize_t width,
    Sweep sweep,
    double* logs,
) noexcept nogil:
    """log L of a block of independent participations by sums themselves; false where they overflow.

    No past raises what later rounds add, because C >= 0, so that sums after no participation are
    the largest ones.
    """
    cdef Py_ssize_t rounds = a.shape[0], words = repulsions.shape[1], t, w, l, shifted
    cdef double g[LANES]
    cdef double e[LANES]
    cdef double total, keep
    for l in range(words * LANES):
        sweep.now[l] = 1.0
    for l in range(LANES):
        logs[l] = 0.0
    for t in range(rounds - 1, -1, -1):
        load_fields(a, t, first, width, g)
        for l in range(LANES):
            if not -LARGEST_FIELD < g[l] < LARGEST_FIELD:
                return False
        exponentials(LANES, g, e)
        keep = exp(law.idle[t, 0])
        for w in range(words):
            shifted = (w << 1) & (words - 1)
            pair_products(
                sweep.now + shifted * LANES, sweep.now + (shifted | (words > 1)) * LANES, keep,
                exp(law.join[t, 0]) * repulsions[kinds[t], w], e, sweep.then + w * LANES,
            )
        sweep.turn()
        if t % RESCALED == 0:
            for l in range(LANES):
                total = sweep.now[l]
                if not 1e-280 < total < 1e280:
                    return False
                logs[l] += log(total)
                total = 1.0 / total
                for w in range(words):
                    sweep.now[w * LANES + l] *= total
    return True


def banded_log_ratio(
    const double[:, ::1] a,
    const double[:, ::1] gram,
    tuple tables,
):
    """log L for a banded Gram matrix: the state is the last ``bands - 1`` participations.

    ``gram[t, k]`` is (C^T C)[t, t + k] / sigma^2, with shape (rounds, bands). Where participations
    are independent, sums are added up themselves, and otherwise, or where they leave the range of a
    double, their logarithms.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1], lags = gram.shape[1] - 1
    cdef Law law = Law(tables)
    cdef Py_ssize_t words = <Py_ssize_t>1 << lags, states = law.states, stride = words * LANES
    cdef Py_ssize_t t, q, k, w, l, block, first, width, shifted, kind = -1
    cdef double repulsion
    cdef bint same
    out = np.empty(m)
    cdef double[::1] result = out
    cdef double logs[LANES]
    places, rows = np.zeros(rounds, dtype=np.intp), []
    cdef Py_ssize_t[::1] kinds = places
    cdef double[:, ::1] repulsions = np.ones((1, words))
    if states == 1:
        for t in range(rounds):
            # Most rounds have the products of columns of the round before them.
            same = kind >= 0
            for k in range(lags + 1):
                same = same and t > k and gram[t - k, k] == gram[t - k - 1, k]
            if not same:
                row = np.empty(words)
                for w in range(words):
                    row[w] = exp(-repulsion_of(gram, t, w))
                rows.append(row)
                kind += 1
            kinds[t] = kind
        repulsions = np.array(rows)
    cdef Sweep sweep = Sweep(states * stride, 1)
    cdef double g[LANES]
    with nogil:
        for block in range((m + LANES - 1) // LANES):
            first = block * LANES
            width = min(m - first, <Py_ssize_t>LANES)
            if states == 1 and banded_products(
                a, repulsions, kinds, law, first, width, sweep, logs
            ):
                for l in range(width):
                    result[first + l] = law.start[0] + logs[l]
                continue
            sweep.begin()
            for t in range(rounds - 1, -1, -1):
                load_fields(a, t, first, width, g)
                for w in range(words):
                    repulsion = repulsion_of(gram, t, w)
                    shifted = (w << 1) & (words - 1)
                    for q in range(states):
                        pair_step(
                            sweep.now + law.idle_to[t, q] * stride + shifted * LANES,
                            sweep.now + law.join_to[t, q] * stride
                            + (shifted | (lags > 0)) * LANES,
                            law.idle[t, q], law.join[t, q] - repulsion, g,
                            sweep.then + q * stride + w * LANES,
                        )
                sweep.turn()
            start_of(law.start, sweep.now, stride, first, width, result)
    return out


def particle_log_ratio(
    const double[:, ::1] a,
    const double[:, ::1] gram,
    tuple tables,
    Py_ssize_t particles,
    const double[:, ::1] reference,
    const int[::1] reference_start,
    object generator,
):
    """log of an unbiased estimate of L for any C >= 0, from particles that look ahead.

    With a reference (shape (rounds, draws), else zero rounds), the first particle is held at the
    participations that the draw came from, which makes the mean of (1 - e^eps / estimate)_+ over
    draws from P equal to the mean of (estimate - e^eps)_+ over draws from Q.
    """
    cdef Py_ssize_t rounds = a.shape[0], m = a.shape[1]
    cdef Py_ssize_t t, u, i, d, chosen
    cdef Law law = Law(tables)
    cdef bitgen_t *bits = bits_of(generator)
    cdef bint held = reference.shape[0] > 0
    cdef double total, largest, squares, field, log_l, weight, joined
    out = np.empty(m)
    cdef double[::1] result = out
    cdef double[:, ::1] repulsion = np.empty((particles, rounds))
    cdef double[:, ::1] kept = np.empty((particles, rounds))
    cdef double[::1] begin = np.array([exp(each) for each in law.start])
    cdef double[::1] log_weight = np.empty(particles)
    cdef double[::1] share = np.empty(particles)
    cdef int[::1] state = np.empty(particles, dtype=np.intc)
    cdef int[::1] old = np.empty(particles, dtype=np.intc)
    with generator.bit_generator.lock, nogil:
        for d in range(m):
            log_l = 0.0
            for i in range(particles):
                log_weight[i] = 0.0
                chosen = picked(&begin[0], law.states, bits.next_double(bits.state))
                state[i] = <int>chosen
                if held and i == 0:
                    state[0] = reference_start[d]
                for t in range(rounds):
                    repulsion[i, t] = 0.0
            for t in range(rounds):
                for i in range(particles):
                    field = a[t, d] - 0.5 * gram[t, t] - repulsion[i, t]
                    log_weight[i] += law.weight(t, state[i], field)
                largest = largest_of(log_weight)
                total = 0.0
                squares = 0.0
                for i in range(particles):
                    share[i] = exp(log_weight[i] - largest)
                    total += share[i]
                    squares += share[i] * share[i]
                if total * total < 0.5 * particles * squares:
                    log_l += largest + log(total / particles)
                    for i in range(particles):
                        old[i] = state[i]
                        memcpy(&kept[i, t], &repulsion[i, t], (rounds - t) * sizeof(double))
                        log_weight[i] = 0.0
                    for i in range(1 if held else 0, particles):
                        chosen = picked(&share[0], particles, bits.next_double(bits.state) * total)
                        state[i] = old[chosen]
                        memcpy(&repulsion[i, t], &kept[chosen, t], (rounds - t) * sizeof(double))
                for i in range(particles):
                    field = a[t, d] - 0.5 * gram[t, t] - repulsion[i, t]
                    weight = law.weight(t, state[i], field)
                    joined = exp(law.join[t, state[i]] + field - weight)
                    if held and i == 0:
                        joined = reference[t, d]
                    if bits.next_double(bits.state) < joined:
                        state[i] = law.join_to[t, state[i]]
                        for u in range(t + 1, rounds):
                            repulsion[i, u] += gram[t, u]
                    else:
                        state[i] = law.idle_to[t, state[i]]
            largest = largest_of(log_weight)
            total = 0.0
            for i in range(particles):
                total += exp(log_weight[i] - largest)
            result[d] = log_l + largest + log(total / particles)
    return out


cdef void weights_at(
    const double[::1] s, const double[::1] barycentric, double x, double* out
) noexcept nogil:
    """Values at x of the Lagrange polynomials of the nodes."""
    cdef Py_ssize_t n = s.shape[0], i, j
    cdef double total = 0.0
    for j in range(n):
        if fabs(x - s[j]) < 1e-13:
            for i in range(n):
                out[i] = 0.0
            out[j] = 1.0
            return
    for j in range(n):
        out[j] = barycentric[j] / (x - s[j])
        total += out[j]
    for j in range(n):
        out[j] /= total


def tilted_pair_states(
    const double[:, :, ::1] ahead,
    const double[::1] s,
    const double[::1] barycentric,
    double decay,
    double variance,
    const double[::1] rates,
    Py_ssize_t draws,
    object generator,
):
    """Sum of the states of two records whose participations attract each other, (rounds, draws).

    A pair of patterns has probability proportional to its own times exp(<C y1, C y2> / variance);
    ``ahead[t]`` holds the logarithm of the mean weight of the rounds after t on the grid of pairs
    of states, so that pairs are drawn forward in time.
    """
    cdef Py_ssize_t rounds = rates.shape[0], n = s.shape[0], t, d, i, j, k, pick
    cdef bitgen_t *bits = bits_of(generator)
    cdef double s1, s2, x1, x2, value, largest, total, inner
    cdef double logs[4]
    cdef double left[2][64]
    cdef double right[2][64]
    out = np.empty((rounds, draws))
    cdef double[:, ::1] result = out
    if n > 64:
        raise ValueError(f"s must have at most 64 nodes, got {n}.")
    with generator.bit_generator.lock, nogil:
        for d in range(draws):
            s1 = 0.0
            s2 = 0.0
            for t in range(rounds):
                for k in range(2):
                    weights_at(s, barycentric, decay * s1 + k, &left[k][0])
                    weights_at(s, barycentric, decay * s2 + k, &right[k][0])
                for pick in range(4):
                    logs[pick] = 0.0
                for i in range(n):
                    for k in range(2):
                        inner = 0.0
                        for j in range(n):
                            inner += right[k][j] * ahead[t, i, j]
                        logs[k] += left[0][i] * inner
                        logs[2 + k] += left[1][i] * inner
                largest = -INFINITY
                for pick in range(4):
                    x1 = decay * s1 + pick // 2
                    x2 = decay * s2 + pick % 2
                    value = x1 * x2 / variance
                    value += log(rates[t]) if pick // 2 else log1p(-rates[t])
                    value += log(rates[t]) if pick % 2 else log1p(-rates[t])
                    logs[pick] += value
                    largest = max(largest, logs[pick])
                total = 0.0
                for pick in range(4):
                    logs[pick] = exp(logs[pick] - largest)
                    total += logs[pick]
                pick = picked(logs, 4, bits.next_double(bits.state) * total)
                s1 = decay * s1 + pick // 2
                s2 = decay * s2 + pick % 2
                result[t, d] = s1 + s2
    return out
