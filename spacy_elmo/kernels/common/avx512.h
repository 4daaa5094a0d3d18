/* AVX-512 with what it knows of bfloat16: roundings, and activations as exact as operands of bfloat16 need, 16 at a
 * time. */
#ifndef SPACY_ELMO_AVX512_H
#define SPACY_ELMO_AVX512_H
#include "processors.h"

#ifdef COMPILES_BF16

/* To nearest, ties to even; denormal numbers become 0; a NaN stays one. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512i narrow_two(__m512 first, __m512 second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }
ALWAYS_INLINE FOR_AVX512_BF16 __m256i narrow(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

/* z = 1 / (1 + 2^z), n registers in step: of one the processor would see the next operations, each waiting for the one
 * before, and few of the next. 2^z: a polynomial on [0, 1), exact at both ends, relative error 3.4e-6 (fitted, least
 * maximum); the reciprocal: 14 bits and one step of Newton's. A NaN stays one. */
ALWAYS_INLINE FOR_AVX512_BF16 void logistics(const int n, __m512 *z) {
    __m512 f[MOST_TOGETHER], y[MOST_TOGETHER];
    UNROLLED for (int k = 0; k < n; k++) z[k] = _mm512_min_ps(_mm512_set1_ps(120.0f), z[k]);
    UNROLLED for (int k = 0; k < n; k++) f[k] = _mm512_reduce_ps(z[k], 0x09); /* z - floor(z) */
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(_mm512_set1_ps(0.01355574723f), f[k], _mm512_set1_ps(0.05203236901f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(0.2413797629f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(0.6930321208f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(1.0f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_add_ps(_mm512_scalef_ps(y[k], z[k]), _mm512_set1_ps(1.0f));
    UNROLLED for (int k = 0; k < n; k++) f[k] = _mm512_rcp14_ps(y[k]);
    UNROLLED for (int k = 0; k < n; k++) z[k] = _mm512_mul_ps(f[k], _mm512_fnmadd_ps(y[k], f[k], _mm512_set1_ps(2.0f)));
}
ALWAYS_INLINE FOR_AVX512_BF16 __m512 logistic(__m512 z) {
    logistics(1, &z);
    return z;
}

ALWAYS_INLINE FOR_AVX512_BF16 __m512 sigmoid16(__m512 x) { return logistic(_mm512_mul_ps(x, _mm512_set1_ps(-LOG2E))); }
ALWAYS_INLINE FOR_AVX512_BF16 __m512 tanh16(__m512 x) {
    __m512 r = logistic(_mm512_mul_ps(x, _mm512_set1_ps(2.0f * LOG2E)));
    return _mm512_fnmadd_ps(r, _mm512_set1_ps(2.0f), _mm512_set1_ps(1.0f));
}

ALWAYS_INLINE FOR_AVX512_BF16 __m512 clamp16(__m512 x, float bound) { /* a NaN stays one: these give their second operand then */
    x = _mm512_min_ps(_mm512_set1_ps(bound), x);
    return _mm512_max_ps(_mm512_set1_ps(-bound), x);
}

#define MOST_HALF 6e4f /* below float16's largest; any gate is saturated long before */

/* 16 values of float16. */
ALWAYS_INLINE FOR_AVX512_BF16 __m512 load_half(const uint16_t *from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)); }
ALWAYS_INLINE FOR_AVX512_BF16 __m256i half_of(__m512 x) {
    return _mm512_cvtps_ph(clamp16(x, MOST_HALF), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#endif
#endif
