/* The loops of law.h and inversion.h, compiled once for each width of registers: see widths.h. */

/* -- the Poisson-sampled Gaussian */

/* u = (x - 1/2) / sigma^2, and what its rounding leaves: together they are exact to 2^-100 of themselves. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_argument)(
    const dpcal_mixture *m, const dpcal_v *at, dpcal_v *out, dpcal_v *rest
) {
    const dpcal_v x = *at, d = x - 0.5, back = d - x, e = (x - (d - back)) + (-0.5 - back);
    const dpcal_v u = d * m->inverse, scaled = u * 134217729.0, uh = scaled - (scaled - u), ul = u - uh;
    const dpcal_v p = u * m->variance, error = ((uh * m->high - p) + uh * m->low + ul * m->high) + ul * m->low;
    *out = u;
    *rest = ((((d - p) - error) + e) - u * m->lost) * m->inverse;
}

/* log w at a real x, as law.h describes it; keeps the digits of w - 1. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_real_weight)(
    const dpcal_mixture *m, const dpcal_v *x, dpcal_v *re
) {
    const double q = m->q;
    dpcal_v u, rest;
    DPCAL_NAME(dpcal_argument)(m, x, &u, &rest);
    const dpcal_m far = (u > 30.0) & (u + m->log_q > 0.0);
    const dpcal_v exponent = DPCAL_CHOICE(far, -u, u);
    dpcal_v second, first, whole, value;
    DPCAL_EXPONENTIALS(exponent, second, first, whole);
    const dpcal_v a = DPCAL_CHOICE(far, m->odds * whole, q * first);
    const dpcal_m near = (a < 0.5) & (a > -0.5);
    /* Where q is near 1 and u negative, 1 + a would lose the digits of 1 - q. */
    const dpcal_v all = DPCAL_CHOICE(near | far, 1.0 + a, (1.0 - q) + q * whole);
    const dpcal_v grown = DPCAL_CHOICE(near | far, a, all - 1.0);
    DPCAL_NAME(dpcal_log1p)(&grown, &all, &value);
    /* The derivative is q exp(u) / w. */
    rest *= DPCAL_CHOICE(far, 1.0, q * whole) / all;
    *re = DPCAL_CHOICE(far, u + m->log_q, 0.0) + (value + rest);
    (void)second;
}

/* log abs(w) on a line x + i angle sigma^2, and the argument of w in [0, pi]. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_weight)(
    const dpcal_mixture *m, const dpcal_angle *line, const dpcal_v *x, dpcal_v *re, dpcal_v *im
) {
    const double q = m->q, cosine = line->cosine, sine = line->sine, sunk = 2.0 * line->half * line->half;
    dpcal_v u, rest;
    DPCAL_NAME(dpcal_argument)(m, x, &u, &rest);
    const dpcal_m far = (u > 30.0) & (u + m->log_q > 0.0);
    const dpcal_v exponent = DPCAL_CHOICE(far, -u, u);
    dpcal_v second, first, power, value, turned;
    DPCAL_EXPONENTIALS(exponent, second, first, power);
    const dpcal_v left = m->odds * power;
    const dpcal_v a = DPCAL_CHOICE(far, left * cosine, q * (first * cosine - sunk));
    const dpcal_v b = DPCAL_CHOICE(far, -left * sine, q * power * sine);
    const dpcal_v whole = DPCAL_CHOICE(far, 1.0 + a, (1.0 - q) + q * power * cosine);
    const dpcal_m near = a * a + b * b < 0.09;
    dpcal_v grown = a * (2.0 + a) + b * b;
    const dpcal_v all = DPCAL_CHOICE(near, 1.0 + grown, whole * whole + b * b);
    grown = DPCAL_CHOICE(near, grown, all - 1.0);
    DPCAL_NAME(dpcal_log1p)(&grown, &all, &value);
    DPCAL_NAME(dpcal_angle)(&whole, &b, &turned);
    turned += DPCAL_CHOICE(far, line->angle, 0.0);
    /* The derivative is q exp(u + i angle) / w. */
    const dpcal_v pr = DPCAL_CHOICE(far, 1.0, q * power * cosine);
    const dpcal_v pi = DPCAL_CHOICE(far, 0.0, q * power * sine);
    rest = rest / all;
    turned += rest * (pi * whole - pr * b);
    *re = DPCAL_CHOICE(far, u + m->log_q, 0.0) + (0.5 * value + rest * (pr * whole + pi * b));
    *im = DPCAL_CHOICE(turned > 0.0, turned, 0.0);
    (void)second;
}

