/* One direction of one LSTM layer, forward alone, over rows of different lengths: nothing is kept for a backward pass.
 *
 * The inputs are multiplied before, for all positions of some steps or once for each distinct word: their sums are
 * float16. A step multiplies the state alone. */
#include "../common/amx.h"
#include "../common/calls.h"

#ifdef COMPILES_BF16
#define SUMS 2048 /* floats: two tiles of rows, four of gates */

/* Tiles 0 to 3 += left right for 32 of k: two tiles of rows by two of columns. right: the first of the two. */
ALWAYS_INLINE FOR_AMX void multiply_2_2(const bfloat16 *left, const bfloat16 *right) {
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, left + TILE, 64);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(7, right + TILE, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
}

/* What follows the multiplication of 32 rows and 64 columns, one row a call, between those of the next ones. */
typedef struct {
    const float *sums; /* of gate or column tile g, row r: 512 g + 16 r */
    size_t count;      /* rows that are there */
    const uint16_t *inputs;
    const int32_t *places;
    float *cells;
    bfloat16 *outs;
    float bound;
} Cells;

ALWAYS_INLINE FOR_AMX __m512 sum_with_input(const float *sums, const uint16_t *x, enum Gate gate) {
    return _mm512_add_ps(_mm512_load_ps(sums + 512 * gate), load_half(x + UNITS * gate));
}

ALWAYS_INLINE FOR_AMX void cell(const Cells *u, size_t row) {
    const float *sums = u->sums + row * 16;
    const uint16_t *x = u->inputs + (size_t)u->places[row] * (GATES * UNITS);
    __m512 i = sigmoid16(sum_with_input(sums, x, GATE_I));
    __m512 j = tanh16(sum_with_input(sums, x, GATE_J));
    __m512 f = sigmoid16(sum_with_input(sums, x, GATE_F));
    __m512 o = sigmoid16(sum_with_input(sums, x, GATE_O));
    __m512 c = _mm512_fmadd_ps(f, _mm512_loadu_ps(u->cells + row * 16), _mm512_mul_ps(i, j));
    c = clamp16(c, u->bound);
    _mm512_storeu_ps(u->cells + row * 16, c);
    _mm256_storeu_si256((__m256i *)(u->outs + row * 32), narrow(_mm512_mul_ps(o, tanh16(c))));
}

/* sums = left right: 32 rows (16, where no more are there) by 64 columns over k. left: the first row; right: a
 * group. Meanwhile the cells of `before`, all of them by the end. */
ALWAYS_INLINE FOR_AMX void multiply_32_64(const bfloat16 *left, size_t rows, size_t k, const bfloat16 *right,
                                          size_t count, float *sums, const Cells *before, const bfloat16 *next,
                                          size_t lines) {
    size_t done = 0, blocks = k / 32;
    if (count <= 16) {
        tiles_zero();
        for (size_t b = 0; b < blocks; b++) {
            for (size_t line = 0; line < lines; line++, next += 32) _mm_prefetch((const char *)next, _MM_HINT_T1);
            tiles_multiply(left + b * rows * 32, 64, right + b * GROUP);
            for (; done < before->count && done * blocks < before->count * (b + 1); done++) cell(before, done);
        }
        _tile_stored(0, sums, 64);
        _tile_stored(1, sums + 512, 64);
        _tile_stored(2, sums + 1024, 64);
        _tile_stored(3, sums + 1536, 64);
    } else {
        for (size_t pass = 0; pass < 2; pass++) {
            tiles_zero();
            for (size_t b = 0; b < blocks; b++) {
                for (size_t line = 0; line < lines / 2; line++, next += 32)
                    _mm_prefetch((const char *)next, _MM_HINT_T1);
                multiply_2_2(left + b * rows * 32, right + b * GROUP + pass * 2 * TILE);
                size_t at = pass * blocks + b + 1;
                for (; done < before->count && done * 2 * blocks < before->count * at; done++) cell(before, done);
            }
            tiles_store(sums + pass * 1024); /* rows 0 to 15 and 16 to 31 of a gate lie side by side */
        }
    }
    BARRIER();
}

