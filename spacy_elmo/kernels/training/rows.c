/* Updates of some rows of a table. The table has far more rows than one training step uses. The version in torch is
 * pretraining/optimizers.py. */
#include "../common/common.h"

/* Adam (Kingma and Ba 2015). Only the given rows are updated.
 * rows (n): which rows of the table
 * d_rows (n, width): their gradients
 * weight (all rows, width): the table, updated
 * first, second (all rows, width): the moments of the gradients, updated
 * step_size: the learning rate divided by 1 - beta1^t, after t steps
 * correction: sqrt(1 - beta2^t) */
EXPORT LOOP void adam_rows(int64_t n, int width, const int64_t *restrict rows, const float *restrict d_rows,
                           float *restrict weight, float *restrict first, float *restrict second, float step_size,
                           float correction, float beta1, float beta2, float epsilon) {
    for (int64_t i = 0; i < n; i++) {
        size_t start = (size_t)rows[i] * width;
        const float *restrict g = d_rows + (size_t)i * width;
        float *restrict w = weight + start, *restrict m = first + start, *restrict v = second + start;
        for (int k = 0; k < width; k++) {
            m[k] = beta1 * m[k] + (1.0f - beta1) * g[k];
            v[k] = beta2 * v[k] + (1.0f - beta2) * g[k] * g[k];
            w[k] -= step_size * m[k] / (sqrtf(v[k]) / correction + epsilon);
        }
    }
}

/* Adagrad (Duchi et al. 2011). Only the given rows are updated. rows, d_rows and weight are as in adam_rows.
 * squares (all rows, width): the sums of the squared gradients, updated */
EXPORT LOOP void adagrad_rows(int64_t n, int width, const int64_t *restrict rows, const float *restrict d_rows,
                              float *restrict weight, float *restrict squares, float rate, float epsilon) {
    for (int64_t i = 0; i < n; i++) {
        size_t start = (size_t)rows[i] * width;
        const float *restrict g = d_rows + (size_t)i * width;
        float *restrict w = weight + start, *restrict s = squares + start;
        for (int k = 0; k < width; k++) {
            s[k] += g[k] * g[k];
            w[k] -= rate * g[k] / (sqrtf(s[k]) + epsilon);
        }
    }
}