/* log w at n points x + i angle sigma^2, n a multiple of 8; its argument is left out for an angle of 0. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_weights)(
    const dpcal_law *law, dpcal_angle line, const double *points, ptrdiff_t n, double *re, double *im
) {
    const dpcal_mixture m = dpcal_mixture_of(law);
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v x = DPCAL_AT(points);
        dpcal_v value, turned;
        if (line.angle == 0.0) {
            DPCAL_NAME(dpcal_real_weight)(&m, &x, &value);
        } else {
            DPCAL_NAME(dpcal_weight)(&m, &line, &x, &value, &turned);
            DPCAL_PUT(im) = turned;
        }
        DPCAL_PUT(re) = value;
    }
}

/* Points x + i angle sigma^2 with weights density w^p share / mass, in rows of n numbers: x and the log of the share; then
   log w, weights, the sizes of terms of their logarithms, and how the points count, also in the variance, as logarithms.
   `at` holds the log of the mass, the mean and the variance of log w, and the density's largest logarithm. SciPy's
   logarithms of complex shares are off by up to 24 units where a share is next to 1, elsewhere by 2 of their sizes. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_tilted_line)(
    const dpcal_law *law, dpcal_angle line, double p, const double *at, ptrdiff_t n, double *rows
) {
    const dpcal_mixture m = dpcal_mixture_of(law);
    const double log_mass = at[0], mean = at[1], variance = at[2], scale = at[3];
    const double power = fabs(p), shift = line.angle, sigma = law->sigma;
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v x = DPCAL_AT(rows), scaled = x / sigma, u = (x - 0.5) * m.inverse;
        dpcal_v re, im, grown, all, value, cosine, sine, second, first, weight, length, turned, far;
        DPCAL_NAME(dpcal_weight)(&m, &line, &x, &re, &im);
        const dpcal_v size = ((scale - 0.5 * (scaled * scaled)) + p * re - log_mass) + DPCAL_AT(rows + n);
        const dpcal_v phase = p * im - shift * x + DPCAL_AT(rows + 2 * n), away = re - mean;
        grown = (away * away + im * im) / variance;
        all = 1.0 + grown;
        DPCAL_NAME(dpcal_log1p)(&grown, &all, &value);
        DPCAL_NAME(dpcal_turn)(&phase, &cosine, &sine);
        DPCAL_EXPONENTIALS(size, second, first, weight);
        weight = DPCAL_CHOICE(size > DPCAL_NO_MASS, weight, 0.0);
        DPCAL_PUT(rows + 3 * n) = re;
        DPCAL_PUT(rows + 4 * n) = im;
        DPCAL_PUT(rows + 5 * n) = weight * cosine;
        DPCAL_PUT(rows + 6 * n) = weight * sine;
        DPCAL_PUT(rows + 8 * n) = size + value;
        const dpcal_v square = re * re + im * im, argument = u * u + shift * shift, known = m.log_q + (u - re);
        DPCAL_ROOT(&square, &length);
        DPCAL_ROOT(&argument, &turned);
        value = DPCAL_CHOICE(known < 0.0, known, 0.0);
        DPCAL_EXPONENTIALS(value, second, first, weight);
        const dpcal_v share = DPCAL_SIZE(DPCAL_AT(rows + n)) + DPCAL_SIZE(DPCAL_AT(rows + 2 * n));
        /* Of small weights the density's logarithm counts by itself. */
        far = DPCAL_CHOICE(size < -8.0, -8.0 - size, 0.0) + DPCAL_SIZE(size);
        DPCAL_PUT(rows + 7 * n) = 2.0 * (power * length + fabs(log_mass)) + far + power * (turned * weight)
            + 4.0 * share + DPCAL_CHOICE(share > 1e-10, 24.0, 0.0);
        (void)second;
        (void)first;
    }
}

