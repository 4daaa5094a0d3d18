"""What C and Python agree on: constants and the structs of calls.h, which describes their fields; checked addresses."""

import ctypes
import math
from typing import Any, ClassVar

import numpy as np

from ..errors import KernelError

# The order of the gates of an LSTM, as in the files: input gate, candidate, forget gate, output gate.
GATE_I, GATE_J, GATE_F, GATE_O = range(4)
GATES = 4

UNITS = 16  # units of a layer whose gates are stored together
ROW_MULTIPLE = 32  # on AMX the number of rows is padded to a multiple of this
AMX_SIZE_MULTIPLE = 64  # sizes of layers on AMX are multiples of this
# Alignment in bytes of arrays that are written to memory without the caches. A write to an address that is not aligned
# would end the process.
INPUTS_ALIGNMENT = 64
GRADIENT_GROUPS = 8  # groups of 64 columns whose sums are in memory at once, for the gradient of a weight
MAX_POSITIONS = 256  # characters of a word at most: the position of a maximum is stored in a byte


def padded(rows: int) -> int:
    """The number of rows of an array that has room for `rows` rows and their padding: a multiple of ROW_MULTIPLE."""
    return -(-rows // ROW_MULTIPLE) * ROW_MULTIPLE


_INT, _ADDRESS, _REAL = ctypes.c_int32, ctypes.c_void_p, ctypes.c_float


def _fields(sizes: str, addresses: str, reals: str = "cell_bound proj_bound") -> list[tuple[str, type]]:
    kinds = ((sizes, _INT), (addresses, _ADDRESS), (reals, _REAL))
    return [(name, kind) for names, kind in kinds for name in names.split()]


class LayerCall(ctypes.Structure):
    """One direction of one layer over rows of different lengths, only forward."""

    _fields_: ClassVar = _fields(
        "batch dim width n_precomputed n_inputs n_chunks h_stride c_stride narrow",
        "chunks precomputed by_chunk active offsets places x h c packed_inputs packed_recurrent packed_w_p bias"
        " blocked inputs cells state outs out",
    )


class AmxForwardCall(ctypes.Structure):
    """One direction of one layer over a window of steps, forward, for training."""

    _fields_: ClassVar = _fields(
        "steps batch dim n_in width", "inputs packed packed_w_p bias keep cells hidden gates outs"
    )


class AmxBackwardCall(ctypes.Structure):
    """One direction of one layer over a window of steps, backward, for training."""

    _fields_: ClassVar = _fields(
        "steps batch dim n_in width",
        "packed packed_w_p keep cells hidden d_hidden d_cells gates d_x d_proj d_h d_c work",
    )


class AmxGradientCall(ctypes.Structure):
    """The gradient of a weight over a window of steps."""

    _fields_: ClassVar = _fields("steps rows m n tile_stride group_stride", "left right gradient totals work", reals="")


def address(name: str, array: Any, dtype: Any, shape: tuple[int | None, ...], alignment: int = 1) -> int:
    """The address of the first value of an array. Every array for a compiled loop must pass through this function.

    The caller must hold a reference to the array until the loop has run. The checks are written for speed, because a
    call for a layer has ten of them.

    name: what the error message calls the array.
    array: a numpy array, or a tensor of torch on the CPU; it must be contiguous.
    dtype: the expected type: a dtype of numpy for a numpy array, of torch for a tensor.
    shape: the expected shape; if its first size is None, the array may have any first size.
    alignment: the address must be a multiple of this number of bytes.
    Raises KernelError if the array is not as expected.
    """
    first: int
    if isinstance(array, np.ndarray):
        first, is_dense = array.ctypes.data, array.flags.c_contiguous
    else:
        first, is_dense = array.data_ptr(), array.is_contiguous() and array.is_cpu
    size = array.shape
    fits = size == shape or (shape[:1] == (None,) and size[1:] == shape[1:] and len(size) == len(shape))
    if not fits or array.dtype != dtype or not is_dense or first % alignment:
        raise _error(name, array, dtype, shape, alignment, first, is_dense)
    return first


def address_of_rows(name: str, array: Any, dtype: Any, shape: tuple[int, int]) -> int:
    """The address of the first value of a tensor with two dimensions. There may be gaps between its contiguous rows.

    Parameters and error: as for `address`.
    """
    first: int = array.data_ptr()
    size = array.shape
    is_dense = array.dim() == 2 and (array.stride(1) == 1 or size[1] == 1) and array.is_cpu
    if size != shape or array.dtype != dtype or not is_dense:
        raise _error(name, array, dtype, shape, 1, first, is_dense)
    return first


def bound(clip: float | None) -> float:
    """The bound that a loop clips values to; infinite if `clip` is None."""
    return math.inf if clip is None else clip


def _error(
    name: str, array: Any, dtype: Any, shape: tuple[int | None, ...], alignment: int, first: int, is_dense: bool
) -> KernelError:
    dense = "contiguous" if is_dense else "not contiguous or not in the processor's memory"
    expected = tuple("any" if size is None else size for size in shape)
    return KernelError(
        f"a compiled loop was given {name} as {array.dtype} {tuple(array.shape)}, {dense}, at address {first}. "
        f"Expected {dtype} {expected}, contiguous, at a multiple of {alignment} bytes. This is an error of spacy-elmo: "
        "SPACY_ELMO_KERNELS=0 runs torch's operations instead."
    )
