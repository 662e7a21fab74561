/* A privacy loss as arrays of points: the law of the loss l = log dP/dQ under P, in one direction.

   On the real line the points l_j have masses P_j, and sum_j P_j exp(c l_j) is M(c), -1 <= c <= highest. On a
   line that is shifted into the complex plane, where Im l >= 0, sum_j P_j exp(z l_j) is M(z), Re z <= highest.
   Points of the sampled Gaussian are made here; those of any other loss are made by its owner (dpcal_take_points), who
   makes further ones where a tilt is wanted that they do not serve.
   Errors are counted in units of 2^-52; functions of libm are within 1 unit, those of vector.h
   within 2, and exp(x) - 1 - x within 3. */

#ifndef DPCAL_LAW_H
#define DPCAL_LAW_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vector.h"

enum {
    DPCAL_DONE = 0,
    DPCAL_WIDE,   /* the bounds are not close */
    DPCAL_REACH,  /* the tilt is beyond the points that can be afforded */
    DPCAL_MANY,   /* too many nodes */
    DPCAL_SEARCH, /* no saddle, or no root */
    DPCAL_MEMORY,
    DPCAL_STOPPED /* by the owner */
};

static const double DPCAL_UNIT = 2.220446049250313e-16, DPCAL_PI = 3.141592653589793;
/* Log of the error of a rule for integrals, relative to terms of second order in the loss. */
static const double DPCAL_LOG_TOLERANCE = -43.74911676688687;
/* Half-width of the points in standard deviations of the noise: beyond it a normal law has 2e-21. */
static const double DPCAL_RANGE = 9.5;
/* Most points: their sums stay in a processor's nearest memory. */
enum { DPCAL_POINTS = 5120, DPCAL_LANES = 8 };
/* Exponents of the largest exponential, and of the smallest mass, that are doubles of their own. */
static const double DPCAL_FAR = 600.0, DPCAL_NO_MASS = -700.0;
/* Least variance: that of a tilted law which is nearly one point may be below the range of a double. */
static const double DPCAL_LEAST = 1e-300;

/* -- memory that questions share: it grows, and is freed by its owner, who is asked now and then whether to stop */

typedef struct {
    ptrdiff_t capacity, node_capacity, line_capacity;
    double *block, *nodes, *lines;
    int (*stopped)(void *owner);
    void *owner;
    double spent; /* products of points and nodes since it was asked */
} dpcal_work;

static void dpcal_free_work(dpcal_work *work) {
    free(work->block);
    free(work->nodes);
    free(work->lines);
    memset(work, 0, sizeof *work);
}

/* Products after which the owner is asked: about 0.2 s. */
static const double DPCAL_PATIENCE = 3e8;

/* Counts work; returns whether to stop. */
static int dpcal_is_stopped(dpcal_work *work, double products) {
    work->spent += products;
    if (work->spent < DPCAL_PATIENCE || !work->stopped)
        return 0;
    work->spent = 0.0;
    return work->stopped(work->owner);
}

static int dpcal_grow(double **block, ptrdiff_t *capacity, ptrdiff_t size) {
    if (size <= *capacity)
        return DPCAL_DONE;
    free(*block);
    *block = (double *)malloc((size_t)size * sizeof(double));
    *capacity = *block ? size : 0;
    return *block ? DPCAL_DONE : DPCAL_MEMORY;
}

/* -- a law */

/* Values and logarithms of a density P on a shifted line: l = re + i im, log P = size + i phase. */
typedef struct {
    ptrdiff_t n;
    double *re, *im, *size, *phase;
    double *error, *rounding; /* errors in units, absolute: of a loss, and of log P */
} dpcal_line;

static dpcal_line dpcal_line_of(double *rows, ptrdiff_t n) {
    return (dpcal_line){n, rows, rows + n, rows + 2 * n, rows + 3 * n, rows + 4 * n, rows + 5 * n};
}

