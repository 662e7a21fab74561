/* One contour for the law of a sum of independent losses, with every error bounded.

   For a law mu with transform M(z) = integral exp(z l) dmu, M = prod M_i^T_i,

       delta(epsilon) = integral of (1 - exp(epsilon - l))_+ dmu
                      = 1 / (2 pi i) * integral over Re z = c of exp(-epsilon z) M(z) / (z (z + 1)) dz

   for c > 0. The trapezoid rule of step h on the line is exactly sum_j exp(2 pi c j / h) delta(epsilon + 2 pi j / h) (Poisson
   summation), so its error is a sum of aliases that Chernoff bounds at other tilts control. Nodes c + i k h are cut off
   where a proved bound on abs(M) makes the rest negligible.

   Where no cut-off is within reach, as for laws with atoms or jumps, a loss xi of law N(eta^2 / 2, eta^2) is added, which
   makes the integrand decay. Theorem: 0 <= delta_eta - delta <= R, where

       R(epsilon) = eta^2 exp(eta^2 / 8) / (2 pi) * integral of exp(-epsilon z) M(z) exp(eta^2 (z^2 + z) / 2) dt,

   z = c + i t. Proof: E exp(-xi) = 1, so that at x = l - epsilon the gain of E (1 - exp(-x - xi))_+ over (1 - exp(-x))_+ is
   the time value of an option. Its derivative in eta is exp(-x / 2 - eta^2 / 8) phi(x / eta) with phi the normal density;
   as phi(x / s) rises with s, the gain is at least 0 and at most k(x) = eta exp(-x / 2) phi(x / eta). The transform of k,
   integral of k(x) exp(-z x) dx, is eta^2 exp(eta^2 (z + 1/2)^2 / 2), and R = integral of k(l - epsilon) dmu. Its trapezoid
   sum over the same nodes has aliases >= 0, so it bounds R from above; beyond the last node t it leaves at most a share of
   its value at c: the integral of exp(-(eta s)^2 / 2) / h over s > t, times the largest abs(M) there over M(c). R is about
   c (1 + c) eta^2 times delta: of second order in eta, whatever the law.

   Bounds are rounded outward. Errors, in units of 2^-52 where they are rounding:

   aliases of the sum        Chernoff bounds at other tilts, whose own rounding is added (dpcal_trials)
   nodes cut off             bounds on the decay of each characteristic function (dpcal_log_decay), and the poles
   points left out           at most 1e-18 of the largest at each end, also in the variance: below the rounding of psi
   points merged             refused at times at which they count (latest)
   smoothing                 R, with the rounding of its terms (dpcal_interval)
   rounding of psi           dpcal_add_errors, from sums at some nodes
   rotation to an epsilon    16 for each node: those of eight steps follow by products from a factor of libm
   phase, sum, prefactor     dpcal_interval */

#ifndef DPCAL_CONTOUR_H
#define DPCAL_CONTOUR_H

#include "law.h"

/* Most nodes of a first try, and of a patient one; most times at which the decay is bounded. */
enum { DPCAL_NODES = 32768, DPCAL_MOST_NODES = 1 << 19, DPCAL_GRID = 128 };
/* Fewest nodes of a smoothed contour, and most: 150 MB. */
enum { DPCAL_SMOOTHED = 1024, DPCAL_MOST_SMOOTHED = 3 << 20 };
/* Distances of trial tilts from the saddle, in widths of the peak: for a normal law the best lies at sqrt(2 log(1 /
   tolerance)) = 8 widths; laws of rare jumps need nearer tilts, others further ones. */
enum { DPCAL_SPREADS = 11, DPCAL_TRIALS = 2 * DPCAL_SPREADS + 2 };
static const double dpcal_spreads[DPCAL_SPREADS] = {0.05, 0.15, 0.35, 0.7, 1.5, 2.5, 4.0, 6.0, 8.5, 12.0, 20.0};
/* Ratio of neighboring times between which the decay is bounded. */
static const double DPCAL_RATIO = 1.12;
/* Most products of points and nodes of a first try, for each law: other ways cost less than a longer contour; and of a
   patient one, which takes about a second, of one that only shows where a root is, and of all patient ones of a question. */
static const double DPCAL_WORK = 1e7, DPCAL_MOST_WORK = 2.5e9, DPCAL_COARSE_WORK = 3e7, DPCAL_ALL_WORK = 6e9;
/* Width of bounds on log delta that a smoothed contour gets as many nodes for as it takes; of epsilon a quarter of it relative
   to epsilon, where that is more. */
static const double DPCAL_WANTED = 2e-7;
/* What the nodes beyond a contour may add, over that width: it is far below delta, where that is far below the peak of the
   integrand, too. */
static const double DPCAL_OF_WANTED = 5e-6;
/* Nats of delta between a root and the epsilon of a smoothed contour whose width is that of its smoothing. */
static const double DPCAL_NEAR = 0.5;