/* Absolute errors of losses in units. On the real line that of w - 1 is 2 units of its size, and on a shifted one 3.5,
   before it is divided by w; logarithms and angles have 2, the sums with what u leaves 1, and log q 1.5 where it is a
   term. Sizes below `edge` have abs(w - 1) < 1/2, or 0.3 on a shifted line, where no digit of w - 1 is lost. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_loss_error)(
    const dpcal_mixture *m, const dpcal_v *sizes, const dpcal_v *x, int shifted, dpcal_v *out
) {
    const double edge = shifted ? 0.26 : 0.4, relative = shifted ? 9.0 : 5.0, most = shifted ? 6.5 : 3.0;
    const dpcal_v size = *sizes, u = (*x - 0.5) * m->inverse;
    *out = DPCAL_CHOICE(size < edge, relative * size, most + 1.5 * size)
        + DPCAL_CHOICE(u > 29.9, 1.5 * fabs(m->log_q), 0.0);
}

/* log_w - x^2 / (2 sigma^2) at x = n step, and what its rounding leaves: the square is exact to 2^-75 of itself. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_exponent)(
    const dpcal_mixture *m, const dpcal_v *n, const dpcal_v *log_w, dpcal_v *out, dpcal_v *rest
) {
    const dpcal_v square = *n * *n, high = square * m->square, a = *log_w - high, back = a - *log_w;
    const dpcal_v b = ((*log_w - (a - back)) + (-high - back)) - square * m->below, sum = a + b;
    *out = sum;
    *rest = b - (sum - a);
}

/* The sum of a constant and what dpcal_exponent gives, rounded once. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_log_density)(
    double constant, const dpcal_v *exponent, const dpcal_v *rest, dpcal_v *out
) {
    const dpcal_v sum = constant + *exponent, back = sum - *exponent;
    *out = sum + (((*exponent - (sum - back)) + (constant - back)) + *rest);
}

/* All points on the real line; returns how many masses are 0. */
DPCAL_TARGET static double DPCAL_NAME(dpcal_real_points)(dpcal_law *law) {
    const dpcal_mixture m = dpcal_mixture_of(law);
    const double step = law->step, scale = step / (law->sigma * sqrt(2.0 * DPCAL_PI)), constant = log(scale);
    const double sign = law->add ? -1.0 : 1.0, start = law->first;
    const double shared = law->add ? 0.0 : 1.0; /* whether P is the mixture */
    double *loss = law->loss, *log_masses = law->log_mass, *masses = law->mass, *error = law->error;
    double *slope = law->slope;
    const ptrdiff_t points = law->n;
    dpcal_v far = {0};
    for (ptrdiff_t i = 0; i < points; i += DPCAL_LANES_OF) {
        const dpcal_v n = start + DPCAL_NUMBERS(i), x = step * n;
        dpcal_v log_w, exponent, rest, log_mass, moved, second, first, mass;
        DPCAL_NAME(dpcal_real_weight)(&m, &x, &log_w);
        const dpcal_v size = DPCAL_SIZE(log_w), part = shared * log_w;
        DPCAL_NAME(dpcal_exponent)(&m, &n, &part, &exponent, &rest);
        DPCAL_NAME(dpcal_loss_error)(&m, &size, &x, 0, &moved);
        DPCAL_EXPONENTIALS(exponent, second, first, mass);
        DPCAL_NAME(dpcal_log_density)(constant, &exponent, &rest, &log_mass);
        mass = DPCAL_CHOICE(log_mass > DPCAL_NO_MASS, scale * (mass + mass * rest), 0.0);
        far += DPCAL_CHOICE(mass > 0.0, 0.0, 1.0);
        DPCAL_PUT(loss) = sign * log_w;
        DPCAL_PUT(log_masses) = log_mass;
        DPCAL_PUT(masses) = mass;
        /* Of the mass, its scale, exp(c l) - 1 - c l, whose argument is a product, and the terms. Where log P is used,
           its rounding and the constant's come to it. */
        DPCAL_PUT(error) = 11.0 + 2.0 * DPCAL_CHOICE(size > 0.0, moved / size, 0.0) + shared * moved;
        DPCAL_PUT(slope) = moved + 0.5 * size;
        (void)second;
        (void)first;
    }
    return DPCAL_SUM_OF(far);
}

