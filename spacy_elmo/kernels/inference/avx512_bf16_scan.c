/* avx512_scan.inc in bfloat16: one instruction multiplies pairs of operands and adds them to a sum (AMD from Zen 4 on,
 * Intel from Cooper Lake on). The sums of inputs are float16. */
#include "../common/avx512.h"
#include "../common/calls.h"
#include "../common/layouts.h"

#ifdef COMPILES_BF16
#define NAME(name) avx512_bf16_##name
#define TARGET FOR_AVX512_BF16
#define OPERAND bfloat16
#define INPUT_SUM uint16_t
#define LANE 2

ALWAYS_INLINE FOR_AVX512_BF16 __m512 lanes(const bfloat16 *left) {
    int32_t pair;
    memcpy(&pair, left, sizeof pair);
    return _mm512_castsi512_ps(_mm512_set1_epi32(pair));
}
ALWAYS_INLINE FOR_AVX512_BF16 __m512 multiply(__m512 sum, __m512 left, __m512 right) {
    return _mm512_dpbf16_ps(sum, (__m512bh)left, (__m512bh)right);
}
ALWAYS_INLINE FOR_AVX512_BF16 void store_operands(bfloat16 *to, __m512 x) { _mm256_storeu_si256((__m256i *)to, narrow(x)); }
ALWAYS_INLINE FOR_AVX512_BF16 void store_inputs(uint16_t *to, __m512 x) { _mm256_stream_si256((__m256i *)to, half_of(x)); }
ALWAYS_INLINE FOR_AVX512_BF16 __m512 sum_of(const float *sums, const uint16_t *inputs) {
    return _mm512_add_ps(_mm512_load_ps(sums), load_half(inputs));
}

#include "avx512_scan.inc"
#endif
