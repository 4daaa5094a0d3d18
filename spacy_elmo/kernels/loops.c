/* What the library says of itself. */
#include "common.h"

EXPORT const char *fingerprint(void) { return FINGERPRINT; }
