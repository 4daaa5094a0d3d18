/* scan.inc on each instruction set. For each the macros are
 *   NAME: gives the functions their prefix
 *   TARGET: the instructions that the functions are compiled for
 *   LANES: float32 values of a register
 *   COLUMNS: columns of the right operand that are multiplied together
 *   REGISTER_ROWS: rows that are multiplied together: their sums fill most registers
 *   PANEL: words of k that are multiplied at once, so that the right operand stays in a cache
 *   CLAMP: clips to [-bound, bound]. A NaN stays a NaN: on x86 min and max return their second operand if one is a NaN
 *   STORE_INPUTS: stores a register without the cache.
 * A word is 4 bytes: an operand, or a pair of them. */
#include "amx.h"
#include "calls.h"
#include "common.h"

/* Rows of work arrays: an odd number, or blocks a power of two apart would push each other out of the cache. */
#define ROWS(n) ((size_t)(n) | 1)

ALWAYS_INLINE size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* In float32: operands, products and sums of inputs. */
#define OPERAND float
#define INPUT_SUM float
#define MULTIPLY(sum, left, right) ((sum) + (left) * (right))
#define STORE_OPERANDS store
#define LOAD_INPUTS load

#ifdef COMPILES_NEON
#include <arm_neon.h>
#define NAME(name) neon_##name
#define TARGET
#define LANES 4
#define COLUMNS 16
#define REGISTER_ROWS 6 /* 24 registers of sums, four of the right operand, one of the left operand */
#define PANEL 256       /* 16 KB of the right operand */
#define CLAMP(x, bound) ((vf)vmaxq_f32(vdupq_n_f32(-(bound)), vminq_f32(vdupq_n_f32(bound), (float32x4_t)(x))))
#define STORE_INPUTS store
#include "scan.inc"
#endif

#ifdef COMPILES_X86
#define NAME(name) avx2_##name
#define TARGET FOR_AVX2
#define LANES 8
#define COLUMNS 16
#define REGISTER_ROWS 6 /* 12 registers of sums, two of the right operand, one of the left operand */
#define PANEL 256       /* 16 KB of the right operand */
#define CLAMP(x, bound) ((vf)_mm256_max_ps(_mm256_set1_ps(-(bound)), _mm256_min_ps(_mm256_set1_ps(bound), (__m256)(x))))
#define STORE_INPUTS(to, x) _mm256_stream_ps(to, (__m256)(x))
#include "scan.inc"
#undef STORE_INPUTS

#define NAME(name) avx512_##name
#define TARGET FOR_AVX512
#define LANES 16
#define COLUMNS 32
#define REGISTER_ROWS 14 /* 28 registers of sums, two of the right operand, one of the left operand */
#define PANEL 512        /* 64 KB of the right operand */
#define CLAMP(x, bound) ((vf)_mm512_max_ps(_mm512_set1_ps(-(bound)), _mm512_min_ps(_mm512_set1_ps(bound), (__m512)(x))))
#define STORE_INPUTS(to, x) _mm512_stream_ps(to, (__m512)(x))
#include "scan.inc"
#undef STORE_INPUTS
#endif

/* In bfloat16: one instruction multiplies pairs of operands and adds them to a sum (AMD from Zen 4 on, Intel from Cooper
 * Lake on). The sums of inputs are float16. */
#undef OPERAND
#undef INPUT_SUM
#undef MULTIPLY
#undef STORE_OPERANDS
#undef LOAD_INPUTS

#ifdef COMPILES_BF16
#define OPERAND bfloat16
#define INPUT_SUM uint16_t
#define MULTIPLY(sum, left, right) ((vf)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(left), (__m512bh)(right)))
#define STORE_OPERANDS(to, x) _mm256_storeu_si256((__m256i *)(to), narrow((__m512)(x)))
#define LOAD_INPUTS(from) ((vf)load_half(from))

#define NAME(name) avx512_bf16_##name
#define TARGET FOR_AVX512_BF16
#define LANES 16
#define COLUMNS 32
#define REGISTER_ROWS 14
#define PANEL 512
#define CLAMP(x, bound) ((vf)clamp16((__m512)(x), bound))
#define STORE_INPUTS(to, x) _mm256_stream_si256((__m256i *)(to), half_of((__m512)(x)))
#include "scan.inc"
#endif
