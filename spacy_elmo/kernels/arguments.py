"""Arguments of the compiled loops, checked: they read and write memory by address, and check nothing themselves."""

import math
from typing import Any

import numpy as np

from ..errors import Errors, KernelError


def address(name: str, array: Any, dtype: Any, shape: tuple[int | None, ...], alignment: int = 1) -> int:
    """The address of an array's first value. Every array that a compiled loop is given goes through here.

    It says nothing about how long the array lives: who asks has it until the loop has run.

    name: what the error calls it.
    array: a numpy array, or a tensor of torch on the CPU; contiguous.
    dtype: expected, the array's own kind: numpy's or torch's.
    shape: expected; None: any size.
    alignment: bytes of which the address must be a multiple.
    Raises KernelError for an array that is anything else.
    """
    if isinstance(array, np.ndarray):
        found, is_dense, is_here = array.ctypes.data, array.flags.c_contiguous, True
    else:
        found, is_dense, is_here = array.data_ptr(), array.is_contiguous(), array.is_cpu
    return _checked(name, array, dtype, shape, alignment, found, is_dense and is_here)


def address_of_rows(name: str, array: Any, dtype: Any, shape: tuple[int | None, int]) -> int:
    """As address, of a tensor of torch whose rows each are contiguous, any number of values apart."""
    is_dense = array.dim() == 2 and (array.stride(1) == 1 or array.shape[1] == 1)
    return _checked(name, array, dtype, shape, 1, array.data_ptr(), is_dense and array.is_cpu)


def bound(clip: float | None) -> float:
    """The bound of values that are clipped at `clip`; infinite if there is none."""
    return math.inf if clip is None else clip


def _checked(
    name: str, array: Any, dtype: Any, shape: tuple[int | None, ...], alignment: int, found: int, is_dense: bool
) -> int:
    own = array.shape
    fits = own == shape or (len(own) == len(shape) and all(b is None or a == b for a, b in zip(own, shape)))
    if not fits or array.dtype != dtype or not is_dense or found % alignment:
        raise KernelError(
            Errors.KERNEL_ARRAY.format(
                name=name,
                shape=tuple(own),
                dtype=array.dtype,
                dense="contiguous" if is_dense else "not contiguous or not in the processor's memory",
                address=found,
                expected_shape=tuple("any" if size is None else size for size in shape),
                expected_dtype=dtype,
                alignment=alignment,
            )
        )
    return found
