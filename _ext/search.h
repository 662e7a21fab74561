/* Searches in a sorted table with a guide, for discrete noise.

   A guide has, for each range of words, how many entries are below the range. Ranges become narrower towards both ends of the
   words, where entries are dense: a word's distance from the nearer end is cut to DPCAL_DIGITS binary digits after the first. */

#ifndef DPCAL_SEARCH_H
#define DPCAL_SEARCH_H

#include <stdint.h>
#include <string.h>

#include "vector.h"

enum { DPCAL_DIGITS = 8, DPCAL_RANGES = 1 << 15, DPCAL_EDGE = 17 };

/* Return a word's distance from the nearer end of all words, below 2^63. */
static inline uint64_t dpcal_from_end(uint64_t word) {
    return word ^ -(word >> 63);
}

/* Return the number of a word's range, which does not fall from one word to a larger one. */
static inline uint32_t dpcal_range(uint64_t word) {
    /* 2^52 + x as a double, for 2^8 <= x <= 2^52 + 2^8: no operation rounds. */
    const uint64_t raised = (dpcal_from_end(word) >> 11) + (1 << DPCAL_DIGITS) + (1075ULL << 52);
    double number;
    uint64_t bits;
    memcpy(&number, &raised, sizeof number);
    number -= 4503599627370496.0;
    memcpy(&bits, &number, sizeof bits);
    const uint32_t range = (uint32_t)(bits >> (52 - DPCAL_DIGITS)) - ((1023u + DPCAL_DIGITS) << DPCAL_DIGITS);
    return range ^ ((uint32_t)-(word >> 63) & (DPCAL_RANGES - 1));
}

/* Write the guide of m < 2^16 entries. Return how many entries a word is compared with, at least 1. */
static inline int64_t dpcal_guide(const uint64_t *high, int64_t m, uint16_t *guide) {
    int64_t most = 1, place = 0;
    for (uint32_t range = 0; range < DPCAL_RANGES; range++) {
        const int64_t first = place;
        guide[range] = (uint16_t)first;
        while (place < m && dpcal_range(high[place]) == range)
            place++;
        if (place - first > most && dpcal_from_end(high[first]) >> DPCAL_EDGE)
            most = place - first;
    }
    for (uint32_t range = 0; range < DPCAL_RANGES; range++)
        if (guide[range] > m - most)
            guide[range] = (uint16_t)(m - most);
    return most;
}

/* Write how many entries of high are at most each of count <= 256 words. Return whether a word equals an entry, or is so near an
   end that more entries may be. */
static inline __attribute__((always_inline)) int dpcal_search_plain(
    const uint64_t *restrict words,
    int64_t count,
    const uint64_t *restrict high,
    const uint16_t *restrict guide,
    int64_t most,
    int64_t *restrict places
) {
    uint32_t ranges[256];
    uint64_t unsure = 0;
    for (int64_t i = 0; i < count; i++) {
        ranges[i] = dpcal_range(words[i]);
        unsure |= dpcal_from_end(words[i]) >> DPCAL_EDGE == 0;
    }
    for (int64_t i = 0; i < count; i++)
        places[i] = guide[ranges[i]];
    for (int64_t k = 0; k < most; k++)
        for (int64_t i = 0; i < count; i++) {
            const uint64_t entry = high[places[i]];
            unsure |= entry == words[i];
            places[i] += entry <= words[i];
        }
    return unsure != 0;
}

#ifdef DPCAL_AVX2
DPCAL_AVX2 static int dpcal_search_avx2(
    const uint64_t *words, int64_t count, const uint64_t *high, const uint16_t *guide, int64_t most, int64_t *places
) {
    return dpcal_search_plain(words, count, high, guide, most, places);
}
DPCAL_AVX512 static int dpcal_search_avx512f(
    const uint64_t *words, int64_t count, const uint64_t *high, const uint16_t *guide, int64_t most, int64_t *places
) {
    return dpcal_search_plain(words, count, high, guide, most, places);
}
#endif

#endif
