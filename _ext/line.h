/* One privacy loss along a vertical line: bounds on the decay of its characteristic function psi, and log psi at
   equally spaced nodes, with its rounding. psi(t) = E exp(i t (l - mean)) under the law exp(c l) P / M(c). */

#ifndef DPCAL_LINE_H
#define DPCAL_LINE_H

#include "law.h"

enum { DPCAL_SHARES = 9, DPCAL_ANCHOR = 128, DPCAL_STRIDE = 16, DPCAL_SOME = 12 };
/* Chances of the events to which a law is restricted when its decay is bounded. */
static const double dpcal_shares[DPCAL_SHARES] = {0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.999, 0.9999, 1.0};

/* A tilted law along Re z = c. */
typedef struct {
    double times, log_mass, mean, variance, half_time;
    ptrdiff_t n, near_n;
    double *re, *im, *wr, *wi, *size, *error, *shift, *distance; /* points less the mean, weights, errors in units */
    double *near_im, *near_size;
    double restricted[DPCAL_SHARES][3];
    double left_re, left_im; /* what the weights leave of a mean of 0 */
} dpcal_tilt;

/* Probability, variance and fourth central moment of a tilted law on events x <= x_j, rounded outward. */
static void dpcal_restrict(const dpcal_law *law, const dpcal_moments *at, const double *weights, dpcal_tilt *tilt) {
    double mass = 0.0, first = 0.0, second = 0.0, third = 0.0, fourth = 0.0;
    int chosen = 0;
    memset(tilt->restricted, 0, sizeof tilt->restricted);
    for (ptrdiff_t j = 0; j < law->n && chosen < DPCAL_SHARES; j++) {
        const double d = law->loss[j] - at->mean, a = weights[j] * d, b = a * d, e = b * d;
        mass += weights[j];
        first += a;
        second += b;
        third += e;
        fourth += e * d;
        while (chosen < DPCAL_SHARES && mass >= dpcal_shares[chosen] * (1.0 - 1e-12) * at->total) {
            const double m1 = first / mass, m2 = second / mass, m3 = third / mass, m4 = fourth / mass;
            const double variance = m2 - m1 * m1;
            const double high = m4 - 4.0 * m1 * m3 + 6.0 * m1 * m1 * m2 - 3.0 * m1 * m1 * m1 * m1;
            if (variance > 1e-6 * m2 && high > 0 && high > 1e-6 * m4) {
                tilt->restricted[chosen][0] = mass / at->total * (1.0 - 1e-9);
                tilt->restricted[chosen][1] = variance * (1.0 - 1e-6);
                tilt->restricted[chosen][2] = high * (1.0 + 1e-6);
            }
            chosen++;
        }
    }
}

/* A time from which the absolute sum is at most sqrt(1/2), or infinity. */
static double dpcal_half_time(const dpcal_tilt *tilt) {
    const double half = sqrt(0.5) * (1.0 - 1e-12);
    double sums[2], t = 0.0;
    DPCAL_WIDEST(dpcal_decayed_sums)(tilt->near_size, tilt->near_im, tilt->near_n, 0.0, sums);
    if (!(sums[1] > 0))
        return INFINITY;
    t = 0.35 / sums[1];
    for (int tries = 0; tries < 100 && t < 1e200; tries++) {
        DPCAL_WIDEST(dpcal_decayed_sums)(tilt->near_size, tilt->near_im, tilt->near_n, t, sums);
        if (sums[0] <= half)
            return t;
        if (!(sums[1] > 0))
            return INFINITY;
        t = 1.05 * (t + sums[0] / sums[1] * log(sums[0] / half));
    }
    return INFINITY;
}

/* The span of points, in blocks of eight, whose weights on a shifted line may count, also in the variance: a weight
   grows by less than exp(10) from the real line when removing. */
