/* scan.inc on AVX-512. */
#include "../common/processors.h"

#ifdef COMPILES_X86
#define NAME(name) avx512_##name
#define TARGET FOR_AVX512
#define LANES 16
#define COLUMNS 32
#define REGISTER_ROWS 14 /* 28 registers of sums, two of the right operand, one of the left operand */
#define PANEL 512        /* 64 KB of the right operand */
#include "float32.inc"
#endif
