/* The loops of law.h and contour.h, which law.h compiles once for each width of registers: DPCAL_TARGET, DPCAL_NAME. */

/* -- functions */

/* log(1 + x), x > -1, to 2 units; `grown` is 1 + x, of which only one need have all digits far from 0. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_log1p)(const dpcal_v *x, const dpcal_v *grown, dpcal_v *out) {
    dpcal_v k, m;
    DPCAL_PARTS(*grown, k, m);
    const dpcal_v f = DPCAL_CHOICE(k == 0.0, *x, m - 1.0), s = f / (2.0 + f), z = s * s, u = z * z;
    /* f - s (f - 2 s^2 / 3 - ...), abs(s) < 0.1716: the next term is below 1e-18 of f. */
    const dpcal_v even = (2.0 / 3 + u * (2.0 / 7)) + u * u * ((2.0 / 11 + u * (2.0 / 15)) + u * u * (2.0 / 19));
    const dpcal_v odd = (2.0 / 5 + u * (2.0 / 9)) + u * u * ((2.0 / 13 + u * (2.0 / 17)) + u * u * (2.0 / 21));
    *out = k * 6.93147180369123816490e-01 + (k * 1.90821492927058770002e-10 + (f - s * (f - z * (even + z * odd))));
}

/* cos(x) and sin(x) to 1 unit, absolute, abs(x) < 1e6; beyond, abs(x) adds a unit. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_turn)(const dpcal_v *x, dpcal_v *cosine, dpcal_v *sine) {
    const dpcal_v shifted = *x * 0.6366197723675814 + 6755399441055744.0, k = shifted - 6755399441055744.0;
    const dpcal_v r = ((*x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11)
        - k * 2.02226624879595063154e-21;
    const dpcal_v t = r * r, u = t * t;
    const dpcal_v s = r + r * t * (((-1.0 / 6 + t * (1.0 / 120)) + u * (-1.0 / 5040 + t * (1.0 / 362880)))
        + u * u * ((-1.0 / 39916800 + t * (1.0 / 6227020800.0)) + u * (-1.0 / 1307674368000.0)));
    const dpcal_v c = 1.0 + t * (((-1.0 / 2 + t * (1.0 / 24)) + u * (-1.0 / 720 + t * (1.0 / 40320)))
        + u * u * ((-1.0 / 3628800 + t * (1.0 / 479001600))
            + u * (-1.0 / 87178291200.0 + t * (1.0 / 20922789888000.0))));
    const dpcal_m odd = DPCAL_HAS_BIT(shifted, 1);
    const dpcal_v along = DPCAL_CHOICE(odd, s, c), across = DPCAL_CHOICE(odd, c, s);
    *cosine = DPCAL_CHOICE(DPCAL_HAS_BIT(shifted + 1.0, 2), -along, along);
    *sine = DPCAL_CHOICE(DPCAL_HAS_BIT(shifted, 2), -across, across);
}

/* The angle of x + i y in [-pi, pi], to 2 units. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_angle)(const dpcal_v *x, const dpcal_v *y, dpcal_v *out) {
    const dpcal_v a = DPCAL_SIZE(*x), b = DPCAL_SIZE(*y);
    const dpcal_v most = DPCAL_CHOICE(a < b, b, a), least = DPCAL_CHOICE(a < b, a, b);
    const dpcal_m steep = least > most * 0.41421356237309503;
    const dpcal_v below = DPCAL_CHOICE(steep, most + least, most), above = DPCAL_CHOICE(steep, least - most, least);
    const dpcal_v t = above / DPCAL_CHOICE(below > 0.0, below, 1.0), z = t * t, u = z * z, v = u * u;
    /* arctan(t), abs(t) < 0.4143: the next term is below 1e-17 of the first. */
    const dpcal_v first = ((1.0 / 3 - z * (1.0 / 5)) + u * (1.0 / 7 - z * (1.0 / 9)))
        + v * ((1.0 / 11 - z * (1.0 / 13)) + u * (1.0 / 15 - z * (1.0 / 17)));
    const dpcal_v second = ((1.0 / 19 - z * (1.0 / 21)) + u * (1.0 / 23 - z * (1.0 / 25)))
        + v * ((1.0 / 27 - z * (1.0 / 29)) + u * (1.0 / 31 - z * (1.0 / 33)) + v * (1.0 / 35 - z * (1.0 / 37)));
    dpcal_v angle = DPCAL_CHOICE(steep, 0.7853981633974483, 0.0) + (t - t * z * (first + v * v * second));
    angle = DPCAL_CHOICE(a < b, 1.5707963267948966 - angle, angle);
    angle = DPCAL_CHOICE(*x < 0.0, 3.141592653589793 - angle, angle);
    *out = DPCAL_CHOICE(*y < 0.0, -angle, angle);
}

