/* One direction of one LSTM layer on AMX, only forward, over rows of different lengths. It stores nothing for a
 * backward pass.
 *
 * The inputs are multiplied by their weight before the steps: for all positions of some steps together, or once for
 * each distinct word. Their sums are float16. A step only multiplies the state by its weight. */
#include "amx.h"

#ifdef COMPILES_BF16
#define SUMS 2048 /* floats in the sums of 32 rows and 64 columns: two tiles of rows by four tiles of gates */

/* Adds left times right to tiles 0 to 3, for 32 values of k: two tiles of rows by two tiles of columns.
 * left: the first of two tiles of rows, one after the other
 * right: the first of two tiles of columns, one after the other */
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

/* What computes the cells of 16 units and at most 32 rows, after their matrix multiplication. Each call of `cell` does
 * one row. These calls run between the tile multiplications for the next rows or units, so that both overlap. */
typedef struct {
    const float *sums; /* the state times its weight: gate g of row r begins at 512 g + 16 r */
    size_t count;      /* rows in use */
    const uint16_t *inputs; /* sums of inputs for these units */
    const int32_t *places;  /* (count): the row of inputs for each row */
    float *cells;           /* (count, 16): in: the previous cells; out: the new cells */
    bfloat16 *outs;         /* (count, 16), rows 32 values apart: out, before the projection */
    float bound;            /* of the cells */
} Cells;

ALWAYS_INLINE FOR_AMX void cell(const Cells *u, size_t row) {
    const uint16_t *x = u->inputs + (size_t)u->places[row] * (GATES * UNITS);
    __m512 z[GATES];
    UNROLLED for (int gate = 0; gate < GATES; gate++)
        z[gate] = _mm512_add_ps(_mm512_load_ps(u->sums + row * 16 + 512 * gate), load_half(x + UNITS * gate));
    const __m512 c = cell16(z, _mm512_loadu_ps(u->cells + row * 16), u->bound);
    _mm512_storeu_ps(u->cells + row * 16, c);
    _mm256_storeu_si256((__m256i *)(u->outs + row * 32), output16(z, c));
}

/* sums = left times right, for 32 rows (16 if count is at most 16) and 64 columns. All cells of `before` are computed
 * meanwhile.
 * left: the first row, blocked; the array has `rows` rows
 * right: the first of k / 32 groups
 * count: rows in use
 * sums: out; column tile g of row r begins at 512 g + 16 r
 * next: memory that a later call reads; it is prefetched, `lines` cache lines of 64 bytes for each group */
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
            tiles_store(sums + pass * 1024); /* rows 0 to 15 of a gate, and after them rows 16 to 31 */
        }
    }
    BARRIER();
}

/* Computes the sums of n inputs.
 * begin: the first row of `inputs` that is written
 * x (n, width), blocked: the inputs
 * packed (width, 4 dim): the weight of the input
 * inputs: out, rows begin to begin + n */
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

/* Computes `steps` steps, the first of which is step `first`. The other arguments are arrays of the call. */
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
        Cells before = none; /* its cells are computed between the multiplications for the next rows */
        for (size_t unit = 0; unit < dim; unit += 16)
            for (size_t row = 0; row < here; row += 32, turn ^= 1) {
                size_t count = here - row < 32 ? here - row : 32;
                const bfloat16 *next = packed + (unit + 16) * 4 * width + row / 32 * lines * width;
                multiply_32_64(state + row * 32, rows, width, packed + unit * 4 * width, count, sums[turn], &before,
                               next, lines);
                before = (Cells){sums[turn], count, inputs + unit * n * 4, of_step + row,
                                 cells + unit * rows + row * 16, outs + unit / 32 * 32 * rows + row * 32 + unit % 32,
                                 bound};
            }
        for (size_t row = 0; row < before.count; row++) cell(&before, row);
        BARRIER();
        for (size_t group = 0; group < width; group += 64)
            for (size_t row = 0; row < here; row += 32) {
                size_t count = here - row < 32 ? here - row : 32;
                multiply_32_64(outs + row * 32, rows, dim, packed_w_p + group * dim, count, sums[0], &none, packed_w_p,
                               0);
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

#define OWN_STEPS
#define NAME(name) amx_##name
#define TARGET FOR_AMX
#define LANES 16
#define OPERAND bfloat16
#define ROWS PADDED
#define STORE_OPERANDS(to, x) _mm256_storeu_si256((__m256i *)(to), narrow((__m512)(x)))
#include "scan.inc"
#endif
