/* The largest errors in units of 2^-52 at random arguments, beside long doubles. */
#include <stdio.h>
#include "law.h"

static unsigned long long state = 88172645463325252ULL;
static double uniform(double low, double high) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return low + (high - low) * ((double)(state >> 11) * 0x1p-53);
}
static double power(double low, double high) { return pow(10.0, uniform(low, high)); }
static double worst[7];
static void compare(int which, double found, long double truth, long double scale) {
    const double units = (double)(fabsl(found - truth) / scale / 0x1p-52L);
    worst[which] = units > worst[which] || isnan(units) ? units : worst[which];
}
static long double second(long double x) {
    long double sum = 0.0L, term = 0.5L * x * x;
    if (fabsl(x) > 1.5L)
        return expm1l(x) - x;
    for (int n = 3; n < 40; n++, term *= x / (n - 1))
        sum += term;
    return sum;
}

int main(void) {
    for (int row = 0; row < 40000; row++) {
        double x[8], y[8], z[8], a[8], b[8];
        dpcal_v *u = (dpcal_v *)x, *v = (dpcal_v *)y, *w = (dpcal_v *)z;
        dpcal_v *f = (dpcal_v *)a, *g = (dpcal_v *)b;
        for (int j = 0; j < 8; j++) {
            x[j] = row % 3 == 1 ? power(-20, 5) : -power(-16, -0.1);
            x[j] = row % 3 == 0 ? uniform(-0.8, 2.0) : x[j];
            y[j] = 1.0 + x[j];
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF) {
            DPCAL_WIDEST(dpcal_log1p)(u + i, v + i, f + i);
        }
        for (int j = 0; j < 8; j++) {
            compare(0, a[j], log1pl(x[j]), fabsl(log1pl(x[j])));
            y[j] = power(-280, 280);
            x[j] = y[j] - 1.0;
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_WIDEST(dpcal_log1p)(u + i, v + i, f + i);
        for (int j = 0; j < 8; j++) {
            compare(1, a[j], logl(y[j]), fabsl(logl(y[j])));
            x[j] = row % 2 ? uniform(-10, 10) : uniform(-1e6, 1e6);
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_WIDEST(dpcal_turn)(u + i, f + i, g + i);
        for (int j = 0; j < 8; j++) {
            compare(2, a[j], cosl(x[j]), 1.0L);
            compare(2, b[j], sinl(x[j]), 1.0L);
            x[j] = uniform(-1, 1), y[j] = uniform(-1, 1) * power(-20.0 * (row % 2), 0);
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_WIDEST(dpcal_angle)(u + i, v + i, f + i);
        for (int j = 0; j < 8; j++) {
            compare(3, a[j], atan2l(y[j], x[j]), fabsl(atan2l(y[j], x[j])));
            x[j] = uniform(-1.2, 1.2) * power(-8.0 * (row % 4 > 1), 0);
            x[j] = row % 2 ? uniform(-700, 700) : x[j];
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_EXPONENTIALS(u[i], f[i], g[i], w[i]);
        for (int j = 0; j < 8; j++) {
            compare(4, a[j], second(x[j]), fabsl(second(x[j])));
            compare(5, b[j], expm1l(x[j]), fabsl(expm1l(x[j])));
            compare(6, z[j], expl(x[j]), expl(x[j]));
        }
    }
    for (int i = 0; i < 7; i++)
        printf("%.3f ", worst[i]);
    return 0;
}