/* Real parts of the losses on a line, at all points. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_edge)(const dpcal_law *law, dpcal_angle line, double *re) {
    const dpcal_mixture m = dpcal_mixture_of(law);
    const double sign = law->add ? -1.0 : 1.0, step = law->step, start = law->first;
    const ptrdiff_t points = law->n;
    for (ptrdiff_t i = 0; i < points; i += DPCAL_LANES_OF) {
        const dpcal_v x = step * (start + DPCAL_NUMBERS(i));
        dpcal_v value, turned;
        DPCAL_NAME(dpcal_weight)(&m, &line, &x, &value, &turned);
        DPCAL_PUT(re) = sign * value;
    }
}

/* A shifted line from a point on. exp(i t l) falls: P and l are those above the real line when removing, below it when
   adding. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_line_points)(
    const dpcal_law *law, dpcal_angle line, ptrdiff_t from, const dpcal_line *filled
) {
    const dpcal_mixture m = dpcal_mixture_of(law);
    const dpcal_line out = *filled;
    const double step = law->step, start = law->first, shift = line.angle * law->sigma;
    const double constant = log(step / (law->sigma * sqrt(2.0 * DPCAL_PI))) + 0.5 * shift * shift;
    const double shared = law->add ? 0.0 : 1.0, sign = law->add ? -1.0 : 1.0;
    for (ptrdiff_t i = 0; i < out.n; i += DPCAL_LANES_OF) {
        const dpcal_v n = start + DPCAL_NUMBERS(from + i), x = step * n, turned = line.angle * x;
        dpcal_v re, im, exponent, rest, log_size, moved;
        DPCAL_NAME(dpcal_weight)(&m, &line, &x, &re, &im);
        const dpcal_v size = DPCAL_SIZE(re) + im, part = shared * re;
        DPCAL_NAME(dpcal_exponent)(&m, &n, &part, &exponent, &rest);
        DPCAL_NAME(dpcal_log_density)(constant, &exponent, &rest, &log_size);
        const dpcal_v all = DPCAL_SIZE(log_size);
        DPCAL_NAME(dpcal_loss_error)(&m, &size, &x, 1, &moved);
        DPCAL_PUT(out.re) = sign * re;
        DPCAL_PUT(out.im) = im;
        DPCAL_PUT(out.size) = log_size;
        DPCAL_PUT(out.phase) = shared * im - sign * turned;
        DPCAL_PUT(out.error) = moved;
        /* The constant's own, one rounding of the sum, and those of the phase. */
        DPCAL_PUT(out.rounding) = 6.0 + 1.5 * fabs(constant) + 0.5 * all
            + DPCAL_SIZE(turned) + shared * (0.5 * im + moved);
    }
}

/* -- sums */