/* What of delta lies beyond a cut, where a step has a large loss (inversion/cut.py): p - exp(epsilon) q, and at most
   exp(bounds - tilts epsilon) more; and no more than p. */
enum { DPCAL_PUTS = 6 };
typedef struct {
    double p, q, units; /* and their relative error */
    double tilts[DPCAL_PUTS], bounds[DPCAL_PUTS];
} dpcal_beyond;

/* Epsilons that rise, and room for the ends of their log deltas: a lower one is NaN where no contour reaches. */
typedef struct {
    const double *at;
    ptrdiff_t n;
    double *lower, *upper;
} dpcal_curve;

typedef struct {
    dpcal_law *laws; /* k losses, how often each adds up, and room for each of them tilted */
    const double *counts;
    dpcal_tilt *parts;
    ptrdiff_t k;
    dpcal_curve curve;
    const dpcal_beyond *beyond; /* NULL for nothing */
    double c, log_mgf, mean, variance, error; /* of the sum, tilted by c */
    double epsilon, step, width, log_tolerance, remainder; /* the contour, made for this epsilon */
    double spread; /* aliases are negligible at epsilons so many deviations of the tilted law away */
    double phase; /* error of the sum of centers, in units */
    double first, rounding; /* sum of t abs(v), and error of the sum of v in units */
    double all_first, all_rounding; /* the same of what the poles divide, for the gain of smoothing */
    double latest; /* last time at which all points have the transforms of their laws */
    double smoothing, after; /* eta, and what the nodes that are left out add to the gain */
    double wanted;           /* width of bounds on log delta for which eta is chosen, if eta^2 c (1 + c) is its share of delta */
    double spent;            /* products of points and nodes of the question's long contours */
    int patient, coarse; /* whether a contour may be long, or smoothed, and whether it is so only to find a root */
    double tilts[DPCAL_TRIALS], bounds[DPCAL_TRIALS], gaps[DPCAL_TRIALS]; /* of aliases' logarithms below bounds */
    int trials, nodes;
    double *vr, *vi; /* nodes of the integrand at `epsilon`, over its value at the real node, which counts half */
    dpcal_work *work;
} dpcal_question;

/* log sup_l (1 - exp(-l)) exp(-c l), l > 0. */
static double dpcal_log_chernoff(double c) {
    return c > 0 ? -c * log1p(1.0 / c) - log1p(c) : 0.0;
}

/* -- moments of the sum, and the search of a tilt */

static int dpcal_sum_at(dpcal_question *ask, double c) {
    ask->c = c;
    double size = 0.0;
    ask->log_mgf = ask->mean = ask->variance = ask->error = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        dpcal_moments found;
        const int status = dpcal_law_at(&ask->laws[i], c, ask->work, &found);
        /* Owners are asked for all points at once. */
        for (ptrdiff_t j = i + 1; status == DPCAL_REACH && j < ask->k; j++)
            if (ask->laws[j].owned && c > ask->laws[j].highest)
                ask->laws[j].wanted = dpcal_larger(ask->laws[j].wanted, c);
        if (status)
            return status;
        ask->log_mgf += ask->counts[i] * found.log_mass;
        ask->mean += ask->counts[i] * found.mean;
        ask->variance += ask->counts[i] * found.variance;
        ask->error += ask->counts[i] * found.error;
        size += ask->counts[i] * fabs(found.log_mass);
    }
    ask->error += 2.0 * (double)ask->k * size;
    return DPCAL_DONE;
}

/* Log of M(c) / (c (1 + c)) less c epsilon: the integrand at the real node. */
static double dpcal_peak(const dpcal_question *ask, double epsilon) {
    return ask->log_mgf - ask->c * epsilon - log(ask->c) - log1p(ask->c);
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
        variance += ask->counts[i] * ask->laws[i].spread;
    root = sqrt(gap * gap + 4.0 * variance);
    c = log_delta < 0 ? sqrt(fmax(-2.0 * log_delta, 0.1) / variance) : (gap + root) / (2.0 * variance);
    for (ptrdiff_t i = 0; i < ask->k; i++)
        c = fmin(c, ask->laws[i].steep);
    c = fmin(fmax(c, 1e-9), 1e4);
    width = 1.0 / sqrt(variance + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)));
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        dpcal_law *law = &ask->laws[i];
        if (!(law->variance > 0) && law->n == 0 && !law->owned) {
            /* Adding, further tilts take few points, and the guess is often low. */
            const double reach = (law->add ? 1.5 : 1.0) * (1.1 * c + fmin(12.5 * width, c));
            const dpcal_law *like = i > 0 ? law - 1 : law;
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
        if (c > ask->laws[i].highest)
            return 1;
    return 0;
}