/* Weights exp(log_base + p ell - largest), their sum times ell and their sum. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_scaled_sums)(
    const double *ell, const double *log_base, ptrdiff_t n, double p, double largest, double *weights,
    double *sums
) {
    dpcal_v s1 = {0}, total = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v l = DPCAL_AT(ell), d = (DPCAL_AT(log_base) + p * l) - largest;
        dpcal_v w;
        DPCAL_EXPONENTIAL(d, w);
        w = DPCAL_CHOICE(d > -700.0, w, 0.0);
        total += w;
        s1 += w * l;
        DPCAL_PUT(weights) = w;
    }
    sums[1] = DPCAL_SUM_OF(s1);
    sums[2] = DPCAL_SUM_OF(total);
}

/* Sums of weights times the second and fourth powers of ell - mean. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_central_sums)(
    const double *ell, const double *weights, ptrdiff_t n, double mean, double *sums
) {
    dpcal_v s2 = {0}, s4 = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v d = DPCAL_AT(ell) - mean, square = d * d, term = DPCAL_AT(weights) * square;
        s2 += term;
        s4 += term * square;
    }
    sums[0] = DPCAL_SUM_OF(s2);
    sums[1] = DPCAL_SUM_OF(s4);
}

/* -- the Poisson-sampled Gaussian */

/* log w at u + i angle, u = (x - 1/2) / sigma^2: its real part, its argument in [0, pi], and the size of its derivative.
   Keeps the digits of w - 1. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_weight)(
    const dpcal_law *law, const dpcal_angle *line, const dpcal_v *at, dpcal_v *re, dpcal_v *im, dpcal_v *slope
) {
    const double q = law->q, cosine = line->cosine, sine = line->sine, sunk = 2.0 * line->half * line->half;
    const dpcal_v u = *at;
    const dpcal_m far = (u > 30.0) & (u + law->log_q > 0.0);
    const dpcal_v exponent = DPCAL_CHOICE(far, -u, u);
    dpcal_v second, first, power, value, turned, root;
    DPCAL_EXPONENTIALS(exponent, second, first, power);
    const dpcal_v left = law->odds * power;
    const dpcal_v a = DPCAL_CHOICE(far, left * cosine, q * (first * cosine - sunk));
    const dpcal_v b = DPCAL_CHOICE(far, -left * sine, q * power * sine);
    /* Where q is near 1 and u negative, 1 + a would lose the digits of 1 - q. */
    const dpcal_v whole = DPCAL_CHOICE(far, 1.0 + a, (1.0 - q) + q * power * cosine);
    const dpcal_m near = a * a + b * b < 0.09;
    dpcal_v grown = a * (2.0 + a) + b * b;
    const dpcal_v all = DPCAL_CHOICE(near, 1.0 + grown, whole * whole + b * b);
    grown = DPCAL_CHOICE(near, grown, all - 1.0);
    DPCAL_NAME(dpcal_log1p)(&grown, &all, &value);
    DPCAL_NAME(dpcal_angle)(&whole, &b, &turned);
    DPCAL_ROOT(&all, &root);
    turned += DPCAL_CHOICE(far, line->angle, 0.0);
    *re = DPCAL_CHOICE(far, u + law->log_q, 0.0) + 0.5 * value;
    *im = DPCAL_CHOICE(turned > 0.0, turned, 0.0);
    *slope = DPCAL_CHOICE(far, 1.0, q * power) / root;
    (void)second;
}