typedef struct {
    double highest;        /* largest tilt that the points serve */
    double mean, mean_error; /* E_P l, and its error in units */
    double gone, gone_error; /* mass of P that the points lack, and its error in units */
    double upper;          /* supremum of the loss, rounded up */
    double log_unaffected; /* log of a chance that the output does not depend on the record, rounded down */
    double variance;       /* > 0 for a normal loss of this variance, which has no points */
    double spread;         /* a guess of the variance at tilt 0 */
    double steep;          /* a guess of the tilt from which M is large */
    int owned;             /* whether the points are an owner's, who is asked for those that serve the tilt `wanted` */
    double wanted;
    double surplus;        /* log of the mass of Q; P has mass 1. The points on the real line are those of l + surplus */
    double merged_loss[2], merged_log[2], reach; /* points that stand for a mass around them, up to `reach` away */
    double latest;         /* last time at which the points have the law's transform */
    double normal, until;  /* abs(psi(t)) <= exp(-normal t^2 / 2) at every tilt, t <= until */
    ptrdiff_t n;           /* points on the real line, a multiple of 8; those that pad have mass 0 */
    double *loss, *mass, *log_mass;
    double *error, *slope; /* of P (exp(c l) - 1 - c l) in units, relative: error + c slope; error alone for l < 0 */
    int far;               /* whether some mass is 0 although its logarithm is finite */
    double largest, least; /* of the losses, and 0 */
    /* It lasts until another law's line is filled, as those of many laws would take more memory than all else. */
    dpcal_line line;
    /* Of a Poisson-sampled Gaussian, with (1 - q) / q and 1 / sigma^2. */
    double q, log_q, odds, sigma, inverse, angle, step, first;
    int add;
    double *block;
} dpcal_law;

/* The larger of two numbers, without a call. */
static inline double dpcal_larger(double a, double b) {
    return a > b ? a : b;
}

static inline ptrdiff_t dpcal_padded(ptrdiff_t n) {
    return n < 1 ? DPCAL_LANES : (n + DPCAL_LANES - 1) / DPCAL_LANES * DPCAL_LANES;
}

/* log(1 - exp(x)), rounded up; -infinity for x >= 0. */
static double dpcal_log_complement_up(double x) {
    double value;
    if (x >= 0)
        return -INFINITY;
    value = log(-expm1(x));
    return fmin(0.0, value + DPCAL_UNIT * (8 + 4 * fabs(value)));
}

/* -- the Poisson-sampled Gaussian: w(x) = 1 - q + q exp(u), u = (2 x - 1) / (2 sigma^2), is the density of
   (1 - q) N(0, sigma^2) + q N(1, sigma^2) relative to N(0, sigma^2). Removing a record has the mixture as P and
   loss log w; adding one has N(0, sigma^2) as P and loss -log w (accountants/losses/sampled_gaussian.py).
   Integrands phi(x) w(x)^p are analytic in abs(Im x) < pi sigma^2; steps and ends of the points are those of
   accountants/losses/lattice.py. */

/* Cosine and sine of the line x + i angle sigma^2, and sine of half of its angle. */
typedef struct {
    double angle, cosine, sine, half;
} dpcal_angle;

static inline dpcal_angle dpcal_angle_of(double angle) {
    return (dpcal_angle){angle, cos(angle), sin(angle), sin(0.5 * angle)};
}

typedef struct {
    double log_mass, mean, variance, fourth;
    double error, mean_error; /* absolute errors of log_mass and mean, in units */
    double total;             /* mass of the weights */
} dpcal_moments;

/* -- a tilted law */

/* Events to which a law is restricted, and nodes between two evaluations without the recurrence. */
enum { DPCAL_SHARES = 9, DPCAL_ANCHOR = 32 };
/* Points that are summed apart, so that few roundings add up; their tables fit in a processor's nearest memory. */
enum { DPCAL_CHUNK = 256 };
/* Chances of the events to which a law is restricted when its decay is bounded. */
static const double dpcal_shares[DPCAL_SHARES] = {0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.999, 0.9999, 1.0};

/* A tilted law along Re z = c. */
typedef struct {
    double times, log_mass, variance;
    double center, center_error; /* what is taken off the points, and how far it may be from a mean that is used, in units */
    int about_mean; /* whether the center is the mean, of which the transform knows; else it knows the mass alone */
    ptrdiff_t n;
    double *re, *im, *wr, *wi, *size, *error, *shift, *distance; /* points less the center, weights, errors in units */
    double restricted[DPCAL_SHARES][3];
    double left_re, left_im; /* what the weights leave of a mean of 0 */
    double latest, merged;   /* time up to which the points serve; error for each time of those merged, about another center */
    double normal, until;    /* those of the law */
} dpcal_tilt;

