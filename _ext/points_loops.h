/* The loops of points.h, compiled once for each width of registers: DPCAL_TARGET, DPCAL_NAME. */

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