/* log w at n points x + i angle sigma^2, n a multiple of 8; `re` may be the points. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_weights)(
    const dpcal_law *law, double angle, const double *points, ptrdiff_t n, double *re, double *im
) {
    const dpcal_angle line = dpcal_angle_of(angle);
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v u = (DPCAL_AT(points) - 0.5) * law->inverse;
        dpcal_v value, turned, slope;
        DPCAL_NAME(dpcal_weight)(law, &line, &u, &value, &turned, &slope);
        DPCAL_PUT(re) = value;
        DPCAL_PUT(im) = turned;
    }
}

/* A line, shifted but for an angle of 0. exp(i t l) falls: P and l are those above the real line when removing, below it when
   adding. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_line_points)(const dpcal_law *law, double angle) {
    const dpcal_angle line = dpcal_angle_of(angle);
    const dpcal_line out = law->line;
    const double step = law->step, start = law->first, shift = angle * law->sigma, inverse = law->inverse;
    const double constant = log(step / (law->sigma * sqrt(2.0 * DPCAL_PI))) + 0.5 * shift * shift;
    const double shared = law->add ? 0.0 : 1.0, sign = law->add ? -1.0 : 1.0;
    for (ptrdiff_t i = 0; i < out.n; i += DPCAL_LANES_OF) {
        const dpcal_v x = step * (start + DPCAL_NUMBERS(i)), turned = angle * x, u = (x - 0.5) * inverse;
        dpcal_v re, im, share;
        DPCAL_NAME(dpcal_weight)(law, &line, &u, &re, &im, &share);
        const dpcal_v size = DPCAL_SIZE(re) + im, square = 0.5 * inverse * (x * x), exponent = shared * re - square;
        const dpcal_v log_size = constant + exponent;
        /* w - 1 has 3.5 units of its size, before it is divided by w; logarithms and angles have 2; log q 1.5 where it is a
           term; and u has 2 of its size, which the derivative multiplies. Sizes below 0.26 have abs(w - 1) < 0.3, where no
           digit of w - 1 is lost. */
        const dpcal_v moved = DPCAL_CHOICE(size < 0.26, 9.0 * size, 6.5 + 1.5 * size)
            + DPCAL_CHOICE(u > 29.9, 1.5 * fabs(law->log_q), 0.0) + 2.5 * DPCAL_SIZE(u) * share;
        DPCAL_PUT(out.re) = sign * re;
        DPCAL_PUT(out.im) = im;
        DPCAL_PUT(out.size) = log_size;
        DPCAL_PUT(out.phase) = shared * im - sign * turned;
        DPCAL_PUT(out.error) = moved;
        /* The constant's own, the square's, one rounding of each sum, and those of the phase. */
        DPCAL_PUT(out.rounding) = 6.0 + 1.5 * fabs(constant) + 2.5 * square + 0.5 * DPCAL_SIZE(exponent)
            + 0.5 * DPCAL_SIZE(log_size) + DPCAL_SIZE(turned) + shared * (0.5 * im + moved);
    }
}

/* -- sums */

