/* Gaps between the members of a Poisson sample, from uniform words alone.

   A gap G before the next member has P(G >= k) = r^k, r = 1 - q. It is H 2^b + L, where H and L are
   independent, P(H >= k) = r^(k 2^b), and L < 2^b has probabilities in proportion to r^L. H comes
   from a table; a uniform L is kept with probability r^L, of which b is chosen so that it is nearly
   one. Probabilities are fractions of 128 bits, off by less than 2^(b - 118). */

#ifndef DPCAL_GAPS_H
#define DPCAL_GAPS_H

#include <math.h>
#include <stdint.h>

typedef unsigned __int128 dpcal_wide;

enum {
    DPCAL_ENTRIES = 1023, /* of the table of H */
    DPCAL_MEAN = 128,     /* about the mean of H, where q is small */
    DPCAL_GUIDES = 1024,
    DPCAL_DIGITS = 40     /* the most digits of L */
};

typedef struct {
    int digits;                  /* b */
    uint64_t sure;               /* P(keep L) is at least this, in units of 2^(b - 64) */
    uint64_t high[DPCAL_ENTRIES]; /* P(H <= k), in units of 2^-64 and 2^-128 */
    uint64_t low[DPCAL_ENTRIES];
    uint16_t guide[DPCAL_GUIDES];    /* the first k with P(H <= k) > i / DPCAL_GUIDES */
    dpcal_wide powers[DPCAL_DIGITS]; /* r^(2^i), in units of 2^-128 */
} dpcal_gaps;

/* Return the product of two fractions in units of 2^-128, rounded down. */
static dpcal_wide dpcal_times(dpcal_wide a, dpcal_wide b) {
    const dpcal_wide low = UINT64_MAX;
    const dpcal_wide cross = (a >> 64) * (b & low), other = (a & low) * (b >> 64);
    const dpcal_wide carry = (((a & low) * (b & low)) >> 64) + (cross & low) + (other & low);
    return (a >> 64) * (b >> 64) + (cross >> 64) + (other >> 64) + (carry >> 64);
}

/* Prepare gaps at a sampling probability in (0, 1). */
static void dpcal_gaps_prepare(dpcal_gaps *gaps, double sampling_probability) {
    int exponent, k = 0;
    const uint64_t digits = (uint64_t)ldexp(frexp(sampling_probability, &exponent), 53);
    const int shift = 128 - 53 + exponent;
    /* A probability below 2^-75 loses its last digits, or all: it gets smaller. */
    const dpcal_wide q = shift >= 0 ? (dpcal_wide)digits << shift
                         : shift > -64 ? digits >> -shift : 0;
    dpcal_wide r = q ? (dpcal_wide)0 - q : ~(dpcal_wide)0, power;
    int b = 0;
    for (; b < DPCAL_DIGITS && ldexp(sampling_probability, b + 1) * DPCAL_MEAN <= 1; b++) {
        gaps->powers[b] = r;
        r = dpcal_times(r, r);
    }
    gaps->digits = b;
    gaps->sure = (uint64_t)(r >> 64) >> b;
    power = r;
    for (int i = 0; i < DPCAL_ENTRIES; i++) {
        /* 1 - r^((i + 1) 2^b), or the largest number below 1. */
        const dpcal_wide below = power ? (dpcal_wide)0 - power : ~(dpcal_wide)0;
        gaps->high[i] = (uint64_t)(below >> 64);
        gaps->low[i] = (uint64_t)below;
        power = dpcal_times(power, r);
    }
    for (int i = 0; i < DPCAL_GUIDES; i++) {
        while (k < DPCAL_ENTRIES && gaps->high[k] < (uint64_t)i << 54)
            k++;
        gaps->guide[i] = (uint16_t)k;
    }
}

/* Return r^L for L < 2^b, in units of 2^-128. */
static dpcal_wide dpcal_gaps_kept(const dpcal_gaps *gaps, uint64_t L) {
    dpcal_wide power = ~(dpcal_wide)0;
    for (int i = 0; L; i++, L >>= 1)
        if (L & 1)
            power = dpcal_times(power, gaps->powers[i]);
    return power;
}

#endif
