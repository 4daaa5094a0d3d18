"""Constants that must be the same in the compiled loops and in Python.

A function of the library returns its values, and a test compares the two. layouts.h describes the layouts of the arrays
that the constants belong to.
"""

# The order of the gates of an LSTM, as in the files: input gate, candidate, forget gate, output gate.
GATE_I, GATE_J, GATE_F, GATE_O = range(4)
GATES = 4

UNITS = 16  # units of a layer whose gates are stored together
ROW_MULTIPLE = 32  # the number of rows is padded to a multiple of this
AMX_SIZE_MULTIPLE = 64  # sizes of layers on AMX are multiples of this
AVX512_SIZE_MULTIPLE = 32  # sizes of layers on AVX-512 are multiples of this
# Alignment in bytes of arrays that are written to memory without the caches. A write to an address that is not aligned
# would end the process.
INPUTS_ALIGNMENT = 64
GRADIENT_GROUPS = 8  # groups of 64 columns whose sums are in memory at once, for the gradient of a weight
MAX_POSITIONS = 256  # characters of a word at most: the position of a maximum is stored in a byte


def padded(rows: int) -> int:
    """The number of rows of an array that has room for `rows` rows and their padding.

    rows: the number of rows in use.
    Returns the next multiple of ROW_MULTIPLE.
    """
    return -(-rows // ROW_MULTIPLE) * ROW_MULTIPLE
