/* A program that asks for an epsilon of steps on Poisson samples when a record is removed. */
#include <stdio.h>
#include "contour.h"

int main(void) {
    dpcal_law remove;
    dpcal_tilt tilted;
    const double steps = 9000.0;
    dpcal_work work = {0};
    dpcal_question ask = {.laws = &remove, .counts = &steps, .parts = &tilted, .k = 1, .work = &work};
    dpcal_answer answer;
    dpcal_sampled_gaussian(&remove, 0.013, 1.07, 0);
    dpcal_ask(&ask, DPCAL_EPSILON, 0.0, log(1e-6), &answer);
    printf("%d %.17g %.17g\n", answer.status, answer.lower, answer.upper);
    free(remove.block);
    dpcal_free_work(&work);
    return 0;
}
