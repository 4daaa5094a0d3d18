/* One direction of one LSTM layer in float32 on AVX-512, forward alone, over rows of different lengths: amx_scan.c with
 * other types.
 *
 * Layouts (16 float32 values are one register):
 *   blocked (rows, n): [n / 16][rows][16].
 *   packed (k, n): [n / 32][k][32]; of weights of gates, 64 columns are 16 units' gates i, j, f, o.
 *   inputs: [dim / 16][n][4][16]: of each row or word the sums of 16 units' gates, bias included.
 *   cells (rows, dim): blocked. */
#include "common.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define HAS_AVX512 1
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define INLINE static inline __attribute__((always_inline)) AVX512
#define BLOCK_ROWS 14   /* 28 registers of sums, two of a right operand, one of a left */
#define SUM_ROWS 112    /* of one stretch of sums, 28 KB */
#define PANEL 512       /* of k at a time: 32 columns of a right operand are 64 KB then, and stay in the cache */

EXPORT int has_avx512(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

INLINE size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* sums (n rows, 32 columns; rows 64 apart) += left right. left: the block's first row, `stride` values from one 16 of k
 * to the next. next: what is read later, fetched meanwhile, `lines` of 64 bytes for 16 of k: waiting for memory and
 * multiplying would take their times one after the other. */
INLINE void product_of(const int n, const float *left, size_t stride, size_t k, const float *right, float *sums,
                       const float *next, size_t lines) {
    __m512 first[BLOCK_ROWS], second[BLOCK_ROWS];
#pragma GCC unroll 14
    for (int r = 0; r < n; r++) {
        first[r] = _mm512_loadu_ps(sums + r * 64);
        second[r] = _mm512_loadu_ps(sums + r * 64 + 16);
    }
    for (size_t b = 0; b < k / 16; b++, left += stride) {
        for (size_t line = 0; line < lines; line++, next += 16) _mm_prefetch((const char *)next, _MM_HINT_T1);
        for (int i = 0; i < 16; i++, right += 32) {
            __m512 x = _mm512_loadu_ps(right), y = _mm512_loadu_ps(right + 16);
#pragma GCC unroll 14
            for (int r = 0; r < n; r++) {
                __m512 value = _mm512_set1_ps(left[r * 16 + i]);
                first[r] = _mm512_fmadd_ps(value, x, first[r]);
                second[r] = _mm512_fmadd_ps(value, y, second[r]);
            }
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < n; r++) {
        _mm512_storeu_ps(sums + r * 64, first[r]);
        _mm512_storeu_ps(sums + r * 64 + 16, second[r]);
    }
}

/* Cephes' e^x, relative error below 2e-7; no overflow, a NaN stays one. */
INLINE __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-104.0f), _mm512_min_ps(_mm512_set1_ps(87.0f), x));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), 0x08);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 y = _mm512_set1_ps(1.9875691500e-4f);
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.3981999507e-3f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(8.3334519073e-3f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(4.1665795894e-2f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.6666665459e-1f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(5.0000001201e-1f));
    y = _mm512_fmadd_ps(_mm512_mul_ps(r, r), y, _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
    return _mm512_scalef_ps(y, n);
}

/* 1 / (1 + e^x): the reciprocal to 14 bits, and one step of Newton's. */
INLINE __m512 logistic(__m512 x) {
    __m512 y = _mm512_add_ps(exp16(x), _mm512_set1_ps(1.0f)), r = _mm512_rcp14_ps(y);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(y, r, _mm512_set1_ps(2.0f)));
}
INLINE __m512 sigmoid16(__m512 x) { return logistic(_mm512_sub_ps(_mm512_setzero_ps(), x)); }
INLINE __m512 tanh16(__m512 x) {
    return _mm512_fnmadd_ps(logistic(_mm512_add_ps(x, x)), _mm512_set1_ps(2.0f), _mm512_set1_ps(1.0f));
}
INLINE __m512 clamp16(__m512 x, float bound) { /* these give their second operand where one is a NaN */
    return _mm512_max_ps(_mm512_set1_ps(-bound), _mm512_min_ps(_mm512_set1_ps(bound), x));
}
INLINE __m512 sum_of(const float *a, const float *b) { return _mm512_add_ps(_mm512_loadu_ps(a), _mm512_loadu_ps(b)); }

/* 16 units of one row. */
INLINE void cell(const float *sums, const float *inputs, float *cells, float *out, float bound) {
    __m512 i = sigmoid16(sum_of(sums, inputs)), j = tanh16(sum_of(sums + 16, inputs + 16));
    __m512 f = sigmoid16(sum_of(sums + 32, inputs + 32)), o = sigmoid16(sum_of(sums + 48, inputs + 48));
    __m512 c = _mm512_fmadd_ps(f, _mm512_loadu_ps(cells), _mm512_mul_ps(i, j));
    c = clamp16(c, bound);
    _mm512_storeu_ps(cells, c);
    _mm512_storeu_ps(out, _mm512_mul_ps(o, tanh16(c)));
}

