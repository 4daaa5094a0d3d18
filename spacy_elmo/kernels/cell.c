/* The LSTM cell for float32 and for bfloat16 products. */
#include "common.h"

#define BODY "cell.inc"
#include "both.inc"
