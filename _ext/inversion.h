/* One contour for the law of a sum of independent losses, with every error bounded: epsilon, and log delta.

   delta(epsilon) is the integral over Re z = c > 0 of exp(-epsilon z) M(z) / (2 pi i z (z + 1)), M = prod M_i^T_i;
   the identity and the notation are those of accountants/inversion/contour.py. Nodes are c + i k h. Bounds are
   rounded outward. Errors, in units of 2^-52 where they are rounding:

   aliases of the sum        Chernoff bounds at other tilts, whose own rounding is added (dpcal_trials)
   nodes cut off             bounds on the decay of each characteristic function (dpcal_log_decay), and the poles
   points left out           below 1e-19 of the largest, also in the variance
   rounding of psi           dpcal_node_error, from sums at 12 nodes
   rotation to an epsilon    16 for each node: 64 nodes begin at a factor of libm, eight at a time follow by products
   phase, sum, prefactor     dpcal_interval */

#ifndef DPCAL_INVERSION_H
#define DPCAL_INVERSION_H

#include "law.h"

/* Node counts, distances of trial tilts in widths of the peak, and tolerances, as in inversion/contour.py. */
enum { DPCAL_NODES = 32768, DPCAL_SPREADS = 11, DPCAL_TRIALS = 2 * DPCAL_SPREADS + 1, DPCAL_SHARES = 9 };
enum { DPCAL_ANCHOR = 128, DPCAL_SOME = 12, DPCAL_CHUNK = 64, DPCAL_GRID = 128 };
static const double dpcal_spreads[DPCAL_SPREADS] = {0.05, 0.15, 0.35, 0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, 20.0};
static const double dpcal_shares[DPCAL_SHARES] = {0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.999, 0.9999, 1.0};
static const double DPCAL_RATIO = 1.12, DPCAL_ERROR = 2e-15, DPCAL_CRUDE = 1e-3;
/* Most products of points and nodes for each law: other ways cost less than a longer contour. */
static const double DPCAL_WORK = 4e6;
static const double DPCAL_ACCEPTED = 5e-10, DPCAL_TIGHT = 1e-6;

/* A tilted law along Re z = c. */
typedef struct {
    double times, log_mass, mean, variance, half_time;
    ptrdiff_t n, near_n;
    double *re, *im, *wr, *wi, *size, *error, *shift, *distance; /* points less the mean, weights, errors in units */
    double *near_im, *near_size;
    double restricted[DPCAL_SHARES][3];
    double left_re, left_im; /* what the weights leave of a mean of 0 */
} dpcal_tilt;

typedef struct {
    ptrdiff_t capacity, node_capacity;
    double *block, *nodes;
} dpcal_work;

typedef struct {
    dpcal_law **laws;
    const double *counts;
    ptrdiff_t k;
    double c, log_mgf, mean, variance, error, mean_error; /* of the sum, tilted by c */
    double epsilon, step, width, log_tolerance, remainder; /* the contour, made for this epsilon */
    double sizes, first, rounding; /* sums of abs(v), t abs(v), and errors of v in units */
    double tilts[DPCAL_TRIALS], bounds[DPCAL_TRIALS];
    double wanted; /* the tilt of points that end too early */
    int trials, nodes, made;
    double *vr, *vi; /* nodes of the integrand at `epsilon`, over its value at the real node, which counts half */
    dpcal_tilt *parts;
    dpcal_work *work;
} dpcal_question;

typedef struct {
    double lower, upper;
    double tilt, points, nodes;
    double wanted;
    int status, sampling; /* sampling: the chance that a record is seen is all that was needed */
} dpcal_answer;

static void dpcal_free_work(dpcal_work *work) {
    free(work->block);
    free(work->nodes);
    memset(work, 0, sizeof *work);
}

static int dpcal_grow(double **block, ptrdiff_t *capacity, ptrdiff_t size) {
    if (size <= *capacity)
        return DPCAL_DONE;
    free(*block);
    *block = (double *)malloc((size_t)size * sizeof(double));
    *capacity = *block ? size : 0;
    return *block ? DPCAL_DONE : DPCAL_MEMORY;
}