/* Records a Chernoff bound on log delta plus c epsilon at the moments that the question holds, rounded up, and returns it. */
static double dpcal_record(dpcal_question *ask) {
    const double a = ask->c;
    double bound = 0.0;
    if (a != 0.0) {
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
    least = dpcal_peak(ask, ask->epsilon) - 0.5 * log(2.0 * DPCAL_PI) + log(ask->width);
    least += ask->log_tolerance - 0.5 * ask->spread * ask->spread;
    ask->trials = 0;
    dpcal_record(ask);
    ask->c = 0.0;
    left = 2.0 * DPCAL_PI * c / fmax(dpcal_record(ask) - least + ask->spread * c / ask->width, 1.0);
    status = dpcal_side(ask, c, -1.0, least, &left);
    if (!status)
        status = dpcal_side(ask, c, 1.0, least, &right);
    ask->c = c, ask->log_mgf = at.log_mgf, ask->mean = at.mean, ask->variance = at.variance;
    ask->error = at.error;
    ask->step = fmin(left, right);
    for (int i = 0; i < ask->trials; i++) {
        const double distance = fabs(ask->tilts[i] - c) * (2.0 * DPCAL_PI / ask->step);
        ask->gaps[i] = distance + log(-expm1(-distance));
    }
    return status ? status : ask->step > 0 && isfinite(ask->step) ? DPCAL_DONE : DPCAL_REACH;
}

/* Log of a bound on the sum of all aliases at an epsilon, and the least Chernoff bound there. */
static void dpcal_aliases(const dpcal_question *ask, double epsilon, double *aliases, double *chernoff) {
    const double gain = 0.5 * ask->smoothing * ask->smoothing;
    double left = INFINITY, right = INFINITY, most;
    *chernoff = 0.0;
    for (int i = 0; i < ask->trials; i++) {
        const double a = ask->tilts[i], at = ask->bounds[i] - a * epsilon;
        const double value = at + gain * (a * a + a) - ask->gaps[i];
        const double above = at + 4.0 * DPCAL_UNIT * (fabs(ask->bounds[i]) + fabs(a * epsilon));
        *chernoff = above < *chernoff ? above : *chernoff;
        if (a < ask->c)
            left = value < left ? value : left;
        else
            right = value < right ? value : right;
    }
    most = fmax(left, right);
    *aliases = most + log(exp(left - most) + exp(right - most)) + 1e-9;
}

/* Log of a bound on psi of the smoothed sum over [t, ratio t]. */
static double dpcal_decay_of_sum(const dpcal_question *ask, double t, double ratio) {
    double decay = -0.5 * (ask->smoothing * t) * (ask->smoothing * t);
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

/* Log of a negligible sum of abs(v). */
static double dpcal_target(const dpcal_question *ask) {
    return log(ask->width / sqrt(2.0 * DPCAL_PI)) - log(ask->step / DPCAL_PI) + ask->log_tolerance;
}

/* The log of a bound on the sum of abs(v) over all nodes from t on: one node, and an integral over the poles. */
static double dpcal_rest(const dpcal_question *ask, double t) {
    const double c = ask->c;
    const double poles = dpcal_poles(c, t) + fmin(0.5 * DPCAL_PI * (1.0 + c), c * (1.0 + c) / t) / ask->step;
    return log(poles) + dpcal_decay_of_sum(ask, t, INFINITY);
}

/* The fewest nodes with a negligible remainder.

   Beyond t the poles leave 1 / abs((1 + i t / c) (1 + i t / (1 + c))), at most 1 / (1 + (t / (1 + c))^2) and at most
   c (1 + c) / t^2: their sum over nodes is at most that of one node and an integral. */
static int dpcal_cut_off(dpcal_question *ask, double nodes) {
    const double h = ask->step, eight = pow(DPCAL_RATIO, 8.0), target = dpcal_target(ask), most = h * nodes;
    double pieces[DPCAL_GRID], times[DPCAL_GRID], t = h, ratio = DPCAL_RATIO, rest = INFINITY, sum;
    int last = 0;
    while (t * eight < most && dpcal_piece(ask, t * eight, DPCAL_RATIO) > target)
        t *= eight;
    for (;; last++, t *= ratio) {
        if (last == DPCAL_GRID || t > most)
            return DPCAL_MANY;
        /* Steps are longer where pieces are negligible, and only the rest is not yet. */
        ratio = last > 0 && pieces[last - 1] < target - 6.0 && t * eight < most ? fmin(ratio * ratio, eight) : DPCAL_RATIO;
        times[last] = t, pieces[last] = dpcal_piece(ask, t, ratio);
        if (ratio > DPCAL_RATIO && !(pieces[last] < target - 6.0))
            pieces[last] = dpcal_piece(ask, t, ratio = DPCAL_RATIO);
        if (pieces[last] < target - 3.0 && (rest = dpcal_rest(ask, t)) < target - 3.0)
            break;
    }
    /* From the outside in: `rest` bounds all nodes from the last time on. */
    sum = exp(rest - target);
    while (last > 0 && sum + exp(pieces[last - 1] - target) <= 1.0)
        sum += exp(pieces[--last] - target);
    ask->remainder = target + log(sum) + 1e-9;
    ask->nodes = (int)(times[last] * (1.0 + 1e-12) / h) + 2;
    return ask->nodes * ask->step > ask->latest ? DPCAL_MANY : DPCAL_DONE;
}

/* Ends a contour at a number of nodes if what it leaves out is small beside the width that is wanted. */
static int dpcal_end_at(dpcal_question *ask, double nodes) {
    ask->remainder = dpcal_rest(ask, ask->step * floor(nodes)) + 1e-9;
    ask->nodes = (int)nodes + 1;
    const int wide = ask->remainder >= dpcal_target(ask) - ask->log_tolerance + log(DPCAL_OF_WANTED * DPCAL_WANTED);
    return wide || ask->nodes * ask->step > ask->latest ? DPCAL_MANY : DPCAL_DONE;
}

/* What the nodes that are left out add to the gain of smoothing, over its scale: up to a time until which the laws have a
   bound that ends there, and one node and the integral of exp(-(eta s)^2 / 2) beyond. */
static void dpcal_set_after(dpcal_question *ask, double until) {
    const double eta = ask->smoothing, h = ask->step;
    double t = h * (double)(ask->nodes - 1), end, last;
    ask->smoothing = ask->after = 0.0;
    if (until > t) {
        ask->after = exp(dpcal_decay_of_sum(ask, t, until / t)) * ((until - t) / h + 1.0);
        t = until;
    }
    end = eta * t;
    last = exp(-0.5 * end * end);
    last += fmin(last / end, sqrt(0.5 * DPCAL_PI)) / (h * eta);
    ask->after += exp(dpcal_decay_of_sum(ask, t, INFINITY)) * last;
    ask->smoothing = eta;
}

/* Nodes of a contour: those that the laws end by themselves, within reach; else smoothed ones, for the width that is wanted
   or, where these are too many, as many as can be. With so many nodes the laws themselves may end the contour. */
static int dpcal_choose_nodes(dpcal_question *ask) {
    const double c = ask->c, eta = sqrt(ask->wanted / (c * (1.0 + c)));
    /* exp(-last^2 / 2) is negligible at each of most nodes */
    const double last = sqrt(2.0 * fmax(1.0, log((double)DPCAL_MOST_NODES) - dpcal_target(ask)));
    double points = 0.0, until = 1e300, most, nodes;
    int status;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        points += (double)(ask->parts[i].n + 1);
        until = ask->parts[i].n > 0 ? fmin(until, ask->parts[i].until) : until;
    }
    ask->smoothing = 0.0;
    nodes = fmin(DPCAL_NODES, DPCAL_WORK * (double)ask->k / points);
    status = dpcal_cut_off(ask, nodes);
    if (status != DPCAL_MANY || !ask->patient)
        return status;
    if (dpcal_end_at(ask, nodes) == DPCAL_DONE)
        return DPCAL_DONE;
    /* One that shall be closer than the last gets what is left. */
    most = fmin(ask->wanted < DPCAL_WANTED ? DPCAL_ALL_WORK : DPCAL_MOST_WORK, DPCAL_ALL_WORK - ask->spent);
    most = (ask->coarse ? DPCAL_COARSE_WORK : dpcal_larger(DPCAL_WORK * (double)ask->k, most)) / points;
    nodes = fmin(last / (ask->step * eta), fmin(DPCAL_MOST_SMOOTHED, most));
    nodes = dpcal_larger(nodes, DPCAL_SMOOTHED);
    status = dpcal_cut_off(ask, nodes);
    if (status == DPCAL_MANY)
        status = dpcal_end_at(ask, nodes);
    /* Atoms on a fine lattice are like a density until the transform returns. */
    const double by_nodes = last / (ask->step * nodes), by_time = until > 0.0 ? 1.2 * last / until : by_nodes;
    const double widths[3] = {eta, fmin(by_nodes, by_time), dpcal_larger(by_nodes, by_time)};
    ask->log_tolerance = dpcal_larger(ask->log_tolerance, log(DPCAL_OF_WANTED * DPCAL_WANTED));
    for (int i = 0; i < 3 && status == DPCAL_MANY; i++) {
        ask->smoothing = widths[i];
        status = widths[i] >= eta ? dpcal_cut_off(ask, 1.3 * nodes) : DPCAL_MANY;
    }
    /* The poles end most contours before: then as many nodes take less smoothing. */
    if (!status && ask->smoothing > eta && ask->nodes < 0.95 * nodes) {
        const double before = ask->smoothing;
        ask->smoothing = dpcal_larger(eta, before * ask->nodes / nodes);
        if (dpcal_cut_off(ask, 1.3 * nodes)) {
            ask->smoothing = before;
            status = dpcal_cut_off(ask, 1.3 * nodes);
        }
    }
    ask->spent += status ? 0.0 : points * ask->nodes;
    if (!status && ask->smoothing > 0.0)
        dpcal_set_after(ask, until * (1.0 - 1e-9));
    return status;
}

/* Log psi of all laws at the nodes, the integrand v at `epsilon`, and the sums of its sizes and errors. */
static int dpcal_nodes(dpcal_question *ask) {
    const double h = ask->step, c = ask->c;
    const int nodes = ask->nodes;
    const ptrdiff_t padded = dpcal_padded(nodes);
    ptrdiff_t most = DPCAL_LANES;
    const double smoothed = 0.5 * ask->smoothing * ask->smoothing;
    /* Of each node, and of a sum over nodes in eight lanes, 512 nodes at a time (dpcal_rotated). */
    const double adding = 16.0 + (nodes < 512 ? nodes / 16.0 : 44.0);
    double offset = 0.0, sums[6], *errors, *lr, *li, *inverse, *table;
    for (ptrdiff_t i = 0; i < ask->k; i++)
        most = ask->parts[i].n > most ? ask->parts[i].n : most;
    if (dpcal_grow(&ask->work->nodes, &ask->work->node_capacity, 6 * padded + 8 * most))
        return DPCAL_MEMORY;
    ask->vr = ask->work->nodes, ask->vi = ask->vr + padded;
    errors = ask->vi + padded, lr = errors + padded, li = lr + padded, inverse = li + padded, table = inverse + padded;
    memset(ask->vr, 0, (size_t)(6 * padded) * sizeof(double));
    ask->phase = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        const dpcal_tilt *tilt = &ask->parts[i];
        offset += tilt->times * tilt->center;
        ask->phase += tilt->times * (tilt->center_error + (4.0 + 2.0 * (double)ask->k) * fabs(tilt->center));
        if (tilt->n == 0) {
            for (int k = 1; k < nodes; k++) {
                const double size = 0.5 * tilt->variance * (k * h) * (k * h);
                ask->vr[k] -= tilt->times * size;
                errors[k] += 8.0 * tilt->times * size + fabs(ask->vr[k]);
            }
            continue;
        }
        if (dpcal_is_stopped(ask->work, (double)tilt->n * nodes))
            return DPCAL_STOPPED;
        dpcal_log_psi(tilt, h, nodes, table, lr, li, inverse);
        dpcal_add_errors(tilt, h, nodes, lr, li, inverse, errors);
        for (int k = 1; k < nodes; k++) {
            ask->vr[k] += tilt->times * lr[k];
            ask->vi[k] += tilt->times * li[k];
            errors[k] += fabs(ask->vr[k]) + fabs(ask->vi[k]);
        }
    }
    for (int k = 1; k < nodes && smoothed > 0.0; k++) {
        const double size = smoothed * (k * h) * (k * h);
        ask->vr[k] -= size;
        errors[k] += 8.0 + 8.0 * size;
    }
    offset += ask->smoothing * ask->smoothing * (c + 0.5) - ask->epsilon;
    DPCAL_WIDEST(dpcal_integrand)(h, c, offset, nodes, errors, ask->vr, ask->vi, sums);
    ask->vr[0] = 0.5, ask->vi[0] = 0.0;
    ask->first = sums[1], ask->all_first = sums[4];
    ask->rounding = 8.0 + sums[2] + adding * (0.5 + sums[0]);
    ask->all_rounding = 8.0 + sums[5] + 3.0 * adding * (0.5 + sums[3]);
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
        room += 8 * ask->laws[i].line.n;
        most = ask->laws[i].n > most ? ask->laws[i].n : most;
    }
    if (dpcal_grow(&ask->work->block, &ask->work->capacity, room + most))
        return DPCAL_MEMORY;
    block = ask->work->block + most;
    ask->latest = INFINITY;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        const double centered = ask->patient && !ask->coarse ? ask->step : 0.0;
        ask->parts[i].times = ask->counts[i];
        if ((status = dpcal_tilt_law(&ask->laws[i], ask->c, centered, ask->work, &block, &ask->parts[i])))
            return status;
        ask->latest = fmin(ask->latest, ask->parts[i].latest);
    }
    status = dpcal_choose_nodes(ask);
    return status ? status : dpcal_nodes(ask);
}

