/* bfloat16 on AVX-512 and on AMX: rounding, the activations, the LSTM cell, and tiles. The activations are only as exact
 * as operands of bfloat16 need. */
#ifndef SPACY_ELMO_AMX_H
#define SPACY_ELMO_AMX_H
#include "calls.h"
#include "common.h"

#ifdef COMPILES_BF16

/* Rounds float32 to bfloat16: to nearest, ties to even. A denormal number becomes 0. A NaN stays a NaN.
 * narrow_two gives the 16 values of `first`, then the 16 of `second`. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512i narrow_two(__m512 first, __m512 second) {
    return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}
ALWAYS_INLINE FOR_AVX512_BF16 __m256i narrow(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

/* 1 / (1 + 2^z). 2^z is a polynomial on [0, 1). It is exact at both ends, and its relative error is at most 3.4e-6 (it
 * was fitted for the least maximum error). The reciprocal is an estimate of 14 bits and one step of Newton's method.
 * A NaN stays a NaN. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512 logistic(__m512 z) {
    z = _mm512_min_ps(_mm512_set1_ps(120.0f), z);
    __m512 f = _mm512_reduce_ps(z, 0x09); /* z - floor(z) */
    __m512 y = _mm512_fmadd_ps(_mm512_set1_ps(0.01355574723f), f, _mm512_set1_ps(0.05203236901f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0.2413797629f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0.6930321208f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.0f));
    y = _mm512_add_ps(_mm512_scalef_ps(y, z), _mm512_set1_ps(1.0f));
    __m512 r = _mm512_rcp14_ps(y);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(y, r, _mm512_set1_ps(2.0f)));
}

ALWAYS_INLINE FOR_AVX512_BF16 __m512 sigmoid16(__m512 x) { return logistic(_mm512_mul_ps(x, _mm512_set1_ps(-LOG2E))); }
ALWAYS_INLINE FOR_AVX512_BF16 __m512 tanh16(__m512 x) {
    __m512 r = logistic(_mm512_mul_ps(x, _mm512_set1_ps(2.0f * LOG2E)));
    return _mm512_fnmadd_ps(r, _mm512_set1_ps(2.0f), _mm512_set1_ps(1.0f));
}

/* Clips to [-bound, bound]. A NaN stays a NaN: min and max return their second operand if one operand is a NaN. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512 clamp16(__m512 x, float bound) {
    x = _mm512_min_ps(_mm512_set1_ps(bound), x);
    return _mm512_max_ps(_mm512_set1_ps(-bound), x);
}

/* One step of the cell for 16 units. It turns the sums of the gates into activations, and returns the new cells.
 * The output is that of the cell before the projection. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512 cell16(__m512 z[GATES], __m512 before, float bound) {
    z[GATE_I] = sigmoid16(z[GATE_I]);
    z[GATE_J] = tanh16(z[GATE_J]);
    z[GATE_F] = sigmoid16(z[GATE_F]);
    z[GATE_O] = sigmoid16(z[GATE_O]);
    return clamp16(_mm512_fmadd_ps(z[GATE_F], before, _mm512_mul_ps(z[GATE_I], z[GATE_J])), bound);
}
ALWAYS_INLINE FOR_AVX512_BF16 __m256i output16(const __m512 z[GATES], __m512 cell) {
    return narrow(_mm512_mul_ps(z[GATE_O], tanh16(cell)));
}

#define MOST_HALF 6e4f /* just below the largest float16; every gate is saturated at far smaller values */

/* Loads 16 values of float16 as float32. half_of rounds 16 values to float16; the bound prevents infinities. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512 load_half(const uint16_t *from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}
ALWAYS_INLINE FOR_AVX512_BF16 __m256i half_of(__m512 x) {
    return _mm512_cvtps_ph(clamp16(x, MOST_HALF), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Tiles of AMX (Intel's processors from 2023 on). A tile is a register of 16 rows of 64 bytes: 32 values of bfloat16 a
 * row, or 16 of float32. Sums are float32, and are added in a fixed order. */
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