/* Sums over points of P (exp(a) - 1 - a), P l (exp(a) - 1) and P exp(a), a = c l < DPCAL_FAR, of the
   errors of the first two in units, and the weights P exp(a). Points beyond are left out and get weight 0. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_moment_sums)(
    const dpcal_law *law, double c, double growth, double *weights, double *sums
) {
    const ptrdiff_t n = law->n;
    dpcal_v totals[5] = {{0}};
    /* Sums of 64 first, so that rounding grows with n / 128. */
    for (ptrdiff_t start = 0; start < n; start += 64) {
        dpcal_v parts[5] = {{0}};
        const ptrdiff_t stop = start + 64 < n ? start + 64 : n;
        for (ptrdiff_t i = start; i < stop; i += DPCAL_LANES_OF) {
            const dpcal_v l = DPCAL_AT(law->loss), product = c * l;
            const dpcal_v b = DPCAL_CHOICE(product < DPCAL_FAR, DPCAL_AT(law->mass), 0.0);
            const dpcal_v a = DPCAL_CHOICE(product < DPCAL_FAR, product, 0.0);
            const dpcal_v units = DPCAL_AT(law->error) + DPCAL_CHOICE(product > 0.0, growth * DPCAL_AT(law->slope), 0.0);
            dpcal_v x, y, z;
            DPCAL_EXPONENTIALS(a, x, y, z);
            const dpcal_v second = b * x, first = b * (l * y), weight = b * z;
            parts[0] += second;
            parts[1] += first;
            parts[2] += weight;
            parts[3] += second * units;
            parts[4] += DPCAL_SIZE(first) * units;
            DPCAL_PUT(weights) = weight;
        }
        for (int j = 0; j < 5; j++)
            totals[j] += parts[j];
    }
    for (int j = 0; j < 5; j++)
        sums[j] = DPCAL_SUM_OF(totals[j]);
}

/* The sum of sizes exp(-t decay), t decay >= 0. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_decayed_sum)(
    const double *sizes, const double *decay, ptrdiff_t n, double t, double *sum
) {
    dpcal_v s0 = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v a = -t * DPCAL_AT(decay);
        dpcal_v z;
        DPCAL_EXPONENTIAL(a, z);
        s0 += DPCAL_AT(sizes) * z;
    }
    *sum = DPCAL_SUM_OF(s0);
}

/* What the rounding of a characteristic function at node k adds up from, with t = k h and s = t distance. About the mean, the
   sums of min(s^2 / 2, 2) errors + t min(s, 2) shifts; of min(s, 2) errors; of min(s^2 / 2, 2 + s) sizes, or of 4 sizes
   where a step turns by more than 1/2: the recurrence then adds 20 units to a term of size 1, else 5 to all terms; and of
   (2 + s) sizes where s > 1/2. About another center, where terms are at most min(s, 2), the sums of min(s, 2) errors + t
   shifts; nothing; the third with min(s, 2) sizes; and the fourth with 4 sizes. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_rounding_sums)(const dpcal_tilt *tilt, double h, double k, double *sums) {
    const double t = k * h;
    const dpcal_m mean = DPCAL_ALL(tilt->about_mean);
    dpcal_v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (ptrdiff_t i = 0; i < tilt->n; i += DPCAL_LANES_OF) {
        const dpcal_v turn = h * DPCAL_AT(tilt->distance), s = k * turn, first = DPCAL_CHOICE(s < 2.0, s, 2.0);
        const dpcal_v size = DPCAL_AT(tilt->size), error = DPCAL_AT(tilt->error), shift = DPCAL_AT(tilt->shift);
        const dpcal_v half = DPCAL_CHOICE(mean, 0.5 * (s * s), s), grown = DPCAL_CHOICE(mean, 2.0 + s, 4.0);
        const dpcal_v least = DPCAL_CHOICE(mean, DPCAL_CHOICE(half < grown, half, grown), first);
        s0 += DPCAL_CHOICE(half < first, half, first) * error + t * (DPCAL_CHOICE(mean, first, 1.0) * shift);
        s1 += first * error;
        s2 += DPCAL_CHOICE(turn > 0.5, 4.0, least) * size;
        s3 += DPCAL_CHOICE(s > 0.5, grown, 0.0) * size;
    }
    sums[0] = DPCAL_SUM_OF(s0) + (tilt->about_mean ? 0.0 : t * tilt->merged);
    sums[1] = tilt->about_mean ? DPCAL_SUM_OF(s1) : 0.0;
    sums[2] = DPCAL_SUM_OF(s2);
    sums[3] = DPCAL_SUM_OF(s3);
}

/* -- a line along Re z = c */