/* -- values */

/* The gain R of smoothing over the same scale as the sums over nodes, rounded up; 0 without smoothing. */
static double dpcal_gain(const dpcal_question *ask, const double *sums, double phases, double prefactors) {
    const double c = ask->c, eta = ask->smoothing, pole = 1.0 / (c * (1.0 + c));
    double plain, errors;
    if (!(eta > 0.0))
        return 0.0;
    /* The integrand without its poles. */
    plain = sums[0] - pole * sums[2] - (1.0 / c + 1.0 / (1.0 + c)) * sums[1];
    errors = 4.0 * ask->all_rounding + phases * ask->all_first + (32.0 + prefactors) * fabs(plain);
    plain = dpcal_larger(plain + DPCAL_UNIT * errors + ask->after, 0.0);
    return c * (1.0 + c) * eta * eta * exp(0.125 * eta * eta) * plain * (1.0 + 1e-12);
}

/* log(exp(a) + exp(b)). */
static double dpcal_log_sum(double a, double b) {
    const double most = fmax(a, b);
    return isinf(most) ? most : most + log1p(exp(fmin(a, b) - most));
}

/* An epsilon whose exponential is a double. */
static const double DPCAL_NO_OVERFLOW = 700.0;

/* Adds what lies beyond a cut. */
static void dpcal_add_beyond(
    const dpcal_beyond *beyond, double epsilon, double *lower, double *upper, double *value, double *slope
) {
    /* Where exp(epsilon) overflows, a smaller one makes the gap too large: the lower end has no part of it. */
    const double growth = exp(fmin(epsilon, DPCAL_NO_OVERFLOW)), p = beyond->p, q = growth * beyond->q, gap = p - q;
    /* Below 1e-300 probabilities have lost digits. */
    const double error = DPCAL_UNIT * (beyond->units + 8.0 + epsilon) * (p + q) + 1e-300 * (1.0 + growth);
    const double below = *value >= -700.0 ? exp(*value) : 0.0, sum = below + fmax(gap, 0.0);
    double put = INFINITY, above;
    for (int i = 0; i < DPCAL_PUTS; i++)
        put = fmin(put, beyond->bounds[i] - beyond->tilts[i] * epsilon);
    above = fmin(dpcal_log_sum(log(fmax(gap + error, 0.0)), put), log(p + DPCAL_UNIT * (beyond->units + 8.0) * p + 1e-300));
    *lower = dpcal_log_sum(*lower, epsilon <= DPCAL_NO_OVERFLOW ? log(fmax(gap - error, 0.0)) : -INFINITY);
    *upper = dpcal_log_sum(*upper, above);
    *lower -= 8.0 * DPCAL_UNIT * (1.0 + fabs(*lower)), *upper += 8.0 * DPCAL_UNIT * (1.0 + fabs(*upper));
    *upper = fmin(*upper, 0.0);
    *slope = sum > 0.0 ? ((below > 0.0 ? below * *slope : 0.0) - (gap > 0.0 ? q : 0.0)) / sum : NAN;
    *value = sum > 0.0 ? log(sum) : NAN;
}

