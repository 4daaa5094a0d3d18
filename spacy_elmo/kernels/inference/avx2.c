/* scan.inc on AVX2. */
#include "../common/processors.h"

#ifdef COMPILES_X86
#define NAME(name) avx2_##name
#define TARGET FOR_AVX2
#define LANES 8
#define COLUMNS 16
#define REGISTER_ROWS 6 /* 12 registers of sums, two of the right operand, one of the left operand */
#define PANEL 256       /* 16 KB of the right operand */
#include "float32.inc"
#endif