/* Loops for each width of registers. */
#define DPCAL_TARGET
#define DPCAL_NAME(name) name##_plain
#include "loops.h"
#ifdef DPCAL_AVX2
#define DPCAL_TARGET DPCAL_AVX2
#define DPCAL_NAME(name) name##_avx2
#include "loops.h"
#define DPCAL_TARGET DPCAL_AVX512
#define DPCAL_NAME(name) name##_avx512f
#include "loops.h"
#endif

/* -- sums over the points */

/* The sums of dpcal_moment_sums at a tilt c, also where exponentials or masses are no doubles; 0 where terms are above
   exp(600). Errors are error + growth slope. */
static int dpcal_sums_at(const dpcal_law *law, double c, double growth, double *weights, double *sums) {
    DPCAL_WIDEST(dpcal_moment_sums)(law, c, growth, weights, sums);
    if (!law->far && c * law->largest < DPCAL_FAR && c * law->least < DPCAL_FAR)
        return 1;
    for (ptrdiff_t j = 0; j < law->n; j++) {
        const double l = law->loss[j], size = law->log_mass[j] + c * l;
        double weight, units;
        if ((law->mass[j] > 0.0 && c * l < DPCAL_FAR) || size < DPCAL_NO_MASS)
            continue;
        if (size > DPCAL_FAR)
            return 0;
        units = law->error[j] + fabs(growth) * law->slope[j] + 0.6 * fabs(law->log_mass[j]) + 0.5 * fabs(size);
        /* Beside exp(c l) the terms of first order are nothing, or the mass is below 1e-304. */
        weights[j] = weight = exp(size);
        sums[0] += weight;
        sums[1] += weight * l;
        sums[2] += weight;
        sums[3] += weight * units;
        sums[4] += weight * fabs(l) * units;
    }
    return 1;
}

/* Fills the line of a sampled Gaussian at an angle. */
static int dpcal_fill_line(dpcal_law *law, double angle, dpcal_work *work) {
    if (dpcal_grow(&work->lines, &work->line_capacity, 6 * law->n))
        return DPCAL_MEMORY;
    law->line = dpcal_line_of(work->lines, law->n);
    DPCAL_WIDEST(dpcal_line_points)(law, angle);
    return DPCAL_DONE;
}

/* Whether exp(c l), c = highest, grows little from the real line to twice the angle when adding: sums of absolute values, without
   the density's own growth, of which the error of the rule knows. `weights` holds n numbers. */
static int dpcal_grows_little(dpcal_law *law, double *weights, dpcal_work *work) {
    const double *loss = law->block, *log_mass = law->block + 2 * law->n;
    double on_line[3], on_edge[3], peak = -INFINITY;
    for (ptrdiff_t j = 0; j < law->n; j++)
        peak = fmax(peak, log_mass[j] + law->highest * loss[j]);
    DPCAL_WIDEST(dpcal_scaled_sums)(loss, log_mass, law->n, law->highest, peak, weights, on_line);
    dpcal_fill_line(law, 2.0 * law->angle, work);
    DPCAL_WIDEST(dpcal_scaled_sums)(law->line.re, log_mass, law->n, law->highest, peak, weights, on_edge);
    return on_edge[2] < 8.0 * on_line[2];
}