/* Points less the center, complex weights, their errors in units and distances, from a line's own; `size` holds the
   weights' magnitudes. Returns the sum of weights times points in `left`. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_tilted_points)(
    const dpcal_line *line, ptrdiff_t from, double c, const dpcal_moments *at, dpcal_tilt *tilt
) {
    const double *re = line->re + from, *im = line->im + from, *phase = line->phase + from;
    const double *log_size = line->size + from, *error = line->error + from, *rounding = line->rounding + from;
    const double power = fabs(c);
    dpcal_v left_re = {0}, left_im = {0};
    for (ptrdiff_t i = 0; i < tilt->n; i += DPCAL_LANES_OF) {
        const dpcal_v x = DPCAL_AT(re) - tilt->center, y = DPCAL_AT(im), size = DPCAL_AT(tilt->size);
        const dpcal_v grown = c * DPCAL_AT(re);
        const dpcal_v turned = DPCAL_AT(phase) + c * y, square = x * x + y * y;
        const dpcal_v sum = DPCAL_AT(log_size) + grown, all = sum - at->log_mass;
        const dpcal_v lengths = DPCAL_SIZE(grown) + DPCAL_SIZE(sum) + DPCAL_SIZE(all) + power * y + DPCAL_SIZE(turned);
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
        DPCAL_PUT(tilt->error) = size * (8.0 + DPCAL_AT(rounding) + power * DPCAL_AT(error) + at->error + 0.5 * lengths);
        DPCAL_PUT(tilt->shift) = size * (DPCAL_AT(error) + distance);
        left_re += wr * x - wi * y;
        left_im += wr * y + wi * x;
    }
    tilt->left_re = DPCAL_SUM_OF(left_re);
    tilt->left_im = DPCAL_SUM_OF(left_im);
}

/* -- nodes */

/* exp(z) - 1 - z and exp(z) - 1 at z = x + i y, x <= 0, to 5 units of abs(z)^2 / 2 and of abs(z) where abs(z) <= 1/2,
   else to 16 units, and abs(z) / 2 more of the first. */
DPCAL_TARGET static inline void DPCAL_NAME(dpcal_complex_expm2)(
    const dpcal_v *at, const dpcal_v *y_, dpcal_v *out, dpcal_v *grown
) {
    const dpcal_v x = *at, y = *y_, half = 0.5 * y, t = y * y;
    dpcal_v second, first, whole, cosine, sine;
    DPCAL_EXPONENTIALS(x, second, first, whole);
    DPCAL_NAME(dpcal_turn)(&half, &cosine, &sine);
    const dpcal_v turned = 2.0 * sine * cosine, sunk = whole * (2.0 * sine * sine);
    /* sin(y) - y */
    const dpcal_v cubic = y * t * ((-1.0 / 6 + t * (1.0 / 120)) + t * t * ((-1.0 / 5040 + t * (1.0 / 362880))
        + t * t * (-1.0 / 39916800 + t * (1.0 / 6227020800.0))));
    out[0] = second - sunk;
    out[1] = first * turned + DPCAL_CHOICE(t < 0.36, cubic, turned - y);
    grown[0] = first - sunk;
    grown[1] = whole * turned;
}

