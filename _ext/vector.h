/* Eight doubles at a time: choices, exponentials, and the widths of registers that the loops of loops.h are compiled for.

   Of three widths the widest that the processor has is used: a choice by the loader would come after the compiler has
   split the vectors. Lanes are added in one order and products are never fused, so that all widths give the same bits. */

#ifndef DPCAL_VECTOR_H
#define DPCAL_VECTOR_H

#include <math.h>
#include <stddef.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* Registers that functions are compiled for, and a choice of the widest that the processor has. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(DPCAL_BASELINE)
#define DPCAL_AVX2 __attribute__((target("avx2")))
#define DPCAL_AVX512 __attribute__((target("avx512f")))
#define DPCAL_WIDEST(name) \
    (__builtin_cpu_supports("avx512f") ? name##_avx512f : __builtin_cpu_supports("avx2") ? name##_avx2 : name##_plain)
#else
#define DPCAL_WIDEST(name) name##_plain
#endif

/* Lets numbers below 2^-1022 be 0, for which some processors take a hundred times as long as for others, and returns what was
   before. dpcal_add_errors counts what sums lose by it. */
static inline unsigned dpcal_flush(void) {
    unsigned before = 0;
#ifdef __x86_64__
    before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* results, and what is read */
#endif
    return before;
}

static inline void dpcal_flush_as(unsigned before) {
#ifdef __x86_64__
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

/* Eight numbers, a mask of them, and a choice between two by a mask: the compiler is GCC or Clang. */
typedef double dpcal_v __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long dpcal_m __attribute__((vector_size(64), aligned(8), may_alias));
typedef unsigned long long dpcal_u __attribute__((vector_size(64), aligned(8), may_alias));
#define DPCAL_V(x) ((x) - (dpcal_v){0})
#define DPCAL_CHOICE(mask, a, b) \
    ((dpcal_v)(((dpcal_m)(DPCAL_V(a)) & (mask)) | ((dpcal_m)(DPCAL_V(b)) & ~(mask))))
/* A mask of all lanes, or of none. */
#define DPCAL_ALL(is) ((dpcal_m){0} - (long long)(is))
#define DPCAL_POWER(shifted) ((dpcal_v)(((dpcal_m)(shifted) << 52) + (1023LL << 52)))
#define DPCAL_SUM_OF(s) (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))
/* The exponent of x as a number, and x over its power of two, in [sqrt(1/2), sqrt(2)): x is a normal number > 0. */
#define DPCAL_PARTS(x, exponent, fraction) \
    do { \
        const dpcal_u bits_ = (dpcal_u)(x), raised_ = (bits_ + 0x95f619980c433ULL) >> 52; \
        exponent = (dpcal_v)(raised_ | 0x4330000000000000ULL) - 4503599627371519.0; \
        fraction = (dpcal_v)(bits_ - ((raised_ - 1023ULL) << 52)); \
    } while (0)
#define DPCAL_HAS_BIT(shifted, bit) (((dpcal_m)(shifted) & (bit)) != 0)
#define DPCAL_SIZE(x) DPCAL_CHOICE((x) < 0.0, -(x), x)
#define DPCAL_LANES_OF (sizeof(dpcal_v) / sizeof(double))
#define DPCAL_AT(x) (*(const dpcal_v *)((x) + i))
#define DPCAL_PUT(x) (*(dpcal_v *)((x) + i))
/* Square roots, lane by lane. */
#define DPCAL_ROOT(x, out) \
    do { \
        for (size_t lane_ = 0; lane_ < DPCAL_LANES_OF; lane_++) \
            ((double *)(out))[lane_] = sqrt(((const double *)(x))[lane_]); \
    } while (0)
/* Numbers i, i + 1, ... of as many lanes as there are. */
#define DPCAL_NUMBERS(i) ((double)(i) + *(const dpcal_v *)dpcal_lane_numbers)
static const double dpcal_lane_numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* exp(x) - 1 - x to 3 units, exp(x) - 1 and exp(x) to 2, x <= 708; exp(x) is at least exp(-708). */
#define DPCAL_EXPONENTIALS(x, second, first, whole) \
    do { \
        dpcal_v x_ = DPCAL_CHOICE((x) < 708.0, x, 708.0); \
        x_ = DPCAL_CHOICE(x_ > -708.0, x_, -708.0); \
        /* Up to this size it is a sum of powers, which keeps the digits of all three. */ \
        const dpcal_m small_ = (x_ < 1.04) & (x_ > -0.7); \
        const dpcal_v shifted_ = DPCAL_CHOICE(small_, 0.0, x_ * 1.4426950408889634) + 6755399441055744.0; \
        const dpcal_v k_ = shifted_ - 6755399441055744.0; \
        const dpcal_v r_ = (x_ - k_ * 6.93147180369123816490e-01) - k_ * 1.90821492927058770002e-10; \
        const dpcal_v t_ = r_ * r_, u_ = t_ * t_; \
        /* The terms r^j / (j + 2)!, j = 0, ..., 16; the next is below 1e-17 of the first. */ \
        const dpcal_v even_ = (1.0 / 2 + t_ * (1.0 / 24)) + u_ * ((1.0 / 720 + t_ * (1.0 / 40320)) \
            + u_ * ((1.0 / 3628800 + t_ * (1.0 / 479001600)) + u_ * ((1.0 / 87178291200.0 \
            + t_ * (1.0 / 20922789888000.0)) + u_ * (1.0 / 6402373705728000.0)))); \
        const dpcal_v odd_ = (1.0 / 6 + t_ * (1.0 / 120)) + u_ * ((1.0 / 5040 + t_ * (1.0 / 362880)) \
            + u_ * ((1.0 / 39916800 + t_ * (1.0 / 6227020800.0)) + u_ * (1.0 / 1307674368000.0 \
            + t_ * (1.0 / 355687428096000.0)))); \
        const dpcal_v s_ = t_ * (even_ + r_ * odd_), e_ = r_ + s_, scale_ = DPCAL_POWER(shifted_); \
        whole = scale_ + scale_ * e_; \
        second = DPCAL_CHOICE(small_, s_, whole - 1.0 - (x)); \
        first = DPCAL_CHOICE(small_, e_, whole - 1.0); \
    } while (0)

/* exp(x) alone. */
#define DPCAL_EXPONENTIAL(x, whole) \
    do { \
        dpcal_v less_x_, less_; \
        DPCAL_EXPONENTIALS(x, less_x_, less_, whole); \
        (void)less_x_, (void)less_; \
    } while (0)

#endif
