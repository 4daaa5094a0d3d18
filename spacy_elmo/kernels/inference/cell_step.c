/* The LSTM cell of one step, only forward: it stores nothing for a backward pass. The matrix multiplications of the
 * state and of the input are done before. The version in torch is in inference/lstm.py. */
#include "../common/common.h"

/* The gates are in the order input gate (i), candidate (j), forget gate (f), output gate (o).
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
            float i = sigmoid_(si[k] + xi[k]), j = tanh_(sj[k] + xj[k]);
            float f = sigmoid_(sf[k] + xf[k]), o = sigmoid_(so[k] + xo[k]);
            float new = clamp_(f * c[k] + i * j, bound);
            c[k] = new;
            y[k] = o * tanh_(new);
        }
    }
}