/* A recurrence for terms of a law at multiples of a time h: w (exp(i s) - 1 - i s), or about another center than the mean w
   (exp(i s) - 1); and w exp(i s) where a step turns by more than 1/2. `left` gets what these leave out, sums of w and of w l
   (which is no more than the mean's). Rows of state, factor, constant and slope of the
   increment, real and imaginary parts apart. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_recurrence)(
    const dpcal_tilt *tilt, double h, double *table, double *left
) {
    const ptrdiff_t n = tilt->n;
    const dpcal_m mean = DPCAL_ALL(tilt->about_mean);
    dpcal_v sums[4] = {{0}};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v re = DPCAL_AT(tilt->re), im = DPCAL_AT(tilt->im), x = -h * im, y = h * re;
        const dpcal_v wr = DPCAL_AT(tilt->wr), wi = DPCAL_AT(tilt->wi);
        const dpcal_m far = h * DPCAL_AT(tilt->distance) > 0.5;
        const dpcal_v fr = DPCAL_CHOICE(far, wr, 0.0), fi = DPCAL_CHOICE(far, wi, 0.0), nr = wr - fr, ni = wi - fi;
        dpcal_v a[2], e[2];
        DPCAL_NAME(dpcal_complex_expm2)(&x, &y, a, e);
        /* i theta (exp(i theta) - 1) */
        const dpcal_v dr = DPCAL_CHOICE(mean, x * e[0] - y * e[1], 0.0), di = DPCAL_CHOICE(mean, x * e[1] + y * e[0], 0.0);
        a[0] = DPCAL_CHOICE(mean, a[0], e[0]), a[1] = DPCAL_CHOICE(mean, a[1], e[1]);
        DPCAL_PUT(table + 2 * n) = 1.0 + e[0];
        DPCAL_PUT(table + 3 * n) = e[1];
        DPCAL_PUT(table + 4 * n) = nr * a[0] - ni * a[1];
        DPCAL_PUT(table + 5 * n) = nr * a[1] + ni * a[0];
        DPCAL_PUT(table + 6 * n) = nr * dr - ni * di;
        DPCAL_PUT(table + 7 * n) = nr * di + ni * dr;
        sums[0] += fr;
        sums[1] += fi;
        sums[2] += fr * re - fi * im;
        sums[3] += fr * im + fi * re;
    }
    for (int i = 0; i < (tilt->about_mean ? 4 : 2); i++)
        left[i] += DPCAL_SUM_OF(sums[i]);
}

