/* Products of bfloat16 matrices on the tiles of AMX (Intel, 2023 on). A tile is 16 rows of 64 bytes. Sums are float32,
 * taken in a fixed order.
 *
 * Layouts. Rows are padded to a multiple of 32, PADDED(batch); sizes of layers are multiples of 64. Arrays
 * are 64-byte aligned.
 *   blocked (rows, n): [n / 32][rows][32], so that a left operand's tile is one stretch of memory.
 *   gates (rows, 4 dim): [dim / 16][2][rows][2][16]: units by 16, i beside j, f beside o; blocked, in that order of n.
 *   cells (rows, dim): [dim / 16][rows][16]: rows one after another would lie a power of two apart, and drive each
 *   other out of the cache (measured: twice the time).
 *   packed (k, n): groups of four tiles of a right operand: [n / 64][k / 32][4][16 pairs of k][16][2]. */
#ifndef SPACY_ELMO_AMX_H
#define SPACY_ELMO_AMX_H
#include "avx512.h"

#ifdef HAS_AVX512_BF16
#define HAS_AMX 1

#define AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define INLINE static inline __attribute__((always_inline)) AMX
#define TILE 512              /* bfloat16 values in one */
#define GROUP (4 * TILE)      /* of a packed right operand */
#define BARRIER() __asm__ volatile("" ::: "memory") /* gcc does not know that a tile load reads memory */

/* All tiles whole; the configuration is the thread's. */
INLINE void tiles_begin(void) {
    struct { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; } config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int k = 0; k < 8; k++) config.bytes[k] = 64, config.rows[k] = 16;
    BARRIER();
    _tile_loadconfig(&config);
}

INLINE void tiles_end(void) { _tile_release(); }

INLINE void tiles_zero(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* sums: four tiles of 16 rows and 16 float32 columns. */
INLINE void tiles_load(const float *sums) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + 256, 64);
    _tile_loadd(2, sums + 512, 64);
    _tile_loadd(3, sums + 768, 64);
}

INLINE void tiles_store(float *sums) {
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
    BARRIER();
}

/* The tiles' sums += left right, for 32 of k. left: rows of 32 values, `stride` bytes apart; right: a group. */
INLINE void tiles_multiply(const bfloat16 *left, size_t stride, const bfloat16 *right) {
    _tile_loadd(4, left, stride);
    _tile_loadd(5, right, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, right + TILE, 64);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(7, right + 2 * TILE, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_loadd(5, right + 3 * TILE, 64);
    _tile_dpbf16ps(3, 4, 5);
}

/* Two rows of 16 values as pairs. */
INLINE __m512i pairs(const bfloat16 *even, const bfloat16 *odd) {
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)even));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* 16 values of bfloat16 to float32: the first or the second of a row of 32. */
INLINE __m512 widen(__m256i values) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}
INLINE __m512 widen_first(__m512i row) { return widen(_mm512_castsi512_si256(row)); }
INLINE __m512 widen_second(__m512i row) { return widen(_mm512_extracti64x4_epi64(row, 1)); }

/* Which are not stopped at a bound; a NaN is not. */
INLINE __mmask16 within16(__m512 x, float bound) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(bound), _CMP_NGE_UQ);
}

#endif
#endif
