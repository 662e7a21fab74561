/* Inner products and sums of rows of doubles, for the kernels of linear models.

   Rows are padded with zeros to a multiple of 8 numbers, so that no loop has a tail. */

#ifndef DPCAL_ROWS_H
#define DPCAL_ROWS_H

#if defined(__GNUC__) || defined(__clang__)
#define dpcal_prefetch(address) __builtin_prefetch(address)
#else
#define dpcal_prefetch(address) ((void)(address))
#endif

#if defined(_MSC_VER)
#define restrict __restrict
#endif

/* Where the loader can choose, these two are compiled for wider registers as well. The order of
   every addition is written out and products are never fused into sums, so that all versions
   give the same bits. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(DPCAL_BASELINE)
#define DPCAL_WIDER __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DPCAL_WIDER
#endif

/* Inner product in eight partial sums; size is a multiple of 8. */
DPCAL_WIDER static double dpcal_dot(const double *a, const double *b, Py_ssize_t size) {
    double s[8] = {0};
    for (Py_ssize_t i = 0; i < size; i += 8)
        for (int lane = 0; lane < 8; lane++)
            s[lane] += a[i + lane] * b[i + lane];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Inner products of a with b and with c, to the bit as above. The two chains of additions hide
   each other's latency, but only where the compiler is told that lanes are one register. */
#if defined(__GNUC__) || defined(__clang__)
DPCAL_WIDER static void dpcal_two_dots(
    const double *a, const double *b, const double *c, Py_ssize_t size, double *ab, double *ac
) {
    typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
    lanes s = {0}, t = {0};
    for (Py_ssize_t i = 0; i < size; i += 8) {
        lanes x = *(const lanes *)(a + i);
        s += x * *(const lanes *)(b + i);
        t += x * *(const lanes *)(c + i);
    }
    *ab = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    *ac = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
}
#else
static void dpcal_two_dots(
    const double *a, const double *b, const double *c, Py_ssize_t size, double *ab, double *ac
) {
    *ab = dpcal_dot(a, b, size);
    *ac = dpcal_dot(a, c, size);
}
#endif

/* Inner products with b of several rows of one table, to the bit as above; who calls them has their
   rows near. One call for all of them: each of them is shorter than a call is long. */
#if defined(__GNUC__) || defined(__clang__)
DPCAL_WIDER static void dpcal_many_dots(
    const double *table, const Py_ssize_t *rows, Py_ssize_t count, const double *b,
    Py_ssize_t size, double *out
) {
    typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
    for (Py_ssize_t k = 0; k < count; k++) {
        const double *x = table + rows[k] * size;
        lanes s = {0};
        for (Py_ssize_t i = 0; i < size; i += 8)
            s += *(const lanes *)(x + i) * *(const lanes *)(b + i);
        out[k] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}
#else
static void dpcal_many_dots(
    const double *table, const Py_ssize_t *rows, Py_ssize_t count, const double *b,
    Py_ssize_t size, double *out
) {
    for (Py_ssize_t k = 0; k < count; k++)
        out[k] = dpcal_dot(table + rows[k] * size, b, size);
}
#endif

/* y += factor * x for several rows x of one table, in their order. */
DPCAL_WIDER static void dpcal_many_axpys(
    const double *factors, const double *table, const Py_ssize_t *rows, Py_ssize_t count,
    double *restrict y, Py_ssize_t size
) {
    Py_ssize_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double f0 = factors[k], f1 = factors[k + 1], f2 = factors[k + 2], f3 = factors[k + 3];
        const double *restrict x0 = table + rows[k] * size, *restrict x1 = table + rows[k + 1] * size;
        const double *restrict x2 = table + rows[k + 2] * size;
        const double *restrict x3 = table + rows[k + 3] * size;
        for (Py_ssize_t i = 0; i < size; i += 8)
            for (Py_ssize_t j = i; j < i + 8; j++)
                y[j] = (((y[j] + f0 * x0[j]) + f1 * x1[j]) + f2 * x2[j]) + f3 * x3[j];
    }
    for (; k < count; k++) {
        const double *restrict x = table + rows[k] * size;
        for (Py_ssize_t j = 0; j < size; j++)
            y[j] += factors[k] * x[j];
    }
}

/* y += factor * x */
DPCAL_WIDER static void dpcal_axpy(
    double factor, const double *restrict x, double *restrict y, Py_ssize_t size
) {
    for (Py_ssize_t i = 0; i < size; i++)
        y[i] += factor * x[i];
}

/* Inner products of four rows at once, to the bit as dpcal_dot: they share the reading of b and c. Long rows
   have one loop's time to arrive: in the meantime it asks for two of the next four. */
#if defined(__GNUC__) || defined(__clang__)
#define DPCAL_LANES(a) (*(const lanes *)((a) + i))
#define DPCAL_SUM(s) (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))
DPCAL_WIDER static void dpcal_four_dots(
    const double *const *x, const double *const *next, const double *b, Py_ssize_t size,
    double *xb
) {
    typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
    const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (Py_ssize_t i = 0; i < size; i += 8) {
        dpcal_prefetch(next[0] + i);
        dpcal_prefetch(next[1] + i);
        lanes u = DPCAL_LANES(b);
        s0 += DPCAL_LANES(x0) * u;
        s1 += DPCAL_LANES(x1) * u;
        s2 += DPCAL_LANES(x2) * u;
        s3 += DPCAL_LANES(x3) * u;
    }
    xb[0] = DPCAL_SUM(s0);
    xb[1] = DPCAL_SUM(s1);
    xb[2] = DPCAL_SUM(s2);
    xb[3] = DPCAL_SUM(s3);
}
DPCAL_WIDER static void dpcal_eight_dots(
    const double *const *x, const double *const *next, const double *b, const double *c,
    Py_ssize_t size, double *xb, double *xc
) {
    typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
    const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};
    for (Py_ssize_t i = 0; i < size; i += 8) {
        dpcal_prefetch(next[0] + i);
        dpcal_prefetch(next[1] + i);
        lanes u = DPCAL_LANES(b), v = DPCAL_LANES(c);
        lanes r = DPCAL_LANES(x0);
        s0 += r * u;
        t0 += r * v;
        r = DPCAL_LANES(x1);
        s1 += r * u;
        t1 += r * v;
        r = DPCAL_LANES(x2);
        s2 += r * u;
        t2 += r * v;
        r = DPCAL_LANES(x3);
        s3 += r * u;
        t3 += r * v;
    }
    xb[0] = DPCAL_SUM(s0);
    xb[1] = DPCAL_SUM(s1);
    xb[2] = DPCAL_SUM(s2);
    xb[3] = DPCAL_SUM(s3);
    xc[0] = DPCAL_SUM(t0);
    xc[1] = DPCAL_SUM(t1);
    xc[2] = DPCAL_SUM(t2);
    xc[3] = DPCAL_SUM(t3);
}
#else
static void dpcal_four_dots(
    const double *const *x, const double *const *next, const double *b, Py_ssize_t size,
    double *xb
) {
    for (int k = 0; k < 4; k++)
        xb[k] = dpcal_dot(x[k], b, size);
}
static void dpcal_eight_dots(
    const double *const *x, const double *const *next, const double *b, const double *c,
    Py_ssize_t size, double *xb, double *xc
) {
    for (int k = 0; k < 4; k++)
        dpcal_two_dots(x[k], b, c, size, xb + k, xc + k);
}
#endif

DPCAL_WIDER static void dpcal_four_axpys(
    const double *factors, const double *const *x, const double *const *next,
    double *restrict y, Py_ssize_t size
) {
    const double f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
    const double *restrict x0 = x[0], *restrict x1 = x[1];
    const double *restrict x2 = x[2], *restrict x3 = x[3];
    for (Py_ssize_t i = 0; i < size; i += 8) {
        dpcal_prefetch(next[2] + i);
        dpcal_prefetch(next[3] + i);
        for (Py_ssize_t j = i; j < i + 8; j++)
            y[j] = (((y[j] + f0 * x0[j]) + f1 * x1[j]) + f2 * x2[j]) + f3 * x3[j];
    }
}

#endif
