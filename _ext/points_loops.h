/* The loops of points.h, compiled once for each width of registers: DPCAL_TARGET, DPCAL_NAME. */

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

/* Weights base exp(p ell) and the sums of tilted_moments (contour.pyx) over points with a base; n is a
   multiple of 8. Terms of points with p ell >= far are left out and get weight 0. Two functions: next to
   p = 1 terms are sums of what M(1) = 1 cancels, so that no digit is lost. */
#undef DPCAL_TILTED
#define DPCAL_TILTED(name, argument, FIRST, POWER, SMALL, BIG) \
    DPCAL_TARGET static void DPCAL_NAME(name)( \
        const double *ell, const double *base, const double *second, const double *whole, ptrdiff_t n, \
        double p, double excess, double far, double *weights, double *sums \
    ) { \
        dpcal_v s0 = {0}, s1 = {0}, total = {0}; \
        for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) { \
            const dpcal_v l = DPCAL_AT(ell), x2 = DPCAL_AT(second), e = DPCAL_AT(whole); \
            const dpcal_v a = p * l, b = DPCAL_CHOICE(a < far, DPCAL_AT(base), 0.0); \
            /* Nothing overflows, also where it is not taken. */ \
            const dpcal_v exponent = DPCAL_CHOICE(a < far, argument, 0.0); \
            const dpcal_m big = (l > 1.0) | (l < -1.0); \
            dpcal_v x, y, z; \
            DPCAL_EXPONENTIALS(exponent, x, y, z); \
            /* exp(ell) - 1, exp(a) - 1 and exp(a) */ \
            const dpcal_v grown = DPCAL_CHOICE(big, e - 1.0, l + x2), first = FIRST, power = POWER; \
            const dpcal_v weight = b * power; \
            s0 += b * DPCAL_CHOICE(big, BIG, SMALL); \
            s1 += b * DPCAL_CHOICE(big, l * power - grown, l * first - x2); \
            total += weight; \
            *(dpcal_v *)(weights + i) = weight; \
        } \
        sums[0] = DPCAL_SUM_OF(s0); \
        sums[1] = DPCAL_SUM_OF(s1); \
        sums[2] = DPCAL_SUM_OF(total); \
    }
DPCAL_TILTED(
    dpcal_tilted_near, excess * l, grown + e * y, DPCAL_CHOICE(big, e * z, 1.0 + first),
    e * x + excess * (l * grown - x2), e * y - excess * grown
)
DPCAL_TILTED(dpcal_tilted_far, a, y, z, x - p * x2, first - p * grown)

/* The largest of log_base + p ell. */
DPCAL_TARGET static double DPCAL_NAME(dpcal_largest_exponent)(
    const double *ell, const double *log_base, ptrdiff_t n, double p
) {
    dpcal_v most = DPCAL_FROM(log_base, 0) + p * DPCAL_FROM(ell, 0);
    double largest;
    for (ptrdiff_t i = DPCAL_LANES_OF; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v exponent = DPCAL_AT(log_base) + p * DPCAL_AT(ell);
        most = DPCAL_CHOICE(exponent > most, exponent, most);
    }
    largest = *(const double *)&most;
    for (size_t lane = 1; lane < DPCAL_LANES_OF; lane++)
        largest = fmax(largest, ((const double *)&most)[lane]);
    return largest;
}

