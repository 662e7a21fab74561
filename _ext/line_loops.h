/* The loops of line.h and contour.h, compiled once for each width of registers: see widths.h. */

/* -- a line along Re z = c */

/* Points less the mean, complex weights, their errors in units and distances, from a line's own; `size` holds the
   weights' magnitudes. Returns the sum of weights times points in `left`. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_tilted_points)(
    const dpcal_line *line, ptrdiff_t from, double c, const dpcal_moments *at, dpcal_tilt *tilt
) {
    const double *re = line->re + from, *im = line->im + from, *phase = line->phase + from;
    const double *log_size = line->size + from, *error = line->error + from, *rounding = line->rounding + from;
    dpcal_v left_re = {0}, left_im = {0};
    for (ptrdiff_t i = 0; i < tilt->n; i += DPCAL_LANES_OF) {
        const dpcal_v x = DPCAL_AT(re) - at->mean, y = DPCAL_AT(im), size = DPCAL_AT(tilt->size);
        const dpcal_v grown = c * DPCAL_AT(re);
        const dpcal_v turned = DPCAL_AT(phase) + c * y, square = x * x + y * y;
        const dpcal_v sum = DPCAL_AT(log_size) + grown, all = sum - at->log_mass;
        const dpcal_v lengths = DPCAL_SIZE(grown) + DPCAL_SIZE(sum) + DPCAL_SIZE(all) + c * y + DPCAL_SIZE(turned);
        dpcal_v cosine, sine, distance;
        DPCAL_NAME(dpcal_turn)(&turned, &cosine, &sine);
        DPCAL_ROOT(&square, &distance);
        const dpcal_v wr = size * cosine, wi = size * sine;
        DPCAL_PUT(tilt->re) = x;
        DPCAL_PUT(tilt->im) = y;
        DPCAL_PUT(tilt->wr) = wr;
        DPCAL_PUT(tilt->wi) = wi;
        DPCAL_PUT(tilt->distance) = distance;
        /* Of log P, c l and log M, of each product and sum, and of the functions. */
        DPCAL_PUT(tilt->error) = size * (8.0 + DPCAL_AT(rounding) + c * DPCAL_AT(error) + at->error + 0.5 * lengths);
        DPCAL_PUT(tilt->shift) = size * (DPCAL_AT(error) + distance);
        left_re += wr * x - wi * y;
        left_im += wr * y + wi * x;
    }
    tilt->left_re = DPCAL_SUM_OF(left_re);
    tilt->left_im = DPCAL_SUM_OF(left_im);
}

/* The largest of the sizes times 1 + abs(l - mean)^2 / variance, which `scaled` holds. */
DPCAL_TARGET static double DPCAL_NAME(dpcal_largest)(
    const dpcal_line *line, const double *sizes, double mean, double variance, double *scaled
) {
    double most = 0.0;
    for (ptrdiff_t i = 0; i < line->n; i += DPCAL_LANES_OF) {
        const dpcal_v x = DPCAL_AT(line->re) - mean, y = DPCAL_AT(line->im);
        DPCAL_PUT(scaled) = DPCAL_AT(sizes) * (1.0 + (x * x + y * y) / variance);
    }
    for (ptrdiff_t j = 0; j < line->n; j++)
        most = scaled[j] > most ? scaled[j] : most;
    return most;
}

/* -- nodes */

/* exp(x + i y) - 1 - (x + i y), x <= 0, to 5 units of abs(x + i y)^2 / 2 where this is below 1/8, else of 1 + that. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_complex_expm2)(
    const dpcal_v *at, const dpcal_v *y_, dpcal_v *out_re, dpcal_v *out_im
) {
    const dpcal_v x = *at, y = *y_, half = 0.5 * y, t = y * y;
    dpcal_v second, first, whole, cosine, sine;
    DPCAL_EXPONENTIALS(x, second, first, whole);
    DPCAL_NAME(dpcal_turn)(&half, &cosine, &sine);
    const dpcal_v turned = 2.0 * sine * cosine;
    /* sin(y) - y */
    const dpcal_v cubic = y * t * ((-1.0 / 6 + t * (1.0 / 120)) + t * t * ((-1.0 / 5040 + t * (1.0 / 362880))
        + t * t * (-1.0 / 39916800 + t * (1.0 / 6227020800.0))));
    *out_re = second - whole * (2.0 * sine * sine);
    *out_im = first * turned + DPCAL_CHOICE(t < 0.36, cubic, turned - y);
}

