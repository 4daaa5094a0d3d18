"""Checks of the arguments of compiled loops.

The loops read and write memory by address, and check nothing themselves.
"""

import math
from typing import Any

import numpy as np

from ..errors import Errors, KernelError


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
    """The address of the first value of a tensor of torch with two dimensions.

    Each row must be contiguous, but there may be gaps between the rows.

    name, dtype: as for `address`.
    array: a tensor on the CPU.
    shape: the expected shape.
    Raises KernelError if the tensor is not as expected.
    """
    first: int = array.data_ptr()
    size = array.shape
    is_dense = array.dim() == 2 and (array.stride(1) == 1 or size[1] == 1) and array.is_cpu
    if size != shape or array.dtype != dtype or not is_dense:
        raise _error(name, array, dtype, shape, 1, first, is_dense)
    return first


def bound(clip: float | None) -> float:
    """The bound that a loop clips values to.

    clip: the bound, or None if values are not clipped; the bound is infinite then.
    """
    return math.inf if clip is None else clip


def _error(
    name: str, array: Any, dtype: Any, shape: tuple[int | None, ...], alignment: int, first: int, is_dense: bool
) -> KernelError:
    return KernelError(
        Errors.KERNEL_ARRAY.format(
            name=name,
            shape=tuple(array.shape),
            dtype=array.dtype,
            dense="contiguous" if is_dense else "not contiguous or not in the processor's memory",
            address=first,
            expected_shape=tuple("any" if size is None else size for size in shape),
            expected_dtype=dtype,
            alignment=alignment,
        )
    )