/* Bounds on log delta(epsilon), the value between them and its derivative. */
static void dpcal_interval(
    const dpcal_question *ask, double epsilon, double *lower, double *upper, double *value, double *slope
) {
    const double c = ask->c, terms = fabs(ask->log_mgf) + fabs(c * epsilon), eta = ask->smoothing;
    const double scale = dpcal_peak(ask, epsilon) + 0.5 * eta * eta * (c * c + c) + log(ask->step / DPCAL_PI);
    const double moved = eta * eta * (c + 0.5);
    const double phases = 4.0 * (fabs(epsilon) + fabs(ask->epsilon) + fabs(moved)) + ask->phase;
    const double prefactors = 16.0 + 4.0 * (terms + fabs(log(c)) + log1p(c)) + ask->error;
    double sums[3], total, turned, aliases, chernoff, error, gain;
    DPCAL_WIDEST(dpcal_rotated)(ask->vr, ask->vi, ask->nodes, ask->step, epsilon - ask->epsilon, sums);
    total = sums[0], turned = sums[1];
    dpcal_aliases(ask, epsilon, &aliases, &chernoff);
    error = exp(fmin(aliases - scale, 700.0)) + exp(fmin(ask->remainder, 700.0));
    error += DPCAL_UNIT * (ask->rounding + phases * ask->first + prefactors * fabs(total));
    gain = dpcal_gain(ask, sums, phases, prefactors);
    /* Of a density half of the gain is there. */
    *value = total > 0 ? scale + log(dpcal_larger(total - 0.5 * gain, 0.5 * total)) : NAN;
    *slope = total > 0 ? (turned - c * total) / total : NAN;
    *lower = total > error + gain ? scale + log(total - error - gain) : -INFINITY;
    *upper = total + error > 0 ? scale + log(total + error) : INFINITY;
    *upper = fmin(fmin(*upper, chernoff), 0.0);
    if (isnan(total) || isnan(error) || isnan(gain) || isnan(*lower) || isnan(*upper))
        *lower = -INFINITY, *upper = 0.0;
    if (ask->beyond)
        dpcal_add_beyond(ask->beyond, epsilon, lower, upper, value, slope);
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
    int smoothed;         /* whether the contour was */
} dpcal_answer;

