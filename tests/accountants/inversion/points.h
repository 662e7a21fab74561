/* Losses and masses of points on the real and the shifted line, with their errors in units. */
#include <stdio.h>
#include "law.h"

int main(void) {
    const double q[] = {1e-9, 1e-4, 0.013, 0.3, 1 - 1e-9}, sigma[] = {0.02, 0.5, 1.07, 40, 1e4};
    dpcal_work work = {0};
    for (int k = 0; k < 100; k++) {
        dpcal_law law;
        dpcal_sampled_gaussian(&law, q[k % 5], sigma[k / 5 % 5], k / 25 % 2);
        if (dpcal_fill_sampled(&law, k / 50 ? 40 * law.sigma : 1.0, &work))
            continue;
        if (dpcal_fill_line(&law, law.angle, &work))
            continue;
        for (ptrdiff_t j = k % 7; j < law.n; j += law.n / 9) {
            const dpcal_line *line = &law.line;
            printf("%a %a %d %a ", law.q, law.sigma, law.add, law.step);
            printf("%a %a ", law.first + j, law.angle);
            printf("%a %a %a %a ", law.loss[j], law.log_mass[j], law.mass[j], law.slope[j]);
            printf("%a %a %a ", line->re[j], line->im[j], line->error[j]);
            printf("%a %a %a\n", line->size[j], line->phase[j], line->rounding[j]);
        }
        free(law.block);
    }
    dpcal_free_work(&work);
    return 0;
}