/* log sup_l (1 - exp(-l)) exp(-c l), l > 0. */
static double dpcal_log_chernoff(double c) {
    return c > 0 ? -c * log1p(1.0 / c) - log1p(c) : 0.0;
}

/* -- moments of the sum, and the search of a tilt */

/* Moments of a law at a tilt, whose points are extended where they end before it. */
static int dpcal_law_at(dpcal_law *law, double c, dpcal_work *work, dpcal_moments *out) {
    int status = DPCAL_DONE;
    if (c > law->highest)
        status = law->serve ? law->serve(law, fmax(1.1 * c, 2.0 * law->highest)) : DPCAL_SHORT;
    if (!status)
        status = dpcal_grow(&work->block, &work->capacity, law->n);
    return status ? status : dpcal_moments_at(law, c, work->block, out);
}

static int dpcal_sum_at(dpcal_question *ask, double c) {
    ask->c = c;
    ask->log_mgf = ask->mean = ask->variance = ask->error = ask->mean_error = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        dpcal_moments found;
        const int status = dpcal_law_at(ask->laws[i], c, ask->work, &found);
        if (status == DPCAL_SHORT)
            ask->wanted = c;
        if (status)
            return status;
        ask->log_mgf += ask->counts[i] * found.log_mass;
        ask->mean += ask->counts[i] * found.mean;
        ask->variance += ask->counts[i] * found.variance;
        ask->error += ask->counts[i] * found.error;
        ask->mean_error += ask->counts[i] * found.mean_error;
    }
    ask->error += 2.0 * (double)ask->k * fabs(ask->log_mgf);
    ask->mean_error += 2.0 * (double)ask->k * fabs(ask->mean);
    return DPCAL_DONE;
}

static double dpcal_curvature(const dpcal_question *ask) {
    return ask->variance + 1.0 / (ask->c * ask->c) + 1.0 / ((1.0 + ask->c) * (1.0 + ask->c));
}

/* Value and derivative at a tilt of an increasing function: the saddle's equation at an epsilon, or, where
   log_delta < 0, that of the epsilon whose saddle-point estimate is log_delta. */
static int dpcal_equation(dpcal_question *ask, double c, double log_delta, double *value, double *slope) {
    const int status = dpcal_sum_at(ask, c);
    double curvature, at;
    if (status)
        return status;
    curvature = dpcal_curvature(ask);
    at = ask->mean - 1.0 / c - 1.0 / (1.0 + c);
    if (log_delta < 0) {
        *value = log_delta - (ask->log_mgf - c * at - log(c) - log1p(c) - 0.5 * log(2.0 * M_PI * curvature));
        *slope = c * curvature;
    } else {
        *value = at - ask->epsilon;
        *slope = curvature;
    }
    return DPCAL_DONE;
}

/* A root by safeguarded Newton steps (saddle.py), within a hundredth of a width of the peak; sums stay at it. */
static int dpcal_tilt_of(dpcal_question *ask, double log_delta) {
    double low = 0.0, high = INFINITY, before = INFINITY, variance = 0.0, gap = ask->epsilon;
    double c, root, width;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        variance += ask->counts[i] * ask->laws[i]->spread;
    root = sqrt(gap * gap + 4.0 * variance);
    c = log_delta < 0 ? sqrt(fmax(-2.0 * log_delta, 0.1) / variance) : (gap + root) / (2.0 * variance);
    c = fmin(fmax(c, 1e-9), 1e4);
    width = 1.0 / sqrt(variance + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)));
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        dpcal_law *law = ask->laws[i];
        if (law->serve && law->n == 0) {
            const int status = law->serve(law, fmax(fmin(1.1 * c + 12.5 * width, 1e4), 1.0));
            if (status)
                return status;
        } else if (!law->serve) {
            c = fmin(c, 0.9 * law->highest);
        }
    }
    for (int tries = 0; tries < 60; tries++) {
        double value, slope, step;
        int slow;
        const int status = dpcal_equation(ask, c, log_delta, &value, &slope);
        if (status)
            return status;
        if (!isfinite(value))
            return DPCAL_SEARCH;
        if (fabs(value) <= 0.01 * sqrt(fmax(slope, 0.0)))
            return DPCAL_DONE;
        if (value > 0)
            high = c;
        else
            low = c;
        step = slope > 0 ? c - value / slope : NAN;
        slow = 4.0 * fabs(value) > before;
        before = fabs(value);
        if (isinf(high)) {
            step = low < step && step < 8.0 * c && !slow ? step : 4.0 * c;
        } else if (slow || !(low < step && step < high)) {
            step = low == 0.0 ? high / 4.0 : sqrt(low * high);
            before = INFINITY;
        }
        if (step == c)
            return DPCAL_DONE;
        c = step;
    }
    return DPCAL_SEARCH;
}

