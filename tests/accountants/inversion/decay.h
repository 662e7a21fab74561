/* Bounds on log abs(psi) over [t, ratio t] of a law of points. Standard input: the numbers of points on the real line and
   on the line, their rows, E_P l, the tilt, the ratio, and times. */
#include <stdio.h>
#include "law.h"

static double next(void) {
    double x;
    return scanf("%la", &x) == 1 ? x : NAN;
}
static double *rows(ptrdiff_t n) {
    double *p = malloc((size_t)(n + 1) * sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++)
        p[i] = next();
    return p;
}

int main(void) {
    dpcal_law law = {0};
    dpcal_work work = {0};
    dpcal_tilt tilt;
    const ptrdiff_t n = law.n = (ptrdiff_t)next(), on_line = (ptrdiff_t)next();
    double *p = rows(5 * n), *block, c, ratio, t;
    law.loss = p, law.mass = p + n, law.log_mass = p + 2 * n, law.error = p + 3 * n, law.slope = p + 4 * n;
    law.line = dpcal_line_of(rows(6 * on_line), on_line);
    law.owned = law.far = 1, law.latest = INFINITY, law.mean = next();
    c = next(), ratio = next(), law.highest = c;
    for (ptrdiff_t j = 0; j < n; j++)
        law.largest = fmax(law.largest, law.loss[j]), law.least = fmin(law.least, law.loss[j]);
    block = malloc((size_t)(8 * on_line) * sizeof(double));
    if (dpcal_grow(&work.block, &work.capacity, n) || dpcal_tilt_law(&law, c, 0.0, &work, &block, &tilt))
        return 1;
    while (!isnan(t = next()))
        printf("%a\n", dpcal_log_decay(&tilt, t, ratio));
    return 0;
}
