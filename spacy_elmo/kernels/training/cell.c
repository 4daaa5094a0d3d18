/* Compiles the LSTM cell twice: for matrix multiplications in float32 and in bfloat16. */
#include "../common/common.h"

#define BODY "cell.inc"
#include "both_types.inc"
