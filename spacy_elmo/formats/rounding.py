"""Rounding of float32 values to shorter mantissas. The bits that are rounded off become zeros and compress well."""

from __future__ import annotations

import numpy as np

from ..errors import Errors, WeightsError, shown
from .hdf5_checks import Floats

MANTISSA_BITS = 23  # that a float32 stores (IEEE 754 binary32), without the implicit leading 1


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
