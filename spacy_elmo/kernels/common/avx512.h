/* Rounding and activations on AVX-512 with its instructions for bfloat16, 16 values at a time.
 * The activations are only as exact as operands of bfloat16 need. */
#ifndef SPACY_ELMO_AVX512_H
#define SPACY_ELMO_AVX512_H
#include "processors.h"

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

#define MOST_HALF 6e4f /* just below the largest float16; every gate is saturated at far smaller values */

/* Loads 16 values of float16 as float32. half_of rounds 16 values to float16; the bound prevents infinities. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512 load_half(const uint16_t *from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}
ALWAYS_INLINE FOR_AVX512_BF16 __m256i half_of(__m512 x) {
    return _mm512_cvtps_ph(clamp16(x, MOST_HALF), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#endif
#endif
