/* Searches in a sorted table, many side by side, for discrete noise.

   Every search makes as many comparisons as the table has bits of length, whatever it finds. Where
   the processor has them, registers of eight entries are used, with the same results. */

#ifndef DPCAL_SEARCH_H
#define DPCAL_SEARCH_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define DPCAL_GATHERS
#include <immintrin.h>
#endif

enum { DPCAL_LANES = 64 };

/* Write how many of the m entries of high are at most each of 64 words; m + 1 is a power of two.
   Return whether a word equals an entry. */
static int dpcal_search_narrow(
    const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places
) {
    int tied = 0;
    for (int lane = 0; lane < DPCAL_LANES; lane++)
        places[lane] = 0;
    for (int64_t step = (m + 1) >> 1; step; step >>= 1)
        for (int lane = 0; lane < DPCAL_LANES; lane++)
            places[lane] += step & -(int64_t)(high[places[lane] + step - 1] <= words[lane]);
    /* Entry number 0 stands for "none" too: such a tie is looked at, and found to be none. */
    for (int lane = 0; lane < DPCAL_LANES; lane++)
        tied |= high[places[lane] - (places[lane] > 0)] == words[lane];
    return tied;
}

#ifdef DPCAL_GATHERS
__attribute__((target("avx512f"))) static int dpcal_search_wide(
    const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places
) {
    __m512i word[8], at[8];
    __mmask8 tied = 0;
    for (int k = 0; k < 8; k++) {
        word[k] = _mm512_loadu_si512(words + 8 * k);
        at[k] = _mm512_setzero_si512();
    }
    for (int64_t step = (m + 1) >> 1; step; step >>= 1) {
        const __m512i steps = _mm512_set1_epi64(step);
        for (int k = 0; k < 8; k++) {
            const __m512i entry = _mm512_i64gather_epi64(at[k], high + step - 1, 8);
            const __mmask8 right = _mm512_cmple_epu64_mask(entry, word[k]);
            /* The largest entry that is not above the word is compared on the way. */
            tied |= _mm512_cmpeq_epu64_mask(entry, word[k]);
            at[k] = _mm512_mask_add_epi64(at[k], right, at[k], steps);
        }
    }
    for (int k = 0; k < 8; k++)
        _mm512_storeu_si512(places + 8 * k, at[k]);
    return tied != 0;
}
#endif

static int dpcal_search(
    const uint64_t *words, const uint64_t *high, int64_t m, int64_t *places
) {
#ifdef DPCAL_GATHERS
    if (__builtin_cpu_supports("avx512f")) {
        return dpcal_search_wide(words, high, m, places);
    }
#endif
    return dpcal_search_narrow(words, high, m, places);
}

#endif
