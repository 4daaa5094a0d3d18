/* Compiles the sampled softmax twice: for matrix multiplications in float32 and in bfloat16. */
#include "../common/common.h"

#define BODY "softmax.inc"
#include "both_types.inc"