/* Points of the lattice with steps law->step; the rule's error bounds the step by the angle. */
static int dpcal_place(dpcal_law *law, double low, double high, dpcal_work *work) {
    const double shift = law->angle * law->sigma, growth = 2.0 * shift * shift;
    ptrdiff_t n;
    int power;
    law->step = 2.0 * DPCAL_PI * shift * law->sigma / (4.0 - DPCAL_LOG_TOLERANCE + growth);
    /* Multiples of a step of 40 digits are numbers. */
    law->step = floor(ldexp(frexp(law->step, &power), 40));
    law->step = ldexp(law->step, power - 40);
    if (!((high - low) / law->step <= DPCAL_POINTS - 10))
        return DPCAL_REACH;
    law->first = floor(low / law->step);
    law->n = n = dpcal_padded((ptrdiff_t)(ceil(high / law->step) - law->first) + 1);
    free(law->block);
    law->block = (double *)malloc((size_t)(5 * n) * sizeof(double));
    if (law->block == NULL || dpcal_fill_line(law, 0.0, work))
        return DPCAL_MEMORY;
    for (ptrdiff_t j = 0; j < n; j++) {
        const double size = fabs(law->line.re[j]), log_mass = law->line.size[j], moved = law->line.error[j];
        double *row = law->block + j;
        row[0] = law->line.re[j], row[n] = log_mass > DPCAL_NO_MASS ? exp(log_mass) : 0.0, row[2 * n] = log_mass;
        /* Of log P, the mass, exp(c l) - 1 - c l, whose argument is a product, and the terms. */
        row[3 * n] = 6.0 + law->line.rounding[j] + (size > 0.0 ? 2.0 * moved / size : 0.0);
        row[4 * n] = moved + 0.5 * size;
    }
    return DPCAL_DONE;
}

/* Takes points: rows of loss, mass, log mass, error and slope, n a multiple of 8. Of P and Q the masses `gone` may lie beyond
   them, known to `units`: P (exp(-l) - 1) then adds up to what P lacks less what Q lacks, and the mean is the sum of
   P (exp(-l) - 1 + l), whose terms have one sign, less that. `weights` holds n numbers. */
static int dpcal_take_points(
    dpcal_law *law, ptrdiff_t n, double *rows, const double *gone, double units, double *weights
) {
    double sums[5], second = 0.0;
    law->n = n;
    law->loss = rows, law->mass = rows + n, law->log_mass = rows + 2 * n;
    law->error = rows + 3 * n, law->slope = rows + 4 * n;
    law->largest = law->least = 0.0, law->far = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        law->largest = dpcal_larger(law->largest, law->loss[j]);
        law->least = law->loss[j] < law->least ? law->loss[j] : law->least;
        law->far |= law->mass[j] == 0.0;
        second += law->mass[j] * law->loss[j] * law->loss[j];
    }
    if (!dpcal_sums_at(law, -1.0, 1.0, weights, sums) || !(sums[0] > 0.0))
        return DPCAL_REACH;
    law->gone = gone[0], law->gone_error = units * gone[0];
    law->mean = sums[0] - (gone[0] - gone[1]);
    law->mean_error = sums[3] + (10.0 + (double)n / 128.0) * sums[0] + (units + 4.0) * (gone[0] + gone[1]);
    law->spread = fmax(second - law->mean * law->mean, 1e-300);
    return DPCAL_DONE;
}

static int dpcal_fill_sampled(dpcal_law *law, double highest, dpcal_work *work) {
    const double q = law->q, sigma = law->sigma, before = law->angle;
    const double at_zero = sigma > 0.03 ? q * exp(-0.5 / (sigma * sigma)) : 0.0;
    const double lowest = law->add ? highest * fmin(1.0, at_zero / (1.0 - q + at_zero)) : 0.0;
    const double low = -DPCAL_RANGE * sigma - lowest;
    const double high = DPCAL_RANGE * sigma + 1.0 + (law->add ? 0.0 : highest);
    const double gone[2] = {0.0, 0.0};
    int status = DPCAL_DONE;
    /* An angle that was too wide for fewer tilts is too wide for more. */
    law->angle = fmin(before > 0 ? before : 1.5, 1.5 / sigma);
    law->highest = highest;
    /* Where exp(c l) grows on the shifted lines, they are moved nearer. */
    for (int tries = 0; tries < 60; tries++, law->angle /= sqrt(2.0)) {
        status = dpcal_place(law, low, high, work);
        if (!status)
            status = dpcal_grow(&work->block, &work->capacity, law->n);
        if (status || !law->add || dpcal_grows_little(law, work->block, work))
            break;
    }
    if (!status)
        status = dpcal_take_points(law, law->n, law->block, gone, 0.0, work->block);
    if (status)
        law->highest = 0.0;
    return status;
}