/* -- the laws along the line */

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

/* -- step and nodes */

static int dpcal_is_beyond(const dpcal_question *ask, double c) {
    for (ptrdiff_t i = 0; i < ask->k; i++)
        if (c > ask->laws[i]->highest)
            return 1;
    return 0;
}

/* Chernoff bounds at tilts on both sides of c, rounded up, and the largest step whose aliases are negligible. */
static int dpcal_trials(dpcal_question *ask, double log_tolerance) {
    const double c = ask->c, log_mgf = ask->log_mgf, mean = ask->mean, variance = ask->variance;
    const double error = ask->error, mean_error = ask->mean_error;
    double left = 0.0, right = 0.0, expected;
    ask->width = 1.0 / sqrt(dpcal_curvature(ask));
    expected = log_mgf - c * ask->epsilon - log(c) - log1p(c) - 0.5 * log(2.0 * M_PI) + log(ask->width);
    ask->trials = 0;
    for (int i = -1; i < 2 * DPCAL_SPREADS; i++) {
        const double spread = dpcal_spreads[i < DPCAL_SPREADS ? (i < 0 ? 0 : i) : i - DPCAL_SPREADS];
        const double a = i < 0 ? 0.0 : c + (i < DPCAL_SPREADS ? -spread : spread) * ask->width;
        double bound = 0.0, step;
        if (a < 0 || (a == 0 && i >= 0) || a == c)
            continue;
        if (i >= DPCAL_SPREADS && spread > 8.0 && dpcal_is_beyond(ask, a))
            break; /* nearer tilts serve nearly as well as further points */
        if (a > 0) {
            const int status = dpcal_sum_at(ask, a);
            if (status == DPCAL_MEMORY)
                return status;
            if (status)
                break; /* the furthest tilts may be out of reach */
            bound = ask->log_mgf + dpcal_log_chernoff(a);
            bound += DPCAL_UNIT * (ask->error + 8.0 * (fabs(ask->log_mgf) + log1p(a) + 4.0));
        }
        step = 2.0 * M_PI * fabs(a - c) / fmax(bound - a * ask->epsilon - expected - log_tolerance, 1.0);
        if (a < c)
            left = fmax(left, step);
        else
            right = fmax(right, step);
        ask->tilts[ask->trials] = a;
        ask->bounds[ask->trials++] = bound;
    }
    ask->c = c, ask->log_mgf = log_mgf, ask->mean = mean, ask->variance = variance;
    ask->error = error, ask->mean_error = mean_error;
    ask->step = fmin(left, right);
    return ask->step > 0 && isfinite(ask->step) ? DPCAL_DONE : DPCAL_REACH;
}

/* Log of a bound on the sum of all aliases at an epsilon, and the least Chernoff bound on log delta there. */
static void dpcal_aliases(const dpcal_question *ask, double epsilon, double *aliases, double *chernoff) {
    double left = INFINITY, right = INFINITY, most;
    *chernoff = 0.0;
    for (int i = 0; i < ask->trials; i++) {
        const double a = ask->tilts[i], distance = fabs(a - ask->c) * (2.0 * M_PI / ask->step);
        const double at = ask->bounds[i] - a * epsilon, value = at - distance - log(-expm1(-distance));
        *chernoff = fmin(*chernoff, at + 4.0 * DPCAL_UNIT * (fabs(ask->bounds[i]) + a * epsilon));
        if (a < ask->c)
            left = fmin(left, value);
        else
            right = fmin(right, value);
    }
    most = fmax(left, right);
    *aliases = most + log(exp(left - most) + exp(right - most)) + 1e-9;
}

