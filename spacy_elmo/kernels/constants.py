"""What the compiled loops and Python must agree on; the library tells its values, and a test compares the two.

The layouts that these belong to are described in layouts.h.
"""

# order of an LSTM's gates, that of the files: input gate, new content, forget gate, output gate
GATE_I, GATE_J, GATE_F, GATE_O = range(4)
GATES = 4

UNITS = 16  # of a layer whose gates lie together
ROW_MULTIPLE = 32  # rows are padded to a multiple of it
AMX_SIZE_MULTIPLE = 64  # sizes of layers on AMX are multiples of it
AVX512_SIZE_MULTIPLE = 32
INPUTS_ALIGNMENT = 64  # bytes, of arrays that are stored past the caches: a store elsewhere would end the process
GRADIENT_GROUPS = 8  # of 64 columns, whose sums the gradient of a weight has in memory at a time
MAX_POSITIONS = 256  # of a word's characters: the place of a maximum is a byte


def padded(rows: int) -> int:
    """Rows of an array that has room for that many."""
    return -(-rows // ROW_MULTIPLE) * ROW_MULTIPLE