/* A recurrence for the terms w (exp(i s) - 1 - i s) of n points in `blocks`, at multiples of a time h: rows of state,
   factor, constant and slope of the increment, real and imaginary parts apart. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_recurrence)(
    const dpcal_tilt *tilt, const ptrdiff_t *blocks, ptrdiff_t n, double h, double *table
) {
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const ptrdiff_t j = blocks[i / DPCAL_LANES] + i % DPCAL_LANES;
        const dpcal_v x = -h * DPCAL_FROM(tilt->im, j), y = h * DPCAL_FROM(tilt->re, j);
        const dpcal_v wr = DPCAL_FROM(tilt->wr, j), wi = DPCAL_FROM(tilt->wi, j);
        dpcal_v a, b;
        DPCAL_NAME(dpcal_complex_expm2)(&x, &y, &a, &b);
        /* exp(i theta) - 1, and i theta times it */
        const dpcal_v er = x + a, ei = y + b, dr = x * er - y * ei, di = x * ei + y * er;
        DPCAL_PUT(table) = a - a;
        DPCAL_PUT(table + n) = a - a;
        DPCAL_PUT(table + 2 * n) = 1.0 + er;
        DPCAL_PUT(table + 3 * n) = ei;
        DPCAL_PUT(table + 4 * n) = wr * a - wi * b;
        DPCAL_PUT(table + 5 * n) = wr * b + wi * a;
        DPCAL_PUT(table + 6 * n) = wr * dr - wi * di;
        DPCAL_PUT(table + 7 * n) = wr * di + wi * dr;
    }
}

