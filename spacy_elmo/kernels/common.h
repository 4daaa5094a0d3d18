/* What all loops share: compilers, processors and plain numbers. Loops work on plain arrays in one thread. Nothing here
 * depends on Python or torch. */
#ifndef SPACY_ELMO_COMMON_H
#define SPACY_ELMO_COMMON_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Compiles a function once for each of several processors. When the library is loaded, the best one that the machine
 * supports is selected. This needs the loader of glibc. gcc has these names of processors from version 12 on. */
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define LOOP __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LOOP
#endif

#if defined(_MSC_VER)
#define restrict __restrict
#define EXPORT __declspec(dllexport)
#define ALWAYS_INLINE static __forceinline
#else
#define EXPORT __attribute__((visibility("default")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

/* For functions that few places call. If the compiler inlined them, it would lose what `restrict` says. */
#define NOT_INLINED static __attribute__((noinline))
/* Before a loop over a few registers: the compiler writes out all its iterations. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif
#define LOG2E 1.44269504088896341f

/* The kinds of loops that the compiler can make. library.c asks whether this machine runs them. */
#if defined(__aarch64__) && defined(__GNUC__)
#define COMPILES_NEON 1
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32) /* there gcc does not align registers on the stack */
#define COMPILES_X86 1
#include <immintrin.h>
#define FOR_AVX2 __attribute__((target("avx2,fma")))
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))

/* From these versions on, compilers have the instructions for bfloat16 and for tiles. */
#if defined(__linux__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
#define COMPILES_BF16 1
#define FOR_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define FOR_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#endif
#endif

typedef uint16_t bfloat16;

ALWAYS_INLINE float from_bfloat16(bfloat16 x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Rounds to nearest, ties to even. Every NaN becomes the same NaN, as in torch: rounding could make it a number. */
ALWAYS_INLINE bfloat16 to_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (bfloat16)(x != x ? 0x7fc0 : rounded);
}

/* The expf of the Cephes library. Its relative error is below 2e-7 for |x| <= 87. The compiler can vectorise it. */
ALWAYS_INLINE float exp_within_(float x) {
    float n = rintf(x * LOG2E);
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    uint32_t bits = ((uint32_t)(int32_t)n + 127u) << 23; /* unsigned: n of a NaN is negative, and y stays a NaN */
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return y * scale;
}

/* Clips to [-bound, bound]. A NaN stays a NaN: it is neither below nor above. */
ALWAYS_INLINE float clamp_(float x, float bound) {
    x = x < -bound ? -bound : x;
    return x > bound ? bound : x;
}

ALWAYS_INLINE float exp_(float x) { return exp_within_(clamp_(x, 87.0f)); }
ALWAYS_INLINE float sigmoid_(float x) { return 1.0f / (1.0f + exp_(-x)); }
ALWAYS_INLINE float tanh_(float x) { return 1.0f - 2.0f / (1.0f + exp_(2.0f * x)); }

#endif
