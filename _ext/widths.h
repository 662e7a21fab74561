/* Compiles the loops of the header that DPCAL_LOOPS names for three widths of registers. */

#undef DPCAL_TARGET
#undef DPCAL_NAME
#define DPCAL_TARGET
#define DPCAL_NAME(name) name##_plain
#include DPCAL_LOOPS

#undef DPCAL_WIDEST
#if defined(__x86_64__) && defined(__GNUC__) && !defined(DPCAL_BASELINE)
#undef DPCAL_TARGET
#undef DPCAL_NAME
#define DPCAL_TARGET __attribute__((target("avx2")))
#define DPCAL_NAME(name) name##_avx2
#include DPCAL_LOOPS
#undef DPCAL_TARGET
#undef DPCAL_NAME
#define DPCAL_TARGET __attribute__((target("avx512f")))
#define DPCAL_NAME(name) name##_avx512f
#include DPCAL_LOOPS
#define DPCAL_WIDEST(name) \
    (__builtin_cpu_supports("avx512f") ? name##_avx512f : __builtin_cpu_supports("avx2") ? name##_avx2 : name##_plain)
#else
#define DPCAL_WIDEST(name) name##_plain
#endif
