"""Convolution over characters and maximum over positions, by table.

A character's embedding times one slice of a filter is the same wherever the character stands. So the products are
taken once per character, and a window's sum is an addition of `width` rows: exact, and several times faster than
products over all windows, as a batch has many more windows than there are characters.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .loops import address, address_of_rows


def _read(ids: Tensor, lengths: Tensor, table: Tensor) -> tuple[int, int, int]:
    """Addresses of what the convolutions read; see maxima."""
    return (
        address("ids", ids, torch.int16, tuple(ids.shape)),
        address("lengths", lengths, torch.int32, (len(ids),)),
        address("table", table, torch.float32, tuple(table.shape)),
    )


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, lengths: Tensor, library: ctypes.CDLL) -> Tensor:
        width, n_ids, filters = table.shape
        words, stride = ids.shape
        out = torch.empty(words, filters, dtype=torch.float32, device=table.device)
        where = torch.empty(words, filters, dtype=torch.uint8, device=table.device)
        sizes = (words, stride, width, n_ids, filters, filters)
        library.convolve(
            *sizes,
            *_read(ids, lengths, table),
            address("out", out, torch.float32, (words, filters)),
            address("where", where, torch.uint8, (words, filters)),
        )
        ctx.save_for_backward(ids, where)
        ctx.sizes, ctx.library = sizes, library
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        ids, where = ctx.saved_tensors
        words, stride, width, n_ids, filters, _ = ctx.sizes
        d_table, d_out = torch.zeros(width, n_ids, filters, dtype=torch.float32, device=ids.device), d_out.contiguous()
        ctx.library.convolve_backward(
            *ctx.sizes,
            address("ids", ids, torch.int16, (words, stride)),
            address("d_out", d_out, torch.float32, (words, filters)),
            address("where", where, torch.uint8, (words, filters)),
            address("d_table", d_table, torch.float32, (width, n_ids, filters)),
        )
        return d_table, None, None, None


def character_table(embedding: Tensor, weight: Tensor) -> Tensor:
    """Each character's embedding times each slice of the filters, *Shape:* (width, characters, filters).

    embedding: *Shape:* (characters, char_dim); weight: (filters, char_dim, width), as nn.Conv1d has it. Row 0 of
    embedding, the mask, gets no gradient.
    """
    learned = torch.cat([embedding[:1].detach(), embedding[1:]])  # the mask is no character and stays 0
    return torch.einsum("cd,fdk->kcf", learned, weight).contiguous()


def maxima(tables: Sequence[Tensor], ids: Tensor, lengths: Sequence[Tensor], library: ctypes.CDLL) -> Tensor:
    """The maximum over windows of each filter's sums, without bias, those of all tables side by side.

    tables: see character_table; ids: *Shape:* (words, positions), int16, at most 256 positions; lengths: for each table
    (words,), int32: positions that count, at least width. Returns *Shape:* (words, filters), float32.
    """
    ids, lengths = ids.contiguous(), [array.contiguous() for array in lengths]
    if torch.is_grad_enabled():
        return torch.cat([_Convolve.apply(table, ids, array, library) for table, array in zip(tables, lengths)], 1)
    words, stride = ids.shape
    out = torch.empty(words, sum(table.shape[2] for table in tables), dtype=torch.float32, device=ids.device)
    begin = 0
    for table, array in zip(tables, lengths):
        end = begin + table.shape[2]
        maxima_here = address_of_rows("out", out[:, begin:end], torch.float32, (words, end - begin))
        library.convolve_maxima(words, stride, *table.shape, out.shape[1], *_read(ids, array, table), maxima_here)
        begin = end
    return out