static void dpcal_sampled_gaussian(dpcal_law *law, double q, double sigma, int add) {
    memset(law, 0, sizeof *law);
    law->q = q, law->log_q = log(q), law->odds = (1.0 - q) / q;
    law->sigma = sigma, law->inverse = 1.0 / (sigma * sigma);
    law->add = add;
    law->log_unaffected = log1p(-q);
    law->upper = add ? -log1p(-q) * (1 + 4 * DPCAL_UNIT) : INFINITY;
    law->spread = q * q * expm1(fmin(1.0 / (sigma * sigma), 600.0));
    law->steep = add ? INFINITY : 1.0 - 2.0 * sigma * sigma * log(q);
}

static void dpcal_gaussian(dpcal_law *law, double variance) {
    memset(law, 0, sizeof *law);
    law->variance = law->spread = variance;
    law->upper = law->highest = law->steep = INFINITY;
    law->log_unaffected = -INFINITY;
}

/* -- moments */

/* The same where exponentials overflow: weights are scaled by the largest, and M is the sum that it is. */
static void dpcal_scaled_moments(const dpcal_law *law, double c, double *weights, dpcal_moments *out) {
    double sums[3], largest = -INFINITY, error = 0.0, mean_error = 0.0;
    for (ptrdiff_t j = 0; j < law->n; j++)
        largest = fmax(largest, law->log_mass[j] + c * law->loss[j]);
    DPCAL_WIDEST(dpcal_scaled_sums)(law->loss, law->log_mass, law->n, c, largest, weights, sums);
    out->log_mass = largest + log(sums[2]);
    out->mean = sums[1] / sums[2];
    out->total = sums[2];
    for (ptrdiff_t j = 0; j < law->n; j++) {
        const double of_tilt = fabs(c) * (law->slope[j] + fabs(law->loss[j]));
        const double units = law->error[j] + of_tilt + 2.5 * fabs(law->log_mass[j]);
        error += weights[j] * units;
        mean_error += weights[j] * fabs(law->loss[j] - out->mean) * units;
    }
    out->error = error / sums[2] + (double)law->n / 16.0 + 4 * fabs(largest);
    out->mean_error = (mean_error + (double)law->n / 16.0 * fabs(sums[1])) / sums[2] + 4 * fabs(out->mean);
}

/* log M(c), mean and variance of the tilt at c, -1 < c <= highest, and the weights P exp(c l).

   M(c) - 1 = c E l + E (exp(c l) - 1 - c l), less the mass that is gone, and all other terms are positive for c > 0; where
   M(c) is small, it is a sum. The points are those of l + surplus. */
static int dpcal_moments_at(const dpcal_law *law, double c, double *weights, dpcal_moments *out) {
    double sums[5], central[2], grown = NAN, adding = 10.0 + (double)law->n / 128.0;
    if (law->variance > 0) {
        const double v = law->variance;
        *out = (dpcal_moments){0.5 * v * (c * c + c), v * (c + 0.5), v, 3.0 * v * v, 0, 0, 1};
        out->error = 4 * fabs(out->log_mass);
        out->mean_error = 4 * fabs(out->mean);
        return DPCAL_DONE;
    }
    if (c > law->highest)
        return DPCAL_REACH;
    if (dpcal_sums_at(law, c, fabs(c), weights, sums))
        grown = c * law->mean + sums[0] - law->gone;
    if (grown > -0.5) {
        out->log_mass = log1p(grown);
        out->mean = (law->mean + sums[1]) / (1.0 + grown);
        out->total = sums[2];
        out->error = fabs(c) * (law->mean_error + 2 * fabs(law->mean)) + sums[3] + adding * sums[0];
        out->error = (out->error + law->gone_error + 2 * law->gone) / (1.0 + grown);
        out->mean_error = (law->mean_error + sums[4] + adding * fabs(sums[1])) / (1.0 + grown);
        out->mean_error += fabs(out->mean) * (out->error + 4);
        out->error += 4 * fabs(out->log_mass);
    } else {
        dpcal_scaled_moments(law, c, weights, out);
    }
    DPCAL_WIDEST(dpcal_central_sums)(law->loss, weights, law->n, out->mean, central);
    out->variance = dpcal_larger(central[0] / out->total, DPCAL_LEAST), out->fourth = central[1] / out->total;
    if (law->surplus != 0.0) {
        out->log_mass -= c * law->surplus;
        out->mean -= law->surplus;
        out->error += 4.0 * (fabs(out->log_mass) + fabs(c * law->surplus));
        out->mean_error += 4.0 * (fabs(out->mean) + fabs(law->surplus));
    }
    return isfinite(out->log_mass) ? DPCAL_DONE : DPCAL_REACH;
}

