/* The LSTM cell of one step, forward alone: sums of the state's products and of the input's in, nothing kept. The torch
 * twin is in inference/lstm/torch.py. */
#include "../common/common.h"

/* sums (n, 4 dim): of the state, gates in the order i, j, f, o; inputs (any, 4 dim): of the inputs, biases included;
 * index (n): each row's row of inputs; cells (n, dim): in and out; out (n, dim). bound is infinite where nothing is clipped. */
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
