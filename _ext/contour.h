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

#include "law.h"

/* Nodes, distances of trial tilts in widths of the peak, and tolerances, as in accountants/inversion/contour.py. */
enum { DPCAL_NODES = 32768, DPCAL_GRID = 128 };
enum { DPCAL_SPREADS = 11, DPCAL_TRIALS = 2 * DPCAL_SPREADS + 2 };
static const double dpcal_spreads[DPCAL_SPREADS] = {0.05, 0.15, 0.35, 0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, 20.0};
/* Ratio of neighboring times between which the decay is bounded. */
static const double DPCAL_RATIO = 1.12;
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
    int trials, nodes;
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

/* A root by safeguarded Newton steps (saddle.py), within a twentieth of a width of the peak; sums stay at it. */
static int dpcal_tilt_of(dpcal_question *ask, double log_delta) {
    double low = 0.0, high = INFINITY, before = INFINITY, last = 0.0, variance = 0.0, gap = ask->epsilon;
    double c, root, width;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        variance += ask->counts[i] * ask->laws[i]->spread;
    root = sqrt(gap * gap + 4.0 * variance);
    c = log_delta < 0 ? sqrt(fmax(-2.0 * log_delta, 0.1) / variance) : (gap + root) / (2.0 * variance);
    for (ptrdiff_t i = 0; i < ask->k; i++)
        c = fmin(c, ask->laws[i]->steep);
    c = fmin(fmax(c, 1e-9), 1e4);
    width = 1.0 / sqrt(variance + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)));
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        dpcal_law *law = ask->laws[i];
        if (!(law->variance > 0) && law->n == 0) {
            /* Adding, further tilts take few points, and the guess is often low. */
            const double reach = (law->add ? 1.5 : 1.0) * (1.1 * c + fmin(12.5 * width, c));
            const dpcal_law *like = i > 0 ? ask->laws[i - 1] : law;
            /* An angle that a law much like this one needed is not sought again; a larger q needs no wider one. */
            if (law->add == like->add && fabs(law->sigma - like->sigma) < 0.05 * law->sigma)
                law->angle = like->angle;
            const int status = dpcal_fill_sampled(law, fmax(fmin(reach, 1e4), 1.0), ask->work);
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
    int i = 1, turn = -1, tried = 0;
    while (i < DPCAL_SPREADS - 2 && dpcal_spreads[i] < sqrt(-2.0 * ask->log_tolerance))
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
        *best = fmax(*best, 2.0 * DPCAL_PI * fabs(a - c) / g);
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
    ask->trials = 0;
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
    if (dpcal_grow(&ask->work->nodes, &ask->work->node_capacity, 6 * padded + 8 * most))
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
        dpcal_add_errors(tilt, h, nodes, lr, li, inverse, errors);
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
    status = dpcal_cut_off(ask);
    return status ? status : dpcal_nodes(ask);
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

/* -- questions */

/* Error of a contour over its value: about ten units; and of one that is asked whether delta is at most a number. */
static const double DPCAL_ERROR = 2e-15, DPCAL_CRUDE = 1e-3;
/* Widths that are accepted: eight digits of epsilon, seven where another contour would be the same and the width is all
   rounding, and six of delta. */
static const double DPCAL_ACCEPTED = 1e-8, DPCAL_LAST = 2e-8, DPCAL_TIGHT = 1e-6;

typedef struct {
    double lower, upper;
    int status, sampling; /* sampling: the chance that a record is seen is all that was needed */
} dpcal_answer;

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
        gap = margin + (high - log_delta) / -slope * 1.001;
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
        gap = margin + (log_delta - low) / -slope * 1.001;
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
    int status = DPCAL_DONE;
    dpcal_closed_bounds(ask, &log_seen, &most);
    if (log_seen <= log_delta) {
        out->sampling = 1;
        return DPCAL_DONE;
    }
    if ((status = dpcal_tilt_of(ask, log_delta)))
        return status;
    at = dpcal_epsilon_of_tilt(ask);
    if (!(at > 0))
        return DPCAL_SEARCH;
    for (int tries = 0; tries < 3; tries++) {
        ask->epsilon = at;
        if (tries > 0 && (status = dpcal_tilt_of(ask, 0.0)))
            return status;
        if ((status = dpcal_build(ask, DPCAL_ERROR)))
            return status;
        if ((status = dpcal_root(ask, log_delta, &at))) {
            /* Where losses are rare and large, the saddle-point estimate may be far above the root. */
            at = 0.5 * ask->epsilon;
            continue;
        }
        dpcal_interval(ask, at, &lower, &upper, &value, &slope);
        const int last = fabs(at - ask->epsilon) < 1e-3 * at; /* another contour would be the same */
        if (upper - lower < fmax(0.5, -slope * at) * (last ? DPCAL_LAST : DPCAL_ACCEPTED))
            return dpcal_outward(ask, at, log_delta, &out->lower, &out->upper);
        if (last)
            break;
    }
    return status ? status : DPCAL_WIDE;
}