/* Sums of inputs: x (n, width), blocked; packed: the weight of the input. n rows of inputs, from `begin` on. */
NOT_INLINED FOR_AMX void amx_inputs(const LayerCall *call, size_t n, size_t begin, const bfloat16 *restrict x,
                                    const bfloat16 *restrict packed, uint16_t *restrict inputs) {
    _Alignas(64) float sums[SUMS];
    const size_t rows = PADDED(n), k = call->width, dim = call->dim, all = call->n_inputs;
    const float *restrict bias = call->bias;
    const Cells none = {0};
    tiles_begin();
    for (size_t unit = 0; unit < dim; unit += 16)
        for (size_t row = 0; row < n; row += 32) {
            size_t count = n - row < 32 ? n - row : 32;
            multiply_32_64(x + row * 32, rows, k, packed + unit * 4 * k, count, sums, &none, packed, 0);
            for (size_t r = 0; r < count; r++)
                for (int gate = 0; gate < 4; gate++) {
                    __m512 sum = _mm512_load_ps(sums + 512 * gate + 16 * r);
                    sum = _mm512_add_ps(sum, _mm512_loadu_ps(bias + gate * dim + unit));
                    uint16_t *to = inputs + (unit / 16 * all + begin + row + r) * 64 + gate * 16;
                    _mm256_storeu_si256((__m256i *)to, half_of(sum));
                }
        }
    tiles_end();
}

/* `steps` steps from the step `first` on. */
NOT_INLINED FOR_AMX void amx_scan(const LayerCall *call, size_t first, size_t steps, const uint16_t *restrict inputs,
                                  const bfloat16 *restrict packed, const bfloat16 *restrict packed_w_p,
                                  float *restrict cells, bfloat16 *restrict state, bfloat16 *restrict outs,
                                  float *restrict out) {
    _Alignas(64) float sums[2][SUMS];
    const size_t rows = PADDED(call->batch), dim = call->dim, width = call->width, n = call->n_inputs;
    const int32_t *restrict active = call->active + first, *restrict places = call->places;
    const int64_t *restrict offsets = call->offsets + first;
    const float bound = call->cell_bound, proj_bound = call->proj_bound;
    const Cells none = {0};
    tiles_begin();
    for (size_t t = 0; t < steps; t++) {
        const int32_t *of_step = places + offsets[t];
        size_t here = active[t], turn = 0, lines = 64 / ((here + 31) / 32);
        Cells before = none; /* its cells run between the multiplications of those after it */
        for (size_t unit = 0; unit < dim; unit += 16)
            for (size_t row = 0; row < here; row += 32, turn ^= 1) {
                size_t count = here - row < 32 ? here - row : 32;
                const bfloat16 *next = packed + (unit + 16) * 4 * width + row / 32 * lines * width;
                multiply_32_64(state + row * 32, rows, width, packed + unit * 4 * width, count, sums[turn], &before, next, lines);
                before = (Cells){sums[turn], count, inputs + unit * n * 4, of_step + row,
                                 cells + unit * rows + row * 16, outs + unit / 32 * 32 * rows + row * 32 + unit % 32,
                                 bound};
            }
        for (size_t row = 0; row < before.count; row++) cell(&before, row);
        BARRIER();
        for (size_t group = 0; group < width; group += 64)
            for (size_t row = 0; row < here; row += 32) {
                size_t count = here - row < 32 ? here - row : 32;
                multiply_32_64(outs + row * 32, rows, dim, packed_w_p + group * dim, count, sums[0], &none, packed_w_p, 0);
                for (size_t r = 0; r < count; r++)
                    for (size_t tile = 0; tile < 4; tile++) {
                        __m512 y = clamp16(_mm512_load_ps(sums[0] + 512 * tile + 16 * r), proj_bound);
                        size_t column = group + tile * 16;
                        _mm512_storeu_ps(out + (offsets[t] + row + r) * width + column, y);
                        bfloat16 *h = state + column / 32 * 32 * rows + (row + r) * 32 + column % 32;
                        _mm256_storeu_si256((__m256i *)h, narrow(y));
                    }
            }
    }
    tiles_end();
}

#define NAME(name) amx_##name
#define TARGET FOR_AMX
#define OPERAND bfloat16
#define INPUT_SUM uint16_t
#define K_BLOCK ((size_t)32)
ALWAYS_INLINE FOR_AMX void store_operands(bfloat16 *to, __m512 x) { _mm256_storeu_si256((__m256i *)to, narrow(x)); }

#include "layer.inc"
#endif