/* log of the chance, rounded up, that any step depends on the record, and the supremum of the sum. */
static void dpcal_closed_bounds(const dpcal_question *ask, double *log_seen, double *most) {
    double unaffected = 0.0;
    *most = 0.0;
    for (ptrdiff_t i = 0; i < ask->k; i++) {
        unaffected += ask->counts[i] * ask->laws[i].log_unaffected;
        *most += ask->counts[i] * ask->laws[i].upper;
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
        if (value > log_delta)
            low = fmax(low, at);
        else
            high = fmin(high, at);
        /* Between atoms delta is nearly flat, and a small change of it far away. */
        if ((fabs((step - at) * slope) < 1e-7 && low <= step && step <= high) || step == at) {
            *root = step;
            return step > 0 || ask->patient ? DPCAL_DONE : DPCAL_SEARCH;
        }
        if (isfinite(high) && (tries > 12 || !(low <= step && step <= high)))
            step = 0.5 * (low + high);
        at = step;
    }
    return DPCAL_SEARCH;
}

/* The first epsilon on a side of a root at which bounds prove that it is beyond; 0 or infinity where none does. */
static double dpcal_beyond_root(const dpcal_question *ask, double root, double side, double gap, double log_delta) {
    for (int tries = 0; tries < 40; tries++, gap *= 2.0) {
        const double end = root + side * gap;
        double below, above, value, slope;
        if (end <= 0)
            return 0.0;
        dpcal_interval(ask, end, &below, &above, &value, &slope);
        if (side > 0 ? above <= log_delta : below >= log_delta)
            return end;
    }
    return side > 0 ? INFINITY : 0.0;
}