/* The states of a recurrence at a time, without the recurrence. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_anew)(const dpcal_tilt *tilt, double h, double time, double *table) {
    const ptrdiff_t n = tilt->n;
    const dpcal_m mean = DPCAL_ALL(tilt->about_mean);
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v x = -time * DPCAL_AT(tilt->im), y = time * DPCAL_AT(tilt->re);
        const dpcal_v wr = DPCAL_AT(tilt->wr), wi = DPCAL_AT(tilt->wi);
        const dpcal_m far = h * DPCAL_AT(tilt->distance) > 0.5;
        dpcal_v a[2], e[2];
        DPCAL_NAME(dpcal_complex_expm2)(&x, &y, a, e);
        a[0] = DPCAL_CHOICE(far, 1.0 + e[0], DPCAL_CHOICE(mean, a[0], e[0]));
        a[1] = DPCAL_CHOICE(far, e[1], DPCAL_CHOICE(mean, a[1], e[1]));
        DPCAL_PUT(table) = wr * a[0] - wi * a[1];
        DPCAL_PUT(table + n) = wr * a[1] + wi * a[0];
    }
}

/* Adds sums at nodes k, ..., end - 1 of a recurrence of n points, four at a time. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_second_order_nodes)(
    double *table, ptrdiff_t n, int k, int end, double *lr, double *li
) {
    for (; k < end; k += 4) {
        dpcal_v re[4] = {{0}}, im[4] = {{0}};
        for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
            const dpcal_v e = DPCAL_AT(table + 2 * n), f = DPCAL_AT(table + 3 * n);
            const dpcal_v fr = DPCAL_AT(table + 6 * n), fi = DPCAL_AT(table + 7 * n);
            dpcal_v gr = DPCAL_AT(table + 4 * n) + k * fr, gi = DPCAL_AT(table + 5 * n) + k * fi;
            dpcal_v a = DPCAL_AT(table), b = DPCAL_AT(table + n);
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

/* log psi and 1 / abs(psi) at the nodes from their sums, of which `left` gives the rest. psi - 1 = S (1 - i k h mean): the
   rest of the mean that the weights leave is taken out. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_log_psi_of)(
    const dpcal_tilt *tilt, double h, int nodes, const double *left, double *lr, double *li, double *inverse
) {
    for (ptrdiff_t i = 0; i < nodes; i += DPCAL_LANES_OF) {
        const dpcal_v k = DPCAL_NUMBERS(i);
        const dpcal_v sr = DPCAL_AT(lr) + (k * (h * left[3]) - left[0]);
        const dpcal_v si = DPCAL_AT(li) - (k * (h * left[2]) + left[1]);
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

/* The integrand at nodes, of log psi: v = exp(vr + i (vi + t offset)) / ((1 + i t / c) (1 + i t / (1 + c)))
   at all nodes but the first. `sums` gets those of abs(v), t abs(v), and errors in units, and then the same three of what
   is divided by the poles. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_integrand)(
    double h, double c, double offset, int nodes, const double *errors, double *vr, double *vi, double *sums
) {
    dpcal_v totals[6] = {{0}};
    for (ptrdiff_t i = 0; i < nodes; i += DPCAL_LANES_OF) {
        const dpcal_v k = DPCAL_NUMBERS(i), t = h * k, phase = DPCAL_AT(vi) + t * offset, log_size = DPCAL_AT(vr);
        const dpcal_v a = t / c, b = t / (1.0 + c), pr = 1.0 - a * b, pi = a + b, square = pr * pr + pi * pi;
        const dpcal_v about = DPCAL_SIZE(phase);
        dpcal_v whole, cosine, sine, root;
        DPCAL_EXPONENTIAL(log_size, whole);
        DPCAL_NAME(dpcal_turn)(&phase, &cosine, &sine);
        DPCAL_ROOT(&square, &root);
        const dpcal_v kept = DPCAL_CHOICE((k > 0.0) & (k < (double)nodes), whole, 0.0);
        const dpcal_v size = kept / root, scale = size / root;
        const dpcal_v units = 32.0 + DPCAL_AT(errors) + DPCAL_CHOICE(about > 1e6, about, 0.0);
        totals[0] += size;
        totals[1] += t * size;
        totals[2] += units * size;
        totals[3] += kept;
        totals[4] += t * kept;
        totals[5] += units * kept;
        DPCAL_PUT(vr) = scale * (cosine * pr + sine * pi);
        DPCAL_PUT(vi) = scale * (sine * pr - cosine * pi);
    }
    for (int j = 0; j < 6; j++)
        sums[j] = DPCAL_SUM_OF(totals[j]);
}

/* Sums over nodes of Re(v r^k), t Im(v r^k) and t^2 Re(v r^k), r = exp(-i h distance): eight steps of all lanes begin at
   a factor of libm. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_rotated)(
    const double *vr, const double *vi, int nodes, double h, double distance, double *sums
) {
    const double angle = -h * distance, lanes = (double)DPCAL_LANES_OF;
    const double er = cos(angle * lanes), ei = sin(angle * lanes);
    const dpcal_v first = angle * DPCAL_NUMBERS(0);
    const int chunk = 8 * (int)DPCAL_LANES_OF;
    dpcal_v fr, fi, totals[3] = {{0}}, lost[3] = {{0}}, parts[3] = {{0}};
    DPCAL_NAME(dpcal_turn)(&first, &fr, &fi);
    for (int start = 0; start < nodes; start += chunk) {
        const int stop = start + chunk < nodes ? start + chunk : nodes;
        const double br = cos(angle * start), bi = sin(angle * start);
        dpcal_v x = br * fr - bi * fi, y = br * fi + bi * fr;
        for (ptrdiff_t i = start; i < stop; i += DPCAL_LANES_OF) {
            const dpcal_v a = DPCAL_AT(vr), b = DPCAL_AT(vi), next = x * er - y * ei;
            const dpcal_v t = h * DPCAL_NUMBERS(i), real = a * x - b * y;
            parts[0] += real;
            parts[1] += t * (a * y + b * x);
            parts[2] += t * t * real;
            y = x * ei + y * er;
            x = next;
        }
        /* Sums of 512 nodes first, and what is lost when these are added. */
        for (int j = 0; j < 3 && (stop % 512 == 0 || stop == nodes); j++) {
            const dpcal_v part = parts[j] - lost[j], total = totals[j] + part;
            lost[j] = (total - totals[j]) - part;
            totals[j] = total;
            parts[j] = (dpcal_v){0};
        }
    }
    for (int j = 0; j < 3; j++)
        sums[j] = DPCAL_SUM_OF(totals[j]);
}

#undef DPCAL_TARGET
#undef DPCAL_NAME