/* Moments of a law at a tilt, whose points are extended where they end before it. */
static int dpcal_law_at(dpcal_law *law, double c, dpcal_work *work, dpcal_moments *out) {
    int status = DPCAL_DONE;
    if (c > law->highest && law->owned) {
        law->wanted = dpcal_larger(law->wanted, c);
        return DPCAL_REACH;
    }
    if (c > law->highest)
        status = dpcal_fill_sampled(law, fmax(1.1 * c, 2.0 * law->highest), work);
    if (!status)
        status = dpcal_grow(&work->block, &work->capacity, law->n);
    return status ? status : dpcal_moments_at(law, c, work->block, out);
}

/* -- one loss along a vertical line */

/* Probability, variance and fourth central moment of a tilted law on events x <= x_j, rounded outward. */
static void dpcal_restrict(const dpcal_law *law, const dpcal_moments *at, const double *weights, dpcal_tilt *tilt) {
    const double mean = at->mean + law->surplus;
    double mass = 0.0, first = 0.0, second = 0.0, third = 0.0, fourth = 0.0;
    int chosen = 0;
    memset(tilt->restricted, 0, sizeof tilt->restricted);
    for (ptrdiff_t j = 0; j < law->n && chosen < DPCAL_SHARES; j++) {
        const double d = law->loss[j] - mean, a = weights[j] * d, b = a * d, e = b * d;
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
                /* A rule for integrals is less exact up to x_j: a step h costs h^2 / 24 of a density's slope, about 0.3 %. */
                tilt->restricted[chosen][0] = mass / at->total * 0.99;
                tilt->restricted[chosen][1] = variance * 0.99;
                tilt->restricted[chosen][2] = high * 1.03;
            }
            chosen++;
        }
    }
}

/* Magnitudes of the weights on a line, and the span that leaves out at most 1e-18 of the largest at each end, also in the
   variance. */
static void dpcal_magnitudes(
    const dpcal_line *line, double c, const dpcal_moments *at, double *sizes, double *scaled, ptrdiff_t *ends
) {
    const double inverse = 1.0 / at->variance;
    double sums[3], least = 0.0, below = 0.0, above = 0.0;
    ptrdiff_t from = 0, to = line->n;
    DPCAL_WIDEST(dpcal_scaled_sums)(line->re, line->size, line->n, c, at->log_mass, sizes, sums);
    for (ptrdiff_t j = 0; j < line->n; j++) {
        const double x = line->re[j] - at->mean, y = line->im[j];
        scaled[j] = sizes[j] > 0.0 ? sizes[j] * (1.0 + (x * x + y * y) * inverse) : 0.0;
        least = dpcal_larger(least, 1e-18 * scaled[j]);
    }
    ends[0] = 0, ends[1] = line->n;
    /* Of a law that is nearly one point all are kept. */
    if (!isfinite(least))
        return;
    while (from < to && !((below += scaled[from]) > least))
        from++;
    while (to > from + 1 && !((above += scaled[to - 1]) > least))
        to--;
    ends[0] = from - from % DPCAL_LANES;
    ends[1] = dpcal_padded(to);
}

/* Points merged into one, a mass m up to r away from it: the time t up to which they change psi by m (r t)^2 < 1e-17 about a
   mean that is known, and what they change it by about another center, m r t. */