/* Ends on both sides of a root. */
static int dpcal_outward(const dpcal_question *ask, double at, double log_delta, double *lower, double *upper) {
    const double margin = 2.0 * DPCAL_UNIT * at;
    double low, high, value, slope;
    dpcal_interval(ask, at, &low, &high, &value, &slope);
    *lower = *upper = at;
    if (!(high <= log_delta))
        *upper = dpcal_beyond_root(ask, at, 1.0, margin + (high - log_delta) / -slope * 1.001, log_delta);
    if (!(low >= log_delta))
        *lower = dpcal_beyond_root(ask, at, -1.0, margin + (log_delta - low) / -slope * 1.001, log_delta);
    return *upper - *lower <= DPCAL_TIGHT * *upper ? DPCAL_DONE : DPCAL_WIDE;
}

static int dpcal_search_epsilon(dpcal_question *ask, double log_delta, dpcal_answer *out) {
    double at, log_seen, most, lower, upper, value, slope, closer = 1.0;
    int status = DPCAL_DONE;
    dpcal_closed_bounds(ask, &log_seen, &most);
    if (log_seen <= log_delta) {
        out->sampling = 1;
        return DPCAL_DONE;
    }
    if ((status = dpcal_tilt_of(ask, log_delta)))
        return status;
    at = dpcal_epsilon_of_tilt(ask);
    if (!(at > 0) && !ask->patient)
        return DPCAL_SEARCH;
    at = fmax(at, 0.0);
    /* The estimate of a bulk with rare large losses is up to a thousand times too large. */
    const int most_tries = ask->patient ? 9 : 3;
    ask->coarse = ask->patient;
    for (int tries = 0; tries < most_tries; tries++) {
        const double before = ask->spent;
        if (before >= DPCAL_ALL_WORK)
            break;
        ask->epsilon = at;
        if (tries > 0 && (status = dpcal_tilt_of(ask, 0.0)))
            return status;
        ask->wanted = closer * DPCAL_WANTED * fmax(1.0, 0.25 * ask->c * at);
        if ((status = dpcal_build(ask, DPCAL_ERROR))) {
            if (!ask->coarse || status != DPCAL_MANY)
                return status;
            ask->coarse = 0;
            continue;
        }
        if ((status = dpcal_root(ask, log_delta, &at))) {
            /* Where losses are rare and large, the saddle-point estimate may be far above the root. */
            at = (ask->patient ? 0.25 : 0.5) * ask->epsilon;
            continue;
        }
        dpcal_interval(ask, at, &lower, &upper, &value, &slope);
        /* Another contour would be the same, or hardly closer. */
        const double near = ask->smoothing > 0 ? DPCAL_NEAR / -slope : 1e-3 * at, left = DPCAL_ALL_WORK - ask->spent;
        const int end = ask->patient && (tries == most_tries - 1 || left <= 0.0);
        const int last = !ask->coarse && (fabs(at - ask->epsilon) < near || at == ask->epsilon || end);
        const double close = ask->coarse ? DPCAL_WANTED : DPCAL_TIGHT;
        const double accepted = ask->smoothing > 0 ? close : last ? DPCAL_LAST : DPCAL_ACCEPTED;
        const double width = upper - lower, most = fmax(0.5, -slope * at) * accepted;
        out->smoothed = ask->smoothing > 0;
        /* Next to atoms the gain of smoothing is larger than its square suggests: closer, where what is left may do. */
        if (last && out->smoothed && at > 0 && !end && width > most && closer == 1.0
            && sqrt(2.0 * width / most) * (ask->spent - before) < left) {
            closer = dpcal_larger(0.5 * most / width, 0.01);
            continue;
        }
        if (width < most || (last && ask->patient))
            return dpcal_outward(ask, at, log_delta, &out->lower, &out->upper);
        if (last)
            break;
        ask->coarse = 0;
    }
    out->lower = 0.0, out->upper = INFINITY;
    return status ? status : DPCAL_WIDE;
}

