/* The LSTM cell of one step, fused: all gates in one pass over memory. Plain float32 arrays, one thread.
 * Gates stand in the order i, j, f, o; clip < 0 means none. The torch twin is modules/lstm_scan.py. */
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Cephes' expf: relative error below 2e-7 within the clamped range; vectorises. */
static inline float exp_(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    float n = rintf(x * 1.44269504088896341f);
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    int bits = ((int)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return y * scale;
}

static inline float sigmoid_(float x) { return 1.0f / (1.0f + exp_(-x)); }
static inline float tanh_(float x) { return 1.0f - 2.0f / (1.0f + exp_(2.0f * x)); }

/* gates (batch, 4 dim): sums in, activations out. cell_in, cell_out, out: (batch, dim). keep: (batch,) or NULL. */
void cell_forward(int batch, int dim, float *restrict gates, const float *restrict cell_in,
                  const float *restrict keep, float *restrict cell_out, float *restrict out, float clip) {
    float bound = clip < 0 ? INFINITY : clip;
    for (int row = 0; row < batch; row++) {
        float *restrict gi = gates + (size_t)row * 4 * dim, *restrict gj = gi + dim;
        float *restrict gf = gj + dim, *restrict go = gf + dim;
        const float *restrict c0 = cell_in + (size_t)row * dim;
        float *restrict c1 = cell_out + (size_t)row * dim, *restrict y = out + (size_t)row * dim;
        float kept = keep ? keep[row] : 1.0f;
        for (int k = 0; k < dim; k++) {
            float i = sigmoid_(gi[k]), j = tanh_(gj[k]), f = sigmoid_(gf[k]), o = sigmoid_(go[k]);
            float c = f * (kept * c0[k]) + i * j;
            c = c > bound ? bound : c;
            c = c < -bound ? -bound : c;
            gi[k] = i, gj[k] = j, gf[k] = f, go[k] = o;
            c1[k] = c;
            y[k] = o * tanh_(c);
        }
    }
}

/* d_cell (batch, dim): the gradient of cell_out in, that of cell_in out; d_out (batch, dim); d_gates (batch, 4 dim). */
void cell_backward(int batch, int dim, const float *restrict gates, const float *restrict cell_in,
                   const float *restrict keep, const float *restrict cell_out, const float *restrict d_out,
                   float *restrict d_cell, float *restrict d_gates, float clip) {
    float bound = clip < 0 ? INFINITY : clip;
    for (int row = 0; row < batch; row++) {
        const float *restrict gi = gates + (size_t)row * 4 * dim, *restrict gj = gi + dim;
        const float *restrict gf = gj + dim, *restrict go = gf + dim;
        const float *restrict c0 = cell_in + (size_t)row * dim, *restrict c1 = cell_out + (size_t)row * dim;
        const float *restrict dy = d_out + (size_t)row * dim;
        float *restrict dc_ = d_cell + (size_t)row * dim;
        float *restrict di = d_gates + (size_t)row * 4 * dim, *restrict dj = di + dim;
        float *restrict df = dj + dim, *restrict d_o = df + dim;
        float kept = keep ? keep[row] : 1.0f;
        for (int k = 0; k < dim; k++) {
            float i = gi[k], j = gj[k], f = gf[k], o = go[k], c = c1[k], t = tanh_(c);
            float dc = dc_[k] + dy[k] * o * (1.0f - t * t);
            dc = (c >= bound || c <= -bound) ? 0.0f : dc;
            di[k] = dc * j * i * (1.0f - i);
            dj[k] = dc * i * (1.0f - j * j);
            df[k] = dc * (kept * c0[k]) * f * (1.0f - f);
            d_o[k] = dy[k] * t * o * (1.0f - o);
            dc_[k] = dc * f * kept;
        }
    }
}