static void dpcal_set_merged(const dpcal_law *law, double c, double log_mass, dpcal_tilt *tilt) {
    double merged = 0.0;
    for (int j = 0; j < 2; j++)
        merged += law->reach > 0.0 ? exp(law->merged_log[j] + c * law->merged_loss[j] - log_mass) : 0.0;
    tilt->latest = fmin(law->owned ? law->latest : INFINITY, merged > 0.0 ? sqrt(1e-17 / merged) / law->reach : INFINITY);
    tilt->merged = merged > 0.0 ? merged * law->reach / DPCAL_UNIT : 0.0;
}

/* About the error of log psi at a time, in units, over the count. */
static double dpcal_about(const dpcal_tilt *tilt, double h, double t) {
    double sums[4];
    DPCAL_WIDEST(dpcal_rounding_sums)(tilt, h, t / h, sums);
    return sums[0] + 100.0 * sums[2] + 20.0 * sums[3] + t * tilt->center_error;
}

/* Takes points about their median in place of the mean, if their errors at a time c are smaller: most of the mass of few steps
   lies close to it, far from a mean that is not well known because of the rest. */
static void dpcal_center(const dpcal_line *line, ptrdiff_t from, double c, double h, const dpcal_moments *at, dpcal_tilt *tilt) {
    const dpcal_tilt mean = *tilt;
    const double about = dpcal_about(tilt, h, c);
    double half = 0.0;
    ptrdiff_t j = 0;
    for (ptrdiff_t i = 0; i < tilt->n; i++)
        half += 0.5 * tilt->size[i];
    while (j < tilt->n - 1 && (half -= tilt->size[j]) > 0.0)
        j++;
    tilt->center = line->re[from + j], tilt->center_error = 0.0, tilt->about_mean = 0;
    DPCAL_WIDEST(dpcal_tilted_points)(line, from, c, at, tilt);
    tilt->left_re = tilt->left_im = 0.0;
    if (!(dpcal_about(tilt, h, c) < about)) {
        *tilt = mean;
        DPCAL_WIDEST(dpcal_tilted_points)(line, from, c, at, tilt);
    }
}

/* Weights, errors and bounds on the decay of one law along Re z = c, in numbers from `room` on. The center is chosen for
   steps of time h > 0. */
static int dpcal_tilt_law(dpcal_law *law, double c, double h, dpcal_work *work, double **room, dpcal_tilt *tilt) {
    dpcal_moments at;
    ptrdiff_t ends[2];
    int status = dpcal_moments_at(law, c, work->block, &at);
    if (status)
        return status;
    tilt->log_mass = at.log_mass;
    tilt->center = at.mean, tilt->center_error = at.mean_error, tilt->about_mean = 1;
    tilt->variance = at.variance;
    tilt->n = 0;
    tilt->latest = INFINITY;
    if (law->variance > 0)
        return DPCAL_DONE;
    dpcal_restrict(law, &at, work->block, tilt);
    if (!law->owned && (status = dpcal_fill_line(law, law->angle, work)))
        return status;
    const ptrdiff_t n = law->line.n;
    tilt->re = *room, tilt->im = tilt->re + n, tilt->wr = tilt->im + n, tilt->wi = tilt->wr + n;
    tilt->error = tilt->wi + n, tilt->shift = tilt->error + n, tilt->distance = tilt->shift + n;
    tilt->size = tilt->distance + n;
    *room = tilt->size + n;
    dpcal_magnitudes(&law->line, c, &at, tilt->size, tilt->distance, ends);
    if ((tilt->n = ends[1] - ends[0]) == 0)
        return DPCAL_SEARCH;
    tilt->size += ends[0];
    DPCAL_WIDEST(dpcal_tilted_points)(&law->line, ends[0], c, &at, tilt);
    dpcal_set_merged(law, c, at.log_mass, tilt);
    if (h > 0.0)
        dpcal_center(&law->line, ends[0], c, h, &at, tilt);
    tilt->normal = law->normal, tilt->until = law->until;
    return DPCAL_DONE;
}

/* An upper bound on log abs(psi) over [t, ratio t]: the smallest of those by moments of restricted laws, by the law's own
   normal bound, and, where the moments say nothing, by absolute sums. */
