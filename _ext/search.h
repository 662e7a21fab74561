/* Searches in a sorted table, many side by side, for discrete noise.

   Every search makes as many comparisons as the table has bits of length, whatever it finds. Where
   the processor has them, registers of eight entries are used, with the same results: the entries
   of the first comparisons stay in registers, and the others are gathered. */

#ifndef DPCAL_SEARCH_H
#define DPCAL_SEARCH_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DPCAL_BASELINE)
#define DPCAL_GATHERS
#include <immintrin.h>
#endif

enum {
    DPCAL_LANES = 32,
    DPCAL_LEVELS = 6, /* comparisons with entries that are in registers */
    DPCAL_TOP = 80    /* these entries: eight of a level, or as many as it has */
};

/* Write the entries of the first comparisons, each level's in order, repeated up to eight. */
static void dpcal_search_prepare(const uint64_t *high, int64_t m, uint64_t *top)
{
    int at = 0;
    for (int level = 0; level < DPCAL_LEVELS; level++) {
        const int64_t step = (m + 1) >> level;
        const int count = 1 << level;
        for (int i = 0; i < (count < 8 ? 8 : count); i++)
            top[at++] = step > 1 ? high[(i % count) * step + step / 2 - 1] : 0;
    }
}

/* Write how many of the m entries of high are at most each word; m + 1 is a power of two. Return
   whether a word equals an entry. */
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
/* Go one comparison further: the place is twice as large, and one more on the right. */
#define DPCAL_COMPARE(entry, k) do { \
        const __m512i compared = (entry); \
        tied |= _mm512_cmpeq_epu64_mask(compared, word[k]); \
        at[k] = _mm512_add_epi64(at[k], at[k]); \
        at[k] = _mm512_mask_add_epi64( \
            at[k], _mm512_cmple_epu64_mask(compared, word[k]), at[k], one); \
    } while (0)

__attribute__((target("avx512f"))) static int dpcal_search_wide(
    const uint64_t *words, const uint64_t *high, const uint64_t *top, int64_t m, int64_t *places
) {
    enum { REGISTERS = DPCAL_LANES / 8 };
    const __m512i one = _mm512_set1_epi64(1), sixteen = _mm512_set1_epi64(16);
    __m512i word[REGISTERS], at[REGISTERS], level[DPCAL_TOP / 8];
    __mmask8 tied = 0;
    const int shift = __builtin_ctzll((uint64_t)(m + 1)) - DPCAL_LEVELS;
    for (int i = 0; i < DPCAL_TOP / 8; i++)
        level[i] = _mm512_loadu_si512(top + 8 * i);
    for (int k = 0; k < REGISTERS; k++) {
        word[k] = _mm512_loadu_si512(words + 8 * k);
        at[k] = _mm512_setzero_si512();
        for (int i = 0; i < 4; i++)
            DPCAL_COMPARE(_mm512_permutexvar_epi64(at[k], level[i]), k);
        DPCAL_COMPARE(_mm512_permutex2var_epi64(level[4], at[k], level[5]), k);
        DPCAL_COMPARE(
            _mm512_mask_blend_epi64(
                _mm512_test_epi64_mask(at[k], sixteen),
                _mm512_permutex2var_epi64(level[6], at[k], level[7]),
                _mm512_permutex2var_epi64(level[8], at[k], level[9])),
            k);
        at[k] = _mm512_sll_epi64(at[k], _mm_cvtsi32_si128(shift));
    }
    for (int64_t step = (m + 1) >> (DPCAL_LEVELS + 1); step; step >>= 1) {
        const __m512i steps = _mm512_set1_epi64(step);
        for (int k = 0; k < REGISTERS; k++) {
            const __m512i entry = _mm512_i64gather_epi64(at[k], high + step - 1, 8);
            const __mmask8 right = _mm512_cmple_epu64_mask(entry, word[k]);
            /* The largest entry that is not above the word is compared on the way. */
            tied |= _mm512_cmpeq_epu64_mask(entry, word[k]);
            at[k] = _mm512_mask_add_epi64(at[k], right, at[k], steps);
        }
    }
    for (int k = 0; k < REGISTERS; k++)
        _mm512_storeu_si512(places + 8 * k, at[k]);
    return tied != 0;
}
#endif

/* Search for DPCAL_LANES words; top is what dpcal_search_prepare wrote. */
static int dpcal_search(
    const uint64_t *words, const uint64_t *high, const uint64_t *top, int64_t m, int64_t *places
) {
#ifdef DPCAL_GATHERS
    if (m >> DPCAL_LEVELS && __builtin_cpu_supports("avx512f")) {
        return dpcal_search_wide(words, high, top, m, places);
    }
#endif
    return dpcal_search_narrow(words, high, m, places);
}

#endif
