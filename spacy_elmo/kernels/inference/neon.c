/* scan.inc on NEON. */
#include "../common/processors.h"

#ifdef COMPILES_NEON
#define NAME(name) neon_##name
#define TARGET
#define LANES 4
#define COLUMNS 16
#define REGISTER_ROWS 6 /* 24 registers of sums, four of the right operand, one of the left operand */
#define PANEL 256       /* 16 KB of the right operand */
#include "float32.inc"
#endif
