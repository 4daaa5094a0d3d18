/* avx512_scan.inc in float32. The operands and the sums of inputs are both float32. */
#include "../common/calls.h"
#include "../common/layouts.h"
#include "../common/processors.h"

#ifdef COMPILES_AVX512
#define NAME(name) avx512_##name
#define TARGET FOR_AVX512
#define OPERAND float
#define INPUT_SUM float
#define LANE 1

ALWAYS_INLINE FOR_AVX512 __m512 lanes(const float *left) { return _mm512_set1_ps(*left); }
ALWAYS_INLINE FOR_AVX512 __m512 multiply(__m512 sum, __m512 left, __m512 right) { return _mm512_fmadd_ps(left, right, sum); }
ALWAYS_INLINE FOR_AVX512 void store_operands(float *to, __m512 x) { _mm512_storeu_ps(to, x); }
ALWAYS_INLINE FOR_AVX512 void store_inputs(float *to, __m512 x) { _mm512_stream_ps(to, x); }

/* z = 1 / (1 + 2^z), for n registers. Each operation is done on all registers before the next operation.
 * 2^z is a polynomial on [-1/2, 1/2]. It is exact at 0, and its relative error is at most 9.2e-8 (it was fitted for the
 * least maximum error). The reciprocal is an estimate of 14 bits and one step of Newton's method. The rounding of z
 * before the call adds an error of |z| 2^-24. There is no overflow, and a NaN stays a NaN. */
ALWAYS_INLINE FOR_AVX512 void logistics(const int n, __m512 *z) {
    __m512 f[MOST_TOGETHER], y[MOST_TOGETHER];
    UNROLLED for (int k = 0; k < n; k++) z[k] = _mm512_min_ps(_mm512_set1_ps(120.0f), z[k]);
    UNROLLED for (int k = 0; k < n; k++) f[k] = _mm512_reduce_ps(z[k], 0x08); /* z - the nearest integer */
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(_mm512_set1_ps(1.326472875e-3f), f[k], _mm512_set1_ps(9.671513182e-3f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(5.550733745e-2f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(0.2402224208f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(0.6931469776f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_fmadd_ps(y[k], f[k], _mm512_set1_ps(1.0f));
    UNROLLED for (int k = 0; k < n; k++) y[k] = _mm512_add_ps(_mm512_scalef_ps(y[k], _mm512_sub_ps(z[k], f[k])), _mm512_set1_ps(1.0f));
    UNROLLED for (int k = 0; k < n; k++) f[k] = _mm512_rcp14_ps(y[k]);
    UNROLLED for (int k = 0; k < n; k++) z[k] = _mm512_mul_ps(f[k], _mm512_fnmadd_ps(y[k], f[k], _mm512_set1_ps(2.0f)));
}

/* Clips to [-bound, bound]. A NaN stays a NaN: min and max return their second operand if one operand is a NaN. */
ALWAYS_INLINE FOR_AVX512 __m512 clamp16(__m512 x, float bound) {
    return _mm512_max_ps(_mm512_set1_ps(-bound), _mm512_min_ps(_mm512_set1_ps(bound), x));
}
ALWAYS_INLINE FOR_AVX512 __m512 sum_of(const float *sums, const float *inputs) {
    return _mm512_add_ps(_mm512_load_ps(sums), _mm512_loadu_ps(inputs));
}

#include "avx512_scan.inc"
#endif