static void dpcal_window(const dpcal_law *law, const dpcal_moments *at, const double *weights, ptrdiff_t *ends) {
    const double least = 1e-19 * exp(-20.0) * at->total;
    ptrdiff_t from = 0, to = law->n;
    while (!law->add && from < to - 1) {
        const double d = law->loss[from] - at->mean;
        if (weights[from] * (1.0 + (d * d + 4.0) / at->variance) > least)
            break;
        from++;
    }
    while (!law->add && to > from + 1) {
        const double d = law->loss[to - 1] - at->mean;
        if (weights[to - 1] * (1.0 + (d * d + 4.0) / at->variance) > least)
            break;
        to--;
    }
    ends[0] = from - from % DPCAL_LANES;
    ends[1] = dpcal_padded(to);
}

/* Magnitudes of the weights on a line, and the span of those above 1e-19 of the largest, also in the variance. */
static void dpcal_magnitudes(
    const dpcal_line *line, double c, const dpcal_moments *at, double *sizes, ptrdiff_t *ends
) {
    double sums[3], largest = 0.0;
    ptrdiff_t from = 0, to = line->n;
    DPCAL_WIDEST(dpcal_scaled_sums)(line->re, line->size, line->n, c, at->log_mass, sizes, sums);
    for (ptrdiff_t j = 0; j < line->n; j++) {
        const double d = line->re[j] - at->mean;
        largest = fmax(largest, sizes[j] * (1.0 + (d * d + line->im[j] * line->im[j]) / at->variance));
    }
    for (; from < to; from++) {
        const double d = line->re[from] - at->mean;
        if (sizes[from] * (1.0 + (d * d + line->im[from] * line->im[from]) / at->variance) > 1e-19 * largest)
            break;
    }
    for (; to > from + 1; to--) {
        const double d = line->re[to - 1] - at->mean;
        if (sizes[to - 1] * (1.0 + (d * d + line->im[to - 1] * line->im[to - 1]) / at->variance) > 1e-19 * largest)
            break;
    }
    ends[0] = from - from % DPCAL_LANES;
    ends[1] = dpcal_padded(to);
}

/* Weights, errors and bounds on the decay of one law along Re z = c, in `room` of 10 n numbers. */
static int dpcal_tilt_law(dpcal_law *law, double c, double *weights, double *room, dpcal_tilt *tilt) {
    dpcal_moments at;
    ptrdiff_t ends[2];
    double left_re = 0.0, left_im = 0.0;
    int status = dpcal_moments_at(law, c, weights, &at);
    if (status)
        return status;
    tilt->log_mass = at.log_mass;
    tilt->mean = at.mean;
    tilt->variance = at.variance;
    tilt->n = tilt->near_n = 0;
    if (law->variance > 0)
        return DPCAL_DONE;
    dpcal_restrict(law, &at, weights, tilt);
    dpcal_window(law, &at, weights, ends);
    if (law->lines && (status = law->lines(law, ends[0], ends[1])))
        return status;
    const dpcal_line *line = &law->line, *near = &law->near;
    const ptrdiff_t n = line->n;
    dpcal_magnitudes(line, c, &at, weights, ends);
    const ptrdiff_t from = ends[0], count = ends[1] - from;
    tilt->n = count;
    tilt->re = room, tilt->im = room + n, tilt->wr = room + 2 * n, tilt->wi = room + 3 * n;
    tilt->size = room + 4 * n, tilt->error = room + 5 * n, tilt->shift = room + 6 * n;
    tilt->distance = room + 7 * n;
    for (ptrdiff_t j = 0; j < count; j++) {
        const double re = line->re[from + j], im = line->im[from + j], size = weights[from + j];
        const double phase = line->phase[from + j] + c * im, total = (1.0 + c) * sqrt(re * re + im * im);
        tilt->re[j] = re - at.mean;
        tilt->im[j] = im;
        tilt->size[j] = size;
        tilt->wr[j] = size * cos(phase);
        tilt->wi[j] = size * sin(phase);
        tilt->distance[j] = sqrt(tilt->re[j] * tilt->re[j] + im * im);
        /* The terms of the weight's logarithm: density, c l and log M. */
        tilt->error[j] = size * (16.0 + 2.0 * fabs(line->size[from + j]) + total + fabs(line->phase[from + j])
            + fabs(at.log_mass) + at.error + (1.0 + c) * line->error[from + j]);
        tilt->shift[j] = size * (line->error[from + j] + tilt->distance[j]);
        left_re += tilt->wr[j] * tilt->re[j] - tilt->wi[j] * im;
        left_im += tilt->wr[j] * im + tilt->wi[j] * tilt->re[j];
    }
    tilt->left_re = left_re;
    tilt->left_im = left_im;
    dpcal_magnitudes(near, c, &at, weights, ends);
    tilt->near_n = ends[1] - ends[0];
    tilt->near_im = near->im + ends[0];
    tilt->near_size = room + 8 * n;
    memcpy(tilt->near_size, weights + ends[0], (size_t)tilt->near_n * sizeof(double));
    tilt->half_time = dpcal_half_time(tilt);
    return DPCAL_DONE;
}

