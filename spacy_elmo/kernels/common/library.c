/* Functions that describe the library: which sources it was built from, and its constants. */
#include "calls.h"
#include "common.h"
#include "layouts.h"

EXPORT const char *fingerprint(void) { return FINGERPRINT; }

typedef struct {
    const char *name;
    int64_t value;
} Constant;

/* The constants that Python must have too, and the sizes of the structs: calls.py has the same names, calls.py has
 * the structs. A name that is NULL ends the list. */
EXPORT const Constant *constants(void) {
    static const Constant all[] = {
        {"GATE_I", GATE_I},
        {"GATE_J", GATE_J},
        {"GATE_F", GATE_F},
        {"GATE_O", GATE_O},
        {"GATES", GATES},
        {"UNITS", UNITS},
        {"ROW_MULTIPLE", ROW_MULTIPLE},
        {"AMX_SIZE_MULTIPLE", AMX_SIZE_MULTIPLE},
        {"INPUTS_ALIGNMENT", INPUTS_ALIGNMENT},
        {"GRADIENT_GROUPS", GRADIENT_GROUPS},
        {"MAX_POSITIONS", MAX_POSITIONS},
        {"LayerCall", sizeof(LayerCall)},
        {"AmxForwardCall", sizeof(AmxForwardCall)},
        {"AmxBackwardCall", sizeof(AmxBackwardCall)},
        {"AmxGradientCall", sizeof(AmxGradientCall)},
        {NULL, 0},
    };
    return all;
}
