/* The instructions that the compiler and the processor need for each kind of loop. processors.c asks whether this
 * machine has them. */
#ifndef SPACY_ELMO_PROCESSORS_H
#define SPACY_ELMO_PROCESSORS_H
#include "common.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define COMPILES_AVX512 1
#include <immintrin.h>
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))

/* From these versions on, compilers have the instructions for bfloat16 and for tiles. */
#if (defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11)
#define COMPILES_BF16 1
#define FOR_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define FOR_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#endif
#endif

#endif
