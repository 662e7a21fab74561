/* One contour for the law of a sum of independent losses, with every error bounded.

   delta(epsilon) is the integral over Re z = c > 0 of exp(-epsilon z) M(z) / (2 pi i z (z + 1)), M = prod M_i^T_i;
   the identity and the notation are those of accountants/inversion/contour.py. Nodes are c + i k h. Bounds are
   rounded outward. Errors, in units of 2^-52 where they are rounding:

   aliases of the sum        Chernoff bounds at other tilts, whose own rounding is added (dpcal_trials)
   nodes cut off             bounds on the decay of each characteristic function (dpcal_log_decay), and the poles
   points left out           below 1e-19 of the largest, also in the variance; later ones are in dpcal_node_errors
   rounding of psi           dpcal_node_errors, from sums at 12 nodes
   rotation to an epsilon    16 for each node: those of eight steps follow by products from a factor of libm
   phase, sum, prefactor     dpcal_interval */

#ifndef DPCAL_CONTOUR_H
#define DPCAL_CONTOUR_H

#include "line.h"

/* Nodes, distances of trial tilts in widths of the peak, and tolerances, as in accountants/inversion/contour.py. */
enum { DPCAL_NODES = 32768, DPCAL_GRID = 128 };
enum { DPCAL_SPREADS = 11, DPCAL_TRIALS = 2 * DPCAL_SPREADS + 2 };
static const double dpcal_spreads[DPCAL_SPREADS] = {0.05, 0.15, 0.35, 0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, 20.0};
/* Ratio of neighboring times between which the decay is bounded. */
static const double DPCAL_RATIO = 1.12;
/* With more losses than these, searches begin where those of a sample of so many end. */
enum { DPCAL_SAMPLE = 32 };
/* Most products of points and nodes for each law: other ways cost less than a longer contour. */
static const double DPCAL_WORK = 1e7;

typedef struct {
    dpcal_law **laws;
    const double *counts;
    ptrdiff_t k;
    double c, log_mgf, mean, variance, error, mean_error; /* of the sum, tilted by c */
    double epsilon, step, width, log_tolerance, remainder; /* the contour, made for this epsilon */
    double spread; /* aliases are negligible at epsilons so many deviations of the tilted law away */
    double sizes, first, rounding; /* sums of abs(v), t abs(v), and errors of v in units */
    double tilts[DPCAL_TRIALS], bounds[DPCAL_TRIALS], gaps[DPCAL_TRIALS]; /* of aliases' logarithms below bounds */
    double wanted; /* the tilt of points that end too early */
    int trials, nodes, made;
    int best[2];   /* of the distances, those below and above c that gave the step; 0 if none is known */
    double *vr, *vi; /* nodes of the integrand at `epsilon`, over its value at the real node, which counts half */
    dpcal_tilt *parts;
    dpcal_work *work;
} dpcal_question;

/* log sup_l (1 - exp(-l)) exp(-c l), l > 0. */
static double dpcal_log_chernoff(double c) {
    return c > 0 ? -c * log1p(1.0 / c) - log1p(c) : 0.0;
}

/* -- moments of the sum, and the search of a tilt */

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

/* The epsilon whose saddle is the tilt that the question holds. */
static double dpcal_epsilon_of_tilt(const dpcal_question *ask) {
    return ask->mean - 1.0 / ask->c - 1.0 / (1.0 + ask->c);
}

/* Value and derivative at a tilt of an increasing function: the saddle's equation at an epsilon, or, where
   log_delta < 0, that of the epsilon whose saddle-point estimate is log_delta. */
static int dpcal_equation(dpcal_question *ask, double c, double log_delta, double *value, double *slope) {
    const int status = dpcal_sum_at(ask, c);
    double curvature, at;
    if (status)
        return status;
    curvature = dpcal_curvature(ask);
    at = dpcal_epsilon_of_tilt(ask);
    if (log_delta < 0) {
        *value = log_delta - (ask->log_mgf - c * at - log(c) - log1p(c) - 0.5 * log(2.0 * DPCAL_PI * curvature));
        *slope = c * curvature;
    } else {
        *value = at - ask->epsilon;
        *slope = curvature;
    }
    return DPCAL_DONE;
}

