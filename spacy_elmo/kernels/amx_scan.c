/* One direction of one LSTM layer, forward alone, over rows of different lengths: nothing is kept for a backward pass.
 *
 * The input's products (inputs) are taken before, for all positions of some steps or once for each distinct word; a
 * step multiplies the state alone. Layouts as in amx.h; besides
 *   inputs: [dim / 16][n][4][16], float16: of each row or word the sums of 16 units' gates i, j, f, o, bias included.
 *   state (rows, width): blocked. */
#include "amx.h"

#ifdef HAS_AMX
#define SUMS 2048 /* floats: two tiles of rows, four of gates */

/* Tiles 0 to 3 += left right for 32 of k: two tiles of rows by two of columns. right: the first of the two. */
INLINE void multiply_2_2(const bfloat16 *left, const bfloat16 *right) {
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, left + TILE, 64);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(7, right + TILE, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
}

/* What follows the products of a block of 32 rows and 64 columns, one row a call, between the next block's products. */
typedef struct {
    const float *sums; /* of gate or column tile g, row r: 512 g + 16 r */
    size_t count;      /* rows that are there */
    const uint16_t *inputs;
    const int32_t *index;
    float *cells;
    bfloat16 *outs;
    float bound;
} Cells;

INLINE void cell(const Cells *u, size_t row) {
    const float *sums = u->sums + row * 16;
    const uint16_t *x = u->inputs + (size_t)u->index[row] * 64;
    __m512 i = sigmoid16(_mm512_add_ps(_mm512_load_ps(sums), load_half(x)));
    __m512 j = tanh16(_mm512_add_ps(_mm512_load_ps(sums + 512), load_half(x + 16)));
    __m512 f = sigmoid16(_mm512_add_ps(_mm512_load_ps(sums + 1024), load_half(x + 32)));
    __m512 o = sigmoid16(_mm512_add_ps(_mm512_load_ps(sums + 1536), load_half(x + 48)));
    __m512 c = _mm512_fmadd_ps(f, _mm512_loadu_ps(u->cells + row * 16), _mm512_mul_ps(i, j));
    c = clamp16(c, u->bound);
    _mm512_storeu_ps(u->cells + row * 16, c);
    _mm256_storeu_si256((__m256i *)(u->outs + row * 32), narrow(_mm512_mul_ps(o, tanh16(c))));
}

/* sums = left right: 32 rows (16, where no more are there) by 64 columns over k. left: the block's first row; right: a
 * group. Meanwhile the cells of `before`, all of them by the end. */
INLINE void block(const bfloat16 *left, size_t rows, size_t k, const bfloat16 *right, size_t count, float *sums,
                  const Cells *before, const bfloat16 *next, size_t lines) {
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

/* Sums of inputs: x (n, k), blocked, of `rows`, padded; packed: the weight (k, 4 dim), groups of 16 units' gates; bias
 * (4 dim), the forget bias included. inputs: n rows of `all`, from `begin` on. */
INNER AMX void amx_inputs(int n, int rows, int k, int dim, int all, int begin, const bfloat16 *restrict x,
                          const bfloat16 *restrict packed, const float *restrict bias, uint16_t *restrict inputs) {
    _Alignas(64) float sums[SUMS];
    const Cells none = {0};
    tiles_begin();
    for (size_t unit = 0; unit < (size_t)dim; unit += 16)
        for (size_t row = 0; row < (size_t)n; row += 32) {
            size_t count = n - row < 32 ? n - row : 32;
            block(x + row * 32, rows, k, packed + unit * 4 * k, count, sums, &none, packed, 0);
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

/* active (steps): rows of each step; offsets (steps): where its positions begin in index and out. index (positions):
 * into inputs, of n. rows: of the arrays, padded. packed: the weight of the state (width, 4 dim); packed_w_p (dim,
 * width). cells, state: in and out; outs (rows, dim), blocked: work. out (positions, width): the projected and clipped
 * outputs. A clip < 0 means none. */
INNER AMX void amx_scan(int steps, int rows, int dim, int width, int n, const int32_t *restrict active,
                        const int64_t *restrict offsets, const int32_t *restrict index,
                        const uint16_t *restrict inputs, const bfloat16 *restrict packed,
                        const bfloat16 *restrict packed_w_p, float *restrict cells, bfloat16 *restrict state,
                        bfloat16 *restrict outs, float *restrict out, float cell_clip, float proj_clip) {
    _Alignas(64) float sums[2][SUMS];
    float bound = cell_clip < 0 ? INFINITY : cell_clip, proj_bound = proj_clip < 0 ? INFINITY : proj_clip;
    const Cells none = {0};
    tiles_begin();
    for (int t = 0; t < steps; t++) {
        const int32_t *of_step = index + offsets[t];
        size_t here = active[t], turn = 0, lines = 64 / ((here + 31) / 32);
        Cells before = none; /* its cells run between the products of those after it */
        for (size_t unit = 0; unit < (size_t)dim; unit += 16)
            for (size_t row = 0; row < here; row += 32, turn ^= 1) {
                size_t count = here - row < 32 ? here - row : 32;
                const bfloat16 *next = packed + (unit + 16) * 4 * width + row / 32 * lines * width;
                block(state + row * 32, rows, width, packed + unit * 4 * width, count, sums[turn], &before, next, lines);
                before = (Cells){sums[turn], count, inputs + unit * n * 4, of_step + row,
                                 cells + unit * rows + row * 16, outs + unit / 32 * 32 * rows + row * 32 + unit % 32,
                                 bound};
            }
        for (size_t row = 0; row < before.count; row++) cell(&before, row);
        BARRIER();
        for (size_t group = 0; group < (size_t)width; group += 64)
            for (size_t row = 0; row < here; row += 32) {
                size_t count = here - row < 32 ? here - row : 32;
                block(outs + row * 32, rows, dim, packed_w_p + group * dim, count, sums[0], &none, packed_w_p, 0);
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
#define AVX512 AMX
#define OPERAND bfloat16
#define INPUT uint16_t
#define BLOCK ((size_t)32)
INLINE void keep(bfloat16 *to, __m512 x) { _mm256_storeu_si256((__m256i *)to, narrow(x)); }

#include "layer.inc"
#endif
