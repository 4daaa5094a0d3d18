"""Structs for the arguments of compiled functions that have many.

They are the structs of calls.h, which describes their fields. A test compares the two.
"""

import ctypes
from typing import ClassVar

_INT, _ADDRESS, _REAL = ctypes.c_int32, ctypes.c_void_p, ctypes.c_float


def _fields(sizes: str, addresses: str, reals: str = "cell_bound proj_bound") -> list[tuple[str, type]]:
    kinds = ((sizes, _INT), (addresses, _ADDRESS), (reals, _REAL))
    return [(name, kind) for names, kind in kinds for name in names.split()]


class LayerCall(ctypes.Structure):
    """One direction of one layer over rows of different lengths, only forward."""

    _fields_: ClassVar = _fields(
        "batch dim width n_precomputed n_inputs n_chunks h_stride c_stride",
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