/* The states of a recurrence at a time, without the recurrence. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_anew)(
    const dpcal_tilt *tilt, const ptrdiff_t *blocks, ptrdiff_t n, double time, double *table
) {
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const ptrdiff_t j = blocks[i / DPCAL_LANES] + i % DPCAL_LANES;
        const dpcal_v x = -time * DPCAL_FROM(tilt->im, j), y = time * DPCAL_FROM(tilt->re, j);
        const dpcal_v wr = DPCAL_FROM(tilt->wr, j), wi = DPCAL_FROM(tilt->wi, j);
        dpcal_v a, b;
        DPCAL_NAME(dpcal_complex_expm2)(&x, &y, &a, &b);
        DPCAL_PUT(table) = wr * a - wi * b;
        DPCAL_PUT(table + n) = wr * b + wi * a;
    }
}

/* exp(i time (l - mean)), times the weights or not. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_powers)(
    const dpcal_tilt *tilt, const ptrdiff_t *blocks, ptrdiff_t n, double time, int weighted, double *out
) {
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const ptrdiff_t j = blocks[i / DPCAL_LANES] + i % DPCAL_LANES;
        const dpcal_v x = -time * DPCAL_FROM(tilt->im, j), y = time * DPCAL_FROM(tilt->re, j);
        const dpcal_v wr = DPCAL_FROM(tilt->wr, j), wi = DPCAL_FROM(tilt->wi, j);
        dpcal_v second, first, size, cosine, sine;
        DPCAL_EXPONENTIALS(x, second, first, size);
        DPCAL_NAME(dpcal_turn)(&y, &cosine, &sine);
        DPCAL_PUT(out) = weighted ? size * (wr * cosine - wi * sine) : size * cosine;
        DPCAL_PUT(out + n) = weighted ? size * (wr * sine + wi * cosine) : size * sine;
        (void)second;
        (void)first;
    }
}

/* Adds nodes k, ..., end - 1 of a recurrence of dpcal_recurrence from states `from` on, four at a time. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_second_order_nodes)(
    double *table, const double *from, ptrdiff_t n, int k, int end, double *lr, double *li
) {
    for (; k < end; k += 4, from = table) {
        dpcal_v re[4] = {{0}}, im[4] = {{0}};
        for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
            const dpcal_v e = DPCAL_AT(table + 2 * n), f = DPCAL_AT(table + 3 * n);
            const dpcal_v fr = DPCAL_AT(table + 6 * n), fi = DPCAL_AT(table + 7 * n);
            dpcal_v gr = DPCAL_AT(table + 4 * n) + k * fr, gi = DPCAL_AT(table + 5 * n) + k * fi;
            dpcal_v a = DPCAL_AT(from), b = DPCAL_AT(from + n);
            for (int j = 0; j < 4; j++) {
                const dpcal_v next = a * e - b * f + gr;
                re[j] += a;
                im[j] += b;
                b = a * f + b * e + gi;
                a = next;
                gr += fr;
                gi += fi;
            }
            DPCAL_PUT(table) = a;
            DPCAL_PUT(table + n) = b;
        }
        for (int j = 0; j < 4 && k + j < end; j++) {
            lr[k + j] += DPCAL_SUM_OF(re[j]);
            li[k + j] += DPCAL_SUM_OF(im[j]);
        }
    }
}

/* Adds nodes k, ..., end - 1 of the powers of dpcal_powers from states `from` on, four at a time. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_power_nodes)(
    double *table, const double *from, ptrdiff_t n, int k, int end, double *lr, double *li
) {
    for (; k < end; k += 4, from = table) {
        dpcal_v re[4] = {{0}}, im[4] = {{0}};
        for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
            const dpcal_v e = DPCAL_AT(table + 2 * n), f = DPCAL_AT(table + 3 * n);
            dpcal_v a = DPCAL_AT(from), b = DPCAL_AT(from + n);
            for (int j = 0; j < 4; j++) {
                const dpcal_v next = a * e - b * f;
                re[j] += a;
                im[j] += b;
                b = a * f + b * e;
                a = next;
            }
            DPCAL_PUT(table) = a;
            DPCAL_PUT(table + n) = b;
        }
        for (int j = 0; j < 4 && k + j < end; j++) {
            lr[k + j] += DPCAL_SUM_OF(re[j]);
            li[k + j] += DPCAL_SUM_OF(im[j]);
        }
    }
}

/* Adds to the sums at nodes start, ..., stop - 1 < start + span terms w (exp(i s) - 1 - i s) of n points in `blocks`,
   and w exp(i s) of m in `late`: powers of theta = span h (l - mean), at most 1 in size, about node `start`. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_about)(
    const dpcal_tilt *tilt, const ptrdiff_t *blocks, ptrdiff_t n, const ptrdiff_t *late, ptrdiff_t m, double h,
    int span, int start, int stop, double *lr, double *li
) {
    const double time = h * start, scale = h * span;
    dpcal_v re[20] = {{0}}, im[20] = {{0}};
    double factorial = 1.0;
    for (ptrdiff_t i = 0; i < n + m; i += DPCAL_LANES_OF) {
        const int first = i < n;
        const ptrdiff_t j = (first ? blocks[i / DPCAL_LANES] : late[(i - n) / DPCAL_LANES]) + i % DPCAL_LANES;
        const dpcal_v x = -time * DPCAL_FROM(tilt->im, j), y = time * DPCAL_FROM(tilt->re, j);
        const dpcal_v tr = -scale * DPCAL_FROM(tilt->im, j), ti = scale * DPCAL_FROM(tilt->re, j);
        const dpcal_v wr = DPCAL_FROM(tilt->wr, j), wi = DPCAL_FROM(tilt->wi, j);
        dpcal_v a, b, pr, pi;
        if (first) {
            DPCAL_NAME(dpcal_complex_expm2)(&x, &y, &a, &b);
            re[0] += wr * a - wi * b;
            im[0] += wr * b + wi * a;
            a += x, b += y;
            const dpcal_v er = wr * a - wi * b, ei = wr * b + wi * a;
            re[1] += er * tr - ei * ti;
            im[1] += er * ti + ei * tr;
            pr = er + wr, pi = ei + wi;
        } else {
            dpcal_v second, power, size;
            DPCAL_EXPONENTIALS(x, second, power, size);
            DPCAL_NAME(dpcal_turn)(&y, &a, &b);
            pr = size * (wr * a - wi * b), pi = size * (wr * b + wi * a);
            re[0] += pr;
            im[0] += pi;
            re[1] += pr * tr - pi * ti;
            im[1] += pr * ti + pi * tr;
            (void)second;
            (void)power;
        }
        a = pr * tr - pi * ti, b = pr * ti + pi * tr;
        for (int power = 2; power < 20; power++) {
            const dpcal_v next = a * tr - b * ti;
            b = a * ti + b * tr;
            a = next;
            re[power] += a;
            im[power] += b;
        }
    }
    double sr[20], si[20];
    for (int power = 0; power < 20; power++) {
        factorial *= power > 1 ? power : 1.0;
        sr[power] = DPCAL_SUM_OF(re[power]) / factorial;
        si[power] = DPCAL_SUM_OF(im[power]) / factorial;
    }
    for (ptrdiff_t i = start; i < stop; i += DPCAL_LANES_OF) {
        const dpcal_v z = DPCAL_NUMBERS(i - start) / (double)span;
        dpcal_v c = {0}, d = {0};
        for (int power = 19; power >= 0; power--) {
            c = c * z + sr[power];
            d = d * z + si[power];
        }
        DPCAL_PUT(lr) += c;
        DPCAL_PUT(li) += d;
    }
}

/* log psi and 1 / abs(psi) at the nodes from their sums. psi - 1 = S (1 - i k h left): the rest of the mean that the
   weights leave is taken out. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_log_psi_of)(
    const dpcal_tilt *tilt, double h, int nodes, double *lr, double *li, double *inverse
) {
    for (ptrdiff_t i = 0; i < nodes; i += DPCAL_LANES_OF) {
        const dpcal_v k = DPCAL_NUMBERS(i), sr = DPCAL_AT(lr), si = DPCAL_AT(li);
        dpcal_v twice, turned, root;
        const dpcal_v left_re = -k * (h * tilt->left_im), left_im = k * (h * tilt->left_re);
        const dpcal_v a = sr * (1.0 - left_re) + si * left_im, b = si * (1.0 - left_re) - sr * left_im, whole = 1.0 + a;
        const dpcal_v square = a * a + b * b, all = whole * whole + b * b;
        const dpcal_v grown = DPCAL_CHOICE(square < 0.25, a * (2.0 + a) + b * b, all - 1.0);
        const dpcal_v sum = DPCAL_CHOICE(square < 0.25, 1.0 + grown, DPCAL_CHOICE(all > 1e-300, all, 1e-300));
        DPCAL_NAME(dpcal_log1p)(&grown, &sum, &twice);
        DPCAL_NAME(dpcal_angle)(&whole, &b, &turned);
        DPCAL_ROOT(&sum, &root);
        DPCAL_PUT(lr) = 0.5 * twice;
        DPCAL_PUT(li) = turned;
        DPCAL_PUT(inverse) = 1.0 / root;
    }
}

/* Adds the errors of a law's log psi at nodes first, ..., last - 1, in units, times its count. `low` and `high` are
   sums of dpcal_rounding_sums at the nodes `start` before and at or beyond them: all rise with t, and all but the last
   fall over t^2. Points and weights have their own errors, a direct evaluation has 4 (2 + s), each step of a recurrence
   adds 5, the sum n / 16, and points that dpcal_sort leaves out n / 256. Powers about an anchor have 52 in all, and up
   to 2.7 times the sum's. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_node_errors)(
    const double *lr, const double *li, const double *inverse, int first, int last, double start, const double *low,
    const double *high, double points, double times, double *errors
) {
    const double most = DPCAL_STRIDE + DPCAL_ANCHOR / DPCAL_STRIDE;
    for (int k = first; k < last; k++) {
        const double ratio = k / start, square = ratio * ratio, away = sqrt(lr[k] * lr[k] + li[k] * li[k]);
        const double b0 = low[0] * square < high[0] ? low[0] * square : high[0];
        const double b1 = low[1] * square < high[1] ? low[1] * square : high[1];
        const double b2 = low[2] * square < high[2] ? low[2] * square : high[2];
        const double steps = k < most ? k : most, own = 10.0 + points / (k < DPCAL_ANCHOR ? 15.0 : 6.0) + 5.0 * steps;
        errors[k] += times * (b0 + b1 * (away < 2.0 ? away : 2.0) + own * b2 + 4.0 * high[3]) * inverse[k];
    }
}

/* The sum of sizes times min(s^2 / 2, 1), s = t distance. */
DPCAL_TARGET static double DPCAL_NAME(dpcal_second_order)(
    const double *distance, const double *sizes, ptrdiff_t n, double t
) {
    dpcal_v sum = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v s = t * DPCAL_AT(distance), half = 0.5 * (s * s);
        sum += DPCAL_CHOICE(half < 1.0, half, 1.0) * DPCAL_AT(sizes);
    }
    return DPCAL_SUM_OF(sum);
}