/* Sums over points of P (exp(a) - 1 - a), P l (exp(a) - 1) and P exp(a), a = c l < far, of the errors of the
   first two in units, and the weights P exp(a). Points with a >= far are left out and get weight 0. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_moment_sums)(
    const double *loss, const double *mass, const double *error, const double *slope, ptrdiff_t n, double c,
    double growth, double far, double *weights, double *sums
) {
    dpcal_v s0 = {0}, s1 = {0}, total = {0}, e0 = {0}, e1 = {0};
    /* Sums of 64 first, so that rounding grows with n / 128. */
    for (ptrdiff_t start = 0; start < n; start += 64) {
        dpcal_v p0 = {0}, p1 = {0}, p2 = {0}, p3 = {0}, p4 = {0};
        const ptrdiff_t stop = start + 64 < n ? start + 64 : n;
        for (ptrdiff_t i = start; i < stop; i += DPCAL_LANES_OF) {
            const dpcal_v l = DPCAL_AT(loss), product = c * l;
            const dpcal_v b = DPCAL_CHOICE(product < far, DPCAL_AT(mass), 0.0);
            const dpcal_v a = DPCAL_CHOICE(product < far, product, 0.0);
            const dpcal_v units = DPCAL_AT(error) + DPCAL_CHOICE(product > 0.0, growth * DPCAL_AT(slope), 0.0);
            dpcal_v x, y, z;
            DPCAL_EXPONENTIALS(a, x, y, z);
            const dpcal_v second = b * x, first = b * (l * y), weight = b * z;
            p0 += second;
            p1 += first;
            p2 += weight;
            p3 += second * units;
            p4 += first * units;
            *(dpcal_v *)(weights + i) = weight;
        }
        s0 += p0;
        s1 += p1;
        total += p2;
        e0 += p3;
        e1 += p4;
    }
    sums[0] = DPCAL_SUM_OF(s0);
    sums[1] = DPCAL_SUM_OF(s1);
    sums[2] = DPCAL_SUM_OF(total);
    sums[3] = DPCAL_SUM_OF(e0);
    sums[4] = DPCAL_SUM_OF(e1);
}

/* Sums of sizes exp(-t decay) and of these terms times the decay, t decay >= 0. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_decayed_sums)(
    const double *sizes, const double *decay, ptrdiff_t n, double t, double *sums
) {
    dpcal_v s0 = {0}, s1 = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v d = DPCAL_AT(decay), a = -t * d;
        dpcal_v x, y, z;
        DPCAL_EXPONENTIALS(a, x, y, z);
        const dpcal_v left = DPCAL_AT(sizes) * z;
        s0 += left;
        s1 += left * d;
        (void)x;
        (void)y;
    }
    sums[0] = DPCAL_SUM_OF(s0);
    sums[1] = DPCAL_SUM_OF(s1);
}

/* What the rounding of a characteristic function at time t adds up from, with s = t distance: the sums of
   min(s^2 / 2, 2) errors + t min(s, 2) shifts; of min(s, 2) errors; of min(s^2 / 2, 2 + s, caps) sizes; and of
   (2 + s) sizes where s > 1/2. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_rounding_sums)(
    const double *distance, const double *sizes, const double *errors, const double *shifts, const double *caps,
    ptrdiff_t n, double t, double *sums
) {
    dpcal_v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v s = t * DPCAL_AT(distance), half = 0.5 * (s * s), error = DPCAL_AT(errors);
        const dpcal_v size = DPCAL_AT(sizes), first = DPCAL_CHOICE(s < 2.0, s, 2.0);
        const dpcal_v grown = 2.0 + s, most = DPCAL_CHOICE(DPCAL_AT(caps) < grown, DPCAL_AT(caps), grown);
        s0 += DPCAL_CHOICE(half < 2.0, half, 2.0) * error + t * first * DPCAL_AT(shifts);
        s1 += first * error;
        s2 += DPCAL_CHOICE(half < most, half, most) * size;
        s3 += DPCAL_CHOICE(s > 0.5, grown, 0.0) * size;
    }
    sums[0] = DPCAL_SUM_OF(s0);
    sums[1] = DPCAL_SUM_OF(s1);
    sums[2] = DPCAL_SUM_OF(s2);
    sums[3] = DPCAL_SUM_OF(s3);
}
