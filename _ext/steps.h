/* Loops between sums in doubles and whole steps of a grid, compiled for wide registers as well.

   Products are never fused into sums, so that all versions give the same bits. */

#ifndef DPCAL_STEPS_H
#define DPCAL_STEPS_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(DPCAL_BASELINE)
#define DPCAL_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define DPCAL_CLONES
#endif

/* Numbers of a total that stay in a processor's first cache. */
enum { DPCAL_TOGETHER = 1024 };

/* Add m rows of d numbers, times factors, to a total. */
#define DPCAL_ADD_SCALED(name, number) \
    DPCAL_CLONES static void name( \
        const number *table, int64_t m, int64_t d, const double *factors, double *restrict total \
    ) { \
        for (int64_t first = 0; first < d; first += DPCAL_TOGETHER) { \
            const int64_t stop = d - first < DPCAL_TOGETHER ? d : first + DPCAL_TOGETHER; \
            for (int64_t i = 0; i < m; i++) \
                for (int64_t j = first; j < stop; j++) \
                    total[j] += factors[i] * (double)table[i * d + j]; \
        } \
    }
DPCAL_ADD_SCALED(dpcal_add_singles, float)
DPCAL_ADD_SCALED(dpcal_add_doubles, double)

/* Write the sums of squares of m rows of d numbers, each in DPCAL_LANES parts. */
enum { DPCAL_LANES = 16 };
#define DPCAL_SQUARES(name, number) \
    DPCAL_CLONES static void name(const number *table, int64_t m, int64_t d, double *squares) { \
        for (int64_t i = 0; i < m; i++, table += d) { \
            double parts[DPCAL_LANES] = {0}; \
            int64_t j = 0; \
            for (; j + DPCAL_LANES <= d; j += DPCAL_LANES) \
                for (int64_t k = 0; k < DPCAL_LANES; k++) \
                    parts[k] += (double)table[j + k] * (double)table[j + k]; \
            for (; j < d; j++) \
                parts[0] += (double)table[j] * (double)table[j]; \
            squares[i] = 0; \
            for (int64_t k = 0; k < DPCAL_LANES; k++) \
                squares[i] += parts[k]; \
        } \
    }
DPCAL_SQUARES(dpcal_squares_of_singles, float)
DPCAL_SQUARES(dpcal_squares_of_doubles, double)

/* Put whole numbers in the place of doubles, rounded towards zero. */
DPCAL_CLONES static void dpcal_in_steps(double *sums, int64_t d) {
    for (int64_t j = 0; j < d; j++) {
        const int64_t whole = (int64_t)sums[j];
        memcpy(&sums[j], &whole, sizeof whole);
    }
}

/* Put doubles in the place of whole numbers, which are in steps: their values over a size. */
DPCAL_CLONES static void dpcal_in_units(int64_t *total, int64_t d, const int64_t *noise, double step, double size) {
    if (noise)
        for (int64_t j = 0; j < d; j++)
            total[j] += noise[j];
    for (int64_t j = 0; j < d; j++) {
        const double value = (double)total[j] * step / size;
        memcpy(&total[j], &value, sizeof value);
    }
}

#endif
