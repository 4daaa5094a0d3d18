/* One direction of one LSTM layer over a window of steps, forward, for training: the matrix multiplications, the cell
 * and the projection. */
#include "../common/amx.h"
#include "../common/calls.h"

#ifdef COMPILES_BF16
/* 16 rows of 16 units.
 * sums: four tiles, one for each gate
 * valid: how many of the rows are not padding
 * The other addresses are those of the first row and the first unit, in the arrays of the call. */
typedef struct {
    const float *sums, *bias, *cell_in, *keep;
    float *cell_out;
    bfloat16 *gates, *outs;
    size_t dim, rows, valid;
    float bound;
} Units;

/* The sums of one gate, bias included, for one row of 16 units. */
ALWAYS_INLINE FOR_AMX __m512 sum_with_bias(const float *sums, const float *bias, enum Gate gate, size_t dim) {
    return _mm512_add_ps(_mm512_load_ps(sums + 256 * gate), _mm512_loadu_ps(bias + gate * dim));
}

/* Computes the cells of one row of 16 units. The gates are written to memory without the caches, because nothing reads
 * them before the backward pass. */
ALWAYS_INLINE FOR_AMX void cell_row(const Units *u, size_t row) {
    const float *bias = u->bias, *sums = u->sums + row * 16;
    __m256i *out = (__m256i *)(u->outs + row * 32);
    if (row >= u->valid) {
        _mm256_storeu_si256(out, _mm256_setzero_si256());
        return;
    }
    __m512 i = sigmoid16(sum_with_bias(sums, bias, GATE_I, u->dim));
    __m512 j = tanh16(sum_with_bias(sums, bias, GATE_J, u->dim));
    __m512 f = sigmoid16(sum_with_bias(sums, bias, GATE_F, u->dim));
    __m512 o = sigmoid16(sum_with_bias(sums, bias, GATE_O, u->dim));
    __m512 c = _mm512_loadu_ps(u->cell_in + row * 16);
    if (u->keep) c = _mm512_mul_ps(c, _mm512_set1_ps(u->keep[row]));
    c = clamp16(_mm512_fmadd_ps(f, c, _mm512_mul_ps(i, j)), u->bound);
    _mm512_storeu_ps(u->cell_out + row * 16, c);
    _mm512_stream_si512((void *)(u->gates + row * 32), narrow_two(i, j));
    _mm512_stream_si512((void *)(u->gates + (u->rows + row) * 32), narrow_two(f, o));
    _mm256_storeu_si256(out, narrow(_mm512_mul_ps(o, tanh16(c))));
}

/* Clips the sums of 16 rows and 64 columns and stores them as bfloat16.
 * sums ([4][16][16]): four tiles
 * out (rows, n): out, from its first row and column on */
ALWAYS_INLINE FOR_AMX void store_clipped(const float *sums, bfloat16 *out, size_t n, float bound) {
    for (int row = 0; row < 16; row++)
        for (int tile = 0; tile < 4; tile++) {
            __m512 x = clamp16(_mm512_load_ps(sums + tile * 256 + row * 16), bound);
            _mm256_storeu_si256((__m256i *)(out + row * n + tile * 16), narrow(x));
        }
}

EXPORT FOR_AMX void amx_forward(const AmxForwardCall *call) {
    _Alignas(64) float sums[2][1024];
    const int steps = call->steps, batch = call->batch, dim = call->dim, width = call->width;
    const size_t rows = PADDED(batch), n_in = call->n_in, both = n_in + width;
    const bfloat16 *restrict packed = call->packed, *restrict packed_w_p = call->packed_w_p;
    const float *restrict bias = call->bias, *restrict keep = call->keep;
    bfloat16 *restrict inputs = call->inputs, *restrict hidden = call->hidden, *restrict gates = call->gates;
    bfloat16 *restrict outs = call->outs;
    float *restrict cells = call->cells;
    tiles_begin();
    for (int t = 0; t < steps; t++) {
        const float *keep_step = keep ? keep + (size_t)t * batch : NULL;
        for (int row = 0; row < batch; row++)
            for (int k = 0; k < width; k += 16) {
                __m512 h = widen(_mm256_loadu_si256((const __m256i *)(hidden + row * (size_t)width + k)));
                if (keep_step) h = _mm512_mul_ps(h, _mm512_set1_ps(keep_step[row]));
                _mm256_storeu_si256((__m256i *)(inputs + row * both + n_in + k), narrow(h));
            }
        float *cell_out = cells + rows * dim;
        BARRIER();
        Units before = {0}; /* its cells are computed between the multiplications for the next rows */
        for (size_t unit = 0; unit < (size_t)dim; unit += 16) {
            const bfloat16 *right = packed + unit * 4 * both;
            for (size_t row = 0; row < rows; row += 16) {
                float *of_tile = sums[row / 16 % 2];
                Units now = {of_tile, bias + unit, cells + unit * rows + row * 16, keep_step ? keep_step + row : NULL,
                             cell_out + unit * rows + row * 16, gates + unit * 4 * rows + row * 32,
                             outs + unit / 32 * 32 * rows + row * 32 + unit % 32, dim, rows,
                             row < (size_t)batch ? batch - row : 0, call->cell_bound};
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
                store_clipped(sums[0], hidden + row * width + group, width, call->proj_bound);
            }
        cells = cell_out, inputs += rows * both, gates += rows * 4 * dim, outs += rows * dim;
    }
    _mm_sfence();
    tiles_end();
}
#endif
