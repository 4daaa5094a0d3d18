/* The instructions that the compiler and the processor need for each kind of loop. processors.c asks whether this
 * machine has them. */
#ifndef SPACY_ELMO_PROCESSORS_H
#define SPACY_ELMO_PROCESSORS_H
#include "common.h"

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

#endif
