"""Fewer bits in a float32's mantissa: what is rounded off is zeros, which compress well."""

from __future__ import annotations

import numpy as np

from ..errors import Errors, WeightsError, shown
from .hdf5_checks import Floats

MANTISSA_BITS = 23  # stored ones of a float32 (IEEE 754 binary32), without the leading 1


def round_mantissas(values: Floats, bits: int) -> Floats:
    """The nearest values whose mantissas have `bits` bits, 1 to 23; of two as near, the one that ends in 0.

    values, and what is returned: float32 of any shape. A normal number changes by 2 ** -(bits + 1) of itself at most;
    subnormal ones, below 2 ** -126, are rounded to multiples of 2 ** -(126 + bits). What would round to infinity
    becomes the largest number of so many bits. NaN and infinity stay as they are.

    Raises WeightsError for another number of bits.
    """
    if not 1 <= bits <= MANTISSA_BITS:
        raise WeightsError(Errors.ROUNDING_BITS.format(got=shown(bits), most=MANTISSA_BITS))
    # one dimension at least, so that numpy makes no scalars of it, whose overflow warns
    raw = np.array(values, dtype=np.float32, ndmin=1).view(np.uint32)
    dropped = MANTISSA_BITS - bits
    if dropped == 0:
        return raw.view(np.float32).reshape(values.shape)
    kept = np.uint32(2**32 - 2**dropped)
    last = (raw >> np.uint32(dropped)) & np.uint32(1)
    # a carry out of the mantissa goes into the exponent, which is the next power of two
    rounded = ((raw + np.uint32(2 ** (dropped - 1) - 1) + last) & kept).view(np.float32)
    finite = np.isfinite(raw.view(np.float32))
    rounded = np.where(np.isfinite(rounded), rounded, (raw & kept).view(np.float32))
    result: Floats = np.where(finite, rounded, raw.view(np.float32)).reshape(values.shape)
    return result