/* An upper bound on log abs(psi) over [t, ratio t]: the smallest of three (losses/quadrature.py). */
static double dpcal_log_decay(const dpcal_tilt *tilt, double t, double ratio) {
    double drop = 0.0, bound, sums[2];
    if (tilt->n == 0)
        return -0.5 * tilt->variance * t * t * (1.0 - 1e-12);
    for (int i = 0; i < DPCAL_SHARES; i++) {
        const double *r = tilt->restricted[i], total = r[2] + 3.0 * r[1] * r[1];
        if (r[0] > 0 && ratio * t * ratio * t * total <= 6.0 * r[1])
            drop = fmax(drop, r[0] * r[0] * t * t * (r[1] - t * t * total / 12.0));
    }
    if (isfinite(tilt->half_time)) {
        const double halvings = fmax(0.0, ceil(log2(tilt->half_time / t)));
        drop = fmax(drop, 0.5 * pow(0.25, halvings));
    }
    bound = 0.5 * log1p(-drop * (1.0 - 1e-9));
    if (t >= tilt->half_time) {
        DPCAL_WIDEST(dpcal_decayed_sums)(tilt->size, tilt->im, tilt->n, t, sums);
        bound = fmin(bound, log(sums[0] * (1.0 + 1e-12)));
        DPCAL_WIDEST(dpcal_decayed_sums)(tilt->near_size, tilt->near_im, tilt->near_n, t, sums);
        bound = fmin(bound, log(sums[0] * (1.0 + 1e-12)));
    }
    return fmin(bound, 0.0);
}

/* -- nodes */

/* exp(z) - 1 - z, relative to abs(z)^2 / 2. */
static inline void dpcal_complex_expm2(double re, double im, double *out_re, double *out_im) {
    if (re * re + im * im > 0.25) {
        const double size = exp(re);
        *out_re = size * cos(im) - 1.0 - re;
        *out_im = size * sin(im) - im;
        return;
    }
    double a = 0.0, b = 0.0, t;
    for (int k = re * re + im * im > 0.0004 ? 16 : 8; k > 2; k--) {
        const double inverse = 1.0 / k;
        t = ((1.0 + a) * re - b * im) * inverse;
        b = ((1.0 + a) * im + b * re) * inverse;
        a = t;
    }
    a += 1.0;
    t = 0.5 * (re * re - im * im);
    *out_re = t * a - re * im * b;
    *out_im = t * b + re * im * a;
}

/* A recurrence for the terms w (exp(i s) - 1 - i s) of n points in `blocks`, at multiples of `stride` nodes: rows of
   state, factor, constant and slope of the increment, real and imaginary parts apart. */
static void dpcal_recurrence(
    const dpcal_tilt *tilt, const ptrdiff_t *blocks, ptrdiff_t n, double h, int stride, double *table
) {
    memset(table, 0, (size_t)(8 * n) * sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t j = blocks[i / DPCAL_LANES] + i % DPCAL_LANES;
        const double x = -h * tilt->im[j], y = h * tilt->re[j], wr = tilt->wr[j], wi = tilt->wi[j];
        double a, b, dr, di, er, ei;
        dpcal_complex_expm2(stride * x, stride * y, &a, &b);
        /* exp(i stride theta) - 1, and i theta times it */
        er = stride * x + a, ei = stride * y + b;
        dr = x * er - y * ei, di = x * ei + y * er;
        table[2 * n + i] = 1.0 + er;
        table[3 * n + i] = ei;
        table[4 * n + i] = wr * a - wi * b;
        table[5 * n + i] = wr * b + wi * a;
        table[6 * n + i] = wr * dr - wi * di;
        table[7 * n + i] = wr * di + wi * dr;
    }
}

