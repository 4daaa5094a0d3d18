/* Matrix multiplications in bfloat16 on the tiles of AMX (Intel's processors from 2023 on).
 * A tile is a register of 16 rows of 64 bytes: 32 values of bfloat16 a row, or 16 of float32.
 * Sums are float32. They are added in a fixed order. layouts.h describes the layouts of the arrays. */
#ifndef SPACY_ELMO_AMX_H
#define SPACY_ELMO_AMX_H
#include "avx512.h"
#include "layouts.h"

#ifdef COMPILES_BF16
#define TILE 512              /* bfloat16 values in one tile */
#define GROUP (4 * TILE)      /* values in a group of a packed right operand: 32 of k by 64 columns, four tiles */
/* Stops the compiler from moving loads and stores past this point: gcc does not know that a tile load reads memory. */
#define BARRIER() __asm__ volatile("" ::: "memory")

/* Gives all tiles their full size. Each thread has a configuration of its own. */
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

/* Loads tiles 0 to 3. sums ([4][16][16]): of each tile 16 rows of 16 float32 columns. */
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

/* Adds left times right to tiles 0 to 3, for 32 values of k.
 * left: the first of 16 rows of 32 values; the rows begin `stride` bytes apart.
 * right: a group of the packed right operand. */
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

/* Interleaves two rows of 16 values: 16 pairs of a value of `even` and the value of `odd` in the same column. */
ALWAYS_INLINE FOR_AMX __m512i pairs(const bfloat16 *even, const bfloat16 *odd) {
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)even));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* Converts 16 values of bfloat16 to float32. widen_first and widen_second read the first and the second half of 32. */
ALWAYS_INLINE FOR_AMX __m512 widen(__m256i values) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}
ALWAYS_INLINE FOR_AMX __m512 widen_first(__m512i row) { return widen(_mm512_castsi512_si256(row)); }
ALWAYS_INLINE FOR_AMX __m512 widen_second(__m512i row) { return widen(_mm512_extracti64x4_epi64(row, 1)); }

/* Marks the values that lie inside the bound, so that clipping did not change them. A NaN counts as inside. */
ALWAYS_INLINE FOR_AMX __mmask16 within16(__m512 x, float bound) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(bound), _CMP_NGE_UQ);
}

#endif
#endif