static double dpcal_log_decay(const dpcal_tilt *tilt, double t, double ratio) {
    double drop = 0.0, bound, sum;
    if (tilt->n == 0)
        return -0.5 * tilt->variance * t * t * (1.0 - 1e-12);
    for (int i = 0; i < DPCAL_SHARES; i++) {
        const double *r = tilt->restricted[i], total = r[2] + 3.0 * r[1] * r[1];
        if (r[0] > 0 && ratio * t * ratio * t * total <= 6.0 * r[1])
            drop = dpcal_larger(drop, r[0] * r[0] * t * t * (r[1] - t * t * total / 12.0));
    }
    bound = 0.5 * log1p(-drop * (1.0 - 1e-9));
    if (ratio * t <= tilt->until)
        bound = fmin(bound, 1e-17 - 0.5 * tilt->normal * t * t * (1.0 - 1e-12));
    if (drop == 0.0) {
        DPCAL_WIDEST(dpcal_decayed_sum)(tilt->size, tilt->im, tilt->n, t, &sum);
        bound = fmin(bound, log(sum * (1.0 + 1e-12)));
    }
    return fmin(bound, 0.0);
}

/* -- nodes */

/* Log psi(k h) and 1 / abs(psi) of one law: a recurrence over the nodes, which begins anew every few. */
static void dpcal_log_psi(
    const dpcal_tilt *tilt, double h, int nodes, double *table, double *lr, double *li, double *inverse
) {
    double left[4] = {0};
    memset(lr, 0, (size_t)nodes * sizeof(double));
    memset(li, 0, (size_t)nodes * sizeof(double));
    for (ptrdiff_t from = 0; from < tilt->n; from += DPCAL_CHUNK) {
        dpcal_tilt part = *tilt;
        part.n = tilt->n - from < DPCAL_CHUNK ? tilt->n - from : DPCAL_CHUNK;
        part.re += from, part.im += from, part.wr += from, part.wi += from, part.distance += from;
        DPCAL_WIDEST(dpcal_recurrence)(&part, h, table, left);
        for (int start = 0; start < nodes; start += DPCAL_ANCHOR) {
            const int stop = start + DPCAL_ANCHOR < nodes ? start + DPCAL_ANCHOR : nodes;
            const unsigned before = dpcal_flush(); /* masses far out, and what decays */
            DPCAL_WIDEST(dpcal_anew)(&part, h, start * h, table);
            DPCAL_WIDEST(dpcal_second_order_nodes)(table, part.n, start, stop, lr, li);
            dpcal_flush_as(before);
        }
    }
    DPCAL_WIDEST(dpcal_log_psi_of)(tilt, h, nodes, left, lr, li, inverse);
}

/* Adds the errors of a law's log psi at the nodes, in units, times its count, from sums at the last node below each power of
   2, or of 5 / 4 on a long contour: they rise with t. Points and weights have their own errors, a direct evaluation has
   4 (2 + s), each step of the recurrence adds 5 (dpcal_rounding_sums), and the sum over points `adding`. Of each point up to
   2^30 numbers below 2^-1022 count as 0 (dpcal_flush), as a multiple of one may: less than 1e-280 units, taken as 1e-240. */
static void dpcal_add_errors(
    const dpcal_tilt *tilt, double h, int nodes, const double *lr, const double *li, const double *inverse,
    double *errors
) {
    const double n = (double)tilt->n;
    const double adding = n <= DPCAL_CHUNK ? n / 16.0 : DPCAL_CHUNK / 16.0 + n / (2.0 * DPCAL_CHUNK) + 1.0;
    for (int first = 1, stop; first < nodes; first = stop) {
        double sums[4];
        stop = nodes > 1024 ? first + first / 4 + 1 : 2 * first;
        stop = stop < nodes ? stop : nodes;
        DPCAL_WIDEST(dpcal_rounding_sums)(tilt, h, stop - 1.0, sums);
        for (int k = first; k < stop; k++) {
            const double away = sqrt(lr[k] * lr[k] + li[k] * li[k]), own = 10.0 + adding + 5.0 * (k % DPCAL_ANCHOR);
            const double units = sums[0] + sums[1] * (away < 2.0 ? away : 2.0) + own * sums[2] + (4.0 + adding) * sums[3];
            errors[k] += tilt->times * (units + n * 1e-240) * inverse[k];
        }
    }
}

#endif