/* Takes blocks whose exp(i s) is below exp(-50) at a time off the list, and adds their w and w l to `gone`: -w - i s w
   is left of their terms, up to less than the error of a direct evaluation. Returns the number of points that stay. */
static ptrdiff_t dpcal_drop(const dpcal_tilt *tilt, ptrdiff_t *blocks, ptrdiff_t n, double time, double *gone) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < n / DPCAL_LANES; i++) {
        const ptrdiff_t first = blocks[i];
        double least = INFINITY;
        for (ptrdiff_t j = first; j < first + DPCAL_LANES; j++)
            least = fmin(least, tilt->im[j]);
        if (time * least < 50.0) {
            blocks[kept++] = first;
            continue;
        }
        for (ptrdiff_t j = first; j < first + DPCAL_LANES; j++) {
            gone[0] += tilt->wr[j];
            gone[1] += tilt->wi[j];
            gone[2] += tilt->wr[j] * tilt->re[j] - tilt->wi[j] * tilt->im[j];
            gone[3] += tilt->wr[j] * tilt->im[j] + tilt->wi[j] * tilt->re[j];
        }
    }
    return kept * DPCAL_LANES;
}

/* Moments sum w (i theta)^m / m!, theta = h nodes l, m = 2, ..., 19, of the blocks whose theta is at most 1 at the last
   node, if they are many: their terms are a polynomial in k / nodes, up to s^2 / 2 times 2 / 20!. Other blocks are
   listed. Returns the number of their points. */
static ptrdiff_t dpcal_series(const dpcal_tilt *tilt, double h, int nodes, ptrdiff_t *blocks, double *re, double *im) {
    ptrdiff_t far = 0;
    memset(re, 0, 20 * sizeof(double));
    memset(im, 0, 20 * sizeof(double));
    for (int pass = 0; pass < 2; pass++) {
        far = 0;
        for (ptrdiff_t first = 0; first < tilt->n; first += DPCAL_LANES) {
            double most = 0.0;
            for (ptrdiff_t j = first; j < first + DPCAL_LANES; j++)
                most = fmax(most, tilt->distance[j]);
            if (most * h * nodes > 1.0 || nodes < DPCAL_ANCHOR) {
                blocks[far++] = first;
                continue;
            }
            for (ptrdiff_t j = first; pass == 1 && j < first + DPCAL_LANES; j++) {
                const double x = -h * nodes * tilt->im[j], y = h * nodes * tilt->re[j];
                double a = tilt->wr[j], b = tilt->wi[j];
                for (int m = 1; m < 20; m++) {
                    const double t = (a * x - b * y) / m;
                    b = (a * y + b * x) / m;
                    a = t;
                    re[m] += a;
                    im[m] += b;
                }
            }
        }
    }
    return far * DPCAL_LANES;
}

/* Log psi(k h) of one law, by a recurrence from node to node that begins at one over 16 nodes, and that anew every
   128 nodes: `table` holds 17 numbers for each point. */