static int dpcal_search_log_delta(
    dpcal_question *ask, double epsilon, double tolerance, double target, dpcal_answer *out
) {
    double log_seen, most, value, slope, chernoff;
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
    /* Near delta = 1 other ways keep the digits of 1 - delta. */
    return target < 0 || (out->upper - out->lower < DPCAL_TIGHT && out->upper < -0.5) ? DPCAL_DONE : DPCAL_WIDE;
}

static void dpcal_finish(dpcal_question *ask, dpcal_answer *out, int status) {
    out->status = status;
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

/* -- curves: one contour for the questions from its center on both sides, as far as it keeps its digits */

/* Widths of log delta that are accepted: ten digits, or twice the width at the contour's own epsilon. */
static const double DPCAL_CURVE = 1e-10, DPCAL_LOOSER = 2.0;
/* Distance of a contour's epsilon from the first that it serves, in deviations: further off it keeps fewer digits. It is
   halved where the first is not served. */
static const double DPCAL_AHEAD = 3.6;

/* A contour whose epsilon lies beyond that of the tilt that the question holds, but not beyond `last`. Returns in
   `accepted` the widths of log delta that it may have. */
static int dpcal_build_ahead(dpcal_question *ask, double ahead, double last, double *accepted) {
    const double at = dpcal_epsilon_of_tilt(ask);
    double lower, upper, value, slope;
    int status;
    ask->epsilon = fmax(at, fmin(last, at + ahead * sqrt(ask->variance)));
    if (!(ask->epsilon >= 0))
        return DPCAL_SEARCH;
    if ((status = dpcal_tilt_of(ask, 0.0)))
        return status;
    ask->spread = ahead;
    status = dpcal_build(ask, DPCAL_ERROR);
    ask->spread = 0.0;
    if (status)
        return status;
    dpcal_interval(ask, ask->epsilon, &lower, &upper, &value, &slope);
    *accepted = fmax(DPCAL_CURVE, DPCAL_LOOSER * (upper - lower));
    return isfinite(*accepted) ? DPCAL_DONE : DPCAL_WIDE;
}

/* What follows question i, which a contour of its own answers or not: the next one; past one that fails `skip` more, twice
   as many each time, since their neighbors would fail, too. */
static ptrdiff_t dpcal_after_one(
    ptrdiff_t i, int status, const dpcal_answer *one, double *lower, double *upper, ptrdiff_t *skip, double *ahead
) {
    const ptrdiff_t next = status ? i + *skip : i + 1;
    if (!status)
        lower[i] = one->lower, upper[i] = one->upper;
    *skip = status ? 2 * *skip : 1;
    *ahead *= 0.5;
    return next;
}

/* Bounds on log delta at rising epsilons, which a contour of its own may not reach: then `lower` is NaN. */
static void dpcal_log_deltas(
    dpcal_law **laws, const double *counts, ptrdiff_t k, const double *epsilons, ptrdiff_t n, dpcal_work *work,
    double *lower, double *upper, dpcal_answer *out
) {
    dpcal_question ask;
    double log_seen, most, value, slope, accepted, ahead = DPCAL_AHEAD;
    ptrdiff_t skip = 1;
    memset(out, 0, sizeof *out);
    for (ptrdiff_t i = 0; i < n; i++)
        lower[i] = NAN, upper[i] = 0.0;
    out->status = dpcal_begin(&ask, laws, counts, k, work);
    if (!out->status)
        dpcal_closed_bounds(&ask, &log_seen, &most);
    for (ptrdiff_t i = 0; !out->status && i < n && epsilons[i] < most;) {
        ptrdiff_t j = i;
        int status;
        ask.epsilon = epsilons[i];
        status = dpcal_tilt_of(&ask, 0.0);
        if (!status)
            status = dpcal_build_ahead(&ask, ahead, epsilons[n - 1], &accepted);
        for (; !status && j < n && epsilons[j] < most; j++) {
            double low, high;
            dpcal_interval(&ask, epsilons[j], &low, &high, &value, &slope);
            if (!(high - low <= accepted && high < -0.5))
                break;
            lower[j] = fmin(low, log_seen), upper[j] = fmin(high, log_seen);
        }
        if (j == i) {
            dpcal_answer one = {0};
            status = status == DPCAL_MEMORY ? status : dpcal_search_log_delta(&ask, epsilons[i], DPCAL_ERROR, 0.0, &one);
            j = dpcal_after_one(i, status, &one, lower, upper, &skip, &ahead);
        }
        out->status = status == DPCAL_MEMORY ? status : DPCAL_DONE;
        i = j;
    }
    dpcal_finish(&ask, out, out->status);
}

/* Bounds on epsilon at falling log deltas < 0, which a contour of its own may not reach: then `lower` is NaN. */
static void dpcal_epsilons(
    dpcal_law **laws, const double *counts, ptrdiff_t k, const double *log_deltas, ptrdiff_t n, dpcal_work *work,
    double *lower, double *upper, dpcal_answer *out
) {
    dpcal_question ask;
    double log_seen, most, last = INFINITY, accepted, ahead = DPCAL_AHEAD;
    ptrdiff_t skip = 1;
    memset(out, 0, sizeof *out);
    for (ptrdiff_t i = 0; i < n; i++)
        lower[i] = NAN, upper[i] = INFINITY;
    out->status = dpcal_begin(&ask, laws, counts, k, work);
    if (!out->status) {
        dpcal_closed_bounds(&ask, &log_seen, &most);
        if (n > 0 && dpcal_tilt_of(&ask, log_deltas[n - 1]) == DPCAL_DONE)
            last = dpcal_epsilon_of_tilt(&ask);
    }
    for (ptrdiff_t i = 0; !out->status && i < n;) {
        ptrdiff_t j = i;
        double at;
        int status;
        if (log_seen <= log_deltas[i]) {
            lower[i] = upper[i] = 0.0;
            i++;
            continue;
        }
        status = dpcal_tilt_of(&ask, log_deltas[i]);
        at = dpcal_epsilon_of_tilt(&ask);
        if (!status)
            status = at > 0 ? dpcal_build_ahead(&ask, ahead, last, &accepted) : DPCAL_SEARCH;
        for (; !status && j < n; j++) {
            double low, high, value, slope;
            if (dpcal_root(&ask, log_deltas[j], &at))
                break;
            dpcal_interval(&ask, at, &low, &high, &value, &slope);
            if (!(high - low <= accepted) || dpcal_outward(&ask, at, log_deltas[j], &lower[j], &upper[j])) {
                lower[j] = NAN, upper[j] = INFINITY;
                break;
            }
            at = j + 1 < n ? at + (log_deltas[j + 1] - log_deltas[j]) / slope : at;
        }
        if (j == i) {
            dpcal_answer one = {0};
            status = status == DPCAL_MEMORY ? status : dpcal_search_epsilon(&ask, log_deltas[i], &one);
            j = dpcal_after_one(i, status, &one, lower, upper, &skip, &ahead);
        }
        out->status = status == DPCAL_MEMORY ? status : DPCAL_DONE;
        i = j;
    }
    dpcal_finish(&ask, out, out->status);
}

/* -- both directions of a neighboring relation */

typedef struct {
    dpcal_law **laws;
    const double *counts;
    ptrdiff_t k;
} dpcal_direction;

/* Bounds on the worst of the directions' epsilons. The second is left out where a quick bound proves it smaller. */
static void dpcal_worst_epsilon(
    const dpcal_direction *directions, ptrdiff_t n, double log_delta, dpcal_work *work, dpcal_answer *out
) {
    dpcal_answer other;
    dpcal_epsilon(directions[0].laws, directions[0].counts, directions[0].k, log_delta, work, out);
    for (ptrdiff_t i = 1; i < n && out->status == DPCAL_DONE; i++) {
        const dpcal_direction *d = &directions[i];
        dpcal_at_most(d->laws, d->counts, d->k, out->upper, log_delta, work, &other);
        if (other.status == DPCAL_DONE && other.upper <= log_delta)
            continue;
        if (other.status == DPCAL_DONE)
            dpcal_epsilon(d->laws, d->counts, d->k, log_delta, work, &other);
        out->status = other.status;
        out->sampling = other.upper > out->upper ? other.sampling : out->sampling;
        out->upper = fmax(out->upper, other.upper);
        out->lower = fmax(out->lower, other.lower);
    }
}

/* Bounds on the worst of the directions' log deltas. */
static void dpcal_worst_log_delta(
    const dpcal_direction *directions, ptrdiff_t n, double epsilon, dpcal_work *work, dpcal_answer *out
) {
    dpcal_answer other;
    dpcal_log_delta(directions[0].laws, directions[0].counts, directions[0].k, epsilon, work, out);
    for (ptrdiff_t i = 1; i < n && out->status == DPCAL_DONE; i++) {
        const dpcal_direction *d = &directions[i];
        dpcal_log_delta(d->laws, d->counts, d->k, epsilon, work, &other);
        out->status = other.status;
        out->upper = fmax(out->upper, other.upper);
        out->lower = fmax(out->lower, other.lower);
    }
}

#endif