/* The fewest nodes with a negligible remainder.

   Beyond t the poles leave 1 / abs((1 + i t / c) (1 + i t / (1 + c))), at most 1 / (1 + (t / (1 + c))^2) and at most
   c (1 + c) / t^2: their sum over nodes is at most that of one node and an integral. */
static int dpcal_cut_off(dpcal_question *ask) {
    const double h = ask->step, c = ask->c;
    const double log_sum = log(ask->width / sqrt(2.0 * M_PI)) - log(h / M_PI);
    const double target = log_sum + ask->log_tolerance;
    double pieces[DPCAL_GRID], t = h, points = 0.0, rest = INFINITY, sum;
    int last = 0;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        points += (double)(ask->parts[i].n + 1);
    for (;; last++, t *= DPCAL_RATIO) {
        double decay = 0.0, poles;
        if (last == DPCAL_GRID || t / h > DPCAL_NODES || t / h * points > DPCAL_WORK * (double)ask->k)
            return DPCAL_MANY;
        for (ptrdiff_t i = 0; i < ask->k; i++)
            decay += ask->parts[i].times * dpcal_log_decay(&ask->parts[i], t, DPCAL_RATIO);
        poles = 0.5 * (log1p((t / c) * (t / c)) + log1p((t / (1.0 + c)) * (t / (1.0 + c))));
        pieces[last] = decay - poles + log(t * (DPCAL_RATIO - 1.0) / h + 1.0);
        if (pieces[last] >= target - 3.0)
            continue;
        decay = 0.0;
        for (ptrdiff_t i = 0; i < ask->k; i++)
            decay += ask->parts[i].times * dpcal_log_decay(&ask->parts[i], t, INFINITY);
        rest = decay + log(exp(-poles) + fmin(0.5 * M_PI * (1.0 + c), c * (1.0 + c) / t) / h);
        if (rest < target - 3.0)
            break;
    }
    /* From the outside in: `rest` bounds all nodes from the last time on. */
    sum = exp(rest - target);
    while (last > 0 && sum + exp(pieces[last - 1] - target) <= 1.0)
        sum += exp(pieces[--last] - target);
    t = h * pow(DPCAL_RATIO, last) * (1.0 + 1e-12);
    ask->remainder = target + log(sum) + 1e-9;
    ask->nodes = (int)(t / h) + 2;
    return DPCAL_DONE;
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

/* Log psi(k h) of one law: a recurrence over nodes, begun anew every 128. */
static void dpcal_log_psi(const dpcal_tilt *tilt, double h, int nodes, double *table, double *lr, double *li) {
    const ptrdiff_t n = tilt->n;
    memset(table, 0, (size_t)(8 * n) * sizeof(double));
    for (ptrdiff_t j = 0; j < n; j++) {
        const double x = -h * tilt->im[j], y = h * tilt->re[j], wr = tilt->wr[j], wi = tilt->wi[j];
        double a, b, dr, di;
        dpcal_complex_expm2(x, y, &a, &b);
        table[2 * n + j] = 1.0 + x + a;
        table[3 * n + j] = y + b;
        table[4 * n + j] = wr * a - wi * b;
        table[5 * n + j] = wr * b + wi * a;
        /* i theta (exp(i theta) - 1) */
        dr = x * (x + a) - y * (y + b);
        di = x * (y + b) + y * (x + a);
        table[6 * n + j] = wr * dr - wi * di;
        table[7 * n + j] = wr * di + wi * dr;
    }
    for (int k = 0; k < nodes; k++) {
        double sums[2], a, b, left_re, left_im;
        if (k > 0 && k % DPCAL_ANCHOR == 0)
            for (ptrdiff_t j = 0; j < n; j++) {
                dpcal_complex_expm2(-k * (h * tilt->im[j]), k * (h * tilt->re[j]), &a, &b);
                table[j] = tilt->wr[j] * a - tilt->wi[j] * b;
                table[n + j] = tilt->wr[j] * b + tilt->wi[j] * a;
            }
        dpcal_second_order_node(table, n, (double)k, sums);
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
   errors, a direct evaluation has 4 (2 + s), the recurrence adds 4 a step since the last one, the sum n / 16. */
static double dpcal_node_error(dpcal_some *some, int k, double away, ptrdiff_t n) {
    const double steps = 8.0 + (double)n / 16.0 + 4.0 * fmin(k, DPCAL_ANCHOR);
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

/* Log psi of all laws at the nodes, the integrand v at `epsilon`, and the sums of its sizes and errors. */
static int dpcal_nodes(dpcal_question *ask) {
    const double h = ask->step, c = ask->c;
    const int nodes = ask->nodes;
    const ptrdiff_t padded = dpcal_padded(nodes);
    ptrdiff_t most = DPCAL_LANES;
    double offset = -ask->mean, *errors, *lr, *li, *table;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        most = ask->parts[i].n > most ? ask->parts[i].n : most;
    if (dpcal_grow(&ask->work->nodes, &ask->work->node_capacity, 5 * padded + 8 * most))
        return DPCAL_MEMORY;
    ask->vr = ask->work->nodes, ask->vi = ask->vr + padded;
    errors = ask->vi + padded, lr = errors + padded, li = lr + padded, table = li + padded;
    memset(ask->vr, 0, (size_t)(3 * padded) * sizeof(double));
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        const dpcal_tilt *tilt = &ask->parts[i];
        dpcal_some some;
        offset += tilt->times * tilt->mean;
        if (tilt->n == 0) {
            for (int k = 1; k < nodes; k++) {
                const double size = 0.5 * tilt->variance * (k * h) * (k * h);
                ask->vr[k] -= tilt->times * size;
                errors[k] += 8.0 * tilt->times * size;
            }
            continue;
        }
        dpcal_log_psi(tilt, h, nodes, table, lr, li);
        dpcal_some_nodes(tilt, h, nodes, &some);
        for (int k = 1; k < nodes; k++) {
            const double away = sqrt(lr[k] * lr[k] + li[k] * li[k]);
            errors[k] += tilt->times * dpcal_node_error(&some, k, away, tilt->n) * exp(fmin(-lr[k], 600.0));
            ask->vr[k] += tilt->times * lr[k];
            ask->vi[k] += tilt->times * li[k];
        }
    }
    ask->vr[0] = 0.5, ask->vi[0] = 0.0;
    ask->sizes = 0.5, ask->first = 0.0, ask->rounding = 8.0;
    for (int k = 1; k < nodes; k++) {
        const double t = k * h, phase = ask->vi[k] + t * (offset + (ask->mean - ask->epsilon));
        /* 1 / ((1 + i t / c) (1 + i t / (1 + c))) */
        const double pr = 1.0 - (t / c) * (t / (1.0 + c)), pi = t / c + t / (1.0 + c);
        const double size = exp(ask->vr[k]) / sqrt(pr * pr + pi * pi), turn = phase - atan2(pi, pr);
        ask->vr[k] = size * cos(turn);
        ask->vi[k] = size * sin(turn);
        ask->sizes += size;
        ask->first += t * size;
        ask->rounding += (32.0 + errors[k]) * size;
    }
    for (ptrdiff_t k = nodes; k < padded; k++)
        ask->vr[k] = ask->vi[k] = 0.0;
    ask->rounding += (16.0 + (double)nodes / 16.0) * ask->sizes;
    return DPCAL_DONE;
}

/* A contour through `c`, at which the sums of moments are, for `epsilon`. */
static int dpcal_build(dpcal_question *ask, double tolerance) {
    ptrdiff_t room = 0, most = DPCAL_LANES;
    double *block;
    int status;
    ask->log_tolerance = log(tolerance);
    if ((status = dpcal_trials(ask, ask->log_tolerance)))
        return status;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        room += 9 * ask->laws[i]->n;
        most = ask->laws[i]->n > most ? ask->laws[i]->n : most;
    }
    if (dpcal_grow(&ask->work->block, &ask->work->capacity, room + most))
        return DPCAL_MEMORY;
    block = ask->work->block + most;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        ask->parts[i].times = ask->counts[i];
        if ((status = dpcal_tilt_law(ask->laws[i], ask->c, ask->work->block, block, &ask->parts[i])))
            return status;
        block += 9 * ask->laws[i]->n;
    }
    if ((status = dpcal_cut_off(ask)) || (status = dpcal_nodes(ask)))
        return status;
    ask->made = 1;
    return DPCAL_DONE;
}

/* -- values */

/* Sums over nodes of Re(v r^k) and of t Im(v r^k), r = exp(-i h distance). */
static void dpcal_rotated(const dpcal_question *ask, double distance, double *total, double *turned) {
    const double h = ask->step;
    double fr[8], fi[8], sums[8] = {0}, slopes[8] = {0};
    const double er = cos(-h * distance * 8.0), ei = sin(-h * distance * 8.0);
    for (int lane = 0; lane < 8; lane++) {
        fr[lane] = cos(-h * distance * lane);
        fi[lane] = sin(-h * distance * lane);
    }
    for (int start = 0; start < ask->nodes; start += DPCAL_CHUNK) {
        const double br = cos(-h * distance * start), bi = sin(-h * distance * start);
        double sr[8], si[8];
        for (int lane = 0; lane < 8; lane++) {
            sr[lane] = br * fr[lane] - bi * fi[lane];
            si[lane] = br * fi[lane] + bi * fr[lane];
        }
        for (int k = start; k < start + DPCAL_CHUNK && k < ask->nodes; k += 8)
            for (int lane = 0; lane < 8; lane++) {
                const double a = ask->vr[k + lane], b = ask->vi[k + lane], x = sr[lane], y = si[lane];
                sums[lane] += a * x - b * y;
                slopes[lane] += h * (double)(k + lane) * (a * y + b * x);
                sr[lane] = x * er - y * ei;
                si[lane] = x * ei + y * er;
            }
    }
    *total = DPCAL_SUM_OF(sums);
    *turned = DPCAL_SUM_OF(slopes);
}

/* Bounds on log delta(epsilon), the value between them and its derivative. */
static void dpcal_interval(
    const dpcal_question *ask, double epsilon, double *lower, double *upper, double *value, double *slope
) {
    const double c = ask->c, terms = fabs(ask->log_mgf) + fabs(c * epsilon);
    const double scale = ask->log_mgf - c * epsilon - log(c) - log1p(c) + log(ask->step / M_PI);
    double total, turned, aliases, chernoff, error;
    dpcal_rotated(ask, epsilon - ask->epsilon, &total, &turned);
    dpcal_aliases(ask, epsilon, &aliases, &chernoff);
    error = exp(fmin(aliases - scale, 700.0)) + exp(fmin(ask->remainder, 700.0));
    error += DPCAL_UNIT * (ask->rounding
        + (4.0 * (fabs(ask->mean) + fabs(epsilon) + fabs(ask->epsilon)) + ask->mean_error) * ask->first
        + (16.0 + 4.0 * (terms + fabs(log(c))) + ask->error) * fabs(total));
    *lower = total > error ? scale + log(total - error) : -INFINITY;
    *upper = total + error > 0 ? scale + log(total + error) : INFINITY;
    *upper = fmin(fmin(*upper, chernoff), 0.0);
    *value = total > 0 ? scale + log(total) : NAN;
    *slope = total > 0 ? (turned - c * total) / total : NAN;
    if (isnan(total) || isnan(error))
        *lower = -INFINITY, *upper = 0.0;
}

/* -- questions */

/* A question about a sum of losses; NULL parts of memory that the caller frees by dpcal_end. */
static int dpcal_begin(dpcal_question *ask, dpcal_law **laws, const double *counts, ptrdiff_t k, dpcal_work *work) {
    memset(ask, 0, sizeof *ask);
    ask->laws = laws, ask->counts = counts, ask->k = k, ask->work = work;
    ask->parts = (dpcal_tilt *)malloc((size_t)k * sizeof(dpcal_tilt));
    return ask->parts ? DPCAL_DONE : DPCAL_MEMORY;
}

/* log of the chance, rounded up, that any step depends on the record, and the supremum of the sum. */
static void dpcal_closed_bounds(const dpcal_question *ask, double *log_seen, double *most) {
    double unaffected = 0.0;
    *most = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        unaffected += ask->counts[i] * ask->laws[i]->log_unaffected;
        *most += ask->counts[i] * ask->laws[i]->upper;
    }
    *log_seen = dpcal_log_complement_up(unaffected * (1.0 + (4.0 + (double)ask->k) * DPCAL_UNIT));
    *most *= 1.0 + (4.0 + (double)ask->k) * DPCAL_UNIT;
}