/* Whether delta is 1 but for much less than rounding: 1 - delta is at most exp(epsilon / 2) M(-1/2). Sums are then at -1/2. */
static int dpcal_is_certain(dpcal_question *ask, double epsilon) {
    return !ask->beyond && ask->c < 0.5 && !dpcal_sum_at(ask, -0.5) && ask->log_mgf + 0.5 * epsilon < DPCAL_LOG_TOLERANCE;
}

/* Bounds, or an upper one by as much work as it takes to see whether it is at most a target < 0. */
static int dpcal_search_log_delta(dpcal_question *ask, double epsilon, double target, dpcal_answer *out) {
    double log_seen, most, value, slope, chernoff, c;
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
    c = ask->c;
    if (dpcal_is_certain(ask, epsilon)) {
        out->lower = -DPCAL_UNIT;
        return DPCAL_DONE;
    }
    if ((status = ask->c == c ? DPCAL_DONE : dpcal_sum_at(ask, c)))
        return status;
    chernoff = ask->log_mgf - c * epsilon + dpcal_log_chernoff(c);
    chernoff += DPCAL_UNIT * (ask->error + 8.0 * (fabs(ask->log_mgf) + c * epsilon + log1p(c) + 4.0));
    out->upper = fmin(chernoff, 0.0), out->lower = -INFINITY;
    if (target < 0 && out->upper <= target)
        return DPCAL_DONE;
    if ((status = dpcal_build(ask, target < 0 ? DPCAL_CRUDE : DPCAL_ERROR)))
        return status;
    dpcal_interval(ask, epsilon, &out->lower, &out->upper, &value, &slope);
    out->upper = fmin(out->upper, log_seen);
    out->lower = fmin(out->lower, out->upper);
    out->smoothed = ask->smoothing > 0;
    return target < 0 || out->upper - out->lower <= DPCAL_TIGHT ? DPCAL_DONE : DPCAL_WIDE;
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

/* Bounds on log delta along the curve. */
static int dpcal_search_log_deltas(dpcal_question *ask) {
    const double *epsilons = ask->curve.at;
    const ptrdiff_t n = ask->curve.n;
    double log_seen, most, value, slope, accepted, *lower = ask->curve.lower, *upper = ask->curve.upper, ahead = DPCAL_AHEAD;
    ptrdiff_t skip = 1;
    for (ptrdiff_t i = 0; i < n; i++)
        lower[i] = NAN, upper[i] = 0.0;
    dpcal_closed_bounds(ask, &log_seen, &most);
    for (ptrdiff_t i = 0; i < n && epsilons[i] < most;) {
        ptrdiff_t j = i;
        int status;
        ask->epsilon = epsilons[i];
        status = dpcal_tilt_of(ask, 0.0);
        if (!status)
            status = dpcal_build_ahead(ask, ahead, epsilons[n - 1], &accepted);
        for (; !status && j < n && epsilons[j] < most; j++) {
            double low, high;
            dpcal_interval(ask, epsilons[j], &low, &high, &value, &slope);
            if (!(high - low <= accepted))
                break;
            lower[j] = fmin(low, log_seen), upper[j] = fmin(high, log_seen);
        }
        if (j == i) {
            dpcal_answer one = {0};
            status = status >= DPCAL_MEMORY ? status : dpcal_search_log_delta(ask, epsilons[i], 0.0, &one);
            if (!status)
                lower[i] = one.lower, upper[i] = one.upper;
            /* Past one that has no contour, twice as many more each time: their neighbors would fail, too. */
            j = status ? i + skip : i + 1;
            skip = status ? 2 * skip : 1;
            ahead *= 0.5;
        }
        if (status >= DPCAL_MEMORY)
            return status;
        i = j;
    }
    return DPCAL_DONE;
}

enum { DPCAL_EPSILON, DPCAL_LOG_DELTA, DPCAL_LOG_DELTAS };

/* Bounds on the smallest epsilon >= 0 with log delta(epsilon) <= log_delta; on log delta(epsilon), epsilon >= 0, of which an
   upper one is enough where log_delta < 0; or on log delta along the curve. Any status but DPCAL_DONE means that the question is
   for another way. */
static void dpcal_ask(dpcal_question *ask, int kind, double epsilon, double log_delta, dpcal_answer *out) {
    memset(out, 0, sizeof *out);
    ask->wanted = DPCAL_WANTED;
    if (kind == DPCAL_EPSILON)
        out->status = dpcal_search_epsilon(ask, log_delta, out);
    else
        out->status = kind == DPCAL_LOG_DELTA ? dpcal_search_log_delta(ask, epsilon, log_delta, out) : dpcal_search_log_deltas(ask);
}

#endif
