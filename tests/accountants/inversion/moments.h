/* Log M(c) and the mean of the tilted loss, with their errors, for rows q, sigma, c, add of its arguments. */
#include <stdio.h>
#include "law.h"

int main(int count, char **values) {
    dpcal_work work = {0};
    for (int i = 1; i + 3 < count; i += 4) {
        dpcal_law law;
        dpcal_moments found;
        dpcal_sampled_gaussian(&law, atof(values[i]), atof(values[i + 1]), atoi(values[i + 3]));
        if (dpcal_law_at(&law, atof(values[i + 2]), &work, &found))
            return 1;
        printf("%a %a ", found.log_mass, found.mean);
        printf("%a %a\n", found.error * DPCAL_UNIT, found.mean_error * DPCAL_UNIT);
        free(law.block);
    }
    dpcal_free_work(&work);
    return 0;
}