/* A root of the contour's log delta, above 0. */
static int dpcal_root(const dpcal_question *ask, double log_delta, double *root) {
    double low = 0.0, high = INFINITY, at = *root;
    for (int tries = 0; tries < 60; tries++) {
        double lower, upper, value, slope, step;
        dpcal_interval(ask, at, &lower, &upper, &value, &slope);
        if (!(isfinite(value) && slope < 0))
            return DPCAL_SEARCH;
        step = fmax(at + (log_delta - value) / slope, 0.0);
        if (fabs((step - at) * slope) < 1e-7 || step == at) {
            *root = step;
            return step > 0 ? DPCAL_DONE : DPCAL_SEARCH;
        }
        if (value > log_delta)
            low = fmax(low, at);
        else
            high = fmin(high, at);
        if (isfinite(high) && (tries > 12 || !(low <= step && step <= high)))
            step = 0.5 * (low + high);
        at = step;
    }
    return DPCAL_SEARCH;
}

/* Ends on both sides of a root, moved outward until the bounds on delta prove them. */
static int dpcal_outward(const dpcal_question *ask, double at, double log_delta, double *lower, double *upper) {
    double low, high, value, slope, gap, margin = 2.0 * DPCAL_UNIT * at, below, above, ignored;
    dpcal_interval(ask, at, &low, &high, &value, &slope);
    *lower = *upper = at;
    if (!(high <= log_delta)) {
        gap = margin + (high - log_delta) / -slope * (1.0 + 1e-9);
        for (int tries = 0;; tries++, gap *= 2.0) {
            if (tries == 40)
                return DPCAL_WIDE;
            *upper = at + gap;
            dpcal_interval(ask, *upper, &below, &above, &value, &ignored);
            if (above <= log_delta)
                break;
        }
    }
    if (!(low >= log_delta)) {
        gap = margin + (log_delta - low) / -slope * (1.0 + 1e-9);
        for (int tries = 0;; tries++, gap *= 2.0) {
            *lower = at - gap;
            if (tries == 40 || *lower <= 0)
                return DPCAL_WIDE;
            dpcal_interval(ask, *lower, &below, &above, &value, &ignored);
            if (below >= log_delta)
                break;
        }
    }
    return *upper - *lower < DPCAL_TIGHT * *upper ? DPCAL_DONE : DPCAL_WIDE;
}

