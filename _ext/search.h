/* Searches in a sorted table, many side by side, for discrete noise.

   Every search makes as many comparisons as the table has bits of length, whatever it finds. Where the processor has them,
   the same loops are compiled for registers of eight entries, with the same results. */

#ifndef DPCAL_SEARCH_H
#define DPCAL_SEARCH_H

#include <stdint.h>

enum { DPCAL_LANES = 32 };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DPCAL_BASELINE)
#define DPCAL_INLINE static inline __attribute__((always_inline))
#define DPCAL_IS_WIDE __builtin_cpu_supports("avx512f")
#define DPCAL_WIDE_TARGET __attribute__((target("avx512f")))
#else
#define DPCAL_INLINE static inline
#define DPCAL_IS_WIDE 0
#define DPCAL_WIDE_TARGET
#endif

DPCAL_INLINE int dpcal_search_lanes(
    const uint64_t *restrict words, const uint64_t *restrict high, int64_t m, int64_t *restrict places
) {
    uint64_t tied = 0;
    for (int lane = 0; lane < DPCAL_LANES; lane++)
        places[lane] = 0;
    for (int64_t step = (m + 1) >> 1; step; step >>= 1)
        for (int lane = 0; lane < DPCAL_LANES; lane++) {
            /* The largest entry that is not above the word is compared on the way. */
            const uint64_t entry = high[places[lane] + step - 1];
            tied |= entry == words[lane];
            places[lane] += step & -(int64_t)(entry <= words[lane]);
        }
    return tied != 0;
}

DPCAL_WIDE_TARGET static int dpcal_search_wide(
    const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places
) {
    return dpcal_search_lanes(words, high, m, places);
}

/* Write how many of the m entries of high are at most each of DPCAL_LANES words; m + 1 is a power of two. Return whether a
   word equals an entry. */
static int dpcal_search(const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places) {
    return DPCAL_IS_WIDE ? dpcal_search_wide(words, high, m, places) : dpcal_search_lanes(words, high, m, places);
}

#endif