/* A question about a few of many losses, which stand for all of them. */
typedef struct {
    dpcal_question ask;
    dpcal_law *laws[DPCAL_SAMPLE];
    double counts[DPCAL_SAMPLE];
} dpcal_sample;

static void dpcal_take_sample(const dpcal_question *ask, dpcal_sample *out) {
    double all = 0.0, taken = 0.0;
    out->ask = *ask;
    out->ask.laws = out->laws, out->ask.counts = out->counts, out->ask.k = DPCAL_SAMPLE;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        all += ask->counts[i];
    for (ptrdiff_t i = 0; i < DPCAL_SAMPLE; i++) {
        /* In the middle of equal parts, so that parameters that change steadily have their mean. */
        const ptrdiff_t j = (2 * i + 1) * ask->k / (2 * DPCAL_SAMPLE);
        out->laws[i] = ask->laws[j];
        taken += out->counts[i] = ask->counts[j];
    }
    for (ptrdiff_t i = 0; i < DPCAL_SAMPLE; i++)
        out->counts[i] *= all / taken;
}

/* A root by safeguarded Newton steps (saddle.py), within a twentieth of a width of the peak; sums stay at it. */
static int dpcal_tilt_of(dpcal_question *ask, double log_delta) {
    double low = 0.0, high = INFINITY, before = INFINITY, last = 0.0, variance = 0.0, gap = ask->epsilon;
    double c, root, width;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        variance += ask->counts[i] * ask->laws[i]->spread;
    root = sqrt(gap * gap + 4.0 * variance);
    c = log_delta < 0 ? sqrt(fmax(-2.0 * log_delta, 0.1) / variance) : (gap + root) / (2.0 * variance);
    for (ptrdiff_t i = 0; i < ask->k; i++)
        c = fmin(c, ask->laws[i]->serve ? ask->laws[i]->steep : 0.9 * ask->laws[i]->highest);
    if (ask->k > DPCAL_SAMPLE) {
        dpcal_sample few;
        dpcal_take_sample(ask, &few);
        if (dpcal_tilt_of(&few.ask, log_delta) == DPCAL_DONE)
            c = few.ask.c, variance = few.ask.variance;
    }
    c = fmin(fmax(c, 1e-9), 1e4);
    width = 1.0 / sqrt(variance + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)));
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        dpcal_law *law = ask->laws[i];
        if (law->serve && law->n == 0) {
            /* Adding, further tilts take few points, and the guess is often low. */
            const double reach = (law->add ? 1.5 : 1.0) * (1.1 * c + fmin(12.5 * width, c));
            const dpcal_law *like = i > 0 ? ask->laws[i - 1] : law;
            /* An angle that a law much like this one needed is not sought again; a larger q needs no wider one. */
            if (law->add == like->add && fabs(law->sigma - like->sigma) < 0.05 * law->sigma)
                law->angle = like->angle;
            const int status = law->serve(law, fmax(fmin(reach, 1e4), 1.0), ask->work);
            if (status)
                return status;
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
        if (fabs(value) <= 0.05 * sqrt(fmax(slope, 0.0)))
            return DPCAL_DONE;
        if (value > 0)
            high = c;
        else
            low = c;
        step = slope > 0 ? c - value / slope : NAN;
        slow = ((value > 0) == (last > 0) ? 4.0 : 1.2) * fabs(value) > before;
        before = fabs(value), last = value;
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

/* -- step and nodes */

static int dpcal_is_beyond(const dpcal_question *ask, double c) {
    for (ptrdiff_t i = 0; i < ask->k; i++)
        if (c > ask->laws[i]->highest)
            return 1;
    return 0;
}

/* Records a Chernoff bound at the moments that the question holds, rounded up, and returns it. */
static double dpcal_record(dpcal_question *ask) {
    const double a = ask->c;
    double bound = 0.0;
    if (a > 0) {
        bound = ask->log_mgf + dpcal_log_chernoff(a);
        bound += DPCAL_UNIT * (ask->error + 8.0 * (fabs(ask->log_mgf) + log1p(a) + 4.0));
    }
    ask->tilts[ask->trials] = a;
    ask->bounds[ask->trials++] = bound;
    return bound;
}

/* Raises `best` to the largest step whose aliases on one side of c are at most exp(least), among tilts at the distances
   of the grid: 2 pi d over a convex function g of d, whose tangent bounds what a neighbor gains. */
static int dpcal_side(dpcal_question *ask, double c, double side, double least, double *best) {
    int *known = &ask->best[side > 0], i = *known > 0 ? *known : 1, turn = -1, tried = 0;
    while (*known == 0 && i < DPCAL_SPREADS - 2 && dpcal_spreads[i] < sqrt(-2.0 * ask->log_tolerance))
        i++;
    for (; i >= 0 && i < DPCAL_SPREADS; i += turn) {
        const double d = dpcal_spreads[i] * ask->width, a = c + side * d;
        double g, rise, next, tangent;
        int status = DPCAL_REACH, further;
        /* Nearer tilts serve nearly as well as further points. */
        if (a > 0 && a != c && !(side > 0 && dpcal_spreads[i] > 8.0 && dpcal_is_beyond(ask, a)))
            status = dpcal_sum_at(ask, a);
        if (status == DPCAL_MEMORY)
            return status;
        if (status && turn > 0)
            break;
        if (status)
            continue;
        g = fmax(dpcal_record(ask) - a * ask->epsilon - least + ask->spread * dpcal_spreads[i], 1.0);
        rise = side * (ask->mean - ask->epsilon - log1p(1.0 / a)) + ask->spread / ask->width;
        if (2.0 * DPCAL_PI * fabs(a - c) / g > *best)
            *best = 2.0 * DPCAL_PI * fabs(a - c) / g, *known = i;
        further = rise * d > g ? -1 : 1;
        if (tried && further != turn)
            break;
        tried = 1, turn = further;
        next = i + turn >= 0 && i + turn < DPCAL_SPREADS ? dpcal_spreads[i + turn] * ask->width : 0.0;
        tangent = g + rise * (next - d);
        if (tangent > 0 && next * g < 1.02 * d * tangent)
            break;
    }
    return DPCAL_DONE;
}

/* Chernoff bounds at tilts on both sides of c, and the largest step whose aliases are negligible. */
static int dpcal_trials(dpcal_question *ask) {
    const dpcal_question at = *ask;
    const double c = ask->c;
    double left, right = 0.0, least;
    int status;
    ask->width = 1.0 / sqrt(dpcal_curvature(ask));
    least = ask->log_mgf - c * ask->epsilon - log(c) - log1p(c) - 0.5 * log(2.0 * DPCAL_PI) + log(ask->width);
    least += ask->log_tolerance - 0.5 * ask->spread * ask->spread;
    ask->trials = ask->best[0] = ask->best[1] = 0;
    if (ask->k > DPCAL_SAMPLE) {
        dpcal_sample few;
        dpcal_take_sample(ask, &few);
        if (dpcal_sum_at(&few.ask, c) == DPCAL_DONE && dpcal_trials(&few.ask) == DPCAL_DONE)
            memcpy(ask->best, few.ask.best, sizeof ask->best);
    }
    dpcal_record(ask);
    ask->c = 0.0;
    left = 2.0 * DPCAL_PI * c / fmax(dpcal_record(ask) - least + ask->spread * c / ask->width, 1.0);
    status = dpcal_side(ask, c, -1.0, least, &left);
    if (!status)
        status = dpcal_side(ask, c, 1.0, least, &right);
    ask->c = c, ask->log_mgf = at.log_mgf, ask->mean = at.mean, ask->variance = at.variance;
    ask->error = at.error, ask->mean_error = at.mean_error;
    ask->step = fmin(left, right);
    for (int i = 0; i < ask->trials; i++) {
        const double distance = fabs(ask->tilts[i] - c) * (2.0 * DPCAL_PI / ask->step);
        ask->gaps[i] = distance + log(-expm1(-distance));
    }
    return status ? status : ask->step > 0 && isfinite(ask->step) ? DPCAL_DONE : DPCAL_REACH;
}

/* Log of a bound on the sum of all aliases at an epsilon, and the least Chernoff bound on log delta there. */
static void dpcal_aliases(const dpcal_question *ask, double epsilon, double *aliases, double *chernoff) {
    double left = INFINITY, right = INFINITY, most;
    *chernoff = 0.0;
    for (int i = 0; i < ask->trials; i++) {
        const double a = ask->tilts[i], at = ask->bounds[i] - a * epsilon, value = at - ask->gaps[i];
        const double above = at + 4.0 * DPCAL_UNIT * (fabs(ask->bounds[i]) + a * epsilon);
        *chernoff = above < *chernoff ? above : *chernoff;
        if (a < ask->c)
            left = value < left ? value : left;
        else
            right = value < right ? value : right;
    }
    most = fmax(left, right);
    *aliases = most + log(exp(left - most) + exp(right - most)) + 1e-9;
}

/* Log of a bound on psi of the sum over [t, ratio t]. */
static double dpcal_decay_of_sum(const dpcal_question *ask, double t, double ratio) {
    double decay = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        decay += ask->parts[i].times * dpcal_log_decay(&ask->parts[i], t, ratio);
    return decay;
}

/* Size of the poles' factor 1 / ((1 + i t / c) (1 + i t / (1 + c))). */
static double dpcal_poles(double c, double t) {
    const double a = t / c, b = t / (1.0 + c);
    return 1.0 / sqrt((1.0 + a * a) * (1.0 + b * b));
}

/* Log of a bound on the sum of abs(v) over the nodes in [t, ratio t). */
static double dpcal_piece(const dpcal_question *ask, double t, double ratio) {
    return dpcal_decay_of_sum(ask, t, ratio) + log(dpcal_poles(ask->c, t) * (t * (ratio - 1.0) / ask->step + 1.0));
}

/* The fewest nodes with a negligible remainder.

   Beyond t the poles leave 1 / abs((1 + i t / c) (1 + i t / (1 + c))), at most 1 / (1 + (t / (1 + c))^2) and at most
   c (1 + c) / t^2: their sum over nodes is at most that of one node and an integral. */
static int dpcal_cut_off(dpcal_question *ask) {
    const double h = ask->step, c = ask->c, eight = pow(DPCAL_RATIO, 8.0);
    const double target = log(ask->width / sqrt(2.0 * DPCAL_PI)) - log(h / DPCAL_PI) + ask->log_tolerance;
    /* Not many fewer than of a normal law. */
    const double guess = 0.7 * sqrt(-2.0 * ask->log_tolerance / ask->variance) / h;
    double pieces[DPCAL_GRID], times[DPCAL_GRID], points = 0.0, most, t, end, rest, sum, part = 0.0;
    int last;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        points += (double)(ask->parts[i].n + 1);
    most = h * fmin(DPCAL_NODES, DPCAL_WORK * (double)ask->k / points);
    for (double begin = h * fmax(guess, 1.0);; begin = h) {
        while (begin * eight < most && dpcal_piece(ask, begin * eight, DPCAL_RATIO) > target)
            begin *= eight;
        for (last = 0, rest = INFINITY, t = begin;; last++, t *= DPCAL_RATIO) {
            if (last == DPCAL_GRID || t > most)
                return DPCAL_MANY;
            times[last] = t, pieces[last] = dpcal_piece(ask, t, DPCAL_RATIO);
            if (pieces[last] >= target - 3.0)
                continue;
            rest = log(dpcal_poles(c, t) + fmin(0.5 * DPCAL_PI * (1.0 + c), c * (1.0 + c) / t) / h);
            rest += dpcal_decay_of_sum(ask, t, INFINITY);
            if (rest < target - 3.0)
                break;
        }
        /* From the outside in: `rest` bounds all nodes from the last time on. */
        sum = exp(rest - target);
        while (last > 0 && sum + exp(pieces[last - 1] - target) <= 1.0)
            sum += exp(pieces[--last] - target);
        if (last > 0 || begin == h)
            break;
    }
    /* A part of the piece before, as long as it saves nodes. */
    end = t = times[last];
    for (double near = t / DPCAL_RATIO; last > 0 && end - near > h && end > 1.02 * near;) {
        const double middle = sqrt(near * end), ratio = t / middle * (1.0 + 4.0 * DPCAL_UNIT);
        const double more = exp(dpcal_piece(ask, middle, ratio) - target);
        if (sum + more <= 1.0)
            end = middle, part = more;
        else
            near = middle;
    }
    ask->remainder = target + log(sum + part) + 1e-9;
    ask->nodes = (int)(end * (1.0 + 1e-12) / h) + 2;
    return DPCAL_DONE;
}

/* Log psi of all laws at the nodes, the integrand v at `epsilon`, and the sums of its sizes and errors. */
static int dpcal_nodes(dpcal_question *ask) {
    const double h = ask->step, c = ask->c;
    const int nodes = ask->nodes;
    const ptrdiff_t padded = dpcal_padded(nodes);
    ptrdiff_t most = DPCAL_LANES;
    double offset = -ask->mean, sums[3], *errors, *lr, *li, *inverse, *table;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        most = ask->parts[i].n > most ? ask->parts[i].n : most;
    if (dpcal_grow(&ask->work->nodes, &ask->work->node_capacity, 6 * padded + 17 * most))
        return DPCAL_MEMORY;
    ask->vr = ask->work->nodes, ask->vi = ask->vr + padded;
    errors = ask->vi + padded, lr = errors + padded, li = lr + padded, inverse = li + padded, table = inverse + padded;
    memset(ask->vr, 0, (size_t)(6 * padded) * sizeof(double));
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        const dpcal_tilt *tilt = &ask->parts[i];
        offset += tilt->times * tilt->mean;
        if (tilt->n == 0) {
            for (int k = 1; k < nodes; k++) {
                const double size = 0.5 * tilt->variance * (k * h) * (k * h);
                ask->vr[k] -= tilt->times * size;
                errors[k] += 8.0 * tilt->times * size;
            }
            continue;
        }
        dpcal_log_psi(tilt, h, nodes, table, lr, li, inverse);
        dpcal_add_errors(tilt, h, nodes, lr, li, inverse, table, errors);
        for (int k = 1; k < nodes; k++) {
            ask->vr[k] += tilt->times * lr[k];
            ask->vi[k] += tilt->times * li[k];
        }
    }
    DPCAL_WIDEST(dpcal_integrand)(h, c, offset + (ask->mean - ask->epsilon), nodes, errors, ask->vr, ask->vi, sums);
    ask->vr[0] = 0.5, ask->vi[0] = 0.0;
    ask->sizes = 0.5 + sums[0], ask->first = sums[1];
    ask->rounding = 8.0 + sums[2] + (16.0 + (double)nodes / 16.0) * ask->sizes;
    return DPCAL_DONE;
}

