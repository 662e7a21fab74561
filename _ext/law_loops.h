/* The loops of law.h and inversion.h, compiled once for each width of registers: see widths.h. */

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
   min(s^2 / 2, 2) errors + t min(s, 2) shifts; of min(s, 2) errors; of min(s^2 / 2, 2 + s) sizes; and of
   (2 + s) sizes where s > 1/2. */
DPCAL_TARGET static void DPCAL_NAME(dpcal_rounding_sums)(
    const double *distance, const double *sizes, const double *errors, const double *shifts, ptrdiff_t n, double t,
    double *sums
) {
    dpcal_v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (ptrdiff_t i = 0; i < n; i += DPCAL_LANES_OF) {
        const dpcal_v s = t * DPCAL_AT(distance), half = 0.5 * (s * s), error = DPCAL_AT(errors);
        const dpcal_v size = DPCAL_AT(sizes), first = DPCAL_CHOICE(s < 2.0, s, 2.0);
        const dpcal_v grown = 2.0 + s;
        s0 += DPCAL_CHOICE(half < 2.0, half, 2.0) * error + t * first * DPCAL_AT(shifts);
        s1 += first * error;
        s2 += DPCAL_CHOICE(half < grown, half, grown) * size;
        s3 += DPCAL_CHOICE(s > 0.5, grown, 0.0) * size;
    }
    sums[0] = DPCAL_SUM_OF(s0);
    sums[1] = DPCAL_SUM_OF(s1);
    sums[2] = DPCAL_SUM_OF(s2);
    sums[3] = DPCAL_SUM_OF(s3);
}
