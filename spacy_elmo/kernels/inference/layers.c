/* What the engine returns. The numpy twin is in inference/layers.py. */
#include "../common/common.h"

/* Rows of source (any, width), side by side in the sentences' own arrays. targets (sentences): where each one's first
 * row goes; the next stand target_width values apart. lengths (sentences): their positions; `boundary` at both ends of
 * each are left out. places (all positions): into source. */
EXPORT void fill_rows(int sentences, int boundary, int width, int target_width, const int64_t *restrict lengths,
                      const int64_t *restrict places, const float *restrict source, float *const *restrict targets) {
    for (int s = 0; s < sentences; s++) {
        float *target = targets[s];
        for (int64_t p = boundary; p < lengths[s] - boundary; p++, target += target_width)
            memcpy(target, source + (size_t)places[p] * width, (size_t)width * sizeof *target);
        places += lengths[s];
    }
}