static int dpcal_search_epsilon(dpcal_question *ask, double log_delta, dpcal_answer *out) {
    double at, log_seen, most, lower, upper, value, slope;
    int status;
    dpcal_closed_bounds(ask, &log_seen, &most);
    if (log_seen <= log_delta) {
        out->sampling = 1;
        return DPCAL_DONE;
    }
    if ((status = dpcal_tilt_of(ask, log_delta)))
        return status;
    at = ask->mean - 1.0 / ask->c - 1.0 / (1.0 + ask->c);
    if (!(at > 0))
        return DPCAL_SEARCH;
    for (int tries = 0; tries < 3; tries++) {
        ask->epsilon = at;
        if (tries > 0 && (status = dpcal_tilt_of(ask, 0.0)))
            return status;
        if ((status = dpcal_build(ask, DPCAL_ERROR)) || (status = dpcal_root(ask, log_delta, &at)))
            return status;
        dpcal_interval(ask, at, &lower, &upper, &value, &slope);
        if (upper - lower < DPCAL_ACCEPTED)
            return dpcal_outward(ask, at, log_delta, &out->lower, &out->upper);
    }
    return DPCAL_WIDE;
}

static int dpcal_search_log_delta(dpcal_question *ask, double epsilon, double tolerance, double target, dpcal_answer *out) {
    double log_seen, most, value, slope, chernoff, zero;
    int status;
    dpcal_closed_bounds(ask, &log_seen, &most);
    ask->epsilon = epsilon;
    out->upper = 0.0;
    if (target < 0 && (log_seen <= target || most <= epsilon)) {
        out->lower = -INFINITY, out->upper = most <= epsilon ? -INFINITY : log_seen;
        return DPCAL_DONE;
    }
    if (epsilon >= most)
        return DPCAL_SEARCH;
    if ((status = dpcal_tilt_of(ask, 0.0)))
        return status;
    /* Below the mean, 1 - delta is what has digits. */
    zero = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        zero += ask->counts[i] * (ask->laws[i]->variance > 0 ? 0.5 * ask->laws[i]->variance : ask->laws[i]->mean);
    if (epsilon < zero)
        return DPCAL_SEARCH;
    chernoff = ask->log_mgf - ask->c * epsilon + dpcal_log_chernoff(ask->c);
    chernoff += DPCAL_UNIT * (ask->error + 8.0 * (fabs(ask->log_mgf) + ask->c * epsilon + log1p(ask->c) + 4.0));
    out->upper = fmin(chernoff, 0.0);
    out->lower = -INFINITY;
    if (target < 0 && out->upper <= target)
        return DPCAL_DONE;
    if ((status = dpcal_build(ask, tolerance)))
        return status;
    dpcal_interval(ask, epsilon, &out->lower, &out->upper, &value, &slope);
    out->upper = fmin(out->upper, log_seen);
    out->lower = fmin(out->lower, out->upper);
    return target < 0 || out->upper - out->lower < DPCAL_TIGHT ? DPCAL_DONE : DPCAL_WIDE;
}

