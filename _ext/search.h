/* Searches in a sorted table, many side by side, for discrete noise.

   Every search makes as many comparisons as the table has bits of length, whatever it finds. */

#ifndef DPCAL_SEARCH_H
#define DPCAL_SEARCH_H

#include <stdint.h>

#include "vector.h"

enum { DPCAL_SIDE_BY_SIDE = 32 };

/* Write how many of the m entries of high are at most each of DPCAL_SIDE_BY_SIDE words; m + 1 is a power of two. Return whether
   a word equals an entry. */
static inline __attribute__((always_inline)) int dpcal_search_plain(
    const uint64_t *restrict words, const uint64_t *restrict high, int64_t m, int64_t *restrict places
) {
    uint64_t tied = 0;
    for (int lane = 0; lane < DPCAL_SIDE_BY_SIDE; lane++)
        places[lane] = 0;
    for (int64_t step = (m + 1) >> 1; step; step >>= 1)
        for (int lane = 0; lane < DPCAL_SIDE_BY_SIDE; lane++) {
            /* The largest entry that is not above the word is compared on the way. */
            const uint64_t entry = high[places[lane] + step - 1];
            tied |= entry == words[lane];
            places[lane] += step & -(int64_t)(entry <= words[lane]);
        }
    return tied != 0;
}

#ifdef DPCAL_AVX2
DPCAL_AVX2 static int dpcal_search_avx2(const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places) {
    return dpcal_search_plain(words, high, m, places);
}
DPCAL_AVX512 static int dpcal_search_avx512f(const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places) {
    return dpcal_search_plain(words, high, m, places);
}
#endif

#endif
