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

#define DPCAL_LOOPS "line_loops.h"
#include "widths.h"
#undef DPCAL_LOOPS

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
    const dpcal_line *line, double c, const dpcal_moments *at, double *sizes, double *scaled, ptrdiff_t *ends
) {
    double sums[3], least;
    ptrdiff_t from = 0, to = line->n;
    dpcal_scaled_sums(line->re, line->size, line->n, c, at->log_mass, sizes, sums);
    least = 1e-19 * DPCAL_WIDEST(dpcal_largest)(line, sizes, at->mean, at->variance, scaled);
    while (from < to && !(scaled[from] > least))
        from++;
    while (to > from + 1 && !(scaled[to - 1] > least))
        to--;
    ends[0] = from - from % DPCAL_LANES;
    ends[1] = dpcal_padded(to);
}

/* Weights, errors and bounds on the decay of one law along Re z = c, in up to 10 n numbers from `room` on. */
static int dpcal_tilt_law(
    dpcal_law *law, double c, double *weights, dpcal_work *work, double **room, dpcal_tilt *tilt
) {
    dpcal_moments at;
    ptrdiff_t ends[2];
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
    if (law->lines && (status = law->lines(law, ends[0], ends[1], work)))
        return status;
    const dpcal_line *line = &law->line, *near = &law->near;
    const ptrdiff_t n = line->n;
    tilt->re = *room, tilt->im = tilt->re + n, tilt->wr = tilt->im + n, tilt->wi = tilt->wr + n;
    tilt->error = tilt->wi + n, tilt->shift = tilt->error + n, tilt->distance = tilt->shift + n;
    tilt->size = tilt->distance + n, tilt->near_size = tilt->size + n;
    dpcal_magnitudes(near, c, &at, tilt->near_size, tilt->distance, ends);
    tilt->near_n = ends[1] - ends[0];
    tilt->near_size += ends[0];
    tilt->near_im = tilt->near_size + tilt->near_n;
    memcpy(tilt->near_im, near->im + ends[0], (size_t)tilt->near_n * sizeof(double));
    *room = tilt->near_im + tilt->near_n;
    dpcal_magnitudes(line, c, &at, tilt->size, tilt->distance, ends);
    tilt->n = ends[1] - ends[0];
    tilt->size += ends[0];
    DPCAL_WIDEST(dpcal_tilted_points)(line, ends[0], c, &at, tilt);
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
            drop = dpcal_larger(drop, r[0] * r[0] * t * t * (r[1] - t * t * total / 12.0));
    }
    if (isfinite(tilt->half_time)) {
        int halvings; /* of half_time, to t or below */
        frexp(tilt->half_time / t, &halvings);
        drop = dpcal_larger(drop, ldexp(0.5, -2 * (halvings > 0 ? halvings : 0)));
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

static double dpcal_least(const double *x, ptrdiff_t first) {
    double least = x[first];
    for (ptrdiff_t j = first + 1; j < first + DPCAL_LANES; j++)
        least = x[j] < least ? x[j] : least;
    return least;
}

static double dpcal_most(const double *x, ptrdiff_t first) {
    double most = x[first];
    for (ptrdiff_t j = first + 1; j < first + DPCAL_LANES; j++)
        most = x[j] > most ? x[j] : most;
    return most;
}

/* Whether terms w exp(i s) of a late block are left out from a time on: exp(i s) is below exp(-35), less than the error
   of a direct evaluation, or terms are below `faint`, 2^-60 of the sum of min(s^2 / 2, 1) abs(w), which rises with the
   time. A negative `faint` is not known yet. */
static int dpcal_is_gone(const dpcal_tilt *tilt, double time, ptrdiff_t first, double *faint) {
    const double decay = time * dpcal_least(tilt->im, first);
    if (*faint < 0)
        *faint = 0x1p-60 * DPCAL_WIDEST(dpcal_second_order)(tilt->distance, tilt->size, tilt->n, time);
    return decay >= 35.0 || dpcal_most(tilt->size, first) * exp(-decay) < *faint;
}

/* Sorts blocks of points at a time into two lists: `blocks` has terms w (exp(i s) - 1 - i s), and `late`, where s is at
   least sqrt(2), terms w exp(i s) and, by sums of w and w l in `gone`, - w - i s w. */
static void dpcal_sort(
    const dpcal_tilt *tilt, double time, ptrdiff_t *blocks, ptrdiff_t *n, ptrdiff_t *late, ptrdiff_t *m, double *gone
) {
    const ptrdiff_t all = *n, before = *m;
    double faint = -1.0;
    *n = *m = 0;
    for (ptrdiff_t i = 0; i < before / DPCAL_LANES; i++)
        if (!dpcal_is_gone(tilt, time, late[i], &faint))
            late[*m] = late[i], *m += 1;
    for (ptrdiff_t i = 0; i < all / DPCAL_LANES; i++) {
        const ptrdiff_t first = blocks[i];
        if (time * dpcal_least(tilt->distance, first) < 1.4142135623730951) {
            blocks[*n] = first, *n += 1;
            continue;
        }
        if (!dpcal_is_gone(tilt, time, first, &faint))
            late[*m] = first, *m += 1;
        for (ptrdiff_t j = first; j < first + DPCAL_LANES; j++) {
            gone[0] += tilt->wr[j];
            gone[1] += tilt->wi[j];
            gone[2] += tilt->wr[j] * tilt->re[j] - tilt->wi[j] * tilt->im[j];
            gone[3] += tilt->wr[j] * tilt->im[j] + tilt->wi[j] * tilt->re[j];
        }
    }
    *n *= DPCAL_LANES, *m *= DPCAL_LANES;
}

/* Sums at nodes start, ..., stop - 1 < start + 128 of the terms of two lists of dpcal_sort, by recurrences from node to
   node that begin at those over 16 nodes, and these at `start`. Node 16 sorts the first 128 again. */
static void dpcal_near_sums(
    const dpcal_tilt *tilt, double h, int start, int stop, ptrdiff_t *blocks, ptrdiff_t *n, ptrdiff_t *late,
    ptrdiff_t *m, double *table, double *gone, int *known, double *lr, double *li
) {
    double *coarse = table + 8 * *n, *power = coarse + 8 * *n;
    const int few = start == 0 && stop <= DPCAL_STRIDE;
    for (int k = start; k < stop; k += DPCAL_STRIDE) {
        const int end = k + DPCAL_STRIDE < stop ? k + DPCAL_STRIDE : stop;
        double ignored[2];
        if (k == start || k == DPCAL_STRIDE) {
            const ptrdiff_t all = *known ? *n : -1, before = *known ? *m : -1;
            dpcal_sort(tilt, (k > 0 ? k : 1) * h, blocks, n, late, m, gone);
            coarse = table + 8 * *n, power = coarse + 8 * *n;
            if (*n != all) {
                DPCAL_WIDEST(dpcal_recurrence)(tilt, blocks, *n, h, table);
                if (!few)
                    DPCAL_WIDEST(dpcal_recurrence)(tilt, blocks, *n, DPCAL_STRIDE * h, coarse);
            }
            if (*n != all || *m != before) {
                DPCAL_WIDEST(dpcal_powers)(tilt, late, *m, h, 0, power + 2 * *m);
                if (!few)
                    DPCAL_WIDEST(dpcal_powers)(tilt, late, *m, DPCAL_STRIDE * h, 0, power + 6 * *m);
            }
            *known = 1;
            DPCAL_WIDEST(dpcal_anew)(tilt, blocks, *n, k * h, coarse);
            DPCAL_WIDEST(dpcal_powers)(tilt, late, *m, k * h, 1, power + 4 * *m);
        }
        DPCAL_WIDEST(dpcal_second_order_nodes)(table, coarse, *n, k, end, lr, li);
        DPCAL_WIDEST(dpcal_power_nodes)(power, power + 4 * *m, *m, k, end, lr, li);
        for (int i = k; i < end; i++) {
            lr[i] += i * h * gone[3] - gone[0];
            li[i] -= i * h * gone[2] + gone[1];
        }
        if (end < stop) {
            dpcal_second_order_node(coarse, *n, (double)k / DPCAL_STRIDE, ignored);
            dpcal_power_node(power + 4 * *m, *m, ignored);
        }
    }
}

/* Moves the blocks whose s is at most 1 at a time from one list to another. */
static void dpcal_part(
    const dpcal_tilt *tilt, double time, ptrdiff_t *blocks, ptrdiff_t *n, ptrdiff_t *slow, ptrdiff_t *m
) {
    const ptrdiff_t all = *n / DPCAL_LANES;
    *n = *m = 0;
    for (ptrdiff_t i = 0; i < all; i++) {
        if (time * dpcal_most(tilt->distance, blocks[i]) <= 1.0)
            slow[*m] = blocks[i], *m += 1;
        else
            blocks[*n] = blocks[i], *n += 1;
    }
    *n *= DPCAL_LANES, *m *= DPCAL_LANES;
}

/* Log psi(k h) and 1 / abs(psi) of one law, 128 nodes at a time. Of 128 nodes or more, terms whose theta is at most 1
   over all of them are powers of theta about node 0, and from node 128 on others whose theta is at most 1 over 128
   nodes are powers about the first of these, up to their size times 2 / 20!; `table` holds 17 numbers a point. */
static void dpcal_log_psi(
    const dpcal_tilt *tilt, double h, int nodes, double *table, double *lr, double *li, double *inverse
) {
    ptrdiff_t *blocks = (ptrdiff_t *)(void *)(table + 16 * tilt->n), *late = blocks + tilt->n / 4;
    ptrdiff_t *slow = late + tilt->n / 4, *slow_late = slow + tilt->n / 4, slow_n = 0, slow_m = 0;
    ptrdiff_t n = tilt->n, m = 0;
    double gone[4] = {0};
    int known = 0;
    memset(lr, 0, (size_t)dpcal_padded(nodes) * sizeof(double));
    memset(li, 0, (size_t)dpcal_padded(nodes) * sizeof(double));
    for (ptrdiff_t i = 0; i < n / DPCAL_LANES; i++)
        blocks[i] = i * DPCAL_LANES;
    if (nodes >= DPCAL_ANCHOR) {
        dpcal_part(tilt, h * nodes, blocks, &n, slow, &slow_n);
        if (slow_n > 0)
            DPCAL_WIDEST(dpcal_about)(tilt, slow, slow_n, late, 0, h, nodes, 0, nodes, lr, li);
        slow_n = 0;
    }
    for (int start = 0; start < nodes; start += DPCAL_ANCHOR) {
        const int stop = start + DPCAL_ANCHOR < nodes ? start + DPCAL_ANCHOR : nodes;
        if (start == DPCAL_ANCHOR) {
            dpcal_part(tilt, h * DPCAL_ANCHOR, blocks, &n, slow, &slow_n);
            dpcal_part(tilt, h * DPCAL_ANCHOR, late, &m, slow_late, &slow_m);
            known = 0;
        }
        if (slow_n + slow_m > 0) {
            dpcal_sort(tilt, start * h, slow, &slow_n, slow_late, &slow_m, gone);
            DPCAL_WIDEST(dpcal_about)(tilt, slow, slow_n, slow_late, slow_m, h, DPCAL_ANCHOR, start, stop, lr, li);
        }
        dpcal_near_sums(tilt, h, start, stop, blocks, &n, late, &m, table, gone, &known, lr, li);
    }
    DPCAL_WIDEST(dpcal_log_psi_of)(tilt, h, nodes, lr, li, inverse);
}

/* The largest states of the recurrences over the weights: 2 + s until a block is late, and 1 from then on. A block is
   late from the first on of nodes 1, 16, 128, 256, ... where s is at least sqrt(2), for the least of its distances. */
static void dpcal_caps(const dpcal_tilt *tilt, double h, double *caps) {
    const double edge = 1.4142135623730951;
    for (ptrdiff_t first = 0; first < tilt->n; first += DPCAL_LANES) {
        const double least = h * dpcal_least(tilt->distance, first);
        const double stride = DPCAL_STRIDE, more = DPCAL_ANCHOR / stride;
        for (ptrdiff_t j = first; j < first + DPCAL_LANES; j++) {
            const double s = h * tilt->distance[j];
            caps[j] = least >= edge ? 1.0 : 2.0 + (stride * least >= edge ? stride * s : more * edge * s / least);
        }
    }
}

/* Adds the errors of a law's log psi at the nodes, in units, from sums at 12 of them: see dpcal_rounding_sums. */
static void dpcal_add_errors(
    const dpcal_tilt *tilt, double h, int nodes, const double *lr, const double *li, const double *inverse,
    double *caps, double *errors
) {
    const double last = nodes > 2 ? nodes - 1.0 : 1.0;
    double before = 1.0, low[4], high[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    int first = 1;
    dpcal_caps(tilt, h, caps);
    for (int i = 0; i < DPCAL_SOME && first < nodes; i++) {
        const double at = i == DPCAL_SOME - 1 ? last : floor(exp(log(last) * i / (DPCAL_SOME - 1.0)));
        memcpy(low, high, sizeof low);
        DPCAL_WIDEST(dpcal_rounding_sums)(
            tilt->distance, tilt->size, tilt->error, tilt->shift, caps, tilt->n, at * h, high
        );
        DPCAL_WIDEST(dpcal_node_errors)(
            lr, li, inverse, first, (int)at + 1, before, low, high, (double)tilt->n, tilt->times, errors
        );
        first = (int)at + 1 > first ? (int)at + 1 : first;
        before = at;
    }
}

#endif
