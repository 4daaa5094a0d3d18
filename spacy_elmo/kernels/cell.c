/* The LSTM cell for float32 and for bfloat16 products. */
#include "common.h"

#define NAME(name) name##_float32
#define REAL float
#define READ from_float32
#define WRITE to_float32
#include "cell.inc"
#undef NAME
#undef REAL
#undef READ
#undef WRITE

#define NAME(name) name##_bfloat16
#define REAL bfloat16
#define READ from_bfloat16
#define WRITE to_bfloat16
#include "cell.inc"
