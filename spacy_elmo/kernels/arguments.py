"""Arguments of the compiled loops, checked: they read and write memory by address, and check nothing themselves."""

import math
from typing import Any

import numpy as np

from ..errors import Errors, KernelError


def address(name: str, array: Any, dtype: Any, shape: tuple[int | None, ...], alignment: int = 1) -> int:
    """The address of an array's first value. Every array that a compiled loop is given goes through here.

    The caller holds the array until the loop has run. The checks are written for speed: a layer call has ten of them.

    name: what the error calls the array.
    array: a numpy array, or a tensor of torch on the CPU; contiguous.
    dtype: expected, the array's own kind: numpy's or torch's.
    shape: expected; the first size may be None: any.
    alignment: bytes of which the address must be a multiple.
    Raises KernelError for an array that is anything else.
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
    """As address, of a tensor of torch whose rows each are contiguous, any number of values apart."""
    first: int = array.data_ptr()
    size = array.shape
    is_dense = array.dim() == 2 and (array.stride(1) == 1 or size[1] == 1) and array.is_cpu
    if size != shape or array.dtype != dtype or not is_dense:
        raise _error(name, array, dtype, shape, 1, first, is_dense)
    return first


def bound(clip: float | None) -> float:
    """The bound of values that are clipped at `clip`; infinite if there is none."""
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