/* The integrand at nodes, of log psi: v = exp(vr + i (vi + t offset)) / ((1 + i t / c) (1 + i t / (1 + c)))
   at all nodes but the first. `sums` gets those of abs(v), t abs(v), and errors in units. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_integrand)(
    double h, double c, double offset, int nodes, const double *errors, double *vr, double *vi, double *sums
) {
    dpcal_v sizes = {0}, times = {0}, rounding = {0};
    for (ptrdiff_t i = 0; i < nodes; i += DPCAL_LANES_OF) {
        const dpcal_v k = DPCAL_NUMBERS(i), t = h * k, phase = DPCAL_AT(vi) + t * offset, log_size = DPCAL_AT(vr);
        const dpcal_v a = t / c, b = t / (1.0 + c), pr = 1.0 - a * b, pi = a + b, square = pr * pr + pi * pi;
        const dpcal_v about = DPCAL_SIZE(phase);
        dpcal_v second, first, whole, cosine, sine, root;
        DPCAL_EXPONENTIALS(log_size, second, first, whole);
        DPCAL_NAME(dpcal_turn)(&phase, &cosine, &sine);
        DPCAL_ROOT(&square, &root);
        const dpcal_v size = DPCAL_CHOICE((k > 0.0) & (k < (double)nodes), whole / root, 0.0), scale = size / root;
        sizes += size;
        times += t * size;
        rounding += (32.0 + DPCAL_AT(errors) + DPCAL_CHOICE(about > 1e6, about, 0.0)) * size;
        DPCAL_PUT(vr) = scale * (cosine * pr + sine * pi);
        DPCAL_PUT(vi) = scale * (sine * pr - cosine * pi);
        (void)second;
        (void)first;
    }
    sums[0] = DPCAL_SUM_OF(sizes);
    sums[1] = DPCAL_SUM_OF(times);
    sums[2] = DPCAL_SUM_OF(rounding);
}

/* Sums over nodes of Re(v r^k) and of t Im(v r^k), r = exp(-i h distance): eight steps of all lanes begin at a
   factor of libm. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_rotated)(
    const double *vr, const double *vi, int nodes, double h, double distance, double *sums
) {
    const double angle = -h * distance, lanes = (double)DPCAL_LANES_OF;
    const double er = cos(angle * lanes), ei = sin(angle * lanes);
    const dpcal_v first = angle * DPCAL_NUMBERS(0);
    const int chunk = 8 * (int)DPCAL_LANES_OF;
    dpcal_v fr, fi, total = {0}, turned = {0};
    DPCAL_NAME(dpcal_turn)(&first, &fr, &fi);
    for (int start = 0; start < nodes; start += chunk) {
        const int stop = start + chunk < nodes ? start + chunk : nodes;
        const double br = cos(angle * start), bi = sin(angle * start);
        dpcal_v x = br * fr - bi * fi, y = br * fi + bi * fr;
        for (ptrdiff_t i = start; i < stop; i += DPCAL_LANES_OF) {
            const dpcal_v a = DPCAL_AT(vr), b = DPCAL_AT(vi), next = x * er - y * ei;
            total += a * x - b * y;
            turned += h * DPCAL_NUMBERS(i) * (a * y + b * x);
            y = x * ei + y * er;
            x = next;
        }
    }
    sums[0] = DPCAL_SUM_OF(total);
    sums[1] = DPCAL_SUM_OF(turned);
}
