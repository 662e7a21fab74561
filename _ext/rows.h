/* Two primitives for models of scores: inner products of rows, and sums of rows times numbers.

   Rows are padded with zeros to a multiple of 8 numbers, so that no loop has a tail. Where the
   loader can choose, both are compiled for wider registers as well. The order of every addition is
   written out and products are never fused into sums, so that all versions give the same bits. */

#ifndef DPCAL_ROWS_H
#define DPCAL_ROWS_H

#if defined(__GNUC__) || defined(__clang__)
#define dpcal_prefetch(address) __builtin_prefetch(address)
typedef double dpcal_lanes __attribute__((vector_size(64), aligned(8), may_alias));
#define DPCAL_ADD(s, x, b, i) s += *(const dpcal_lanes *)((x) + i) * *(const dpcal_lanes *)((b) + i)
#else
#define dpcal_prefetch(address) ((void)(address))
typedef struct { double lane[8]; } dpcal_lanes;
#define DPCAL_ADD(s, x, b, i) \
    for (int j = 0; j < 8; j++) \
        s.lane[j] += (x)[i + j] * (b)[i + j]
#endif

#if defined(_MSC_VER)
#define restrict __restrict
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(DPCAL_BASELINE)
#define DPCAL_WIDER __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DPCAL_WIDER
#endif

/* Of eight partial sums. */
static double dpcal_total(const double *s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Write the inner product of each of the rows x with b to out, step apart. Four chains of additions
   hide each other's latency. Unless next is NULL, half of the rows that follow are fetched meanwhile,
   and the other half while rows are added. */
DPCAL_WIDER static void dpcal_scores(
    const double *const *x, const double *const *next, Py_ssize_t count, const double *b,
    Py_ssize_t size, double *out, Py_ssize_t step
) {
    Py_ssize_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double *x0 = x[k], *x1 = x[k + 1], *x2 = x[k + 2], *x3 = x[k + 3];
        dpcal_lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (Py_ssize_t i = 0; i < size; i += 8) {
            if (next) {
                dpcal_prefetch(next[k] + i);
                dpcal_prefetch(next[k + 1] + i);
            }
            DPCAL_ADD(s0, x0, b, i);
            DPCAL_ADD(s1, x1, b, i);
            DPCAL_ADD(s2, x2, b, i);
            DPCAL_ADD(s3, x3, b, i);
        }
        out[k * step] = dpcal_total((const double *)&s0);
        out[(k + 1) * step] = dpcal_total((const double *)&s1);
        out[(k + 2) * step] = dpcal_total((const double *)&s2);
        out[(k + 3) * step] = dpcal_total((const double *)&s3);
    }
    for (; k < count; k++) {
        dpcal_lanes s = {0};
        for (Py_ssize_t i = 0; i < size; i += 8)
            DPCAL_ADD(s, x[k], b, i);
        out[k * step] = dpcal_total((const double *)&s);
    }
}

/* Add each of the rows x, times its factor, to y, in their order. */
DPCAL_WIDER static void dpcal_add_rows(
    const double *factors, Py_ssize_t step, const double *const *x, const double *const *next,
    Py_ssize_t count, double *restrict y, Py_ssize_t size
) {
    Py_ssize_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double f0 = factors[k * step], f1 = factors[(k + 1) * step];
        const double f2 = factors[(k + 2) * step], f3 = factors[(k + 3) * step];
        const double *restrict x0 = x[k], *restrict x1 = x[k + 1];
        const double *restrict x2 = x[k + 2], *restrict x3 = x[k + 3];
        for (Py_ssize_t i = 0; i < size; i += 8) {
            if (next) {
                dpcal_prefetch(next[k + 2] + i);
                dpcal_prefetch(next[k + 3] + i);
            }
            for (Py_ssize_t j = i; j < i + 8; j++)
                y[j] = (((y[j] + f0 * x0[j]) + f1 * x1[j]) + f2 * x2[j]) + f3 * x3[j];
        }
    }
    for (; k < count; k++)
        for (Py_ssize_t i = 0; i < size; i += 8)
            for (Py_ssize_t j = i; j < i + 8; j++)
                y[j] += factors[k * step] * x[k][j];
}

#endif
