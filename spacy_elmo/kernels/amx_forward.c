/* One direction of one LSTM layer over a window of steps: the products, the cell and the projection. */
#include "amx.h"

#ifdef HAS_AMX
/* 16 rows of 16 units. sums: four tiles, one a gate; the other addresses: the first row's. */
typedef struct {
    const float *sums, *bias, *cell_in, *keep;
    float *cell_out;
    bfloat16 *gates, *outs;
    size_t dim, rows, valid;
    float bound;
} Units;

/* Gates go past the caches: nothing reads them before the backward pass. */
INLINE void cell_row(const Units *u, size_t row) {
    const float *bias = u->bias, *sums = u->sums + row * 16;
    __m256i *out = (__m256i *)(u->outs + row * 32);
    if (row >= u->valid) {
        _mm256_storeu_si256(out, _mm256_setzero_si256());
        return;
    }
    __m512 i = sigmoid16(_mm512_add_ps(_mm512_load_ps(sums), _mm512_loadu_ps(bias)));
    __m512 j = tanh16(_mm512_add_ps(_mm512_load_ps(sums + 256), _mm512_loadu_ps(bias + u->dim)));
    __m512 f = sigmoid16(_mm512_add_ps(_mm512_load_ps(sums + 512), _mm512_loadu_ps(bias + 2 * u->dim)));
    __m512 o = sigmoid16(_mm512_add_ps(_mm512_load_ps(sums + 768), _mm512_loadu_ps(bias + 3 * u->dim)));
    __m512 c = _mm512_loadu_ps(u->cell_in + row * 16);
    if (u->keep) c = _mm512_mul_ps(c, _mm512_set1_ps(u->keep[row]));
    c = clamp16(_mm512_fmadd_ps(f, c, _mm512_mul_ps(i, j)), u->bound);
    _mm512_storeu_ps(u->cell_out + row * 16, c);
    _mm512_stream_si512((void *)(u->gates + row * 32), narrow_two(i, j));
    _mm512_stream_si512((void *)(u->gates + (u->rows + row) * 32), narrow_two(f, o));
    _mm256_storeu_si256(out, narrow(_mm512_mul_ps(o, tanh16(c))));
}

/* The sums of 16 rows and 64 columns, clipped, into out (rows, n). */
INLINE void store_clipped(const float *sums, bfloat16 *out, size_t n, float bound) {
    for (int row = 0; row < 16; row++)
        for (int tile = 0; tile < 4; tile++) {
            __m512 x = clamp16(_mm512_load_ps(sums + tile * 256 + row * 16), bound);
            _mm256_storeu_si256((__m256i *)(out + row * n + tile * 16), narrow(x));
        }
}

/* batch rows, padded. inputs (steps, rows, n_in + width): x, zeros in the padding; the state is written beside it.
 * packed: the weight (n_in + width, 4 dim), its groups 16 units' gates; packed_w_p: (dim, width). bias (4 dim), the
 * forget bias included. keep (steps, batch) or NULL. cells (steps + 1, ...), hidden (steps + 1, rows, width): step 0
 * in, the rest out. gates (steps, ...), outs (steps, blocked (rows, dim)): out. A clip < 0 means none. */
EXPORT AMX void lstm_forward_amx(int steps, int batch, int dim, int n_in, int width, bfloat16 *restrict inputs,
                                 const bfloat16 *restrict packed, const bfloat16 *restrict packed_w_p,
                                 const float *restrict bias, const float *restrict keep, float *restrict cells,
                                 bfloat16 *restrict hidden, bfloat16 *restrict gates, bfloat16 *restrict outs,
                                 float cell_clip, float proj_clip) {
    _Alignas(64) float sums[2][1024];
    size_t rows = PADDED(batch), both = (size_t)n_in + width;
    float bound = cell_clip < 0 ? INFINITY : cell_clip, proj_bound = proj_clip < 0 ? INFINITY : proj_clip;
    tiles_begin();
    for (int t = 0; t < steps; t++) {
        const float *kept = keep ? keep + (size_t)t * batch : NULL;
        for (int row = 0; row < batch; row++)
            for (int k = 0; k < width; k += 16) {
                __m512 h = widen(_mm256_loadu_si256((const __m256i *)(hidden + row * (size_t)width + k)));
                if (kept) h = _mm512_mul_ps(h, _mm512_set1_ps(kept[row]));
                _mm256_storeu_si256((__m256i *)(inputs + row * both + n_in + k), narrow(h));
            }
        float *cell_out = cells + rows * dim;
        BARRIER();
        Units before = {0}; /* its cells run between the products of those after it */
        for (size_t unit = 0; unit < (size_t)dim; unit += 16) {
            const bfloat16 *right = packed + unit * 4 * both;
            for (size_t row = 0; row < rows; row += 16) {
                float *of_tile = sums[row / 16 % 2];
                Units now = {of_tile, bias + unit, cells + unit * rows + row * 16, kept ? kept + row : NULL,
                             cell_out + unit * rows + row * 16, gates + unit * 4 * rows + row * 32,
                             outs + unit / 32 * 32 * rows + row * 32 + unit % 32, dim, rows,
                             row < (size_t)batch ? batch - row : 0, bound};
                size_t done = 0;
                tiles_zero();
                for (size_t k = 0; k < both; k += 32) {
                    tiles_multiply(inputs + row * both + k, 2 * both, right + k * 64);
                    for (; before.sums && done * both < 16 * (k + 32); done++) cell_row(&before, done);
                }
                tiles_store(of_tile);
                before = now;
            }
        }
        for (size_t row = 0; row < 16; row++) cell_row(&before, row);
        BARRIER();
        hidden += rows * width;
        for (int group = 0; group < width; group += 64)
            for (size_t row = 0; row < rows; row += 16) {
                tiles_zero();
                for (int k = 0; k < dim; k += 32)
                    tiles_multiply(outs + k * rows + row * 32, 64, packed_w_p + ((size_t)group * dim + k * 64));
                tiles_store(sums[0]);
                store_clipped(sums[0], hidden + row * width + group, width, proj_bound);
            }
        cells = cell_out, inputs += rows * both, gates += rows * 4 * dim, outs += rows * dim;
    }
    _mm_sfence();
    tiles_end();
}
#endif