/* The span of blocks of eight that leaves out, at both ends, points with log_base + p ell below `least` and log_base + max(ell,
   0) below `least_base`. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_narrow)(
    const double *ell, const double *log_base, ptrdiff_t n, double p, double least, double least_base, ptrdiff_t *ends
) {
    const ptrdiff_t lanes = DPCAL_LANES_OF;
    ptrdiff_t span[2] = {0, n - lanes};
    for (int side = 0; side < 2; side++)
        for (ptrdiff_t i = span[side]; span[0] <= span[1]; i = span[side] += side ? -lanes : lanes) {
            const dpcal_v l = DPCAL_AT(ell), base = DPCAL_AT(log_base), above = DPCAL_CHOICE(l > 0.0, l, 0.0);
            const dpcal_v out = DPCAL_CHOICE((base + p * l < least) & (base + above < least_base), 1.0, 0.0);
            if (DPCAL_SUM_OF(out) < (double)lanes)
                break;
        }
    ends[0] = span[0] - span[0] % 8;
    ends[1] = (span[1] + lanes + 7) / 8 * 8;
}

/* exp(log_base), exp(ell) - 1 - ell and exp(ell); all are 0 where one of the exponentials is beyond `far`, and
   the last one is where ell is below -far. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_prepared)(
    const double *ell, const double *log_base, ptrdiff_t n, double far, double *base, double *second, double *whole
) {
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v l = DPCAL_AT(ell), size = DPCAL_AT(log_base);
        const dpcal_m known = (size > -far) & (l < far);
        dpcal_v x, y, z, mass;
        DPCAL_EXPONENTIALS(size, x, y, mass);
        DPCAL_PUT(base) = DPCAL_CHOICE(known, mass, 0.0);
        DPCAL_EXPONENTIALS(l, x, y, z);
        DPCAL_PUT(second) = DPCAL_CHOICE(known, x, 0.0);
        /* Exponentials end at 708: products with others of large losses would be 1, not 0. */
        DPCAL_PUT(whole) = DPCAL_CHOICE(known & (l > -far), z, 0.0);
        (void)y;
    }
}

/* Weights exp(log_base + p ell - largest), their sum times ell and their sum. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_scaled_sums)(
    const double *ell, const double *log_base, ptrdiff_t n, double p, double largest, double *weights,
    double *sums
) {
    dpcal_v s1 = {0}, total = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v l = DPCAL_AT(ell), d = (DPCAL_AT(log_base) + p * l) - largest;
        dpcal_v x, y, w;
        DPCAL_EXPONENTIALS(d, x, y, w);
        w = DPCAL_CHOICE(d > -700.0, w, 0.0);
        total += w;
        s1 += w * l;
        *(dpcal_v *)(weights + i) = w;
        (void)x;
        (void)y;
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

/* One node of second_order_sums: adds the states up, and moves them to the next node. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_second_order_node)(
    double *table, ptrdiff_t n, double slope, double *sums
) {
    dpcal_v x = {0}, y = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v a = DPCAL_AT(table), b = DPCAL_AT(table + n);
        const dpcal_v e = DPCAL_AT(table + 2 * n), f = DPCAL_AT(table + 3 * n);
        x += a;
        y += b;
        *(dpcal_v *)(table + i) = a * e - b * f + (DPCAL_AT(table + 4 * n) + slope * DPCAL_AT(table + 6 * n));
        *(dpcal_v *)(table + n + i) = a * f + b * e + (DPCAL_AT(table + 5 * n) + slope * DPCAL_AT(table + 7 * n));
    }
    sums[0] = DPCAL_SUM_OF(x);
    sums[1] = DPCAL_SUM_OF(y);
}

/* Sums over points of min(s^2 / 2, 2) errors, min(s, 2) errors, and (2 + s) sizes where s > 1; s = t distance. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_phase_sums)(
    const double *distance, const double *sizes, const double *errors, ptrdiff_t n, double t, double *sums
) {
    dpcal_v s0 = {0}, s1 = {0}, s2 = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v s = t * DPCAL_AT(distance), half = 0.5 * (s * s), error = DPCAL_AT(errors);
        s0 += DPCAL_CHOICE(half < 2.0, half, 2.0) * error;
        s1 += DPCAL_CHOICE(s < 2.0, s, 2.0) * error;
        s2 += DPCAL_CHOICE(s > 1.0, 2.0 + s, 0.0) * DPCAL_AT(sizes);
    }
    sums[0] = DPCAL_SUM_OF(s0);
    sums[1] = DPCAL_SUM_OF(s1);
    sums[2] = DPCAL_SUM_OF(s2);
}

/* One node of power_sums. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_power_node)(double *table, ptrdiff_t n, double *sums) {
    dpcal_v x = {0}, y = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v a = DPCAL_AT(table), b = DPCAL_AT(table + n);
        const dpcal_v e = DPCAL_AT(table + 2 * n), f = DPCAL_AT(table + 3 * n);
        x += a;
        y += b;
        *(dpcal_v *)(table + i) = a * e - b * f;
        *(dpcal_v *)(table + n + i) = a * f + b * e;
    }
    sums[0] = DPCAL_SUM_OF(x);
    sums[1] = DPCAL_SUM_OF(y);
}
