/* Copies the results of inference into the arrays that the engine returns. The version in numpy is in
 * inference/engine.py. */
#include "../common/common.h"

/* Copies rows of `source` into an array for each sentence.
 * lengths (sentences): number of positions of each sentence; `boundary` positions at both of its ends are left out
 * places (all positions of all sentences): the row of `source` for each position
 * source (any, width): the rows
 * targets (sentences): address of the first value for each sentence; its rows begin target_width values apart */
EXPORT void fill_rows(int sentences, int boundary, int width, int target_width, const int64_t *restrict lengths,
                      const int64_t *restrict places, const float *restrict source, float *const *restrict targets) {
    for (int s = 0; s < sentences; s++) {
        float *target = targets[s];
        for (int64_t p = boundary; p < lengths[s] - boundary; p++, target += target_width)
            memcpy(target, source + (size_t)places[p] * width, (size_t)width * sizeof *target);
        places += lengths[s];
    }
}