static AVX512 void product_block(size_t n, const float *left, size_t stride, size_t k, const float *right, float *sums,
                                 const float *next, size_t lines) {
    switch (n) {
#define CASE(N) \
    case N: product_of(N, left, stride, k, right, sums, next, lines); break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
        CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#undef CASE
    }
}

/* sums (n rows, 32 columns; rows 64 apart) = left right, in blocks of about the same number of rows. What stands behind
 * `right` is fetched meanwhile. */
INLINE void product(size_t n, const float *left, size_t stride, size_t k, const float *right, float *sums) {
    size_t blocks = (n + BLOCK_ROWS - 1) / BLOCK_ROWS, lines = (32 + blocks - 1) / blocks;
    for (size_t r = 0; r < n; r++) memset(sums + r * 64, 0, 32 * sizeof *sums);
    for (size_t from = 0; from < k; from += PANEL) {
        size_t here = least(k - from, PANEL);
        const float *panel = right + from * 32, *next = panel + here * 32;
        for (size_t b = 0, begin = 0; b < blocks; b++) {
            size_t end = (b + 1) * n / blocks;
            product_block(end - begin, left + from / 16 * stride + begin * 16, stride, here, panel, sums + begin * 64,
                          next, lines);
            next += here * lines;
            begin = end;
        }
    }
}

/* Sums of inputs: x (n, k), blocked, of `rows`; packed: the weight (k, 4 dim), of gates; bias (4 dim), the forget bias
 * included. inputs: n rows of `all`, from `begin` on. */
EXPORT AVX512 void avx512_inputs(int n, int rows, int k, int dim, int all, int begin, const float *restrict x,
                                 const float *restrict packed, const float *restrict bias, float *restrict inputs) {
    for (size_t unit = 0; unit < (size_t)dim; unit += 16) {
        const float *right = packed + unit * 4 * k;
        float *out = inputs + (unit / 16 * all + begin) * 64;
        for (size_t pass = 0; pass < 2; pass++)
            product(n, x, (size_t)rows * 16, k, right + pass * 32 * k, out + pass * 32);
        for (size_t row = 0; row < (size_t)n; row++)
            for (size_t gate = 0; gate < 4; gate++)
                for (size_t u = 0; u < 16; u++) out[row * 64 + gate * 16 + u] += bias[gate * dim + unit + u];
    }
}

/* active (steps): rows of each step; offsets (steps): where its positions begin in index and out. index (positions):
 * into inputs, of n. rows: of the arrays. packed: the weight of the state (width, 4 dim), of gates; packed_w_p (dim,
 * width). cells, state: in and out; outs (rows, dim): work; all blocked. out (positions, width): the projected and
 * clipped outputs. A clip < 0 means none. */
EXPORT AVX512 void avx512_scan(int steps, int rows, int dim, int width, int n, const int32_t *restrict active,
                               const int64_t *restrict offsets, const int32_t *restrict index,
                               const float *restrict inputs, const float *restrict packed,
                               const float *restrict packed_w_p, float *restrict cells, float *restrict state,
                               float *restrict outs, float *restrict out, float cell_clip, float proj_clip) {
    _Alignas(64) float sums[SUM_ROWS * 64];
    float bound = cell_clip < 0 ? INFINITY : cell_clip, proj_bound = proj_clip < 0 ? INFINITY : proj_clip;
    size_t stride = (size_t)rows * 16;
    for (int t = 0; t < steps; t++) {
        const int32_t *of_step = index + offsets[t];
        size_t here = active[t];
        for (size_t unit = 0; unit < (size_t)dim; unit += 16) {
            const float *right = packed + unit * 4 * width, *x = inputs + unit * n * 4;
            float *c = cells + unit * rows, *y = outs + unit * rows;
            for (size_t row = 0; row < here; row += SUM_ROWS) {
                size_t count = least(here - row, SUM_ROWS);
                for (size_t pass = 0; pass < 2; pass++)
                    product(count, state + row * 16, stride, width, right + pass * 32 * width, sums + pass * 32);
                for (size_t r = row; r < row + count; r++)
                    cell(sums + (r - row) * 64, x + (size_t)of_step[r] * 64, c + r * 16, y + r * 16, bound);
            }
        }
        for (size_t column = 0; column < (size_t)width; column += 32)
            for (size_t row = 0; row < here; row += SUM_ROWS) {
                size_t count = least(here - row, SUM_ROWS);
                product(count, outs + row * 16, stride, dim, packed_w_p + column * dim, sums);
                for (size_t r = 0; r < count; r++)
                    for (size_t half = 0; half < 32; half += 16) {
                        float *h = state + (column + half) * rows + (row + r) * 16;
                        float *to = out + (offsets[t] + row + r) * width + column + half;
                        for (size_t u = 0; u < 16; u++) to[u] = h[u] = clamp_(sums[r * 64 + half + u], proj_bound);
                    }
            }
    }
}
#else
EXPORT int has_avx512(void) { return 0; }
#endif
