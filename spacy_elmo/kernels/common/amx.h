/* Matrix multiplications in bfloat16 on the tiles of AMX (Intel, 2023 on). A tile is 16 rows of 64 bytes. Sums are
 * float32, in a fixed order. Layouts of the arrays: layouts.h. */
#ifndef SPACY_ELMO_AMX_H
#define SPACY_ELMO_AMX_H
#include "avx512.h"
#include "layouts.h"

#ifdef COMPILES_BF16
#define TILE 512              /* bfloat16 values in one */
#define GROUP (4 * TILE)      /* of a packed right operand */
#define BARRIER() __asm__ volatile("" ::: "memory") /* gcc does not know that a tile load reads memory */

/* All tiles have their full size; the configuration is the thread's. */
ALWAYS_INLINE FOR_AMX void tiles_begin(void) {
    struct { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; } config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int k = 0; k < 8; k++) config.bytes[k] = 64, config.rows[k] = 16;
    BARRIER();
    _tile_loadconfig(&config);
}

ALWAYS_INLINE FOR_AMX void tiles_end(void) { _tile_release(); }

ALWAYS_INLINE FOR_AMX void tiles_zero(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* sums: four tiles of 16 rows and 16 float32 columns. */
ALWAYS_INLINE FOR_AMX void tiles_load(const float *sums) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + 256, 64);
    _tile_loadd(2, sums + 512, 64);
    _tile_loadd(3, sums + 768, 64);
}

ALWAYS_INLINE FOR_AMX void tiles_store(float *sums) {
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
    BARRIER();
}

/* The tiles' sums += left right, for 32 of k. left: rows of 32 values, `stride` bytes apart; right: a group. */
ALWAYS_INLINE FOR_AMX void tiles_multiply(const bfloat16 *left, size_t stride, const bfloat16 *right) {
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
ALWAYS_INLINE FOR_AMX __m512i pairs(const bfloat16 *even, const bfloat16 *odd) {
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)even));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* 16 values of bfloat16 to float32: the first or the second of a row of 32. */
ALWAYS_INLINE FOR_AMX __m512 widen(__m256i values) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}
ALWAYS_INLINE FOR_AMX __m512 widen_first(__m512i row) { return widen(_mm512_castsi512_si256(row)); }
ALWAYS_INLINE FOR_AMX __m512 widen_second(__m512i row) { return widen(_mm512_extracti64x4_epi64(row, 1)); }

/* Which are not stopped at a bound; a NaN is not. */
ALWAYS_INLINE FOR_AMX __mmask16 within16(__m512 x, float bound) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(bound), _CMP_NGE_UQ);
}

#endif
#endif
