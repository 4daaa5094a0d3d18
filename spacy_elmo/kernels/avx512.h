/* AVX-512 with what it knows of bfloat16: roundings, and the activations that go with such products, 16 at a time. */
#ifndef SPACY_ELMO_AVX512_H
#define SPACY_ELMO_AVX512_H
#include "common.h"

#if defined(__x86_64__) && defined(__linux__) && \
    ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 11))
#define HAS_AVX512_BF16 1
#include <immintrin.h>

#define AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define INLINE512 static inline __attribute__((always_inline)) AVX512_BF16

/* To nearest, ties to even; denormal numbers become 0; a NaN stays one. */
INLINE512 __m512i narrow_two(__m512 first, __m512 second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }
INLINE512 __m256i narrow(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

/* z = 1 / (1 + 2^z), n registers in step: of one the processor would see the next operations, each waiting for the one
 * before, and few of the next. 2^z: a polynomial on [0, 1), exact at both ends, relative error 3.4e-6 (fitted, least
 * maximum); the reciprocal: 14 bits and one step of Newton's. A NaN stays one. */
INLINE512 void logistics(const int n, __m512 *z) {
    __m512 f[TOGETHER], y[TOGETHER];
    EACH z[k] = _mm512_min_ps(_mm512_set1_ps(120.0f), z[k]);
    EACH f[k] = _mm512_reduce_ps(z[k], 0x09); /* z - floor(z) */
    EACH y[k] = _mm512_fmadd_ps(_mm512_set1_ps(0.01355574723f), f[k], _mm512_set1_ps(0.05203236901f));
    EACH y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(0.2413797629f));
    EACH y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(0.6930321208f));
    EACH y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(1.0f));
    EACH y[k] = _mm512_add_ps(_mm512_scalef_ps(y[k], z[k]), _mm512_set1_ps(1.0f));
    EACH f[k] = _mm512_rcp14_ps(y[k]);
    EACH z[k] = _mm512_mul_ps(f[k], _mm512_fnmadd_ps(y[k], f[k], _mm512_set1_ps(2.0f)));
}
INLINE512 __m512 logistic(__m512 z) {
    logistics(1, &z);
    return z;
}

INLINE512 __m512 sigmoid16(__m512 x) { return logistic(_mm512_mul_ps(x, _mm512_set1_ps(-LOG2E))); }
INLINE512 __m512 tanh16(__m512 x) {
    __m512 r = logistic(_mm512_mul_ps(x, _mm512_set1_ps(2.0f * LOG2E)));
    return _mm512_fnmadd_ps(r, _mm512_set1_ps(2.0f), _mm512_set1_ps(1.0f));
}

INLINE512 __m512 clamp16(__m512 x, float bound) { /* a NaN stays one: these give their second operand then */
    x = _mm512_min_ps(_mm512_set1_ps(bound), x);
    return _mm512_max_ps(_mm512_set1_ps(-bound), x);
}

#define MOST_HALF 6e4f /* below float16's largest; any gate is saturated long before */

/* 16 values of float16. */
INLINE512 __m512 load_half(const uint16_t *from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)); }
INLINE512 __m256i half_of(__m512 x) {
    return _mm512_cvtps_ph(clamp16(x, MOST_HALF), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#endif
#endif
