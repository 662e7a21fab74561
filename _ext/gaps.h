/* Gaps between the members of a Poisson sample, from uniform words alone.

   A gap G before the next member has P(G >= k) = r^k, r = 1 - q. The binary digits of G are
   independent, and digit i is 1 with probability r_i / (1 + r_i) where r_i = r^(2^i): the law of G
   is the product of r_i^(digit i) over its digits, up to a constant. So a gap is a few coins, whose
   probabilities are kept to 126 bits. */

#ifndef DPCAL_GAPS_H
#define DPCAL_GAPS_H

#include <math.h>
#include <stdint.h>

typedef unsigned __int128 dpcal_wide;

enum { DPCAL_DIGITS = 64 };

typedef struct {
    double sampling_probability; /* 0 before the first table */
    int64_t n;
    int digits;                    /* 2^digits >= n */
    dpcal_wide beyond;             /* P(G >= 2^digits), in units of 2^-128 */
    dpcal_wide coins[DPCAL_DIGITS]; /* P(digit i is 1), in units of 2^-128 */
} dpcal_gaps;

/* Return the upper half of a product, the product of two fractions in units of 2^-128. */
static dpcal_wide dpcal_times(dpcal_wide a, dpcal_wide b)
{
    const dpcal_wide low = UINT64_MAX;
    const dpcal_wide cross = (a >> 64) * (b & low), other = (a & low) * (b >> 64);
    const dpcal_wide carry = (((a & low) * (b & low)) >> 64) + (cross & low) + (other & low);
    return (a >> 64) * (b >> 64) + (cross >> 64) + (other >> 64) + (carry >> 64);
}

/* Return r / (1 + r) for a fraction r, by long division; within 2^-125, never more. */
static dpcal_wide dpcal_odds(dpcal_wide r)
{
    const dpcal_wide one = (dpcal_wide)1 << 126;
    const dpcal_wide divisor = one + (r >> 2);
    dpcal_wide rest = r >> 2, quotient = 0;
    for (int bit = 0; bit < 126; bit++) {
        rest <<= 1;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    return quotient << 2;
}

/* Prepare gaps for n > 0 records at a sampling probability in (0, 1). */
static void dpcal_gaps_prepare(dpcal_gaps *gaps, double sampling_probability, int64_t n)
{
    int exponent;
    const uint64_t digits = (uint64_t)ldexp(frexp(sampling_probability, &exponent), 53);
    const int shift = 128 - 53 + exponent;
    /* A probability below 2^-75 may lose its last digits: it gets smaller. */
    const dpcal_wide q = shift >= 0 ? (dpcal_wide)digits << shift
                         : shift > -64 ? digits >> -shift : 0;
    dpcal_wide r = (dpcal_wide)0 - q;
    int i = 0;
    for (; i < DPCAL_DIGITS - 1 && ((int64_t)1 << i) < n; i++) {
        gaps->coins[i] = q ? dpcal_odds(r) : (dpcal_wide)1 << 127;
        r = dpcal_times(r, r);
    }
    gaps->digits = i;
    gaps->beyond = q ? r : ~(dpcal_wide)0;
    gaps->n = n;
    gaps->sampling_probability = sampling_probability;
}

#endif
