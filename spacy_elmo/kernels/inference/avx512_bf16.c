/* scan.inc in bfloat16: one instruction multiplies pairs of operands and adds them to a sum (AMD from Zen 4 on, Intel
 * from Cooper Lake on). The sums of inputs are float16. */
#include "../common/avx512.h"

#ifdef COMPILES_BF16
#define NAME(name) avx512_bf16_##name
#define TARGET FOR_AVX512_BF16
#define LANES 16
#define COLUMNS 32
#define REGISTER_ROWS 14
#define PANEL 512
#define OPERAND bfloat16
#define INPUT_SUM uint16_t
#include "../common/vectors.inc"

ALWAYS_INLINE TARGET vf multiply(vf sum, vf left, vf right) {
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)left, (__m512bh)right);
}
ALWAYS_INLINE TARGET void store_operands(bfloat16 *to, vf x) {
    _mm256_storeu_si256((__m256i *)to, narrow((__m512)x));
}
ALWAYS_INLINE TARGET void store_inputs(uint16_t *to, vf x) {
    _mm256_stream_si256((__m256i *)to, half_of((__m512)x));
}
ALWAYS_INLINE TARGET vf load_inputs(const uint16_t *from) { return (vf)load_half(from); }

#include "scan.inc"
#endif