/* A contour through `c`, at which the sums of moments are, for `epsilon`. */
static int dpcal_build(dpcal_question *ask, double tolerance) {
    ptrdiff_t room = 0, most = DPCAL_LANES;
    double *block;
    int status;
    ask->log_tolerance = log(tolerance);
    if ((status = dpcal_trials(ask)))
        return status;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        room += 10 * ask->laws[i]->n;
        most = ask->laws[i]->n > most ? ask->laws[i]->n : most;
    }
    if (dpcal_grow(&ask->work->block, &ask->work->capacity, room + most))
        return DPCAL_MEMORY;
    block = ask->work->block + most;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        ask->parts[i].times = ask->counts[i];
        status = dpcal_tilt_law(ask->laws[i], ask->c, ask->work->block, ask->work, &block, &ask->parts[i]);
        if (status)
            return status;
    }
    if ((status = dpcal_cut_off(ask)) || (status = dpcal_nodes(ask)))
        return status;
    ask->made = 1;
    return DPCAL_DONE;
}

/* -- values */

/* Bounds on log delta(epsilon), the value between them and its derivative. */
static void dpcal_interval(
    const dpcal_question *ask, double epsilon, double *lower, double *upper, double *value, double *slope
) {
    const double c = ask->c, terms = fabs(ask->log_mgf) + fabs(c * epsilon);
    const double scale = ask->log_mgf - c * epsilon - log(c) - log1p(c) + log(ask->step / DPCAL_PI);
    double sums[2], total, turned, aliases, chernoff, error;
    DPCAL_WIDEST(dpcal_rotated)(ask->vr, ask->vi, ask->nodes, ask->step, epsilon - ask->epsilon, sums);
    total = sums[0], turned = sums[1];
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

#endif