static void dpcal_log_psi(const dpcal_tilt *tilt, double h, int nodes, double *table, double *lr, double *li) {
    ptrdiff_t *blocks = (ptrdiff_t *)(void *)(table + 16 * tilt->n);
    double re[20], im[20], gone[4] = {0}, *coarse, ignored[2];
    ptrdiff_t n = dpcal_series(tilt, h, nodes, blocks, re, im);
    const int near = n < tilt->n;
    coarse = table + 8 * n;
    dpcal_recurrence(tilt, blocks, n, h, 1, table);
    if (nodes > DPCAL_STRIDE)
        dpcal_recurrence(tilt, blocks, n, h, DPCAL_STRIDE, coarse);
    for (int k = 0; k < nodes; k++) {
        double sums[2], a, b, left_re, left_im;
        if (k > 0 && k % DPCAL_ANCHOR == 0) {
            const ptrdiff_t kept = dpcal_drop(tilt, blocks, n, k * h, gone);
            if (kept < n) {
                n = kept;
                coarse = table + 8 * n;
                dpcal_recurrence(tilt, blocks, n, h, 1, table);
                dpcal_recurrence(tilt, blocks, n, h, DPCAL_STRIDE, coarse);
            }
            for (ptrdiff_t i = 0; i < n; i++) {
                const ptrdiff_t j = blocks[i / DPCAL_LANES] + i % DPCAL_LANES;
                dpcal_complex_expm2(-k * (h * tilt->im[j]), k * (h * tilt->re[j]), &a, &b);
                coarse[i] = tilt->wr[j] * a - tilt->wi[j] * b;
                coarse[n + i] = tilt->wr[j] * b + tilt->wi[j] * a;
            }
        }
        if (k % DPCAL_STRIDE == 0 && nodes > DPCAL_STRIDE) {
            memcpy(table, coarse, (size_t)(2 * n) * sizeof(double));
            dpcal_second_order_node(coarse, n, (double)k, ignored);
        }
        dpcal_second_order_node(table, n, (double)k, sums);
        sums[0] += k * h * gone[3] - gone[0];
        sums[1] -= k * h * gone[2] + gone[1];
        if (near) {
            const double x = (double)k / nodes;
            double c = 0.0, d = 0.0;
            for (int m = 19; m > 1; m--) {
                c = (c + re[m]) * x;
                d = (d + im[m]) * x;
            }
            sums[0] += c * x;
            sums[1] += d * x;
        }
        /* psi - 1 = S (1 - i k h left): the rest of the mean that the weights leave is taken out. */
        left_re = -k * h * tilt->left_im;
        left_im = k * h * tilt->left_re;
        a = sums[0] * (1.0 - left_re) + sums[1] * left_im;
        b = sums[1] * (1.0 - left_re) - sums[0] * left_im;
        lr[k] = a * a + b * b < 0.25 ? 0.5 * log1p(a * (2.0 + a) + b * b)
            : fmax(0.5 * log((1.0 + a) * (1.0 + a) + b * b), -1e6);
        li[k] = atan2(b, 1.0 + a);
    }
}

/* Sums of errors of a law's psi at 12 nodes, in units: see dpcal_rounding_sums. All rise with t, and all but the
   last fall over t^2. */
typedef struct {
    double at[DPCAL_SOME], sums[DPCAL_SOME][4];
    int next;
} dpcal_some;

static void dpcal_some_nodes(const dpcal_tilt *tilt, double h, int nodes, dpcal_some *some) {
    const double last = fmax(nodes - 1.0, 1.0);
    some->next = 0;
    for (int i = 0; i < DPCAL_SOME; i++) {
        some->at[i] = i == DPCAL_SOME - 1 ? last : floor(exp(log(last) * i / (DPCAL_SOME - 1.0)));
        DPCAL_WIDEST(dpcal_rounding_sums)(
            tilt->distance, tilt->size, tilt->error, tilt->shift, tilt->n, some->at[i] * h, some->sums[i]
        );
    }
}

/* The error of psi at node k in units, for rising k; `away` is abs(log psi). Points and weights have their own
   errors, a direct evaluation has 4 (2 + s), each step of a recurrence adds 5, and the sum n / 16. */
static double dpcal_node_error(dpcal_some *some, int k, double away, ptrdiff_t n) {
    const double steps = 8.0 + (double)n / 16.0 + 5.0 * fmin(k, DPCAL_STRIDE + DPCAL_ANCHOR / DPCAL_STRIDE);
    double bounds[3];
    while (some->next < DPCAL_SOME - 1 && some->at[some->next] < k)
        some->next++;
    for (int i = 0; i < 3; i++) {
        bounds[i] = some->sums[some->next][i];
        if (some->next > 0) {
            const double ratio = k / some->at[some->next - 1];
            bounds[i] = fmin(bounds[i], some->sums[some->next - 1][i] * ratio * ratio);
        }
    }
    return bounds[0] + bounds[1] * fmin(away, 2.0) + steps * bounds[2] + 4.0 * some->sums[some->next][3];
}

#endif
