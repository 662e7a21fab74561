/* Questions about a sum of independent privacy losses that one contour answers: epsilon, and log delta.

   The functions at the end take losses, how often each adds up, and a work space that is zeroed before its first use
   and freed by dpcal_free_work. They call no Python. Losses are filled on the way: those of one call are not shared
   with another thread, and dpcal_free_law frees their points. */

#ifndef DPCAL_INVERSION_H
#define DPCAL_INVERSION_H

#include "contour.h"

/* Error of a contour over its value: about ten units; and of one that is asked whether delta is at most a number. */
static const double DPCAL_ERROR = 2e-15, DPCAL_CRUDE = 1e-3;
/* Widths that are accepted: eight digits of epsilon, seven where another contour would be the same and the width is all
   rounding, and six of delta. */
static const double DPCAL_ACCEPTED = 1e-8, DPCAL_LAST = 2e-8, DPCAL_TIGHT = 1e-6;

typedef struct {
    double lower, upper;
    double tilt, points, nodes;
    double wanted;
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
