"""The kinds of compiled layer calls: types, sizes, and how each packs the weights of a layer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ... import kernels
from ...formats.options import BiLMOptions
from ...kernels.constants import AMX_SIZE_MULTIPLE, AVX512_SIZE_MULTIPLE, UNITS


class Axes(NamedTuple):
    """How a matrix is packed: its rows and its columns are each split into several axes, which are then reordered.

    rows: the sizes into which the rows are split, for `Tensor.unflatten`.
    columns: the same for the columns.
    order: the order of the axes in memory, for `Tensor.permute`.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    order: tuple[int, ...]

    def pack(self, matrix: Tensor) -> Tensor:
        """Return a view of a matrix with its axes in the order in which they are packed.

        matrix: *Shape:* (rows, columns).
        """
        return self._split(matrix).permute(self.order)

    def unpack(self, packed: Tensor) -> Tensor:
        """Return a copy of a packed matrix in its usual order.

        packed: the memory of `pack`, *Shape:* (rows, columns).
        """
        sizes = self._split(packed).shape
        axes = packed.view([sizes[axis] for axis in self.order])
        return axes.permute([self.order.index(axis) for axis in range(len(sizes))]).reshape(packed.shape)

    def _split(self, matrix: Tensor) -> Tensor:
        axes: Tensor = matrix.unflatten(1, self.columns).unflatten(0, self.rows)
        return axes


class Kind(NamedTuple):
    """A kind of compiled layer call.

    name: the call is named `name`_layer in the library.
    has: tells whether the library and this machine can run it.
    operands: type of the operands of the matrix multiplications.
    sums: type in which the sums of the gates' inputs are stored.
    multiple: dim and projection_dim must be multiples of it.
    gates: how the weights of the input and of the state are packed.
    projection: how the projection is packed.
    """

    name: str
    has: Callable[[ctypes.CDLL | None], bool]
    operands: torch.dtype
    sums: torch.dtype
    multiple: int
    gates: Axes
    projection: Axes


# the fastest kind of each type comes first
KINDS = (
    Kind(
        "amx", kernels.has_amx, torch.bfloat16, torch.float16, AMX_SIZE_MULTIPLE,
        Axes((-1, 16, 2), (4, -1, UNITS), (4, 0, 3, 1, 5, 2)),
        Axes((-1, 16, 2), (-1, 4, UNITS), (3, 0, 4, 1, 5, 2)),
    ),
    Kind(
        "avx512_bf16", kernels.has_avx512_bf16, torch.bfloat16, torch.float16, AVX512_SIZE_MULTIPLE,
        Axes((-1, 2), (2, 2, -1, UNITS), (4, 2, 0, 3, 5, 1)),
        Axes((-1, 2), (-1, 2, UNITS), (2, 0, 3, 4, 1)),
    ),
    Kind(
        "avx512", kernels.has_avx512, torch.float32, torch.float32, AVX512_SIZE_MULTIPLE,
        Axes((-1,), (2, 2, -1, UNITS), (3, 1, 0, 2, 4)),
        Axes((-1,), (-1, 2, UNITS), (1, 0, 2, 3)),
    ),
)  # fmt: skip


def kind_of(options: BiLMOptions, dtype: torch.dtype, library: ctypes.CDLL | None) -> Kind | None:
    """Return the fastest kind of compiled call that this machine can run for a biLM, or None.

    options: the biLM's sizes.
    dtype: type of the matrix multiplications.
    library: the compiled loops; None: there are none.
    """
    sizes = (options.dim, options.projection_dim)
    fitting = (kind for kind in KINDS if kind.operands == dtype and not any(size % kind.multiple for size in sizes))
    return next((kind for kind in fitting if kind.has(library)), None)
