"""Convolution over characters and maximum over positions, computed with tables.

A character's embedding times one slice of a filter does not depend on the position of the character. So each of these
dot products is computed once for each character, in a table. The sum of a window is then the sum of `width` rows of the
table. This is several times faster than a matrix multiplication over all windows, because a batch has many more windows
than there are characters.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .loops import address, address_of_rows


def _read(ids: Tensor, lengths: Tensor, table: Tensor) -> tuple[int, int, int]:
    """Return the addresses of the arrays that the compiled convolutions read.

    ids: *Shape:* (words, positions), int16.
    lengths: *Shape:* (words,), int32.
    table: *Shape:* (width, characters, filters), float32.
    """
    return (
        address("ids", ids, torch.int16, tuple(ids.shape)),
        address("lengths", lengths, torch.int32, (len(ids),)),
        address("table", table, torch.float32, tuple(table.shape)),
    )


class _Convolve(torch.autograd.Function):
    """The maximum over windows of one table's sums, with the gradient of the table."""

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
    """Return the dot products of each character's embedding and each slice of the filters.

    embedding: *Shape:* (characters, char_dim). Row 0, the mask, gets no gradient.
    weight: *Shape:* (filters, char_dim, width), the weight of nn.Conv1d.

    Returns *Shape:* (width, characters, filters).
    """
    learned = torch.cat([embedding[:1].detach(), embedding[1:]])  # the mask is no character and stays 0
    return torch.einsum("cd,fdk->kcf", learned, weight).contiguous()


def maxima(tables: Sequence[Tensor], ids: Tensor, lengths: Sequence[Tensor], library: ctypes.CDLL) -> Tensor:
    """Return the maximum over all windows of each filter's sum, without the bias.

    tables: as `character_table` returns them, float32, one for each width of filters.
    ids: *Shape:* (words, positions), int16, character ids, at most 256 positions.
    lengths: for each table *Shape:* (words,), int32, number of positions of each word that are convolved, at least the
        table's width.
    library: the compiled loops.

    Returns *Shape:* (words, filters), float32, the filters of all tables in their order.
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
