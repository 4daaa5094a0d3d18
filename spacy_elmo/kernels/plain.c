/* Loops that the compiler makes fast for each processor by itself: the LSTM cell, the sampled softmax, updates of rows, and
 * the copies at the end of inference. */
#include "common.h"

/* The activations of a unit of the LSTM cell and its new cell, from the sums of its gates and the previous cell. */
typedef struct {
    float i, j, f, o, c;
} Cell;

ALWAYS_INLINE Cell cell_(float i, float j, float f, float o, float before, float bound) {
    Cell u = {sigmoid_(i), tanh_(j), sigmoid_(f), sigmoid_(o), 0.0f};
    u.c = clamp_(u.f * before + u.i * u.j, bound);
    return u;
}

#define NAME(name) name##_float32
#define REAL float
#define READ(x) (x)
#define WRITE(x) (x)
#include "plain.inc"

/* The cell of one step, only forward: it stores nothing for a backward pass. The version in torch is inference/lstm.py.
 * sums (n, 4 dim): the state times its weight
 * inputs (any, 4 dim): the inputs times their weight, biases included
 * index (n): the row of `inputs` that belongs to each row
 * cells (n, dim): in: the previous cells; out: the new cells
 * out (n, dim): out, outputs of the cells before the projection
 * bound: of the cells; infinite if they are not clipped */
EXPORT LOOP void cell_step(int n, int dim, const float *restrict sums, const float *restrict inputs,
                           const int32_t *restrict index, float *restrict cells, float *restrict out, float bound) {
    for (int row = 0; row < n; row++) {
        const float *restrict si = sums + (size_t)row * 4 * dim, *restrict sj = si + dim;
        const float *restrict sf = sj + dim, *restrict so = sf + dim;
        const float *restrict xi = inputs + (size_t)index[row] * 4 * dim, *restrict xj = xi + dim;
        const float *restrict xf = xj + dim, *restrict xo = xf + dim;
        float *restrict c = cells + (size_t)row * dim, *restrict y = out + (size_t)row * dim;
        for (int k = 0; k < dim; k++) {
            Cell u = cell_(si[k] + xi[k], sj[k] + xj[k], sf[k] + xf[k], so[k] + xo[k], c[k], bound);
            c[k] = u.c;
            y[k] = u.o * tanh_(u.c);
        }
    }
}

#undef NAME
#undef REAL
#undef READ
#undef WRITE
#define NAME(name) name##_bfloat16
#define REAL bfloat16
#define READ from_bfloat16
#define WRITE to_bfloat16
#include "plain.inc"

/* Updates of some rows of a table, which has far more rows than one training step uses. The versions in torch are in
 * pretraining/optimizers.py. */

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

/* Copies rows of `source` into an array for each sentence. The version in numpy is in inference/engine.py.
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