static void dpcal_finish(dpcal_question *ask, dpcal_answer *out, int status) {
    out->status = status;
    out->wanted = ask->wanted;
    out->tilt = ask->c;
    out->nodes = ask->made ? ask->nodes : 0;
    for (ptrdiff_t i = 0; ask->made && i < ask->k; i++)
        out->points += (double)ask->parts[i].n;
    free(ask->parts);
}

/* Bounds on the epsilon of one direction at a delta: the smallest epsilon >= 0 with log delta(epsilon) <= log_delta.
   Any status but DPCAL_DONE means that the question is for another way. */
static void dpcal_epsilon(
    dpcal_law **laws, const double *counts, ptrdiff_t k, double log_delta, dpcal_work *work, dpcal_answer *out
) {
    dpcal_question ask;
    memset(out, 0, sizeof *out);
    const int status = dpcal_begin(&ask, laws, counts, k, work);
    dpcal_finish(&ask, out, status ? status : dpcal_search_epsilon(&ask, log_delta, out));
}

/* Bounds on log delta(epsilon) of one direction, epsilon >= 0. */
static void dpcal_log_delta(
    dpcal_law **laws, const double *counts, ptrdiff_t k, double epsilon, dpcal_work *work, dpcal_answer *out
) {
    dpcal_question ask;
    memset(out, 0, sizeof *out);
    const int status = dpcal_begin(&ask, laws, counts, k, work);
    dpcal_finish(&ask, out, status ? status : dpcal_search_log_delta(&ask, epsilon, DPCAL_ERROR, 0.0, out));
}

/* An upper bound on log delta(epsilon), by as much work as it takes to see whether it is at most log_delta < 0. */
static void dpcal_at_most(
    dpcal_law **laws, const double *counts, ptrdiff_t k, double epsilon, double log_delta, dpcal_work *work,
    dpcal_answer *out
) {
    dpcal_question ask;
    memset(out, 0, sizeof *out);
    const int status = dpcal_begin(&ask, laws, counts, k, work);
    dpcal_finish(&ask, out, status ? status : dpcal_search_log_delta(&ask, epsilon, DPCAL_CRUDE, log_delta, out));
}

#endif
