"""Rounding of float32 values: to shorter mantissas, or to whole numbers of a step.

The bits that are rounded off become zeros and compress well. The results are float32, so every reader can use them.
"""

from __future__ import annotations

import numpy as np

from ..errors import Errors, WeightsError, shown
from .hdf5_checks import Floats

MANTISSA_BITS = 23  # that a float32 stores (IEEE 754 binary32), without the implicit leading 1
MIN_STEP_BITS, MAX_STEP_BITS = 2, 16  # of a whole number of steps, with its sign
STEPS_TRIED = 4  # a still smaller step would reach too few values
SMALLEST = 2.0**-149  # the smallest float32 above 0


def round_mantissas(values: Floats, bits: int) -> Floats:
    """Round values to the nearest ones whose mantissas have `bits` bits, half to even.

    A normal number changes by at most 2 ** -(bits + 1) of itself. Subnormal numbers, below 2 ** -126, are rounded to
    multiples of 2 ** -(126 + bits). A number that would round to infinity becomes the largest one of `bits` bits. NaN
    and infinity do not change.

    values: float32 of any shape; not changed.
    bits: of the mantissa, 1 to 23.

    Returns float32 of the same shape.
    Raises WeightsError if `bits` is not from 1 to 23.
    """
    if not 1 <= bits <= MANTISSA_BITS:
        raise WeightsError(Errors.ROUNDING_BITS.format(got=shown(bits), most=MANTISSA_BITS))
    # At least one dimension, because numpy warns if a scalar overflows.
    raw = np.array(values, dtype=np.float32, ndmin=1).view(np.uint32)
    n_dropped = MANTISSA_BITS - bits
    if n_dropped == 0:
        return raw.view(np.float32).reshape(values.shape)
    mask = np.uint32(2**32 - 2**n_dropped)
    last_bit = (raw >> np.uint32(n_dropped)) & np.uint32(1)
    # A carry out of the mantissa increases the exponent: the next power of two, as it should be.
    rounded = ((raw + np.uint32(2 ** (n_dropped - 1) - 1) + last_bit) & mask).view(np.float32)
    finite = np.isfinite(raw.view(np.float32))
    rounded = np.where(np.isfinite(rounded), rounded, (raw & mask).view(np.float32))
    result: Floats = np.where(finite, rounded, raw.view(np.float32)).reshape(values.shape)
    return result


def round_to_steps(values: Floats, bits: int, axes: tuple[int, ...]) -> Floats:
    """Round values to whole numbers of a step, half to even. Each output has its own step, a power of two.

    The whole numbers are from -(2 ** (bits - 1) - 1) to 2 ** (bits - 1) - 1. The step is the smallest power of two that
    reaches all values, or one of the next three below: that with the smallest sum of squared changes. It may be too
    small to reach the largest values, which then become the outermost number.

    values: float32 of any shape, finite; not changed.
    bits: of a whole number with its sign, 2 to 16.
    axes: the axes of one output's values. All values with the same places in the other axes have one step.

    Returns float32 of the same shape. A whole number of at most 16 bits times a power of two is exact in float32.
    Raises WeightsError if `bits` is not from 2 to 16.
    """
    if not MIN_STEP_BITS <= bits <= MAX_STEP_BITS:
        raise WeightsError(Errors.STEP_BITS.format(got=shown(bits), least=MIN_STEP_BITS, most=MAX_STEP_BITS))
    exact = values.astype(np.float64)
    most = 2 ** (bits - 1) - 1
    largest = np.abs(exact).max(axis=axes, keepdims=True, initial=0.0)
    # From a step that reaches all values. It is at least float32's smallest number, whose multiples are exact: so no
    # smaller step changes the values less.
    step = np.exp2(np.ceil(np.log2(np.maximum(largest / most, SMALLEST))))
    result, change = np.zeros_like(exact), np.full_like(largest, np.inf)
    for _ in range(STEPS_TRIED):
        rounded = np.clip(np.rint(exact / step), -most, most) * step
        rounded_change = ((rounded - exact) ** 2).sum(axis=axes, keepdims=True)
        result = np.where(rounded_change < change, rounded, result)
        change = np.minimum(rounded_change, change)
        step = step / 2
    return result.astype(np.float32)
