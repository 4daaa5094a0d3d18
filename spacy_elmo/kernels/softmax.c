/* The sampled softmax for float32 and for bfloat16 products. */
#include "common.h"

#define BODY "softmax.inc"
#include "both.inc"
