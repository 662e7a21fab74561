/* A program that asks for an epsilon of steps on Poisson samples, in both directions. */
#include <stdio.h>
#include "contour.h"

int main(void) {
    dpcal_law remove, add;
    dpcal_law *laws[2] = {&remove, &add};
    const double steps = 9000.0;
    dpcal_direction directions[2] = {{&laws[0], &steps, 1}, {&laws[1], &steps, 1}};
    dpcal_work work = {0};
    dpcal_answer answer;
    dpcal_sampled_gaussian(&remove, 0.013, 1.07, 0);
    dpcal_sampled_gaussian(&add, 0.013, 1.07, 1);
    dpcal_worst_epsilon(directions, 2, log(1e-6), &work, &answer);
    printf("%d %.17g %.17g\n", answer.status, answer.lower, answer.upper);
    dpcal_free_law(&remove);
    dpcal_free_law(&add);
    dpcal_free_work(&work);
    return 0;
}
